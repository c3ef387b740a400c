//! MLP Q-networks of a team, computed as one batched network.

use brasa_core::env::{Space, field};
use brasa_core::export::{ExportedPolicy, Output};
use brasa_core::{ActionValues, ObsForm, Rows, TeamObs};
use brasa_kernels::elementwise;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::actor_critic::check_widths;
use crate::exported::Layers;
use crate::q_network::n_actions;
use crate::team_rows::TeamRows;
use crate::{Activation, Init, MlpConfig, NnError, StackedLinear, StackedMlp};

/// Shape of a [`TeamQNetwork`].
///
/// ```
/// use brasa_nn::{Sharing, TeamQNetworkConfig};
///
/// let config: TeamQNetworkConfig = serde_json::from_str(r#"{ "sharing": "trunk", "dueling": true }"#)?;
/// assert_eq!((config.sharing, config.dueling, &config.hidden[..]), (Sharing::Trunk, true, &[64, 32, 32][..]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TeamQNetworkConfig {
    /// Widths of the hidden layers. Default 64, 32, 32 (Zhao et al. 2019).
    pub hidden: Vec<usize>,
    /// Activation of the hidden layers. Default relu (Mnih et al. 2015).
    pub activation: Activation,
    /// Whether value and advantages have separate heads, `Q = V + A - mean(A)` (Wang et al. 2016, equation 9). Default
    /// off.
    pub dueling: bool,
    /// The weights that agents share. Default none.
    pub sharing: Sharing,
    /// Initial weights: `fan-in`, the default (PyTorch's), `glorot` or `{ orthogonal = GAIN }`.
    pub init: Init,
}

impl Default for TeamQNetworkConfig {
    fn default() -> Self {
        Self {
            hidden: vec![64, 32, 32],
            activation: Activation::Relu,
            dueling: false,
            sharing: Sharing::default(),
            init: Init::FanIn,
        }
    }
}

/// The weights that the agents of a team share.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_core::ActionValues;
/// use brasa_core::env::{Space, named_rng};
/// use brasa_nn::{NnError, Sharing, TeamQNetwork, TeamQNetworkConfig};
///
/// let device = brasa_device::open_named("cpu")?;
/// let learners = |sharing| -> Result<usize, NnError> {
///     let (config, rng) = (TeamQNetworkConfig { sharing, ..Default::default() }, &mut named_rng(0, "weights", 0));
///     Ok(TeamQNetwork::new(&config, 4, &obs_space(), &Space::Discrete(3), &device, rng)?.n_learners())
/// };
/// // Four agents with separate weights learn separately.
/// assert_eq!((learners(Sharing::Independent)?, learners(Sharing::All)?), (4, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// None: independent learners, each with its own weights and experience.
    #[default]
    Independent,
    /// The hidden layers; every agent has its own head.
    Trunk,
    /// All weights; the agent's number is a one-hot input. The smallest network, trained on the experience of all
    /// agents.
    All,
}

/// MLPs on [`TeamObs`] with one output per action and agent.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{ActionValues, Shared, TeamObs};
/// use brasa_nn::{TeamQNetwork, TeamQNetworkConfig};
/// use burn::tensor::Tensor;
///
/// // Four agents in each of two environments. All agents of an environment see two shared numbers.
/// let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let network = TeamQNetwork::new(&TeamQNetworkConfig::default(), 4, &obs, &action, &device, rng)?;
/// let shared = Some(Shared::PerEnv(Tensor::zeros([2, 2], &device)));
/// let seen = TeamObs { shared, own: None, mask: None, n_agents: 4, actions_per_flag: 1 };
/// assert_eq!(network.values(seen).dims(), [8, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct TeamQNetwork {
    body: StackedMlp,
    /// The Q-values, or the advantages of a dueling network.
    head: StackedLinear,
    value: Option<StackedLinear>,
    #[module(skip)]
    rows: TeamRows,
    #[module(skip)]
    n_actions: usize,
    /// Numbers of a complete observation.
    #[module(skip)]
    obs: usize,
}

