//! Gradients that networks compute without the tape are those of the tape.

use brasa_core::analytic::CriticsInput;
use brasa_core::env::{EnvSpec, Space, named_rng};
use brasa_core::{
    ActionValues, ActorCritic, Critics, Deterministic, Evaluation, Explore, Obs, Policy, PolicyState, Reparameterized,
    Sequences,
};
use brasa_nn::{
    ActorCriticConfig, DeterministicActor, DeterministicActorConfig, MlpActorCritic, MlpCritics, MlpCriticsConfig,
    QNetwork, QNetworkConfig, RecurrentActorCritic, RecurrentActorCriticConfig, RecurrentKind, RecurrentQNetwork,
    RecurrentQNetworkConfig, SeparateActorCritic, SquashedActor, SquashedActorConfig, StdKind, gradient_in_shards,
};
use burn::module::{Module, ModuleDisplay, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

const ROWS: usize = 7;

/// Only the CPU has this path.
fn device() -> Device {
    brasa_device::open_named("cpu").expect("flex is a default feature")
}

fn obs_space() -> Space {
    Space::uniform_box(-1.0, 1.0, ["x", "y", "z"])
}

fn numbers(n: usize, seed: f32) -> Vec<f32> {
    (0..n).map(|i| ((i as f32 + 10.0 * seed) * 0.7).sin()).collect()
}

fn tensor<const D: usize>(dims: [usize; D], seed: f32) -> Tensor<D> {
    Tensor::from_data(TensorData::new(numbers(dims.iter().product(), seed), dims), &device())
}

/// Gradients of all parameters, 0 without one.
struct Flat<'a> {
    gradients: &'a Gradients,
    all: Vec<f32>,
}

impl ModuleVisitor for Flat<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        match param.val().grad(self.gradients) {
            Some(grad) => self.all.extend(grad.into_data().iter::<f32>()),
            None => self.all.extend(vec![0.0; param.dims().iter().product()]),
        }
    }
}

fn close(got: &[f32], expected: &[f32], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() < 1e-5 * expected.abs().max(1.0), "{what}, {i}: {got} instead of {expected}");
    }
    assert!(expected.iter().any(|x| x.abs() > 1e-3), "{what}: there is a gradient");
}

fn recorded(loss: &Tensor<1>, module: &impl Module) -> Vec<f32> {
    let mut flat = Flat { gradients: &loss.backward(), all: Vec::new() };
    module.visit(&mut flat);
    flat.all
}

