//! Positions of stations and users on a device, and their changes.

use std::f64::consts::{PI, TAU};

use brasa_core::Draws;
use burn::tensor::{Device, Tensor};

use super::{column, matrix};
use crate::channel::fading_correlation;
use crate::config::{Redraw, Spread, UaraConfig};
use crate::layout::Layout;

/// Walking users. Every tensor has a row per environment; positions are relative to the first large cell, x before y.
///
/// A user walks on a straight leg at a constant speed. Its position is computed from the number of steps on the leg: a sum of small
/// steps would lose digits.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    /// `[n_envs, 2 * stations]`.
    pub stations_m: Tensor<2>,
    /// Distance of the large cell of each user from the first one, m, `[n_envs, users]`.
    pub homes_m: Tensor<2>,
    /// dB, `[n_envs, users * stations]`.
    pub shadowing_db: Option<Tensor<2>>,
    /// Start of the leg, `[n_envs, 2 * users]`.
    pub from_m: Tensor<2>,
    /// End of the leg, `[n_envs, 2 * users]`.
    pub to_m: Tensor<2>,
    /// Steps on the leg, `[n_envs, users]`.
    pub steps: Tensor<2>,
    /// Amplitudes of links, `[n_envs, 2 * users * stations]`, real parts before imaginary ones.
    pub amplitudes: Option<Tensor<2>>,
}

/// Positions of a layout, as in [`Walk`]; a row per environment, or one for all.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub stations_m: Tensor<2>,
    pub users_m: Tensor<2>,
    pub homes_m: Tensor<2>,
    pub shadowing_db: Option<Tensor<2>>,
}

/// The rules of positions.
#[derive(Debug, Clone)]
pub(super) struct Topology {
    n_users: usize,
    n_stations: usize,
    n_macros: usize,
    n_femtos: usize,
    spacing_m: f64,
    radius_m: f64,
    spread: Spread,
    shadowing_db: f64,
    /// Distance of a step, m.
    reach_m: f64,
    correlation: f64,
    /// Positions of large and small cells, `[1, 2 * n]`.
    fixed_m: Tensor<2>,
    /// The layout, if it is never sampled again.
    constant: Option<Places>,
}

impl Places {
    fn new(layout: &Layout, config: &UaraConfig, device: &Device) -> Self {
        let [x, y] = config.layout.first_m;
        let axes = |places: &[[f64; 2]]| {
            let axis = |i: usize, origin: f64| places.iter().map(move |at| at[i] - origin).collect::<Vec<_>>();
            matrix([axis(0, x), axis(1, y)].concat(), 2 * places.len(), device)
        };
        let homes = layout.homes.iter().map(|home| f64::from(*home) * config.layout.spacing_m).collect();
        let shadowing: Vec<f64> = layout.shadowing_db.iter().map(|db| f64::from(*db)).collect();
        let n_links = shadowing.len();
        Self {
            stations_m: axes(&layout.stations_m),
            users_m: axes(&layout.users_m),
            homes_m: matrix(homes, config.users, device),
            shadowing_db: (n_links > 0).then(|| matrix(shadowing, n_links, device)),
        }
    }

    /// The same for `n_envs` environments.
    fn for_envs(&self, n_envs: usize) -> Self {
        let all = |part: &Tensor<2>| part.clone().expand([n_envs, part.dims()[1]]);
        Self {
            stations_m: all(&self.stations_m),
            users_m: all(&self.users_m),
            homes_m: all(&self.homes_m),
            shadowing_db: self.shadowing_db.as_ref().map(all),
        }
    }
}

impl Topology {
    /// `layout` is that of [`Redraw::Never`].
    pub fn new(config: &UaraConfig, layout: &Layout, device: &Device) -> Self {
        let [n_macros, n_picos, n_femtos] = config.tiers().map(|tier| tier.count);
        let places = Places::new(layout, config, device);
        let (n_stations, n_fixed) = (config.n_stations(), n_macros + n_picos);
        let axis = |i: usize| column(&places.stations_m, i * n_stations, n_fixed);
        Self {
            n_users: config.users,
            n_stations,
            n_macros,
            n_femtos,
            spacing_m: config.layout.spacing_m,
            radius_m: config.macro_cells.radius_m,
            spread: config.layout.spread,
            shadowing_db: config.dynamics.shadowing_db,
            reach_m: config.dynamics.speed_m_per_s * config.dynamics.step_secs,
            correlation: fading_correlation(&config.dynamics),
            fixed_m: Tensor::cat(vec![axis(0), axis(1)], 1),
            constant: (config.layout.redraw == Redraw::Never).then_some(places),
        }
    }

    fn n_links(&self) -> usize {
        self.n_users * self.n_stations
    }

