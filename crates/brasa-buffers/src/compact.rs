//! Rows in reduced precision, as a replay buffer stores observations and actions.

use std::ops::Range;
use std::vec::IntoIter;

use brasa_core::env::Space;
use brasa_core::{Obs, Rows, Shared, TeamObs, read_all};
use brasa_device::runs_on_host;
use brasa_kernels::{Assignment, HostTensor, assign_rows, elementwise, select_rows};
use burn::tensor::{Bool, DType, Device, FloatDType, Int, IntDType, Tensor, TensorData, Transaction, f16};
use serde::{Deserialize, Serialize};

/// Precision of the numbers of a replay buffer. Observations of bytes ([`Space::image`]) take a byte with every precision.
///
/// ```
/// use brasa_buffers::{Precision, ReplayConfig};
///
/// let config: ReplayConfig = toml::from_str("precision = 'f16'")?;
/// assert_eq!(config.precision, Precision::F16);
/// let config: ReplayConfig = toml::from_str("precision = { u8 = { low = 0.0, high = 255.0 } }")?;
/// assert_eq!(config.precision, Precision::U8 { low: 0.0, high: 255.0 });
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Precision {
    /// 32 bits: exact.
    #[default]
    F32,
    /// 16 bits: a relative error of at most 1 / 2048; integers are exact up to 2048. Numbers above 65504 are clipped to
    /// 65504, and those below 6e-5 lose digits: normalize such observations.
    F16,
    /// 8 bits: the nearest of 256 equally spaced values of a range, an error of at most 1 / 510 of it. Numbers
    /// outside the range are clipped. Intended for pixels.
    U8 {
        /// Lower end of the range, in the unit of the observation.
        low: f32,
        /// Upper end of the range, in the unit of the observation.
        high: f32,
    },
}

/// Largest finite 16-bit float; larger numbers would become infinite.
const F16_MAX: f32 = 65504.0;

impl Precision {
    /// Every number is 0 or 1.
    const FLAGS: Self = Self::U8 { low: 0.0, high: 1.0 };
    /// Every number is a whole one from 0 to 255.
    const BYTES: Self = Self::U8 { low: 0.0, high: 255.0 };

    /// The precision of observations of `space` if the settings name this one: bytes are exact and take the least memory.
    pub(crate) fn of_space(self, space: &Space, device: &Device) -> Self {
        match self {
            Self::U8 { .. } => self,
            _ if space.has_bytes() && device.supports_dtype(Self::BYTES.dtype()) => Self::BYTES,
            _ => self,
        }
    }

    /// The same, or 32 bits on a device that cannot hold the type.
    fn or_plain(self, device: &Device) -> Self {
        if device.supports_dtype(self.dtype()) { self } else { Self::F32 }
    }

    pub(crate) fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::U8 { .. } => DType::U8,
        }
    }
}

/// Rows that can be packed into arrays of reduced precision, and unpacked.
///
/// A struct of tensors packs and unpacks its parts in the same order.
///
/// ```
/// use brasa_buffers::{Compact, Obs, Precision};
/// use burn::tensor::Tensor;
///
/// let obs = Obs::new(Tensor::from_floats([[0.5], [1e6]], &brasa_device::open_named("cpu")?));
/// let mut arrays = Vec::new();
/// obs.clone().pack(Precision::F16, &mut arrays);
/// let back = Obs::unpack(&obs, &mut arrays.into_iter());
/// // The largest number in 16 bits.
/// assert_eq!(brasa_core::read_back(back.values), [0.5, 65504.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub trait Compact: Rows {
    /// Packs all rows and appends the arrays: each has one row per row, or one for each [`Compact::n_agents`]
    /// consecutive rows.
    fn pack(self, precision: Precision, into: &mut Vec<Packed>);

    /// Unpacks rows shaped like `like` from the next arrays, which have one row for each of them.
    fn unpack(like: &Self, from: &mut IntoIter<Packed>) -> Self;

    /// Agents whose experience is sampled separately: row `i` of a batch belongs to agent `i % n_agents`.
    fn n_agents(&self) -> usize {
        1
    }
}

impl<const D: usize> Compact for Tensor<D> {
    fn pack(self, precision: Precision, into: &mut Vec<Packed>) {
        let n_rows = self.n_rows();
        let width = self.dims()[1..].iter().product();
        into.push(Packed::new(self.reshape([n_rows, width]), precision));
    }

    fn unpack(like: &Self, from: &mut IntoIter<Packed>) -> Self {
        let rows = from.next().expect("as many arrays come back as were appended").into_floats();
        let mut shape = like.dims();
        shape[0] = rows.n_rows();
        rows.reshape(shape)
    }
}

