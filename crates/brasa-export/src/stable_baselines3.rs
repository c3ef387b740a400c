//! Policies of Stable-Baselines3.
//!
//! A saved model is a zip archive with `data`, a JSON document of settings and spaces, and `policy.pth`, the tensors. Settings that JSON cannot
//! hold are pickled; their text form is enough here.

use std::io::Cursor;

use serde_json::{Value, json};

use crate::{About, Archive, Column, ExportError, ExportedPolicy, Function, Layer, Output, StateDict, scaling};

/// Settings of `policy_kwargs` that are read, or that change no greedy action. Networks are read from their tensors.
const KNOWN_SETTINGS: [&str; 23] = [
    ":type:",
    ":serialized:",
    "activation_fn",
    "clip_mean",
    "device",
    "features_extractor_class",
    "features_extractor_kwargs",
    "full_std",
    "log_std_init",
    "lr_schedule",
    "n_critics",
    "n_quantiles",
    "net_arch",
    "normalize_images",
    "optimizer_class",
    "optimizer_kwargs",
    "ortho_init",
    "sde_net_arch",
    "share_features_extractor",
    "squash_output",
    "use_expln",
    "use_sde",
    "with_bias",
];

impl ExportedPolicy {
    /// The greedy policy of a model that Stable-Baselines3 or sb3-contrib saved: MLP policies of PPO, A2C, TRPO, SAC, TD3, DDPG, TQC, DQN, QR-DQN
    /// and ARS. Its actions are those of `model.predict(obs, deterministic=True)`. Statistics of `VecNormalize` are not part of such a file.
    ///
    /// Observations are flat numbers in the form of Gymnasium's `flatten`: a `Discrete` one is one-hot, and a `Dict` has its parts in the order of
    /// its keys. Actions of a `MultiBinary` are choices between 0 and 1.
    ///
    /// # Errors
    /// [`ExportError::StableBaselines3`] naming what cannot be read or is not supported.
    pub fn from_stable_baselines3(bytes: &[u8]) -> Result<Self, ExportError> {
        read(bytes).map_err(ExportError::StableBaselines3)
    }
}

