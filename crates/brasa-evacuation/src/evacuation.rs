//! A pool of buildings with one set of rules: settings, environments, and bounds.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use brasa_env::{Autoreset, BaselineKind, episode_rng, field};
use serde::{Deserialize, Serialize};

use crate::batch::{EvacuationBatch, EvacuationSimulation};
use crate::bound::{SweepProblem, lower_bound_with_losses};
use crate::building::Building;
use crate::config::{Knowledge, RulesConfig};
use crate::observe::Columns;
use crate::optimum::{is_harmless, optimum};
use crate::world::World;
use crate::{EvacuationError, GeneratorConfig, Layout, Split};

/// Most buildings of a pool: each is made, and bounded, before anything is played.
pub(crate) const MAX_BUILDINGS: u64 = 10_000;

/// Buildings and the rules in them.
///
/// ```
/// use brasa_evacuation::EvacuationConfig;
///
/// let mut config = EvacuationConfig::default();
/// config.rules.responders = [2, 4];
/// config.validate()?;
/// config.rules.timeout_secs = 0.0;
/// assert!(config.validate().unwrap_err().to_string().starts_with("`timeout_secs` must be"));
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvacuationConfig {
    /// Where the buildings come from. Default the reference building `office`.
    #[serde(default, deserialize_with = "brasa_env::one_variant")]
    pub buildings: Buildings,
    /// The rules of the simulation, and knowledge and actions of responders.
    #[serde(default)]
    pub rules: RulesConfig,
}

impl EvacuationConfig {
    /// Checks the settings before buildings are constructed.
    ///
    /// # Errors
    /// [`EvacuationError::Field`].
    pub fn validate(&self) -> Result<(), EvacuationError> {
        if let Buildings::Generated(generated) = &self.buildings {
            generated.generator.validate()?;
            field::at_least_one("buildings.generated.count", generated.count as u64)?;
            field::at_most("buildings.generated.count", generated.count as u64, MAX_BUILDINGS)?;
        }
        self.rules.validate()
    }
}

/// Source of buildings.
///
/// ```
/// use brasa_evacuation::{Buildings, Evacuation, EvacuationConfig, Reference};
///
/// let config: EvacuationConfig = serde_json::from_str(r#"{ "buildings": { "reference": "daycare" } }"#)?;
/// assert_eq!(config.buildings, Buildings::Reference(Reference::Daycare));
/// assert_eq!(Evacuation::new(config)?.buildings().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Buildings {
    /// One of the three reference buildings.
    Reference(Reference),
    /// A floor plan from a file: ours in JSON, GeoJSON or IMDF, or WKT.
    File(PathBuf),
    /// Random buildings.
    Generated(GeneratedConfig),
}

impl Default for Buildings {
    fn default() -> Self {
        Self::Reference(Reference::Office)
    }
}

/// A pool of random buildings.
///
/// ```
/// use brasa_evacuation::{Buildings, Evacuation, EvacuationConfig, GeneratedConfig};
///
/// let generated = GeneratedConfig { count: 3, ..GeneratedConfig::default() };
/// let config = EvacuationConfig { buildings: Buildings::Generated(generated), ..EvacuationConfig::default() };
/// assert_eq!(Evacuation::new(config)?.buildings().len(), 3);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GeneratedConfig {
    /// Number of training buildings. Default 256. With few, a policy overfits to them.
    pub count: usize,
    /// Split for evaluation. Default held-out: the same families, not in training.
    pub evaluate: Split,
    /// Settings of the generator.
    pub generator: GeneratorConfig,
}

impl Default for GeneratedConfig {
    fn default() -> Self {
        Self { count: 256, evaluate: Split::HeldOut, generator: GeneratorConfig::default() }
    }
}

impl GeneratedConfig {
    pub(crate) fn layouts(&self, split: Split, count: usize) -> Result<Vec<Layout>, EvacuationError> {
        (0..count as u64).map(|index| Ok(self.generator.layout(split, index)?)).collect()
    }
}

/// A reference building.
///
/// ```
/// use brasa_evacuation::{NodeKind, Reference};
///
/// let rooms = [Reference::Office, Reference::Daycare, Reference::Warehouse]
///     .map(|reference| reference.layout().of_kind(NodeKind::Room).count());
/// assert_eq!(rooms, [6, 33, 15]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// Six rooms along one hall.
    Office,
    /// Three floors of nurseries.
    Daycare,
    /// Fifteen rooms between a grid of aisles.
    Warehouse,
}

impl Reference {
    /// The building.
    pub fn layout(self) -> Layout {
        match self {
            Self::Office => Layout::office(),
            Self::Daycare => Layout::daycare(),
            Self::Warehouse => Layout::warehouse(),
        }
    }
}

/// A prepared pool of buildings.
///
/// Its baselines are the heuristics of [`Rule::ALL`](crate::Rule::ALL) and a lower bound, which has no episode. The
/// bound is called `optimum` if fire blocks no path, success is the sweep alone, and a plan that reaches the bound is
/// known for every building; otherwise `bound`. A trace is a [`Trace`](crate::Trace).
///
/// ```
/// use brasa_env::{EnvBatch, Evaluation, Scenario, Who};
/// use brasa_evacuation::{Evacuation, EvacuationConfig};
///
/// let office = Evacuation::new(EvacuationConfig::default())?;
/// assert_eq!(office.batch(0..8).spec().n_envs, 8);
/// // Episodes of a heuristic, and the bound that no controller passes.
/// let outcomes = office.evaluate(Who::Baseline("greedy"), &Evaluation::new(2, 7))?;
/// assert!(outcomes.iter().all(|outcome| outcome.length > 0));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Evacuation {
    config: EvacuationConfig,
    pub(crate) rules: Arc<RulesConfig>,
    pub(crate) buildings: Arc<Vec<Building>>,
    /// For each building and team size, the smallest first, the ticks of the optimal sweep; computed at first use.
    optima: Arc<OnceLock<Option<Vec<Vec<u32>>>>>,
}

