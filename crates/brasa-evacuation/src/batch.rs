//! Buildings as a batch of environments.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{
    Autoreset, Ending, EnvError, EnvSpec, InvalidField, MaskSpec, Simulation, Space, StateTag, StepOut, View,
    episode_rng,
};
use serde::{Deserialize, Serialize};

use crate::building::Building;
use crate::config::RulesConfig;
use crate::observe::{Columns, Template};
use crate::world::{End, State, StepResult, World};

/// Names of the figures of a step, in the order of [`StepOut::info`].
pub(crate) const INFO: [&str; 13] = [
    "elapsed_secs",
    "unswept_secs",
    "bound_secs",
    "people",
    "rescued_people",
    "dead_people",
    "people_left_inside",
    "duplicate_sweeps",
    "idle_secs",
    "crew_harm",
    "success",
    "all_down",
    "timeout",
];

/// Buildings as a batch of environments; [`EvacuationSimulation`] describes them.
///
/// ```
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use brasa_evacuation::{Evacuation, EvacuationBatch, EvacuationConfig};
/// use ndarray::Array2;
///
/// let mut envs: EvacuationBatch = Evacuation::new(EvacuationConfig::default())?.batch(0..2);
/// let mut slabs = BatchSlabs::new(envs.spec());
/// envs.reset(7, &mut slabs)?;
/// // Waiting is the last action, and always legal for a responder that is free.
/// let wait = Array2::from_elem((2, 1), (slabs.mask.ncols() - 1) as f32);
/// assert_eq!(slabs.mask.column(slabs.mask.ncols() - 1).to_vec(), [1.0, 1.0]);
/// envs.step(wait.view(), &mut slabs)?;
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub type EvacuationBatch = Autoreset<EvacuationSimulation>;

/// Environments in which responders sweep buildings.
///
/// # Rows
/// Each environment has one row: the responder that decides. Responders that are free at the same tick decide one
/// after the other, without time in between, so busy responders need no rows.
///
/// # Actions
/// One action per node of the largest building, and a last one to wait. Action v is: go to node v and search it, or
/// escort people there if it is an exit. With primitive actions it is: move to the neighbor v, or search here.
/// The mask has the legal actions.
///
/// # Steps
/// A step lasts until a responder has a choice again. Its duration is in [`StepOut::elapsed`], in s, or in ticks
/// in the hop model; it is 0 between two decisions at the same tick.
///
/// # Observations
/// See [`crate::observe`].
///
/// # Episodes
/// End when the goal is reached, every responder is down, or the time is up. All three are terminal: whoever is inside at the
/// time limit is lost, so nothing comes after it.
///
/// ```
/// use brasa_env::EnvBatch;
/// use brasa_evacuation::{Evacuation, EvacuationConfig, Layout};
///
/// // The batch of a scenario is this simulation with automatic resets.
/// let envs = Evacuation::new(EvacuationConfig::default())?.batch(0..4);
/// // One row per environment, and an action for each node of the office and to wait.
/// assert_eq!((envs.spec().n_envs, envs.spec().n_agents), (4, 1));
/// assert_eq!(envs.spec().action.n_actions(), Layout::office().nodes.len() + 1);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug)]
pub struct EvacuationSimulation {
    worlds: Vec<World>,
    templates: Vec<Template>,
    rules: Arc<RulesConfig>,
    columns: Columns,
    spec: EnvSpec,
    first_env: usize,
    seed: u64,
    episodes: Vec<u64>,
    /// Scratch: the mask of one responder.
    mask: Vec<bool>,
}

/// The state for a resume.
#[derive(Serialize, Deserialize)]
struct Saved {
    seed: u64,
    episodes: Vec<u64>,
    states: Vec<State>,
}

/// The constants of `n_envs` environments in `n_buildings` buildings.
pub(crate) fn batch_spec(columns: Columns, n_buildings: usize, n_envs: usize) -> EnvSpec {
    EnvSpec {
        mask: Some(MaskSpec::default()),
        has_elapsed: true,
        truncation_interval: EnvSpec::NEVER,
        // Observations contain indices of buildings and nodes.
        fixed_obs: true,
        info_names: INFO.map(str::to_owned).to_vec(),
        ..EnvSpec::new(columns.space(n_buildings), Space::Discrete(columns.nodes + 1), n_envs)
    }
}

impl EvacuationSimulation {
    pub(crate) fn new(rules: Arc<RulesConfig>, buildings: Arc<Vec<Building>>, envs: Range<usize>) -> Self {
        let nodes = buildings.iter().map(Building::n_nodes).max().unwrap_or(0);
        let columns = Columns::new(nodes, &rules);
        Self {
            templates: buildings.iter().map(Template::new).collect(),
            worlds: envs.clone().map(|_| World::new(rules.clone(), buildings.clone())).collect(),
            spec: batch_spec(columns, buildings.len(), envs.len()),
            first_env: envs.start,
            seed: 0,
            episodes: vec![0; envs.len()],
            mask: Vec::new(),
            rules,
            columns,
        }
    }

