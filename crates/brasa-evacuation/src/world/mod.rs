//! The simulation of one episode: its state, and a tick.

mod crew;
mod hazards;
mod knowledge;
mod paths;
mod people;
#[cfg(test)]
mod tests;
mod ways;

use std::sync::Arc;

use brasa_env::EnvRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::building::Building;
use crate::config::RulesConfig;

pub(crate) use crew::{Illegal, Responder, Task};
pub(crate) use knowledge::{Belief, Record};
pub(crate) use people::People;
pub use people::PersonState;

/// No node, or no leader.
pub(crate) const NONE: u16 = u16::MAX;

/// Everything that a tick reads and changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// Index of the building.
    pub building: u32,
    /// Ticks since the alarm.
    pub tick: u32,
    /// The random stream of the fire, separate so that the fire does not depend on responders.
    hazard_rng: EnvRng,
    radio_rng: EnvRng,
    /// Intensity of fire at each node; 0 for no fire.
    pub fire: Vec<f32>,
    /// Density of smoke at each node, 0 to 1.
    pub smoke: Vec<f32>,
    /// Whether each node is impassable, or cut off from every exit by impassable nodes; permanent.
    pub lost: Vec<bool>,
    /// Per node, bit r is set if responder r has swept it.
    pub swept_by: Vec<u8>,
    pub people: People,
    pub crew: Vec<Responder>,
    /// One belief for all, or one for each responder.
    pub beliefs: Vec<Belief>,
    mail: Vec<knowledge::Mail>,
    /// Time from which each edge admits the next person.
    free_at: Vec<f32>,
    /// The responder that decides next.
    turn: u16,
    /// Tick at which the last room was swept.
    pub swept_at: Option<u32>,
    pub end: Option<End>,
}

/// Why an episode ended.
///
/// ```
/// # use brasa_env::{Evaluation, Scenario, Who};
/// # use brasa_evacuation::{Evacuation, EvacuationConfig};
/// # let mut config = EvacuationConfig::default();
/// # config.rules.hazards.enabled = false;
/// # let office = Evacuation::new(config)?;
/// # let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 5) };
/// # let outcome = office.evaluate(Who::Baseline("greedy"), &evaluation)?.remove(0);
/// # let trace = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<brasa_evacuation::Trace>());
/// # let trace = trace.expect("it was asked for");
/// use brasa_evacuation::End;
///
/// // `trace` is of an episode without fire.
/// assert_eq!(trace.end, Some(End::Success));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The goal was reached.
    Success,
    /// All responders are down.
    AllDown,
    /// The time limit was reached.
    Timeout,
}

/// Figures of the ticks between two decisions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct StepResult {
    pub ticks: u32,
    pub reward: f64,
    /// Ticks with unswept rooms.
    pub sweep_ticks: u32,
    pub rescued: u32,
    pub died: u32,
    pub left_behind: u32,
    /// Searches of rooms that needed no search.
    pub duplicates: u32,
    /// Idle ticks, summed over responders.
    pub idle_ticks: u32,
    /// Health that responders lost.
    pub crew_harm: f64,
    /// Weights of people that came out, and of those that died or were left behind.
    rescued_weight: f64,
    dead_weight: f64,
}

impl StepResult {
    /// Adds the figures of the next ticks.
    pub fn add(&mut self, next: &Self) {
        self.ticks += next.ticks;
        self.reward += next.reward;
        self.sweep_ticks += next.sweep_ticks;
        self.rescued += next.rescued;
        self.died += next.died;
        self.left_behind += next.left_behind;
        self.duplicates += next.duplicates;
        self.idle_ticks += next.idle_ticks;
        self.crew_harm += next.crew_harm;
        self.rescued_weight += next.rescued_weight;
        self.dead_weight += next.dead_weight;
    }
}

/// The simulation of a building in an episode.
#[derive(Debug)]
pub(crate) struct World {
    pub rules: Arc<RulesConfig>,
    pub buildings: Arc<Vec<Building>>,
    pub state: State,
    scratch: Scratch,
}

