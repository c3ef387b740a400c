//! Networks as tensor operations, for devices.
//!
//! Numbers have 32 bits, positions of the host form 64.

mod gains;
mod observe;
mod receiver;
mod state;
mod walk;

pub use state::UaraTensors;

use std::sync::Arc;

use brasa_core::{Draws, NoiseWidths, ObsParts, TensorDynamics, TensorStep, nearest_option};
use brasa_env::{EnvBatch, EnvSpec, field, named_rng};
use brasa_kernels::{Formulas, Value, elementwise};
use burn::tensor::{Device, Tensor, TensorData};

use crate::config::{Coverage, Part, Redraw, Reward, Start, UaraConfig};
use crate::error::UaraError;
use crate::layout::Layout;
use crate::observe::Columns;
use crate::radio::Radio;
use crate::reward::power_costs;
use crate::uara::Uara;
use gains::{Gains, Mean, Propagation};
use receiver::{Choice, Reception, TensorReceiver};
use state::Links;
use walk::{Topology, Walk};

/// The rules of networks for a device.
///
/// An action that the mask forbids is a link without a signal; the host's form rejects it. A number that is no action counts as the
/// nearest one.
///
/// ```
/// # fn on(device: &burn::tensor::Device) -> Result<(), brasa_env::EnvError> {
/// use brasa_core::{TensorEnv, VecEnv};
/// use brasa_uara::{Uara, UaraConfig, tensor::TensorUara};
///
/// // 64 environments on `device`, with the time limit of the scenario.
/// let (dynamics, steps): (TensorUara, u32) = Uara::new(UaraConfig::default())?.tensors(device)?;
/// let mut envs = TensorEnv::<_>::new(dynamics, 64, device)?.with_time_limit(steps)?;
/// envs.reset(7)?;
/// assert_eq!(envs.n_envs(), 64);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TensorUara {
    config: Arc<UaraConfig>,
    radio: Arc<Radio>,
    columns: Columns,
    /// Of one environment.
    spec: EnvSpec,
    topology: Topology,
    propagation: Propagation,
    receiver: TensorReceiver,
    /// Gains that never change.
    constant: Option<Gains>,
    /// Cost of a step at each power level of each station, `[1, stations * levels]`.
    power_costs: Option<Tensor<2>>,
    /// 0, 1, ..., `[1, stations]`.
    stations: Tensor<2>,
    /// 0, 1, ..., `[1, channels]`.
    channels: Tensor<2>,
    /// 0, 1, ..., `[1, users]`.
    users: Tensor<2>,
}

fn matrix(values: Vec<f64>, width: usize, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
    let rows = values.len() / width;
    Tensor::from_data(TensorData::new(values, [rows, width]), device)
}

/// 0, 1, ..., `[1, n]`.
fn count(n: usize, device: &Device) -> Tensor<2> {
    matrix((0..n).map(|i| i as f64).collect(), n, device)
}

/// `n` columns from number `from`.
fn column(values: &Tensor<2>, from: usize, n: usize) -> Tensor<2> {
    let rows = values.dims()[0];
    values.clone().slice([0..rows, from..from + n])
}

/// The gains of a layout without fading, computed in 64 bits.
fn mean_of(layout: &Layout, config: &UaraConfig, device: &Device) -> Mean {
    let (users, stations) = (config.users, config.n_stations());
    let (mut received_mw, mut reached) = (vec![0.0; users * stations], vec![false; users * stations]);
    layout.links(config, &mut received_mw, &mut reached);
    let flags = reached.into_iter().map(|reached| f64::from(u8::from(reached))).collect();
    let reached = (config.coverage != Coverage::Open).then(|| matrix(flags, stations, device));
    Mean { received_mw: matrix(received_mw, stations, device), reached }
}

