//! Algorithms by the name of their section: training, and loading of trained policies.

use std::any::Any;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use brasa_buffers::{Compact, Rollout, Transitions};
use brasa_core::{ActorCritic, Greedy, Obs, OffPolicyLearner, OnPolicyLearner, Policy, RandomWarmup, TeamObs};
use brasa_env::{EnvSpec, Extensions, field};
use brasa_nn::{ActorCriticRole, Boxed, CriticsRole, Persist, Role, TeamActorCriticRole, TeamValueRole, ValueRole};
use brasa_train::{Checkpoint, Footprint, OffPolicy, OffPolicyConfig, OnPolicy, restore_policy};
use burn::tensor::{Device, Tensor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BoxedEnv, ExperimentObs, NetworkContext, NetworkPlan, Networks, Size, SizeOf};
use crate::ExperimentError;
use crate::policy::LoadedPolicy;
use crate::session::{Context, Session};
use crate::source::Source;

/// An algorithm that experiments may name.
///
/// [`Algorithms`] creates one from the constructor of a learner. Other algorithms implement this trait.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_core::{Obs, OnPolicyLearner};
/// # use brasa_nn::ActorCriticRole;
/// # use brasa_train::{Checkpoint, OnPolicy, restore_policy};
/// # use std::path::Path;
/// use brasa_experiment::{Algorithm, ExperimentError, Plan, Sections};
/// # use brasa_experiment::{App, Context, LoadedPolicy, NetworkPlan, PolicyContext, Session};
///
/// # struct OwnPlan {
/// #     config: FixedConfig,
/// #     network: NetworkPlan<ActorCriticRole>,
/// # }
/// # impl Plan for OwnPlan {
/// #     fn replays(&self) -> bool {
/// #         false
/// #     }
/// #     fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
/// #         let network = self.network.build(&context.network(0))?;
/// #         let learner = Fixed::new(network, self.config.clone(), context.seed()).map_err(ExperimentError::input)?;
/// #         let training = OnPolicy::new(context.envs::<Obs>(learner.gamma())?, learner, context.run())?;
/// #         Ok(Session::new(training, context.spec(), |policy, _| Ok(policy.clone())))
/// #     }
/// #     fn policy(
/// #         &self,
/// #         context: &PolicyContext<'_>,
/// #         checkpoint: &Checkpoint,
/// #         path: &Path,
/// #     ) -> Result<LoadedPolicy, ExperimentError> {
/// #         let network = restore_policy(self.network.build(&context.network())?, checkpoint, path)?;
/// #         LoadedPolicy::restored(network, context, checkpoint, path, |policy, _| Ok(policy.clone()))
/// #     }
/// # }
/// struct Own;
///
/// impl Algorithm for Own {
///     fn name(&self) -> &str {
///         "own"
///     }
///     fn plan(&self, sections: &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError> {
///         Ok(Box::new(OwnPlan { config: sections.config("own")?, network: sections.network()? }))
///     }
/// }
///
/// let mut registry = registry();
/// registry.algorithms().add(Own);
/// let experiment = registry.parse("[scenario.pole]\n[own]\nn_steps = 64\n", "own.toml", &[])?;
/// assert_eq!(experiment.algorithm, "own");
/// # Ok::<(), brasa_experiment::ExperimentError>(())
/// ```
pub trait Algorithm: Send + Sync {
    /// Name of the section.
    fn name(&self) -> &str;

