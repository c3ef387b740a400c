//! SINR, admission and contributions on a device.

use std::f64::consts::LN_2;

use burn::tensor::{Device, Tensor};

use super::gains::{Gains, at};
use super::matrix;
use crate::radio::{Interference, Radio};

/// The rules of reception.
///
/// Tensors over pairs of users are `[n_envs, users, users]`: row `i` is about user `i`, column `j` about what user `j` does to it.
#[derive(Debug, Clone)]
pub(super) struct TensorReceiver {
    n_users: usize,
    n_channels: usize,
    noise_mw: f64,
    min_sinr: f64,
    bandwidth_mhz: f64,
    max_bits_per_hz: Option<f64>,
    admission: bool,
    /// Power levels, `[levels]`.
    levels: Tensor<1>,
    /// 1 for two different users, `[1, users, users]`.
    others: Tensor<3>,
    /// 1 where the column's user comes before the row's, `[1, users, users]`.
    before: Tensor<3>,
    /// 0, 1, ..., `[1, 1, users]`.
    users: Tensor<3>,
    /// 0, 1, ..., `[1, 1, 1, channels]`.
    channels: Tensor<4>,
}

/// The links of users, each `[n_envs, users]`.
pub(super) struct Choice {
    pub station: Tensor<2>,
    pub channel: Tensor<2>,
    pub level: Tensor<2>,
}

/// The result of [`TensorReceiver::receive`]; tensors without a shape are `[n_envs, users]`.
pub(super) struct Reception {
    /// Mb/s.
    pub rates: Tensor<2>,
    /// 1 for satisfied users.
    pub satisfied: Tensor<2>,
    /// 1 for users that are not rejected; `None` without admission.
    pub admitted: Option<Tensor<2>>,
    /// Received power of each user's own signal, mW; 0 if its station does not reach it.
    signal_mw: Tensor<2>,
    /// Power that each user would receive from the station of each other user at that user's level, mW.
    from_mw: Tensor<3>,
    /// 1 for two different users on one channel.
    same_channel: Tensor<3>,
    contest: Option<Contest>,
}

/// Requests for the same channel of the same station.
struct Contest {
    /// 1 for two different users with the same request.
    same_link: Tensor<3>,
    /// 1 for the first of those that stay behind: it is admitted if the admitted user disappears.
    runner_up: Tensor<2>,
}

/// `[n_envs, n]` as a row or a column of pairs.
fn of_row(values: Tensor<2>) -> Tensor<3> {
    values.unsqueeze_dim(2)
}

fn of_column(values: Tensor<2>) -> Tensor<3> {
    values.unsqueeze_dim(1)
}

/// 1 where two whole numbers are equal.
fn same(a: Tensor<3>, b: Tensor<3>) -> Tensor<3> {
    (a - b).equal_scalar(0.0).float()
}

/// The sums over all columns but one: `y[i, u] = sum_(j != u) x[i, j]` for `[n, users, users]`.
///
/// Sums over runs of 1, 2, 4, ... neighbors make up the run of all others, so that nothing is subtracted: the difference of a sum
/// and its largest part would have no digits left.
fn sums_of_others(x: Tensor<3>) -> Tensor<3> {
    let [n, rows, users] = x.dims();
    let mut run = Tensor::cat(vec![x.clone(), x.clone()], 2);
    let (mut sums, mut length, mut begin) = (x.zeros_like(), 1, 1);
    while length < users {
        if (users - 1) & length != 0 {
            sums = sums + run.clone().slice([0..n, 0..rows, begin..begin + users]);
            begin += length;
        }
        let left = run.dims()[2] - length;
        run = run.clone().slice([0..n, 0..rows, 0..left]) + run.slice([0..n, 0..rows, length..length + left]);
        length *= 2;
    }
    sums
}

impl TensorReceiver {
    pub fn new(radio: &Radio, device: &Device) -> Self {
        let n = radio.n_users;
        let pairs = |of: fn(usize, usize) -> bool| {
            let values = (0..n * n).map(|at| f64::from(u8::from(of(at / n, at % n)))).collect();
            matrix(values, n * n, device).reshape([1, n, n])
        };
        let count = |n: usize| matrix((0..n).map(|i| i as f64).collect(), n, device);
        let levels = matrix(radio.power_levels.clone(), radio.power_levels.len(), device);
        Self {
            n_users: n,
            n_channels: radio.n_channels,
            noise_mw: radio.noise_mw,
            min_sinr: radio.min_sinr,
            bandwidth_mhz: radio.bandwidth_hz / 1e6,
            max_bits_per_hz: radio.max_bits_per_hz,
            admission: radio.interference == Interference::PerTransmitter,
            levels: levels.squeeze_dim(0),
            others: pairs(|i, j| i != j),
            before: pairs(|i, j| j < i),
            users: count(n).unsqueeze_dim(0),
            channels: count(radio.n_channels).reshape([1, 1, 1, radio.n_channels]),
        }
    }

    /// The rates at SINRs, Mb/s.
    fn mbps<const D: usize>(&self, sinr: Tensor<D>) -> Tensor<D> {
        let bits = sinr.log1p() / LN_2;
        let bits = match self.max_bits_per_hz {
            Some(most) => bits.clamp_max(most),
            None => bits,
        };
        bits * self.bandwidth_mhz
    }

