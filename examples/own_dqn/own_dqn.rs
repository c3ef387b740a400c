//! A deep Q-network of one's own (Mnih et al. 2015): layers and optimizer of Burn, the memory of `brasa-buffers`.
//!
//! `cargo run --release -p example-own-dqn --example own_dqn`; a number after `--` replaces the 15,000 steps.

use brasa_buffers::{Obs, ReplayBuffer, Transition, named_rng};
use brasa_classic::Classic;
use brasa_env::{BatchSlabs, EnvBatch};
use burn::nn::{Linear, LinearConfig, loss::HuberLossConfig, loss::Reduction::Mean};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use rand::RngExt;

fn values([first, second, last]: &[Linear; 3], obs: Tensor<2>) -> Tensor<2> {
    last.forward(second.forward(first.forward(obs).tanh()).tanh())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n_steps = std::env::args().nth(1).map_or(Ok(15_000), |steps| steps.parse())?;
    let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "example", 0));
    let layer = |(inputs, outputs)| LinearConfig::new(inputs, outputs).init(&device.clone().autodiff());
    let mut network = [(4, 64), (64, 64), (64, 2)].map(layer);
    let (mut target, mut adam) = (network.valid(), AdamConfig::new().init());
    let (mut env, mut ends) = (Classic::cart_pole().batch(0..1)?, vec![0]);
    let (mut seen, spec) = (BatchSlabs::new(env.spec()), env.spec().clone());
    let mut replay = ReplayBuffer::<Obs, _>::builder(&spec).capacity(10_000).build(&device)?;
    env.reset(0, &mut seen)?;
    for step in 0..n_steps {
        let obs: [f32; 4] = std::array::from_fn(|i| seen.obs[[0, i]]);
        let greedy = || values(&network.valid(), Tensor::from_floats([obs], &device)).argmax(1).into_scalar::<i32>();
        let is_random = rng.random_bool((1.0 - step as f64 / 5000.0).max(0.05));
        let action = [if is_random { rng.random_range(0..2) } else { greedy() } as f32];
        env.step(ndarray::aview2(&[action]), &mut seen)?;
        let next: [f32; 4] = std::array::from_fn(|i| seen.next_obs[[0, i]]);
        let end = (seen.terminated[0], seen.truncated[0]);
        replay.push_one(&Transition::new(&obs, &action, seen.reward[0], &next).ended(end))?;
        ends.extend((end != (false, false)).then_some(step));
        if step > 500 {
            let batch = replay.sample(64, 0.0, rng);
            let best = values(&target, batch.next_obs.values).max_dim(1).squeeze_dim::<1>(1);
            let goal = Tensor::from_inner(batch.reward + batch.discount * best);
            let all = values(&network, Tensor::from_inner(batch.obs.values));
            let taken = all.gather(1, Tensor::from_inner(batch.action).int()).squeeze_dim::<1>(1);
            let gradients = HuberLossConfig::new(1.0).init().forward(taken, goal, Mean).backward();
            network = adam.step(1e-3, network.clone(), GradientsParams::from_grads(gradients, &network));
            target = if step % 250 == 0 { network.valid() } else { target };
        }
    }
    println!(
        "mean length of the last 10 episodes: {}",
        (ends[ends.len() - 1] - ends[ends.len().saturating_sub(11)]) / 10
    );
    Ok(())
}
