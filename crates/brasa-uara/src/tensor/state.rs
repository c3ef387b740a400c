//! The state of networks on a device.

use brasa_core::TensorState;
use burn::tensor::Tensor;

use super::gains::Gains;
use super::walk::Walk;

/// The state of [`TensorUara`](super::TensorUara). Every tensor has a row per environment; parts that a config does not need are
/// `None`.
///
/// ```
/// # fn on(device: &burn::tensor::Device) -> Result<(), brasa_env::EnvError> {
/// use brasa_core::{TensorEnv, TensorState, VecEnv};
/// use brasa_uara::{Uara, UaraConfig, tensor::UaraTensors};
///
/// let (dynamics, _) = Uara::new(UaraConfig::default())?.tensors(device)?;
/// let mut envs = TensorEnv::<_>::new(dynamics, 64, device)?;
/// envs.reset(7)?;
/// let state: &UaraTensors = envs.state().expect("the environments were reset");
/// assert!(state.parts().iter().all(|part| part.dims()[0] == 64));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct UaraTensors {
    pub(super) links: Links,
    /// 1 for a satisfied user, `[n_envs, users]`.
    pub(super) satisfied: Tensor<2>,
    /// Interference that users observe, mW, `[n_envs, users * channels]`.
    pub(super) heard_mw: Option<Tensor<2>>,
    /// `[n_envs, users * channels]`.
    pub(super) tags: Option<Tensor<2>>,
    /// Steps since the start, `[n_envs, 1]`; `None` if the host knows them.
    pub(super) steps: Option<Tensor<2>>,
    /// `None` if they never change.
    pub(super) gains: Option<Gains>,
    /// `None` if no user moves.
    pub(super) walk: Option<Walk>,
}

/// The links of users, each `[n_envs, users]`; -1 before the first decision.
#[derive(Debug, Clone)]
pub(super) struct Links {
    pub station: Tensor<2>,
    pub channel: Tensor<2>,
}

/// A part that may be absent: then it has no columns.
fn or_none(part: Option<&Tensor<2>>, like: &Tensor<2>) -> Tensor<2> {
    part.cloned().unwrap_or_else(|| Tensor::zeros([like.dims()[0], 0], &like.device()))
}

/// A part, unless it has no columns.
fn present(part: Tensor<2>) -> Option<Tensor<2>> {
    (part.dims()[1] > 0).then_some(part)
}

impl TensorState for UaraTensors {
    fn parts(&self) -> Vec<Tensor<2>> {
        let (gains, walk) = (self.gains.as_ref(), self.walk.as_ref());
        let optional = [
            self.heard_mw.as_ref(),
            self.tags.as_ref(),
            self.steps.as_ref(),
            gains.map(|gains| &gains.received_mw),
            gains.and_then(|gains| gains.reached.as_ref()),
            gains.and_then(|gains| gains.ranks.as_ref()),
            walk.map(|walk| &walk.stations_m),
            walk.map(|walk| &walk.homes_m),
            walk.and_then(|walk| walk.shadowing_db.as_ref()),
            walk.map(|walk| &walk.from_m),
            walk.map(|walk| &walk.to_m),
            walk.map(|walk| &walk.steps),
            walk.and_then(|walk| walk.amplitudes.as_ref()),
        ];
        let needed = [&self.links.station, &self.links.channel, &self.satisfied].map(Tensor::clone);
        needed.into_iter().chain(optional.map(|part| or_none(part, &self.satisfied))).collect()
    }

    fn from_parts(parts: Vec<Tensor<2>>) -> Self {
        let parts: [Tensor<2>; 16] = parts.try_into().expect("there are as many parts as were handed out");
        let [station, channel, satisfied, heard_mw, tags, steps, received_mw, reached, ranks, walk @ ..] = parts;
        let gains = |received_mw| Gains { received_mw, reached: present(reached), ranks: present(ranks) };
        let [stations_m, homes_m, shadowing_db, from_m, to_m, walked, amplitudes] = walk;
        let walk = |stations_m| Walk {
            stations_m,
            homes_m,
            shadowing_db: present(shadowing_db),
            from_m,
            to_m,
            steps: walked,
            amplitudes: present(amplitudes),
        };
        Self {
            links: Links { station, channel },
            satisfied,
            heard_mw: present(heard_mw),
            tags: present(tags),
            steps: present(steps),
            gains: present(received_mw).map(gains),
            walk: present(stations_m).map(walk),
        }
    }
}
