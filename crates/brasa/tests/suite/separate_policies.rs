//! Agents with policies of their own.
#![allow(clippy::expect_used)]

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::{Cut, Discounts, Rollout, RolloutBuffer};
use brasa::contracts::{
    ActorCritic, Decision, Explore, HostEnv, Obs, OnPolicyLearner, Policy, PolicyState, Schedule, StepBatch, Successor,
    read_back,
};
use brasa::env::{Ending, EnvRng, EnvSpec, EnvVec, MultiAgentEnv, Space, StepOut, View, named_rng};
use brasa::experiment::App;
use brasa::nn::{
    ActorCriticConfig, MlpActorCritic, Persist, RecurrentActorCritic, RecurrentActorCriticConfig, SeparateActorCritic,
};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, Run, Training};
use brasa_test::device;
use burn::module::Module;
use burn::tensor::Tensor;

/// Agents see nothing that tells them apart. Agent `i` of three has a reward of 1 for action `i`, in each of four steps.
struct Roles(u8);

impl Roles {
    const AGENTS: usize = 3;
}

impl MultiAgentEnv for Roles {
    type State = u8;

    fn spec(&self) -> EnvSpec {
        let obs = Space::uniform_box(0.0, 4.0, ["step"]);
        let spec = EnvSpec::new(obs, Space::Discrete(Self::AGENTS), 1);
        EnvSpec { n_agents: Self::AGENTS, truncation_interval: EnvSpec::NEVER, ..spec }
    }

    fn reset(&mut self, _: &mut EnvRng, view: View<'_>) {
        self.0 = 0;
        view.obs.fill(0.0);
    }

