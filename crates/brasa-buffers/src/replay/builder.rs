//! A buffer from the spec of its environments alone, and transitions of one environment as numbers.

use std::marker::PhantomData;

use brasa_core::env::{BatchSlabs, EnvSpec, InvalidField, Space};
use brasa_core::{Obs, ObsForm, ObsParts, StepBatch, Successor};
use burn::tensor::{Device, Tensor, TensorData};

use super::{BufferError, PrioritizedConfig, ReplayBuffer, ReplayConfig};
use crate::{Compact, Precision};

/// Settings of a [`ReplayBuffer`]; made by [`ReplayBuffer::builder`].
///
/// ```
/// use brasa_buffers::{EnvSpec, Obs, PrioritizedConfig, ReplayBuffer, Space};
///
/// let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x"]), Space::Discrete(2), 8);
/// let builder = ReplayBuffer::<Obs, _>::builder(&spec).capacity(1024).n_step(3);
/// let replay = builder.prioritized(PrioritizedConfig::default()).build(&brasa_device::open_named("cpu")?)?;
/// assert_eq!(replay.n_transitions(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct ReplayBuilder<'a, O> {
    spec: &'a EnvSpec,
    config: ReplayConfig,
    gamma: f64,
    obs: PhantomData<fn() -> O>,
}

impl<O: ObsForm + Compact> ReplayBuffer<O, Tensor<2>> {
    /// A buffer for environments of `spec`. Every setting has a default: a million transitions, a discount of 0.99, uniform sampling.
    ///
    /// ```
    /// use brasa_buffers::{EnvSpec, Obs, ReplayBuffer, Space, Transition};
    ///
    /// let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["place"]), Space::Discrete(2), 1);
    /// let device = brasa_device::open_named("cpu")?;
    /// let mut replay = ReplayBuffer::<Obs, _>::builder(&spec).capacity(1000).gamma(0.9).build(&device)?;
    /// // A walk of three steps that ends at the goal.
    /// replay.push_one(&Transition::new(&[0.0], &[1.0], -1.0, &[0.3]))?;
    /// replay.push_one(&Transition::new(&[0.3], &[1.0], -1.0, &[0.6]))?;
    /// replay.push_one(&Transition::new(&[0.6], &[1.0], -1.0, &[1.0]).terminated())?;
    /// let batch = replay.sample(64, 0.0, &mut brasa_buffers::named_rng(0, "example", 0));
    /// // The target of a value is `reward + discount * value(next_obs)`; the discount is 0 behind the end.
    /// let discounts: Vec<f32> = batch.discount.into_data().iter::<f32>().collect();
    /// assert!(discounts.contains(&0.0) && discounts.contains(&0.9));
    /// # Ok::<(), brasa_buffers::BufferError>(())
    /// ```
    pub fn builder(spec: &EnvSpec) -> ReplayBuilder<'_, O> {
        ReplayBuilder { spec, config: ReplayConfig::default(), gamma: 0.99, obs: PhantomData }
    }
}

impl<O: ObsForm + Compact> ReplayBuilder<'_, O> {
    /// All settings of the buffer.
    pub fn config(mut self, config: ReplayConfig) -> Self {
        self.config = config;
        self
    }

    /// See [`ReplayConfig::capacity`].
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.config.capacity = capacity;
        self
    }

    /// See [`ReplayConfig::n_step`].
    pub fn n_step(mut self, n_step: usize) -> Self {
        self.config.n_step = n_step;
        self
    }

    /// See [`ReplayConfig::precision`].
    pub fn precision(mut self, precision: Precision) -> Self {
        self.config.precision = precision;
        self
    }

    /// Samples by priority: see [`ReplayConfig::prioritized`].
    pub fn prioritized(mut self, config: PrioritizedConfig) -> Self {
        self.config.prioritized = Some(config);
        self
    }

    /// Discount per step.
    pub fn gamma(mut self, gamma: f64) -> Self {
        self.gamma = gamma;
        self
    }

    /// The buffer, whose batches are on `device`, without autodiff.
    ///
    /// # Errors
    /// As [`ReplayBuffer::new`].
    pub fn build(self, device: &Device) -> Result<ReplayBuffer<O, Tensor<2>>, BufferError> {
        let obs = O::assemble(ObsParts::upload(self.spec, &BatchSlabs::new(self.spec), device));
        let action = Tensor::zeros([self.spec.n_rows(), self.spec.action.width()], device);
        ReplayBuffer::new(&self.config, self.spec, &obs, &action, self.gamma, device)
    }
}

