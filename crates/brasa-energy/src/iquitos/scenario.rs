//! The microgrid as a scenario: batches, controllers, outcomes relative to the uncontrolled reference.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "optimum")]
use brasa_env::ComparisonMemory;
use brasa_env::{
    Autoreset, Baseline, BaselineKind, Controller, Curve, Effort, EnvBatch, EnvError, EpisodeData, Evaluation, Figure,
    FigureRule, Outcome, Playing, Scenario, Split, Who, find_baseline, fingerprint,
};
use brasa_power::{
    EnergyError, Ledger, Trace,
    scenario::{Evaluated, LESS, MORE, at_least_one, curves, details, each_episode, figures, relative},
};

use super::batch::{IquitosBatch, IquitosSimulation};
use super::config::IquitosConfig;
use super::controllers::Rule;
use super::data;
use super::dispatch::{BatteryOrder, Flows};
#[cfg(feature = "optimum")]
use super::foresight::{Horizon, Objective, n_terms, plan};
#[cfg(feature = "optimum")]
use super::planner::Planner;
use super::reward;
use super::site::{PvTable, Reference, Site};
use super::world::{EnvState, SocketView, StepResult, World};
#[cfg(feature = "optimum")]
use brasa_power::optimum::{Bounds, Optimum, memory};
#[cfg(feature = "optimum")]
use brasa_power::scenario::foresight_baselines;

/// Reference of ratios.
const REFERENCE: &str = "uncontrolled charging with an idle battery";

/// The Iquitos microgrid with one config.
///
/// Its controllers are `idle` (no orders), `uncontrolled` (sockets at full power, the battery is unused; the
/// reference of all ratios), `greedy` (sockets at full power, the battery stores the surplus and covers the load of the
/// site step by step) and `rule-based` (uses tariff, soft limit and feeder).
///
/// ```
/// use brasa_energy::iquitos::{Iquitos, IquitosConfig};
/// use brasa_env::{Evaluation, Scenario, Who};
///
/// let iquitos = Iquitos::new(IquitosConfig::default())?;
/// assert_eq!(iquitos.currency(), "PEN");
/// // A year of the controller that stores PV surplus.
/// let outcomes = iquitos.evaluate(Who::Baseline("greedy"), &Evaluation::new(1, 7))?;
/// assert_eq!(outcomes[0].length, 8760);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Iquitos {
    site: Arc<Site>,
    /// The same site with episodes of a whole year, for evaluations.
    year: Arc<Site>,
    warnings: Vec<String>,
    #[cfg(feature = "optimum")]
    bounds: Bounds,
}

impl Iquitos {
    /// The scenario of `config`; simulates one uncontrolled year for its reference, which takes some tens of
    /// milliseconds.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for invalid settings; for files that cannot be used an error with file, row and column.
    pub fn new(mut config: IquitosConfig) -> Result<Self, EnergyError> {
        data::read_sockets(&mut config)?;
        config.validate()?;
        let (calendar, mut given) = data::read(&config)?;
        let warnings = std::mem::take(&mut given.warnings);
        let mut site = Site::with(config, calendar, given)?;
        site.reference = measure_reference(&site);
        reward::check_scales(&site)?;
        let year = Arc::new(site.evaluated());
        brasa_power::remarks::warn(&warnings);
        Ok(Self {
            site: Arc::new(site),
            year,
            warnings,
            #[cfg(feature = "optimum")]
            bounds: Bounds::default(),
        })
    }

    /// The settings.
    pub fn config(&self) -> &IquitosConfig {
        &self.site.config
    }

    /// What is unlikely in the files, with the range in which values are plausible; logged once by [`Iquitos::new`].
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    #[cfg(feature = "tensor")]
    pub(super) fn shared_site(&self) -> Arc<Site> {
        Arc::clone(&self.site)
    }

    /// Currency of costs.
    pub fn currency(&self) -> &str {
        &self.site.config.grid.currency
    }

