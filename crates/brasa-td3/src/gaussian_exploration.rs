//! A deterministic actor with Gaussian exploration noise.

use brasa_core::export::ExportedPolicy;
use brasa_core::{Explore, NetworkSizes, NoiseDistribution, NoiseSpec, Policy, RandomWarmup};
use burn::tensor::Tensor;

/// `clip(mu(s) + std noise, -1, 1)` with standard normal noise while exploring, otherwise `mu(s)`: Fujimoto et al.
/// 2018, algorithm 1, and the clipping of the authors' code.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{Explore, Obs, Policy};
/// use brasa_nn::{DeterministicActor, DeterministicActorConfig};
/// use brasa_td3::GaussianExploration;
/// use burn::tensor::Tensor;
///
/// # let device = brasa_device::open_named("cpu")?;
/// # let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-2.0, 2.0, ["torque"]));
/// # let rng = &mut named_rng(0, "weights", 0);
/// let actor = DeterministicActor::new(&DeterministicActorConfig::default(), &obs, &action, &device, rng)?;
/// let policy = GaussianExploration { actor, std: 0.1 };
/// // Noise of 100 standard deviations: the action is cut at its bound.
/// let noise = Tensor::full([1, policy.noise().width], 100.0, &device);
/// let (action, ()) = policy.act(Obs::new(Tensor::zeros([1, 2], &device)), Explore::Sample(noise));
/// assert_eq!(action.to_data().to_vec::<f32>()?, [1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct GaussianExploration<A> {
    /// The deterministic actor, on the non-autodiff device.
    pub actor: A,
    /// Standard deviation of the noise, in units of actions in [-1, 1].
    pub std: f64,
}

impl<A> GaussianExploration<A> {
    /// A policy without exploration, for evaluation.
    pub fn greedy(actor: A) -> Self {
        Self { actor, std: 0.0 }
    }
}

impl<A> Policy for GaussianExploration<A>
where
    A: RandomWarmup<Action = Tensor<2>, Extra = ()>,
{
    type Obs = A::Obs;
    type Action = Tensor<2>;
    type Extra = ();

    /// Standard normal numbers, as many as the noise of the actor, new at every step.
    fn noise(&self) -> NoiseSpec {
        NoiseSpec { width: self.actor.noise().width, distribution: NoiseDistribution::Normal, resample_every: 1 }
    }

    /// # Panics
    /// If the noise of the actor has fewer numbers than an action.
    fn act(&self, obs: A::Obs, explore: Explore) -> (Tensor<2>, ()) {
        let (action, ()) = self.actor.act(obs, Explore::Greedy);
        let Explore::Sample(noise) = explore else { return (action, ()) };
        let [n_rows, n_actions] = action.dims();
        let width = noise.dims()[1];
        assert!(width >= n_actions, "actions of {n_actions} numbers need as much noise, the actor asks for {width}");
        let noise = noise.slice([0..n_rows, 0..n_actions]);
        ((action + noise * self.std).clamp(-1.0, 1.0), ())
    }

    fn is_stochastic(&self) -> bool {
        false
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        self.actor.to_env(action)
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        self.actor.sizes()
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        self.actor.exported()
    }
}

impl<A> RandomWarmup for GaussianExploration<A>
where
    A: RandomWarmup<Action = Tensor<2>, Extra = ()>,
{
    fn random_action(&self, obs: A::Obs, noise: Tensor<2>) -> Tensor<2> {
        self.actor.random_action(obs, noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::Obs;

    /// The action is the first two numbers of the observation; the noise has three numbers.
    struct Echo;

    impl Policy for Echo {
        type Obs = Obs;
        type Action = Tensor<2>;
        type Extra = ();
        fn noise(&self) -> NoiseSpec {
            NoiseSpec { width: 3, distribution: NoiseDistribution::Uniform, resample_every: 7 }
        }
        fn act(&self, obs: Obs, _: Explore) -> (Tensor<2>, ()) {
            (obs.values, ())
        }
        fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
            action * 2.0
        }
    }

    impl RandomWarmup for Echo {
        fn random_action(&self, _: Obs, noise: Tensor<2>) -> Tensor<2> {
            noise
        }
    }

    #[test]
    fn noise_is_scaled_added_and_cut_at_the_bounds() {
        let device = brasa_test::device();
        let read = |action: Tensor<2>| action.into_data().iter::<f32>().collect::<Vec<_>>();
        let obs = || Obs::new(Tensor::from_floats([[0.25, -0.5], [0.75, -1.0]], &device));
        let noise = || Tensor::from_floats([[1.0, -2.0, 9.0], [3.0, -0.5, 9.0]], &device);
        let policy = GaussianExploration { actor: Echo, std: 0.25 };
        assert_eq!(policy.noise(), NoiseSpec { width: 3, distribution: NoiseDistribution::Normal, resample_every: 1 });
        assert_eq!(read(policy.act(obs(), Explore::Sample(noise())).0), [0.5, -1.0, 1.0, -1.0]);
        assert_eq!(read(policy.act(obs(), Explore::Greedy).0), [0.25, -0.5, 0.75, -1.0]);
        let greedy = GaussianExploration::greedy(Echo);
        assert_eq!(read(greedy.act(obs(), Explore::Sample(noise())).0), [0.25, -0.5, 0.75, -1.0]);
        assert_eq!(read(policy.to_env(obs().values)), [0.5, -1.0, 1.5, -2.0]);
    }
}
