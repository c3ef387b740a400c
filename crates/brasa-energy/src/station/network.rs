//! The tree of splitters: power flows from sockets, battery and PV to the grid, and the limits on the way.
//!
//! Power is positive towards the leaves. For a node with efficiency `eta`, `near` is its power at the side of the grid and
//! `far` the sum of what is connected to it:
//!
//! ```text
//! far  = taken - given                      (demand and supply of children, sockets, battery, PV)
//! near = far / eta if far > 0, else far eta
//! kept = near clipped to [-limit, limit]    excess += |near| - |kept|
//! ```
//!
//! The first pass goes from the leaves to the root, so that a parent gets only what its children keep. If anything was
//! clipped, a second pass goes back: a node whose power is reduced scales all its demand (or, if it feeds back too much,
//! all its supply) by one factor and leaves the other direction as it is.

use super::config::{LimitMode, StationConfig};

/// The constants of one node; groups of sockets are nodes without losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Node {
    pub(crate) parent: usize,
    pub(crate) limit_kw: f64,
    /// Largest power back to the grid.
    pub(crate) back_limit_kw: f64,
    pub(crate) efficiency: f64,
    pub(crate) inverse_efficiency: f64,
}

/// The nodes, parents first: splitters, then groups of sockets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<Node>,
    n_splitters: usize,
    curtails: bool,
    /// The nodes of battery and PV.
    pub(crate) battery_node: usize,
    pub(crate) pv_node: usize,
}

/// The powers at one node, in kW; scratch of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Powers {
    /// Demand at the far side.
    pub(crate) taken_kw: f64,
    /// Supply at the far side.
    pub(crate) given_kw: f64,
    /// Power at the near side: first what was asked, then what flows.
    near_kw: f64,
    /// Factor on the demand.
    pub(crate) take: f64,
    /// Factor on the supply.
    pub(crate) give: f64,
}

/// What flows through the root.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Root {
    /// Power from the grid, negative when fed back.
    pub(crate) grid_kw: f64,
    /// Sum over the nodes of the power above their limits.
    pub(crate) excess_kw: f64,
    /// Losses of all nodes.
    pub(crate) lost_kw: f64,
}

impl Network {
    /// The tree of a validated `config`.
    pub(crate) fn new(config: &StationConfig) -> Self {
        let index = |name: &Option<String>| {
            let name = name.as_deref();
            name.and_then(|name| config.nodes.iter().position(|node| node.name == name)).unwrap_or(0)
        };
        let splitters = config.nodes.iter().enumerate().map(|(i, node)| {
            let limit_kw = node.power_kw();
            let export_kw = config.prices.export_limit_kw.filter(|_| i == 0);
            Node {
                parent: index(&node.parent),
                limit_kw,
                back_limit_kw: export_kw.map_or(limit_kw, |export_kw| export_kw.min(limit_kw)),
                efficiency: node.efficiency,
                inverse_efficiency: 1.0 / node.efficiency,
            }
        });
        let groups = config.sockets.iter().map(|group| {
            let limit_kw = group.limit_kw.unwrap_or(f64::INFINITY);
            let parent = index(&Some(group.parent.clone()));
            Node { parent, limit_kw, back_limit_kw: limit_kw, efficiency: 1.0, inverse_efficiency: 1.0 }
        });
        Self {
            nodes: splitters.chain(groups).collect(),
            n_splitters: config.nodes.len(),
            curtails: config.limits == LimitMode::Curtail,
            battery_node: index(&config.battery.parent),
            pv_node: index(&config.pv.parent),
        }
    }

    pub(crate) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a group of sockets.
    pub(crate) fn group_node(&self, group: usize) -> usize {
        self.n_splitters + group
    }

    /// Largest power from the grid, in kW.
    pub(crate) fn grid_limit_kw(&self) -> f64 {
        self.nodes[0].limit_kw
    }

