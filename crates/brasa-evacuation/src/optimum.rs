//! The best sweep of a building, where it is proven and reached.

use std::sync::Arc;

use brasa_env::episode_rng;

use crate::bound::{PlanConfig, SweepPlan, SweepProblem, held_karp, lower_bound, plan};
use crate::building::Building;
use crate::config::{Actions, HazardConfig, RulesConfig};
use crate::world::World;

/// Ways to share out rooms up to which the exact method takes no time that anybody notices.
const QUICK: f64 = 1e5;
/// Health that a responder has.
const FULL_HEALTH: f64 = 100.0;

/// Whether fire and smoke, if there are any, neither close nor slow any way: the best sweep is then that of clear air, as long
/// as everybody keeps on their feet.
pub(crate) fn is_harmless(hazards: &HazardConfig) -> bool {
    // No fire is more intense than 1.
    !hazards.enabled || (hazards.impassable > 1.0 && hazards.smoke_slowdown == 0.0)
}

/// The ticks of the best sweep of `building` by `n_responders` where fire is harmless, if it is known.
///
/// It is where the exact method is quick, and where a plan takes no longer than the proven bound. That a simulation
/// counts ticks as the problem does is not taken for granted: the plan is played.
pub(crate) fn optimum(building: &Building, rules: &RulesConfig, n_responders: usize) -> Option<u32> {
    let starts = building.layout().starts(n_responders);
    let problem = SweepProblem::in_ticks(building.layout(), &rules.timing, rules.sweeps, &starts);
    let best = best(&problem.expect("a building that is ready is valid"))?;
    // Whoever goes down searches nothing any more, and rooms of high risk may then need fewer searches.
    let harm_per_s = rules.crew.fire_harm_per_s.max(rules.crew.smoke_harm_per_s);
    if rules.hazards.enabled && harm_per_s * rules.timing.tick_secs * best.makespan >= FULL_HEALTH {
        return None;
    }
    let swept_at = play(building, rules, &best.routes)?;
    (f64::from(swept_at) == best.makespan).then_some(swept_at)
}

/// A plan that is proven to be the best.
fn best(problem: &SweepProblem) -> Option<SweepPlan> {
    let is_quick = (problem.n_responders() as f64).powf(problem.rooms().len() as f64) <= QUICK;
    // It rejects what its table cannot hold.
    let exact = if is_quick { held_karp(problem).ok() } else { None };
    exact.or_else(|| {
        let found = plan(problem, &PlanConfig::default()).expect("the default settings are valid");
        (found.makespan <= lower_bound(problem).best()).then_some(found)
    })
}

/// The tick at which the last room is swept if everybody keeps to its route.
fn play(building: &Building, rules: &RulesConfig, routes: &[Vec<usize>]) -> Option<u32> {
    let rules = RulesConfig { responders: [routes.len(); 2], ..rules.clone() };
    let mut world = World::new(Arc::new(rules), Arc::new(vec![building.clone()]));
    world.begin(&mut episode_rng(0, 0, 0));
    let wait = world.wait_option();
    let mut mask = vec![false; wait + 1];
    while world.state.end.is_none() {
        let r = world.turn();
        let here = world.state.crew[r].node as usize;
        let next = routes[r].iter().copied().find(|room| world.state.swept_by[*room] & (1 << r) == 0);
        let option = match (next, world.rules.actions) {
            (Some(room), Actions::Primitive) if room != here => world.next_step(r, room),
            (next, _) => next,
        };
        world.legal(r, &mut mask);
        let option = option.filter(|option| mask[*option]).unwrap_or(wait);
        world.step(option, None).ok()?;
    }
    world.state.swept_at
}
