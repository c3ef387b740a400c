//! The epsilon-greedy policy.

use brasa_core::export::ExportedPolicy;
use brasa_core::{
    ActionValues, Explore, NetworkSizes, NoiseDistribution, NoiseSpec, Policy, PolicyState, RandomWarmup,
};
use brasa_kernels::{HostTensor, elementwise};
use burn::tensor::Tensor;

/// Takes the action with the highest value, and with probability `epsilon` a random legal action.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{Explore, Obs, Policy};
/// use brasa_dqn::EpsilonGreedy;
/// use brasa_nn::{QNetwork, QNetworkConfig, draw_noise};
/// # use burn::tensor::Tensor;
///
/// # let device = brasa_device::open_named("cpu")?;
/// # let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// let network = QNetwork::new(&QNetworkConfig::default(), &obs, &action, &device, &mut named_rng(0, "weights", 0))?;
/// let policy = EpsilonGreedy { network, epsilon: 1.0 };
/// let obs = Obs::new(Tensor::zeros([100, 2], &device));
/// let noise = draw_noise(policy.noise(), 100, &mut named_rng(0, "noise", 0), &device);
/// let (explored, ()) = policy.act(obs.clone(), Explore::Sample(noise));
/// let (greedy, ()) = policy.act(obs, Explore::Greedy);
/// // Equal observations have one best action, and random actions differ.
/// assert_eq!(greedy.clone().min().to_data(), greedy.max().to_data());
/// assert_ne!(explored.clone().min().to_data(), explored.max().to_data());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct EpsilonGreedy<N> {
    /// The Q-network, on the non-autodiff device.
    pub network: N,
    /// Probability of a random action while exploring.
    pub epsilon: f64,
}

impl<N: ActionValues> EpsilonGreedy<N> {
    /// A policy without exploration, for evaluation.
    pub fn greedy(network: N) -> Self {
        Self { network, epsilon: 0.0 }
    }

    /// `false` if the noise is in the memory of the CPU and no row takes a random action. A measurement counts what a GPU needs, which computes
    /// random actions in any case.
    fn may_explore(&self, noise: &Tensor<2>) -> bool {
        if brasa_device::is_measured() {
            return true;
        }
        let width = noise.dims()[1];
        HostTensor::of(noise).is_none_or(|numbers| numbers.iter().step_by(width).any(|x| *x < self.epsilon as f32))
    }

    /// The columns of noise after the first.
    fn random_action_noise(&self, noise: Tensor<2>) -> Tensor<2> {
        let [n_rows, width] = noise.dims();
        noise.slice([0..n_rows, 1..width])
    }
}

impl<N: ActionValues> Policy for EpsilonGreedy<N> {
    type Obs = N::Obs;
    type Action = Tensor<2>;
    type Extra = ();

    fn noise(&self) -> NoiseSpec {
        NoiseSpec {
            width: 1 + self.network.random_action_width(),
            distribution: NoiseDistribution::Uniform,
            resample_every: 1,
        }
    }

    fn act(&self, obs: N::Obs, explore: Explore) -> (Tensor<2>, ()) {
        self.act_from(obs, &mut PolicyState::default(), explore)
    }

    fn state_width(&self) -> usize {
        self.network.state_width()
    }

    fn act_from(&self, obs: N::Obs, state: &mut PolicyState, explore: Explore) -> (Tensor<2>, ()) {
        let noise = match explore {
            Explore::Sample(noise) if self.may_explore(&noise) => noise,
            _ => return (self.network.best_from(obs, state).0, ()),
        };
        let any = self.network.random_action(&obs, self.random_action_noise(noise.clone()));
        let best = self.network.best_from(obs, state).0;
        let [action] = elementwise([noise.dims()[0], 1], |formulas| {
            let explores = formulas.matrix(&noise).column(0).lower(formulas.number(self.epsilon));
            [vec![explores.select(formulas.read(&any), formulas.read(&best))]]
        });
        (action, ())
    }

