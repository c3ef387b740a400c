//! The command as its users start it. One program, so that the crates below are linked once.

mod common;

mod arguments;
mod bad_inputs;
mod changed_files;
mod command;
mod compare;
mod energy_page;
mod export;
mod exposure;
#[cfg(unix)]
mod faults;
mod import;
mod load_policy;
mod monitoring;
mod network_page;
mod new;
#[cfg(unix)]
mod outputs;
mod palette;
mod plan;
mod player_page;
mod policy_page;
mod progress;
mod reference;
mod replay_page;
mod resume;
mod search;
mod sweep;
mod versions;
#[cfg(unix)]
mod video;