fn read(bytes: &[u8]) -> Result<ExportedPolicy, String> {
    let text = |error: ExportError| error.to_string();
    let mut archive = Archive::new(Cursor::new(bytes)).map_err(text)?;
    let data = archive.read("data").map_err(text)?;
    let data = archive.budget().json(&data).map_err(|reason| format!("`data`: {reason}"))?;
    let weights = archive.read("policy.pth").map_err(text)?;
    let weights =
        StateDict::read_within(&weights, archive.budget()).map_err(|reason| format!("`policy.pth`: {reason}"))?;
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
        self.check_settings()?;
        let n_obs = self.obs_width()?;
        if let Some(other) = self.weights.0.iter().find(|weights| is_foreign(&weights.name)) {
            return Err(format!("its policy must be an MLP, but it has the tensor `{}`", other.name));
        }
        let mut layers = Vec::new();
        let has = |name: &str| self.weights.get(name).is_some();
        let output = if has("action_net.weight") && has("value_net.weight") {
            // Versions before 2 had layers for policy and value together.
            self.sequence("mlp_extractor.shared_net", Function::Tanh, true, &mut layers)?;
            self.sequence("mlp_extractor.policy_net", Function::Tanh, true, &mut layers)?;
            self.linear("action_net", &mut layers)?;
            self.output_of_actor_critic(&mut layers)?
        } else if has("action_net.weight") || has("action_net.0.weight") {
            // Versions before 2 have no list for the one layer of a linear policy.
            match has("action_net.weight") {
                true => self.linear("action_net", &mut layers)?,
                false => self.sequence("action_net", Function::Relu, false, &mut layers)?,
            }
            let class = self.data["policy_class"]["__init__"].as_str();
            let is_linear = match class {
                Some(class) => class.contains("ARSLinearPolicy"),
                None => layers.len() == 1 && !has("action_net.0.bias") && !has("action_net.bias"),
            };
            self.output_of_random_search(!is_linear, &mut layers)?
        } else if has("q_net.q_net.0.weight") {
            self.sequence("q_net.q_net", Function::Relu, false, &mut layers)?;
            self.choices(&mut layers)?
        } else if has("quantile_net.quantile_net.0.weight") {
            self.sequence("quantile_net.quantile_net", Function::Relu, false, &mut layers)?;
            self.mean_of_quantiles(&mut layers)?;
            self.choices(&mut layers)?
        } else if has("actor.mu.0.weight") && has("actor.log_std") {
            self.sequence("actor.latent_pi", Function::Relu, true, &mut layers)?;
            self.linear("actor.mu.0", &mut layers)?;
            self.clip_mean(&mut layers)?;
            self.squash(&mut layers)?
        } else if has("actor.mu.0.weight") {
            self.sequence("actor.mu", Function::Relu, false, &mut layers)?;
            self.squash(&mut layers)?
        } else if has("actor.mu.weight") {
            self.sequence("actor.latent_pi", Function::Relu, true, &mut layers)?;
            self.linear("actor.mu", &mut layers)?;
            self.squash(&mut layers)?
        } else {
            return Err(
                "it has no tensors of an MLP policy of PPO, A2C, TRPO, SAC, TD3, DDPG, TQC, DQN, QR-DQN or ARS".into(),
            );
        };
        let obs_width = match layers.first() {
            Some(Layer::Linear { outputs, weight, .. }) if *outputs > 0 => weight.len() / outputs,
            _ => return Err("it has no layers".into()),
        };
        if n_obs.is_some_and(|n_obs| n_obs != obs_width) {
            let n_obs = n_obs.unwrap_or_default();
            return Err(format!("its `observation_space` has {n_obs} numbers, but its network reads {obs_width}"));
        }
        let about = self.about(&layers, &output);
        Ok(ExportedPolicy { obs_width, n_agents: 1, masked: false, layers, output, about })
    }

    /// What is known of the actions: their bounds.
    fn about(&self, layers: &[Layer], output: &Output) -> About {
        let column = |name: String, low: f32, high: f32| {
            let finite = |bound: f32| bound.is_finite().then_some(bound);
            Column { name, unit: None, low: finite(low), high: finite(high) }
        };
        let choices = output.heads().iter().enumerate();
        let choices = choices.map(|(i, n)| column(format!("choice_{i}"), 0.0, n.saturating_sub(1) as f32));
        let (low, high) = (self.bounds("low").unwrap_or_default(), self.bounds("high").unwrap_or_default());
        let numbers = low.into_iter().zip(high).take(output.n_numbers(width(layers))).enumerate();
        let numbers = numbers.map(|(i, (low, high))| column(format!("action_{i}"), low, high));
        let actions = choices.chain(numbers).collect();
        About { actions, ..About::default() }
    }

    /// Every setting that changes what a policy computes is read, or rejected by its name.
    fn check_settings(&self) -> Result<(), String> {
        let class = &self.data["policy_class"];
        if let Some(module) = class["__module__"].as_str()
            && !["stable_baselines3.", "sb3_contrib."].iter().any(|own| module.starts_with(own))
        {
            return Err(format!(
                "its `policy_class` must be of Stable-Baselines3 or sb3-contrib, got one of `{}`",
                shown(module)
            ));
        }
        let settings = &self.data["policy_kwargs"];
        let Some(settings) = settings.as_object() else {
            return match settings.is_null() {
                true => Ok(()),
                false => Err("its `policy_kwargs` must be a dictionary".into()),
            };
        };
        if let Some(unknown) = settings.keys().find(|key| !KNOWN_SETTINGS.contains(&key.as_str())) {
            return Err(format!("its `policy_kwargs` have `{}`, whose effect is not known", shown(unknown)));
        }
        if let Some(extractor) = settings.get("features_extractor_class").filter(|value| !value.is_null()) {
            let text = extractor.as_str().unwrap_or_default();
            if !["torch_layers.FlattenExtractor'>", "torch_layers.CombinedExtractor'>"]
                .iter()
                .any(|end| text.ends_with(end))
            {
                let text = shown(&extractor.to_string());
                return Err(format!(
                    "its `features_extractor_class` must be FlattenExtractor or CombinedExtractor, got {text}"
                ));
            }
        }
        let others = settings.get("features_extractor_kwargs");
        if let Some(others) = others.filter(|value| !(value.is_null() || **value == json!({}) || **value == "{}")) {
            return Err(format!("its `features_extractor_kwargs` must be empty, got {}", shown(&others.to_string())));
        }
        Ok(())
    }

    /// A setting that is true or false, of the model or of its policy. Beside what JSON cannot hold, settings are texts.
    fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        for value in [&self.data["policy_kwargs"][name], &self.data[name]] {
            match (value, value.as_str()) {
                (Value::Null, _) => {}
                (Value::Bool(flag), _) => return Ok(Some(*flag)),
                (_, Some("True")) => return Ok(Some(true)),
                (_, Some("False")) => return Ok(Some(false)),
                (other, _) => {
                    return Err(format!("its `{name}` must be true or false, got {}", shown(&other.to_string())));
                }
            }
        }
        Ok(None)
    }

    /// Numbers of an observation, if its space states them.
    fn obs_width(&self) -> Result<Option<usize>, String> {
        let space = &self.data["observation_space"];
        let product = |sizes: Vec<f64>| sizes.iter().product::<f64>() as usize;
        let named = |name: &'static str| move |reason: String| format!("`{name}` of its `observation_space` {reason}");
        match kind_of(space) {
            "Box" => {
                // Its name differs between versions.
                let sizes = match space.get("shape").or_else(|| space.get("_shape")) {
                    None | Some(Value::Null) => return Ok(None),
                    Some(shape) => numbers(shape).map_err(named("shape"))?,
                };
                // Stable-Baselines3 divides images by 255, and moves their channels.
                if space["dtype"] == "uint8" && sizes.len() >= 2 {
                    return Err("its observations must be numbers, not images of uint8".into());
                }
                Ok(Some(product(sizes)))
            }
            "Discrete" => {
                self.check_start(space, "observation_space")?;
                Ok(Some(product(numbers(&space["n"]).map_err(named("n"))?)))
            }
            "MultiDiscrete" => {
                self.check_start(space, "observation_space")?;
                Ok(Some(numbers(&space["nvec"]).map_err(named("nvec"))?.iter().sum::<f64>() as usize))
            }
            "MultiBinary" => Ok(Some(product(numbers(&space["n"]).map_err(named("n"))?))),
            // The parts are texts; their widths are those of the network.
            "Dict" => {
                let text = space["spaces"].as_str().unwrap_or_default().replace("OrderedDict(", "");
                match text.is_empty()
                    || text.contains("uint8")
                    || ["Dict(", "Tuple(", "Graph(", "Sequence(", "Text("].iter().any(|kind| text.contains(kind))
                {
                    true => {
                        Err("its observations must be a `Dict` of numbers, not of images or other dictionaries".into())
                    }
                    false => Ok(None),
                }
            }
            kind => Err(format!(
                "its observations must be a Box, Discrete, MultiDiscrete, MultiBinary or Dict of them, got `{}`",
                shown(kind)
            )),
        }
    }

    /// Stable-Baselines3 counts from 0, whatever the space says.
    fn check_start(&self, space: &Value, name: &str) -> Result<(), String> {
        let starts = match &space["start"] {
            Value::Null => return Ok(()),
            start => numbers(start).map_err(|reason| format!("`start` of its `{name}` {reason}"))?,
        };
        match starts.iter().find(|start| **start != 0.0) {
            Some(start) => Err(format!("`start` of its `{name}` must be 0, got {start}")),
            None => Ok(()),
        }
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
        let weight = get("weight")?;
        let &[outputs, inputs] = weight.shape.as_slice() else {
            return Err(format!("`{name}.weight` must have two dimensions, got {}", weight.shape.len()));
        };
        // ARS can do without.
        let bias = match self.weights.get(&format!("{name}.bias")) {
            Some(bias) if bias.shape != [outputs] => {
                return Err(format!("`{name}.bias` must have {outputs} numbers, got {}", bias.values.len()));
            }
            Some(bias) => bias.values.clone(),
            None if name.starts_with("action_net") && self.weights.get("value_net.weight").is_none() => {
                vec![0.0; outputs]
            }
            None => return Err(format!("it has no tensor `{name}.bias`")),
        };
        // PyTorch stores `[outputs, inputs]`.
        let transposed = (0..inputs).flat_map(|i| (0..outputs).map(move |j| (i, j)));
        let transposed = transposed.map(|(i, j)| weight.values[j * inputs + i]).collect();
        layers.push(Layer::Linear { outputs, weight: transposed, bias });
        Ok(())
    }

    fn activation(&self, default: Function) -> Result<Function, String> {
        let given = &self.data["policy_kwargs"]["activation_fn"];
        if given.is_null() {
            return Ok(default);
        }
        let text = given.as_str().or_else(|| given[":type:"].as_str()).unwrap_or_default();
        let name = text.strip_prefix("<class 'torch.nn.modules.activation.").and_then(|text| text.strip_suffix("'>"));
        match name {
            Some("Tanh") => Ok(Function::Tanh),
            Some("ReLU") => Ok(Function::Relu),
            // The default of PyTorch; another slope would be no class.
            Some("LeakyReLU") => Ok(Function::LeakyRelu(0.01)),
            Some("ELU") => Ok(Function::Elu),
            other => {
                let got = other.map_or_else(|| shown(&given.to_string()), shown);
                Err(format!("its `activation_fn` must be Tanh, ReLU, LeakyReLU or ELU, got {got}"))
            }
        }
    }

    fn output_of_actor_critic(&self, layers: &mut Vec<Layer>) -> Result<Output, String> {
        if kind_of(&self.data["action_space"]) != "Box" {
            return self.choices(layers);
        }
        match self.flag("squash_output")? {
            Some(true) => self.squash(layers),
            _ => self.clip(layers),
        }
    }

    /// ARS squashes the actions of an MLP, and clips those of a linear policy, unless it is told.
    fn output_of_random_search(&self, squash: bool, layers: &mut Vec<Layer>) -> Result<Output, String> {
        if kind_of(&self.data["action_space"]) != "Box" {
            return self.choices(layers);
        }
        match self.flag("squash_output")?.unwrap_or(squash) {
            true => self.squash(layers),
            false => self.clip(layers),
        }
    }

    fn clip(&self, layers: &mut Vec<Layer>) -> Result<Output, String> {
        let (low, high) = (self.bounds("low")?, self.bounds("high")?);
        layers.push(Layer::Clip { low, high });
        Ok(Output::Real)
    }

    /// The limit of the mean of SAC's actor with state-dependent exploration, 2 by default.
    fn clip_mean(&self, layers: &mut Vec<Layer>) -> Result<(), String> {
        let limit = match &self.data["policy_kwargs"]["clip_mean"] {
            Value::Null => 2.0,
            given => match numbers(given).as_deref() {
                Ok([limit]) if *limit > 0.0 => *limit as f32,
                // Otherwise the tensors would have other names.
                _ => {
                    return Err(format!("its `clip_mean` must be a number above 0, got {}", shown(&given.to_string())));
                }
            },
        };
        let n = width(layers);
        layers.push(Layer::Clip { low: vec![-limit; n], high: vec![limit; n] });
        Ok(())
    }

    /// The last layer has the values of all actions for each quantile: their mean is a linear layer, too.
    fn mean_of_quantiles(&self, layers: &mut [Layer]) -> Result<(), String> {
        let n_actions = match numbers(&self.data["action_space"]["n"]).as_deref() {
            Ok([n]) if *n >= 1.0 => *n as usize,
            _ => return Err("`n` of its `action_space` must be a number".into()),
        };
        let Some(Layer::Linear { outputs, weight, bias }) = layers.last_mut() else {
            return Err("it has no layers".into());
        };
        if !outputs.is_multiple_of(n_actions) {
            return Err(format!("its network must have a multiple of {n_actions} outputs, got {outputs}"));
        }
        let n_quantiles = *outputs / n_actions;
        let mean = |row: &[f32]| -> Vec<f32> {
            let of_action =
                |action: usize| row.iter().skip(action).step_by(n_actions).map(|x| f64::from(*x)).sum::<f64>();
            (0..n_actions).map(|action| (of_action(action) / n_quantiles as f64) as f32).collect()
        };
        *weight = weight.chunks_exact(*outputs).flat_map(mean).collect();
        *bias = mean(bias);
        *outputs = n_actions;
        Ok(())
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

    /// The choices of a discrete space; the last layer has their scores.
    fn choices(&self, layers: &mut [Layer]) -> Result<Output, String> {
        let space = &self.data["action_space"];
        let named = |name: &'static str| move |reason: String| format!("`{name}` of its `action_space` {reason}");
        let heads = match kind_of(space) {
            "Discrete" => numbers(&space["n"]).map_err(named("n"))?,
            "MultiDiscrete" => numbers(&space["nvec"]).map_err(named("nvec"))?,
            "MultiBinary" => {
                let n = numbers(&space["n"]).map_err(named("n"))?.iter().product::<f64>();
                return self.bits(n as usize, layers);
            }
            other => {
                let other = shown(other);
                return Err(format!("its actions must be Box, Discrete, MultiDiscrete or MultiBinary, got `{other}`"));
            }
        };
        self.check_start(space, "action_space")?;
        Ok(Output::Choice { heads: heads.into_iter().map(|n| n as usize).collect() })
    }

    /// A bit is set where its score is above 0: a choice between 0 with the score 0 and 1.
    fn bits(&self, n: usize, layers: &mut [Layer]) -> Result<Output, String> {
        let Some(Layer::Linear { outputs, weight, bias }) = layers.last_mut() else {
            return Err("it has no layers".into());
        };
        if *outputs != n {
            return Err(format!("its network must have an output for each of {n} bits, got {outputs}"));
        }
        let pairs = |numbers: &[f32]| numbers.iter().flat_map(|x| [0.0, *x]).collect::<Vec<f32>>();
        (*weight, *bias, *outputs) = (pairs(weight), pairs(bias), 2 * n);
        Ok(Output::Choice { heads: vec![2; n] })
    }

    /// The bounds of continuous actions, as NumPy prints them.
    fn bounds(&self, name: &str) -> Result<Vec<f32>, String> {
        numbers(&self.data["action_space"][name])
            .map(|bounds| bounds.into_iter().map(|bound| bound as f32).collect())
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
    ["features_extractor.", "lstm_actor."].iter().any(|part| name.contains(part))
}

/// Width of the result of the last linear layer.
fn width(layers: &[Layer]) -> usize {
    let outputs = layers.iter().rev().find_map(|layer| match layer {
        Layer::Linear { outputs, .. } => Some(*outputs),
        _ => None,
    });
    outputs.unwrap_or(0)
}

/// The numbers of a text such as `[-1. 2.5]` or `3`, or of JSON: versions and what else a space has decide which one a file has.
fn numbers(value: &Value) -> Result<Vec<f64>, String> {
    match value {
        Value::Number(number) => Ok(number.as_f64().into_iter().collect()),
        Value::Array(list) => {
            let parts = list.iter().map(numbers).collect::<Result<Vec<_>, _>>()?;
            Ok(parts.concat())
        }
        Value::String(text) if text.contains("...") => Err("are not complete in the file".into()),
        Value::String(text) => {
            let parts = text.split(|c: char| "[](),".contains(c) || c.is_whitespace()).filter(|part| !part.is_empty());
            parts.map(|part| part.parse().map_err(|_| format!("must be numbers, got `{}`", shown(part)))).collect()
        }
        other => Err(format!("must be numbers, got {}", shown(&other.to_string()))),
    }
}

/// The beginning of a text for a message.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
