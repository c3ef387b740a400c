//! The people inside: awareness, walking, waiting for help, escort, rescue and death.

use brasa_env::EnvRng;
use rand::RngExt;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use super::ways::{NO_EDGE, WayOut};
use super::{NONE, StepResult, World, refill};
use crate::building::Building;
use crate::config::RulesConfig;
use crate::{Mobility, NodeKind};

/// The state of a person.
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
/// use brasa_evacuation::PersonState;
///
/// // `trace` is of an episode that ended well.
/// let last = trace.frames.last().expect("an episode has frames");
/// assert!(last.people.iter().all(|person| person.state == PersonState::Out));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PersonState {
    /// Is not aware of the danger.
    Unaware,
    /// Walks to an exit.
    Walking,
    /// Is aware, and waits for help.
    Waiting,
    /// Is led by an adult.
    Led,
    /// Is escorted or carried by a responder.
    Escorted,
    /// Is outside.
    Out,
    /// Is dead.
    Dead,
}

/// All people of a building, one array per property.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct People {
    pub state: Vec<PersonState>,
    /// The node of a person, or the start of the edge that it walks along.
    pub node: Vec<u16>,
    /// The end of the edge that it walks along.
    pub to: Vec<u16>,
    /// Time until it arrives there, in s.
    pub left_secs: Vec<f32>,
    /// The edge that a walking person stands in front of, or walks towards.
    pub(super) door: Vec<u32>,
    /// Health, 0 to 100.
    pub health: Vec<f32>,
    /// Tick at which it reacts to the alarm.
    aware_at: Vec<u32>,
    /// The leader: a person, or a responder for escorted people.
    pub leader: Vec<u16>,
}

impl People {
    pub(super) fn begin(&mut self, building: &Building, rules: &RulesConfig, rng: &mut EnvRng) {
        let occupants = &building.layout.occupants;
        let n = occupants.len();
        refill(&mut self.state, n, PersonState::Unaware);
        refill(&mut self.to, n, NONE);
        refill(&mut self.left_secs, n, 0.0);
        refill(&mut self.door, n, NO_EDGE);
        refill(&mut self.leader, n, NONE);
        self.node.clear();
        self.node.extend(occupants.iter().map(|person| person.node as u16));
        self.health.clear();
        self.health.extend(occupants.iter().map(|person| person.health as f32));
        self.aware_at.clear();
        let config = &rules.occupants;
        self.aware_at.extend((0..n).map(|_| {
            let (draw, hears): (f64, f64) = (rng.sample(StandardNormal), rng.random());
            let secs = (config.alarm_mean_secs + config.alarm_std_secs * draw).max(0.0);
            if hears < config.unaware_share { u32::MAX } else { (secs / rules.timing.tick_secs) as u32 }
        }));
    }

    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Whether `person` is alive and in the building.
    pub fn is_inside(&self, person: usize) -> bool {
        !matches!(self.state[person], PersonState::Out | PersonState::Dead)
    }

    /// Whether `person` can be found at its node: alive, inside, and not on its way out.
    pub fn is_present(&self, person: usize) -> bool {
        matches!(self.state[person], PersonState::Unaware | PersonState::Waiting)
    }

    /// Whether responder `r` escorts or carries `person`.
    pub(super) fn is_escorted_by(&self, person: usize, r: usize) -> bool {
        self.state[person] == PersonState::Escorted && self.leader[person] as usize == r
    }

    /// Whether every person is outside, dead, or in a lost place.
    pub(super) fn all_settled(&self, lost: &[bool]) -> bool {
        (0..self.len()).all(|person| !self.is_inside(person) || lost[self.node[person] as usize])
    }

    /// Whether `person` can walk out alone.
    pub(super) fn walks_alone(&self, person: usize, mobility: Mobility, rules: &RulesConfig) -> bool {
        rules.occupants.walks_alone[mobility.index()] && self.is_tenable(person, mobility, rules)
    }

    /// Whether `person` is well enough to walk.
    pub(super) fn is_tenable(&self, person: usize, mobility: Mobility, rules: &RulesConfig) -> bool {
        f64::from(self.health[person]) >= rules.occupants.tenable_health[mobility.index()]
    }

    /// Whether `person` is at a node and will not leave alone; a search by a responder finds unaware people.
    pub(super) fn needs_help(&self, person: usize, mobility: Mobility, rules: &RulesConfig, trapped: bool) -> bool {
        match self.state[person] {
            PersonState::Waiting => true,
            PersonState::Unaware => !self.walks_alone(person, mobility, rules) || trapped,
            _ => false,
        }
    }
}

