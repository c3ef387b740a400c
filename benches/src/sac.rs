//! Actor-critics for continuous actions on a filled replay buffer, and the matrix products that an update contains.

use brasa::buffers::{ReplayBuffer, ReplayConfig};
use brasa::contracts::{Learner, Obs, Progress, StepBatch, Successor};
use brasa::env::{EnvRng, EnvSpec, Space, named_rng};
use brasa::nn::{
    DeterministicActor, DeterministicActorConfig, Init, MlpCritics, MlpCriticsConfig, SquashedActor,
    SquashedActorConfig,
};
use brasa::sac::{Sac, SacConfig};
use brasa::td3::{Td3, Td3Config};
use brasa_bench_kit::random_actions;
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::Array2;

/// Sizes of a learner.
#[derive(Debug, Clone, Copy)]
pub struct SacShape {
    /// Width of the observation.
    pub obs: usize,
    /// Width of the action.
    pub action: usize,
    /// Width of both hidden layers.
    pub hidden: usize,
    /// Rows per update.
    pub batch: usize,
}

impl SacShape {
    /// Pendulum-v1 with two layers of 64 and batches of 100.
    pub const SMALL: Self = Self { obs: 3, action: 1, hidden: 64, batch: 100 };
    /// The size of a typical locomotion task: layers of 256 and batches of 256.
    pub const LARGE: Self = Self { obs: 17, action: 6, hidden: 256, batch: 256 };
}

impl SacShape {
    /// Spaces of observations and actions, both bounded by -1 and 1.
    pub fn spaces(&self) -> [Space; 2] {
        let space = |n: usize| Space::uniform_box(-1.0, 1.0, (0..n).map(|i| i.to_string()));
        [space(self.obs), space(self.action)]
    }

    /// A learner with initial weights on the autodiff form of `device`.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn sac(&self, device: &Device) -> Sac<SquashedActor, MlpCritics> {
        let [obs, action] = self.spaces();
        let (rng, autodiff) = (&mut named_rng(0, "weights", 0), device.clone().autodiff());
        let actor = SquashedActorConfig { hidden: vec![self.hidden; 2], ..SquashedActorConfig::default() };
        let actor = SquashedActor::new(&actor, &obs, &action, &autodiff, rng).expect("valid");
        Sac::new(actor, self.critics(device, rng), SacConfig::default(), 0).expect("valid")
    }

    /// A TD3 learner of this size.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn td3(&self, device: &Device) -> Td3<DeterministicActor, MlpCritics> {
        let [obs, action] = self.spaces();
        let (rng, autodiff) = (&mut named_rng(0, "weights", 0), device.clone().autodiff());
        let actor = DeterministicActorConfig { hidden: vec![self.hidden; 2], ..DeterministicActorConfig::default() };
        let actor = DeterministicActor::new(&actor, &obs, &action, &autodiff, rng).expect("valid");
        Td3::new(actor, self.critics(device, rng), Td3Config::default(), 0).expect("valid")
    }

    fn critics(&self, device: &Device, rng: &mut EnvRng) -> MlpCritics {
        let [obs, action] = self.spaces();
        let critics = MlpCriticsConfig { hidden: vec![self.hidden; 2], ..MlpCriticsConfig::default() };
        MlpCritics::new(&critics, &obs, &action, &device.clone().autodiff(), rng).expect("valid")
    }

    /// A replay buffer with 10,000 random transitions of these widths.
    pub fn replay(&self, device: &Device) -> ReplayBuffer<Obs, Tensor<2>> {
        let [obs, action] = self.spaces();
        random_replay(&obs, &action, device)
    }
}

