//! A building prepared for one set of rules: everything that is constant over episodes.

use brasa_env::{InvalidField, field};

use crate::bound::{SweepProblem, lower_bound};
use crate::config::{MAX_RESPONDERS, MAX_TICKS, RulesConfig};
use crate::{EvacuationError, Layout, NodeKind, Timing, Topology};

/// Most nodes of a building: times are kept between all pairs of them.
const MAX_NODES: usize = 4096;
/// Most people inside.
const MAX_PEOPLE: usize = 50_000;

/// A layout with what the simulation computes once.
///
/// ```
/// use brasa_evacuation::{Building, Layout, RulesConfig};
///
/// let building = Building::new(Layout::office(), &RulesConfig::default())?;
/// assert_eq!(building.n_nodes(), Layout::office().nodes.len());
/// // A team of two is not faster than this.
/// assert!(building.bound_ticks(2) > 0.0);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Building {
    pub(crate) layout: Layout,
    pub(crate) timing: Timing,
    pub(crate) topology: Topology,
    pub(crate) exits: Vec<usize>,
    pub(crate) rooms: Vec<usize>,
    /// Ticks to search each node.
    pub(crate) search_ticks: Vec<u32>,
    /// `[n_edges]`: time to walk along each in clear air, in the unit of [`crate::Timing::travel`].
    pub(crate) travel: Vec<f32>,
    /// `[n_edges]`: m2 of dense smoke exchanged in one tick if one end is full of smoke and the other is clear.
    pub(crate) exchange_m2: Vec<f32>,
    /// Time to the nearest exit in clear air, in the unit of [`crate::Timing::travel`].
    pub(crate) exit_times: Vec<f64>,
    /// Ticks to search each room and for its cheapest edge; 0 for other nodes.
    pub(crate) work: Vec<f64>,
    /// Proven lower bound on the ticks of a complete sweep, by team size minus one.
    pub(crate) bounds: Vec<f64>,
    /// Summed weight of all people.
    pub(crate) total_weight: f64,
}

impl Building {
    /// Checks `layout` and prepares it.
    ///
    /// # Errors
    /// [`EvacuationError::FloorPlan`] if the layout cannot be used.
    pub fn new(layout: Layout, rules: &RulesConfig) -> Result<Self, EvacuationError> {
        layout.validate()?;
        check_size(&layout)?;
        let timing = &rules.timing;
        check_times(&layout, timing)?;
        let topology = Topology::new(&layout, timing);
        let exits: Vec<usize> = layout.exits().collect();
        let mut exit_times = vec![0.0; layout.nodes.len()];
        topology.field(&exits, |edge, _| timing.travel(&layout.edges[edge]), &mut exit_times);
        let work = (0..layout.nodes.len()).map(|node| {
            let ways = topology.neighbors(node).map(|(_, edge)| timing.travel_ticks(&layout.edges[edge], 1.0));
            match layout.nodes[node].kind {
                NodeKind::Room => f64::from(timing.search_ticks(&layout.nodes[node]) + ways.min().unwrap_or(0)),
                _ => 0.0,
            }
        });
        let bounds = (1..=rules.responders[1].min(MAX_RESPONDERS)).map(|n| {
            let problem = SweepProblem::in_ticks(&layout, timing, rules.sweeps, &layout.starts(n))?;
            Ok(lower_bound(&problem).best().max(1.0))
        });
        Ok(Self {
            travel: layout.edges.iter().map(|edge| timing.travel(edge) as f32).collect(),
            work: work.collect(),
            search_ticks: layout.nodes.iter().map(|node| timing.search_ticks(node)).collect(),
            exchange_m2: exchange(&layout, &topology, rules),
            rooms: layout.rooms().collect(),
            timing: *timing,
            total_weight: layout.occupants.iter().map(|person| rules.weight(person.mobility)).sum(),
            bounds: bounds.collect::<Result<_, EvacuationError>>()?,
            exit_times,
            exits,
            topology,
            layout,
        })
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The graph.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.layout.nodes.len()
    }

    /// Proven lower bound on the ticks in which `n_responders` can sweep this building without fire.
    ///
    /// # Panics
    /// If the rules do not allow this team size.
    pub fn bound_ticks(&self, n_responders: usize) -> f64 {
        self.bounds[n_responders - 1]
    }
}

/// Exchange of smoke along each edge, small enough for the stability of the explicit scheme.
fn exchange(layout: &Layout, topology: &Topology, rules: &RulesConfig) -> Vec<f32> {
    let hazards = &rules.hazards;
    let share = |node: usize| 0.5 * layout.nodes[node].area_m2 / topology.neighbors(node).len() as f64;
    let flow = layout.edges.iter().map(|edge| {
        let leak = match (edge.door, edge.fire_door) {
            (_, true) => hazards.fire_door_leak,
            (true, _) => hazards.door_leak,
            _ => 1.0,
        };
        let flow = hazards.exchange_m_per_s * edge.width_m * leak * rules.timing.tick_secs;
        flow.min(share(edge.a)).min(share(edge.b)) as f32
    });
    flow.collect()
}

/// Refuses what cannot be held, before it is.
pub(crate) fn check_size(layout: &Layout) -> Result<(), EvacuationError> {
    let (nodes, people) = (layout.nodes.len(), layout.occupants.len());
    let gib = 8.0 * (nodes as f64).powi(2) / f64::from(1 << 30);
    let value = format!("{nodes}, whose times between all pairs take {gib:.1} GiB");
    field::rule(
        nodes <= MAX_NODES,
        format!("nodes of {}", layout.name),
        format!("must be at most {MAX_NODES}"),
        value,
    )?;
    field::rule(
        people <= MAX_PEOPLE,
        format!("people in {}", layout.name),
        format!("must be at most {MAX_PEOPLE}"),
        people,
    )?;
    Ok(())
}

/// Refuses ways and searches that take too many ticks to be counted.
fn check_times(layout: &Layout, timing: &Timing) -> Result<(), EvacuationError> {
    let check = |what: String, ticks: u32| match ticks > MAX_TICKS {
        false => Ok(()),
        true => {
            let (tick_secs, speed) = (timing.tick_secs, timing.speed_m_per_s);
            let rule = format!("must take at most {MAX_TICKS} ticks");
            let value = format!("{ticks} or more at {tick_secs:e} s per tick and {speed:e} m/s");
            Err(InvalidField::new(format!("{what} in {}", layout.name), rule, value).into())
        }
    };
    for edge in &layout.edges {
        let name = || format!("{}-{}", layout.nodes[edge.a].name, layout.nodes[edge.b].name);
        check(name(), timing.travel_ticks(edge, 1.0))?;
    }
    layout.nodes.iter().try_for_each(|node| check(format!("the search of {}", node.name), timing.search_ticks(node)))
}
