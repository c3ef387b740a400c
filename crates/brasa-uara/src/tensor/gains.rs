//! Received powers on a device, and the stations that users can choose.

use std::f64::consts::LN_10;

use burn::tensor::{Device, Int, Tensor};

use super::{column, matrix};
use crate::config::{Candidates, Coverage, Tier, UaraConfig};
use crate::layout::{EDGE_M, MIN_DISTANCE_M};

/// The gains that users observe and that count in the next decision. Each has a row per environment, or one for all.
#[derive(Debug, Clone)]
pub(super) struct Gains {
    /// `[n_envs, users * stations]`.
    pub received_mw: Tensor<2>,
    /// 1 where a station can serve a user, `[n_envs, users * stations]`; `None` if all can.
    pub reached: Option<Tensor<2>>,
    /// The station of each rank, `[n_envs, users * candidates]`; `None` if all stations are candidates, in their order.
    pub ranks: Option<Tensor<2>>,
}

/// Mean received power in mW and reach, each `[n_envs, users, stations]`.
#[derive(Debug, Clone)]
pub(super) struct Mean {
    pub received_mw: Tensor<3>,
    pub reached: Option<Tensor<3>>,
}

/// The constants of links.
#[derive(Debug, Clone)]
pub(super) struct Propagation {
    n_users: usize,
    n_stations: usize,
    coverage: Coverage,
    /// Candidates by rank, if they are ranked.
    n_ranks: Option<usize>,
    nearest_m: f64,
    /// Received at 1 m, dBm, `[1, 1, stations]`.
    at_1_m_dbm: Tensor<3>,
    /// dB per decade, `[1, 1, stations]`.
    decade_db: Tensor<3>,
    /// `[1, 1, stations]`.
    radius_m: Tensor<3>,
    /// `[1, 1, stations]`: 0, 1, ...
    numbers: Tensor<3>,
}

impl Gains {
    /// The same for `n_envs` environments.
    pub fn for_envs(&self, n_envs: usize) -> Self {
        let all = |part: &Tensor<2>| {
            let [rows, width] = part.dims();
            if rows == n_envs { part.clone() } else { part.clone().expand([n_envs, width]) }
        };
        Self {
            received_mw: all(&self.received_mw),
            reached: self.reached.as_ref().map(all),
            ranks: self.ranks.as_ref().map(all),
        }
    }

    /// The values of candidates, `[n_rows, candidates]`, from those of stations, `[n_rows, stations]`.
    pub fn of_candidates(&self, stations: Tensor<2>) -> Tensor<2> {
        let Some(ranks) = &self.ranks else { return stations };
        let ([n_envs, width], [n_rows, _]) = (ranks.dims(), stations.dims());
        stations.gather(1, ranks.clone().reshape([n_rows, n_envs * width / n_rows]).int())
    }
}

/// The values at one index per row, `[n_rows, n]`, from `[n_rows, width]` and `[n_rows, n]`. An index below 0 counts as 0.
pub(super) fn at(values: Tensor<2>, index: Tensor<2>) -> Tensor<2> {
    let index: Tensor<2, Int> = index.clamp_min(0.0).int();
    values.gather(1, index)
}

impl Propagation {
    pub fn new(config: &UaraConfig, device: &Device) -> Self {
        let of = |value: fn(&Tier) -> f64| {
            let values: Vec<f64> = config.station_tiers().map(|tier| value(&tier)).collect();
            let n = values.len();
            matrix(values, n, device).reshape([1, 1, n])
        };
        let n_stations = config.n_stations();
        let numbers = matrix((0..n_stations).map(|i| i as f64).collect(), n_stations, device);
        Self {
            n_users: config.users,
            n_stations,
            coverage: config.coverage,
            n_ranks: match config.candidates {
                Candidates::Strongest(n) => Some(n),
                Candidates::All | Candidates::Covered => None,
            },
            nearest_m: if config.parity.unguarded_distance { 0.0 } else { MIN_DISTANCE_M },
            at_1_m_dbm: of(|tier| tier.transmit_dbm - tier.path_loss.at_1_m_db),
            decade_db: of(|tier| tier.path_loss.decade_db),
            // 32 bits have fewer digits than the host's 64.
            radius_m: of(|tier| tier.radius_m + EDGE_M + 1e-6 * tier.radius_m),
            numbers: numbers.reshape([1, 1, n_stations]),
        }
    }

