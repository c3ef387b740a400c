//! Random choices, and the size of a building.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Family, GeneratorConfig};

/// A stream of random integers, the same on every machine.
pub(super) struct Draw {
    rng: ChaCha8Rng,
}

/// The part of the key that separates buildings from other streams of a seed: FNV-1a of `layout`, with the top bit set,
/// as in `named_rng` of `brasa-env`. It must not change, so that a seed keeps its building.
const LANE: u64 = 0x9c4f_784a_a5ce_135f;
/// Resolution of probabilities: 1e-6.
const SHARE_STEPS: f64 = 1e6;

impl Draw {
    /// The random choices of one building; the streams of a seed are independent.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&LANE.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(stream);
        Self { rng }
    }

    /// A number from `least` to `most`, inclusive.
    pub(super) fn between(&mut self, least: usize, most: usize) -> usize {
        self.rng.random_range(least as u32..=most as u32) as usize
    }

    /// A length from a range in m, in decimeters.
    pub(super) fn decimeters(&mut self, [least, most]: [f64; 2]) -> i32 {
        let (least, most) = ((least * 10.0).round() as u32, (most * 10.0).round() as u32);
        self.rng.random_range(least..=most) as i32
    }

    /// True with probability `share`.
    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.rng.random_range(0..SHARE_STEPS as u32) < (share * SHARE_STEPS).round() as u32
    }

    /// An index, by weights that are not all 0.
    pub(super) fn weighted(&mut self, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        let place = self.rng.random_range(0..SHARE_STEPS as u32);
        let mut sum = 0.0;
        let mut last = 0;
        for (index, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            sum += weight;
            last = index;
            if place < (sum / total * SHARE_STEPS).round() as u32 {
                break;
            }
        }
        last
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.between(0, place));
        }
    }
}

/// The numbers of nodes of a building by kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Size {
    /// Rooms and halls of every floor, from the ground floor up: at least 5, on the ground floor at least 3 per
    /// exit.
    pub(super) floors: Vec<usize>,
    /// Exits, on the ground floor.
    pub(super) exits: usize,
    /// Stairwells, each with a node on every floor; 0 on a single floor.
    pub(super) stairwells: usize,
}

impl Size {
    /// Smallest number of nodes for a number of floors and exits.
    pub(super) fn least_nodes(floors: usize, exits: usize) -> usize {
        floors * Self::least_per_floor(exits) + exits
    }

    /// Rooms, halls and a stairwell.
    fn least_per_floor(exits: usize) -> usize {
        1 + 5.max(4 * exits)
    }

    /// Samples a size with a number of nodes in `nodes`.
    pub(super) fn draw(family: Family, config: &GeneratorConfig, nodes: [usize; 2], draw: &mut Draw) -> Self {
        let n_nodes = draw.between(nodes[0], nodes[1]);
        let most_floors = (n_nodes - config.exits[0]) / Self::least_per_floor(config.exits[0]);
        let n_floors = draw.between(config.floors[0], config.floors[1].min(most_floors).max(config.floors[0]));
        // A hub has its stairs in the corridor.
        let stairwells = match (n_floors, family) {
            (1, _) | (_, Family::Hub) => 0,
            _ if n_nodes >= 15 * n_floors => draw.between(1, 2),
            _ => 1,
        };
        let inside = n_nodes - stairwells * n_floors;
        let most_exits = config.exits[1].min(inside / n_floors / 4).max(config.exits[0]);
        let exits = draw.between(config.exits[0], most_exits);
        let rest = inside - exits;
        let floors = (0..n_floors).map(|floor| rest / n_floors + usize::from(floor < rest % n_floors)).collect();
        Self { floors, exits, stairwells }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_their_promises() {
        let mut config = GeneratorConfig { nodes: [10, 250], floors: [1, 8], exits: [1, 6], ..Default::default() };
        let mut draw = Draw::new(0, 0);
        let mut seen_floors = [0; 9];
        let mut seen_exits = [0; 7];
        for case in 0..4000 {
            if case == 2000 {
                // The smallest valid range.
                config.floors = [3, 3];
                config.exits = [2, 2];
                config.nodes = [Size::least_nodes(3, 2); 2];
                config.validate().unwrap();
            }
            let family = Family::ALL[case % 4];
            let size = Size::draw(family, &config, config.nodes, &mut draw);
            let total = size.floors.iter().sum::<usize>() + size.exits + size.stairwells * size.floors.len();
            assert!((config.nodes[0]..=config.nodes[1]).contains(&total), "{size:?}");
            assert!((config.floors[0]..=config.floors[1]).contains(&size.floors.len()), "{size:?}");
            assert!((config.exits[0]..=config.exits[1]).contains(&size.exits), "{size:?}");
            assert!(size.floors.iter().all(|nodes| *nodes >= 5) && size.floors[0] >= 3 * size.exits, "{size:?}");
            seen_floors[size.floors.len()] += 1;
            seen_exits[size.exits] += 1;
        }
        assert!(seen_floors[1..].iter().chain(&seen_exits[1..]).all(|n| *n > 0), "{seen_floors:?} {seen_exits:?}");
    }

    #[test]
    fn choices_follow_their_shares() {
        let mut draw = Draw::new(0, 1);
        let mut counts = [0; 3];
        (0..10_000).for_each(|_| counts[draw.weighted(&[3.0, 0.0, 1.0])] += 1);
        assert!(counts[1] == 0 && (7300..7700).contains(&counts[0]), "{counts:?}");
        let hits = (0..10_000).filter(|_| draw.chance(0.25)).count();
        assert!((2300..2700).contains(&hits), "{hits}");
        assert!((0..100).all(|_| draw.chance(1.0) && !draw.chance(0.0)));
        assert!((0..100).all(|_| (18..=20).contains(&draw.decimeters([1.8, 2.0]))));
    }
}
