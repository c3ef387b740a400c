//! Two networks on the features of a third, or on inputs of their own, in the memory of the CPU.

use brasa_kernels::{HostMlp, reuse, reused};

/// A body with two branches: actor and critic, mean and deviation, value and advantages.
pub(crate) struct Branches {
    pub body: HostMlp,
    pub branches: [HostMlp; 2],
}

impl Branches {
    /// The results of both branches for `x`, `[n_rows, inputs]`.
    pub fn forward<'a>(&'a mut self, x: &'a [f32], n_rows: usize) -> [&'a [f32]; 2] {
        self.forward_apart([x, x], n_rows)
    }

    /// [`Branches::forward`] for other inputs of each branch. Only branches without a body have them.
    pub fn forward_apart<'a>(&'a mut self, [x, other]: [&'a [f32]; 2], n_rows: usize) -> [&'a [f32]; 2] {
        let is_apart = self.body.n_params() == 0;
        let features = self.body.forward(x, n_rows);
        let [first, second] = &mut self.branches;
        [first.forward(features, n_rows), second.forward(if is_apart { other } else { features }, n_rows)]
    }

    /// The results of the last [`Branches::forward_apart`], and what the last layer of the first branch read.
    pub fn results_apart<'a>(&'a self, [x, other]: [&'a [f32]; 2]) -> ([&'a [f32]; 2], &'a [f32]) {
        let Self { body, branches: [first, second] } = self;
        let features = body.results(x);
        let of_second = if body.n_params() == 0 { other } else { features };
        ([first.results(features), second.results(of_second)], first.features(features))
    }

    /// The gradient of the parameters of the body, then of both branches, from the derivatives of a loss by the results of the last
    /// [`Branches::forward`], whose input was `x`; and the derivative by `x`.
    pub fn backward(&self, x: &[f32], by_results: [&[f32]; 2], by_x: Option<&mut Vec<f32>>) -> Vec<f32> {
        self.backward_to([x, x], by_results, by_x)
    }

    /// The gradient of [`Branches::backward`] after [`Branches::forward_apart`].
    pub fn backward_apart(&self, inputs: [&[f32]; 2], by_results: [&[f32]; 2]) -> Vec<f32> {
        self.backward_to(inputs, by_results, None)
    }

    fn backward_to(&self, [x, other]: [&[f32]; 2], by_results: [&[f32]; 2], by_x: Option<&mut Vec<f32>>) -> Vec<f32> {
        let Self { body, branches } = self;
        let (n_body, features) = (body.n_params(), body.results(x));
        let features = [features, if n_body == 0 { other } else { features }];
        let mut gradient = reused(n_body + branches.iter().map(HostMlp::n_params).sum::<usize>());
        let (of_body, mut of_branches) = gradient.split_at_mut(n_body);
        let mut by_features: [Vec<f32>; 2] = [Vec::new(), Vec::new()];
        let (results, wants) = (features.into_iter().zip(by_results), n_body > 0 || by_x.is_some());
        for ((branch, (features, by_results)), by_features) in branches.iter().zip(results).zip(&mut by_features) {
            let own = of_branches.split_off_mut(..branch.n_params());
            branch.backward(features, by_results, own, wants.then_some(by_features));
        }
        if wants {
            let [mut sum, other] = by_features;
            sum.iter_mut().zip(&other).for_each(|(sum, x)| *sum += x);
            body.backward(x, &sum, Some(of_body), by_x);
            [sum, other].into_iter().for_each(reuse);
        }
        gradient
    }
}
