//! Controllers that plan the next day in every step with forecasts, and play the first step of the plan.
//!
//! Both know PV and load of the present step and the vehicles at the sockets, as the observation does, and the state of the
//! simulated clouds. `receding-horizon` forecasts what files give from their past alone:
//!
//! - PV: a forecast file, otherwise the day before.
//! - Load and coming vehicles: a forecast file for the load, otherwise the week before, in the first week the day before.
//! - Prices: those of the present day are known, as in a day-ahead market; those of the next day are those of the present one.
//! - Emissions: the day before.
//!
//! In the first day of a file, which has no past, the present value stays. `perfect-forecast` knows the files instead.
//!
//! What is simulated has the forecast of its model: clouds go back to the median of the month without surprises, the mall has
//! its weekly profile without noise, and coming vehicles take the mean of uncontrolled ones. What present vehicles still need is
//! subtracted from the energy of the coming ones.

use brasa_power::EnergyError;

use super::dispatch::BatteryOrder;
use super::foresight::{Horizon, Objective, plan_ahead};
use super::reward;
use super::sessions::Session;
use super::site::{PvTable, Site};
use super::world::{EnvState, SocketView};
use crate::day_prices::DayPrices;

/// Hours of a plan: the battery's cycle is a day.
const HORIZON_HOURS: f64 = 24.0;

/// What a planner knows of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planner {
    /// Their past and present.
    RecedingHorizon,
    /// Their future, too.
    PerfectForecast,
}

