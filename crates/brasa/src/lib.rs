//! Reinforcement learning on Burn: one crate that re-exports the others and registers their scenarios, networks and
//! algorithms.
//!
//! Code for any backend takes a `Device`. The features `flex` (default), `cuda` and `wgpu` select the compiled
//! backends; [`device::open_named`] opens one at run time.
//!
//! Every algorithm and every scenario is a feature, on by default; `experiment` is the command as a library.
//! The crates used in signatures are re-exported ([`burn`], [`ndarray`], [`rand`], [`serde`]), so that one line in a
//! `Cargo.toml` is enough. Derives of `serde` then need `#[serde(crate = "brasa::serde")]`, and `#[derive(Module)]` needs
//! `use brasa::burn;`.
//!
//! ```
//! use brasa::classic::CartPole;
//! use brasa::prelude::*;
//!
//! let device = brasa::device::open_named("cpu")?;
//! let envs = TimeLimit::new(EnvVec::new(0..4, |_| CartPole::default())?, CartPole::TIME_LIMIT)?;
//! let env = HostEnv::new(envs, &device);
//! let (spec, rng) = (env.spec().clone(), &mut named_rng(0, "weights", 0));
//! let config = brasa::nn::ActorCriticConfig { actor_hidden: vec![16], ..Default::default() };
//! let network = MlpActorCritic::new(&config, &spec.obs, &spec.action, &device.clone().autodiff(), rng)?;
//! let config = brasa::ppo::PpoConfig { n_steps: 32, ..Default::default() };
//! let ppo = brasa::ppo::Ppo::new(network, config, 0)?;
//! let mut trainer = Trainer::on_policy(env, ppo).total_env_steps(256).build()?;
//! trainer.run()?;
//! assert!(trainer.training().is_done());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which crate for what
//!
//! A program depends on `brasa`, or on the crates that it needs. The modules of `brasa` are these crates.
//!
//! | to | crates |
//! |---|---|
//! | train by TOML and command, compare, report | `brasa-cli`; [`experiment`] for a command with custom parts |
//! | train in a program | [`train`] ([`Trainer`](train::Trainer)) with [`ppo`], [`a2c`], [`sac`], [`td3`] or [`dqn`] |
//! | write an environment | [`env`](mod@env), without Burn; [`gym`] for environments of Gymnasium |
//! | write a network | [`nn`]: layers, action heads, optimizer; [`gat`]: attention over graphs |
//! | write an algorithm | [`contracts`]: environments, policies and learners on tensors; [`buffers`]: rollouts and replay |
//! | simulate | [`citylearn`], [`energy`], [`evacuation`], [`floorplan`], [`uara`], [`classic`], without Burn |
//! | deploy a policy | [`contracts::export`]: ONNX, C, JavaScript, safetensors |
//! | use several cores and machines | [`shards`], `brasa-mpi` |
//! | know a device | [`device`]: opening, profiles, plans; [`kernels`] and [`number`]: fused operations, rules written once |
//!
//! # Layers
//!
//! A crate depends on crates of lower layers only.
//!
//! ```text
//! L8  brasa-cli   brasa-py   examples   benches   xtask
//! L7  brasa   brasa-bench-kit
//! L6  brasa-experiment
//! L5  brasa-ppo   brasa-a2c   brasa-sac   brasa-td3   brasa-dqn   brasa-gat   brasa-train
//! L4  brasa-nn   brasa-buffers   brasa-mpi
//! L3  brasa-core   brasa-shards   brasa-citylearn   brasa-classic   brasa-energy   brasa-evacuation   brasa-gym   brasa-uara
//! L2  brasa-kernels   brasa-power
//! L1  brasa-env   brasa-device   brasa-floorplan   brasa-export
//! L0  brasa-number   brasa-lp
//! ```

pub mod prelude;
#[cfg(feature = "experiment")]
mod register;

// Environments.
#[cfg(feature = "classic")]
pub use brasa_classic as classic;
pub use brasa_env as env;
#[cfg(feature = "gym")]
pub use brasa_gym as gym;
#[cfg(feature = "uara")]
pub use brasa_uara as uara;
#[cfg(feature = "energy")]
pub use {brasa_citylearn as citylearn, brasa_energy as energy};
#[cfg(feature = "evacuation")]
pub use {brasa_evacuation as evacuation, brasa_floorplan as floorplan};

// Policies.
#[cfg(feature = "gat")]
pub use brasa_gat as gat;
pub use {brasa_core as contracts, brasa_nn as nn};

// Learners.
#[cfg(feature = "a2c")]
pub use brasa_a2c as a2c;
pub use brasa_buffers as buffers;
#[cfg(feature = "dqn")]
pub use brasa_dqn as dqn;
#[cfg(feature = "ppo")]
pub use brasa_ppo as ppo;
#[cfg(feature = "sac")]
pub use brasa_sac as sac;
#[cfg(feature = "td3")]
pub use brasa_td3 as td3;

// Training.
#[cfg(feature = "experiment")]
pub use brasa_experiment as experiment;
pub use {brasa_shards as shards, brasa_train as train};

// Devices, and what rules are written with.
pub use {brasa_device as device, brasa_kernels as kernels, brasa_number as number};

#[cfg(feature = "experiment")]
pub use register::{algorithms, load_policy, registry, scenarios};
pub use {burn, ndarray, rand, serde};
