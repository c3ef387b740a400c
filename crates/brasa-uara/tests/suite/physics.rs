//! Interfering links: closed forms, invariants, and numbers of an independent implementation.

use crate::common;

use std::sync::Arc;

use approx::{assert_abs_diff_eq, assert_relative_eq};
use brasa_env::named_rng;
use brasa_uara::baselines::{Objective, Score, exhaustive};
use brasa_uara::{Interference, Link, Radio, Receiver, Snapshot, mw_to_dbm};
use common::{Station, femto_cell, link, macro_cell, noise_mw, pico_cell, random_snapshot, snapshot};
use proptest::prelude::*;
use rand::RngExt;
use serde_json::Value;

const BOTH: [Interference; 2] = [Interference::PerLink, Interference::PerTransmitter];

fn db(sinr: f64) -> f64 {
    10.0 * sinr.log10()
}

#[test]
fn v1_noise() {
    assert_abs_diff_eq!(mw_to_dbm(noise_mw()), -121.4473, epsilon = 1e-4);
    assert_relative_eq!(noise_mw(), 7.165929e-13, max_relative = 1e-6);
}

#[test]
fn v2_rates_against_noise() {
    let origin = [0.0, 0.0];
    let (wide, near, home) = (macro_cell(origin), pico_cell(origin), femto_cell(origin));
    for (station, distance_m, snr_db, rate_mbps) in [
        (wide, 100.0, 47.4473, 2.837101),
        (wide, 500.0, 19.4885, 1.168213),
        (near, 50.0, 49.4885, 2.959152),
        (near, 100.0, 37.4473, 2.239196),
        (home, 10.0, 74.4473, 4.451553),
        (home, 30.0, 60.1336, 3.595673),
    ] {
        for interference in BOTH {
            let network = snapshot(&[station], &[[distance_m, 0.0]], 1, interference, true);
            let outcome = network.outcome(&[link(0, 0)]);
            assert_abs_diff_eq!(db(outcome.sinr[0]), snr_db, epsilon = 1e-4);
            assert_abs_diff_eq!(outcome.rate_mbps[0], rate_mbps, epsilon = 1e-6);
        }
    }
}

/// A constructor of a kind of station.
type Kind = fn([f64; 2]) -> Station;

/// The SINR in dB of a user at the origin that the first station serves; the others serve a user next to
/// them, all on one channel. Stations are in different directions, at the given distances.
fn disturbed_db(stations: &[(Kind, f64)], interference: Interference) -> f64 {
    let directions = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]];
    let at = |distance: f64, direction: [f64; 2]| direction.map(|x| x * distance);
    let placed = stations.iter().zip(directions);
    let placed: Vec<Station> = placed.map(|((kind, distance), direction)| kind(at(*distance, direction))).collect();
    let mut users = vec![[0.0, 0.0]];
    users.extend(placed[1..].iter().map(|station| [station.at_m[0] + 1.0, station.at_m[1] + 1.0]));
    let links: Vec<Link> = (0..users.len()).map(|user| link(user as u16, 0)).collect();
    db(snapshot(&placed, &users, 1, interference, true).outcome(&links).sinr[0])
}

#[test]
fn v3_two_macro_cells() {
    for interference in BOTH {
        let ratio = disturbed_db(&[(macro_cell, 100.0), (macro_cell, 400.0)], interference);
        assert_abs_diff_eq!(ratio, 24.062433, epsilon = 1e-4);
        // Noise slightly reduces the SINR that follows from distances alone.
        assert!(ratio < 40.0 * 4f64.log10());
    }
}

#[test]
fn v4_pico_and_macro_cell() {
    for interference in BOTH {
        let ratio = disturbed_db(&[(pico_cell, 50.0), (macro_cell, 250.0)], interference);
        assert_abs_diff_eq!(ratio, 17.955748, epsilon = 1e-4);
    }
}

#[test]
fn v5_all_kinds_of_cells() {
    for interference in BOTH {
        let ratio = disturbed_db(&[(femto_cell, 10.0), (pico_cell, 60.0), (macro_cell, 300.0)], interference);
        assert_abs_diff_eq!(ratio, 28.057013, epsilon = 1e-4);
    }
}

