//! Episodes of an evacuation as a page plays them: the building as it is drawn, and what changed when.
//!
//! Nothing is kept frame by frame. Fire, smoke and sweeps are lists of changes; responders and people are lists of what they
//! did for how long, from which the page computes where they are.

use std::collections::HashMap;

use brasa::core::Obs;
use brasa::evacuation::{
    Building, CrewFrame, Doing, Evacuation, Frame, Layout, NodeKind, Outcome, PersonFrame, PersonState, Trace,
};
use brasa::gat::GraphActorCritic;
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::{Array2, ArrayView2, s};
use serde_json::{Value, json};

/// Episodes that are shown of each controller.
pub const EPISODES: usize = 3;
/// Steps between no fire or smoke and most of it: finer ones cannot be seen.
const LEVELS: f32 = 20.0;
/// Options that are less likely are left out.
const LEAST_PROBABILITY: f32 = 0.005;
/// Digits of attention weights.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a policy saw at the decisions of the episodes that are shown.
#[derive(Default)]
pub struct Seen {
    /// The first rows of every call.
    calls: Vec<(Array2<f32>, Array2<f32>)>,
}

impl Seen {
    /// Keeps what the policy is asked about now.
    pub fn keep(&mut self, obs: ArrayView2<f32>, mask: ArrayView2<f32>) {
        let n = obs.nrows().min(EPISODES);
        self.calls.push((obs.slice(s![..n, ..]).to_owned(), mask.slice(s![..n, ..]).to_owned()));
    }

    /// Observations and masks of an episode, one row per decision; `decisions` has the numbers of them of all episodes.
    fn of_episode(&self, decisions: &[u64], episode: usize, device: &Device) -> Obs {
        let rows = self.calls.iter().enumerate().take(decisions[episode] as usize).map(|(call, (obs, mask))| {
            // A call has rows of the episodes that go on alone, in their order.
            let row = (0..episode).filter(|earlier| decisions[*earlier] > call as u64).count();
            (obs.row(row), mask.row(row))
        });
        let (obs, masks): (Vec<_>, Vec<_>) = rows.unzip();
        let upload = |rows: Vec<ndarray::ArrayView1<f32>>| {
            let shape = [rows.len(), rows.first().map_or(0, |row| row.len())];
            Tensor::from_data(TensorData::new(rows.into_iter().flatten().copied().collect::<Vec<f32>>(), shape), device)
        };
        Obs { values: upload(obs), mask: Some(upload(masks)) }
    }
}

/// What a policy over graphs thought at the decisions of the episodes that are shown.
pub struct Thoughts<'a> {
    /// The policy.
    pub network: &'a GraphActorCritic,
    /// Where it is.
    pub device: &'a Device,
    /// What it saw.
    pub seen: Seen,
}

/// Everything that the page needs of the controllers that have traces; `thoughts` are those of `thinker`, who comes first.
pub fn data(
    scenario: &Evacuation,
    controllers: &[(&str, Vec<Outcome>)],
    thinker: &str,
    thoughts: Option<Thoughts<'_>>,
) -> Value {
    let mut shown: Vec<(&str, &[Outcome])> = controllers
        .iter()
        .map(|(name, outcomes)| (*name, &outcomes[..outcomes.len().min(EPISODES)]))
        .filter(|(_, outcomes)| !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.trace.is_some()))
        .collect();
    shown.sort_by_key(|(name, _)| *name != thinker);
    let Some((_, first)) = shown.first() else { return Value::Null };
    let mut buildings: Vec<&Building> = Vec::new();
    let episodes: Vec<Value> = first
        .iter()
        .enumerate()
        .filter_map(|(episode, outcome)| {
            let index = scenario.buildings().iter().position(|known| known.layout().name == outcome.building)?;
            let building = &scenario.buildings()[index];
            let known = |other: &&Building| other.layout().name == building.layout().name;
            let place = buildings.iter().position(known).unwrap_or_else(|| {
                buildings.push(building);
                buildings.len() - 1
            });
            let runs = shown.iter().filter_map(|(name, outcomes)| {
                let (outcome, trace) = (&outcomes[episode], outcomes[episode].trace.as_ref()?);
                let mut run = run(outcome, trace);
                if let Some(thoughts) = thoughts.as_ref().filter(|_| *name == thinker) {
                    let decisions: Vec<u64> = outcomes.iter().map(|outcome| outcome.decisions).collect();
                    let obs = thoughts.seen.of_episode(&decisions, episode, thoughts.device);
                    (run["probabilities"], run["attention"]) = think(thoughts.network, obs, building.layout(), index);
                }
                Some(((*name).to_owned(), run))
            });
            Some(json!({ "building": place, "runs": runs.collect::<serde_json::Map<_, _>>() }))
        })
        .collect();
    let rules = &scenario.config().rules;
    json!({
        "tick_secs": rules.timing.tick_secs,
        "levels": LEVELS,
        "controllers": shown.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "buildings": buildings.into_iter().map(|it| self::building(scenario, it.layout())).collect::<Vec<_>>(),
        "episodes": episodes,
    })
}