#[test]
fn of_actors_and_critics() {
    let heads = vec![3, 2];
    let mask = |n: usize| {
        let flags = (0..ROWS * n).map(|i| f32::from(u8::from(i % 4 != 1))).collect::<Vec<_>>();
        Tensor::<2>::from_data(TensorData::new(flags, [ROWS, n]), &device())
    };
    let choices = |dims: [usize; 2], n: usize| {
        let values = (0..dims[0] * dims[1]).map(|i| (i % n) as f32).collect::<Vec<_>>();
        Tensor::<2>::from_data(TensorData::new(values, dims), &device())
    };
    let real = Space::uniform_box(-2.0, 2.0, ["a", "b"]);
    let base = ActorCriticConfig { actor_hidden: vec![5, 4], critic_hidden: vec![6], ..Default::default() };
    let shared = ActorCriticConfig { shared_hidden: vec![5], actor_hidden: vec![], ..base.clone() };
    let squash = ActorCriticConfig { squash: true, log_std_init: -0.5, ..base.clone() };
    let explores = ActorCriticConfig { std: StdKind::StateDependent, log_std_init: -0.5, ..base.clone() };
    let squashed = ActorCriticConfig { squash: true, shared_hidden: vec![5], ..explores.clone() };
    let linear = ActorCriticConfig { actor_hidden: vec![], critic_hidden: vec![], ..base.clone() };
    let cases = [
        ("discrete", base.clone(), Space::Discrete(4), choices([ROWS, 1], 4), None, 0..0),
        ("masked heads", base.clone(), Space::MultiDiscrete(heads), choices([ROWS, 2], 1), Some(mask(5)), 0..0),
        ("a shared body", shared.clone(), Space::Discrete(3), choices([ROWS, 1], 3), None, 0..0),
        ("real", base.clone(), real.clone(), tensor([ROWS, 2], 0.4), None, 0..0),
        ("real with a shared body", shared, real.clone(), tensor([ROWS, 2], 0.4), None, 0..0),
        ("squashed", squash, real.clone(), tensor([ROWS, 2], 0.4), None, 0..0),
        ("state-dependent exploration", explores, real.clone(), tensor([ROWS, 2], 0.4), None, 1..2),
        ("the same, squashed", squashed, real.clone(), tensor([ROWS, 2], 0.4), None, 0..0),
        ("first columns for the critic", base.clone(), Space::Discrete(4), choices([ROWS, 1], 4), None, 0..2),
        ("a column between", base.clone(), real.clone(), tensor([ROWS, 2], 0.4), None, 1..2),
        ("the last column", base, Space::Discrete(4), choices([ROWS, 1], 4), None, 2..3),
        ("without hidden layers", linear, real, tensor([ROWS, 2], 0.4), None, 0..1),
    ];
    for (what, config, space, action, mask, privileged) in cases {
        let rng = &mut named_rng(3, "weights", 0);
        let spec = EnvSpec { privileged, ..EnvSpec::new(obs_space(), space, 1) };
        let network = MlpActorCritic::for_env(&config, &spec, &device().autodiff(), rng).expect("valid");
        let obs = Obs { mask, ..Obs::new(tensor([ROWS, 3], 0.2)) };
        let weights = [0.5, 0.6, 0.7].map(|seed| tensor::<1>([ROWS], seed));
        // A loss may ignore a result, whose list is then empty.
        for ignored in [None, Some(0), Some(1), Some(2)] {
            let Evaluation { log_prob, entropy, value, .. } = network.evaluate(obs.clone(), action.clone());
            let results = [&log_prob, &entropy, &value];
            let used = (0..3).filter(|i| Some(*i) != ignored);
            let loss = used.map(|i| (results[i].clone() * weights[i].clone()).sum()).reduce(|sum, x| sum + x);
            let host = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
            assert_eq!(network.choice(&obs).is_some(), obs.mask.is_some());
            let gradient = network.valid().gradient(&obs, &action, &mut |now| {
                for (got, expected) in now.into_iter().zip(results) {
                    close(got, &host(expected.clone().inner()), what);
                }
                let mut lists = weights.clone().map(host);
                ignored.into_iter().for_each(|i| lists[i].clear());
                Some(lists)
            });
            close(&gradient.expect("it can"), &recorded(&loss.expect("two are used"), &network), what);
        }
    }
}

