//! A task with its baselines, as training, comparison and reports need it; independent of learners.

use std::any::Any;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::rng::fnv1a;
use crate::{Controller, EnvBatch, EnvError, EpisodeSeries, Extensions, InvalidField, RenderedEnv, play_episodes};

/// A task for training, comparison and reports.
///
/// Only [`Scenario::envs`] is required. The other methods have defaults, given [`Scenario::figures`] with the names of
/// columns of [`EnvSpec::info_names`](crate::EnvSpec::info_names) and [`Scenario::baselines`] with controllers.
///
/// ```
/// # use std::ops::Range;
/// # use brasa_env::{BatchSlabs, EnvBatch, EnvError};
/// use brasa_env::{Baseline, BaselineKind, Figure, Scenario, Split};
/// # use ndarray::ArrayViewMut2;
///
/// struct Room;
/// # fn rooms(_: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> { unimplemented!() }
///
/// impl Scenario for Room {
///     fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
///         rooms(envs)
///     }
///     fn figures(&self) -> Vec<Figure> {
///         vec![Figure::new("energy_kwh", "energy [kWh]").less_is_better()]
///     }
///     fn baselines(&self) -> Vec<Baseline> {
///         let off = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
///             actions.fill(0.0);
///             Ok(())
///         };
///         vec![Baseline::new("off", BaselineKind::Idle).by(move || Box::new(off))]
///     }
/// }
/// ```
pub trait Scenario: Any + Send + Sync {
    /// The environments with the global indices `envs`, for training or evaluation. The index addresses the random
    /// numbers.
    ///
    /// # Errors
    /// If the scenario's settings or data are invalid.
    fn envs(&self, split: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError>;

    /// Figures of an episode besides its return, in the order of reports. A figure with the name of a column of
    /// [`EnvSpec::info_names`](crate::EnvSpec::info_names) has the unit of the column, as `rollout/NAME` and `eval/NAME` are its values.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// The baselines, in the order of reports.
    fn baselines(&self) -> Vec<Baseline> {
        Vec::new()
    }

    /// Structure of observations and actions for networks.
    fn extensions(&self) -> Extensions {
        Extensions::default()
    }

    /// The scenario for an evaluation of `n_episodes`, if it differs, for example unseen buildings. `None` for this
    /// one.
    ///
    /// # Errors
    /// If it cannot be constructed.
    fn for_evaluation(&self, _n_episodes: u64) -> Result<Option<Box<dyn Scenario>>, EnvError> {
        Ok(None)
    }

    /// Default number of episodes of an evaluation.
    fn n_episodes(&self, _effort: Effort) -> u64 {
        20
    }

    /// Number of different episodes of evaluations, whatever their seed; `None`, the default, if every episode is another.
    ///
    /// Episodes of recorded data and of rules without randomness repeat: episode `n` is then a copy of episode 0. Evaluations
    /// play each episode once, because copies are no evidence; only baselines that are random play more.
    fn n_distinct_episodes(&self) -> Option<u64> {
        None
    }

    /// The data from which the episodes of a split are made. A run records those of its training, so that evaluations can tell
    /// whether it could see theirs.
    fn data(&self, _split: Split) -> EpisodeData {
        EpisodeData::Unknown
    }

    /// The files and folders from which the scenario was made. A run keeps their digests, so that it notices later if one has another content.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What the most demanding baseline takes of the host's memory for an episode, if that is worth naming. It may take a second.
    fn comparison_memory(&self) -> Option<ComparisonMemory> {
        None
    }

    /// A sentence for reports about the episodes of a comparison.
    fn about_episodes(&self, n_episodes: u64) -> String {
        format!("Means over {n_episodes} episodes, the same for every controller.")
    }

    /// Lines of the learning curve besides the return.
    fn curves(&self) -> Vec<Curve> {
        Vec::new()
    }

    /// The environment with the global index `env` for evaluation, which renders its states: for the player of a report and for `brasa eval
    /// --video`. `None`, the default, if the scenario renders none.
    ///
    /// [`RenderedBatch`](crate::RenderedBatch) makes one from a function of observations:
    ///
    /// ```
    /// # use std::ops::Range;
    /// use brasa_env::wrappers::TimeLimit;
    /// use brasa_env::{RenderedBatch, Env, EnvBatch, EnvError, EnvVec, Frame, RenderedEnv, Scenario, Shown, Split};
    ///
    /// struct Walk<E>(fn() -> E);
    ///
    /// /// A white pixel at the place that is observed first, on a line of 100 black pixels.
    /// fn render(shown: &Shown<'_>) -> Result<Frame, EnvError> {
    ///     let place = shown.obs[[0, 0]].clamp(0.0, 99.0) as usize;
    ///     let rgb = (0..300).map(|byte| if byte / 3 == place { 255 } else { 0 }).collect();
    ///     Ok(Frame::new(100, 1, rgb)?)
    /// }
    ///
    /// impl<E: Env> Scenario for Walk<E> {
    ///     fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
    ///         Ok(Box::new(TimeLimit::new(EnvVec::new(envs, |_| (self.0)())?, 50)?))
    ///     }
    ///     fn rendered(&self, env: usize) -> Result<Option<Box<dyn RenderedEnv>>, EnvError> {
    ///         let batch = self.envs(Split::Evaluation, env..env + 1)?;
    ///         Ok(Some(Box::new(RenderedBatch::new(batch, 0.1, render)?)))
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// If the environment cannot be constructed, or cannot render.
    fn rendered(&self, _env: usize) -> Result<Option<Box<dyn RenderedEnv>>, EnvError> {
        Ok(None)
    }

    /// Runs complete episodes with `who` as the controller; the episodes are the same for all controllers.
    ///
    /// An episode with a baseline does not depend on the other episodes of the evaluation: long evaluations are split.
    ///
    /// The default runs the first episode of the environments `evaluation.episodes` of [`Split::Evaluation`] in one
    /// batch, and reads every figure from the column of its name.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an unknown baseline; errors of environments and controllers.
    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        evaluate_by_playing(self, who, evaluation)
    }
}

