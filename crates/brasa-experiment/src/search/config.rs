//! The section `[search]` of an experiment.

use std::collections::BTreeMap;

use brasa_env::{Better, InvalidField, field, whole};
use brasa_train::{EVAL_LENGTH, EVAL_RETURN};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::space::{Range, Space};
use crate::{Experiment, ExperimentError, Source};

/// The section.
pub(crate) const SEARCH: &str = "search";

/// More trials are a mistake.
const MOST_TRIALS: u64 = 100_000;
/// More seeds are a mistake.
const MOST_SEEDS: u64 = 1_000;

/// Settings of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SearchConfig {
    /// Number of trials. Default 50. A search that is continued may have more.
    #[serde(deserialize_with = "whole::count")]
    pub trials: u64,
    /// Environment steps of each run of a trial. Default `train.total_env_steps`.
    #[serde(deserialize_with = "whole::maybe")]
    pub steps: Option<u64>,
    /// Training seeds of each trial, from 0 on. Default 1. The value of a trial is the mean over them.
    #[serde(deserialize_with = "whole::count")]
    pub seeds: u64,
    /// Seed of the values that are sampled. Default 0.
    #[serde(deserialize_with = "whole::count")]
    pub seed: u64,
    /// The metric of the evaluations during training. Default the return, `eval/mean_reward`. Its last value in a run counts.
    pub metric: String,
    /// Whether the metric is to `maximize` or to `minimize`. Default: the direction of the metric, if it has one.
    pub direction: Option<Direction>,
    /// How settings are chosen: `tpe`, the default, or `random`.
    pub sampler: Sampler,
    /// Which trials are stopped: `median`, the default, stops those that are worse than the median of the complete ones; `none` stops no trial.
    pub pruner: Pruner,
    /// Trials with random settings at the beginning. Default 10. As many must be complete before one is stopped.
    #[serde(deserialize_with = "whole::count")]
    pub startup_trials: u64,
    /// Evaluations during each run of a trial. Default 10. They replace `train.eval_interval`.
    #[serde(deserialize_with = "whole::count")]
    pub evaluations: u64,
    /// Complete trials that enter a final: the best of them, trained with `final_seeds` more seeds. The mean over all seeds selects the best one.
    /// Default 1: no final.
    #[serde(deserialize_with = "whole::count")]
    pub finalists: u64,
    /// Training seeds of the final, besides those of a trial. Default 3.
    #[serde(deserialize_with = "whole::count")]
    pub final_seeds: u64,
    /// Seeds that no trial has, with which the experiment and the best settings are trained and compared at the end. Default 5; 0 omits the comparison.
    #[serde(deserialize_with = "whole::count")]
    pub report_seeds: u64,
    /// The values of each setting, by its key in quotes such as `"learner.gamma"`.
    #[schemars(with = "BTreeMap<String, Range>")]
    pub space: Table,
}

/// The better direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    /// More is better.
    Maximize,
    /// Less is better.
    Minimize,
}

/// How the settings of a trial are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sampler {
    /// By tree-structured Parzen estimators of the trials before.
    #[default]
    Tpe,
    /// Without regard to other trials.
    Random,
}

/// Which trials are stopped before their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pruner {
    /// Those whose best value so far is worse than the median of the complete trials at the same time.
    #[default]
    Median,
    /// None.
    None,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self {
            trials: 50,
            steps: None,
            seeds: 1,
            seed: 0,
            metric: EVAL_RETURN.into(),
            direction: None,
            sampler: Sampler::Tpe,
            pruner: Pruner::Median,
            startup_trials: 10,
            evaluations: 10,
            finalists: 1,
            final_seeds: 3,
            report_seeds: 5,
            space: Table::new(),
        }
    }
}

/// A metric and its better direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metric {
    pub name: String,
    pub better: Better,
}

impl SearchConfig {
    /// The section of an experiment, which must exist, and its space.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] naming the first key that violates its rule.
    pub fn read(source: &Source) -> Result<(Self, Space), ExperimentError> {
        if !source.has(SEARCH) {
            let example = "[search.space]\n\"learner.learning_rate\" = { low = 1e-5, high = 1e-2, log = true }";
            return Err(ExperimentError::Input(format!(
                "a search needs the section [search.space], such as\n{example}"
            )));
        }
        let config: Self = source.section(SEARCH)?;
        config.check().map_err(ExperimentError::input)?;
        let space = Space::new(&config.space)?;
        Ok((config, space))
    }

