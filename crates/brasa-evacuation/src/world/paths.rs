//! Shortest ways by what a responder knows.

use brasa_floorplan::Search;

use super::{NONE, World};
use crate::Motion;

/// Ways from one node to all others.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    /// Time to each node, in the unit of [`crate::Timing::travel`]; infinite where no open way leads.
    pub times: Vec<f32>,
    /// The node before each on its way; [`NONE`] at the source and where no way leads.
    before: Vec<u16>,
    /// The tick for which this holds.
    valid_at: Option<u32>,
}

/// Memory of a search.
#[derive(Debug, Default)]
pub(super) struct Finder {
    search: Search<f32>,
    /// Per edge, time by what is known.
    costs: Vec<f32>,
}

impl World {
    /// Times of responder `r`, whose turn it is, to every node by what it knows.
    pub fn times(&self, r: usize) -> &[f32] {
        &self.scratch.paths[r].times
    }

    /// Forgets all ways; an episode begins or goes on.
    pub(super) fn forget_paths(&mut self) {
        self.scratch.paths.resize_with(self.state.crew.len(), Paths::default);
        self.scratch.paths.iter_mut().for_each(|paths| paths.valid_at = None);
    }

    /// Ways of responder `r` by what it knows now, from where it stands or walks to.
    pub fn find_paths(&mut self, r: usize) {
        if self.scratch.paths[r].valid_at == Some(self.state.tick) {
            return;
        }
        if !self.belief(r).has_hazards() {
            return self.clear_air_paths(r);
        }
        let mut finder = std::mem::take(&mut self.scratch.finder);
        let mut paths = std::mem::take(&mut self.scratch.paths[r]);
        self.known_costs(r, &mut finder.costs);
        let building = self.building();
        let records = &self.belief(r).records;
        let impassable = self.rules.hazards.impassable as f32;
        let n = building.n_nodes();
        paths.times.resize(n, f32::INFINITY);
        paths.before.clear();
        paths.before.resize(n, NONE);
        let here = self.state.crew[r].heading();
        let Finder { search, costs } = &mut finder;
        let cost = |edge: usize, next: usize| if records[next].fire < impassable { costs[edge] } else { f32::INFINITY };
        let Paths { times, before, .. } = &mut paths;
        search.run(building.topology.graph(), &[here], cost, times, |next, node| before[next] = node as u16);
        paths.valid_at = Some(self.state.tick);
        self.scratch.paths[r] = paths;
        self.scratch.finder = finder;
    }

    fn clear_air_paths(&mut self, r: usize) {
        let from = self.state.crew[r].heading();
        let building = &self.buildings[self.state.building as usize];
        let paths = &mut self.scratch.paths[r];
        paths.times.clear();
        paths.times.extend(building.topology.distances_from(from).iter().map(|time| *time as f32));
        paths.valid_at = None;
    }

    /// Time along each edge in the smoke that `r` knows.
    fn known_costs(&self, r: usize, costs: &mut Vec<f32>) {
        costs.clear();
        let (building, hazards, timing) = (self.building(), &self.rules.hazards, &self.rules.timing);
        if timing.motion == Motion::Hop {
            costs.resize(building.layout.edges.len(), 1.0);
            return;
        }
        let records = &self.belief(r).records;
        let (slowdown, least) =
            (hazards.smoke_slowdown as f32, (hazards.min_speed_m_per_s / timing.speed_m_per_s) as f32);
        costs.extend(building.layout.edges.iter().zip(&building.travel).map(|(edge, travel)| {
            let smoke = records[edge.a].smoke.max(records[edge.b].smoke);
            travel / (1.0 - slowdown * smoke).max(least)
        }));
    }

    /// The first step of the shortest way to `target` that `r`, who is free, knows.
    pub fn next_step(&mut self, r: usize, target: usize) -> Option<usize> {
        let here = self.state.crew[r].node as usize;
        if here == target {
            return None;
        }
        if !self.belief(r).has_hazards() {
            let building = self.building();
            let ways = building.topology.neighbors(here).map(|(next, edge)| {
                (next, f64::from(building.travel[edge]) + building.topology.distance(next, target))
            });
            return ways.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(next, _)| next);
        }
        self.find_paths(r);
        let paths = &self.scratch.paths[r];
        let mut step = target;
        while paths.before[step] != NONE && paths.before[step] as usize != here {
            step = paths.before[step] as usize;
        }
        (paths.before[step] as usize == here).then_some(step)
    }

    /// Lays the way to `target` into `route`, the next step last; empty where no smoke or fire is known, because then
    /// every step is looked up.
    pub(super) fn lay_route(&mut self, r: usize, target: usize) {
        let here = self.state.crew[r].node as usize;
        self.state.crew[r].route.clear();
        if !self.belief(r).has_hazards() {
            return;
        }
        self.find_paths(r);
        let paths = &self.scratch.paths[r];
        let route = &mut self.state.crew[r].route;
        let mut step = target;
        while step != here && paths.before[step] != NONE {
            route.push(step as u16);
            step = paths.before[step] as usize;
        }
        if step != here {
            route.clear();
        }
    }
}
