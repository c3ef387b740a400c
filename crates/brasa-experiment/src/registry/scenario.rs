//! Scenarios by name: settings, constructor, and additions to reports.

use std::any::Any;
use std::marker::PhantomData;

use brasa_core::TensorDynamics;
use brasa_env::Scenario;
use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::TensorForm;
use crate::report::Section;
use crate::source::Source;
use crate::{ControllerOutcomes, ExperimentError};

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
#[must_use]
pub struct ScenarioEntry<S = ()> {
    pub(crate) name: String,
    make: Make,
    pub(crate) sections: Vec<Section>,
    pub(crate) remark: Option<MakeRemark>,
    pub(crate) tensor_form: Option<TensorForm>,
    /// Settings that change only the reward.
    pub(crate) reward: &'static [&'static str],
    pub(crate) playable: Option<&'static str>,
    /// Settings that name a program which the scenario starts.
    pub(crate) programs: &'static [&'static str],
    scenario: PhantomData<fn() -> S>,
}

impl<S> std::fmt::Debug for ScenarioEntry<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScenarioEntry")
            .field("name", &self.name)
            .field("sections", &self.sections)
            .field("reward", &self.reward)
            .field("programs", &self.programs)
            .finish_non_exhaustive()
    }
}

/// Reads the settings of a scenario. Returns the settings with all defaults written out, and the scenario.
type Make = Box<dyn Fn(&Source, &str) -> Result<(toml::Value, Box<dyn Scenario>), ExperimentError> + Send + Sync>;
/// Adds remarks to a comparison.
pub(crate) type MakeRemark = Box<dyn Fn(&RemarkContext<'_>) -> Result<Remark, ExperimentError> + Send + Sync>;

/// The data for a remark.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_classic::Classic;
/// use brasa_experiment::{App, NoSettings, Remark, RemarkContext, ScenarioEntry};
///
/// # let dir = tempfile::tempdir()?;
/// # let config = written(dir.path());
/// let about = |context: &RemarkContext<'_>| format!("Seed {}: {} rows.", context.seed, context.played.len());
/// let make = |_: NoSettings| Ok::<_, std::convert::Infallible>(Classic::cart_pole());
/// let entry = ScenarioEntry::new("pole", make);
/// let entry = entry.remark(move |_, context| Ok(Remark { text: about(context), ..Default::default() }));
/// let app = App::new("room").with(registry()).scenario(entry);
/// let text = app.run_from(["room", "baseline", "--episodes", "2", "--set", "train.eval_seed=5", &config])?;
/// assert!(text.contains("Seed 5: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RemarkContext<'a> {
    /// The scenario of the evaluation.
    pub scenario: &'a dyn Scenario,
    /// The episodes of the baselines and the policy.
    pub played: &'a [ControllerOutcomes],
    /// Seed of the evaluation.
    pub seed: u64,
    /// Metrics of the training run: one map per reading, oldest first; empty without a run.
    pub metrics: &'a [Map<String, Json>],
}

impl std::fmt::Debug for RemarkContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemarkContext").field("played", &self.played).field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// A scenario's remarks on a comparison.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_classic::Classic;
/// use brasa_experiment::{App, NoSettings, Remark, ScenarioEntry};
///
/// # let dir = tempfile::tempdir()?;
/// # let config = written(dir.path());
/// let make = |_: NoSettings| Ok::<_, std::convert::Infallible>(Classic::cart_pole());
/// let entry = ScenarioEntry::new("pole", make);
/// let entry = entry.remark(|_, _| Ok(Remark { text: "The pole is 1 m long.".into(), levels: Vec::new() }));
/// let app = App::new("room").with(registry()).scenario(entry);
/// assert!(app.run_from(["room", "baseline", "--episodes", "2", &config])?.contains("The pole is 1 m long."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Remark {
    /// Sentences after the note below the table.
    pub text: String,
    /// Horizontal lines in the chart of a figure: name of the figure, label, value.
    pub levels: Vec<(String, String, f64)>,
}

impl<S: Scenario> ScenarioEntry<S> {
    /// The scenario `[scenario.NAME]`, created by `make` from its settings.
    pub fn new<C, E>(name: &str, make: impl Fn(C) -> Result<S, E> + Send + Sync + 'static) -> Self
    where
        C: Serialize + DeserializeOwned,
        E: std::error::Error,
    {
        let make = move |source: &Source, name: &str| {
            let config: C = source.part("scenario", name)?;
            let resolved = toml::Value::try_from(&config).map_err(ExperimentError::input)?;
            let scenario: Box<dyn Scenario> =
                Box::new(make(config).map_err(ExperimentError::in_section(&format!("scenario.{name}")))?);
            Ok((resolved, scenario))
        };
        let scenario = PhantomData;
        let (name, make) = (name.to_owned(), Box::new(make));
        Self {
            name,
            make,
            sections: Vec::new(),
            remark: None,
            tensor_form: None,
            reward: &[],
            playable: None,
            programs: &[],
            scenario,
        }
    }

    /// Names settings with a program that the scenario starts. A run directory may come from elsewhere: commands start such a program only if
    /// the user trusts the run.
    pub fn programs(self, settings: &'static [&'static str]) -> Self {
        Self { programs: settings, ..self }
    }

    /// Adds the rules of the scenario as tensor operations, so that training need not leave a device: `dynamics` gives them for a
    /// device, with the time limit in steps. An error says which setting has no such form.
    pub fn tensor<D, E>(
        self,
        dynamics: impl Fn(&S, &Device) -> Result<(D, Option<u32>), E> + Clone + Send + Sync + 'static,
    ) -> Self
    where
        D: TensorDynamics + 'static,
        E: std::error::Error + 'static,
    {
        Self { tensor_form: Some(TensorForm::new(dynamics)), ..self }
    }

    /// Adds the task as JavaScript, so that the page of an exported policy (`brasa export --format html`) plays it. The script defines
    /// `const task = { seconds, start, observe, step, draw }`: `start()` returns a state, `observe(state)` the numbers of an observation,
    /// `step(state, action)` the next state with its `reward`, and `done: true` at the end of an episode, `draw(context, state, width,
    /// height, color)` draws it on a canvas with the page's colors (`ink`, `soft`, `line`, `ember`), and `seconds` is the length of a step.
    pub fn playable(self, script: &'static str) -> Self {
        Self { playable: Some(script), ..self }
    }

    /// Names settings, values or tables, that change only the reward. Runs that differ in them play the same episodes, so `compare`
    /// compares their figures, though not their returns.
    pub fn reward(self, settings: &'static [&'static str]) -> Self {
        Self { reward: settings, ..self }
    }

    /// Adds a section to the reports.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// Adds a remark below the tables.
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

    /// Erases the type of the scenario.
    pub fn erased(self) -> ScenarioEntry {
        let Self { name, make, sections, remark, tensor_form, reward, playable, programs, .. } = self;
        ScenarioEntry { name, make, sections, remark, tensor_form, reward, playable, programs, scenario: PhantomData }
    }
}

impl ScenarioEntry {
    /// Reads the settings in `source`. Returns them with all defaults written out, and the scenario.
    pub(crate) fn make(&self, source: &Source) -> Result<(toml::Value, Box<dyn Scenario>), ExperimentError> {
        (self.make)(source, &self.name)
    }
}
