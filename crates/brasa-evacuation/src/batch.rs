//! Buildings as a batch of environments.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, InvalidField, MaskSpec, Space, StateTag, episode_rng};
use ndarray::{Array2, ArrayView2, ArrayViewMut1};
use serde::{Deserialize, Serialize};

use crate::building::Building;
use crate::config::RulesConfig;
use crate::observe::{Columns, Template};
use crate::world::{End, Played, State, World};

/// Names of the figures of a step, in the order of [`BatchSlabs::info`].
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

/// A batch of environments in which responders sweep buildings.
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
/// A step lasts until a responder has a choice again. Its duration is in [`BatchSlabs::elapsed`], in s, or in ticks
/// in the hop model; it is 0 between two decisions at the same tick.
///
/// # Observations
/// See [`crate::observe`].
///
/// # Episodes
/// End when the goal is reached, every responder is down, or the time is up. All three are terminal: whoever is inside at the
/// time limit is lost, so nothing comes after it.
pub struct EvacuationBatch {
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

impl EvacuationBatch {
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

    fn begin(&mut self, env: usize, episode: u64) {
        self.episodes[env] = episode;
        let mut rng = episode_rng(self.seed, (self.first_env + env) as u64, episode);
        self.worlds[env].begin(&mut rng);
    }

    /// Writes observation and mask of environment `env`.
    fn observe(&mut self, env: usize, obs: &mut Array2<f32>, mask: &mut Array2<f32>) {
        let world = &self.worlds[env];
        let mut values = obs.row_mut(env);
        let values = values.as_slice_mut().expect("slabs are in standard layout");
        self.templates[world.state.building as usize].write(world, &self.columns, values);
        write_mask(world, &mut self.mask, mask.row_mut(env));
    }

    fn figures(world: &World, played: &Played) -> [f64; INFO.len()] {
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
pub(crate) fn write_mask(world: &World, scratch: &mut Vec<bool>, mut mask: ArrayViewMut1<f32>) {
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

impl EnvBatch for EvacuationBatch {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.seed = seed;
        for env in 0..self.worlds.len() {
            self.begin(env, 0);
            self.observe(env, &mut out.obs, &mut out.mask);
        }
        Ok(())
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        assert_eq!(actions.dim(), (self.worlds.len(), 1), "shape of the actions");
        for env in 0..self.worlds.len() {
            let (world, action) = (&mut self.worlds[env], actions[[env, 0]]);
            let option = batch_option(world, action, self.columns.nodes);
            let Some(Ok(played)) = option.map(|option| world.step(option, None)) else {
                return Err(illegal(action, world.turn(), self.first_env + env));
            };
            let end = world.state.end;
            out.reward[env] = played.reward as f32;
            out.terminated[env] = end.is_some();
            out.truncated[env] = false;
            out.elapsed[env] = world.duration(played.ticks) as f32;
            let figures = Self::figures(world, &played);
            out.info.row_mut(env).iter_mut().zip(figures).for_each(|(slot, figure)| *slot = figure);
            self.observe(env, &mut out.next_obs, &mut out.next_mask);
            if end.is_some() {
                self.begin(env, self.episodes[env] + 1);
                self.observe(env, &mut out.obs, &mut out.mask);
            } else {
                out.obs.row_mut(env).assign(&out.next_obs.row(env));
                out.mask.row_mut(env).assign(&out.next_mask.row(env));
            }
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.begin(env, self.episodes[env] + 1);
        self.observe(env, &mut out.obs, &mut out.mask);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        let states = self.worlds.iter().map(|world| world.state.clone()).collect();
        let saved = Saved { seed: self.seed, episodes: self.episodes.clone(), states };
        TAG.encode(self.n_envs(), &(&*self.rules, saved))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let fail = |reason: String| EnvError::State { reason };
        let (rules, saved): (RulesConfig, Saved) = TAG.decode(self.n_envs(), bytes)?;
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