impl TeamQNetwork {
    /// Networks of `n_agents` agents for these spaces, with initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if there is no agent, the action is not one discrete choice or a width is 0.
    pub fn new(
        config: &TeamQNetworkConfig,
        n_agents: usize,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        check_widths("hidden", &config.hidden)?;
        config.init.check("init")?;
        field::at_least_one("n_agents", n_agents as u64)?;
        let n_actions = n_actions(action_space)?;
        let rows = TeamRows { sharing: config.sharing, n_agents };
        let body = MlpConfig {
            inputs: rows.inputs(obs_space.width()),
            hidden: config.hidden.clone(),
            outputs: None,
            activation: config.activation,
            hidden_init: config.init,
            output_init: config.init,
        };
        let width = config.hidden.last().copied().unwrap_or(body.inputs);
        let body = StackedMlp::new(rows.n_bodies(), &body, device, rng);
        let head = StackedLinear::new(rows.n_heads(), width, n_actions, config.init, device, rng);
        let value = config.dueling.then(|| StackedLinear::new(rows.n_heads(), width, 1, config.init, device, rng));
        Ok(Self { body, head, value, rows, n_actions, obs: obs_space.width() })
    }

    /// Number of agents.
    pub fn n_agents(&self) -> usize {
        self.rows.n_agents
    }

    /// Inputs of the heads: `[heads, rows of each, width]`, or `[1, ..]` for all of them.
    fn hidden(&self, obs: &TeamObs) -> Tensor<3> {
        self.rows.hidden(&self.body, obs)
    }

    /// The state value that is added to advantages, `[heads, rows of each, 1]`.
    fn base(&self, hidden: &Tensor<3>) -> Option<Tensor<3>> {
        self.value.as_ref().map(|value| value.forward_less_mean_of(&self.head, hidden.clone()))
    }

    /// `[n_rows]` from `[heads, rows of each]`, with the state value added to advantages.
    fn dueling_values(&self, outputs: Tensor<2>, hidden: &Tensor<3>) -> Tensor<1> {
        let outputs = outputs.unsqueeze_dim(2);
        let outputs = match self.base(hidden) {
            Some(base) => outputs + base,
            None => outputs,
        };
        self.rows.by_row(outputs).squeeze_dim(1)
    }
}

impl ActionValues for TeamQNetwork {
    type Obs = TeamObs;

    fn values(&self, obs: TeamObs) -> Tensor<2> {
        let hidden = self.hidden(&obs);
        let outputs = self.head.forward(hidden.clone(), None);
        self.rows.by_row(match self.base(&hidden) {
            Some(base) => outputs + base,
            None => outputs,
        })
    }

    fn n_actions(&self) -> usize {
        self.n_actions
    }

    fn obs_width(&self) -> Option<usize> {
        Some(self.obs)
    }

    fn action_mask(&self, obs: &TeamObs) -> Option<Tensor<2>> {
        obs.legal()
    }

    fn best(&self, obs: TeamObs) -> (Tensor<2>, Tensor<1>) {
        let hidden = self.hidden(&obs);
        let mask = obs.mask.map(|mask| self.rows.by_head(mask));
        let (index, value) = self.head.best(hidden.clone(), mask);
        (self.rows.by_row(index.unsqueeze_dim(2)), self.dueling_values(value, &hidden))
    }

    fn values_of(&self, obs: TeamObs, action: Tensor<2>) -> Tensor<1> {
        let hidden = self.hidden(&obs);
        let index = self.rows.by_head(action).squeeze_dim(2);
        self.dueling_values(self.head.chosen(hidden.clone(), index), &hidden)
    }

    /// One number for the flag of the mask, one for the action within the flag.
    fn random_action_width(&self) -> usize {
        2
    }

    fn random_action(&self, obs: &TeamObs, noise: Tensor<2>) -> Tensor<2> {
        let n_rows = noise.n_rows();
        let flags = obs.mask.as_ref().map_or(1, |mask| mask.dims()[1]);
        let span = (self.n_actions / flags) as f64;
        // The flags before the chosen one of those that are legal.
        let passed = obs.mask.as_ref().map(|mask| {
            let [passed] = elementwise([n_rows, flags], |formulas| {
                let (noise, mask) = (formulas.matrix(&noise), formulas.matrix(mask));
                let count = mask.sum(0..flags);
                let which = (noise.column(0) * count).floor().min(count - 1.0);
                [vec![(mask.sum_before(0..flags) + mask.columns(0..flags)).lower_equal(which)]]
            });
            passed
        });
        let [action] = elementwise([n_rows, 1], |formulas| {
            // A product with a number just below 1 may round up.
            let within = (formulas.matrix(&noise).column(1) * span).floor().min(span - 1.0);
            let flag = passed.as_ref().map(|passed| formulas.matrix(passed).sum(0..flags));
            [vec![flag.map_or(within, |flag| flag * span + within)]]
        });
        action
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let mut layers = Layers::default();
        layers.stacked_mlp(&self.body);
        match &self.value {
            None => layers.stacked_linear(&self.head),
            Some(value) => {
                let ((_, weight, bias), (_, value, value_bias)) = (self.head.numbers(), value.numbers());
                layers.dueling(self.head.inputs(), self.n_actions, (weight, bias), (value, value_bias));
            }
        }
        self.rows.number_agents(&mut layers);
        Some(layers.policy(self.rows.n_agents, Output::Choice { heads: vec![self.n_actions] }))
    }

