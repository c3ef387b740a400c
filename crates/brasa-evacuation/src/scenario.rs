//! The scenario: a pool of buildings under one set of rules, its environments, and what came of an episode.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use brasa_env::{episode_rng, named_rng};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use crate::batch::{EvacuationBatch, batch_option, illegal, write_mask};
use crate::bound::{SweepProblem, lower_bound_with_losses};
use crate::building::Building;
use crate::config::RulesConfig;
use crate::controllers::{ATTEMPTS, Controller, Rule};
use crate::observe::{Columns, Template};
use crate::trace::{DecisionFrame, Trace};
use crate::world::{End, Played, World};
use crate::{EvacuationError, GeneratorConfig, Layout, Split};

/// Buildings and the rules in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvacuationConfig {
    /// Where the buildings come from.
    pub buildings: Buildings,
    /// What happens inside, and what responders know and may do.
    #[serde(default)]
    pub rules: RulesConfig,
}

impl EvacuationConfig {
    /// Checks what can be checked before buildings are made.
    ///
    /// # Errors
    /// [`EvacuationError::Field`].
    pub fn validate(&self) -> Result<(), EvacuationError> {
        if let Buildings::Generated(generated) = &self.buildings {
            generated.generator.validate()?;
            if generated.count == 0 {
                return Err(crate::timing::field_error("buildings.generated.count", "must be at least 1", 0));
            }
        }
        self.rules.validate()
    }
}

/// Where buildings come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Buildings {
    /// One of the three reference buildings.
    Reference(Reference),
    /// A floor plan from a file: ours in JSON, GeoJSON or IMDF, or WKT.
    File(PathBuf),
    /// Random buildings.
    Generated(GeneratedConfig),
}

/// A pool of random buildings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GeneratedConfig {
    /// Buildings to learn from. Default 256. With few, a policy learns them by heart.
    pub count: usize,
    /// Buildings to evaluate in. Default held-out: of the same families, never seen in training.
    pub evaluate: Split,
    /// How they are drawn.
    pub generator: GeneratorConfig,
}

impl Default for GeneratedConfig {
    fn default() -> Self {
        Self { count: 256, evaluate: Split::HeldOut, generator: GeneratorConfig::default() }
    }
}

impl GeneratedConfig {
    fn layouts(&self, split: Split, count: usize) -> Result<Vec<Layout>, EvacuationError> {
        (0..count as u64).map(|index| Ok(self.generator.layout(split, index)?)).collect()
    }
}

/// A reference building.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// Six rooms along one hall.
    Office,
    /// Three floors of nurseries.
    Daycare,
    /// Fifteen rooms between a grid of aisles.
    Warehouse,
}

impl Reference {
    /// The building.
    pub fn layout(self) -> Layout {
        match self {
            Self::Office => Layout::office(),
            Self::Daycare => Layout::daycare(),
            Self::Warehouse => Layout::warehouse(),
        }
    }
}

/// A pool of buildings that is ready to play in.
#[derive(Debug, Clone)]
pub struct Evacuation {
    config: EvacuationConfig,
    rules: Arc<RulesConfig>,
    buildings: Arc<Vec<Building>>,
}

/// Who decides during an evaluation.
pub enum Control<'a> {
    /// A rule.
    Rule(Rule),
    /// A policy: reads observations `[n_rows, obs width]` and masks `[n_rows, options]`, writes options `[n_rows, 1]`.
    Policy(&'a mut PolicyFn<'a>),
}

/// What decides in [`Control::Policy`]; called once for every decision with one row for each episode that goes on, in the
/// order of environments.
pub type PolicyFn<'a> = dyn FnMut(ArrayView2<f32>, ArrayView2<f32>, ArrayViewMut2<f32>) + 'a;

/// What came of one episode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Name of the building.
    pub building: String,
    /// Size of the team.
    pub n_responders: usize,
    /// How it ended.
    pub end: End,
    /// Sum of the rewards.
    pub episode_return: f64,
    /// Decisions, each between at least two options.
    pub decisions: u64,
    /// Ticks until the end.
    pub ticks: u32,
    /// Ticks until the last room was swept; `None` where one was left.
    pub sweep_ticks: Option<u32>,
    /// Proven lower bound on `sweep_ticks`, hence on the ticks of any success: of the building without fire, or, where
    /// it burns, for the rooms that its fire left. It counts on the whole team: where responders go down, rooms of high
    /// risk need fewer sweeps.
    pub bound_ticks: u32,
    /// People in the building at the start.
    pub people: usize,
    /// People who came out.
    pub rescued: u32,
    /// People who died.
    pub dead: u32,
    /// People who were alive inside when the episode ended by its rules.
    pub left_behind: u32,
    /// Searches of rooms that needed none.
    pub duplicate_sweeps: u32,
    /// Share of their time that responders stood around.
    pub idle_share: f64,
    /// Length of a tick, in s.
    pub tick_secs: f64,
    /// The episode tick by tick, where it was asked for.
    #[serde(skip)]
    pub trace: Option<Trace>,
}

