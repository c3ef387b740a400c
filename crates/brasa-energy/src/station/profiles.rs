//! When cars arrive, how long they stay and what energy costs, as closed forms.
//!
//! The numbers are assumptions about typical places, not data: sums of normal curves over the hours of a day.

use super::config::PlaceKind;

/// A normal curve over the 24 hours of a day: its weight, its hour and its standard deviation in hours.
type Peak = (f64, f64, f64);

/// What is typical of a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Arrivals over a workday.
    workday: &'static [Peak],
    /// Arrivals over a day of the weekend.
    weekend: &'static [Peak],
    pub(crate) weekend_factor: f64,
    pub(crate) stay_median_hours: f64,
    pub(crate) stay_spread: f64,
    pub(crate) arrival_soc: (f64, f64),
    pub(crate) energy_bound_share: f64,
}

impl PlaceKind {
    pub(crate) fn profile(self) -> Place {
        match self {
            Self::Highway => Place {
                workday: &[(0.3, 8.0, 1.5), (0.3, 12.5, 2.5), (0.4, 17.0, 2.0)],
                weekend: &[(0.5, 11.5, 2.5), (0.5, 16.5, 2.5)],
                weekend_factor: 1.1,
                stay_median_hours: 0.5,
                stay_spread: 0.35,
                arrival_soc: (2.0, 6.0),
                energy_bound_share: 0.9,
            },
            Self::Residential => Place {
                workday: &[(0.15, 12.5, 3.0), (0.85, 18.0, 2.0)],
                weekend: &[(0.4, 13.0, 3.0), (0.6, 18.0, 2.5)],
                weekend_factor: 0.8,
                stay_median_hours: 11.0,
                stay_spread: 0.35,
                arrival_soc: (4.0, 5.0),
                energy_bound_share: 0.1,
            },
            Self::Workplace => Place {
                workday: &[(0.85, 8.3, 0.9), (0.15, 13.0, 1.0)],
                weekend: &[(1.0, 10.5, 2.0)],
                weekend_factor: 0.1,
                stay_median_hours: 8.0,
                stay_spread: 0.2,
                arrival_soc: (4.0, 5.0),
                energy_bound_share: 0.1,
            },
            Self::Shopping => Place {
                workday: &[(0.35, 11.0, 1.7), (0.65, 16.5, 2.0)],
                weekend: &[(0.5, 12.0, 1.8), (0.5, 15.0, 1.8)],
                weekend_factor: 1.3,
                stay_median_hours: 1.4,
                stay_spread: 0.45,
                arrival_soc: (3.5, 4.5),
                energy_bound_share: 0.1,
            },
        }
    }
}

impl Place {
    /// Relative arrivals per hour of a workday and of a day of the weekend.
    pub(crate) fn hours(&self) -> [Vec<f64>; 2] {
        [self.workday, self.weekend].map(|peaks| (0..24).map(|hour| density(peaks, f64::from(hour) + 0.5)).collect())
    }
}

/// Sum of the curves at `hour`; midnight is no border.
fn density(peaks: &[Peak], hour: f64) -> f64 {
    peaks.iter().map(|(weight, middle, deviation)| weight / deviation * bump(hour, *middle, *deviation)).sum()
}

/// A normal curve of height 1 over the hours of a day.
fn bump(hour: f64, middle: f64, deviation: f64) -> f64 {
    let distance = (hour - middle + 12.0).rem_euclid(24.0) - 12.0;
    (-0.5 * (distance / deviation).powi(2)).exp()
}

/// Price of imported energy in `hour` (0 to 23) of `day` (0 to 364), per kWh.
///
/// The shape of European day-ahead prices with much PV: peaks at 8 and 19 o'clock, a dip around 13 o'clock, weekends 15 %
/// cheaper, winters 15 % dearer than the mean.
pub(crate) fn buy_per_kwh(day: u32, weekend: bool, hour: u32) -> f64 {
    let middle = f64::from(hour) + 0.5;
    let season = 1.0 + 0.15 * (std::f64::consts::TAU * (f64::from(day) - 15.0) / 365.0).cos();
    let week = if weekend { 0.85 } else { 1.0 };
    let shape = 1.0 + 0.25 * bump(middle, 8.0, 1.5) + 0.55 * bump(middle, 19.0, 2.0)
        - 0.45 * bump(middle, 13.0, 2.5)
        - 0.2 * bump(middle, 3.0, 2.5);
    0.11 * season * week * shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_busy_when_people_come() {
        let busiest = |kind: PlaceKind, day: usize| {
            let hours = &kind.profile().hours()[day];
            (0..24).max_by(|a, b| hours[*a].total_cmp(&hours[*b])).expect("24 hours")
        };
        let seen = [PlaceKind::Highway, PlaceKind::Residential, PlaceKind::Workplace, PlaceKind::Shopping]
            .map(|kind| (busiest(kind, 0), busiest(kind, 1)));
        assert_eq!(seen, [(16, 14), (17, 17), (8, 10), (16, 13)]);
    }

    #[test]
    fn prices_have_two_peaks_and_a_mean_of_eleven_cents() {
        let prices: Vec<f64> = (0..8760).map(|hour| buy_per_kwh(hour / 24, hour / 24 % 7 >= 5, hour % 24)).collect();
        let mean = prices.iter().sum::<f64>() / 8760.0;
        assert!((0.09..0.12).contains(&mean), "{mean}");
        let day = &prices[..24];
        assert!(day[7] > day[10] && day[12] < day[10] && day[19] > day[12] && day[19] > day[7]);
        assert!(prices.iter().all(|price| (0.03..0.25).contains(price)));
    }
}
