//! The memory of tensors on the CPU: the one place that decides whether a loop over memory replaces operations of the backend.

#[cfg(feature = "flex")]
use burn::backend::{Flex, flex::FlexTensor};
use burn::tensor::Tensor;
#[cfg(feature = "flex")]
use burn::tensor::{DType, Int, TensorData};

/// The numbers of a tensor in the memory of the CPU, row by row.
///
/// An operation with a loop for the CPU asks for its inputs, and uses operations of the backend where it gets none:
///
/// ```
/// use brasa_kernels::HostTensor;
/// use burn::tensor::Tensor;
///
/// fn halves(x: Tensor<2>) -> Tensor<2> {
///     match HostTensor::of(&x) {
///         Some(numbers) => HostTensor::tensor(numbers.iter().map(|x| x / 2.0).collect(), x.dims()),
///         None => x / 2.0,
///     }
/// }
///
/// let x = Tensor::<2>::from_floats([[1.0, 3.0]], &brasa_device::open_named("cpu")?);
/// assert_eq!(halves(x).into_data().iter::<f32>().collect::<Vec<_>>(), [0.5, 1.5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct HostTensor {
    #[cfg(feature = "flex")]
    tensor: FlexTensor,
    #[cfg(not(feature = "flex"))]
    none: std::convert::Infallible,
}

impl HostTensor {
    /// The numbers of `tensor`, without a copy if they are contiguous; `None` unless the CPU computes with it in 32 bits. Of a tensor
    /// with gradients, the numbers alone.
    pub fn of<const D: usize>(tensor: &Tensor<D>) -> Option<Self> {
        Self::from_tensor(tensor.clone())
    }

    fn from_tensor<const D: usize>(tensor: Tensor<D>) -> Option<Self> {
        #[cfg(feature = "flex")]
        {
            let tensor = crate::plain_side(tensor)
                .try_into_primitive::<Flex>()
                .ok()
                .filter(|tensor| tensor.dtype() == DType::F32)?;
            let whole = tensor.layout().contiguous_offsets().is_some();
            Some(Self { tensor: if whole { tensor } else { tensor.to_contiguous() } })
        }
        #[cfg(not(feature = "flex"))]
        {
            let _ = tensor;
            None
        }
    }

    /// A tensor without gradients whose numbers are those of `tensor` after `change`, which gets them row by row; in place if this is the
    /// only handle to the memory.
    ///
    /// # Panics
    /// If the CPU does not compute with it in 32 bits.
    pub fn changed<const D: usize>(tensor: Tensor<D>, change: impl FnOnce(&mut [f32])) -> Tensor<D> {
        #[cfg(feature = "flex")]
        {
            let mut numbers = Self::from_tensor(tensor).expect("the memory is that of the CPU");
            change(&mut numbers);
            Tensor::from_primitive::<Flex>(numbers.tensor)
        }
        #[cfg(not(feature = "flex"))]
        {
            let _ = (tensor, change);
            panic!("a host that computes nothing")
        }
    }

    /// A tensor on the CPU with these numbers, row by row.
    ///
    /// # Panics
    /// If there are more or fewer numbers, or if the feature `flex` is off, without which no [`HostTensor`] exists.
    pub fn tensor<const D: usize>(values: Vec<f32>, dims: [usize; D]) -> Tensor<D> {
        #[cfg(feature = "flex")]
        return Tensor::from_primitive::<Flex>(FlexTensor::from_data(TensorData::new(values, dims)));
        #[cfg(not(feature = "flex"))]
        panic!("{} numbers of {dims:?} on a host that computes nothing", values.len());
    }
}

impl std::ops::Deref for HostTensor {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        #[cfg(feature = "flex")]
        {
            let layout = self.tensor.layout();
            let first = layout.start_offset();
            &self.tensor.storage::<f32>()[first..first + layout.num_elements()]
        }
        #[cfg(not(feature = "flex"))]
        match self.none {}
    }
}

impl std::ops::DerefMut for HostTensor {
    /// The numbers, copied if others hold them too.
    fn deref_mut(&mut self) -> &mut [f32] {
        #[cfg(feature = "flex")]
        {
            let (first, n) = (self.tensor.layout().start_offset(), self.tensor.layout().num_elements());
            &mut self.tensor.storage_mut::<f32>()[first..first + n]
        }
        #[cfg(not(feature = "flex"))]
        match self.none {}
    }
}

/// Indices in the memory of the CPU.
#[cfg(feature = "flex")]
pub(crate) struct HostIndices {
    tensor: FlexTensor,
}

#[cfg(feature = "flex")]
impl HostIndices {
    /// `None` unless the CPU computes with `indices`.
    pub fn of(indices: &Tensor<1, Int>) -> Option<Self> {
        let tensor = indices.clone().try_into_primitive::<Flex>().ok()?;
        let is_known = [DType::I32, DType::I64].contains(&tensor.dtype());
        is_known.then(|| Self { tensor: tensor.to_contiguous() })
    }

    /// Number of indices.
    pub fn len(&self) -> usize {
        self.tensor.layout().num_elements()
    }

    pub fn integers(&self) -> Integers<'_> {
        Integers::of(&self.tensor)
    }
}

/// Integers of a table, of either width.
#[cfg(feature = "flex")]
pub(crate) enum Integers<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

#[cfg(feature = "flex")]
impl<'a> Integers<'a> {
    pub fn of(tensor: &'a FlexTensor) -> Self {
        assert!(tensor.is_contiguous(), "tables are uploaded whole");
        let first = tensor.layout().start_offset();
        let range = first..first + tensor.layout().num_elements();
        match tensor.dtype() {
            DType::I32 => Self::Narrow(&tensor.storage::<i32>()[range]),
            DType::I64 => Self::Wide(&tensor.storage::<i64>()[range]),
            other => panic!("tables are integers of 32 or 64 bits, not {other:?}"),
        }
    }

    pub fn at(&self, index: usize) -> usize {
        match self {
            Self::Narrow(values) => values[index] as usize,
            Self::Wide(values) => values[index] as usize,
        }
    }

    /// Reads line `line` of a table with lines of the length of `into`.
    pub fn read_line(&self, line: usize, into: &mut [usize]) {
        let range = line * into.len()..(line + 1) * into.len();
        match self {
            Self::Narrow(values) => into.iter_mut().zip(&values[range]).for_each(|(to, from)| *to = *from as usize),
            Self::Wide(values) => into.iter_mut().zip(&values[range]).for_each(|(to, from)| *to = *from as usize),
        }
    }
}
