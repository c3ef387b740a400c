//! Positions of stations and users.

use std::f64::consts::{PI, TAU};

use brasa_env::EnvRng;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::config::{Coverage, Spread, UaraConfig};
use crate::radio::dbm_to_mw;

/// Smallest distance at which the path loss models are valid.
pub(crate) const MIN_DISTANCE_M: f64 = 1.0;
/// Tolerance, so that a user on the edge of a cell is inside despite rounding.
pub(crate) const EDGE_M: f64 = 1e-6;

/// Positions, and the shadowing of each link.
///
/// ```
/// use brasa_env::named_rng;
/// use brasa_uara::{Layout, UaraConfig};
///
/// let config = UaraConfig::default();
/// let layout = Layout::draw(&config, &mut named_rng(0, "layout", 0));
/// assert_eq!((layout.stations_m.len(), layout.users_m.len()), (26, 30));
/// assert_eq!(layout.stations_m[0], config.layout.first_m);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Position of each station, m: large cells, then small cells on rings, then femtocells.
    pub stations_m: Vec<[f64; 2]>,
    /// Position of each user, m.
    pub users_m: Vec<[f64; 2]>,
    /// The large cell of each user.
    pub homes: Vec<u16>,
    /// `[n_users, n_stations]`: shadowing, dB; empty without.
    pub shadowing_db: Vec<f32>,
}

impl Layout {
    /// Samples a layout. Stations are sampled first, so that they do not depend on the number of users.
    pub fn draw(config: &UaraConfig, rng: &mut EnvRng) -> Self {
        let layout = &config.layout;
        let [macros, picos, femtos] = config.tiers().map(|tier| tier.count);
        let center = |i: usize| [layout.first_m[0] + layout.spacing_m * i as f64, layout.first_m[1]];
        let mut stations_m: Vec<[f64; 2]> = (0..macros).map(center).collect();
        stations_m.extend((0..picos).map(|i| {
            let angle = (i % 4) as f64 * PI / 2.0;
            let [x, y] = center(i / 4);
            [x + layout.ring_m * angle.cos(), y + layout.ring_m * angle.sin()]
        }));
        let mut anywhere = || {
            let home = rng.random_range(0..macros as u32) as usize;
            (home as u16, around(config, center(home), rng))
        };
        stations_m.extend((0..femtos).map(|_| anywhere().1));
        let (homes, users_m): (Vec<u16>, Vec<[f64; 2]>) = (0..config.users).map(|_| anywhere()).unzip();
        let n_links = if config.dynamics.shadowing_db > 0.0 { users_m.len() * stations_m.len() } else { 0 };
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        let shadowing_db = (0..n_links).map(|_| (config.dynamics.shadowing_db * normal()) as f32).collect();
        Self { stations_m, users_m, homes, shadowing_db }
    }

    /// A random destination of `user`.
    pub fn waypoint(&self, config: &UaraConfig, user: usize, rng: &mut EnvRng) -> [f64; 2] {
        around(config, self.stations_m[usize::from(self.homes[user])], rng)
    }

    /// The mean power that every user receives from every station, mW, and whether the station can serve it.
    ///
    /// # Shapes
    /// - `received_mw`, `reached`: `[n_users, n_stations]`; the power is 0 if the station does not interfere
    ///
    /// # Panics
    /// If a length does not fit.
    pub fn links(&self, config: &UaraConfig, received_mw: &mut [f64], reached: &mut [bool]) {
        let n_stations = self.stations_m.len();
        assert!(received_mw.len() == self.users_m.len() * n_stations, "one power per user and station");
        assert!(reached.len() == received_mw.len(), "one flag per user and station");
        let nearest = if config.parity.unguarded_distance { 0.0 } else { MIN_DISTANCE_M };
        for (user, at) in self.users_m.iter().enumerate() {
            for (station, (tier, place)) in config.station_tiers().zip(&self.stations_m).enumerate() {
                let link = user * n_stations + station;
                let distance = (at[0] - place[0]).hypot(at[1] - place[1]);
                let inside = distance <= tier.radius_m + EDGE_M;
                let shadowing = self.shadowing_db.get(link).map_or(0.0, |db| f64::from(*db));
                reached[link] = inside || config.coverage == Coverage::Open;
                received_mw[link] = match config.coverage {
                    Coverage::Everything if !inside => 0.0,
                    _ => dbm_to_mw(tier.transmit_dbm - tier.path_loss.db(distance.max(nearest)) - shadowing),
                };
            }
        }
    }
}

/// A random point around a large cell.
fn around(config: &UaraConfig, center: [f64; 2], rng: &mut EnvRng) -> [f64; 2] {
    let share: f64 = rng.random();
    let radius = config.macro_cells.radius_m
        * match config.layout.spread {
            Spread::Uniform => share.sqrt(),
            Spread::Center => share,
        };
    let angle = rng.random::<f64>() * TAU - PI;
    [center[0] + radius * angle.cos(), center[1] + radius * angle.sin()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_env::named_rng;

    #[test]
    fn stations_stand_where_the_topology_says() {
        let layout = Layout::draw(&UaraConfig::cly2020(), &mut named_rng(0, "test", 0));
        assert_eq!(layout.stations_m[..2], [[500.0, 500.0], [1400.0, 500.0]]);
        let near = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]) < 1e-9;
        assert!(near(layout.stations_m[2], [750.0, 500.0]) && near(layout.stations_m[3], [500.0, 750.0]));
        assert!(near(layout.stations_m[9], [1400.0, 250.0]));
        assert_eq!((layout.stations_m.len(), layout.users_m.len()), (26, 30));
    }

    #[test]
    fn more_users_leave_stations_in_place_and_everybody_is_covered() {
        let config = UaraConfig::cly2020();
        let crowd = UaraConfig { users: 400, ..config.clone() };
        let draw = |config: &UaraConfig| Layout::draw(config, &mut named_rng(3, "test", 0));
        let layout = draw(&crowd);
        assert_eq!(layout.stations_m, draw(&config).stations_m);
        let (mut received, mut reached) = (vec![0.0; 400 * 26], vec![false; 400 * 26]);
        layout.links(&crowd, &mut received, &mut reached);
        assert!(reached.chunks(26).zip(&layout.homes).all(|(row, home)| row[usize::from(*home)]));
        assert!(received.iter().zip(&reached).all(|(power, reached)| (*power > 0.0) == *reached));
    }

    #[test]
    fn positions_spread_as_they_should() {
        let share_within_half = |spread: Spread| {
            let mut config = UaraConfig { users: 4000, ..UaraConfig::cly2020() };
            config.layout.spread = spread;
            let layout = Layout::draw(&config, &mut named_rng(1, "test", 0));
            let inside = layout.users_m.iter().zip(&layout.homes).filter(|(at, home)| {
                let center = layout.stations_m[usize::from(**home)];
                (at[0] - center[0]).hypot(at[1] - center[1]) < 250.0
            });
            inside.count() as f64 / 4000.0
        };
        assert!((share_within_half(Spread::Center) - 0.5).abs() < 0.03);
        assert!((share_within_half(Spread::Uniform) - 0.25).abs() < 0.03);
    }
}
