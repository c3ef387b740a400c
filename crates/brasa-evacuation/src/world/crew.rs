//! The responders: legal decisions and actions.

use serde::{Deserialize, Serialize};

use super::{NONE, PersonState, StepResult, World};
use crate::NodeKind;
use crate::config::Actions;

/// One responder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Responder {
    /// Its node, or the start of the edge that it walks along.
    pub node: u16,
    pub task: Task,
    /// The target of a macro decision.
    pub target: u16,
    /// The remaining nodes of its path, the next one last; empty while every step is looked up.
    pub route: Vec<u16>,
    /// Number of people that it escorts or carries.
    pub escorting: u16,
    /// Health, 0 to 100; 0 for a responder that is down.
    pub health: f32,
}

/// The activity of a responder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Nothing.
    Free,
    /// Walks to a neighbor.
    Walk { to: u16, ticks_left: u32, ticks: u32 },
    /// Searches where it stands.
    Search { ticks_left: u32 },
    /// Stands.
    Wait { ticks_left: u32 },
}

/// Ticks to collect people in a room that this responder already searched.
const GATHER_TICKS: u32 = 1;

impl Responder {
    pub(super) fn new(node: usize) -> Self {
        Self { node: node as u16, task: Task::Free, target: NONE, route: Vec::new(), escorting: 0, health: 100.0 }
    }

    /// Whether it can take a decision.
    pub fn is_free(&self) -> bool {
        self.task == Task::Free && !self.is_down()
    }

    /// Whether it is down.
    pub fn is_down(&self) -> bool {
        self.health <= 0.0
    }

    /// Its current or next node.
    pub fn heading(&self) -> usize {
        match self.task {
            Task::Walk { to, .. } => to as usize,
            _ => self.node as usize,
        }
    }
}

/// An option that the mask forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Illegal;

impl World {
    /// The option to wait; option v below it is node v.
    pub fn wait_option(&self) -> usize {
        self.building().n_nodes()
    }

    /// Writes the legal options of responder `r`, `mask[v]` for node v and the last one for waiting; returns their
    /// number. Busy responders can only wait, which continues their activity.
    ///
    /// The mask depends only on the knowledge of the responder, so it reveals nothing.
    pub fn legal(&self, r: usize, mask: &mut [bool]) -> usize {
        let n = self.building().n_nodes();
        mask[..n].fill(false);
        mask[n] = true;
        if !self.state.crew[r].is_free() {
            return 1;
        }
        let here = self.state.crew[r].node as usize;
        let belief = self.belief(r);
        let mut options = 1;
        let mut allow = |node: usize| {
            options += usize::from(!mask[node]);
            mask[node] = true;
        };
        if self.has_work(r, here) {
            allow(here);
        }
        match self.rules.actions {
            Actions::Primitive => {
                for (next, _) in self.building().topology.neighbors(here) {
                    if self.is_passable(belief.records[next].fire) {
                        allow(next);
                    }
                }
            }
            Actions::Macro => {
                let times = self.times(r);
                let escorting = self.state.crew[r].escorting > 0;
                for (node, time) in times.iter().enumerate() {
                    let is_exit = self.building().layout.nodes[node].kind == NodeKind::Exit;
                    if time.is_finite() && node != here && ((is_exit && escorting) || self.has_work(r, node)) {
                        allow(node);
                    }
                }
            }
        }
        options
    }

    /// Whether responder `r` can decide between at least two options.
    pub fn has_choice(&mut self, r: usize) -> bool {
        if !self.state.crew[r].is_free() {
            return false;
        }
        if self.rules.actions == Actions::Macro {
            // The search for paths costs more than the check for work.
            let reason = |node: usize| self.has_work(r, node);
            if self.state.crew[r].escorting == 0 && !(0..self.wait_option()).any(reason) {
                return false;
            }
            self.find_paths(r);
        }
        let mut mask = std::mem::take(&mut self.scratch.mask);
        mask.resize(self.wait_option() + 1, false);
        let options = self.legal(r, &mut mask);
        self.scratch.mask = mask;
        options > 1
    }

    fn is_passable(&self, fire: f32) -> bool {
        f64::from(fire) < self.rules.hazards.impassable
    }

    /// Whether a search of `node` by `r` has an effect, as far as it knows: a missing sweep, or people to collect.
    pub fn has_work(&self, r: usize, node: usize) -> bool {
        let record = &self.belief(r).records[node];
        if !self.is_passable(record.fire) {
            return false;
        }
        let has_hands = (self.state.crew[r].escorting as usize) < self.rules.crew.capacity;
        if record.helpless > 0 && has_hands && self.rules.goal.counts_people() {
            return true;
        }
        self.needs_search(r, r, node)
    }

