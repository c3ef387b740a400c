//! The station as a scenario: batches, controllers, outcomes relative to uncontrolled charging.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use brasa_env::{
    Autoreset, Baseline, BaselineKind, Controller, Curve, Effort, EnvBatch, EnvError, EpisodeData, Evaluation, Figure,
    FigureRule, Outcome, Playing, Scenario, Split, Who, find_baseline,
};
use brasa_power::{
    EnergyError, Trace,
    scenario::{Evaluated, LESS, MORE, at_least_one, each_episode, entries, figures, foresight_baselines, relative},
};

use super::batch::{StationBatch, StationSimulation};
use super::config::{RewardConfig, RewardKind, StationConfig};
use super::controllers::Rule;
use super::episode::{self, StationEpisode};
#[cfg(feature = "optimum")]
use super::foresight::{self, Plan};
use super::reference::Reference;
use super::reward::degradation_kwh;
use super::site::Site;
use super::sockets::Sockets;
#[cfg(feature = "optimum")]
use super::stays::{Guests, Horizon, Stay};
use super::world::{EnvState, Flows, Outside, World};
#[cfg(feature = "optimum")]
use brasa_power::optimum::{Bounds, Optimum};

/// Reference of ratios.
const REFERENCE: &str = "uncontrolled charging with an idle battery";

/// A charging station with one config.
///
/// Its controllers are `idle` (no orders), `uncontrolled` (sockets at full power, the battery is unused; the reference of
/// all ratios), `spread` (as slowly as every stay allows), `price-threshold` (shifts energy to the cheap hours) and
/// `peak-shaving` (the battery covers what the grid connection cannot).
///
/// ```
/// use brasa_energy::station::{Station, StationConfig};
/// use brasa_env::{Evaluation, Scenario, Who};
///
/// let station = Station::new(StationConfig::chargax())?;
/// let day = &station.evaluate(Who::Baseline("peak-shaving"), &Evaluation::new(1, 1))?[0];
/// let profit = day.figure(&station.figures(), "profit").and_then(|figure| figure.ratio);
/// assert!(profit > Some(1.2), "{profit:?} of uncontrolled charging");
///
/// // The cars, prices and PV of the same day, known before it is played.
/// let known = station.episode(1, 0, 0);
/// assert_eq!(known.buy_per_kwh.len(), 288);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Station {
    /// For training.
    site: Arc<Site>,
    /// The same with the plain reward, for evaluations.
    evaluated: Arc<Site>,
    #[cfg(feature = "optimum")]
    bounds: Bounds,
}

impl Station {
    /// The scenario of `config`.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for invalid settings; for files that cannot be used an error with file, row and column.
    pub fn new(config: StationConfig) -> Result<Self, EnergyError> {
        config.validate()?;
        let mut site = Site::new(config)?;
        brasa_power::remarks::warn(&site.warnings);
        let RewardConfig { kind, .. } = site.config.reward;
        let mut plain = site.clone();
        (plain.config.reward.kind, plain.config.reward.shaped) = (RewardKind::Profit, false);
        let evaluated = Arc::new(plain.evaluated());
        if kind == RewardKind::Improvement {
            site.reference = Some(Reference::measure(&Arc::new(plain)));
        }
        Ok(Self {
            site: Arc::new(site),
            evaluated,
            #[cfg(feature = "optimum")]
            bounds: Bounds::default(),
        })
    }

    /// The settings.
    pub fn config(&self) -> &StationConfig {
        &self.site.config
    }

    /// What is unlikely in the files, with the range in which values are plausible; logged once by [`Station::new`].
    pub fn warnings(&self) -> &[String] {
        &self.site.warnings
    }

    /// Currency of profits.
    pub fn currency(&self) -> &str {
        &self.site.config.prices.currency
    }

    /// The environments with the global indices `envs`; the index addresses the random numbers.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for an empty range.
    pub fn batch(&self, envs: Range<usize>) -> Result<StationBatch, EnergyError> {
        at_least_one(&envs)?;
        Ok(Autoreset::new(StationSimulation::new(Arc::clone(&self.site), envs)))
    }

    /// The cars, prices and PV of `episode` of environment `env` for `seed`, as a batch that was reset with this seed plays
    /// them.
    pub fn episode(&self, seed: u64, env: usize, episode: u64) -> StationEpisode {
        let order = env as u64 + episode;
        episode::list(&self.site, Outside::begin(&self.site, seed, env as u64, episode, order))
    }

    /// The cars, prices and PV of episode `index` of an evaluation with `seed`.
    pub fn evaluation_episode(&self, seed: u64, index: u64) -> StationEpisode {
        let site = &self.evaluated;
        episode::list(site, Outside::begin(site, seed.wrapping_add(index), 0, 0, index))
    }