    /// The rules.
    pub fn rules(&self) -> &RulesConfig {
        &self.rules
    }

    /// The layout of a row.
    pub fn columns(&self) -> Columns {
        self.columns
    }

    /// Writes observation and mask of environment `env`.
    fn observe(&mut self, env: usize, view: View<'_>) {
        let world = &self.worlds[env];
        self.templates[world.state.building as usize].write(world, &self.columns, view.obs);
        write_mask(world, &mut self.mask, view.mask);
    }

    fn figures(world: &World, played: &StepResult) -> [f64; INFO.len()] {
        let dt = world.rules.timing.tick_secs;
        let secs = |ticks: u32| f64::from(ticks) * dt;
        let n_crew = world.state.crew.len();
        let ended = world.state.end.is_some();
        let at_end = |end: End| f64::from(u8::from(world.state.end == Some(end)));
        [
            secs(played.ticks),
            secs(played.sweep_ticks),
            if ended { world.building().bound_ticks(n_crew) * dt } else { 0.0 },
            if ended { world.state.people.len() as f64 } else { 0.0 },
            f64::from(played.rescued),
            f64::from(played.died),
            f64::from(played.left_behind),
            f64::from(played.duplicates),
            secs(played.idle_ticks),
            played.crew_harm,
            at_end(End::Success),
            at_end(End::AllDown),
            at_end(End::Timeout),
        ]
    }
}

/// The mask of the deciding responder over the actions of the batch; the last one is to wait.
pub(crate) fn write_mask(world: &World, scratch: &mut Vec<bool>, mask: &mut [f32]) {
    mask.fill(0.0);
    let (wait, n) = (mask.len() - 1, world.wait_option());
    scratch.resize(n + 1, false);
    world.legal(world.turn(), &mut scratch[..=n]);
    for (slot, legal) in mask.iter_mut().zip(&scratch[..n]) {
        *slot = f32::from(u8::from(*legal));
    }
    mask[wait] = f32::from(u8::from(scratch[n]));
}

/// The option of a world for an action of a batch whose largest building has `nodes`; `None` for an invalid action.
pub(crate) fn batch_option(world: &World, action: f32, nodes: usize) -> Option<usize> {
    if !(action >= 0.0 && action.fract() == 0.0) {
        return None;
    }
    match action as usize {
        wait if wait == nodes => Some(world.wait_option()),
        node => (node < world.wait_option()).then_some(node),
    }
}

/// The error for an action that the mask forbids.
pub(crate) fn illegal(action: f32, responder: usize, env: usize) -> EnvError {
    EnvError::Argument(InvalidField::new(
        "actions",
        "must be options that the mask allows",
        format!("{action} for responder {responder} of environment {env}"),
    ))
}

/// Tag of saved states; the version changes with their content.
const TAG: StateTag = StateTag::new("evacuation", 1);

impl Simulation for EvacuationSimulation {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn episode(&self, env: usize) -> u64 {
        self.episodes[env]
    }

    fn start(&mut self, env: usize, episode: u64, view: View<'_>) -> Result<(), EnvError> {
        self.episodes[env] = episode;
        let mut rng = episode_rng(self.seed, (self.first_env + env) as u64, episode);
        self.worlds[env].begin(&mut rng);
        self.observe(env, view);
        Ok(())
    }

    fn step(&mut self, env: usize, actions: &[f32], next: View<'_>, out: StepOut<'_>) -> Result<Ending, EnvError> {
        let (world, action) = (&mut self.worlds[env], actions[0]);
        let option = batch_option(world, action, self.columns.nodes);
        let Some(Ok(played)) = option.map(|option| world.step(option, None)) else {
            return Err(illegal(action, world.turn(), self.first_env + env));
        };
        out.reward[0] = played.reward as f32;
        out.elapsed[0] = world.duration(played.ticks) as f32;
        out.info.copy_from_slice(&Self::figures(world, &played));
        let ending = Ending::of(world.state.end.is_some(), false);
        self.observe(env, next);
        Ok(ending)
    }

    fn save(&self) -> Vec<u8> {
        let states = self.worlds.iter().map(|world| world.state.clone()).collect();
        let saved = Saved { seed: self.seed, episodes: self.episodes.clone(), states };
        TAG.encode(self.spec.n_envs, &(&*self.rules, saved))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let fail = |reason: String| EnvError::State { reason };
        let (rules, saved): (RulesConfig, Saved) = TAG.decode(self.spec.n_envs, bytes)?;
        if rules != *self.rules {
            return Err(fail("it belongs to other rules".into()));
        }
        for (world, state) in self.worlds.iter_mut().zip(saved.states) {
            let building = world.buildings.get(state.building as usize);
            if building.is_none_or(|building| building.n_nodes() != state.fire.len()) {
                return Err(fail("it belongs to other buildings".into()));
            }
            world.restore(state);
        }
        (self.seed, self.episodes) = (saved.seed, saved.episodes);
        Ok(())
    }
}
