//! Rule-based controllers.
//!
//! - `idle`: no orders, so no cars are charged and the battery is unused.
//! - `uncontrolled`: sockets at full power, the battery is unused. The reference of all ratios.
//! - `spread`: every car as slowly as its planned stay allows, the battery is unused.
//! - `price-threshold`: sockets at full power in the cheap quarter of the day's hours, as slowly as the stay allows
//!   otherwise; the battery charges in the cheap quarter and covers demand in the dear quarter.
//! - `peak-shaving`: sockets at full power; the battery covers demand beyond the grid connection and charges from what the
//!   grid connection has left.

use super::site::Site;
use super::sockets::Sockets;
use super::world::EnvState;
use crate::day_prices::Level;

/// A rule-based controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Idle,
    Uncontrolled,
    Spread,
    PriceThreshold,
    PeakShaving,
}

impl Rule {
    /// All rules, in the order of reports.
    pub(crate) const ALL: [Self; 5] =
        [Self::Idle, Self::Uncontrolled, Self::Spread, Self::PriceThreshold, Self::PeakShaving];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Uncontrolled => "uncontrolled",
            Self::Spread => "spread",
            Self::PriceThreshold => "price-threshold",
            Self::PeakShaving => "peak-shaving",
        }
    }

    /// Writes an order per socket, in kW, and returns the order for the battery; `sockets` are those of one environment.
    pub(crate) fn decide(self, site: &Site, env: &EnvState, sockets: &Sockets, orders_kw: &mut [f64]) -> f64 {
        orders_kw.copy_from_slice(&site.socket_kw);
        let battery_kw = site.storage.power_kw;
        match self {
            Self::Idle => {
                orders_kw.fill(0.0);
                0.0
            }
            Self::Uncontrolled => 0.0,
            Self::Spread => {
                slow_down(site, sockets, orders_kw);
                0.0
            }
            Self::PriceThreshold => {
                let level = site.day(env.step()).prices.level(site.buy_per_kwh(env.step()));
                if level != Level::Cheap {
                    slow_down(site, sockets, orders_kw);
                }
                match level {
                    Level::Cheap => battery_kw,
                    Level::Middle => 0.0,
                    Level::Dear => -battery_kw.min(net_demand_kw(site, env, sockets, orders_kw)),
                }
            }
            Self::PeakShaving => {
                let left_kw = GRID_SHARE * site.network.grid_limit_kw() - net_demand_kw(site, env, sockets, orders_kw);
                left_kw.clamp(-battery_kw, battery_kw)
            }
        }
    }
}

/// Part of the grid connection that `peak-shaving` uses, so that the losses of the network fit into the rest.
const GRID_SHARE: f64 = 0.97;

/// Reduces orders to the energy that cars need, spread over what is left of their stays; late cars get full power.
fn slow_down(site: &Site, sockets: &Sockets, orders_kw: &mut [f64]) {
    for (i, order) in orders_kw.iter_mut().enumerate() {
        let steps = f64::from(sockets.stay_steps[i]);
        if steps > 0.0 {
            *order = order.min((sockets.target_kwh[i] - sockets.stored_kwh[i]) / (steps * site.step_hours));
        }
    }
}

/// Power that the cars take with these orders beyond PV, at most the limits of their groups and without losses of the
/// network, in kW.
fn net_demand_kw(site: &Site, env: &EnvState, sockets: &Sockets, orders_kw: &[f64]) -> f64 {
    let demand = site.groups.iter().zip(&site.config.sockets).map(|(group, config)| {
        let kw: f64 = group.sockets.clone().map(|i| orders_kw[i].min(sockets.most_kw[i])).sum();
        (kw * group.inverse_efficiency).min(config.limit_kw.unwrap_or(f64::INFINITY))
    });
    (demand.sum::<f64>() - env.pv_kw()).max(0.0)
}