/// One step of one environment, as numbers in the memory of the CPU.
///
/// ```
/// use brasa_buffers::Transition;
///
/// let step = Transition::new(&[0.6], &[1.0], -1.0, &[1.0]);
/// assert!(!step.terminated && !step.truncated);
/// assert!(step.terminated().terminated);
/// // The two flags of an environment of Gymnasium.
/// assert!(step.ended((false, true)).truncated);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct Transition<'a> {
    /// The observation on which the action was chosen.
    pub obs: &'a [f32],
    /// The action.
    pub action: &'a [f32],
    /// The reward.
    pub reward: f32,
    /// The observation after the step, before any reset.
    pub next_obs: &'a [f32],
    /// Whether the episode ended by the rules of the task: no bootstrap.
    pub terminated: bool,
    /// Whether the episode was cut by a limit: the next observation is bootstrapped.
    pub truncated: bool,
}

impl<'a> Transition<'a> {
    /// A step within an episode.
    pub fn new(obs: &'a [f32], action: &'a [f32], reward: f32, next_obs: &'a [f32]) -> Self {
        Self { obs, action, reward, next_obs, terminated: false, truncated: false }
    }

    /// As the last step of an episode that ended by the rules of the task.
    pub fn terminated(self) -> Self {
        Self { terminated: true, ..self }
    }

    /// With the two flags of a step, for environments that give them.
    pub fn ended(self, (terminated, truncated): (bool, bool)) -> Self {
        Self { terminated, truncated, ..self }
    }

    /// As the last step of an episode that was cut by a limit.
    pub fn truncated(self) -> Self {
        Self { truncated: true, ..self }
    }
}

