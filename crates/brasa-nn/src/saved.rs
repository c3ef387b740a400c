//! Learners as named arrays and numbers, for files.

use std::collections::BTreeMap;

use burn::module::Module;

use crate::{LossScale, NamedParam, ParamsError, Trainable, load_params, named_params};

/// Arrays by name: shape and values.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{Arrays, Saved};
///
/// let mut saved = Saved::default();
/// saved.put_policy(&q_network(&brasa_device::open_named("cpu")?)?);
/// let arrays: &Arrays = &saved.policy;
/// let (shape, values) = &arrays["network.head.weight"];
/// assert_eq!((&shape[..], values.len()), (&[8, 3][..], 24));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Arrays = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Prefix of the names of the policy's weights.
const POLICY: &str = "network";
/// Between the name of a module and those of its optimizer's arrays.
const OPTIMIZER: &str = ".optimizer.";
/// Names of the values of a [`LossScale`].
const LOSS_SCALE: [&str; 3] = ["scale", "good_steps", "skipped_steps"];

/// A learner whose complete state can be saved and restored.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{AdamConfig, ParamsError, Persist, QNetwork, Saved, Trainable};
///
/// /// A learner with one network.
/// struct Learner(Trainable<QNetwork>);
///
/// impl Persist for Learner {
///     fn save(&self) -> Saved {
///         let mut saved = Saved::default();
///         saved.put_policy(self.0.plain());
///         saved.put_optimizer("network", &self.0);
///         saved
///     }
///     fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
///         let network = saved.policy(self.0.module().clone())?;
///         self.0.set_module(network);
///         saved.optimizer("network", &mut self.0)
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?.autodiff();
/// let mut learner = Learner(Trainable::new(q_network(&device)?, AdamConfig::default())?);
/// let saved = learner.save();
/// learner.load(&saved)?;
/// assert_eq!(learner.save(), saved);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Persist {
    /// The complete state; waits for the device.
    fn save(&self) -> Saved;

    /// Restores a saved state.
    ///
    /// # Errors
    /// [`ParamsError`] if an array or number is missing or has another shape.
    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError>;
}

/// The saved state of a learner.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{LayerNorm, Saved};
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut saved = Saved::default();
/// saved.put_policy(&q_network(&device)?);
/// saved.put_module("target", &LayerNorm::new(2, &device));
/// saved.put_number("updates", 100.0);
/// assert_eq!(saved.policy_bytes(), 4.0 * (2.0 * 8.0 + 8.0 + 8.0 * 3.0 + 3.0));
/// assert!(saved.trainer.contains_key("target.scale"));
/// let error = saved.number("steps").unwrap_err().to_string();
/// assert_eq!(error, "no parameter `steps`; there are updates");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Saved {
    /// The weights of the policy.
    pub policy: Arrays,
    /// Other arrays of the learner.
    pub trainer: Arrays,
    /// Counters and other scalars. Counts are exact up to 2^53.
    pub numbers: BTreeMap<String, f64>,
}

impl Saved {
    /// Bytes of the weights of the policy.
    pub fn policy_bytes(&self) -> f64 {
        self.policy.values().map(|(_, values)| size_of_val(&values[..]) as f64).sum()
    }

    /// Bytes of the moments of all optimizers: two numbers for each trained weight, or one for RMSprop without momentum.
    pub fn moments_bytes(&self) -> f64 {
        let moments = self.trainer.iter().filter(|(name, _)| name.contains(OPTIMIZER));
        moments.map(|(_, (_, values))| size_of_val(&values[..]) as f64).sum()
    }

    /// Bytes of the gradients of all trained weights.
    pub fn gradient_bytes(&self) -> f64 {
        let second = self.trainer.iter().filter(|(name, _)| name.ends_with(&format!("{OPTIMIZER}second")));
        second.map(|(_, (_, values))| size_of_val(&values[..]) as f64).sum()
    }

    /// Adds the weights of the policy.
    pub fn put_policy<M: Module>(&mut self, module: &M) {
        put_module(&mut self.policy, POLICY, module);
    }

    /// Adds the weights of another module of the learner.
    pub fn put_module<M: Module>(&mut self, name: &str, module: &M) {
        put_module(&mut self.trainer, name, module);
    }

