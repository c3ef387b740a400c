//! Laws that hold for random data sets, actions and rules: loads, demands, sun, outages, sessions of vehicles and all devices are drawn.
#![allow(clippy::unwrap_used)]

use crate::common;

use brasa_citylearn::{CityLearn, CityLearnConfig, Physics, Reward};
use brasa_env::named_rng;
use common::district::{District, district};
use common::golden::record;
use proptest::prelude::*;
use rand::RngExt;

const PHYSICS: [Physics; 3] = [Physics::Clean, Physics::CityLearn30, Physics::CityLearn25];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn energy_is_conserved_in_any_district(seed in any::<u64>(), place in 0_usize..3) {
        let physics = PHYSICS[place];
        let District { data, outages, stays, vehicle_kwh, battery_kwh } = district(seed, true);
        let config = CityLearnConfig {
            data: data.folder.to_str().unwrap().to_owned(),
            physics,
            accept_unlikely_pv: true,
            reward: Reward::GridImport,
            ..CityLearnConfig::default()
        };
        let scenario = CityLearn::new(config).unwrap();
        let mut rng = named_rng(seed, "actions", 0);
        let extreme = rng.random_range(0..4);
        let recording = record(&scenario, |_, _| match extreme {
            0 => 1.0,
            1 => -1.0,
            _ => rng.random_range(-1.2..1.2),
        });
        let clean = physics == Physics::Clean;
        // CityLearn stores energies in f32.
        let tolerance_kwh = if clean { 1e-9 } else { 2e-5 };
        for soc in recording.soc.iter().chain(&recording.tank_soc).chain(&recording.vehicle_soc) {
            prop_assert!((-1e-6..=1.0 + 1e-6).contains(soc), "{soc}");
        }
        // CityLearn counts the first row in its own ways.
        let first = usize::from(!clean);
        for ((step, home), served) in recording.served_kwh.indexed_iter().filter(|((step, _), _)| *step >= first) {
            let expected = recording.expected_kwh[(step, home)];
            prop_assert!((-1e-4..=expected + 1e-4).contains(served), "{step}: {served} of {expected}");
        }
        for step in 1..recording.flows.len() {
            let flows = &recording.flows[step];
            let net_kwh = recording.net_kwh[(step, 0)];
            if outages[step] {
                prop_assert_eq!(net_kwh, 0.0);
            }
            let spare_kwh = flows.pv_available_kwh + flows.battery_out_kwh + flows.grid_import_kwh
                - flows.load_kwh - flows.battery_in_kwh - flows.ev_delivered_kwh - flows.grid_export_kwh;
            if !outages[step] {
                prop_assert!(spare_kwh.abs() <= tolerance_kwh, "{step}: {spare_kwh} {flows:?}");
            } else if clean {
                // What PV gives beyond its use is lost.
                prop_assert!(spare_kwh >= -tolerance_kwh, "{step}: {spare_kwh} {flows:?}");
            }
            if !clean {
                continue;
            }
            let gain_kwh = battery_kwh * (recording.soc[(step, 0)] - recording.soc[(step - 1, 0)]);
            prop_assert!(gain_kwh <= recording.battery_kwh[(step, 0)] + 1e-9, "{step}: {gain_kwh}");
            for (charger, stays) in stays.iter().enumerate().filter(|(_, stays)| stays[step] && stays[step - 1]) {
                let soc = [step - 1, step].map(|step| recording.vehicle_soc[(step, charger)]);
                let (gain_kwh, kwh) = (vehicle_kwh[charger] * (soc[1] - soc[0]), recording.charger_kwh[(step, charger)]);
                prop_assert!(gain_kwh <= kwh + 1e-9, "{step}: {gain_kwh} of {kwh}, {stays:?}");
                prop_assert!(!outages[step] || kwh >= 0.0, "{step}: {kwh}");
            }
        }
    }
}
