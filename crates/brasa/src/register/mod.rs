//! Registration of Brasa's algorithms, networks and scenarios for experiments.
//!
//! The data of a scenario's report sections are computed here, next to their scripts, so that simulators do not depend
//! on reports.

#[cfg(feature = "energy")]
mod energy;
#[cfg(feature = "evacuation")]
mod evacuation;
#[cfg(feature = "uara")]
mod networks;
mod templates;

use std::path::Path;

use brasa_env::{EnvSpec, Extensions};
use brasa_experiment::{ExperimentError, LoadedPolicy, NetworkKind, Registry};
use brasa_nn::{
    ActorCriticConfig, ActorCriticRole, CnnActorCritic, CnnActorCriticConfig, CnnQNetwork, CnnQNetworkConfig,
    CriticsRole, DeterministicActor, DeterministicActorConfig, DeterministicActorRole, MlpActorCritic, MlpCritics,
    MlpCriticsConfig, NnError, PairActorCritic, PairActorCriticConfig, PairQNetwork, PairQNetworkConfig, PairSpec,
    QNetwork, QNetworkConfig, RecurrentActorCritic, RecurrentActorCriticConfig, RecurrentQNetwork,
    RecurrentQNetworkConfig, SquashedActor, SquashedActorConfig, StochasticActorRole, TeamActorCritic,
    TeamActorCriticConfig, TeamActorCriticRole, TeamQNetwork, TeamQNetworkConfig, TeamValueRole, ValueRole,
    WindowActorCritic, WindowActorCriticConfig,
};
use burn::tensor::Device;

/// The algorithms that are compiled in, with their networks.
///
/// ```
/// use brasa::experiment::App;
///
/// let app = App::new("room").with(brasa::algorithms());
/// let list = app.run_from(["room", "list"])?;
/// # #[cfg(all(feature = "ppo", feature = "dqn"))]
/// assert!(list.contains("ppo") && list.contains("dqn"));
/// # Ok::<(), brasa::experiment::ExperimentError>(())
/// ```
pub fn algorithms() -> Registry {
    let mut registry = Registry::default();
    let algorithms = registry.algorithms();
    #[cfg(feature = "ppo")]
    algorithms.on_policy_with_teams("ppo", brasa_ppo::Ppo::new, brasa_ppo::Ppo::new);
    #[cfg(feature = "a2c")]
    algorithms.on_policy_with_teams("a2c", brasa_a2c::A2c::new, brasa_a2c::A2c::new);
    #[cfg(feature = "sac")]
    algorithms.actor_and_critics::<StochasticActorRole, _, _, _>("sac", brasa_sac::Sac::new);
    #[cfg(feature = "td3")]
    algorithms.actor_and_critics::<DeterministicActorRole, _, _, _>("td3", brasa_td3::Td3::new);
    #[cfg(feature = "dqn")]
    algorithms.values("dqn", brasa_dqn::Dqn::new, brasa_dqn::Dqn::new);
    networks(&mut registry);
    #[cfg(feature = "ppo")]
    registry.settings::<brasa_ppo::PpoConfig>("ppo", "Proximal policy optimization: on-policy, any actions");
    #[cfg(feature = "a2c")]
    registry.settings::<brasa_a2c::A2cConfig>("a2c", "Advantage actor-critic: on-policy, any actions");
    #[cfg(feature = "sac")]
    registry.settings::<brasa_sac::SacConfig>("sac", "Soft actor-critic: off-policy, continuous actions");
    #[cfg(feature = "td3")]
    registry.settings::<brasa_td3::Td3Config>(
        "td3",
        "Twin delayed deterministic policy gradients: off-policy, continuous actions",
    );
    #[cfg(feature = "dqn")]
    registry.settings::<brasa_dqn::DqnConfig>("dqn", "Deep Q-learning: off-policy, discrete actions");
    algorithm_rules(&mut registry);
    registry
}

/// The rules of the settings of the algorithms.
fn algorithm_rules(registry: &mut Registry) {
    #[cfg(feature = "ppo")]
    registry.rules("ppo", || drop(brasa_ppo::PpoConfig::default().validate()));
    #[cfg(feature = "a2c")]
    registry.rules("a2c", || drop(brasa_a2c::A2cConfig::default().validate()));
    #[cfg(feature = "sac")]
    registry.rules("sac", || drop(brasa_sac::SacConfig::default().validate()));
    #[cfg(feature = "td3")]
    registry.rules("td3", || drop(brasa_td3::Td3Config::default().validate()));
    #[cfg(feature = "dqn")]
    registry.rules("dqn", || drop(brasa_dqn::DqnConfig::default().validate()));
}

