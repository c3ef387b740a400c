//! Critics that see the observations of a whole team.
#![allow(clippy::expect_used)]

use brasa::contracts::{ActorCritic, HostEnv, Obs, PolicyState, Schedule};
use brasa::env::wrappers::JointObs;
use brasa::env::{Ending, EnvBatch, EnvError, EnvRng, EnvSpec, EnvVec, MultiAgentEnv, Space, StepOut, View, named_rng};
use brasa::experiment::App;
use brasa::nn::{ActorCriticConfig, MlpActorCritic, RecurrentActorCritic, RecurrentActorCriticConfig};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, Run, TrainError, Training};
use brasa_test::device;
use burn::module::Module;
use burn::tensor::Tensor;
use rand::RngExt;

/// Two agents each see a sign. The reward of both is the product of the signs, whatever they do.
struct Signs([f32; 2]);

impl MultiAgentEnv for Signs {
    type State = [f32; 2];

    fn spec(&self) -> EnvSpec {
        let obs = Space::uniform_box(-1.0, 1.0, ["sign"]);
        EnvSpec { n_agents: 2, truncation_interval: EnvSpec::NEVER, ..EnvSpec::new(obs, Space::Discrete(2), 1) }
    }

    fn reset(&mut self, rng: &mut EnvRng, view: View<'_>) {
        self.0 = [0, 1].map(|_| if rng.random::<bool>() { 1.0 } else { -1.0 });
        view.obs.copy_from_slice(&self.0);
    }

