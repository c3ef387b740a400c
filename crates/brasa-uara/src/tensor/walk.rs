//! Positions of stations and users on a device, and their changes.

use std::f64::consts::{PI, TAU};

use brasa_core::Draws;
use brasa_kernels::{Value, elementwise};
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

    /// A point around a large cell, from the distance of the cell from the first one and two uniform numbers.
    fn around<'a>(&self, home_m: Value<'a>, [share, angle]: [Value<'a>; 2]) -> [Value<'a>; 2] {
        let share = match self.spread {
            Spread::Uniform => share.sqrt(),
            Spread::Center => share,
        };
        let (radius_m, angle) = (share * self.radius_m, angle * TAU - PI);
        [home_m + radius_m * angle.cos(), radius_m * angle.sin()]
    }

    /// Samples layouts, or returns the constant one.
    pub fn places(&self, draws: &mut Draws) -> Places {
        let n_envs = draws.n_rows();
        if let Some(places) = &self.constant {
            return places.for_envs(n_envs);
        }
        let mut anywhere = |n: usize| {
            let homes_m = draws.index(n, self.n_macros) * self.spacing_m;
            (self.waypoints(&homes_m, draws), homes_m)
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

    /// Random points around large cells, `[n_envs, 2 * n]`, from `[n_envs, n]` distances of the cells from the first one.
    pub fn waypoints(&self, homes_m: &Tensor<2>, draws: &mut Draws) -> Tensor<2> {
        let shape @ [_, n] = homes_m.dims();
        let columns = [(); 2].map(|()| draws.columns(n));
        let [to_m] = elementwise(shape, |formulas| {
            let noise = draws.read(formulas);
            [self.around(formulas.read(homes_m), columns.map(|columns| noise.columns(columns))).to_vec()]
        });
        to_m
    }

    /// Advances by one step, in which users that arrive get a new destination. Returns the new positions, too.
    pub fn advance(&self, walk: Walk, draws: &mut Draws) -> (Walk, Tensor<2>) {
        let (n_envs, users) = (draws.n_rows(), self.n_users);
        let columns = [(); 2].map(|()| draws.columns(users));
        let [users_m, from_m, to_m, steps] = elementwise([n_envs, users], |formulas| {
            let axes = |matrix: &Tensor<2>| {
                let matrix = formulas.matrix(matrix);
                [0, users].map(|first| matrix.columns(first..first + users))
            };
            let (from, to) = (axes(&walk.from_m), axes(&walk.to_m));
            let leg = [to[0] - from[0], to[1] - from[1]];
            let length_m = (leg[0].square() + leg[1].square()).sqrt();
            let steps = formulas.read(&walk.steps) + 1.0;
            let walked_m = steps * self.reach_m;
            let arrived = walked_m.greater_equal(length_m);
            // A leg without length has arrived.
            let share = walked_m / length_m.max(1e-30);
            let noise = draws.read(formulas);
            let next = self.around(formulas.read(&walk.homes_m), columns.map(|columns| noise.columns(columns)));
            [
                [0, 1].map(|i| arrived.select(to[i], from[i] + leg[i] * share)).to_vec(),
                [0, 1].map(|i| arrived.select(to[i], from[i])).to_vec(),
                [0, 1].map(|i| arrived.select(next[i], to[i])).to_vec(),
                vec![arrived.select(0.0, steps)],
            ]
        });
        let amplitudes = walk.amplitudes.map(|amplitudes| self.fade(&amplitudes, draws));
        (Walk { from_m, to_m, steps, amplitudes, ..walk }, users_m)
    }

    /// Rayleigh fading: see [`fading_correlation`].
    fn fade(&self, amplitudes: &Tensor<2>, draws: &mut Draws) -> Tensor<2> {
        let take = ((1.0 - self.correlation * self.correlation) / 2.0).sqrt();
        let n = self.n_links();
        let columns = [(); 2].map(|()| draws.columns(n));
        let [amplitudes] = elementwise([draws.n_rows(), n], |formulas| {
            let (noise, amplitudes) = (draws.read(formulas), formulas.matrix(amplitudes));
            let [radius, angle] = columns.map(|columns| noise.columns(columns));
            let [real, imaginary] = Draws::normal_pair(radius, angle);
            let faded = |first: usize, normal| amplitudes.columns(first..first + n) * self.correlation + normal * take;
            [vec![faded(0, real), faded(n, imaginary)]]
        });
        amplitudes
    }
}
