//! Settings lowered, one by one, for a run that needs too much memory.

use brasa_device::{Backend, profile_of};

use crate::Experiment;
use crate::need::Need;
use crate::registry::{Size, SizeOf};

/// A setting with a smaller value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lowered {
    /// The setting.
    pub key: String,
    /// Its present value.
    pub before: String,
    /// Its new value.
    pub value: String,
    /// Whether it changes the form of a replay buffer, so that a stored one cannot be used any more.
    pub of_replay: bool,
}

/// Smallest values to which a setting is lowered.
fn smallest(of: SizeOf) -> i64 {
    match of {
        SizeOf::Batch => 32,
        SizeOf::Rollout => 16,
        SizeOf::Replay => 10_000,
        SizeOf::Updates | SizeOf::Precision | SizeOf::OnHost => 1,
    }
}

/// Whether a device is the processor, so that the memory of the host is its own.
fn is_host(device: &str) -> bool {
    matches!(profile_of(device), Ok(Some(profile)) if profile.backend == Backend::Flex)
}

impl Lowered {
    /// The next setting to lower, in the order of [`crate::Plan::sizes`]; `None` if nothing is left. With a `need`, only settings of
    /// parts with more than a tenth of the memory: others would only change the training. The number of environments is lowered
    /// only before a run has begun, because a checkpoint has all of them.
    pub fn next(experiment: &Experiment<'_>, need: Option<&Need>, n_envs_too: bool) -> Option<Self> {
        let mut sizes = experiment.plan.sizes();
        sizes.extend(n_envs_too.then(|| Size { key: "train.n_envs".into(), of: SizeOf::Rollout }));
        sizes.into_iter().find_map(|Size { key, of }| {
            let part = |name: &str| {
                need.is_none_or(|need| {
                    let enough = 0.1 * need.usable_bytes.unwrap_or(need.bytes);
                    need.parts.iter().any(|part| part.name == name && part.bytes > enough)
                })
            };
            let matters = match of {
                SizeOf::Batch => part("activations"),
                SizeOf::Rollout => {
                    part("rollout") || need.is_some_and(|need| need.largest().key.as_ref() == Some(&key))
                }
                SizeOf::Replay | SizeOf::Precision => part("replay buffer"),
                SizeOf::OnHost => part("replay buffer") && !is_host(&experiment.train.device),
                SizeOf::Updates => false,
            };
            if !matters {
                return None;
            }
            let (value, of_replay) = (experiment.setting(&key), matches!(of, SizeOf::Replay | SizeOf::Precision));
            if of == SizeOf::Precision {
                let full = value.is_none_or(|value| value.as_str() == Some("f32"));
                return full.then(|| Self { key, before: "f32".into(), value: "f16".into(), of_replay });
            }
            if of == SizeOf::OnHost {
                let here = value.is_none_or(|value| value.as_bool() == Some(false));
                return here.then(|| Self { key, before: "false".into(), value: "true".into(), of_replay });
            }
            // Without a value all rows are one batch.
            let rows = need.map(|need| need.footprint.batch_rows as i64);
            let now = value.and_then(|value| value.as_integer()).or(rows)?;
            let next = now / 2;
            (next >= smallest(of)).then(|| Self { key, before: now.to_string(), value: next.to_string(), of_replay })
        })
    }
}
