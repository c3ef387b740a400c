//! Policies of Stable-Baselines3.
//!
//! A saved model is a zip archive with `data`, a JSON document of settings and spaces, and `policy.pth`, the tensors. Settings that JSON cannot
//! hold are pickled; their text form is enough here.

use std::io::Cursor;

use serde_json::Value;

use crate::{Archive, ExchangeError, ExportedPolicy, Function, Layer, Output, StateDict, scaling};

/// Largest magnitude of the mean of SAC's actor with state-dependent exploration (its `clip_mean`).
const CLIP_MEAN: f32 = 2.0;

impl ExportedPolicy {
    /// The greedy policy of a model that Stable-Baselines3 saved: MLP policies of PPO, A2C, SAC, TD3, DDPG and DQN on observations of type
    /// `Box`. Its actions are those of `model.predict(obs, deterministic=True)`. Statistics of `VecNormalize` are not part of such a file.
    ///
    /// # Errors
    /// [`ExchangeError::StableBaselines3`] naming what cannot be read or is not supported.
    pub fn from_stable_baselines3(bytes: &[u8]) -> Result<Self, ExchangeError> {
        read(bytes).map_err(ExchangeError::StableBaselines3)
    }
}

fn read(bytes: &[u8]) -> Result<ExportedPolicy, String> {
    let mut archive = Archive::new(Cursor::new(bytes))?;
    let data: Value = serde_json::from_slice(&archive.read("data")?).map_err(|error| format!("`data`: {error}"))?;
    let weights = archive.read("policy.pth")?;
    let weights = StateDict::read(&weights).map_err(|reason| format!("`policy.pth`: {reason}"))?;
    let model = Model { data, weights };
    let policy = model.policy()?;
    policy.validate().map_err(|error| error.to_string())?;
    Ok(policy)
}

struct Model {
    data: Value,
    weights: StateDict,
}

impl Model {
    fn policy(&self) -> Result<ExportedPolicy, String> {
        self.check_obs()?;
        if let Some(other) = self.weights.0.iter().find(|weights| is_foreign(&weights.name)) {
            return Err(format!("its policy must be an MLP, but it has the tensor `{}`", other.name));
        }
        let mut layers = Vec::new();
        let has = |name: &str| self.weights.get(name).is_some();
        let output = if has("action_net.weight") {
            self.sequence("mlp_extractor.policy_net", Function::Tanh, true, &mut layers)?;
            self.linear("action_net", &mut layers)?;
            self.output_of_actor_critic(&mut layers)?
        } else if has("q_net.q_net.0.weight") {
            self.sequence("q_net.q_net", Function::Relu, false, &mut layers)?;
            self.choices()?
        } else if has("actor.mu.0.weight") && !has("actor.mu.2.weight") && self.flag("use_sde") {
            self.sequence("actor.latent_pi", Function::Relu, true, &mut layers)?;
            self.linear("actor.mu.0", &mut layers)?;
            let n = width(&layers);
            layers.push(Layer::Clip { low: vec![-CLIP_MEAN; n], high: vec![CLIP_MEAN; n] });
            self.squash(&mut layers)?
        } else if has("actor.mu.0.weight") {
            self.sequence("actor.mu", Function::Relu, false, &mut layers)?;
            self.squash(&mut layers)?
        } else if has("actor.mu.weight") {
            self.sequence("actor.latent_pi", Function::Relu, true, &mut layers)?;
            self.linear("actor.mu", &mut layers)?;
            self.squash(&mut layers)?
        } else {
            return Err("it has no tensors of an MLP policy of PPO, A2C, SAC, TD3, DDPG or DQN".into());
        };
        let obs_width = match layers.first() {
            Some(Layer::Linear { outputs, weight, .. }) if *outputs > 0 => weight.len() / outputs,
            _ => return Err("it has no layers".into()),
        };
        Ok(ExportedPolicy { obs_width, n_agents: 1, masked: false, layers, output })
    }

    fn flag(&self, name: &str) -> bool {
        self.data[name].as_bool().unwrap_or(false) || self.data["policy_kwargs"][name].as_bool().unwrap_or(false)
    }

    fn check_obs(&self) -> Result<(), String> {
        let space = &self.data["observation_space"];
        let kind = kind_of(space);
        if kind != "Box" {
            return Err(format!("its observations must be a `Box`, got `{kind}`"));
        }
        // Stable-Baselines3 divides images by 255.
        if space["dtype"] == "uint8" {
            return Err("its observations must be numbers, not images of uint8".into());
        }
        Ok(())
    }

    /// The layers `NAME.0`, `NAME.2`, ... with activations between them and, if `to_the_end`, after the last one.
    fn sequence(&self, name: &str, default: Function, to_the_end: bool, layers: &mut Vec<Layer>) -> Result<(), String> {
        let function = self.activation(default)?;
        let mut index = 0;
        while self.weights.get(&format!("{name}.{index}.weight")).is_some() {
            if index > 0 && !to_the_end {
                layers.push(Layer::Activation(function));
            }
            self.linear(&format!("{name}.{index}"), layers)?;
            if to_the_end {
                layers.push(Layer::Activation(function));
            }
            index += 2;
        }
        // An odd number would be another module, for example a normalization.
        match self.weights.0.iter().find(|weights| {
            let rest = weights.name.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
            let number = rest.and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
            number.is_some_and(|number| number % 2 == 1 || number >= index)
        }) {
            Some(other) => {
                Err(format!("its layers must be linear with activations between them, got `{}`", other.name))
            }
            None => Ok(()),
        }
    }

