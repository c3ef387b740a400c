//! Results do not depend on threads; panics become errors with their location.

use crate::common;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brasa_env::wrappers::{EpisodeStats, TimeLimit};
use brasa_env::{BatchSlabs, EnvBatch, EnvError, EnvVec, Executor, Threaded, execute};
use common::{Clock, episode_of, play, some_actions, walks};

#[test]
fn any_number_of_threads_gives_the_numbers_of_one() {
    let serial = episode_of(&mut walks(0..9).expect("there are walks"), 5, 80);
    assert!(serial.iter().any(BatchSlabs::any_episode_end), "some episode must end for the test to mean something");
    for n_threads in [1, 2, 8, 9] {
        let mut threaded = Threaded::new(9, n_threads, walks).expect("threads start");
        assert!(episode_of(&mut threaded, 5, 80) == serial, "{n_threads} threads");
        // Once more on the same threads.
        assert!(episode_of(&mut threaded, 5, 80) == serial, "{n_threads} threads, second reset");
    }
}

/// A lost notification would make one of the threads wait forever.
#[test]
fn threads_get_every_order_whether_they_look_for_it_or_sleep() {
    for n_threads in [2, 4] {
        let mut batch = Threaded::new(8, n_threads, walks).expect("threads start");
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(0, &mut slabs).expect("the environments start");
        let actions = some_actions(&batch, 0);
        for step in 0..2000 {
            batch.step(actions.view(), &mut slabs).expect("no environment panics");
            if step % 4 == 0 {
                // Longer than threads look.
                std::thread::sleep(Duration::from_micros(60));
            }
        }
    }
}

#[test]
fn restarting_and_loading_work_on_threads_as_on_one() {
    let run = |batch: &mut dyn EnvBatch| {
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(1, &mut slabs).expect("the environments start");
        play(batch, &mut slabs, 0, 5);
        for env in [0, 4, 6] {
            batch.restart(env, &mut slabs).expect("the environment starts again");
        }
        let restarted = slabs.clone();
        let saved = batch.save();
        let first = play(batch, &mut slabs, 5, 20);
        batch.load(&saved).expect("it is its own state");
        assert!(play(batch, &mut restarted.clone(), 5, 20) == first);
        (restarted, first)
    };
    let serial = run(&mut walks(0..7).expect("there are walks"));
    for n_threads in [2, 3, 7] {
        assert!(run(&mut Threaded::new(7, n_threads, walks).expect("threads start")) == serial, "{n_threads} threads");
    }
}

#[test]
fn a_state_of_another_shape_is_refused() {
    let saved = Threaded::new(4, 2, walks).expect("threads start").save();
    let error = Threaded::new(4, 4, walks).expect("threads start").load(&saved).expect_err("it has 2 parts");
    assert!(error.to_string().contains("saved by 2 threads, this run has 4"), "{error}");
    let saved = walks(0..3).expect("there are walks").save();
    let error = walks(0..4).expect("there are walks").load(&saved).expect_err("it has 3 environments");
    assert!(error.to_string().contains("it holds 3 environments, the batch 4"), "{error}");
}

/// Clocks; number 5 panics at `step` while the switch is on.
fn fragile(step: u32, switch: &Arc<AtomicBool>) -> impl FnMut(Range<usize>) -> Result<EnvVec<Clock>, EnvError> {
    let switch = Arc::clone(switch);
    move |envs| {
        EnvVec::new(envs, |env| {
            let panic_at = (env == 5).then(|| (step, Arc::clone(&switch)));
            Clock { panic_at, ..Clock::ending_after(4) }
        })
    }
}

