//! The optimal sweep of a building, if it is proven and reached.

use std::sync::Arc;

use brasa_env::episode_rng;

use crate::bound::{PlanConfig, SweepPlan, SweepProblem, held_karp, lower_bound, plan};
use crate::building::Building;
use crate::config::{Actions, HazardConfig, RulesConfig};
use crate::world::World;

/// Largest number of assignments for which the exact method is fast.
const QUICK: f64 = 1e5;
/// Initial health of a responder.
const FULL_HEALTH: f64 = 100.0;

/// Whether fire and smoke neither block nor slow any path: the optimal sweep is then that of clear air, if no responder
/// goes down.
pub(crate) fn is_harmless(hazards: &HazardConfig) -> bool {
    // The intensity of a fire is at most 1.
    !hazards.enabled || (hazards.impassable > 1.0 && hazards.smoke_slowdown == 0.0)
}

/// The ticks of the optimal sweep of `building` by `n_responders` with harmless fire, if known.
///
/// It is known if the exact method is fast, or if a plan reaches the proven bound. The plan is also simulated, to
/// verify that the simulation counts ticks as the problem does.
pub(crate) fn optimum(building: &Building, rules: &RulesConfig, n_responders: usize) -> Option<u32> {
    let starts = building.layout().starts(n_responders);
    let problem = SweepProblem::in_ticks(building.layout(), &rules.timing, rules.sweeps, &starts);
    let best = best(&problem.expect("a building that is ready is valid"))?;
    // If a responder goes down, high-risk rooms may need fewer searches.
    let harm_per_s = rules.crew.fire_harm_per_s.max(rules.crew.smoke_harm_per_s);
    if rules.hazards.enabled && harm_per_s * rules.timing.tick_secs * best.makespan >= FULL_HEALTH {
        return None;
    }
    let swept_at = play(building, rules, &best.routes)?;
    (f64::from(swept_at) == best.makespan).then_some(swept_at)
}

/// A plan that is proven optimal.
fn best(problem: &SweepProblem) -> Option<SweepPlan> {
    let is_quick = (problem.n_responders() as f64).powf(problem.rooms().len() as f64) <= QUICK;
    // It returns an error for problems too large for its table.
    let exact = if is_quick { held_karp(problem).ok() } else { None };
    exact.or_else(|| {
        let found = plan(problem, &PlanConfig::default()).expect("the default settings are valid");
        (found.makespan <= lower_bound(problem).best()).then_some(found)
    })
}

/// The tick at which the last room is swept if all responders follow their routes.
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
