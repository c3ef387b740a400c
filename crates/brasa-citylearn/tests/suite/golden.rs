//! CityLearn's rules equal recordings of CityLearn 2.5.0 and 3.0.2 (`scripts/record_citylearn.py`).
#![allow(clippy::unwrap_used)]

use crate::common;

use std::path::PathBuf;

use brasa_citylearn::{
    CityLearn, CityLearnConfig, DeviceDraw, District, LoadOptions, Observations, Physics, Recording, Reward,
};
use brasa_env::{BatchSlabs, EnvBatch, Who};
use brasa_test::outcomes::{episode_return, play, ratio};
use common::golden::{gunzip, numbers, record, sine, uniform};
use ndarray::Array2;
use serde_json::Value;

const VERSIONS: [(&str, Physics); 2] = [("2.5.0", Physics::CityLearn25), ("3.0.2", Physics::CityLearn30)];
const BUILDINGS: usize = 5;

/// Both are computed in f64 and stored as f32, so roundings may differ by one unit.
const NET_TOLERANCE_KWH: f64 = 2e-6;
const SOC_TOLERANCE: f64 = 1e-6;
const RATIO_TOLERANCE: f64 = 1e-6;

struct Golden {
    about: Value,
    stride: usize,
    /// `[kept row, net of each building then state of charge of each]`.
    kept: Array2<f32>,
}

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/citylearn")
}

fn golden(run: &str, version: &str) -> Golden {
    let about: Value =
        serde_json::from_slice(&std::fs::read(data().join(format!("{run}-{version}.json"))).unwrap()).unwrap();
    assert_eq!(about["citylearn"], version);
    let bytes = gunzip(&data().join(format!("{run}-{version}.bin.gz")));
    let values: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let kept = Array2::from_shape_vec((values.len() / (2 * BUILDINGS), 2 * BUILDINGS), values).unwrap();
    let stride = about["stride"].as_u64().unwrap() as usize;
    assert_eq!(kept.nrows(), (about["steps"].as_u64().unwrap() as usize).div_ceil(stride));
    Golden { about, stride, kept }
}

fn config(physics: Physics) -> CityLearnConfig {
    CityLearnConfig { physics, reward: Reward::GridImport, ..CityLearnConfig::default() }
}

fn compare(golden: &Golden, scenario: &CityLearn, recording: &Recording) {
    let name = format!("{} of {}", golden.about["run"], golden.about["citylearn"]);
    assert_eq!(recording.reward.len() as u64, golden.about["steps"].as_u64().unwrap());
    let (mut worst_net, mut worst_soc) = (0.0_f64, 0.0_f64);
    for (kept, row) in golden.kept.rows().into_iter().enumerate() {
        let step = kept * golden.stride;
        for building in 0..BUILDINGS {
            let net = (recording.net_kwh[(step, building)] - f64::from(row[building])).abs();
            let soc = (recording.soc[(step, building)] - f64::from(row[BUILDINGS + building])).abs();
            assert!(net <= NET_TOLERANCE_KWH, "{name}: net of building {building} off by {net} kWh at step {step}");
            assert!(soc <= SOC_TOLERANCE, "{name}: state of charge {building} off by {soc} at step {step}");
            (worst_net, worst_soc) = (worst_net.max(net), worst_soc.max(soc));
        }
    }
    let sums = numbers(&golden.about["net_sum_kwh"]);
    for (building, sum) in sums.iter().enumerate() {
        approx::assert_abs_diff_eq!(recording.net_kwh.column(building).sum(), *sum, epsilon = 1e-3);
    }
    let capacities = numbers(&golden.about["capacity_at_end_kwh"]);
    for (capacity, expected) in recording.capacity_kwh.iter().zip(capacities) {
        approx::assert_abs_diff_eq!(*capacity, expected, epsilon = 1e-8);
    }
    let total: f64 = recording.reward.iter().map(|reward| f64::from(*reward)).sum();
    approx::assert_abs_diff_eq!(total, golden.about["return"].as_f64().unwrap(), epsilon = 2e-3);
    for (reward, expected) in recording.reward.iter().zip(numbers(&golden.about["first_rewards"])) {
        approx::assert_abs_diff_eq!(f64::from(*reward), expected, epsilon = 1e-5);
    }
    let indicators = scenario.indicators(recording);
    let rows = indicators.rows();
    let expected = golden.about["indicators"].as_array().unwrap();
    // Five of the district's grid, and four for the district and each building.
    assert_eq!(rows.len(), 5 + 4 * (1 + BUILDINGS));
    assert_eq!(rows.len(), expected.len(), "{name}");
    for row in expected {
        let (level, indicator, value) = (&row[0], &row[1], row[2].as_f64().unwrap());
        let ours = rows.iter().find(|(a, b, _)| level == a && indicator == b).unwrap().2.unwrap();
        assert!((ours - value).abs() <= RATIO_TOLERANCE, "{name}: {indicator} of {level} is {ours}, not {value}");
    }
    println!("{name}: worst net {worst_net:.2e} kWh, worst state of charge {worst_soc:.2e}");
}

