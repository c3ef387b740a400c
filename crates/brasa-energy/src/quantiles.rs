//! Random numbers of any distribution on an interval, by tables of quantiles.

/// The inverse of a distribution function, tabulated at equal steps of probability.
#[derive(Debug, Clone)]
pub(crate) struct QuantileTable {
    /// The quantiles, lowest first.
    pub(crate) values: Vec<f32>,
}

impl QuantileTable {
    /// Number of intervals of the table; a power of two, so that bits address them.
    const INTERVALS_LOG2: u32 = 10;

    /// The quantiles of a density (known up to a factor) between two bounds.
    pub(crate) fn new(low: f64, high: f64, density: impl Fn(f64) -> f64) -> Self {
        const CELLS: usize = 1 << 14;
        let width = (high - low) / CELLS as f64;
        let mut cumulative = vec![0.0];
        for cell in 0..CELLS {
            let mass = density(low + (cell as f64 + 0.5) * width);
            cumulative.push(cumulative[cell] + mass);
        }
        let total = cumulative[CELLS];
        let n = 1 << Self::INTERVALS_LOG2;
        let mut cell = 0;
        let values = (0..=n).map(|i| {
            let mass = total * i as f64 / n as f64;
            while cell + 1 < CELLS && cumulative[cell + 1] < mass {
                cell += 1;
            }
            let inside = (mass - cumulative[cell]) / (cumulative[cell + 1] - cumulative[cell]).max(f64::MIN_POSITIVE);
            (low + (cell as f64 + inside.clamp(0.0, 1.0)) * width) as f32
        });
        Self { values: values.collect() }
    }

    /// The quantile that 32 random bits address, interpolated.
    pub(crate) fn at(&self, bits: u32) -> f32 {
        let index = (bits >> (32 - Self::INTERVALS_LOG2)) as usize;
        let inside = (bits << Self::INTERVALS_LOG2) as f32 / (1u64 << 32) as f32;
        let (low, high) = (self.values[index], self.values[index + 1]);
        low + (high - low) * inside
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::episode_rng;
    use rand::Rng;

    use super::*;

    #[test]
    fn quantiles_have_the_moments_of_their_distribution() {
        let table = QuantileTable::new(0.0, 1.0, |x| x * (1.0 - x).powi(7));
        let (mut rng, n) = (episode_rng(0, 0, 0), 200_000);
        let draws: Vec<f64> = (0..n).map(|_| f64::from(table.at(rng.next_u64() as u32))).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        // Beta(2, 8): mean 0.2, variance 0.16 / 11.
        assert!((mean - 0.2).abs() < 1e-3, "{mean}");
        assert!((variance - 0.16 / 11.0).abs() < 3e-4, "{variance}");
    }
}
