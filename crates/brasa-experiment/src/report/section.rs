//! Sections that a scenario adds to its reports.

use std::any::Any;

use brasa_env::{EpisodeSeries, Scenario};
use serde_json::{Value, json};

use crate::policy::LoadedPolicy;
use crate::{ControllerOutcomes, ExperimentError};

/// A part of a report: a style, a script, and the data for the script.
///
/// The page has an empty `<section id="NAME">` and the data as `data.NAME`. The script fills the section with the data. It can
/// use the page's helpers: `plot`, `line`, `axes`, `timeFrom` and `color` for charts, `make` and `draw` for elements of HTML and SVG, `tools` for
/// buttons that save, and `uPlot`. It must not load other files.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_classic::Classic;
/// use brasa_experiment::{App, NoSettings, ScenarioEntry, Section};
///
/// # let dir = tempfile::tempdir()?;
/// # let run = trained(dir.path()).display().to_string();
/// let section = Section::new("poles").scripts(&["make(data.poles.length);"]).shows(&["rule-based"], 1);
/// let section = section.data(|context| Ok(serde_json::json!({ "length": context.played.len() })));
/// let make = |_: NoSettings| Ok::<_, std::convert::Infallible>(Classic::cart_pole());
/// let entry = ScenarioEntry::new("pole", make);
/// let app = App::new("room").with(registry()).scenario(entry.section(section));
/// app.run_from(["room", "report", &run])?;
/// let page = std::fs::read_to_string(format!("{run}/report.html"))?;
/// assert!(page.contains("make(data.poles.length);"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Section {
    pub(crate) name: &'static str,
    pub(crate) style: &'static str,
    /// Parts of one script, in order.
    pub(crate) scripts: &'static [&'static str],
    /// Baselines whose episodes are shown with those of the policy; empty for all.
    shows: &'static [&'static str],
    n_episodes: usize,
    pub(crate) data: MakeData,
}

impl std::fmt::Debug for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Section")
            .field("name", &self.name)
            .field("shows", &self.shows)
            .field("n_episodes", &self.n_episodes)
            .finish_non_exhaustive()
    }
}

type MakeData = Box<dyn Fn(&SectionContext<'_>) -> Result<Value, ExperimentError> + Send + Sync>;

/// The input for the data of a section.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_classic::Classic;
/// use brasa_experiment::{App, NoSettings, ScenarioEntry, Section, SectionContext};
///
/// # let dir = tempfile::tempdir()?;
/// # let run = trained(dir.path()).display().to_string();
/// fn data(context: &SectionContext<'_>) -> serde_json::Value {
///     let names: Vec<_> = context.played.iter().map(|row| row.name.as_str()).collect();
///     serde_json::json!({ "rows": names.join(" | "), "steps": context.policy.env_steps() })
/// }
///
/// let make = |_: NoSettings| Ok::<_, std::convert::Infallible>(Classic::cart_pole());
/// let entry = ScenarioEntry::new("pole", make);
/// let entry = entry.section(Section::new("poles").data(|context| Ok(data(context))));
/// App::new("room").with(registry()).scenario(entry).run_from(["room", "report", &run])?;
/// let page = std::fs::read_to_string(format!("{run}/report.html"))?;
/// assert!(page.contains("| trained\",\"steps\":256}"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SectionContext<'a> {
    /// The scenario of the evaluation.
    pub scenario: &'a dyn Scenario,
    /// The episodes of the baselines and the policy. Shown episodes have traces.
    pub played: &'a [ControllerOutcomes],
    /// The policy.
    pub policy: &'a LoadedPolicy,
}

impl std::fmt::Debug for SectionContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SectionContext")
            .field("played", &self.played)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl SectionContext<'_> {
    /// The scenario as type `S`, if it has this type.
    pub fn scenario_as<S: Scenario>(&self) -> Option<&S> {
        let any: &dyn Any = self.scenario;
        any.downcast_ref()
    }
}

impl Section {
    /// A section with the recorded steps of one episode of the policy and each baseline. Its data:
    /// `[{"name", "episodes": [{"names": [...], "values": [[...]]}]}]`, from [`EpisodeSeries`].
    pub fn new(name: &'static str) -> Self {
        Self { name, style: "", scripts: &[], shows: &[], n_episodes: 1, data: Box::new(|context| Ok(series(context))) }
    }

    /// Sets the style.
    pub fn style(self, style: &'static str) -> Self {
        Self { style, ..self }
    }

    /// Sets the script, as parts in order.
    pub fn scripts(self, scripts: &'static [&'static str]) -> Self {
        Self { scripts, ..self }
    }

    /// Records traces of `n_episodes` episodes for the policy and these baselines. An empty list means all baselines.
    pub fn shows(self, baselines: &'static [&'static str], n_episodes: usize) -> Self {
        Self { shows: baselines, n_episodes, ..self }
    }

    /// Sets a function for the data. If the data is null, the section is omitted.
    pub fn data(
        self,
        data: impl Fn(&SectionContext<'_>) -> Result<Value, ExperimentError> + Send + Sync + 'static,
    ) -> Self {
        Self { data: Box::new(data), ..self }
    }

    /// Number of episodes of `name` with a trace.
    pub(crate) fn n_traces(&self, name: &str) -> usize {
        let shown = self.shows.is_empty() || name == crate::comparison::TRAINED || self.shows.contains(&name);
        if shown { self.n_episodes } else { 0 }
    }

    /// The script with all parts in one scope of its own. It runs only if there is data.
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
