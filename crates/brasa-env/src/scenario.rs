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
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{Evaluation, Who, evaluate_by_playing};
///
/// // `Line` has walks as its environments, and the baseline `left`.
/// let outcomes = evaluate_by_playing(&Line, Who::Baseline("left"), &Evaluation::new(5, 0))?;
/// assert_eq!(outcomes.len(), 5);
/// assert_eq!((outcomes[0].episode_return, outcomes[0].length), (Some(-3.0), 3));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
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
///
/// ```
/// use brasa_env::{Baseline, BaselineKind, find_baseline};
///
/// let baselines = [Baseline::new("idle", BaselineKind::Idle), Baseline::new("optimum", BaselineKind::Optimum)];
/// assert_eq!(find_baseline(&baselines, "optimum")?.kind, BaselineKind::Optimum);
/// let error = find_baseline(&baselines, "optimal").unwrap_err();
/// let message = "`baseline` must be one of the scenario's, got `optimal`; there are idle, optimum";
/// assert_eq!(error.to_string(), message);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub fn find_baseline<'a>(baselines: &'a [Baseline], name: &str) -> Result<&'a Baseline, EnvError> {
    baselines.iter().find(|baseline| baseline.name == name).ok_or_else(|| {
        let known = baselines.iter().map(|baseline| baseline.name.as_str()).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        let value = format!("`{name}`; there are {known}");
        EnvError::Argument(InvalidField::new("baseline", "must be one of the scenario's", value))
    })
}

/// Environments for training or for evaluation.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvBatch, Scenario, Split};
///
/// // `Line` is a scenario of walks, with the baseline `left`.
/// // Twenty environments for an evaluation.
/// let batch = Line.envs(Split::Evaluation, 0..20)?;
/// assert_eq!(batch.n_envs(), 20);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Training.
    Train,
    /// Evaluation.
    Evaluation,
}

/// Extent of an evaluation.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{Effort, Scenario};
///
/// // `Line` is a scenario of walks, with the baseline `left`.
/// // By default, an evaluation during training has as many episodes as a final comparison.
/// assert_eq!(Line.n_episodes(Effort::Look), 20);
/// assert_eq!(Line.n_episodes(Effort::Compare), 20);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A short evaluation during training.
    Look,
    /// A final comparison.
    Compare,
}

/// Episodes of an evaluation.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{Evaluation, Scenario, Who};
///
/// // `Line` is a scenario of walks, with the baseline `left`.
/// // The episodes 10 to 12 of seed 1, with a trace of the first of them.
/// let evaluation = Evaluation { episodes: 10..13, n_traces: 1, ..Evaluation::new(0, 1) };
/// let outcomes = Line.evaluate(Who::Baseline("left"), &evaluation)?;
/// let traced: Vec<bool> = outcomes.iter().map(|outcome| outcome.trace.is_some()).collect();
/// assert_eq!(traced, [true, false, false]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
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
///
/// ```
/// use brasa_env::{ComparisonMemory, Scenario};
/// # use brasa_env::{EnvBatch, EnvError, Split};
/// # struct Year;
///
/// impl Scenario for Year {
/// #   fn envs(&self, _: Split, _: std::ops::Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> { unimplemented!() }
///     // A linear program of one year, which `optimum = false` leaves out.
///     fn comparison_memory(&self) -> Option<ComparisonMemory> {
///         Some(ComparisonMemory { bytes: 2e9, setting: "optimum" })
///     }
/// }
///
/// assert_eq!(Year.comparison_memory().map(|memory| memory.setting), Some("optimum"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonMemory {
    /// Bytes, roughly.
    pub bytes: f64,
    /// The setting of the scenario that, if `false`, leaves the baseline out.
    pub setting: &'static str,
}

