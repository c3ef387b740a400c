//! `plan`: memory and time of a run on a device, before it starts, and settings with which it fits.

use std::path::Path;
use std::time::Duration;

use brasa_device::{Profile, profile_of};
use brasa_env::field::machine_bytes;
use brasa_train::{MANY_UPDATES, in_words};
use serde_json::{Value, json};

use crate::args::PlanArgs;
use crate::lowered::Lowered;
use crate::need::{Need, bytes};
use crate::registry::SizeOf;
use crate::source::override_of;
use crate::{Experiment, ExperimentError, Registry, number, output};

/// The plan as text, and whether the run fits.
pub fn run(registry: &Registry, args: &PlanArgs) -> Result<(String, bool), ExperimentError> {
    let mut overrides = args.set.clone();
    overrides.extend(args.device.iter().map(|device| override_of("train.device", device)));
    let experiment = registry.load(&args.config, &overrides)?;
    let profile = profile_of(experiment.train.first_device())?.ok_or_else(|| {
        let device = &experiment.train.device;
        ExperimentError::Input(format!("`--device {device}` has no profile here: name one, or a custom file"))
    })?;
    let need = needed(&experiment, &profile)?;
    let (path, verb, found) = match (&args.fit, &args.fill) {
        (Some(path), _) => (path, "Fits", fitted(registry, &args.config, overrides, experiment, need, &profile)?),
        (None, Some(path)) => (path, "Fills", filled(registry, &args.config, overrides, experiment, need, &profile)?),
        (None, None) => return Ok((shown(&experiment, &need, &profile, &[], args.json), need.fits())),
    };
    let (experiment, need, changes) = found;
    let text = shown(&experiment, &need, &profile, &changes, args.json);
    if need.fits() {
        let head: String = changes.iter().map(|change| format!("# {change}\n")).collect();
        let head = format!("# {verb} {}.\n{head}\n", profile.name);
        return Ok((output::write(path, format!("{head}{}", experiment.to_toml()).as_bytes(), text)?, true));
    }
    Ok((text, false))
}

fn needed(experiment: &Experiment<'_>, profile: &Profile) -> Result<Need, ExperimentError> {
    Need::of(experiment, profile)?.ok_or_else(|| {
        let reason = "`brasa_device::Meter` must be the allocator of the program, with the feature `flex`, and a custom algorithm \
            needs `Plan::footprint`";
        ExperimentError::Failed(format!("this program cannot measure what a run of {} needs: {reason}", experiment.algorithm))
    })
}

/// Lowers settings, in the order of [`crate::Plan::sizes`], until the run fits or nothing is left to lower.
fn fitted<'a>(
    registry: &'a Registry,
    config: &Path,
    mut overrides: Vec<String>,
    mut experiment: Experiment<'a>,
    mut need: Need,
    profile: &Profile,
) -> Result<(Experiment<'a>, Need, Vec<String>), ExperimentError> {
    let mut changes: Vec<String> = Vec::new();
    while !need.fits() {
        let Some(Lowered { key, before, value, .. }) = Lowered::next(&experiment, Some(&need), true) else { break };
        overrides.push(format!("{key}={value}"));
        experiment = registry.load(config, &overrides)?;
        need = needed(&experiment, profile)?;
        let start = format!("{key}: ");
        let first = changes.iter().find_map(|change| change.strip_prefix(&start)?.split(" to ").next());
        let change = format!("{start}{} to {value}", first.unwrap_or(&before));
        changes.retain(|change| !change.starts_with(&start));
        changes.push(change);
    }
    Ok((experiment, need, changes))
}

/// Smallest gain in steps per second that is worth a setting of twice the size.
const WORTH: f64 = 1.05;
/// Most times that a setting is doubled.
const MOST_DOUBLINGS: usize = 12;

/// Doubles environments, rows of an update and steps of a rollout, one after the other, while the run fits and is estimated to be
/// faster.
fn filled<'a>(
    registry: &'a Registry,
    config: &Path,
    mut overrides: Vec<String>,
    mut experiment: Experiment<'a>,
    mut need: Need,
    profile: &Profile,
) -> Result<(Experiment<'a>, Need, Vec<String>), ExperimentError> {
    let sizes = experiment.plan.sizes();
    let keys_of = |of: SizeOf| sizes.iter().filter(move |size| size.of == of).map(|size| size.key.clone());
    let keys = ["train.n_envs".to_owned()].into_iter().chain(keys_of(SizeOf::Batch)).chain(keys_of(SizeOf::Rollout));
    let mut changes = Vec::new();
    for key in keys.collect::<Vec<_>>() {
        // Without a value all rows are one batch.
        let Some(before) = experiment.setting(&key).and_then(|value| value.as_integer()) else { continue };
        let mut now = before;
        for _ in 0..MOST_DOUBLINGS {
            let more = [&overrides[..], &[format!("{key}={}", 2 * now)]].concat();
            // A setting may have a rule of its own, such as one that depends on another.
            let Ok(larger) = registry.load(config, &more) else { break };
            let larger_need = needed(&larger, profile)?;
            if !larger_need.fits() || larger_need.secs() * WORTH > need.secs() {
                break;
            }
            (now, overrides, experiment, need) = (2 * now, more, larger, larger_need);
        }
        if now > before {
            changes.push(format!("{key}: {before} to {now}"));
        }
    }
    Ok((experiment, need, changes))
}