fn networks(registry: &mut Registry) {
    registry.settings::<ActorCriticConfig>("network", "Actor and critic of PPO and A2C: two multilayer perceptrons");
    registry.settings::<RecurrentActorCriticConfig>(
        "recurrent_network",
        "Actor and critic of PPO and A2C that remember, with LSTM or GRU",
    );
    registry.settings::<WindowActorCriticConfig>(
        "window_network",
        "Actor and critic of PPO and A2C on the last observations",
    );
    registry.settings::<PairActorCriticConfig>(
        "pair_network",
        "Actor and critic of PPO and A2C for actions that are pairs, such as station and channel",
    );
    registry.settings::<TeamActorCriticConfig>(
        "team_network",
        "Actors and critics of PPO and A2C for a team: what agents share is stored once",
    );
    registry.settings::<CnnActorCriticConfig>("cnn_network", "Actor and critic of PPO and A2C on images: convolutions");
    registry.settings::<CnnQNetworkConfig>("cnn_q_network", "Values of DQN for images: convolutions");
    #[cfg(feature = "gat")]
    registry.settings::<brasa_gat::GraphActorCriticConfig>(
        "graph_network",
        "Actor and critic of PPO and A2C over graphs, with attention",
    );
    registry.settings::<SquashedActorConfig>(
        "actor",
        "Actor of SAC: a multilayer perceptron with bounded Gaussian actions",
    );
    registry.settings::<DeterministicActorConfig>("deterministic_actor", "Actor of TD3: a multilayer perceptron");
    registry.settings::<MlpCriticsConfig>("critics", "Critics of SAC and TD3: multilayer perceptrons");
    registry.settings::<QNetworkConfig>("q_network", "Values of DQN: a multilayer perceptron");
    registry
        .settings::<RecurrentQNetworkConfig>("recurrent_q_network", "Values of DQN that remember, with LSTM or GRU");
    registry.settings::<PairQNetworkConfig>(
        "pair_q_network",
        "Values of DQN for actions that are pairs, such as station and channel",
    );
    registry.settings::<TeamQNetworkConfig>("team_q_network", "Values of DQN for a team with shared observations");
    registry.network(NetworkKind::<ActorCriticRole>::new("network", |config, cx| {
        MlpActorCritic::for_env(config, cx.spec, cx.device, &mut cx.rng())
    }));
    registry.network(NetworkKind::<ActorCriticRole>::new("recurrent_network", |config, cx| {
        RecurrentActorCritic::for_env(config, cx.spec, cx.device, &mut cx.rng())
    }));
    registry.network(NetworkKind::<ActorCriticRole>::new("window_network", |config, cx| {
        WindowActorCritic::new(config, &cx.spec.obs, &cx.spec.action, cx.device, &mut cx.rng())
    }));
    registry.network(NetworkKind::<TeamActorCriticRole>::new("team_network", |config, cx| {
        TeamActorCritic::new(config, cx.spec, cx.device, &mut cx.rng())
    }));
    // The default for images that its default convolutions fit.
    let images = |spec: &EnvSpec, _: &Extensions| match spec.obs.shape() {
        [first, middle, last] if first.max(last) >= &36 && middle >= &36 => Some(1),
        [_, _, _] => Some(0),
        _ => None,
    };
    let network = NetworkKind::<ActorCriticRole>::new("cnn_network", |config, cx| {
        CnnActorCritic::convolutional(config, cx.spec, cx.device, &mut cx.rng())
    });
    registry.network(network.fits(images));
    let values = NetworkKind::<ValueRole>::new("cnn_q_network", |config, cx| {
        CnnQNetwork::new(config, &cx.spec.obs, &cx.spec.action, cx.device, &mut cx.rng())
    });
    registry.network(values.fits(images));
    #[cfg(feature = "gat")]
    registry.network(graph_network());
    registry.network(NetworkKind::<StochasticActorRole>::new("actor", |config, cx| {
        SquashedActor::new(config, &cx.spec.obs, &cx.spec.action, cx.device, &mut cx.rng())
    }));
    registry.network(NetworkKind::<DeterministicActorRole>::new("deterministic_actor", |config, cx| {
        DeterministicActor::new(config, &cx.spec.obs, &cx.spec.action, cx.device, &mut cx.rng())
    }));
    registry.network(NetworkKind::<CriticsRole>::new("critics", |config, cx| {
        MlpCritics::new(config, &cx.spec.obs, &cx.spec.action, cx.device, &mut cx.rng())
    }));
    registry.network(NetworkKind::<ValueRole>::new("q_network", |config, cx| {
        QNetwork::new(config, &cx.spec.obs, &cx.spec.action, cx.device, &mut cx.rng())
    }));
    registry.network(NetworkKind::<ValueRole>::new("recurrent_q_network", |config, cx| {
        RecurrentQNetwork::new(config, &cx.spec.obs, &cx.spec.action, cx.device, &mut cx.rng())
    }));
    const PAIRS: &str = "says that its actions are pairs, such as uara";
    let has_pairs = |_: &EnvSpec, extensions: &Extensions| extensions.get::<PairSpec>().map(|_| 1);
    let pairs = NetworkKind::<ValueRole>::new("pair_q_network", |config, cx| {
        let spec = cx.extension::<PairSpec>("pair_q_network", PAIRS)?;
        PairQNetwork::new(config, *spec, cx.device, &mut cx.rng()).map_err(ExperimentError::input)
    });
    registry.network(pairs.fits(has_pairs));
    let pairs = NetworkKind::<ActorCriticRole>::new("pair_network", |config, cx| {
        let pairs = cx.extension::<PairSpec>("pair_network", PAIRS)?;
        PairActorCritic::new(config, *pairs, cx.spec, cx.device, &mut cx.rng()).map_err(ExperimentError::input)
    });
    registry.network(pairs.fits(has_pairs));
    let team = NetworkKind::<TeamValueRole>::new("team_q_network", |config, cx| -> Result<_, NnError> {
        TeamQNetwork::new(config, cx.spec.n_agents, &cx.spec.obs, &cx.spec.action, cx.device, &mut cx.rng())
    });
    // For agents with shared observations the batched network is the default.
    registry.network(team.fits(|spec: &EnvSpec, _| (spec.shared_width > 0).then_some(2)));
}

