//! Invariants of the simulation for any decisions, and cases with known results.

use std::sync::Arc;

use brasa_env::{EnvRng, episode_rng};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::trace::Trace;
use crate::{
    Actions, Edge, HazardConfig, Knowledge, KnowledgeConfig, Layout, Mobility, Node, NodeKind, Occupant,
    OccupantConfig, Smoke, Timing,
};

fn world(layout: Layout, rules: RulesConfig) -> World {
    rules.validate().expect("the rules are valid");
    let building = Building::new(layout, &rules).expect("the layout is valid");
    World::new(Arc::new(rules), Arc::new(vec![building]))
}

/// An exit, then `n` rooms in a row, `length_m` apart.
fn corridor(n: usize, length_m: f64) -> Layout {
    let node = |name: String, kind: NodeKind| Node {
        name,
        kind,
        area_m2: 10.0,
        length_m: 4.0,
        floor: 0,
        high_risk: false,
        polygon: None,
    };
    let mut nodes = vec![node("exit".into(), NodeKind::Exit)];
    nodes.extend((0..n).map(|i| node(format!("room_{i}"), NodeKind::Room)));
    let edges = (0..n).map(|i| Edge::new(i, i + 1, length_m, 1.0));
    Layout { name: "corridor".into(), nodes, edges: edges.collect(), occupants: vec![], entries: vec![0] }
}

fn person(node: usize, mobility: Mobility) -> Occupant {
    Occupant { node, mobility, health: 100.0 }
}

/// Rules without fire and without reactions to the alarm, with one responder.
fn quiet() -> RulesConfig {
    RulesConfig {
        responders: [1, 1],
        hazards: HazardConfig { enabled: false, ..HazardConfig::default() },
        occupants: OccupantConfig { unaware_share: 1.0, ..OccupantConfig::default() },
        ..RulesConfig::default()
    }
}

/// A random legal decision of the current responder.
fn at_random(world: &mut World, rng: &mut EnvRng) -> usize {
    let mut mask = vec![false; world.wait_option() + 1];
    let n_legal = world.legal(world.turn(), &mut mask);
    let choice = rng.random_range(0..n_legal);
    (0..mask.len()).filter(|option| mask[*option]).nth(choice).expect("it was counted")
}

