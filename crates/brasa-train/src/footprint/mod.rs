//! The memory and the work of a run, measured on small parts of it.
//!
//! Buffers are computed exactly. What an update or an action takes depends on network, algorithm and backend, so it is measured:
//! on few rows, then on twice as many, and so on. Tensors have a row per observation, so that the rest is a straight line.

mod memory;
mod off_policy;
mod on_policy;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use brasa_core::env::{Episode, named_rng};
use brasa_core::{Explore, Policy, VecEnv, row_indices};
use brasa_device::measure;
use brasa_nn::{Persist, draw_noise};
use burn::tensor::{Device, Int, Tensor};
pub use memory::{GrowsWith, MemoryPart, Placing};
use serde::Serialize;

use crate::iteration::WINDOW;
use crate::{Counters, Run, TrainError, take_checkpoint};

/// Memory and work of a run.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_device::{Meter, profile};
/// use brasa_train::{Footprint, OnPolicy, Run, TrainError};
///
/// #[global_allocator]
/// static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
///
/// let run = Run { total_env_steps: 1_000_000, seed: 0 };
/// let need = OnPolicy::footprint(|n| Ok::<_, TrainError>(cart_poles(n)), || Ok(ppo()), 1024, run)?;
/// let need: Footprint = need.expect("the allocator is installed");
/// assert_eq!(need.stored_as, "rollout");
/// assert!(need.stored > need.weights && need.fits(&profile("t4")?));
/// # Ok::<(), TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Footprint {
    /// Bytes of the policy's weights.
    pub weights: f64,
    /// Bytes of everything else that a learner keeps: moments of optimizers, critics and target networks.
    pub learner: f64,
    /// Bytes of the moments of optimizers, which are part of that.
    pub moments: f64,
    /// Bytes of the gradients of all trained weights, which are part of an update.
    pub gradients: f64,
    /// Bytes of the rollout or the replay buffer.
    pub stored: f64,
    /// What these are called.
    #[serde(skip)]
    pub stored_as: &'static str,
    /// Whether these are in memory of the host whatever the device.
    pub stored_on_host: bool,
    /// Bytes that recorded gradient steps keep on a GPU; see [`brasa_core::Learner::record`].
    pub recordings: f64,
    /// Bytes of the buffer's bookkeeping, always on the host.
    pub bookkeeping: f64,
    /// Bytes that the processor's products keep for themselves, as far as this program measured them.
    pub workspace: f64,
    /// Bytes of a checkpoint before it is written, without the content of a replay buffer; always on the host.
    pub checkpoint: f64,
    /// Bytes of noise and of steps on their way to the device.
    pub staging: f64,
    /// Bytes of the environments, in memory of the host unless they are computed on the device.
    pub envs: f64,
    /// Number of rows of an update: of a minibatch or a batch.
    pub batch_rows: usize,
    /// Choosing actions for one step of all environments.
    pub acting: Work,
    /// One step of all environments by one thread.
    pub stepping: Work,
    /// An update with a batch; for an algorithm with epochs, all updates with one minibatch.
    pub learning: Work,
}

impl Footprint {
    /// With `n` recordings of gradient steps that take `step` bytes each. A learner with recordings has each network twice, and a replay is one
    /// launch.
    #[must_use]
    pub(crate) fn recorded(mut self, n: usize, step: f64) -> Self {
        if n > 0 {
            self.recordings = n as f64 * step + self.weights + self.learner - self.moments;
            self.learning.launches = 1.0;
        }
        self
    }

    /// Of a run whose environments step while the learner computes: see [`crate::OnPolicy::pipelined`]. `has_rollouts` says whether it learns from
    /// rollouts.
    #[must_use]
    pub fn pipelined(mut self, has_rollouts: bool) -> Self {
        if has_rollouts {
            // The next rollout; the weights that collect it, and their copy for a checkpoint; what products keep in the thread that collects.
            self.stored *= 2.0;
            self.bookkeeping *= 2.0;
            self.learner += 2.0 * self.weights;
            self.workspace *= 2.0;
        }
        self.learning.bytes += self.acting.bytes.max(self.stepping.bytes);
        self
    }
}