    /// Reads the section of the algorithm and those of its parts.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if a section cannot be used.
    fn plan(&self, sections: &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError>;
}

/// An algorithm with its settings and networks.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_core::{Obs, OnPolicyLearner};
/// # use brasa_nn::ActorCriticRole;
/// # use brasa_train::{Checkpoint, OnPolicy, restore_policy};
/// # use std::path::Path;
/// use brasa_experiment::{App, Context, ExperimentError, LoadedPolicy, NetworkPlan, Plan, PolicyContext, Session};
/// # use brasa_experiment::{Algorithm, Sections};
///
/// struct OwnPlan {
///     config: FixedConfig,
///     network: NetworkPlan<ActorCriticRole>,
/// }
///
/// impl Plan for OwnPlan {
///     fn replays(&self) -> bool {
///         false
///     }
///     fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
///         let network = self.network.build(&context.network(0))?;
///         let learner = Fixed::new(network, self.config.clone(), context.seed()).map_err(ExperimentError::input)?;
///         let training = OnPolicy::new(context.envs::<Obs>(learner.gamma())?, learner, context.run())?;
///         Ok(Session::new(training, context.spec(), |policy, _| Ok(policy.clone())))
///     }
///     fn policy(
///         &self,
///         context: &PolicyContext<'_>,
///         checkpoint: &Checkpoint,
///         path: &Path,
///     ) -> Result<LoadedPolicy, ExperimentError> {
///         let network = restore_policy(self.network.build(&context.network())?, checkpoint, path)?;
///         LoadedPolicy::restored(network, context, checkpoint, path, |policy, _| Ok(policy.clone()))
///     }
/// }
///
/// # struct Own;
/// #
/// # impl Algorithm for Own {
/// #     fn name(&self) -> &str {
/// #         "own"
/// #     }
/// #     fn plan(&self, sections: &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError> {
/// #         Ok(Box::new(OwnPlan { config: sections.config("own")?, network: sections.network()? }))
/// #     }
/// # }
/// // `Own` is an `Algorithm` that makes this plan.
/// # let dir = tempfile::tempdir()?;
/// # let (config, out) = (dir.path().join("own.toml"), dir.path().join("run"));
/// # std::fs::write(&config, CONFIG.replace("[learner]", "[own]"))?;
/// # let (config, out) = (config.display().to_string(), out.display().to_string());
/// let app = App::new("own").with(registry()).algorithm(Own);
/// app.run_from(["own", "train", "--quiet", "--out", &out, &config])?;
/// assert!(std::path::Path::new(&out).join("checkpoints").is_dir());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Plan: Send {
    /// Whether the algorithm learns from stored transitions. The scale of rewards must then not change during training.
    fn replays(&self) -> bool;

    /// Creates the learner, the environments and the loop.
    ///
    /// # Errors
    /// If a setting or an environment cannot be used.
    fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError>;

    /// Measures memory and work of a run on small parts of it. `None`, the default, if it cannot be measured.
    ///
    /// # Errors
    /// If a setting or an environment cannot be used.
    fn footprint(&self, _context: &Context<'_>) -> Result<Option<Footprint>, ExperimentError> {
        Ok(None)
    }

    /// The settings that need memory, in the order in which to lower them if a run does not fit. Default none.
    fn sizes(&self) -> Vec<Size> {
        Vec::new()
    }

    /// Whether checkpoints contain a replay buffer. Default no.
    fn saves_replay(&self) -> bool {
        false
    }

    /// Loads the policy of a checkpoint at `path`.
    ///
    /// # Errors
    /// If the checkpoint belongs to another network.
    fn policy(
        &self,
        context: &PolicyContext<'_>,
        checkpoint: &Checkpoint,
        path: &Path,
    ) -> Result<LoadedPolicy, ExperimentError>;
}

/// The environments and device for which a policy is loaded.
///
/// ```
/// use brasa_env::{EnvSpec, Extensions, Space};
/// use brasa_experiment::PolicyContext;
///
/// let device = brasa_device::open_named("cpu")?;
/// let (spec, extensions) = (EnvSpec::new(Space::Discrete(3), Space::Discrete(2), 1), Extensions::default());
/// let context = PolicyContext { spec: &spec, extensions: &extensions, device: &device };
/// // Initial weights of a network that is then loaded have any seed.
/// assert_eq!((context.network().seed, context.network().index), (0, 0));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PolicyContext<'a> {
    /// Spaces and sizes of the environments.
    pub spec: &'a EnvSpec,
    /// Additional data of the scenario, such as graphs.
    pub extensions: &'a Extensions,
    /// The device of the policy, without autodiff.
    pub device: &'a Device,
}

