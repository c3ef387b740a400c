//! The arguments of the command.

use std::path::PathBuf;

use clap::{ColorChoice, Parser, Subcommand};
use clap_complete::Shell;

use crate::source::count;
use crate::sweep::{Launcher, Seeds};
use crate::train_config::MOST_SEED;

/// Reinforcement learning on Burn: train, evaluate and compare controllers.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_long_help = ENVIRONMENT, after_help = ENVIRONMENT)]
pub struct Args {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// The variables that this program and its parts read.
const ENVIRONMENT: &str = "\
Environment variables:
  NO_COLOR            If it is set and not empty, nothing is colored
  CLICOLOR_FORCE      If it is set and not 0, colors are used without a terminal, too
  RAYON_NUM_THREADS   Number of threads that compute [default: number of cores]
  BRASA_PYTHON        Python interpreter of Gymnasium's environments [default: python of VIRTUAL_ENV, or python3]
  VIRTUAL_ENV         Directory of the active virtual environment of Python";

/// Options of every command.
#[derive(Debug, clap::Args)]
pub struct CommonArgs {
    /// Prints results, warnings and errors only
    #[arg(short, long, global = true, display_order = 1000)]
    pub quiet: bool,
    /// Colors of help and errors
    #[arg(long, value_name = "WHEN", global = true, value_enum, default_value_t = ColorChoice::Auto, display_order = 1001)]
    pub color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Trains a policy and compares it with the baselines
    Train(TrainArgs),
    /// Checks an experiment: settings, device, speed, expected duration, memory and disk; writes nothing
    Check(CheckArgs),
    /// Estimates memory and run time on any known device. Exit code 1 if the run does not fit
    Plan(PlanArgs),
    /// Evaluates the policy of a run
    Eval(EvalArgs),
    /// Evaluates the baselines
    Baseline(BaselineArgs),
    /// Compares algorithms over several seeds
    Compare(CompareArgs),
    /// Trains every combination of settings and seeds, several at a time or as tasks of a cluster, and compares them
    Sweep(SweepArgs),
    /// Searches for better settings: trains trials, and compares the best one with the experiment over other seeds
    Search(SearchArgs),
    /// Writes the report of a run from its latest checkpoint
    Report(ReportArgs),
    /// Writes the policy of a run for other programs: ONNX, C, safetensors, JavaScript, a page
    Export(ExportArgs),
    /// Converts a model of Stable-Baselines3 to an exported policy
    Import(ImportArgs),
    /// Lists devices: compiled backends, devices that work here, known profiles
    Devices(DevicesArgs),
    /// Lists scenarios, algorithms, networks and configs, or describes one of them
    List(ListArgs),
    /// Writes a commented experiment with sample data, which runs as it is
    New(NewArgs),
    /// Prints the JSON Schema of experiments, for editors
    Schema,
    /// Prints a page of the reference in Markdown
    #[command(hide = true)]
    Reference(ReferenceArgs),
    /// Prints the completion of arguments for a shell
    Completions(CompletionsArgs),
    /// Writes manual pages, one for each command
    Man(ManArgs),
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// A scenario, an algorithm or a network to describe; `configs` lists the configs of a directory
    pub name: Option<String>,
    /// Directory with configs
    #[arg(long, value_name = "DIR", default_value = "configs")]
    pub configs: PathBuf,
    /// Prints one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// Directory to write; it may exist if it is empty
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// What the experiment is about; without it, the choices are listed
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct ReferenceArgs {
    /// The page
    pub page: ReferencePage,
}

/// A page of the reference that this program writes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum ReferencePage {
    Settings,
    Commands,
}

#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Directory of the pages; it is made if it does not exist
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

#[derive(Debug, Clone, Default, clap::Args)]
pub struct TrainArgs {
    /// The experiment, a TOML file, or - for standard input; not needed with --resume
    #[arg(required_unless_present = "resume")]
    pub config: Option<PathBuf>,
    /// Device to train on: cpu, cuda, cuda:1, wgpu, or a profile such as rtx-4060
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Seed of weights, exploration and environments
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MOST_SEED))]
    pub seed: Option<u64>,
    /// Environment steps of the whole run, such as 1000000, 1_000_000 or 1e6
    #[arg(long, value_name = "N", value_parser = count)]
    pub steps: Option<u64>,
    /// Directory of the run, new or empty [default: runs/ and the name of the config, numbered]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Changes one value of the experiment, for example --set train.seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Resumes the run in this directory
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Resumes with an empty replay buffer, as a buffer of another capacity, shape or precision must begin
    #[arg(long, requires = "resume")]
    pub forget_replay: bool,
    /// Starts from the weights of the run in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub init_from: Option<PathBuf>,
    /// Number of episodes of the comparison at the end [default: chosen by the scenario]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub episodes: Option<u64>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
    /// Starts programs that the run names, such as its Python interpreter: only for runs that you know
    #[arg(long)]
    pub trust: bool,
}