    /// The mean powers between positions, x before y: `[n_envs, 2 * users]` and `[n_envs, 2 * stations]`; `shadowing_db` is
    /// `[n_envs, users * stations]`.
    pub fn mean(&self, users_m: &Tensor<2>, stations_m: &Tensor<2>, shadowing_db: Option<&Tensor<2>>) -> Mean {
        let (users, stations) = (self.n_users, self.n_stations);
        let n_envs = users_m.dims()[0];
        let difference = |axis: usize| {
            let user = column(users_m, axis * users, users).reshape([n_envs, users, 1]);
            user - column(stations_m, axis * stations, stations).reshape([n_envs, 1, stations])
        };
        let distance_m = (difference(0).square() + difference(1).square()).sqrt();
        let decades = distance_m.clone().clamp_min(self.nearest_m).log() / LN_10;
        let mut dbm = self.at_1_m_dbm.clone() - decades * self.decade_db.clone();
        if let Some(shadowing_db) = shadowing_db {
            dbm = dbm - shadowing_db.clone().reshape([n_envs, users, stations]);
        }
        let received_mw = (dbm * (LN_10 / 10.0)).exp();
        if self.coverage == Coverage::Open {
            return Mean { received_mw, reached: None };
        }
        let inside = (distance_m - self.radius_m.clone()).lower_equal_elem(0.0).float();
        let received_mw = match self.coverage {
            Coverage::Everything => received_mw * inside.clone(),
            Coverage::Open | Coverage::Service => received_mw,
        };
        Mean { received_mw, reached: Some(inside) }
    }

    /// The gains, from amplitudes `[n_envs, 2 * users * stations]`, real parts before imaginary ones.
    pub fn gains(&self, mean: Mean, amplitudes: Option<&Tensor<2>>) -> Gains {
        let n_envs = mean.received_mw.dims()[0];
        let n_links = self.n_users * self.n_stations;
        let ranks = self.n_ranks.map(|n| self.strongest(&mean, n));
        let average = mean.received_mw.reshape([n_envs, n_links]);
        let received_mw = match amplitudes {
            Some(amplitudes) => {
                let power = |part: usize| column(amplitudes, part * n_links, n_links).square();
                average * (power(0) + power(1))
            }
            None => average,
        };
        Gains { received_mw, reached: mean.reached.map(|reached| reached.reshape([n_envs, n_links])), ranks }
    }

    /// The `n` stations with the strongest mean signal, those that reach the user before others, the first one if equal:
    /// `[n_envs, users * n]`.
    pub fn strongest(&self, mean: &Mean, n: usize) -> Tensor<2> {
        let shape = mean.received_mw.dims();
        let [n_envs, users, _] = shape;
        let numbers = self.numbers.clone().expand(shape);
        // Where all powers beyond the reach are 0, reach needs no attention.
        let reached = mean.reached.as_ref().filter(|_| self.coverage == Coverage::Service);
        let mut left = mean.received_mw.ones_like();
        let mut ranks = Vec::with_capacity(n);
        for _ in 0..n {
            let pool = match reached {
                Some(reached) => {
                    let within = left.clone() * reached.clone();
                    let any = within.clone().max_dim(2).greater_elem(0.5).expand(shape);
                    left.clone().mask_where(any, within)
                }
                None => left.clone(),
            };
            // Stations outside the pool have -1, less than any power.
            let power = mean.received_mw.clone().mask_fill(pool.lower_elem(0.5), -1.0);
            let weaker = power.clone().lower(power.max_dim(2).expand(shape));
            let first = numbers.clone().mask_fill(weaker, self.n_stations as f64).min_dim(2);
            left = left.mask_fill(numbers.clone().equal(first.clone().expand(shape)), 0.0);
            ranks.push(first);
        }
        Tensor::cat(ranks, 2).reshape([n_envs, users * n])
    }
}
