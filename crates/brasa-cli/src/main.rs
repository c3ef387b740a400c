//! The `brasa` command: train, evaluate and compare.

mod actor_critic;
mod algorithm;
mod args;
mod baseline;
mod comparison;
mod devices;
mod energy;
mod error;
mod evacuation;
mod eval;
mod experiment;
mod network_map;
mod progress;
mod replay;
mod report;
mod scenario;
mod session;
mod train;
mod uara;
mod value_network;

use std::process::ExitCode;

/// A learner allocates and frees the same few sizes all the time; the system's allocator gives the pages back and
/// faults them in again, which took a quarter of the time of PPO on CartPole.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .with_max_level(tracing::Level::INFO)
        .init();
    let result = match Args::parse().command {
        Command::Train(args) => train::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Baseline(args) => baseline::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Devices => devices::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}
