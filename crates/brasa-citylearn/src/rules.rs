//! The sets of rules behind one trait, so that the batch is compiled once for each.

use super::{Battery, BatteryState, district::Exogenous};

/// The step of a building for one set of rules.
pub(super) trait Rules {
    /// Whether products and sums are rounded to f32, as in CityLearn's arrays.
    const SINGLE: bool;
    /// Whether state of charge and net consumption are 0 in observations after the first.
    const BLIND: bool = false;
    /// Rows from the observed one to the one that an action changes.
    const AHEAD: usize = 0;
    /// Whether batteries step by [`Lanes`](super::lanes::Lanes) instead of [`Rules::step`], with the same results.
    const SIDE_BY_SIDE: bool = false;

    /// The battery at the start of an episode.
    fn start(battery: &Battery) -> BatteryState;

    /// One step; returns the energy on the grid side in kWh, positive when charging. `first` is the first step of an
    /// episode.
    fn step(battery: &Battery, state: &mut BatteryState, action: f64, hours: f64, first: bool) -> f64;

    /// Net consumption of the building in kWh; `first` is the first step of an episode.
    fn net(row: &Exogenous, battery_kwh: f64, first: bool) -> f64;

    /// Net consumption with further energy, in kWh.
    #[inline]
    fn sum(net_kwh: f64, other_kwh: f64) -> f64 {
        if Self::SINGLE { f64::from(net_kwh as f32 + other_kwh as f32) } else { net_kwh + other_kwh }
    }
}

pub(super) struct CityLearn21;
pub(super) struct CityLearn25;
pub(super) struct CityLearn30;
pub(super) struct Clean;

impl Rules for CityLearn21 {
    const SINGLE: bool = true;
    const AHEAD: usize = 1;

    #[inline]
    fn start(battery: &Battery) -> BatteryState {
        battery.start_citylearn25()
    }

    #[inline]
    fn step(battery: &Battery, state: &mut BatteryState, action: f64, _hours: f64, _first: bool) -> f64 {
        f64::from(battery.step_citylearn21(state, action))
    }

    #[inline]
    fn net(row: &Exogenous, battery_kwh: f64, _first: bool) -> f64 {
        f64::from((row.load_kwh + battery_kwh as f32) - row.pv_kwh)
    }
}

impl Rules for CityLearn25 {
    const SINGLE: bool = true;
    const BLIND: bool = true;

    #[inline]
    fn start(battery: &Battery) -> BatteryState {
        battery.start_citylearn25()
    }

    #[inline]
    fn step(battery: &Battery, state: &mut BatteryState, action: f64, _hours: f64, _first: bool) -> f64 {
        f64::from(battery.step_citylearn25(state, action))
    }

    /// At the first step CityLearn adds the load three times and the battery twice.
    #[inline]
    fn net(row: &Exogenous, battery_kwh: f64, first: bool) -> f64 {
        let (loads, batteries) = if first { (3.0, 2.0) } else { (1.0, 1.0) };
        f64::from((loads * row.load_kwh + batteries * battery_kwh as f32) - row.pv_kwh)
    }
}

impl Rules for CityLearn30 {
    const SINGLE: bool = true;
    const SIDE_BY_SIDE: bool = true;

    #[inline]
    fn start(battery: &Battery) -> BatteryState {
        battery.start_citylearn30()
    }

    #[inline]
    fn step(battery: &Battery, state: &mut BatteryState, action: f64, _hours: f64, first: bool) -> f64 {
        battery.pass_citylearn30(state, if first { 0.0 } else { 1.0 });
        f64::from(battery.step_citylearn30(state, action))
    }

    #[inline]
    fn net(row: &Exogenous, battery_kwh: f64, _first: bool) -> f64 {
        f64::from((row.load_kwh + battery_kwh as f32) - row.pv_kwh)
    }
}

impl Rules for Clean {
    const SINGLE: bool = false;

    #[inline]
    fn start(battery: &Battery) -> BatteryState {
        battery.start_clean()
    }

    #[inline]
    fn step(battery: &Battery, state: &mut BatteryState, action: f64, hours: f64, _first: bool) -> f64 {
        battery.step_clean(state, action, hours)
    }

    #[inline]
    fn net(row: &Exogenous, battery_kwh: f64, _first: bool) -> f64 {
        f64::from(row.load_kwh) + battery_kwh - f64::from(row.pv_kwh)
    }
}
