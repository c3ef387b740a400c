//! A pool of buildings under one set of rules: its settings, its environments, and what is proven of them.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use brasa_env::{BaselineKind, episode_rng, field};
use serde::{Deserialize, Serialize};

use crate::batch::EvacuationBatch;
use crate::bound::{SweepProblem, lower_bound_with_losses};
use crate::building::Building;
use crate::config::RulesConfig;
use crate::observe::Columns;
use crate::optimum::{is_harmless, optimum};
use crate::world::World;
use crate::{EvacuationError, GeneratorConfig, Layout, Split};

/// Most buildings of a pool: each is made, and bounded, before anything is played.
pub(crate) const MAX_BUILDINGS: u64 = 10_000;

/// Buildings and the rules in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvacuationConfig {
    /// Where the buildings come from.
    #[serde(deserialize_with = "brasa_env::one_variant")]
    pub buildings: Buildings,
    /// What happens inside, and what responders know and may do.
    #[serde(default)]
    pub rules: RulesConfig,
}

impl EvacuationConfig {
    /// Checks what can be checked before buildings are made.
    ///
    /// # Errors
    /// [`EvacuationError::Field`].
    pub fn validate(&self) -> Result<(), EvacuationError> {
        if let Buildings::Generated(generated) = &self.buildings {
            generated.generator.validate()?;
            if generated.count == 0 {
                return Err(crate::timing::field_error("buildings.generated.count", "must be at least 1", 0));
            }
            field::at_most("buildings.generated.count", generated.count as u64, MAX_BUILDINGS)?;
        }
        self.rules.validate()
    }
}

/// Where buildings come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Buildings {
    /// One of the three reference buildings.
    Reference(Reference),
    /// A floor plan from a file: ours in JSON, GeoJSON or IMDF, or WKT.
    File(PathBuf),
    /// Random buildings.
    Generated(GeneratedConfig),
}

/// A pool of random buildings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GeneratedConfig {
    /// Buildings to learn from. Default 256. With few, a policy learns them by heart.
    pub count: usize,
    /// Buildings to evaluate in. Default held-out: of the same families, never seen in training.
    pub evaluate: Split,
    /// How they are drawn.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// A pool of buildings that is ready to play in.
///
/// Its baselines are the rules of [`Rule::ALL`](crate::Rule::ALL) and what no team can beat, which plays no episode: `bound`, or `optimum` where
/// no fire stops anybody, the sweep alone counts, and a plan is known for every building that takes no longer than what is
/// proven. A trace is a [`Trace`](crate::Trace).
#[derive(Debug, Clone)]
pub struct Evacuation {
    config: EvacuationConfig,
    pub(crate) rules: Arc<RulesConfig>,
    pub(crate) buildings: Arc<Vec<Building>>,
    /// For each building and team size, the smallest first, the ticks of the best sweep; worked out when first asked for.
    optima: Arc<OnceLock<Option<Vec<Vec<u32>>>>>,
}

impl Evacuation {
    /// Checks the settings and prepares the buildings.
    ///
    /// # Errors
    /// [`EvacuationError`] where a setting, file or building cannot be used.
    pub fn new(config: EvacuationConfig) -> Result<Self, EvacuationError> {
        config.validate()?;
        let layouts = match &config.buildings {
            Buildings::Reference(reference) => vec![reference.layout()],
            Buildings::File(path) => vec![Layout::load(path)?],
            Buildings::Generated(generated) => generated.layouts(Split::Train, generated.count)?,
        };
        Self::with_layouts(config, layouts)
    }

    /// The same rules in other buildings: of the user's own making, or unseen in training.
    ///
    /// # Errors
    /// [`EvacuationError`] where a setting or building cannot be used, or there is none.
    pub fn with_layouts(config: EvacuationConfig, layouts: Vec<Layout>) -> Result<Self, EvacuationError> {
        config.rules.validate()?;
        if layouts.is_empty() {
            return Err(crate::timing::field_error("buildings", "must hold at least one building", "none"));
        }
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

    /// Which columns of an observation are what.
    pub fn columns(&self) -> Columns {
        Columns::new(self.buildings.iter().map(Building::n_nodes).max().unwrap_or(0), &self.rules)
    }

    /// The environments with the global indices `envs`; the index, not the place, addresses random numbers.
    pub fn batch(&self, envs: Range<usize>) -> EvacuationBatch {
        EvacuationBatch::new(self.rules.clone(), self.buildings.clone(), envs)
    }

    /// The world of environment `env` at the beginning of its first episode.
    pub(crate) fn world(&self, env: usize, seed: u64) -> World {
        let mut world = World::new(self.rules.clone(), self.buildings.clone());
        world.begin(&mut episode_rng(seed, env as u64, 0));
        world
    }

    /// Whether nothing keeps a team from the best sweep: no fire that stops it, and nobody to bring out.
    fn sweeps_alone(&self) -> bool {
        let has_people = self.buildings.iter().any(|building| !building.layout().occupants.is_empty());
        is_harmless(&self.rules.hazards) && !(self.rules.goal.counts_people() && has_people)
    }

    /// The ticks of the best sweep for each building and team size, if they are known for all.
    fn optima(&self) -> Option<&[Vec<u32>]> {
        let [fewest, most] = self.rules.responders;
        let of_building = |building: &Building| (fewest..=most).map(|n| optimum(building, &self.rules, n)).collect();
        let find = || self.sweeps_alone().then(|| self.buildings.iter().map(of_building).collect()).flatten();
        self.optima.get_or_init(find).as_deref()
    }

    /// The ticks that no team can beat in this episode, whose world stands at its beginning: a proven lower bound on those
    /// until the last room is swept, hence on those of any success. It is that of the building without fire, or, where it burns,
    /// for the rooms that its fire leaves. It counts on the whole team: where responders go down, rooms of high risk need
    /// fewer sweeps.
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
        // The fire alone, which burns as it will whatever responders do.
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

    /// The name and kind of the row that no team can beat.
    pub(crate) fn unbeatable(&self) -> (&'static str, BaselineKind) {
        match self.optima() {
            Some(_) => ("optimum", BaselineKind::Optimum),
            None => ("bound", BaselineKind::Bound),
        }
    }
}