    fn step(&mut self, _: &[f32], _: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending {
        out.reward.fill(self.0[0] * self.0[1]);
        next.obs.copy_from_slice(&self.0);
        Ending::Terminated
    }

    fn state(&self) -> [f32; 2] {
        self.0
    }

    fn set_state(&mut self, state: [f32; 2]) {
        self.0 = state;
    }
}

fn signs() -> EnvVec<Signs> {
    EnvVec::multi_agent(0..16, |_| Signs([0.0; 2])).expect("there are some")
}

/// The explained variance of the values after training, for a network with memory and for one without.
fn explained<B: EnvBatch>(batch: impl Fn() -> B) -> [f64; 2] {
    let [env, other] = [(); 2].map(|()| HostEnv::new(batch(), &device()));
    let (spec, tracked) = (env.spec().clone(), device().autodiff());
    let rng = &mut named_rng(1, "weights", 0);
    let recurrent = RecurrentActorCritic::for_env(&RecurrentActorCriticConfig::default(), &spec, &tracked, rng);
    let plain = MlpActorCritic::for_env(&ActorCriticConfig::default(), &spec, &tracked, rng);
    [explained_by(env, recurrent.expect("valid")), explained_by(other, plain.expect("valid"))]
}

fn explained_by<B, M>(env: HostEnv<B>, network: M) -> f64
where
    B: EnvBatch,
    M: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module,
{
    let config = PpoConfig {
        n_steps: 16,
        batch_size: 64,
        learning_rate: Schedule::Constant(5e-3),
        log_interval: 1,
        ..PpoConfig::default()
    };
    let learner = Ppo::new(network, config, 1).expect("valid");
    let mut training = OnPolicy::new(env, learner, Run { total_env_steps: 16 * 16 * 20, seed: 1 }).expect("it starts");
    let mut last = f64::NAN;
    while !training.is_done() {
        last = training.iterate().expect("it goes on").metric("train/explained_variance").expect("it is reported");
    }
    last
}

#[test]
fn a_central_critic_knows_what_depends_on_the_team() {
    let (own, joint) = (explained(signs), explained(|| JointObs::new(signs()).expect("there are two agents")));
    assert!(joint.iter().all(|share| *share > 0.95), "critics that see both signs explain {joint:?}");
    assert!(own.iter().all(|share| *share < 0.5), "critics that see one sign explain {own:?}");
}

#[test]
fn actors_that_would_see_the_team_are_refused() {
    let env = HostEnv::new(JointObs::new(signs()).expect("there are two agents"), &device());
    let rng = &mut named_rng(1, "weights", 0);
    let (spec, config) = (env.spec().clone(), RecurrentActorCriticConfig::default());
    let network = RecurrentActorCritic::new(&config, &spec.obs, &spec.action, &device().autodiff(), rng);
    let learner = Ppo::new(network.expect("valid"), PpoConfig::default(), 1).expect("valid");
    let started = OnPolicy::new(env, learner, Run { total_env_steps: 100, seed: 1 });
    let Err(error) = started else { panic!("the actor would see both signs") };
    assert!(matches!(error, TrainError::Env(EnvError::Space { .. })), "{error}");
    let expected = "columns 0..1 of the observations are for critics alone, the network hides 0..0 from its actor";
    assert!(error.to_string().ends_with(expected), "{error}");
}

/// Training, comparison, continuation, export and serving of a run, with and without normalization.
#[test]
fn a_policy_with_a_central_critic_acts_on_what_its_agent_sees() {
    let dir = tempfile::tempdir().expect("a directory");
    let gru = "[recurrent_network]\nkind = \"gru\"\nwidth = 8\n";
    for (normalize_obs, network, place) in
        [(false, "", "host"), (true, "", "host"), (true, gru, "host"), (true, "", "device"), (true, gru, "device")]
    {
        let run = dir.path().join(format!("run_{normalize_obs}_{}_{place}", network.len()));
        let config = dir.path().join("config.toml");
        let text = format!(
            "[scenario.simple-spread]\n[train]\ntotal_env_steps = 600\nn_envs = 4\ncentral_critic = true\n\
             normalize_obs = {normalize_obs}\nenv_device = \"{place}\"\neval_interval = 300\n[ppo]\nn_steps = 25\nbatch_size = 100\n{network}"
        );
        std::fs::write(&config, text).expect("it can be written");
        let (config, path) = (config.to_str().expect("UTF-8"), run.to_str().expect("UTF-8"));
        let app = || App::new("t").with(brasa::registry());
        let train = ["t", "train", "--quiet", "--episodes", "2", "--out", path];
        app().run_from(train.into_iter().chain([config])).expect("it trains");
        app().run_from(["t", "eval", path, "--episodes", "2"]).expect("it is evaluated");

        let policy = brasa::load_policy(&run, &device()).expect("there is a checkpoint");
        // An agent's own 18 numbers, of the 54 that critics see.
        assert_eq!((policy.spec().obs.width(), policy.spec().privileged.len()), (18, 0));
        let exported = policy.exported().expect("it has layers");
        assert_eq!((exported.obs_width, exported.about.obs.len()), (18, 18));
        let rng = &mut named_rng(5, "test", 0);
        let obs: Vec<f32> = (0..3 * 18).map(|_| rng.random_range(-1.0..1.0)).collect();
        let (mut state, mut numbers) = (PolicyState::default(), Vec::new());
        for _ in 0..3 {
            let actions = policy.act_one_from(&obs, None, &mut state).expect("three agents");
            assert_eq!(actions, exported.act_from(&obs, None, &mut numbers));
        }
        let error = policy.act_one_from(&[0.0; 3 * 54], None, &mut PolicyState::default());
        let error = error.expect_err("these are for critics").to_string();
        assert_eq!(error, "`obs` must be rows of 18 numbers, got 54");
    }
}

#[test]
fn experiments_without_a_team_or_a_rollout_are_refused() {
    let registry = brasa::registry();
    let message = |text: &str| match registry.parse(text, "file", &["train.central_critic=true".into()]) {
        Ok(_) => panic!("it is wrong: {text}"),
        Err(error) => error.to_string(),
    };
    let single = message("[scenario.cart-pole]\n[ppo]\n");
    let expected = "the observations of a single agent have no joint form";
    assert_eq!(single, format!("`train.central_critic`: invalid space: {expected}"));
    let replayed = message("[scenario.simple-spread]\n[dqn]\n");
    let expected = "experience is replayed: such critics learn from rollouts";
    assert_eq!(replayed, format!("`train.central_critic` must be off where {expected}, got true"));
}
