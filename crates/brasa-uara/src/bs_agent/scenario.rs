//! The historical networks as a scenario.

use std::ops::Range;

use brasa_env::{
    Baseline, BaselineKind, BatchSlabs, EnvBatch, EnvError, EpisodeData, Evaluation, Figure, Outcome, Reference,
    Scenario, Split, Who, evaluate_by_playing, find_baseline, fingerprint,
};

use super::baselines::{Rule, bound};
use super::batch::BsAgentSimulation;
use super::config::BsAgentConfig;
use crate::config::Redraw;
use crate::error::UaraError;

/// The name of the upper bound.
const BOUND: &str = "bound";

/// Networks in which stations choose users. There are no published controllers for them: the baselines are rules of this crate.
///
/// ```
/// use brasa_env::{Evaluation, Scenario, Who};
/// use brasa_uara::{BsAgent, BsAgentConfig};
///
/// let config = BsAgentConfig { users: 20, small_cells: 3, episode_steps: 5, ..BsAgentConfig::default() };
/// let scenario = BsAgent::new(config)?;
/// let baseline = &scenario.baselines()[0].name;
/// let outcomes = scenario.evaluate(Who::Baseline(baseline), &Evaluation::new(2, 7))?;
/// assert!(outcomes.iter().all(|outcome| outcome.length == 5));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BsAgent {
    config: BsAgentConfig,
}

impl BsAgent {
    /// Checks the config.
    ///
    /// # Errors
    /// [`UaraError::Field`] for the first invalid field.
    pub fn new(config: BsAgentConfig) -> Result<Self, UaraError> {
        config.validate()?;
        Ok(Self { config })
    }

    /// The settings.
    pub fn config(&self) -> &BsAgentConfig {
        &self.config
    }
}

impl Scenario for BsAgent {
    fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        Ok(Box::new(BsAgentSimulation::batch(self.config.clone(), envs)?))
    }

    /// Figures of the batch; an episode succeeds at its last step if at all.
    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::new("connected_share", "stations that connect their user").more_is_better(),
            Figure::new("connected_users", "connected users").more_is_better(),
            Figure::new("sum_rate_mbps", "sum of rates [Mb/s]")
                .more_is_better()
                .relative_to(Reference::Baseline(Rule::Greedy.name().to_owned())),
            Figure::new("mean_layers", "layers of video per station").more_is_better(),
            Figure::new("success", "success").more_is_better(),
        ]
    }

    fn baselines(&self) -> Vec<Baseline> {
        let rule = |rule: Rule| match rule {
            Rule::Random => Baseline::new(rule.name(), BaselineKind::Idle).random(),
            Rule::Strongest | Rule::Greedy => Baseline::new(rule.name(), BaselineKind::Heuristic),
        };
        Rule::ALL.into_iter().map(rule).chain([Baseline::new(BOUND, BaselineKind::Bound)]).collect()
    }

    /// One network is one episode: nothing else is random.
    fn n_distinct_episodes(&self) -> Option<u64> {
        (self.config.redraw == Redraw::Never).then_some(1)
    }

    /// The network, where there is one for all episodes.
    fn data(&self, _: Split) -> EpisodeData {
        match self.config.redraw {
            Redraw::Episode => EpisodeData::Sampled,
            // How many networks training has depends on its number of environments.
            Redraw::Environment => EpisodeData::Unknown,
            Redraw::Never => match BsAgentSimulation::batch(self.config.clone(), 0..1) {
                Ok(batch) => {
                    let pairs = (0..self.config.n_stations())
                        .flat_map(|station| (0..self.config.users).map(move |user| (station, user)));
                    EpisodeData::fixed([fingerprint(pairs.map(|(station, user)| batch.received_w(0, station, user)))])
                }
                Err(_) => EpisodeData::Unknown,
            },
        }
    }

    /// Runs the first episode of each environment; networks are the same for all controllers.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an unknown baseline and for actions that are no users; if a controller fails.
    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        let Who::Baseline(name) = who else { return evaluate_by_playing(self, who, evaluation) };
        find_baseline(&self.baselines(), name)?;
        let envs = evaluation.episodes.start as usize..evaluation.episodes.end as usize;
        let mut batch = BsAgentSimulation::batch(self.config.clone(), envs)?;
        batch.reset(evaluation.seed, &mut BatchSlabs::new(batch.spec()))?;
        match Rule::ALL.into_iter().find(|rule| rule.name() == name) {
            Some(rule) => {
                let mut controller = rule.controller(&batch, evaluation.episodes.start, evaluation.seed);
                evaluate_by_playing(self, Who::Controller(&mut *controller), evaluation)
            }
            None => Ok((0..batch.n_envs()).map(|env| bound(&batch, env)).collect()),
        }
    }

    fn about_episodes(&self, n_episodes: u64) -> String {
        let place = self.config.redraw.place("network");
        match n_episodes {
            1 => format!("One episode on {place}, the same for every controller."),
            n => format!("Means over {n} episodes on {place}, the same for every controller."),
        }
    }
}
