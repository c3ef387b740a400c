//! CityLearn's rule-based controllers: an action for every hour of the day, the same for all batteries; vehicles charge
//! and washing machines start at once.

/// A controller that depends only on the hour of the day.
#[derive(Debug, Clone, Copy)]
pub(super) struct HourRule {
    pub(super) name: &'static str,
    /// Fraction of nominal power by the hour, 1 to 24.
    action: fn(u32) -> f32,
}

/// The rule that leaves batteries alone, for districts with vehicles.
pub(super) const CHARGE_AT_ONCE: &str = "charge-at-once";

/// All rules; the first is idle.
pub(super) const HOUR_RULES: [HourRule; 5] = [
    HourRule { name: "idle", action: |_| 0.0 },
    HourRule { name: CHARGE_AT_ONCE, action: |_| 0.0 },
    HourRule { name: "basic-rbc", action: basic },
    HourRule { name: "optimized-rbc", action: optimized },
    // The name of the best rule, the same in every scenario.
    HourRule { name: "rule-based", action: basic_battery },
];

impl HourRule {
    /// The action of chargers and washing machines: at once and with full power, but for idle.
    pub(super) fn charger_action(&self) -> f32 {
        if self.name == "idle" { 0.0 } else { 1.0 }
    }

    /// The action at an hour of the data, 1 to 24 or 0 to 23.
    pub(super) fn action(&self, hour_of_day: f32) -> f32 {
        match hour_of_day as u32 {
            0 => (self.action)(24),
            hour => (self.action)(hour),
        }
    }
}

/// Discharges by day, charges by night: CityLearn's `BasicRBC`.
fn basic(hour: u32) -> f32 {
    if (9..=21).contains(&hour) { -0.08 } else { 0.091 }
}

/// CityLearn's `OptimizedRBC`.
fn optimized(hour: u32) -> f32 {
    match hour {
        1..=6 => 0.05532,
        7..=15 => -0.02,
        16..=18 => -0.044,
        19..=22 => -0.024,
        _ => 0.034,
    }
}

/// Charges while the sun shines, discharges otherwise: CityLearn's `BasicBatteryRBC`.
fn basic_battery(hour: u32) -> f32 {
    if (6..=14).contains(&hour) { 0.11 } else { -0.067 }
}