    /// The environments with the global indices `envs`; the index addresses the random numbers.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for an empty range.
    pub fn batch(&self, envs: Range<usize>) -> Result<IquitosBatch, EnergyError> {
        Self::batch_of(&self.site, envs)
    }

    fn batch_of(site: &Arc<Site>, envs: Range<usize>) -> Result<IquitosBatch, EnergyError> {
        at_least_one(&envs)?;
        Ok(Autoreset::new(IquitosSimulation::new(Arc::clone(site), envs)))
    }

    /// An episode with a controller, which acts through the environment.
    fn play_controlled(&self, controller: &mut dyn Controller, episode: Evaluated) -> Result<Tally, EnvError> {
        let (year, mut tally) = (&self.year, Tally::new(&self.year));
        let mut simulation = IquitosSimulation::new(Arc::clone(year), 0..1);
        simulation.world.record();
        simulation.world.set_episode(episode);
        let mut batch = Autoreset::new(simulation);
        let mut playing = Playing::start(&mut batch, episode.seed)?;
        tally.trace.start = Some(year.start_of(&batch.world.state.envs[0]));
        for _ in 0..year.episode_steps() {
            let stored_before = batch.soc(0) * year.config.battery.capacity_kwh;
            playing.step(&mut batch, controller)?;
            // The last step resets the battery, so the stored energy after it is computed from the flows.
            let flows = *batch.flows(0);
            let stored = stored_before + flows.ledger.battery_change_kwh;
            tally.add(year, &batch.world, stored, &flows, f64::from(playing.slabs.reward[0]));
        }
        Ok(tally)
    }

    /// An episode with a rule.
    fn play_ruled(&self, rule: Rule, episode: Evaluated) -> Tally {
        self.play_decided(episode, |env, sockets, orders| rule.decide(&self.year, env, sockets, orders))
    }

    /// An episode with orders from `decide`.
    fn play_decided(
        &self,
        episode: Evaluated,
        mut decide: impl FnMut(&EnvState, SocketView<'_>, &mut [f32]) -> BatteryOrder,
    ) -> Tally {
        let (year, mut tally, mut start) = (&self.year, Tally::new(&self.year), None);
        let decide = |env: &EnvState, sockets: SocketView<'_>, orders: &mut [f32]| {
            start.get_or_insert_with(|| year.start_of(env));
            decide(env, sockets, orders)
        };
        play_episode(year, episode, decide, |_, world, played| {
            tally.add(year, world, world.state.envs[0].stored_kwh, &played.flows, played.reward);
        });
        tally.trace.start = start;
        tally
    }

    /// The optimum of the first episode of an evaluation with `seed`, with perfect foresight: the schedule of the battery and of
    /// every socket with the smallest weighted sum of `objective`, and what it reaches in the simulation. The episode is a year,
    /// or the first part that is held out.
    ///
    /// A linear program, solved by an interior point method; the year by the hour takes seconds, by shorter steps
    /// minutes.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for a negative weight, [`EnergyError::Optimum`] if the solver fails.
    #[cfg(feature = "optimum")]
    pub fn optimum(&self, objective: &Objective, seed: u64) -> Result<Optimum, EnergyError> {
        Ok(self.foresee(objective, Evaluated { index: 0, seed })?.1)
    }

    /// The site with episodes of a whole year.
    #[cfg(all(test, feature = "optimum"))]
    pub(super) fn year(&self) -> &Arc<Site> {
        &self.year
    }

    /// Minus the reward, up to a constant that no controller changes, for [`Iquitos::optimum`].
    ///
    /// # Errors
    /// [`EnergyError::Field`] for the reward `seed`, which is not linear.
    #[cfg(feature = "optimum")]
    pub fn objective_of_return(&self) -> Result<Objective, EnergyError> {
        Objective::of_return(&self.year)
    }