/// Three agents with two networks, in two steps of two environments. The second case is of sequences.
#[test]
fn of_several_networks() {
    const AGENT_ROWS: usize = 12;
    let spec = EnvSpec { privileged: 0..1, ..EnvSpec::new(obs_space(), Space::Discrete(4), 1) };
    let rng = |network| named_rng(3, "weights", network);
    let config = ActorCriticConfig { actor_hidden: vec![5], critic_hidden: vec![6], ..Default::default() };
    let plain =
        [0, 1].map(|i| MlpActorCritic::for_env(&config, &spec, &device().autodiff(), &mut rng(i)).expect("valid"));
    of_agents(plain.into(), None);
    let config = RecurrentActorCriticConfig { width: 5, ..Default::default() };
    let recurrent = [0, 1]
        .map(|i| RecurrentActorCritic::for_env(&config, &spec, &device().autodiff(), &mut rng(i)).expect("valid"));
    let starts = (0..AGENT_ROWS).map(|row| f32::from(u8::from((6..9).contains(&row)))).collect::<Vec<_>>();
    let state = tensor([6, recurrent[0].state_width()], 0.9);
    of_agents(recurrent.into(), Some(Sequences { state, starts: Tensor::from_floats(starts.as_slice(), &device()) }));

    fn of_agents<N>(networks: Vec<N>, sequences: Option<Sequences>)
    where
        N: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module + ModuleDisplay,
    {
        let of = [0, 1, 0];
        let separate = SeparateActorCritic::new(networks.clone(), of.to_vec()).expect("valid");
        let obs = Obs::new(tensor([AGENT_ROWS, 3], 0.2));
        let choices = (0..AGENT_ROWS).map(|i| (i % 4) as f32).collect::<Vec<_>>();
        let action = Tensor::<2>::from_data(TensorData::new(choices, [AGENT_ROWS, 1]), &device());
        let evaluate = |network: &dyn Fn(Obs, Tensor<2>) -> Evaluation| network(obs.clone(), action.clone());
        let Evaluation { log_prob, entropy, value } = match &sequences {
            Some(sequences) => evaluate(&|obs, action| separate.evaluate_sequences(obs, action, sequences)),
            None => evaluate(&|obs, action| separate.evaluate(obs, action)),
        };
        let host = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
        for (index, network) in networks.iter().enumerate() {
            // Each network alone, on all rows.
            let alone = match &sequences {
                Some(sequences) => network.evaluate_sequences(obs.clone(), action.clone(), sequences),
                None => network.evaluate(obs.clone(), action.clone()),
            };
            let [own, all] = [alone.log_prob, log_prob.clone()].map(|rows| host(rows.inner()));
            let rows = (0..AGENT_ROWS).filter(|row| of[row % 3] == index);
            rows.for_each(|row| assert!((own[row] - all[row]).abs() < 1e-6, "row {row}"));
        }
        let weights = [0.5, 0.6, 0.7].map(|seed| tensor::<1>([AGENT_ROWS], seed));
        let results = [&log_prob, &entropy, &value];
        let loss = (0..3).map(|i| (results[i].clone() * weights[i].clone()).sum()).reduce(|sum, x| sum + x);
        let mut by = |now: [&[f32]; 3]| {
            for (got, expected) in now.into_iter().zip(results) {
                close(got, &host(expected.clone().inner()), "several networks");
            }
            Some(weights.clone().map(host))
        };
        let plain = separate.valid();
        let gradient = match &sequences {
            Some(sequences) => plain.gradient_of_sequences(&obs, &action, sequences, &mut by),
            None => plain.gradient(&obs, &action, &mut by),
        };
        let expected = recorded(&loss.expect("there are results"), &separate);
        close(&gradient.expect("it can"), &expected, "several networks");
        // A loss that stops gives no gradient.
        assert!(separate.valid().gradient(&obs, &action, &mut |_| None).is_none());
    }
}

