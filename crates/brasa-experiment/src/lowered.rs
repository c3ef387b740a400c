//! Settings lowered, one by one, for a run that needs too much memory or whose numbers do not stay finite.

use brasa_device::{Backend, Precision, profile_of};
use toml::Value;

use crate::Experiment;
use crate::need::Need;
use crate::registry::{Size, SizeOf};

/// A setting with a smaller value, or with a larger one that needs less memory.
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
        SizeOf::Parts | SizeOf::Updates | SizeOf::Precision | SizeOf::OnHost => 1,
    }
}

/// Whether a device is the processor, so that the memory of the host is its own.
pub(crate) fn is_host(device: &str) -> bool {
    matches!(profile_of(device), Ok(Some(profile)) if profile.backend == Backend::Flex)
}

/// Most parts of an update: with more of them it is time that ends.
const MOST_PARTS: i64 = 64;

/// Most attempts after the first one for a run that diverges.
const MOST_RETRIES: usize = 4;

/// A number, or the numbers of a schedule, divided by two.
fn halved(value: Value) -> Value {
    match value {
        Value::Float(x) => Value::Float(x / 2.0),
        Value::Integer(x) => Value::Float(x as f64 / 2.0),
        Value::Table(table) => Value::Table(table.into_iter().map(|(key, value)| (key, halved(value))).collect()),
        other => other,
    }
}

impl Lowered {
    /// What to change after `n_diverged` attempts that diverged before this one did; empty if nothing is left. The second change is the
    /// precision, if it is not that of 32 bits; the others halve every learning rate.
    pub fn calmer(experiment: &Experiment<'_>, n_diverged: usize) -> Vec<Self> {
        if n_diverged >= MOST_RETRIES {
            return Vec::new();
        }
        let precision = experiment.train.precision;
        if n_diverged == 1 && precision != Precision::F32 {
            let [before, value] = [precision, Precision::F32].map(|precision| precision.to_string());
            return vec![Self { key: "train.precision".into(), before, value, of_replay: false }];
        }
        let rates = experiment.learning_rates();
        rates
            .into_iter()
            .map(|(key, rate)| {
                let (before, value) = (rate.to_string(), halved(rate).to_string());
                Self { key, before, value, of_replay: false }
            })
            .collect()
    }

    /// The next setting to lower, in the order of [`crate::Plan::sizes`]; `None` if nothing is left. With a `need`, only settings of
    /// parts with more than a tenth of the memory: others would only change the training. The number of environments is lowered
    /// only before a run has begun, because a checkpoint has all of them.
    pub fn next(experiment: &Experiment<'_>, need: Option<&Need>, n_envs_too: bool) -> Option<Self> {
        let mut sizes = experiment.plan.sizes();
        let batch = sizes.iter().find(|size| size.of == SizeOf::Batch);
        let batch = batch.and_then(|size| experiment.setting(&size.key)?.as_integer());
        let batch = batch.or_else(|| need.map(|need| need.footprint.batch_rows as i64));
        sizes.extend(n_envs_too.then(|| Size { key: "train.n_envs".into(), of: SizeOf::Rollout }));
        sizes.into_iter().find_map(|Size { key, of }| {
            let part = |name: &str| {
                need.is_none_or(|need| {
                    let enough = 0.1 * need.usable_bytes.unwrap_or(need.bytes);
                    need.parts.iter().any(|part| part.name == name && part.bytes > enough)
                })
            };
            let matters = match of {
                SizeOf::Parts | SizeOf::Batch => part("activations"),
                SizeOf::Rollout => {
                    part("rollout") || need.is_some_and(|need| need.largest().key.as_ref() == Some(&key))
                }
                SizeOf::Replay | SizeOf::Precision => part("replay buffer"),
                SizeOf::OnHost => part("replay buffer") && !is_host(experiment.train.first_device()),
                SizeOf::Updates => false,
            };
            if !matters {
                return None;
            }
            let (value, of_replay) = (experiment.setting(&key), matches!(of, SizeOf::Replay | SizeOf::Precision));
            if of == SizeOf::Parts {
                // An algorithm may lack it.
                let now = value?.as_integer()?;
                let rows = batch.map_or(i64::MAX, |batch| batch / (2 * now));
                let more = rows >= smallest(SizeOf::Batch) && now < MOST_PARTS;
                return more.then(|| Self { key, before: now.to_string(), value: (2 * now).to_string(), of_replay });
            }
            if of == SizeOf::Precision {
                let full = value.is_none_or(|value| value.as_str() == Some("f32"));
                return full.then(|| Self { key, before: "f32".into(), value: "f16".into(), of_replay });
            }
            if of == SizeOf::OnHost {
                let here = value.is_none_or(|value| value.as_bool() == Some(false));
                return here.then(|| Self { key, before: "false".into(), value: "true".into(), of_replay });
            }
            // Without a value all rows are one batch.
            let now = value.and_then(|value| value.as_integer()).or(batch)?;
            let next = now / 2;
            (next >= smallest(of)).then(|| Self { key, before: now.to_string(), value: next.to_string(), of_replay })
        })
    }
}
