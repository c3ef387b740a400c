//! Whether training could see the data of an evaluation: what a run records of its data, and the comparison with those of an
//! evaluation.

use std::collections::BTreeSet;
use std::path::Path;

use brasa_env::{EpisodeData, Scenario, Split};
use brasa_train::RunDir;
use serde::{Deserialize, Serialize};

use crate::ExperimentError;

/// The file of a run with the data of its training.
const FILE: &str = "training_data.json";

/// The data that training could see, of all its parts: a resumed run, and the run from whose weights it started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct TrainingData {
    /// Whether something is unknown, such as a run from before this record.
    unknown: bool,
    /// Fingerprints of recorded data in hexadecimal digits, in order.
    parts: BTreeSet<String>,
}

/// Whether training could see the data of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    Seen,
    Partly { n_seen: usize, n: usize },
    NotSeen,
    Unknown,
}

impl TrainingData {
    fn of(data: &EpisodeData) -> Self {
        match data {
            EpisodeData::Sampled => Self::default(),
            EpisodeData::Fixed(parts) => Self { unknown: false, parts: parts.iter().copied().map(digits).collect() },
            EpisodeData::Unknown => Self { unknown: true, ..Self::default() },
        }
    }

    /// Reads the record of a run; without one everything is unknown.
    pub(crate) fn read(run_dir: &RunDir) -> Self {
        let text = std::fs::read_to_string(run_dir.file(FILE)).ok();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Self { unknown: true, ..Self::default() })
    }

    /// Adds the training data of `scenario` to the record of a run, and those of the run at `init_from`. A run that `resumes`
    /// has a record.
    pub(crate) fn record(
        run_dir: &RunDir,
        scenario: &dyn Scenario,
        resumes: bool,
        init_from: Option<&Path>,
    ) -> Result<(), ExperimentError> {
        let mut all = Self::of(&scenario.data(Split::Train));
        let before = resumes.then(|| Self::read(run_dir));
        let initial = init_from.map(|path| RunDir::open(path).map(|run_dir| Self::read(&run_dir))).transpose()?;
        for other in before.into_iter().chain(initial) {
            all.unknown |= other.unknown;
            all.parts.extend(other.parts);
        }
        let text = serde_json::to_string(&all).map_err(|error| ExperimentError::Failed(error.to_string()))?;
        Ok(run_dir.write(FILE, text.as_bytes())?)
    }

    /// Whether training could see `evaluated`.
    pub(crate) fn exposure(&self, evaluated: &EpisodeData) -> Exposure {
        let parts = match evaluated {
            EpisodeData::Unknown => return Exposure::Unknown,
            EpisodeData::Sampled => &BTreeSet::new(),
            EpisodeData::Fixed(parts) => parts,
        };
        let n_seen = parts.iter().filter(|part| self.parts.contains(&digits(**part))).count();
        match (n_seen, parts.len()) {
            (0, _) if self.unknown => Exposure::Unknown,
            (0, _) => Exposure::NotSeen,
            (n_seen, n) if n_seen == n => Exposure::Seen,
            // What is unknown can only add to it.
            (n_seen, n) => Exposure::Partly { n_seen, n },
        }
    }
}

fn digits(part: u64) -> String {
    format!("{part:016x}")
}

impl Exposure {
    /// For JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Seen => "seen in training",
            Self::Partly { .. } => "partly seen in training",
            Self::NotSeen => "not seen in training",
            Self::Unknown => "unknown",
        }
    }

    /// For notes below tables.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Seen => "The data of these episodes were seen in training.".into(),
            Self::Partly { n_seen, n } => {
                format!("Of the data of these episodes, {n_seen} of {n} parts were seen in training.")
            }
            Self::NotSeen => "The data of these episodes were not seen in training.".into(),
            Self::Unknown => "It is unknown whether the data of these episodes were seen in training.".into(),
        }
    }

    /// The worst of several runs.
    pub(crate) fn worst(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().max_by_key(|exposure| match exposure {
            Self::NotSeen => 0,
            Self::Unknown => 1,
            Self::Partly { n_seen, .. } => 1 + n_seen,
            Self::Seen => usize::MAX,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_is_compared_with_what_training_saw() {
        let trained = TrainingData::of(&EpisodeData::fixed([1, 2, 3]));
        let unknown = TrainingData { unknown: true, ..trained.clone() };
        for (evaluated, known, not_known) in [
            (EpisodeData::fixed([2, 3]), Exposure::Seen, Exposure::Seen),
            (EpisodeData::fixed([3, 4]), Exposure::Partly { n_seen: 1, n: 2 }, Exposure::Partly { n_seen: 1, n: 2 }),
            (EpisodeData::fixed([5]), Exposure::NotSeen, Exposure::Unknown),
            (EpisodeData::Sampled, Exposure::NotSeen, Exposure::Unknown),
            (EpisodeData::Unknown, Exposure::Unknown, Exposure::Unknown),
        ] {
            assert_eq!(
                (trained.exposure(&evaluated), unknown.exposure(&evaluated)),
                (known, not_known),
                "{evaluated:?}"
            );
        }
        assert_eq!(Exposure::worst([Exposure::NotSeen, Exposure::Seen, Exposure::Unknown]), Some(Exposure::Seen));
    }
}