impl PolicyContext<'_> {
    /// The context of a network whose initial weights will be replaced.
    pub fn network(&self) -> NetworkContext<'_> {
        NetworkContext { spec: self.spec, extensions: self.extensions, device: self.device, seed: 0, index: 0 }
    }
}

/// The sections of an experiment, read one by one. The sections that are read belong to the algorithm.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_core::{Obs, OnPolicyLearner};
/// # use brasa_nn::ActorCriticRole;
/// # use brasa_train::{Checkpoint, OnPolicy, restore_policy};
/// # use std::path::Path;
/// use brasa_experiment::{Algorithm, ExperimentError, NetworkPlan, Plan, Sections};
/// # use brasa_experiment::{App, Context, LoadedPolicy, PolicyContext, Session};
///
/// # struct OwnPlan {
/// #     config: FixedConfig,
/// #     network: NetworkPlan<ActorCriticRole>,
/// # }
/// # impl Plan for OwnPlan {
/// #     fn replays(&self) -> bool {
/// #         false
/// #     }
/// #     fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
/// #         let network = self.network.build(&context.network(0))?;
/// #         let learner = Fixed::new(network, self.config.clone(), context.seed()).map_err(ExperimentError::input)?;
/// #         let training = OnPolicy::new(context.envs::<Obs>(learner.gamma())?, learner, context.run())?;
/// #         Ok(Session::new(training, context.spec(), |policy, _| Ok(policy.clone())))
/// #     }
/// #     fn policy(
/// #         &self,
/// #         context: &PolicyContext<'_>,
/// #         checkpoint: &Checkpoint,
/// #         path: &Path,
/// #     ) -> Result<LoadedPolicy, ExperimentError> {
/// #         let network = restore_policy(self.network.build(&context.network())?, checkpoint, path)?;
/// #         LoadedPolicy::restored(network, context, checkpoint, path, |policy, _| Ok(policy.clone()))
/// #     }
/// # }
/// struct Own;
///
/// impl Algorithm for Own {
///     fn name(&self) -> &str {
///         "own"
///     }
///     fn plan(&self, sections: &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError> {
///         Ok(Box::new(OwnPlan { config: sections.config("own")?, network: sections.network()? }))
///     }
/// }
///
/// # let mut registry = registry();
/// # registry.algorithms().add(Own);
/// // A section that no part reads is an error.
/// let text = "[scenario.pole]\n[own]\n[off_policy]\nbatch_size = 64\n";
/// assert!(registry.parse(text, "own.toml", &[]).is_err());
/// ```
#[derive(Debug)]
pub struct Sections<'a> {
    pub(crate) source: &'a Source,
    pub(crate) networks: &'a Networks,
    pub(crate) spec: &'a EnvSpec,
    pub(crate) extensions: &'a Extensions,
    /// The policy of each agent; empty if all share one.
    pub(crate) policies: &'a [usize],
    /// The sections that were read, in this order, with all defaults written out.
    pub(crate) resolved: Vec<(String, toml::Value)>,
}