    /// Evaluates links: SINR, rates, satisfaction.
    pub fn receive(&self, gains: &Gains, choice: &Choice) -> Reception {
        let n = self.n_users;
        let [n_envs, _] = choice.station.dims();
        let n_rows = n_envs * n;
        let per_station = |values: &Tensor<2>| {
            let width = values.dims()[1] / n;
            values.clone().reshape([n_rows, width])
        };
        let own_station = choice.station.clone().reshape([n_rows, 1]);
        let own = |values: &Tensor<2>| at(per_station(values), own_station.clone()).reshape([n_envs, n]);
        let share = self.levels.clone().select(0, choice.level.clone().reshape([n_rows]).int()).reshape([n_envs, n]);
        let full_mw = own(&gains.received_mw);
        let reached = gains.reached.as_ref().map(own);
        let stations = of_column(choice.station.clone()).expand([n_envs, n, n]).reshape([n_rows, n]);
        let from_mw = at(per_station(&gains.received_mw), stations).reshape([n_envs, n, n]);
        let from_mw = from_mw * of_column(share.clone());
        let channel = &choice.channel;
        let same_channel = same(of_row(channel.clone()), of_column(channel.clone())) * self.others.clone();
        let mut signal_mw = full_mw.clone() * share;
        if let Some(reached) = &reached {
            signal_mw = signal_mw * reached.clone();
        }
        let (mut admitted, mut contest) = (None, None);
        if self.admission {
            let station = &choice.station;
            let same_link = same(of_row(station.clone()), of_column(station.clone())) * same_channel.clone();
            // The strongest signal wins, the first one if equal; a request that does not reach its station does not take part.
            let ahead = of_column(full_mw.clone()) - of_row(full_mw);
            let first = ahead.clone().equal_scalar(0.0).float() * self.before.clone();
            let mut beats = (ahead.greater_scalar(0.0).float() + first) * same_link.clone();
            if let Some(reached) = &reached {
                beats = beats * of_column(reached.clone());
            }
            let n_better = beats.sum_dim(2).reshape([n_envs, n]);
            let takes_part = |place: f64| {
                let at_place = n_better.clone().equal_scalar(place).float();
                match &reached {
                    Some(reached) => at_place * reached.clone(),
                    None => at_place,
                }
            };
            admitted = Some(takes_part(0.0));
            contest = Some(Contest { same_link, runner_up: takes_part(1.0) });
        }
        let interference_mw = interference(&from_mw, &same_channel, admitted.as_ref());
        let sinr = signal_mw.clone() / (interference_mw.sum_dim(2).reshape([n_envs, n]) + self.noise_mw);
        let sinr = match &admitted {
            Some(admitted) => sinr * admitted.clone(),
            None => sinr,
        };
        let satisfied = sinr.clone().greater_equal_scalar(self.min_sinr).float();
        let rates = self.mbps(sinr);
        Reception { rates, satisfied, admitted, signal_mw, from_mw, same_channel, contest }
    }

    /// What every user adds to the sum of all rates, Mb/s: the sum minus that without the user.
    pub fn contributions(&self, reception: &Reception) -> Tensor<2> {
        let Reception { rates, admitted, signal_mw, from_mw, same_channel, contest, .. } = reception;
        let (n, [n_envs, _]) = (self.n_users, rates.dims());
        let shape = [n_envs, n, n];
        // From here on a column is about the network without that user.
        let mut interference_mw = sums_of_others(interference(from_mw, same_channel, admitted.as_ref()));
        let mut sends = self.others.clone();
        if let (Some(admitted), Some(Contest { same_link, runner_up })) = (admitted, contest) {
            // Row: the admitted user that disappears; column: the one that replaces it.
            let replaces = same_link.clone() * of_row(admitted.clone()) * of_column(runner_up.clone());
            let is_replaced = of_column(replaces.clone().sum_dim(2).reshape([n_envs, n]));
            let by = (replaces.clone() * self.users.clone()).sum_dim(2).reshape([n_envs, n]);
            let by = of_column(by).expand(shape).reshape([n_envs * n, n]);
            let from_mw = from_mw.clone() * same_channel.clone();
            let instead_mw = at(from_mw.reshape([n_envs * n, n]), by).reshape(shape);
            interference_mw = interference_mw + instead_mw * is_replaced;
            sends = sends * of_row(admitted.clone()) + replaces.swap_dims(1, 2);
        }
        let sinr = of_row(signal_mw.clone()) * sends / (interference_mw + self.noise_mw);
        let lost = of_row(rates.clone()) - self.mbps(sinr);
        lost.sum_dim(1).reshape([n_envs, n])
    }

    /// Interference on every channel, mW, `[n_envs, users * channels]`.
    pub fn heard_mw(&self, reception: &Reception, choice: &Choice) -> Tensor<2> {
        let (n, [n_envs, _]) = (self.n_users, choice.channel.dims());
        let from_mw = interference(&reception.from_mw, &self.others, reception.admitted.as_ref());
        let on = (choice.channel.clone().reshape([n_envs, 1, n, 1]) - self.channels.clone()).equal_scalar(0.0).float();
        let heard: Tensor<4> = (from_mw.unsqueeze_dim::<4>(3) * on).sum_dim(2);
        heard.reshape([n_envs, n * self.n_channels])
    }
}

/// Power from the admitted ones of the users that `counts` has.
fn interference(from_mw: &Tensor<3>, counts: &Tensor<3>, admitted: Option<&Tensor<2>>) -> Tensor<3> {
    let from_mw = from_mw.clone() * counts.clone();
    match admitted {
        Some(admitted) => from_mw * of_column(admitted.clone()),
        None => from_mw,
    }
}
