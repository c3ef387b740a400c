//! Environments of several agents: one at a time, as a batch.

use crate::common;

use std::ops::Range;

use brasa_env::wrappers::{EpisodeStats, JointObs, NormalizeObs, RunningMoments, TimeLimit};
use brasa_env::{
    BatchSlabs, Ending, EnvBatch, EnvError, EnvRng, EnvSpec, EnvVec, MaskSpec, MultiAgentEnv, Space, StepOut, Threaded,
    View, check_env,
};
use common::{episode_of, play};
use ndarray::Array2;
use rand::RngExt;

/// Pickers take apples from one tree; a tired picker may only rest. All see how many apples are left.
struct Orchard {
    n_pickers: usize,
    apples: u32,
    strength: Vec<f32>,
    /// Panics when so many apples are left.
    breaks_at: Option<u32>,
}

/// Alternatives of an action.
const REST: usize = 0;
const PICK: usize = 1;

impl Orchard {
    fn new(n_pickers: usize) -> Self {
        Self { n_pickers, apples: 0, strength: vec![0.0; n_pickers], breaks_at: None }
    }

    fn write(&self, view: View<'_>) {
        view.shared[0] = self.apples as f32;
        view.obs.copy_from_slice(&self.strength);
        for (mask, strength) in view.mask.chunks_exact_mut(2).zip(&self.strength) {
            mask[REST] = 1.0;
            mask[PICK] = f32::from(u8::from(*strength >= 1.0));
        }
    }
}

impl MultiAgentEnv for Orchard {
    type State = (u32, Vec<f32>);

    fn spec(&self) -> EnvSpec {
        let obs = Space::named_box([("apples", 0.0, 20.0), ("strength", 0.0, 10.0)]);
        EnvSpec {
            n_agents: self.n_pickers,
            shared_width: 1,
            mask: Some(MaskSpec::default()),
            truncation_interval: EnvSpec::NEVER,
            info_names: vec!["picked".into()],
            ..EnvSpec::new(obs, Space::Discrete(2), 1)
        }
    }

    fn reset(&mut self, rng: &mut EnvRng, view: View<'_>) {
        self.apples = rng.random_range(10..20);
        self.strength.fill_with(|| rng.random_range(1.0..4.0));
        self.write(view);
    }

