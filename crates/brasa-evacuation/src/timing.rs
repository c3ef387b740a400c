//! Durations of walking and searching.

use brasa_env::field;
use serde::{Deserialize, Serialize};

use crate::{Edge, EvacuationError, Node};

/// Time of walking along an edge.
///
/// ```
/// use brasa_evacuation::{Edge, Motion, Timing};
///
/// let way = Edge::new(0, 1, 30.0, 1.2);
/// let secs = |motion| Timing { motion, ..Timing::default() }.travel(&way);
/// assert_eq!([secs(Motion::Metric), secs(Motion::Hop)], [20.0, 1.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Motion {
    /// Length over speed, rounded up to whole ticks.
    #[default]
    Metric,
    /// One tick for any length of the edge.
    Hop,
}

/// Number of sweeps of a room.
///
/// ```
/// use brasa_evacuation::{Layout, Sweeps};
///
/// let daycare = Layout::daycare();
/// let nursery = daycare.nodes.iter().find(|node| node.high_risk).expect("there are nurseries");
/// assert_eq!([Sweeps::Once, Sweeps::ByRisk].map(|sweeps| sweeps.required(nursery, 2)), [1, 2]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sweeps {
    /// Every room once.
    Once,
    /// High-risk rooms by two different responders, the others once.
    #[default]
    ByRisk,
}

impl Sweeps {
    /// Number of sweeps, each by another responder, that `node` needs from a team of `n_responders`.
    pub fn required(self, node: &Node, n_responders: usize) -> usize {
        match (node.kind, self) {
            (crate::NodeKind::Room, Self::ByRisk) if node.high_risk => n_responders.min(2),
            (crate::NodeKind::Room, _) => 1,
            _ => 0,
        }
    }
}

/// Durations of walking and searching of a responder.
///
/// ```
/// use brasa_evacuation::{Edge, Timing};
///
/// let timing = Timing { speed_m_per_s: 2.0, ..Timing::default() };
/// timing.validate()?;
/// let way = Edge::new(0, 1, 7.0, 1.2);
/// // 3.5 s take four ticks of 1 s.
/// assert_eq!((timing.travel(&way), timing.travel_ticks(&way, 1.0)), (3.5, 4));
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timing {
    /// Model of walking. Default metric.
    pub motion: Motion,
    /// Length of a tick in s. Default 1; the hop model uses 5.
    pub tick_secs: f64,
    /// Speed of a responder on the level and in clear air, in m/s. Default 1.5.
    pub speed_m_per_s: f64,
    /// Time to search one m2, in s. Default 0.5.
    pub search_secs_per_m2: f64,
    /// Reduction of speed on a slope of 45 degrees, as a fraction, proportional to the slope. Default 0.5, which
    /// gives 0.61 of the speed on stairs of 35 degrees.
    pub slope_slowdown: f64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            motion: Motion::Metric,
            tick_secs: 1.0,
            speed_m_per_s: 1.5,
            search_secs_per_m2: 0.5,
            slope_slowdown: 0.5,
        }
    }
}

impl Timing {
    /// One tick of 5 s per edge.
    pub fn hops() -> Self {
        Self { motion: Motion::Hop, tick_secs: 5.0, ..Self::default() }
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// [`EvacuationError::Field`].
    pub fn validate(&self) -> Result<(), EvacuationError> {
        for (field, value) in [
            ("tick_secs", self.tick_secs),
            ("speed_m_per_s", self.speed_m_per_s),
            ("search_secs_per_m2", self.search_secs_per_m2),
        ] {
            field::rule(value > 0.0 && value.is_finite(), field, "must be positive", value)?;
        }
        field::rule(
            (0.0..1.0).contains(&self.slope_slowdown),
            "slope_slowdown",
            "must be in [0, 1)",
            self.slope_slowdown,
        )?;
        Ok(())
    }

    /// Factor on the speed on `edge`.
    pub fn slope_factor(&self, edge: &Edge) -> f64 {
        1.0 - self.slope_slowdown * (edge.slope_deg / 45.0).min(1.0)
    }

    /// Time to walk along `edge` in clear air, unrounded, in ticks in the hop model and in s otherwise.
    pub fn travel(&self, edge: &Edge) -> f64 {
        match self.motion {
            Motion::Hop => 1.0,
            Motion::Metric => edge.length_m / (self.speed_m_per_s * self.slope_factor(edge)),
        }
    }

    /// Ticks to walk along `edge` at a fraction `share` of the usual speed.
    pub fn travel_ticks(&self, edge: &Edge, share: f64) -> u32 {
        match self.motion {
            Motion::Hop => 1,
            // The slack avoids that a whole number of ticks is rounded up because of the last digit.
            Motion::Metric => (self.travel(edge) / share / self.tick_secs - 1e-9).ceil().max(1.0) as u32,
        }
    }

    /// Time to search `node`, unrounded, in the unit of [`Timing::travel`].
    pub fn search(&self, node: &Node) -> f64 {
        match self.motion {
            Motion::Hop => f64::from(self.search_ticks(node)),
            Motion::Metric => node.area_m2 * self.search_secs_per_m2,
        }
    }

    /// Ticks to search `node`.
    pub fn search_ticks(&self, node: &Node) -> u32 {
        let ticks = node.area_m2 * self.search_secs_per_m2 / self.tick_secs;
        match self.motion {
            Motion::Hop => ticks.round_ties_even().max(1.0) as u32,
            Motion::Metric => (ticks - 1e-9).ceil().max(1.0) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeKind;

    #[test]
    fn searches_and_hops_take_whole_ticks() {
        let node = |area_m2: f64| Node {
            name: "r".into(),
            kind: NodeKind::Room,
            area_m2,
            length_m: 4.0,
            floor: 0,
            high_risk: false,
            polygon: None,
        };
        for (area, hops, ticks) in [(16.0, 2, 8), (20.0, 2, 10), (24.0, 2, 12), (40.0, 4, 20), (10.0, 1, 5)] {
            assert_eq!(Timing::hops().search_ticks(&node(area)), hops, "{area} m2");
            assert_eq!(Timing::default().search_ticks(&node(area)), ticks, "{area} m2");
        }
    }
}