impl Sections<'_> {
    /// The section `name`, or its defaults.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for an unknown field or an invalid value.
    pub fn config<C: Serialize + DeserializeOwned + Default>(&mut self, name: &str) -> Result<C, ExperimentError> {
        let config: C = self.source.section(name)?;
        let resolved = toml::Value::try_from(&config).map_err(ExperimentError::input)?;
        self.resolved.push((name.to_owned(), resolved));
        Ok(config)
    }

    /// The network for a role: the one whose section the experiment has, or the kind that fits the environments best. An actor-critic has a network
    /// for each policy in `train.policies`.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if there are several, none is registered, or the section cannot be used.
    pub fn network<R: Role>(&mut self) -> Result<NetworkPlan<R>, ExperimentError> {
        let given = self.given(&self.networks.sections_of::<R>())?;
        let section = match given {
            Some(section) => section,
            None => match self.networks.best_fit::<R>(self.spec, self.extensions) {
                Some((_, section)) => section.to_owned(),
                None => return Err(ExperimentError::Input(format!("no network is registered for {}", R::NAME))),
            },
        };
        let (resolved, plan) = self.networks.read(&section, self.source)?;
        self.resolved.push((section, resolved));
        let mut plan = Some(plan);
        if let Some(plan) = (&mut plan as &mut dyn Any).downcast_mut::<Option<NetworkPlan<ActorCriticRole>>>() {
            *plan = plan.take().map(|plan| plan.separate(self.policies));
        }
        Ok(plan.expect("it was put back"))
    }

    /// The one of `sections` that the experiment has, if any.
    fn given(&self, sections: &[&str]) -> Result<Option<String>, ExperimentError> {
        let given: Vec<&str> = sections.iter().copied().filter(|section| self.source.has(section)).collect();
        match given[..] {
            [] => Ok(None),
            [section] => Ok(Some(section.to_owned())),
            _ => Err(ExperimentError::Input(format!(
                "an experiment has one network for each role, found [{}]",
                given.join("] and [")
            ))),
        }
    }

    /// Whether to use a network of role `B` instead of `A`. The section in the experiment determines it, or else the better fit
    /// to the environments.
    fn prefers<A: Role, B: Role>(&self) -> Result<bool, ExperimentError> {
        let (a, b) = (self.networks.sections_of::<A>(), self.networks.sections_of::<B>());
        if let Some(given) = self.given(&[&a[..], &b[..]].concat())? {
            return Ok(b.contains(&given.as_str()));
        }
        let fit = |best: Option<(u32, &str)>| best.map(|(fit, _)| fit);
        let best = [
            self.networks.best_fit::<A>(self.spec, self.extensions),
            self.networks.best_fit::<B>(self.spec, self.extensions),
        ];
        let [a, b] = best.map(fit);
        Ok(b > a)
    }
}

/// The algorithms of a program.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::Registry;
///
/// let mut registry = Registry::default();
/// registry.algorithms().on_policy("learner", Fixed::new);
/// assert_eq!(format!("{:?}", registry.algorithms()), "[\"learner\"]");
/// ```
#[derive(Default)]
pub struct Algorithms(pub(crate) Vec<Box<dyn Algorithm>>);

impl std::fmt::Debug for Algorithms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|algorithm| algorithm.name())).finish()
    }
}

impl Algorithms {
    /// Adds an algorithm of any form.
    pub fn add(&mut self, algorithm: impl Algorithm + 'static) {
        self.0.push(Box::new(algorithm));
    }

    /// Adds an on-policy algorithm with an actor-critic. `new` is its constructor, with network, settings and seed.
    pub fn on_policy<C, L, E>(
        &mut self,
        name: &str,
        new: impl Fn(Boxed<ActorCriticRole>, C, u64) -> Result<L, E> + Send + Sync + 'static,
    ) where
        C: Settings,
        L: RolloutLearner,
        E: std::fmt::Display + 'static,
    {
        let new = Arc::new(new);
        self.plan(name, move |name, sections| rollout_plan(name, sections, new.clone()));
    }