/// The default of [`Scenario::evaluate`], for scenarios that evaluate only some baselines differently.
///
/// # Errors
/// As [`Scenario::evaluate`].
pub fn evaluate_by_playing<S: Scenario + ?Sized>(
    scenario: &S,
    who: Who<'_>,
    evaluation: &Evaluation,
) -> Result<Vec<Outcome>, EnvError> {
    let Range { start, end } = evaluation.episodes;
    let mut batch = scenario.envs(Split::Evaluation, start as usize..end as usize)?;
    let info_names = batch.spec().info_names.clone();
    let (seed, n_traces) = (evaluation.seed, evaluation.n_traces);
    let played = match who {
        Who::Controller(controller) => play_episodes(&mut *batch, controller, seed, n_traces)?,
        Who::Baseline(name) => {
            let baselines = scenario.baselines();
            let mut controller = find_baseline(&baselines, name)?.controller()?;
            play_episodes(&mut *batch, &mut *controller, seed, n_traces)?
        }
    };
    let columns: Vec<Option<usize>> =
        scenario.figures().iter().map(|figure| info_names.iter().position(|name| *name == figure.name)).collect();
    let outcome = |(episode, series): (crate::Episode, Option<EpisodeSeries>)| {
        let measure = |column: &Option<usize>| Measured::maybe(column.map(|column| episode.info[column]));
        Outcome {
            episode_return: Some(episode.episode_return),
            length: episode.length,
            figures: columns.iter().map(measure).collect(),
            trace: series.map(|series| -> Trace { Arc::new(series) }),
            ..Outcome::default()
        }
    };
    Ok(played.into_iter().map(outcome).collect())
}

/// The baseline called `name`.
///
/// # Errors
/// [`EnvError::Argument`] with the known names.
pub fn find_baseline<'a>(baselines: &'a [Baseline], name: &str) -> Result<&'a Baseline, EnvError> {
    baselines.iter().find(|baseline| baseline.name == name).ok_or_else(|| {
        let known = baselines.iter().map(|baseline| baseline.name.as_str()).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        let value = format!("`{name}`; there are {known}");
        EnvError::Argument(InvalidField::new("baseline", "must be one of the scenario's", value))
    })
}

/// Environments for training or for evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Training.
    Train,
    /// Evaluation.
    Evaluation,
}

/// Extent of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A short evaluation during training.
    Look,
    /// A final comparison.
    Compare,
}

/// Episodes of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// Episodes by their index, which addresses their random numbers.
    pub episodes: Range<u64>,
    /// Seed; it must differ from that of training.
    pub seed: u64,
    /// Number of first episodes with a trace.
    pub n_traces: usize,
}

impl Evaluation {
    /// The first `n_episodes` of `seed`, without traces.
    pub fn new(n_episodes: u64, seed: u64) -> Self {
        Self { episodes: 0..n_episodes, seed, n_traces: 0 }
    }
}

/// Memory of the host that the baselines of a comparison take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonMemory {
    /// Bytes, roughly.
    pub bytes: f64,
    /// The setting of the scenario that, if `false`, leaves the baseline out.
    pub setting: &'static str,
}