    fn linear(&self, name: &str, layers: &mut Vec<Layer>) -> Result<(), String> {
        let get = |part: &str| {
            let name = format!("{name}.{part}");
            self.weights.get(&name).ok_or_else(|| format!("it has no tensor `{name}`"))
        };
        let (weight, bias) = (get("weight")?, get("bias")?);
        let &[outputs, inputs] = weight.shape.as_slice() else {
            return Err(format!("`{name}.weight` must have two dimensions, got {:?}", weight.shape));
        };
        // PyTorch stores `[outputs, inputs]`.
        let transposed = (0..inputs).flat_map(|i| (0..outputs).map(move |j| (i, j)));
        let transposed = transposed.map(|(i, j)| weight.values[j * inputs + i]).collect();
        layers.push(Layer::Linear { outputs, weight: transposed, bias: bias.values.clone() });
        Ok(())
    }

    fn activation(&self, default: Function) -> Result<Function, String> {
        let given = &self.data["policy_kwargs"]["activation_fn"];
        let text = given.as_str().or_else(|| given[":type:"].as_str()).or_else(|| given["__module__"].as_str());
        let Some(text) = text else {
            return if given.is_null() { Ok(default) } else { Err(format!("its `activation_fn` is {given}")) };
        };
        match text.trim_end_matches("'>").rsplit('.').next().unwrap_or_default() {
            "Tanh" => Ok(Function::Tanh),
            "ReLU" => Ok(Function::Relu),
            "ELU" => Ok(Function::Elu),
            other => Err(format!("its `activation_fn` must be Tanh, ReLU or ELU, got {other}")),
        }
    }

    fn output_of_actor_critic(&self, layers: &mut Vec<Layer>) -> Result<Output, String> {
        if kind_of(&self.data["action_space"]) != "Box" {
            return self.choices();
        }
        if self.flag("squash_output") {
            return self.squash(layers);
        }
        let (low, high) = (self.bounds("low")?, self.bounds("high")?);
        layers.push(Layer::Clip { low, high });
        Ok(Output::Real)
    }

    /// tanh, scaled to the bounds of the actions.
    fn squash(&self, layers: &mut Vec<Layer>) -> Result<Output, String> {
        let (low, high) = (self.bounds("low")?, self.bounds("high")?);
        if let Some(bound) = low.iter().chain(&high).find(|bound| !bound.is_finite()) {
            return Err(format!("the bounds of its squashed actions must be finite, got {bound}"));
        }
        let (factor, offset) = scaling(&low, &high);
        layers.push(Layer::Activation(Function::Tanh));
        layers.push(Layer::Scale { factor, offset });
        Ok(Output::Real)
    }

    /// The choices of a discrete space.
    fn choices(&self) -> Result<Output, String> {
        let space = &self.data["action_space"];
        let heads = match kind_of(space) {
            "Discrete" if space["start"].as_str().is_none_or(|start| start == "0") => numbers(&space["n"])?,
            "MultiDiscrete" => numbers(&space["nvec"])?,
            other => return Err(format!("its actions must be Box, Discrete from 0, or MultiDiscrete, got `{other}`")),
        };
        Ok(Output::Choice { heads: heads.into_iter().map(|n: f32| n as usize).collect() })
    }

    /// The bounds of continuous actions, as numpy prints them.
    fn bounds(&self, name: &str) -> Result<Vec<f32>, String> {
        numbers(&self.data["action_space"][name])
            .map_err(|reason| format!("the bounds `{name}` of its actions {reason}"))
    }
}

/// The name of the class of a space.
fn kind_of(space: &Value) -> &str {
    let class = space[":type:"].as_str().unwrap_or_default();
    class.trim_end_matches("'>").rsplit('.').next().unwrap_or_default()
}

/// Whether a tensor belongs to something else than an MLP on flat observations.
fn is_foreign(name: &str) -> bool {
    ["features_extractor.", "pi_features_extractor.", "mlp_extractor.shared_net.", "lstm_actor."]
        .iter()
        .any(|part| name.contains(part))
}

/// Width of the result of the last linear layer.
fn width(layers: &[Layer]) -> usize {
    let outputs = layers.iter().rev().find_map(|layer| match layer {
        Layer::Linear { outputs, .. } => Some(*outputs),
        _ => None,
    });
    outputs.unwrap_or(0)
}

/// The numbers of a text such as `[-1. 2.5]` or `3`.
fn numbers(text: &Value) -> Result<Vec<f32>, String> {
    let Some(text) = text.as_str() else { return Err(format!("must be a text of numbers, got {text}")) };
    if text.contains("...") {
        return Err("are not complete in the file".into());
    }
    let parts =
        text.split(|c: char| c == '[' || c == ']' || c == ',' || c.is_whitespace()).filter(|part| !part.is_empty());
    let numbers: Result<Vec<f32>, _> =
        parts.map(|part| part.parse().map_err(|_| format!("must be numbers, got `{part}`"))).collect();
    numbers
}