    /// [`Algorithms::on_policy`] with a second constructor, for networks that compute all agents of a team together. Both take network, settings and
    /// seed.
    pub fn on_policy_with_teams<C, L, T, E>(
        &mut self,
        name: &str,
        of_rows: impl Fn(Boxed<ActorCriticRole>, C, u64) -> Result<L, E> + Send + Sync + 'static,
        of_team: impl Fn(Boxed<TeamActorCriticRole>, C, u64) -> Result<T, E> + Send + Sync + 'static,
    ) where
        C: Settings,
        L: RolloutLearner,
        T: RolloutLearner<TeamActorCriticRole>,
        E: std::fmt::Display + 'static,
    {
        let (of_rows, of_team) = (Arc::new(of_rows), Arc::new(of_team));
        self.plan(name, move |name, sections| match sections.prefers::<ActorCriticRole, TeamActorCriticRole>()? {
            true => {
                let rule = "must be empty for the network of a team, whose own settings have this meaning";
                let policies = format!("{:?}", sections.policies);
                field::rule(sections.policies.is_empty(), "train.policies", rule, policies)
                    .map_err(ExperimentError::input)?;
                rollout_plan(name, sections, of_team.clone())
            }
            false => rollout_plan(name, sections, of_rows.clone()),
        });
    }

    /// Adds an off-policy algorithm with an actor and critics. `new` is its constructor, with actor, critics, settings and seed.
    /// `A` is the role of the actor.
    pub fn actor_and_critics<A, C, L, E>(
        &mut self,
        name: &str,
        new: impl Fn(Boxed<A>, Boxed<CriticsRole>, C, u64) -> Result<L, E> + Send + Sync + 'static,
    ) where
        A: Role,
        A::Object: Policy<Obs = Obs, Action = Tensor<2>, Extra = ()>,
        C: Settings,
        L: ReplayLearner<Obs>,
        E: std::fmt::Display + 'static,
    {
        let new = Arc::new(new);
        self.plan(name, move |name, sections| {
            let (config, section, new): (C, _, _) = (sections.config(name)?, name.to_owned(), new.clone());
            let (actor, critics) = (sections.network::<A>()?, sections.network::<CriticsRole>()?);
            let of_learner = actor.clone();
            let learner = move |context: &Context<'_>| {
                let actor = of_learner.build(&context.network(0))?;
                let critics = critics.build(&context.network(1))?;
                new(actor, critics, config.clone(), context.seed()).map_err(ExperimentError::in_section(&section))
            };
            ReplayPlan::<Obs, L>::boxed(name, sections, learner, move |context, checkpoint, path| {
                let actor = restored(&actor, context, checkpoint, path)?;
                LoadedPolicy::restored(actor, context, checkpoint, path, unchanged)
            })
        });
    }

    /// Adds an off-policy algorithm that learns action values. The constructors take network and settings: one is for single
    /// rows, the other for a team.
    pub fn values<C, L, T, E>(
        &mut self,
        name: &str,
        of_rows: impl Fn(Boxed<ValueRole>, C) -> Result<L, E> + Send + Sync + 'static,
        of_team: impl Fn(Boxed<TeamValueRole>, C) -> Result<T, E> + Send + Sync + 'static,
    ) where
        C: Settings,
        L: ReplayLearner<Obs>,
        T: ReplayLearner<TeamObs>,
        E: std::fmt::Display + 'static,
    {
        let (of_rows, of_team) = (Arc::new(of_rows), Arc::new(of_team));
        self.plan(name, move |name, sections| match sections.prefers::<ValueRole, TeamValueRole>()? {
            true => values_plan(name, sections, of_team.clone()),
            false => values_plan(name, sections, of_rows.clone()),
        });
    }

    /// Adds an algorithm whose plan is made by `plan` from its name and the sections of an experiment.
    fn plan(
        &mut self,
        name: &str,
        plan: impl Fn(&str, &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError> + Send + Sync + 'static,
    ) {
        self.add(Named { name: name.to_owned(), plan });
    }
}

/// Settings of an algorithm: a section of an experiment.
///
/// ```
/// use brasa_experiment::Settings;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
/// #[serde(default, deny_unknown_fields)]
/// struct OwnConfig {
///     gamma: f64,
/// }
///
/// impl Default for OwnConfig {
///     fn default() -> Self {
///         Self { gamma: 0.99 }
///     }
/// }
///
/// fn defaults<C: Settings>() -> C {
///     C::default()
/// }
/// assert_eq!(defaults::<OwnConfig>().gamma, 0.99);
/// ```
pub trait Settings: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static {}
impl<C: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static> Settings for C {}

