//! Settings that determine how much memory a run needs.

use super::OFF_POLICY;

/// A setting of an algorithm that needs memory.
///
/// ```
/// use brasa_experiment::{Size, SizeOf};
///
/// // What a `Plan` returns from `Plan::sizes`: the settings to lower first.
/// let sizes = [Size { key: "own.batch_size".into(), of: SizeOf::Batch }];
/// assert_eq!(sizes[0].key.split_once('.'), Some(("own", "batch_size")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// The setting, such as `off_policy.batch_size`.
    pub key: String,
    /// What it determines the size of.
    pub of: SizeOf,
}

/// What a setting determines the size of.
///
/// ```
/// use brasa_experiment::{Size, SizeOf};
///
/// let sizes = [("own.accumulation_steps", SizeOf::Parts), ("own.n_steps", SizeOf::Rollout)];
/// let sizes = sizes.map(|(key, of)| Size { key: key.into(), of });
/// let rollout = sizes.iter().find(|size| size.of == SizeOf::Rollout);
/// assert_eq!(rollout.map(|size| size.key.as_str()), Some("own.n_steps"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeOf {
    /// The parts of an update that are computed one after the other. More of them need less memory; algorithms may lack the setting.
    Parts,
    /// The rows of an update.
    Batch,
    /// The updates per environment step, which need time rather than memory.
    Updates,
    /// The steps of a rollout.
    Rollout,
    /// The bits of stored observations.
    Precision,
    /// Whether a replay buffer is in the memory of the host.
    OnHost,
    /// The transitions of a replay buffer.
    Replay,
}

impl Size {
    pub(super) fn new(section: &str, key: &str, of: SizeOf) -> Self {
        Self { key: format!("{section}.{key}"), of }
    }

    /// The parts of an update, in the section of an algorithm.
    pub(super) fn of_parts(algorithm: &str) -> Self {
        Self::new(algorithm, "accumulation_steps", SizeOf::Parts)
    }

    /// Those of an algorithm with a replay buffer.
    pub(super) fn of_replay(algorithm: &str) -> Vec<Self> {
        let of = |key, of| Self::new(OFF_POLICY, key, of);
        vec![
            Self::of_parts(algorithm),
            of("batch_size", SizeOf::Batch),
            of("updates_per_step", SizeOf::Updates),
            of("replay.precision", SizeOf::Precision),
            of("replay.on_host", SizeOf::OnHost),
            of("replay.capacity", SizeOf::Replay),
        ]
    }
}
