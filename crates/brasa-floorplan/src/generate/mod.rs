//! Random buildings.

mod bsp;
mod comb;
mod draw;
mod grid;
mod hub;
mod plane;

use serde::{Deserialize, Serialize};

use self::draw::{Draw, Size};
use crate::builder::Builder;
use crate::error::field_error;
use crate::{FloorPlanError, Layout, Mobility, NodeKind};

/// Kinds of random buildings.
///
/// ```
/// use brasa_floorplan::{Family, GeneratorConfig, generate};
///
/// let config = GeneratorConfig::default();
/// for family in Family::ALL {
///     let building = generate(family, &config, 7)?;
///     assert_eq!(building.name, format!("{}-7", family.name()));
/// }
/// # Ok::<(), brasa_floorplan::FloorPlanError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Rooms on both sides of corridors.
    Comb,
    /// Rooms around a room in their middle.
    Hub,
    /// Rooms between a grid of aisles.
    Grid,
    /// A rectangle divided into corridors and rooms.
    Bsp,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 4] = [Family::Comb, Family::Hub, Family::Grid, Family::Bsp];

    /// Name in configs and in names of buildings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comb => "comb",
            Self::Hub => "hub",
            Self::Grid => "grid",
            Self::Bsp => "bsp",
        }
    }
}

/// The purpose of a building. Splits share no building.
///
/// ```
/// use brasa_floorplan::{GeneratorConfig, Split};
///
/// let config = GeneratorConfig::default();
/// let most = config.nodes[1];
/// assert!(config.layout(Split::Train, 3)?.nodes.len() <= most);
/// assert!(config.layout(Split::Larger, 3)?.nodes.len() >= 2 * most);
/// assert_ne!(Split::Train.seed(3), Split::HeldOut.seed(3));
/// # Ok::<(), brasa_floorplan::FloorPlanError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Training.
    Train,
    /// Unseen buildings of the training families.
    HeldOut,
    /// A family that is not in training.
    HeldOutFamily,
    /// The training families, with two to four times as many nodes as the largest training building.
    Larger,
}

impl Split {
    /// All of them.
    pub const ALL: [Split; 4] = [Split::Train, Split::HeldOut, Split::HeldOutFamily, Split::Larger];

    /// Name in configs and in names of buildings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::HeldOut => "held-out",
            Self::HeldOutFamily => "held-out-family",
            Self::Larger => "larger",
        }
    }

    /// Seed of building `index`; seeds of different splits are different.
    ///
    /// # Panics
    /// If `index` has more than 56 bits.
    pub fn seed(self, index: u64) -> u64 {
        assert!(index < 1 << 56, "building {index} of a split: there are 2^56");
        (self as u64) << 56 | index
    }
}

/// Settings of the generators.
///
/// ```
/// use brasa_floorplan::{GeneratorConfig, NodeKind, Split};
///
/// let config: GeneratorConfig = toml::from_str("nodes = [20, 30]\nfloors = [1, 1]\nexits = [2, 2]")?;
/// config.validate()?;
/// let building = config.layout(Split::Train, 7)?;
/// assert!(building.nodes.iter().all(|node| node.floor == 0));
/// assert_eq!(building.of_kind(NodeKind::Exit).count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GeneratorConfig {
    /// Families of training. Default comb, hub and grid.
    pub families: Vec<Family>,
    /// The family of [`Split::HeldOutFamily`]; not one of `families`. Default bsp.
    pub held_out_family: Family,
    /// Smallest and largest number of nodes, in 10..=250. Default 12 to 60, from slightly more than the office to
    /// slightly more than the daycare center, so that [`Split::Larger`] is below 250.
    pub nodes: [usize; 2],
    /// Smallest and largest number of floors, in 1..=8; fewer if there are too few `nodes`. Default 1 to 3.
    pub floors: [usize; 2],
    /// Smallest and largest number of exits, in 1..=6; fewer for a ground floor with less than four nodes per exit.
    /// Default 1 to 4.
    pub exits: [usize; 2],
    /// Smallest and largest number of people per room. Default 0 to 2.
    pub occupants_per_room: [usize; 2],
    /// Fractions of adults, children and people of limited mobility; only their ratios are used. Default 0.8,
    /// 0.1, 0.1.
    pub mobility: [f64; 3],
    /// Fraction of high-risk rooms, in [0, 1]. Default 0.2, between the office (0) and the daycare center (0.7).
    pub high_risk_share: f64,
    /// Fraction of fire doors among doors, in [0, 1]. Default 0.1.
    pub fire_door_share: f64,
    /// Smallest and largest side of a room, in m, from 2 to 30 and in steps of 0.1. Default 3 to 7.
    pub room_side_m: [f64; 2],
    /// Smallest and largest width of a corridor, in m, from 1.6 to 10 and in steps of 0.1. Default 1.8 to 3.
    pub hall_width_m: [f64; 2],
}

impl Default for GeneratorConfig {
    fn default() -> Self {
        Self {
            families: vec![Family::Comb, Family::Hub, Family::Grid],
            held_out_family: Family::Bsp,
            nodes: [12, 60],
            floors: [1, 3],
            exits: [1, 4],
            occupants_per_room: [0, 2],
            mobility: [0.8, 0.1, 0.1],
            high_risk_share: 0.2,
            fire_door_share: 0.1,
            room_side_m: [3.0, 7.0],
            hall_width_m: [1.8, 3.0],
        }
    }
}

