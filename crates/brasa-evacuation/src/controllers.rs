//! Heuristic controllers of responders, for comparison with learned policies.

use brasa_env::EnvRng;
use rand::RngExt;

use crate::NodeKind;
use crate::config::Actions;
use crate::world::{NONE, World};

/// A heuristic controller.
///
/// ```
/// use brasa_env::{Evaluation, Scenario, Who};
/// use brasa_evacuation::{Evacuation, EvacuationConfig, Rule};
///
/// let office = Evacuation::new(EvacuationConfig::default())?;
/// let known = |rule: &Rule| office.baselines().iter().any(|known| known.name == rule.name());
/// // Planning alone is a baseline where knowledge is local.
/// assert!(Rule::ALL.iter().all(|rule| known(rule) != (*rule == Rule::Decentralized)));
/// let outcomes = office.evaluate(Who::Baseline(Rule::Greedy.name()), &Evaluation::new(2, 7))?;
/// assert_eq!(outcomes.len(), 2);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Uniformly random legal actions.
    Random,
    /// Each responder goes to the nearest unswept room, regardless of the others.
    Nearest,
    /// Each responder plans for all by its own knowledge, as [`Rule::Greedy`] does, and goes to its own room. Of the others it knows the places and
    /// rooms that it has heard.
    Decentralized,
    /// Rooms are assigned to responders: near ones first, rooms at risk or with people earlier, none to two responders. With local knowledge it is a
    /// dispatcher: it combines what all responders know, and tells all of them their rooms without delay or loss.
    Greedy,
    /// The best of 64 greedy plans with different random perturbations, each simulated to its end in the same
    /// building with the same fire. It uses knowledge of the future and shows what is achievable.
    Hindsight,
}

/// Number of plans of [`Rule::Hindsight`]; the first is the greedy plan.
pub const ATTEMPTS: usize = 64;
/// Magnitude of the perturbations, in steps of 5 s.
const DISTURBANCE: f64 = 4.0;

impl Rule {
    /// All rules, the weakest first.
    pub const ALL: [Rule; 5] = [Rule::Random, Rule::Nearest, Rule::Decentralized, Rule::Greedy, Rule::Hindsight];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Nearest => "nearest",
            Self::Decentralized => "decentralized",
            Self::Greedy => "greedy",
            Self::Hindsight => "hindsight",
        }
    }
}

/// Weight of risk relative to steps of 5 s.
const RISK: f64 = 2.0;
/// Weight of each person known in a room.
const PEOPLE: f64 = 0.3;
/// Duration of a step in the scores of the greedy planner, in s.
const STEP_SECS: f64 = 5.0;
/// Smallest improvement for which a previously chosen room is changed.
const STICKINESS: f64 = 0.5;

/// A heuristic in one episode.
pub(crate) struct RuleController {
    rule: Rule,
    rng: EnvRng,
    /// The target of each responder: as the responder who decides knows them, if each plans alone.
    targets: Vec<u16>,
    /// The targets that responders have chosen alone.
    own: Vec<u16>,
    mask: Vec<bool>,
}

impl RuleController {
    /// Begins an episode; `rng` is for ties and random choices.
    pub fn new(rule: Rule, rng: EnvRng) -> Self {
        Self { rule, rng, targets: Vec::new(), own: Vec::new(), mask: Vec::new() }
    }

    /// Decides for the current responder.
    pub fn decide(&mut self, world: &mut World) -> usize {
        let (r, wait) = (world.turn(), world.wait_option());
        self.mask.resize(wait + 1, false);
        let n_legal = world.legal(r, &mut self.mask);
        if self.rule == Rule::Random {
            let choice = self.rng.random_range(0..n_legal);
            let mut legal = self.mask.iter().enumerate().filter(|(_, legal)| **legal).map(|(option, _)| option);
            return legal.nth(choice).expect("as many options as were counted");
        }
        match self.rule {
            Rule::Decentralized => self.choose_own_target(world, r),
            _ => self.choose_targets(world),
        }
        let target = self.targets[r];
        if target == NONE {
            return wait;
        }
        let (here, target) = (world.state.crew[r].node as usize, target as usize);
        let step = match world.rules.actions {
            Actions::Macro => Some(target),
            Actions::Primitive if here == target => Some(here),
            Actions::Primitive => world.next_step(r, target),
        };
        step.filter(|step| self.mask[*step]).unwrap_or(wait)
    }

    /// Assigns every free responder a room, an exit, or nothing.
    fn choose_targets(&mut self, world: &mut World) {
        let n_crew = world.state.crew.len();
        let n = world.building().n_nodes();
        self.targets.resize(n_crew, NONE);
        for r in 0..n_crew {
            if world.state.crew[r].is_free() {
                world.find_paths(r);
            }
            let crew = &world.state.crew[r];
            self.targets[r] = if crew.is_down() { NONE } else { self.targets[r] };
            if !crew.is_free() {
                continue;
            }
            let target = self.targets[r];
            let is_exit = target != NONE && world.building().layout().nodes[target as usize].kind == NodeKind::Exit;
            let keeps = target != NONE && if is_exit { crew.escorting > 0 } else { world.has_work(r, target as usize) };
            // The greedy planner may change its targets; the nearest room is always recomputed.
            if !keeps || self.rule == Rule::Nearest {
                self.targets[r] = NONE;
            }
        }
        // The cheapest pair of responder and room first, until no responders or no rooms are left.
        let mut open: Vec<usize> = (0..n_crew).filter(|r| world.state.crew[*r].is_free()).collect();
        let kept = self.targets.clone();
        open.iter().for_each(|r| self.targets[*r] = NONE);
        while let Some((place, node)) = cheapest(&open, n, |r, node| self.cost(world, r, node, kept[r])) {
            let r = open.swap_remove(place);
            self.targets[r] = node as u16;
        }
    }

