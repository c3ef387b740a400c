//! Buildings as a scenario: figures, baselines and evaluation.

use std::ops::Range;
use std::path::PathBuf;

use brasa_env::{
    Baseline, BaselineKind, Curve, Effort, EnvBatch, EnvError, EpisodeData, Evaluation, Extensions, Figure, GraphEdges,
    GraphSpec, GraphWorld, Outcome, Reference as RelativeTo, Scenario, Who, field, find_baseline, fingerprint_bytes,
};

use crate::controllers::Rule;
use crate::episode;
use crate::evacuation::{Buildings, Evacuation, MAX_BUILDINGS};
use crate::observe;
use crate::{Building, Knowledge, Split};

/// Reference of the ratios of times.
const REFERENCE: &str = "the lower bound";

impl Scenario for Evacuation {
    fn envs(&self, _: brasa_env::Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        Ok(Box::new(self.batch(envs)))
    }

    fn files(&self) -> Vec<PathBuf> {
        match &self.config().buildings {
            Buildings::File(path) => vec![path.clone()],
            Buildings::Reference(_) | Buildings::Generated(_) => Vec::new(),
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let bound = || RelativeTo::OfEpisode(REFERENCE.to_owned());
        vec![
            Figure::new("success", "episodes cleared").more_is_better(),
            // Who clears the easy episodes only has short times: they say nothing about who is better.
            Figure::new("all_clear_secs", "all clear, where cleared [s]").relative_to(bound()),
            Figure::new("sweep_secs", "last room swept, where swept [s]").relative_to(bound()),
            Figure::new("par2_secs", "all clear, PAR2 [s]").less_is_better().relative_to(bound()),
            Figure::new("rescued", "rescued of all people").more_is_better(),
            Figure::new("lost", "dead or left inside").less_is_better(),
            Figure::new("duplicate_sweeps", "needless searches").less_is_better(),
            Figure::new("idle_share", "share of time idle"),
            Figure::new("decisions", "decisions"),
        ]
    }

    fn baselines(&self) -> Vec<Baseline> {
        let rule = |rule: Rule| match rule {
            Rule::Random => Baseline::new(rule.name(), BaselineKind::Idle).random(),
            _ => Baseline::new(rule.name(), BaselineKind::Heuristic),
        };
        let (name, kind) = self.unbeatable();
        // Only there a responder may not have heard what the others do.
        let is_local = self.config().rules.knowledge.mode == Knowledge::Local;
        let rules = Rule::ALL.into_iter().filter(|rule| is_local || *rule != Rule::Decentralized);
        rules.map(rule).chain([Baseline::new(name, kind)]).collect()
    }

    /// The buildings as graphs, which observations refer to by their index.
    fn extensions(&self) -> Extensions {
        let columns = self.columns();
        let spec = GraphSpec {
            nodes: columns.nodes,
            node_features: columns.node,
            privileged_features: columns.privileged,
            agent_features: columns.agent,
        };
        let graph = |building: &Building| {
            GraphEdges::new(building.n_nodes(), &observe::edges(building.layout(), &self.rules.timing))
        };
        Extensions::default().with(GraphWorld { spec, graphs: self.buildings.iter().map(graph).collect() })
    }

    /// Where buildings are drawn at random, the pool of the split to evaluate in: as many as episodes, and of training no more
    /// than training has.
    fn for_evaluation(&self, n_episodes: u64) -> Result<Option<Box<dyn Scenario>>, EnvError> {
        let Buildings::Generated(generated) = &self.config().buildings else { return Ok(None) };
        field::at_most("episodes", n_episodes, MAX_BUILDINGS)?;
        let most = if generated.evaluate == Split::Train { generated.count } else { usize::MAX };
        let layouts = generated.layouts(generated.evaluate, (n_episodes as usize).min(most))?;
        Ok(Some(Box::new(Self::with_layouts(self.config().clone(), layouts)?)))
    }

    fn n_episodes(&self, effort: Effort) -> u64 {
        match effort {
            Effort::Look => 20,
            Effort::Compare => 100,
        }
    }

    /// One building, team and rule without randomness is one episode.
    fn n_distinct_episodes(&self) -> Option<u64> {
        self.is_fixed().then_some(1)
    }

    /// The buildings.
    fn data(&self, _: brasa_env::Split) -> EpisodeData {
        EpisodeData::fixed(self.buildings.iter().map(|building| {
            let text = serde_json::to_string(building.layout()).expect("a layout has names and numbers alone");
            fingerprint_bytes(&text)
        }))
    }

    fn about_episodes(&self, n_episodes: u64) -> String {
        let place = match &self.config().buildings {
            Buildings::Reference(_) | Buildings::File(_) => " in the building of training",
            Buildings::Generated(generated) => match generated.evaluate {
                Split::Train => " in buildings of training",
                Split::HeldOut => " in unseen buildings",
                Split::HeldOutFamily => " in unseen buildings of another family",
                Split::Larger => " in unseen buildings, two to four times as large",
            },
        };
        let limit = 2.0 * self.rules.timeout_secs;
        let episodes =
            if n_episodes == 1 { "One episode".to_owned() } else { format!("Means over {n_episodes} episodes") };
        format!(
            "{episodes}{place}, the same for every controller. PAR2 compares times where not everybody \
             clears every episode: one that is not cleared counts twice the time limit, {limit} s."
        )
    }

    /// The share of people that are rescued: while exploring, of all people of the latest episodes.
    fn curves(&self) -> Vec<Curve> {
        vec![Curve {
            label: "rescued".to_owned(),
            metric: "rollout/rescued_people".to_owned(),
            divided_by: Some("rollout/people".to_owned()),
            evaluated: Some("eval/rescued".to_owned()),
            figure: Some("rescued".to_owned()),
        }]
    }

    /// Runs the first episode of each environment; building, team, people and fire are the same for all controllers.
    ///
    /// A controller makes one decision per running episode: the view has one row for each of these, in the order
    /// of environments, and only its slabs `obs` and `mask` are written.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an unknown baseline and where a controller chooses an option that its mask forbids;
    /// if a controller fails.
    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        match who {
            Who::Controller(controller) => episode::follow(self, controller, evaluation),
            Who::Baseline(name) => {
                find_baseline(&self.baselines(), name)?;
                match Rule::ALL.into_iter().find(|rule| rule.name() == name) {
                    Some(rule) => episode::obey(self, rule, evaluation),
                    None => Ok(episode::bounds(self, evaluation)),
                }
            }
        }
    }
}
