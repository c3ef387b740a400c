//! The first random numbers of many episodes at once.

use crate::vectorized::vectorized;

/// Episodes whose numbers are computed together.
pub(crate) const EPISODES: usize = 8;

/// Numbers of the episodes that are computed together.
type Words = [u32; EPISODES];

vectorized! {
    /// The first `N` numbers of [`crate::episode_rng`] for environments and their episodes: uniform in `[0, 1)`.
    ///
    /// A generator computes 256 bytes when its first number is drawn. An episode of rules needs a few numbers at its start and none later, so this is
    /// the block function of ChaCha (Bernstein 2008) with 8 rounds, for as many blocks as `N` numbers take.
    pub(crate) fn first_numbers[const N: usize](
        seed: u64,
        envs: &[u64; EPISODES],
        episodes: &[u64; EPISODES],
    ) -> [[f64; EPISODES]; N] {
        let mut numbers = [[0.0; EPISODES]; N];
        for first in (0..N).step_by(8) {
            let block = block(seed, envs, episodes, (first / 8) as u32);
            let words = block.as_flattened();
            for (i, numbers) in numbers[first..].iter_mut().take(8).enumerate() {
                for l in 0..EPISODES {
                    // 53 of 64 bits.
                    let [low, high] = [words[2 * i][l] >> 11, words[2 * i + 1][l]].map(f64::from);
                    numbers[l] = (high * (1u64 << 21) as f64 + low) * (1.0 / (1u64 << 53) as f64);
                }
            }
        }
        numbers
    }
}

/// One block of the streams of all episodes.
#[inline(always)]
fn block(seed: u64, envs: &[u64; EPISODES], episodes: &[u64; EPISODES], counter: u32) -> [[Words; 4]; 4] {
    let [mut a, mut b, mut c, mut d] = [[[0u32; EPISODES]; 4]; 4];
    // "expand 32-byte k".
    a[0] = [0x6170_7865; EPISODES];
    a[1] = [0x3320_646e; EPISODES];
    a[2] = [0x7962_2d32; EPISODES];
    a[3] = [0x6b20_6574; EPISODES];
    b[0] = [seed as u32; EPISODES];
    b[1] = [(seed >> 32) as u32; EPISODES];
    d[0] = [counter; EPISODES];
    for l in 0..EPISODES {
        b[2][l] = envs[l] as u32;
        b[3][l] = (envs[l] >> 32) as u32;
        d[2][l] = episodes[l] as u32;
        d[3][l] = (episodes[l] >> 32) as u32;
    }
    let [a0, b0, d0] = [a, b, d];
    for _ in 0..4 {
        for i in 0..4 {
            quarter_round(&mut a[i], &mut b[i], &mut c[i], &mut d[i]);
        }
        for i in 0..4 {
            quarter_round(&mut a[i], &mut b[(i + 1) % 4], &mut c[(i + 2) % 4], &mut d[(i + 3) % 4]);
        }
    }
    // The third row starts as 0.
    for i in 0..4 {
        for l in 0..EPISODES {
            a[i][l] = a[i][l].wrapping_add(a0[i][l]);
            b[i][l] = b[i][l].wrapping_add(b0[i][l]);
            d[i][l] = d[i][l].wrapping_add(d0[i][l]);
        }
    }
    [a, b, c, d]
}

#[inline(always)]
fn quarter_round(a: &mut Words, b: &mut Words, c: &mut Words, d: &mut Words) {
    for l in 0..EPISODES {
        a[l] = a[l].wrapping_add(b[l]);
        d[l] = (d[l] ^ a[l]).rotate_left(16);
        c[l] = c[l].wrapping_add(d[l]);
        b[l] = (b[l] ^ c[l]).rotate_left(12);
        a[l] = a[l].wrapping_add(b[l]);
        d[l] = (d[l] ^ a[l]).rotate_left(8);
        c[l] = c[l].wrapping_add(d[l]);
        b[l] = (b[l] ^ c[l]).rotate_left(7);
    }
}

#[cfg(test)]
mod tests {
    use std::array::from_fn;

    use rand::RngExt;

    use super::*;
    use crate::episode_rng;

    #[test]
    fn numbers_are_those_of_the_streams() {
        for seed in [0, 7, u64::MAX, 0x0123_4567_89ab_cdef] {
            let envs: [u64; EPISODES] = from_fn(|l| (l as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (l * 3));
            let episodes: [u64; EPISODES] =
                from_fn(|l| (l as u64 * 5).wrapping_mul(0xd1b5_4a32_d192_ed03) >> (40 - l * 2));
            let numbers = first_numbers::<37>(seed, &envs, &episodes);
            for l in 0..EPISODES {
                let mut rng = episode_rng(seed, envs[l], episodes[l]);
                assert_eq!(numbers.map(|numbers| numbers[l]), from_fn(|_| rng.random::<f64>()), "{seed}, {l}");
            }
        }
    }
}