    /// Assigns rooms to all responders by the knowledge of `r` alone, until `r` has one, an exit, or nothing.
    fn choose_own_target(&mut self, world: &mut World, r: usize) {
        let n_crew = world.state.crew.len();
        self.own.resize(n_crew, NONE);
        self.targets.clear();
        self.targets.resize(n_crew, NONE);
        if !world.state.crew[r].is_free() {
            return;
        }
        world.find_paths(r);
        let belief = world.belief(r);
        let mut open = vec![];
        for other in (0..n_crew).filter(|other| !world.state.crew[*other].is_down()) {
            let claim = belief.claims[other];
            // Whoever has searched the room of its claim chooses another one.
            if other != r && claim != NONE && world.needs_search(r, other, claim as usize) {
                self.targets[other] = claim;
            } else {
                open.push(other);
            }
        }
        while self.targets[r] == NONE {
            let cost = |who: usize, node| match who == r {
                true => self.cost(world, r, node, self.own[r]),
                false => self.cost_of_other(world, r, who, node),
            };
            let Some((place, node)) = cheapest(&open, world.building().n_nodes(), cost) else { break };
            let who = open.remove(place);
            self.targets[who] = node as u16;
        }
        self.own[r] = self.targets[r];
    }

    /// Cost of sending `other` to `node`, as far as `r` knows both; `None` if there is nothing to search or others are assigned.
    fn cost_of_other(&self, world: &World, r: usize, other: usize, node: usize) -> Option<f64> {
        let (from, here) = (world.belief(r).places[other] as usize, world.state.crew[r].heading());
        // Whoever stands at one place has equal ways, to the last digit.
        let time =
            if from == here { world.times(r)[node] } else { world.building().topology().distance(from, node) as f32 };
        let is_open = world.needs_search(r, other, node) && self.is_open(world, r, other, node);
        is_open.then(|| with_urgency(in_steps(world, f64::from(time)), world, r, node))
    }

    /// Whether fewer responders than needed are assigned to `node`, without `who`, as far as `r` knows.
    fn is_open(&self, world: &World, r: usize, who: usize, node: usize) -> bool {
        let claims = |other: &usize| *other != who && self.targets[*other] as usize == node;
        let claimed = (0..world.state.crew.len()).filter(claims).count() as u32;
        claimed == 0 || claimed < world.known_sweeps_left(r, node)
    }

    /// Cost of sending `r` to `node`; `None` if there is no work or others are assigned.
    fn cost(&mut self, world: &World, r: usize, node: usize, kept: u16) -> Option<f64> {
        let crew = &world.state.crew[r];
        let time = f64::from(world.times(r)[node]);
        if time.is_infinite() {
            return None;
        }
        let steps = in_steps(world, time);
        let is_exit = world.building().layout().nodes[node].kind == NodeKind::Exit;
        if crew.escorting > 0 {
            // An escort goes to an exit first.
            return is_exit.then_some(steps);
        }
        if is_exit || !world.has_work(r, node) {
            return None;
        }
        if self.rule == Rule::Nearest {
            return Some(steps);
        }
        if !self.is_open(world, r, r, node) {
            return None;
        }
        let stays = if kept as usize == node { STICKINESS } else { 0.0 };
        let disturbance = match self.rule {
            Rule::Hindsight => DISTURBANCE * (self.rng.random::<f64>() - 0.5),
            _ => 0.0,
        };
        Some(with_urgency(steps, world, r, node) - stays + disturbance)
    }
}

/// The pair of an open responder, by its place in `open`, and a node that costs least, the first one if several do.
fn cheapest(
    open: &[usize],
    n_nodes: usize,
    mut cost: impl FnMut(usize, usize) -> Option<f64>,
) -> Option<(usize, usize)> {
    let mut best: Option<(f64, usize, usize)> = None;
    for (place, r) in open.iter().enumerate() {
        for node in 0..n_nodes {
            let Some(cost) = cost(*r, node) else { continue };
            if best.is_none_or(|(least, _, _)| cost < least) {
                best = Some((cost, place, node));
            }
        }
    }
    best.map(|(_, place, node)| (place, node))
}

/// A time in steps of 5 s.
fn in_steps(world: &World, time: f64) -> f64 {
    match world.rules.timing.motion {
        crate::Motion::Hop => time,
        crate::Motion::Metric => time / STEP_SECS,
    }
}

/// Steps to `node`, less what risk and people there are worth, as far as `r` knows.
fn with_urgency(steps: f64, world: &World, r: usize, node: usize) -> f64 {
    steps - RISK * risk(world, r, node) - PEOPLE * f64::from(world.belief(r).records[node].people())
}

/// Risk of `node` by fire and smoke, as far as `r` knows; 0 for no risk.
fn risk(world: &World, r: usize, node: usize) -> f64 {
    let records = &world.belief(r).records;
    let around = world.building().topology().neighbors(node).map(|(next, _)| records[next].fire).fold(0.0, f32::max);
    let record = &records[node];
    0.5 * f64::from(record.fire) + 0.2 * f64::from(record.smoke) + 0.1 * f64::from(around)
}
