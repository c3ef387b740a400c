//! Complete episodes of networks in one batch, with a heuristic or a controller.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{
    BatchSlabs, Better, Controller, EnvError, EnvRng, Figure, FigureRule, Measured, Outcome, Playing, Reference,
    named_rng,
};
use ndarray::{Array2, ArrayViewMut2};

use crate::baselines::Heuristic;
use crate::batch::UaraBatch;
use crate::radio::Link;
use crate::trace::Trace;
use crate::uara::Uara;

/// The source of decisions.
pub(crate) enum Decider<'a> {
    /// A heuristic, which knows every link of the network.
    Rule(Heuristic),
    /// A controller, which gets the observations of users.
    Controller(&'a mut dyn Controller),
}

/// Runs the first episode of the environments `envs` with `seed` and records traces of the first `n_traces`.
pub(crate) fn play(
    scenario: &Uara,
    mut decider: Decider<'_>,
    envs: Range<usize>,
    seed: u64,
    n_traces: usize,
) -> Result<Vec<Outcome>, EnvError> {
    let n_users = scenario.radio().n_users;
    let mut batch = scenario.batch(envs.clone());
    let mut playing = Playing::start(&mut batch, seed)?;
    let mut rules: Vec<RuleMemory> = envs.clone().map(|env| RuleMemory::new(seed, env)).collect();
    let mut running: Vec<Running> = (0..envs.len()).map(|env| Running::new(&batch, env, env < n_traces)).collect();
    while running.iter().any(|episode| !episode.ended) {
        match &mut decider {
            Decider::Controller(controller) => playing.decide(&mut **controller)?,
            Decider::Rule(rule) => {
                for (env, memory) in rules.iter_mut().enumerate().filter(|(env, _)| !running[*env].ended) {
                    let links = memory.decide(scenario, *rule, &batch, env);
                    for (user, link) in links.into_iter().enumerate() {
                        let option = batch.option(env, user, link).expect("rules choose what snapshots allow");
                        playing.actions[[env * n_users + user, 0]] = option as f32;
                    }
                }
                // Environments whose episode is over are ignored, but need a legal action.
                for env in (0..envs.len()).filter(|env| running[*env].ended) {
                    any_action(scenario, &playing.slabs, env, playing.actions.view_mut());
                }
            }
        }
        // Traces record links before time advances.
        for (env, episode) in running.iter_mut().enumerate().filter(|(_, episode)| !episode.ended) {
            episode.before(&batch, env, &playing.actions);
        }
        playing.advance(&mut batch)?;
        for (env, episode) in running.iter_mut().enumerate().filter(|(_, episode)| !episode.ended) {
            episode.after(&playing.slabs, env, n_users);
        }
    }
    Ok(running.into_iter().map(Running::finish).collect())
}

/// Writes a legal action for every user of `env`.
fn any_action(scenario: &Uara, slabs: &BatchSlabs, env: usize, mut actions: ArrayViewMut2<f32>) {
    let radio = scenario.radio();
    for row in env * radio.n_users..(env + 1) * radio.n_users {
        let station = slabs.mask.row(row).iter().position(|flag| *flag > 0.0).unwrap_or(0);
        actions[[row, 0]] = (station * radio.options_per_station()) as f32;
    }
}

/// State of a heuristic between steps.
struct RuleMemory {
    rng: EnvRng,
    /// Its decision, if its inputs do not change.
    kept: Option<Vec<Link>>,
}

impl RuleMemory {
    fn new(seed: u64, env: usize) -> Self {
        Self { rng: named_rng(seed, "controller", env as u64), kept: None }
    }

    fn decide(&mut self, scenario: &Uara, rule: Heuristic, batch: &UaraBatch, env: usize) -> Vec<Link> {
        if let Some(links) = &self.kept {
            return links.clone();
        }
        let links = rule.choose(&batch.snapshot(env), scenario.objective(), &mut self.rng);
        if !rule.draws() && !scenario.config().dynamics.changes() {
            self.kept = Some(links.clone());
        }
        links
    }
}

