//! Steps of optimizers equal those of PyTorch and Stable-Baselines3 (`scripts/record_optimizers.py`).
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use brasa_nn::{AdamConfig, OptimizerConfig, RmsPropConfig, RmsPropStyle, Step, Trainable, named_params};
use brasa_test::golden::{close, vector};
use burn::module::{Module, Param, ParamId};
use burn::tensor::Tensor;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    settings: Settings,
    before: Vec<f32>,
    gradients: Vec<Vec<f32>>,
    after: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct Settings {
    lr: f64,
    alpha: Option<f64>,
    betas: Option<[f64; 2]>,
    eps: f64,
    momentum: Option<f64>,
    weight_decay: Option<f64>,
}

#[derive(Module, Debug)]
struct Vector {
    value: Param<Tensor<1>>,
}

#[test]
fn steps_equal_pytorch() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/optimizers.json")).expect("the recorded file is valid");
    let device = brasa_test::device();
    for (name, case) in &golden.cases {
        let s = &case.settings;
        let weight_decay = s.weight_decay.unwrap_or(0.0);
        let config: OptimizerConfig = match (s.betas, s.alpha) {
            (Some([beta_1, beta_2]), _) => AdamConfig { beta_1, beta_2, epsilon: s.eps, weight_decay }.into(),
            (None, alpha) => {
                let style = if name == "rmsprop_tf" { RmsPropStyle::Tensorflow } else { RmsPropStyle::Pytorch };
                let (alpha, momentum) = (alpha.expect("RMSprop has one"), s.momentum.unwrap_or(0.0));
                RmsPropConfig { alpha, epsilon: s.eps, momentum, weight_decay, style }.into()
            }
        };
        let value = vector(&case.before, &device.clone().autodiff()).require_grad();
        let module = Vector { value: Param::initialized(ParamId::new(), value) };
        let mut trainable = Trainable::new(module, config).expect("the settings are valid");
        for (gradient, after) in case.gradients.iter().zip(&case.after) {
            // The gradient of this loss is the recorded one.
            let loss = (trainable.module().value.val() * vector(gradient, &device)).sum();
            trainable.step(&loss, Step::new(s.lr, None));
            let got = named_params(trainable.module()).remove(0).values;
            close(name, got.iter().map(|x| f64::from(*x)), after.clone(), 1e-6);
        }
    }
}
