//! Every fault is an error that names the environment, and no worker outlives its batch.

use crate::common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brasa_env::{BatchSlabs, EnvBatch};
use brasa_gym::{GymConfig, GymVec, PyValue};
use common::{config, error_of, own, play, python, script, team};
use ndarray::Array2;

fn faulty(fault: &str) -> GymConfig {
    GymConfig { n_workers: Some(2), ..own("brasa/Faulty-v0", &[("fault", fault)]) }
}

/// The error of an environment that cannot even be made.
fn refused(config: &GymConfig) -> String {
    GymVec::new(config, 0..2).expect_err("it cannot be made").to_string()
}

#[track_caller]
fn assert_has(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "no `{part}` in: {error}");
    }
}

/// Whether a process is still there and not only waiting to be collected.
fn is_alive(process: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[track_caller]
fn assert_ended(processes: &[u32], within: Duration) {
    let begin = Instant::now();
    while processes.iter().any(|process| is_alive(*process)) {
        assert!(begin.elapsed() < within, "of {processes:?} some are alive after {:?}", begin.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn interpreters_and_packages_that_are_missing() {
    let config = GymConfig { python: Some("/nowhere/python".into()), ..GymConfig::new("CartPole-v1") };
    let parts = ["`CartPole-v1`: the Python interpreter `/nowhere/python` (the setting `python`) cannot be started"];
    assert_has(&refused(&config), &parts);
    // A program that is no Python. Of several workers, any may be the first to end.
    let config = GymConfig { python: Some("true".into()), n_workers: Some(1), ..config };
    assert_has(
        &refused(&config),
        &["`CartPole-v1`: the worker of environments 0..", "ended during `make`", "exit status: 0"],
    );
    if python().is_none() {
        return;
    }
    let config = common::config("CartPole-v1");
    let missing = GymConfig { import: vec!["no_such_package.envs".into()], ..config.clone() };
    assert_has(
        &refused(&missing),
        &["`CartPole-v1`", "No module named 'no_such_package'", "-m pip install 'no_such_package'`"],
    );
    let missing = GymConfig { import: vec!["/nowhere/envs.py".into()], ..config.clone() };
    assert_has(&refused(&missing), &["`CartPole-v1`: make raised FileNotFoundError", "'/nowhere/envs.py'"]);

    let error = refused(&GymConfig { python: Some(script("without-packages.sh")), ..config });
    assert_has(&error, &["lacks a package: No module named 'gymnasium'", "-m pip install 'gymnasium'`"]);
}

#[test]
fn ids_and_spaces_that_are_refused() {
    if python().is_none() {
        return;
    }
    let error = refused(&config("CartPole-v9"));
    assert_has(&error, &["`id` must be registered with Gymnasium, got `CartPole-v9`: ", "CartPole"]);
    assert_has(&refused(&config("NoSuchRoom-v0")), &["got `NoSuchRoom-v0`", "doesn't exist"]);
    let error = refused(&own("brasa/Worded-v0", &[]));
    assert_has(
        &error,
        &["`brasa/Worded-v0`: the observation `mission` is a `Text`, which has no fixed number of values"],
    );
    let parts = |kind: &str| refused(&own("brasa/Parts-v0", &[("kind", kind)]));
    assert_has(&parts("integers"), &["the action `x` is a `Box` of int64"]);
    let error = refused(&GymConfig {
        kwargs: [("speed".to_owned(), brasa_gym::PyValue::Int(3))].into(),
        ..config("CartPole-v1")
    });
    assert_has(&error, &["`CartPole-v1`: make raised TypeError", "speed", "Traceback"]);
    assert_has(&refused(&faulty("make")), &["`brasa/Faulty-v0`: make raised ValueError: no such room", "Traceback"]);
    let error = GymVec::new(&config("CartPole-v1"), 3..3).expect_err("a batch of nothing").to_string();
    assert_eq!(error, "`n_envs` must be at least 1, got 0");
}

#[test]
fn teams_that_are_refused() {
    if python().is_none() {
        return;
    }
    let fault = |name: &str| team(&[("fault", PyValue::Text(name.into()))]);
    assert_has(
        &refused(&fault("spaces")),
        &["`ann` and `eve` have different spaces (`observation_space`)", "pad them"],
    );
    let limited = GymConfig { max_episode_steps: Some(5), ..team(&[]) };
    assert_has(&refused(&limited), &["`max_episode_steps` must be left out", "`max_cycles`"]);
    let unknown = GymConfig { id: "json:parallel_env".into(), ..team(&[]) };
    assert_has(&refused(&unknown), &["the module `json` has no function `parallel_env`"]);
    let missing = GymConfig { id: "no_such_package.tag:parallel_env".into(), ..team(&[]) };
    assert_has(&refused(&missing), &["no_such_package"]);
    assert_has(&error_of(&fault("nan")), &["observation `energy_0`", "NaN"]);
    // A state of one team is none of another.
    let saved = GymVec::new(&team(&[]), 0..2).expect("the environments start").save();
    let mut other = GymVec::new(&team(&[("masked", PyValue::Bool(false))]), 0..2).expect("the environments start");
    assert_has(&other.load(&saved).expect_err("it is another team").to_string(), &["it is of the environment"]);
}

#[test]
fn exceptions_have_their_traceback() {
    if python().is_none() {
        return;
    }
    let error = error_of(&faulty("raise"));
    let parts = [
        "`brasa/Faulty-v0`: step of environment 0 raised RuntimeError: the door is stuck",
        "brasa_gym_envs.py",
        "in step",
    ];
    assert_has(&error, &parts);
    assert_has(&error_of(&faulty("reset")), &["`brasa/Faulty-v0`: reset of environment 0 raised KeyError: 'lost'"]);
}

#[test]
fn ends_of_workers_have_status_and_stderr() {
    if python().is_none() {
        return;
    }
    let error = error_of(&faulty("exit"));
    let parts =
        ["`brasa/Faulty-v0`: the worker of environments 0..1 ended during `step` (exit status: 3)", "last words"];
    assert_has(&error, &parts);
    assert_has(&error_of(&faulty("kill")), &["ended during `step` (signal: 9 (SIGKILL))"]);
}

/// Without a number, a stray byte would be taken for the reply, and every later step would return what the step before had written.
#[test]
fn bytes_that_are_no_reply_are_errors() {
    if python().is_none() {
        return;
    }
    let error = error_of(&faulty("stray"));
    assert_has(
        &error,
        &["`brasa/Faulty-v0`: a reply of a worker process: expected `d` with number 6, got the bytes \"dd"],
    );
    let error = error_of(&faulty("huge"));
    assert_has(&error, &["a reply of a worker process: it announces 4611686018427387904 bytes"]);
}

#[test]
fn a_worker_killed_from_outside_is_an_error() {
    if python().is_none() {
        return;
    }
    let config = GymConfig { n_workers: Some(3), ..config("CartPole-v1") };
    let mut batch = GymVec::new(&config, 0..6).expect("the environments start");
    play(&mut batch, 1, 3).expect("they run");
    let processes = batch.process_ids();
    let killed = Command::new("kill").args(["-9", &processes[1].to_string()]).status().expect("there is `kill`");
    assert!(killed.success());
    let error = play(&mut batch, 1, 3).expect_err("a worker is gone").to_string();
    assert_has(&error, &["`CartPole-v1`: the worker of environments 2..4 ended during `reset` (signal: 9 (SIGKILL))"]);
    // The others end with the first error.
    assert_ended(&processes, Duration::from_secs(1));
}

#[test]
fn hangs_end_at_the_timeout() {
    if python().is_none() {
        return;
    }
    for fault in ["hang", "spin"] {
        // Long enough to start on a busy machine.
        let config = GymConfig { timeout_secs: 8.0, ..faulty(fault) };
        let mut batch = GymVec::new(&config, 0..2).expect("the environments start");
        let processes = batch.process_ids();
        let begin = Instant::now();
        let error = play(&mut batch, 1, 5).expect_err("it hangs").to_string();
        assert_eq!(error, "`brasa/Faulty-v0`: `step` of environments 0..1 took more than 8 s (`timeout_secs`)");
        assert!((8.0..16.0).contains(&begin.elapsed().as_secs_f64()), "{:?}", begin.elapsed());
        assert_ended(&processes, Duration::from_secs(1));
    }
}

#[test]
fn bad_values_are_named() {
    if python().is_none() {
        return;
    }
    let error = error_of(&faulty("nan_obs"));
    assert_eq!(
        error,
        "`brasa/Faulty-v0`: environment 0 (seed 1) returned NaN as observation `obs_1` at step 3 of the batch"
    );
    let error = error_of(&faulty("nan_reward"));
    assert_eq!(error, "`brasa/Faulty-v0`: environment 0 (seed 1) returned NaN as reward at step 3 of the batch");
    assert_eq!(error_of(&faulty("shape")), "`brasa/Faulty-v0`: an observation has the shape (1,), its space (2,)");
    for (reward, shape) in [("reward_array", "(1,)"), ("reward_list", "(2,)")] {
        let rule = format!("a reward has the shape {shape}, it must be one number");
        assert_eq!(error_of(&faulty(reward)), format!("`brasa/Faulty-v0`: {rule}"));
    }
    for returns in ["halves", "below"] {
        let rule = "an observation has numbers other than 0 to 255, and its space is one of uint8";
        let error = error_of(&own("brasa/Pictures-v0", &[("returns", returns)]));
        assert_eq!(error, format!("`brasa/Pictures-v0`: {rule}"));
    }
    let early = GymConfig { truncation_interval: Some(4), ..faulty("truncate") };
    let mut batch = GymVec::new(&early, 0..1).expect("the environments start");
    let error = play(&mut batch, 1, 7).expect_err("it is truncated again after 3 steps").to_string();
    assert_has(
        &error,
        &["`truncation_interval` must be at most", "`brasa/Faulty-v0`, got 4: environment 0 was truncated after 3"],
    );
}

#[test]
fn prints_do_not_disturb() {
    if python().is_none() {
        return;
    }
    let mut batch = GymVec::new(&faulty("print"), 0..2).expect("the environments start");
    play(&mut batch, 1, 10).expect("what it prints is no reply");
}

#[test]
fn dropping_a_batch_ends_its_workers() {
    if python().is_none() {
        return;
    }
    let mut batch = GymVec::new(&faulty("none"), 0..2).expect("the environments start");
    play(&mut batch, 1, 5).expect("they run");
    let processes = batch.process_ids();
    let begin = Instant::now();
    drop(batch);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert_ended(&processes, Duration::ZERO);
}

/// Not a test of its own: a process that [`no_worker_outlives_a_killed_parent`] kills in the middle of a step.
#[test]
fn parent_to_be_killed() {
    let Ok(fault) = std::env::var("BRASA_GYM_KILLED_PARENT") else { return };
    let mut batch = GymVec::new(&faulty(&fault), 0..2).expect("the environments start");
    println!("workers {:?}", batch.process_ids());
    play(&mut batch, 1, 3).expect("it never returns");
}

#[test]
fn no_worker_outlives_a_killed_parent() {
    if python().is_none() {
        return;
    }
    for fault in ["hang", "spin"] {
        let mut parent = Command::new(std::env::current_exe().expect("a test is a program"))
            .args(["--exact", "faults::parent_to_be_killed", "--nocapture", "--test-threads=1"])
            .env("BRASA_GYM_KILLED_PARENT", fault)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(parent.stdout.take().expect("it was piped")).lines().map_while(Result::ok);
        let workers = lines.find_map(|line| line.split_once("workers [").map(|(_, ids)| ids.to_owned()));
        let workers = workers.expect("the parent says its workers");
        let ids = workers.trim_end_matches(']').split(", ").map(|id| id.parse().expect("a number"));
        let workers: Vec<u32> = ids.collect();
        assert_eq!(workers.len(), 2);
        // Until the third step, in which they stay.
        std::thread::sleep(Duration::from_millis(500));
        assert!(workers.iter().all(|worker| is_alive(*worker)));
        parent.kill().expect("it is a child");
        parent.wait().expect("it is a child");
        assert_ended(&workers, Duration::from_secs(3));
    }
}

#[test]
fn an_environment_that_cannot_be_saved_starts_anew() {
    if python().is_none() {
        return;
    }
    let config = own("brasa/Locked-v0", &[]);
    let mut batch = GymVec::new(&config, 0..3).expect("the environments start");
    let reason = batch.saves_exactly().expect_err("it holds a lock");
    assert!(reason.contains("cannot pickle") && reason.contains("lock"), "{reason}");
    assert_eq!(batch.spec().truncation_interval, 1);
    // Its episodes are truncated by a resume, whatever the setting is.
    let interval = GymConfig { truncation_interval: Some(50), ..config.clone() };
    assert_eq!(GymVec::new(&interval, 0..1).expect("the environments start").spec().truncation_interval, 1);
    let (seen, _) = play(&mut batch, 4, 6).expect("they run");
    let last = &seen[6];
    let saved = batch.save();

    let run = |n_workers| {
        let mut again =
            GymVec::new(&GymConfig { n_workers: Some(n_workers), ..config.clone() }, 0..3).expect("the same");
        again.load(&saved).expect("it is a state of this environment");
        // Saved again before the next step, nothing is forgotten.
        let saved = again.save();
        again.load(&saved).expect("it is a state of this environment");
        let mut slabs = BatchSlabs::new(again.spec());
        let actions = Array2::zeros((3, 1));
        again.step(actions.view(), &mut slabs).expect("the episodes are cut");
        let cut = slabs.clone();
        again.step(actions.view(), &mut slabs).expect("new episodes run");
        (cut, slabs)
    };
    let (cut, next) = run(1);
    assert_eq!(cut.next_obs, last.obs);
    assert!(cut.truncated.iter().all(|truncated| *truncated) && !cut.terminated.iter().any(|ended| *ended));
    assert_eq!(cut.reward.sum(), 0.0);
    assert_eq!(next.next_obs, cut.obs.mapv(|count| count + 1.0));
    assert!(!next.any_episode_end() && cut.obs != seen[0].obs, "these are the episodes after the interrupted ones");
    // Reproducible, too.
    assert!(run(3) == (cut, next));
}

#[test]
fn states_of_something_else_are_refused() {
    if python().is_none() {
        return;
    }
    let state = |config: &GymConfig, n_envs| {
        let mut batch = GymVec::new(config, 0..n_envs).expect("the environments start");
        play(&mut batch, 1, 1).expect("they run");
        batch.save()
    };
    let cart_pole = config("CartPole-v1");
    let mut batch = GymVec::new(&cart_pole, 0..2).expect("the environments start");
    let mut refused = |bytes: &[u8]| batch.load(bytes).expect_err("it is another one").to_string();
    let limited = GymConfig { max_episode_steps: Some(7), ..cart_pole.clone() };
    assert_has(&refused(&state(&limited, 2)), &["it is of the environment CartPole-v1 {} [] Some(7), this is"]);
    assert_has(&refused(&state(&config("Pendulum-v1"), 2)), &["it is of the environment Pendulum-v1"]);
    assert_has(&refused(&state(&cart_pole, 3)), &["it holds 3 environments, the batch 2"]);
    // It still works after all that.
    batch.load(&state(&cart_pole, 2)).expect("it is a state of this environment");
}