/// The data from which episodes are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EpisodeData {
    /// Every episode is sampled from its seed, so that other seeds have other episodes.
    Sampled,
    /// Recorded data, or a task without randomness: the fingerprint of each part, such as a day. Equal parts have equal
    /// fingerprints, whatever file they come from.
    Fixed(BTreeSet<u64>),
    /// Nothing is known.
    Unknown,
}

impl EpisodeData {
    /// Fixed data with the fingerprints of `parts`.
    pub fn fixed(parts: impl IntoIterator<Item = u64>) -> Self {
        Self::Fixed(parts.into_iter().collect())
    }
}

/// The fingerprint of numbers, for [`EpisodeData::Fixed`]. It never changes between versions.
pub fn fingerprint(values: impl IntoIterator<Item = f64>) -> u64 {
    fnv1a(values.into_iter().flat_map(f64::to_le_bytes))
}

/// The fingerprint of a text or of a file, for [`EpisodeData::Fixed`]. It never changes between versions.
pub fn fingerprint_bytes(bytes: impl AsRef<[u8]>) -> u64 {
    fnv1a(bytes.as_ref().iter().copied())
}

impl std::fmt::Debug for dyn Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scenario").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

/// The controller of an evaluation.
pub enum Who<'a> {
    /// One of [`Scenario::baselines`], by name.
    Baseline(&'a str),
    /// Any other controller, such as a trained policy.
    Controller(&'a mut dyn Controller),
}

impl std::fmt::Debug for Who<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Baseline(name) => f.debug_tuple("Baseline").field(name).finish(),
            Self::Controller(_) => f.write_str("Controller"),
        }
    }
}

impl Who<'_> {
    /// Reborrows the controller, for one of several evaluations.
    pub fn reborrow(&mut self) -> Who<'_> {
        match self {
            Self::Baseline(name) => Who::Baseline(name),
            Self::Controller(controller) => Who::Controller(&mut **controller),
        }
    }
}

/// A controller or bound that a policy is compared with.
#[derive(Clone)]
pub struct Baseline {
    /// Name in tables and commands.
    pub name: String,
    /// Meaning of its figures.
    pub kind: BaselineKind,
    /// Whether it draws random numbers, so that it differs between episodes that are otherwise equal.
    pub is_random: bool,
    controller: Option<MakeController>,
}

/// Constructs a controller for one evaluation.
type MakeController = Arc<dyn Fn() -> Box<dyn Controller> + Send + Sync>;

/// Meaning of the figures of a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaselineKind {
    /// The result without any control.
    Idle,
    /// A reasonable rule or planner.
    Heuristic,
    /// A schedule that is reached with knowledge of the future; better ones may exist.
    Plan,
    /// A bound that no controller exceeds; it may be unreachable.
    Bound,
    /// The proven optimum, reached by a known solution.
    Optimum,
}

impl BaselineKind {
    /// Name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Heuristic => "heuristic",
            Self::Plan => "plan",
            Self::Bound => "bound",
            Self::Optimum => "optimum",
        }
    }
}

impl Baseline {
    /// A baseline without a controller, which the scenario's own [`Scenario::evaluate`] handles by name.
    pub fn new(name: impl Into<String>, kind: BaselineKind) -> Self {
        Self { name: name.into(), kind, is_random: false, controller: None }
    }

    /// Marks a baseline that draws random numbers.
    pub fn random(self) -> Self {
        Self { is_random: true, ..self }
    }

    /// Sets a controller, constructed for every evaluation.
    pub fn by(self, make: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static) -> Self {
        Self { controller: Some(Arc::new(make)), ..self }
    }

    /// A new controller.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for a baseline without a controller.
    pub fn controller(&self) -> Result<Box<dyn Controller>, EnvError> {
        match &self.controller {
            Some(make) => Ok(make()),
            None => {
                let rule = "must have a controller, or the scenario evaluates it itself";
                Err(EnvError::Argument(InvalidField::new("baseline", rule, self.name.clone())))
            }
        }
    }
}

impl std::fmt::Debug for Baseline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.kind.name())
    }
}

/// A figure of an episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name for programs, with unit: `carbon_kg`.
    pub name: String,
    /// Label in tables, with unit: `carbon [kg]`.
    pub label: String,
    /// The better direction; `None` if neither is.
    pub better: Option<Better>,
    /// Reference of ratios; `None` without ratios.
    pub reference: Option<Reference>,
}

/// A row of a table of figures: name, label, the better direction, and how the value follows from the sums `T` of an episode.
pub type FigureRule<T, V = f64> = (&'static str, &'static str, Option<Better>, fn(&T) -> V);