    fn step(&mut self, actions: &[f32], _: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending {
        for (agent, (reward, action)) in out.reward.iter_mut().zip(actions).enumerate() {
            *reward = f32::from(u8::from(*action == agent as f32));
        }
        self.0 += 1;
        next.obs.fill(f32::from(self.0));
        Ending::of(self.0 == 4, false)
    }

    fn state(&self) -> u8 {
        self.0
    }

    fn set_state(&mut self, state: u8) {
        self.0 = state;
    }
}

type Envs = HostEnv<EnvVec<Roles>>;

fn roles() -> Envs {
    HostEnv::new(EnvVec::multi_agent(0..5, |_| Roles(0)).expect("there are some"), &device())
}

fn mlp(agent: usize) -> MlpActorCritic {
    let config = ActorCriticConfig { actor_hidden: vec![8], critic_hidden: vec![8], ..Default::default() };
    let (spec, rng) = (Roles(0).spec(), &mut named_rng(3, "weights", agent as u64));
    MlpActorCritic::for_env(&config, &spec, &device().autodiff(), rng).expect("valid")
}

fn gru(agent: usize) -> RecurrentActorCritic {
    let config = RecurrentActorCriticConfig { width: 8, ..Default::default() };
    let (spec, rng) = (Roles(0).spec(), &mut named_rng(3, "weights", agent as u64));
    RecurrentActorCritic::for_env(&config, &spec, &device().autodiff(), rng).expect("valid")
}

fn separate<N>(network: impl Fn(usize) -> N, of_agents: &[usize]) -> SeparateActorCritic<N>
where
    N: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module,
{
    let n = of_agents.iter().max().expect("there are agents") + 1;
    SeparateActorCritic::new((0..n).map(network).collect(), of_agents.to_vec()).expect("an index for each network")
}

fn ppo<M: ActorCritic + Module>(network: M) -> Ppo<M> {
    let learning_rate = Schedule::Constant(1e-2);
    let config = PpoConfig { n_steps: 16, batch_size: 50, learning_rate, ..Default::default() };
    Ppo::new(network, config, 0).expect("valid")
}

fn a2c<M: ActorCritic + Module>(network: M) -> A2c<M> {
    let learning_rate = Schedule::Constant(1e-2);
    A2c::new(network, A2cConfig { n_steps: 16, learning_rate, ..Default::default() }, 0).expect("valid")
}

/// The most likely actions of the agents after training.
fn trained<L>(learner: L) -> Vec<f32>
where
    L: OnPolicyLearner<Batch = Rollout<Obs, Tensor<2>>> + Persist,
    L::Policy: Policy<Obs = Obs, Action = Tensor<2>, Extra = Decision> + ActorCritic,
{
    let mut training = OnPolicy::new(roles(), learner, Run { total_env_steps: 6_000, seed: 0 }).expect("it starts");
    while !training.is_done() {
        training.iterate().expect("it goes on");
    }
    let policy = training.learner().policy(brasa::contracts::Progress::new(0, 1));
    let obs = Obs::new(Tensor::zeros([Roles::AGENTS, 1], &device()));
    read_back(policy.act(obs, Explore::Greedy).0)
}

#[test]
fn agents_that_see_alike_learn_to_act_differently() {
    let all = [0, 1, 2];
    assert_eq!(trained(ppo(separate(mlp, &all))), [0.0, 1.0, 2.0]);
    assert_eq!(trained(ppo(separate(gru, &all))), [0.0, 1.0, 2.0]);
    assert_eq!(trained(a2c(separate(mlp, &all))), [0.0, 1.0, 2.0]);
    // Two agents that share a policy act alike, the last one has its own.
    let [first, second, last] = trained(ppo(separate(mlp, &[0, 0, 1])))[..] else { panic!("three agents") };
    assert!(first == second && last == 2.0, "{first} {second} {last}");
}

#[test]
fn environments_with_other_agents_are_refused() {
    let start = OnPolicy::new(roles(), ppo(separate(mlp, &[0, 1])), Run { total_env_steps: 100, seed: 0 });
    let Err(error) = start else { panic!("two agents of three") };
    let expected = "the network has weights for 2 agents, the environments have 3";
    assert!(error.to_string().ends_with(expected), "{error}");
}

/// A rollout whose values are the numbers of its rows.
fn numbered(n_steps: usize, n_envs: usize) -> Rollout<Obs, Tensor<2>> {
    let (device, spec) = (device(), Roles(0).spec().with_n_envs(n_envs));
    let (n, width) = (spec.n_rows(), 1);
    let obs = Obs::new(Tensor::zeros([n, width], &device));
    let action = Tensor::<2>::zeros([n, 1], &device);
    let mut buffer = RolloutBuffer::new(n_steps, &spec, &obs, &action, &device);
    let zeros = || Tensor::<1>::zeros([n], &device);
    for step in 0..n_steps {
        let value = Tensor::arange((step * n) as i64..((step + 1) * n) as i64, &device).float();
        let batch = StepBatch {
            obs: obs.clone(),
            successor: Successor::Same,
            reward: zeros(),
            terminated: zeros(),
            truncated: zeros(),
            elapsed: None,
        };
        let state = PolicyState::new(n, 1, &device);
        buffer.remember(&state, &state);
        buffer.push(obs.clone(), action.clone(), Decision { log_prob: zeros(), value: Some(value) }, &batch);
    }
    let discounts = Discounts { gamma: 0.9, gae_lambda: 0.9 };
    buffer.finish(zeros(), |_, _| zeros(), discounts).expect("no row was truncated")
}

#[test]
fn minibatches_have_whole_teams_and_every_row_once() {
    let (n_steps, n_envs, n_agents) = (6, 4, Roles::AGENTS);
    let (rollout, per_step) = (numbered(n_steps, n_envs), n_envs * n_agents);
    for (length, batch_size, first_size) in [(1, 10, 12), (1, 7, 9), (1, 1, 3), (1, 500, 72), (2, 13, 18), (6, 1, 18)] {
        let cut = Cut { n_steps, length, n_agents };
        assert_eq!(cut.batch_rows(batch_size, 72), first_size);
        let mut seen = Vec::new();
        for (i, batch) in rollout.batches(cut, batch_size, &mut named_rng(1, "minibatch", 0)).enumerate() {
            let rows: Vec<usize> = read_back(batch.value).into_iter().map(|row| row as usize).collect();
            assert!(i > 0 || rows.len() == first_size, "{cut:?} {batch_size}: {}", rows.len());
            let n = rows.len() / length;
            for (place, row) in rows.iter().enumerate() {
                assert_eq!(row % n_agents, place % n_agents, "{cut:?}: the agent");
                let next = rows.get(place + 1).filter(|_| place % n_agents + 1 < n_agents);
                assert!(next.is_none_or(|next| *next == row + 1), "{cut:?}: a team stays together");
                let later = rows.get(place + n);
                assert!(later.is_none_or(|later| *later == row + per_step), "{cut:?}: the next step of the sequence");
            }
            seen.extend(rows);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..n_steps * per_step).collect::<Vec<_>>(), "{cut:?} {batch_size}");
    }
}