impl Planner {
    /// Its name among the baselines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RecedingHorizon => "receding-horizon",
            Self::PerfectForecast => "perfect-forecast",
        }
    }

    /// The planners for a site: where no file gives what changes, both are one.
    pub(crate) fn of_site(site: &Site) -> &'static [Self] {
        match site.has_dates {
            true => &[Self::RecedingHorizon, Self::PerfectForecast],
            false => &[Self::RecedingHorizon],
        }
    }

    /// Plans from the state of a step, writes an order per socket, in kW, and returns the battery's.
    pub(crate) fn decide(
        self,
        site: &Site,
        objective: &Objective,
        env: &EnvState,
        sockets: SocketView<'_>,
        orders_kw: &mut [f32],
    ) -> Result<BatteryOrder, EnergyError> {
        let horizon = self.forecast(site, env, sockets);
        let price = match &site.given.price_per_kwh {
            Some(_) => DayPrices::of(&horizon.price_per_kwh).cheap_per_kwh,
            None => site.low_price_per_kwh,
        };
        let carbon_kg_per_kwh = match &site.given.carbon_kg_per_kwh {
            Some(_) => horizon.carbon_kg_per_kwh.iter().sum::<f64>() / horizon.carbon_kg_per_kwh.len() as f64,
            None => site.mean_carbon_kg_per_kwh,
        };
        let plan = plan_ahead(site, &horizon, objective, reward::worth_at(site, price, carbon_kg_per_kwh))?;
        let per_hour = 1.0 / site.step_hours;
        orders_kw.iter_mut().zip(&plan.sockets_kwh).for_each(|(kw, kwh)| *kw = kwh * per_hour as f32);
        Ok(BatteryOrder::Power(plan.battery_kwh[0] * per_hour))
    }

    /// The next day as the controller expects it.
    fn forecast(self, site: &Site, env: &EnvState, sockets: SocketView<'_>) -> Horizon {
        let n_steps = (HORIZON_HOURS / site.step_hours).round() as usize;
        let now = env.step_of_year;
        let (of_day, of_week) = (site.steps_per_day, 7 * site.steps_per_day);
        let given = &site.given;
        let mut horizon = Horizon {
            first_step: now,
            pv_kwh: vec![env.pv_kwh],
            load_kwh: vec![env.load_kwh],
            price_per_kwh: vec![site.price_per_kwh(now)],
            carbon_kg_per_kwh: vec![site.carbon_kg_per_kwh(now)],
            sessions: Vec::new(),
            stored_kwh: env.stored_kwh,
            month_peak_kw: env.month_peak_kw,
            grid_kw: env.last.grid_kw_seen(),
        };
        let mut coming_kwh = vec![0.0];
        let mut clouds = env.clouds;
        for ahead in 1..n_steps as u32 {
            // After the last step of the calendar comes the first one, as in the simulation.
            let step = (now + ahead) % site.steps_per_year;
            let recorded = |values: &[f64], forecast: Option<&Vec<f64>>, lags: &[u32], present: f64| match self {
                Self::PerfectForecast => values[step as usize],
                Self::RecedingHorizon => match forecast {
                    Some(forecast) => forecast[step as usize],
                    None => persistent(values, now, ahead, lags).unwrap_or(present),
                },
            };
            horizon.pv_kwh.push(match (&given.pv_kwh, &site.pv) {
                (Some(kwh), _) => recorded(kwh, given.pv_forecast_kwh.as_ref(), &[of_day], env.pv_kwh),
                (None, PvTable::Fixed(kwh)) => kwh[step as usize],
                (None, PvTable::UnderClouds(suns, model)) => {
                    clouds = model.next(clouds, 0.0);
                    let sun = &suns[step as usize];
                    let transmission = model.transmission(clouds, site.day(step).month);
                    if sun.is_up() { sun.pv_kw(transmission, &site.modules) * site.step_hours } else { 0.0 }
                }
            });
            horizon.load_kwh.push(match &given.load_kwh {
                Some(kwh) => recorded(kwh, given.load_forecast_kwh.as_ref(), &[of_week, of_day], env.load_kwh),
                None => site.mean_load_kwh(step),
            });
            let is_today = step / of_day == now / of_day;
            horizon.price_per_kwh.push(match &given.price_per_kwh {
                Some(prices) if !is_today => recorded(prices, None, &[of_day], horizon.price_per_kwh[0]),
                _ => site.price_per_kwh(step),
            });
            horizon.carbon_kg_per_kwh.push(match &given.carbon_kg_per_kwh {
                Some(carbon) => recorded(carbon, None, &[of_day], horizon.carbon_kg_per_kwh[0]),
                None => site.carbon_kg_per_kwh(step),
            });
            coming_kwh.push(match (site.serves_vehicles(), &given.vehicles) {
                (false, _) => 0.0,
                (true, None) => site.reference_vehicles_kwh(step),
                (true, Some(_)) => recorded(&site.reference.given_vehicles_kwh, None, &[of_week, of_day], 0.0),
            });
        }
        let present = sockets.need_kwh.iter().zip(sockets.dwell_steps).enumerate();
        let present = present.filter(|(_, (need, stay))| site.serves_vehicles() && **need > 0.0 && **stay > 0.0);
        horizon.sessions.extend(present.map(|(socket, (need, stay))| Session {
            socket,
            first: 0,
            steps: (*stay as usize).min(n_steps),
            leaves: true,
            need_kwh: f64::from(*need),
        }));
        // The energy of uncontrolled vehicles contains those that are here: what these need after this step comes first.
        let mut present_kwh: f64 = horizon.sessions.iter().filter(|s| s.steps > 1).map(|s| s.need_kwh).sum();
        for (load, coming_kwh) in horizon.load_kwh.iter_mut().zip(coming_kwh) {
            let known_kwh = present_kwh.min(coming_kwh);
            *load += coming_kwh - known_kwh;
            present_kwh -= known_kwh;
        }
        horizon
    }
}

/// The value that `values` had before the step `ahead` of `now`, by the first of `lags` whose step is in the past.
fn persistent(values: &[f64], now: u32, ahead: u32, lags: &[u32]) -> Option<f64> {
    let before = lags.iter().find_map(|lag| (now + ahead).checked_sub(*lag))?;
    Some(values[before as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persistence_never_reads_the_future() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        for now in 0..400 {
            for ahead in 1..24 {
                let before = persistent(&values, now, ahead, &[168, 24]);
                assert!(before.is_none_or(|step| step <= f64::from(now)), "{now} {ahead}");
                assert_eq!(before.is_none(), now + ahead < 24);
                if now + ahead >= 168 {
                    assert_eq!(before, Some(f64::from(now + ahead - 168)));
                }
            }
        }
    }
}
