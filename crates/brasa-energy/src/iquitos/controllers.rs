//! Rule-based controllers.
//!
//! - `idle`: no orders, so no vehicles are charged and the battery is unused. In the seed preset vehicles are
//!   always served, so only the battery is idle.
//! - `uncontrolled`: sockets at full power, the battery is unused. The reference of all ratios.
//! - `greedy`: sockets at full power; the battery stores the PV surplus and covers the load beyond PV, step by step.
//! - `price-threshold`: sockets at full power in the cheap quarter of the day, and otherwise only as fast as each vehicle needs
//!   until its departure. The battery charges in the cheap quarter up to the soft limit, if the dear quarter is worth its
//!   losses, and covers the load beyond PV in the dear quarter. Where more than a quarter of the day is cheap, it charges from the
//!   grid as late as it can be full before the dear hours.
//! - `rule-based`: uses the tariff. The battery charges from six to two hours before the peak tariff if the
//!   price difference exceeds its losses, spreads its energy over the peak hours, and limits import to the soft
//!   limit at any hour. During the peak tariff and with the feeder at its limit, sockets charge only as fast as each
//!   vehicle needs until its departure, so that vehicles with an earlier departure are served first.

use super::dispatch::BatteryOrder;
use super::site::Site;
use super::world::{EnvState, SocketView};
use crate::day_prices::Level;

/// The battery charges from the grid from this time before the peak tariff, when most of the day's PV surplus is
/// stored.
const FILL_BEFORE_PEAK_HOURS: f64 = 6.0;

/// The battery should be full this long before the peak tariff, because the mall's peak is earlier.
const FULL_BEFORE_PEAK_HOURS: f64 = 2.0;

/// A rule-based controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Idle,
    Uncontrolled,
    Greedy,
    PriceThreshold,
    TariffAware,
}

impl Rule {
    /// All rules, in the order of reports.
    pub(crate) const ALL: [Self; 5] =
        [Self::Idle, Self::Uncontrolled, Self::Greedy, Self::PriceThreshold, Self::TariffAware];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Uncontrolled => "uncontrolled",
            Self::Greedy => "greedy",
            Self::PriceThreshold => "price-threshold",
            Self::TariffAware => "rule-based",
        }
    }

    /// Writes an order per socket, in kW, and returns the order for the battery.
    pub(crate) fn decide(
        self,
        site: &Site,
        env: &EnvState,
        sockets: SocketView<'_>,
        orders_kw: &mut [f32],
    ) -> BatteryOrder {
        let vehicles = &site.config.vehicles;
        if self == Self::Idle {
            orders_kw.fill(0.0);
            return BatteryOrder::Power(0.0);
        }
        orders_kw[..vehicles.moto.sockets].fill(vehicles.moto.socket_kw as f32);
        orders_kw[vehicles.moto.sockets..].fill(vehicles.mototaxi.socket_kw as f32);
        match self {
            Self::Idle | Self::Uncontrolled => BatteryOrder::Power(0.0),
            Self::Greedy => BatteryOrder::Follow,
            Self::PriceThreshold => {
                let price = site.price_per_kwh(env.step_of_year);
                let level = site.day(env.step_of_year).prices.level(price);
                let vehicles_kw = throttle(site, env, sockets, orders_kw, level != Level::Cheap);
                threshold_order(site, env, vehicles_kw, level)
            }
            Self::TariffAware => {
                let is_peak = site.time(env.step_of_year).is_peak_tariff;
                let vehicles_kw = throttle(site, env, sockets, orders_kw, is_peak);
                tariff_order(site, env, vehicles_kw)
            }
        }
    }
}

/// Reduces orders if the feeder requires it or energy is dear; returns their sum.
fn throttle(site: &Site, env: &EnvState, sockets: SocketView<'_>, orders_kw: &mut [f32], is_dear: bool) -> f64 {
    let hours = site.step_hours as f32;
    let limit_kw = site.config.vehicles.feeder_limit_kw;
    if !site.serves_vehicles() {
        return site.time(env.step_of_year).profile_kwh / site.step_hours;
    }
    // The fastest order, and the slowest that the time at the socket allows.
    let paces = |order: f32, i: usize| {
        let fast = order.min(sockets.need_kwh[i] / hours);
        (fast, fast.min(sockets.need_kwh[i] / (sockets.dwell_steps[i].max(1.0) * hours)))
    };
    let (mut fast_kw, mut slow_kw) = (0.0, 0.0);
    for (i, order) in orders_kw.iter().enumerate() {
        let (fast, slow) = paces(*order, i);
        fast_kw += f64::from(fast);
        slow_kw += f64::from(slow);
    }
    if !is_dear && fast_kw <= limit_kw {
        return fast_kw;
    }
    // The rest of the feeder's limit is distributed, except in dear hours.
    let hurry = match is_dear || fast_kw <= slow_kw {
        true => 0.0,
        false => ((limit_kw - slow_kw) / (fast_kw - slow_kw)).clamp(0.0, 1.0) as f32,
    };
    for (i, order) in orders_kw.iter_mut().enumerate() {
        let (fast, slow) = paces(*order, i);
        *order = slow + hurry * (fast - slow);
    }
    (slow_kw + f64::from(hurry) * (fast_kw - slow_kw)).min(limit_kw)
}

