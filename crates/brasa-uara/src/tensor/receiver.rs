//! SINR, admission and contributions on a device.

use std::ops::Range;
use std::sync::Arc;

use brasa_kernels::{Formulas, Value, elementwise};
use burn::tensor::{Device, Tensor};

use super::gains::Gains;
use super::{count, matrix};
use crate::config::{Reward, UaraConfig};
use crate::radio::{Interference, Radio};

/// The rules of reception.
///
/// Matrices over pairs of users are `[n_envs * users, users]`: a row is about one user, a column about what another one does to it. A matrix
/// `[n_envs, users]` has values for their columns, because its row belongs to all users of an environment.
#[derive(Debug, Clone)]
pub(super) struct TensorReceiver {
    radio: Arc<Radio>,
    /// Whether rewards are contributions.
    contributes: bool,
    /// Power levels, `[1, levels]`.
    levels: Tensor<2>,
    /// 0, 1, ..., `[1, users]`.
    users: Tensor<2>,
    /// 0, 1, ..., `[1, channels]`.
    channels: Tensor<2>,
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
    powers: Powers,
    contest: Option<Contest>,
}

/// Power that each user receives from the station of each other user at that user's level, mW.
struct Powers {
    /// Several matrices over pairs beside each other. The first one is about admitted users on any channel.
    mw: Tensor<2>,
    /// The columns about admitted users on the same channel, if rewards are contributions.
    interfering: Range<usize>,
    /// The columns about all users on the same channel, if rewards are contributions.
    requested: Range<usize>,
}

/// Requests for the same channel of the same station.
struct Contest {
    /// Over pairs: 1 for two different users with the same request.
    same_link: Tensor<2>,
    /// 1 for the first of those that stay behind: it is admitted if the admitted user disappears.
    runner_up: Tensor<2>,
}

/// What a user has before it is known what others do; each `[n_envs, users]`.
struct Signals {
    /// Received power at full level, mW.
    full_mw: Tensor<2>,
    /// The chosen level.
    share: Tensor<2>,
    /// Received power, mW; 0 if the station does not reach the user.
    signal_mw: Tensor<2>,
    /// 1 if the station reaches the user.
    reached: Tensor<2>,
}

/// Values of users, `[n_envs, users]`, for the rows of a matrix with a row per user.
fn of_row<'a>(formulas: &'a Formulas, values: &Tensor<2>) -> Value<'a> {
    let [n_envs, users] = values.dims();
    formulas.read(&values.clone().reshape([n_envs * users, 1]))
}

/// Whether the users of row and column have the same number, from `[n_envs, users]`.
fn agree<'a>(formulas: &'a Formulas, values: &Tensor<2>) -> Value<'a> {
    of_row(formulas, values).equal(formulas.read(values))
}

impl TensorReceiver {
    pub fn new(radio: Arc<Radio>, config: &UaraConfig, device: &Device) -> Self {
        Self {
            contributes: matches!(config.reward, Reward::Contribution { .. }),
            levels: matrix(radio.power_levels.clone(), radio.power_levels.len(), device),
            users: count(radio.n_users, device),
            channels: count(radio.n_channels, device),
            radio,
        }
    }