    fn step(&mut self, actions: &[f32], rng: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending {
        let before = self.apples;
        for ((strength, reward), action) in self.strength.iter_mut().zip(out.reward).zip(actions) {
            let picks = *action == PICK as f32 && *strength >= 1.0 && self.apples > 0;
            *strength = if picks { *strength - 1.0 } else { (*strength + rng.random::<f32>()).min(5.0) };
            self.apples -= u32::from(picks);
            *reward = f32::from(u8::from(picks));
        }
        assert!(self.breaks_at != Some(self.apples), "the ladder broke");
        out.info[0] = f64::from(before - self.apples);
        self.write(next);
        Ending::of(self.apples == 0, false)
    }

    fn state(&self) -> Self::State {
        (self.apples, self.strength.clone())
    }

    fn set_state(&mut self, (apples, strength): Self::State) {
        (self.apples, self.strength) = (apples, strength);
    }
}

fn orchards(envs: Range<usize>) -> Result<EnvVec<Orchard>, EnvError> {
    EnvVec::multi_agent(envs, |_| Orchard::new(3))
}

/// Everybody who can picks.
fn all_pick(slabs: &BatchSlabs) -> Array2<f32> {
    slabs.mask.slice(ndarray::s![.., PICK..=PICK]).to_owned()
}

#[test]
fn the_contract_holds() {
    check_env(200, orchards).expect("it holds");
    check_env(200, |envs| TimeLimit::new(orchards(envs)?, 7)).expect("it holds with a limit");
}

#[test]
fn agents_have_rows_and_share_what_is_theirs() {
    let mut batch = EpisodeStats::new(orchards(0..4).expect("there are orchards"));
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(3, &mut slabs).expect("nothing panics");
    let dims = (slabs.obs.dim(), slabs.shared.dim(), slabs.mask.dim(), slabs.reward.dim(), slabs.info.dim());
    assert_eq!(dims, ((12, 1), (4, 1), (12, 2), 12, (4, 1)));
    let mut episodes = Vec::new();
    while episodes.is_empty() {
        let apples = slabs.shared.clone();
        let actions = all_pick(&slabs);
        batch.step(actions.view(), &mut slabs).expect("nothing panics");
        for env in 0..4 {
            let rows = 3 * env..3 * (env + 1);
            let picked: f32 = rows.clone().map(|row| slabs.reward[row]).sum();
            assert_eq!(apples[[env, 0]] - slabs.next_shared[[env, 0]], picked);
            assert_eq!(slabs.info[[env, 0]], f64::from(picked));
            // All agents end together.
            assert!(rows.clone().all(|row| slabs.terminated[row] == (slabs.next_shared[[env, 0]] == 0.0)));
        }
        batch.drain_episodes(&mut episodes);
    }
    // Returns are means over agents, figures are sums of the environment.
    assert!((3.0 * episodes[0].episode_return - episodes[0].info[0]).abs() < 1e-6, "{:?}", episodes[0]);
}

#[test]
fn threads_and_saved_states_give_the_numbers_of_one_run() {
    let serial = episode_of(&mut orchards(0..5).expect("there are orchards"), 5, 80);
    assert!(serial.iter().any(BatchSlabs::any_episode_end), "some episode must end for the test to mean something");
    let mut threaded = Threaded::new(5, 2, orchards).expect("threads start");
    assert!(episode_of(&mut threaded, 5, 80) == serial);

    let mut batch = orchards(0..5).expect("there are orchards");
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(9, &mut slabs).expect("nothing panics");
    play(&mut batch, &mut slabs, 0, 10);
    let (saved, mut later) = (batch.save(), slabs.clone());
    let first = play(&mut batch, &mut slabs, 10, 30);
    let mut other = orchards(0..5).expect("there are orchards");
    other.load(&saved).expect("it is the state of such a batch");
    assert!(play(&mut other, &mut later, 10, 30) == first);
    let error = orchards(0..4).expect("there are orchards").load(&saved).expect_err("it has five").to_string();
    assert!(error.contains("it holds 5 environments, the batch 4"), "{error}");
}

/// The rows of `own` in the order in which each agent sees its team of three, itself last.
fn joint_rows(own: &Array2<f32>) -> Array2<f32> {
    Array2::from_shape_fn((own.nrows(), 3), |(row, place)| own[[row - row % 3 + (row + 1 + place) % 3, 0]])
}

#[test]
fn critics_see_the_observations_of_the_team() {
    let limited = |envs| TimeLimit::new(orchards(envs)?, 7);
    let joint = |envs| JointObs::new(limited(envs)?);
    check_env(200, joint).expect("the contract holds");
    let mut batch = joint(0..4).expect("there are several agents");
    assert_eq!((batch.spec().privileged.clone(), batch.spec().shared_width), (1..3, 1));
    assert_eq!(batch.spec().obs.names(), ["apples", "next_1:strength", "next_2:strength", "strength"]);
    assert!(batch.spec().obs.contains(&[20.0, 0.0, 10.0, 3.0]) && !batch.spec().obs.contains(&[20.0, 11.0, 3.0, 3.0]));
    let own = limited(0..4).expect("the limit is above 0");
    assert_eq!(batch.spec().of_actors(), own.spec().clone());

    // All else is as without the wrapper.
    let (mut own, mut n_ends) = (own, 0);
    let (seen, expected) = (episode_of(&mut batch, 5, 60), episode_of(&mut own, 5, 60));
    for (seen, expected) in seen.iter().zip(&expected) {
        let (obs, next_obs) = (joint_rows(&expected.obs), joint_rows(&expected.next_obs));
        n_ends += usize::from(expected.any_truncated());
        assert!(*seen == BatchSlabs { obs, next_obs, ..expected.clone() });
    }
    assert!(n_ends > 3, "truncated steps have other successors");

    let mut slabs = seen.last().expect("there are steps").clone();
    let before = slabs.obs.clone();
    batch.restart(2, &mut slabs).expect("nothing panics");
    for row in 0..12 {
        assert_eq!(slabs.obs.row(row) == before.row(row), row / 3 != 2, "row {row}");
    }
}

#[test]
fn normalization_inside_has_the_columns_of_actors() {
    let one = |n_agents| {
        let two = Space::uniform_box(-1.0, 1.0, ["x", "y"]);
        EnvSpec { n_agents, ..EnvSpec::new(two, Space::Discrete(2), 1) }
    };
    let error = one(1).joint().expect_err("there is one agent").to_string();
    assert_eq!(error, "invalid space: the observations of a single agent have no joint form");
    let error = one(2).joint().and_then(|joint| joint.joint()).expect_err("it is joint already").to_string();
    assert_eq!(error, "invalid space: critics of these environments see more than actors already");
    let shared = EnvSpec { shared_width: 2, ..one(2) };
    let error = shared.joint().expect_err("all is shared").to_string();
    assert!(error.ends_with("share all numbers of their observations see the joint observation already"), "{error}");
    let choices = EnvSpec { n_agents: 2, ..EnvSpec::new(Space::Discrete(3), Space::Discrete(2), 1) };
    let error = choices.joint().expect_err("it is no box").to_string();
    assert_eq!(error, "invalid space: observations that are choices have no joint form");
    let error = EnvSpec { privileged: 0..2, ..one(1) }.validate().expect_err("nothing is left").to_string();
    assert_eq!(error, "`privileged` must be columns of an observation, and leave one for actors, got 0..2");
    let middle = EnvSpec { privileged: 0..1, shared_width: 1, ..one(2) };
    assert_eq!((middle.of_actors().shared_width, middle.of_actors().obs.names()), (0, vec!["y".to_owned()]));

    let normalized = |envs| NormalizeObs::new(orchards(envs)?);
    let inside = |envs| JointObs::new(normalized(envs)?);
    let mut batch = inside(0..2).expect("there are several agents");
    let last = episode_of(&mut batch, 5, 40).pop().expect("there are steps");
    assert_eq!(batch.obs_moments().expect("they are kept").mean.len(), 2);
    let mut own = normalized(0..2).expect("it may be normalized");
    let expected = episode_of(&mut own, 5, 40).pop().expect("there are steps");
    assert_eq!((last.obs, last.shared), (joint_rows(&expected.obs), expected.shared));
}

/// `[n_rows, 2]`: complete observations.
fn complete(shared: &Array2<f32>, own: &Array2<f32>) -> Array2<f32> {
    Array2::from_shape_fn(
        (own.nrows(), 2),
        |(row, column)| {
            if column == 0 { shared[[row / 3, 0]] } else { own[[row, 0]] }
        },
    )
}

#[test]
fn shared_numbers_are_normalized_as_if_each_agent_had_them() {
    let limited = |envs| TimeLimit::new(orchards(envs)?, 7);
    check_env(100, |envs| NormalizeObs::frozen(limited(envs)?, RunningMoments::new(2))).expect("the contract holds");
    let mut own = limited(0..4).expect("the limit is above 0");
    let mut batch = NormalizeObs::new(limited(0..4).expect("the limit is above 0")).expect("it may be normalized");
    let (seen, expected) = (episode_of(&mut batch, 5, 40), episode_of(&mut own, 5, 40));
    let mut moments = RunningMoments::new(2);
    let close = |seen: &Array2<f32>, expected: Array2<f32>| {
        assert!(seen.iter().zip(&expected).all(|(seen, expected)| (seen - expected).abs() < 1e-6));
    };
    for (step, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        let [mut obs, mut next] = [(&expected.shared, &expected.obs), (&expected.next_shared, &expected.next_obs)]
            .map(|(shared, own)| complete(shared, own));
        moments.add(obs.view());
        moments.normalize(obs.view_mut());
        moments.normalize(next.view_mut());
        close(&complete(&seen.shared, &seen.obs), obs);
        if step > 0 {
            close(&complete(&seen.next_shared, &seen.next_obs), next);
        }
    }
    assert_eq!(batch.obs_moments(), Some(&moments));
    // A new episode in one environment leaves what the others see.
    let mut slabs = seen.last().expect("there are steps").clone();
    let before = complete(&slabs.shared, &slabs.obs);
    batch.restart(2, &mut slabs).expect("nothing panics");
    let after = complete(&slabs.shared, &slabs.obs);
    for row in 0..12 {
        assert_eq!(after.row(row) == before.row(row), row / 3 != 2, "row {row}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let breaks = |env| Orchard { breaks_at: (env == 1).then_some(9), ..Orchard::new(3) };
    let mut batch = EnvVec::multi_agent(0..3, breaks).expect("there are orchards");
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(3, &mut slabs).expect("nothing panics");
    let error = (0..100).find_map(|_| batch.step(all_pick(&slabs).view(), &mut slabs).err()).expect("one panics");
    assert!(matches!(error, EnvError::Panicked { env: 1, seed: 3, episode: 0, .. }), "{error}");
    assert!(error.to_string().ends_with("panicked: the ladder broke"), "{error}");
    let message =
        |pickers, n| EnvVec::multi_agent(0..n, |_| Orchard::new(pickers)).expect_err("it is wrong").to_string();
    assert_eq!(message(3, 0), "`n_envs` must be at least 1, got 0");
    assert_eq!(message(0, 2), "`n_agents` must be at least 1, got 0");
}