/// Masks take one byte per action if the device supports bytes.
impl Compact for Obs {
    fn pack(self, precision: Precision, into: &mut Vec<Packed>) {
        let flags = Precision::FLAGS.or_plain(&self.values.device());
        self.values.pack(precision, into);
        self.mask.pack(flags, into);
    }

    fn unpack(like: &Self, from: &mut IntoIter<Packed>) -> Self {
        Self { values: Compact::unpack(&like.values, from), mask: Compact::unpack(&like.mask, from) }
    }
}

/// The shared part is stored once; masks as in [`Obs`].
impl Compact for TeamObs {
    fn pack(self, precision: Precision, into: &mut Vec<Packed>) {
        if let Some(Shared::PerEnv(rows) | Shared::PerRow(rows)) = self.shared {
            rows.pack(precision, into);
        }
        self.own.pack(precision, into);
        if let Some(mask) = self.mask {
            let flags = Precision::FLAGS.or_plain(&mask.device());
            mask.pack(flags, into);
        }
    }

    fn unpack(like: &Self, from: &mut IntoIter<Packed>) -> Self {
        let shared = like.shared.as_ref().map(|(Shared::PerEnv(rows) | Shared::PerRow(rows))| rows);
        Self {
            shared: shared.map(|rows| Shared::PerRow(Compact::unpack(rows, from))),
            own: Compact::unpack(&like.own, from),
            mask: Compact::unpack(&like.mask, from),
            ..*like
        }
    }

    fn n_agents(&self) -> usize {
        self.n_agents
    }
}

impl Compact for () {
    fn pack(self, _: Precision, _: &mut Vec<Packed>) {}
    fn unpack(_: &Self, _: &mut IntoIter<Packed>) -> Self {}
}

impl<C: Compact> Compact for Option<C> {
    fn pack(self, precision: Precision, into: &mut Vec<Packed>) {
        if let Some(rows) = self {
            rows.pack(precision, into);
        }
    }

    fn unpack(like: &Self, from: &mut IntoIter<Packed>) -> Self {
        like.as_ref().map(|like| C::unpack(like, from))
    }
}

/// One array of rows, `[n_rows, width]`, in its stored type.
///
/// ```
/// use brasa_buffers::{Packed, Precision};
/// use burn::tensor::Tensor;
///
/// let rows = Tensor::from_floats([[0.0, 99.6], [300.0, 255.0]], &brasa_device::open_named("cpu")?);
/// let packed = Packed::new(rows, Precision::U8 { low: 0.0, high: 255.0 });
/// // Whole numbers from 0 to 255 are exact. Others are rounded or clipped.
/// assert_eq!(brasa_core::read_back(packed.into_floats()), [0.0, 100.0, 255.0, 255.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Packed {
    values: Values,
    precision: Precision,
}

#[derive(Debug, Clone)]
enum Values {
    Floats(Tensor<2>),
    Codes(Tensor<2, Int>),
}

/// Layout of a row; arrays with the same layout can exchange rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Layout {
    pub width: usize,
    pub precision: Precision,
}

impl Layout {
    pub(crate) fn bytes_per_row(&self) -> usize {
        self.width * self.precision.dtype().size()
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} numbers in {}", self.width, self.precision.dtype().name())?;
        match self.precision {
            Precision::U8 { low, high } => write!(f, " from {low} to {high}"),
            Precision::F32 | Precision::F16 => Ok(()),
        }
    }
}

impl Packed {
    /// Rounds `[n_rows, width]` to a precision that the device supports.
    pub fn new(rows: Tensor<2>, precision: Precision) -> Self {
        let values = match precision {
            Precision::F32 => Values::Floats(rows),
            Precision::F16 => Values::Floats(rows.clamp(-F16_MAX, F16_MAX).cast(FloatDType::F16)),
            Precision::U8 { low, high } => {
                let [codes] = elementwise(rows.dims(), |formulas| {
                    let code = (formulas.read(&rows) - f64::from(low)) * f64::from(255.0 / (high - low));
                    [vec![(code.clamp(0.0, 255.0) + 0.5).floor()]]
                });
                Values::Codes(codes.cast(IntDType::U8))
            }
        };
        Self { values, precision }
    }

    /// The rows as 32-bit floats.
    pub fn into_floats(self) -> Tensor<2> {
        match (self.values, self.precision) {
            (Values::Floats(rows), _) => rows.cast(FloatDType::F32),
            (Values::Codes(codes), Precision::U8 { low, high }) => {
                let codes = codes.cast(FloatDType::F32);
                let [rows] = elementwise(codes.dims(), |formulas| {
                    [vec![formulas.read(&codes) * f64::from((high - low) / 255.0) + f64::from(low)]]
                });
                rows
            }
            (Values::Codes(_), _) => unreachable!("codes are made with a range"),
        }
    }

