//! The state of a range of environments, and its step.
//!
//! Sockets are stored as a struct of arrays over all environments, because every step iterates over all of them;
//! the twenty numbers of a site are stored together, because every step of a site needs all of them.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{EnvRng, episode_rng};
use brasa_power::{Ledger, scenario::Evaluated};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::config::RewardKind;
use super::dispatch::{BatteryOrder, Bus, Flows, Served, balance, serve};
use super::reward::{self, SeedInputs};
use super::site::{PvTable, Site};

/// Clip value of the mall's noise, so that the load is bounded.
pub(super) const NOISE_LIMIT: f64 = 4.0;

/// Environments with neighboring global indices.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) site: Arc<Site>,
    first_env: usize,
    /// Index of the first episode of environment 0, where first days are taken in order.
    order: u64,
    pub(crate) state: State,
    /// Power of each socket of environment 0 in the last step, none without a vehicle; empty unless it is recorded. The state
    /// after a step has the vehicles of the next one.
    pub(crate) socket_kw: Vec<Option<f32>>,
}

/// The complete state for a resume.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) seed: u64,
    pub(crate) envs: Vec<EnvState>,
    /// Remaining need of the vehicle at each socket, `[n_envs * n_sockets]`; 0 without a vehicle.
    pub(crate) need_kwh: Vec<f32>,
    /// Remaining steps of the vehicle; 0 without a vehicle.
    pub(crate) dwell_steps: Vec<f32>,
    /// Mean power of each socket during the last step.
    pub(crate) power_kw: Vec<f32>,
}

/// One site.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EnvState {
    rng: EnvRng,
    pub(crate) episode: u64,
    /// The next step.
    pub(crate) step_of_year: u32,
    steps_left: u32,
    pub(crate) stored_kwh: f64,
    pub(crate) clouds: f64,
    /// PV of the next step.
    pub(crate) pv_kwh: f64,
    /// Load of the mall in the next step.
    pub(crate) load_kwh: f64,
    /// Largest import of the month so far.
    pub(crate) month_peak_kw: f64,
    reference_peak_kw: f64,
    pub(crate) last: LastStep,
    /// Flows of the episode so far.
    pub(crate) ledger: Ledger,
}

/// Observed results of the last step.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct LastStep {
    pub(crate) pv_kw: f64,
    pub(crate) battery_kw: f64,
    pub(crate) grid_kw: f64,
    /// Whether there was a last step.
    is_played: bool,
}

impl LastStep {
    /// Power from the grid in the last step of the episode.
    pub(crate) fn grid_kw_seen(&self) -> Option<f64> {
        self.is_played.then_some(self.grid_kw)
    }
}

