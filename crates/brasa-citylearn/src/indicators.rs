//! CityLearn's indicators: a controlled district relative to the same district without storage.
//!
//! Definitions of CityLearn 2.5 and 3.0. Per building: sums over the steps of positive net consumption, of net
//! consumption, and of carbon and cost of imports. For the district's net consumption `D`: ramping, the
//! sum of *upward* changes `max(D[t] - D[t-1], 0)`; the mean over windows of 24 h and 730 h of
//! `1 - mean / max`; the mean of daily peaks; the overall peak. An incomplete last window counts as one.

use serde::Serialize;

use super::comfort::{Comfort, ComfortFigure, FIGURES};

/// A figure with and without control.
///
/// ```
/// use brasa_citylearn::Pair;
///
/// assert_eq!(Pair { control: 80.0, baseline: 100.0 }.ratio(), Some(0.8));
/// assert_eq!(Pair { control: 1.0, baseline: 0.0 }.ratio(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Pair {
    /// With control.
    pub control: f64,
    /// The same district without storage.
    pub baseline: f64,
}

impl Pair {
    /// Control over baseline; 1 for 0 over 0, `None` for any other number over 0.
    pub fn ratio(&self) -> Option<f64> {
        match (self.control, self.baseline) {
            (0.0, 0.0) => Some(1.0),
            (_, 0.0) => None,
            (control, baseline) => Some(control / baseline),
        }
    }

    fn add(self, other: Pair) -> Self {
        Self { control: self.control + other.control, baseline: self.baseline + other.baseline }
    }
}

/// Sums of one building.
///
/// ```
/// # use brasa_citylearn::{CityLearn, CityLearnConfig};
/// # use brasa_env::Who;
/// # let district = CityLearn::new(CityLearnConfig::default())?;
/// # let indicators = district.indicators(&district.record(Who::Baseline("rule-based"), 7)?);
/// use brasa_citylearn::BuildingIndicators;
///
/// // `indicators` are of a year with the rule-based controller.
/// let building: &BuildingIndicators = &indicators.buildings[0];
/// assert_eq!(building.name, "Building_1");
/// assert!(building.cost.ratio() < Some(1.0) && building.comfort.is_none());
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct BuildingIndicators {
    /// The building.
    pub name: String,
    /// Grid import, in kWh; CityLearn's `electricity_consumption_total`.
    pub import_kwh: Pair,
    /// Import minus export, in kWh; `zero_net_energy`.
    pub net_kwh: Pair,
    /// Carbon of imports, in kg; `carbon_emissions_total`.
    pub carbon_kg: Pair,
    /// Cost of imports, in the currency of the data, without revenue of exports; `cost_total`.
    pub cost: Pair,
    /// Comfort and unserved energy, in a district with thermal demand.
    pub comfort: Option<Comfort>,
}

/// Indicators of a run.
///
/// ```
/// use brasa_citylearn::{CityLearn, CityLearnConfig, Indicators};
/// use brasa_env::Who;
///
/// let district = CityLearn::new(CityLearnConfig::default())?;
/// let recording = district.record(Who::Baseline("rule-based"), 7)?;
/// let indicators: Indicators = district.indicators(&recording);
/// // Better than a district without storage.
/// assert!(indicators.challenge_score() < Some(1.0));
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Indicators {
    /// Indicators per building.
    pub buildings: Vec<BuildingIndicators>,
    /// Sum of upward changes of the district's power, in kW; CityLearn's `ramping_average`.
    pub ramping_kw: Pair,
    /// Mean over days of the highest power, in kW; `daily_peak_average`.
    pub daily_peak_kw: Pair,
    /// Highest power, in kW; `all_time_peak_average`.
    pub peak_kw: Pair,
    /// Mean over days of 1 - load factor; `daily_one_minus_load_factor_average`.
    pub daily_one_minus_load_factor: Pair,
    /// Mean over 730 h windows of 1 - load factor; `monthly_one_minus_load_factor_average`.
    pub monthly_one_minus_load_factor: Pair,
}

/// One of a building's figures.
///
/// ```
/// # use brasa_citylearn::{CityLearn, CityLearnConfig};
/// # use brasa_env::Who;
/// # let district = CityLearn::new(CityLearnConfig::default())?;
/// # let indicators = district.indicators(&district.record(Who::Baseline("rule-based"), 7)?);
/// use brasa_citylearn::BuildingFigure;
///
/// // `indicators` are of a year with the rule-based controller.
/// let cost: BuildingFigure = |building| building.cost;
/// let sum: f64 = indicators.buildings.iter().map(|building| cost(building).control).sum();
/// assert!((indicators.district(cost).control - sum).abs() < 1e-9);
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
pub type BuildingFigure = fn(&BuildingIndicators) -> Pair;

impl Indicators {
    /// Sum over the buildings of one of their figures.
    pub fn district(&self, figure: BuildingFigure) -> Pair {
        self.buildings.iter().map(figure).fold(Pair::default(), Pair::add)
    }