/// An on-policy learner that experiments can run, with networks of the role `R`.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::RolloutLearner;
///
/// /// Steps of one environment per rollout.
/// fn n_steps(learner: &impl RolloutLearner) -> usize {
///     learner.n_steps()
/// }
///
/// // `Fixed` implements `OnPolicyLearner` and `Persist`, with a policy of any network.
/// # let device = brasa_device::open_named("cpu")?.autodiff();
/// # let (obs, action) = (brasa_env::Space::uniform_box(-1.0, 1.0, ["x"]), brasa_env::Space::Discrete(2));
/// # let mut rng = brasa_env::named_rng(0, "weights", 0);
/// # let network = brasa_nn::MlpActorCritic::new(&Default::default(), &obs, &action, &device, &mut rng)?;
/// let learner = Fixed::new(brasa_nn::Boxed::new(network), FixedConfig::default(), 0)?;
/// assert_eq!(n_steps(&learner), 128);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RolloutLearner<R: Role<Object: ActorCritic> = ActorCriticRole>:
    OnPolicyLearner<Batch = Rollout<<R::Object as Policy>::Obs, Tensor<2>>, Policy = Boxed<R>> + Persist + Send + 'static
{
}
impl<R: Role<Object: ActorCritic>, L> RolloutLearner<R> for L where
    L: OnPolicyLearner<Batch = Rollout<<R::Object as Policy>::Obs, Tensor<2>>, Policy = Boxed<R>>
        + Persist
        + Send
        + 'static
{
}

/// An off-policy learner that experiments can run; `O` is the form of its observations.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_core::Obs;
/// use brasa_experiment::ReplayLearner;
///
/// /// The discount that a replay buffer uses for this learner.
/// fn discount(learner: &impl ReplayLearner<Obs>) -> f64 {
///     learner.gamma()
/// }
///
/// // `FixedReplay` implements `OffPolicyLearner` and `Persist`, with an actor of any network.
/// # let device = brasa_device::open_named("cpu")?.autodiff();
/// # let obs = brasa_env::Space::uniform_box(-1.0, 1.0, ["x"]);
/// # let mut rng = brasa_env::named_rng(0, "weights", 0);
/// # let actor = brasa_nn::SquashedActor::new(&Default::default(), &obs, &obs, &device, &mut rng)?;
/// let learner = FixedReplay::new(brasa_nn::Boxed::new(actor))?;
/// assert_eq!(discount(&learner), 0.99);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ReplayLearner<O>:
    OffPolicyLearner<
        Batch = Transitions<O, Tensor<2>>,
        Policy: RandomWarmup<Obs = O, Action = Tensor<2>> + Clone + Send + Sync + 'static,
    > + Persist
    + Send
    + 'static
{
}
impl<O, L> ReplayLearner<O> for L where
    L: OffPolicyLearner<
            Batch = Transitions<O, Tensor<2>>,
            Policy: RandomWarmup<Obs = O, Action = Tensor<2>> + Clone + Send + Sync + 'static,
        > + Persist
        + Send
        + 'static
{
}

/// Creates a network and loads the weights of the policy.
fn restored<R: Role>(
    plan: &NetworkPlan<R>,
    context: &PolicyContext<'_>,
    checkpoint: &Checkpoint,
    path: &Path,
) -> Result<Boxed<R>, ExperimentError> {
    Ok(restore_policy(plan.build(&context.network())?, checkpoint, path)?)
}

/// See [`Algorithms::plan`].
struct Named<F> {
    name: String,
    plan: F,
}