fn shown(experiment: &Experiment<'_>, need: &Need, profile: &Profile, changes: &[String], as_json: bool) -> String {
    let fits = need.fits();
    if as_json {
        let mut document = json!({
            "algorithm": experiment.algorithm, "scenario": experiment.entry.name, "fits": fits,
            "secs": need.secs(), "changes": changes,
        });
        let parts = serde_json::to_value(need).expect("plain numbers always serialize");
        if let (Value::Object(document), Value::Object(parts)) = (&mut document, parts) {
            document.extend(parts);
        }
        return format!("{document}\n");
    }
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        text.push_str(format!("{name:<16}  {value}").trim_end());
        text.push('\n');
    };
    let n_envs = match experiment.train.n_envs {
        1 => "1 environment".to_owned(),
        n => format!("{} environments", count(n as f64)),
    };
    line("experiment", format!("{} on {}, {n_envs}", experiment.algorithm, experiment.entry.name));
    line("device", format!("{}: {}", profile.name, profile.title));
    changes.iter().for_each(|change| line("changed", change.clone()));
    line("", String::new());
    line("memory", String::new());
    for part in &need.parts {
        let key = part.key.as_ref().map_or(String::new(), |key| format!("`{key}`"));
        let during = part.during.map_or(String::new(), |phase| format!("  during {phase}"));
        line(&format!("  {}", part.name), format!("{:>11}  {key}{during}", bytes(part.bytes)));
    }
    let of = need.usable_bytes.map_or(String::new(), |usable| {
        let verdict = if fits { "fits" } else { "does not fit" };
        format!("  {:.3} % of {}: {verdict}{}", 100.0 * need.bytes / usable, bytes(usable), need.about_others("; "))
    });
    line("  total", format!("{:>11}{of}", bytes(need.bytes)));
    if need.host_bytes > 0.0 {
        line("  on the host", format!("{:>11}  replay buffer", bytes(need.host_bytes)));
    }
    if let Some(comparison) = &need.comparison {
        line(
            "  at the end",
            format!("{:>11}  final comparison, on the host  `{}`", bytes(comparison.bytes), comparison.key),
        );
    }
    line("", String::new());
    line("time", String::new());
    for phase in &need.phases {
        let times = count(phase.times);
        let bound = match phase.bound {
            Some(bound) => format!("at least, bound by {}", json!(bound).as_str().unwrap_or_default()),
            None => "measured on this processor".to_owned(),
        };
        let each = in_micros(phase.secs);
        line(
            &format!("  {}", phase.name),
            format!("{times} times {each} = {}, {bound}", duration(phase.times * phase.secs)),
        );
    }
    line("  run", format!("{}; evaluations and checkpoints come on top", duration(need.secs())));
    for warning in warnings(experiment, need) {
        line("warning", warning);
    }
    text
}

/// What a user should know before starting the run.
fn warnings(experiment: &Experiment<'_>, need: &Need) -> Vec<String> {
    let mut warnings: Vec<String> = need.refusal().into_iter().collect();
    warnings.extend(need.comparison.as_ref().and_then(|comparison| comparison.refusal(machine_bytes())));
    let per_step = need.footprint.learning.times / experiment.train.total_env_steps as f64;
    if per_step > MANY_UPDATES {
        warnings.push(format!("{} updates per environment step", number(per_step)));
    }
    if need.secs() > 3600.0 {
        warnings.push(format!("more than an hour: {}", duration(need.secs())));
    }
    warnings
}

/// A whole number.
fn count(n: f64) -> String {
    if n < 1000.0 { format!("{n:.0}") } else { number(n) }
}

fn duration(secs: f64) -> String {
    match secs {
        secs if secs < 1.0 => in_micros(secs),
        secs => in_words(Duration::from_secs_f64(secs.min(1e12))),
    }
}

fn in_micros(secs: f64) -> String {
    match secs * 1e6 {
        us if us < 1000.0 => format!("{us:.0} us"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}
