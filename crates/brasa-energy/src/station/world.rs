//! The state of a range of environments, and its step.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{EnvRng, episode_rng};
use brasa_power::scenario::Evaluated;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::arrivals::Car;
use super::ledger::StationLedger;
use super::network::Powers;
use super::reward;
use super::site::{CarSource, PvSource, Site};
use super::sockets::Sockets;

/// Environments with neighboring global indices.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) site: Arc<Site>,
    first_env: usize,
    /// Index of the first episode of environment 0, where first days are taken in order.
    order: u64,
    pub(crate) state: State,
    /// Scratch: the powers at the nodes.
    powers: Vec<Powers>,
    /// Power into the car at each socket of environment 0 in the last step, none without a car; empty unless it is recorded. The
    /// state after a step has the cars of the next one.
    pub(crate) socket_kw: Vec<Option<f32>>,
}

/// The complete state for a resume.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) seed: u64,
    pub(crate) envs: Vec<EnvState>,
    /// `[n_envs * n_sockets]`.
    pub(crate) sockets: Sockets,
}

/// One station.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EnvState {
    outside: Outside,
    pub(crate) episode: u64,
    steps_left: u32,
    /// Cars that were turned away before the first step; that step counts them.
    turned_away: u32,
    turned_away_kwh: f64,
    pub(crate) stored_kwh: f64,
    /// Power of the battery in the last step, positive when charging.
    pub(crate) battery_kw: f64,
    /// Power from the grid in the last step, negative when exporting.
    pub(crate) grid_kw: f64,
    /// Largest import of the episode so far.
    peak_kw: f64,
    /// Flows of the episode so far.
    pub(crate) ledger: StationLedger,
}

impl EnvState {
    /// The next step of the calendar.
    pub(crate) fn step(&self) -> u32 {
        self.outside.step
    }

    /// PV that the next step can produce.
    pub(crate) fn pv_kw(&self) -> f64 {
        self.outside.pv_kw
    }
}

/// What happens to a station from outside, independent of its controller: clock, weather and cars.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outside {
    rng: EnvRng,
    pub(crate) step: u32,
    clouds: f64,
    pub(crate) pv_kw: f64,
}

impl Outside {
    /// The start of `episode` of environment `env`; its first cars are those of [`Outside::cars`]. `order` selects the first day
    /// where first days are taken in order.
    pub(crate) fn begin(site: &Site, seed: u64, env: u64, episode: u64, order: u64) -> Self {
        let mut rng = episode_rng(seed, env, episode);
        let day = site.first_day.of(order, &mut rng);
        let clouds = site.pv.as_ref().and_then(PvSource::clouds);
        let clouds = clouds.map_or(0.0, |clouds| clouds.start(StandardNormal.sample(&mut rng)));
        let mut outside = Self { rng, step: day * site.steps_per_day, clouds, pv_kw: 0.0 };
        outside.shine(site);
        outside
    }

    /// Advances the clock and the weather.
    pub(crate) fn advance(&mut self, site: &Site) {
        self.step = site.next(self.step);
        if let Some(clouds) = site.pv.as_ref().and_then(PvSource::clouds) {
            self.clouds = clouds.next(self.clouds, StandardNormal.sample(&mut self.rng));
        }
        self.shine(site);
    }

    fn shine(&mut self, site: &Site) {
        if let Some(pv) = &site.pv {
            self.pv_kw = pv.power_kw(self.step, site.day(self.step).month, self.clouds);
        }
    }

    /// Hands the cars that arrive at the beginning of the present step to `each`; call it once per step.
    pub(crate) fn cars(&mut self, site: &Site, mut each: impl FnMut(Car)) {
        match &site.cars {
            CarSource::Random(arrivals) => {
                let (weekend, hour) = (site.day(self.step).is_weekend, site.time(self.step).hour);
                for _ in 0..arrivals.count(weekend, hour, &mut self.rng) {
                    each(arrivals.draw(&mut self.rng));
                }
            }
            CarSource::Given { cars, first } => {
                let step = self.step as usize;
                cars[first[step] as usize..first[step + 1] as usize].iter().copied().for_each(each);
            }
        }
    }
}

/// The flows of one step, with revenue and cost.
///
/// ```
/// use brasa_energy::station::Flows;
///
/// let flows = Flows { revenue: 9.0, energy_cost: 4.0, ..Flows::default() };
/// assert_eq!(flows.profit(), 5.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Flows {
    /// Energy flows.
    pub ledger: StationLedger,
    /// Payments of the drivers, in the currency of the prices.
    pub revenue: f64,
    /// Cost of imported energy minus the revenue of exported energy.
    pub energy_cost: f64,
    /// Energy above the limits of nodes, in kWh: of the orders if limits are kept, of the flows otherwise.
    pub excess_kwh: f64,
    /// Cars that departed.
    pub departed: u32,
    /// Cars without a free socket.
    pub turned_away: u32,
    /// Energy that these cars wanted, in kWh.
    pub turned_away_kwh: f64,
    /// Hours that departed cars waited beyond their planned stay.
    pub overtime_hours: f64,
    /// Emissions of the import, in kg of CO2.
    pub carbon_kg: f64,
    /// Rise of the largest import of the episode, in kW.
    pub peak_rise_kw: f64,
    /// Change of the power from the grid since the step before, in kW and not negative; 0 in the first step.
    pub ramp_kw: f64,
}

