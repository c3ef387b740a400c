//! A scenario by name: its settings, how it is made of them, and what reports say of it.

use std::any::Any;
use std::marker::PhantomData;

use brasa_env::Scenario;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use crate::report::Section;
use crate::source::Source;
use crate::{ExperimentError, Played};

/// A scenario that experiments may name.
///
/// ```
/// # use std::ops::Range;
/// # use brasa_env::{EnvBatch, EnvError, Scenario, Split};
/// use brasa_experiment::ScenarioEntry;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct RoomConfig {
///     width_m: f64,
/// }
///
/// struct Room(RoomConfig);
///
/// impl Room {
///     fn new(config: RoomConfig) -> Result<Self, EnvError> {
///         Ok(Self(config))
///     }
/// }
/// # impl Scenario for Room {
/// #     fn envs(&self, _: Split, _: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> { unimplemented!() }
/// # }
///
/// // An experiment has `[scenario.room]` with `width_m = 4.0`.
/// let entry = ScenarioEntry::new("room", Room::new);
/// # let _ = entry;
/// ```
pub struct ScenarioEntry<S = ()> {
    pub(crate) name: String,
    make: Make,
    pub(crate) sections: Vec<Section>,
    pub(crate) remark: Option<MakeRemark>,
    scenario: PhantomData<fn() -> S>,
}

/// Reads the settings of a scenario: the settings with every default written out, and the scenario.
type Make = Box<dyn Fn(&Source, &str) -> Result<(toml::Value, Box<dyn Scenario>), ExperimentError> + Send + Sync>;
/// Says more about a comparison than its table does.
pub(crate) type MakeRemark = Box<dyn Fn(&RemarkContext<'_>) -> Result<Remark, ExperimentError> + Send + Sync>;

/// What a remark is made from.
pub struct RemarkContext<'a> {
    /// The scenario that was evaluated in.
    pub scenario: &'a dyn Scenario,
    /// Everybody's episodes.
    pub played: &'a [Played],
    /// Seed of the evaluation.
    pub seed: u64,
    /// Metrics of the training run by name, one map for each reading, oldest first; empty without a run.
    pub metrics: &'a [Map<String, Json>],
}

/// What a scenario says of a comparison besides its table.
#[derive(Debug, Clone, Default)]
pub struct Remark {
    /// Sentences that follow the note under the table.
    pub text: String,
    /// Levels beside the curve of a figure: name of the figure, what it is, value.
    pub levels: Vec<(String, String, f64)>,
}

impl<S: Scenario> ScenarioEntry<S> {
    /// The scenario `[scenario.NAME]`, made by `make` from its settings.
    pub fn new<C, E>(name: &str, make: impl Fn(C) -> Result<S, E> + Send + Sync + 'static) -> Self
    where
        C: Serialize + DeserializeOwned,
        E: std::error::Error,
    {
        let make = move |source: &Source, name: &str| {
            let config: C = source.part("scenario", name)?;
            let resolved = toml::Value::try_from(&config).map_err(ExperimentError::input)?;
            let scenario: Box<dyn Scenario> = Box::new(make(config).map_err(ExperimentError::input)?);
            Ok((resolved, scenario))
        };
        let scenario = PhantomData;
        Self { name: name.to_owned(), make: Box::new(make), sections: Vec::new(), remark: None, scenario }
    }

    /// The same with a section in its reports.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The same with a remark under its tables.
    pub fn remark(
        mut self,
        remark: impl Fn(&S, &RemarkContext<'_>) -> Result<Remark, ExperimentError> + Send + Sync + 'static,
    ) -> Self {
        self.remark = Some(Box::new(move |context| {
            let any: &dyn Any = context.scenario;
            match any.downcast_ref::<S>() {
                Some(scenario) => remark(scenario, context),
                None => Ok(Remark::default()),
            }
        }));
        self
    }

    /// The same without the type of its scenario.
    pub fn erased(self) -> ScenarioEntry {
        let Self { name, make, sections, remark, .. } = self;
        ScenarioEntry { name, make, sections, remark, scenario: PhantomData }
    }
}

impl ScenarioEntry {
    /// The settings in `source` with every default written out, and the scenario.
    pub(crate) fn make(&self, source: &Source) -> Result<(toml::Value, Box<dyn Scenario>), ExperimentError> {
        (self.make)(source, &self.name)
    }
}
