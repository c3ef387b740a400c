//! Power outages: rows in which a building is cut off from the grid.

use super::{sampling::Draws, schema_thermal::OutageSchema};

/// Days of the year of the outage indices.
const DAYS_PER_YEAR: f64 = 365.0;

/// The rows with an outage, as CityLearn's `ReliabilityMetricsPowerOutage` draws them, number for number.
///
/// Each day has an outage with probability `saifi / 365`; its first step is drawn from `start_steps` and its
/// duration, in minutes, from an exponential distribution of mean `caidi`. CityLearn drops an outage on the first day
/// and pairs the remaining days with the first draws of steps and durations.
pub(super) fn drawn(schema: &OutageSchema, n_rows: usize, hours: f64) -> Option<Vec<bool>> {
    let OutageSchema::Metrics { random_seed, saifi, caidi, start_steps } = schema else { return None };
    let steps_per_day = 24.0 / hours;
    let mut draws = Draws::new(*random_seed as u32);
    let n_days = (n_rows as f64 / steps_per_day) as usize;
    let days: Vec<usize> = (0..n_days).filter(|_| draws.bernoulli(saifi / DAYS_PER_YEAR)).collect();
    let every: Vec<u64> = (0..steps_per_day as u64).collect();
    let start_steps = if start_steps.is_empty() { &every } else { start_steps };
    let starts: Vec<u64> = days.iter().map(|_| start_steps[draws.below(start_steps.len() as u32) as usize]).collect();
    let lengths: Vec<f64> = days.iter().map(|_| draws.exponential(*caidi) / (60.0 * hours)).collect();
    let mut rows = vec![false; n_rows];
    for ((day, start), length) in days.iter().filter(|day| **day != 0).zip(starts).zip(lengths) {
        let from = *day as f64 * steps_per_day + start as f64;
        let to = ((from + length) as usize).min(n_rows);
        rows[(from as usize).min(to)..to].fill(true);
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_draws_the_rows_of_the_package() {
        // The rows where ReliabilityMetricsPowerOutage(...).get_signals(n_rows, 3600.0) of CityLearn 2.5.0 is 1.
        let cases = [
            (5, 80.0, 400.0, 504, [79..90, 352..363]),
            (73055, 1.436, 331.2, 720, [389..404, 0..0]),
            (65647, 1.436, 331.2, 2208, [1327..1342, 1457..1485]),
        ];
        for (random_seed, saifi, caidi, n_rows, expected) in cases {
            let schema = OutageSchema::Metrics { random_seed, saifi, caidi, start_steps: Vec::new() };
            let rows = drawn(&schema, n_rows, 1.0).expect("it is the model");
            let found: Vec<usize> = (0..n_rows).filter(|row| rows[*row]).collect();
            assert_eq!(found, expected.into_iter().flatten().collect::<Vec<usize>>(), "seed {random_seed}");
        }
    }
}
