//! Acting and stepping in the memory of the CPU, without tensors.
//!
//! To make a tensor and to look into one takes 0.1 to 0.3 us on the CPU, and a step has more than twenty of them: longer than a small
//! network computes. Where policy and environments are both in the memory of the CPU, a loop asks them for these forms, once per rollout.
//! Everywhere else there are none, and the loop uses tensors.

use brasa_env::{BatchSlabs, EnvError};

/// Observations of one step, row by row.
///
/// ```
/// use brasa_core::HostObs;
///
/// let obs = HostObs { values: &[0.5, 20.0, 0.25, 21.0], mask: None, n_rows: 2 };
/// let rows: Vec<&[f32]> = obs.values.chunks(obs.values.len() / obs.n_rows).collect();
/// assert_eq!(rows[1], [0.25, 21.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HostObs<'a> {
    /// `[n_rows, obs width]`.
    pub values: &'a [f32],
    /// `[n_rows, n_actions]`: 1 for legal actions; `None` if all are legal.
    pub mask: Option<&'a [f32]>,
    /// Number of rows.
    pub n_rows: usize,
}

/// Decisions of successive steps, row by row; see [`crate::Decision`].
///
/// ```
/// use brasa_core::HostDecisions;
///
/// // An actor appends the decisions of each step.
/// let mut decisions = HostDecisions::default();
/// for step in 0..3 {
///     decisions.action.extend([step as f32, 0.0]);
///     decisions.log_prob.extend([-0.7, -0.7]);
/// }
/// assert_eq!(decisions.action, [0.0, 0.0, 1.0, 0.0, 2.0, 0.0]);
/// assert!(decisions.value.is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct HostDecisions {
    /// Actions as stored for learning.
    pub action: Vec<f32>,
    /// Log-probabilities of the actions.
    pub log_prob: Vec<f32>,
    /// Estimated returns; empty where a separate critic computes those of a whole rollout together.
    pub value: Vec<f32>,
}

/// A policy that samples actions in the memory of the CPU; made for one rollout, while the parameters do not change.
///
/// ```
/// use brasa_core::{HostActor, HostDecisions, HostObs};
///
/// /// Acts against the observed number, with noise of deviation 1.
/// struct Against;
///
/// impl HostActor for Against {
///     fn act(
///         &mut self,
///         obs: HostObs<'_>,
///         _: &mut [f32],
///         noise: &[f32],
///         to: &mut HostDecisions,
///         in_env: &mut Vec<f32>,
///     ) {
///         in_env.clear();
///         for (x, noise) in obs.values.iter().zip(noise) {
///             to.action.push(noise - x);
///             to.log_prob.push(-0.5 * noise * noise - 0.918_938_5);
///             in_env.push((noise - x).clamp(-1.0, 1.0));
///         }
///     }
/// }
///
/// let (mut decisions, mut in_env) = (HostDecisions::default(), Vec::new());
/// let obs = HostObs { values: &[0.5, 3.0], mask: None, n_rows: 2 };
/// Against.act(obs, &mut [], &[0.0, 0.5], &mut decisions, &mut in_env);
/// assert_eq!((decisions.action, in_env), (vec![-0.5, -2.5], vec![-0.5, -1.0]));
/// ```
pub trait HostActor: Send {
    /// Appends a decision for every row to `decisions`, and replaces `in_env` by the actions as environments take them, and `state` by what the
    /// policy remembers after this step.
    ///
    /// # Shapes
    /// - `state`: `[n_rows, Policy::state_width]`
    /// - `noise`: `[n_rows, width of Policy::noise]`
    fn act(
        &mut self,
        obs: HostObs<'_>,
        state: &mut [f32],
        noise: &[f32],
        decisions: &mut HostDecisions,
        in_env: &mut Vec<f32>,
    );
}

/// Environments that step in the memory of the CPU: [`crate::VecEnv`] without tensors.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{HostEnv, VecEnv};
/// use brasa_env::EnvVec;
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let device = brasa_device::open_named("cpu")?;
/// let mut env = HostEnv::new(EnvVec::new(0..2, |_| Walk(0.0))?, &device);
/// env.reset(7)?;
/// let stepper = env.on_host().expect("the device is the CPU");
/// assert_eq!(stepper.observed().values, [3.0, 3.0]);
/// let slabs = stepper.step(&[0.0, 1.0])?;
/// assert_eq!(slabs.obs, ndarray::array![[2.0], [4.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait HostStepper {
    /// Form of observations as tensors.
    type Obs;
    /// Form of actions as tensors.
    type Action;

    /// The next observations.
    fn observed(&self) -> HostObs<'_>;

    /// Takes one step in every environment; the results of all environments.
    ///
    /// # Errors
    /// As [`crate::VecEnv::step`].
    fn step(&mut self, actions: &[f32]) -> Result<&BatchSlabs, EnvError>;

    /// Any number of rows of observations as tensors.
    fn obs(&self, values: Vec<f32>, mask: Option<Vec<f32>>) -> Self::Obs;

    /// Any number of rows of actions as tensors.
    fn action(&self, values: Vec<f32>) -> Self::Action;
}
