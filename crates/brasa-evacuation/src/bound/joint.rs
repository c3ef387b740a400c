//! The optimum by breadth-first search over the joint states of the team, tick by tick.
//!
//! It uses no travel times, subsets or routes: responders move from node to node and search at their node. It is slow
//! and simple on purpose, as an independent check of [`held_karp`](super::held_karp).

use std::collections::HashSet;

use super::SweepProblem;
use crate::EvacuationError;

const MAX_ROOMS: usize = 6;
const MAX_RESPONDERS: usize = 3;
/// Largest number of states; about 200 MB.
const MAX_STATES: usize = 4_000_000;

/// The smallest number of ticks of a complete sweep.
///
/// ```
/// use brasa_evacuation::{Layout, SweepProblem, Sweeps, Timing, held_karp, joint};
///
/// let office = Layout::office();
/// let problem = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &office.starts(2))?;
/// // Two independent methods.
/// assert_eq!(joint(&problem)?, 13);
/// assert_eq!(held_karp(&problem)?.makespan, 13.0);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
///
/// # Errors
/// [`EvacuationError::TooLarge`] for more than 6 rooms, 3 responders or 4 million states, and if time is not in whole
/// ticks.
pub fn joint(problem: &SweepProblem) -> Result<u32, EvacuationError> {
    let (n_rooms, n_responders) = (problem.rooms.len(), problem.n_responders());
    let too_large = |got: String| EvacuationError::TooLarge {
        what: "the joint search",
        limit: format!(
            "at most {MAX_ROOMS} rooms, {MAX_RESPONDERS} responders and {MAX_STATES} states, and times in whole ticks"
        ),
        got,
    };
    if n_rooms > MAX_ROOMS || n_responders > MAX_RESPONDERS {
        return Err(too_large(format!("{n_rooms} rooms and {n_responders} responders")));
    }
    if !problem.whole {
        return Err(too_large("times in seconds".into()));
    }
    let mut first = State { team: [Responder::default(); MAX_RESPONDERS], swept: [0; MAX_ROOMS] };
    for (responder, start) in problem.starts.iter().enumerate() {
        first.team[responder].node = *start as u16;
    }
    if first.is_done(problem) {
        return Ok(0);
    }
    let mut seen = HashSet::from([first]);
    let mut frontier = vec![first];
    let mut next = Vec::new();
    let mut choices = Vec::new();
    for tick in 1.. {
        for state in frontier.drain(..) {
            choices.clear();
            choices.push(state);
            for responder in 0..n_responders {
                decide(problem, responder, &mut choices);
            }
            for choice in &mut choices {
                choice.advance(problem, n_responders);
                if choice.is_done(problem) {
                    return Ok(tick);
                }
                if seen.insert(*choice) {
                    next.push(*choice);
                }
            }
        }
        if seen.len() > MAX_STATES {
            return Err(too_large(format!("{} states after {tick} ticks", seen.len())));
        }
        std::mem::swap(&mut frontier, &mut next);
    }
    unreachable!("every room can be reached, so the search ends")
}

/// The joint state of the team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    team: [Responder; MAX_RESPONDERS],
    /// Per room, the responders that have searched it; only bit 0 if one search is enough.
    swept: [u8; MAX_ROOMS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Responder {
    /// Its position or destination.
    node: u16,
    /// Ticks until it is free.
    busy: u16,
    searching: bool,
}

/// Replaces every state of `choices` by its successors for the actions of `responder`; a busy responder continues.
///
/// Waiting is not needed: responders do not obstruct each other, so moving is never worse than waiting.
fn decide(problem: &SweepProblem, responder: usize, choices: &mut Vec<State>) {
    for place in 0..choices.len() {
        let state = choices[place];
        let me = state.team[responder];
        if me.busy > 0 {
            continue;
        }
        let mut options = Vec::new();
        let node = usize::from(me.node);
        for (neighbor, edge) in problem.graph.topology.neighbors(node) {
            let busy = problem.graph.costs[edge] as u16;
            options.push(Responder { node: neighbor as u16, busy, searching: false });
        }
        if let Some(room) = problem.rooms.iter().position(|room| room.node == node) {
            let swept = state.swept[room];
            let is_mine = swept >> responder & 1 == 1;
            if (swept.count_ones() as usize) < problem.rooms[room].required && !is_mine {
                let busy = problem.rooms[room].service as u16;
                options.push(Responder { node: me.node, busy, searching: true });
            }
        }
        let with = |option: Responder| {
            let mut state = state;
            state.team[responder] = option;
            state
        };
        choices[place] = with(options[0]);
        choices.extend(options[1..].iter().map(|option| with(*option)));
    }
}

impl State {
    /// Advances by one tick.
    fn advance(&mut self, problem: &SweepProblem, n_responders: usize) {
        for responder in 0..n_responders {
            let me = &mut self.team[responder];
            me.busy -= 1;
            if me.busy == 0 && std::mem::take(&mut me.searching) {
                let Some(room) = problem.rooms.iter().position(|room| room.node == usize::from(me.node)) else {
                    continue;
                };
                self.swept[room] = match problem.rooms[room].required {
                    1 => 1,
                    _ => self.swept[room] | 1 << responder,
                };
            }
        }
    }

    fn is_done(&self, problem: &SweepProblem) -> bool {
        self.swept.iter().zip(&problem.rooms).all(|(swept, room)| swept.count_ones() as usize >= room.required)
    }
}
