//! The charging station equals a second implementation in plain Python: `scripts/record_station.py` has recorded its episodes.

use std::io::Read;

use brasa_energy::station::{Station, StationConfig};
use brasa_env::{BatchSlabs, EnvBatch};
use flate2::read::GzDecoder;
use ndarray::Array2;
use serde_json::Value;

const EPISODES: &[u8] = include_bytes!("../data/station/episodes.json.gz");

#[test]
fn every_flow_equals_that_of_the_second_implementation() {
    let mut text = String::new();
    GzDecoder::new(EPISODES).read_to_string(&mut text).expect("it is gzip");
    let episodes: Vec<Value> = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(episodes.len(), 4);
    for (number, episode) in episodes.iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, episode["csv"][name].as_str().expect("a text")).expect("it is written");
            Some(path)
        };
        let mut config: StationConfig = serde_json::from_value(episode["config"].clone()).expect("a config");
        config.prices.file = file("prices");
        config.pv.file = file("pv");
        config.arrivals.file = file("sessions");
        let mut batch = Station::new(config).expect("the files are valid").batch(0..1).expect("a batch");
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(0, &mut slabs).expect("resets");
        let steps = episode["steps"].as_array().expect("steps");
        assert!(steps.len() >= 24);
        let mut largest = std::collections::BTreeMap::<String, f64>::new();
        for (step, expected) in steps.iter().enumerate() {
            let action: Vec<f32> = serde_json::from_value(episode["actions"][step].clone()).expect("numbers");
            let action = Array2::from_shape_vec((1, action.len()), action).expect("one row");
            batch.step(action.view(), &mut slabs).expect("steps");
            let flows = batch.flows(0);
            let mut seen = flows.ledger.entries().to_vec();
            // These are not recorded; the balance of the battery holds for the first.
            seen.retain(|(name, _)| !["battery_lost_kwh", "pv_available_kwh"].contains(name));
            seen.extend([
                ("excess_kwh", flows.excess_kwh),
                ("revenue", flows.revenue),
                ("energy_cost", flows.energy_cost),
                ("departed", f64::from(flows.departed)),
                ("turned_away", f64::from(flows.turned_away)),
            ]);
            let expected = |name: &str| expected[name].as_f64();
            for (name, seen) in seen {
                // Zeros are left out.
                let expected = expected(name).unwrap_or(0.0);
                assert!(
                    (seen - expected).abs() < 1e-9,
                    "episode {number}, step {step}, {name}: {seen}, not {expected}"
                );
                let most = largest.entry(name.to_owned()).or_default();
                *most = most.max(expected.abs());
            }
            // Rewards have 32 bits.
            let reward = expected("reward").unwrap_or(0.0);
            assert!((f64::from(slabs.reward[0]) - reward).abs() < 1e-6 * (1.0 + reward.abs()), "step {step}");
        }
        // Everything happens in every episode, except what its settings exclude.
        assert_eq!(largest.len(), 16);
        let config = batch.config();
        for (name, most) in largest {
            let is_excluded = name == "ev_returned_kwh" && !config.v2g
                || name == "pv_curtailed_kwh" && config.limits == brasa_energy::station::LimitMode::Penalize;
            assert_eq!(most > 0.0, !is_excluded, "episode {number}: {name}");
        }
    }
}