/// The battery's order of `price-threshold`.
fn threshold_order(site: &Site, env: &EnvState, vehicles_kw: f64, level: Level) -> BatteryOrder {
    let (battery, grid) = (&site.config.battery, &site.config.grid);
    let left_kw = grid.soft_limit_kw - (env.load_kwh - env.pv_kwh) / site.step_hours - vehicles_kw;
    let pays = site.day(env.step_of_year).prices.spread_pays(battery.charge_efficiency * battery.discharge_efficiency);
    match level {
        _ if left_kw < 0.0 => BatteryOrder::Power(left_kw),
        Level::Cheap if pays && battery.charge_from_grid && is_time_to_fill(site, env, left_kw) => {
            BatteryOrder::Power(left_kw)
        }
        Level::Cheap | Level::Middle if pays => BatteryOrder::StoreSurplus,
        _ => BatteryOrder::Follow,
    }
}

/// Whether the battery must be filled from the grid now: if cheap hours are scarce, or the dear hours of the day are no further than
/// filling takes. Until then there is room for PV.
fn is_time_to_fill(site: &Site, env: &EnvState, left_kw: f64) -> bool {
    let (battery, now) = (&site.config.battery, env.step_of_year);
    let prices = &site.day(now).prices;
    let missing_kwh = (battery.soc_max * battery.capacity_kwh - env.stored_kwh).max(0.0) / battery.charge_efficiency;
    let hours_to_fill = missing_kwh / left_kw.min(battery.power_kw).max(1e-9);
    let is_dear = |step: u32| prices.level(site.price_per_kwh(step)) == Level::Dear;
    let mut rest_of_day = now..(now / site.steps_per_day + 1) * site.steps_per_day;
    let is_near = |steps: usize| steps as f64 * site.step_hours <= hours_to_fill + site.step_hours;
    prices.cheap_is_scarce || rest_of_day.position(is_dear).is_some_and(is_near)
}

/// The battery's order of the rule-based controller.
fn tariff_order(site: &Site, env: &EnvState, vehicles_kw: f64) -> BatteryOrder {
    let (battery, grid) = (&site.config.battery, &site.config.grid);
    let time = site.time(env.step_of_year);
    let net_kw = (env.load_kwh - env.pv_kwh) / site.step_hours + vehicles_kw;
    let excess_kw = (net_kw - grid.soft_limit_kw).max(0.0);
    if time.is_peak_tariff {
        let hour_of_day = f64::from(env.step_of_year % site.steps_per_day) * site.step_hours;
        let hours_left = f64::from(grid.peak_end_hour) - hour_of_day;
        let usable_kwh = (env.stored_kwh - battery.soc_min * battery.capacity_kwh) * battery.discharge_efficiency;
        let steady_kw = usable_kwh.max(0.0) / hours_left;
        return match net_kw > 0.0 {
            true => BatteryOrder::Power(-steady_kw.max(excess_kw).min(net_kw)),
            false => BatteryOrder::StoreSurplus,
        };
    }
    if excess_kw > 0.0 {
        return BatteryOrder::Power(-excess_kw);
    }
    let round_trip = battery.charge_efficiency * battery.discharge_efficiency;
    let spread_pays = grid.peak_price_per_kwh * round_trip > grid.off_peak_price_per_kwh;
    let hours_to_fill = time.hours_to_peak - FULL_BEFORE_PEAK_HOURS;
    let is_time = hours_to_fill > 0.0 && time.hours_to_peak <= FILL_BEFORE_PEAK_HOURS;
    if !spread_pays || !battery.charge_from_grid || !is_time {
        return BatteryOrder::StoreSurplus;
    }
    let missing_kwh = (battery.soc_max * battery.capacity_kwh - env.stored_kwh).max(0.0) / battery.charge_efficiency;
    let steady_kw = (missing_kwh / hours_to_fill).min(grid.soft_limit_kw - net_kw);
    BatteryOrder::Power(steady_kw.max(-net_kw))
}
