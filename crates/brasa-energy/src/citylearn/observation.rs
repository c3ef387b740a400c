//! Observations: CityLearn's list for a central agent, raw or normalized.
//!
//! All values except states of charge and net consumptions are known in advance and are computed once per row; a step
//! copies a row and fills in the others.

use std::f64::consts::TAU;

use brasa_env::Space;

use super::{
    Observations,
    district::{District, Observed, What},
};

/// The precomputed observations of a district.
pub(super) struct Layout {
    pub(super) space: Space,
    pub(super) width: usize,
    /// `[row * width + column]`, zero where dynamic.
    rows: Vec<f32>,
    pub(super) dynamic: Vec<Dynamic>,
}

/// A component that depends on actions: `(value - low) * scale`.
pub(super) struct Dynamic {
    pub(super) column: usize,
    /// Building whose value it is.
    pub(super) building: usize,
    /// Net consumption instead of the state of charge.
    pub(super) is_net: bool,
    low: f64,
    scale: f64,
}

impl Dynamic {
    /// The value that becomes 0, and the factor.
    #[cfg(feature = "tensor")]
    pub(super) fn range(&self) -> (f64, f64) {
        (self.low, self.scale)
    }

    pub(super) fn scaled(&self, value: f64) -> f32 {
        ((value - self.low) * self.scale) as f32
    }
}

/// Largest values of periodic observations; CityLearn's constants.
const PERIODS: [(&str, usize); 4] = [("hour", 24), ("day_type", 7), ("month", 12), ("minutes", 60)];

/// Slack for rounding in bounds; net consumption is also observed before a step, without the battery.
const SLACK: f64 = 1e-3;

impl Layout {
    pub(super) fn new(district: &District, kind: Observations) -> Self {
        let mut columns = Vec::new();
        let mut items = Vec::new();
        let mut dynamic = Vec::new();
        for observed in &district.observed {
            add(district, observed, kind, &mut columns, &mut items, &mut dynamic);
        }
        let width = columns.len();
        let mut rows = vec![0.0; district.n_rows() * width];
        for (column, values) in columns.iter().enumerate() {
            for (row, value) in values.iter().enumerate() {
                rows[row * width + column] = *value as f32;
            }
        }
        Self { space: Space::named_box(items), width, rows, dynamic }
    }

    /// The components of `row` that do not depend on actions.
    pub(super) fn row(&self, row: usize) -> &[f32] {
        &self.rows[row * self.width..(row + 1) * self.width]
    }
}

fn add(
    district: &District,
    observed: &Observed,
    kind: Observations,
    columns: &mut Vec<Vec<f64>>,
    items: &mut Vec<(String, f32, f32)>,
    dynamic: &mut Vec<Dynamic>,
) {
    let named = |name: &str| match observed.building {
        Some(building) => format!("{}.{name}", district.buildings[building].name),
        None => name.into(),
    };
    let raw = kind == Observations::Raw;
    match &observed.what {
        What::Series(values) => {
            let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            let period = PERIODS.iter().find(|(name, _)| *name == observed.name);
            match period.filter(|_| !raw) {
                Some((name, period)) => {
                    for (suffix, wave) in [("cos", f64::cos as fn(f64) -> f64), ("sin", f64::sin)] {
                        let at = |x: f64| wave(TAU * x / *period as f64);
                        let (low, high) = range((1..=*period).map(|x| at(x as f64)));
                        columns.push(values.iter().map(|x| ((at(*x) - low) / (high - low)).clamp(0.0, 1.0)).collect());
                        items.push((named(&format!("{name}_{suffix}")), 0.0, 1.0));
                    }
                }
                None => {
                    let (low, high) = range(values.iter().copied());
                    let bounds = if raw { (low as f32, high as f32) } else { (0.0, 1.0) };
                    items.push((named(&observed.name), bounds.0, bounds.1));
                    let span = high - low;
                    let scaled = |x: f64| if span > 0.0 { (x - low) / span } else { 0.0 };
                    columns.push(if raw { values } else { values.into_iter().map(scaled).collect() });
                }
            }
        }
        What::Soc(building) | What::Net(building) => {
            let is_net = matches!(observed.what, What::Net(_));
            let (low, high) = if is_net { net_range(district, *building) } else { (0.0, 1.0) };
            let (shift, scale) = if raw { (0.0, 1.0) } else { (low, 1.0 / (high - low)) };
            let slack = if is_net { SLACK * (high - low) } else { 0.0 };
            let bound = |value: f64| ((value - shift) * scale) as f32;
            items.push((named(&observed.name), bound(low - slack), bound(high + slack)));
            dynamic.push(Dynamic { column: columns.len(), building: *building, is_net, low: shift, scale });
            columns.push(Vec::new());
        }
    }
}

/// Range of net consumption: from the lowest load with full discharge to the highest with full charge, minus PV.
fn net_range(district: &District, building: usize) -> (f64, f64) {
    let battery = district.buildings[building].battery.as_ref();
    let energy_kwh = battery.map_or(0.0, |battery| battery.nominal_power_kw) * district.hours_per_step;
    let net = district.series.iter().skip(building).step_by(district.buildings.len());
    let (low, high) = range(net.map(|row| f64::from(row.load_kwh) - f64::from(row.pv_kwh)));
    let (low, high) = ((low - energy_kwh).min(0.0), high + energy_kwh);
    // A building without load, PV and battery also needs a range.
    (low, if high > low { high } else { low + 1.0 })
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}