/// Sequences of three steps, of two rows, with a critic that sees more than the actor.
#[test]
fn of_recurrent_networks_whose_critic_sees_more() {
    let real = || Space::uniform_box(-2.0, 2.0, ["a"]);
    for (kind, privileged, space, std) in [
        (RecurrentKind::Lstm, 0..2, Space::Discrete(4), StdKind::Independent),
        (RecurrentKind::Gru, 1..2, real(), StdKind::Independent),
        (RecurrentKind::Gru, 2..3, real(), StdKind::StateDependent),
    ] {
        let rng = &mut named_rng(3, "weights", 0);
        let spec = EnvSpec { privileged: privileged.clone(), ..EnvSpec::new(obs_space(), space, 1) };
        let config = RecurrentActorCriticConfig {
            kind,
            std,
            width: 5,
            actor_hidden: vec![4],
            critic_hidden: vec![],
            ..Default::default()
        };
        let network = RecurrentActorCritic::for_env(&config, &spec, &device().autodiff(), rng).expect("valid");
        let (plain, n_rows) = (network.valid(), 6);
        let obs = Obs::new(tensor([n_rows, 3], 0.2));
        let action = Tensor::<2>::from_floats([[0.0], [1.0], [2.0], [3.0], [0.0], [1.0]], &device());
        let state = tensor::<2>([2, plain.state_width()], 0.4);
        let starts = Tensor::<1>::from_floats([0.0, 1.0, 0.0, 0.0, 1.0, 0.0], &device());
        let sequences = Sequences { state: state.clone(), starts };
        let weights = [0.5, 0.6, 0.7].map(|seed| tensor::<1>([n_rows], seed));
        let Evaluation { log_prob, entropy, value, .. } =
            network.evaluate_sequences(obs.clone(), action.clone(), &sequences);
        let results = [log_prob, entropy, value];
        let terms = results.iter().zip(&weights).map(|(result, weight)| (result.clone() * weight.clone()).sum());
        let loss = terms.reduce(|sum, x| sum + x).expect("there are three");
        let host = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
        let gradient = plain.gradient_of_sequences(&obs, &action, &sequences, &mut |now| {
            for (got, expected) in now.into_iter().zip(&results) {
                close(got, &host(expected.clone().inner()), "results");
            }
            Some(weights.clone().map(host))
        });
        close(&gradient.expect("it can"), &recorded(&loss, &network), "parameters");

        // Alone, an agent acts alike, and keeps what the critic remembers.
        let columns = (0..3).filter(|column| !privileged.contains(column));
        let own = Tensor::cat(columns.map(|column| obs.values.clone().narrow(1, column, 1)).collect(), 1);
        let act = |rows: Tensor<2>| {
            let mut state = PolicyState { numbers: Some(state.clone().repeat_dim(0, 3)) };
            let (action, decision) = plain.act_from(Obs::new(rows), &mut state, Explore::Greedy);
            let width = plain.state_width() / 2;
            let of_actor = state.numbers.expect("it remembers").narrow(1, 0, width);
            (action.into_data(), decision.log_prob.into_data(), of_actor.into_data())
        };
        assert_eq!(act(obs.values.clone()), act(own));
        let sizes = plain.sizes().expect("they are known");
        assert_eq!((sizes.obs, sizes.privileged), (3, privileged));
    }
    let spec = EnvSpec { privileged: 1..2, ..EnvSpec::new(obs_space(), Space::Discrete(4), 1) };
    let rng = &mut named_rng(3, "weights", 0);
    for (config, got) in [
        (RecurrentActorCriticConfig { shared: true, ..Default::default() }, "`shared` must not be set"),
        (
            RecurrentActorCriticConfig { encoder_hidden: vec![8], ..Default::default() },
            "`encoder_hidden` must not be set",
        ),
    ] {
        let error = RecurrentActorCritic::for_env(&config, &spec, &device(), rng).expect_err("they cannot share");
        assert!(error.to_string().starts_with(got), "{error}");
    }
}