    /// Whether `who` could search `node`, as far as `r` knows.
    pub fn needs_search(&self, r: usize, who: usize, node: usize) -> bool {
        self.belief(r).records[node].swept_by & (1 << who) == 0 && self.known_sweeps_left(r, node) > 0
    }

    /// Remaining sweeps of `node`, as far as `r` knows.
    pub fn known_sweeps_left(&self, r: usize, node: usize) -> u32 {
        let place = &self.building().layout.nodes[node];
        if place.kind != NodeKind::Room {
            return 0;
        }
        let n_active = self.state.crew.iter().filter(|responder| !responder.is_down()).count();
        let required = self.rules.sweeps.required(place, n_active) as u32;
        required.saturating_sub(self.belief(r).records[node].swept_by.count_ones())
    }

    /// Applies a decision of responder `r`; busy responders continue their activity.
    pub fn decide(&mut self, r: usize, option: usize) -> Result<(), Illegal> {
        if !self.state.crew[r].is_free() {
            return if option == self.wait_option() { Ok(()) } else { Err(Illegal) };
        }
        let mut mask = std::mem::take(&mut self.scratch.mask);
        mask.resize(self.wait_option() + 1, false);
        let options = self.legal(r, &mut mask);
        let legal = mask.get(option).copied().unwrap_or(false);
        self.scratch.mask = mask;
        if !legal {
            return Err(Illegal);
        }
        let here = self.state.crew[r].node as usize;
        if option == self.wait_option() {
            // A responder without other options stays free, so that it can react to new information.
            if options > 1 {
                let ticks_left = self.rules.ticks(self.rules.crew.wait_secs);
                self.state.crew[r].task = Task::Wait { ticks_left };
            }
        } else if option == here {
            self.start_search(r);
        } else {
            self.state.crew[r].target = option as u16;
            match self.rules.actions {
                Actions::Primitive => {
                    self.state.crew[r].target = NONE;
                    self.start_walk(r, option);
                }
                Actions::Macro => {
                    self.lay_route(r, option);
                    self.follow_route(r);
                }
            }
        }
        self.announce(r);
        Ok(())
    }

    fn start_search(&mut self, r: usize) {
        let node = self.state.crew[r].node as usize;
        let known = self.state.swept_by[node] & (1 << r) != 0;
        let building = self.building();
        let is_room = building.layout.nodes[node].kind == NodeKind::Room;
        let ticks_left = if known || !is_room { GATHER_TICKS } else { building.search_ticks[node] };
        self.state.crew[r].task = Task::Search { ticks_left };
    }

    /// Begins to walk to a neighbor; if it is impassable, the responder stays and observes the fire.
    fn start_walk(&mut self, r: usize, to: usize) {
        let here = self.state.crew[r].node as usize;
        if !self.is_passable(self.state.fire[to]) {
            self.see(r, to);
            (self.state.crew[r].task, self.state.crew[r].target) = (Task::Free, NONE);
            return;
        }
        let building = self.building();
        let edge = building.topology.edge(here, to).expect("a step goes to a neighbor");
        let base = self.rules.timing.speed_m_per_s;
        let speed = self.in_smoke(self.group_speed(r), here, to);
        let ticks = self.rules.timing.travel_ticks(&building.layout.edges[edge], speed / base);
        self.state.crew[r].task = Task::Walk { to: to as u16, ticks_left: ticks, ticks };
    }

    /// Speed of responder `r` with its escorted or carried people, on the level and in clear air.
    fn group_speed(&self, r: usize) -> f64 {
        let (people, occupants) = (&self.state.people, &self.rules.occupants);
        let mut speed = self.rules.timing.speed_m_per_s;
        if self.state.crew[r].escorting == 0 {
            return speed;
        }
        for person in self.escorted(r) {
            let mobility = self.building().layout.occupants[person].mobility;
            let own = match people.is_tenable(person, mobility, &self.rules) {
                true => occupants.speeds_m_per_s[mobility.index()] * occupants.assisted_factor,
                false => occupants.carried_speed_m_per_s,
            };
            speed = speed.min(own);
        }
        speed
    }

