//! Decisions, as training loops make them.

use std::hint::black_box;

use brasa_core::{Explore, HostActor, HostDecisions, HostObs, HostStepper, Policy, VecEnv};
use brasa_env::named_rng;
use brasa_nn::{draw_noise, noise_numbers};
use burn::tensor::{Tensor, TensorData};
use criterion::{Criterion, Throughput};

use crate::{Place, bench};

/// Largest difference between an action in plain memory and the action as tensors, relative to 1 or to the action.
const TOLERANCE: f32 = 1e-4;

/// Measures a decision for all environments with its noise, as the loops of `brasa-train` make it: in plain memory if the environments are
/// in the memory of the CPU and `host_actor` has such a form of the policy, otherwise as tensors.
///
/// For a [`brasa_core::ActorCritic`], `host_actor` is its method; for other policies it is `|_| None`. `make` constructs the environments
/// and the policy, which is not on an autodiff device.
///
/// Before the clock starts, the actions in plain memory must equal the actions as tensors, and all must be finite.
///
/// # Panics
/// If the environments do not start, or the actions differ.
pub fn bench_act<E, P>(
    criterion: &mut Criterion,
    what: &str,
    n_envs: usize,
    place: &Place,
    make: impl Fn(usize, &Place) -> (E, P),
    host_actor: impl Fn(&P) -> Option<Box<dyn HostActor>>,
) where
    E: VecEnv<Action = Tensor<2>>,
    P: Policy<Obs = E::Obs, Action = Tensor<2>>,
{
    let mut started = None;
    bench(criterion, what, format!("{n_envs}-envs"), &place.name, Throughput::Elements(n_envs as u64), |bencher| {
        let (env, policy, obs) = started.get_or_insert_with(|| {
            let (mut env, policy) = make(n_envs, place);
            let obs = env.reset(0).expect("the environments start");
            check(&mut env, &policy, obs.clone(), place, host_actor(&policy));
            (env, policy, obs)
        });
        let (noise, n_rows, rng) = (policy.noise(), env.n_rows(), &mut named_rng(0, "noise", 0));
        let actor = env.on_host().and_then(|stepper| Some((host_actor(policy)?, stepper.observed())));
        match actor {
            Some((mut actor, observed)) => {
                let (mut decisions, mut in_env) = (HostDecisions::default(), Vec::new());
                let mut state = vec![0.0; n_rows * policy.state_width()];
                bencher.iter(|| {
                    clear(&mut decisions);
                    let numbers = noise_numbers(noise, n_rows, rng);
                    actor.act(observed, &mut state, &numbers, &mut decisions, &mut in_env);
                    black_box(&in_env);
                });
            }
            None => bencher.iter(|| {
                let numbers = draw_noise(noise, n_rows, rng, &place.device);
                let (action, extra) = policy.act(obs.clone(), Explore::Sample(numbers));
                let in_env = policy.to_env(action);
                place.sync();
                black_box((in_env, extra))
            }),
        }
    });
}

fn clear(decisions: &mut HostDecisions) {
    let HostDecisions { action, log_prob, value } = decisions;
    [action, log_prob, value].into_iter().for_each(Vec::clear);
}

/// Compares both forms of a decision.
fn check<E, P>(env: &mut E, policy: &P, obs: E::Obs, place: &Place, actor: Option<Box<dyn HostActor>>)
where
    E: VecEnv<Action = Tensor<2>>,
    P: Policy<Obs = E::Obs, Action = Tensor<2>>,
{
    let n_rows = env.n_rows();
    let numbers = noise_numbers(policy.noise(), n_rows, &mut named_rng(1, "noise", 0));
    let data = TensorData::new(numbers.clone(), [n_rows, policy.noise().width]);
    let (action, _) = policy.act(obs, Explore::Sample(Tensor::from_data(data, &place.device)));
    let tensors: Vec<f32> = policy.to_env(action).into_data().iter::<f32>().collect();
    assert_eq!(tensors.len(), n_rows * env.spec().action.width(), "an action for every row");
    assert!(tensors.iter().all(|action| action.is_finite()), "actions are finite, got {tensors:?}");
    let Some((stepper, mut actor)) = env.on_host().zip(actor) else { return };
    let observed: HostObs<'_> = HostStepper::observed(stepper);
    let (mut decisions, mut plain) = (HostDecisions::default(), Vec::new());
    let mut state = vec![0.0; n_rows * policy.state_width()];
    actor.act(observed, &mut state, &numbers, &mut decisions, &mut plain);
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= TOLERANCE * b.abs().max(1.0);
    let equal = plain.len() == tensors.len() && plain.iter().zip(&tensors).all(close);
    assert!(equal, "actions in plain memory {plain:?} differ from actions as tensors {tensors:?}");
}
