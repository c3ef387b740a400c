//! Sums in the order of a binary tree.

use std::ops::AddAssign;

/// A floating-point number that shards can average: `f32` or `f64`.
///
/// ```
/// use brasa_shards::{Number, World, mean};
///
/// /// The mean over the shards of one number, in its precision.
/// fn mean_of_one<T: Number>(number: T) -> T {
///     mean(vec![number])[0]
/// }
///
/// let both = World::solo().run(2, || Ok::<_, String>((mean_of_one(0.5f32), mean_of_one(0.1f64))))?;
/// assert_eq!(both, (0.5, 0.1));
/// # Ok::<(), brasa_shards::RunError<String>>(())
/// ```
pub trait Number: bytemuck::Pod + AddAssign + Send + Sync + sealed::Sealed {
    /// The number divided by a power of two, which is exact.
    fn divided(self, by: usize) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Number for f32 {
    fn divided(self, by: usize) -> Self {
        self / by as f32
    }
}

impl Number for f64 {
    fn divided(self, by: usize) -> Self {
        self / by as f64
    }
}

/// The sum of parts of the same length, added pair by pair. Their number is a power of two.
///
/// # Panics
/// If there is no part, or their lengths differ.
pub(crate) fn sum<T: Number>(mut parts: Vec<Vec<T>>) -> Vec<T> {
    debug_assert!(parts.len().is_power_of_two());
    while parts.len() > 1 {
        let mut pairs = Vec::with_capacity(parts.len() / 2);
        let mut rest = parts.into_iter();
        while let (Some(mut left), Some(right)) = (rest.next(), rest.next()) {
            add(&mut left, &right);
            pairs.push(left);
        }
        parts = pairs;
    }
    parts.pop().expect("there is at least one shard")
}

/// Adds the right one of a pair to the left one.
///
/// # Panics
/// If their lengths differ.
pub(crate) fn add<T: Number>(left: &mut [T], right: &[T]) {
    assert_eq!(left.len(), right.len(), "all shards average the same numbers");
    left.iter_mut().zip(right).for_each(|(left, right)| *left += *right);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers whose sum depends on the order of addition.
    fn parts(n: usize) -> Vec<Vec<f32>> {
        (0..n).map(|i| vec![(i as f32 * 0.7).sin() * 10f32.powi(i as i32 % 7), 1.0]).collect()
    }

    #[test]
    fn the_subtrees_of_ranks_give_the_same_bits_as_the_whole_tree() {
        let whole = sum(parts(16));
        assert_eq!(whole[1], 16.0);
        for n_ranks in [2, 4, 8, 16] {
            let of_ranks = parts(16).chunks(16 / n_ranks).map(|own| sum(own.to_vec())).collect();
            assert_eq!(sum(of_ranks).map_bits(), whole.map_bits());
        }
        let in_order = parts(16).iter().fold(0.0f32, |sum, part| sum + part[0]);
        assert_ne!(in_order.to_bits(), whole[0].to_bits(), "these numbers must tell orders apart");
    }

    trait MapBits {
        fn map_bits(&self) -> Vec<u32>;
    }
    impl MapBits for Vec<f32> {
        fn map_bits(&self) -> Vec<u32> {
            self.iter().map(|x| x.to_bits()).collect()
        }
    }
}
