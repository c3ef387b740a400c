//! Shortest paths by the knowledge of a responder.

use brasa_floorplan::Search;

use super::{NONE, World};
use crate::Motion;

/// Paths from one node to all others.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    /// Time to each node, in the unit of [`crate::Timing::travel`]; infinite without an open path.
    pub times: Vec<f32>,
    /// The predecessor of each node on its path; [`NONE`] at the source and without a path.
    before: Vec<u16>,
    /// The tick for which the paths are valid.
    valid_at: Option<u32>,
}

/// Reused memory of a search.
#[derive(Debug, Default)]
pub(super) struct Finder {
    search: Search<f32>,
    /// Per edge, time by current knowledge.
    costs: Vec<f32>,
}

impl World {
    /// Times of the deciding responder `r` to every node, by its knowledge.
    pub fn times(&self, r: usize) -> &[f32] {
        &self.scratch.paths[r].times
    }

    /// Clears all paths, when an episode begins or is restored.
    pub(super) fn forget_paths(&mut self) {
        self.scratch.paths.resize_with(self.state.crew.len(), Paths::default);
        self.scratch.paths.iter_mut().for_each(|paths| paths.valid_at = None);
    }

    /// Paths of responder `r` by its current knowledge, from its current or next node.
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

    /// The first step of the shortest known path of the free responder `r` to `target`.
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

    /// Stores the path to `target` in `route`, the next step last. It is empty without known smoke or fire, because
    /// every step is then looked up.
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