#[test]
fn of_shards() {
    let config = ActorCriticConfig { shared_hidden: vec![5], std: StdKind::Dependent, ..Default::default() };
    let (rng, space) = (&mut named_rng(3, "weights", 0), Space::uniform_box(-2.0, 2.0, ["a", "b"]));
    let network = MlpActorCritic::new(&config, &obs_space(), &space, &device().autodiff(), rng).expect("valid");
    let (obs, action) = (Obs::new(tensor([ROWS, 3], 0.2)), tensor([ROWS, 2], 0.4));
    let Evaluation { log_prob, entropy, value, .. } = network.evaluate(obs.clone(), action.clone());
    // Not the sum of the losses of the parts.
    let host = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
    let loss = log_prob.sum() * value.clone().sum() + entropy.sum() * 0.1;
    let on = |n_threads: usize, n_shards: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
        pool.install(|| {
            gradient_in_shards(&network.valid(), &obs, &action, n_shards, &mut |[log_prob, _, values]| {
                close(values, &host(value.clone().inner()), "values");
                let (log_probs, values) = (log_prob.iter().sum(), values.iter().sum());
                Some([vec![values; ROWS], vec![0.1; ROWS], vec![log_probs; ROWS]])
            })
        })
    };
    let gradient = on(1, 3).expect("there are several parts");
    close(&gradient, &recorded(&loss, &network), "shards");
    assert_eq!(on(3, 3), Some(gradient));
    // Results that a loss ignores have empty lists.
    let of_lists = |lists: [Vec<f32>; 3]| {
        gradient_in_shards(&network.valid(), &obs, &action, 3, &mut |_| Some(lists.clone())).expect("several parts")
    };
    for used in 0..3 {
        let list = |i: usize, other: usize| vec![0.3; if i == used { ROWS } else { other }];
        let [empty, zeros] =
            [[0, 1, 2].map(|i| list(i, 0)), [0, 1, 2].map(|i| if i == used { list(i, 0) } else { vec![0.0; ROWS] })];
        close(&of_lists(empty), &of_lists(zeros), "empty lists");
    }
    assert!(on(1, ROWS + 1).is_some() && on(1, 1).is_none() && on(1, 0).is_none());
}

#[test]
fn a_deviation_that_depends_on_the_features_is_left_to_the_tape() {
    let config = ActorCriticConfig { std: StdKind::Dependent, ..Default::default() };
    let space = Space::uniform_box(-2.0, 2.0, ["a"]);
    let rng = &mut named_rng(3, "weights", 0);
    let network = MlpActorCritic::new(&config, &obs_space(), &space, &device(), rng).expect("valid");
    let obs = Obs::new(tensor([ROWS, 3], 0.2));
    assert!(network.gradient(&obs, &tensor([ROWS, 1], 0.1), &mut |_| unreachable!("there are no results")).is_none());
}

#[test]
fn of_q_networks() {
    for dueling in [false, true] {
        let config = QNetworkConfig { hidden: vec![6, 5], dueling, ..Default::default() };
        let rng = &mut named_rng(3, "weights", 0);
        let network = QNetwork::new(&config, &obs_space(), &Space::Discrete(4), &device().autodiff(), rng);
        let network = network.expect("valid");
        let obs = Obs::new(tensor([ROWS, 3], 0.2));
        let action = Tensor::<1, burn::tensor::Int>::arange(0..ROWS as i64, &device()).float() / 2.0;
        let action = action.int().float().unsqueeze_dim::<2>(1);
        let weights = tensor::<1>([ROWS], 0.5);
        let loss = (network.values_of(obs.clone(), action.clone()) * weights.clone()).sum();
        let analytic = network.valid().gradient(&obs, &action, &mut |_| Some([weights.to_data().iter().collect()]));
        close(&analytic.expect("it can"), &recorded(&loss, &network), "a Q-network");
        // The greedy choice without the tape is that of the values.
        let mask =
            Tensor::<2>::ones([ROWS, 4], &device()).slice_assign([0..ROWS, 2..3], Tensor::zeros([ROWS, 1], &device()));
        for mask in [None, Some(mask)] {
            let (choice, value) = network.valid().best(Obs { mask: mask.clone(), ..obs.clone() });
            let mut values = network.valid().values(obs.clone());
            if let Some(mask) = mask {
                values = values + (mask - 1.0) * 100.0;
            }
            assert_eq!(choice.into_data(), values.clone().argmax(1).float().into_data());
            assert_eq!(value.into_data(), values.max_dim(1).squeeze_dim::<1>(1).into_data());
        }
    }
}

