//! Properties of the heuristics.

use crate::common;

use std::sync::Arc;

use brasa_env::{BatchSlabs, EnvBatch, named_rng};
use brasa_uara::baselines::{
    AnnealingConfig, BestResponseConfig, Nash, Score, anneal, best_response, exhaustive, greedy, largest_gain, random,
    strongest_coloring, strongest_random, upper_bound,
};
use brasa_uara::{Heuristic, Interference, Link, Objective, Radio, Redraw, Snapshot, Uara, UaraConfig, UaraError};
use common::{link, macro_cell, random_snapshot, snapshot};
use proptest::prelude::*;

const OBJECTIVES: [Objective; 2] = [Objective::Satisfied, Objective::SumRate];

/// The networks of a preset, each with another layout.
fn layouts(config: UaraConfig, n: usize) -> Vec<Snapshot> {
    let mut config = config;
    config.layout.redraw = Redraw::Environment;
    let mut batch = Uara::new(config).expect("a valid preset").batch(0..n);
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).expect("no environment panics");
    (0..n).map(|env| batch.snapshot(env)).collect()
}

fn mean_qos(networks: &[Snapshot], choose: impl Fn(&Snapshot) -> Vec<Link>) -> f64 {
    let qos: f64 = networks.iter().map(|network| network.outcome(&choose(network)).qos_rate()).sum();
    qos / networks.len() as f64
}

fn score(network: &Snapshot, links: &[Link]) -> Score {
    Score::of(&network.outcome(links))
}

/// `one` is at least `other`, with tolerance for rounding, because sums may have another order.
fn at_least(objective: Objective, one: Score, other: Score) -> bool {
    let one = Score { sum_rate_mbps: one.sum_rate_mbps + 1e-9, ..one };
    !objective.is_better(other, one)
}

#[test]
fn v19_bands_of_the_published_scenario() {
    let networks = layouts(UaraConfig::cly2020(), 400);
    let rng = |network: &Snapshot| named_rng(network.received_mw[0].to_bits(), "bands", 0);
    let by_lot = mean_qos(&networks, |network| random(network, &mut rng(network)));
    assert!((by_lot - 0.045).abs() < 0.01, "{by_lot}");
    let strongest = mean_qos(&networks, |network| strongest_random(network, &mut rng(network)));
    assert!((strongest - 0.62).abs() < 0.03, "{strongest}");
    let one_by_one = mean_qos(&networks, |network| greedy(network, Objective::Satisfied));
    assert!(one_by_one >= 0.99, "{one_by_one}");
    // More channels than conflicting neighbors: colors are nearly always sufficient.
    let colored = mean_qos(&networks, strongest_coloring);
    assert!(colored >= 0.99, "{colored}");
}

#[test]
fn rules_that_know_more_do_better() {
    for config in [UaraConfig::cly2020(), UaraConfig::zhao2019(), UaraConfig::physical()] {
        let networks = layouts(config, 10);
        for objective in OBJECTIVES {
            // One figure per heuristic: satisfied users or Mb/s, summed over networks.
            let mut totals = [0.0; Heuristic::ALL.len()];
            for (network, seed) in networks.iter().zip(0..) {
                let bound = upper_bound(network);
                let scores = Heuristic::ALL.map(|rule| {
                    let links = rule.choose(network, objective, &mut named_rng(seed, "rules", 0));
                    assert_eq!(links.len(), network.radio.n_users);
                    score(network, &links)
                });
                for (total, score) in totals.iter_mut().zip(scores) {
                    assert!(score.satisfied <= bound.satisfied);
                    assert!(score.sum_rate_mbps <= bound.sum_rate_mbps + 1e-9);
                    *total += match objective {
                        Objective::Satisfied => score.satisfied as f64,
                        Objective::SumRate => score.sum_rate_mbps,
                    };
                }
                let [_, strongest, _, one_by_one, _, annealed] = scores;
                assert!(at_least(objective, one_by_one, strongest));
                assert!(at_least(objective, annealed, one_by_one));
            }
            let [by_lot, strongest, colored, one_by_one, settled, annealed] = totals;
            assert!(by_lot < strongest && strongest < colored.min(one_by_one).min(settled), "{totals:?}");
            assert!(annealed >= colored.max(one_by_one).max(settled), "{totals:?}");
        }
    }
}