/// Reused memory, and values derived from the state.
#[derive(Debug, Default)]
struct Scratch {
    /// Lengths of ways of occupants to the nearest exit around fires, without queues.
    exit_field: Vec<f64>,
    /// Times from the exits through passable nodes.
    cut_off: Vec<f64>,
    paths: Vec<paths::Paths>,
    finder: paths::Finder,
    queues: ways::Queues,
    way_finder: ways::WayFinder,
    change: Vec<f32>,
    mask: Vec<bool>,
}

/// Records the states of a world.
pub(crate) trait Recorder {
    /// Adds the current state.
    fn record(&mut self, world: &World);

    /// Replaces the latest state by the current one, after decisions at the same tick.
    fn record_again(&mut self, world: &World);
}

impl World {
    /// A world over a pool of buildings; call [`World::begin`] before anything else.
    pub fn new(rules: Arc<RulesConfig>, buildings: Arc<Vec<Building>>) -> Self {
        let rng = EnvRng::seed_from_u64(0);
        let state = State {
            building: 0,
            tick: 0,
            hazard_rng: rng.clone(),
            radio_rng: rng.clone(),
            fire: vec![],
            smoke: vec![],
            lost: vec![],
            swept_by: vec![],
            people: People::default(),
            crew: vec![],
            beliefs: vec![],
            mail: vec![],
            free_at: vec![],
            turn: 0,
            swept_at: None,
            end: None,
        };
        Self { rules, buildings, state, scratch: Scratch::default() }
    }

    /// Continues from a saved state.
    pub fn restore(&mut self, state: State) {
        self.state = state;
        self.after_fire();
        self.forget_paths();
        self.update_beliefs();
        self.find_paths(self.turn());
    }

    /// The building of this episode.
    pub fn building(&self) -> &Building {
        &self.buildings[self.state.building as usize]
    }

    /// Starts an episode; all random numbers come from `rng`.
    pub fn begin(&mut self, rng: &mut EnvRng) {
        let rules = self.rules.clone();
        let buildings = self.buildings.clone();
        let index = rng.random_range(0..buildings.len());
        let building = &buildings[index];
        let n_nodes = building.n_nodes();
        let [fewest, most] = rules.responders;
        let n_responders = rng.random_range(fewest..=most);
        let starts = building.layout.starts(n_responders);
        let state = &mut self.state;
        state.building = index as u32;
        (state.tick, state.swept_at, state.end) = (0, None, None);
        refill(&mut state.fire, n_nodes, 0.0);
        refill(&mut state.smoke, n_nodes, 0.0);
        refill(&mut state.lost, n_nodes, false);
        refill(&mut state.swept_by, n_nodes, 0);
        refill(&mut state.free_at, building.layout.edges.len(), 0.0);
        state.mail.clear();
        state.crew.clear();
        state.crew.extend(starts.iter().map(|start| Responder::new(*start)));
        // Sampled even without fire, so that people are the same with and without fire.
        let ignited = *building.rooms.choose(rng).expect("a valid layout has a room");
        state.people.begin(building, &rules, rng);
        state.hazard_rng = EnvRng::seed_from_u64(rng.random());
        state.radio_rng = EnvRng::seed_from_u64(rng.random());
        if self.rules.hazards.enabled {
            self.ignite(ignited);
        }
        self.after_fire();
        self.forget_paths();
        self.begin_beliefs();
        self.update_beliefs();
        self.state.turn = 0;
        if !self.pass_turn(0) {
            self.find_paths(0);
        }
    }

    /// The responder that decides next, or the last one after the end of the episode.
    pub fn turn(&self) -> usize {
        self.state.turn as usize
    }

    /// Applies the decision of the current responder, then simulates until another one has a choice, at the same
    /// tick or later, or the episode ends.
    ///
    /// Responders that are free at the same tick decide one after the other; each knows the reports of the others.
    pub fn step(&mut self, option: usize, recorder: Option<&mut dyn Recorder>) -> Result<StepResult, Illegal> {
        let turn = self.turn();
        self.decide(turn, option)?;
        if self.pass_turn(turn + 1) {
            return Ok(StepResult::default());
        }
        Ok(self.advance(recorder))
    }

    /// Selects the first responder from `first` on with a choice; returns whether there is one.
    fn pass_turn(&mut self, first: usize) -> bool {
        let Some(r) = (first..self.state.crew.len()).find(|r| self.has_choice(*r)) else { return false };
        self.state.turn = r as u16;
        self.find_paths(r);
        true
    }