impl Flows {
    /// Revenue minus cost.
    pub fn profit(&self) -> f64 {
        self.revenue - self.energy_cost
    }

    /// Adds the flows of one step.
    pub(crate) fn add(&mut self, step: &Self) {
        self.ledger.add(&step.ledger);
        self.revenue += step.revenue;
        self.energy_cost += step.energy_cost;
        self.excess_kwh += step.excess_kwh;
        self.departed += step.departed;
        self.turned_away += step.turned_away;
        self.turned_away_kwh += step.turned_away_kwh;
        self.overtime_hours += step.overtime_hours;
        self.carbon_kg += step.carbon_kg;
        self.peak_rise_kw += step.peak_rise_kw;
        self.ramp_kw += step.ramp_kw;
    }
}

/// Result of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepResult {
    pub(crate) flows: Flows,
    pub(crate) reward: f64,
    pub(crate) truncated: bool,
}

impl World {
    /// The environments `envs`; an episode must begin before the first step.
    pub(crate) fn new(site: Arc<Site>, envs: Range<usize>) -> Self {
        let fresh = |env: usize| EnvState {
            outside: Outside { rng: episode_rng(0, env as u64, 0), step: 0, clouds: 0.0, pv_kw: 0.0 },
            episode: 0,
            steps_left: 0,
            turned_away: 0,
            turned_away_kwh: 0.0,
            stored_kwh: 0.0,
            battery_kw: 0.0,
            grid_kw: 0.0,
            peak_kw: 0.0,
            ledger: StationLedger::default(),
        };
        let sockets = Sockets::new(envs.len() * site.socket_kw.len());
        let powers = vec![Powers::default(); site.network.n_nodes()];
        let state = State { seed: 0, envs: envs.clone().map(fresh).collect(), sockets };
        Self { site, first_env: envs.start, order: envs.start as u64, state, powers, socket_kw: Vec::new() }
    }

    /// Continues with an episode of an evaluation, which must begin before the first step.
    pub(crate) fn set_episode(&mut self, Evaluated { index, seed }: Evaluated) {
        (self.order, self.state.seed) = (index, seed);
    }

    /// Records `socket_kw` from now on.
    pub(crate) fn record(&mut self) {
        self.socket_kw = vec![None; self.site.socket_kw.len()];
    }

    /// Range of the sockets of environment `index` in the arrays.
    pub(crate) fn places(&self, index: usize) -> Range<usize> {
        let n_sockets = self.site.socket_kw.len();
        index * n_sockets..(index + 1) * n_sockets
    }

    /// Starts `episode` of environment `index`.
    pub(crate) fn begin(&mut self, index: usize, episode: u64) {
        let places = self.places(index);
        let (site, state) = (&*self.site, &mut self.state);
        state.envs[index] = EnvState {
            outside: Outside::begin(
                site,
                state.seed,
                (self.first_env + index) as u64,
                episode,
                self.order + index as u64 + episode,
            ),
            episode,
            steps_left: site.config.n_steps(),
            turned_away: 0,
            turned_away_kwh: 0.0,
            stored_kwh: site.config.battery.soc_start * site.config.battery.capacity_kwh,
            battery_kw: 0.0,
            grid_kw: 0.0,
            peak_kw: 0.0,
            ledger: StationLedger::default(),
        };
        places.clone().for_each(|place| state.sockets.free(place));
        let (env, sockets) = (&mut state.envs[index], &mut state.sockets);
        let (turned_away, turned_away_kwh) = (&mut env.turned_away, &mut env.turned_away_kwh);
        env.outside.cars(site, |car| {
            if !sockets.admit(&places, &car, site) {
                *turned_away += 1;
                *turned_away_kwh += car.target_kwh - car.arrival_kwh;
            }
        });
        state.sockets.refresh(places, site.step_hours);
    }

