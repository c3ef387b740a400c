//! A stationary battery with constant efficiencies, as all microgrids have it.
//!
//! ```text
//! charge    <= min(P dt, (E_max - E) / eta_c)
//! discharge <= min(P dt, (E - E_min) eta_d)
//! E'         = E + eta_c charge - discharge / eta_d - standing loss
//! ```
//!
//! Energies are in kWh at the bus, except the stored energy `E`.

use brasa_number::Number;

/// The constants of a battery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Storage {
    /// Largest power in either direction, in kW.
    pub(crate) power_kw: f64,
    /// Stored energy per charged energy.
    pub(crate) charge_efficiency: f64,
    /// Discharged energy per stored energy.
    pub(crate) discharge_efficiency: f64,
    /// Least stored energy, in kWh.
    pub(crate) low_kwh: f64,
    /// Largest stored energy, in kWh.
    pub(crate) high_kwh: f64,
}

/// A battery after a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Stored<N = f64> {
    /// Stored energy, in kWh.
    pub(crate) stored_kwh: N,
    /// Losses of conversion and standing losses, in kWh.
    pub(crate) lost_kwh: N,
}

impl Storage {
    /// A battery with a capacity, a power, the efficiencies of charge and discharge, and the least and largest state of charge.
    pub(crate) fn new(
        capacity_kwh: f64,
        power_kw: f64,
        (charge_efficiency, discharge_efficiency): (f64, f64),
        (least_soc, most_soc): (f64, f64),
    ) -> Self {
        let (low_kwh, high_kwh) = (least_soc * capacity_kwh, most_soc * capacity_kwh);
        Self { power_kw, charge_efficiency, discharge_efficiency, low_kwh, high_kwh }
    }

    /// The most that can be charged in a step of `hours`.
    pub(crate) fn most_charge_kwh<N: Number>(&self, stored_kwh: N, hours: f64) -> N {
        let room_kwh = (-stored_kwh + self.high_kwh) / self.charge_efficiency;
        stored_kwh.constant(self.power_kw * hours).min(room_kwh).max_of(0.0)
    }

    /// The most that can be discharged in a step of `hours`.
    pub(crate) fn most_discharge_kwh<N: Number>(&self, stored_kwh: N, hours: f64) -> N {
        let stock_kwh = (stored_kwh - self.low_kwh) * self.discharge_efficiency;
        stored_kwh.constant(self.power_kw * hours).min(stock_kwh).max_of(0.0)
    }

    /// The battery after a step; `standing_loss` is the fraction that it loses per step, down to the least energy.
    pub(crate) fn after<N: Number>(
        &self,
        stored_kwh: N,
        charge_kwh: N,
        discharge_kwh: N,
        standing_loss: f64,
    ) -> Stored<N> {
        let moved_kwh = stored_kwh + charge_kwh * self.charge_efficiency - discharge_kwh / self.discharge_efficiency;
        let standing_kwh = (moved_kwh * standing_loss).min(moved_kwh - self.low_kwh).max_of(0.0);
        let converted_kwh =
            charge_kwh * (1.0 - self.charge_efficiency) + discharge_kwh * (1.0 / self.discharge_efficiency - 1.0);
        Stored { stored_kwh: moved_kwh - standing_kwh, lost_kwh: converted_kwh + standing_kwh }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATTERY: Storage =
        Storage { power_kw: 100.0, charge_efficiency: 0.9, discharge_efficiency: 0.8, low_kwh: 10.0, high_kwh: 90.0 };

    #[test]
    fn a_cycle_returns_the_product_of_the_efficiencies() {
        let charge_kwh = BATTERY.most_charge_kwh(10.0, 10.0);
        let full = BATTERY.after(10.0, charge_kwh, 0.0, 0.0);
        assert!((full.stored_kwh - 90.0).abs() < 1e-12);
        let discharge_kwh = BATTERY.most_discharge_kwh(full.stored_kwh, 10.0);
        let empty = BATTERY.after(full.stored_kwh, 0.0, discharge_kwh, 0.0);
        assert!((empty.stored_kwh - 10.0).abs() < 1e-12);
        assert!((discharge_kwh / charge_kwh - 0.72).abs() < 1e-12);
        assert!((full.lost_kwh + empty.lost_kwh - (charge_kwh - discharge_kwh)).abs() < 1e-12);
    }

    #[test]
    fn an_idle_battery_loses_a_fraction_per_step_and_two_half_steps_equal_one() {
        let loss: f64 = 0.02;
        let mut stored_kwh = 80.0;
        for _ in 0..7 {
            stored_kwh = BATTERY.after(stored_kwh, 0.0, 0.0, loss).stored_kwh;
        }
        assert!((stored_kwh - 80.0 * 0.98_f64.powi(7)).abs() < 1e-12);
        let half = 1.0 - (1.0 - loss).sqrt();
        let once = BATTERY.after(80.0, 0.0, 0.0, loss).stored_kwh;
        let twice = BATTERY.after(BATTERY.after(80.0, 0.0, 0.0, half).stored_kwh, 0.0, 0.0, half).stored_kwh;
        assert!((once - twice).abs() < 1e-9);
        assert_eq!(BATTERY.after(10.0, 0.0, 0.0, loss).stored_kwh, 10.0);
        let halves = BATTERY.after(BATTERY.after(20.0, 10.0, 0.0, 0.0).stored_kwh, 10.0, 0.0, 0.0).stored_kwh;
        assert!((halves - BATTERY.after(20.0, 20.0, 0.0, 0.0).stored_kwh).abs() < 1e-9);
    }
}
