//! Launches of kernels per operation on a GPU, with our kernels and in plain operations.
//!
//! One test, because the counter sees every thread of the process.

#![cfg(any(feature = "cuda", feature = "wgpu"))]

mod common;

use brasa_kernels::{Activation, GaeInput, clip_scale, concat, gae, layer, layer_norm, n_launches, split};
use burn::tensor::{Device, Distribution, Tensor};
use common::squashed_rsample;

/// Launches of a forward and a backward pass, without those of the loss.
fn passes(forward: impl FnOnce() -> Tensor<2>) -> [usize; 2] {
    let mut y = None;
    let first = n_launches(|| y = Some(forward()));
    let y = y.expect("it was computed");
    let leaf = y.clone().detach().require_grad();
    let of_loss = n_launches(|| drop(leaf.sum().backward()));
    [first, n_launches(|| drop(y.sum().backward())) - of_loss]
}

fn gpu() -> Option<Device> {
    let name = if cfg!(feature = "wgpu") { "wgpu" } else { "cuda" };
    match brasa_device::open_named(name) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("SKIPPED: launches on {name}: {error}");
            None
        }
    }
}

#[test]
fn kernels_save_launches() {
    let Some(device) = gpu() else { return };
    let autodiff = device.clone().autodiff();
    let leaf = |rows: usize, columns: usize| {
        Tensor::<2>::random([rows, columns], Distribution::Uniform(-1.0, 1.0), &autodiff).require_grad()
    };
    let vector = |n: usize| Tensor::<1>::random([n], Distribution::Uniform(-1.0, 1.0), &autodiff).require_grad();
    let (x, weight, bias, shift) = (leaf(64, 32), leaf(32, 48), vector(48), vector(48));
    let wide = leaf(64, 48);
    let noise = leaf(64, 48).detach();

    // Name, ours, plain: forward and backward.
    let mut table: Vec<(String, [usize; 2], [usize; 2])> = Vec::new();
    for activation in [Activation::Tanh, Activation::Relu, Activation::Elu] {
        table.push((
            format!("layer with {activation:?}"),
            passes(|| layer(x.clone(), weight.clone(), bias.clone(), Some(activation))),
            passes(|| activation.apply(x.clone().matmul(weight.clone()) + bias.clone().unsqueeze())),
        ));
    }
    table.push((
        "layer norm".to_owned(),
        passes(|| layer_norm(wide.clone(), bias.clone(), shift.clone(), None)),
        passes(|| {
            let centered = wide.clone() - wide.clone().mean_dim(1);
            let variance = centered.clone().square().mean_dim(1);
            centered / (variance + 1e-5).sqrt() * bias.clone().unsqueeze() + shift.clone().unsqueeze()
        }),
    ));
    let both = |(action, log_prob): (Tensor<2>, Tensor<1>)| Tensor::cat(vec![action, log_prob.unsqueeze_dim(1)], 1);
    table.push((
        "squashed draw".to_owned(),
        passes(|| both(squashed_rsample(wide.clone(), wide.clone(), noise.clone()))),
        passes(|| {
            let u = wide.clone() + wide.clone().exp() * noise.clone();
            let softplus = burn::tensor::activation::softplus(u.clone() * -2.0, 1.0);
            let derivative = (softplus + u.clone() - std::f32::consts::LN_2) * -2.0;
            let constant = noise.clone().square().sum_dim(1).squeeze_dim::<1>(1) * -0.5 - 1.0;
            both((u.tanh(), constant - (wide.clone() + derivative).sum_dim(1).squeeze_dim::<1>(1)))
        }),
    ));
    let grads = || wide.clone().inner();
    table.push((
        "clipping factor".to_owned(),
        [n_launches(|| drop(clip_scale(grads(), 0.5, 1e-6))), 0],
        [
            n_launches(|| {
                drop((grads().square().sum_dim(1).sqrt() + 1e-6).recip().mul_scalar(0.5).clamp_max(1.0));
            }),
            0,
        ],
    ));
    let parts = || (1..=12).map(|i| wide.clone().inner().narrow(1, 0, i)).collect::<Vec<_>>();
    let widths: Vec<usize> = (1..=12).collect();
    let (parts, same) = (parts(), parts());
    let whole = concat(parts.clone());
    table.push((
        "twelve matrices joined".to_owned(),
        [n_launches(|| drop(concat(parts))), 0],
        [n_launches(|| drop(Tensor::cat(same, 1))), 0],
    ));
    table.push((
        "and split".to_owned(),
        [n_launches(|| drop(split(whole.clone(), &widths))), 0],
        [n_launches(|| widths.iter().for_each(|i| drop(whole.clone().narrow(1, i * (i - 1) / 2, *i)))), 0],
    ));
    let input = || GaeInput {
        reward: grads(),
        value: grads(),
        next_value: grads(),
        terminated: grads(),
        episode_end: grads(),
        discount: None,
    };
    // On an autodiff device it is computed in plain operations.
    let on_autodiff = GaeInput {
        reward: wide.clone(),
        value: wide.clone(),
        next_value: wide.clone(),
        terminated: wide.clone(),
        episode_end: wide.clone(),
        discount: None,
    };
    table.push((
        "advantages of 64 steps".to_owned(),
        [n_launches(|| drop(gae(input(), 0.99, 0.95))), 0],
        [n_launches(|| drop(gae(on_autodiff, 0.99, 0.95))), 0],
    ));
    for (name, ours, plain) in &table {
        println!("{name}: {ours:?} instead of {plain:?}");
    }
    for (name, ours, plain) in table {
        let (ours, plain) = (ours[0] + ours[1], plain[0] + plain[1]);
        assert!(ours < plain, "{name}: {ours} launches, plain {plain}");
    }
}