/// The data from which episodes are made.
///
/// ```
/// use brasa_env::{EpisodeData, fingerprint};
///
/// // Recorded temperatures of two days. The second day of training is the day of the evaluation.
/// let [monday, tuesday] = [fingerprint([20.5, 21.0]), fingerprint([18.0, 19.5])];
/// let train = EpisodeData::fixed([monday, tuesday]);
/// let (EpisodeData::Fixed(seen), evaluation) = (train, [tuesday]) else { unreachable!() };
/// assert!(evaluation.iter().all(|day| seen.contains(day)));
/// ```
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
///
/// ```
/// use brasa_env::fingerprint;
///
/// assert_eq!(fingerprint([20.5, 21.0]), fingerprint(vec![20.5, 21.0]));
/// // The order of the numbers matters.
/// assert_ne!(fingerprint([20.5, 21.0]), fingerprint([21.0, 20.5]));
/// ```
pub fn fingerprint(values: impl IntoIterator<Item = f64>) -> u64 {
    fnv1a(values.into_iter().flat_map(f64::to_le_bytes))
}

/// The fingerprint of a text or of a file, for [`EpisodeData::Fixed`]. It never changes between versions.
///
/// ```
/// use brasa_env::fingerprint_bytes;
///
/// assert_eq!(fingerprint_bytes("hour,load\n0,1.5\n"), fingerprint_bytes(b"hour,load\n0,1.5\n"));
/// assert_ne!(fingerprint_bytes("hour,load\n0,1.5\n"), fingerprint_bytes("hour,load\n0,1.6\n"));
/// ```
pub fn fingerprint_bytes(bytes: impl AsRef<[u8]>) -> u64 {
    fnv1a(bytes.as_ref().iter().copied())
}

impl std::fmt::Debug for dyn Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scenario").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

/// The controller of an evaluation.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{Evaluation, Scenario, Who};
///
/// // `Line` is a scenario of walks, with the baseline `left`.
/// let evaluation = Evaluation::new(1, 0);
/// let baseline = Line.evaluate(Who::Baseline("left"), &evaluation)?;
/// // A controller that is no baseline, such as a trained policy.
/// let policy = Line.evaluate(Who::Controller(&mut left), &evaluation)?;
/// assert_eq!(policy[0].episode_return, baseline[0].episode_return);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
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
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{Baseline, BaselineKind, EnvVec, play_episodes};
///
/// // `Walk` goes on a line from 3 to the goal at 0, and `left` always goes there.
/// let baseline = Baseline::new("left", BaselineKind::Optimum).by(|| Box::new(left));
/// let mut controller = baseline.controller()?;
/// let episodes = play_episodes(&mut EnvVec::new(0..1, |_| Walk(0.0))?, &mut *controller, 0, 0)?;
/// assert_eq!(episodes[0].0.episode_return, -3.0);
/// // A scenario evaluates a baseline without a controller itself.
/// assert!(Baseline::new("bound", BaselineKind::Bound).controller().is_err());
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
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
///
/// ```
/// use brasa_env::{Baseline, BaselineKind};
///
/// let baseline = Baseline::new("rules of the operator", BaselineKind::Heuristic);
/// assert_eq!(baseline.kind.name(), "heuristic");
/// ```
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
///
/// ```
/// use brasa_env::{Better, Figure, Reference};
///
/// let figure = Figure::new("carbon_kg", "carbon [kg]").less_is_better();
/// let figure = figure.relative_to(Reference::Baseline("idle".into()));
/// assert_eq!((figure.name.as_str(), figure.better), ("carbon_kg", Some(Better::Less)));
/// assert!(figure.reference.is_some());
/// ```
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
///
/// ```
/// use brasa_env::{Better, Figure, FigureRule};
///
/// /// The sums of an episode.
/// struct Sums { kwh: f64, hours: f64 }
///
/// const RULES: [FigureRule<Sums>; 2] = [
///     ("energy_kwh", "energy [kWh]", Some(Better::Less), |sums| sums.kwh),
///     ("power_kw", "mean power [kW]", None, |sums| sums.kwh / sums.hours),
/// ];
/// let figures = RULES.map(|(name, label, better, _)| Figure { better, ..Figure::new(name, label) });
/// let values = RULES.map(|(.., value)| value(&Sums { kwh: 12.0, hours: 24.0 }));
/// assert_eq!((figures[1].name.as_str(), values), ("power_kw", [12.0, 0.5]));
/// ```
pub type FigureRule<T, V = f64> = (&'static str, &'static str, Option<Better>, fn(&T) -> V);