/// Something that a run does many times.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// # use brasa_device::Meter;
/// # use brasa_train::{OnPolicy, Run, TrainError};
/// # #[global_allocator]
/// # static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
/// use brasa_train::Work;
///
/// # let run = Run { total_env_steps: 1_024_000, seed: 0 };
/// // `need` is the footprint of a run of PPO with 64 environments.
/// # let need = OnPolicy::footprint(|n| Ok::<_, TrainError>(cart_poles(n)), || Ok(ppo()), 64, run)?;
/// # let need = need.expect("the allocator is installed");
/// let Work { flop, secs, times, .. } = need.acting;
/// assert!(flop > 0.0 && secs > 0.0);
/// // A vector step acts in all 64 environments.
/// assert_eq!(times, 1_024_000.0 / 64.0);
/// # Ok::<(), TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Work {
    /// Memory that it needs while it runs, in bytes.
    pub bytes: f64,
    /// Kernels that a GPU launches for it at the least: products of layers, sets of formulas, and steps of optimizers. Burn's own operations
    /// are not counted.
    pub launches: f64,
    /// Floating-point operations of the products of layers, forward and backward.
    pub flop: f64,
    /// Seconds on the processor of this machine.
    pub secs: f64,
    /// How often a run does it.
    pub times: f64,
}

/// Measured with these bytes, a part is large enough to extrapolate from.
const ENOUGH: f64 = (256 << 20) as f64;
/// Measured with so many rows, it is as well.
const MANY: usize = 1024;
/// Rows of the first measurement. A few rows take other paths through the kernels.
const FEW: usize = 16;

/// Measures `what`. `None` if this program cannot measure memory.
fn work<T>(what: impl FnOnce() -> T) -> Option<(T, Work, f64)> {
    let begin = Instant::now();
    let (result, usage) = measure(what);
    let (usage, secs) = (usage?, begin.elapsed().as_secs_f64());
    let work =
        Work { bytes: usage.peak as f64, launches: usage.launches as f64, flop: usage.flop as f64, secs, times: 1.0 };
    Some((result, work, usage.kept as f64))
}

/// The work with `n` rows, from measurements with growing numbers of rows, the first of which warms up.
fn at_rows<E>(n: usize, mut measured: impl FnMut(usize) -> Result<Work, E>) -> Result<Work, E> {
    let mut rows = n.min(FEW);
    measured(rows)?;
    let mut before = (rows, measured(rows)?);
    while rows < n {
        rows = (2 * rows).min(n);
        let now = measured(rows)?;
        if rows < n && (now.bytes > ENOUGH || rows >= MANY) {
            return Ok(line(before, (rows, now), n));
        }
        before = (rows, now);
    }
    Ok(before.1)
}

/// The line through two measurements.
fn line((at, low): (usize, Work), (above, high): (usize, Work), n: usize) -> Work {
    let steps = (n - above) as f64 / (above - at) as f64;
    let go_on = |low: f64, high: f64| high + steps * (high - low).max(0.0);
    Work {
        bytes: go_on(low.bytes, high.bytes),
        // On the CPU, many rows are computed in parts.
        launches: low.launches.min(high.launches),
        flop: go_on(low.flop, high.flop),
        secs: go_on(low.secs, high.secs),
        times: high.times,
    }
}

/// Bytes that remained after work whose results were dropped: kernels keep their memory, so that only the first measurement of a program
/// sees it.
static WORKSPACE: AtomicI64 = AtomicI64::new(0);

/// As [`work`], of something that leaves nothing behind but what kernels keep, which is not in its bytes, and frees nothing older than itself.
fn passing_work<T>(what: impl FnOnce() -> T) -> Option<Work> {
    let ((), work, kept) = work(|| drop(what()))?;
    WORKSPACE.fetch_add(kept as i64, Ordering::Relaxed);
    Some(Work { bytes: (work.bytes - kept.max(0.0)).max(0.0), ..work })
}

/// What kernels keep.
fn workspace() -> f64 {
    WORKSPACE.load(Ordering::Relaxed).max(0) as f64
}

