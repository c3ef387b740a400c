//! Soft actor-critic on a filled replay buffer, and the matrix products that an update contains.

use brasa::buffers::{ReplayBuffer, ReplayConfig};
use brasa::core::{Learner, Obs, Progress, StepBatch, Successor};
use brasa::env::{EnvSpec, Space, named_rng};
use brasa::nn::{Init, MlpCritics, MlpCriticsConfig, SquashedActor, SquashedActorConfig};
use brasa::sac::{Sac, SacConfig};
use burn::tensor::{Device, Tensor, TensorData};

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

/// A learner with a replay buffer of 10,000 random transitions.
pub struct SacBench {
    sac: Sac<SquashedActor, MlpCritics>,
    replay: ReplayBuffer<Obs, Tensor<2>>,
    shape: SacShape,
    updates: u64,
}

impl SacBench {
    /// Fills the replay buffer.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn new(shape: SacShape, device: &Device) -> Self {
        let names = |n: usize| (0..n).map(|i| i.to_string());
        let (obs_space, action_space) =
            (Space::uniform_box(-1.0, 1.0, names(shape.obs)), Space::uniform_box(-1.0, 1.0, names(shape.action)));
        let (rng, autodiff) = (&mut named_rng(0, "weights", 0), device.clone().autodiff());
        let hidden = vec![shape.hidden; 2];
        let actor = SquashedActorConfig { hidden: hidden.clone(), ..SquashedActorConfig::default() };
        let critics = MlpCriticsConfig { hidden, ..MlpCriticsConfig::default() };
        let actor = SquashedActor::new(&actor, &obs_space, &action_space, &autodiff, rng).expect("valid");
        let critics = MlpCritics::new(&critics, &obs_space, &action_space, &autodiff, rng).expect("valid");
        let sac = Sac::new(actor, critics, SacConfig::default(), 0).expect("valid");

        let n_rows = 100;
        let random = |width: usize, rng: &mut _| {
            let (values, _) = Init::FanIn.draw(n_rows, width, rng);
            Tensor::<2>::from_data(TensorData::new(values, [n_rows, width]), device)
        };
        let obs = Obs::new(random(shape.obs, rng));
        let config = ReplayConfig { capacity: 10_000, ..ReplayConfig::default() };
        let spec = EnvSpec { truncation_interval: EnvSpec::NEVER, ..EnvSpec::new(obs_space, action_space, n_rows) };
        let mut replay =
            ReplayBuffer::new(&config, &obs, &random(shape.action, rng), 0.99, &spec, device).expect("valid");
        replay.begin(obs);
        for _ in 0..100 {
            let step = StepBatch {
                obs: Obs::new(random(shape.obs, rng)),
                successor: Successor::Same,
                reward: random(1, rng).squeeze_dim(1),
                terminated: Tensor::zeros([n_rows], device),
                truncated: Tensor::zeros([n_rows], device),
                elapsed: None,
            };
            replay.push(random(shape.action, rng), &step).expect("no row is truncated");
        }
        Self { sac, replay, shape, updates: 0 }
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
