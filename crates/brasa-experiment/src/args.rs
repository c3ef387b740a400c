//! The arguments of the command.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Reinforcement learning on Burn: train, evaluate and compare controllers.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Trains a policy and compares it with controllers that do not learn
    Train(TrainArgs),
    /// Checks an experiment: settings, device, speed, expected duration, memory and disk; writes nothing
    Check(CheckArgs),
    /// Evaluates the policy of a run again
    Eval(EvalArgs),
    /// Runs the controllers that do not learn
    Baseline(BaselineArgs),
    /// Compares algorithms over several seeds
    Compare(CompareArgs),
    /// Makes the report of a run again from its latest checkpoint
    Report(ReportArgs),
    /// Lists devices: what is compiled in, what works here, and what is known of them
    Devices,
    /// Lists the scenarios, algorithms and networks that experiments may name
    List,
}

#[derive(Debug, clap::Args)]
pub struct TrainArgs {
    /// The experiment, a TOML file; not needed with --resume
    #[arg(required_unless_present = "resume")]
    pub config: Option<PathBuf>,
    /// Device to train on: cpu, cuda, cuda:1, wgpu, or a profile such as rtx-4060
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Seed of weights, exploration and environments
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Environment steps of the whole run
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Directory of the run; must not hold anything yet [default: runs/ and the name of the config, numbered]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Changes one value of the experiment, as in --set train.seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Goes on with the run in this directory
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Begins with the weights of the run in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub init_from: Option<PathBuf>,
    /// No progress, only the result
    #[arg(long)]
    pub quiet: bool,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct EvalArgs {
    /// Directory of a run
    pub run_dir: PathBuf,
    /// The policy with the best evaluation of the training in place of the last one
    #[arg(long)]
    pub best: bool,
    /// Episodes to average over [default: as many as the scenario finds enough]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub episodes: Option<u64>,
    /// Changes one value of the experiment, as in --set train.eval_seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Device to run the policy on
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The experiment, a TOML file
    pub config: PathBuf,
    /// Device to train on
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Changes one value of the experiment, as in --set train.seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct BaselineArgs {
    /// The experiment, a TOML file
    pub config: PathBuf,
    /// Changes one value of the experiment, as in --set train.eval_seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Experiments (TOML files) to train with several seeds, and directories of finished runs
    #[arg(required = true, value_name = "RUN|CONFIG")]
    pub paths: Vec<PathBuf>,
    /// Seeds of every experiment, from 0 [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// Episodes that every run plays [default: as many as the scenario finds enough]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub episodes: Option<u64>,
    /// Directory of the runs, of compare.csv and of compare.html; goes on with a comparison in it [default: runs/compare-N]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Directory of a run
    pub run_dir: PathBuf,
    /// Changes one value of the experiment, as in --set train.eval_seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Device to run the policy on
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Where to write the page [default: report.html in the directory of the run]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