#[test]
fn v6_two_users_of_one_station_and_channel() {
    let users = [[100.0, 0.0], [0.0, 100.0]];
    let network = |interference| snapshot(&[macro_cell([0.0, 0.0])], &users, 1, interference, true);
    let outcome = network(Interference::PerLink).outcome(&[link(0, 0); 2]);
    for (sinr, satisfied) in outcome.sinr.iter().zip(&outcome.satisfied) {
        assert_abs_diff_eq!(db(*sinr), -0.000078, epsilon = 1e-4);
        assert!(*sinr < 1.0 && !satisfied, "fails 0 dB and 5 dB");
    }
    // With admission one of them is rejected and the other is alone.
    let outcome = network(Interference::PerTransmitter).outcome(&[link(0, 0); 2]);
    assert_abs_diff_eq!(db(outcome.sinr[0]), 47.4473, epsilon = 1e-4);
    assert_eq!(outcome.sinr[1], 0.0);
}

#[test]
fn v7_exhaustive_tiny_network() {
    let stations = [macro_cell([0.0, 0.0]), macro_cell([300.0, 0.0])];
    let users = [[100.0, 0.0], [200.0, 0.0], [20.0, 0.0]];
    let network = snapshot(&stations, &users, 2, Interference::PerLink, true);
    for objective in [Objective::Satisfied, Objective::SumRate] {
        let found = exhaustive(&network, objective).unwrap();
        assert_eq!((found.n_choices, found.n_all_satisfied, found.sum_satisfied), (64, 8, 78));
        assert_abs_diff_eq!(found.mean_sum_rate_mbps, 2.859189, epsilon = 1e-6);
        assert_abs_diff_eq!(found.best_sum_rate_mbps, 6.313789, epsilon = 1e-6);
        let options: Vec<usize> = found.links.iter().map(|link| network.radio.option(*link)).collect();
        assert_eq!(options, [0, 3, 1]);
        let outcome = network.outcome(&found.links);
        for (sinr, expected_db) in outcome.sinr.iter().zip([47.4473, 12.0399, 45.8403]) {
            assert_abs_diff_eq!(db(*sinr), expected_db, epsilon = 1e-4);
        }
        assert_eq!(found.score, Score::of(&outcome));
    }
}

#[test]
fn a_station_admits_one_user_per_channel() {
    // Users 0 to 2 request channel 0 of the first station, and user 2 is the nearest. User 3 requests channel 1 of it.
    // User 4 requests channel 0 of a station out of its reach, and user 5 is served there.
    let stations = [macro_cell([0.0, 0.0]), pico_cell([300.0, 0.0])];
    let users = [[90.0, 0.0], [60.0, 0.0], [30.0, 0.0], [90.0, 0.0], [0.0, 40.0], [290.0, 0.0]];
    let network = snapshot(&stations, &users, 2, Interference::PerTransmitter, true);
    let links = [link(0, 0), link(0, 0), link(0, 0), link(0, 1), link(1, 0), link(1, 0)];
    let mut receiver = Receiver::new(&network.radio);
    let outcome = network.outcome_with(&mut receiver, &links);
    assert_eq!(receiver.rejected(), [true, true, false, false, true, false]);
    for rejected in [0, 1, 4] {
        assert_eq!((outcome.sinr[rejected], outcome.rate_mbps[rejected]), (0.0, 0.0));
    }
    // Rejected users have no transmission: the results of the others are those without them.
    let rest = [[30.0, 0.0], [90.0, 0.0], [290.0, 0.0]];
    let rest = snapshot(&stations, &rest, 2, Interference::PerTransmitter, true);
    let alone = rest.outcome(&[link(0, 0), link(0, 1), link(1, 0)]);
    assert_eq!([2, 3, 5].map(|user| outcome.sinr[user]), alone.sinr[..]);
    // The first one if equal.
    let twins = snapshot(&stations, &[[50.0, 0.0]; 3], 1, Interference::PerTransmitter, true);
    assert_eq!(twins.outcome(&[link(0, 0); 3]).satisfied, [true, false, false]);
}