impl Uara {
    /// The networks as tensor operations on `device`, and the steps of an episode.
    ///
    /// # Errors
    /// [`UaraError::Field`] for a layout per environment, and for successes that count as truncations.
    pub fn tensors(&self, device: &Device) -> Result<(TensorUara, u32), UaraError> {
        let config = self.config();
        let rule = "must be `never` or `episode` for environments on a device";
        field::rule(config.layout.redraw != Redraw::Environment, "layout.redraw", rule, "environment")?;
        field::rule(
            !config.parity.bootstrap_success,
            "parity.bootstrap_success",
            "must be off for environments on a device",
            true,
        )?;
        let layout = Layout::draw(config, &mut named_rng(config.layout.seed, "layout", 0));
        let propagation = Propagation::new(config, device);
        let constant = self.stays().then(|| propagation.gains(mean_of(&layout, config, device), None));
        let costs: Vec<f64> = power_costs(config).into_iter().map(f64::from).collect();
        let n_costs = costs.len();
        let tensors = TensorUara {
            columns: Columns::new(config),
            spec: self.batch(0..1).spec().clone(),
            topology: Topology::new(config, &layout, device),
            receiver: TensorReceiver::new(self.shared_radio(), config, device),
            power_costs: (n_costs > 0).then(|| matrix(costs, n_costs, device)),
            stations: count(config.n_stations(), device),
            channels: count(config.channels, device),
            users: count(config.users, device),
            propagation,
            constant,
            config: self.shared_config(),
            radio: self.shared_radio(),
        };
        Ok((tensors, config.episode_steps))
    }
}

impl TensorUara {
    fn fades(&self) -> bool {
        self.config.dynamics.fading
    }

    fn moves(&self) -> bool {
        self.config.dynamics.changes()
    }

    /// The gains of `state`.
    fn gains<'a>(&'a self, state: &'a UaraTensors) -> &'a Gains {
        state.gains.as_ref().or(self.constant.as_ref()).expect("gains change or are constant")
    }

    /// The links of actions, `[n_rows, 1]`, with the gains that users observed.
    fn choice(&self, action: Tensor<2>, gains: &Gains, n_envs: usize) -> Choice {
        let (users, channels, levels) = (self.radio.n_users, self.radio.n_channels, self.radio.power_levels.len());
        let n_actions = self.columns.n_candidates() * channels * levels;
        let outputs = elementwise([n_envs * users, 1], |formulas| {
            let action = nearest_option(formulas.read(&action), n_actions);
            let pair = quotient(action, levels);
            let candidate = quotient(pair, channels);
            let ranks = gains.ranks(formulas, users);
            let station = ranks.map_or(candidate, |ranks| ranks.pick(0..self.columns.n_candidates(), candidate));
            [vec![station], vec![pair - candidate * channels as f64], vec![action - pair * levels as f64]]
        });
        let [station, channel, level] = outputs.map(|values| values.reshape([n_envs, users]));
        Choice { station, channel, level }
    }

    fn heard(&self, reception: &Reception, choice: &Choice) -> Option<Tensor<2>> {
        self.config.observes(Part::Interference).then(|| self.receiver.heard_mw(reception, choice))
    }

    /// `[n_envs, users]`.
    fn rewards(&self, reception: &Reception, choice: &Choice) -> Tensor<2> {
        let [n_envs, users] = reception.rates.dims();
        let contributions = match self.config.reward {
            Reward::Contribution { .. } => Some(self.receiver.contributions(reception)),
            _ => None,
        };
        let [rewards] = elementwise([n_envs, users], |formulas| {
            let rates = formulas.read(&reception.rates);
            let contribution = || formulas.read(contributions.as_ref().expect("they are the reward"));
            let cost = || {
                let costs = self.power_costs.as_ref().expect("power has costs with this reward");
                let (station, level) = (formulas.read(&choice.station), formulas.read(&choice.level));
                let place = station * self.radio.power_levels.len() as f64 + level;
                formulas.matrix(costs).pick(0..costs.dims()[1], place)
            };
            let satisfied = formulas.read(&reception.satisfied);
            let reward = self.config.reward.of_user(satisfied, rates, contribution, cost);
            [vec![reward]]
        });
        match self.config.team_reward {
            true => rewards.mean_dim(1).expand([n_envs, users]),
            false => rewards,
        }
    }

