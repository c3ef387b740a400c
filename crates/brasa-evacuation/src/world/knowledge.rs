//! Knowledge of responders about the building and each other.
//!
//! A belief has one record per node. Masks, observations and paths are computed from beliefs alone. With full knowledge
//! there is one belief, which is the true state.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{NONE, World, refill};
use crate::config::{Knowledge, MAX_RESPONDERS};

/// Knowledge about a node.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub fire: f32,
    pub smoke: f32,
    /// Tick of its observation, plus 1; 0 for never.
    pub seen: u32,
    /// Bit r is set if responder r has swept the node.
    pub swept_by: u8,
    /// Living people at the node that are not on their way out, by mobility.
    pub present: [u16; 3],
    /// Those of them that will not leave alone.
    pub helpless: u16,
    /// Their mean health, 0 to 100.
    pub health: u8,
}

/// The knowledge of one responder, or of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Belief {
    pub records: Vec<Record>,
    /// Last reported position of each responder.
    pub places: [u16; MAX_RESPONDERS],
    /// Last reported target of each responder.
    pub claims: [u16; MAX_RESPONDERS],
    /// Tick of this report, plus 1; 0 for never.
    pub heard: [u32; MAX_RESPONDERS],
    /// Whether fire or smoke is known anywhere.
    hazards: bool,
}

/// A message in transit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Mail {
    due: u32,
    to: u8,
    body: Body,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Body {
    Node(u16, Record),
    Responder { who: u8, place: u16, claim: u16, said: u32 },
}

impl Record {
    /// Number of people at the node.
    pub fn people(&self) -> u32 {
        self.present.iter().map(|n| u32::from(*n)).sum()
    }
}

impl Belief {
    /// Whether fire or smoke is known anywhere.
    pub fn has_hazards(&self) -> bool {
        self.hazards
    }

    /// Replaces a record by a newer one; known sweeps are kept.
    fn learn(&mut self, node: usize, record: Record) {
        let old = &mut self.records[node];
        let swept_by = old.swept_by | record.swept_by;
        if record.seen >= old.seen {
            *old = record;
        }
        old.swept_by = swept_by;
        self.hazards |= record.fire > 0.0 || record.smoke > 0.0;
    }
}

impl World {
    /// The belief of responder `r`.
    pub fn belief(&self, r: usize) -> &Belief {
        &self.state.beliefs[self.believer(r)]
    }

    fn believer(&self, r: usize) -> usize {
        match self.rules.knowledge.mode {
            Knowledge::Local => r,
            Knowledge::Full | Knowledge::Shared => 0,
        }
    }

    pub(super) fn begin_beliefs(&mut self) {
        let n_nodes = self.building().n_nodes();
        let n_beliefs = match self.rules.knowledge.mode {
            Knowledge::Local => self.state.crew.len(),
            Knowledge::Full | Knowledge::Shared => 1,
        };
        let mut places = [NONE; MAX_RESPONDERS];
        places.iter_mut().zip(&self.state.crew).for_each(|(place, responder)| *place = responder.node);
        let beliefs = &mut self.state.beliefs;
        beliefs.truncate(n_beliefs);
        beliefs.resize_with(n_beliefs, || Belief {
            records: vec![],
            places,
            claims: [NONE; MAX_RESPONDERS],
            heard: [0; MAX_RESPONDERS],
            hazards: false,
        });
        for belief in beliefs {
            refill(&mut belief.records, n_nodes, Record::default());
            // The entries of the others are known from the start.
            (belief.places, belief.claims) = (places, [NONE; MAX_RESPONDERS]);
            belief.heard = [1; MAX_RESPONDERS];
            belief.hazards = false;
        }
        for r in 0..self.state.crew.len() {
            self.look_around(r);
        }
    }

    /// The current state of `node`, without people.
    fn empty_record(&self, node: usize) -> Record {
        let state = &self.state;
        Record {
            fire: state.fire[node],
            smoke: state.smoke[node],
            seen: state.tick + 1,
            swept_by: state.swept_by[node],
            ..Record::default()
        }
    }

    /// The true record of `node`, as observed at the node.
    fn truth(&self, node: usize) -> Record {
        let state = &self.state;
        let mut record = self.empty_record(node);
        let trapped = self.scratch.exit_field.get(node).is_some_and(|time| time.is_infinite());
        let (people, layout, mut health) = (&state.people, &self.building().layout, 0.0);
        for person in 0..people.len() {
            if people.node[person] as usize == node && people.is_present(person) {
                let mobility = layout.occupants[person].mobility;
                record.present[mobility.index()] += 1;
                record.helpless += u16::from(people.needs_help(person, mobility, &self.rules, trapped));
                health += people.health[person];
            }
        }
        let n = record.people();
        record.health = if n > 0 { (health / n as f32).ceil() as u8 } else { 0 };
        record
    }

    /// Responder `r` observes `node`.
    pub(super) fn see(&mut self, r: usize, node: usize) {
        let mut record = self.truth(node);
        let searched = self.state.swept_by[node] & (1 << r) != 0;
        let is_room = self.building().layout.nodes[node].kind == crate::NodeKind::Room;
        if is_room && !searched {
            // People inside are known only after a search of the room.
            let old = &self.belief(r).records[node];
            (record.present, record.helpless, record.health) = (old.present, old.helpless, old.health);
        }
        let believer = self.believer(r);
        self.state.beliefs[believer].learn(node, record);
    }