impl World {
    pub(super) fn mobility(&self, person: usize) -> Mobility {
        self.building().layout.occupants[person].mobility
    }

    /// One tick of all people that are not escorted by a responder.
    pub(super) fn move_people(&mut self, played: &mut StepResult) {
        let dt = self.rules.timing.tick_secs as f32;
        self.form_queues();
        for person in 0..self.state.people.len() {
            match self.state.people.state[person] {
                PersonState::Unaware => self.notice(person),
                PersonState::Waiting => {
                    let alone = self.state.people.walks_alone(person, self.mobility(person), &self.rules);
                    let node = self.state.people.node[person] as usize;
                    if alone && self.scratch.exit_field[node].is_finite() {
                        self.state.people.state[person] = PersonState::Walking;
                    }
                }
                PersonState::Walking => self.walk(person, dt, played),
                _ => {}
            }
        }
    }

    fn notice(&mut self, person: usize) {
        let (state, occupants) = (&mut self.state, &self.rules.occupants);
        let node = state.people.node[person] as usize;
        let sees = f64::from(state.smoke[node]) > occupants.smoke_noticed || state.fire[node] > 0.0;
        if sees || state.tick >= state.people.aware_at[person] {
            self.make_aware(person);
        }
    }

    /// Makes `person` aware: it walks if it can, and waits otherwise.
    pub(super) fn make_aware(&mut self, person: usize) {
        if self.state.people.state[person] != PersonState::Unaware {
            return;
        }
        let alone = self.state.people.walks_alone(person, self.mobility(person), &self.rules);
        self.state.people.state[person] = if alone { PersonState::Walking } else { PersonState::Waiting };
    }

    /// A tick of `person`, which walks out alone.
    fn walk(&mut self, person: usize, dt: f32, played: &mut StepResult) {
        if self.state.people.to[person] == NONE {
            let node = self.state.people.node[person] as usize;
            if self.building().layout.nodes[node].kind == NodeKind::Exit {
                return self.leave(person, played);
            }
            self.set_out(person);
            // Walking begins in this tick, unless the path is closed or full.
            if self.state.people.to[person] == NONE {
                return;
            }
        }
        let people = &mut self.state.people;
        people.left_secs[person] -= dt;
        if people.left_secs[person] > 1e-4 {
            return;
        }
        let node = std::mem::replace(&mut people.to[person], NONE);
        people.node[person] = node;
        let follower = self.follower(person);
        if let Some(child) = follower {
            self.state.people.node[child] = node;
        }
        if self.building().layout.nodes[node as usize].kind == NodeKind::Exit {
            self.leave(person, played);
            if let Some(child) = follower {
                self.leave(child, played);
            }
        }
    }

    /// Enters the first edge of the way out of the least expected time, if there is one and the edge admits the person.
    fn set_out(&mut self, person: usize) {
        let node = self.state.people.node[person] as usize;
        let mobility = self.mobility(person);
        let mut speed = self.rules.occupants.speeds_m_per_s[mobility.index()];
        let alone = self.state.people.walks_alone(person, mobility, &self.rules);
        let Some(way) = alone.then(|| self.way_out(node, speed)).flatten() else {
            self.state.people.state[person] = PersonState::Waiting;
            self.state.people.door[person] = NO_EDGE;
            self.release_follower(person);
            return;
        };
        let WayOut { next, edge, then } = way;
        let now = self.state.tick as f32;
        if self.state.free_at[edge] > now {
            // Whoever stands in front of a door decides again at every tick.
            return self.queue_up(person, edge);
        }
        self.state.people.door[person] = then;
        if mobility == Mobility::Adult {
            self.take_child(person);
        }
        let group = 1 + usize::from(self.follower(person).is_some());
        let buildings = self.buildings.clone();
        let passage = &buildings[self.state.building as usize].layout.edges[edge];
        let flow_per_tick = self.rules.occupants.flow_per_m_s * passage.width_m * self.rules.timing.tick_secs;
        self.state.free_at[edge] = self.state.free_at[edge].max(now - 1.0) + group as f32 / flow_per_tick as f32;
        if let Some(child) = self.follower(person) {
            let led = self.rules.occupants.speeds_m_per_s[self.mobility(child).index()];
            speed = speed.min(led * self.rules.occupants.assisted_factor);
        }
        let speed = self.in_smoke(speed, node, next) * self.rules.timing.slope_factor(passage);
        self.state.people.left_secs[person] = (passage.length_m / speed) as f32;
        self.state.people.to[person] = next as u16;
    }

