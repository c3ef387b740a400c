//! A record of an episode per tick, for reports.

use serde::{Deserialize, Serialize};

use crate::world::{End, PersonState, Recorder, Task, World};

/// An episode with one frame per tick; frame 0 is the alarm.
///
/// ```
/// use brasa_env::{Evaluation, Scenario, Who};
/// use brasa_evacuation::{Evacuation, EvacuationConfig, Trace};
///
/// let office = Evacuation::new(EvacuationConfig::default())?;
/// let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 5) };
/// let outcome = office.evaluate(Who::Baseline("greedy"), &evaluation)?.remove(0);
/// let trace = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<Trace>()).expect("it was asked for");
/// assert_eq!(trace.building, "office");
/// assert_eq!(trace.decisions.len() as u64, outcome.length);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trace {
    /// Length of a tick, in s.
    pub tick_secs: f64,
    /// The state at each tick, after its decisions.
    pub frames: Vec<Frame>,
    /// The decisions, in order.
    pub decisions: Vec<DecisionFrame>,
    /// The observation and the mask at each decision; empty for heuristics, which use the state of the building.
    pub seen: Vec<(Vec<f32>, Vec<f32>)>,
    /// Name of the building.
    pub building: String,
    /// The cause of the end.
    pub end: Option<End>,
}

/// A decision.
///
/// ```
/// # use brasa_env::{Evaluation, Scenario, Who};
/// # use brasa_evacuation::{Evacuation, EvacuationConfig};
/// # let mut config = EvacuationConfig::default();
/// # config.rules.hazards.enabled = false;
/// # let office = Evacuation::new(config)?;
/// # let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 5) };
/// # let outcome = office.evaluate(Who::Baseline("greedy"), &evaluation)?.remove(0);
/// # let trace = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<brasa_evacuation::Trace>());
/// # let trace = trace.expect("it was asked for");
/// use brasa_evacuation::DecisionFrame;
///
/// // `trace` is of an episode in the office. Both responders decide at the alarm.
/// let first: Vec<DecisionFrame> = trace.decisions.iter().copied().filter(|decision| decision.tick == 0).collect();
/// let responders: Vec<u16> = first.iter().map(|decision| decision.responder).collect();
/// assert_eq!(responders, [0, 1]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionFrame {
    /// The tick.
    pub tick: u32,
    /// The responder.
    pub responder: u16,
    /// The node it goes to or searches; `None` to wait.
    pub node: Option<u16>,
}

/// One tick.
///
/// ```
/// # use brasa_env::{Evaluation, Scenario, Who};
/// # use brasa_evacuation::{Evacuation, EvacuationConfig};
/// # let mut config = EvacuationConfig::default();
/// # config.rules.hazards.enabled = false;
/// # let office = Evacuation::new(config)?;
/// # let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 5) };
/// # let outcome = office.evaluate(Who::Baseline("greedy"), &evaluation)?.remove(0);
/// # let trace = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<brasa_evacuation::Trace>());
/// # let trace = trace.expect("it was asked for");
/// use brasa_evacuation::Frame;
///
/// // `trace` is of an episode without fire.
/// let last: &Frame = trace.frames.last().expect("an episode has frames");
/// assert!(last.fire.iter().all(|intensity| *intensity == 0.0));
/// assert_eq!(last.crew.len(), 2);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Intensity of fire at each node.
    pub fire: Vec<f32>,
    /// Density of smoke at each node.
    pub smoke: Vec<f32>,
    /// Whether each node is lost: impassable, or cut off by impassable nodes.
    pub lost: Vec<bool>,
    /// Responders that have swept each node, one bit each.
    pub swept_by: Vec<u8>,
    /// The responders.
    pub crew: Vec<CrewFrame>,
    /// The people.
    pub people: Vec<PersonFrame>,
}