#[derive(Debug, clap::Args)]
pub struct EvalArgs {
    /// Directory of a run
    pub run_dir: PathBuf,
    /// Evaluates the policy with the best evaluation during training instead of the last one
    #[arg(long)]
    pub best: bool,
    /// Samples the actions of a stochastic policy as during training, instead of the most likely ones
    #[arg(long)]
    pub sampled: bool,
    /// Number of episodes [default: chosen by the scenario, 1 for a video]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub episodes: Option<u64>,
    /// Records the first episodes of the policy as a video, and runs no baselines. The file ends in .gif or .webp; - is a GIF on standard output
    #[arg(long, value_name = "FILE")]
    pub video: Option<PathBuf>,
    /// Changes one value of the experiment, for example --set train.eval_seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Device to run the policy on
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
    /// Starts programs that the run names, such as its Python interpreter: only for runs that you know
    #[arg(long)]
    pub trust: bool,
}

#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// The model, a zip archive
    pub model: PathBuf,
    /// Statistics of observations that `VecNormalize.save` wrote, a pickle
    #[arg(long, value_name = "FILE")]
    pub vec_normalize: Option<PathBuf>,
    /// The exported policy [default: the name of the model with .safetensors]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Prints one JSON document with the path of the file instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Directory of a run
    pub run_dir: PathBuf,
    /// Format of the file
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Exports the policy with the best evaluation during training instead of the last one
    #[arg(long)]
    pub best: bool,
    /// The file [default: policy.onnx, policy.h, exported.safetensors, policy.js, policy.mjs or policy.html in the directory of the run]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Beginning of all names in C, or name of the policy in JavaScript
    #[arg(long, value_name = "NAME", default_value = "policy")]
    pub name: String,
    /// Starts programs that the run names, such as its Python interpreter: only for runs that you know
    #[arg(long)]
    pub trust: bool,
    /// Prints one JSON document with the path of the file instead of text
    #[arg(long)]
    pub json: bool,
}

/// Format of an exported policy.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum ExportFormat {
    /// IR version 8, operators of version 17
    Onnx,
    /// A C99 header without dependencies
    C,
    /// The arrays, and the list of layers as JSON in the metadata
    Safetensors,
    /// A script for browsers, which is a CommonJS module for Node too, without dependencies; with types (`.d.ts`)
    Js,
    /// An ES module without dependencies; with types (`.d.mts`)
    Mjs,
    /// A page that needs no server: a recorded episode, and controls for the observation
    Html,
}

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The experiment, a TOML file, or - for standard input
    pub config: PathBuf,
    /// Device to train on
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Changes one value of the experiment, for example --set train.seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// The experiment, a TOML file, or - for standard input
    pub config: PathBuf,
    /// Device or profile: cpu, cuda, rtx-4060, or a file with a profile
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Lowers settings until the run fits, and writes the experiment to this file
    #[arg(long, value_name = "FILE")]
    pub fit: Option<PathBuf>,
    /// Raises environments, batch and rollout while the run gets faster and fits, and writes the experiment to this file
    #[arg(long, value_name = "FILE", conflicts_with = "fit")]
    pub fill: Option<PathBuf>,
    /// Changes one value of the experiment, for example --set train.n_envs=16; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct BaselineArgs {
    /// The experiment, a TOML file, or - for standard input
    pub config: PathBuf,
    /// Also evaluates an exported policy, or a model of Stable-Baselines3
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Number of episodes [default: chosen by the scenario]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub episodes: Option<u64>,
    /// Changes one value of the experiment, for example --set train.eval_seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Experiments (TOML files) to train with several seeds, or directories of finished runs
    #[arg(required = true, value_name = "RUN|CONFIG")]
    pub paths: Vec<PathBuf>,
    /// Seeds of every experiment: 5 or 0..5 (both without 5), or 0,3,7 [default: 5]
    #[arg(long, value_name = "SEEDS")]
    pub seeds: Option<Seeds>,
    /// Number of evaluation episodes of every run [default: chosen by the scenario]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub episodes: Option<u64>,
    /// Samples the actions of stochastic policies as during training, instead of the most likely ones
    #[arg(long)]
    pub sampled: bool,
    /// Changes one value of every experiment, for example --set train.n_envs=16; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Device to train on
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Directory of the runs, compare.csv and compare.html; a comparison in it is continued [default: runs/compare-N]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
    /// Starts programs that the run names, such as its Python interpreter: only for runs that you know
    #[arg(long)]
    pub trust: bool,
}

