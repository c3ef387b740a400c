//! Sections that a scenario adds to its reports.

use std::any::Any;

use brasa_env::{EpisodeSeries, Scenario};
use serde_json::{Value, json};

use crate::policy::LoadedPolicy;
use crate::{ExperimentError, Played};

/// A part of a report: a style, a script, and the data that the script draws.
///
/// The page has an empty `<section id="NAME">` at its place and the data as `data.NAME`; the script fills the one with the other
/// and has the page's helpers `plot`, `line`, `axes`, `color` and `uPlot`. Nothing is loaded from elsewhere.
pub struct Section {
    pub(crate) name: &'static str,
    pub(crate) style: &'static str,
    /// Parts of one script, in the order in which they are read.
    pub(crate) scripts: &'static [&'static str],
    /// Baselines whose episodes are shown beside those of the policy; empty for all.
    shows: &'static [&'static str],
    n_episodes: usize,
    pub(crate) data: MakeData,
}

type MakeData = Box<dyn Fn(&SectionContext<'_>) -> Result<Value, ExperimentError> + Send + Sync>;

/// What a section is drawn from.
pub struct SectionContext<'a> {
    /// The scenario that was evaluated in.
    pub scenario: &'a dyn Scenario,
    /// Everybody's episodes; those to be shown have traces.
    pub played: &'a [Played],
    /// The policy.
    pub policy: &'a LoadedPolicy,
}

impl SectionContext<'_> {
    /// The scenario in its own type, if it is an `S`.
    pub fn scenario_as<S: Scenario>(&self) -> Option<&S> {
        let any: &dyn Any = self.scenario;
        any.downcast_ref()
    }
}

impl Section {
    /// A section that draws the recorded steps of one episode of everybody:
    /// `[{"name", "episodes": [{"names": [...], "values": [[...]]}]}]`, as [`EpisodeSeries`] has them.
    pub fn new(name: &'static str) -> Self {
        Self { name, style: "", scripts: &[], shows: &[], n_episodes: 1, data: Box::new(|context| Ok(series(context))) }
    }

    /// The same with a style.
    pub fn style(self, style: &'static str) -> Self {
        Self { style, ..self }
    }

    /// The same with a script, in parts that are read in their order.
    pub fn scripts(self, scripts: &'static [&'static str]) -> Self {
        Self { scripts, ..self }
    }

    /// The same where traces are of `n_episodes`, of the policy and of these baselines; of all where none is named.
    pub fn shows(self, baselines: &'static [&'static str], n_episodes: usize) -> Self {
        Self { shows: baselines, n_episodes, ..self }
    }

    /// The same with data of one's own; null leaves the section out.
    pub fn data(
        self,
        data: impl Fn(&SectionContext<'_>) -> Result<Value, ExperimentError> + Send + Sync + 'static,
    ) -> Self {
        Self { data: Box::new(data), ..self }
    }

    /// Episodes of `name` that leave a trace.
    pub(crate) fn n_traces(&self, name: &str) -> usize {
        let shown = self.shows.is_empty() || name == crate::comparison::TRAINED || self.shows.contains(&name);
        if shown { self.n_episodes } else { 0 }
    }

    /// One scope for all parts, closed to other scripts of the page; it runs where there is something to draw.
    pub(crate) fn script(&self) -> String {
        format!("if (data[{:?}]) (() => {{\n{}}})();\n", self.name, self.scripts.concat())
    }
}

fn series(context: &SectionContext<'_>) -> Value {
    let rows = context.played.iter().filter_map(|row| {
        let traces = row.outcomes.iter().filter_map(|outcome| outcome.trace.as_ref()?.downcast_ref::<EpisodeSeries>());
        let episodes: Vec<Value> = traces.map(|series| json!(series)).collect();
        (!episodes.is_empty()).then(|| json!({ "name": row.name, "episodes": episodes }))
    });
    rows.collect()
}