/// A replay buffer with 10,000 random transitions.
///
/// # Panics
/// Never: the settings are valid.
pub fn random_replay(obs_space: &Space, action_space: &Space, device: &Device) -> ReplayBuffer<Obs, Tensor<2>> {
    const ROWS: usize = 100;
    let config = ReplayConfig { capacity: 10_000, ..ReplayConfig::default() };
    let spec = EnvSpec::new(obs_space.clone(), action_space.clone(), ROWS);
    let spec = EnvSpec { truncation_interval: EnvSpec::NEVER, ..spec };
    let all_legal = Array2::zeros((ROWS, 0));
    let (rng, mut sets) = (&mut named_rng(0, "replay", 0), 0..);
    let mut action = || {
        let actions = random_actions(&spec, all_legal.view(), sets.next().expect("it has no end"));
        let shape = [ROWS, action_space.width()];
        Tensor::<2>::from_data(TensorData::new(actions.into_iter().collect::<Vec<f32>>(), shape), device)
    };
    let mut random = |width: usize| {
        let (values, _) = Init::FanIn.draw(ROWS, width, rng);
        Tensor::<2>::from_data(TensorData::new(values, [ROWS, width]), device)
    };
    let obs = Obs::new(random(obs_space.width()));
    let mut replay = ReplayBuffer::new(&config, &spec, &obs, &action(), 0.99, device).expect("valid");
    replay.begin(obs);
    for _ in 0..config.capacity / ROWS {
        let step = StepBatch {
            obs: Obs::new(random(obs_space.width())),
            successor: Successor::Same,
            reward: random(1).squeeze_dim(1),
            terminated: Tensor::zeros([ROWS], device),
            truncated: Tensor::zeros([ROWS], device),
            elapsed: None,
        };
        replay.push(action(), &step).expect("no row is truncated");
    }
    replay
}

/// A learner with a replay buffer of 10,000 random transitions.
#[derive(Debug)]
pub struct SacBench {
    sac: Sac<SquashedActor, MlpCritics>,
    replay: ReplayBuffer<Obs, Tensor<2>>,
    shape: SacShape,
    updates: u64,
}

impl SacBench {
    /// Fills the replay buffer.
    pub fn new(shape: SacShape, device: &Device) -> Self {
        Self { sac: shape.sac(device), replay: shape.replay(device), shape, updates: 0 }
    }

    /// Records updates and replays them, where the device can.
    #[allow(unsafe_code, reason = "a learner that records")]
    pub fn record(&mut self) {
        // SAFETY: all tensors of these networks are parts of them.
        unsafe { self.sac.record(true) };
    }

    /// Samples a batch and updates the learner.
    pub fn update(&mut self) {
        let rng = &mut named_rng(0, "replay", self.updates);
        let batch = self.replay.sample(self.shape.batch, 0.0, rng);
        self.sac.update(batch, Progress::new(0, 1));
        self.updates += 1;
    }
}

/// Operands of the matrix products of one update.
#[derive(Debug)]
pub struct Products {
    forward: Vec<[Tensor<3>; 2]>,
}

impl Products {
    /// Three passes of the actor (two forward, one backward for weights and one for inputs) and of the two critics (targets,
    /// forward with both backward products, forward with the product for inputs).
    pub fn new(shape: SacShape, device: &Device) -> Self {
        let SacShape { obs, action, hidden, batch } = shape;
        let random = |n: usize, rows: usize, columns: usize| {
            let (values, _) = Init::FanIn.draw(n * rows, columns, &mut named_rng(0, "products", 0));
            Tensor::<3>::from_data(TensorData::new(values, [n, rows, columns]), device)
        };
        let mut forward = Vec::new();
        let mut layers =
            |n: usize, widths: [usize; 4], passes: usize, weights: usize, inputs: usize, input_grad: bool| {
                for (layer, pair) in widths.windows(2).enumerate() {
                    let [from, to] = [pair[0], pair[1]];
                    for _ in 0..passes {
                        forward.push([random(n, batch, from), random(n, from, to)]);
                    }
                    for _ in 0..weights {
                        forward.push([random(n, batch, from).swap_dims(1, 2), random(n, batch, to)]);
                    }
                    if layer > 0 || input_grad {
                        for _ in 0..inputs {
                            forward.push([random(n, batch, to), random(n, from, to).swap_dims(1, 2)]);
                        }
                    }
                }
            };
        let judged = obs + action;
        layers(1, [obs, hidden, hidden, 2 * action], 2, 1, 1, false);
        layers(2, [judged, hidden, hidden, 1], 2, 1, 1, false);
        layers(2, [judged, hidden, hidden, 1], 1, 0, 1, true);
        Self { forward }
    }

    /// Computes all products once.
    pub fn multiply(&self) {
        for [left, right] in &self.forward {
            std::hint::black_box(left.clone().matmul(right.clone()));
        }
    }
}
