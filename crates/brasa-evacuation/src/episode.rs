//! Complete episodes with a heuristic or a controller, and bounds.

use std::sync::Arc;

use brasa_env::{BatchSlabs, Controller, EnvError, Evaluation, Measured, Outcome, count_step, named_rng};
use ndarray::Array2;

use crate::batch::{batch_option, batch_spec, illegal, write_mask};
use crate::controllers::{ATTEMPTS, Rule, RuleController};
use crate::evacuation::Evacuation;
use crate::observe::Template;
use crate::trace::{DecisionFrame, Trace};
use crate::world::{End, Recorder, StepResult, World};

/// Runs every episode with a heuristic.
pub(crate) fn obey(scenario: &Evacuation, rule: Rule, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
    let mut episodes = begin(scenario, evaluation);
    episodes.iter_mut().try_for_each(|episode| episode.obey(scenario, rule))?;
    Ok(episodes.into_iter().map(|episode| episode.outcome(scenario)).collect())
}

/// Runs all episodes in one batch of rows, which shrinks when episodes end.
pub(crate) fn follow(
    scenario: &Evacuation,
    controller: &mut dyn Controller,
    evaluation: &Evaluation,
) -> Result<Vec<Outcome>, EnvError> {
    let mut episodes = begin(scenario, evaluation);
    let columns = scenario.columns();
    let spec = batch_spec(columns, scenario.buildings.len(), episodes.len());
    let mut templates: Vec<Template> = scenario.buildings.iter().map(Template::new).collect();
    let mut slabs = BatchSlabs::new(&spec);
    let mut actions = Array2::zeros((episodes.len(), 1));
    let mut scratch = Vec::new();
    let mut rows: Vec<usize> = (0..episodes.len()).collect();
    controller.begin();
    loop {
        let (before, is_open) = (rows.len(), |episode: &Running| episode.world.state.end.is_none());
        let kept: Vec<usize> = (0..before).filter(|row| is_open(&episodes[rows[*row]])).collect();
        rows.retain(|episode| is_open(&episodes[*episode]));
        let mut open: Vec<&mut Running> = episodes.iter_mut().filter(|episode| is_open(episode)).collect();
        if open.is_empty() {
            break;
        }
        if open.len() != before {
            controller.keep(&kept);
            slabs = BatchSlabs::new(&spec.with_n_envs(open.len()));
            actions = Array2::zeros((open.len(), 1));
        }
        for (row, episode) in open.iter_mut().enumerate() {
            let (world, mut values) = (&episode.world, slabs.obs.row_mut(row));
            let values = values.as_slice_mut().expect("slabs are in standard layout");
            templates[world.state.building as usize].write(world, &columns, values);
            let mut mask = slabs.mask.row_mut(row);
            write_mask(world, &mut scratch, mask.as_slice_mut().expect("slabs are in standard layout"));
            if let Some(trace) = &mut episode.trace {
                trace.seen.push((values.to_vec(), slabs.mask.row(row).to_vec()));
            }
        }
        controller.act(&slabs, actions.view_mut())?;
        for (row, episode) in open.iter_mut().enumerate() {
            let option = batch_option(&episode.world, actions[[row, 0]], columns.nodes);
            episode.play(option.ok_or_else(|| illegal(actions[[row, 0]], episode.world.turn(), episode.env))?)?;
        }
    }
    Ok(episodes.into_iter().map(|episode| episode.outcome(scenario)).collect())
}

/// The lower bound of each episode.
pub(crate) fn bounds(scenario: &Evacuation, evaluation: &Evaluation) -> Vec<Outcome> {
    let outcome = |env: u64| {
        let world = || scenario.world(env as usize, evaluation.seed);
        let bound_ticks = scenario.bound_ticks(world());
        let clock = Clock::new(scenario, bound_ticks);
        let figures = brasa_env::Scenario::figures(scenario);
        let measure = |name: &str| match name {
            "par2_secs" => clock.penalized(Some(bound_ticks)),
            name if name.ends_with("_secs") => clock.measure(Some(bound_ticks)),
            _ => Measured::NONE,
        };
        Outcome {
            figures: figures.iter().map(|figure| measure(&figure.name)).collect(),
            details: about(&world(), bound_ticks),
            ..Outcome::default()
        }
    };
    evaluation.episodes.clone().map(outcome).collect()
}

fn begin(scenario: &Evacuation, evaluation: &Evaluation) -> Vec<Running> {
    let Evaluation { episodes, seed, n_traces } = evaluation;
    let running = |(place, env): (usize, u64)| Running::new(scenario, env as usize, *seed, place < *n_traces);
    episodes.clone().enumerate().map(running).collect()
}

/// A running episode.
struct Running {
    world: World,
    trace: Option<Trace>,
    env: usize,
    seed: u64,
    total: StepResult,
    episode_return: f64,
    decisions: u64,
}

impl Running {
    fn new(scenario: &Evacuation, env: usize, seed: u64, traced: bool) -> Self {
        let world = scenario.world(env, seed);
        let trace = traced.then(|| {
            let mut trace = Trace::default();
            trace.record(&world);
            trace
        });
        Self { world, trace, env, seed, total: StepResult::default(), episode_return: 0.0, decisions: 0 }
    }