    /// An episode with a controller, which acts through the environment.
    fn play_controlled(&self, controller: &mut dyn Controller, episode: Evaluated) -> Result<Tally, EnvError> {
        let mut tally = Tally::new(&self.site);
        let mut simulation = StationSimulation::new(Arc::clone(&self.evaluated), 0..1);
        simulation.world.record();
        simulation.world.set_episode(episode);
        let mut batch = Autoreset::new(simulation);
        let mut playing = Playing::start(&mut batch, episode.seed)?;
        tally.trace.start = Some(self.site.start_of(&batch.world.state.envs[0]));
        for _ in 0..self.site.config.n_steps() {
            playing.step(&mut batch, controller)?;
            tally.add(&self.site, &batch.world, batch.flows(0), f64::from(playing.slabs.reward[0]));
        }
        Ok(tally)
    }

    /// An episode with a rule.
    fn play_ruled(&self, rule: Rule, episode: Evaluated) -> Tally {
        self.play_decided(episode, |env, sockets, orders| rule.decide(&self.site, env, sockets, orders)).0
    }

    /// An episode with orders from `decide`, which writes one per socket and returns the battery's; also returns the
    /// sockets after it.
    fn play_decided(
        &self,
        episode: Evaluated,
        mut decide: impl FnMut(&EnvState, &Sockets, &mut [f64]) -> f64,
    ) -> (Tally, Sockets) {
        let (site, mut tally) = (&self.evaluated, Tally::new(&self.evaluated));
        let mut world = World::new(Arc::clone(site), 0..1);
        world.record();
        let mut orders_kw = vec![0.0; site.socket_kw.len()];
        world.set_episode(episode);
        world.begin(0, 0);
        tally.trace.start = Some(site.start_of(&world.state.envs[0]));
        for _ in 0..site.config.n_steps() {
            let battery_kw = decide(&world.state.envs[0], &world.state.sockets, &mut orders_kw);
            let played = world.play(0, &orders_kw, battery_kw);
            tally.add(site, &world, &played.flows, played.reward);
        }
        (tally, world.state.sockets)
    }

    /// The optimum of the return of the first episode of an evaluation with `seed`, with perfect foresight. The objective is
    /// minus the return.
    ///
    /// `bound` is that of a linear relaxation, so no controller has a smaller objective. `value` is that of the best schedule
    /// that was found in the simulation. Where drivers wait for energy, which cars find a socket depends on the schedule, and
    /// the gap between both is wide; otherwise it is narrow. `docs/reference/station.md` says what is exact.
    ///
    /// # Errors
    /// [`EnergyError::Optimum`] if the solver fails.
    #[cfg(feature = "optimum")]
    pub fn optimum(&self, seed: u64) -> Result<Optimum, EnergyError> {
        Ok(self.foresee(Evaluated { index: 0, seed })?.1)
    }

    #[cfg(feature = "optimum")]
    fn foresee(&self, episode: Evaluated) -> Result<(Tally, Optimum), EnergyError> {
        /// Most schedules that are tried; each has the cars where the one before had them.
        const MOST_SCHEDULES: usize = 4;
        let horizon = Horizon::of_episode(&self.evaluated, episode);
        let relaxed = foresight::relaxed(&self.site, &horizon)?;
        let bound = relaxed.bound;
        let (mut best, mut stays) = self.follow(&relaxed, &horizon, episode);
        let mut planned = relaxed.value;
        for rule in Rule::ALL {
            let (tally, seen) = self
                .watch(&horizon, episode, |_, _, env, sockets, orders| rule.decide(&self.site, env, sockets, orders));
            if tally.episode_return > best.episode_return {
                (planned, best, stays) = (-tally.episode_return, tally, seen);
            }
        }
        for _ in 0..MOST_SCHEDULES {
            let plan = foresight::schedule(&self.site, &horizon, &stays)?;
            let (tally, seen) = self.follow(&plan, &horizon, episode);
            let gain = tally.episode_return - best.episode_return;
            if gain > 0.0 {
                (planned, best, stays) = (plan.value, tally, seen);
            }
            if gain <= 1e-6 * best.episode_return.abs() {
                break;
            }
        }
        let value = -best.episode_return;
        Ok((best, Optimum { value, planned, bound }))
    }

    /// An episode by a schedule, and where the cars were.
    #[cfg(feature = "optimum")]
    fn follow(&self, plan: &Plan, horizon: &Horizon, episode: Evaluated) -> (Tally, Vec<Option<Stay>>) {
        self.watch(horizon, episode, |step, guests, _, sockets, orders| {
            plan.decide(&self.site, horizon, guests, step, sockets, orders)
        })
    }

