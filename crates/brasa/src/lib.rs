//! Reinforcement learning on Burn: one crate that re-exports the others and registers their scenarios, networks and
//! algorithms.
//!
//! Code for any backend takes a `Device`. The features `flex` (default), `cuda` and `wgpu` select the compiled
//! backends; [`device::open_named`] opens one at run time.
//!
//! Every algorithm and every scenario is a feature, on by default; `experiment` is the command as a library.
//! The crates used in signatures are re-exported ([`burn`], [`ndarray`], [`rand`], [`serde`]), so that one line in a
//! `Cargo.toml` is enough. Derives of `serde` then need `#[serde(crate = "brasa::serde")]`.
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

//! # Modules, in reading order
//!
//! | part | modules |
//! |---|---|
//! | environments | [`env`](mod@env): contracts, batches, wrappers; [`classic`], [`citylearn`], [`energy`], [`evacuation`], [`gym`], [`uara`]: scenarios; [`floorplan`]: buildings |
//! | policies | [`core`](mod@core): contracts on tensors; [`nn`]: networks; [`gat`]: attention over graphs |
//! | learners | [`ppo`], [`a2c`], [`sac`], [`td3`], [`dqn`]; [`buffers`]: rollouts and replay |
//! | training | [`train`]: loops and [`Trainer`](train::Trainer); [`experiment`]: TOML, comparison, reports; [`shards`]: several cores and machines |
//! | devices | [`device`]: opening, profiles, precision; [`kernels`]: fused operations; [`number`]: rules written once |

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
pub use {brasa_core as core, brasa_nn as nn};

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
