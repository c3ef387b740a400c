//! `check_env` accepts correct environments and detects every violation of the contract.

use crate::common;

use std::ops::Range;

use brasa_env::wrappers::{EpisodeStats, NormalizeObs, ScaleReward, ShapeReward, TimeLimit};
use brasa_env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, EnvVec, Space, check_env};
use common::{Clock, Flaw, Walk, clocks, some_actions, walks};
use ndarray::ArrayView2;

const STEPS: usize = 60;

fn verdict<B: EnvBatch + 'static>(make: impl FnMut(Range<usize>) -> Result<B, EnvError>) -> String {
    check_env(STEPS, make).err().map_or("kept".into(), |error| error.to_string())
}

fn verdict_on(flaw: Flaw) -> String {
    verdict(move |envs| EnvVec::new(envs, |_| Walk::with(flaw)))
}

/// A batch that corrupts the results of a correct one.
struct Spoiled {
    inner: EnvVec<Walk>,
    spoil: Spoil,
}

#[derive(Clone, Copy, PartialEq)]
enum Spoil {
    /// `obs` moves away from `next_obs` inside an episode.
    Obs,
    /// Half of a saved state is accepted.
    Load,
    /// A restart writes the rows of others.
    Restart,
}

fn spoiled(spoil: Spoil) -> String {
    verdict(move |envs| Ok(Spoiled { inner: walks(envs)?, spoil }))
}

