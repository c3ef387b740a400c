//! What a buffer gives.

use brasa_core::{Rows, rows_by_field};
use burn::tensor::{Int, Tensor};

use super::ReplayedSequences;

/// Transitions sampled from a [`ReplayBuffer`](super::ReplayBuffer), one per row. The tensors are without autodiff: in a loss with a network on an
/// autodiff device they are constants.
///
/// The target of a value is `reward + discount * value(next_obs)`.
///
/// ```
/// use brasa_buffers::{EnvSpec, Obs, ReplayBuffer, Space, Transition, named_rng};
/// use brasa_core::read_back;
///
/// let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x"]), Space::Discrete(2), 1);
/// let device = brasa_device::open_named("cpu")?;
/// let mut replay = ReplayBuffer::<Obs, _>::builder(&spec).capacity(100).gamma(0.9).build(&device)?;
/// replay.push_one(&Transition::new(&[0.5], &[1.0], -1.0, &[0.75]).truncated())?;
/// let batch = replay.sample(2, 0.0, &mut named_rng(0, "example", 0));
/// // A truncated episode is bootstrapped from its last observation.
/// assert_eq!(read_back(batch.next_obs.values), [0.75, 0.75]);
/// assert_eq!(read_back(batch.discount), [0.9, 0.9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Transitions<O, A> {
    /// Observations.
    pub obs: O,
    /// Actions.
    pub action: A,
    /// `[n]`: `r_0 + gamma r_1 + ...` over at most `n_step` steps, fewer at the end of an episode or of the stored
    /// steps.
    pub reward: Tensor<1>,
    /// The observation after the last of those steps, before any reset.
    pub next_obs: O,
    /// `[n]`: `gamma` to the power of the number of steps; 0 if the last one terminated the episode.
    pub discount: Tensor<1>,
    /// `[n]`: importance-sampling weights, at most 1; `None` for uniform sampling. Those of sequences: see [`ReplayedSequences`].
    pub weight: Option<Tensor<1>>,
    /// `[n]`: indices of the transitions, for [`ReplayBuffer::set_priorities`](super::ReplayBuffer::set_priorities), where the buffer is.
    pub rows: Tensor<1, Int>,
    /// With [`ReplayConfig::sequences`](super::ReplayConfig::sequences): the rows are consecutive steps. Rows that are selected stand alone.
    pub sequences: Option<ReplayedSequences>,
}

rows_by_field!([O: Rows, A: Rows] Transitions<O, A> { obs, action, reward, next_obs, discount, weight, rows, [sequences] });

impl<O, A> Transitions<O, A> {
    /// With the indices on the device of the rest. A buffer on the host has them there.
    pub fn on_one_device(self) -> Self {
        Self { rows: self.rows.to_device(&self.reward.device()), ..self }
    }
}