    fn escorted(&self, r: usize) -> impl Iterator<Item = usize> + '_ {
        let people = &self.state.people;
        (0..people.len()).filter(move |person| people.is_escorted_by(*person, r))
    }

    /// Walks towards the target, searches there, or becomes free if no known path leads there.
    fn follow_route(&mut self, r: usize) {
        let (here, target) = (self.state.crew[r].node as usize, self.state.crew[r].target as usize);
        let is_exit = self.building().layout.nodes[target].kind == NodeKind::Exit;
        if here == target {
            self.state.crew[r].target = NONE;
            if !is_exit && self.has_work(r, here) {
                self.start_search(r);
            }
            return;
        }
        // Others may have done the work already, if a message says so.
        if !is_exit && !self.has_work(r, target) {
            self.state.crew[r].target = NONE;
            return;
        }
        match self.step_of_route(r, target) {
            Some(next) => self.start_walk(r, next),
            None => self.state.crew[r].target = NONE,
        }
    }

    /// The next step of the stored path; recomputed if the path is blocked.
    fn step_of_route(&mut self, r: usize, target: usize) -> Option<usize> {
        if !self.belief(r).has_hazards() {
            return self.next_step(r, target);
        }
        let open = |world: &Self, step: u16| world.is_passable(world.belief(r).records[step as usize].fire);
        match self.state.crew[r].route.pop() {
            Some(step) if open(self, step) => Some(step as usize),
            _ => {
                self.lay_route(r, target);
                self.state.crew[r].route.pop().map(usize::from)
            }
        }
    }

    /// One tick of every responder.
    pub(super) fn move_crew(&mut self, played: &mut StepResult) {
        for r in 0..self.state.crew.len() {
            let responder = &mut self.state.crew[r];
            if responder.is_down() {
                continue;
            }
            match &mut responder.task {
                Task::Free => played.idle_ticks += 1,
                Task::Wait { ticks_left } => {
                    *ticks_left -= 1;
                    played.idle_ticks += 1;
                    if *ticks_left == 0 {
                        responder.task = Task::Free;
                        self.report(r);
                    }
                }
                Task::Search { ticks_left } => {
                    *ticks_left -= 1;
                    if *ticks_left == 0 {
                        responder.task = Task::Free;
                        self.finish_search(r, played);
                        self.report(r);
                    }
                }
                Task::Walk { to, ticks_left, .. } => {
                    *ticks_left -= 1;
                    if *ticks_left == 0 {
                        responder.node = *to;
                        responder.task = Task::Free;
                        self.arrive(r, played);
                    }
                }
            }
        }
    }

    fn arrive(&mut self, r: usize, played: &mut StepResult) {
        let node = self.state.crew[r].node as usize;
        let is_exit = self.building().layout.nodes[node].kind == NodeKind::Exit;
        if self.state.crew[r].escorting > 0 {
            for person in 0..self.state.people.len() {
                let people = &mut self.state.people;
                if people.is_escorted_by(person, r) {
                    people.node[person] = node as u16;
                    if is_exit {
                        self.leave(person, played);
                        self.state.crew[r].escorting -= 1;
                    }
                }
            }
        }
        self.alert(node);
        self.report(r);
        if self.state.crew[r].target != NONE {
            self.follow_route(r);
        }
    }

    /// All people at `node` notice the responder.
    fn alert(&mut self, node: usize) {
        for person in 0..self.state.people.len() {
            if self.state.people.node[person] as usize == node {
                self.make_aware(person);
            }
        }
    }

    fn finish_search(&mut self, r: usize, played: &mut StepResult) {
        let node = self.state.crew[r].node as usize;
        let is_room = self.building().layout.nodes[node].kind == NodeKind::Room;
        if is_room && self.state.swept_by[node] & (1 << r) == 0 {
            played.duplicates += u32::from(self.sweeps_left(node) == 0);
            self.state.swept_by[node] |= 1 << r;
        }
        self.alert(node);
        if !self.rules.goal.counts_people() {
            return;
        }
        for person in 0..self.state.people.len() {
            let people = &mut self.state.people;
            let has_hands = (self.state.crew[r].escorting as usize) < self.rules.crew.capacity;
            if has_hands && people.node[person] as usize == node && people.state[person] == PersonState::Waiting {
                people.state[person] = PersonState::Escorted;
                people.leader[person] = r as u16;
                self.state.crew[r].escorting += 1;
            }
        }
    }

    /// Responder `r` goes down; its escorted people wait at its node.
    pub(super) fn go_down(&mut self, r: usize) {
        let responder = &mut self.state.crew[r];
        (responder.health, responder.task, responder.target, responder.escorting) = (0.0, Task::Free, NONE, 0);
        let people = &mut self.state.people;
        for person in 0..people.len() {
            if people.is_escorted_by(person, r) {
                people.state[person] = PersonState::Waiting;
                people.leader[person] = NONE;
            }
        }
    }
}