impl EnvBatch for Spoiled {
    fn spec(&self) -> &EnvSpec {
        self.inner.spec()
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.reset(seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.step(actions, out)?;
        if self.spoil == Spoil::Obs {
            out.obs[[0, 0]] *= 0.5;
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.restart(env, out)?;
        if self.spoil == Spoil::Restart {
            out.obs.column_mut(1).mapv_inplace(|steps| steps + 1.0);
        }
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        self.inner.save()
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let loaded = self.inner.load(bytes);
        if self.spoil == Spoil::Load { Ok(()) } else { loaded }
    }
}

#[test]
fn a_good_environment_passes() {
    assert_eq!(verdict_on(Flaw::None), "kept");
}

#[test]
fn a_good_environment_passes_behind_wrappers_that_keep_environments_apart() {
    assert_eq!(verdict(|envs| TimeLimit::new(EpisodeStats::new(walks(envs)?), 7)), "kept");
    assert_eq!(verdict(|envs| Ok(EpisodeStats::new(TimeLimit::new(walks(envs)?, 7)?))), "kept");
    assert_eq!(verdict(|envs| ShapeReward::new(TimeLimit::new(walks(envs)?, 7)?, 0.5, 0.3)), "kept");
}

#[test]
fn statistics_shared_by_environments_depend_on_the_split() {
    // For this reason these two wrappers must be outside the executor.
    let second_reset = "a second reset with the same seed gave other numbers";
    assert!(verdict(|envs| Ok(NormalizeObs::new(walks(envs)?).expect("it may be normalized"))).contains(second_reset));
    assert!(verdict(|envs| ScaleReward::new(walks(envs)?, 0.99)).contains(second_reset));
}

#[test]
fn what_survives_a_reset_is_caught() {
    let verdict = verdict_on(Flaw::LeaksAcrossResets);
    assert!(verdict.contains("a second reset with the same seed gave other numbers"), "{verdict}");
}

#[test]
fn observations_outside_their_space_are_caught() {
    let verdict = verdict_on(Flaw::LeavesSpace);
    assert!(verdict.contains("step 9, row 0: `obs` lies outside its space: [100.0, 10.0]"), "{verdict}");
}

#[test]
fn a_first_observation_outside_its_space_is_caught_before_any_episode_ends() {
    let verdict = verdict_on(Flaw::StartsOutOfSpace);
    assert!(verdict.contains("reset, row 0: `obs` lies outside its space: [100.0, 0.0]"), "{verdict}");
}

#[test]
fn rewards_that_are_no_numbers_are_caught() {
    let verdict = verdict_on(Flaw::NanReward);
    assert!(verdict.contains("step 9, row 0: the reward is NaN"), "{verdict}");
}

#[test]
fn figures_that_are_not_finite_are_caught() {
    let verdict = verdict_on(Flaw::InfiniteFigure);
    assert!(verdict.contains("step 9: a figure is inf"), "{verdict}");
}

#[test]
fn a_successor_that_differs_inside_an_episode_is_caught() {
    let verdict = spoiled(Spoil::Obs);
    assert!(verdict.contains("step 0, row 0: `obs` differs from `next_obs` inside an episode"), "{verdict}");
}

#[test]
fn numbers_that_depend_on_the_thread_are_caught() {
    // A common error: indices start at 0 in every chunk.
    let verdict = verdict(|envs| walks(0..envs.len()));
    assert!(verdict.contains("2 threads gave other numbers than one"), "{verdict}");
}

#[test]
fn a_saved_state_with_a_hole_is_caught() {
    let verdict = verdict_on(Flaw::ForgetsWhenSaved);
    assert!(verdict.contains("a restored batch continued with other numbers"), "{verdict}");
}

#[test]
fn a_saved_state_with_a_hole_is_caught_although_every_episode_restarts_before_the_end() {
    let verdict = verdict(|envs| TimeLimit::new(EnvVec::new(envs, |_| Walk::with(Flaw::ForgetsWhenSaved))?, 3));
    assert!(verdict.contains("a restored batch continued with other numbers, 1 steps later"), "{verdict}");
}

#[test]
fn a_mask_that_allows_nothing_is_caught() {
    let verdict = verdict_on(Flaw::NothingLegal);
    assert!(verdict.contains("the mask allows none of 3 actions"), "{verdict}");
}

#[test]
fn half_of_a_saved_state_must_be_refused() {
    let verdict = spoiled(Spoil::Load);
    assert!(verdict.contains("half of a saved state was accepted"), "{verdict}");
}

#[test]
fn a_restart_that_touches_others_is_caught() {
    let verdict = spoiled(Spoil::Restart);
    assert!(verdict.contains("restarting one environment changed the observation of another"), "{verdict}");
}

#[test]
fn a_space_that_nothing_fits_is_refused() {
    struct Nowhere;
    impl brasa_env::Env for Nowhere {
        type State = ();
        fn obs_space(&self) -> Space {
            Space::named_box([("soc", 1.0, 0.0)])
        }
        fn action_space(&self) -> Space {
            Space::Discrete(2)
        }
        fn reset(&mut self, _: &mut brasa_env::EnvRng, _: ndarray::ArrayViewMut1<f32>) {}
        fn step(
            &mut self,
            _: ndarray::ArrayView1<f32>,
            _: &mut brasa_env::EnvRng,
            _: ndarray::ArrayViewMut1<f32>,
        ) -> brasa_env::Step {
            brasa_env::Step::default()
        }
        fn state(&self) {}
        fn set_state(&mut self, (): ()) {}
    }
    let verdict = verdict(|envs| EnvVec::new(envs, |_| Nowhere));
    assert_eq!(verdict, "invalid space: bounds of `soc` must be ordered, got 1 and 0");
}

/// One call of a batch in a Gymnasium autoreset mode: the result, and the transition for a learner.
#[derive(Debug, PartialEq)]
struct Call {
    returned: f32,
    ended: bool,
    /// Observation, reward, next observation.
    transition: Option<(f32, f32, f32)>,
}

#[test]
fn v15_all_three_conventions_of_resetting_follow_from_one_record() {
    // Episodes of 3 steps with observations 0, 1, 2, 3, then 0 again.
    let mut batch = clocks(1, Clock::ending_after(3));
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).expect("it starts");
    let (mut same_step, mut next_step, mut disabled) = (Vec::new(), Vec::new(), Vec::new());
    let mut from = slabs.obs[[0, 0]];
    for step in 0..7 {
        batch.step(some_actions(&batch, step).view(), &mut slabs).expect("it steps");
        let (to, seen, ended) = (slabs.next_obs[[0, 0]], slabs.obs[[0, 0]], slabs.episode_end(0));
        let transition = Some((from, slabs.reward[0], to));
        // Returns the observation after the reset; the one before the reset is an extra of this call.
        same_step.push(Call { returned: seen, ended, transition });
        // Returns the observation before the reset; the caller resets.
        disabled.push(Call { returned: to, ended, transition });
        // Returns the observation before the reset, and the first observation in another call, which is no transition.
        next_step.push(Call { returned: to, ended, transition });
        if ended {
            next_step.push(Call { returned: seen, ended: false, transition: None });
        }
        from = seen;
    }
    let returned = |calls: &[Call]| calls.iter().map(|call| (call.returned, call.ended)).collect::<Vec<_>>();
    let (go, end) = (false, true);
    assert_eq!(returned(&same_step), [(1.0, go), (2.0, go), (0.0, end), (1.0, go), (2.0, go), (0.0, end), (1.0, go)]);
    assert_eq!(returned(&disabled), [(1.0, go), (2.0, go), (3.0, end), (1.0, go), (2.0, go), (3.0, end), (1.0, go)]);
    let expected =
        [(1.0, go), (2.0, go), (3.0, end), (0.0, go), (1.0, go), (2.0, go), (3.0, end), (0.0, go), (1.0, go)];
    assert_eq!(returned(&next_step), expected);
    let transitions = |calls: Vec<Call>| calls.into_iter().filter_map(|call| call.transition).collect::<Vec<_>>();
    let all = transitions(same_step);
    assert_eq!(all, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0].map(|from| (from, 1.0, from + 1.0)));
    assert_eq!(transitions(disabled), all);
    assert_eq!(transitions(next_step), all);
}
