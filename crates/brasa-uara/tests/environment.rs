//! The environment keeps its contract and pays what the formulas say.

use brasa_env::{BatchSlabs, EnvBatch, check_env};
use brasa_uara::{Link, Mask, Part, PowerUnit, Reward, Start, Uara, UaraBatch, UaraConfig};
use ndarray::Array2;

fn started(config: UaraConfig, n_envs: usize, seed: u64) -> (UaraBatch, BatchSlabs) {
    let mut batch = Uara::new(config).unwrap().batch(0..n_envs);
    let mut slabs = BatchSlabs::for_batch(&batch);
    batch.reset(seed, &mut slabs).unwrap();
    (batch, slabs)
}

/// Everything observed, three power levels, everything that moves.
fn everything() -> UaraConfig {
    let mut config = UaraConfig::physical();
    config.observe.extend([Part::State, Part::Agent]);
    config.power_levels = vec![0.25, 0.5, 1.0];
    config.dynamics.speed_m_per_s = 30.0;
    config.episode_steps = 7;
    config
}

#[test]
fn v16_presets_keep_the_contract_on_any_number_of_threads() {
    let masked = UaraConfig { mask: Mask::Covered, ..UaraConfig::cly2020() };
    let short = UaraConfig { episode_steps: 9, users: 12, ..UaraConfig::cly2020() };
    for config in [UaraConfig::physical(), UaraConfig::cly2020(), UaraConfig::zhao2019(), masked, short, everything()] {
        let scenario = Uara::new(config).unwrap();
        check_env(40, |envs| Ok(scenario.batch(envs))).unwrap();
    }
}