/// The better direction of a figure.
///
/// ```
/// use brasa_env::{Better, Figure};
///
/// assert_eq!(Figure::new("comfort", "comfort [%]").more_is_better().better, Some(Better::More));
/// assert_eq!(Figure::new("cost_eur", "cost [EUR]").less_is_better().better, Some(Better::Less));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Larger values are better.
    More,
    /// Smaller values are better.
    Less,
}

/// Reference of the ratios of a figure.
///
/// ```
/// use brasa_env::{Figure, Measured, Reference};
///
/// // Served energy, as a ratio to the energy that the vehicles of the episode need.
/// let of_demand = Reference::OfEpisode("the demand".into());
/// let figure = Figure::new("served_kwh", "served [kWh]").relative_to(of_demand.clone());
/// assert_eq!(figure.reference, Some(of_demand));
/// assert_eq!(Measured::new(30.0).relative_to(40.0).ratio, Some(0.75));
/// ```
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
///
/// ```
/// use brasa_env::Curve;
///
/// // The mean power, with its value in evaluations and lines for the baselines.
/// let curve = Curve {
///     label: "mean power [kW]".into(),
///     metric: "rollout/energy_kwh".into(),
///     divided_by: Some("rollout/hours".into()),
///     evaluated: None,
///     figure: Some("power_kw".into()),
/// };
/// assert_eq!(curve.divided_by.as_deref(), Some("rollout/hours"));
/// ```
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
///
/// ```
/// use brasa_env::{Figure, Measured, Outcome};
///
/// let figures = [Figure::new("energy_kwh", "energy [kWh]"), Figure::new("peak_kw", "peak [kW]")];
/// let outcome = Outcome {
///     episode_return: Some(-12.0),
///     figures: vec![Measured::new(12.0), Measured::new(1.5)],
///     details: vec![("hours".into(), 24.0)],
///     ..Outcome::default()
/// };
/// assert_eq!(outcome.figure(&figures, "peak_kw").and_then(|peak| peak.value), Some(1.5));
/// assert_eq!(outcome.detail("hours"), Some(24.0));
/// ```
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
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EpisodeSeries, Evaluation, Scenario, Who};
///
/// // `Line` is a scenario of walks, with the baseline `left`.
/// let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 0) };
/// let outcome = Line.evaluate(Who::Baseline("left"), &evaluation)?.remove(0);
/// // The default of `Scenario::evaluate` records a series.
/// let series = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<EpisodeSeries>());
/// assert_eq!(series.and_then(|series| series.get("place")), Some(&[3.0, 2.0, 1.0][..]));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub type Trace = Arc<dyn Any + Send + Sync>;

/// The value of a figure in one episode.
///
/// ```
/// use brasa_env::Measured;
///
/// // The energy of an episode, and its ratio to the energy of a reference.
/// let energy = Measured::new(30.0).relative_to(40.0);
/// assert_eq!((energy.value, energy.ratio, energy.weight), (Some(30.0), Some(0.75), 1.0));
/// assert_eq!(Measured::NONE.value, None);
/// ```
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
///
/// ```
/// use brasa_env::ratio;
///
/// assert_eq!(ratio(30.0, 40.0), Some(0.75));
/// // A profit and a loss have no ratio.
/// assert_eq!(ratio(30.0, -40.0), None);
/// ```
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
