//! A step of a district with vehicles and a washing machine, or with thermal devices and networks, allocates nothing.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "the suite needs the rest")]
#[path = "suite/common/mod.rs"]
mod common;

use std::io::Read;

use brasa_citylearn::{CityLearn, CityLearnConfig, Physics, Reward};
use brasa_env::{BatchSlabs, EnvBatch};
use brasa_test::memory::Counting;
use common::thermal::{config, cut, golden};
use ndarray::Array2;

#[global_allocator]
static MEMORY: Counting = Counting::new();

#[test]
fn a_step_allocates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/citylearn_ev");
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "gz") {
            let mut bytes = Vec::new();
            flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_end(&mut bytes).unwrap();
            std::fs::write(folder.path().join(path.file_stem().unwrap()), bytes).unwrap();
        }
    }
    for physics in [Physics::Clean, Physics::CityLearn25, Physics::CityLearn30] {
        if physics == Physics::CityLearn30 {
            without_machines(&folder.path().join("schema.json"));
        }
        let data = folder.path().to_str().unwrap().to_owned();
        check(CityLearnConfig { data, physics, accept_unlikely_pv: true, ..CityLearnConfig::default() });
        for run in ["cut_outages", "cut_dynamics"] {
            let folder = cut(&golden(run, "3.0.2"));
            check(CityLearnConfig { reward: Reward::SolarPenaltyAndComfort, ..config(physics, folder.path()) });
        }
    }
}

fn check(config: CityLearnConfig) {
    let config = CityLearnConfig { episode_steps: Some(24), ..config };
    let mut batch = CityLearn::new(config.clone()).unwrap().batch(0..9).unwrap();
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).unwrap();
    let actions = Array2::from_elem((9, batch.spec().action.width()), 0.3);
    let before = MEMORY.restart();
    for _ in 0..100 {
        batch.step(actions.view(), &mut slabs).unwrap();
    }
    assert_eq!(MEMORY.peak(), before, "{config:?}");
}

fn without_machines(path: &std::path::Path) {
    let mut schema: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for building in schema["buildings"].as_object_mut().unwrap().values_mut() {
        building.as_object_mut().unwrap().remove("washing_machines");
    }
    for part in ["observations", "actions"] {
        schema[part].as_object_mut().unwrap().retain(|name, _| !name.contains("washing_machine"));
    }
    std::fs::write(path, schema.to_string()).unwrap();
}