#[test]
fn every_step_of_a_random_year() {
    for (version, physics) in VERSIONS {
        let scenario = CityLearn::new(config(physics)).unwrap();
        let golden = golden("random", version);
        assert_eq!(golden.stride, 1);
        compare(&golden, &scenario, &record(&scenario, uniform(2.0)));
    }
}

#[test]
fn years_of_sine_rules_and_nothing() {
    for (version, physics) in VERSIONS {
        let scenario = CityLearn::new(config(physics)).unwrap();
        compare(&golden("sine", version), &scenario, &record(&scenario, sine));
        for (run, rule) in [("idle", "idle"), ("basic_battery_rbc", "rule-based")] {
            compare(&golden(run, version), &scenario, &scenario.record(Who::Baseline(rule), 0).unwrap());
        }
    }
}

/// Sine actions in 2.5: net at steps 0, 1, 2, 3, 12, 99, 999, then state of charge at steps 1, 2, 12, 47.
const SINE25: [[f64; 11]; 2] = [
    [6.8274, 2.033247, 3.09317, 3.971474, -4.044949, 2.180777, 0.157893, 0.167829, 0.494401, 0.589115, 0.999776],
    [13.298018, 4.601514, 1.270119, 0.558064, 1.21006, 0.32325, 0.48, 0.973609, 0.997675, 0.0, 0.999975],
];
/// The same in 3.0.
const SINE30: [[f64; 11]; 2] = [
    [2.2758, 2.033247, 3.09317, 3.971474, -4.044949, 2.181633, 0.183983, 0.167829, 0.494401, 0.589115, 0.999977],
    [5.554634, 4.799504, 1.10125, 0.543217, 1.210517, 0.32325, 0.48, 0.999997, 0.999997, 0.0, 0.999976],
];

#[test]
fn sine_actions_agree_with_numbers_written_down_elsewhere() {
    for (physics, expected) in [(Physics::CityLearn25, SINE25), (Physics::CityLearn30, SINE30)] {
        let scenario = CityLearn::new(config(physics)).unwrap();
        let recording = record(&scenario, sine);
        for (building, expected) in expected.iter().enumerate() {
            let net = [0, 1, 2, 3, 12, 99, 999].map(|step| recording.net_kwh[(step, building)]);
            let soc = [1, 2, 12, 47].map(|step| recording.soc[(step, building)]);
            for (got, expected) in net.iter().chain(&soc).zip(expected) {
                approx::assert_abs_diff_eq!(got, expected, epsilon = 2e-6);
            }
        }
    }
}

