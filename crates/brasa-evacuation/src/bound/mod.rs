//! Sweeps of a building without fire: exact optima, proven bounds, and plans.
//!
//! The objective is the makespan: every room must be searched as often as required, repeated searches by different
//! responders, and the last search should end as early as possible. Responders do not have to return. A
//! [`SweepProblem`] has the travel times between all relevant places. Its solvers are
//!
//! - [`held_karp`]: the optimum with its routes, for up to 16 rooms and 3 responders;
//! - [`joint`]: the optimum by a search over joint states of the team, for up to 6 rooms, as an independent check;
//! - [`lower_bound`]: a lower bound for any size; [`lower_bound_with_losses`] holds with fire;
//! - [`plan`]: a good solution for any size by local search, hence an upper bound of the optimum.
//!
//! ```
//! use brasa_evacuation::{Layout, SweepProblem, Sweeps, Timing, held_karp, lower_bound};
//!
//! let office = Layout::office();
//! let problem = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &office.starts(2))?;
//! let best = held_karp(&problem)?;
//! assert_eq!(best.makespan, 13.0);
//! assert!(lower_bound(&problem).best() <= best.makespan);
//! # Ok::<(), brasa_evacuation::EvacuationError>(())
//! ```

mod exact;
mod joint;
mod lower;
mod search;

pub use exact::held_karp;
pub use joint::joint;
pub use lower::{LowerBound, lower_bound, lower_bound_with_losses};
pub use search::{PlanConfig, plan};

use crate::building::check_size;
use crate::{EvacuationError, Layout, NodeKind, Sweeps, Timing};
use brasa_env::InvalidField;

/// The rooms that a team must search, and the times of walking and searching, in clear air.
///
/// ```
/// use brasa_evacuation::{Layout, SweepProblem, Sweeps, Timing, held_karp};
///
/// let office = Layout::office();
/// let best = |n_responders| {
///     let problem = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &office.starts(n_responders))?;
///     held_karp(&problem).map(|plan| plan.makespan)
/// };
/// assert_eq!(best(2)?, 13.0);
/// assert!(best(1)? > best(2)?);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone)]
pub struct SweepProblem {
    /// The rooms, as nodes of the layout.
    rooms: Vec<Room>,
    /// `[n_responders]`: start of each responder, a node of the layout.
    starts: Vec<usize>,
    /// `[n_responders][n_rooms]`: shortest travel times from the starts.
    from_start: Vec<Vec<f64>>,
    /// `[n_rooms][n_rooms]`: shortest travel times between rooms.
    between: Vec<Vec<f64>>,
    /// Whether all times are whole ticks.
    whole: bool,
    graph: Graph,
}

/// A room of the problem.
#[derive(Debug, Clone, Copy)]
struct Room {
    node: usize,
    /// Time of one search.
    service: f64,
    /// Number of searches, each by another responder.
    required: usize,
}

/// The edges, for bounds that need more than travel times.
#[derive(Debug, Clone)]
struct Graph {
    topology: brasa_floorplan::Graph,
    /// Per edge, the nodes that it joins.
    ends: Vec<(usize, usize)>,
    /// Per edge.
    costs: Vec<f64>,
    /// Per node.
    floors: Vec<i32>,
}

/// The routes of a team.
///
/// ```
/// use brasa_evacuation::{Layout, SweepPlan, SweepProblem, Sweeps, Timing, held_karp};
///
/// let office = Layout::office();
/// let problem = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &office.starts(2))?;
/// let SweepPlan { makespan, routes } = held_karp(&problem)?;
/// assert_eq!((makespan, routes.len()), (13.0, 2));
/// // Together, the routes visit every room once.
/// assert_eq!(routes.concat().len(), office.rooms().count());
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPlan {
    /// End of the last search, in the unit of the problem.
    pub makespan: f64,
    /// `[n_responders]`: the rooms of each responder in order, as nodes of the layout.
    pub routes: Vec<Vec<usize>>,
}

impl SweepProblem {
    /// The problem of a team that starts at `starts`, with unrounded times in s, or in ticks in the hop model.
    ///
    /// # Errors
    /// [`EvacuationError::FloorPlan`] and [`EvacuationError::Field`] if the building or the timing is not valid, the
    /// team is empty, or a start is not a node.
    pub fn new(layout: &Layout, timing: &Timing, sweeps: Sweeps, starts: &[usize]) -> Result<Self, EvacuationError> {
        Self::build(layout, timing, sweeps, starts, timing.motion == crate::Motion::Hop)
    }

    /// The same problem in ticks, with every edge and search rounded up to whole ticks as in the simulation.
    ///
    /// # Errors
    /// As [`SweepProblem::new`].
    pub fn in_ticks(
        layout: &Layout,
        timing: &Timing,
        sweeps: Sweeps,
        starts: &[usize],
    ) -> Result<Self, EvacuationError> {
        Self::build(layout, timing, sweeps, starts, true)
    }

