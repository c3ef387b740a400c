//! All crates together. One program, so that the crates below are linked once.

mod common;

mod a2c_is_ppo;
mod accumulation;
#[cfg(feature = "experiment")]
mod central_critic;
mod device_path;
mod devices;
mod diverged;
mod energy;
mod evacuation;
mod experiments;
mod figures;
mod host_env;
mod learns;
mod memory;
mod misfits;
#[cfg(feature = "experiment")]
mod mutations;
mod networks;
mod normalized_values;
mod off_policy;
mod on_host;
mod out_of_memory;
mod pipeline;
mod promises;
mod separate_policies;
mod shards;
mod td3;
mod team;
#[cfg(feature = "experiment")]
mod team_policies;
mod tensor_env;
#[cfg(feature = "energy")]
mod tensor_iquitos;
#[cfg(feature = "uara")]
mod tensor_uara;
mod trainer;