impl ReplayBuffer<Obs, Tensor<2>> {
    /// Stores a step of one environment. Steps are stored in their order. Unless the previous step ended an episode, the observation is
    /// [`Transition::next_obs`] of the previous step.
    ///
    /// # Errors
    /// [`BufferError::Field`] if a number is not finite or a choice is no index of an alternative, and if the observation does not continue the
    /// previous step and the previous step did not end its episode. Otherwise as [`ReplayBuffer::push`].
    ///
    /// # Panics
    /// If the buffer is for several environments or masks, or a slice has another length.
    #[track_caller]
    pub fn push_one(&mut self, transition: &Transition<'_>) -> Result<(), BufferError> {
        let Transition { obs, action, reward, next_obs, terminated, truncated } = *transition;
        let (like_obs, like_action) = &self.like;
        assert!(
            self.n_rows == 1 && like_obs.mask.is_none(),
            "`push_one` needs a buffer for one environment without masks, this one has {} rows; `push` stores a step of all rows",
            self.n_rows
        );
        let [obs_width, action_width] = [&like_obs.values, like_action].map(|tensor| tensor.dims()[1]);
        for (name, numbers, width) in
            [("obs", obs, obs_width), ("action", action, action_width), ("next_obs", next_obs, obs_width)]
        {
            assert_eq!(numbers.len(), width, "numbers in `{name}` (left), compared with the spaces of the buffer");
            if let Some(value) = numbers.iter().find(|value| !value.is_finite()) {
                return Err(InvalidField::new(name, "must be finite", *value).into());
            }
        }
        if !reward.is_finite() {
            return Err(InvalidField::new("reward", "must be finite", reward).into());
        }
        for (choice, n) in action.iter().zip(&self.heads) {
            if !Space::Discrete(*n).contains(&[*choice]) {
                return Err(InvalidField::new("action", format!("must be an index below {n}"), *choice).into());
            }
        }
        let differs = |next: &&Vec<f32>| next.iter().map(|x| x.to_bits()).ne(obs.iter().map(|x| x.to_bits()));
        if let Some(next) = self.expected.as_ref().filter(differs) {
            let rule = "must be `next_obs` of the previous step, unless that step ended its episode: mark its end as terminated or truncated";
            return Err(InvalidField::new("obs", rule, format!("{obs:?} after {next:?}")).into());
        }
        let device = self.run_device.as_ref().unwrap_or(&self.device).clone();
        let row = |numbers: &[f32]| -> Tensor<2> {
            Tensor::from_data(TensorData::new(numbers.to_vec(), [1, numbers.len()]), &device)
        };
        let number = |value: f32| Tensor::<1>::from_floats([value], &device);
        let flag = |flag: bool| number(f32::from(u8::from(flag)));
        let (observed, next) = (Obs::new(row(obs)), Obs::new(row(next_obs)));
        match self.ring.open() {
            // Where an episode has ended, the newest observation is not that of its successor.
            Some(open) => self.write_obs(open, self.fetched(observed)),
            None => self.begin(observed),
        }
        let successor = match (terminated, truncated) {
            (_, true) => Successor::Rows(next.clone()),
            (true, false) => Successor::Terminal,
            (false, false) => Successor::Same,
        };
        let expected = (!terminated && !truncated).then(|| next_obs.to_vec());
        let (reward, terminated, truncated) = (number(reward), flag(terminated), flag(truncated));
        let step = StepBatch { obs: next, successor, reward, terminated, truncated, elapsed: None };
        self.push(row(action), &step)?;
        self.expected = expected;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::env::named_rng;
    use rand::RngExt;

    /// Episodes of random lengths in a small ring, which end in every way: what is sampled is what the same steps of a batch give, which know the
    /// observation after a reset at once.
    #[test]
    fn steps_one_by_one_are_those_of_a_batch() {
        let device = brasa_test::device();
        let spec = EnvSpec::new(Space::uniform_box(0.0, 1e6, ["place", "half"]), Space::Discrete(3), 1);
        for (n_step, prioritized) in [(1, false), (3, false), (3, true)] {
            let builder = || {
                let builder = ReplayBuffer::<Obs, _>::builder(&spec).capacity(40).n_step(n_step).gamma(0.9);
                if prioritized { builder.prioritized(PrioritizedConfig::default()) } else { builder }
            };
            let [mut one_by_one, mut batch] = [(); 2].map(|()| builder().build(&device).expect("a buffer"));
            let rng = &mut named_rng(0, "test", n_step as u64);
            let tensor = |numbers: &[f32]| -> Tensor<2> {
                Tensor::from_data(TensorData::new(numbers.to_vec(), [1, numbers.len()]), &device)
            };
            let mut place = 0.0f32;
            let mut now = [place, place / 2.0];
            batch.begin(Obs::new(tensor(&now)));
            for _ in 0..300 {
                place += 1.0;
                let (next, action, reward) =
                    ([place, place / 2.0], [rng.random_range(0..3) as f32], rng.random::<f32>());
                let (terminated, truncated) = (rng.random_bool(0.1), rng.random_bool(0.1));
                let transition = Transition { terminated, truncated, ..Transition::new(&now, &action, reward, &next) };
                one_by_one.push_one(&transition).expect("it is stored");
                if terminated || truncated {
                    place += 10.0;
                }
                let after = [place, place / 2.0];
                let number = |value: f32| Tensor::<1>::from_floats([value], &device);
                let step = StepBatch {
                    obs: Obs::new(tensor(&after)),
                    successor: match (terminated, truncated) {
                        (false, false) => Successor::Same,
                        (true, false) => Successor::Terminal,
                        _ => Successor::Rows(Obs::new(tensor(&next))),
                    },
                    reward: number(reward),
                    terminated: number(f32::from(u8::from(terminated))),
                    truncated: number(f32::from(u8::from(truncated))),
                    elapsed: None,
                };
                batch.push(tensor(&action), &step).expect("it is stored");
                now = after;
                let sampled = [&one_by_one, &batch].map(|replay| {
                    let drawn = replay.sample(16, 0.5, &mut named_rng(1, "test", 0));
                    let flat = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
                    let line = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
                    [
                        flat(drawn.obs.values),
                        flat(drawn.action),
                        flat(drawn.next_obs.values),
                        line(drawn.reward),
                        line(drawn.discount),
                    ]
                });
                let [[obs, action, next, reward, discount], expected] = sampled;
                assert_eq!([&obs, &action, &reward, &discount], [0, 1, 3, 4].map(|i| &expected[i]));
                // Nobody reads what follows the end of a task.
                let alike = next.chunks(2).zip(expected[2].chunks(2)).zip(&discount);
                assert!(
                    alike.into_iter().all(|((a, b), discount)| a == b || *discount == 0.0),
                    "{next:?} {expected:?}"
                );
            }
        }
    }

    #[test]
    fn an_episode_whose_end_was_not_marked_is_named() {
        let spec = EnvSpec::new(Space::uniform_box(0.0, 1.0, ["a"]), Space::Discrete(3), 1);
        let mut replay =
            ReplayBuffer::<Obs, _>::builder(&spec).capacity(40).build(&brasa_test::device()).expect("a buffer");
        replay.push_one(&Transition::new(&[0.0], &[1.0], 0.0, &[0.1])).expect("it is stored");
        replay.push_one(&Transition::new(&[0.1], &[1.0], 0.0, &[0.2])).expect("it is stored");
        let error = replay.push_one(&Transition::new(&[0.0], &[1.0], 0.0, &[0.1])).expect_err("a reset").to_string();
        assert!(error.contains("mark its end as terminated or truncated, got [0.0] after [0.2]"), "{error}");
        replay.push_one(&Transition::new(&[0.2], &[1.0], 0.0, &[0.3]).truncated()).expect("it is stored");
        replay.push_one(&Transition::new(&[0.0], &[1.0], 0.0, &[0.1])).expect("a new episode");
    }

    #[test]
    fn numbers_that_no_learner_can_use_are_named() {
        let spec = EnvSpec::new(Space::uniform_box(0.0, 1.0, ["a"]), Space::Discrete(3), 1);
        let device = brasa_test::device();
        let mut replay = ReplayBuffer::<Obs, _>::builder(&spec).capacity(40).build(&device).expect("a buffer");
        for (obs, action, reward, message) in [
            (f32::NAN, 1.0, 0.0, "`obs` must be finite, got NaN"),
            (0.0, 3.0, 0.0, "`action` must be an index below 3, got 3"),
            (0.0, 0.5, 0.0, "`action` must be an index below 3, got 0.5"),
            (0.0, 1.0, f32::INFINITY, "`reward` must be finite, got inf"),
        ] {
            let error = replay.push_one(&Transition::new(&[obs], &[action], reward, &[0.1])).expect_err("it is wrong");
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(replay.n_transitions(), 0);
        let tracked = ReplayBuffer::<Obs, _>::builder(&spec).capacity(40).build(&device.autodiff());
        assert!(tracked.expect_err("it would grow").to_string().contains("`device` must be without autodiff"));
    }

    #[test]
    #[should_panic(expected = "numbers in `obs` (left)")]
    fn a_slice_of_another_length_is_the_callers_bug() {
        let spec = EnvSpec::new(Space::uniform_box(0.0, 1.0, ["a", "b"]), Space::Discrete(3), 1);
        let mut replay =
            ReplayBuffer::<Obs, _>::builder(&spec).capacity(40).build(&brasa_test::device()).expect("a buffer");
        let _ = replay.push_one(&Transition::new(&[0.0], &[1.0], 0.0, &[0.0]));
    }
}
