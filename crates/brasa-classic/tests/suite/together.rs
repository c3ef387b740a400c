//! Environments of equal rules are computed together, with the numbers of single environments.

use brasa_classic::{CartPole, CartPoleRules, Pendulum};
use brasa_env::{
    BatchSlabs, Env, EnvBatch, EnvRng, EnvVec, Precision, RandomController, RuleEnv, Rules, Space, Step, Threaded,
    named_rng, random_actions,
};
use ndarray::{Array2, ArrayView1, ArrayViewMut1};

/// An environment that is always stepped alone.
struct Alone<E>(E);

impl<E: Env> Env for Alone<E> {
    type State = E::State;

    fn obs_space(&self) -> Space {
        self.0.obs_space()
    }

    fn action_space(&self) -> Space {
        self.0.action_space()
    }

    fn truncation_interval(&self) -> u64 {
        self.0.truncation_interval()
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        self.0.reset(rng, obs);
    }

    fn step(&mut self, action: ArrayView1<f32>, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        self.0.step(action, rng, obs)
    }

    fn state(&self) -> E::State {
        self.0.state()
    }

    fn set_state(&mut self, state: E::State) {
        self.0.set_state(state);
    }
}

/// An environment whose numbers can have 32 bits.
trait WithPrecision: Env + Default {
    fn with_precision(precision: Precision) -> Self;
}

impl<R: Rules<S, A, O> + Default, const S: usize, const A: usize, const O: usize> WithPrecision
    for RuleEnv<R, S, A, O>
{
    fn with_precision(precision: Precision) -> Self {
        Self::default().with_precision(precision)
    }
}

const PRECISIONS: [Precision; 2] = [Precision::F64, Precision::F32];

/// Steps both batches with random actions and expects equal slabs.
fn compare(name: &str, one: &mut dyn EnvBatch, other: &mut dyn EnvBatch, slabs: [BatchSlabs; 2], n_steps: usize) {
    let [mut slabs, mut others] = slabs;
    let mut rng = named_rng(5, "actions", 0);
    let mut actions = Array2::zeros((one.n_rows(), 1));
    for step in 0..n_steps {
        random_actions(one.spec(), slabs.mask.view(), &mut actions, &mut rng).expect("every action is legal");
        one.step(actions.view(), &mut slabs).expect("it steps");
        other.step(actions.view(), &mut others).expect("it steps");
        assert!(slabs == others, "{name}: {} environments, step {step}", one.n_envs());
        if step == n_steps / 2 {
            one.restart(0, &mut slabs).expect("it starts");
            other.restart(0, &mut others).expect("it starts");
        }
    }
}

fn check<E: WithPrecision>(name: &str) {
    for (n_envs, precision) in
        [1, 7, 64, 150].into_iter().flat_map(|n_envs| PRECISIONS.map(|precision| (n_envs, precision)))
    {
        let make = |_| E::with_precision(precision);
        let mut together = EnvVec::new(3..3 + n_envs, make).expect("a batch");
        let mut alone = EnvVec::new(3..3 + n_envs, |index| Alone(make(index))).expect("a batch");
        let mut slabs = [BatchSlabs::new(together.spec()), BatchSlabs::new(alone.spec())];
        together.reset(9, &mut slabs[0]).expect("it starts");
        alone.reset(9, &mut slabs[1]).expect("it starts");
        assert!(slabs[0] == slabs[1], "{name}: the first observations");
        compare(name, &mut together, &mut alone, slabs, 250);
    }
}

#[test]
fn a_batch_has_the_numbers_of_single_environments() {
    every_task!(check);
}

#[test]
fn large_angles_are_those_of_single_environments() {
    for precision in PRECISIONS {
        let angle = |index: usize| 1e3 * (index as f64).powi(5);
        let at = |index| Pendulum::at(Default::default(), [angle(index), 0.5]).with_precision(precision);
        let mut together = EnvVec::new(0..150, at).expect("a batch");
        let mut alone = EnvVec::new(0..150, |index| Alone(at(index))).expect("a batch");
        let slabs = [BatchSlabs::new(together.spec()), BatchSlabs::new(alone.spec())];
        compare("pendulum", &mut together, &mut alone, slabs, 20);
    }
}