#[test]
fn rules_choose_only_what_is_allowed() {
    for mut network in layouts(UaraConfig::cly2020(), 5) {
        network.allowed.clone_from(&network.reached);
        // A user without a reachable station also has to choose.
        let stations = network.radio.n_stations;
        network.allowed[..stations].fill(false);
        network.reached[..stations].fill(false);
        for rule in Heuristic::ALL {
            let links = rule.choose(&network, Objective::Satisfied, &mut named_rng(1, "allowed", 0));
            for (user, link) in links.iter().enumerate().skip(1) {
                assert!(network.allowed[user * stations + usize::from(link.station)], "{rule}");
            }
        }
    }
}

#[test]
fn a_seed_gives_the_same_links() {
    let networks = [layouts(UaraConfig::cly2020(), 1).remove(0), layouts(UaraConfig::physical(), 1).remove(0)];
    for network in &networks {
        for rule in Heuristic::ALL {
            let choose = |seed| rule.choose(network, Objective::SumRate, &mut named_rng(seed, "repeat", 0));
            assert_eq!(choose(3), choose(3), "{rule}");
            let draws = matches!(rule, Heuristic::Random | Heuristic::StrongestRandom);
            assert!(!draws || choose(3) != choose(4), "{rule}");
        }
    }
}

#[test]
fn colors_part_those_who_disturb_each_other() {
    // Four users around one station and four channels: every user needs its own.
    let users = [[50.0, 0.0], [0.0, 60.0], [-70.0, 0.0], [0.0, -80.0], [90.0, 0.0]];
    for interference in [Interference::PerLink, Interference::PerTransmitter] {
        let network = snapshot(&[macro_cell([0.0, 0.0])], &users[..4], 4, interference, true);
        let mut channels: Vec<u16> = strongest_coloring(&network).iter().map(|link| link.channel).collect();
        channels.sort_unstable();
        assert_eq!(channels, [0, 1, 2, 3]);
        // With a fifth user two of them share a channel, or one is rejected.
        let network = snapshot(&[macro_cell([0.0, 0.0])], &users, 4, interference, true);
        let left = if interference == Interference::PerLink { 3 } else { 4 };
        assert_eq!(score(&network, &strongest_coloring(&network)).satisfied, left);
    }
}

#[test]
fn an_equilibrium_is_certified_and_nothing_else_is() {
    let mut certified = 0;
    for (network, seed) in layouts(UaraConfig::cly2020(), 10).iter().zip(0..) {
        let mut rng = named_rng(seed, "nash", 0);
        let nash = best_response(network, Objective::Satisfied, &BestResponseConfig::default(), &mut rng);
        assert_eq!(nash.largest_gain_mbps, largest_gain(network, &nash.links));
        certified += usize::from(nash.is_certified());
        // With random links some user always has a better option.
        let links = random(network, &mut rng);
        let largest_gain_mbps = largest_gain(network, &links);
        assert!(largest_gain_mbps > 0.1);
        assert!(!Nash { links, rounds: 0, largest_gain_mbps }.is_certified());
    }
    assert_eq!(certified, 10, "per link, this scenario settles");
}

/// Gains of unilateral moves in a network of two users, with known values.
#[test]
fn the_certificate_names_the_gain() {
    let stations = [macro_cell([0.0, 0.0]), macro_cell([300.0, 0.0])];
    let network = snapshot(&stations, &[[100.0, 0.0], [200.0, 0.0]], 2, Interference::PerLink, true);
    assert_eq!(largest_gain(&network, &[link(0, 0), link(1, 1)]), 0.0);
    // On one channel, both would gain by leaving it: from 12.04 dB to 47.45 dB.
    let shared = largest_gain(&network, &[link(0, 0), link(1, 0)]);
    let rates = |links: &[Link]| network.outcome(links).rate_mbps[0];
    assert_eq!(shared, rates(&[link(0, 1), link(1, 0)]) - rates(&[link(0, 0), link(1, 0)]));
    assert!(shared > 2.0);
}