impl CompareArgs {
    /// The comparison of finished runs, which this program has started itself.
    pub(crate) fn of_runs(paths: Vec<PathBuf>, episodes: Option<u64>, json: bool) -> Self {
        Self {
            paths,
            seeds: None,
            episodes,
            sampled: false,
            set: Vec::new(),
            device: None,
            out: None,
            json,
            trust: true,
        }
    }
}

#[derive(Debug, clap::Args)]
pub struct SweepArgs {
    /// The experiments, TOML files
    #[arg(required = true, value_name = "CONFIG")]
    pub configs: Vec<PathBuf>,
    /// Seeds of every combination: 5 or 0..5 (both without 5), or 0,3,7
    #[arg(long, value_name = "SEEDS", default_value = "5")]
    pub seeds: Seeds,
    /// Values of a setting, for example --set train.n_envs=8,16; may be repeated, every combination is trained
    #[arg(long = "set", value_name = "KEY=VALUE,..")]
    pub set: Vec<String>,
    /// Device to train on
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Directory of the runs; a sweep in it is continued [default: runs/sweep-N]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Runs at the same time [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub jobs: Option<usize>,
    /// Trains only the run with this number, from 0: one task of a cluster
    #[arg(long, value_name = "N", requires = "out", conflicts_with = "print")]
    pub only: Option<usize>,
    /// Prints a script that trains the runs on a cluster, and trains nothing
    #[arg(long, value_name = "LAUNCHER", requires = "out")]
    pub print: Option<Launcher>,
    /// Number of evaluation episodes of every run in the comparison [default: chosen by the scenario]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub episodes: Option<u64>,
    /// Prints one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct SearchArgs {
    /// The experiment with a section [search], a TOML file, or the directory of a search to continue
    #[arg(value_name = "CONFIG|DIR")]
    pub path: PathBuf,
    /// Number of trials in place of `search.trials`
    #[arg(long, value_name = "N", value_parser = count)]
    pub trials: Option<u64>,
    /// Changes one value of the experiment, for example --set search.steps=20000; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Device to train on
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Directory of the search; a search in it is continued [default: runs/search-N]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Runs at the same time; with 1, a search gives the same trials again [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub jobs: Option<usize>,
    /// Number of evaluation episodes of every run in the comparison [default: chosen by the scenario]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub episodes: Option<u64>,
    /// Prints one JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Starts programs that the directory names, such as a Python interpreter: only for searches that you know
    #[arg(long)]
    pub trust: bool,
}

#[derive(Debug, clap::Args)]
pub struct DevicesArgs {
    /// Prints one JSON document instead of text
    #[arg(long, conflicts_with = "watch")]
    pub json: bool,
    /// Prints a line with the use of processor, memory and GPUs every SECS seconds until Ctrl-C [default of SECS: 2]
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "2", value_parser = interval)]
    pub watch: Option<f64>,
}

/// Seconds between readings: a shorter time says nothing about the use of a processor.
fn interval(text: &str) -> Result<f64, String> {
    let secs = text.parse().ok().filter(|secs| (0.2..=86_400.0).contains(secs));
    secs.ok_or_else(|| "must be a number of seconds between 0.2 and 86400".to_owned())
}

#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Directory of a run
    pub run_dir: PathBuf,
    /// Changes one value of the experiment, for example --set train.eval_seed=5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Device to run the policy on
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Path of the page [default: report.html in the directory of the run]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Starts programs that the run names, such as its Python interpreter: only for runs that you know
    #[arg(long)]
    pub trust: bool,
    /// Prints one JSON document with the path of the file instead of text
    #[arg(long)]
    pub json: bool,
}