    /// Whether all users are satisfied, for formulas with a row per environment.
    fn success<'a>(&self, formulas: &'a Formulas, reception: &Reception) -> Value<'a> {
        let users = self.radio.n_users;
        formulas.matrix(&reception.satisfied).sum(0..users).greater_equal(users as f64)
    }

    /// The figures of [`EnvSpec::info_names`]; `ended` and `success` are `[n_envs, 1]`.
    fn figures(
        &self,
        reception: &Reception,
        choice: &Choice,
        before: &Links,
        ended: &Tensor<2>,
        success: &Tensor<2>,
    ) -> Tensor<2> {
        let [n_envs, users] = reception.rates.dims();
        let busiest = self.loads(&choice.station).max_dim(1);
        let [of_users] = elementwise([n_envs, users], |formulas| {
            let (rate, station) = (formulas.read(&reception.rates), formulas.read(&before.station));
            let stays = station.equal(formulas.read(&choice.station));
            [vec![rate.square(), station.greater_equal(0.0).and(!stays)]]
        });
        let [figures] = elementwise([n_envs, 1], |formulas| {
            let all = |matrix: &Tensor<2>| formulas.matrix(matrix).sum(0..users);
            let of_users = formulas.matrix(&of_users);
            let (squares, handovers) = (of_users.sum(0..users), of_users.sum(users..2 * users));
            let (qos, sum) = (all(&reception.satisfied) / users as f64, all(&reception.rates));
            // Without any rate the sum is 0, too.
            let jain = sum.square() / squares.max(1e-30) / users as f64;
            let rejected = match &reception.admitted {
                Some(admitted) => -all(admitted) + users as f64,
                None => formulas.constant(0.0),
            };
            let [busiest, ended, success] = [&busiest, ended, success].map(|column| formulas.read(column));
            [vec![qos, sum, jain, handovers, busiest, rejected, qos * ended, success]]
        });
        figures
    }
}

