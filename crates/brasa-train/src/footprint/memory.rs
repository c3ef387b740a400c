//! The memory of a run by purpose, and whether a device has it.

use brasa_device::{Backend, Profile};

use super::Footprint;

/// Memory for one purpose.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// # use brasa_device::Meter;
/// # use brasa_train::{OnPolicy, Run, TrainError};
/// # #[global_allocator]
/// # static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
/// use brasa_device::profile;
/// use brasa_train::{MemoryPart, Placing};
///
/// # let run = Run { total_env_steps: 1_000_000, seed: 0 };
/// // `need` is the footprint of a run of PPO.
/// # let need = OnPolicy::footprint(|n| Ok::<_, TrainError>(cart_poles(n)), || Ok(ppo()), 64, run)?;
/// # let need = need.expect("the allocator is installed");
/// let parts: Vec<MemoryPart> = need.parts(Placing::on(&profile("t4")?));
/// assert_eq!((parts[0].name, parts[0].bytes), ("weights", need.weights));
/// // Actions are in memory only while a policy acts.
/// assert!(parts.iter().any(|part| part.name == "actions" && part.during == Some("acting")));
/// # Ok::<(), TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryPart {
    /// The purpose.
    pub name: &'static str,
    /// Bytes on the device.
    pub bytes: f64,
    /// The phase that uses it; `None` if it is in use all the time. Phases follow each other, so that only the largest counts.
    pub during: Option<&'static str>,
    /// What determines its size, besides the networks.
    pub grows_with: Option<GrowsWith>,
}

/// What determines the size of a part of the memory.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// # use brasa_device::Meter;
/// # use brasa_train::{OnPolicy, Run, TrainError};
/// # #[global_allocator]
/// # static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
/// use brasa_device::profile;
/// use brasa_train::{GrowsWith, Placing};
///
/// # let run = Run { total_env_steps: 1_000_000, seed: 0 };
/// // `need` is the footprint of a run of PPO.
/// # let need = OnPolicy::footprint(|n| Ok::<_, TrainError>(cart_poles(n)), || Ok(ppo()), 64, run)?;
/// # let need = need.expect("the allocator is installed");
/// let parts = need.parts(Placing::on(&profile("t4")?));
/// let rollout = parts.iter().find(|part| part.name == need.stored_as);
/// assert_eq!(rollout.and_then(|part| part.grows_with), Some(GrowsWith::Stored));
/// # Ok::<(), TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowsWith {
    /// The number of environments.
    Envs,
    /// The number of stored steps.
    Stored,
    /// The rows of an update.
    Batch,
}

/// Where a run keeps what it needs.
///
/// ```
/// use brasa_device::profile;
/// use brasa_train::Placing;
///
/// let host = Placing::on(&profile("cpu")?);
/// assert!(host.on_host && host.envs_on_device);
/// // On a GPU, with environments that are computed there.
/// let gpu = Placing { envs_on_device: true, ..Placing::on(&profile("t4")?) };
/// assert!(!gpu.on_host && !gpu.saves_replay);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placing {
    /// Whether the device is the processor, whose memory also has bookkeeping and checkpoints.
    pub on_host: bool,
    /// Whether the environments are in the memory of the device.
    pub envs_on_device: bool,
    /// Whether checkpoints contain the replay buffer.
    pub saves_replay: bool,
}

impl Placing {
    /// On a device of `profile`, with environments in the memory of the host and without a replay buffer in checkpoints.
    pub fn on(profile: &Profile) -> Self {
        let on_host = profile.backend == Backend::Flex;
        Self { on_host, envs_on_device: on_host, saves_replay: false }
    }
}

const ACTING: &str = "acting";
const UPDATES: &str = "updates";
const CHECKPOINTS: &str = "checkpoints";

impl Footprint {
    /// Whether the stored steps are not on the device.
    pub fn is_stored_away(&self, on_host: bool) -> bool {
        self.stored_on_host && !on_host
    }

    /// The memory by purpose, without empty parts.
    pub fn parts(&self, placing: Placing) -> Vec<MemoryPart> {
        use GrowsWith::{Batch, Envs, Stored};
        let kept = |name, bytes, grows_with| MemoryPart { name, bytes, during: None, grows_with };
        let during = |phase, name, bytes, grows_with| MemoryPart { name, bytes, during: Some(phase), grows_with };
        // An update frees each gradient after its use, but all exist at the end of a backward pass.
        let gradients = self.gradients.min(self.learning.bytes);
        let stored = if self.is_stored_away(placing.on_host) { 0.0 } else { self.stored };
        let other_networks = (self.learner - self.moments).max(0.0);
        let mut parts = vec![
            kept("weights", self.weights, None),
            kept("moments", self.moments, None),
            kept("other networks", other_networks, None),
            kept(self.stored_as, stored, Some(Stored)),
        ];
        if placing.on_host {
            parts.push(kept("bookkeeping", self.bookkeeping, Some(Stored)));
            parts.push(kept("workspace", self.workspace, None));
            // A checkpoint copies the buffer, too, if it saves it.
            let replay = if placing.saves_replay { self.stored + self.bookkeeping } else { 0.0 };
            parts.push(during(CHECKPOINTS, "copy", self.checkpoint + replay, None));
        } else {
            // Optimizers and target networks keep all weights of a network as one vector, too.
            parts.push(kept("joined weights", self.weights + other_networks, None));
            parts.push(kept("recordings", self.recordings, Some(Batch)));
        }
        if placing.envs_on_device {
            parts.push(kept("environments", self.envs, Some(Envs)));
        }
        parts.push(during(ACTING, "staging", self.staging, Some(Envs)));
        parts.push(during(ACTING, "actions", self.acting.bytes, Some(Envs)));
        parts.push(during(UPDATES, "gradients", gradients, None));
        parts.push(during(UPDATES, "activations", self.learning.bytes - gradients, Some(Batch)));
        parts.retain(|part| part.bytes > 0.0);
        parts
    }