    /// `n_rows` rows of zeros in the same type.
    pub(crate) fn zeroed(&self, n_rows: usize, device: &Device) -> Self {
        let shape = [n_rows, self.layout().width];
        let n = shape[0] * shape[1];
        // `Tensor::zeros` of the host copies the whole array once; pages of these data are zeroed when they are written.
        if runs_on_host(device) {
            let data = match self.precision {
                Precision::F32 => TensorData::new(vec![0f32; n], shape),
                Precision::F16 => TensorData::new(vec![f16::ZERO; n], shape),
                Precision::U8 { .. } => TensorData::new(vec![0u8; n], shape),
            };
            return self.of_data(data, device);
        }
        let options = (device, self.precision.dtype());
        let values = match &self.values {
            Values::Floats(_) => Values::Floats(Tensor::zeros(shape, options)),
            Values::Codes(_) => Values::Codes(Tensor::zeros(shape, options)),
        };
        Self { values, precision: self.precision }
    }

    /// Rows with these data in the same type.
    fn of_data(&self, data: TensorData, device: &Device) -> Self {
        let options = (device, self.precision.dtype());
        let values = match &self.values {
            Values::Floats(_) => Values::Floats(Tensor::from_data(data, options)),
            Values::Codes(_) => Values::Codes(Tensor::from_data(data, options)),
        };
        Self { values, precision: self.precision }
    }

    /// The rows of all `arrays` in the memory of `host`; waits once for the device where they are.
    pub(crate) fn fetch(arrays: Vec<Self>, host: &Device) -> Vec<Self> {
        let register = |transaction: Transaction, array: &Self| match &array.values {
            Values::Floats(rows) => transaction.register(rows.clone()),
            Values::Codes(codes) => transaction.register(codes.clone()),
        };
        let data = read_all(arrays.iter().fold(Transaction::default(), register));
        arrays.iter().zip(data).map(|(array, data)| array.of_data(data, host)).collect()
    }

    /// The rows in the memory of `device`, as 32-bit floats if it does not support their type.
    pub(crate) fn upload(self, device: &Device) -> Self {
        if !device.supports_dtype(self.precision.dtype()) {
            return Self::new(self.into_floats(), Precision::F32).upload(device);
        }
        let values = match self.values {
            Values::Floats(rows) => Values::Floats(rows.to_device(device)),
            Values::Codes(codes) => Values::Codes(codes.to_device(device)),
        };
        Self { values, precision: self.precision }
    }

    /// The numbers, if they are in 32 bits in the memory of the host.
    pub(crate) fn on_host(&self) -> Option<HostTensor> {
        match &self.values {
            Values::Floats(rows) => HostTensor::of(rows),
            Values::Codes(_) => None,
        }
    }

    pub(crate) fn select(&self, indices: Tensor<1, Int>) -> Self {
        let values = match &self.values {
            Values::Floats(rows) => Values::Floats(select_rows(rows, &indices)),
            Values::Codes(codes) => Values::Codes(codes.clone().select(0, indices)),
        };
        Self { values, precision: self.precision }
    }

    /// Replaces the rows in `range`, in place if this is the only handle to the memory.
    pub(crate) fn assign(&mut self, range: Range<usize>, rows: Self) {
        Self::assign_all([(self, range, rows)]);
    }