    /// Simulates until a responder has a choice or the episode ends.
    fn advance(&mut self, mut recorder: Option<&mut dyn Recorder>) -> StepResult {
        let mut played = StepResult::default();
        let before = self.potential();
        if let Some(recorder) = recorder.as_deref_mut() {
            recorder.record_again(self);
        }
        loop {
            self.tick(&mut played);
            if let Some(recorder) = recorder.as_deref_mut() {
                recorder.record(self);
            }
            if self.state.end.is_some() {
                self.update_beliefs();
                self.find_paths(self.turn());
                break;
            }
            if self.state.crew.iter().any(Responder::is_free) {
                self.update_beliefs();
                if self.pass_turn(0) {
                    break;
                }
            }
        }
        played.reward = self.reward(&played, before);
        played
    }

    fn tick(&mut self, played: &mut StepResult) {
        self.state.tick += 1;
        played.ticks += 1;
        played.sweep_ticks += u32::from(self.state.swept_at.is_none());
        self.move_crew(played);
        self.burn();
        self.move_people(played);
        self.harm(played);
        self.share_knowledge();
        self.forget_paths();
        self.check_end(played);
    }

    fn check_end(&mut self, played: &mut StepResult) {
        let building = &self.buildings[self.state.building as usize];
        let swept = building.rooms.iter().all(|room| self.state.lost[*room] || self.sweeps_left(*room) == 0);
        let state = &mut self.state;
        if swept && state.swept_at.is_none() {
            state.swept_at = Some(state.tick);
        }
        let clear = !self.rules.goal.counts_people() || state.people.all_settled(&state.lost);
        state.end = if swept && clear {
            Some(End::Success)
        } else if state.crew.iter().all(|responder| responder.is_down()) {
            Some(End::AllDown)
        } else if f64::from(state.tick) * self.rules.timing.tick_secs >= self.rules.timeout_secs {
            Some(End::Timeout)
        } else {
            None
        };
        // Whoever is still inside is left behind, whatever ended it: the time limit is a rule like any other.
        if state.end.is_some() && self.rules.goal.counts_people() {
            for person in 0..state.people.len() {
                if state.people.is_inside(person) {
                    played.left_behind += 1;
                    played.dead_weight += self.rules.weight(building.layout.occupants[person].mobility);
                }
            }
        }
    }

    /// Remaining sweeps of `node`, each by another responder.
    pub fn sweeps_left(&self, node: usize) -> u32 {
        let n_active = self.state.crew.iter().filter(|responder| !responder.is_down()).count();
        let needed = self.rules.sweeps.required(&self.building().layout.nodes[node], n_active) as u32;
        needed.saturating_sub(self.state.swept_by[node].count_ones())
    }

    /// Minus the work that is left, as a share of the bound; 0 once the episode has ended.
    fn potential(&self) -> f64 {
        if self.state.end.is_some() {
            return 0.0;
        }
        let building = self.building();
        let open = building.rooms.iter().filter(|room| !self.state.lost[**room]);
        let work: f64 = open.map(|room| building.work[*room] * f64::from(self.sweeps_left(*room))).sum();
        -work / (self.state.crew.len() as f64 * building.bound_ticks(self.state.crew.len()))
    }

    fn reward(&self, played: &StepResult, potential_before: f64) -> f64 {
        let (weights, building) = (&self.rules.reward, self.building());
        let elapsed = f64::from(played.ticks) / building.bound_ticks(self.state.crew.len());
        let people = building.total_weight.max(1e-9);
        let outcome = (weights.rescue * played.rescued_weight - weights.death * played.dead_weight) / people;
        -weights.time * elapsed + outcome + weights.potential * (self.potential() - potential_before)
    }

    /// `ticks` in the time unit of the discount: ticks in the hop model, s otherwise.
    pub fn duration(&self, ticks: u32) -> f64 {
        match self.rules.timing.motion {
            crate::Motion::Hop => f64::from(ticks),
            crate::Motion::Metric => f64::from(ticks) * self.rules.timing.tick_secs,
        }
    }
}

/// Fills `slab` with `n` times `value`, reusing its memory.
fn refill<T: Clone>(slab: &mut Vec<T>, n: usize, value: T) {
    slab.clear();
    slab.resize(n, value);
}
