//! A task with its baselines: what training, comparison and reports need to know of it, and nothing of learning.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use crate::{Controller, EnvBatch, EnvError, EpisodeSeries, Extensions, InvalidField, play_episodes};

/// A task that can be trained on, compared on and reported on.
///
/// Only [`Scenario::envs`] must be written. With [`Scenario::figures`] that name columns of
/// [`EnvSpec::info_names`](crate::EnvSpec::info_names) and [`Scenario::baselines`] that bring a controller, everything else
/// follows.
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
    /// The environments with the global indices `envs`, to train in or to evaluate in. The index, not the place, addresses
    /// random numbers.
    ///
    /// # Errors
    /// Where the scenario's settings or data cannot be used.
    fn envs(&self, split: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError>;

    /// What is measured of an episode besides its return, in the order of reports.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// Who a policy is compared with, in the order of reports.
    fn baselines(&self) -> Vec<Baseline> {
        Vec::new()
    }

    /// What networks may want to know about the numbers of observations and actions.
    fn extensions(&self) -> Extensions {
        Extensions::default()
    }

    /// The scenario to evaluate `n_episodes` in, where that is another one: unseen buildings, say. `None` for this one.
    ///
    /// # Errors
    /// Where it cannot be made.
    fn for_evaluation(&self, _n_episodes: u64) -> Result<Option<Box<dyn Scenario>>, EnvError> {
        Ok(None)
    }

    /// How many episodes an evaluation takes where nobody says.
    fn n_episodes(&self, _effort: Effort) -> u64 {
        20
    }

    /// What every row of a comparison has in common, in a sentence for people: where episodes come from.
    fn about_episodes(&self, n_episodes: u64) -> String {
        format!("Means over {n_episodes} episodes, the same for every controller.")
    }

    /// What a learning curve shows besides the return.
    fn curves(&self) -> Vec<Curve> {
        Vec::new()
    }

    /// Lets `who` decide over whole episodes; the same episodes for everybody.
    ///
    /// As given it plays the first episode of the environments `evaluation.episodes` of [`Split::Evaluation`] side by side,
    /// and reads every figure off the column of its name.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an unknown baseline; where an environment or a controller fails.
    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        evaluate_by_playing(self, who, evaluation)
    }
}

/// What [`Scenario::evaluate`] is as given, for scenarios that evaluate some baselines in another way and leave the rest to it.
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
    let figures = scenario.figures();
    let columns: Vec<Option<usize>> =
        figures.iter().map(|figure| info_names.iter().position(|name| *name == figure.name)).collect();
    let outcome = |(episode, series): (crate::Episode, Option<EpisodeSeries>)| {
        let measure = |(figure, column): (&Figure, &Option<usize>)| {
            let sum = column.map(|column| episode.info[column]);
            Measured::maybe(match figure.total {
                Total::Sum => sum,
                Total::Mean => sum.map(|sum| sum / episode.length.max(1) as f64),
            })
        };
        Outcome {
            episode_return: Some(episode.episode_return),
            length: episode.length,
            figures: figures.iter().zip(&columns).map(measure).collect(),
            trace: series.map(|series| -> Trace { Arc::new(series) }),
            ..Outcome::default()
        }
    };
    Ok(played.into_iter().map(outcome).collect())
}

/// The baseline called `name`.
///
/// # Errors
/// [`EnvError::Argument`] with the names that there are.
pub fn find_baseline<'a>(baselines: &'a [Baseline], name: &str) -> Result<&'a Baseline, EnvError> {
    baselines.iter().find(|baseline| baseline.name == name).ok_or_else(|| {
        let known = baselines.iter().map(|baseline| baseline.name.as_str()).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        let value = format!("`{name}`; there are {known}");
        EnvError::Argument(InvalidField::new("baseline", "must be one of the scenario's", value))
    })
}

/// Which environments: those to learn in or those to be measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// To learn in.
    Train,
    /// To be measured in.
    Evaluation,
}

/// How thorough an evaluation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A quick look while learning goes on.
    Look,
    /// A comparison that is kept.
    Compare,
}

/// Which episodes to evaluate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// Episodes by their index, which addresses their random numbers.
    pub episodes: Range<u64>,
    /// Seed; no training run may have the same.
    pub seed: u64,
    /// How many of the first episodes leave a trace.
    pub n_traces: usize,
}

impl Evaluation {
    /// The first `n_episodes` under `seed`, without traces.
    pub fn new(n_episodes: u64, seed: u64) -> Self {
        Self { episodes: 0..n_episodes, seed, n_traces: 0 }
    }
}

/// Who decides in an evaluation.
pub enum Who<'a> {
    /// One of [`Scenario::baselines`], by its name.
    Baseline(&'a str),
    /// Anybody else, such as a trained policy.
    Controller(&'a mut dyn Controller),
}

impl Who<'_> {
    /// The same for one of several episodes.
    pub fn reborrow(&mut self) -> Who<'_> {
        match self {
            Self::Baseline(name) => Who::Baseline(name),
            Self::Controller(controller) => Who::Controller(&mut **controller),
        }
    }
}

/// Somebody to compare a policy with.
#[derive(Clone)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// What its figures mean.
    pub kind: BaselineKind,
    controller: Option<MakeController>,
}