impl GeneratorConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// [`FloorPlanError::Field`].
    pub fn validate(&self) -> Result<(), FloorPlanError> {
        if self.families.is_empty() {
            return Err(field_error("families", "must name at least one", "none"));
        }
        if self.families.contains(&self.held_out_family) {
            return Err(field_error("held_out_family", "must not be one of `families`", self.held_out_family.name()));
        }
        let whole = [
            ("nodes", self.nodes, [10, 250]),
            ("floors", self.floors, [1, 8]),
            ("exits", self.exits, [1, 6]),
            ("occupants_per_room", self.occupants_per_room, [0, 100]),
        ];
        for (field, [least, most], [low, high]) in whole {
            if !(low <= least && least <= most && most <= high) {
                let rule = format!("must be an ascending pair from {low} to {high}");
                return Err(field_error(field, &rule, format!("{least} and {most}")));
            }
        }
        let lengths =
            [("room_side_m", self.room_side_m, [2.0, 30.0]), ("hall_width_m", self.hall_width_m, [1.6, 10.0])];
        for (field, [least, most], [low, high]) in lengths {
            if !(low <= least && least <= most && most <= high) {
                let rule = format!("must be an ascending pair from {low} to {high}");
                return Err(field_error(field, &rule, format!("{least} and {most}")));
            }
        }
        for (field, share) in [("high_risk_share", self.high_risk_share), ("fire_door_share", self.fire_door_share)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(field_error(field, "must be in [0, 1]", share));
            }
        }
        let shares = self.mobility;
        let total: f64 = shares.iter().sum();
        if !(shares.iter().all(|share| *share >= 0.0) && total > 0.0 && total.is_finite()) {
            return Err(field_error("mobility", "must be shares, not all of them 0", format!("{shares:?}")));
        }
        let needed = Size::least_nodes(self.floors[0], self.exits[0]);
        if self.nodes[0] < needed {
            let rule =
                format!("must begin at {needed} or more for {} floors and {} exits", self.floors[0], self.exits[0]);
            return Err(field_error("nodes", &rule, self.nodes[0]));
        }
        Ok(())
    }

    /// Building `index` of a split; the index cycles over the families.
    ///
    /// # Errors
    /// As [`GeneratorConfig::validate`].
    pub fn layout(&self, split: Split, index: u64) -> Result<Layout, FloorPlanError> {
        self.validate()?;
        let family = match split {
            Split::HeldOutFamily => self.held_out_family,
            _ => self.families[(index % self.families.len() as u64) as usize],
        };
        let nodes = match split {
            Split::Larger => [2 * self.nodes[1], 4 * self.nodes[1]],
            _ => self.nodes,
        };
        let name = format!("{}-{}-{index}", split.name(), family.name());
        Ok(build(&name, family, self, nodes, split.seed(index)))
    }
}

/// The building of `family` and `seed`.
///
/// Random buildings: unlimited, reproducible, and separate for training and evaluation.
///
/// There are four families, each modeled on a kind of building:
///
/// - [`Family::Comb`]: an office; rooms on both sides of one or several corridors;
/// - [`Family::Hub`]: a daycare center; rooms along a corridor and a room in the middle with doors to most of them;
/// - [`Family::Grid`]: a warehouse; a grid of aisles with rooms between them;
/// - [`Family::Bsp`]: a rectangle divided recursively by corridors and then by walls.
///
/// All except hubs have outlines in m: no two places of a floor overlap, and connected places share a
/// wall. Lengths are whole decimeters and all operations round equally on every machine, so a seed
/// gives the same building everywhere.
///
/// A [`Split`] has separate buildings for every purpose:
///
/// ```
/// use brasa_floorplan::{GeneratorConfig, Split};
///
/// let config = GeneratorConfig::default();
/// let seen = config.layout(Split::Train, 7)?;
/// let unseen = config.layout(Split::HeldOut, 7)?;
/// assert_ne!(seen.nodes.len() + seen.edges.len(), 0);
/// assert_ne!(seen, unseen);
/// # Ok::<(), brasa_floorplan::FloorPlanError>(())
/// ```
///
/// # Errors
/// As [`GeneratorConfig::validate`].
pub fn generate(family: Family, config: &GeneratorConfig, seed: u64) -> Result<Layout, FloorPlanError> {
    config.validate()?;
    Ok(build(&format!("{}-{seed}", family.name()), family, config, config.nodes, seed))
}

fn build(name: &str, family: Family, config: &GeneratorConfig, nodes: [usize; 2], seed: u64) -> Layout {
    let mut draw = Draw::new(seed, family as u64);
    let size = Size::draw(family, config, nodes, &mut draw);
    let mut plan = Builder::new(name);
    let exits = match family {
        Family::Comb => comb::build(&mut plan, config, &size, &mut draw),
        Family::Hub => hub::build(&mut plan, config, &size, &mut draw),
        Family::Grid => grid::build(&mut plan, config, &size, &mut draw),
        Family::Bsp => bsp::build(&mut plan, config, &size, &mut draw),
    };
    finish(plan, config, exits, &mut draw)
}

/// Marks rooms and doors, adds people, and chooses the entries of responders.
fn finish(mut plan: Builder, config: &GeneratorConfig, mut exits: Vec<usize>, draw: &mut Draw) -> Layout {
    for door in plan.edges().filter(|edge| edge.door) {
        door.fire_door = draw.chance(config.fire_door_share);
    }
    for room in 0..plan.len() {
        if plan.at(room).kind != NodeKind::Room {
            continue;
        }
        plan.at(room).high_risk = draw.chance(config.high_risk_share);
        let [least, most] = config.occupants_per_room;
        for _ in 0..draw.between(least, most) {
            let mobility = Mobility::ALL[draw.weighted(&config.mobility)];
            plan.occupant(room, mobility, 100.0);
        }
    }
    draw.shuffle(&mut exits);
    exits.truncate(draw.between(1, exits.len()));
    plan.finish(exits)
}