    /// Columns of noise for [`Topology::places`].
    pub fn noise_of_places(&self) -> usize {
        if self.constant.is_some() {
            return 0;
        }
        let shadowing = if self.shadowing_db > 0.0 { Draws::width_of_normals(self.n_links()) } else { 0 };
        3 * (self.n_femtos + self.n_users) + shadowing
    }

    /// Columns of noise for [`Topology::amplitudes`] and [`Topology::fade`].
    pub fn noise_of_fading(&self) -> usize {
        Draws::width_of_normals(2 * self.n_links())
    }

    /// Columns of noise for [`Topology::waypoints`].
    pub fn noise_of_waypoints(&self) -> usize {
        2 * self.n_users
    }

    /// Points around large cells, `[n_envs, 2 * n]`, from `[n_envs, n]` distances of the cells from the first one.
    fn around(&self, homes_m: &Tensor<2>, draws: &mut Draws) -> Tensor<2> {
        let n = homes_m.dims()[1];
        let share = draws.uniform(n);
        let radius_m = match self.spread {
            Spread::Uniform => share.sqrt(),
            Spread::Center => share,
        } * self.radius_m;
        let angle = draws.uniform(n) * TAU - PI;
        Tensor::cat(vec![homes_m.clone() + radius_m.clone() * angle.clone().cos(), radius_m * angle.sin()], 1)
    }

    /// Samples layouts, or returns the constant one.
    pub fn places(&self, draws: &mut Draws) -> Places {
        let n_envs = draws.n_rows();
        if let Some(places) = &self.constant {
            return places.for_envs(n_envs);
        }
        let mut anywhere = |n: usize| {
            let homes_m = draws.index(n, self.n_macros) * self.spacing_m;
            (self.around(&homes_m, draws), homes_m)
        };
        let femtos_m = (self.n_femtos > 0).then(|| anywhere(self.n_femtos).0);
        let (users_m, homes_m) = anywhere(self.n_users);
        let n_fixed = self.n_stations - self.n_femtos;
        let fixed = |axis: usize| column(&self.fixed_m, axis * n_fixed, n_fixed).expand([n_envs, n_fixed]);
        let of_axis = |axis: usize| {
            let femtos = femtos_m.as_ref().map(|at| column(at, axis * self.n_femtos, self.n_femtos));
            [Some(fixed(axis)), femtos].into_iter().flatten()
        };
        let stations_m = Tensor::cat(of_axis(0).chain(of_axis(1)).collect(), 1);
        let shadowing_db = (self.shadowing_db > 0.0).then(|| draws.normal(self.n_links()) * self.shadowing_db);
        Places { stations_m, users_m, homes_m, shadowing_db }
    }

    /// Amplitudes of links with mean power 1.
    pub fn amplitudes(&self, draws: &mut Draws) -> Tensor<2> {
        draws.normal(2 * self.n_links()) * 0.5f64.sqrt()
    }

    /// Random destinations of users.
    pub fn waypoints(&self, homes_m: &Tensor<2>, draws: &mut Draws) -> Tensor<2> {
        self.around(homes_m, draws)
    }

    /// Advances by one step, in which users that arrive get a new destination. Returns the new positions, too.
    pub fn advance(&self, walk: Walk, draws: &mut Draws) -> (Walk, Tensor<2>) {
        let (n_envs, users) = (draws.n_rows(), self.n_users);
        let leg_m = walk.to_m.clone() - walk.from_m.clone();
        let length_m = (column(&leg_m, 0, users).square() + column(&leg_m, users, users).square()).sqrt();
        let steps = walk.steps + 1.0;
        let walked_m = steps.clone() * self.reach_m;
        let arrived = walked_m.clone().greater_equal(length_m.clone());
        // A leg without length has arrived.
        let share = (walked_m / length_m.clamp_min(1e-30)).repeat_dim(1, 2);
        let both = Tensor::cat(vec![arrived.clone(), arrived.clone()], 1);
        let users_m = (walk.from_m.clone() + leg_m * share).mask_where(both.clone(), walk.to_m.clone());
        let next_m = self.waypoints(&walk.homes_m, draws);
        let from_m = walk.from_m.mask_where(both.clone(), walk.to_m.clone());
        let to_m = walk.to_m.mask_where(both, next_m);
        debug_assert_eq!(users_m.dims(), [n_envs, 2 * users]);
        let amplitudes = walk.amplitudes.map(|amplitudes| self.fade(amplitudes, draws));
        let steps = steps.mask_fill(arrived, 0.0);
        (Walk { from_m, to_m, steps, amplitudes, ..walk }, users_m)
    }

    /// Rayleigh fading: see [`fading_correlation`].
    fn fade(&self, amplitudes: Tensor<2>, draws: &mut Draws) -> Tensor<2> {
        let take = ((1.0 - self.correlation * self.correlation) / 2.0).sqrt();
        amplitudes * self.correlation + draws.normal(2 * self.n_links()) * take
    }
}
