//! User association beside its rules: the same layouts, walks and fading for every controller.

use std::cmp::Ordering;

use brasa::core::{Obs, ObsForm, ObsParts};
use brasa::env::{BatchSlabs, EnvBatch, named_rng};
use brasa::nn::PairSpec;
use brasa::uara::yardsticks::{BestResponseConfig, best_response, greedy, upper_bound};
use brasa::uara::{Columns, Control, Played, Redraw, Uara, Yardstick, exploration_floor};
use ndarray::ArrayViewMut2;
use serde_json::{Map, Value, json};

use crate::algorithm::Exploration;
use crate::comparison::{Comparison, Figure, Row, TRAINED, number};
use crate::error::CliError;
use crate::eval::Trained;
use crate::network_map;
use crate::scenario::Yardsticks;

/// Episodes that are compared unless told otherwise: of networks that are drawn anew, and of one that stays.
const EPISODES: [u64; 2] = [50, 10];
/// Networks on which bounds, equilibria and the floor are worked out.
const STUDIED: usize = 20;
/// Steps per network from which the floor of exploration is estimated.
const FLOOR_DRAWS: usize = 2000;
/// Rules whose episodes a report shows beside those of the policy.
const SHOWN: [Yardstick; 2] = [Yardstick::StrongestRandom, Yardstick::Greedy];

/// How observations and options of a network consist of candidates and channels.
pub fn pairs(scenario: &Uara) -> Option<PairSpec> {
    let (config, radio) = (scenario.config(), scenario.radio());
    let [context, first_features, second_features] = Columns::new(config).blocks();
    Some(PairSpec {
        context,
        n_first: config.n_candidates(),
        first_features,
        n_second: radio.n_channels,
        second_features,
        levels: radio.power_levels.len(),
    })
}

impl Yardsticks for Uara {
    fn compare(&self, trained: Option<&Trained<'_>>, seed: u64, episodes: Option<u64>) -> Result<Comparison, CliError> {
        let stays = stays(self);
        let envs = 0..episodes.unwrap_or(EPISODES[usize::from(stays)]) as usize;
        let n_traces = |shown: bool| if shown && trained.is_some() { network_map::EPISODES } else { 0 };
        let mut rows = Vec::new();
        for rule in Yardstick::ALL {
            let n_traces = n_traces(SHOWN.contains(&rule));
            rows.push((rule.name(), self.evaluate(Control::Rule(rule), envs.clone(), seed, n_traces)?));
        }
        let mut pictures = Map::new();
        if let Some(trained) = trained {
            rows.push((TRAINED, play(self, trained, envs.len(), seed, n_traces(true))?));
            pictures.insert("network".to_owned(), network_map::data(self, &rows));
        }
        let study = Study::new(
            self,
            seed,
            if stays { 1 } else { envs.len().min(STUDIED) },
            trained.and_then(|trained| trained.exploration),
        )?;
        pictures.insert("levels".to_owned(), study.levels(&rows));
        let note = format!(
            "Means over {} episodes{}, the same for every controller. Beside rates: their ratio to greedy. {}",
            envs.len(),
            if stays { " on one layout" } else { " on unseen layouts" },
            study.text(),
        );
        let reference = rows.iter().find(|(name, _)| *name == Yardstick::Greedy.name());
        let greedy_rate = reference.map_or(f64::NAN, |(_, played)| mean(played, &|p| p.sum_rate_mbps));
        let rows = rows.iter().map(|(name, played)| row(name, played, greedy_rate)).collect();
        Ok(Comparison { rows, note, pictures })
    }

    fn score(&self, trained: &Trained<'_>, seed: u64) -> Result<Vec<(&'static str, f64)>, CliError> {
        let played = play(self, trained, if stays(self) { 1 } else { STUDIED }, seed, 0)?;
        Ok(vec![
            ("eval/qos_rate", mean(&played, &|p| p.qos_rate)),
            ("eval/final_qos_rate", mean(&played, &|p| p.final_qos_rate)),
            ("eval/sum_rate_mbps", mean(&played, &|p| p.sum_rate_mbps)),
            ("eval/ep_len_mean", mean(&played, &|p| f64::from(p.steps))),
        ])
    }
}

/// Whether all episodes are played on one network, which never changes.
fn stays(scenario: &Uara) -> bool {
    let config = scenario.config();
    config.layout.redraw == Redraw::Never && !config.dynamics.changes() && !config.dynamics.fading
}

/// Episodes of the policy.
fn play(
    scenario: &Uara,
    trained: &Trained<'_>,
    n_envs: usize,
    seed: u64,
    n_traces: usize,
) -> Result<Vec<Played>, CliError> {
    let batch = scenario.batch(0..n_envs);
    let mut act = |slabs: &BatchSlabs, mut actions: ArrayViewMut2<f32>| {
        actions.assign(&trained.decide(Obs::assemble(ObsParts::upload(
            brasa::env::EnvBatch::spec(&batch),
            slabs,
            trained.device,
        ))));
    };
    Ok(scenario.evaluate(Control::Policy(&mut act), 0..n_envs, seed, n_traces)?)
}

fn mean(played: &[Played], f: &dyn Fn(&Played) -> f64) -> f64 {
    played.iter().map(f).sum::<f64>() / played.len() as f64
}