    /// Turns demand and supply at every node into flows and factors within the limits.
    ///
    /// `powers` has one entry per node with `taken_kw` and `given_kw` of what is directly connected to it, without other
    /// nodes; afterwards these include the kept power of its children.
    pub(crate) fn flow(&self, powers: &mut [Powers]) -> Root {
        assert_eq!(powers.len(), self.nodes.len(), "one entry per node");
        let mut root = Root::default();
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let far_kw = powers[i].taken_kw - powers[i].given_kw;
            let near_kw = if far_kw > 0.0 { far_kw * node.inverse_efficiency } else { far_kw * node.efficiency };
            let kept_kw = near_kw.clamp(-node.back_limit_kw, node.limit_kw);
            root.excess_kw += (near_kw - kept_kw).abs();
            let kept_kw = if self.curtails { kept_kw } else { near_kw };
            powers[i].near_kw = kept_kw;
            root.lost_kw += near_kw - far_kw;
            if i > 0 {
                let parent = &mut powers[node.parent];
                parent.taken_kw += kept_kw.max(0.0);
                parent.given_kw += (-kept_kw).max(0.0);
            }
        }
        if root.excess_kw == 0.0 || !self.curtails {
            powers.iter_mut().for_each(|power| (power.take, power.give) = (1.0, 1.0));
        } else {
            root.lost_kw = self.distribute(powers);
        }
        root.grid_kw = powers[0].near_kw;
        root
    }

    /// The second pass: factors from the root to the leaves; returns the losses.
    fn distribute(&self, powers: &mut [Powers]) -> f64 {
        let mut lost_kw = 0.0;
        for (i, node) in self.nodes.iter().enumerate() {
            let mut near_kw = powers[i].near_kw;
            if i > 0 {
                let parent = &powers[node.parent];
                near_kw *= if near_kw > 0.0 { parent.take } else { parent.give };
            }
            let far_kw = if near_kw > 0.0 { near_kw * node.efficiency } else { near_kw * node.inverse_efficiency };
            let power = &mut powers[i];
            // One factor, of the direction that prevails; selections instead of branches, because neither can be
            // predicted. Without a limit here or above it is 1 but for rounding; 0 / 0 is a node without power.
            let takes = power.taken_kw > power.given_kw;
            let left_kw = if takes { far_kw + power.given_kw } else { power.taken_kw - far_kw };
            let asked_kw = if takes { power.taken_kw } else { power.given_kw };
            let factor = (left_kw / asked_kw).min(1.0);
            (power.take, power.give) = if takes { (factor, 1.0) } else { (1.0, factor) };
            power.near_kw = near_kw;
            lost_kw += near_kw - far_kw;
        }
        lost_kw
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::config::NodeConfig;
    use super::*;

    /// The layout of Chargax: grid 200, hub 650, fast 600, slow 50, then groups of 300, 300 and 11.5 kW.
    fn chargax() -> (Network, Vec<Powers>) {
        let network = Network::new(&StationConfig::chargax());
        let powers = vec![Powers::default(); network.n_nodes()];
        (network, powers)
    }

    #[test]
    fn what_fits_flows_unchanged_and_only_loses() {
        let (network, mut powers) = chargax();
        powers[4].taken_kw = 100.0;
        powers[6].taken_kw = 10.0;
        let root = network.flow(&mut powers);
        let eta = 0.995_f64;
        assert!((root.grid_kw - 110.0 / (eta * eta)).abs() < 1e-12, "{root:?}");
        assert!((root.lost_kw - (root.grid_kw - 110.0)).abs() < 1e-12);
        assert_eq!(root.excess_kw, 0.0);
        assert!(powers.iter().all(|power| (power.take, power.give) == (1.0, 1.0)));
    }

    #[test]
    fn limits_bind_from_the_leaves_to_the_root() {
        let (network, mut powers) = chargax();
        powers[4].taken_kw = 400.0;
        powers[5].taken_kw = 100.0;
        let root = network.flow(&mut powers);
        // The group keeps 300 of 400; the grid keeps 200 of 400 / eta^2.
        let wanted_kw = 400.0 / 0.995_f64.powi(2);
        assert!((root.grid_kw - 200.0).abs() < 1e-12);
        assert!((root.excess_kw - (100.0 + wanted_kw - 200.0)).abs() < 1e-9);
        let share = 200.0 / wanted_kw;
        assert!((powers[4].take - 0.75 * share).abs() < 1e-12 && (powers[5].take - share).abs() < 1e-12);
        let delivered_kw = 400.0 * powers[4].take + 100.0 * powers[5].take;
        assert!((root.grid_kw - root.lost_kw - delivered_kw).abs() < 1e-9);
    }

    #[test]
    fn supply_below_a_limit_relieves_it() {
        let (network, mut powers) = chargax();
        powers[4].taken_kw = 300.0;
        powers[1].given_kw = 150.0;
        let root = network.flow(&mut powers);
        assert!((root.grid_kw - (300.0 / 0.995 - 150.0) / 0.995).abs() < 1e-12);
        assert_eq!((root.excess_kw, powers[4].take), (0.0, 1.0));
        // Too much supply is reduced, the demand is served in full.
        let mut powers = vec![Powers::default(); network.n_nodes()];
        powers[4].taken_kw = 50.0;
        powers[1].given_kw = 500.0;
        let root = network.flow(&mut powers);
        assert!((root.grid_kw + 200.0).abs() < 1e-12);
        assert!((powers[4].take - 1.0).abs() < 1e-12);
        assert!((500.0 * powers[1].give - 50.0 / 0.995 - 200.0 / 0.995).abs() < 1e-9);
    }

    /// The power of node `i` at the side of the grid, by recursion over the leaves after their factors.
    fn near_kw(network: &Network, leaves: &[(f64, f64)], powers: &[Powers], i: usize) -> f64 {
        let children = (i + 1..network.nodes.len()).filter(|child| network.nodes[*child].parent == i);
        let from_children: f64 = children.map(|child| near_kw(network, leaves, powers, child)).sum();
        let far_kw = leaves[i].0 * powers[i].take - leaves[i].1 * powers[i].give + from_children;
        if far_kw > 0.0 { far_kw / network.nodes[i].efficiency } else { far_kw * network.nodes[i].efficiency }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn every_limit_of_any_tree_is_kept(
            nodes in prop::collection::vec((any::<prop::sample::Index>(), 0.0..100.0, 0.5..1.0), 1..9),
            leaves in prop::collection::vec((0.0..80.0, 0.0..80.0), 9),
        ) {
            let nodes: Vec<Node> = nodes
                .iter()
                .enumerate()
                .map(|(i, (parent, limit_kw, efficiency))| Node {
                    parent: if i == 0 { 0 } else { parent.index(i) },
                    limit_kw: *limit_kw,
                    back_limit_kw: 0.5 * limit_kw,
                    efficiency: *efficiency,
                    inverse_efficiency: 1.0 / efficiency,
                })
                .collect();
            let network = Network { nodes, n_splitters: 1, curtails: true, battery_node: 0, pv_node: 0 };
            let mut powers: Vec<Powers> = (0..network.n_nodes())
                .map(|i| Powers { taken_kw: leaves[i].0, given_kw: leaves[i].1, ..Powers::default() })
                .collect();
            let unlimited = vec![Powers { take: 1.0, give: 1.0, ..Powers::default() }; network.n_nodes()];
            let root = network.flow(&mut powers);
            let mut fits = true;
            for (i, node) in network.nodes.iter().enumerate() {
                let kw = near_kw(&network, &leaves, &powers, i);
                prop_assert!(kw <= node.limit_kw + 1e-9 && kw >= -node.back_limit_kw - 1e-9, "node {i}: {kw} kW");
                prop_assert!((0.0..=1.0).contains(&powers[i].take) && (0.0..=1.0).contains(&powers[i].give));
                let asked_kw = near_kw(&network, &leaves, &unlimited, i);
                fits &= asked_kw <= node.limit_kw && asked_kw >= -node.back_limit_kw;
            }
            prop_assert!((near_kw(&network, &leaves, &powers, 0) - root.grid_kw).abs() < 1e-9);
            // Nothing is reduced where everything fits, and something is where not.
            prop_assert_eq!(fits, root.excess_kw == 0.0);
            prop_assert_eq!(fits, powers.iter().all(|power| power.take > 1.0 - 1e-12 && power.give > 1.0 - 1e-12));
        }
    }

    #[test]
    fn a_limit_that_is_not_kept_is_reported() {
        let mut config = StationConfig { limits: LimitMode::Penalize, ..StationConfig::chargax() };
        config.nodes.truncate(1);
        config.sockets.truncate(1);
        (config.sockets[0].parent, config.battery.parent) = ("grid".into(), None);
        config.nodes[0] = NodeConfig::new("grid", None, 100.0, 1.0);
        let network = Network::new(&config);
        let mut powers = vec![Powers::default(); 2];
        powers[1].taken_kw = 400.0;
        let root = network.flow(&mut powers);
        assert_eq!((root.grid_kw, root.excess_kw, powers[1].take), (400.0, 100.0 + 300.0, 1.0));
    }
}