    /// An episode with orders from `decide`, and where the cars were.
    #[cfg(feature = "optimum")]
    fn watch(
        &self,
        horizon: &Horizon,
        episode: Evaluated,
        mut decide: impl FnMut(usize, &Guests<'_>, &EnvState, &Sockets, &mut [f64]) -> f64,
    ) -> (Tally, Vec<Option<Stay>>) {
        let (mut guests, mut step) = (Guests::new(&self.site, horizon), 0);
        let (tally, sockets) = self.play_decided(episode, |env, sockets, orders| {
            guests.look(&self.site, step, sockets);
            step += 1;
            decide(step - 1, &guests, env, sockets, orders)
        });
        guests.look(&self.site, step, &sockets);
        (tally, guests.stays)
    }

    /// An episode with a baseline that solves linear programs: the schedule, or the bound of the return.
    #[cfg(feature = "optimum")]
    fn evaluate_planned(&self, baseline: &str, episode: Evaluated, traced: bool) -> Result<Outcome, EnergyError> {
        self.bounds.outcome(baseline, (episode.index, episode.seed), || {
            let (tally, optimum) = self.foresee(episode)?;
            Ok((optimum, self.outcome(tally, episode, traced)))
        })
    }

    #[cfg(not(feature = "optimum"))]
    fn evaluate_planned(&self, _: &str, _: Evaluated, _: bool) -> Result<Outcome, EnergyError> {
        unreachable!("`validate` rejects these baselines without linear programs")
    }

    /// The outcome of an episode, with the ratios to the same episode without control.
    fn outcome(&self, tally: Tally, episode: Evaluated, traced: bool) -> Outcome {
        let reference = self.play_ruled(Rule::Uncontrolled, episode);
        Outcome {
            episode_return: Some(tally.episode_return),
            length: self.site.config.n_steps().into(),
            figures: relative(&FIGURES, &tally, &reference),
            details: entries(tally.flows.ledger.entries()),
            trace: traced.then(|| -> brasa_env::Trace { Arc::new(tally.trace) }),
        }
    }
}

/// Sums over an episode.
#[derive(Debug, Default)]
struct Tally {
    episode_return: f64,
    flows: Flows,
    stored_kwh: f64,
    peak_kw: f64,
    trace: Trace,
}

impl Tally {
    fn new(site: &Site) -> Self {
        let trace = Trace {
            step_hours: site.step_hours,
            grid_limit_kw: Some(site.network.grid_limit_kw()).filter(|kw| kw.is_finite()),
            sockets: site
                .config
                .sockets
                .iter()
                .flat_map(|group| (1..=group.count).map(move |i| format!("{} {i}", group.name)))
                .collect(),
            ..Trace::default()
        };
        let stored_kwh = site.config.battery.soc_start * site.config.battery.capacity_kwh;
        Self { stored_kwh, trace, ..Self::default() }
    }

    fn add(&mut self, site: &Site, world: &World, flows: &Flows, reward: f64) {
        let ledger = &flows.ledger;
        self.episode_return += reward;
        self.flows.add(flows);
        self.stored_kwh += ledger.battery_change_kwh;
        self.peak_kw = self.peak_kw.max(ledger.grid_import_kwh / site.step_hours);
        let kw = |kwh: f64| (kwh / site.step_hours) as f32;
        let capacity_kwh = site.config.battery.capacity_kwh;
        self.trace.load_kw.push(0.0);
        self.trace.pv_kw.push(kw(ledger.pv_available_kwh));
        self.trace.battery_kw.push(kw(ledger.battery_in_kwh - ledger.battery_out_kwh));
        self.trace.ev_kw.push(kw(ledger.ev_delivered_kwh - ledger.ev_returned_kwh));
        self.trace.grid_kw.push(kw(ledger.grid_import_kwh - ledger.grid_export_kwh));
        self.trace.soc.push(if capacity_kwh > 0.0 { (self.stored_kwh / capacity_kwh) as f32 } else { 0.0 });
        self.trace.socket_kw.extend_from_slice(&world.socket_kw);
    }
}

/// The figures of an episode.
const FIGURES: [FigureRule<Tally>; 19] = [
    ("profit", "profit [{currency}]", MORE, |t| t.flows.profit()),
    ("revenue", "revenue [{currency}]", MORE, |t| t.flows.revenue),
    ("energy_cost", "energy cost [{currency}]", LESS, |t| t.flows.energy_cost),
    ("grid_import_kwh", "grid import [kWh]", LESS, |t| t.flows.ledger.grid_import_kwh),
    ("grid_export_kwh", "grid export [kWh]", None, |t| t.flows.ledger.grid_export_kwh),
    ("peak_kw", "peak [kW]", LESS, |t| t.peak_kw),
    ("ev_delivered_kwh", "ev delivered [kWh]", MORE, |t| t.flows.ledger.ev_delivered_kwh),
    ("ev_returned_kwh", "ev returned [kWh]", None, |t| t.flows.ledger.ev_returned_kwh),
    ("ev_unmet_kwh", "ev unmet [kWh]", LESS, |t| t.flows.ledger.ev_unmet_kwh),
    ("turned_away", "cars turned away", LESS, |t| f64::from(t.flows.turned_away)),
    ("overtime_hours", "overtime [h]", LESS, |t| t.flows.overtime_hours),
    ("excess_kwh", "excess [kWh]", LESS, |t| t.flows.excess_kwh),
    ("pv_curtailed_kwh", "pv curtailed [kWh]", LESS, |t| t.flows.ledger.pv_curtailed_kwh),
    ("battery_out_kwh", "battery out [kWh]", None, |t| t.flows.ledger.battery_out_kwh),
    ("battery_change_kwh", "battery change [kWh]", None, |t| t.flows.ledger.battery_change_kwh),
    ("network_lost_kwh", "network lost [kWh]", LESS, |t| t.flows.ledger.network_lost_kwh),
    ("carbon_kg", "carbon [kg]", LESS, |t| t.flows.carbon_kg),
    ("ramp_kw", "ramps [kW]", LESS, |t| t.flows.ramp_kw),
    ("degradation_kwh", "discharge of batteries [kWh]", LESS, |t| degradation_kwh(&t.flows)),
];

impl Scenario for Station {
    fn envs(&self, split: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        at_least_one(&envs)?;
        let site = match split {
            Split::Train => &self.site,
            Split::Evaluation => &self.evaluated,
        };
        Ok(Box::new(Autoreset::new(StationSimulation::new(Arc::clone(site), envs))))
    }

