//! What a run needs of a device: memory, and time at least.

use std::cell::RefCell;
use std::cmp::Ordering;

use brasa_device::{Backend, Bound, Load, Profile, autocast, open_named};
use brasa_env::{ComparisonMemory, Executor};
use brasa_train::{Footprint, GrowsWith, MemoryPart, Placing, Run, Work};
use serde::Serialize;

use crate::placement::Placement;
use crate::registry::SizeOf;
use crate::session::Context;
use crate::{Experiment, ExperimentError};

/// What a run needs of a device.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_device::{Meter, profile};
/// # #[global_allocator]
/// # static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
/// use brasa_experiment::Need;
///
/// let registry = registry();
/// let experiment = registry.parse(CONFIG, "room.toml", &[])?;
/// let need = Need::of(&experiment, &profile("t4")?)?.expect("`Meter` is the allocator of this program");
/// assert_eq!(need.profile, "t4");
/// assert!(need.fits() && need.bytes < 1e9);
/// # Ok::<(), brasa_experiment::ExperimentError>(())
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Need {
    /// Memory and work, measured on small parts of the run.
    pub footprint: Footprint,
    /// Name of the device's profile.
    pub profile: String,
    /// Memory that the device has for a run, in bytes; `None` if unknown.
    pub usable_bytes: Option<f64>,
    /// Memory of the device that other programs hold, in bytes; `None` unless the device is a GPU of this machine.
    pub held_bytes: Option<f64>,
    /// The memory by purpose.
    pub parts: Vec<Part>,
    /// Most memory at the same time, in bytes.
    pub bytes: f64,
    /// Bytes of a replay buffer that the host stores for another device; 0 without one.
    pub host_bytes: f64,
    /// Memory of the host that the final comparison takes for the most demanding baseline; `None` if none is worth naming.
    pub comparison: Option<FinalComparison>,
    /// The phases of the run.
    pub phases: Vec<Phase>,
}

/// What the final comparison needs of the host.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_device::{Meter, profile};
/// # #[global_allocator]
/// # static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
/// use brasa_experiment::{FinalComparison, Need};
///
/// let registry = registry();
/// let experiment = registry.parse(CONFIG, "room.toml", &[])?;
/// let need = Need::of(&experiment, &profile("cpu")?)?.expect("`Meter` is the allocator of this program");
/// // The baselines of this scenario need no memory worth naming.
/// let comparison: Option<FinalComparison> = need.comparison;
/// assert!(comparison.is_none());
/// # Ok::<(), brasa_experiment::ExperimentError>(())
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct FinalComparison {
    /// Bytes, roughly.
    pub bytes: f64,
    /// The setting that, if `false`, leaves the baseline out.
    pub key: String,
}

impl FinalComparison {
    /// That of the most demanding baseline of a scenario.
    pub(crate) fn of(experiment: &Experiment<'_>) -> Option<Self> {
        let ComparisonMemory { bytes, setting } = experiment.scenario.comparison_memory()?;
        Some(Self { bytes, key: format!("scenario.{}.{setting}", experiment.entry.name) })
    }

    /// Says why the comparison does not fit into `usable` bytes of the host.
    pub(crate) fn refusal(&self, usable: f64) -> Option<String> {
        let (needed, usable_text) = (bytes(self.bytes), bytes(usable));
        (self.bytes > usable).then(|| {
            format!(
                "the final comparison needs {needed} of memory, the host has {usable_text}: set `{} = false`",
                self.key
            )
        })
    }
}

/// Memory for a purpose.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_device::{Meter, profile};
/// # #[global_allocator]
/// # static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
/// use brasa_experiment::{Need, Part};
///
/// let registry = registry();
/// let experiment = registry.parse(CONFIG, "room.toml", &[])?;
/// let need = Need::of(&experiment, &profile("t4")?)?.expect("`Meter` is the allocator of this program");
/// let rollout: Option<&Part> = need.parts.iter().find(|part| part.name == "rollout");
/// assert_eq!(rollout.and_then(|part| part.key.as_deref()), Some("learner.n_steps"));
/// # Ok::<(), brasa_experiment::ExperimentError>(())
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// The purpose.
    pub name: &'static str,
    /// Bytes on the device.
    pub bytes: f64,
    /// The phase that uses it; `None` if it is in use all the time. Phases follow each other, so that only the largest counts.
    pub during: Option<&'static str>,
    /// The setting that determines it.
    pub key: Option<String>,
}