/// A responder at one tick.
///
/// ```
/// # use brasa_env::{Evaluation, Scenario, Who};
/// # use brasa_evacuation::{Evacuation, EvacuationConfig};
/// # let mut config = EvacuationConfig::default();
/// # config.rules.hazards.enabled = false;
/// # let office = Evacuation::new(config)?;
/// # let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 5) };
/// # let outcome = office.evaluate(Who::Baseline("greedy"), &evaluation)?.remove(0);
/// # let trace = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<brasa_evacuation::Trace>());
/// # let trace = trace.expect("it was asked for");
/// use brasa_evacuation::CrewFrame;
///
/// // `trace` is of an episode without fire.
/// let crew: &Vec<CrewFrame> = &trace.frames[0].crew;
/// assert!(crew.iter().all(|responder| responder.health == 100.0 && responder.escorting == 0));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CrewFrame {
    /// Where it is, or where it came from.
    pub node: u16,
    /// Where it walks to; `node` itself while it stands.
    pub to: u16,
    /// Fraction of the edge that it has walked.
    pub share: f32,
    /// What it does.
    pub doing: Doing,
    /// Number of people that it escorts or carries.
    pub escorting: u16,
    /// Health, 0 to 100.
    pub health: f32,
}

/// What a responder does.
///
/// ```
/// # use brasa_env::{Evaluation, Scenario, Who};
/// # use brasa_evacuation::{Evacuation, EvacuationConfig};
/// # let mut config = EvacuationConfig::default();
/// # config.rules.hazards.enabled = false;
/// # let office = Evacuation::new(config)?;
/// # let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 5) };
/// # let outcome = office.evaluate(Who::Baseline("greedy"), &evaluation)?.remove(0);
/// # let trace = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<brasa_evacuation::Trace>());
/// # let trace = trace.expect("it was asked for");
/// use brasa_evacuation::Doing;
///
/// // `trace` is of an episode in the office.
/// let ticks = |doing| trace.frames.iter().filter(|frame| frame.crew[0].doing == doing).count();
/// assert!(ticks(Doing::Walk) > 0 && ticks(Doing::Search) > 0);
/// assert_eq!(ticks(Doing::Down), 0);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Stands.
    Idle,
    /// Walks.
    Walk,
    /// Searches.
    Search,
    /// Is down and cannot act.
    Down,
}

/// A person at one tick.
///
/// ```
/// # use brasa_env::{Evaluation, Scenario, Who};
/// # use brasa_evacuation::{Evacuation, EvacuationConfig};
/// # let mut config = EvacuationConfig::default();
/// # config.rules.hazards.enabled = false;
/// # let office = Evacuation::new(config)?;
/// # let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 5) };
/// # let outcome = office.evaluate(Who::Baseline("greedy"), &evaluation)?.remove(0);
/// # let trace = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<brasa_evacuation::Trace>());
/// # let trace = trace.expect("it was asked for");
/// use brasa_evacuation::{Layout, PersonFrame};
///
/// // `trace` is of an episode in the office. At the alarm, people are where they work.
/// let people: &Vec<PersonFrame> = &trace.frames[0].people;
/// let layout = Layout::office();
/// assert!(people.iter().zip(&layout.occupants).all(|(person, occupant)| usize::from(person.node) == occupant.node));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PersonFrame {
    /// Where it is, or where it came from.
    pub node: u16,
    /// Where it walks to; `node` itself while it stands.
    pub to: u16,
    /// What it does.
    pub state: PersonState,
    /// The leader: a person, or a responder for escorted people.
    pub leader: Option<u16>,
    /// Health, 0 to 100.
    pub health: f32,
}

impl Recorder for Trace {
    fn record_again(&mut self, world: &World) {
        self.frames.pop();
        self.record(world);
    }