/// Sequences of three steps, of two rows. The tape also gives the results step by step, by which a network without own methods is computed.
#[test]
fn of_q_networks_that_remember() {
    for (kind, encoder_hidden, dueling, hidden) in [
        (RecurrentKind::Lstm, vec![], false, vec![5]),
        (RecurrentKind::Gru, vec![4], true, vec![5]),
        (RecurrentKind::Gru, vec![4], true, vec![]),
        (RecurrentKind::Gru, vec![], false, vec![]),
    ] {
        let what = format!("{kind:?}, {encoder_hidden:?}, {hidden:?}, dueling: {dueling}");
        let config = RecurrentQNetworkConfig { kind, width: 6, encoder_hidden, hidden, dueling, ..Default::default() };
        let rng = &mut named_rng(3, "weights", 0);
        let network = RecurrentQNetwork::new(&config, &obs_space(), &Space::Discrete(4), &device().autodiff(), rng);
        let network = network.expect("valid");
        let obs = Obs::new(tensor([6, 3], 0.2));
        let action = Tensor::<2>::from_floats([[0.0], [3.0], [1.0], [2.0], [0.0], [1.0]], &device());
        let sequences = Sequences {
            state: tensor([2, network.state_width()], 0.9),
            starts: Tensor::from_floats([0.0, 0.0, 0.0, 1.0, 0.0, 0.0], &device()),
        };
        let weights = tensor::<1>([6], 0.5);
        let values = network.values_of_sequences(obs.clone(), action.clone(), &sequences);
        let loss = (values.clone() * weights.clone()).sum();
        let host = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
        let analytic = network.valid().gradient_of_sequences(&obs, &action, &sequences, &mut |[now]| {
            close(now, &host(values.clone().inner()), &what);
            Some([host(weights.clone())])
        });
        close(&analytic.expect("it can"), &recorded(&loss, &network), &what);

        let (plain, mut state, mut by_step) = (network.valid(), sequences.state.clone(), Vec::new());
        let after = plain.states_of_sequences(obs.clone(), &sequences);
        for step in 0..3 {
            let rows = 2 * step..2 * step + 2;
            let mut now = PolicyState { numbers: Some(state) };
            now.end(&sequences.starts.clone().slice(rows.clone()));
            let seen = Obs::new(obs.values.clone().slice(rows.clone()));
            let all = plain.values_from(seen, &mut now);
            by_step.extend(host(all.gather(1, action.clone().slice(rows.clone()).int()).squeeze_dim(1)));
            state = now.numbers.expect("it remembers");
            let flat = |states: Tensor<2>| states.into_data().iter::<f32>().collect::<Vec<f32>>();
            close(&flat(after.clone().slice(rows)), &flat(state.clone()), &what);
        }
        close(&by_step, &host(values.inner()), &what);
    }
}

