//! The parameters that CityLearn samples for devices if they are missing in the schema.
//!
//! The generator of a device is seeded from an MD5 digest of its names, and restarted for each parameter,
//! so all parameters of a device use one uniform number `u`: `value = low + (high - low) * u`.

use md5::{Digest, Md5};
use rand_mt::Mt;

/// The uniform number in `[0, 1)` of all sampled parameters of a device.
///
/// ```
/// use brasa_citylearn::DeviceDraw;
///
/// // As `numpy.random.RandomState(0).random_sample()`, which gives 0.5488 with this seed.
/// let draw = DeviceDraw::from_seed(0);
/// assert!((draw.uniform(0.0, 1.0) - 0.5488).abs() < 1e-4);
/// assert!((draw.uniform(10.0, 20.0) - 15.488).abs() < 1e-3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceDraw(f64);

impl DeviceDraw {
    /// The number of the device with `seed`, as NumPy's `RandomState(seed).random_sample()`.
    pub fn from_seed(seed: u32) -> Self {
        Self(unit(&mut Mt::new(seed)))
    }

    /// The number scaled to `low` and `high`.
    pub fn uniform(self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0
    }

    /// Round-trip efficiency.
    pub(super) fn efficiency(self) -> f64 {
        self.uniform(0.9, 0.98)
    }

    /// Fraction of the stored energy lost per hour.
    pub(super) fn loss_coefficient(self) -> f64 {
        self.uniform(0.001, 0.009)
    }

    /// Fraction of the capacity lost per cycle.
    pub(super) fn capacity_loss_coefficient(self) -> f64 {
        self.uniform(1e-5, 1e-4)
    }

    /// Efficiency as a function of power over nominal power, for the efficiency `e`.
    pub(super) fn power_efficiency_curve(self, e: f64) -> [(f64, f64); 5] {
        [
            (0.0, self.uniform(e * 0.85, e * 0.90)),
            (self.uniform(0.25, 0.35), self.uniform(e * 0.90, e * 0.95)),
            (self.uniform(0.65, 0.75), self.uniform(e * 0.98, e)),
            (self.uniform(0.75, 0.85), e),
            (1.0, self.uniform(e * 0.95, e * 0.98)),
        ]
    }

    /// Power limit over nominal power as a function of the state of charge.
    pub(super) fn capacity_power_curve(self) -> [(f64, f64); 3] {
        [
            (0.0, self.uniform(0.95, 1.0)),
            (self.uniform(0.75, 0.85), self.uniform(0.90, 0.95)),
            (1.0, self.uniform(0.20, 0.30)),
        ]
    }
}

/// The seed of the device `device` of type `device_type` in `building`, in a district with `random_seed`.
///
/// The digests of the growing text are added up as integers, times `random_seed + 1`; the first nine
/// decimal digits are the seed.
///
/// ```
/// use brasa_citylearn::device_seed;
///
/// let seed = |building| device_seed(0, building, "electrical_storage", "citylearn.energy_model.Battery");
/// // Every device has a seed of nine digits.
/// assert_eq!(seed("Building_1").to_string().len(), 9);
/// assert_ne!(seed("Building_1"), seed("Building_2"));
/// ```
pub fn device_seed(random_seed: u64, building: &str, device: &str, device_type: &str) -> u32 {
    seed_of(random_seed, building, "citylearn.citylearn.Building", device, device_type)
}

/// [`device_seed`] in a building of another class.
pub(super) fn seed_of(random_seed: u64, building: &str, building_type: &str, device: &str, device_type: &str) -> u32 {
    let mut digest = Md5::new();
    let mut sum = Decimal::default();
    for text in [building, building_type, device, device_type] {
        digest.update(text.as_bytes());
        sum.add(u128::from_be_bytes(digest.clone().finalize().into()));
    }
    sum.multiply(random_seed + 1);
    sum.leading_digits(9)
}

/// Numbers of NumPy's legacy generator, `RandomState(seed)`.
pub(super) struct Draws(Mt);

impl Draws {
    pub(super) fn new(seed: u32) -> Self {
        Self(Mt::new(seed))
    }

    /// `binomial(1, p)` for `p` up to 1/2, by inversion.
    pub(super) fn bernoulli(&mut self, p: f64) -> bool {
        unit(&mut self.0) > ((1.0 - p).ln()).exp()
    }