    fn record(&mut self, world: &World) {
        let state = &world.state;
        let crew = state.crew.iter().map(|responder| {
            let (to, share, doing) = match responder.task {
                _ if responder.is_down() => (responder.node, 0.0, Doing::Down),
                Task::Walk { to, ticks_left, ticks } => (to, 1.0 - ticks_left as f32 / ticks as f32, Doing::Walk),
                Task::Search { .. } => (responder.node, 0.0, Doing::Search),
                Task::Free | Task::Wait { .. } => (responder.node, 0.0, Doing::Idle),
            };
            let (node, escorting, health) = (responder.node, responder.escorting, responder.health);
            CrewFrame { node, to, share, doing, escorting, health }
        });
        let people = (0..state.people.len()).map(|person| {
            let (people, state) = (&state.people, state.people.state[person]);
            let (mut node, mut to) = (people.node[person], people.to[person]);
            let leader = people.leader[person] as usize;
            match state {
                PersonState::Escorted => {
                    let responder = &world.state.crew[leader];
                    (node, to) = (responder.node, responder.heading() as u16);
                }
                PersonState::Led => (node, to) = (people.node[leader], people.to[leader]),
                _ => {}
            }
            let to = if to == crate::world::NONE { node } else { to };
            let leader = matches!(state, PersonState::Led | PersonState::Escorted).then_some(leader as u16);
            PersonFrame { node, to, state, leader, health: people.health[person] }
        });
        self.tick_secs = world.rules.timing.tick_secs;
        self.frames.push(Frame {
            fire: state.fire.clone(),
            smoke: state.smoke.clone(),
            lost: state.lost.clone(),
            swept_by: state.swept_by.clone(),
            crew: crew.collect(),
            people: people.collect(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buildings, Evacuation, EvacuationConfig, HazardConfig, OccupantConfig, Reference, RulesConfig};
    use brasa_env::{BatchSlabs, EnvError, Evaluation, Scenario, Who};
    use ndarray::ArrayViewMut2;

    #[test]
    fn frames_show_what_was_decided_at_their_tick() {
        let hazards = HazardConfig { enabled: false, ..HazardConfig::default() };
        // Children wait for responders.
        let occupants = OccupantConfig { adults_lead_children: false, ..OccupantConfig::default() };
        let rules = RulesConfig { hazards, occupants, ..RulesConfig::default() };
        let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Daycare), rules };
        let scenario = Evacuation::new(config).expect("the settings are valid");
        let mut decide = |view: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
            for (mask, mut action) in view.mask.rows().into_iter().zip(actions.rows_mut()) {
                action[0] = mask.iter().position(|legal| *legal > 0.0).expect("something is legal") as f32;
            }
            Ok(())
        };
        let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 5) };
        for (who, sees) in [(Who::Baseline("greedy"), false), (Who::Controller(&mut decide), true)] {
            let outcome = scenario.evaluate(who, &evaluation).expect("the options are legal").remove(0);
            let trace = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<Trace>());
            let trace = trace.expect("it was asked for");
            assert_eq!(Some((trace.frames.len() - 1) as f64), outcome.detail("ticks"));
            assert_eq!(trace.decisions.len() as u64, outcome.length);
            assert_eq!((trace.building.as_str(), trace.end), ("daycare", Some(End::Success)));
            assert_eq!(trace.seen.len() as u64, if sees { outcome.length } else { 0 });
            for ((obs, mask), decision) in trace.seen.iter().zip(&trace.decisions) {
                assert_eq!(obs.len(), scenario.columns().width());
                let option = decision.node.map_or(mask.len() - 1, usize::from);
                assert_eq!(mask[option], 1.0);
            }
            for decision in &trace.decisions {
                let crew = &trace.frames[decision.tick as usize].crew[usize::from(decision.responder)];
                let Some(node) = decision.node else { continue };
                match crew.doing {
                    Doing::Search => assert_eq!(crew.node, node),
                    doing => assert_eq!((doing, crew.share, crew.to == crew.node), (Doing::Walk, 0.0, false)),
                }
            }
            // An escorted person is at the node of its responder.
            let mut escorted = 0;
            for frame in &trace.frames {
                for person in frame.people.iter().filter(|person| person.state == PersonState::Escorted) {
                    let responder = &frame.crew[usize::from(person.leader.expect("somebody escorts it"))];
                    assert_eq!((person.node, person.to), (responder.node, responder.to));
                    escorted += 1;
                }
            }
            assert!(escorted > 0);
        }
    }
}
