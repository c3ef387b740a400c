//! Data for the replay of evacuation episodes: the drawing of the building, and changes over time.
//!
//! Frames are not stored. Fire, smoke and sweeps are lists of changes; responders and people are lists of activities
//! with durations, from which the page computes positions.

use std::collections::HashMap;

use brasa_core::Obs;
use brasa_env::Outcome;
use brasa_evacuation::{
    Building, CrewFrame, Doing, Evacuation, Frame, Layout, NodeKind, PersonFrame, PersonState, Trace,
};
use brasa_experiment::{ControllerOutcomes, SectionContext};
use brasa_gat::GraphActorCritic;
use brasa_nn::{ActorCriticRole, Boxed};
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::{Value, json};

/// Number of episodes per controller.
pub const EPISODES: usize = 3;
/// Number of levels of fire and smoke; finer levels are not visible.
const LEVELS: f32 = 20.0;
/// Smallest probability of a listed action.
const LEAST_PROBABILITY: f32 = 0.005;
/// Digits of attention weights.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The data of all controllers with traces, the policy first; with attention weights for policies over
/// graphs.
pub fn data(context: &SectionContext<'_>) -> Value {
    let Some(scenario) = context.scenario_as::<Evacuation>() else { return Value::Null };
    let mut shown: Vec<(&ControllerOutcomes, Vec<(&Outcome, &Trace)>)> =
        context.played.iter().filter_map(shown).collect();
    shown.sort_by_key(|(played, _)| played.kind.is_some());
    let Some((_, first)) = shown.first() else { return Value::Null };
    let network = network(context);
    let mut buildings: Vec<&Building> = Vec::new();
    let episodes: Vec<Value> = (0..first.len())
        .filter_map(|episode| {
            let name = &first[episode].1.building;
            let index = scenario.buildings().iter().position(|known| known.layout().name == *name)?;
            let building = &scenario.buildings()[index];
            let known = |other: &&Building| other.layout().name == building.layout().name;
            let place = buildings.iter().position(known).unwrap_or_else(|| {
                buildings.push(building);
                buildings.len() - 1
            });
            let runs = shown.iter().filter_map(|(played, traces)| {
                let (outcome, trace) = traces.get(episode)?;
                let mut run = run(outcome, trace);
                if let Some(network) = network.filter(|_| played.kind.is_none() && !trace.seen.is_empty()) {
                    let obs = seen(trace, context.policy.device());
                    (run["probabilities"], run["attention"]) = attention(network, obs, building.layout(), index);
                }
                Some((played.name.clone(), run))
            });
            Some(json!({ "building": place, "runs": runs.collect::<serde_json::Map<_, _>>() }))
        })
        .collect();
    let rules = &scenario.config().rules;
    json!({
        "tick_secs": rules.timing.tick_secs,
        "levels": LEVELS,
        "controllers": shown.iter().map(|(played, _)| &played.name).collect::<Vec<_>>(),
        "buildings": buildings.into_iter().map(|it| self::building(scenario, it.layout())).collect::<Vec<_>>(),
        "episodes": episodes,
    })
}

/// The traced episodes of a controller, if any.
fn shown(played: &ControllerOutcomes) -> Option<(&ControllerOutcomes, Vec<(&Outcome, &Trace)>)> {
    let traces = played.outcomes.iter().map_while(|outcome| Some((outcome, outcome.trace.as_ref()?.downcast_ref()?)));
    let traces: Vec<(&Outcome, &Trace)> = traces.collect();
    (!traces.is_empty()).then_some((played, traces))
}

/// The network of the policy, if it acts on graphs.
fn network<'a>(context: &SectionContext<'a>) -> Option<&'a GraphActorCritic> {
    context.policy.downcast_ref::<Boxed<ActorCriticRole>>()?.downcast_ref()
}

/// The observations at the decisions of an episode.
fn seen(trace: &Trace, device: &Device) -> Obs {
    let upload = |rows: Vec<&Vec<f32>>| {
        let shape = [rows.len(), rows.first().map_or(0, |row| row.len())];
        Tensor::from_data(TensorData::new(rows.into_iter().flatten().copied().collect::<Vec<f32>>(), shape), device)
    };
    let (obs, masks) = trace.seen.iter().map(|(obs, mask)| (obs, mask)).unzip();
    Obs { values: upload(obs), mask: Some(upload(masks)) }
}

/// Rounds to two decimals, which is more precise than a pixel.
fn flat(points: &[[f64; 2]]) -> Vec<f64> {
    points.iter().flatten().map(|x| (100.0 * x).round() / 100.0).collect()
}