    pub(crate) fn check(&self) -> Result<(), InvalidField> {
        let within = |name: &'static str, count: u64, least: u64, most: u64| {
            field::rule((least..=most).contains(&count), name, format!("must be between {least} and {most}"), count)
        };
        within("search.trials", self.trials, 1, MOST_TRIALS)?;
        within("search.seeds", self.seeds, 1, MOST_SEEDS)?;
        within("search.finalists", self.finalists, 1, MOST_TRIALS)?;
        within("search.final_seeds", self.final_seeds, 1, MOST_SEEDS)?;
        within("search.report_seeds", self.report_seeds, 0, MOST_SEEDS)?;
        within("search.startup_trials", self.startup_trials, 1, MOST_TRIALS)?;
        field::at_most("search.seed", self.seed, crate::train_config::MOST_SEED)?;
        field::rule(self.steps != Some(0), "search.steps", "must be at least 1", 0)
    }

    /// Environment steps of each run of a trial.
    pub fn steps(&self, experiment: &Experiment<'_>) -> u64 {
        self.steps.unwrap_or(experiment.train.total_env_steps)
    }

    /// Environment steps between evaluations of a run.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if there are fewer steps than evaluations.
    pub fn eval_interval(&self, experiment: &Experiment<'_>) -> Result<u64, ExperimentError> {
        let steps = self.steps(experiment);
        let rule = format!("must be between 1 and the {steps} steps of a run");
        let fits = (1..=steps).contains(&self.evaluations);
        field::rule(fits, "search.evaluations", rule, self.evaluations).map_err(ExperimentError::input)?;
        Ok(steps / self.evaluations)
    }

    /// The metric in the evaluations of `experiment`.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for a metric that they do not have, or that has no direction.
    pub fn metric(&self, experiment: &Experiment<'_>) -> Result<Metric, ExperimentError> {
        let figures = experiment.scenario.figures();
        let known: Vec<(String, Option<Better>)> =
            [(EVAL_RETURN.to_owned(), Some(Better::More)), (EVAL_LENGTH.to_owned(), None)]
                .into_iter()
                .chain(figures.iter().map(|figure| (format!("eval/{}", figure.name), figure.better)))
                .collect();
        let Some((name, better)) = known.iter().find(|(name, _)| *name == self.metric) else {
            let names = known.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let error = InvalidField::new("search.metric", format!("must be one of {names}"), &self.metric);
            return Err(ExperimentError::input(error));
        };
        let given = self.direction.map(|direction| match direction {
            Direction::Maximize => Better::More,
            Direction::Minimize => Better::Less,
        });
        let better = given.or(*better).ok_or_else(|| {
            ExperimentError::Input(format!(
                "`search.direction` must be \"maximize\" or \"minimize\" for `{name}`, got none"
            ))
        })?;
        Ok(Metric { name: name.clone(), better })
    }

    /// Training seeds of a trial.
    pub fn trial_seeds(&self) -> std::ops::Range<u64> {
        0..self.seeds
    }

    /// Training seeds of the trials of the final; those of a trial without one.
    pub fn all_seeds(&self) -> std::ops::Range<u64> {
        0..self.seeds + if self.finalists > 1 { self.final_seeds } else { 0 }
    }

    /// [`Self::unseen_seeds`] in words.
    pub fn unseen_in_words(&self) -> String {
        let seeds = self.unseen_seeds();
        match self.report_seeds {
            1 => format!("the seed {}", seeds.start),
            _ => format!("the seeds {} to {}", seeds.start, seeds.end - 1),
        }
    }

    /// Training seeds of the comparison at the end: no trial has them.
    pub fn unseen_seeds(&self) -> std::ops::Range<u64> {
        let first = self.all_seeds().end;
        first..first + self.report_seeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(SearchConfig, Space), ExperimentError> {
        let text = format!("[scenario.x]\n{text}");
        SearchConfig::read(&Source::parse(&text, "file", &[])?)
    }

    fn refusal(text: &str) -> String {
        read(text).expect_err(text).to_string()
    }

    #[test]
    fn settings_have_rules() {
        let space = "[search.space]\n\"a.b\" = { low = 1, high = 2 }\n";
        let (config, _) = read(&format!("[search]\ntrials = 1e2\n{space}")).expect("it is valid");
        assert_eq!((config.trials, config.trial_seeds(), config.unseen_seeds()), (100, 0..1, 1..6));
        assert!(refusal("").contains("needs the section [search.space]"));
        for (text, expected) in [
            ("trials = 0", "`search.trials` must be between 1 and 100000, got 0"),
            ("seeds = 0", "`search.seeds` must be between 1 and 1000, got 0"),
            ("report_seeds = 1001", "`search.report_seeds` must be between 0 and 1000, got 1001"),
            ("startup_trials = 0", "`search.startup_trials` must be between 1 and 100000, got 0"),
            ("steps = 0", "`search.steps` must be at least 1, got 0"),
            ("sampler = \"grid\"", "unknown variant `grid`, expected `tpe` or `random`"),
            ("pruner = 1", "pruner"),
            ("trails = 1", "did you mean `trials`?"),
            ("seed = -1", "seed"),
        ] {
            let message = refusal(&format!("[search]\n{text}\n{space}"));
            assert!(message.contains(expected), "{text}: {message}");
        }
        let message = refusal("[search.space]\n\"a.b\" = { low = 1, high = 2 }\n\"a.b\" = { low = 1, high = 3 }\n");
        assert!(message.contains("duplicate key") && message.contains("line 4"), "{message}");
    }
}