/// Runs `test` on such clocks with the switch off: serial, threaded, and threaded with a wrapper.
fn in_every_form(step: u32, test: impl Fn(&AtomicBool, &mut dyn EnvBatch)) {
    let switch = Arc::new(AtomicBool::new(false));
    let run = |batch: &mut dyn EnvBatch| {
        switch.store(false, Ordering::SeqCst);
        test(&switch, batch);
    };
    run(&mut fragile(step, &switch)(0..8).expect("there are clocks"));
    for n_threads in [2, 3, 8] {
        run(&mut Threaded::new(8, n_threads, fragile(step, &switch)).expect("threads start"));
        let mut make = fragile(step, &switch);
        let wrapped = |envs| Ok(EpisodeStats::new(TimeLimit::new(make(envs)?, 100)?));
        run(&mut Threaded::new(8, n_threads, wrapped).expect("threads start"));
    }
}

#[test]
fn a_panic_in_a_step_says_where_and_leaves_a_batch_that_can_be_reset() {
    in_every_form(3, |switch, batch| {
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(77, &mut slabs).expect("the switch is off");
        let expected = play(batch, &mut slabs, 0, 6);
        switch.store(true, Ordering::SeqCst);
        // Episodes last 4 steps: step 7 of the batch is step 2 (from 0) of episode 1.
        let error = batch.step(some_actions(batch, 6).view(), &mut slabs).expect_err("number 5 panics");
        let words = "environment 5 (seed 77, episode 1, step 2) panicked: the clock broke at 3";
        assert_eq!(error.to_string(), words);
        assert!(matches!(error, EnvError::Panicked { env: 5, seed: 77, episode: 1, step: 2, .. }));

        switch.store(false, Ordering::SeqCst);
        batch.reset(77, &mut slabs).expect("the switch is off again");
        assert!(play(batch, &mut slabs, 0, 6) == expected, "after the panic and a reset");
    });
}

#[test]
fn a_panic_in_a_reset_says_where() {
    in_every_form(0, |switch, batch| {
        let mut slabs = BatchSlabs::new(batch.spec());
        switch.store(true, Ordering::SeqCst);
        let error = batch.reset(3, &mut slabs).expect_err("number 5 panics");
        assert_eq!(error.to_string(), "environment 5 (seed 3, episode 0, step 0) panicked: the clock broke at 0");

        switch.store(false, Ordering::SeqCst);
        batch.reset(3, &mut slabs).expect("the switch is off");
        play(batch, &mut slabs, 0, 3);
        switch.store(true, Ordering::SeqCst);
        // The fourth step ends the episode, and the reset that follows panics.
        let error = batch.step(some_actions(batch, 3).view(), &mut slabs).expect_err("number 5 panics");
        assert_eq!(error.to_string(), "environment 5 (seed 3, episode 1, step 0) panicked: the clock broke at 0");

        switch.store(false, Ordering::SeqCst);
        batch.reset(3, &mut slabs).expect("the switch is off");
        switch.store(true, Ordering::SeqCst);
        let error = batch.restart(5, &mut slabs).expect_err("number 5 panics");
        assert_eq!(error.to_string(), "environment 5 (seed 3, episode 1, step 0) panicked: the clock broke at 0");
        batch.restart(4, &mut slabs).expect("only number 5 panics");
    });
}

#[test]
fn the_first_of_several_panics_is_told() {
    let make = |envs| {
        EnvVec::new(envs, |env| {
            let panic_at = (env >= 2).then(|| (1, Arc::new(AtomicBool::new(true))));
            Clock { panic_at, ..Clock::endless() }
        })
    };
    for n_threads in [1, 2, 8] {
        let mut batch = Threaded::new(8, n_threads, make).expect("threads start");
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(0, &mut slabs).expect("only steps panic");
        let error = batch.step(some_actions(&batch, 0).view(), &mut slabs).expect_err("most of them panic");
        assert!(matches!(error, EnvError::Panicked { env: 2, .. }), "{n_threads} threads: {error}");
    }
}