#[test]
fn threads_have_the_numbers_of_one() {
    let mut one = EnvVec::new(0..301, |_| CartPole::default()).expect("a batch");
    let mut threads = Threaded::new(301, 3, |envs| EnvVec::new(envs, |_| CartPole::default())).expect("threads start");
    let mut slabs = [BatchSlabs::new(one.spec()), BatchSlabs::new(threads.spec())];
    one.reset(2, &mut slabs[0]).expect("it starts");
    threads.reset(2, &mut slabs[1]).expect("it starts");
    compare("cart-pole", &mut one, &mut threads, slabs, 120);
}

/// Cart-poles of equal rules; or the last one has another limit, which no episode reaches, so that all are stepped alone.
fn cart_poles(n_envs: usize, are_equal: bool, precision: Precision) -> EnvVec<CartPole> {
    let limit = |index: usize| if are_equal || index + 1 < n_envs { 1e6 } else { 2e6 };
    let rules = |index| CartPoleRules { position_limit_m: limit(index), ..Default::default() };
    let make = |index| CartPole::new(rules(index)).with_precision(precision);
    EnvVec::new(0..n_envs, make).expect("a batch")
}

#[test]
fn saved_states_are_those_of_single_environments() {
    PRECISIONS.into_iter().for_each(check_saved_states);
}

fn check_saved_states(precision: Precision) {
    let make = || [true, false].map(|are_equal| cart_poles(70, are_equal, precision));
    let mut batches = make();
    let mut slabs = batches.each_ref().map(|batch| BatchSlabs::new(batch.spec()));
    let mut random = batches.each_ref().map(|batch| RandomController::new(batch.spec(), 1, 0..70));
    let mut saved = Vec::new();
    for i in 0..2 {
        batches[i].reset(4, &mut slabs[i]).expect("it starts");
        let mut actions = Array2::zeros((70, 1));
        for _ in 0..90 {
            brasa_env::Controller::act(&mut random[i], &slabs[i], actions.view_mut()).expect("it acts");
            batches[i].step(actions.view(), &mut slabs[i]).expect("it steps");
        }
        saved.push(batches[i].save());
    }
    assert!(saved[0] == saved[1], "the bytes are equal");
    let [mut together, mut alone] = make();
    together.load(&saved[1]).expect("it is a state of cart-poles");
    alone.load(&saved[0]).expect("it is a state of cart-poles");
    compare("cart-pole", &mut together, &mut alone, slabs, 50);
    assert!(together.save() == alone.save(), "the bytes are equal later");
}

#[test]
fn an_illegal_action_is_an_error_that_names_the_environment() {
    for n_envs in [2, 100] {
        let mut batch = EnvVec::new(0..n_envs, |_| CartPole::default()).expect("a batch");
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(6, &mut slabs).expect("it starts");
        let mut actions = Array2::zeros((n_envs, 1));
        batch.step(actions.view(), &mut slabs).expect("it steps");
        for action in [0.5, 2.0, -1.0, f32::NAN] {
            actions[[n_envs - 1, 0]] = action;
            let error = batch.step(actions.view(), &mut slabs).expect_err("it is no action").to_string();
            let words =
                format!("environment {} (seed 6, episode 0, step 1) panicked: choice 0 of an action", n_envs - 1);
            assert!(error.starts_with(&words), "{error}");
            batch.reset(6, &mut slabs).expect("it starts");
            actions.fill(1.0);
            batch.step(actions.view(), &mut slabs).expect("it steps");
        }
    }
}

#[test]
fn environments_of_other_precision_are_stepped_alone() {
    let mixed = |index: usize| CartPole::default().with_precision(PRECISIONS[index % 2]);
    let mut batch = EnvVec::new(0..64, mixed).expect("a batch");
    let mut alone = EnvVec::new(0..64, |index| Alone(mixed(index))).expect("a batch");
    let mut slabs = [BatchSlabs::new(batch.spec()), BatchSlabs::new(alone.spec())];
    batch.reset(3, &mut slabs[0]).expect("it starts");
    alone.reset(3, &mut slabs[1]).expect("it starts");
    compare("cart-pole", &mut batch, &mut alone, slabs, 60);
}
