//! A receding-horizon controller: in every step it plans the next day with forecasts, and plays the first step of the plan.
//!
//! It knows PV and load of the present step and the vehicles at the sockets, as the observation does, and the state of the clouds.
//! Its forecasts: clouds go back to the median of the month without surprises, the mall has its weekly profile without
//! noise, and coming vehicles take the mean of uncontrolled ones less what the present vehicles still need in the first steps.

use super::dispatch::BatteryOrder;
use super::foresight::{Horizon, Objective, plan_ahead};
use super::reward;
use super::sessions::Session;
use super::site::{PvTable, Site};
use super::world::{EnvState, SocketView};
use crate::EnergyError;

/// Hours of a plan: the battery's cycle is a day.
const HORIZON_HOURS: f64 = 24.0;

/// Plans from the state of a step, writes an order per socket, in kW, and returns the battery's.
pub(crate) fn decide(
    site: &Site,
    objective: &Objective,
    env: &EnvState,
    sockets: SocketView<'_>,
    orders_kw: &mut [f32],
) -> Result<BatteryOrder, EnergyError> {
    let horizon = forecast(site, env, sockets);
    let plan = plan_ahead(site, &horizon, objective, reward::stored_worth(site))?;
    let per_hour = 1.0 / site.step_hours;
    orders_kw.iter_mut().zip(&plan.sockets_kwh).for_each(|(kw, kwh)| *kw = kwh * per_hour as f32);
    Ok(BatteryOrder::Power(plan.battery_kwh[0] * per_hour))
}

/// The next day as the controller expects it.
fn forecast(site: &Site, env: &EnvState, sockets: SocketView<'_>) -> Horizon {
    let n_steps = (HORIZON_HOURS / site.step_hours).round() as usize;
    let (mut pv_kwh, mut load_kwh) = (vec![env.pv_kwh], vec![env.load_kwh]);
    let mut clouds = env.clouds;
    for step in 1..n_steps {
        let step_of_year = (env.step_of_year + step as u32) % site.steps_per_year;
        let day = site.day(step_of_year);
        pv_kwh.push(match &site.pv {
            PvTable::Fixed(kwh) => kwh[step_of_year as usize],
            PvTable::UnderClouds(suns, model) => {
                clouds = model.next(clouds, 0.0);
                let sun = &suns[step_of_year as usize];
                let transmission = model.transmission(clouds, day.month);
                if sun.is_up() { sun.pv_kw(transmission, &site.modules) * site.step_hours } else { 0.0 }
            }
        });
        let coming_kwh = if site.serves_vehicles() { site.reference_vehicles_kwh(step_of_year) } else { 0.0 };
        load_kwh.push(site.mean_load_kwh(step_of_year) + coming_kwh);
    }
    let mut sessions = Vec::new();
    if site.serves_vehicles() {
        let present = sockets.need_kwh.iter().zip(sockets.dwell_steps).enumerate();
        for (socket, (need, stay)) in present.filter(|(_, (need, stay))| **need > 0.0 && **stay > 0.0) {
            let steps = (*stay as usize).min(n_steps);
            sessions.push(Session { socket, first: 0, steps, leaves: true, need_kwh: f64::from(*need) });
        }
        // The mean of uncontrolled vehicles contains those that are here: what these need after this step comes first.
        let mut present_kwh: f64 = sessions.iter().filter(|s| s.steps > 1).map(|s| s.need_kwh).sum();
        for (step, load) in load_kwh.iter_mut().enumerate().skip(1) {
            let step_of_year = (env.step_of_year + step as u32) % site.steps_per_year;
            let known_kwh = present_kwh.min(site.reference_vehicles_kwh(step_of_year));
            *load -= known_kwh;
            present_kwh -= known_kwh;
        }
    }
    Horizon {
        first_step: env.step_of_year,
        pv_kwh,
        load_kwh,
        sessions,
        stored_kwh: env.stored_kwh,
        month_peak_kw: env.month_peak_kw,
        grid_kw: env.last.grid_kw_seen(),
    }
}