    fn build(
        layout: &Layout,
        timing: &Timing,
        sweeps: Sweeps,
        starts: &[usize],
        whole: bool,
    ) -> Result<Self, EvacuationError> {
        layout.validate()?;
        timing.validate()?;
        check_size(layout)?;
        if starts.is_empty() {
            return Err(InvalidField::new("starts", "must name at least one node", "none").into());
        }
        if let Some(start) = starts.iter().find(|start| **start >= layout.nodes.len()) {
            return Err(
                InvalidField::new("starts", format!("must be nodes below {}", layout.nodes.len()), start).into()
            );
        }
        let topology = layout.graph();
        let cost = |edge| if whole { f64::from(timing.travel_ticks(edge, 1.0)) } else { timing.travel(edge) };
        let costs: Vec<f64> = layout.edges.iter().map(cost).collect();
        let room = |node: usize| {
            let place = &layout.nodes[node];
            let service = if whole { f64::from(timing.search_ticks(place)) } else { timing.search(place) };
            Room { node, service, required: sweeps.required(place, starts.len()) }
        };
        let rooms: Vec<Room> = layout.of_kind(NodeKind::Room).map(room).collect();
        let mut times = vec![0.0; layout.nodes.len()];
        let mut to_rooms = |source: usize| -> Vec<f64> {
            topology.field(&[source], |edge, _| costs[edge], &mut times);
            rooms.iter().map(|room| times[room.node]).collect()
        };
        let from_start = starts.iter().map(|start| to_rooms(*start)).collect();
        let between = rooms.iter().map(|room| to_rooms(room.node)).collect();
        let floors = layout.nodes.iter().map(|node| node.floor).collect();
        let ends = layout.edges.iter().map(|edge| (edge.a, edge.b)).collect();
        Ok(Self {
            rooms,
            starts: starts.to_vec(),
            from_start,
            between,
            whole,
            graph: Graph { topology, ends, costs, floors },
        })
    }

    /// Number of responders.
    pub fn n_responders(&self) -> usize {
        self.starts.len()
    }

    /// The rooms, as nodes of the layout.
    pub fn rooms(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.rooms.iter().map(|room| room.node)
    }

    /// Number of required searches, including repeated ones.
    pub fn n_visits(&self) -> usize {
        self.rooms.iter().map(|room| room.required).sum()
    }

    /// Whether all times are whole ticks.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The problem without the rooms whose node satisfies `is_left_out`.
    pub fn without(&self, is_left_out: impl Fn(usize) -> bool) -> Self {
        let kept: Vec<usize> = (0..self.rooms.len()).filter(|room| !is_left_out(self.rooms[*room].node)).collect();
        let select = |row: &Vec<f64>| kept.iter().map(|room| row[*room]).collect();
        Self {
            rooms: kept.iter().map(|room| self.rooms[*room]).collect(),
            starts: self.starts.clone(),
            from_start: self.from_start.iter().map(select).collect(),
            between: kept.iter().map(|room| select(&self.between[*room])).collect(),
            whole: self.whole,
            graph: self.graph.clone(),
        }
    }

    /// End of the last search of `routes`.
    ///
    /// # Errors
    /// [`EvacuationError::Field`] for invalid routes. There must be one route per responder, every
    /// room must be searched by the required number of different responders, and no room twice by the same one.
    pub fn evaluate(&self, routes: &[Vec<usize>]) -> Result<f64, EvacuationError> {
        if routes.len() != self.n_responders() {
            return Err(InvalidField::new(
                "routes",
                format!("must be one per responder, {}", self.n_responders()),
                routes.len(),
            )
            .into());
        }
        let mut visits = vec![0; self.rooms.len()];
        let mut makespan: f64 = 0.0;
        for (responder, route) in routes.iter().enumerate() {
            let mut time = 0.0;
            let mut last = None;
            for (place, node) in route.iter().enumerate() {
                if route[..place].contains(node) {
                    return Err(InvalidField::new(
                        "routes",
                        "must search a room once per responder",
                        format!("node {node} twice"),
                    )
                    .into());
                }
                let Some(room) = self.rooms.iter().position(|room| room.node == *node) else {
                    return Err(InvalidField::new("routes", "must name rooms", format!("node {node}")).into());
                };
                time += self.leg(responder, last, room) + self.rooms[room].service;
                visits[room] += 1;
                last = Some(room);
            }
            makespan = makespan.max(time);
        }
        for (room, visits) in self.rooms.iter().zip(visits) {
            if visits < room.required {
                let rule = format!("must search node {} {} times", room.node, room.required);
                return Err(InvalidField::new("routes", rule, visits).into());
            }
        }
        Ok(makespan)
    }

    /// Travel time of `responder` from room `last`, or from its start, to room `next`.
    fn leg(&self, responder: usize, last: Option<usize>, next: usize) -> f64 {
        match last {
            Some(last) => self.between[last][next],
            None => self.from_start[responder][next],
        }
    }

    /// Rounds `time` up to whole ticks, if the problem is in ticks.
    fn round_up(&self, time: f64) -> f64 {
        // Sums of whole numbers are exact; the slack is for bounds with fractional terms.
        if self.whole { (time - 1e-6).ceil() } else { time }
    }
}
