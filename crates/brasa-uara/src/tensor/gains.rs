//! Received powers on a device, and the stations that users can choose.

use std::f64::consts::LN_10;

use brasa_kernels::{Formulas, Matrix, elementwise};
use burn::tensor::{Device, Tensor};

use super::{count, matrix};
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

/// Mean received power in mW and reach, each `[n_envs * users, stations]`, or `[users, stations]` for all environments.
#[derive(Debug, Clone)]
pub(super) struct Mean {
    pub received_mw: Tensor<2>,
    pub reached: Option<Tensor<2>>,
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
    /// Received at 1 m, dBm, `[1, stations]`.
    at_1_m_dbm: Tensor<2>,
    /// dB per decade, `[1, stations]`.
    decade_db: Tensor<2>,
    /// `[1, stations]`.
    radius_m: Tensor<2>,
    /// 0, 1, ..., `[1, stations]`.
    stations: Tensor<2>,
    /// 0, 1, ..., `[users, 1]`.
    users: Tensor<2>,
}

/// For formulas with a row per user: `[n_envs, users * n]` as `[n_envs * users, n]`, or the same for all environments.
pub(super) fn of_users<'a>(formulas: &'a Formulas, values: &Tensor<2>, n_users: usize) -> Matrix<'a> {
    let [n_envs, width] = values.dims();
    formulas.cycle(&values.clone().reshape([n_envs * n_users, width / n_users]))
}

impl Gains {
    /// Received powers for formulas with a row per user and a column per station.
    pub fn received_mw<'a>(&self, formulas: &'a Formulas, n_users: usize) -> Matrix<'a> {
        of_users(formulas, &self.received_mw, n_users)
    }

    /// Reach for the same formulas; `None` if all stations reach all users.
    pub fn reached<'a>(&self, formulas: &'a Formulas, n_users: usize) -> Option<Matrix<'a>> {
        self.reached.as_ref().map(|reached| of_users(formulas, reached, n_users))
    }

    /// Stations by rank for formulas with a row per user and a column per candidate; `None` if candidates are stations in their order.
    pub fn ranks<'a>(&self, formulas: &'a Formulas, n_users: usize) -> Option<Matrix<'a>> {
        self.ranks.as_ref().map(|ranks| of_users(formulas, ranks, n_users))
    }
}

impl Propagation {
    pub fn new(config: &UaraConfig, device: &Device) -> Self {
        let of = |value: fn(&Tier) -> f64| {
            let values: Vec<f64> = config.station_tiers().map(|tier| value(&tier)).collect();
            let n = values.len();
            matrix(values, n, device)
        };
        let n_stations = config.n_stations();
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
            stations: count(n_stations, device),
            users: count(config.users, device).transpose(),
        }
    }

    /// The mean powers between positions, x before y: `[n_envs, 2 * users]` and `[n_envs, 2 * stations]`; `shadowing_db` is
    /// `[n_envs, users * stations]`.
    pub fn mean(&self, users_m: &Tensor<2>, stations_m: &Tensor<2>, shadowing_db: Option<&Tensor<2>>) -> Mean {
        let (users, stations) = (self.n_users, self.n_stations);
        let shape = [users_m.dims()[0] * users, stations];
        let [received_mw, reached] = elementwise(shape, |formulas| {
            let user = formulas.cycle(&self.users).column(0);
            let (users_m, stations_m) = (formulas.matrix(users_m), formulas.matrix(stations_m));
            let [x, y] = [0, 1].map(|axis| {
                let user_m = users_m.pick(axis * users..(axis + 1) * users, user);
                user_m - stations_m.columns(axis * stations..(axis + 1) * stations)
            });
            let distance_m = (x.square() + y.square()).sqrt();
            let decades = distance_m.max(self.nearest_m).ln() / LN_10;
            let dbm = formulas.read(&self.at_1_m_dbm) - decades * formulas.read(&self.decade_db);
            let dbm = shadowing_db.map_or(dbm, |db| dbm - of_users(formulas, db, users).columns(0..stations));
            let received_mw = (dbm * (LN_10 / 10.0)).exp();
            let inside = distance_m.lower_equal(formulas.read(&self.radius_m));
            let received_mw = match self.coverage {
                Coverage::Everything => inside.select(received_mw, 0.0),
                Coverage::Open | Coverage::Service => received_mw,
            };
            [vec![received_mw], vec![inside]]
        });
        Mean { received_mw, reached: (self.coverage != Coverage::Open).then_some(reached) }
    }

    /// The gains, from amplitudes `[n_envs, 2 * users * stations]`, real parts before imaginary ones.
    pub fn gains(&self, mean: Mean, amplitudes: Option<&Tensor<2>>) -> Gains {
        let n_links = self.n_users * self.n_stations;
        let per_env = |values: Tensor<2>| {
            let [n_rows, width] = values.dims();
            values.reshape([n_rows / self.n_users, width * self.n_users])
        };
        let ranks = self.n_ranks.map(|n| per_env(self.strongest(&mean, n)));
        let average_mw = per_env(mean.received_mw);
        let received_mw = match amplitudes {
            Some(amplitudes) => {
                let [received_mw] = elementwise([amplitudes.dims()[0], n_links], |formulas| {
                    let amplitudes = formulas.matrix(amplitudes);
                    let [real, imaginary] = [0, n_links].map(|first| amplitudes.columns(first..first + n_links));
                    [vec![formulas.read(&average_mw) * (real.square() + imaginary.square())]]
                });
                received_mw
            }
            None => average_mw,
        };
        Gains { received_mw, reached: mean.reached.map(per_env), ranks }
    }

    /// The `n` stations with the strongest mean signal, those that reach the user before others, the first one if equal, `[n_rows, n]` for
    /// the rows of `mean`.
    pub fn strongest(&self, mean: &Mean, n: usize) -> Tensor<2> {
        let [n_rows, stations] = mean.received_mw.dims();
        // Where all powers beyond the reach are 0, reach needs no attention.
        let reached = mean.reached.as_ref().filter(|_| self.coverage == Coverage::Service);
        let order = match reached {
            Some(reached) => {
                let [order] = elementwise([n_rows, stations], |formulas| {
                    let mw = formulas.read(&mean.received_mw);
                    // Less than any power, and in the same order.
                    [vec![formulas.read(reached).select(mw, -(formulas.constant(1.0) / mw))]]
                });
                order
            }
            None => mean.received_mw.clone(),
        };
        let [ranks] = elementwise([n_rows, stations], |formulas| [vec![formulas.matrix(&order).rank(0..stations)]]);
        let [strongest] = elementwise([n_rows, n], |formulas| {
            let rank = formulas.matrix(&self.stations).columns(0..n);
            [vec![formulas.matrix(&ranks).find(0..stations, rank)]]
        });
        strongest
    }
}
