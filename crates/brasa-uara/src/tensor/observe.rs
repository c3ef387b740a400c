//! Observations of users on a device.

use brasa_core::ObsParts;
use brasa_kernels::{Formulas, Matrix, Value, concat, elementwise};
use burn::tensor::Tensor;

use super::TensorUara;
use super::gains::{Gains, of_users};
use super::state::UaraTensors;
use crate::config::Part;
use crate::observe::level;

impl TensorUara {
    /// The observations of `state` with its `gains`.
    pub(super) fn observe_with(&self, state: &UaraTensors, gains: &Gains) -> ObsParts {
        let users = self.radio.n_users;
        let n_rows = state.satisfied.dims()[0] * users;
        let context = self.context(state, n_rows);
        let own: Vec<_> = context
            .into_iter()
            .chain(self.of_candidates(state, gains, n_rows))
            .chain(self.of_channels(state, n_rows))
            .collect();
        let mask = gains.reached.as_ref().filter(|_| self.spec.mask.is_some()).map(|_| {
            let [mask] = elementwise([n_rows, self.columns.n_candidates()], |formulas| {
                let reached = gains.reached(formulas, users).expect("it was seen");
                [vec![self.of_candidate(reached, self.candidate(formulas, gains))]]
            });
            mask
        });
        ObsParts {
            shared: (self.columns.shared_width() > 0).then(|| state.satisfied.clone()),
            own: (!own.is_empty()).then(|| concat(own)),
            mask,
            n_agents: users,
            actions_per_flag: self.spec.actions_per_flag(),
        }
    }

    /// Columns that belong to no candidate or channel.
    fn context(&self, state: &UaraTensors, n_rows: usize) -> Vec<Tensor<2>> {
        let users = self.radio.n_users;
        let parts = self.columns.own().filter_map(|(part, _)| match part {
            Part::Agent => {
                let [agents] = elementwise([n_rows, users], |formulas| {
                    let user = formulas.cycle(&self.users.clone().transpose()).column(0);
                    [vec![user.equal(formulas.read(&self.users))]]
                });
                Some(agents)
            }
            Part::Satisfied => Some(state.satisfied.clone().reshape([n_rows, 1])),
            _ => None,
        });
        parts.collect()
    }

    /// The station of each candidate, `None` if candidates are stations in their order.
    fn candidate<'a>(&self, formulas: &'a Formulas, gains: &Gains) -> Option<Value<'a>> {
        gains.ranks(formulas, self.radio.n_users).map(|ranks| ranks.columns(0..self.columns.n_candidates()))
    }

    /// The value of each candidate from that of each station.
    fn of_candidate<'a>(&self, stations: Matrix<'a>, candidate: Option<Value<'a>>) -> Value<'a> {
        match candidate {
            Some(candidate) => stations.pick(0..self.radio.n_stations, candidate),
            None => stations.columns(0..self.radio.n_stations),
        }
    }

    /// Columns per candidate, `None` if none is observed.
    fn of_candidates(&self, state: &UaraTensors, gains: &Gains, n_rows: usize) -> Option<Tensor<2>> {
        let (users, candidates) = (self.radio.n_users, self.columns.n_candidates());
        let observed = |part| self.columns.of(part).is_some();
        let loads = observed(Part::Load).then(|| self.loads(&state.links.station));
        if !(observed(Part::Gains) || observed(Part::LastStation) || observed(Part::Load)) {
            return None;
        }
        let [values] = elementwise([n_rows, candidates], |formulas| {
            let candidate = self.candidate(formulas, gains);
            let of_candidate = |stations| self.of_candidate(stations, candidate);
            let mut values = Vec::new();
            if observed(Part::Gains) {
                let level = level(of_candidate(gains.received_mw(formulas, users)), self.radio.noise_mw);
                let reached = gains.reached(formulas, users).map(of_candidate);
                values.push(reached.map_or(level, |reached| level * reached));
            }
            if observed(Part::LastStation) {
                let last = of_users(formulas, &state.links.station, users).column(0);
                values.push(last.equal(candidate.unwrap_or_else(|| formulas.read(&self.stations))));
            }
            if let Some(loads) = &loads {
                values.push((of_candidate(formulas.matrix(loads)) / users as f64).min(1.0));
            }
            [values]
        });
        Some(values)
    }

    /// Columns per channel, `None` if none is observed.
    fn of_channels(&self, state: &UaraTensors, n_rows: usize) -> Option<Tensor<2>> {
        let (users, channels) = (self.radio.n_users, self.radio.n_channels);
        let observed = |part| self.columns.of(part).is_some();
        if !(observed(Part::Interference) || observed(Part::LastChannel) || observed(Part::Tags)) {
            return None;
        }
        let [values] = elementwise([n_rows, channels], |formulas| {
            let kept = |part: &Option<Tensor<2>>| {
                let part = part.as_ref().expect("it is kept where it is observed");
                of_users(formulas, part, users).columns(0..channels)
            };
            let mut values = Vec::new();
            if observed(Part::Interference) {
                values.push(level(kept(&state.heard_mw) + self.radio.noise_mw, self.radio.noise_mw));
            }
            if observed(Part::LastChannel) {
                let last = of_users(formulas, &state.links.channel, users).column(0);
                values.push(last.equal(formulas.read(&self.channels)));
            }
            if observed(Part::Tags) {
                values.push(kept(&state.tags));
            }
            [values]
        });
        Some(values)
    }

    /// Users of each station, `[n_envs, stations]`, from the station of each user, `[n_envs, users]`.
    pub(super) fn loads(&self, station: &Tensor<2>) -> Tensor<2> {
        let ([n_envs, users], stations) = (station.dims(), self.radio.n_stations);
        let [loads] = elementwise([n_envs, stations], |formulas| {
            [vec![formulas.matrix(station).count(0..users, formulas.read(&self.stations))]]
        });
        loads
    }
}