fn building(scenario: &Evacuation, layout: &Layout) -> Value {
    let drawing = layout.drawing();
    let sweeps = scenario.config().rules.sweeps;
    let nodes = layout.nodes.iter().zip(&drawing.places).map(|(node, place)| {
        json!({
            "name": node.name, "kind": node.kind, "area": node.area_m2, "floor": place.floor,
            // For a team that is large enough.
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

/// An episode; times are in ticks, and in lists of changes relative to the previous change.
fn run(outcome: &Outcome, trace: &Trace) -> Value {
    let frames = &trace.frames;
    let nodes = 0..frames.first().map_or(0, |frame| frame.fire.len());
    let n_people = frames.first().map_or(0, |frame| frame.people.len());
    let level = |x: f32| (LEVELS * x).round() as i64;
    let of_nodes = |value: &dyn Fn(&Frame, usize) -> i64| -> Vec<Value> {
        let lists = nodes.clone().map(|node| (node, changes(frames.iter().map(|frame| value(frame, node)))));
        lists.filter(|(_, list)| !list.is_empty()).map(|(node, list)| json!([node, list])).collect()
    };
    let n_responders = frames.first().map_or(0, |frame| frame.crew.len());
    let crew = (0..n_responders).map(|r| crew_spells(frames.iter().map(|frame| frame.crew[r])));
    let health =
        (0..n_responders).map(|r| changes(frames.iter().map(|frame| 100 - frame.crew[r].health.ceil() as i64)));
    let people = (0..n_people).map(|i| person_spells(frames.iter().map(|frame| frame.people[i])));
    let mut last = 0;
    let decisions = trace.decisions.iter().map(|decision| {
        let since = decision.tick - std::mem::replace(&mut last, decision.tick);
        json!([since, decision.responder, decision.node.map_or(-1, i64::from)])
    });
    let count = |name: &str| outcome.detail(name).map(|count| count as i64);
    json!({
        "ticks": frames.len().saturating_sub(1),
        "end": trace.end,
        "fire": of_nodes(&|frame, node| level(frame.fire[node])),
        "smoke": of_nodes(&|frame, node| level(frame.smoke[node])),
        "lost": of_nodes(&|frame, node| i64::from(frame.lost[node])),
        "swept": of_nodes(&|frame, node| i64::from(frame.swept_by[node])),
        "crew": crew.collect::<Vec<_>>(),
        "harm": health.collect::<Vec<_>>(),
        "people": people.collect::<Vec<_>>(),
        "decisions": decisions.collect::<Vec<_>>(),
        // Results of the simulation, not computed from frames: the page must compute the same results.
        "outcome": {
            "ticks": count("ticks"), "sweep_ticks": count("sweep_ticks"), "bound_ticks": count("bound_ticks"),
            "rescued": count("rescued_people"), "dead": count("dead_people"), "return": outcome.episode_return,
        },
    })
}

/// `[ticks since the previous change, new value, ...]`, starting with 0 at tick 0.
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

/// Runs of equal values: length, first and last value.
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

/// `[ticks, node, to, doing, escorting, ticks of the whole walk, of which before]` for each activity of a responder.
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
            // `share` increases by one over the ticks of the walk; a walk of one frame takes one tick.
            let step = if n > 1 { (last.share - first.share) / (n - 1) as f32 } else { 1.0 - first.share };
            values.extend([(1.0 / step).round() as i64, (first.share / step).round() as i64]);
        }
        values
    };
    spells(frames, alike).into_iter().map(spell).collect()
}

/// `[ticks, node, to, state, leader or -1]` for each activity of a person.
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

/// At each decision: probable actions as `[node or -1, probability in percent, ...]`, and for each layer the attention
/// weights between the two ends of each way, then those of nodes on themselves.
///
/// An attention weight w, the mean over heads, is the digit with index 63 sqrt(w): first the weight of the second end
/// on the first, then that of the first end on the second.
fn attention(network: &GraphActorCritic, obs: Obs, layout: &Layout, graph: usize) -> (Value, Value) {
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

    // Index of each edge's digit: two per way, one per node.
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
        // Two of the four ticks of the walk, then the end.
        assert_eq!(crew_spells(frames.into_iter()), [vec![3, 0, 1, 1, 0, 4, 0], vec![2, 0, 0, 3, 0]]);
        let again = [frame(0, 1, 0.0, Doing::Walk), frame(1, 2, 0.0, Doing::Walk), frame(2, 2, 0.0, Doing::Idle)];
        let spells = crew_spells(again.into_iter());
        assert_eq!(spells, [vec![1, 0, 1, 1, 0, 1, 0], vec![1, 1, 2, 1, 0, 1, 0], vec![1, 2, 2, 0, 0]]);
    }
}