impl<F> Algorithm for Named<F>
where
    F: Fn(&str, &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn plan(&self, sections: &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError> {
        (self.plan)(&self.name, sections)
    }
}

/// See [`Algorithms::on_policy`].
struct RolloutPlan<R: Role, L> {
    name: String,
    learner: Box<NewLearner<L>>,
    network: NetworkPlan<R>,
}

/// The plan of an algorithm that learns from rollouts.
fn rollout_plan<R, C, L, E>(
    name: &str,
    sections: &mut Sections<'_>,
    new: Arc<impl Fn(Boxed<R>, C, u64) -> Result<L, E> + Send + Sync + 'static>,
) -> Result<Box<dyn Plan>, ExperimentError>
where
    R: Role<Object: ActorCritic<Obs: ExperimentObs, Action = Tensor<2>>>,
    C: Settings,
    L: RolloutLearner<R>,
    E: std::fmt::Display + 'static,
{
    let (config, network): (C, NetworkPlan<R>) = (sections.config(name)?, sections.network()?);
    let (of_learner, section) = (network.clone(), name.to_owned());
    let learner = move |context: &Context<'_>| {
        let network = of_learner.build(&context.network(0))?;
        new(network, config.clone(), context.seed()).map_err(ExperimentError::in_section(&section))
    };
    Ok(Box::new(RolloutPlan { name: name.to_owned(), learner: Box::new(learner), network }))
}

impl<R: Role, L> RolloutPlan<R, L> {
    /// Adapts policies to other scenarios of the same kind.
    fn adapting(
        &self,
    ) -> impl Fn(&Boxed<R>, &PolicyContext<'_>) -> Result<Boxed<R>, ExperimentError> + Send + Sync + use<R, L> {
        let adapt = self.network.adapter();
        move |network, context| adapt(network, &context.network())
    }
}

impl<R, L> Plan for RolloutPlan<R, L>
where
    R: Role<Object: ActorCritic<Obs: ExperimentObs, Action = Tensor<2>>>,
    L: RolloutLearner<R>,
{
    fn replays(&self) -> bool {
        false
    }

    fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
        let learner = context.recorded((self.learner)(&context)?);
        let training =
            OnPolicy::new(context.envs::<<R::Object as Policy>::Obs>(learner.gamma())?, learner, context.run)?;
        let training = training.pipelined(context.is_pipelined());
        Ok(Session::new(training, context.spec, self.adapting()))
    }

    fn footprint(&self, context: &Context<'_>) -> Result<Option<Footprint>, ExperimentError> {
        let learner = || Ok(context.recorded((self.learner)(context)?));
        let gamma = (self.learner)(context)?.gamma();
        let envs = |n| context.envs_of::<<R::Object as Policy>::Obs>(n, gamma);
        OnPolicy::footprint(envs, learner, context.n_envs(), context.run)
    }

    fn sizes(&self) -> Vec<Size> {
        let of = |key, of| Size::new(&self.name, key, of);
        vec![Size::of_parts(&self.name), of("batch_size", SizeOf::Batch), of("n_steps", SizeOf::Rollout)]
    }

    fn policy(
        &self,
        context: &PolicyContext<'_>,
        checkpoint: &Checkpoint,
        path: &Path,
    ) -> Result<LoadedPolicy, ExperimentError> {
        let network = restored(&self.network, context, checkpoint, path)?;
        LoadedPolicy::restored(network, context, checkpoint, path, self.adapting())
    }
}

/// The section with the loop and the replay buffer of off-policy algorithms.
pub(crate) const OFF_POLICY: &str = "off_policy";

/// An off-policy algorithm with its settings and networks.
struct ReplayPlan<O, L> {
    name: String,
    off_policy: OffPolicyConfig,
    learner: Box<NewLearner<L>>,
    policy: Box<OfCheckpoint>,
    of_obs: PhantomData<fn() -> O>,
}