#[cfg(feature = "gat")]
fn graph_network() -> NetworkKind<ActorCriticRole> {
    use brasa_env::GraphWorld;
    use brasa_gat::{Graph, GraphActorCritic, GraphActorCriticConfig, Graphs};
    use brasa_nn::Boxed;

    const NEEDS: &str = "says which graphs its observations refer to, such as evacuation";
    /// The graphs on `device` without autodiff.
    fn table(world: &GraphWorld, device: &Device) -> Result<Graphs, ExperimentError> {
        let graphs = world.graphs.iter().map(|graph| {
            Graph::new(graph.n_nodes, graph.ends.clone())?.with_edge_features(graph.edge_width, graph.features.clone())
        });
        let graphs: Vec<Graph> = graphs.collect::<Result<_, _>>().map_err(ExperimentError::input)?;
        Graphs::new(graphs, &device.clone().without_autodiff()).map_err(ExperimentError::input)
    }
    let kind = NetworkKind::new("graph_network", |config: &GraphActorCriticConfig, cx| {
        let world = cx.extension::<GraphWorld>("graph_network", NEEDS)?;
        config.validate().map_err(ExperimentError::input)?;
        let table = table(world, cx.device)?;
        GraphActorCritic::new(config, world.spec, table, cx.device, &mut cx.rng()).map_err(ExperimentError::input)
    });
    kind.fits(|_, extensions| extensions.get::<GraphWorld>().map(|_| 1)).adapts(|network, cx| {
        let Some(graphs) = network.downcast_ref::<GraphActorCritic>() else { return Ok(network.clone()) };
        let world = cx.extension::<GraphWorld>("graph_network", NEEDS)?;
        let table = table(world, &graphs.graphs().device())?;
        Ok(Boxed::new(graphs.clone().with_graphs(table).map_err(ExperimentError::input)?))
    })
}

/// The scenarios that are compiled in, with their report sections.
///
/// ```
/// use brasa::experiment::App;
///
/// // Scenarios without any algorithm: baselines can be evaluated.
/// let app = App::new("room").with(brasa::scenarios());
/// # #[cfg(feature = "classic")]
/// assert!(app.run_from(["room", "list"])?.contains("cart-pole"));
/// # Ok::<(), brasa::experiment::ExperimentError>(())
/// ```
pub fn scenarios() -> Registry {
    #[allow(unused_mut, reason = "without any scenario there is nothing to add")]
    let mut registry = Registry::default();
    #[cfg(feature = "energy")]
    energy::register(&mut registry);
    #[cfg(feature = "evacuation")]
    evacuation::register(&mut registry);
    #[cfg(feature = "uara")]
    networks::register(&mut registry);
    #[cfg(feature = "classic")]
    classic::register(&mut registry);
    #[cfg(feature = "gym")]
    let gymnasium = brasa_experiment::ScenarioEntry::new("gymnasium", brasa_gym::Gymnasium::new);
    #[cfg(feature = "gym")]
    registry.scenario(gymnasium.programs(&["python"]));
    #[cfg(feature = "gym")]
    registry.settings::<brasa_gym::GymConfig>(
        "scenario.gymnasium",
        "Any environment of Gymnasium, in worker processes of Python",
    );
    #[cfg(feature = "gym")]
    registry.rules("scenario.gymnasium", || drop(brasa_gym::GymConfig::default().validate()));
    registry
}

