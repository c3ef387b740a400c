//! Actors and critics of a team as one batched network.
#![allow(clippy::expect_used)]

use brasa::classic::{Spread, SpreadConfig};
use brasa::contracts::{
    ActorCritic, Explore, HostEnv, ObsForm, Policy, Rows, Schedule, Shared, TeamObs, VecEnv, read_back, row_indices,
};
use brasa::env::wrappers::JointObs;
use brasa::env::{EnvBatch, EnvSpec, MaskSpec, Space, named_rng};
use brasa::experiment::App;
use brasa::nn::{
    ActorCriticConfig, MlpActorCritic, ModuleActorCritic, NamedParam, SeparateActorCritic, Sharing, TeamActorCritic,
    TeamActorCriticConfig, load_params, named_params,
};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, Run, Training};
use brasa_test::device;
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use rand::RngExt;

fn config(sharing: Sharing) -> TeamActorCriticConfig {
    TeamActorCriticConfig { actor_hidden: vec![8], critic_hidden: vec![6], sharing, ..Default::default() }
}

fn team(spec: &EnvSpec, sharing: Sharing) -> ModuleActorCritic<TeamActorCritic> {
    let (device, rng) = (device().autodiff(), &mut named_rng(3, "weights", 0));
    TeamActorCritic::new(&config(sharing), spec, &device, rng).expect("valid")
}

/// The networks of the agents of a team without common weights, each as a network of its own.
fn apart(team: &ModuleActorCritic<TeamActorCritic>, spec: &EnvSpec) -> SeparateActorCritic<MlpActorCritic> {
    let shape = ActorCriticConfig { actor_hidden: vec![8], critic_hidden: vec![6], ..Default::default() };
    let is_critic = |param: &NamedParam| param.name.contains("critic");
    let of_agent = |agent: usize| {
        let rng = &mut named_rng(0, "other", 0);
        let own = MlpActorCritic::for_env(&shape, spec, &device().autodiff(), rng).expect("valid");
        // Both have the layers of the actor, and those of the critic, from the first one to the last one.
        let (critic, actor): (Vec<_>, Vec<_>) = named_params(team).into_iter().partition(is_critic);
        let (mut critic, mut actor) = (critic.into_iter(), actor.into_iter());
        let mut params = named_params(&own);
        for param in &mut params {
            let all = if is_critic(param) { critic.next() } else { actor.next() }.expect("as many layers");
            let n = all.values.len() / spec.n_agents;
            assert_eq!(n, param.values.len(), "{}", param.name);
            param.values = all.values[agent * n..(agent + 1) * n].to_vec();
        }
        load_params(own, &params).expect("its own names")
    };
    let networks = (0..spec.n_agents).map(of_agent).collect();
    SeparateActorCritic::new(networks, (0..spec.n_agents).collect()).expect("a network for each agent")
}

fn ppo<M: ActorCritic + Module>(network: M) -> Ppo<M> {
    let learning_rate = Schedule::Constant(1e-3);
    let config = PpoConfig { n_steps: 25, batch_size: 90, n_epochs: 3, learning_rate, ..Default::default() };
    Ppo::new(network, config, 0).expect("valid")
}

fn spread() -> Spread {
    Spread::new(SpreadConfig::default()).expect("valid")
}

#[test]
fn a_batched_network_learns_as_the_networks_of_the_agents() {
    let batch = || spread().batch(0..4).expect("there are some");
    compare(batch);
    compare(|| JointObs::new(batch()).expect("there are several agents"));
}

/// Trains both forms with equal weights.
fn compare<B: EnvBatch + 'static>(batch: impl Fn() -> B) {
    let run = Run { total_env_steps: 600, seed: 0 };
    let (rows, agents) = (HostEnv::new(batch(), &device()), HostEnv::team(batch(), &device()));
    let network = team(VecEnv::spec(&agents), Sharing::Independent);
    let separate = apart(&network, rows.spec());
    let mut batched = OnPolicy::new(agents, ppo(network), run).expect("it starts");
    let mut one_by_one = OnPolicy::new(rows, ppo(separate), run).expect("it starts");
    let (mut moved, mut n_rollouts) = (0.0, 0);
    while !batched.is_done() {
        n_rollouts += 1;
        let before = batched.learner().trainable().plain().clone();
        batched.iterate().expect("it goes on");
        one_by_one.iterate().expect("it goes on");
        let spec = batched.env().spec();
        let [ours, before] = [batched.learner().trainable().plain(), &before].map(|network| apart(network, spec));
        let theirs = named_params(one_by_one.learner().trainable().plain());
        for ((ours, theirs), before) in named_params(&ours).iter().zip(&theirs).zip(named_params(&before)) {
            for ((ours, theirs), before) in ours.values.iter().zip(&theirs.values).zip(before.values) {
                assert!((ours - theirs).abs() < 2e-5, "{ours} instead of {theirs}");
                moved = f32::max(moved, (ours - before).abs());
            }
        }
    }
    assert_eq!(n_rollouts, 6);
    assert!(moved > 1e-3, "the weights move by {moved}");
}