impl Evacuation {
    /// Checks the settings and prepares the buildings.
    ///
    /// # Errors
    /// [`EvacuationError`] if a setting, file or building cannot be used.
    pub fn new(config: EvacuationConfig) -> Result<Self, EvacuationError> {
        config.validate()?;
        let layouts = match &config.buildings {
            Buildings::Reference(reference) => vec![reference.layout()],
            Buildings::File(path) => vec![Layout::load(path)?],
            Buildings::Generated(generated) => generated.layouts(Split::Train, generated.count)?,
        };
        Self::with_layouts(config, layouts)
    }

    /// The same rules in other buildings, such as custom or unseen ones.
    ///
    /// # Errors
    /// [`EvacuationError`] if a setting or building cannot be used, or there is none.
    pub fn with_layouts(config: EvacuationConfig, layouts: Vec<Layout>) -> Result<Self, EvacuationError> {
        config.rules.validate()?;
        field::rule(!layouts.is_empty(), "buildings", "must hold at least one building", "none")?;
        let buildings: Result<Vec<_>, _> =
            layouts.into_iter().map(|layout| Building::new(layout, &config.rules)).collect();
        let (rules, buildings) = (Arc::new(config.rules.clone()), Arc::new(buildings?));
        Ok(Self { config, rules, buildings, optima: Arc::default() })
    }

    /// The settings.
    pub fn config(&self) -> &EvacuationConfig {
        &self.config
    }

    /// The buildings, in the order of their index in observations.
    pub fn buildings(&self) -> &[Building] {
        &self.buildings
    }

    /// The layout of an observation.
    pub fn columns(&self) -> Columns {
        Columns::new(self.buildings.iter().map(Building::n_nodes).max().unwrap_or(0), &self.rules)
    }

    /// The environments with the global indices `envs`; the index addresses the random numbers.
    pub fn batch(&self, envs: Range<usize>) -> EvacuationBatch {
        Autoreset::new(EvacuationSimulation::new(self.rules.clone(), self.buildings.clone(), envs))
    }

    /// The world of environment `env` at the start of its first episode.
    pub(crate) fn world(&self, env: usize, seed: u64) -> World {
        let mut world = World::new(self.rules.clone(), self.buildings.clone());
        world.begin(&mut episode_rng(seed, env as u64, 0));
        world
    }

    /// Whether the optimal sweep is possible: no fire that blocks paths, and no people to escort.
    fn sweeps_alone(&self) -> bool {
        let has_people = self.buildings.iter().any(|building| !building.layout().occupants.is_empty());
        is_harmless(&self.rules.hazards) && !(self.rules.goal.counts_people() && has_people)
    }

    /// Whether nothing in an episode is random: one building and team, no fire, no people and no lost messages.
    pub(crate) fn is_fixed(&self) -> bool {
        let [fewest, most] = self.rules.responders;
        let has_people = self.buildings.iter().any(|building| !building.layout().occupants.is_empty());
        let knowledge = &self.rules.knowledge;
        let is_heard = knowledge.mode == Knowledge::Full || knowledge.loss == 0.0;
        self.buildings.len() == 1 && fewest == most && !self.rules.hazards.enabled && !has_people && is_heard
    }

    /// The ticks of the optimal sweep for each building and team size, if known for all.
    fn optima(&self) -> Option<&[Vec<u32>]> {
        let [fewest, most] = self.rules.responders;
        let of_building = |building: &Building| (fewest..=most).map(|n| optimum(building, &self.rules, n)).collect();
        let find = || self.sweeps_alone().then(|| self.buildings.iter().map(of_building).collect()).flatten();
        self.optima.get_or_init(find).as_deref()
    }

    /// A proven lower bound on the ticks until the last room is swept, and so on those of any success; `world` is at
    /// the start of its episode. It is the bound of the building without fire or, with fire, of the rooms that the fire
    /// leaves. It assumes the whole team: if responders go down, high-risk rooms need fewer sweeps.
    pub(crate) fn bound_ticks(&self, mut world: World) -> u32 {
        let building = &self.buildings[world.state.building as usize];
        let n_crew = world.state.crew.len();
        if let Some(optima) = self.optima() {
            return optima[world.state.building as usize][n_crew - self.rules.responders[0]];
        }
        if !self.rules.hazards.enabled {
            return building.bound_ticks(n_crew) as u32;
        }
        let starts = building.layout().starts(n_crew);
        let problem = SweepProblem::in_ticks(building.layout(), &self.rules.timing, self.rules.sweeps, &starts);
        let problem = problem.expect("a building that is ready is valid");
        // The fire alone, which does not depend on responders.
        let mut lost_at = vec![u32::MAX; building.n_nodes()];
        let last = (self.rules.timeout_secs / self.rules.timing.tick_secs).ceil() as u32;
        for tick in 0..=last {
            for (node, at) in lost_at.iter_mut().enumerate() {
                if *at == u32::MAX && world.state.lost[node] {
                    *at = tick;
                }
            }
            world.burn_alone();
        }
        let losses = |tick: u32| (0..lost_at.len()).filter(|node| lost_at[*node] <= tick).collect();
        lower_bound_with_losses(&problem, losses).expect("the problem counts whole ticks")
    }

    /// The name and kind of the bound.
    pub(crate) fn unbeatable(&self) -> (&'static str, BaselineKind) {
        match self.optima() {
            Some(_) => ("optimum", BaselineKind::Optimum),
            None => ("bound", BaselineKind::Bound),
        }
    }
}