impl Evacuation {
    /// Checks the settings and prepares the buildings.
    ///
    /// # Errors
    /// [`EvacuationError`] where a setting, file or building cannot be used.
    pub fn new(config: EvacuationConfig) -> Result<Self, EvacuationError> {
        config.validate()?;
        let layouts = match &config.buildings {
            Buildings::Reference(reference) => vec![reference.layout()],
            Buildings::File(path) => vec![Layout::load(path)?],
            Buildings::Generated(generated) => generated.layouts(Split::Train, generated.count)?,
        };
        Self::with_layouts(config, layouts)
    }

    /// The same rules in other buildings: of the user's own making, or unseen in training.
    ///
    /// # Errors
    /// [`EvacuationError`] where a setting or building cannot be used, or there is none.
    pub fn with_layouts(config: EvacuationConfig, layouts: Vec<Layout>) -> Result<Self, EvacuationError> {
        config.rules.validate()?;
        if layouts.is_empty() {
            return Err(crate::timing::field_error("buildings", "must hold at least one building", "none"));
        }
        let buildings: Result<Vec<_>, _> =
            layouts.into_iter().map(|layout| Building::new(layout, &config.rules)).collect();
        Ok(Self { rules: Arc::new(config.rules.clone()), buildings: Arc::new(buildings?), config })
    }

    /// `count` buildings to evaluate in: unseen ones where buildings are drawn at random, otherwise the same.
    ///
    /// # Errors
    /// [`EvacuationError`] where a building cannot be used.
    pub fn for_evaluation(&self, count: usize) -> Result<Self, EvacuationError> {
        match &self.config.buildings {
            Buildings::Reference(_) | Buildings::File(_) => Ok(self.clone()),
            Buildings::Generated(generated) => {
                Self::with_layouts(self.config.clone(), generated.layouts(generated.evaluate, count)?)
            }
        }
    }

    /// The settings.
    pub fn config(&self) -> &EvacuationConfig {
        &self.config
    }

    /// The buildings, in the order of their index in observations.
    pub fn buildings(&self) -> &[Building] {
        &self.buildings
    }

    /// Which columns of an observation are what.
    pub fn columns(&self) -> Columns {
        Columns::new(self.buildings.iter().map(Building::n_nodes).max().unwrap_or(0), &self.rules)
    }

    /// The environments with the global indices `envs`; the index, not the place, addresses random numbers.
    pub fn batch(&self, envs: Range<usize>) -> EvacuationBatch {
        EvacuationBatch::new(self.rules.clone(), self.buildings.clone(), envs)
    }

    /// Plays the first episode of the environments `envs` under `seed`; the same building, team, people and fire for
    /// every `control`. Keeps the traces of the first `n_traces`.
    ///
    /// # Errors
    /// [`EvacuationError::Env`] where a policy chooses an option that its mask forbids.
    pub fn evaluate(
        &self,
        mut control: Control<'_>,
        envs: Range<usize>,
        seed: u64,
        n_traces: usize,
    ) -> Result<Vec<Outcome>, EvacuationError> {
        let mut episodes: Vec<Running> =
            envs.enumerate().map(|(place, env)| Running::new(self, env, seed, place < n_traces)).collect();
        match &mut control {
            Control::Rule(rule) => {
                for episode in &mut episodes {
                    episode.obey(self, *rule)?;
                }
            }
            Control::Policy(policy) => self.follow(policy, &mut episodes)?,
        }
        Ok(episodes.into_iter().map(|episode| episode.outcome(self)).collect())
    }

    /// Plays all episodes side by side, as one batch of rows.
    fn follow(&self, policy: &mut PolicyFn<'_>, episodes: &mut [Running]) -> Result<(), EvacuationError> {
        let columns = self.columns();
        let mut templates: Vec<Template> = self.buildings.iter().map(Template::new).collect();
        loop {
            let mut open: Vec<&mut Running> =
                episodes.iter_mut().filter(|episode| episode.world.state.end.is_none()).collect();
            if open.is_empty() {
                return Ok(());
            }
            let mut obs = Array2::zeros((open.len(), columns.width()));
            let mut mask = Array2::zeros((open.len(), columns.nodes + 1));
            let mut actions = Array2::zeros((open.len(), 1));
            let mut scratch = Vec::new();
            for (row, episode) in open.iter().enumerate() {
                let (world, mut values) = (&episode.world, obs.row_mut(row));
                let values = values.as_slice_mut().expect("a new array is in standard layout");
                templates[world.state.building as usize].write(world, &columns, values);
                write_mask(world, &mut scratch, mask.row_mut(row));
            }
            policy(obs.view(), mask.view(), actions.view_mut());
            for (row, episode) in open.iter_mut().enumerate() {
                let option = batch_option(&episode.world, actions[[row, 0]], columns.nodes);
                episode.play(option.ok_or_else(|| illegal(actions[[row, 0]], episode.world.turn(), episode.env))?)?;
            }
        }
    }