    /// An episode with a baseline that solves linear programs.
    #[cfg(feature = "optimum")]
    fn evaluate_planned(&self, baseline: &str, episode: Evaluated, traced: bool) -> Result<Outcome, EnergyError> {
        let objective = self.objective_of_return()?;
        let planner = Planner::of_site(&self.year).iter().find(|planner| planner.name() == baseline);
        let Some(planner) = planner else {
            return self.bounds.outcome(baseline, (episode.index, episode.seed), || {
                let (tally, optimum) = self.foresee(&objective, episode)?;
                Ok((optimum, self.outcome(tally, episode, traced)))
            });
        };
        let mut failed = Ok(());
        let tally = self.play_decided(episode, |env, sockets, orders| {
            let planned = failed.is_ok().then(|| planner.decide(&self.year, &objective, env, sockets, orders));
            match planned {
                Some(Ok(order)) => order,
                Some(Err(error)) => {
                    failed = Err(error);
                    BatteryOrder::Power(0.0)
                }
                None => BatteryOrder::Power(0.0),
            }
        });
        failed.map(|()| self.outcome(tally, episode, traced))
    }

    #[cfg(not(feature = "optimum"))]
    fn evaluate_planned(&self, _: &str, _: Evaluated, _: bool) -> Result<Outcome, EnergyError> {
        unreachable!("`validate` rejects these baselines without linear programs")
    }

    /// The names and kinds of the baselines that solve linear programs.
    #[cfg(feature = "optimum")]
    fn planned_baselines(&self) -> Vec<Baseline> {
        let planners = Planner::of_site(&self.year).iter();
        let planners = planners.map(|planner| match planner {
            Planner::RecedingHorizon => Baseline::new(planner.name(), BaselineKind::Heuristic),
            Planner::PerfectForecast => Baseline::new(planner.name(), BaselineKind::Plan),
        });
        planners.chain(foresight_baselines()).filter(|_| self.config().optimum).collect()
    }

    #[cfg(not(feature = "optimum"))]
    fn planned_baselines(&self) -> Vec<Baseline> {
        Vec::new()
    }

    /// The outcome of an episode, with the ratios to the same episode without control.
    fn outcome(&self, tally: Tally, episode: Evaluated, traced: bool) -> Outcome {
        let reference = self.play_ruled(Rule::Uncontrolled, episode);
        Outcome {
            episode_return: Some(tally.episode_return),
            length: self.year.episode_steps().into(),
            figures: relative(&FIGURES, &tally, &reference),
            details: details(&tally.ledger),
            trace: traced.then(|| -> brasa_env::Trace { Arc::new(tally.trace) }),
        }
    }

    #[cfg(feature = "optimum")]
    fn foresee(&self, objective: &Objective, episode: Evaluated) -> Result<(Tally, Optimum), EnergyError> {
        let year = &self.year;
        let horizon = Horizon::of_episode(year, episode);
        let plan = plan(year, &horizon, objective)?;
        let n_sockets = year.config.n_sockets();
        let per_hour = 1.0 / year.step_hours;
        let mut step = 0;
        let tally = self.play_decided(episode, |_, _, orders_kw| {
            let planned = &plan.sockets_kwh[step * n_sockets..(step + 1) * n_sockets];
            orders_kw.iter_mut().zip(planned).for_each(|(kw, kwh)| *kw = kwh * per_hour as f32);
            step += 1;
            BatteryOrder::Power(plan.battery_kwh[step - 1] * per_hour)
        });
        let value = objective.carbon_kg * tally.carbon_kg
            + objective.cost * tally.cost
            + objective.pv_curtailed_kwh * tally.ledger.pv_curtailed_kwh
            + objective.ev_unmet_kwh * tally.ledger.ev_unmet_kwh
            + objective.grid_excess_kwh * tally.grid_excess_kwh
            + objective.peak_rise_kw * tally.peak_rise_kw
            + objective.ramp_kw * tally.ramp_kw
            + objective.battery_kwh * (tally.ledger.battery_in_kwh + tally.ledger.battery_out_kwh);
        Ok((tally, Optimum { value, planned: plan.value, bound: plan.bound }))
    }
}