/// The better direction of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Larger values are better.
    More,
    /// Smaller values are better.
    Less,
}

/// Reference of the ratios of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The mean of a baseline, by name.
    Baseline(String),
    /// A quantity of each episode, in words that complete "ratio to"; the scenario sets [`Measured::reference`].
    OfEpisode(String),
}

impl Figure {
    /// A figure without a better direction and without ratios.
    pub fn new(name: impl Into<String>, label: impl Into<String>) -> Self {
        Self { name: name.into(), label: label.into(), better: None, reference: None }
    }

    /// Marks smaller values as better.
    pub fn less_is_better(self) -> Self {
        Self { better: Some(Better::Less), ..self }
    }

    /// Marks larger values as better.
    pub fn more_is_better(self) -> Self {
        Self { better: Some(Better::More), ..self }
    }

    /// Adds ratios to `reference`.
    pub fn relative_to(self, reference: Reference) -> Self {
        Self { reference: Some(reference), ..self }
    }
}

/// A line of a learning curve: a metric of the training run, or the quotient of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// Label in the report.
    pub label: String,
    /// Name of the metric, such as `rollout/carbon_kg`.
    pub metric: String,
    /// The metric of the denominator, for a quotient.
    pub divided_by: Option<String>,
    /// The same metric without exploration, such as `eval/carbon_kg`, if `eval_interval` is set.
    pub evaluated: Option<String>,
    /// The figure whose values for baselines are drawn as horizontal lines.
    pub figure: Option<String>,
}

/// Result of one episode.
#[derive(Clone, Default)]
pub struct Outcome {
    /// Sum of the rewards, averaged over agents; `None` for a bound, which has no episode.
    pub episode_return: Option<f64>,
    /// Number of steps.
    pub length: u64,
    /// One entry per figure of [`Scenario::figures`], in their order.
    pub figures: Vec<Measured>,
    /// Additional values for programs, by name.
    pub details: Vec<(String, f64)>,
    /// Record for reports, if requested.
    pub trace: Option<Trace>,
}

impl Outcome {
    /// The entry of the figure `name`; `figures` are those of the scenario.
    pub fn figure(&self, figures: &[Figure], name: &str) -> Option<Measured> {
        let index = figures.iter().position(|figure| figure.name == name)?;
        self.figures.get(index).copied()
    }

    /// The detail `name`.
    pub fn detail(&self, name: &str) -> Option<f64> {
        self.details.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

/// A record of an episode in the scenario's own type.
pub type Trace = Arc<dyn Any + Send + Sync>;

/// The value of a figure in one episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// In the unit of the figure; `None` if it is undefined for this episode or controller.
    pub value: Option<f64>,
    /// The value of [`Reference::OfEpisode`] in the same unit. A ratio over several episodes is the sum of values over the sum of
    /// references.
    pub reference: Option<f64>,
    /// Ratio to the reference, for a value that is not negative and a reference above 0. Figures without a value may have a
    /// ratio alone.
    pub ratio: Option<f64>,
    /// Weight of this episode in a mean; 1 except for fractions with different denominators.
    pub weight: f64,
}

impl Measured {
    /// No value.
    pub const NONE: Self = Self { value: None, reference: None, ratio: None, weight: 1.0 };

    /// A value.
    pub fn new(value: f64) -> Self {
        Self { value: Some(value), ..Self::NONE }
    }

    /// An optional value.
    pub fn maybe(value: Option<f64>) -> Self {
        Self { value, ..Self::NONE }
    }

    /// Sets the value of the reference in the episode, and the ratio to it.
    pub fn relative_to(self, reference: f64) -> Self {
        Self { reference: Some(reference), ratio: self.value.and_then(|value| ratio(value, reference)), ..self }
    }

    /// Sets a ratio alone, for a figure without a value.
    pub fn with_ratio(self, ratio: Option<f64>) -> Self {
        Self { ratio, ..self }
    }

    /// Sets the weight.
    pub fn weighted(self, weight: f64) -> Self {
        Self { weight, ..self }
    }
}

/// `value / reference` where this is a comparison of sizes: for a value that is not negative and a reference above 0. Otherwise
/// a larger ratio may belong to the smaller value.
pub fn ratio(value: f64, reference: f64) -> Option<f64> {
    (value >= 0.0 && reference > 0.0).then(|| value / reference)
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome")
            .field("episode_return", &self.episode_return)
            .field("length", &self.length)
            .field("figures", &self.figures)
            .field("details", &self.details)
            .finish_non_exhaustive()
    }
}
