//! The mean station without control, from which the reward `improvement` is measured.

use std::sync::Arc;

use super::controllers::Rule;
use super::site::Site;
use super::world::World;

/// Days over which the mean is taken.
const DAYS: u32 = 200;

/// Means per step of a workday, then of a day of the weekend.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reference {
    /// Energy from the grid if there was no PV, in kWh.
    demand_kwh: Vec<f64>,
    /// The reward without the cost of energy.
    rest: Vec<f64>,
}

impl Reference {
    /// Measures the first episodes of seed 0 with sockets at full power and an unused battery.
    pub(crate) fn measure(site: &Arc<Site>) -> Self {
        let n = 2 * site.steps_per_day as usize;
        let (mut demand_kwh, mut rest, mut counts) = (vec![0.0; n], vec![0.0; n], vec![0.0_f64; n]);
        let mut world = World::new(Arc::clone(site), 0..1);
        let mut orders_kw = vec![0.0; site.socket_kw.len()];
        let n_steps = site.config.n_steps();
        for episode in 0..(DAYS * site.steps_per_day).div_ceil(n_steps) {
            world.begin(0, episode.into());
            for _ in 0..n_steps {
                let slot = slot(site, world.state.envs[0].step());
                let battery_kw =
                    Rule::Uncontrolled.decide(site, &world.state.envs[0], &world.state.sockets, &mut orders_kw);
                let played = world.play(0, &orders_kw, battery_kw);
                let ledger = &played.flows.ledger;
                demand_kwh[slot] +=
                    ledger.grid_import_kwh - ledger.grid_export_kwh + ledger.pv_available_kwh - ledger.pv_curtailed_kwh;
                rest[slot] += played.reward + played.flows.energy_cost;
                counts[slot] += 1.0;
            }
        }
        for values in [&mut demand_kwh, &mut rest] {
            values.iter_mut().zip(&counts).for_each(|(value, count)| *value /= count.max(1.0));
        }
        Self { demand_kwh, rest }
    }

    /// The mean reward of `step` of the calendar with `pv_kwh` of PV and the price of the step.
    pub(crate) fn reward(&self, site: &Site, step: u32, pv_kwh: f64) -> f64 {
        let slot = slot(site, step);
        let net_kwh = self.demand_kwh[slot] - pv_kwh;
        let buy = site.buy_per_kwh(step);
        let price = if net_kwh > 0.0 { buy } else { buy - site.config.prices.export_discount_per_kwh };
        self.rest[slot] - net_kwh * price
    }
}

fn slot(site: &Site, step: u32) -> usize {
    let weekend = if site.day(step).is_weekend { site.steps_per_day } else { 0 };
    (weekend + step % site.steps_per_day) as usize
}