    fn n_learners(&self) -> usize {
        self.rows.n_bodies()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::{ObsParts, Shared};
    use burn::tensor::TensorData;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const N_AGENTS: usize = 3;
    const FLAGS: usize = 4;
    const SPAN: usize = 5;
    const SHARINGS: [Sharing; 3] = [Sharing::Independent, Sharing::Trunk, Sharing::All];

    fn random<const D: usize>(shape: [usize; D], rng: &mut ChaCha8Rng) -> Tensor<D> {
        let n = shape.iter().product::<usize>();
        let values: Vec<f32> = (0..n).map(|_| rng.random::<f32>() * 2.0 - 1.0).collect();
        Tensor::from_data(TensorData::new(values, shape), &brasa_test::device())
    }

    /// Four environments with three shared and `own` own numbers. Every row has legal and illegal flags.
    fn team(own: usize, masked: bool, rng: &mut ChaCha8Rng) -> TeamObs {
        let mask: Vec<f32> = (0..4 * N_AGENTS * FLAGS).map(|i| f32::from(u8::from((i / 3) % 2 == 0))).collect();
        let mask = TensorData::new(mask, [4 * N_AGENTS, FLAGS]);
        TeamObs::assemble(ObsParts {
            shared: Some(random([4, 3], rng)),
            own: (own > 0).then(|| random([4 * N_AGENTS, own], rng)),
            mask: masked.then(|| Tensor::from_data(mask, &brasa_test::device())),
            n_agents: N_AGENTS,
            actions_per_flag: SPAN,
        })
    }

    fn network(sharing: Sharing, dueling: bool, own: usize, rng: &mut ChaCha8Rng) -> TeamQNetwork {
        let config = TeamQNetworkConfig { hidden: vec![8, 6], dueling, sharing, ..TeamQNetworkConfig::default() };
        let obs_space = Space::uniform_box(-1.0, 1.0, (0..3 + own).map(|i| i.to_string()));
        let action_space = Space::Discrete(FLAGS * SPAN);
        TeamQNetwork::new(&config, N_AGENTS, &obs_space, &action_space, &brasa_test::device(), rng).expect("valid")
    }

    fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    fn close(got: Vec<f32>, expected: Vec<f32>) {
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-5, "{got} instead of {expected}");
        }
    }

    /// The same rows with the shared part per row.
    fn per_row(obs: &TeamObs) -> TeamObs {
        TeamObs { shared: Some(Shared::PerRow(obs.rows())), own: None, ..obs.clone() }
    }

    /// Every combination of settings of a team.
    fn each(mut check: impl FnMut(TeamQNetwork, TeamObs, &mut ChaCha8Rng)) {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for sharing in SHARINGS {
            for dueling in [false, true] {
                for own in [0, 2] {
                    for masked in [false, true] {
                        let network = network(sharing, dueling, own, &mut rng);
                        let obs = team(own, masked, &mut rng);
                        check(network, obs, &mut rng);
                    }
                }
            }
        }
    }

    #[test]
    fn narrow_questions_have_the_answers_of_the_whole_table() {
        each(|network, obs, rng| {
            let all = network.values(obs.clone());
            close(floats(network.values(per_row(&obs))), floats(all.clone()));
            let legal = obs.legal().unwrap_or_else(|| all.ones_like());
            let masked = all.clone().mask_fill(legal.equal_scalar(0.0), f32::NEG_INFINITY);
            let (choice, value) = network.best(obs.clone());
            assert_eq!(floats(choice.clone()), floats(masked.clone().argmax(1).float()));
            close(floats(value), floats(masked.max_dim(1)));
            close(floats(network.values_of(obs.clone(), choice.clone())), floats(network.best(obs.clone()).1));
            let action = (random([obs.n_rows(), 1], rng).abs() * (FLAGS * SPAN) as f64).floor();
            let expected = floats(all.gather(1, action.clone().int()));
            close(floats(network.values_of(obs.clone(), action.clone())), expected.clone());
            close(floats(network.values_of(per_row(&obs), action)), expected);
        });
    }

    #[test]
    fn v18_options_that_masks_forbid_are_never_chosen() {
        each(|network, obs, rng| {
            let Some(legal) = obs.legal() else { return };
            for _ in 0..50 {
                let noise = random([obs.n_rows(), 2], rng).abs();
                for choice in [network.random_action(&obs, noise), network.best(obs.clone()).0] {
                    let allowed = floats(legal.clone().gather(1, choice.int()));
                    assert!(allowed.iter().all(|flag| *flag == 1.0), "{allowed:?}");
                }
            }
        });
    }

    #[test]
    fn legal_options_are_drawn_as_often_as_each_other() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let network = network(Sharing::Independent, false, 0, &mut rng);
        for masked in [false, true] {
            let obs = team(0, masked, &mut rng);
            let legal = obs.legal().map_or(vec![1.0; obs.n_rows() * FLAGS * SPAN], floats);
            let mut counts = vec![0.0f64; legal.len()];
            let draws = 4000;
            for _ in 0..draws {
                let noise = random([obs.n_rows(), 2], &mut rng).abs();
                for (row, option) in floats(network.random_action(&obs, noise)).into_iter().enumerate() {
                    counts[row * FLAGS * SPAN + option as usize] += 1.0;
                }
            }
            for (row, legal) in legal.chunks(FLAGS * SPAN).enumerate() {
                let expected = f64::from(draws) / legal.iter().map(|flag| f64::from(*flag)).sum::<f64>();
                for (option, flag) in legal.iter().enumerate() {
                    let count = counts[row * FLAGS * SPAN + option];
                    let off = (count - expected * f64::from(*flag)).abs();
                    assert!(off < 5.0 * expected.sqrt(), "row {row}, option {option}: {count} of {draws}");
                    assert!(*flag > 0.0 || count == 0.0);
                }
            }
        }
    }

    #[test]
    fn the_largest_random_number_stays_within_the_options() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let network = network(Sharing::All, false, 0, &mut rng);
        // Without the identity of the agent, which the network adds.
        let sizes = ActionValues::sizes(&network).expect("they are known");
        assert_eq!(sizes.obs, 3);
        let noise = Tensor::full([12, 2], 1.0 - f32::EPSILON / 2.0, &brasa_test::device());
        for masked in [false, true] {
            let obs = team(0, masked, &mut rng);
            let options = floats(network.random_action(&obs, noise.clone()));
            assert!(options.iter().all(|option| *option < (FLAGS * SPAN) as f32), "{options:?}");
        }
    }

    #[test]
    fn v12_a_constant_on_all_advantages_changes_nothing() {
        each(|network, obs, rng| {
            if network.value.is_none() {
                return;
            }
            let (before, best) = (network.values(obs.clone()), network.best(obs.clone()));
            let action = random([obs.n_rows(), 1], rng).abs().mul_scalar(19.0).floor();
            let chosen = network.values_of(obs.clone(), action.clone());
            let mut shifted = network.clone();
            shifted.head = shifted.head.shifted(3.0);
            close(floats(shifted.values(obs.clone())), floats(before));
            close(floats(shifted.values_of(obs.clone(), action)), floats(chosen));
            close(floats(shifted.best(obs).1), floats(best.1));
        });
    }

    #[test]
    fn agents_that_share_nothing_use_their_own_weights() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let obs = team(0, false, &mut rng);
        let row_of = |network: &TeamQNetwork, row: usize| {
            let all = floats(network.values(obs.clone()));
            all[row * FLAGS * SPAN..(row + 1) * FLAGS * SPAN].to_vec()
        };
        for sharing in SHARINGS {
            let network = network(sharing, false, 0, &mut rng);
            assert_eq!(network.n_learners(), if sharing == Sharing::Independent { N_AGENTS } else { 1 });
            // Agents with equal observations differ; one agent is equal in environments with equal observations.
            assert_ne!(row_of(&network, 0), row_of(&network, 1), "{sharing:?}");
        }
    }

    #[test]
    fn a_team_is_described_in_toml_words() {
        let config: TeamQNetworkConfig =
            serde_json::from_str(r#"{"sharing": "trunk", "dueling": true}"#).expect("sound");
        assert_eq!(config, TeamQNetworkConfig { sharing: Sharing::Trunk, dueling: true, ..Default::default() });
        assert!(serde_json::from_str::<TeamQNetworkConfig>(r#"{"sharing": "some"}"#).is_err());
        let (mut rng, space) = (ChaCha8Rng::seed_from_u64(0), Space::uniform_box(-1.0, 1.0, ["0".to_string()]));
        let none = TeamQNetwork::new(&config, 0, &space, &Space::Discrete(2), &brasa_test::device(), &mut rng);
        assert_eq!(none.expect_err("nobody").to_string(), "`n_agents` must be at least 1, got 0");
    }
}
