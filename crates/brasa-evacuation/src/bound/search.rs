//! A good plan for any building and team, by local search.
//!
//! Late acceptance hill climbing (Burke and Bykov, "The late acceptance hill-climbing heuristic", 2017): a change of
//! the routes is accepted if the result is no worse than the current one, or than the one a fixed number of changes
//! ago. It uses only comparisons, so that a seed gives the same plan on every machine.

use brasa_env::{EnvRng, field, named_rng};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{SweepPlan, SweepProblem, lower_bound};
use crate::EvacuationError;

/// Settings of the search for a plan.
///
/// ```
/// use brasa_evacuation::{Layout, PlanConfig, SweepProblem, Sweeps, Timing, plan};
///
/// let office = Layout::office();
/// let problem = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &office.starts(2))?;
/// let config = PlanConfig { n_starts: 1, n_changes: 5000, memory: 100, ..PlanConfig::default() };
/// assert_eq!(plan(&problem, &config)?.makespan, 13.0);
/// let error = plan(&problem, &PlanConfig { n_starts: 0, ..config }).unwrap_err();
/// assert_eq!(error.to_string(), "`n_starts` must be at least 1, got 0");
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanConfig {
    /// Seed of the changes.
    pub seed: u64,
    /// Number of searches from different starts; the best plan is returned. Default 4.
    pub n_starts: u32,
    /// Changes per search. Default 300,000; a few thousand give a fair plan, many millions improve little.
    pub n_changes: u32,
    /// Number of changes between a value and its comparison. Default 4000, about 1/75 of the changes; 1 stops in the
    /// nearest local optimum, and a tenth of the changes does not converge.
    pub memory: u32,
}

impl Default for PlanConfig {
    fn default() -> Self {
        Self { seed: 0, n_starts: 4, n_changes: 300_000, memory: 4000 }
    }
}

impl PlanConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// [`EvacuationError::Field`].
    pub fn validate(&self) -> Result<(), EvacuationError> {
        for (field, value) in [("n_starts", self.n_starts), ("memory", self.memory)] {
            field::at_least_one(field, value.into())?;
        }
        Ok(())
    }
}

/// A plan whose makespan is an upper bound of the optimum; the search ends early at a plan that is proven optimal.
///
/// ```
/// use brasa_evacuation::{Layout, PlanConfig, SweepProblem, Sweeps, Timing, lower_bound, plan};
///
/// let office = Layout::office();
/// let problem = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &office.starts(2))?;
/// let found = plan(&problem, &PlanConfig::default())?;
/// assert!(lower_bound(&problem).best() <= found.makespan);
/// assert_eq!(found.makespan, 13.0);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
///
/// # Errors
/// [`EvacuationError::Field`] if `config` is not valid.
pub fn plan(problem: &SweepProblem, config: &PlanConfig) -> Result<SweepPlan, EvacuationError> {
    config.validate()?;
    let bound = lower_bound(problem).best();
    let mut best: Option<Routes> = None;
    for start in 0..config.n_starts {
        let mut rng = named_rng(config.seed, "sweep-plan", u64::from(start));
        let found = climb(problem, config, bound, &mut rng);
        if best.as_ref().is_none_or(|best| found.makespan() < best.makespan()) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|best| best.makespan() <= bound + SLACK) {
            break;
        }
    }
    let routes = best.unwrap_or_else(|| Routes::empty(problem));
    let nodes = |route: &Vec<usize>| route.iter().map(|room| problem.rooms[*room].node).collect();
    Ok(SweepPlan { makespan: routes.makespan(), routes: routes.rooms.iter().map(nodes).collect() })
}

/// Times that differ by less are equal: sums in another order.
const SLACK: f64 = 1e-9;
/// Weight of the mean of all times relative to the largest. It prefers shorter routes if the longest is equal,
/// and is too small to justify a longer one.
const MEAN_WEIGHT: f64 = 0.2;

/// Routes of all responders, as rooms of the problem.
#[derive(Clone)]
struct Routes {
    rooms: Vec<Vec<usize>>,
    times: Vec<f64>,
}

impl Routes {
    fn empty(problem: &SweepProblem) -> Self {
        let n = problem.n_responders();
        Self { rooms: vec![Vec::new(); n], times: vec![0.0; n] }
    }

    fn makespan(&self) -> f64 {
        self.times.iter().copied().fold(0.0, f64::max)
    }

    fn value(&self) -> f64 {
        self.makespan() + MEAN_WEIGHT * self.times.iter().sum::<f64>() / self.times.len() as f64
    }

    /// Inserts every search where its responder finishes earliest, in random order.
    fn first(problem: &SweepProblem, rng: &mut EnvRng) -> Self {
        let mut visits: Vec<usize> =
            (0..problem.rooms.len()).flat_map(|room| std::iter::repeat_n(room, problem.rooms[room].required)).collect();
        for place in (1..visits.len()).rev() {
            visits.swap(place, below(rng, place + 1));
        }
        let mut routes = Self::empty(problem);
        for room in visits {
            let mut best = (f64::INFINITY, 0, 0);
            for (responder, route) in routes.rooms.iter().enumerate().filter(|(_, route)| !route.contains(&room)) {
                for place in 0..=route.len() {
                    let last = place.checked_sub(1).map(|last| route[last]);
                    let way_in = problem.leg(responder, last, room);
                    let detour = match route.get(place) {
                        Some(&next) => way_in + problem.between[room][next] - problem.leg(responder, last, next),
                        None => way_in,
                    };
                    let time = routes.times[responder] + detour + problem.rooms[room].service;
                    if time < best.0 {
                        best = (time, responder, place);
                    }
                }
            }
            let (_, responder, place) = best;
            routes.rooms[responder].insert(place, room);
            routes.times[responder] = time_of(problem, responder, &routes.rooms[responder]);
        }
        routes
    }
}

