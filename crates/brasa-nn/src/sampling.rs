//! A policy that explores wherever it acts.

use std::sync::{Mutex, PoisonError};

use brasa_core::env::{EnvRng, named_rng};
use brasa_core::{Explore, NetworkSizes, NoiseSpec, Policy, PolicyState, Rows};
use burn::tensor::{Device, Tensor};

use crate::draw_noise;

/// A stochastic policy whose actions are sampled where [`Explore::Greedy`] asks for the most likely one: for evaluations of the policy as it acts
/// during training.
///
/// The random numbers come from a seed. Noise that a policy keeps for several steps is kept for as many calls.
///
/// ```
/// use brasa_core::env::{EnvSpec, Space, named_rng};
/// use brasa_core::{Explore, Obs, Policy};
/// use brasa_nn::{ActorCriticConfig, MlpActorCritic, Sampling};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x"]), Space::Discrete(2), 100);
/// let (config, rng) = (ActorCriticConfig::default(), &mut named_rng(0, "example", 0));
/// let network = MlpActorCritic::new(&config, &spec.obs, &spec.action, &device, rng)?;
/// let policy = Sampling::new(network, 7, &device).expect("it is stochastic");
/// let obs = Obs::new(Tensor::zeros([100, 1], &device));
/// let right: f32 = policy.act(obs, Explore::Greedy).0.sum().into_scalar();
/// // An untrained network chooses both actions about equally often.
/// assert!((30.0..70.0).contains(&right));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sampling<P> {
    policy: P,
    device: Device,
    drawn: Mutex<Drawn>,
}

#[derive(Debug)]
struct Drawn {
    rng: EnvRng,
    /// The noise of the last call, and the calls that used it.
    kept: Option<(Tensor<2>, usize)>,
}

impl<P: Policy> Sampling<P> {
    /// `policy` on `device` with random numbers from `seed`; `None` for a deterministic policy.
    pub fn new(policy: P, seed: u64, device: &Device) -> Option<Self> {
        let drawn = Drawn { rng: named_rng(seed, "sampled actions", 0), kept: None };
        (policy.is_stochastic() && policy.noise().width > 0).then(|| Self {
            policy,
            device: device.clone(),
            drawn: Mutex::new(drawn),
        })
    }

    fn explore(&self, obs: &P::Obs, explore: Explore) -> Explore {
        let Explore::Greedy = explore else { return explore };
        let (spec, n_rows) = (self.policy.noise(), obs.n_rows());
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let Drawn { rng, kept } = &mut *drawn;
        let fits = |noise: &Tensor<2>, uses: usize| noise.dims()[0] == n_rows && uses < spec.resample_every;
        let (noise, uses) = match kept.take() {
            Some((noise, uses)) if fits(&noise, uses) => (noise, uses),
            _ => (draw_noise(spec, n_rows, rng, &self.device), 0),
        };
        *kept = Some((noise.clone(), uses + 1));
        Explore::Sample(noise)
    }
}

impl<P: Policy> Policy for Sampling<P> {
    type Obs = P::Obs;
    type Action = P::Action;
    type Extra = P::Extra;

    fn noise(&self) -> NoiseSpec {
        self.policy.noise()
    }

    fn act(&self, obs: P::Obs, explore: Explore) -> (P::Action, P::Extra) {
        let explore = self.explore(&obs, explore);
        self.policy.act(obs, explore)
    }

    fn state_width(&self) -> usize {
        self.policy.state_width()
    }

    fn act_from(&self, obs: P::Obs, state: &mut PolicyState, explore: Explore) -> (P::Action, P::Extra) {
        let explore = self.explore(&obs, explore);
        self.policy.act_from(obs, state, explore)
    }

    fn to_env(&self, action: P::Action) -> P::Action {
        self.policy.to_env(action)
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        self.policy.sizes()
    }

    fn has_action_for(&self, obs: &[f32]) -> bool {
        self.policy.has_action_for(obs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::env::{EnvSpec, Space};
    use brasa_core::{Obs, read_back};

    use crate::{ActorCriticConfig, MlpActorCritic, StdKind};

    /// Equal seeds give equal actions, other seeds others, and noise of several steps is kept for them.
    #[test]
    fn actions_come_from_the_seed_and_noise_is_kept() {
        let device = brasa_test::device();
        let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-1.0, 1.0, ["a"]), 4);
        let policy = |sde_sample_freq, std, seed| {
            let config = ActorCriticConfig { sde_sample_freq, std, ..ActorCriticConfig::default() };
            let rng = &mut named_rng(0, "test", 0);
            let network = MlpActorCritic::new(&config, &spec.obs, &spec.action, &device, rng).expect("valid");
            Sampling::new(network, seed, &device).expect("it is stochastic")
        };
        let obs = || Obs::new(Tensor::full([4, 2], 0.5, &device));
        let act = |policy: &Sampling<MlpActorCritic>| read_back(policy.act(obs(), Explore::Greedy).0);
        let (first, again, other) = (
            policy(None, StdKind::Independent, 1),
            policy(None, StdKind::Independent, 1),
            policy(None, StdKind::Independent, 2),
        );
        let actions = act(&first);
        assert_eq!(act(&again), actions);
        assert_ne!(act(&other), actions);
        assert_ne!(act(&first), actions, "the next step has other noise");

        let kept = policy(Some(2), StdKind::StateDependent, 1);
        let steps: Vec<Vec<f32>> = (0..4).map(|_| act(&kept)).collect();
        assert_eq!(steps[0], steps[1]);
        assert_eq!(steps[2], steps[3]);
        assert_ne!(steps[1], steps[2]);
    }
}