/// Return, then ratios of import, carbon, cost, net, ramping, daily peak, peak, daily and monthly load factor.
type Row = (Physics, &'static str, f64, [f64; 9]);
const RULES: [Row; 6] = [
    (
        Physics::CityLearn25,
        "basic-rbc",
        -35704.550,
        [1.2275, 1.1804, 1.1158, 1.1369, 1.1562, 1.1427, 1.1883, 0.9893, 0.9897],
    ),
    (
        Physics::CityLearn25,
        "optimized-rbc",
        -31505.657,
        [1.0792, 1.0547, 1.0280, 1.0565, 1.0389, 1.0230, 1.0703, 0.9861, 0.9929],
    ),
    (
        Physics::CityLearn25,
        "rule-based",
        -28428.728,
        [0.9709, 0.9714, 0.9053, 1.1353, 1.0735, 0.9537, 1.0, 0.9487, 0.9778],
    ),
    (
        Physics::CityLearn30,
        "basic-rbc",
        -35686.524,
        [1.2275, 1.1804, 1.1158, 1.1369, 1.1562, 1.1417, 1.0142, 0.9892, 0.9900],
    ),
    (
        Physics::CityLearn30,
        "optimized-rbc",
        -31488.773,
        [1.0792, 1.0547, 1.0280, 1.0565, 1.0389, 1.0225, 0.9512, 0.9861, 0.9919],
    ),
    (
        Physics::CityLearn30,
        "rule-based",
        -28413.023,
        [0.9709, 0.9714, 0.9053, 1.1355, 1.0734, 0.9530, 0.8998, 0.9485, 0.9740],
    ),
];

#[test]
fn rule_based_controllers_reach_the_published_ratios() {
    for (physics, rule, total, ratios) in RULES {
        let scenario = CityLearn::new(config(physics)).unwrap();
        let outcome = play(&scenario, Who::Baseline(rule), 0);
        approx::assert_abs_diff_eq!(episode_return(&outcome), total, epsilon = 2e-3);
        let names = [
            "grid_import_building_mean",
            "carbon_building_mean",
            "cost_building_mean",
            "net_building_mean",
            "ramping_kw",
            "daily_peak_kw",
            "peak_kw",
            "one_minus_load_factor",
            "one_minus_load_factor_monthly",
        ];
        for (name, expected) in names.iter().zip(ratios) {
            let ratio = ratio(&scenario, &outcome, name);
            assert!((ratio - expected).abs() <= 5.1e-5, "{physics:?} {rule}: {name} is {ratio}, not {expected}");
        }
        let score = ratio(&scenario, &outcome, "challenge_score");
        let [_, carbon, cost, _, ramping, _, _, _, monthly] = ratios;
        approx::assert_abs_diff_eq!(score, (carbon + cost + (ramping + monthly) / 2.0) / 3.0, epsilon = 1e-4);
    }
}

/// A copy of the embedded data with the schema changes of the recording; removed on drop.
struct SampledData(PathBuf);

impl Drop for SampledData {
    fn drop(&mut self) {
        // A remaining temporary folder is harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn sampled_data(golden: &Golden) -> SampledData {
    let unique = format!("brasa-citylearn-{}-{}", std::process::id(), golden.about["citylearn"].as_str().unwrap());
    let folder = SampledData(std::env::temp_dir().join(unique));
    std::fs::create_dir_all(&folder.0).unwrap();
    for entry in std::fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "gz") {
            let bytes = gunzip(&path);
            std::fs::write(folder.0.join(path.file_stem().unwrap()), bytes).unwrap();
        }
    }
    let path = folder.0.join("schema.json");
    let mut schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    schema["random_seed"] = golden.about["random_seed"].clone();
    schema["simulation_end_time_step"] = golden.about["steps"].clone();
    for (name, battery) in golden.about["batteries"].as_object().unwrap() {
        schema["buildings"][name]["electrical_storage"]["attributes"] = battery.clone();
    }
    std::fs::write(&path, schema.to_string()).unwrap();
    folder
}