/// Two decimals are finer than a pixel.
fn flat(points: &[[f64; 2]]) -> Vec<f64> {
    points.iter().flatten().map(|x| (100.0 * x).round() / 100.0).collect()
}

fn building(scenario: &Evacuation, layout: &Layout) -> Value {
    let drawing = layout.drawing();
    let sweeps = scenario.config().rules.sweeps;
    let nodes = layout.nodes.iter().zip(&drawing.places).map(|(node, place)| {
        json!({
            "name": node.name, "kind": node.kind, "area": node.area_m2, "floor": place.floor,
            // Of a team that is large enough.
            "sweeps": if node.kind == NodeKind::Room { sweeps.required(node, usize::MAX) } else { 0 },
            "at": flat(&[place.center]), "outline": flat(&place.outline),
        })
    });
    let ways = layout.edges.iter().zip(&drawing.ways).map(|(edge, way)| {
        let kind = match (edge.fire_door, edge.door) {
            (true, _) => "fire-door",
            (_, true) => "door",
            _ => "passage",
        };
        json!({
            "a": edge.a, "b": edge.b, "kind": kind, "from": flat(&way.from), "to": flat(&way.to),
            "opening": way.opening.map(|line| flat(&line)), "link": way.link.map(|line| flat(&line)),
        })
    });
    let floors = drawing.floors.iter().map(|floor| {
        json!({ "floor": floor.floor, "plan": floor.from_plan, "low": flat(&[floor.low]), "high": flat(&[floor.high]) })
    });
    json!({
        "name": layout.name,
        "floors": floors.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
        "ways": ways.collect::<Vec<_>>(),
        "people": layout.occupants.iter().map(|person| person.mobility.index()).collect::<Vec<_>>(),
    })
}

/// An episode; times are ticks, those of lists of changes counted from the change before.
fn run(outcome: &Outcome, trace: &Trace) -> Value {
    let frames = &trace.frames;
    let nodes = 0..frames.first().map_or(0, |frame| frame.fire.len());
    let n_people = frames.first().map_or(0, |frame| frame.people.len());
    let level = |x: f32| (LEVELS * x).round() as i64;
    let of_nodes = |value: &dyn Fn(&Frame, usize) -> i64| -> Vec<Value> {
        let lists = nodes.clone().map(|node| (node, changes(frames.iter().map(|frame| value(frame, node)))));
        lists.filter(|(_, list)| !list.is_empty()).map(|(node, list)| json!([node, list])).collect()
    };
    let crew = (0..outcome.n_responders).map(|r| crew_spells(frames.iter().map(|frame| frame.crew[r])));
    let health =
        (0..outcome.n_responders).map(|r| changes(frames.iter().map(|frame| 100 - frame.crew[r].health.ceil() as i64)));
    let people = (0..n_people).map(|i| person_spells(frames.iter().map(|frame| frame.people[i])));
    let mut last = 0;
    let decisions = trace.decisions.iter().map(|decision| {
        let since = decision.tick - std::mem::replace(&mut last, decision.tick);
        json!([since, decision.responder, decision.node.map_or(-1, i64::from)])
    });
    json!({
        "ticks": frames.len().saturating_sub(1),
        "end": outcome.end,
        "fire": of_nodes(&|frame, node| level(frame.fire[node])),
        "smoke": of_nodes(&|frame, node| level(frame.smoke[node])),
        "lost": of_nodes(&|frame, node| i64::from(frame.lost[node])),
        "swept": of_nodes(&|frame, node| i64::from(frame.swept_by[node])),
        "crew": crew.collect::<Vec<_>>(),
        "harm": health.collect::<Vec<_>>(),
        "people": people.collect::<Vec<_>>(),
        "decisions": decisions.collect::<Vec<_>>(),
        // Counted while it was played, not read off the frames: what the page counts must come to the same.
        "outcome": {
            "ticks": outcome.ticks, "sweep_ticks": outcome.sweep_ticks, "bound_ticks": outcome.bound_ticks,
            "rescued": outcome.rescued, "dead": outcome.dead, "return": outcome.episode_return,
        },
    })
}