    /// Runs one step of environment `index` with an order in kW per socket (at the car) and for the battery.
    pub(crate) fn play(&mut self, index: usize, orders_kw: &[f64], battery_kw: f64) -> StepResult {
        let places = self.places(index);
        let (site, powers) = (&*self.site, &mut self.powers[..]);
        let (env, sockets) = (&mut self.state.envs[index], &mut self.state.sockets);
        let (hours, step) = (site.step_hours, env.outside.step);

        // What is asked for.
        powers.fill(Powers::default());
        sockets.request(places.clone(), orders_kw, site, powers);
        let charge_kw = battery_kw.max(0.0).min(site.storage.most_charge_kwh(env.stored_kwh, hours) / hours);
        let discharge_kw = (-battery_kw).max(0.0).min(site.storage.most_discharge_kwh(env.stored_kwh, hours) / hours);
        let (battery_node, pv_node) = (site.network.battery_node, site.network.pv_node);
        powers[battery_node].taken_kw += charge_kw;
        powers[battery_node].given_kw += discharge_kw;
        powers[pv_node].given_kw += env.outside.pv_kw;

        // What flows.
        let root = site.network.flow(powers);
        let charged = sockets.charge(places.clone(), site, powers);
        let battery_in_kwh = charge_kw * powers[battery_node].take * hours;
        let battery_out_kwh = discharge_kw * powers[battery_node].give * hours;
        let battery = site.storage.after(env.stored_kwh, battery_in_kwh, battery_out_kwh, site.standing_loss);
        let pv_kwh = env.outside.pv_kw * hours;
        let mut ledger = StationLedger {
            grid_import_kwh: root.grid_kw.max(0.0) * hours,
            grid_export_kwh: (-root.grid_kw).max(0.0) * hours,
            pv_available_kwh: pv_kwh,
            pv_curtailed_kwh: pv_kwh * (1.0 - powers[pv_node].give),
            battery_in_kwh,
            battery_out_kwh,
            battery_lost_kwh: battery.lost_kwh,
            battery_change_kwh: battery.stored_kwh - env.stored_kwh,
            network_lost_kwh: root.lost_kw * hours,
            socket_lost_kwh: charged.lost_kw * hours,
            ev_delivered_kwh: charged.into_cars_kw * hours,
            ev_returned_kwh: charged.out_of_cars_kw * hours,
            ev_unmet_kwh: 0.0,
        };
        env.stored_kwh = battery.stored_kwh;
        env.battery_kw = (battery_in_kwh - battery_out_kwh) / hours;
        let is_first = env.steps_left == site.config.n_steps();
        let ramp_kw = if is_first { 0.0 } else { (root.grid_kw - env.grid_kw).abs() };
        let peak_rise_kw = (root.grid_kw - env.peak_kw).max(0.0);
        env.peak_kw += peak_rise_kw;
        env.grid_kw = root.grid_kw;

        if index == 0 && !self.socket_kw.is_empty() {
            let cars = sockets.occupied[places.clone()].iter().zip(&sockets.power_kw[places.clone()]);
            let power = |(occupied, kw): (&bool, &f64)| occupied.then_some(*kw as f32);
            self.socket_kw.iter_mut().zip(cars.map(power)).for_each(|(slot, kw)| *slot = kw);
        }

        // The next step: cars leave, then others come.
        let departed = sockets.depart(places.clone(), site.patience_steps);
        env.outside.advance(site);
        env.steps_left -= 1;
        let mut turned_away = std::mem::take(&mut env.turned_away);
        let mut turned_away_kwh = std::mem::take(&mut env.turned_away_kwh);
        env.outside.cars(site, |car| {
            if !sockets.admit(&places, &car, site) {
                turned_away += 1;
                turned_away_kwh += car.target_kwh - car.arrival_kwh;
            }
        });
        sockets.refresh(places, hours);

        ledger.ev_unmet_kwh = departed.unmet_kwh;
        let prices = &site.config.prices;
        let buy_per_kwh = site.buy_per_kwh(step);
        let flows = Flows {
            revenue: (ledger.ev_delivered_kwh - ledger.ev_returned_kwh) * prices.sell_per_kwh,
            energy_cost: ledger.grid_import_kwh * buy_per_kwh
                - ledger.grid_export_kwh * (buy_per_kwh - prices.export_discount_per_kwh),
            excess_kwh: root.excess_kw * hours,
            departed: departed.cars,
            turned_away,
            turned_away_kwh,
            overtime_hours: f64::from(departed.overtime_steps) * hours,
            carbon_kg: ledger.grid_import_kwh * prices.carbon_kg_per_kwh,
            peak_rise_kw,
            ramp_kw,
            ledger,
        };
        env.ledger.add(&flows.ledger);
        let weights = &site.config.reward;
        let mut reward = reward::reward(&flows, weights);
        if weights.shaped {
            reward += reward::shaping(&flows, weights);
        }
        if let Some(reference) = &site.reference {
            reward -= reference.reward(site, step, flows.ledger.pv_available_kwh);
        }
        StepResult { flows, reward, truncated: env.steps_left == 0 }
    }
}
