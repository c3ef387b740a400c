//! Scripts that train the runs of a sweep on a cluster.

use clap::ValueEnum;

/// The program that starts the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Launcher {
    /// A job array of Slurm, for `sbatch`.
    Slurm,
    /// A task array of `HyperQueue`.
    Hq,
    /// A command per line, for GNU parallel, xargs or make.
    Shell,
}

/// The script for `n_runs` runs; `sweep` is the command of the sweep, to which `--only N` is appended.
pub(crate) fn script(launcher: Launcher, sweep: &str, n_runs: usize) -> String {
    let last = n_runs.saturating_sub(1);
    match launcher {
        Launcher::Slurm => format!(
            "#!/bin/bash\n\
             #SBATCH --job-name=brasa\n\
             #SBATCH --array=0-{last}\n\
             #SBATCH --cpus-per-task=1\n\
             #SBATCH --time=01:00:00\n\
             # The run saves a checkpoint when its time is over; the same script continues it.\n\
             #SBATCH --signal=B:INT@60\n\
             #SBATCH --requeue\n\
             #SBATCH --output=slurm-%A_%a.log\n\
             export RAYON_NUM_THREADS=$SLURM_CPUS_PER_TASK\n\
             exec {sweep} --only \"$SLURM_ARRAY_TASK_ID\"\n"
        ),
        Launcher::Hq => format!(
            "#!/bin/bash\n\
             #HQ --array 0-{last}\n\
             #HQ --cpus 1\n\
             #HQ --name brasa\n\
             # Start it with `hq submit SCRIPT`; a task that ran before continues.\n\
             export RAYON_NUM_THREADS=1\n\
             exec {sweep} --only \"$HQ_TASK_ID\"\n"
        ),
        Launcher::Shell => (0..n_runs).map(|run| format!("{sweep} --only {run}\n")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_every_run_once() {
        let slurm = script(Launcher::Slurm, "brasa sweep a.toml --out runs/x", 60);
        assert!(slurm.starts_with("#!/bin/bash\n#SBATCH") && slurm.contains("--array=0-59\n"));
        assert!(slurm.ends_with("exec brasa sweep a.toml --out runs/x --only \"$SLURM_ARRAY_TASK_ID\"\n"));
        assert!(script(Launcher::Hq, "s", 1).contains("#HQ --array 0-0\n"));
        assert_eq!(script(Launcher::Shell, "s", 3), "s --only 0\ns --only 1\ns --only 2\n");
    }
}