/// A phase of a run.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_device::{Meter, profile};
/// # #[global_allocator]
/// # static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
/// use brasa_experiment::{Need, Phase};
///
/// let registry = registry();
/// let experiment = registry.parse(CONFIG, "room.toml", &[])?;
/// let need = Need::of(&experiment, &profile("cpu")?)?.expect("`Meter` is the allocator of this program");
/// let secs = |phase: &Phase| phase.times * phase.secs;
/// assert!(need.phases.iter().all(|phase| secs(phase) >= 0.0 && phase.bound.is_none()));
/// # Ok::<(), brasa_experiment::ExperimentError>(())
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    /// What it does.
    pub name: &'static str,
    /// How often.
    pub times: f64,
    /// Seconds per time; on the processor measured, on a GPU a lower bound.
    pub secs: f64,
    /// What a GPU spends this time on; `None` on the processor.
    pub bound: Option<Bound>,
}

/// Bytes that no GPU has as a cache.
const LARGEST_CACHE: f64 = (128 << 20) as f64;

impl Need {
    /// Measures what an experiment needs of a device with `profile`. The measurement computes on the processor and takes up to a
    /// few seconds. `None` if this program cannot measure memory: [`brasa_device::Meter`] is not its allocator, the backend of the
    /// processor is not compiled in, or the algorithm does not support it.
    ///
    /// # Errors
    /// If a setting or an environment cannot be used.
    pub fn of(experiment: &Experiment<'_>, profile: &Profile) -> Result<Option<Self>, ExperimentError> {
        let Ok(device) = &open_named("cpu") else { return Ok(None) };
        let (placed, train, on_host) = (RefCell::new(None), &experiment.train, profile.backend == Backend::Flex);
        let context = Context {
            spec: &experiment.spec,
            extensions: &experiment.extensions,
            device,
            autodiff: &device.clone().autodiff(),
            run: Run { total_env_steps: train.total_env_steps, seed: train.seed },
            placement: Placement { experiment, placed: &placed, on_host },
        };
        profile.check_precision(train.precision)?;
        let footprint = autocast(train.precision, || experiment.plan.footprint(&context))?;
        let Some(mut footprint) = footprint else { return Ok(None) };
        if train.pipeline {
            footprint = footprint.pipelined(!experiment.plan.replays());
        }
        let envs_on_device = placed.into_inner().is_some();
        let saves_replay = experiment.plan.saves_replay();
        let placing = Placing { on_host, envs_on_device: envs_on_device || on_host, saves_replay };
        let phases = phases(experiment, &footprint, profile, envs_on_device);
        Ok(Some(Self {
            profile: profile.name.clone(),
            usable_bytes: profile.usable_bytes(),
            held_bytes: profile.held_gib.map(|gib| gib * f64::from(1 << 30)),
            bytes: footprint.bytes(placing),
            host_bytes: if footprint.is_stored_away(on_host) { footprint.stored + footprint.bookkeeping } else { 0.0 },
            comparison: FinalComparison::of(experiment),
            parts: parts(experiment, &footprint, placing),
            footprint,
            phases,
        }))
    }

    /// Whether the device has enough memory. Unknown memory is enough.
    pub fn fits(&self) -> bool {
        self.usable_bytes.is_none_or(|usable| self.bytes <= usable)
    }

    /// The part that needs most memory, of those that a setting determines if there are any.
    pub fn largest(&self) -> &Part {
        let order = |part: &&Part| (part.key.is_some(), part.bytes);
        let parts = self.parts.iter().max_by(|a, b| order(a).partial_cmp(&order(b)).unwrap_or(Ordering::Equal));
        parts.expect("there are parts")
    }