    /// `randint(0, n)`: 32 bits under a mask, until they are small enough.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        let mask = u32::MAX >> (n - 1).leading_zeros().min(31);
        match n {
            0 | 1 => 0,
            _ => loop {
                let value = self.0.next_u32() & mask;
                if value < n {
                    return value;
                }
            },
        }
    }

    /// `exponential(mean)`.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - unit(&mut self.0)).ln()
    }
}

/// The initial state of charge of the vehicle `name` without one in the schema, as CityLearn 3.0 draws it.
pub(super) fn vehicle_initial_soc(random_seed: u64, name: &str) -> f64 {
    let digest = Md5::digest(format!("{random_seed}:{name}:initial_soc").as_bytes());
    DeviceDraw::from_seed(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])).uniform(0.0, 1.0)
}

/// NumPy's legacy generator of normal numbers, `RandomState(seed).normal`: the polar method, which gives two at a time.
pub(super) struct Normals {
    generator: Mt,
    spare: Option<f64>,
}

impl Normals {
    pub(super) fn new(seed: u32) -> Self {
        Self { generator: Mt::new(seed), spare: None }
    }

    /// The next number of the normal distribution.
    pub(super) fn next(&mut self, mean: f64, deviation: f64) -> f64 {
        mean + deviation * self.spare.take().unwrap_or_else(|| self.pair())
    }

    fn pair(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * unit(&mut self.generator) - 1.0, 2.0 * unit(&mut self.generator) - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(factor * x);
                return factor * y;
            }
        }
    }
}

/// A number in `[0, 1)` with 53 bits from two outputs: NumPy's legacy double.
fn unit(generator: &mut Mt) -> f64 {
    let (high, low) = (generator.next_u32() >> 5, generator.next_u32() >> 6);
    (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
}

/// A natural number in groups of nine decimal digits, the lowest first.
#[derive(Default)]
struct Decimal(Vec<u64>);

const GROUP: u128 = 1_000_000_000;

impl Decimal {
    fn add(&mut self, mut value: u128) {
        let (mut place, mut carry) = (0, 0);
        while value > 0 || carry > 0 {
            if place == self.0.len() {
                self.0.push(0);
            }
            let sum = (value % GROUP) as u64 + self.0[place] + carry;
            self.0[place] = sum % GROUP as u64;
            carry = sum / GROUP as u64;
            value /= GROUP;
            place += 1;
        }
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0u128;
        for group in &mut self.0 {
            carry += u128::from(*group) * u128::from(factor);
            *group = (carry % GROUP) as u64;
            carry /= GROUP;
        }
        while carry > 0 {
            self.0.push((carry % GROUP) as u64);
            carry /= GROUP;
        }
    }

    fn leading_digits(&self, count: usize) -> u32 {
        let top = self.0.last().map(u64::to_string).unwrap_or_default();
        let rest = self.0.iter().rev().skip(1).map(|group| format!("{group:09}"));
        let digits: String = std::iter::once(top).chain(rest).collect();
        digits[..count.min(digits.len())].parse().expect("nine decimal digits fit 32 bits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_draws_equal_the_package() {
        // Read from CityLearn 2.5.0 with the phase 1 district and its schema's random_seed 2022.
        let cases = [
            ("Building_1", 135_823_784, 0.580_348_093_667_670_8),
            ("Building_2", 113_571_976, 0.367_796_01),
            ("Building_3", 194_718_286, 0.293_080_42),
        ];
        for (building, seed, draw) in cases {
            let got = device_seed(2022, building, "electrical_storage", "citylearn.energy_model.Battery");
            assert_eq!(got, seed, "{building}");
            approx::assert_abs_diff_eq!(DeviceDraw::from_seed(seed).0, draw, epsilon = 1e-8);
        }
        assert_eq!(DeviceDraw::from_seed(135_823_784).0, 0.580_348_093_667_670_8);
        // Vehicle batteries use the schema's seed.
        let vehicle = DeviceDraw::from_seed(2022);
        assert_eq!(vehicle.0, 0.009_358_613_807_764_704);
        approx::assert_abs_diff_eq!(vehicle.efficiency(), 0.900_748_689_1, epsilon = 1e-10);
    }

    #[test]
    fn normal_numbers_are_the_ones_of_numpy() {
        // RandomState(2022).normal(1.0, 0.2, 3)
        let mut normals = Normals::new(2022);
        for expected in [0.9998944201828078, 0.945019715021789, 0.9721428876711434] {
            approx::assert_abs_diff_eq!(normals.next(1.0, 0.2), expected, epsilon = 1e-15);
        }
    }
}
