//! Bounds of continuous actions, and scaling from [-1, 1] to them.

use brasa_core::env::Space;
use brasa_core::export::scaling;
use burn::tensor::Tensor;

use crate::NnError;

/// Finite bounds of continuous actions, for policies with actions in [-1, 1].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ActionBounds {
    low: Vec<f32>,
    high: Vec<f32>,
}

/// The algorithms for the actions of a space, in the words of a message about another algorithm.
pub(crate) fn takers(space: &Space) -> &'static str {
    match space {
        Space::Discrete(_) => "PPO, A2C and DQN take one choice",
        Space::MultiDiscrete(_) => "PPO and A2C take several choices",
        Space::Box(_) => "PPO, A2C, SAC and TD3 take numbers",
        Space::Hybrid { .. } => "PPO and A2C take choices together with numbers",
    }
}

impl ActionBounds {
    /// The bounds of `space`.
    ///
    /// # Errors
    /// [`NnError::Space`] if actions are discrete or have no finite bounds.
    pub(crate) fn new(space: &Space) -> Result<Self, NnError> {
        let Space::Box(space) = space else {
            return Err(NnError::Space(format!("this policy needs continuous actions: {}", takers(space))));
        };
        if let Some(index) = (0..space.low.len()).find(|i| !(space.low[*i].is_finite() && space.high[*i].is_finite())) {
            let name = space.name(index);
            return Err(NnError::Space(format!("this policy needs finite bounds, but action `{name}` has none")));
        }
        Ok(Self { low: space.low.clone(), high: space.high.clone() })
    }

    /// These bounds, which are finite.
    pub(crate) fn between(low: Vec<f32>, high: Vec<f32>) -> Self {
        Self { low, high }
    }

    /// What scales from [-1, 1] to the bounds.
    pub(crate) fn factor_and_offset(&self) -> (Vec<f32>, Vec<f32>) {
        scaling(&self.low, &self.high)
    }

    /// Numbers per action.
    pub(crate) fn n_actions(&self) -> usize {
        self.low.len()
    }

    /// Scales from [-1, 1] to the bounds.
    pub(crate) fn scale(&self, action: Tensor<2>) -> Tensor<2> {
        scale(action, &self.low, &self.high)
    }

    /// Actions in [-1, 1] from noise in [0, 1); it uses the first columns, one per dimension of the action.
    pub(crate) fn uniform(&self, noise: Tensor<2>) -> Tensor<2> {
        let n_rows = noise.dims()[0];
        noise.slice([0..n_rows, 0..self.n_actions()]) * 2.0 - 1.0
    }
}

/// Scales from [-1, 1] to `[low, high]`.
pub(crate) fn scale(action: Tensor<2>, low: &[f32], high: &[f32]) -> Tensor<2> {
    if low.iter().all(|x| *x == -1.0) && high.iter().all(|x| *x == 1.0) {
        return action;
    }
    let (factor, offset) = scaling(low, high);
    // Equal bounds of all numbers need no upload.
    if factor.iter().all(|x| *x == factor[0]) && offset.iter().all(|x| *x == offset[0]) {
        let scaled = action * factor[0];
        return if offset[0] == 0.0 { scaled } else { scaled + offset[0] };
    }
    let device = action.device();
    let row = |values: Vec<f32>| Tensor::<1>::from_floats(values.as_slice(), &device).unsqueeze::<2>();
    action * row(factor) + row(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_unit_range_are_the_bounds() {
        let device = brasa_test::device();
        let bounds = ActionBounds::new(&Space::named_box([("x", -3.0, 1.0), ("y", 0.0, 4.0)])).expect("finite");
        let read = |values: Tensor<2>| values.into_data().iter::<f32>().collect::<Vec<_>>();
        let ends = Tensor::from_floats([[-1.0, 1.0], [0.0, 0.0], [1.0, -1.0]], &device);
        assert_eq!(read(bounds.scale(ends)), [-3.0, 4.0, -1.0, 2.0, 1.0, 0.0]);
        let noise = Tensor::from_floats([[0.0, 0.75, 0.3]], &device);
        assert_eq!(read(bounds.uniform(noise)), [-1.0, 0.5]);
    }

    #[test]
    fn the_largest_bounds_do_not_overflow() {
        let device = brasa_test::device();
        let large = [(-f32::MAX, f32::MAX), (0.0, f32::MAX), (-f32::MAX, -1e38), (-(2f32.powi(106)), f32::MAX)];
        let space = Space::named_box(large.map(|(low, high)| ("torque", low, high)));
        let bounds = ActionBounds::new(&space).expect("finite");
        for end in [-1.0, 0.0, 0.5, 1.0] {
            let scaled = bounds.scale(Tensor::full([1, 4], end, &device)).into_data().iter::<f32>().collect::<Vec<_>>();
            for (value, (low, high)) in scaled.into_iter().zip(large) {
                let exact = f64::from(low) + (f64::from(high) - f64::from(low)) * (end + 1.0) / 2.0;
                let error = (f64::from(value) - exact).abs() / (f64::from(high) - f64::from(low));
                assert!(error < 1e-6, "{end} gives {value} in [{low}, {high}]");
            }
        }
    }

    #[test]
    fn a_space_without_finite_bounds_is_named() {
        let message = |space| ActionBounds::new(&space).expect_err("it has no bounds").to_string();
        let message_of_box = message(Space::named_box([("x", -1.0, 1.0), ("power_kw", 0.0, f32::INFINITY)]));
        assert_eq!(message_of_box, "this policy needs finite bounds, but action `power_kw` has none");
        let message_of_choice = message(Space::Discrete(3));
        assert_eq!(message_of_choice, "this policy needs continuous actions: PPO, A2C and DQN take one choice");
    }
}
