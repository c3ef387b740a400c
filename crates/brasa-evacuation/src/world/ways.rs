//! Ways out of people, by expected time: walking, and waiting in front of doors.
//!
//! An edge admits `flow_per_m_s` people per m of its width and s. Who arrives at an edge waits until everybody has
//! passed who arrived earlier: people who stand in front of it, and people who walk towards it and are nearer. So a
//! search forwards in time finds the way of the least expected time, because a later arrival never passes earlier.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{NONE, PersonState, World, refill};
use crate::{Mobility, NodeKind};

/// No edge.
pub(super) const NO_EDGE: u32 = u32::MAX;

/// The queue in front of each edge.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Walking people with the edge that they stand in front of or walk towards, by edge, the earliest first.
    arrivals: Vec<Arrival>,
    /// `[n_people]`: number of people who pass the next edge together with each person.
    groups: Vec<u32>,
    /// `[n_nodes]`: children whom nobody in the place has taken along yet.
    children: Vec<u32>,
    /// `[n_edges]`: people whom the edge did not admit in this tick so far.
    waiting: Vec<u32>,
}

/// The arrival of a person at an edge; times are from now, in s.
#[derive(Debug)]
struct Arrival {
    edge: usize,
    secs: f64,
    group: u32,
    /// Time at which the edge admits the next person.
    next_secs: f64,
}

/// Reused memory of a search.
#[derive(Debug, Default)]
pub(super) struct WayFinder {
    /// Nodes with a lower bound of the time until outside, in s, as its bits.
    open: BinaryHeap<Reverse<(u64, u16)>>,
    /// `[n_nodes]`: the quickest way to each node so far.
    reached: Vec<Reached>,
    touched: Vec<u16>,
}

/// A way to a node.
#[derive(Debug, Clone, Copy)]
struct Reached {
    /// Time until arrival, in s; infinite between searches.
    secs: f64,
    /// The node and the edge before.
    before: u16,
    edge: u32,
}

impl WayFinder {
    /// Notes a way to `node` if it is the quickest so far; from there it takes `rest_secs` or more.
    fn reach(&mut self, node: usize, way: Reached, rest_secs: f64) {
        if way.secs < self.reached[node].secs {
            self.reached[node] = way;
            self.touched.push(node as u16);
            // The order of numbers that are not negative is that of their bits.
            self.open.push(Reverse(((way.secs + rest_secs).to_bits(), node as u16)));
        }
    }
}

/// The start of a way out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WayOut {
    pub next: usize,
    /// The edge to `next`.
    pub edge: usize,
    /// The edge after `next`, or [`NO_EDGE`] if `next` is an exit.
    pub then: u32,
}

impl World {
    /// Forms the queues at the start of a tick.
    pub(super) fn form_queues(&mut self) {
        if !self.state.people.state.contains(&PersonState::Walking) {
            return;
        }
        let mut queues = std::mem::take(&mut self.scratch.queues);
        let Queues { arrivals, groups, children, waiting } = &mut queues;
        let people = &self.state.people;
        refill(waiting, self.state.free_at.len(), 0);
        refill(groups, people.len(), 1);
        refill(children, self.state.fire.len(), 0);
        arrivals.clear();
        for person in 0..people.len() {
            if people.state[person] == PersonState::Led {
                groups[people.leader[person] as usize] += 1;
            }
            children[people.node[person] as usize] += u32::from(self.can_be_led(person));
        }
        for person in (0..people.len()).filter(|person| people.state[*person] == PersonState::Walking) {
            let stands = people.to[person] == NONE;
            let children = &mut children[people.node[person] as usize];
            if stands && groups[person] == 1 && *children > 0 && self.mobility(person) == Mobility::Adult {
                (groups[person], *children) = (2, *children - 1);
            }
            if people.door[person] != NO_EDGE {
                let secs = if stands { 0.0 } else { people.left_secs[person].into() };
                let (edge, group) = (people.door[person] as usize, groups[person]);
                arrivals.push(Arrival { edge, secs, group, next_secs: 0.0 });
            }
        }
        arrivals.sort_unstable_by(|a, b| a.edge.cmp(&b.edge).then(a.secs.total_cmp(&b.secs)));
        let mut last = (usize::MAX, 0.0);
        for arrival in arrivals {
            let free = if last.0 == arrival.edge { last.1 } else { self.free_secs(arrival.edge) };
            arrival.next_secs = free.max(arrival.secs) + f64::from(arrival.group) * self.passage_secs(arrival.edge);
            last = (arrival.edge, arrival.next_secs);
        }
        self.scratch.queues = queues;
    }