    /// Mean over the buildings of a figure's ratio, as CityLearn reports it for the district; buildings without a
    /// ratio are excluded.
    pub fn mean_ratio(&self, figure: BuildingFigure) -> Option<f64> {
        let ratios: Vec<f64> = self.buildings.iter().filter_map(|building| figure(building).ratio()).collect();
        (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
    }

    /// Score similar to the 2022 challenge, lower is better and 1 without storage: the mean of the ratios
    /// of cost, carbon and grid, where grid is the mean of the ratios of ramping and of the monthly 1 - load factor.
    ///
    /// Cost and carbon are means over the buildings of their ratios. The challenge ran on CityLearn 1.3.6, whose
    /// ramping also counted downward changes; over a year both ratios are nearly the same.
    pub fn challenge_score(&self) -> Option<f64> {
        let grid = (self.ramping_kw.ratio()? + self.monthly_one_minus_load_factor.ratio()?) / 2.0;
        Some((self.mean_ratio(|b| b.cost)? + self.mean_ratio(|b| b.carbon_kg)? + grid) / 3.0)
    }

    /// Mean over the buildings of a figure of comfort; buildings without one are excluded.
    pub fn mean_comfort(&self, figure: ComfortFigure) -> Option<f64> {
        let values: Vec<f64> = self.buildings.iter().filter_map(|b| b.comfort.as_ref().and_then(figure)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Rows of CityLearn's `evaluate`: name of the building or `District`, name of the indicator, ratio; for comfort and
    /// unserved energy the value.
    pub fn rows(&self) -> Vec<(&str, &'static str, Option<f64>)> {
        let sums: [(&str, BuildingFigure); 4] = [
            ("electricity_consumption_total", |b| b.import_kwh),
            ("zero_net_energy", |b| b.net_kwh),
            ("carbon_emissions_total", |b| b.carbon_kg),
            ("cost_total", |b| b.cost),
        ];
        let mut rows = vec![
            ("District", "ramping_average", self.ramping_kw.ratio()),
            ("District", "daily_one_minus_load_factor_average", self.daily_one_minus_load_factor.ratio()),
            ("District", "monthly_one_minus_load_factor_average", self.monthly_one_minus_load_factor.ratio()),
            ("District", "daily_peak_average", self.daily_peak_kw.ratio()),
            ("District", "all_time_peak_average", self.peak_kw.ratio()),
        ];
        for (name, figure) in sums {
            rows.push(("District", name, self.mean_ratio(figure)));
            rows.extend(self.buildings.iter().map(|b| (b.name.as_str(), name, figure(b).ratio())));
        }
        if self.buildings.iter().any(|b| b.comfort.is_some()) {
            for (name, figure) in FIGURES {
                rows.push(("District", name, self.mean_comfort(figure)));
                let values =
                    self.buildings.iter().map(|b| (b.name.as_str(), name, b.comfort.as_ref().and_then(figure)));
                rows.extend(values);
            }
        }
        rows
    }
}

/// The grid figures of a series of the district's power, in the order
/// ramping, daily peak, peak, daily and monthly 1 - load factor.
///
/// Ramping counts upward changes only, or with `both_ways` also downward ones, as up to CityLearn 2.1.
pub(super) fn grid_figures(power_kw: &[f64], hours: f64, both_ways: bool) -> [f64; 5] {
    let window = |length: f64| (length / hours).round().max(1.0) as usize;
    let peak = |series: &[f64]| series.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let one_minus_load_factor = |length: f64| {
        let windows = power_kw.chunks(window(length));
        let values = windows.map(|w| 1.0 - w.iter().sum::<f64>() / w.len() as f64 / peak(w));
        // 0 over 0 is excluded, as in CityLearn.
        mean(values.filter(|value| !value.is_nan()).collect())
    };
    let ramp = |change: f64| if both_ways { change.abs() } else { change.max(0.0) };
    [
        power_kw.windows(2).map(|pair| ramp(pair[1] - pair[0])).sum(),
        mean(power_kw.chunks(window(24.0)).map(peak).collect()),
        peak(power_kw),
        one_minus_load_factor(24.0),
        one_minus_load_factor(730.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;

    #[test]
    fn grid_figures_of_a_day_and_a_bit() {
        // 24 h between 1 and 3 kW, then one hour of 4 kW in an incomplete window.
        let mut power: Vec<f64> = (0..24).map(|hour| if hour % 2 == 0 { 1.0 } else { 3.0 }).collect();
        power.push(4.0);
        let [ramping, daily_peak, peak, daily, monthly] = grid_figures(&power, 1.0, false);
        assert_abs_diff_eq!(ramping, 12.0 * 2.0 + 1.0);
        assert_abs_diff_eq!(daily_peak, 3.5);
        assert_abs_diff_eq!(peak, 4.0);
        assert_abs_diff_eq!(daily, (1.0 - 2.0 / 3.0) / 2.0, epsilon = 1e-12);
        assert_abs_diff_eq!(monthly, 1.0 - 52.0 / 25.0 / 4.0, epsilon = 1e-12);
    }

    #[test]
    fn ratios_of_nothing() {
        assert_eq!(Pair { control: 0.0, baseline: 0.0 }.ratio(), Some(1.0));
        assert_eq!(Pair { control: 1.0, baseline: 0.0 }.ratio(), None);
    }
}
