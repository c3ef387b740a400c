//! Observations of users on a device.

use std::f64::consts::LN_10;

use brasa_core::ObsParts;
use brasa_kernels::elementwise;
use burn::tensor::Tensor;

use super::TensorUara;
use super::gains::Gains;
use super::state::UaraTensors;
use crate::config::Part;
use crate::observe::RANGE_DB;

impl TensorUara {
    /// The observations of `state` with its `gains`.
    pub(super) fn observe_with(&self, state: &UaraTensors, gains: &Gains) -> ObsParts {
        let (users, stations, channels) = (self.radio.n_users, self.radio.n_stations, self.radio.n_channels);
        let n_envs = state.satisfied.dims()[0];
        let n_rows = n_envs * users;
        let rows = |values: &Tensor<2>, width: usize| values.clone().reshape([n_rows, width]);
        // The level of powers and this much noise.
        let level = |mw: Tensor<2>, noise_mw: f64| {
            let [level] = elementwise(mw.dims(), |formulas| {
                let sinr = (formulas.read(&mw) + noise_mw) / self.radio.noise_mw;
                let db = sinr.max(1.0).ln() * (10.0 / LN_10);
                [vec![db.min(f64::from(RANGE_DB)) / f64::from(RANGE_DB)]]
            });
            level
        };
        let candidates = self.columns.n_candidates();
        let own = self.columns.own().map(|(part, _)| match part {
            Part::State => unreachable!("it is shared"),
            Part::Agent => self.agents.clone().expand([n_envs, users, users]).reshape([n_rows, users]),
            Part::Satisfied => rows(&state.satisfied, 1),
            Part::Gains => {
                let levels = level(gains.of_candidates(rows(&gains.received_mw, stations)), 0.0);
                match &gains.reached {
                    Some(reached) => levels * gains.of_candidates(rows(reached, stations)),
                    None => levels,
                }
            }
            Part::LastStation => {
                let of_column = match &gains.ranks {
                    Some(ranks) => rows(ranks, candidates),
                    None => self.stations.clone(),
                };
                one_hot(&rows(&state.links.station, 1), &of_column)
            }
            Part::Load => {
                let loads = self.loads(&state.links.station) / users as f64;
                let loads = loads.unsqueeze_dim::<3>(1).expand([n_envs, users, stations]).reshape([n_rows, stations]);
                gains.of_candidates(loads).clamp_max(1.0)
            }
            Part::Interference => {
                let heard_mw = state.heard_mw.as_ref().expect("it is kept where it is observed");
                level(rows(heard_mw, channels), self.radio.noise_mw)
            }
            Part::LastChannel => one_hot(&rows(&state.links.channel, 1), &self.channels),
            Part::Tags => rows(state.tags.as_ref().expect("they are kept where they are observed"), channels),
        });
        let own: Vec<Tensor<2>> = own.collect();
        let mask = gains.reached.as_ref().filter(|_| self.spec.mask.is_some());
        ObsParts {
            shared: (self.columns.shared_width() > 0).then(|| state.satisfied.clone()),
            own: (!own.is_empty()).then(|| Tensor::cat(own, 1)),
            mask: mask.map(|reached| gains.of_candidates(rows(reached, stations))),
            n_agents: users,
            actions_per_flag: self.spec.actions_per_flag(),
        }
    }

    /// Users of each station, `[n_envs, stations]`, from the station of each user, `[n_envs, users]`.
    pub(super) fn loads(&self, station: &Tensor<2>) -> Tensor<2> {
        let ([n_envs, users], stations) = (station.dims(), self.radio.n_stations);
        let on = one_hot(&station.clone().reshape([n_envs * users, 1]), &self.stations);
        on.reshape([n_envs, users, stations]).sum_dim(1).reshape([n_envs, stations])
    }
}

/// 1 where a column of `of_column` has the number of its row; `of_column` has a row per number, or one for all.
fn one_hot(number: &Tensor<2>, of_column: &Tensor<2>) -> Tensor<2> {
    let [one_hot] = elementwise([number.dims()[0], of_column.dims()[1]], |formulas| {
        [vec![formulas.read(number).equal(formulas.read(of_column))]]
    });
    one_hot
}