/// `[ticks since the change before, new value, ...]`, beginning with 0 at tick 0.
fn changes(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let (mut list, mut present, mut since) = (Vec::new(), 0, 0);
    for (tick, value) in values.enumerate() {
        if value != present {
            list.extend([tick as i64 - since, value]);
            (present, since) = (value, tick as i64);
        }
    }
    list
}

/// Runs of equal values: how many, and the first and the last of them.
fn spells<T: Copy>(values: impl Iterator<Item = T>, alike: impl Fn(&T, &T) -> bool) -> Vec<(usize, T, T)> {
    let mut spells: Vec<(usize, T, T)> = Vec::new();
    for value in values {
        match spells.last_mut() {
            Some((n, _, last)) if alike(last, &value) => {
                *n += 1;
                *last = value;
            }
            _ => spells.push((1, value, value)),
        }
    }
    spells
}

/// `[ticks, node, to, doing, escorting, ticks of the whole walk, of which before]` for each thing a responder did.
fn crew_spells(frames: impl Iterator<Item = CrewFrame>) -> Vec<Vec<i64>> {
    let alike = |a: &CrewFrame, b: &CrewFrame| {
        (a.node, a.to, a.doing, a.escorting) == (b.node, b.to, b.doing, b.escorting) && a.share <= b.share
    };
    let spell = |(n, first, last): (usize, CrewFrame, CrewFrame)| {
        let doing = match first.doing {
            Doing::Idle => 0,
            Doing::Walk => 1,
            Doing::Search => 2,
            Doing::Down => 3,
        };
        let mut values = vec![n as i64, first.node.into(), first.to.into(), doing, first.escorting.into()];
        if first.doing == Doing::Walk {
            // Shares grow by one over the ticks of the walk; a walk of one frame takes one tick.
            let step = if n > 1 { (last.share - first.share) / (n - 1) as f32 } else { 1.0 - first.share };
            values.extend([(1.0 / step).round() as i64, (first.share / step).round() as i64]);
        }
        values
    };
    spells(frames, alike).into_iter().map(spell).collect()
}

/// `[ticks, node, to, state, leader or -1]` for each thing a person did.
fn person_spells(frames: impl Iterator<Item = PersonFrame>) -> Vec<[i64; 5]> {
    let key = |person: &PersonFrame| (person.node, person.to, person.state, person.leader);
    let spell = |(n, first, _): (usize, PersonFrame, PersonFrame)| {
        let state = match first.state {
            PersonState::Unaware => 0,
            PersonState::Waiting => 1,
            PersonState::Walking => 2,
            PersonState::Led => 3,
            PersonState::Escorted => 4,
            PersonState::Out => 5,
            PersonState::Dead => 6,
        };
        [n as i64, first.node.into(), first.to.into(), state, first.leader.map_or(-1, i64::from)]
    };
    spells(frames, |a, b| key(a) == key(b)).into_iter().map(spell).collect()
}