/// The means of many episodes.
fn row(name: &str, played: &[Played], greedy_rate: f64) -> Row {
    let mean = |f: &dyn Fn(&Played) -> f64| mean(played, f);
    let figure = |name: &'static str, label: &str, value: f64, ratio: Option<f64>, better: Option<Ordering>| Figure {
        name,
        label: label.to_owned(),
        value: Some(value),
        ratio,
        better,
    };
    let more = Some(Ordering::Greater);
    let rate = mean(&|p| p.sum_rate_mbps);
    let figures = vec![
        figure("qos_rate", "satisfied users", mean(&|p| p.qos_rate), None, more),
        figure("final_qos_rate", "satisfied at the end", mean(&|p| p.final_qos_rate), None, more),
        figure("success", "episodes that end with all", mean(&|p| f64::from(u8::from(p.success))), None, more),
        figure("sum_rate_mbps", "sum of rates [Mb/s]", rate, Some(rate / greedy_rate), more),
        figure("jain", "evenness of rates (Jain)", mean(&|p| p.jain), None, more),
        figure("handovers", "handovers per step", mean(&|p| p.handovers), None, None),
        figure("busiest_station_users", "users of busiest station", mean(&|p| p.busiest_station_users), None, None),
        figure("steps", "steps", mean(&|p| f64::from(p.steps)), None, None),
    ];
    let error = |f: &dyn Fn(&Played) -> f64| {
        let (n, center) = (played.len() as f64, mean(f));
        (mean(&|p| (f(p) - center).powi(2)) / (n - 1.0).max(1.0)).sqrt()
    };
    let details = Map::from_iter([
        ("qos_rate_standard_error".to_owned(), json!(error(&|p| p.qos_rate))),
        ("sum_rate_mbps_standard_error".to_owned(), json!(error(&|p| p.sum_rate_mbps))),
        ("sum_rates_mbps".to_owned(), played.iter().map(|p| json!(p.sum_rate_mbps)).collect()),
    ]);
    Row { name: name.to_owned(), episode_return: mean(&|p| p.episode_return), figures, details }
}

/// What is known of the networks at the beginning of the episodes without playing them.
struct Study {
    n: usize,
    /// The largest sum of rates that anybody could have, Mb/s.
    bound_mbps: f64,
    /// Greedy's sum of rates, Mb/s.
    greedy_mbps: f64,
    /// Networks in which best responses came to rest, and no user gains by moving alone.
    equilibria: usize,
    /// How often greedy's links would satisfy everybody under that much exploration, and how many users on average.
    floor: Option<(Exploration, f64, f64)>,
}

impl Study {
    fn new(scenario: &Uara, seed: u64, n: usize, exploration: Option<Exploration>) -> Result<Self, CliError> {
        let mut batch = scenario.batch(0..n);
        batch.reset(seed, &mut BatchSlabs::new(batch.spec()))?;
        let objective = scenario.objective();
        let (mut study, mut floor) =
            (Self { n, bound_mbps: 0.0, greedy_mbps: 0.0, equilibria: 0, floor: None }, (0.0, 0.0));
        for env in 0..n {
            let rng = &mut named_rng(seed, "study", env as u64);
            let snapshot = batch.snapshot(env);
            let links = greedy(&snapshot, objective);
            study.bound_mbps += upper_bound(&snapshot).sum_rate_mbps / n as f64;
            study.greedy_mbps += snapshot.outcome(&links).sum_rate_mbps() / n as f64;
            let nash = best_response(&snapshot, objective, &BestResponseConfig::default(), rng);
            study.equilibria += usize::from(nash.is_certified());
            if let Some(Exploration { epsilon, .. }) = exploration {
                let found = exploration_floor(&snapshot, &links, epsilon, FLOOR_DRAWS, rng);
                floor.0 += found.all_satisfied / n as f64;
                floor.1 += found.qos_rate / n as f64;
            }
        }
        study.floor = exploration.map(|exploration| (exploration, floor.0, floor.1));
        Ok(study)
    }

    /// Lines beside the curve of a training run.
    fn levels(&self, rows: &[(&'static str, Vec<Played>)]) -> Value {
        let of = |name: &str| rows.iter().find(|(row, _)| *row == name).map(|(_, played)| played);
        let qos = |name: &str| of(name).map(|played| mean(played, &|p| p.qos_rate));
        json!({
            "greedy_qos_rate": qos(Yardstick::Greedy.name()),
            "trained_qos_rate": qos(TRAINED),
            "floor_qos_rate": self.floor.map(|(_, _, qos)| qos),
            "epsilon": self.floor.map(|(exploration, ..)| exploration.epsilon),
        })
    }

    fn text(&self) -> String {
        let (greedy, bound) = (number(self.greedy_mbps), number(self.bound_mbps));
        let mut text = match self.n {
            1 => {
                let found = if self.equilibria == 1 { "come" } else { "do not come" };
                format!(
                    "Greedy has {greedy} of at most {bound} Mb/s, and best responses {found} to a certified Nash point."
                )
            }
            n => format!(
                "As {n} of the episodes begin, greedy has {greedy} of at most {bound} Mb/s, and best responses come to a \
                 certified Nash point in {}.",
                self.equilibria
            ),
        };
        if let Some((Exploration { epsilon, when }, all, qos)) = self.floor {
            text.push_str(&format!(
                " With {:.0} % of random actions, as at {when} of training, greedy's own links would satisfy {:.1} % of \
                 users, and all of them in {:.1} % of steps.",
                100.0 * epsilon,
                100.0 * qos,
                100.0 * all,
            ));
        }
        text
    }
}