/// The time at which `responder` finishes `route`.
fn time_of(problem: &SweepProblem, responder: usize, route: &[usize]) -> f64 {
    let mut last = None;
    let mut time = 0.0;
    for room in route {
        time += problem.leg(responder, last, *room) + problem.rooms[*room].service;
        last = Some(*room);
    }
    time
}

/// A whole number below `n`, the same on every machine.
fn below(rng: &mut EnvRng, n: usize) -> usize {
    rng.random_range(0..n as u32) as usize
}

/// Searches from one start.
fn climb(problem: &SweepProblem, config: &PlanConfig, bound: f64, rng: &mut EnvRng) -> Routes {
    let mut routes = Routes::first(problem, rng);
    let mut best = routes.clone();
    if problem.rooms.is_empty() {
        return best;
    }
    let mut value = routes.value();
    let mut memory = vec![value; config.memory as usize];
    let mut changed = [Vec::new(), Vec::new()];
    for change in 0..config.n_changes as usize {
        if best.makespan() <= bound + SLACK {
            break;
        }
        let Some((a, b)) = draw_change(&routes.rooms, rng, &mut changed) else { continue };
        let before = (routes.times[a], routes.times[b]);
        routes.times[a] = time_of(problem, a, &changed[0]);
        if a != b {
            routes.times[b] = time_of(problem, b, &changed[1]);
        }
        let new = routes.value();
        let place = change % memory.len();
        if new <= value || new <= memory[place] {
            value = new;
            std::mem::swap(&mut routes.rooms[a], &mut changed[0]);
            if a != b {
                std::mem::swap(&mut routes.rooms[b], &mut changed[1]);
            }
            if routes.makespan() < best.makespan() {
                best.clone_from(&routes);
            }
        } else {
            routes.times[a] = before.0;
            routes.times[b] = before.1;
        }
        memory[place] = value;
    }
    best
}

/// Samples a change and writes the changed routes into `changed`: that of the first returned responder and, if
/// different, of the second. `None` if a responder would visit a room twice.
fn draw_change(routes: &[Vec<usize>], rng: &mut EnvRng, changed: &mut [Vec<usize>; 2]) -> Option<(usize, usize)> {
    let kind = below(rng, 4);
    let (a, i) = draw_visit(routes, rng);
    let [first, second] = changed;
    first.clear();
    second.clear();
    match kind {
        // Reverse a piece of a route.
        0 => {
            let j = below(rng, routes[a].len());
            let (i, j) = (i.min(j), i.max(j));
            first.extend_from_slice(&routes[a]);
            first[i..=j].reverse();
            Some((a, a))
        }
        // Exchange two searches.
        1 => {
            let (b, j) = draw_visit(routes, rng);
            first.extend_from_slice(&routes[a]);
            if a == b {
                first.swap(i, j);
                return Some((a, a));
            }
            let (mine, theirs) = (routes[a][i], routes[b][j]);
            if mine != theirs && (routes[a].contains(&theirs) || routes[b].contains(&mine)) {
                return None;
            }
            second.extend_from_slice(&routes[b]);
            first[i] = theirs;
            second[j] = mine;
            Some((a, b))
        }
        // Exchange the ends of two routes.
        2 => {
            let b = below(rng, routes.len());
            if a == b {
                return None;
            }
            let j = below(rng, routes[b].len() + 1);
            first.extend_from_slice(&routes[a][..i]);
            first.extend_from_slice(&routes[b][j..]);
            second.extend_from_slice(&routes[b][..j]);
            second.extend_from_slice(&routes[a][i..]);
            (is_free_of_doubles(first) && is_free_of_doubles(second)).then_some((a, b))
        }
        // Move up to three searches elsewhere, possibly reversed.
        _ => {
            let end = (i + 1 + below(rng, 3)).min(routes[a].len());
            let piece = &routes[a][i..end];
            let b = below(rng, routes.len());
            first.extend_from_slice(&routes[a][..i]);
            first.extend_from_slice(&routes[a][end..]);
            let target = if a == b {
                first
            } else {
                if piece.iter().any(|room| routes[b].contains(room)) {
                    return None;
                }
                second.extend_from_slice(&routes[b]);
                second
            };
            let place = below(rng, target.len() + 1);
            target.splice(place..place, piece.iter().copied());
            if below(rng, 2) == 0 {
                target[place..place + piece.len()].reverse();
            }
            Some((a, b))
        }
    }
}

/// A random search: its responder and its index in the route.
fn draw_visit(routes: &[Vec<usize>], rng: &mut EnvRng) -> (usize, usize) {
    let mut place = below(rng, routes.iter().map(Vec::len).sum());
    let mut responder = 0;
    while place >= routes[responder].len() {
        place -= routes[responder].len();
        responder += 1;
    }
    (responder, place)
}

fn is_free_of_doubles(route: &[usize]) -> bool {
    route.iter().enumerate().all(|(place, room)| !route[..place].contains(room))
}