    /// The numbers of the users of row and column.
    fn pair<'a>(&self, formulas: &'a Formulas) -> [Value<'a>; 2] {
        [formulas.cycle(&self.users.clone().transpose()).column(0), formulas.read(&self.users)]
    }

    fn signals(&self, gains: &Gains, choice: &Choice) -> Signals {
        let [n_envs, n] = choice.station.dims();
        let outputs = elementwise([n_envs * n, 1], |formulas| {
            let [station, level] = [&choice.station, &choice.level].map(|values| of_row(formulas, values));
            let stations = 0..self.radio.n_stations;
            let full_mw = gains.received_mw(formulas, n).pick(stations.clone(), station);
            let share = formulas.matrix(&self.levels).pick(0..self.levels.dims()[1], level);
            let reached = gains.reached(formulas, n).map(|reached| reached.pick(stations, station));
            let signal_mw = full_mw * share;
            let signal_mw = reached.map_or(signal_mw, |reached| signal_mw * reached);
            [full_mw, share, signal_mw, reached.unwrap_or_else(|| formulas.constant(1.0))].map(|value| vec![value])
        });
        let [full_mw, share, signal_mw, reached] = outputs.map(|values| values.reshape([n_envs, n]));
        Signals { full_mw, share, signal_mw, reached }
    }

    /// Which users are admitted, and those behind them. The strongest signal wins, the first one if equal; a request that does not reach its
    /// station does not take part.
    fn admit(&self, signals: &Signals, choice: &Choice) -> (Tensor<2>, Contest) {
        let [n_envs, n] = choice.station.dims();
        let [same_link, beats] = elementwise([n_envs * n, n], |formulas| {
            let [user, other] = self.pair(formulas);
            let same_channel = agree(formulas, &choice.channel).and(!user.equal(other));
            let same_link = same_channel.and(agree(formulas, &choice.station));
            let [own_mw, other_mw] = [of_row(formulas, &signals.full_mw), formulas.read(&signals.full_mw)];
            let first = own_mw.equal(other_mw).and(other.lower(user));
            let beats = other_mw.greater(own_mw).or(first).and(same_link);
            [vec![same_link], vec![beats.and(formulas.read(&signals.reached))]]
        });
        let places = elementwise([n_envs * n, 1], |formulas| {
            let n_better = formulas.matrix(&beats).sum(0..n);
            let reached = of_row(formulas, &signals.reached);
            [0.0, 1.0].map(|place| vec![n_better.equal(place).and(reached)])
        });
        let [admitted, runner_up] = places.map(|values| values.reshape([n_envs, n]));
        (admitted, Contest { same_link, runner_up })
    }

    fn powers(&self, gains: &Gains, choice: &Choice, signals: &Signals, admitted: Option<&Tensor<2>>) -> Powers {
        let [n_envs, n] = choice.station.dims();
        let (mut interfering, mut requested) = (0..0, 0..0);
        let [mw] = elementwise([n_envs * n, n], |formulas| {
            let from = gains.received_mw(formulas, n).pick(0..self.radio.n_stations, formulas.read(&choice.station));
            let requested_mw = from * formulas.read(&signals.share);
            let mw = admitted.map_or(requested_mw, |admitted| requested_mw * formulas.read(admitted));
            let [user, other] = self.pair(formulas);
            let others = !user.equal(other);
            let mut parts = vec![others.select(mw, 0.0)];
            if self.contributes {
                let same_channel = agree(formulas, &choice.channel).and(others);
                let mut add = |part| {
                    parts.push(same_channel.select(part, 0.0));
                    (parts.len() - 1) * n..parts.len() * n
                };
                interfering = add(mw);
                requested = if admitted.is_some() { add(requested_mw) } else { interfering.clone() };
            }
            [parts]
        });
        Powers { mw, interfering, requested }
    }

    /// Evaluates links: SINR, rates, satisfaction.
    pub fn receive(&self, gains: &Gains, choice: &Choice) -> Reception {
        let [n_envs, n] = choice.station.dims();
        let signals = self.signals(gains, choice);
        let (admitted, contest) =
            (self.radio.interference == Interference::PerTransmitter).then(|| self.admit(&signals, choice)).unzip();
        let powers = self.powers(gains, choice, &signals, admitted.as_ref());
        let signal_mw = signals.signal_mw;
        let outputs = elementwise([n_envs * n, 1], |formulas| {
            let channel = of_row(formulas, &choice.channel);
            let interference_mw =
                formulas.matrix(&powers.mw).sum_where(0..n, formulas.matrix(&choice.channel), channel);
            let sinr = of_row(formulas, &signal_mw) / (interference_mw + self.radio.noise_mw);
            let sinr = admitted.as_ref().map_or(sinr, |admitted| sinr * of_row(formulas, admitted));
            [vec![self.radio.rate_mbps(sinr)], vec![sinr.greater_equal(self.radio.min_sinr)]]
        });
        let [rates, satisfied] = outputs.map(|values| values.reshape([n_envs, n]));
        Reception { rates, satisfied, admitted, signal_mw, powers, contest }
    }

    /// For each user the one that replaces it if it disappears, else the number of users, `[n_envs, users]`.
    fn replacements(&self, admitted: &Tensor<2>, contest: &Contest) -> Tensor<2> {
        let [n_envs, n] = admitted.dims();
        let [replaces] = elementwise([n_envs * n, n], |formulas| {
            let same_link = formulas.read(&contest.same_link);
            [vec![same_link.and(of_row(formulas, admitted)).and(formulas.read(&contest.runner_up))]]
        });
        let [by] = elementwise([n_envs * n, 1], |formulas| {
            [vec![formulas.matrix(&replaces).find(0..n, formulas.constant(1.0))]]
        });
        by.reshape([n_envs, n])
    }

    /// What every user adds to the sum of all rates, Mb/s: the sum minus that without the user.
    pub fn contributions(&self, reception: &Reception) -> Tensor<2> {
        let Reception { rates, admitted, signal_mw, powers, contest, .. } = reception;
        let [n_envs, n] = rates.dims();
        let replaced = admitted.as_ref().zip(contest.as_ref());
        let replaced = replaced.map(|(admitted, contest)| (admitted, self.replacements(admitted, contest)));
        // A column is about the network without that user.
        let [lost] = elementwise([n_envs * n, n], |formulas| {
            let mw = formulas.matrix(&powers.mw);
            // Nothing is subtracted: the difference of a sum and its largest part would have no digits left.
            let interfering = &powers.interfering;
            let mut interference_mw = mw.sum_before(interfering.clone()) + mw.sum_after(interfering.clone());
            let [user, without] = self.pair(formulas);
            let mut sends = !user.equal(without);
            if let Some((admitted, by)) = &replaced {
                let by = formulas.read(by);
                let instead_mw = mw.pick(powers.requested.clone(), by);
                interference_mw = interference_mw + by.lower(n as f64).select(instead_mw, 0.0);
                sends = sends.and(of_row(formulas, admitted)).or(by.equal(user));
            }
            let sinr = of_row(formulas, signal_mw) * sends / (interference_mw + self.radio.noise_mw);
            [vec![of_row(formulas, rates) - self.radio.rate_mbps(sinr)]]
        });
        lost.reshape([n_envs, n, n]).sum_dim(1).reshape([n_envs, n])
    }

    /// Interference on every channel, mW, `[n_envs, users * channels]`.
    pub fn heard_mw(&self, reception: &Reception, choice: &Choice) -> Tensor<2> {
        let ([n_envs, n], channels) = (choice.channel.dims(), self.radio.n_channels);
        let [heard_mw] = elementwise([n_envs * n, channels], |formulas| {
            let mw = formulas.matrix(&reception.powers.mw);
            [vec![mw.sum_where(0..n, formulas.matrix(&choice.channel), formulas.read(&self.channels))]]
        });
        heard_mw.reshape([n_envs, n * channels])
    }
}