/// Statistics of the uncontrolled year of seed 0, without the days that are held out.
fn measure_reference(site: &Site) -> Reference {
    let mut whole = site.clone();
    whole.held_out = None;
    let year = &whole.evaluated();
    let (mut cost_less, mut wanted_kwh) = (year.reference.clone(), 0.0);
    let (mut steps, mut given_vehicles_kwh) = (0.0, Vec::new());
    let mut counts = vec![0.0_f64; cost_less.vehicles_kwh.len()];
    let (mut carbon_kg, mut cost, mut pv_kwh) = (0.0, 0.0, 0.0);
    let (mut peak_rise_kw, mut ramp_kw) = (0.0, 0.0);
    let uncontrolled = |env: &EnvState, sockets: SocketView<'_>, orders: &mut [f32]| {
        Rule::Uncontrolled.decide(year, env, sockets, orders)
    };
    let first = Evaluated { index: 0, seed: 0 };
    play_episode(year, first, uncontrolled, |step, _, StepResult { flows, .. }| {
        if year.given.vehicles.is_some() {
            given_vehicles_kwh.push(flows.ledger.ev_delivered_kwh);
        }
        if site.held_out.is_some_and(|held_out| held_out.contains(step / year.steps_per_day)) {
            return;
        }
        steps += 1.0;
        carbon_kg += flows.carbon_kg;
        cost += flows.cost + flows.ledger.grid_export_kwh * year.config.grid.export_price_per_kwh;
        peak_rise_kw += flows.peak_rise_kw;
        ramp_kw += flows.ramp_kw;
        pv_kwh += flows.ledger.pv_available_kwh;
        wanted_kwh += flows.ledger.ev_delivered_kwh + flows.ledger.ev_unmet_kwh;
        let index = year.reference_index(step);
        cost_less.vehicles_kwh[index] += flows.ledger.ev_delivered_kwh;
        counts[index] += 1.0;
    });
    let vehicles_kwh = cost_less.vehicles_kwh.iter().zip(&counts).map(|(sum, n)| sum / n.max(1.0)).collect();
    Reference {
        carbon_kg: carbon_kg / steps,
        gross_cost: cost / steps,
        pv_kwh: pv_kwh / steps,
        wanted_kwh: wanted_kwh / steps,
        peak_rise_kw: peak_rise_kw / steps,
        ramp_kw: ramp_kw / steps,
        given_vehicles_kwh,
        vehicles_kwh,
    }
}

