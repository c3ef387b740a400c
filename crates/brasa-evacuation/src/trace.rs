//! A record of an episode, tick by tick, to look at and to draw.

use serde::{Deserialize, Serialize};

use crate::world::{PersonState, Task, World};

/// An episode, one frame per tick; frame 0 is the moment of the alarm.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trace {
    /// Length of a tick, in s.
    pub tick_secs: f64,
    /// What was so at each tick.
    pub frames: Vec<Frame>,
}

/// One tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Intensity of fire at each node.
    pub fire: Vec<f32>,
    /// Density of smoke at each node.
    pub smoke: Vec<f32>,
    /// Responders who have swept each node, one bit each.
    pub swept_by: Vec<u8>,
    /// The responders.
    pub crew: Vec<CrewFrame>,
    /// The people.
    pub people: Vec<PersonFrame>,
}

/// A responder at one tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CrewFrame {
    /// Where it is, or where it came from.
    pub node: u16,
    /// Where it walks to; `node` itself while it stands.
    pub to: u16,
    /// Share of the way that it has walked.
    pub share: f32,
    /// What it does.
    pub doing: Doing,
    /// People it leads or carries.
    pub escorting: u16,
    /// Health, 0 to 100.
    pub health: f32,
}

/// What a responder does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Stands.
    Idle,
    /// Walks.
    Walk,
    /// Searches.
    Search,
    /// Cannot act any more.
    Down,
}

/// A person at one tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PersonFrame {
    /// Where it is, or where it came from.
    pub node: u16,
    /// Where it walks to; `node` itself while it stands.
    pub to: u16,
    /// What it does.
    pub state: PersonState,
    /// Health, 0 to 100.
    pub health: f32,
}

impl Trace {
    /// Adds the present moment.
    pub(crate) fn record(&mut self, world: &World) {
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
            PersonFrame { node, to, state, health: people.health[person] }
        });
        self.tick_secs = world.rules.timing.tick_secs;
        self.frames.push(Frame {
            fire: state.fire.clone(),
            smoke: state.smoke.clone(),
            swept_by: state.swept_by.clone(),
            crew: crew.collect(),
            people: people.collect(),
        });
    }
}
