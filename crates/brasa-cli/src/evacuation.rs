//! Evacuation beside its rules: the same buildings, people and fires for every controller.

use std::cmp::Ordering;

use brasa::evacuation::{Buildings, Control, End, Evacuation, Outcome, Rule, Split};
use ndarray::{ArrayView2, ArrayViewMut2};
use serde_json::{Map, Value, json};

use crate::actor_critic::{AnyActorCritic, GraphWorld};
use crate::algorithm::AnyPolicy;
use crate::comparison::{Comparison, Figure, Row, TRAINED};
use crate::error::CliError;
use crate::eval::Trained;
use crate::replay::{self, Seen, Thoughts};
use crate::scenario::Yardsticks;

/// Episodes that are compared unless told otherwise.
const EPISODES: u64 = 100;
/// Rules whose episodes a report shows beside those of the policy.
const SHOWN: [Rule; 2] = [Rule::Greedy, Rule::Hindsight];

impl Yardsticks for Evacuation {
    fn compare(&self, trained: Option<&Trained<'_>>, seed: u64, episodes: Option<u64>) -> Result<Comparison, CliError> {
        let envs = 0..episodes.unwrap_or(EPISODES) as usize;
        let scenario = self.for_evaluation(envs.len())?;
        // A report shows where the policy goes; nobody looks at rules alone.
        let n_traces = |shown: bool| if shown && trained.is_some() { replay::EPISODES } else { 0 };
        let mut rows = Vec::new();
        for rule in Rule::ALL {
            let n_traces = n_traces(SHOWN.contains(&rule));
            rows.push((rule.name(), scenario.evaluate(Control::Rule(rule), envs.clone(), seed, n_traces)?));
        }
        let mut pictures = Map::new();
        if let Some(trained) = trained {
            let policy = trained.policy.clone().on(&GraphWorld::of(&scenario)?)?;
            let trained = Trained { policy: &policy, ..*trained };
            let mut seen = Seen::default();
            let mut act = |obs: ArrayView2<f32>, mask: ArrayView2<f32>, mut actions: ArrayViewMut2<f32>| {
                seen.keep(obs, mask);
                actions.assign(&trained.act(obs, Some(mask)));
            };
            rows.push((TRAINED, scenario.evaluate(Control::Policy(&mut act), envs.clone(), seed, n_traces(true))?));
            let thoughts = match &policy {
                AnyPolicy::ActorCritic(AnyActorCritic::Graph(network)) => {
                    Some(Thoughts { network, device: trained.device, seen })
                }
                _ => None,
            };
            pictures.insert("replay".to_owned(), replay::data(&scenario, &rows, TRAINED, thoughts));
        }
        let place = match &self.config().buildings {
            Buildings::Reference(_) | Buildings::File(_) => "",
            Buildings::Generated(generated) => match generated.evaluate {
                Split::Train => " in buildings of training",
                Split::HeldOut => " in unseen buildings",
                Split::HeldOutFamily => " in unseen buildings of another family",
                Split::Larger => " in unseen buildings, two to four times as large",
            },
        };
        let note = format!(
            "Means over {} episodes{place}, the same for every controller. \
             Beside times: their ratio to what no team can beat.",
            envs.len()
        );
        let rows = rows.iter().map(|(name, outcomes)| row(name, outcomes)).collect();
        Ok(Comparison { rows, note, pictures })
    }
}

/// The means of many episodes.
fn row(name: &str, outcomes: &[Outcome]) -> Row {
    let n = outcomes.len() as f64;
    let mean = |f: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(f).sum::<f64>() / n;
    let people = mean(&|o| o.people as f64).max(1e-9);
    let figure = |name: &'static str, label: &str, value: f64, ratio: Option<f64>, better: Option<Ordering>| Figure {
        name,
        label: label.to_owned(),
        value: Some(value),
        ratio,
        better,
    };
    let secs = |o: &Outcome| f64::from(o.ticks) * o.tick_secs;
    let sweep_ticks = |o: &Outcome| f64::from(o.sweep_ticks.unwrap_or(o.ticks));
    let (less, more) = (Some(Ordering::Less), Some(Ordering::Greater));
    let ratio = |f: &dyn Fn(&Outcome) -> f64| Some(mean(&|o| f(o) / f64::from(o.bound_ticks.max(1))));
    let figures = vec![
        figure("all_clear_secs", "all clear [s]", mean(&secs), ratio(&|o| f64::from(o.ticks)), less),
        figure("sweep_secs", "last room swept [s]", mean(&|o| sweep_ticks(o) * o.tick_secs), ratio(&sweep_ticks), less),
        figure("success", "success", mean(&|o| f64::from(u8::from(o.end == End::Success))), None, more),
        figure("rescued", "rescued of all people", mean(&|o| f64::from(o.rescued)) / people, None, more),
        figure("lost", "dead or left behind", mean(&|o| f64::from(o.dead + o.left_behind)) / people, None, less),
        figure("duplicate_sweeps", "needless searches", mean(&|o| f64::from(o.duplicate_sweeps)), None, less),
        figure("idle_share", "share of time idle", mean(&|o| o.idle_share), None, None),
        figure("decisions", "decisions", mean(&|o| o.decisions as f64), None, None),
    ];
    let deviation = |f: &dyn Fn(&Outcome) -> f64| {
        let center = mean(f);
        (mean(&|o| (f(o) - center).powi(2)) * n / (n - 1.0).max(1.0)).sqrt()
    };
    let error = deviation(&secs) / n.sqrt();
    let ticks: Vec<Value> = outcomes.iter().map(|o| json!(o.ticks)).collect();
    let details = Map::from_iter([
        ("all_clear_secs_standard_error".to_owned(), json!(error)),
        ("ticks".to_owned(), Value::Array(ticks)),
    ]);
    Row { name: name.to_owned(), episode_return: mean(&|o| o.episode_return), figures, details }
}