/// At each decision: likely options as `[node or -1, probability in percent, ...]`, and for each layer the attention that
/// the ends of ways pay to each other, then what nodes pay to themselves.
///
/// An attention weight w, the mean over heads, is the digit number 63 sqrt(w): of the first end paid by the second, of the
/// second paid by the first.
fn think(network: &GraphActorCritic, obs: Obs, layout: &Layout, graph: usize) -> (Value, Value) {
    let n = layout.nodes.len();
    let probabilities = network.probabilities(obs.clone());
    let options = probabilities.dims()[1];
    let probabilities: Vec<f32> = probabilities.into_data().iter::<f32>().collect();
    let likely = probabilities.chunks(options).map(|row| {
        let named = row.iter().enumerate().filter(|(_, p)| **p >= LEAST_PROBABILITY);
        let option = |option: usize| if option + 1 == options { -1 } else { option as i64 };
        named.flat_map(|(at, p)| [json!(option(at)), json!((f64::from(*p) * 1000.0).round() / 10.0)]).collect()
    });
    let likely: Vec<Vec<Value>> = likely.collect();

    // Where each edge's weight stands among the digits: two for each way, one for each node.
    let mut slots = HashMap::new();
    for (way, edge) in layout.edges.iter().enumerate() {
        slots.insert([edge.a, edge.b], 2 * way);
        slots.insert([edge.b, edge.a], 2 * way + 1);
    }
    slots.extend((0..n).map(|node| ([node, node], 2 * layout.edges.len() + node)));
    let n_digits = 2 * layout.edges.len() + n;
    let edges = network.graphs().edges(graph);
    let mut attention = vec![Vec::new(); likely.len()];
    for layer in network.attention_weights(obs) {
        let [_, n_edges, heads] = layer.dims();
        let weights: Vec<f32> = layer.into_data().iter::<f32>().collect();
        for (row, weights) in attention.iter_mut().zip(weights.chunks(n_edges * heads)) {
            let mut digits = vec![DIGITS[0]; n_digits];
            for (edge, weights) in edges.iter().zip(weights.chunks(heads)) {
                let mean = weights.iter().sum::<f32>() / heads as f32;
                // Padded nodes have none.
                if let Some(slot) = slots.get(edge) {
                    digits[*slot] = DIGITS[(63.0 * mean.clamp(0.0, 1.0).sqrt()).round() as usize];
                }
            }
            row.push(digits.into_iter().map(char::from).collect::<String>());
        }
    }
    (json!(likely), json!(attention))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_from_each_other() {
        assert_eq!(changes([0, 0, 3, 3, 5, 0].into_iter()), [2, 3, 2, 5, 1, 0]);
        assert_eq!(changes([7, 7].into_iter()), [0, 7]);
        assert!(changes([0, 0].into_iter()).is_empty());
    }

    #[test]
    fn walks_keep_their_pace() {
        let frame = |node: u16, to: u16, share: f32, doing: Doing| CrewFrame {
            node,
            to,
            share,
            doing,
            escorting: 0,
            health: 100.0,
        };
        let frames = [
            frame(0, 1, 0.0, Doing::Walk),
            frame(0, 1, 0.25, Doing::Walk),
            frame(0, 1, 0.5, Doing::Walk),
            frame(0, 0, 0.0, Doing::Down),
            frame(0, 0, 0.0, Doing::Down),
        ];
        // Two of the four ticks of the walk, then no more.
        assert_eq!(crew_spells(frames.into_iter()), [vec![3, 0, 1, 1, 0, 4, 0], vec![2, 0, 0, 3, 0]]);
        let again = [frame(0, 1, 0.0, Doing::Walk), frame(1, 2, 0.0, Doing::Walk), frame(2, 2, 0.0, Doing::Idle)];
        let spells = crew_spells(again.into_iter());
        assert_eq!(spells, [vec![1, 0, 1, 1, 0, 1, 0], vec![1, 1, 2, 1, 0, 1, 0], vec![1, 2, 2, 0, 0]]);
    }

    #[test]
    fn rows_of_episodes_that_ended_are_gone() {
        let mut seen = Seen::default();
        // Three episodes of 1, 3 and 2 decisions; a row says which episode and which decision it is of.
        for rows in
            [vec![[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], vec![[1.0, 1.0], [2.0, 1.0]], vec![[1.0, 2.0]]]
        {
            let rows = Array2::from(rows);
            seen.keep(rows.view(), rows.view());
        }
        let device = brasa::device::open_named("cpu").expect("the processor is there");
        for (episode, n) in [1, 3, 2].into_iter().enumerate() {
            let obs = seen.of_episode(&[1, 3, 2], episode, &device);
            let values: Vec<f32> = obs.values.into_data().iter::<f32>().collect();
            let expected: Vec<f32> = (0..n).flat_map(|decision| [episode as f32, decision as f32]).collect();
            assert_eq!(values, expected);
        }
    }
}