    /// The world of environment `env` at the beginning of its first episode.
    pub(crate) fn world(&self, env: usize, seed: u64) -> World {
        let mut world = World::new(self.rules.clone(), self.buildings.clone());
        world.begin(&mut episode_rng(seed, env as u64, 0));
        world
    }

    /// The ticks that no team can beat in this episode, whose world stands at its beginning.
    fn bound_ticks(&self, mut world: World) -> u32 {
        let building = &self.buildings[world.state.building as usize];
        let n_crew = world.state.crew.len();
        if !self.rules.hazards.enabled {
            return building.bound_ticks(n_crew) as u32;
        }
        let starts = building.layout().starts(n_crew);
        let problem = SweepProblem::in_ticks(building.layout(), &self.rules.timing, self.rules.sweeps, &starts);
        let problem = problem.expect("a building that is ready is valid");
        // The fire alone, which burns as it will whatever responders do.
        let mut lost_at = vec![u32::MAX; building.n_nodes()];
        let last = (self.rules.timeout_secs / self.rules.timing.tick_secs).ceil() as u32;
        for tick in 0..=last {
            for (node, at) in lost_at.iter_mut().enumerate() {
                if *at == u32::MAX && world.state.lost[node] {
                    *at = tick;
                }
            }
            world.burn_alone();
        }
        let losses = |tick: u32| (0..lost_at.len()).filter(|node| lost_at[*node] <= tick).collect();
        lower_bound_with_losses(&problem, losses).expect("the problem counts whole ticks")
    }
}

/// An episode that is being played.
struct Running {
    world: World,
    trace: Option<Trace>,
    env: usize,
    seed: u64,
    total: Played,
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
        Self { world, trace, env, seed, total: Played::default(), episode_return: 0.0, decisions: 0 }
    }

    /// Plays to the end by a rule.
    fn obey(&mut self, scenario: &Evacuation, rule: Rule) -> Result<(), EvacuationError> {
        let attempts = if rule == Rule::Hindsight { ATTEMPTS } else { 1 };
        let traced = self.trace.is_some();
        for attempt in 0..attempts {
            let rule = if attempt == 0 && rule == Rule::Hindsight { Rule::Greedy } else { rule };
            let rng = named_rng(self.seed, "controller", (self.env * ATTEMPTS + attempt) as u64);
            let mut played = Self::new(scenario, self.env, self.seed, traced);
            let mut controller = Controller::new(rule, rng);
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

    fn play(&mut self, option: usize) -> Result<(), EvacuationError> {
        if let Some(trace) = &mut self.trace {
            let node = (option < self.world.wait_option()).then_some(option as u16);
            let (tick, responder) = (self.world.state.tick, self.world.turn() as u16);
            trace.decisions.push(DecisionFrame { tick, responder, node });
        }
        let played = self.world.step(option, self.trace.as_mut());
        let played = played.map_err(|_| illegal(option as f32, self.world.turn(), self.env))?;
        self.decisions += 1;
        self.episode_return += played.reward;
        self.total.add(&played);
        Ok(())
    }

    fn outcome(self, scenario: &Evacuation) -> Outcome {
        let (state, total) = (&self.world.state, &self.total);
        let crew_ticks = f64::from(state.tick) * state.crew.len() as f64;
        Outcome {
            building: self.world.building().layout().name.clone(),
            n_responders: state.crew.len(),
            end: state.end.expect("it was played to its end"),
            episode_return: self.episode_return,
            decisions: self.decisions,
            ticks: state.tick,
            sweep_ticks: state.swept_at,
            bound_ticks: scenario.bound_ticks(scenario.world(self.env, self.seed)),
            people: state.people.len(),
            rescued: total.rescued,
            dead: total.died,
            left_behind: total.left_behind,
            duplicate_sweeps: total.duplicates,
            idle_share: f64::from(total.idle_ticks) / crew_ticks.max(1.0),
            tick_secs: scenario.rules.timing.tick_secs,
            trace: self.trace,
        }
    }
}