    fn files(&self) -> Vec<PathBuf> {
        let config = &self.site.config;
        [&config.prices.file, &config.pv.file, &config.arrivals.file].into_iter().flatten().cloned().collect()
    }

    fn figures(&self) -> Vec<Figure> {
        figures(&FIGURES, self.currency(), REFERENCE)
    }

    fn baselines(&self) -> Vec<Baseline> {
        let kind = |rule| if rule == Rule::Idle { BaselineKind::Idle } else { BaselineKind::Heuristic };
        let rules = Rule::ALL.iter().map(|rule| Baseline::new(rule.name(), kind(*rule)));
        rules.chain(foresight_baselines().into_iter().filter(|_| self.config().optimum)).collect()
    }

    fn n_episodes(&self, effort: Effort) -> u64 {
        // Days differ by weekday, season, weather and cars.
        match effort {
            Effort::Look => 10,
            Effort::Compare => 100,
        }
    }

    fn about_episodes(&self, n_episodes: u64) -> String {
        let days = f64::from(self.site.config.n_steps()) / f64::from(self.site.steps_per_day);
        let length = if days == 1.0 { "one day".to_owned() } else { format!("{days} days") };
        let held_out = match self.site.held_out {
            Some(held_out) => format!(" from days that `{}` keeps from training", held_out.field),
            None => String::new(),
        };
        format!("Means over {n_episodes} episodes of {length}{held_out}, the same for every controller.")
    }

    fn n_distinct_episodes(&self) -> Option<u64> {
        self.evaluated.is_deterministic().then(|| self.evaluated.first_day.days().len() as u64)
    }

    /// The days of files; without files cars are sampled.
    fn data(&self, split: Split) -> EpisodeData {
        let site = if split == Split::Train { &self.site } else { &self.evaluated };
        if !site.has_dates {
            return EpisodeData::Sampled;
        }
        let days = site.first_day.reached(site.config.n_steps(), site.steps_per_day);
        EpisodeData::fixed(days.into_iter().map(|day| site.fingerprint(day)))
    }

    fn curves(&self) -> Vec<Curve> {
        vec![Curve {
            label: "profit".to_owned(),
            metric: "rollout/profit".to_owned(),
            divided_by: None,
            evaluated: Some("eval/profit".to_owned()),
            figure: Some("profit".to_owned()),
        }]
    }

    /// Runs episodes as training does, each also without control for the ratios; traces are [`crate::Trace`]s.
    fn evaluate(&self, mut who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        let rule = match who {
            Who::Controller(_) => None,
            Who::Baseline(name) => {
                find_baseline(&self.baselines(), name)?;
                Rule::ALL.into_iter().find(|rule| rule.name() == name)
            }
        };
        each_episode(evaluation, |episode, traced| {
            let tally = match (&mut who, rule) {
                (Who::Controller(controller), _) => self.play_controlled(&mut **controller, episode)?,
                (Who::Baseline(_), Some(rule)) => self.play_ruled(rule, episode),
                (Who::Baseline(name), None) => return Ok(self.evaluate_planned(name, episode, traced)?),
            };
            Ok::<_, EnvError>(self.outcome(tally, episode, traced))
        })
    }
}