/// Four environments of three agents with two shared numbers and `own` others, and with masks.
fn seen(own: usize) -> (EnvSpec, TeamObs) {
    let names = (0..2 + own).map(|i| i.to_string());
    let mask = Some(MaskSpec { actions_per_flag: 2 });
    let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, names), Space::Discrete(4), 4);
    let spec = EnvSpec { n_agents: 3, shared_width: 2, mask, ..spec };
    let rng = &mut named_rng(1, "test", own as u64);
    let mut random = |shape: [usize; 2]| {
        let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| rng.random_range(-1.0..1.0)).collect();
        Tensor::<2>::from_data(TensorData::new(values, shape), &device())
    };
    let shared = Some(Shared::PerEnv(random([4, 2])));
    let own = (own > 0).then(|| random([12, own]));
    let flags: Vec<f32> = (0..24).map(|i| f32::from(u8::from(i % 3 != 0))).collect();
    let mask = Some(Tensor::from_data(TensorData::new(flags, [12, 2]), &device()));
    (spec, TeamObs { shared, own, mask, n_agents: 3, actions_per_flag: 2 })
}

#[test]
fn what_agents_share_counts_for_each_of_them() {
    for (own, sharing) in [0, 3]
        .into_iter()
        .flat_map(|own| [Sharing::Independent, Sharing::Trunk, Sharing::All].map(|sharing| (own, sharing)))
    {
        let (spec, obs) = seen(own);
        let network = team(&spec, sharing).valid();
        assert_eq!(network.n_agents(), 3);
        let what = format!("{sharing:?}, {own} own numbers");
        let values = read_back(network.value(obs.clone()));
        assert!(values.windows(2).all(|pair| pair[0] != pair[1]), "{what}: agents and environments differ");
        // Whole environments, with the shared part once and row by row.
        let (envs, rows) = (row_indices([2, 0], &device()), row_indices([6, 7, 8, 0, 1, 2], &device()));
        let (by_env, by_row) = (obs.select_envs(envs, 3), obs.select(rows));
        assert!(matches!(by_env.shared, Some(Shared::PerEnv(_))) && matches!(by_row.shared, Some(Shared::PerRow(_))));
        assert_eq!(read_back(by_env.rows()), read_back(by_row.rows()));
        assert_eq!(by_env.legal().map(read_back), by_row.legal().map(read_back));
        let expected = [&values[6..9], &values[0..3]].concat();
        for part in [by_env, by_row] {
            for (value, expected) in read_back(network.value(part)).iter().zip(&expected) {
                assert!((value - expected).abs() < 1e-6, "{what}: {value} instead of {expected}");
            }
        }
        // Only legal actions, and those of the exported policy.
        let (actions, _) = network.act(obs.clone(), Explore::Greedy);
        let exported = network.exported().expect("it has a form");
        assert_eq!((exported.n_agents, exported.obs_width), (3, 2 + own));
        let (rows, legal) = (read_back(obs.rows()), read_back(obs.legal().expect("there are masks")));
        let actions = read_back(actions);
        assert_eq!(exported.act(&rows, Some(&legal)), actions, "{what}");
        assert!(actions.iter().enumerate().all(|(row, action)| legal[row * 4 + *action as usize] == 1.0), "{what}");
    }
}

/// Training, evaluation, continuation, export and serving of a run.
#[cfg(feature = "uara")]
#[test]
fn runs_of_teams_are_trained_evaluated_continued_and_loaded() {
    let dir = tempfile::tempdir().expect("a directory");
    for (sharing, algorithm) in [("all", "ppo"), ("independent", "ppo"), ("trunk", "a2c")] {
        let config = dir.path().join("config.toml");
        let text = format!(
            "[scenario.uara]\nusers = 5\nepisode_steps = 10\n[{algorithm}]\nn_steps = 10\n[train]\n\
             total_env_steps = 400\nn_envs = 4\n[team_network]\nsharing = \"{sharing}\"\nactor_hidden = [8]\n"
        );
        std::fs::write(&config, text).expect("it can be written");
        let [whole, parts] = ["whole", "parts"].map(|name| dir.path().join(format!("{name}-{sharing}")));
        let path = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
        let run = |args: &[&str]| App::new("t").with(brasa::registry()).run_from([&["t"], args].concat());
        let train = |out: &str, steps: &str| {
            let args = ["train", "--quiet", "--episodes", "2", "--out", out, "--steps", steps, &path(&config)];
            run(&args).expect("it trains");
        };
        train(&path(&whole), "400");
        train(&path(&parts), "200");
        run(&["train", "--quiet", "--episodes", "2", "--resume", &path(&parts), "--steps", "400"]).expect("it goes on");
        run(&["eval", &path(&whole), "--episodes", "2"]).expect("it is evaluated");
        run(&["check", &path(&config)]).expect("its memory is counted");
        let policies = [&whole, &parts].map(|run| brasa::load_policy(run, &device()).expect("there is a checkpoint"));
        let exported = policies.each_ref().map(|policy| policy.exported().expect("it has a form"));
        let onnx = exported.map(|policy| policy.to_onnx().expect("it can be written"));
        assert!(onnx[0] == onnx[1], "{sharing}: a run in two parts is the run as a whole");
    }
}

#[test]
fn networks_of_teams_have_one_setting_for_what_agents_share() {
    let registry = brasa::registry();
    let text = "[scenario.simple-spread]\n[ppo]\n[team_network]\n";
    let expected =
        "`train.policies` must be empty for the network of a team, whose own settings have this meaning, got [0, 1, 2]";
    let parsed = registry.parse(text, "file", &["train.policies=[0, 1, 2]".to_owned()]);
    assert_eq!(parsed.map(drop).expect_err("it has no meaning here").to_string(), expected);
}