/// Runs an episode with orders from `decide`, which writes one per socket and returns the battery's; `each` gets the
/// step, the world after it, and what happened.
fn play_episode(
    year: &Site,
    episode: Evaluated,
    mut decide: impl FnMut(&EnvState, SocketView<'_>, &mut [f32]) -> BatteryOrder,
    mut each: impl FnMut(u32, &World, &StepResult),
) {
    let mut world = World::of_episode(Arc::new(year.clone()), episode);
    world.record();
    let mut orders_kw = vec![0.0; year.config.n_sockets()];
    world.begin(0, 0);
    for step in 0..year.episode_steps() {
        let order = decide(&world.state.envs[0], world.sockets(0), &mut orders_kw);
        let played = world.play(0, &orders_kw, order);
        each(step, &world, &played);
    }
}

/// Sums over a year.
#[derive(Debug, Default)]
struct Tally {
    episode_return: f64,
    ledger: Ledger,
    carbon_kg: f64,
    cost: f64,
    peak_kw: f64,
    grid_excess_kwh: f64,
    peak_rise_kw: f64,
    ramp_kw: f64,
    feeder_excess_kwh: f64,
    turned_away: f64,
    trace: Trace,
}

impl Tally {
    fn new(year: &Site) -> Self {
        let vehicles = &year.config.vehicles;
        let sockets = [("moto", vehicles.moto.sockets), ("mototaxi", vehicles.mototaxi.sockets)];
        let trace = Trace {
            step_hours: year.step_hours,
            grid_limit_kw: Some(year.config.grid.soft_limit_kw),
            ev_limit_kw: Some(vehicles.feeder_limit_kw),
            sockets: sockets.iter().flat_map(|(name, n)| (1..=*n).map(move |i| format!("{name} {i}"))).collect(),
            ..Trace::default()
        };
        Self { trace, ..Self::default() }
    }

    fn add(&mut self, year: &Site, world: &World, stored_kwh: f64, flows: &Flows, reward: f64) {
        let ledger = &flows.ledger;
        self.episode_return += reward;
        self.ledger.add(ledger);
        self.carbon_kg += flows.carbon_kg;
        self.cost += flows.cost;
        self.peak_kw = self.peak_kw.max(ledger.grid_import_kwh / year.step_hours);
        self.grid_excess_kwh += flows.grid_excess_kwh;
        self.peak_rise_kw += flows.peak_rise_kw;
        self.ramp_kw += flows.ramp_kw;
        self.feeder_excess_kwh += flows.feeder_excess_kwh;
        self.turned_away += flows.turned_away;
        let kw = |kwh: f64| (kwh / year.step_hours) as f32;
        let capacity_kwh = year.config.battery.capacity_kwh;
        self.trace.load_kw.push(kw(ledger.load_kwh));
        self.trace.pv_kw.push(kw(ledger.pv_available_kwh));
        self.trace.battery_kw.push(kw(ledger.battery_in_kwh - ledger.battery_out_kwh));
        self.trace.ev_kw.push(kw(ledger.ev_delivered_kwh));
        self.trace.grid_kw.push(kw(ledger.grid_import_kwh - ledger.grid_export_kwh));
        self.trace.soc.push(if capacity_kwh > 0.0 { (stored_kwh / capacity_kwh) as f32 } else { 0.0 });
        self.trace.socket_kw.extend_from_slice(&world.socket_kw);
    }
}

/// The figures of an episode.
const FIGURES: [FigureRule<Tally>; 16] = [
    ("grid_import_kwh", "grid import [kWh]", LESS, |t| t.ledger.grid_import_kwh),
    ("carbon_kg", "carbon [kg]", LESS, |t| t.carbon_kg),
    ("cost", "cost [{currency}]", LESS, |t| t.cost),
    ("peak_kw", "peak [kW]", LESS, |t| t.peak_kw),
    ("ev_delivered_kwh", "ev delivered [kWh]", MORE, |t| t.ledger.ev_delivered_kwh),
    ("ev_unmet_kwh", "ev unmet [kWh]", LESS, |t| t.ledger.ev_unmet_kwh),
    ("ev_turned_away", "ev turned away", LESS, |t| t.turned_away),
    ("pv_curtailed_kwh", "pv curtailed [kWh]", LESS, |t| t.ledger.pv_curtailed_kwh),
    ("grid_export_kwh", "grid export [kWh]", None, |t| t.ledger.grid_export_kwh),
    ("grid_excess_kwh", "grid excess [kWh]", LESS, |t| t.grid_excess_kwh),
    ("feeder_excess_kwh", "feeder excess [kWh]", LESS, |t| t.feeder_excess_kwh),
    ("battery_out_kwh", "battery out [kWh]", None, |t| t.ledger.battery_out_kwh),
    ("ramp_kw", "ramps [kW]", LESS, |t| t.ramp_kw),
    ("battery_use_kwh", "battery use [kWh]", LESS, |t| t.ledger.battery_in_kwh + t.ledger.battery_out_kwh),
    ("self_sufficiency", "self sufficiency", MORE, |t| {
        1.0 - share(t.ledger.grid_import_kwh, t.ledger.load_kwh + t.ledger.ev_delivered_kwh)
    }),
    ("self_consumption", "self consumption", MORE, |t| {
        let used_kwh = t.ledger.pv_available_kwh - t.ledger.pv_curtailed_kwh - t.ledger.grid_export_kwh;
        share(used_kwh, t.ledger.pv_available_kwh)
    }),
];

/// A part of a whole; 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Scenario for Iquitos {
    fn envs(&self, split: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        let site = match split {
            Split::Train => &self.site,
            Split::Evaluation => &self.year,
        };
        Ok(Box::new(Self::batch_of(site, envs)?))
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = &self.site.config.files;
        let all = [&files.pv, &files.load, &files.prices, &files.carbon, &files.vehicles, &files.pv_forecast];
        let all = all.into_iter().chain([&files.load_forecast, &files.sockets]);
        all.flatten().cloned().collect()
    }

    fn figures(&self) -> Vec<Figure> {
        figures(&FIGURES, self.currency(), REFERENCE)
    }

    fn baselines(&self) -> Vec<Baseline> {
        let kind = |rule| if rule == Rule::Idle { BaselineKind::Idle } else { BaselineKind::Heuristic };
        let rules = Rule::ALL.iter().map(|rule| Baseline::new(rule.name(), kind(*rule)));
        rules.chain(self.planned_baselines()).collect()
    }

    /// One: the days and vehicles of a year are already many samples. With days that are held out, each of their parts.
    fn n_episodes(&self, _: Effort) -> u64 {
        self.year.first_day.days().len() as u64
    }

    fn n_distinct_episodes(&self) -> Option<u64> {
        self.year.is_deterministic().then(|| self.year.first_day.days().len() as u64)
    }

    /// The days of files, or those of a year without randomness.
    fn data(&self, split: Split) -> EpisodeData {
        let site = if split == Split::Train { &self.site } else { &self.year };
        let per_day = site.steps_per_day;
        let steps = |day: u32| day * per_day..(day + 1) * per_day;
        let days = site.first_day.reached(site.episode_steps(), per_day);
        match (site.has_dates, &site.pv) {
            (true, _) => EpisodeData::fixed(days.into_iter().map(|day| fingerprint(site.given.values(steps(day))))),
            (false, PvTable::Fixed(kwh)) if site.is_deterministic() => {
                let of_day = |day| fingerprint(steps(day).map(|step| kwh[step as usize]));
                EpisodeData::fixed(days.into_iter().map(of_day))
            }
            (false, _) => EpisodeData::Sampled,
        }
    }

    #[cfg(feature = "optimum")]
    fn comparison_memory(&self) -> Option<ComparisonMemory> {
        let episode = Evaluated { index: 0, seed: 0 };
        let n_terms = || n_terms(&self.year, &Horizon::of_episode(&self.year, episode));
        self.config().optimum.then(|| memory(n_terms()))
    }

    fn about_episodes(&self, n_episodes: u64) -> String {
        let n_days = self.year.episode_steps() / self.year.steps_per_day;
        let what = match (self.year.held_out.is_some(), self.year.has_dates) {
            (true, _) if n_days == 7 => "weeks that `held_out_weeks` keeps from training".to_owned(),
            (true, _) => "days that `held_out_days` keeps from training".to_owned(),
            (false, true) => format!("passes over the {n_days} days of the files"),
            (false, false) => "whole years".to_owned(),
        };
        let one =
            if self.year.has_dates { format!("The {n_days} days of the files") } else { "One whole year".to_owned() };
        match n_episodes {
            1 if self.year.held_out.is_none() => format!("{one}, the same for every controller."),
            n => format!("Means over {n} {what}, the same for every controller."),
        }
    }

    fn curves(&self) -> Vec<Curve> {
        curves()
    }

    /// Runs whole years, independent of `episode_steps`, or the days that are held out, and each also without control for the
    /// ratios; traces are [`crate::Trace`]s.
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