/// The sockets of one environment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketView<'a> {
    pub(crate) need_kwh: &'a [f32],
    pub(crate) dwell_steps: &'a [f32],
    pub(crate) power_kw: &'a [f32],
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
        let n_sockets = envs.len() * site.config.n_sockets();
        let fresh = |env: usize| EnvState {
            rng: episode_rng(0, env as u64, 0),
            episode: 0,
            step_of_year: 0,
            steps_left: 0,
            stored_kwh: 0.0,
            clouds: 0.0,
            pv_kwh: 0.0,
            load_kwh: 0.0,
            month_peak_kw: 0.0,
            reference_peak_kw: 0.0,
            last: LastStep::default(),
            ledger: Ledger::default(),
        };
        let state = State {
            seed: 0,
            envs: envs.clone().map(fresh).collect(),
            need_kwh: vec![0.0; n_sockets],
            dwell_steps: vec![0.0; n_sockets],
            power_kw: vec![0.0; n_sockets],
        };
        Self { site, first_env: envs.start, order: envs.start as u64, state, socket_kw: Vec::new() }
    }

    /// The environment of an episode of an evaluation, which must begin before the first step.
    pub(crate) fn of_episode(site: Arc<Site>, episode: Evaluated) -> Self {
        let mut world = Self::new(site, 0..1);
        world.set_episode(episode);
        world
    }

    /// Continues with an episode of an evaluation, which must begin before the first step.
    pub(crate) fn set_episode(&mut self, Evaluated { index, seed }: Evaluated) {
        (self.order, self.state.seed) = (index, seed);
    }

    /// Records `socket_kw` from now on.
    pub(crate) fn record(&mut self) {
        self.socket_kw = vec![None; self.site.config.n_sockets()];
    }

    /// Range of the sockets of environment `index` in the arrays.
    fn places(&self, index: usize) -> Range<usize> {
        let n_sockets = self.site.config.n_sockets();
        index * n_sockets..(index + 1) * n_sockets
    }

    /// The sockets of environment `index`.
    pub(crate) fn sockets(&self, index: usize) -> SocketView<'_> {
        let places = self.places(index);
        SocketView {
            need_kwh: &self.state.need_kwh[places.clone()],
            dwell_steps: &self.state.dwell_steps[places.clone()],
            power_kw: &self.state.power_kw[places],
        }
    }

    /// Starts `episode` of environment `index`.
    pub(crate) fn begin(&mut self, index: usize, episode: u64) {
        let site = Arc::clone(&self.site);
        let config = &site.config;
        let mut rng = episode_rng(self.state.seed, (self.first_env + index) as u64, episode);
        let first_day = site.first_day.of(self.order + index as u64 + episode, &mut rng);
        let clouds = match &site.pv {
            PvTable::Fixed(_) => 0.0,
            PvTable::UnderClouds(_, clouds) => clouds.start(StandardNormal.sample(&mut rng)),
        };
        self.state.envs[index] = EnvState {
            rng,
            episode,
            step_of_year: first_day * site.steps_per_day,
            steps_left: site.episode_steps(),
            stored_kwh: config.battery.soc_start * config.battery.capacity_kwh,
            clouds,
            pv_kwh: 0.0,
            load_kwh: 0.0,
            month_peak_kw: 0.0,
            reference_peak_kw: 0.0,
            last: LastStep::default(),
            ledger: Ledger::default(),
        };
        let places = self.places(index);
        self.state.need_kwh[places.clone()].fill(0.0);
        self.state.dwell_steps[places.clone()].fill(0.0);
        self.state.power_kw[places].fill(0.0);
        self.arrive(index);
        self.draw_weather(index);
    }

    /// Runs one step of environment `index` with an order in kW per socket.
    pub(crate) fn play(&mut self, index: usize, orders_kw: &[f32], order: BatteryOrder) -> StepResult {
        let site = Arc::clone(&self.site);
        let places = self.places(index);
        let state = &mut self.state;
        let env = &mut state.envs[index];
        let step = env.step_of_year;
        let need_kwh = &mut state.need_kwh[places.clone()];
        let power_kw = &mut state.power_kw[places.clone()];
        let served = if site.serves_vehicles() {
            let limit_kwh = site.config.vehicles.feeder_limit_kw * site.step_hours;
            serve(orders_kw, need_kwh, power_kw, site.step_hours, limit_kwh)
        } else {
            // The profile is always served; its exact energy is used, not the sum over sockets.
            let per_hour = (1.0 / site.step_hours) as f32;
            for (power, need) in power_kw.iter_mut().zip(need_kwh) {
                *power = *need * per_hour;
                *need = 0.0;
            }
            Served { delivered_kwh: site.time(step).profile_kwh, excess_kwh: 0.0 }
        };
        if index == 0 && !self.socket_kw.is_empty() {
            let vehicles = state.dwell_steps[places].iter().zip(&*power_kw);
            let power = |(dwell, kw): (&f32, &f32)| (*dwell > 0.0).then_some(*kw);
            self.socket_kw.iter_mut().zip(vehicles.map(power)).for_each(|(slot, kw)| *slot = kw);
        }
        let bus = Bus {
            pv_kwh: env.pv_kwh,
            load_kwh: env.load_kwh,
            vehicles_kwh: served.delivered_kwh,
            feeder_excess_kwh: served.excess_kwh,
            reference_vehicles_kwh: site.reference_vehicles_kwh(step),
            price_per_kwh: site.price_per_kwh(step),
            carbon_kg_per_kwh: site.carbon_kg_per_kwh(step),
            stored_kwh: env.stored_kwh,
            month_peak_kw: env.month_peak_kw,
            reference_peak_kw: env.reference_peak_kw,
            grid_kw: env.last.grid_kw_seen(),
        };
        let (mut flows, stored_kwh) = balance(&site, &bus, order);
        env.stored_kwh = stored_kwh;
        let ledger = &flows.ledger;
        env.last = LastStep {
            pv_kw: ledger.pv_available_kwh / site.step_hours,
            battery_kw: (ledger.battery_in_kwh - ledger.battery_out_kwh) / site.step_hours,
            grid_kw: (ledger.grid_import_kwh - ledger.grid_export_kwh) / site.step_hours,
            is_played: true,
        };
        env.month_peak_kw = env.month_peak_kw.max(ledger.grid_import_kwh / site.step_hours);
        env.reference_peak_kw = env.reference_peak_kw.max(flows.reference_import_kwh / site.step_hours);
        // Only the seed formula needs it, and it must be read before vehicles leave.
        let vehicle_soc = match site.config.reward.kind {
            RewardKind::Seed => self.vehicle_soc(index),
            RewardKind::Normalised | RewardKind::Improvement => 0.0,
        };

        let turned_away;
        (flows.ledger.ev_unmet_kwh, turned_away) = self.advance(index);
        flows.turned_away = f64::from(turned_away);
        let env = &mut self.state.envs[index];
        env.ledger.add(&flows.ledger);
        let seed_inputs = || {
            let capacity_kwh = site.config.battery.capacity_kwh;
            let battery_soc = if capacity_kwh > 0.0 { stored_kwh / capacity_kwh } else { 0.0 };
            let [is_peak, is_before_peak] = reward::seed_hours(site.time(step).hour);
            SeedInputs { battery_soc, vehicle_soc, is_peak, is_before_peak }
        };
        let reward = reward::reward(&flows, seed_inputs, &site);
        StepResult { flows, reward, truncated: env.steps_left == 0 }
    }

    /// Advances the clock: vehicles leave and arrive, and the weather of the next step is sampled. Returns the unmet
    /// energy of departing vehicles and the number of vehicles without a socket.
    fn advance(&mut self, index: usize) -> (f64, u32) {
        let (month, site) = (|s: &Site, step| s.day(step).month, &self.site);
        let env = &mut self.state.envs[index];
        let old_month = month(site, env.step_of_year);
        env.step_of_year = (env.step_of_year + 1) % site.steps_per_year;
        env.steps_left -= 1;
        if month(site, env.step_of_year) != old_month {
            env.month_peak_kw = 0.0;
            env.reference_peak_kw = 0.0;
        }
        let result = self.arrive(index);
        self.draw_weather(index);
        result
    }

    /// Advances the sockets by one step.
    fn arrive(&mut self, index: usize) -> (f64, u32) {
        let places = self.places(index);
        let (site, state) = (&self.site, &mut self.state);
        let env = &mut state.envs[index];
        let need_kwh = &mut state.need_kwh[places.clone()];
        let dwell_steps = &mut state.dwell_steps[places];
        let vehicles = &site.config.vehicles;
        let n_motos = vehicles.moto.sockets;
        let time = site.time(env.step_of_year);
        if !site.serves_vehicles() {
            let total_kw = vehicles.moto.socket_kw * n_motos as f64
                + vehicles.mototaxi.socket_kw * vehicles.mototaxi.sockets as f64;
            let share = |socket_kw: f64| (time.profile_kwh * socket_kw / total_kw) as f32;
            need_kwh[..n_motos].fill(share(vehicles.moto.socket_kw));
            need_kwh[n_motos..].fill(share(vehicles.mototaxi.socket_kw));
            dwell_steps.fill(1.0);
            return (0.0, 0);
        }
        let is_weekend = site.day(env.step_of_year).is_weekend;
        let (mut unmet_kwh, mut turned_away) = (0.0, 0);
        for (class, range) in [0..n_motos, n_motos..need_kwh.len()].into_iter().enumerate() {
            let listed = site.given.vehicles.as_ref().map_or(&[][..], |vehicles| vehicles.at(class, env.step_of_year));
            let mut coming = match &site.arrivals {
                Some(arrivals) => arrivals.count(class, is_weekend, time.hour, &mut env.rng),
                None => listed.len() as u32,
            };
            for (need, dwell) in need_kwh[range.clone()].iter_mut().zip(&mut dwell_steps[range]) {
                if *dwell > 1.0 {
                    *dwell -= 1.0;
                    continue;
                }
                // Free, or free from now on; the remaining need of a departing vehicle is unmet.
                unmet_kwh += f64::from(*need);
                (*need, *dwell) = (0.0, 0.0);
                if coming > 0 {
                    let arrival = match &site.arrivals {
                        Some(arrivals) => arrivals.draw(class, &mut env.rng),
                        None => listed[listed.len() - coming as usize],
                    };
                    coming -= 1;
                    (*need, *dwell) = (arrival.need_kwh, arrival.dwell_steps);
                }
            }
            turned_away += coming;
        }
        (unmet_kwh, turned_away)
    }

    /// Samples PV and load of the next step.
    fn draw_weather(&mut self, index: usize) {
        let (site, env) = (&self.site, &mut self.state.envs[index]);
        let (time, day) = (site.time(env.step_of_year), site.day(env.step_of_year));
        env.pv_kwh = match &site.pv {
            PvTable::Fixed(kwh) => kwh[env.step_of_year as usize],
            PvTable::UnderClouds(suns, clouds) => {
                env.clouds = clouds.next(env.clouds, StandardNormal.sample(&mut env.rng));
                let sun = &suns[env.step_of_year as usize];
                let power_kw = match sun.is_up() {
                    true => sun.pv_kw(clouds.transmission(env.clouds, day.month), &site.modules),
                    false => 0.0,
                };
                power_kw * site.step_hours
            }
        };
        if let Some(load_kwh) = &site.given.load_kwh {
            env.load_kwh = load_kwh[env.step_of_year as usize];
            return;
        }
        let noise = site.config.mall.noise;
        let draw = if noise > 0.0 { StandardNormal.sample(&mut env.rng) } else { 0.0_f64 };
        env.load_kwh = time.mall_kwh * (day.mall_factor + noise * draw.clamp(-NOISE_LIMIT, NOISE_LIMIT)).max(0.0);
    }

    /// Mean state of charge of the connected vehicles; the target if there are none or with the profile.
    fn vehicle_soc(&self, index: usize) -> f64 {
        let vehicles = &self.site.config.vehicles;
        if !self.site.serves_vehicles() {
            return vehicles.target_soc;
        }
        let sockets = self.sockets(index);
        let (mut missing, mut connected) = (0.0, 0.0);
        for (i, (need, dwell)) in sockets.need_kwh.iter().zip(sockets.dwell_steps).enumerate() {
            if *dwell > 0.0 {
                let class = if i < vehicles.moto.sockets { &vehicles.moto } else { &vehicles.mototaxi };
                missing += f64::from(*need) * vehicles.charger_efficiency / class.battery_kwh;
                connected += 1.0;
            }
        }
        if connected == 0.0 { vehicles.target_soc } else { vehicles.target_soc - missing / connected }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::IquitosConfig;
    use super::*;

    fn world(config: IquitosConfig, envs: Range<usize>) -> World {
        let mut world = World::new(Arc::new(Site::new(config)), envs.clone());
        (0..envs.len()).for_each(|index| world.begin(index, 0));
        world
    }

    #[test]
    fn what_vehicles_want_is_delivered_missed_or_still_wanted() {
        let mut world = world(IquitosConfig::default(), 0..1);
        let orders = vec![0.7; 128];
        let (mut delivered, mut unmet, mut wanted) = (0.0, 0.0, 0.0);
        for _ in 0..24 * 30 {
            let waiting = |world: &World| world.sockets(0).need_kwh.iter().map(|x| f64::from(*x)).sum::<f64>();
            let before = waiting(&world);
            let flows = world.play(0, &orders, BatteryOrder::Follow).flows;
            delivered += flows.ledger.ev_delivered_kwh;
            unmet += flows.ledger.ev_unmet_kwh;
            // The need of new vehicles is the present need minus the remaining one.
            wanted += waiting(&world) - (before - flows.ledger.ev_delivered_kwh - flows.ledger.ev_unmet_kwh);
        }
        let pending: f64 = world.sockets(0).need_kwh.iter().map(|x| f64::from(*x)).sum();
        assert!(delivered > 1000.0 && unmet > 100.0, "{delivered} {unmet}");
        assert!((wanted - delivered - unmet - pending).abs() < 1e-6 * wanted);
    }

    #[test]
    fn sockets_of_a_class_are_interchangeable() {
        let mut straight = world(IquitosConfig::default(), 0..1);
        for _ in 0..20 {
            straight.play(0, &[1.0; 128], BatteryOrder::Power(0.0));
        }
        let mut permuted = straight.clone();
        let turned = |values: &mut [f32]| {
            values[..112].rotate_left(37);
            values[112..].rotate_left(5);
        };
        turned(&mut permuted.state.need_kwh);
        turned(&mut permuted.state.dwell_steps);
        let orders: Vec<f32> = (0..128).map(|i| (i % 17) as f32 / 8.0).collect();
        let mut turned_orders = orders.clone();
        turned(&mut turned_orders);
        let a = straight.play(0, &orders, BatteryOrder::Follow);
        let b = permuted.play(0, &turned_orders, BatteryOrder::Follow);
        assert!((a.flows.ledger.ev_delivered_kwh - b.flows.ledger.ev_delivered_kwh).abs() < 1e-4);
        assert!((a.flows.ledger.ev_unmet_kwh - b.flows.ledger.ev_unmet_kwh).abs() < 1e-4);
        assert!((a.reward - b.reward).abs() < 1e-6);
        let mut powers = straight.state.power_kw.clone();
        turned(&mut powers);
        for (x, y) in powers.iter().zip(&permuted.state.power_kw) {
            assert!((x - y).abs() < 1e-5);
        }
    }

    #[test]
    fn windows_start_on_random_days_and_end_in_time() {
        let config = IquitosConfig { episode_steps: Some(48), random_start: true, ..Default::default() };
        let mut world = world(config, 0..1);
        let mut starts = std::collections::BTreeSet::new();
        for episode in 0..50 {
            world.begin(0, episode);
            assert_eq!(world.state.envs[0].step_of_year % 24, 0);
            assert!(world.state.envs[0].step_of_year <= 8760 - 48);
            starts.insert(world.state.envs[0].step_of_year);
            for step in 0..48 {
                assert_eq!(world.play(0, &[0.0; 128], BatteryOrder::Follow).truncated, step == 47);
            }
        }
        assert!(starts.len() > 30);
    }
}
