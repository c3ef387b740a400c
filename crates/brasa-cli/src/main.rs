//! The `brasa` command: everything that Brasa has, registered.

use std::process::ExitCode;

use brasa::experiment::App;

/// A learner allocates and frees the same few sizes all the time; the system's allocator gives the pages back and
/// faults them in again, which took a quarter of the time of PPO on CartPole.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    App::new("brasa").with(brasa::registry()).main()
}
