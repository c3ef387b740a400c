//! The `brasa` command, with all built-in scenarios, algorithms and networks.

use std::process::ExitCode;

use brasa::device::Meter;
use brasa::experiment::App;

/// A learner repeatedly allocates and frees the same few sizes. The system allocator returns the pages to the system each
/// time; the page faults took a quarter of the time of PPO on CartPole. The meter is for `brasa plan`.
#[global_allocator]
static ALLOCATOR: Meter<mimalloc::MiMalloc> = Meter(mimalloc::MiMalloc);

fn main() -> ExitCode {
    App::new("brasa").with(brasa::registry()).ranks(brasa_mpi::join).main()
}