#[test]
fn links_equal_an_independent_implementation() {
    let record: Value = serde_json::from_str(include_str!("../data/links.json")).unwrap();
    let count = |field: &str| record[field].as_u64().unwrap() as usize;
    let floats =
        |value: &Value| -> Vec<f64> { value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
    let cases = record["cases"].as_array().unwrap();
    for case in cases {
        let per_transmitter = case["per_transmitter"].as_bool().unwrap();
        let radio = Radio {
            n_users: count("n_users"),
            n_stations: count("n_stations"),
            n_channels: count("n_channels"),
            power_levels: floats(&case["power_levels"]),
            bandwidth_hz: record["bandwidth_hz"].as_f64().unwrap(),
            noise_mw: record["noise_mw"].as_f64().unwrap(),
            min_sinr: 1.0,
            max_bits_per_hz: case["max_bits_per_hz"].as_f64(),
            interference: BOTH[usize::from(per_transmitter)],
        };
        let index = |field: &str, user: usize| case[field][user].as_u64().unwrap() as u16;
        let link = |user| Link {
            station: index("station", user),
            channel: index("channel", user),
            power: index("power", user),
        };
        let links: Vec<Link> = (0..radio.n_users).map(link).collect();
        let reached: Vec<bool> = floats(&case["reached"]).iter().map(|reached| *reached == 1.0).collect();
        let received_mw = floats(&case["received_mw"]);
        let network = Snapshot { radio: Arc::new(radio), received_mw, allowed: reached.clone(), reached };
        let outcome = network.outcome(&links);
        assert_relative_eq!(outcome.sinr[..], floats(&case["sinr"])[..], max_relative = 1e-9, epsilon = 0.0);
        assert_relative_eq!(outcome.rate_mbps[..], floats(&case["rate_mbps"])[..], max_relative = 1e-9, epsilon = 0.0);
    }
    assert_eq!(cases.len(), 32);
}

/// Random links of `network`, over all options.
fn random_links(network: &Snapshot, seed: u64) -> Vec<Link> {
    let mut rng = named_rng(seed, "links", 0);
    let n = network.radio.n_actions() as u32;
    (0..network.radio.n_users).map(|_| network.radio.link(rng.random_range(0..n) as usize)).collect()
}

/// Equal up to the order in which powers were added.
fn assert_same(one: &[f64], other: &[f64]) {
    for (one, other) in one.iter().zip(other) {
        assert_relative_eq!(one, other, max_relative = 1e-12, epsilon = 0.0);
    }
    assert_eq!(one.len(), other.len());
}

/// `network` without all users but the first `n`.
fn first_users(network: &Snapshot, n: usize) -> Snapshot {
    let radio = Radio { n_users: n, ..(*network.radio).clone() };
    let pairs = n * radio.n_stations;
    Snapshot {
        radio: Arc::new(radio),
        received_mw: network.received_mw[..pairs].to_vec(),
        reached: network.reached[..pairs].to_vec(),
        allowed: network.allowed[..pairs].to_vec(),
    }
}

fn interference_model() -> impl Strategy<Value = Interference> {
    prop_oneof![Just(Interference::PerLink), Just(Interference::PerTransmitter)]
}

proptest! {
    #[test]
    fn v8_names_of_channels_do_not_matter(seed: u64, shift in 1u16..4, model in interference_model(), gated: bool) {
        let network = random_snapshot(seed, 8, 4, model, gated);
        let links = random_links(&network, seed);
        let moved: Vec<Link> =
            links.iter().map(|link| Link { channel: (link.channel + shift) % 4, ..*link }).collect();
        prop_assert_eq!(network.outcome(&moved), network.outcome(&links));
    }

    #[test]
    fn v8_permuted_users_get_permuted_results(seed: u64, model in interference_model(), gated: bool) {
        let network = random_snapshot(seed, 8, 3, model, gated);
        let links = random_links(&network, seed);
        let mut order: Vec<usize> = (0..8).collect();
        let mut rng = named_rng(seed, "order", 0);
        (1..8).rev().for_each(|place| order.swap(place, rng.random_range(0..=place as u32) as usize));
        let n = network.radio.n_stations;
        let mut permuted = network.clone();
        for (place, user) in order.iter().enumerate() {
            permuted.received_mw[place * n..(place + 1) * n].copy_from_slice(&network.received_mw[user * n..(user + 1) * n]);
            permuted.reached[place * n..(place + 1) * n].copy_from_slice(&network.reached[user * n..(user + 1) * n]);
        }
        let permuted_links: Vec<Link> = order.iter().map(|user| links[*user]).collect();
        let sinr = network.outcome(&links).sinr;
        let expected: Vec<f64> = order.iter().map(|user| sinr[*user]).collect();
        assert_same(&permuted.outcome(&permuted_links).sinr, &expected);
    }

    #[test]
    fn v8_a_user_on_a_new_channel_changes_nothing(seed: u64, model in interference_model(), gated: bool) {
        let network = random_snapshot(seed, 8, 4, model, gated);
        let mut links = random_links(&network, seed);
        // The last user has channel 3 for itself.
        links.iter_mut().for_each(|link| link.channel %= 3);
        links[7].channel = 3;
        let before = first_users(&network, 7).outcome(&links[..7]);
        prop_assert_eq!(&network.outcome(&links).sinr[..7], &before.sinr[..]);
    }

    #[test]
    fn v8_a_user_on_the_same_channel_helps_nobody(seed: u64, gated: bool) {
        let network = random_snapshot(seed, 8, 3, Interference::PerLink, gated);
        let links = random_links(&network, seed);
        let before = first_users(&network, 7).outcome(&links[..7]);
        for (after, before) in network.outcome(&links).sinr.iter().zip(&before.sinr) {
            prop_assert!(*after <= before * (1.0 + 1e-12));
        }
    }

    #[test]
    fn v8_an_admitted_user_on_the_same_channel_helps_nobody(seed: u64, gated: bool) {
        // With admission a new user may replace another at its station, but improves no other user.
        let network = random_snapshot(seed, 8, 3, Interference::PerTransmitter, gated);
        let links = random_links(&network, seed);
        let before = first_users(&network, 7).outcome(&links[..7]);
        for (after, before) in network.outcome(&links).sinr.iter().zip(&before.sinr) {
            prop_assert!(*after <= before * (1.0 + 1e-12));
        }
    }

    #[test]
    fn v8_gated_interference_is_never_more(seed: u64, model in interference_model()) {
        let (gated, open) = (random_snapshot(seed, 8, 3, model, true), random_snapshot(seed, 8, 3, model, false));
        let links = random_links(&gated, seed);
        for (gated, open) in gated.outcome(&links).sinr.iter().zip(open.outcome(&links).sinr) {
            prop_assert!(*gated >= open * (1.0 - 1e-12));
        }
    }

    #[test]
    fn v8_alone_on_a_channel_there_is_only_noise(seed: u64, model in interference_model(), gated: bool) {
        let network = random_snapshot(seed, 6, 6, model, gated);
        let mut links = random_links(&network, seed);
        links.iter_mut().enumerate().for_each(|(user, link)| link.channel = user as u16);
        for (user, sinr) in network.outcome(&links).sinr.into_iter().enumerate() {
            let station = usize::from(links[user].station);
            let signal = if network.usable(user, station) { network.received_mw(user, station) } else { 0.0 };
            prop_assert_eq!(sinr, signal / network.radio.noise_mw);
        }
    }

    #[test]
    fn short_and_long_floats_agree(seed: u64, model in interference_model(), gated: bool) {
        let network = random_snapshot(seed, 12, 4, model, gated);
        let links = random_links(&network, seed);
        let received: Vec<f32> = network.received_mw.iter().map(|mw| *mw as f32).collect();
        let mut sinr = vec![0.0f32; 12];
        Receiver::new(&network.radio).sinr(&received, &network.reached, &links, &mut sinr);
        for (short, long) in sinr.into_iter().zip(network.outcome(&links).sinr) {
            prop_assert_eq!(short == 0.0, long == 0.0);
            if long > 0.0 {
                prop_assert!((db(f64::from(short)) - db(long)).abs() < 1e-3);
            }
        }
    }
}