/// Bytes of a checkpoint with `n_envs` environments before it is written, with as many episodes as it remembers; `env` has a few of the
/// environments.
fn checkpoint_bytes(learner: &impl Persist, env: &impl VecEnv, n_envs: usize) -> f64 {
    let info = vec![0.5; env.spec().info_names.len()];
    let episode = Episode { env: 0, episode_return: 0.5, length: 1, info };
    let counters = Counters { window: vec![episode; WINDOW].into(), ..Counters::default() };
    let copied = || take_checkpoint(learner, &counters, None, Vec::new(), Vec::new());
    let metered = "it measures, as for the learner";
    let (states, saving, _) = work(|| env.save()).expect(metered);
    let of_all = |bytes: f64| bytes * n_envs as f64 / env.n_envs() as f64;
    of_all(saving.bytes).max(of_all(states.len() as f64) + passing_work(copied).expect(metered).bytes)
}

/// What choosing actions and stepping environments takes, with a few of the environments.
struct Acting<E: VecEnv> {
    pub env: E,
    pub obs: E::Obs,
    /// Actions on those observations.
    pub action: E::Action,
    pub acting: Work,
    pub stepping: Work,
    /// Of all environments.
    pub env_bytes: f64,
}

impl<E: VecEnv> Acting<E> {
    /// For `n_envs` environments; `envs` creates as many as it is told to. The program must be able to measure memory.
    pub fn measured<P, X>(
        envs: &mut impl FnMut(usize) -> Result<E, X>,
        policy: &P,
        n_envs: usize,
        run: Run,
    ) -> Result<Self, X>
    where
        P: Policy<Obs = E::Obs, Action = E::Action>,
        X: From<TrainError>,
    {
        let mut few = None;
        let (mut stepping, mut env_bytes) = (Vec::new(), Vec::new());
        let acting = at_rows(n_envs, |n| {
            let metered = "it measures, as for the learner";
            let (env, _, kept) = work(|| envs(n)).expect(metered);
            let mut env = env?;
            let obs = env.reset(run.seed).map_err(TrainError::from)?;
            let spec = policy.noise();
            let noise = draw_noise(spec, env.n_rows(), &mut named_rng(run.seed, "noise", 0), env.device());
            let act = || policy.act(obs.clone(), Explore::Sample(noise.clone())).0;
            passing_work(act).expect(metered);
            let (action, acting, _) = work(act).expect(metered);
            let (step, stepped, _) = work(|| env.step(policy.to_env(action.clone()))).expect(metered);
            let step = step.map_err(TrainError::from)?;
            stepping.push((n, stepped));
            env_bytes.push((n, Work { bytes: kept, ..Work::default() }));
            few = Some((env, step.obs, action));
            Ok::<_, X>(acting)
        })?;
        let all = |of: &[(usize, Work)]| match of {
            [.., low, high] if low.0 < high.0 => line(*low, *high, n_envs),
            [.., last] => last.1,
            [] => Work::default(),
        };
        let (env, obs, action) = few.expect("it was measured at least once");
        Ok(Self { env, obs, action, acting, stepping: all(&stepping), env_bytes: all(&env_bytes).bytes })
    }
}

/// `n` indices of `n_rows` rows, from the first one on again and again.
fn wrapping(n: usize, n_rows: usize, device: &Device) -> Tensor<1, Int> {
    row_indices((0..n).map(|i| i % n_rows), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_lines_are_extended_and_small_numbers_are_measured() {
        let mut seen = Vec::new();
        let mut of = |n: usize| {
            at_rows::<()>(n, |rows| {
                seen.push(rows);
                Ok(Work { bytes: 100.0 + 7.0 * rows as f64, launches: 5.0, times: 1.0, ..Work::default() })
            })
            .expect("it cannot fail")
        };
        assert_eq!((of(5).bytes, of(40).bytes, of(100_000).bytes), (135.0, 380.0, 700_100.0));
        assert_eq!(of(100_000).launches, 5.0);
        assert!(seen.iter().all(|rows| *rows <= MANY));
    }
}