/// Makes a learner with its networks.
type NewLearner<L> = dyn Fn(&Context<'_>) -> Result<L, ExperimentError> + Send + Sync;
/// Loads the policy of a checkpoint at a path.
type OfCheckpoint =
    dyn Fn(&PolicyContext<'_>, &Checkpoint, &Path) -> Result<LoadedPolicy, ExperimentError> + Send + Sync;

impl<O, L> ReplayPlan<O, L>
where
    O: ExperimentObs + Compact,
    L: ReplayLearner<O>,
{
    fn boxed(
        name: &str,
        sections: &mut Sections<'_>,
        learner: impl Fn(&Context<'_>) -> Result<L, ExperimentError> + Send + Sync + 'static,
        policy: impl Fn(&PolicyContext<'_>, &Checkpoint, &Path) -> Result<LoadedPolicy, ExperimentError>
        + Send
        + Sync
        + 'static,
    ) -> Result<Box<dyn Plan>, ExperimentError> {
        let (name, off_policy) = (name.to_owned(), sections.config(OFF_POLICY)?);
        let (learner, policy) = (Box::new(learner), Box::new(policy));
        Ok(Box::new(Self { name, off_policy, learner, policy, of_obs: PhantomData }))
    }

    fn check(&self) -> Result<(), ExperimentError> {
        self.off_policy.validate().map_err(ExperimentError::in_section(OFF_POLICY))
    }
}

impl<O, L> Plan for ReplayPlan<O, L>
where
    O: ExperimentObs + Compact,
    L: ReplayLearner<O>,
{
    fn replays(&self) -> bool {
        true
    }

    fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
        let learner = context.recorded((self.learner)(&context)?);
        self.check()?;
        let envs = context.envs::<O>(learner.gamma())?;
        let training = OffPolicy::new(envs, learner, self.off_policy.clone(), context.run)?;
        Ok(Session::new(training.pipelined(context.is_pipelined()), context.spec, unchanged))
    }

    fn footprint(&self, context: &Context<'_>) -> Result<Option<Footprint>, ExperimentError> {
        self.check()?;
        let learner = || Ok(context.recorded((self.learner)(context)?));
        let gamma = (self.learner)(context)?.gamma();
        let envs = |n| context.envs_of::<O>(n, gamma);
        OffPolicy::<BoxedEnv<O>, L>::footprint(envs, learner, &self.off_policy, context.n_envs(), context.run)
    }

    fn sizes(&self) -> Vec<Size> {
        Size::of_replay(&self.name)
    }

    fn saves_replay(&self) -> bool {
        self.off_policy.save_replay
    }

    fn policy(
        &self,
        context: &PolicyContext<'_>,
        checkpoint: &Checkpoint,
        path: &Path,
    ) -> Result<LoadedPolicy, ExperimentError> {
        (self.policy)(context, checkpoint, path)
    }
}

/// The plan of an algorithm that learns action values.
fn values_plan<R, C, L, E, O>(
    name: &str,
    sections: &mut Sections<'_>,
    new: Arc<impl Fn(Boxed<R>, C) -> Result<L, E> + Send + Sync + 'static>,
) -> Result<Box<dyn Plan>, ExperimentError>
where
    R: Role,
    R::Object: brasa_core::ActionValues<Obs = O>,
    O: ExperimentObs + Compact,
    C: Settings,
    L: ReplayLearner<O>,
    E: std::fmt::Display + 'static,
{
    let (config, section): (C, _) = (sections.config(name)?, name.to_owned());
    let network = sections.network::<R>()?;
    let of_learner = network.clone();
    let learner = move |context: &Context<'_>| {
        let network = of_learner.build(&context.network(0))?;
        new(network, config.clone()).map_err(ExperimentError::in_section(&section))
    };
    ReplayPlan::<O, L>::boxed(name, sections, learner, move |context, checkpoint, path| {
        let network = Greedy(restored(&network, context, checkpoint, path)?);
        LoadedPolicy::restored(network, context, checkpoint, path, unchanged)
    })
}

/// For policies that need no adaptation.
fn unchanged<P: Clone>(policy: &P, _: &PolicyContext<'_>) -> Result<P, ExperimentError> {
    Ok(policy.clone())
}