    /// [`Packed::assign`] for several arrays; those of floats together.
    pub(crate) fn assign_all<'a>(parts: impl IntoIterator<Item = (&'a mut Self, Range<usize>, Self)>) {
        let mut floats = Vec::new();
        for (all, range, rows) in parts {
            match (&mut all.values, rows.values) {
                (Values::Floats(matrix), Values::Floats(rows)) => {
                    assert_eq!(range.len(), rows.n_rows(), "as many rows as are replaced");
                    floats.push(Assignment { matrix, first: range.start, rows });
                }
                (Values::Codes(all), Values::Codes(codes)) => all.assign(range, codes),
                _ => panic!("an array keeps its type"),
            }
        }
        assign_rows(floats);
    }

    /// A copy of the rows in `range`. A slice could share memory, which [`Packed::assign`] would then have to copy.
    pub(crate) fn copy(&self, range: Range<usize>, device: &Device) -> Self {
        self.select(Tensor::arange(range.start as i64..range.end as i64, device))
    }

    /// The rows of `other` where `mask` is true, the own ones elsewhere.
    pub(crate) fn mask_where(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        let values = match (self.values, other.values) {
            (Values::Floats(rows), Values::Floats(other)) => Values::Floats(Rows::mask_where(rows, mask, other)),
            (Values::Codes(codes), Values::Codes(other)) => Values::Codes(Rows::mask_where(codes, mask, other)),
            _ => panic!("an array keeps its type"),
        };
        Self { values, precision: self.precision }
    }

    pub(crate) fn layout(&self) -> Layout {
        let [_, width] = match &self.values {
            Values::Floats(rows) => rows.dims(),
            Values::Codes(codes) => codes.dims(),
        };
        Layout { width, precision: self.precision }
    }

    pub(crate) fn n_rows(&self) -> usize {
        match &self.values {
            Values::Floats(rows) => rows.n_rows(),
            Values::Codes(codes) => codes.n_rows(),
        }
    }

    /// Whether this is the only handle to the memory.
    #[cfg(test)]
    pub(crate) fn can_mut(&self) -> bool {
        match &self.values {
            Values::Floats(rows) => rows.can_mut(),
            Values::Codes(codes) => codes.can_mut(),
        }
    }

    /// Appends the bytes of the rows in `range`.
    pub(crate) fn write(&self, range: Range<usize>, bytes: &mut Vec<u8>) {
        let data = match &self.values {
            // Waits for the device: for a checkpoint.
            Values::Floats(rows) => rows.clone().slice(range).into_data(),
            // Waits for the device.
            Values::Codes(codes) => codes.clone().slice(range).into_data(),
        };
        bytes.extend_from_slice(data.as_bytes());
    }

    /// Replaces the rows in `range` by the first of `bytes`, and advances `bytes`.
    ///
    /// # Panics
    /// If `bytes` is too short.
    pub(crate) fn read(&mut self, range: Range<usize>, bytes: &mut &[u8]) {
        let layout = self.layout();
        let (rows, rest) = bytes.split_at(range.len() * layout.bytes_per_row());
        *bytes = rest;
        let dtype = layout.precision.dtype();
        let data = TensorData::from_bytes_vec(rows.to_vec(), [range.len(), layout.width], dtype);
        let device = match &self.values {
            Values::Floats(all) => all.device(),
            Values::Codes(all) => all.device(),
        };
        self.assign(range, self.of_data(data, &device));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu() -> Device {
        brasa_device::open_named("cpu").expect("flex is a default feature")
    }

    fn there_and_back(values: &[f32], precision: Precision) -> Vec<f32> {
        let rows = Tensor::<1>::from_data(TensorData::from(values), &cpu());
        let mut arrays = Vec::new();
        rows.clone().pack(precision, &mut arrays);
        Tensor::unpack(&rows, &mut arrays.into_iter()).to_data().try_to_vec().expect("f32")
    }

    #[test]
    fn rounding_stays_within_what_the_precision_says() {
        let values: Vec<f32> = (-5000..5000).map(|i| i as f32 * 0.0123 + 0.0007).collect();
        assert_eq!(there_and_back(&values, Precision::F32), values);
        for (back, value) in there_and_back(&values, Precision::F16).iter().zip(&values) {
            assert!((back - value).abs() <= value.abs() / 2048.0 + 3e-8, "{back} instead of {value}");
        }
        let (low, high) = (-20.0, 31.0);
        for (back, value) in there_and_back(&values, Precision::U8 { low, high }).iter().zip(&values) {
            let error = (back - value.clamp(low, high)).abs();
            assert!(error <= (high - low) / 510.0 * 1.0001, "{back} instead of {value}");
        }
    }

    #[test]
    fn what_a_type_holds_exactly_comes_back_exactly() {
        let pixels: Vec<f32> = (0..256).map(|i| i as f32).collect();
        assert_eq!(there_and_back(&pixels, Precision::U8 { low: 0.0, high: 255.0 }), pixels);
        assert_eq!(there_and_back(&[0.0, 1.0], Precision::FLAGS), [0.0, 1.0]);
        // Halves are rounded up, and numbers outside of the range are clipped.
        let others = there_and_back(&[0.5, 2.5, 254.5, 254.6, -3.0, 300.0], Precision::BYTES);
        assert_eq!(others, [1.0, 3.0, 255.0, 255.0, 0.0, 255.0]);
        let codes: Vec<f32> = (0..=2048).map(|i| i as f32).collect();
        assert_eq!(there_and_back(&codes, Precision::F16), codes);
        assert_eq!(there_and_back(&[1e30, -1e30], Precision::F16), [65504.0, -65504.0]);
    }

    #[test]
    fn rows_of_any_shape_come_back_in_theirs() {
        let pixels = Tensor::<1, Int>::arange(0..48, &cpu()).float().reshape([2, 2, 3, 4]);
        let parts = (Some(pixels.clone()), None::<Tensor<2>>);
        let mut arrays = Vec::new();
        let precision = Precision::U8 { low: 0.0, high: 255.0 };
        parts.0.clone().pack(precision, &mut arrays);
        parts.1.clone().pack(precision, &mut arrays);
        ().pack(precision, &mut arrays);
        assert_eq!(arrays.len(), 1);
        let mut arrays = arrays.into_iter();
        let back = Option::unpack(&parts.0, &mut arrays).expect("it was some");
        assert!(Option::unpack(&parts.1, &mut arrays).is_none());
        assert_eq!(back.to_data(), pixels.to_data());
    }
}