    /// Adds the optimizer state of `trainable`, without its weights.
    pub fn put_optimizer<M: Module>(&mut self, name: &str, trainable: &Trainable<M>) {
        let (first, second) = trainable.state().read();
        if !first.is_empty() {
            self.trainer.insert(format!("{name}{OPTIMIZER}first"), (vec![first.len()], first));
        }
        self.trainer.insert(format!("{name}{OPTIMIZER}second"), (vec![second.len()], second));
        self.put_number(&format!("{name}{OPTIMIZER}steps"), trainable.state().steps() as f64);
        if let Some(loss_scale) = trainable.loss_scale() {
            for (part, value) in LOSS_SCALE.iter().zip(loss_scale.read()) {
                self.put_number(&format!("{name}.loss_scale.{part}"), f64::from(value));
            }
        }
    }

    /// Adds a number.
    pub fn put_number(&mut self, name: &str, value: f64) {
        self.numbers.insert(name.to_owned(), value);
    }

    /// `module` with the saved weights of the policy.
    ///
    /// # Errors
    /// [`ParamsError`] if one is missing or has another shape.
    pub fn policy<M: Module>(&self, module: M) -> Result<M, ParamsError> {
        get_module(&self.policy, POLICY, module)
    }

    /// `module` with its saved weights.
    ///
    /// # Errors
    /// [`ParamsError`] if one is missing or has another shape.
    pub fn module<M: Module>(&self, name: &str, module: M) -> Result<M, ParamsError> {
        get_module(&self.trainer, name, module)
    }

    /// Restores the optimizer state of `trainable`.
    ///
    /// # Errors
    /// [`ParamsError`] if it is missing or has another length.
    pub fn optimizer<M: Module>(&self, name: &str, trainable: &mut Trainable<M>) -> Result<(), ParamsError> {
        let array = |part: &str| {
            let name = format!("{name}{OPTIMIZER}{part}");
            let known = || self.trainer.keys().cloned().collect::<Vec<_>>().join(", ");
            match self.trainer.get(&name) {
                Some((_, values)) => Ok(values.clone()),
                None => Err(ParamsError::Missing { name, known: known() }),
            }
        };
        let second = array("second")?;
        let first = if trainable.state().read().0.is_empty() { Vec::new() } else { array("first")? };
        let (got, steps) = (vec![second.len()], self.number(&format!("{name}{OPTIMIZER}steps"))? as u64);
        if !trainable.state_mut().write(steps, first, second) {
            let expected = vec![trainable.state().read().1.len()];
            return Err(ParamsError::Shape { name: format!("{name}{OPTIMIZER}second"), got, expected });
        }
        // Absent in a run that does not scale losses.
        let parts = LOSS_SCALE.map(|part| self.numbers.get(&format!("{name}.loss_scale.{part}")));
        let loss_scale = match parts {
            [Some(scale), Some(good), Some(skipped)] => {
                Some(LossScale::restored([*scale, *good, *skipped].map(|value| value as f32), trainable.device()))
            }
            _ => None,
        };
        trainable.set_loss_scale(loss_scale);
        Ok(())
    }

    /// A number.
    ///
    /// # Errors
    /// [`ParamsError::Missing`] if there is none of this name.
    pub fn number(&self, name: &str) -> Result<f64, ParamsError> {
        self.numbers.get(name).copied().ok_or_else(|| ParamsError::Missing {
            name: name.to_owned(),
            known: self.numbers.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}

fn put_module<M: Module>(arrays: &mut Arrays, name: &str, module: &M) {
    for param in named_params(module) {
        arrays.insert(format!("{name}.{}", param.name), (param.shape, param.values));
    }
}

fn get_module<M: Module>(arrays: &Arrays, name: &str, module: M) -> Result<M, ParamsError> {
    let start = format!("{name}.");
    let params: Vec<NamedParam> = (arrays.iter())
        .filter_map(|(name, (shape, values))| {
            let name = name.strip_prefix(&start)?.to_owned();
            Some(NamedParam { name, shape: shape.clone(), values: values.clone() })
        })
        .collect();
    load_params(module, &params)
}