/// Three users with two channels, each with interference from the next one's station: two of them always share a
/// channel, and one of these always gains by leaving.
#[test]
fn a_game_without_an_equilibrium_is_not_certified() {
    let radio = Radio { noise_mw: 1.0, ..common::radio(3, 3, 2, Interference::PerLink) };
    let received_mw = vec![100.0, 50.0, 0.0, 0.0, 100.0, 50.0, 50.0, 0.0, 100.0];
    let reached: Vec<bool> = received_mw.iter().map(|mw| *mw == 100.0).collect();
    let network = Snapshot { radio: Arc::new(radio), received_mw, allowed: reached.clone(), reached };
    let config = BestResponseConfig { n_starts: 3, max_rounds: 50 };
    let nash = best_response(&network, Objective::Satisfied, &config, &mut named_rng(0, "nash", 0));
    assert!(!nash.is_certified());
    assert_eq!(nash.rounds, 50);
    let rate = |interference: f64| network.radio.rate_mbps(100.0 / (interference + 1.0));
    assert_eq!(nash.largest_gain_mbps, rate(0.0) - rate(50.0));
}

#[test]
fn limits_and_broken_settings_are_named() {
    let network = layouts(UaraConfig::cly2020(), 1).remove(0);
    let error = exhaustive(&network, Objective::Satisfied).unwrap_err();
    assert!(matches!(error, UaraError::TooLarge { .. }));
    assert!(error.to_string().contains("at most 1000000 joint choices"), "{error}");
    let config = AnnealingConfig { last_temperature: 1.0, ..AnnealingConfig::default() };
    let error = anneal(&network, Objective::Satisfied, &config, &mut named_rng(0, "x", 0)).unwrap_err();
    assert_eq!(error.to_string(), "`last_temperature` must be in (0, first_temperature], got 1");
}

fn tiny() -> impl Strategy<Value = Snapshot> {
    let model = prop_oneof![Just(Interference::PerLink), Just(Interference::PerTransmitter)];
    (any::<u64>(), 2..5usize, 1..3usize, model, any::<bool>(), prop_oneof![Just(0.5), Just(10f64.powf(0.5))]).prop_map(
        |(seed, n_users, n_channels, model, gated, min_sinr)| {
            let mut network = random_snapshot(seed, n_users, n_channels, model, gated);
            network.radio = Arc::new(Radio { min_sinr, ..(*network.radio).clone() });
            network
        },
    )
}

proptest! {
    #[test]
    fn nothing_beats_the_exhaustive_search_and_it_stays_below_the_bound(network in tiny(), seed: u64) {
        let bound = upper_bound(&network);
        for objective in OBJECTIVES {
            let best = exhaustive(&network, objective).unwrap();
            prop_assert_eq!(best.score, score(&network, &best.links));
            prop_assert!(best.score.satisfied <= bound.satisfied, "{bound:?} {best:?}");
            prop_assert!(best.best_sum_rate_mbps <= bound.sum_rate_mbps + 1e-9, "{bound:?} {best:?}");
            for rule in Heuristic::ALL {
                let links = rule.choose(&network, objective, &mut named_rng(seed, "rules", 0));
                prop_assert!(at_least(objective, best.score, score(&network, &links)), "{rule}");
            }
        }
    }

    #[test]
    fn annealing_is_never_worse_than_greedy(network in tiny(), seed: u64, evaluations in 0..200usize) {
        let config = AnnealingConfig { evaluations, ..AnnealingConfig::default() };
        for objective in OBJECTIVES {
            let links = anneal(&network, objective, &config, &mut named_rng(seed, "anneal", 0)).unwrap();
            let first = score(&network, &greedy(&network, objective));
            prop_assert!(at_least(objective, score(&network, &links), first));
        }
    }

    #[test]
    fn a_gain_is_left_exactly_where_somebody_gains(network in tiny(), seed: u64) {
        let mut rng = named_rng(seed, "gain", 0);
        let nash = best_response(&network, Objective::SumRate, &BestResponseConfig { n_starts: 2, max_rounds: 20 }, &mut rng);
        // Every move of every user, recomputed by complete outcomes.
        let before = network.outcome(&nash.links);
        let mut largest = 0.0f64;
        for user in 0..network.radio.n_users {
            for option in 0..network.radio.n_actions() {
                let mut links = nash.links.clone();
                links[user] = network.radio.link(option);
                largest = largest.max(network.outcome(&links).rate_mbps[user] - before.rate_mbps[user]);
            }
        }
        prop_assert_eq!(nash.largest_gain_mbps, largest);
        prop_assert!(nash.is_certified() || nash.rounds == 20);
    }
}