    /// Seconds of the run, evaluations and checkpoints not included.
    pub fn secs(&self) -> f64 {
        self.phases.iter().map(|phase| phase.times * phase.secs).sum()
    }

    /// What other programs hold, after `joint`; empty below 0.1 GiB, which a driver takes for itself.
    pub(crate) fn about_others(&self, joint: &str) -> String {
        let held = self.held_bytes.filter(|held| *held >= 0.1 * f64::from(1 << 30));
        held.map_or(String::new(), |held| format!("{joint}other programs hold {}", bytes(held)))
    }

    /// Says why a run does not fit, and which setting to lower.
    pub fn refusal(&self) -> Option<String> {
        let usable = self.usable_bytes.filter(|_| !self.fits())?;
        let largest = self.largest();
        let lower = largest.key.as_ref().map_or("use a smaller network".to_owned(), |key| format!("lower `{key}`"));
        Some(format!(
            "the run needs {} of memory, {} has {} for it{}: {lower} ({}: {})",
            bytes(self.bytes),
            self.profile,
            bytes(usable),
            self.about_others(", "),
            largest.name,
            bytes(largest.bytes)
        ))
    }
}

/// Bytes in a unit that leaves up to four digits before the point.
pub(crate) fn bytes(n: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB"];
    let mut n = n;
    let mut unit = 0;
    while n >= 1024.0 && unit + 1 < units.len() {
        n /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n:.0} B") } else { format!("{n:.1} {}", units[unit]) }
}

fn parts(experiment: &Experiment<'_>, footprint: &Footprint, placing: Placing) -> Vec<Part> {
    let sizes = experiment.plan.sizes();
    let of = |of: SizeOf| sizes.iter().find(|size| size.of == of).map(|size| size.key.clone());
    let stored = if experiment.plan.replays() { SizeOf::Replay } else { SizeOf::Rollout };
    let named = |MemoryPart { name, bytes, during, grows_with }| {
        let key = match grows_with {
            Some(GrowsWith::Envs) => Some("train.n_envs".to_owned()),
            Some(GrowsWith::Stored) => of(stored),
            Some(GrowsWith::Batch) => of(SizeOf::Batch),
            None => None,
        };
        Part { name, bytes, during, key }
    };
    footprint.parts(placing).into_iter().map(named).collect()
}

fn phases(experiment: &Experiment<'_>, footprint: &Footprint, profile: &Profile, envs_on_device: bool) -> Vec<Phase> {
    let Footprint { acting, stepping, learning, .. } = footprint;
    let n_threads = match experiment.train.executor {
        Executor::Serial => 1,
        Executor::Threads(n) => n,
        _ => std::thread::available_parallelism().map_or(1, usize::from).min(experiment.train.n_envs),
    };
    // What is in use at the same time, and fits in no cache, is written to memory at least once.
    let on_device = |name, work: &Work| {
        let precision = experiment.train.precision;
        let load =
            Load { flop: work.flop, bytes: (work.bytes - LARGEST_CACHE).max(0.0), launches: work.launches, precision };
        match profile.least_secs(&load).filter(|_| profile.backend != Backend::Flex) {
            Some((secs, bound)) => Phase { name, times: work.times, secs, bound: Some(bound) },
            None => Phase { name, times: work.times, secs: work.secs, bound: None },
        }
    };
    let stepping = match envs_on_device {
        true => on_device("environments", stepping),
        false => {
            Phase { name: "environments", times: stepping.times, secs: stepping.secs / n_threads as f64, bound: None }
        }
    };
    vec![stepping, on_device("acting", acting), on_device("updates", learning)]
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn bytes_have_a_unit_that_fits() {
        assert_eq!(
            [512.0, 2048.0, 1.5e6, 6.8e9, 5e12].map(bytes),
            ["512 B", "2.0 KiB", "1.4 MiB", "6.3 GiB", "4656.6 GiB"]
        );
    }
}
