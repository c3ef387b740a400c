//! Reinforcement learning on Burn: one crate that re-exports the others.
//!
//! No crate of Brasa names a Burn backend: everything takes a `Device`. The features `flex`
//! (default), `cuda` and `wgpu` decide what is compiled in, [`device::open_named`] what runs.

pub use brasa_a2c as a2c;
pub use brasa_buffers as buffers;
pub use brasa_classic as classic;
pub use brasa_core as core;
pub use brasa_device as device;
pub use brasa_dqn as dqn;
pub use brasa_energy as energy;
pub use brasa_env as env;
pub use brasa_evacuation as evacuation;
pub use brasa_gat as gat;
pub use brasa_nn as nn;
pub use brasa_ppo as ppo;
pub use brasa_sac as sac;
pub use brasa_train as train;
pub use brasa_uara as uara;