    /// Responder `r` observes its node and the neighbors without a door between.
    fn look_around(&mut self, r: usize) {
        if self.rules.knowledge.mode == Knowledge::Full {
            return;
        }
        let here = self.state.crew[r].node as usize;
        self.see(r, here);
        let buildings = self.buildings.clone();
        let building = &buildings[self.state.building as usize];
        for (next, edge) in building.topology.neighbors(here) {
            if !building.layout.edges[edge].door {
                self.see(r, next);
            }
        }
    }

    /// Responder `r` observes and reports to the others.
    pub(super) fn report(&mut self, r: usize) {
        self.look_around(r);
        self.announce(r);
        if self.rules.knowledge.mode != Knowledge::Local {
            return;
        }
        let here = self.state.crew[r].node as usize;
        let buildings = self.buildings.clone();
        let building = &buildings[self.state.building as usize];
        let open = building.topology.neighbors(here).filter(|(_, edge)| !building.layout.edges[*edge].door);
        for node in std::iter::once(here).chain(open.map(|(next, _)| next)) {
            let record = self.state.beliefs[r].records[node];
            self.send(r, Body::Node(node as u16, record));
        }
    }

    /// Responder `r` reports its position and target.
    pub(super) fn announce(&mut self, r: usize) {
        let responder = &self.state.crew[r];
        let (place, target) = (responder.heading() as u16, responder.target);
        let claim = if target != NONE { target } else { place };
        let (believer, said) = (self.believer(r), self.state.tick + 1);
        let belief = &mut self.state.beliefs[believer];
        (belief.places[r], belief.claims[r], belief.heard[r]) = (place, claim, said);
        if self.rules.knowledge.mode == Knowledge::Local {
            self.send(r, Body::Responder { who: r as u8, place, claim, said });
        }
    }

    fn send(&mut self, from: usize, body: Body) {
        let (knowledge, dt) = (&self.rules.knowledge, self.rules.timing.tick_secs);
        let due = self.state.tick + (knowledge.delay_secs / dt - 1e-9).ceil() as u32;
        for to in 0..self.state.crew.len() {
            if to == from || self.state.crew[to].is_down() {
                continue;
            }
            let (a, b) = (self.state.crew[from].node as usize, self.state.crew[to].node as usize);
            let meters =
                self.buildings[self.state.building as usize].topology.distance(a, b) * self.rules.timing.speed_m_per_s;
            // One random number per message, so that the stream does not depend on the receivers.
            let lost = self.state.radio_rng.random::<f64>() < knowledge.loss;
            if !lost && knowledge.radius_m.is_none_or(|radius| meters <= radius) {
                self.state.mail.push(Mail { due, to: to as u8, body: body.clone() });
            }
        }
    }

    /// Observations of a tick, and arriving messages.
    pub(super) fn share_knowledge(&mut self) {
        if self.rules.knowledge.mode == Knowledge::Full {
            return;
        }
        for r in 0..self.state.crew.len() {
            let responder = &self.state.crew[r];
            if !responder.is_down() && !matches!(responder.task, super::Task::Walk { .. }) {
                let here = responder.node as usize;
                self.see(r, here);
            }
        }
        let (now, beliefs) = (self.state.tick, &mut self.state.beliefs);
        self.state.mail.retain(|mail| {
            if mail.due > now {
                return true;
            }
            let belief = &mut beliefs[mail.to as usize];
            match mail.body {
                Body::Node(node, record) => belief.learn(node as usize, record),
                Body::Responder { who, place, claim, said } => {
                    let who = who as usize;
                    if said >= belief.heard[who] {
                        (belief.places[who], belief.claims[who], belief.heard[who]) = (place, claim, said);
                    }
                }
            }
            false
        });
    }

    /// Updates beliefs with full knowledge.
    pub(super) fn update_beliefs(&mut self) {
        if self.rules.knowledge.mode == Knowledge::Full {
            let mut belief = std::mem::take(&mut self.state.beliefs[0].records);
            self.census(&mut belief);
            let hazards = belief.iter().any(|record| record.fire > 0.0 || record.smoke > 0.0);
            self.state.beliefs[0].records = belief;
            self.state.beliefs[0].hazards = hazards;
        }
    }

    /// The true records of all nodes, in one pass over people.
    pub fn census(&self, records: &mut [Record]) {
        records.iter_mut().enumerate().for_each(|(node, record)| *record = self.empty_record(node));
        let (people, layout) = (&self.state.people, &self.building().layout);
        for person in 0..people.len() {
            if people.is_present(person) {
                let node = people.node[person] as usize;
                let (record, mobility) = (&mut records[node], layout.occupants[person].mobility);
                let trapped = self.scratch.exit_field[node].is_infinite();
                let before = record.people();
                let health = f32::from(record.health) * before as f32 + people.health[person].ceil();
                record.present[mobility.index()] += 1;
                record.helpless += u16::from(people.needs_help(person, mobility, &self.rules, trapped));
                record.health = (health / (before + 1) as f32) as u8;
            }
        }
    }
}