#[test]
fn drawn_parameters_and_what_they_lead_to() {
    for (version, physics) in VERSIONS {
        let golden = golden("sampled", version);
        let folder = sampled_data(&golden);
        let data = folder.0.to_str().unwrap().to_owned();
        let district = District::load(&data, LoadOptions::default()).unwrap();
        for (building, expected) in district.buildings().iter().zip(golden.about["parameters"].as_array().unwrap()) {
            let battery = building.battery.as_ref().unwrap();
            let fields = [
                ("efficiency", battery.efficiency),
                ("loss_coefficient", battery.loss_coefficient),
                ("capacity_loss_coefficient", battery.capacity_loss_coefficient),
                ("depth_of_discharge", battery.depth_of_discharge),
                ("initial_soc", battery.initial_soc),
            ];
            for (name, value) in fields {
                approx::assert_abs_diff_eq!(value, expected[name].as_f64().unwrap(), epsilon = 1e-15);
            }
            let curves = [("power_efficiency_curve", &battery.power_efficiency)];
            for (name, curve) in curves.into_iter().chain([("capacity_power_curve", &battery.capacity_power)]) {
                let (xs, ys) = (numbers(&expected[name][0]), numbers(&expected[name][1]));
                for ((x, y), (expected_x, expected_y)) in curve.points().into_iter().zip(xs.into_iter().zip(ys)) {
                    approx::assert_abs_diff_eq!(x, expected_x, epsilon = 1e-12);
                    approx::assert_abs_diff_eq!(y, expected_y, epsilon = 1e-12);
                }
            }
        }
        let scenario = CityLearn::new(CityLearnConfig { data, ..config(physics) }).unwrap();
        compare(&golden, &scenario, &record(&scenario, sine));
        check_observations(&golden, &scenario);
    }
}

#[test]
fn observations_of_the_first_steps() {
    for (version, physics) in VERSIONS {
        let golden = golden("sine", version);
        check_observations(&golden, &CityLearn::new(config(physics)).unwrap());
    }
}

fn check_observations(golden: &Golden, scenario: &CityLearn) {
    for (kind, key) in [(Observations::Raw, ""), (Observations::Normalized, "normalized_")] {
        let config = CityLearnConfig { observations: kind, ..scenario.config().clone() };
        let mut batch = CityLearn::new(config).unwrap().batch(0..1).unwrap();
        let names = golden.about[format!("{key}observation_names")].as_array().unwrap();
        let brasa_env::Space::Box(space) = batch.spec().obs.clone() else { panic!("observations are a box") };
        assert_eq!(space.names.len(), names.len());
        for (ours, theirs) in space.names.iter().zip(names) {
            assert_eq!(ours.rsplit('.').next().unwrap(), theirs.as_str().unwrap());
        }
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(0, &mut slabs).unwrap();
        for (step, expected) in golden.about[format!("{key}observations")].as_array().unwrap().iter().enumerate() {
            for ((got, expected), name) in slabs.obs.row(0).iter().zip(numbers(expected)).zip(&space.names) {
                // Relative to f32: raw irradiance reaches 1000.
                let tolerance = 2e-6 * expected.abs().max(1.0);
                let off = (f64::from(*got) - expected).abs();
                assert!(off <= tolerance, "{kind:?} {name} at step {step}: {got}, not {expected}");
            }
            batch
                .step(Array2::from_shape_fn((1, BUILDINGS), |(_, i)| sine(step, i) as f32).view(), &mut slabs)
                .unwrap();
        }
    }
}

#[test]
fn observations_after_one_step_of_half_power() {
    let expected = [
        (Physics::CityLearn25, [0.85117, 0.0, 0.0, 0.0]),
        (Physics::CityLearn30, [0.85117, 0.0, 0.36291, 4.7758]),
        (Physics::Clean, [0.85117, 0.0, 0.36291, 4.7758]),
    ];
    for (physics, expected) in expected {
        let config = CityLearnConfig { observations: Observations::Raw, ..config(physics) };
        let mut batch = CityLearn::new(config).unwrap().batch(0..1).unwrap();
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(0, &mut slabs).unwrap();
        let start: Vec<f32> = slabs.obs.row(0).to_vec();
        assert_eq!(start.len(), 44);
        assert_eq!(&start[..4], [7.0, 7.0, 24.0, 20.0]);
        assert_eq!(&start[20..24], [2.2758, 0.0, 0.0, 2.2758]);
        batch.step(Array2::from_elem((1, BUILDINGS), 0.5).view(), &mut slabs).unwrap();
        for (got, expected) in slabs.obs.row(0).iter().skip(20).zip(expected) {
            approx::assert_abs_diff_eq!(f64::from(*got), expected, epsilon = 1e-5);
        }
    }
}

#[test]
fn the_generator_is_the_one_of_numpy() {
    // RandomState(7).random_sample()
    assert_eq!(DeviceDraw::from_seed(7).uniform(0.0, 1.0), 0.076_308_289_373_957_17);
}