    /// `person` and its child stand in front of `edge`, which does not admit them in this tick.
    pub(super) fn queue_up(&mut self, person: usize, edge: usize) {
        self.state.people.door[person] = edge as u32;
        self.scratch.queues.waiting[edge] += self.scratch.queues.groups[person];
    }

    /// Time between two people that `edge` admits, in s.
    fn passage_secs(&self, edge: usize) -> f64 {
        1.0 / (self.rules.occupants.flow_per_m_s * self.building().layout.edges[edge].width_m)
    }

    /// Time until `edge` admits a person if nobody stands in front of it, in s.
    fn free_secs(&self, edge: usize) -> f64 {
        let ticks = f64::from(self.state.free_at[edge]) - f64::from(self.state.tick);
        ticks.max(0.0) * self.rules.timing.tick_secs
    }

    /// Time until `edge` admits a person that stands in front of it, in s.
    fn wait_secs(&self, edge: usize) -> f64 {
        self.free_secs(edge) + f64::from(self.scratch.queues.waiting[edge]) * self.passage_secs(edge)
    }

    /// Time until `edge` admits a person that arrives there after `secs`, in s.
    fn admitted_secs(&self, edge: usize, secs: f64) -> f64 {
        let arrivals = &self.scratch.queues.arrivals;
        let earlier = |other: &Arrival| other.edge.cmp(&edge).then(other.secs.total_cmp(&secs)).is_le();
        let last = arrivals[..arrivals.partition_point(earlier)].last().filter(|last| last.edge == edge);
        secs.max(last.map_or_else(|| self.free_secs(edge), |last| last.next_secs))
    }

    /// The way from `node` to an exit that takes the least expected time at `speed`, around fires, if there is one.
    pub(super) fn way_out(&mut self, node: usize, speed: f64) -> Option<WayOut> {
        let mut finder = std::mem::take(&mut self.scratch.way_finder);
        let exit = self.find_exit(node, speed, &mut finder);
        let way = exit.map(|exit| {
            let (mut next, mut then) = (exit, NO_EDGE);
            loop {
                let Reached { before, edge, .. } = finder.reached[next];
                if usize::from(before) == node {
                    return WayOut { next, edge: edge as usize, then };
                }
                (next, then) = (before.into(), edge);
            }
        });
        finder.touched.drain(..).for_each(|node| finder.reached[usize::from(node)].secs = f64::INFINITY);
        self.scratch.way_finder = finder;
        way
    }

    /// A* from `start`, with the times without queues as lower bounds; returns the first exit that is reached.
    fn find_exit(&self, start: usize, speed: f64, finder: &mut WayFinder) -> Option<usize> {
        let building = self.building();
        let (layout, rest_m) = (&building.layout, &self.scratch.exit_field);
        let none = Reached { secs: f64::INFINITY, before: NONE, edge: NO_EDGE };
        finder.reached.resize(layout.nodes.len().max(finder.reached.len()), none);
        finder.open.clear();
        finder.reach(start, Reached { secs: 0.0, ..none }, rest_m[start] / speed);
        while let Some(Reverse((_, node))) = finder.open.pop() {
            let node = usize::from(node);
            if layout.nodes[node].kind == NodeKind::Exit {
                return Some(node);
            }
            let now = finder.reached[node].secs;
            for (next, edge) in building.topology.neighbors(node) {
                if self.state.fire[next] > 0.0 || rest_m[next].is_infinite() {
                    continue;
                }
                let way = &layout.edges[edge];
                let admitted = if node == start { self.wait_secs(edge) } else { self.admitted_secs(edge, now) };
                let secs = admitted + way.length_m / (speed * self.rules.timing.slope_factor(way));
                finder.reach(next, Reached { secs, before: node as u16, edge: edge as u32 }, rest_m[next] / speed);
            }
        }
        None
    }
}