#[test]
fn of_critics_and_their_actors() {
    let space = Space::uniform_box(-2.0, 2.0, ["a", "b"]);
    let device = device().autodiff();
    let rng = &mut named_rng(3, "weights", 0);
    let obs = Obs::new(tensor([ROWS, 3], 0.2));
    let action = tensor::<2>([ROWS, 2], 0.3).autodiff().require_grad();
    let weights = tensor::<2>([2, ROWS], 0.5);
    for layer_norm in [false, true] {
        let config = MlpCriticsConfig { hidden: vec![6, 5], layer_norm, ..Default::default() };
        let critics = MlpCritics::new(&config, &obs_space(), &space, &device, rng).expect("valid");
        let loss = (critics.values(obs.clone(), action.clone()) * weights.clone()).sum();
        let (plain, fixed) = (critics.valid(), action.clone().inner());
        let mut by_value = |_: [&[f32]; 1]| Some([weights.to_data().iter().collect()]);
        let analytic = plain.gradient(&obs, &fixed, CriticsInput::Parameters, &mut by_value).expect("it can");
        let by_action = plain.gradient(&obs, &fixed, CriticsInput::Actions, &mut by_value).expect("it can");
        let grads = loss.backward();
        let expected: Vec<f32> = action.grad(&grads).expect("a leaf").into_data().iter().collect();
        close(&by_action, &expected, "actions");
        let mut flat = Flat { gradients: &grads, all: Vec::new() };
        critics.visit(&mut flat);
        close(&analytic, &flat.all, "critics");
    }

    let config = SquashedActorConfig { hidden: vec![6, 5], ..Default::default() };
    let actor = SquashedActor::new(&config, &obs_space(), &space, &device, rng).expect("valid");
    let noise = tensor::<2>([ROWS, 2], 0.8);
    let (action, log_prob) = actor.rsample(obs.clone(), noise.clone());
    let (by_action, by_log_prob) = (tensor::<2>([ROWS, 2], 0.1), tensor::<1>([ROWS], 0.9));
    let loss = (action.clone() * by_action.clone()).sum() + (log_prob.clone() * by_log_prob.clone()).sum();
    let analytic = actor.valid().gradient(&obs, &noise, &mut |actions, [log_probs]| {
        assert_eq!(actions.to_data(), action.clone().inner().into_data());
        close(log_probs, &log_prob.to_data().iter::<f32>().collect::<Vec<_>>(), "log-probabilities");
        Some((by_action.to_data().iter().collect(), [by_log_prob.to_data().iter().collect()]))
    });
    close(&analytic.expect("it can"), &recorded(&loss, &actor), "an actor");
    assert!(actor.valid().gradient(&obs, &noise, &mut |_, _| None).is_none());

    let config = DeterministicActorConfig { hidden: vec![6, 5], ..Default::default() };
    let actor = DeterministicActor::new(&config, &obs_space(), &space, &device, rng).expect("valid");
    let action = actor.act(obs.clone(), Explore::Greedy).0;
    let loss = (action.clone() * by_action.clone()).sum();
    let analytic = actor.valid().gradient(&obs, &mut |actions, []| {
        assert_eq!(actions.to_data(), action.clone().inner().into_data());
        Some((by_action.to_data().iter().collect(), []))
    });
    close(&analytic.expect("it can"), &recorded(&loss, &actor), "a deterministic actor");
}

/// The actor of a network whose critic sees more.
#[test]
fn actors_do_not_depend_on_what_critics_alone_see() {
    let rng = &mut named_rng(3, "weights", 0);
    let spec = EnvSpec { privileged: 1..2, ..EnvSpec::new(obs_space(), Space::Discrete(4), 1) };
    let config = ActorCriticConfig { orthogonal: false, ..Default::default() };
    let network = MlpActorCritic::for_env(&config, &spec, &device(), rng).expect("valid");
    let rows = tensor::<2>([ROWS, 3], 0.2);
    let [first, middle, last] = [0, 1, 2].map(|column| rows.clone().narrow(1, column, 1));
    let own = Tensor::cat(vec![first.clone(), last.clone()], 1);
    let other = Tensor::cat(vec![first, middle * 2.0 + 1.0, last], 1);
    let noise = tensor::<2>([ROWS, network.noise().width], 0.3).abs();
    let act = |rows: &Tensor<2>| {
        let (action, decision) = network.act(Obs::new(rows.clone()), Explore::Sample(noise.clone()));
        (action.into_data(), decision.log_prob.into_data())
    };
    assert_eq!(act(&rows), act(&own));
    assert_eq!(act(&rows), act(&other));
    let value = |rows: &Tensor<2>| network.value(Obs::new(rows.clone())).into_data();
    assert_ne!(value(&rows), value(&other));
    let sizes = network.sizes().expect("they are known");
    assert_eq!((sizes.obs, sizes.privileged), (3, 1..2));
    assert_eq!(network.exported().expect("it has layers").obs_width, 2);
    let shared = ActorCriticConfig { shared_hidden: vec![8], ..config };
    let error = MlpActorCritic::for_env(&shared, &spec, &device(), rng).expect_err("they cannot share").to_string();
    let expected = "`shared_hidden` must not be set where the critic sees what the actor does not, got [8]";
    assert_eq!(error, expected);
}