#[cfg(feature = "classic")]
mod classic {
    //! Classic tasks.

    use std::convert::Infallible;

    use brasa_classic::{
        Acrobot, CartPole, CartPoleNoVelocity, Catch, Classic, ClassicConfig, Difficulty, MountainCar,
        MountainCarContinuous, MountainCarContinuousNoVelocity, Pendulum, PendulumNoVelocity, PopgymConfig, Reference,
        ReferenceConfig, Spread, SpreadConfig, Tag, TagConfig,
    };
    #[cfg(feature = "tensor")]
    use brasa_core::RuleTensors;
    use brasa_env::{Env, RuleEnv, Rules};
    use brasa_experiment::{Registry, ScenarioEntry};

    fn entry<R: Rules<STATE, ACTION, OBS>, const STATE: usize, const ACTION: usize, const OBS: usize>(
        name: &str,
        make: fn() -> Classic<RuleEnv<R, STATE, ACTION, OBS>>,
    ) -> ScenarioEntry<Classic<RuleEnv<R, STATE, ACTION, OBS>>> {
        let make = move |config: ClassicConfig| Ok::<_, Infallible>(make().with_precision(config.precision));
        ScenarioEntry::new(name, make)
    }

    /// Adds a task, for devices too.
    fn add<R: Rules<STATE, ACTION, OBS> + Default, const STATE: usize, const ACTION: usize, const OBS: usize>(
        registry: &mut Registry,
        task: ScenarioEntry<Classic<RuleEnv<R, STATE, ACTION, OBS>>>,
    ) {
        #[cfg(feature = "tensor")]
        let task = task.tensor(|task, _| {
            let rules = RuleTensors::<R, STATE, ACTION, OBS>::new(R::default());
            Ok::<_, Infallible>((rules, Some(task.time_limit())))
        });
        registry.scenario(task);
    }

    pub fn register(registry: &mut Registry) {
        let cart_pole = entry("cart-pole", Classic::<CartPole>::cart_pole)
            .playable(include_str!("../../reports/classic/cart_pole.js"));
        add(registry, cart_pole);
        add(registry, entry("pendulum", Classic::<Pendulum>::pendulum));
        add(registry, entry("acrobot", Classic::<Acrobot>::acrobot));
        add(registry, entry("mountain-car", Classic::<MountainCar>::mountain_car));
        add(registry, entry("mountain-car-continuous", Classic::<MountainCarContinuous>::mountain_car_continuous));
        add(registry, entry("catch", Classic::<Catch>::catch));
        add(registry, entry("cart-pole-no-velocity", Classic::<CartPoleNoVelocity>::cart_pole_no_velocity));
        add(registry, entry("pendulum-no-velocity", Classic::<PendulumNoVelocity>::pendulum_no_velocity));
        let car = Classic::<MountainCarContinuousNoVelocity>::mountain_car_continuous_no_velocity;
        add(registry, entry("mountain-car-continuous-no-velocity", car));
        for (name, about) in [
            ("cart-pole", "Gymnasium's CartPole-v1: keep a pole upright on a cart"),
            ("pendulum", "Gymnasium's Pendulum-v1: swing a pendulum up and hold it"),
            ("acrobot", "Gymnasium's Acrobot-v1: swing two links up to a height"),
            ("mountain-car", "Gymnasium's MountainCar-v0: drive a weak car up a hill"),
            ("mountain-car-continuous", "Gymnasium's MountainCarContinuous-v0: the same car with continuous power"),
            ("catch", "bsuite's Catch: move a paddle below a falling ball, seen as an image of 10 x 5 pixels"),
            ("cart-pole-no-velocity", "CartPole without speeds: for policies that remember"),
            ("pendulum-no-velocity", "Pendulum without its speed: for policies that remember"),
            (
                "mountain-car-continuous-no-velocity",
                "MountainCarContinuous without its speed: for policies that remember",
            ),
        ] {
            registry.settings::<ClassicConfig>(&format!("scenario.{name}"), about);
        }
        let spread = ScenarioEntry::new("simple-spread", Spread::new);
        #[cfg(feature = "tensor")]
        let spread = spread.tensor(|spread: &Spread, device| {
            let (tensors, steps) = spread.tensors(device);
            Ok::<_, Infallible>((tensors, Some(steps)))
        });
        registry.scenario(spread);
        registry
            .settings::<SpreadConfig>("scenario.simple-spread", "MPE's Simple Spread: agents cover landmarks together");
        registry.rules("scenario.simple-spread", || drop(SpreadConfig::default().validate()));
        registry.scenario(ScenarioEntry::new("simple-reference", Reference::new));
        registry.settings::<ReferenceConfig>(
            "scenario.simple-reference",
            "MPE's Simple Reference: two agents tell each other where to go",
        );
        registry.rules("scenario.simple-reference", || drop(ReferenceConfig::default().validate()));
        registry.scenario(ScenarioEntry::new("simple-tag", Tag::new));
        registry.settings::<TagConfig>("scenario.simple-tag", "MPE's Simple Tag: predators chase a faster prey");
        registry.rules("scenario.simple-tag", || drop(TagConfig::default().validate()));
        memory(registry);
    }