/// Makes a controller for one evaluation.
type MakeController = Arc<dyn Fn() -> Box<dyn Controller> + Send + Sync>;

/// What the figures of a baseline mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaselineKind {
    /// What happens if nobody does anything.
    Idle,
    /// A rule or planner that a sensible person would use.
    Heuristic,
    /// What nobody can beat; perhaps nobody reaches it either.
    Bound,
    /// The best that is possible, proven, and reached by somebody.
    Optimum,
}

impl BaselineKind {
    /// Its name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Heuristic => "heuristic",
            Self::Bound => "bound",
            Self::Optimum => "optimum",
        }
    }
}

impl Baseline {
    /// A baseline that the scenario's own [`Scenario::evaluate`] knows by name.
    pub fn new(name: impl Into<String>, kind: BaselineKind) -> Self {
        Self { name: name.into(), kind, controller: None }
    }

    /// The same with a controller, made anew for every evaluation.
    pub fn by(self, make: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static) -> Self {
        Self { controller: Some(Arc::new(make)), ..self }
    }

    /// A new controller.
    ///
    /// # Errors
    /// [`EnvError::Argument`] where it has none.
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

/// Something that is measured of an episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name for programs, with its unit: `carbon_kg`.
    pub name: String,
    /// Its name for people, with its unit: `carbon [kg]`.
    pub label: String,
    /// Which direction is better; `None` where neither is.
    pub better: Option<Better>,
    /// What ratios of it are relative to; `None` without ratios.
    pub reference: Option<Reference>,
    /// How the given [`Scenario::evaluate`] makes one number of the steps of an episode.
    pub total: Total,
}

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More.
    More,
    /// Less.
    Less,
}

/// What ratios of a figure are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// To the mean of a baseline, by its name.
    Baseline(String),
    /// To something of each episode itself, in words that complete "ratio to": the scenario fills [`Measured::ratio`].
    OfEpisode(String),
}

/// How one number is made of the steps of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Total {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
}

impl Figure {
    /// A figure without a better direction and without ratios, summed over the steps of an episode.
    pub fn new(name: impl Into<String>, label: impl Into<String>) -> Self {
        Self { name: name.into(), label: label.into(), better: None, reference: None, total: Total::Sum }
    }

    /// The same where less is better.
    pub fn less_is_better(self) -> Self {
        Self { better: Some(Better::Less), ..self }
    }

    /// The same where more is better.
    pub fn more_is_better(self) -> Self {
        Self { better: Some(Better::More), ..self }
    }

    /// The same as a mean over steps.
    pub fn mean(self) -> Self {
        Self { total: Total::Mean, ..self }
    }

    /// The same with ratios.
    pub fn relative_to(self, reference: Reference) -> Self {
        Self { reference: Some(reference), ..self }
    }
}

/// A line of a learning curve: a metric of the training run, or a quotient of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// What it shows, for people.
    pub label: String,
    /// Name of the metric, such as `rollout/carbon_kg`.
    pub metric: String,
    /// The metric that it is divided by, if it is a quotient.
    pub divided_by: Option<String>,
    /// The metric that shows the same without exploration, such as `eval/carbon_kg`, where `eval_interval` is set.
    pub evaluated: Option<String>,
    /// The figure whose values for baselines are drawn as levels beside it.
    pub figure: Option<String>,
}

/// What came of one episode.
#[derive(Clone, Default)]
pub struct Outcome {
    /// Sum of the rewards, averaged over agents; `None` for a bound, which plays no episode.
    pub episode_return: Option<f64>,
    /// Steps.
    pub length: u64,
    /// One entry for each of [`Scenario::figures`], in their order.
    pub figures: Vec<Measured>,
    /// What else a program may want to know, by name.
    pub details: Vec<(String, f64)>,
    /// What a report may draw, where it was asked for.
    pub trace: Option<Trace>,
}

impl Outcome {
    /// The entry of the figure called `name` among `figures`, which are those of the scenario.
    pub fn figure(&self, figures: &[Figure], name: &str) -> Option<Measured> {
        let index = figures.iter().position(|figure| figure.name == name)?;
        self.figures.get(index).copied()
    }

    /// The detail called `name`.
    pub fn detail(&self, name: &str) -> Option<f64> {
        self.details.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

/// A record of an episode in the scenario's own type.
pub type Trace = Arc<dyn Any + Send + Sync>;

/// The value of a figure in one episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// In the unit of the figure; `None` where it has no meaning in this episode or for this controller.
    pub value: Option<f64>,
    /// Against [`Reference::OfEpisode`].
    pub ratio: Option<f64>,
    /// How much this episode counts in a mean; 1 unless shares of unequal wholes are averaged.
    pub weight: f64,
}

impl Measured {
    /// Nothing.
    pub const NONE: Self = Self { value: None, ratio: None, weight: 1.0 };

    /// A value.
    pub fn new(value: f64) -> Self {
        Self { value: Some(value), ..Self::NONE }
    }

    /// A value, if there is one.
    pub fn maybe(value: Option<f64>) -> Self {
        Self { value, ..Self::NONE }
    }

    /// The same with its ratio to what the episode is measured against.
    pub fn with_ratio(self, ratio: Option<f64>) -> Self {
        Self { ratio, ..self }
    }

    /// The same with a weight.
    pub fn weighted(self, weight: f64) -> Self {
        Self { weight, ..self }
    }
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
