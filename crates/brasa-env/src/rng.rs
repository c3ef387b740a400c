//! Random streams: one per seed, environment and episode.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The random generator of an environment in one episode.
///
/// ChaCha is counter-based: a stream is selected by its address, so the numbers of an episode do
/// not depend on other environments or threads.
///
/// ```
/// use brasa_env::{EnvRng, episode_rng};
/// use rand::RngExt;
///
/// /// A number from 1 to 6.
/// fn roll(rng: &mut EnvRng) -> u8 {
///     rng.random_range(1..=6)
/// }
///
/// let mut rng = episode_rng(0, 0, 0);
/// assert!((1..=6).contains(&roll(&mut rng)));
/// ```
pub type EnvRng = ChaCha8Rng;

/// The stream of episode `episode` of environment `env` for `seed`.
///
/// ```
/// use brasa_env::episode_rng;
/// use rand::RngExt;
///
/// let first = |seed, env, episode| -> u64 { episode_rng(seed, env, episode).random() };
/// assert_eq!(first(7, 0, 3), first(7, 0, 3));
/// // Another environment and another episode have other numbers.
/// assert_ne!(first(7, 0, 3), first(7, 1, 3));
/// assert_ne!(first(7, 0, 3), first(7, 0, 4));
/// ```
pub fn episode_rng(seed: u64, env: u64, episode: u64) -> EnvRng {
    stream(seed, env, episode)
}

/// The stream of `purpose` (a short, unique word such as `"noise"`) and `index` for `seed`.
///
/// Learners and loops use it for all random numbers: initial weights, exploration noise,
/// the order of minibatches. A stream is addressed by its index, so a resumed run needs no saved generator.
///
/// ```
/// use brasa_env::named_rng;
/// use rand::RngExt;
///
/// // A resumed run continues with the noise of its update 100.
/// let noise = |index| -> f32 { named_rng(7, "noise", index).random() };
/// assert_eq!(noise(100), noise(100));
/// assert_ne!(noise(100), noise(101));
/// ```
pub fn named_rng(seed: u64, purpose: &str, index: u64) -> EnvRng {
    // Indices of environments start at 0; the top bit separates names from them.
    stream(seed, fnv1a(purpose.bytes()) | 1 << 63, index)
}

/// FNV-1a; any fixed hash would do, as long as it never changes between versions.
pub(crate) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A seed for a part of the run with `seed`: the first number of [`named_rng`].
///
/// ```
/// use brasa_env::derived_seed;
///
/// let seeds = [0, 1, 2].map(|fold| derived_seed(7, "fold", fold));
/// assert_eq!(seeds[1], derived_seed(7, "fold", 1));
/// assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2]);
/// ```
pub fn derived_seed(seed: u64, purpose: &str, index: u64) -> u64 {
    named_rng(seed, purpose, index).random()
}

fn stream(seed: u64, lane: u64, index: u64) -> EnvRng {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&lane.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(index);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let first = |mut rng: EnvRng| rng.random::<u64>();
        let base = first(episode_rng(1, 2, 3));
        assert_eq!(base, first(episode_rng(1, 2, 3)));
        for other in [episode_rng(2, 2, 3), episode_rng(1, 3, 3), episode_rng(1, 2, 4), named_rng(1, "noise", 3)] {
            assert_ne!(base, first(other));
        }
    }
}