    fn is_stochastic(&self) -> bool {
        false
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        action
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        self.network.sizes()
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        self.network.exported()
    }
}

impl<N: ActionValues> RandomWarmup for EpsilonGreedy<N> {
    fn random_action(&self, obs: N::Obs, noise: Tensor<2>) -> Tensor<2> {
        self.network.random_action(&obs, self.random_action_noise(noise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::Obs;
    use brasa_core::env::named_rng;
    use brasa_nn::draw_noise;

    /// A network whose values are the observation.
    #[derive(Clone)]
    struct Identity;

    impl ActionValues for Identity {
        type Obs = Obs;
        fn values(&self, obs: Obs) -> Tensor<2> {
            obs.values
        }
        fn n_actions(&self) -> usize {
            3
        }
        fn action_mask(&self, obs: &Obs) -> Option<Tensor<2>> {
            obs.mask.clone()
        }
    }

    #[test]
    fn exploration_is_as_frequent_as_epsilon_and_stays_legal() {
        let device = brasa_test::device();
        let n_rows = 4000;
        let obs = |mask: [f32; 3]| Obs {
            values: Tensor::<1>::from_floats([3.0, 2.0, 1.0], &device).unsqueeze::<2>().expand([n_rows, 3]),
            mask: Some(Tensor::<1>::from_floats(mask, &device).unsqueeze::<2>().expand([n_rows, 3])),
        };
        let policy = EpsilonGreedy { network: Identity, epsilon: 0.3 };
        let rng = &mut named_rng(1, "test", 0);
        let shares = |action: Tensor<2>| {
            let mut count = [0.0; 3];
            action.into_data().iter::<f32>().for_each(|option| count[option as usize] += 1.0 / n_rows as f64);
            count
        };
        let explored = |mask: [f32; 3], rng: &mut _| {
            let noise = draw_noise(policy.noise(), n_rows, rng, &device);
            shares(policy.act(obs(mask), Explore::Sample(noise)).0)
        };
        let near = |got: [f64; 3], expected: [f64; 3]| {
            assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.03), "{got:?} instead of {expected:?}");
        };
        near(explored([1.0, 1.0, 1.0], rng), [0.8, 0.1, 0.1]);
        near(explored([0.0, 1.0, 1.0], rng), [0.0, 0.85, 0.15]);
        let noise = draw_noise(policy.noise(), n_rows, rng, &device);
        near(shares(policy.random_action(obs([1.0, 0.0, 1.0]), noise)), [0.5, 0.0, 0.5]);
        near(shares(policy.act(obs([0.0, 0.0, 1.0]), Explore::Greedy).0), [0.0, 0.0, 1.0]);
    }

    #[test]
    fn rows_explore_where_their_noise_is_below_epsilon() {
        let device = brasa_test::device();
        let policy = EpsilonGreedy { network: Identity, epsilon: 0.3 };
        // The best action is 0, the random one 2.
        let act = |noise: [f32; 2]| {
            let obs = Obs::new(Tensor::from_floats([[3.0, 2.0, 1.0]; 2], &device));
            let noise = noise.map(|noise| [noise, 0.1, 0.2, 0.9]);
            let actions = || policy.act(obs.clone(), Explore::Sample(Tensor::from_floats(noise, &device))).0;
            // A measurement computes the random actions in any case.
            let (measured, _) = brasa_device::measure(actions);
            let read = |actions: Tensor<2>| actions.into_data().iter::<f32>().collect::<Vec<_>>();
            assert_eq!(read(actions()), read(measured.clone()));
            read(measured)
        };
        assert_eq!(act([0.3, 0.9]), [0.0, 0.0]);
        assert_eq!(act([0.29, 0.9]), [2.0, 0.0]);
        assert_eq!(act([0.0, 0.1]), [2.0, 2.0]);
    }
}
