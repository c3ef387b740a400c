//! Small problems exactly.

use super::{SweepPlan, SweepProblem};
use crate::EvacuationError;

/// Largest number of rooms in the table of subsets.
const MAX_ROOMS: usize = 16;
/// Largest number of responders.
const MAX_RESPONDERS: usize = 3;

/// An optimal plan.
///
/// The optimum by dynamic programming over sets of rooms.
///
/// Held and Karp, "A dynamic programming approach to sequencing problems" (1962): `f(S, l)`, the earliest time at
/// which one responder has searched exactly the rooms `S` and ended in `l`, is
///
/// ```text
/// f({l}, l) = d(start, l) + t(l)          f(S, l) = min over p in S \ {l} of f(S \ {l}, p) + d(p, l) + t(l)
/// ```
///
/// and `g(S) = min over l of f(S, l)` is the time of one responder for the rooms `S`. The team's optimum is the best
/// partition of the rooms, found by depth-first search. A subset never takes longer than the set (by the triangle
/// inequality of shortest times, a route without some of its rooms is not longer), so a branch whose longest set
/// already takes as long as the best solution is pruned.
///
/// # Errors
/// [`EvacuationError::TooLarge`] beyond 16 rooms or 3 responders.
pub fn held_karp(problem: &SweepProblem) -> Result<SweepPlan, EvacuationError> {
    let (n_rooms, n_responders) = (problem.rooms.len(), problem.n_responders());
    if n_rooms > MAX_ROOMS || n_responders > MAX_RESPONDERS {
        return Err(EvacuationError::TooLarge {
            what: "Held-Karp",
            limit: format!("at most {MAX_ROOMS} rooms and {MAX_RESPONDERS} responders"),
            got: format!("{n_rooms} rooms and {n_responders} responders"),
        });
    }
    let mut tables: Vec<Table> = Vec::new();
    let mut table_of = Vec::with_capacity(n_responders);
    for (responder, start) in problem.starts.iter().enumerate() {
        // Responders with the same start share their table.
        let known = problem.starts[..responder].iter().position(|other| other == start);
        table_of.push(match known {
            Some(other) => table_of[other],
            None => {
                tables.push(Table::new(problem, responder));
                tables.len() - 1
            }
        });
    }
    // The most constrained rooms come first.
    let mut order: Vec<usize> = (0..n_rooms).collect();
    order.sort_by_key(|room| std::cmp::Reverse(problem.rooms[*room].required));
    let mut deal = Deal {
        problem,
        tables: &tables,
        table_of: &table_of,
        order: &order,
        makespan: f64::INFINITY,
        best: vec![0; n_responders],
    };
    deal.search(0, &mut vec![0; n_responders]);
    let routes = (0..n_responders).map(|responder| tables[table_of[responder]].route(problem, deal.best[responder]));
    Ok(SweepPlan { makespan: deal.makespan, routes: routes.collect() })
}

/// The time of every set of rooms for a responder with a given start.
struct Table {
    n_rooms: usize,
    /// A responder with this start.
    responder: usize,
    /// `[2^n_rooms][n_rooms]`: `f`.
    ending: Vec<f64>,
    /// `[2^n_rooms]`: `g`.
    cost: Vec<f64>,
}

impl Table {
    fn new(problem: &SweepProblem, responder: usize) -> Self {
        let n = problem.rooms.len();
        let mut ending = vec![f64::INFINITY; n << n];
        let mut cost = vec![f64::INFINITY; 1 << n];
        cost[0] = 0.0;
        for room in 0..n {
            ending[n * (1 << room) + room] = problem.from_start[responder][room] + problem.rooms[room].service;
        }
        for set in 1..1usize << n {
            for last in (0..n).filter(|last| set >> last & 1 == 1) {
                let time = ending[n * set + last];
                cost[set] = cost[set].min(time);
                for next in (0..n).filter(|next| set >> next & 1 == 0) {
                    let later = time + problem.between[last][next] + problem.rooms[next].service;
                    let entry = &mut ending[n * (set | 1 << next) + next];
                    *entry = entry.min(later);
                }
            }
        }
        Self { n_rooms: n, responder, ending, cost }
    }

    /// The rooms of `set` in the best order, as nodes.
    fn route(&self, problem: &SweepProblem, mut set: usize) -> Vec<usize> {
        let n = self.n_rooms;
        let mut route = Vec::new();
        let mut time = self.cost[set];
        let mut next: Option<usize> = None;
        while set != 0 {
            let leg = |last: usize| match next {
                Some(next) => problem.between[last][next] + problem.rooms[next].service,
                None => 0.0,
            };
            // The table entry is one of these sums, so the smallest one is exact.
            let last = (0..n)
                .filter(|last| set >> last & 1 == 1)
                .min_by(|a, b| {
                    let total = |last: &usize| self.ending[n * set + last] + leg(*last);
                    total(a).total_cmp(&total(b))
                })
                .unwrap_or_default();
            debug_assert!((self.ending[n * set + last] + leg(last) - time).abs() < 1e-9);
            time = self.ending[n * set + last];
            route.push(problem.rooms[last].node);
            next = Some(last);
            set &= !(1 << last);
        }
        debug_assert!(next.is_none_or(|room| {
            (problem.from_start[self.responder][room] + problem.rooms[room].service - time).abs() < 1e-9
        }));
        route.reverse();
        route
    }
}

/// Search over assignments of rooms to responders.
struct Deal<'a> {
    problem: &'a SweepProblem,
    tables: &'a [Table],
    table_of: &'a [usize],
    order: &'a [usize],
    makespan: f64,
    best: Vec<usize>,
}

impl Deal<'_> {
    /// Assigns `order[place..]`, given the sets in `sets`.
    fn search(&mut self, place: usize, sets: &mut Vec<usize>) {
        let cost = |responder: usize| self.tables[self.table_of[responder]].cost[sets[responder]];
        let makespan = (0..sets.len()).map(cost).fold(0.0, f64::max);
        if makespan >= self.makespan {
            return;
        }
        let Some(&room) = self.order.get(place) else {
            self.makespan = makespan;
            self.best.clone_from(sets);
            return;
        };
        let n = sets.len();
        for team in 1..1usize << n {
            if team.count_ones() as usize != self.problem.rooms[room].required || self.has_twin(team, sets) {
                continue;
            }
            let before = sets.clone();
            for responder in (0..n).filter(|responder| team >> responder & 1 == 1) {
                sets[responder] |= 1 << room;
            }
            self.search(place + 1, sets);
            sets.clone_from(&before);
        }
    }

    /// Whether a responder of `team` is equivalent to an earlier one outside the team (symmetry).
    fn has_twin(&self, team: usize, sets: &[usize]) -> bool {
        (0..sets.len()).any(|later| {
            team >> later & 1 == 1
                && (0..later).any(|earlier| {
                    team >> earlier & 1 == 0
                        && self.table_of[earlier] == self.table_of[later]
                        && sets[earlier] == sets[later]
                })
        })
    }
}