    /// `speed` in the smoke between two nodes.
    pub(super) fn in_smoke(&self, speed: f64, a: usize, b: usize) -> f64 {
        let smoke = f64::from(self.state.smoke[a].max(self.state.smoke[b]));
        let hazards = &self.rules.hazards;
        (speed * (1.0 - hazards.smoke_slowdown * smoke)).max(hazards.min_speed_m_per_s.min(speed))
    }

    /// The child that `person` leads.
    fn follower(&self, person: usize) -> Option<usize> {
        let people = &self.state.people;
        (0..people.len())
            .find(|other| people.state[*other] == PersonState::Led && people.leader[*other] as usize == person)
    }

    /// Whether an adult that leaves the place of `person` can take it along.
    pub(super) fn can_be_led(&self, person: usize) -> bool {
        self.rules.occupants.adults_lead_children
            && self.state.people.is_present(person)
            && self.mobility(person) == Mobility::Child
            && self.state.people.is_tenable(person, Mobility::Child, &self.rules)
    }

    fn take_child(&mut self, person: usize) {
        if self.follower(person).is_some() {
            return;
        }
        let people = &self.state.people;
        let here = people.node[person];
        let child = (0..people.len()).find(|other| people.node[*other] == here && self.can_be_led(*other));
        if let Some(child) = child {
            self.state.people.state[child] = PersonState::Led;
            self.state.people.leader[child] = person as u16;
        }
    }

    /// The child that `person` leads waits.
    fn release_follower(&mut self, person: usize) {
        if let Some(child) = self.follower(person) {
            self.state.people.state[child] = PersonState::Waiting;
            self.state.people.leader[child] = NONE;
        }
    }

    /// `person` is outside.
    pub(super) fn leave(&mut self, person: usize, played: &mut StepResult) {
        self.state.people.state[person] = PersonState::Out;
        self.state.people.leader[person] = NONE;
        played.rescued += 1;
        played.rescued_weight += self.rules.weight(self.mobility(person));
    }

    /// Fire and smoke injure all people in the building; the larger of the two injuries is used.
    pub(super) fn harm(&mut self, played: &mut StepResult) {
        if !self.rules.hazards.enabled {
            return;
        }
        let rules = self.rules.clone();
        let dt = rules.timing.tick_secs;
        let harm_at = |state: &super::State, node: usize, fire_harm: f64, smoke_harm: f64| {
            (f64::from(state.fire[node]) * fire_harm).max(f64::from(state.smoke[node]) * smoke_harm) * dt
        };
        for person in 0..self.state.people.len() {
            let node = self.state.people.node[person] as usize;
            if !self.state.people.is_inside(person) || (self.state.fire[node] <= 0.0 && self.state.smoke[node] <= 0.0) {
                continue;
            }
            let factor = rules.occupants.vulnerability[self.mobility(person).index()];
            let harm = harm_at(&self.state, node, rules.occupants.fire_harm_per_s, rules.occupants.smoke_harm_per_s);
            self.state.people.health[person] -= (harm * factor) as f32;
            if self.state.people.health[person] <= 1e-4 {
                self.die(person, played);
            }
        }
        for responder in 0..self.state.crew.len() {
            if self.state.crew[responder].is_down() {
                continue;
            }
            let node = self.state.crew[responder].node as usize;
            let harm = harm_at(&self.state, node, rules.crew.fire_harm_per_s, rules.crew.smoke_harm_per_s);
            played.crew_harm += harm;
            self.state.crew[responder].health -= harm as f32;
            if self.state.crew[responder].health <= 1e-4 {
                self.go_down(responder);
            }
        }
    }

    fn die(&mut self, person: usize, played: &mut StepResult) {
        self.release_follower(person);
        let people = &mut self.state.people;
        if people.state[person] == PersonState::Escorted {
            let responder = people.leader[person] as usize;
            self.state.crew[responder].escorting -= 1;
        }
        people.health[person] = 0.0;
        people.state[person] = PersonState::Dead;
        people.leader[person] = NONE;
        people.to[person] = NONE;
        played.died += 1;
        played.dead_weight += self.rules.weight(self.mobility(person));
    }
}