/// A running episode with its sums so far.
struct Running {
    steps: u32,
    /// Sum of rewards, averaged over users.
    episode_return: f64,
    /// Sums over steps of the batch's figures [`SUMS`].
    sums: [f64; SUMS.len()],
    /// Fraction of satisfied users at the last step.
    final_qos_rate: f64,
    trace: Option<Trace>,
    ended: bool,
}

/// The figures of an episode.
const FIGURES: [FigureRule<Running>; 8] = [
    ("qos_rate", "satisfied users", Some(Better::More), |episode| episode.mean("qos_rate")),
    ("final_qos_rate", "satisfied at the end", Some(Better::More), |episode| episode.final_qos_rate),
    ("success", "episodes that end with all satisfied", Some(Better::More), |episode| {
        f64::from(u8::from(episode.final_qos_rate == 1.0))
    }),
    ("sum_rate_mbps", "sum of rates [Mb/s]", Some(Better::More), |episode| episode.mean("sum_rate_mbps")),
    ("jain", "Jain index of rates", Some(Better::More), |episode| episode.mean("jain")),
    ("handovers", "handovers per step", None, |episode| episode.mean("handovers")),
    ("busiest_station_users", "users of busiest station", None, |episode| episode.mean("busiest_station_users")),
    ("steps", "steps", None, |episode| f64::from(episode.steps)),
];

/// The figures of an episode; the sum of rates is relative to that of `reference`.
pub(crate) fn figures(reference: &str) -> Vec<Figure> {
    let figure = |(name, label, better, _): &FigureRule<Running>| {
        let figure = Figure { better: *better, ..Figure::new(*name, *label) };
        match *name {
            "sum_rate_mbps" => figure.relative_to(Reference::Baseline(reference.to_owned())),
            _ => figure,
        }
    };
    FIGURES.iter().map(figure).collect()
}

/// Columns of the batch's figures that are averaged over steps.
const SUMS: [&str; 5] = ["qos_rate", "sum_rate_mbps", "jain", "handovers", "busiest_station_users"];

impl Running {
    fn new(batch: &UaraBatch, env: usize, traced: bool) -> Self {
        let trace = traced.then(|| Trace::new(batch, env));
        Self { steps: 0, episode_return: 0.0, sums: [0.0; SUMS.len()], final_qos_rate: 0.0, trace, ended: false }
    }

    fn before(&mut self, batch: &UaraBatch, env: usize, actions: &Array2<f32>) {
        if let Some(trace) = &mut self.trace {
            let snapshot = batch.snapshot(env);
            let n_users = snapshot.radio.n_users;
            let links: Option<Vec<Link>> =
                (0..n_users).map(|user| batch.link(env, user, actions[[env * n_users + user, 0]])).collect();
            // The batch rejects invalid links.
            links.into_iter().for_each(|links| trace.record(&snapshot, batch.layout(env), links));
        }
    }

    fn after(&mut self, slabs: &BatchSlabs, env: usize, n_users: usize) {
        let rows = env * n_users..(env + 1) * n_users;
        let rewards = rows.clone().map(|row| f64::from(slabs.reward[row]));
        self.steps += 1;
        self.episode_return += rewards.sum::<f64>() / n_users as f64;
        // The first columns, in the same order.
        self.sums.iter_mut().zip(slabs.info.row(env)).for_each(|(sum, figure)| *sum += figure);
        self.ended = slabs.episode_end(rows.start);
        if self.ended {
            self.final_qos_rate = slabs.info[[env, 0]];
        }
    }

    /// The mean over steps of a figure of the batch.
    fn mean(&self, name: &str) -> f64 {
        let place = SUMS.iter().position(|sum| *sum == name).expect("it is one of them");
        self.sums[place] / f64::from(self.steps)
    }

    fn finish(self) -> Outcome {
        Outcome {
            episode_return: Some(self.episode_return),
            length: self.steps.into(),
            figures: FIGURES.iter().map(|(.., of)| Measured::new(of(&self))).collect(),
            details: Vec::new(),
            trace: self.trace.map(|trace| -> brasa_env::Trace { Arc::new(trace) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::INFO;

    #[test]
    fn the_first_columns_are_averaged() {
        assert_eq!(INFO[..SUMS.len()], SUMS);
    }
}