#[test]
fn episodes_of_chunks_carry_global_indices() {
    let make =
        |envs: Range<usize>| Ok(EpisodeStats::new(EnvVec::new(envs, |env| Clock::ending_after(2 + env as u32))?));
    let mut batch = Threaded::new(5, 2, make).expect("threads start");
    episode_of(&mut batch, 0, 6);
    let mut episodes = Vec::new();
    batch.drain_episodes(&mut episodes);
    let mut seen: Vec<_> = episodes.iter().map(|episode| (episode.env, episode.length)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(0, 2), (0, 2), (0, 2), (1, 3), (1, 3), (2, 4), (3, 5), (4, 6)]);
    episodes.clear();
    batch.drain_episodes(&mut episodes);
    assert_eq!(episodes, [], "they are handed out once");
}

#[test]
fn execute_does_as_it_is_told() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let serial = episode_of(&mut walks(0..6).expect("there are walks"), 2, 30);
    let as_asked = |n: usize| if cores == 1 { 1 } else { n };
    for (executor, n_threads) in [
        (Executor::Serial, 1),
        (Executor::Threads(1), 1),
        (Executor::Threads(2), as_asked(2)),
        (Executor::Threads(6), as_asked(6)),
    ] {
        let (mut batch, choice) = execute(executor, 6, walks).expect("the environments start");
        assert_eq!(choice.n_threads, n_threads, "{executor:?}");
        let words = if n_threads == 1 { "environments on 1 thread: " } else { "threads: as configured" };
        assert!(choice.to_string().contains(words), "{choice}");
        assert!(episode_of(&mut *batch, 2, 30) == serial, "{executor:?}");
    }
}

#[test]
fn execute_measures_where_nothing_is_said() {
    assert_eq!(Executor::default(), Executor::Auto);
    // A step of these is far shorter than the cost of a thread.
    let (mut batch, choice) = execute(Executor::Auto, 3, walks).expect("the environments start");
    assert_eq!(choice.n_threads, 1, "{choice}");
    assert!(choice.to_string().starts_with("environments on 1 thread: a step of 3 costs "), "{choice}");
    assert_eq!(episode_of(&mut *batch, 2, 5).len(), 6);

    /// A step of it takes a millisecond.
    struct Slow(Clock);
    impl brasa_env::Env for Slow {
        type State = u32;
        fn obs_space(&self) -> brasa_env::Space {
            self.0.obs_space()
        }
        fn action_space(&self) -> brasa_env::Space {
            self.0.action_space()
        }
        fn reset(&mut self, rng: &mut brasa_env::EnvRng, obs: ndarray::ArrayViewMut1<f32>) {
            self.0.reset(rng, obs);
        }
        fn step(
            &mut self,
            action: ndarray::ArrayView1<f32>,
            rng: &mut brasa_env::EnvRng,
            obs: ndarray::ArrayViewMut1<f32>,
        ) -> brasa_env::Step {
            std::thread::sleep(std::time::Duration::from_millis(1));
            self.0.step(action, rng, obs)
        }
        fn state(&self) -> u32 {
            self.0.state()
        }
        fn set_state(&mut self, state: u32) {
            self.0.set_state(state);
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let make = |envs| EnvVec::new(envs, |_| Slow(Clock::endless()));
    let (batch, choice) = execute(Executor::Auto, 2, make).expect("the environments start");
    assert_eq!(choice.n_threads, cores.min(2), "{choice}");
    assert_eq!(batch.n_envs(), 2);
}

#[test]
fn execute_refuses_what_makes_no_sense() {
    let message = |executor, n_envs| execute(executor, n_envs, walks).err().map(|error| error.to_string());
    assert_eq!(message(Executor::Auto, 0).as_deref(), Some("`n_envs` must be at least 1, got 0"));
    let rule = "`n_threads` must be between 1 and the number of environments, got";
    assert_eq!(message(Executor::Threads(0), 2), Some(format!("{rule} 0")));
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        assert_eq!(message(Executor::Threads(3), 2), Some(format!("{rule} 3")));
    }
    assert_eq!(walks(3..3).err().map(|error| error.to_string()).as_deref(), Some("`n_envs` must be at least 1, got 0"));
}