    /// Most bytes of the device at the same time.
    pub fn bytes(&self, placing: Placing) -> f64 {
        let parts = self.parts(placing);
        let during = |phase| parts.iter().filter(|part| part.during == phase).map(|part| part.bytes).sum::<f64>();
        let phases = [ACTING, UPDATES, CHECKPOINTS].map(|phase| during(Some(phase)));
        during(None) + phases.into_iter().fold(0.0, f64::max)
    }

    /// Whether a device of `profile` has enough memory: see [`Placing::on`]. Unknown memory is enough.
    pub fn fits(&self, profile: &Profile) -> bool {
        profile.usable_bytes().is_none_or(|usable| self.bytes(Placing::on(profile)) <= usable)
    }

    /// The largest power of two, at most 2^24, as the rows of a batch with which a run fits a device of `profile`; `None` if no batch fits, or if
    /// this program cannot measure memory. `of` measures the run with a batch, as [`OffPolicy::footprint`](crate::OffPolicy::footprint) does: it is
    /// called five times.
    ///
    /// # Errors
    /// Any error of `of`.
    pub fn largest_batch<E>(
        profile: &Profile,
        mut of: impl FnMut(usize) -> Result<Option<Self>, E>,
    ) -> Result<Option<usize>, E> {
        // Exponents below `fitting` fit, those from `above` on do not.
        let (mut fitting, mut above) = (0, 25);
        while fitting < above {
            let middle = usize::midpoint(fitting, above);
            let Some(need) = of(1 << middle)? else { return Ok(None) };
            match need.fits(profile) {
                true => fitting = middle + 1,
                false => above = middle,
            }
        }
        Ok(fitting.checked_sub(1).map(|exponent| 1 << exponent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Work;
    use brasa_device::profile;

    fn need(batch: usize) -> Footprint {
        let work = |bytes: f64| Work { bytes, ..Work::default() };
        Footprint {
            weights: 1e6,
            learner: 5e6,
            moments: 2e6,
            gradients: 1e6,
            stored: 1e9,
            stored_as: "replay buffer",
            stored_on_host: false,
            recordings: 0.0,
            bookkeeping: 3e6,
            workspace: 4e6,
            checkpoint: 9e6,
            staging: 1e5,
            envs: 7e6,
            batch_rows: batch,
            acting: work(2e5),
            stepping: work(0.0),
            learning: work(1e6 + 4e4 * batch as f64),
        }
    }

    #[test]
    fn only_the_largest_phase_counts_and_each_place_has_its_own_parts() {
        let gpu = Placing { on_host: false, envs_on_device: false, saves_replay: false };
        let parts = |placing| need(100).parts(placing).iter().map(|part| part.name).collect::<Vec<_>>();
        let kept = ["weights", "moments", "other networks", "replay buffer", "joined weights"];
        let of_gpu = [&kept[..], &["staging", "actions", "gradients", "activations"]].concat();
        assert_eq!(parts(gpu), of_gpu);
        let joined = 1e6 + (5e6 - need(100).moments);
        assert_eq!(need(100).bytes(gpu), 1e6 + 5e6 + joined + 1e9 + (1e6 + 4e6));
        let away = Footprint { stored_on_host: true, ..need(100) };
        assert_eq!(away.bytes(gpu), 1e6 + 5e6 + joined + (1e6 + 4e6));
        let host = Placing { on_host: true, envs_on_device: true, saves_replay: true };
        assert_eq!(need(100).bytes(host), 1e6 + 5e6 + 1e9 + 3e6 + 4e6 + 7e6 + (9e6 + 1e9 + 3e6));
    }

    #[test]
    fn the_largest_batch_fits_and_twice_as_many_rows_do_not() {
        let card = profile("rtx-4060").expect("it is known");
        let mut calls = 0;
        let largest = Footprint::largest_batch(&card, |batch| {
            calls += 1;
            Ok::<_, std::convert::Infallible>(Some(need(batch)))
        });
        let largest = largest.expect("nothing fails").expect("a small batch fits");
        assert!(need(largest).fits(&card) && !need(2 * largest).fits(&card), "{largest}");
        assert!(calls <= 5, "{calls}");
        let full = |batch| Ok::<_, std::convert::Infallible>(Some(Footprint { stored: 1e12, ..need(batch) }));
        assert_eq!(Footprint::largest_batch(&card, full).expect("nothing fails"), None);
        assert_eq!(
            Footprint::largest_batch(&card, |_| Ok::<_, std::convert::Infallible>(None)).expect("nothing fails"),
            None
        );
    }
}