fn any_rules() -> impl Strategy<Value = RulesConfig> {
    let modes = prop_oneof![Just(Knowledge::Full), Just(Knowledge::Shared), Just(Knowledge::Local)];
    let actions = prop_oneof![Just(Actions::Macro), Just(Actions::Primitive)];
    (modes, actions, 1usize..=8, any::<bool>()).prop_map(|(mode, actions, n, legacy)| RulesConfig {
        responders: [n, n],
        knowledge: KnowledgeConfig { mode, ..KnowledgeConfig::default() },
        actions,
        timeout_secs: 400.0,
        ..if legacy { RulesConfig::legacy() } else { RulesConfig::default() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn laws_hold_whatever_is_decided(rules in any_rules(), seed in 0u64..1000, which in 0usize..3) {
        let layout = [Layout::office, Layout::daycare, Layout::warehouse][which]();
        let mut world = world(layout, rules);
        world.begin(&mut episode_rng(seed, 0, 0));
        let mut rng = EnvRng::seed_from_u64(seed);
        let mut mask = vec![false; world.wait_option() + 1];
        let n_people = world.state.people.len();
        let mut out = 0;
        while world.state.end.is_none() {
            // An illegal decision is an error and does not change the state.
            let before = world.state.clone();
            for r in 0..world.state.crew.len() {
                world.legal(r, &mut mask);
                if let Some(option) = (0..mask.len()).find(|option| !mask[*option]) {
                    prop_assert_eq!(world.decide(r, option), Err(crew::Illegal));
                }
                prop_assert_eq!(world.decide(r, mask.len()), Err(crew::Illegal));
            }
            prop_assert_eq!(&world.state, &before);

            let option = at_random(&mut world, &mut rng);
            let mut trace = Trace::default();
            trace.record(&world);
            let played = world.step(option, Some(&mut trace)).expect("what the mask allows succeeds");
            out += played.rescued as usize;
            prop_assert!(played.reward.is_finite());

            // People are conserved.
            let count = |state: PersonState| world.state.people.state.iter().filter(|s| **s == state).count();
            prop_assert_eq!(count(PersonState::Out), out);
            let escorted: usize = world.state.crew.iter().map(|responder| responder.escorting as usize).sum();
            prop_assert_eq!(count(PersonState::Escorted), escorted);
            let inside = (0..n_people).filter(|person| world.state.people.is_inside(*person)).count();
            prop_assert_eq!(inside + out + count(PersonState::Dead), n_people);

            for (earlier, later) in trace.frames.iter().zip(&trace.frames[1..]) {
                // Health never increases; fire and lost places never decrease.
                for (a, b) in earlier.people.iter().zip(&later.people) {
                    prop_assert!(b.health <= a.health);
                }
                for (a, b) in earlier.crew.iter().zip(&later.crew) {
                    prop_assert!(b.health <= a.health);
                    // People move only to neighbors.
                    let neighbors = a.node == b.node || world.building().topology.edge(a.node.into(), b.node.into()).is_some();
                    prop_assert!(neighbors, "a responder jumped from {} to {}", a.node, b.node);
                }
                for node in 0..later.fire.len() {
                    prop_assert!(later.fire[node] >= earlier.fire[node]);
                    prop_assert!((0.0..=1.0).contains(&later.fire[node]) && (0.0..=1.0).contains(&later.smoke[node]));
                    prop_assert_eq!(later.swept_by[node] & earlier.swept_by[node], earlier.swept_by[node]);
                }
            }
        }
        prop_assert!(f64::from(world.state.tick) * world.rules.timing.tick_secs <= world.rules.timeout_secs + 5.0);
    }

    #[test]
    fn a_walk_takes_as_long_as_its_way(length in 1.0f64..60.0, speed in 0.3f64..3.0) {
        let timing = Timing { speed_m_per_s: speed, ..Timing::default() };
        let mut world = world(corridor(1, length), RulesConfig { timing, ..quiet() });
        world.begin(&mut episode_rng(0, 0, 0));
        let played = world.step(1, None).expect("the room has to be searched");
        // To the room, and 5 s of searching.
        prop_assert_eq!(world.state.end, Some(End::Success));
        prop_assert_eq!(played.ticks, (length / speed - 1e-9).ceil() as u32 + 5);
    }

    #[test]
    fn the_fire_does_not_depend_on_decisions(seed in 0u64..100) {
        let rules = RulesConfig { timeout_secs: 200.0, ..RulesConfig::default() };
        let mut alone = world(Layout::daycare(), rules.clone());
        alone.begin(&mut episode_rng(seed, 0, 0));
        let mut played = world(Layout::daycare(), rules);
        played.begin(&mut episode_rng(seed, 0, 0));
        let mut rng = EnvRng::seed_from_u64(seed);
        while played.state.end.is_none() {
            let option = at_random(&mut played, &mut rng);
            played.step(option, None).expect("it is legal");
        }
        while alone.state.tick < played.state.tick {
            alone.burn_alone();
        }
        prop_assert_eq!(&alone.state.fire, &played.state.fire);
        prop_assert_eq!(&alone.state.smoke, &played.state.smoke);
        prop_assert_eq!(&alone.state.lost, &played.state.lost);
    }
}

/// Fire that spreads with probability 1 is a ball around its origin.
#[test]
fn certain_fire_burns_a_ball() {
    let hazards = HazardConfig { spread_chance: 1.0, ..HazardConfig::default() };
    let mut world = world(Layout::warehouse(), RulesConfig { hazards, ..RulesConfig::default() });
    for seed in 0..5 {
        world.begin(&mut episode_rng(seed, 0, 0));
        let ignited = world.state.fire.iter().position(|fire| *fire > 0.0).expect("something burns");
        let mut hops = vec![0.0; world.building().n_nodes()];
        world.building().topology.field(&[ignited], |_, _| 1.0, &mut hops);
        let period = world.rules.ticks(world.rules.hazards.period_secs);
        for round in 1..=4u32 {
            (0..period).for_each(|_| world.burn_alone());
            for (node, hops) in hops.iter().enumerate() {
                assert_eq!(world.state.fire[node] > 0.0, *hops <= f64::from(round), "node {node}, round {round}");
            }
        }
    }
}

/// On a path, fire arrives after as many successes: negative binomial, mean L / p periods, variance L (1 - p) / p^2.
#[test]
fn chance_fire_arrives_as_the_negative_binomial() {
    let (length, p) = (4usize, 0.3);
    let hazards = HazardConfig { spread_chance: p, period_secs: 1.0, ..HazardConfig::default() };
    let mut world = world(corridor(length + 1, 4.0), RulesConfig { hazards, ..quiet() });
    let n = 4000;
    let (mut sum, mut squares) = (0.0, 0.0);
    for seed in 0..n {
        world.begin(&mut episode_rng(seed, 0, 0));
        world.state.fire.fill(0.0);
        world.ignite(1);
        let mut rounds = 0.0;
        while world.state.fire[1 + length] <= 0.0 {
            world.burn_alone();
            rounds += 1.0;
        }
        sum += rounds;
        squares += rounds * rounds;
    }
    let mean = sum / n as f64;
    let variance = squares / n as f64 - mean * mean;
    let expected = (length as f64 / p, length as f64 * (1.0 - p) / (p * p));
    // Four standard errors of the mean.
    assert!((mean - expected.0).abs() < 4.0 * (expected.1 / n as f64).sqrt(), "mean {mean} instead of {}", expected.0);
    assert!((variance / expected.1 - 1.0).abs() < 0.15, "variance {variance} instead of {}", expected.1);
}

/// With the earlier system's rates an adult in a full fire loses 1 of 100 each tick.
#[test]
fn an_adult_in_a_full_fire_dies_in_a_hundred_ticks() {
    let mut layout = corridor(2, 4.0);
    layout.occupants = vec![person(2, Mobility::Adult)];
    let legacy = RulesConfig::legacy();
    let hazards = HazardConfig { ignition: 1.0, spread_chance: 0.0, ..legacy.hazards.clone() };
    let occupants = OccupantConfig { unaware_share: 1.0, walks_alone: [false; 3], ..legacy.occupants.clone() };
    let rules = RulesConfig { responders: [1, 1], hazards, occupants, goal: crate::Goal::AllClear, ..legacy };
    let mut world = world(layout, rules);
    world.begin(&mut episode_rng(0, 0, 0));
    world.state.fire.fill(0.0);
    world.ignite(2);
    let mut played = StepResult::default();
    for tick in 1..=100 {
        assert_eq!(played.died, 0, "dead before tick {tick}");
        world.tick(&mut played);
    }
    assert_eq!(played.died, 1);
}

/// 40 m at 1 m/s take 40 s; with stairs of 45 degrees and half the speed, 80 s.
#[test]
fn people_walk_at_their_speed() {
    for (slope_deg, expected) in [(0.0, 40), (45.0, 80)] {
        let mut layout = corridor(1, 40.0);
        layout.edges[0].slope_deg = slope_deg;
        layout.occupants = vec![person(1, Mobility::Adult)];
        let occupants = OccupantConfig {
            unaware_share: 0.0,
            alarm_mean_secs: 0.0,
            alarm_std_secs: 0.0,
            speeds_m_per_s: [1.0, 0.5, 0.4],
            ..OccupantConfig::default()
        };
        let mut world = world(layout, RulesConfig { occupants, ..quiet() });
        world.begin(&mut episode_rng(0, 0, 0));
        let mut played = StepResult::default();
        while played.rescued == 0 {
            world.tick(&mut played);
        }
        // The first tick is that of becoming aware.
        assert_eq!(played.ticks, expected + 1, "slope {slope_deg}");
    }
}

/// A door of 1 m has a flow of 1.3 people per second for any number of waiting people.
#[test]
fn doors_bound_the_flow() {
    let mut layout = corridor(1, 4.0);
    layout.occupants = vec![person(1, Mobility::Adult); 60];
    let occupants =
        OccupantConfig { unaware_share: 0.0, alarm_mean_secs: 0.0, alarm_std_secs: 0.0, ..OccupantConfig::default() };
    let mut world = world(layout, RulesConfig { occupants, ..quiet() });
    world.begin(&mut episode_rng(0, 0, 0));
    let mut played = StepResult::default();
    while played.rescued < 60 {
        world.tick(&mut played);
    }
    let flow = 60.0 / 1.3;
    let walk = 4.0 / 0.8;
    assert!((f64::from(played.ticks) - (flow + walk)).abs() <= 3.0, "{} s instead of {}", played.ticks, flow + walk);
}

/// A person that cannot walk alone waits for a responder, and is escorted at its own speed.
#[test]
fn those_who_need_help_are_brought_out() {
    let mut layout = corridor(2, 6.0);
    layout.occupants = vec![person(2, Mobility::Limited)];
    let mut world = world(layout, quiet());
    world.begin(&mut episode_rng(0, 0, 0));
    let mut decisions = 0;
    for option in [1, 2, 0] {
        world.step(option, None).expect("it is legal");
        decisions += 1;
    }
    assert_eq!((world.state.end, decisions), (Some(End::Success), 3));
    assert_eq!(world.state.people.state, [PersonState::Out]);
    // Two times 4 s to walk in and 5 s to search, then 12 m at 1.8 times 0.4 m/s in two rounded edges of 6 m.
    assert_eq!(world.state.tick, 18 + 2 * 9);
}

/// A blocked exit is not walked to: people take the other one.
#[test]
fn people_turn_away_from_fire() {
    let mut layout = corridor(2, 6.0);
    let mut exit = layout.nodes[0].clone();
    exit.name = "back".into();
    layout.nodes.push(exit);
    layout.edges.push(Edge { a: 2, b: 3, ..layout.edges[0].clone() });
    layout.occupants = vec![person(1, Mobility::Adult)];
    let occupants =
        OccupantConfig { unaware_share: 0.0, alarm_mean_secs: 0.0, alarm_std_secs: 0.0, ..Default::default() };
    let hazards = HazardConfig { spread_chance: 0.0, smoke: Smoke::Neighbors, ..HazardConfig::default() };
    let mut world = world(layout, RulesConfig { occupants, hazards, ..quiet() });
    world.begin(&mut episode_rng(0, 0, 0));
    world.state.fire.fill(0.0);
    world.ignite(0);
    world.after_fire();
    let mut played = StepResult::default();
    while played.rescued == 0 && played.ticks < 200 {
        world.tick(&mut played);
    }
    assert_eq!(world.state.people.node, [3]);
}

/// Who stands in front of an exit that begins to burn goes to the other one, and who is inside its way still leaves.
#[test]
fn a_queue_leaves_an_exit_that_burns() {
    let mut layout = corridor(1, 4.0);
    let exit = Node { name: "far".into(), ..layout.nodes[0].clone() };
    layout.nodes.push(exit);
    layout.edges.push(Edge { a: 1, b: 2, length_m: 60.0, ..layout.edges[0].clone() });
    layout.occupants = vec![person(1, Mobility::Adult); 60];
    let occupants =
        OccupantConfig { unaware_share: 0.0, alarm_mean_secs: 0.0, alarm_std_secs: 0.0, ..OccupantConfig::default() };
    let hazards = HazardConfig { spread_chance: 0.0, smoke: Smoke::Neighbors, ..HazardConfig::default() };
    let mut world = world(layout, RulesConfig { occupants, hazards, ..quiet() });
    world.begin(&mut episode_rng(0, 0, 0));
    world.state.fire.fill(0.0);
    world.after_fire();
    let mut played = StepResult::default();
    (0..20).for_each(|_| world.tick(&mut played));
    let nobody_went_far = world.state.people.to.iter().all(|to| *to != 2);
    assert!(nobody_went_far, "the queue of 46 s is shorter than the way of 75 s");
    let under_way = played.rescued as usize + world.state.people.to.iter().filter(|to| **to == 0).count();
    world.ignite(0);
    world.after_fire();
    while world.state.people.state.iter().any(|state| *state != PersonState::Out) {
        world.tick(&mut played);
        assert!(world.state.tick < 300, "somebody stays in front of the fire");
    }
    assert_eq!(world.state.people.node.iter().filter(|node| **node == 0).count(), under_way);
}

/// Queues are part of the state: a restored world goes on as if it had not been saved.
#[test]
fn queues_are_restored() {
    let mut layout = corridor(2, 4.0);
    layout.nodes.push(Node { name: "far".into(), ..layout.nodes[0].clone() });
    layout.edges.push(Edge { a: 2, b: 3, length_m: 30.0, ..layout.edges[0].clone() });
    layout.occupants = vec![person(2, Mobility::Adult); 80];
    let occupants =
        OccupantConfig { unaware_share: 0.0, alarm_mean_secs: 0.0, alarm_std_secs: 0.0, ..OccupantConfig::default() };
    let mut run = world(layout, RulesConfig { occupants, ..quiet() });
    run.begin(&mut episode_rng(0, 0, 0));
    let mut other = World::new(run.rules.clone(), run.buildings.clone());
    let mut played = StepResult::default();
    for _ in 0..60 {
        other.restore(run.state.clone());
        run.tick(&mut played);
        other.tick(&mut played);
        assert_eq!(run.state.people, other.state.people);
    }
}

/// In local mode the message of a sweep arrives after the delay, or never if it is lost or out of range.
#[test]
fn messages_arrive_late_or_never() {
    let told = |knowledge: KnowledgeConfig| {
        let rules = RulesConfig { responders: [2, 2], knowledge, ..quiet() };
        let mut world = world(corridor(6, 6.0), rules);
        world.begin(&mut episode_rng(0, 0, 0));
        let mut played = StepResult::default();
        world.step(1, None).expect("the first room has to be searched");
        world.decide(1, 6).expect("the last room has to be searched");
        while world.state.swept_by[1] == 0 {
            world.tick(&mut played);
        }
        let swept = world.state.tick;
        while world.belief(1).records[1].swept_by == 0 && world.state.tick < swept + 60 {
            world.tick(&mut played);
        }
        world.state.tick - swept
    };
    let local = KnowledgeConfig { mode: Knowledge::Local, delay_secs: 7.0, loss: 0.0, radius_m: None };
    assert_eq!(told(local.clone()), 7);
    assert_eq!(told(KnowledgeConfig { loss: 1.0, ..local.clone() }), 60);
    assert_eq!(told(KnowledgeConfig { radius_m: Some(5.0), ..local.clone() }), 60);
    assert_eq!(told(KnowledgeConfig { mode: Knowledge::Shared, ..local }), 0);
}

/// In the sum of rewards the potential is a constant.
#[test]
fn the_potential_changes_no_sum() {
    let returned = |potential: f64, seed: u64| {
        let reward = crate::RewardConfig { potential, ..crate::RewardConfig::default() };
        let mut world = world(Layout::office(), RulesConfig { reward, ..RulesConfig::default() });
        world.begin(&mut episode_rng(seed, 0, 0));
        let first = world.potential();
        let mut rng = EnvRng::seed_from_u64(seed);
        let mut sum = 0.0;
        while world.state.end.is_none() {
            let option = at_random(&mut world, &mut rng);
            sum += world.step(option, None).expect("it is legal").reward;
        }
        assert_ne!(world.state.end, Some(End::Timeout));
        (sum, first)
    };
    for seed in 0..10 {
        let ((with, first), (without, _)) = (returned(1.0, seed), returned(0.0, seed));
        assert!((with - (without - first)).abs() < 1e-9, "{with}, {without}, {first}");
    }
}

/// Dense smoke reduces the speed by four fifths, never to 0.
#[test]
fn smoke_slows_down() {
    let mut world = world(corridor(1, 40.0), quiet());
    world.begin(&mut episode_rng(0, 0, 0));
    for (smoke, speed, expected) in
        [(0.0, 1.0, 1.0), (0.5, 1.0, 0.6), (1.0, 1.0, 0.2), (1.0, 0.4, 0.1), (1.0, 0.05, 0.05)]
    {
        world.state.smoke[1] = smoke;
        let got = world.in_smoke(speed, 0, 1);
        assert!((got - expected).abs() < 1e-6, "{speed} m/s in smoke of {smoke}: {got}");
    }
    world.state.smoke = vec![0.5, 0.5];
    let played = world.step(1, None).expect("the room has to be searched");
    // 40 m at 0.6 times 1.5 m/s, and 5 s of searching.
    assert_eq!(played.ticks, (40.0f64 / 0.9).ceil() as u32 + 5);
}

/// People react after a normal time, some never.
#[test]
fn people_hear_the_alarm_when_they_should() {
    let n = 4000;
    let mut layout = corridor(1, 4.0);
    layout.occupants = vec![person(1, Mobility::Limited); n];
    let occupants = OccupantConfig { unaware_share: 0.25, ..OccupantConfig::default() };
    let mut world = world(layout, RulesConfig { occupants, ..quiet() });
    world.begin(&mut episode_rng(0, 0, 0));
    let mut played = StepResult::default();
    let mut at = Vec::new();
    for tick in 1..=300 {
        let before = at.len();
        world.tick(&mut played);
        let aware = world.state.people.state.iter().filter(|state| **state == PersonState::Waiting).count();
        at.extend(std::iter::repeat_n(f64::from(tick), aware - before));
    }
    let share = at.len() as f64 / n as f64;
    let mean = at.iter().sum::<f64>() / at.len() as f64;
    // Four standard errors, and half a tick of rounding.
    assert!((share - 0.75).abs() < 4.0 * (0.75f64 * 0.25 / n as f64).sqrt(), "{share} heard it");
    assert!((mean - 60.0).abs() < 4.0 * 30.0 / (at.len() as f64).sqrt() + 1.0, "after {mean} s");
}

/// In constant smoke health decreases linearly, so the time to incapacitation is known.
#[test]
fn smoke_incapacitates_when_it_should() {
    for (mobility, tenable, vulnerability) in [(Mobility::Adult, 40.0, 1.0), (Mobility::Limited, 50.0, 1.8)] {
        let mut layout = corridor(2, 4.0);
        layout.occupants = vec![person(2, mobility)];
        let hazards = HazardConfig {
            spread_chance: 0.0,
            smoke_m2_per_s: 0.0,
            exchange_m_per_s: 0.0,
            smoke: Smoke::Transport,
            ..HazardConfig::default()
        };
        let occupants = OccupantConfig { unaware_share: 1.0, walks_alone: [false; 3], ..OccupantConfig::default() };
        let mut world = world(layout, RulesConfig { hazards, occupants, ..quiet() });
        world.begin(&mut episode_rng(0, 0, 0));
        (world.state.fire[2], world.state.smoke[2]) = (0.0, 0.5);
        let mut played = StepResult::default();
        while world.state.people.is_tenable(0, mobility, &world.rules) {
            world.tick(&mut played);
        }
        let expected: f64 = (100.0 - tenable) / (0.6 * 0.5 * vulnerability);
        assert!((f64::from(played.ticks) - expected.ceil()).abs() <= 1.0, "{mobility:?} after {} s", played.ticks);
    }
}