    /// A task of POPGym.
    fn add_memory<E: Env>(registry: &mut Registry, name: &str, about: &str, make: fn(Difficulty) -> Classic<E>) {
        let make = move |config: PopgymConfig| {
            Ok::<_, Infallible>(make(config.difficulty).with_previous_action(config.previous_action))
        };
        registry.scenario(ScenarioEntry::new(name, make));
        registry.settings::<PopgymConfig>(&format!("scenario.{name}"), about);
    }

    fn memory(registry: &mut Registry) {
        let about = "POPGym's RepeatFirst: name the suit of the first card";
        add_memory(registry, "repeat-first", about, Classic::repeat_first);
        let about = "POPGym's RepeatPrevious: name the suit of the card some steps before";
        add_memory(registry, "repeat-previous", about, Classic::repeat_previous);
        let about = "POPGym's CountRecall: say how many cards of a kind have been dealt";
        add_memory(registry, "count-recall", about, Classic::count_recall);
        let about = "POPGym's Autoencode: name the suits of a deck in reverse order";
        add_memory(registry, "autoencode", about, Classic::autoencode);
        let about = "POPGym's PositionOnlyCartPole: CartPole that sees its place and angle";
        add_memory(registry, "position-only-cart-pole", about, Classic::position_only_cart_pole);
        let about = "POPGym's NoisyPositionOnlyCartPole: the same with noise in what it sees";
        add_memory(registry, "noisy-position-only-cart-pole", about, Classic::noisy_position_only_cart_pole);
    }
}

/// All scenarios, algorithms and networks that are compiled in.
///
/// ```
/// use brasa::experiment::App;
///
/// let text = "[scenario.cart-pole]\n[ppo]\nn_steps = 64\n";
/// # #[cfg(all(feature = "classic", feature = "ppo"))] {
/// let registry = brasa::registry();
/// let experiment = registry.parse(text, "cart_pole.toml", &["ppo.n_steps=128".to_owned()])?;
/// # drop(experiment);
/// # }
/// # Ok::<(), brasa::experiment::ExperimentError>(())
/// ```
pub fn registry() -> Registry {
    let mut registry = algorithms();
    registry.extend(scenarios());
    templates::register(&mut registry);
    registry
}

/// The policy in the latest checkpoint of the run in `path`, on `device`, without autodiff, for any algorithm, network and scenario
/// that is compiled in. A program with custom scenarios uses [`brasa_experiment::load_policy`] with its registry.
///
/// ```
/// use brasa::experiment::App;
///
/// # let dir = tempfile::tempdir()?;
/// # let (config, run) = (dir.path().join("config.toml"), dir.path().join("run"));
/// # let (config, run) = (config.to_str().expect("UTF-8"), run.to_str().expect("UTF-8"));
/// # std::fs::write(config, "[scenario.cart-pole]\n[train]\ntotal_env_steps = 64\nn_envs = 4\n[ppo]\nn_steps = 16\n")?;
/// App::new("room").with(brasa::registry()).run_from(["room", "train", "--quiet", "--out", run, config])?;
/// let device = brasa::device::open_named("cpu")?;
/// let policy = brasa::load_policy(run, &device)?;
/// let action = policy.act_one(&[0.0, 0.0, 0.1, 0.0], None)?;
/// assert!(action == [0.0] || action == [1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ExperimentError`] if there is no run, its experiment has unknown names, or no checkpoint is complete.
pub fn load_policy(path: impl AsRef<Path>, device: &Device) -> Result<LoadedPolicy, ExperimentError> {
    brasa_experiment::load_policy(&registry(), path, device)
}