/// The quotient of whole numbers, without the rest. A half keeps it away from whole numbers, where 32 bits may round it to the wrong side.
fn quotient(number: Value<'_>, by: usize) -> Value<'_> {
    ((number + 0.5) / by as f64).floor()
}

impl TensorDynamics for TensorUara {
    type State = UaraTensors;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        self.spec.with_n_envs(n_envs)
    }

    fn noise(&self) -> NoiseWidths {
        let (users, channels) = (self.radio.n_users, self.radio.n_channels);
        let of = |wanted: bool, width: usize| if wanted { width } else { 0 };
        let fading = of(self.fades(), self.topology.noise_of_fading());
        let waypoints = of(self.moves(), self.topology.noise_of_waypoints());
        let tags = of(self.config.observes(Part::Tags), users * channels);
        let first_channels = of(self.config.start == Start::Strongest, users);
        NoiseWidths {
            start: self.topology.noise_of_places() + fading + waypoints + tags + first_channels,
            step: of(self.moves(), waypoints + fading),
        }
    }

    fn terminates(&self) -> bool {
        self.config.end_when_satisfied
    }

    /// The noise is used for positions, shadowing, fading, destinations, tags and first channels, in this order.
    fn start(&self, noise: Tensor<2>) -> UaraTensors {
        let (n_envs, device) = (noise.dims()[0], noise.device());
        let (users, channels) = (self.radio.n_users, self.radio.n_channels);
        let draws = &mut Draws::new(noise);
        let places = self.topology.places(draws);
        let amplitudes = self.fades().then(|| self.topology.amplitudes(draws));
        let to_m = self.moves().then(|| self.topology.waypoints(&places.homes_m, draws));
        let tags = self.config.observes(Part::Tags).then(|| draws.uniform(users * channels));
        let mean = || self.propagation.mean(&places.users_m, &places.stations_m, places.shadowing_db.as_ref());
        let gains = self.constant.is_none().then(|| self.propagation.gains(mean(), amplitudes.as_ref()));
        let walk = to_m.map(|to_m| Walk {
            stations_m: places.stations_m.clone(),
            homes_m: places.homes_m.clone(),
            shadowing_db: places.shadowing_db.clone(),
            from_m: places.users_m.clone(),
            to_m,
            steps: Tensor::zeros([n_envs, users], &device),
            amplitudes,
        });
        let nothing = || Tensor::full([n_envs, users], -1.0, &device);
        let zeros = |width: usize| Tensor::zeros([n_envs, width], &device);
        let mut state = UaraTensors {
            links: Links { station: nothing(), channel: nothing() },
            satisfied: zeros(users),
            heard_mw: self.config.observes(Part::Interference).then(|| zeros(users * channels)),
            tags,
            steps: self.terminates().then(|| zeros(1)),
            gains,
            walk,
        };
        if self.config.start == Start::Strongest {
            let gains = self.gains(&state);
            let station = self.propagation.strongest(&mean(), 1).reshape([n_envs, users]);
            let level = Tensor::full([n_envs, users], f64::from(self.radio.full_power()), &device);
            let choice = Choice { station, channel: draws.index(users, channels), level };
            let reception = self.receiver.receive(gains, &choice);
            state.heard_mw = self.heard(&reception, &choice);
            state.satisfied = reception.satisfied;
            state.links = Links { station: choice.station, channel: choice.channel };
        }
        state
    }

    fn observe(&self, state: &UaraTensors) -> ObsParts {
        self.observe_with(state, self.gains(state))
    }

    fn step(
        &self,
        state: UaraTensors,
        action: Tensor<2>,
        noise: Tensor<2>,
        step: Option<u64>,
    ) -> TensorStep<UaraTensors> {
        let [n_envs, users] = state.satisfied.dims();
        let gains = self.gains(&state);
        let choice = self.choice(action, gains, n_envs);
        let reception = self.receiver.receive(gains, &choice);
        let reward = self.rewards(&reception, &choice).reshape([n_envs * users]);
        let last = f64::from(self.config.episode_steps);
        let (success, ended, steps) = match &state.steps {
            Some(steps) => {
                let [success, ended, steps] = elementwise([n_envs, 1], |formulas| {
                    let success = self.success(formulas, &reception);
                    let steps = formulas.read(steps) + 1.0;
                    [vec![success], vec![success.or(steps.greater_equal(last))], vec![steps]]
                });
                (success, ended, Some(steps))
            }
            None => {
                let [success] = elementwise([n_envs, 1], |formulas| [vec![self.success(formulas, &reception)]]);
                let step = step.expect("no episode terminates, so that all have the same time");
                let ended = f64::from(u8::from((step + 1) as f64 >= last));
                let ended = Tensor::full([n_envs, 1], ended, &success.device());
                (success, ended, None)
            }
        };
        let info = self.figures(&reception, &choice, &state.links, &ended, &success);
        let terminated = self.terminates().then(|| success.reshape([n_envs]));
        let heard_mw = self.heard(&reception, &choice);
        let (walk, gains) = match state.walk {
            Some(walk) => {
                let (walk, users_m) = self.topology.advance(walk, &mut Draws::new(noise));
                let mean = self.propagation.mean(&users_m, &walk.stations_m, walk.shadowing_db.as_ref());
                let gains = self.propagation.gains(mean, walk.amplitudes.as_ref());
                (Some(walk), Some(gains))
            }
            None => (None, state.gains),
        };
        let state = UaraTensors {
            links: Links { station: choice.station, channel: choice.channel },
            satisfied: reception.satisfied,
            heard_mw,
            tags: state.tags,
            steps,
            gains,
            walk,
        };
        TensorStep { state, reward, terminated, info: Some(info) }
    }
}