    /// Runs to the end with a heuristic.
    fn obey(&mut self, scenario: &Evacuation, rule: Rule) -> Result<(), EnvError> {
        let attempts = if rule == Rule::Hindsight { ATTEMPTS } else { 1 };
        let traced = self.trace.is_some();
        for attempt in 0..attempts {
            let rule = if attempt == 0 && rule == Rule::Hindsight { Rule::Greedy } else { rule };
            let rng = named_rng(self.seed, "controller", (self.env * ATTEMPTS + attempt) as u64);
            let mut played = Self::new(scenario, self.env, self.seed, traced);
            let mut controller = RuleController::new(rule, rng);
            while played.world.state.end.is_none() {
                let option = controller.decide(&mut played.world);
                played.play(option)?;
            }
            if attempt == 0 || played.episode_return > self.episode_return {
                *self = played;
            }
        }
        Ok(())
    }

    fn play(&mut self, option: usize) -> Result<(), EnvError> {
        if let Some(trace) = &mut self.trace {
            let node = (option < self.world.wait_option()).then_some(option as u16);
            let (tick, responder) = (self.world.state.tick, self.world.turn() as u16);
            trace.decisions.push(DecisionFrame { tick, responder, node });
        }
        let played = self.world.step(option, self.trace.as_mut().map(|trace| -> &mut dyn Recorder { trace }));
        let played = played.map_err(|_| illegal(option as f32, self.world.turn(), self.env))?;
        self.decisions += 1;
        count_step();
        self.episode_return += played.reward;
        self.total.add(&played);
        Ok(())
    }

    fn outcome(mut self, scenario: &Evacuation) -> Outcome {
        let bound_ticks = scenario.bound_ticks(scenario.world(self.env, self.seed));
        let (state, total) = (&self.world.state, &self.total);
        let end = state.end.expect("it was played to its end");
        let clock = Clock::new(scenario, bound_ticks);
        let crew_ticks = f64::from(state.tick) * state.crew.len() as f64;
        let n_people = state.people.len();
        let inside = (0..n_people).filter(|person| state.people.is_inside(*person)).count();
        let people = n_people as f64;
        let share = |n: f64| Measured::maybe((n_people > 0).then(|| n / people)).weighted(people);
        let rescued = f64::from(total.rescued);
        let cleared_at = (end == End::Success).then_some(state.tick);
        let figures = vec![
            Measured::new(f64::from(u8::from(end == End::Success))),
            clock.measure(cleared_at),
            clock.measure(state.swept_at),
            clock.penalized(cleared_at),
            share(rescued),
            share(people - rescued),
            Measured::new(f64::from(total.duplicates)),
            Measured::new(f64::from(total.idle_ticks) / crew_ticks.max(1.0)),
            Measured::new(self.decisions as f64),
        ];
        let mut details = about(&self.world, bound_ticks);
        details.push(("ticks".to_owned(), f64::from(state.tick)));
        details.extend(state.swept_at.map(|tick| ("sweep_ticks".to_owned(), f64::from(tick))));
        details.push(("rescued_people".to_owned(), rescued));
        details.push(("dead_people".to_owned(), f64::from(total.died)));
        details.push(("people_left_inside".to_owned(), inside as f64));
        if let Some(trace) = &mut self.trace {
            trace.building = self.world.building().layout().name.clone();
            trace.end = Some(end);
        }
        Outcome {
            episode_return: Some(self.episode_return),
            length: self.decisions,
            figures,
            details,
            trace: self.trace.map(|trace| -> brasa_env::Trace { Arc::new(trace) }),
        }
    }
}

/// Converts ticks to figures.
struct Clock {
    tick_secs: f64,
    timeout_secs: f64,
    bound_ticks: u32,
}

impl Clock {
    fn new(scenario: &Evacuation, bound_ticks: u32) -> Self {
        let rules = &scenario.rules;
        Self { tick_secs: rules.timing.tick_secs, timeout_secs: rules.timeout_secs, bound_ticks }
    }

    /// A time and its ratio to the lower bound; nothing where what is timed did not happen.
    fn measure(&self, ticks: Option<u32>) -> Measured {
        let secs = |ticks: u32| f64::from(ticks) * self.tick_secs;
        ticks.map_or(Measured::NONE, |ticks| Measured::new(secs(ticks)).relative_to(secs(self.bound_ticks.max(1))))
    }

    /// The time until all was clear, or twice the limit where it never was (PAR2), and its ratio to the same of what no team
    /// can beat. It has a meaning in every episode, so that controllers of different success can be compared.
    fn penalized(&self, cleared_at: Option<u32>) -> Measured {
        let secs = |ticks: u32| f64::from(ticks) * self.tick_secs;
        // The last tick may begin before the limit and end after it.
        let is_in_time = |ticks: &u32| secs(*ticks) < self.timeout_secs + self.tick_secs;
        let counted = |ticks: Option<u32>| ticks.filter(is_in_time).map_or(2.0 * self.timeout_secs, secs);
        let (time, least) = (counted(cleared_at), counted(Some(self.bound_ticks.max(1))));
        Measured::new(time).relative_to(least)
    }
}

/// Properties of an episode before the first decision.
fn about(world: &World, bound_ticks: u32) -> Vec<(String, f64)> {
    let state = &world.state;
    [
        ("building", f64::from(state.building)),
        ("n_responders", state.crew.len() as f64),
        ("people", state.people.len() as f64),
        ("bound_ticks", f64::from(bound_ticks)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