/// Training, comparison, continuation, export and serving of a run.
#[test]
fn a_run_has_a_policy_for_each_agent() {
    let dir = tempfile::tempdir().expect("a directory");
    for (policies, network) in [
        ("[0, 1, 2]", "central_critic = true\n[network]\nactor_hidden = [8]\n"),
        ("[0, 1, 1]", "pipeline = true\nn_shards = 1\n[network]\nactor_hidden = [8]\n"),
        ("[1, 0, 1]", "[recurrent_network]\nkind = \"gru\"\nwidth = 8\n"),
    ] {
        let run = dir.path().join(format!("run_{}", policies.replace(", ", "")));
        let config = dir.path().join("config.toml");
        let text = format!(
            "[scenario.simple-spread]\n[ppo]\nn_steps = 25\nbatch_size = 100\n[train]\ntotal_env_steps = 600\nn_envs = 4\n\
             eval_interval = 300\npolicies = {policies}\n{network}"
        );
        std::fs::write(&config, text).expect("it can be written");
        let (config, path) = (config.to_str().expect("UTF-8"), run.to_str().expect("UTF-8"));
        let app = || App::new("t").with(brasa::registry());
        let train = ["t", "train", "--quiet", "--episodes", "2", "--out", path];
        app().run_from(train.into_iter().chain([config])).expect("it trains");
        app().run_from(["t", "eval", path, "--episodes", "2"]).expect("it is evaluated");
        app().run_from(["t", "check", config]).expect("its memory is counted");

        let policy = brasa::load_policy(&run, &device()).expect("there is a checkpoint");
        let rng = &mut named_rng(5, "test", 0);
        let mut state = PolicyState::default();
        let mut numbers = Vec::new();
        let exported = policy.exported().ok();
        assert_eq!(exported.is_some(), !network.contains("recurrent"), "{policies}");
        let mut differs = false;
        for _ in 0..20 {
            let one: Vec<f32> = (0..18).map(|_| rand::RngExt::random_range(rng, -1.0..1.0)).collect();
            // All agents see the same.
            let obs = one.repeat(3);
            let actions = policy.act_one_from(&obs, None, &mut state).expect("three agents");
            if let Some(exported) = &exported {
                assert_eq!((exported.n_agents, exported.obs_width), (3, 18));
                assert_eq!(actions, exported.act_from(&obs, None, &mut numbers));
            }
            differs |= actions[0] != actions[1];
        }
        assert!(differs, "{policies}: the first two agents have different policies");
    }
}

#[test]
fn settings_that_fit_no_agents_are_refused() {
    let registry = brasa::registry();
    let message =
        |text: &str, policies: &str| match registry.parse(text, "file", &[format!("train.policies={policies}")]) {
            Ok(_) => panic!("it is wrong: {text}"),
            Err(error) => error.to_string(),
        };
    let spread = "[scenario.simple-spread]\n[ppo]\n";
    let of_agents = "`train.policies` must have an index for each agent of an environment, of which there are";
    assert_eq!(message(spread, "[0, 1]"), format!("{of_agents} 3, got [0, 1]"));
    assert_eq!(message("[scenario.cart-pole]\n[ppo]\n", "[0, 1]"), format!("{of_agents} 1, got [0, 1]"));
    assert_eq!(message(spread, "[0, 2, 2]"), "`train.policies` must have every index from 0 to 2, got [0, 2, 2]");
    let replayed = message("[scenario.simple-spread]\n[dqn]\n", "[0, 1, 2]");
    assert!(replayed.starts_with("`train.policies` must be empty where experience is replayed"), "{replayed}");
}
