//! A rule for CartPole that sees positions only: estimate the speeds, then push.

use brasa_env::{After, BatchSlabs, Controller, EnvError, Rules};
use brasa_number::Dual;
use ndarray::ArrayViewMut2;

use super::position_only::SEEN;
use crate::CartPoleRules;

/// Deviation of the noise that the rule assumes where observations have none.
const EXACT: f64 = 1e-3;
/// Pushes to the right where the product with the estimated state is above 0. The gains were searched for with the noise of all difficulties.
const GAINS: [f64; 4] = [0.015, 0.015, 1.0, 0.15];

/// An extended Kalman filter (Jazwinski 1970, section 8.3) with the rules, the noise and its own actions. The push follows its estimate.
#[derive(Debug, Clone)]
pub(crate) struct CartPoleFilter {
    rules: CartPoleRules,
    /// Variance of the noise of an observed number.
    noise: f64,
    beliefs: Vec<Belief>,
}

/// What is known of a state: it is normal with this mean and covariance.
#[derive(Debug, Clone, Copy)]
struct Belief {
    mean: [f64; 4],
    covariance: [[f64; 4]; 4],
    /// The latest action; `None` before the first one of an episode.
    action: Option<f64>,
}

impl CartPoleFilter {
    /// A rule for observations with noise of this standard deviation.
    pub fn new(noise: f32) -> Self {
        Self { rules: CartPoleRules::default(), noise: f64::from(noise).max(EXACT).powi(2), beliefs: Vec::new() }
    }

    /// The state at the start of an episode.
    fn prior(&self) -> Belief {
        let mut covariance = [[0.0; 4]; 4];
        // The variance of uniform numbers.
        (0..4).for_each(|i| covariance[i][i] = self.rules.start_limit.powi(2) / 3.0);
        Belief { mean: [0.0; 4], covariance, action: None }
    }
}

impl Belief {
    /// Goes on by one step, with the slopes of the rules at the mean.
    fn step(&mut self, rules: &CartPoleRules, action: f64) {
        let After { state, .. } = rules.step(Dual::<f64, 4>::variables(self.mean), [Dual::constant(action)]);
        let slopes = state.map(|number| [0, 1, 2, 3].map(|by| number.by(by)));
        let spread = slopes.map(|slope| self.covariance.map(|row| dot(row, slope)));
        self.covariance = slopes.map(|slope| spread.map(|column| dot(slope, column)));
        self.mean = state.map(|number| number.value);
    }

    /// Learns that the number with this place was seen with noise of this variance.
    fn see(&mut self, place: usize, seen: f64, noise: f64) {
        let row = self.covariance[place];
        let (surprise, variance) = (seen - self.mean[place], row[place] + noise);
        for i in 0..4 {
            let gain = row[i] / variance;
            self.mean[i] += gain * surprise;
            (0..4).for_each(|j| self.covariance[i][j] -= gain * row[j]);
        }
    }
}

fn dot(a: [f64; 4], b: [f64; 4]) -> f64 {
    a.into_iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Controller for CartPoleFilter {
    fn act(&mut self, view: &BatchSlabs, mut actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
        let prior = self.prior();
        self.beliefs.resize(view.obs.nrows(), prior);
        for (row, mut action) in actions.rows_mut().into_iter().enumerate() {
            let belief = &mut self.beliefs[row];
            match belief.action {
                Some(action) if !view.episode_end(row) => belief.step(&self.rules, action),
                _ => *belief = prior,
            }
            for (slot, place) in SEEN.into_iter().enumerate() {
                belief.see(place, f64::from(view.obs[[row, slot]]), self.noise);
            }
            let push = if dot(GAINS, belief.mean) > 0.0 { 1.0 } else { 0.0 };
            belief.action = Some(push);
            action[0] = push as f32;
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.beliefs.clear();
    }

    fn keep(&mut self, rows: &[usize]) {
        self.beliefs = rows.iter().map(|row| self.beliefs[*row]).collect();
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::{Env, Evaluation, Scenario, Who, episode_rng};
    use ndarray::{Array1, array};

    use super::*;
    use crate::{Classic, Difficulty, PositionOnlyCartPole};

    #[test]
    fn estimates_of_exact_positions_are_the_speeds() {
        let (mut env, mut seen, rng) =
            (PositionOnlyCartPole::new(Difficulty::Easy), Array1::zeros(2), &mut episode_rng(3, 0, 0));
        let filter = CartPoleFilter::new(0.0);
        let mut belief = filter.prior();
        env.reset(rng, seen.view_mut());
        for step in 0..20 {
            let push = f64::from(step % 2);
            env.step(array![push as f32].view(), rng, seen.view_mut());
            belief.step(&filter.rules, push);
            for (slot, place) in SEEN.into_iter().enumerate() {
                belief.see(place, f64::from(seen[slot]), filter.noise);
            }
        }
        for (estimate, truth) in belief.mean.into_iter().zip(env.state().0) {
            assert!((estimate - truth).abs() < 5e-3, "{estimate} is not {truth}");
        }
    }

    /// An implementation in NumPy, with slopes at the upright pole, had these means with these gains over 3,000 episodes.
    #[test]
    fn the_rule_balances_as_well_as_its_gains_did_in_their_search() {
        let mean = |task: Classic<PositionOnlyCartPole>| {
            let outcomes =
                task.evaluate(Who::Baseline(crate::scenario::RULE), &Evaluation::new(300, 5)).expect("it plays");
            outcomes.iter().map(|outcome| outcome.episode_return.expect("it has one")).sum::<f64>() / 300.0
        };
        for (difficulty, expected) in [(Difficulty::Easy, 0.99), (Difficulty::Medium, 0.657), (Difficulty::Hard, 0.388)]
        {
            let (exact, noisy) =
                (Classic::position_only_cart_pole(difficulty), Classic::noisy_position_only_cart_pole(difficulty));
            assert!((mean(exact) - 1.0).abs() < 1e-6, "{difficulty:?}");
            // Three standard errors of 300 episodes.
            let got = mean(noisy);
            assert!((got - expected).abs() < 0.05, "{difficulty:?}: {got}");
        }
    }
}
