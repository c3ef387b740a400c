//! What every energy scenario offers: batches to train on, controllers to compare with, outcomes to report.

use std::ops::Range;

use brasa_env::EnvBatch;
use ndarray::{ArrayView2, ArrayViewMut2};
use serde::Serialize;

use crate::{EnergyError, Ledger};

/// A scenario that can be trained on and measured.
pub trait EnergyScenario {
    /// Its environments on the host.
    type Batch: EnvBatch;

    /// The environments with the global indices `envs`; the index, not the place, addresses random numbers.
    ///
    /// # Errors
    /// Where the scenario's own settings cannot be used.
    fn batch(&self, envs: Range<usize>) -> Result<Self::Batch, EnergyError>;

    /// Names of the controllers that do not learn, in the order of reports; `idle` comes first.
    fn controllers(&self) -> Vec<&'static str>;

    /// Runs one whole episode in one environment under `control`.
    ///
    /// # Errors
    /// Where `control` names an unknown controller or the environment fails.
    fn evaluate(&self, control: Control<'_>, seed: u64) -> Result<Outcome, EnergyError>;
}

/// Who decides during an evaluation.
pub enum Control<'a> {
    /// One of [`EnergyScenario::controllers`].
    Rule(&'a str),
    /// A policy: reads `[1, obs width]` observations, writes `[1, action width]` actions.
    Policy(&'a mut dyn FnMut(ArrayView2<f32>, ArrayViewMut2<f32>)),
}

/// What one controller did over one episode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Sum of the rewards.
    pub episode_return: f64,
    /// Figures in the order of reports; `grid_import_kwh`, `carbon_kg`, `cost` and `peak_kw` are always among them.
    pub figures: Vec<Figure>,
    /// Sum of the flows.
    pub ledger: Ledger,
    /// The flows step by step.
    pub trace: Trace,
}

/// One figure, absolute and against the scenario's reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Name with unit.
    pub name: &'static str,
    /// Value in the unit of the name; `None` where only the ratio has a meaning.
    pub value: Option<f64>,
    /// Value divided by the reference's, where the reference is not 0; lower is better.
    pub ratio: Option<f64>,
}

/// Power flows of an episode, step by step, in kW (mean over the step), summed over the site.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Trace {
    /// Load without vehicles.
    pub load_kw: Vec<f32>,
    /// PV that could have been produced.
    pub pv_kw: Vec<f32>,
    /// Battery power, positive when charging.
    pub battery_kw: Vec<f32>,
    /// Power that chargers take for vehicles.
    pub ev_kw: Vec<f32>,
    /// Power from the grid, negative when exporting.
    pub grid_kw: Vec<f32>,
    /// Mean state of charge of the batteries, 0 to 1.
    pub soc: Vec<f32>,
}

impl Outcome {
    /// The absolute figure called `name`.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name)?.value
    }

    /// The ratio called `name`.
    pub fn ratio(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name)?.ratio
    }
}
