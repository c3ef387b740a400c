//! Networks by section name and role.

use std::any::Any;
use std::sync::Arc;

use brasa_env::{EnvRng, EnvSpec, Extensions, named_rng};
use brasa_nn::{ActorCriticRole, Boxed, Erase, Role, SeparateActorCritic};
use burn::module::Module;
use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ExperimentError;
use crate::source::Source;

/// The environments, device and seed of a network.
///
/// ```
/// use brasa_env::{EnvSpec, Extensions, Space};
/// use brasa_experiment::NetworkContext;
/// use rand::Rng;
///
/// # let device = brasa_device::open_named("cpu")?;
/// let (spec, extensions) = (EnvSpec::new(Space::Discrete(3), Space::Discrete(2), 1), Extensions::default());
/// let first = NetworkContext { spec: &spec, extensions: &extensions, device: &device, seed: 7, index: 0 };
/// let second = NetworkContext { index: 1, ..first };
/// // Each network of a run has other initial weights.
/// assert_ne!(first.rng().next_u64(), second.rng().next_u64());
/// let error = first.extension::<u8>("map_network", "has graphs").unwrap_err();
/// assert_eq!(error.to_string(), "[map_network] needs a scenario that has graphs");
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NetworkContext<'a> {
    /// Spaces and sizes of the environments.
    pub spec: &'a EnvSpec,
    /// Additional data of the scenario, such as graphs.
    pub extensions: &'a Extensions,
    /// The device of the weights.
    pub device: &'a Device,
    /// Seed of the run.
    pub seed: u64,
    /// Index of the network within the run. Each network has its own random stream.
    pub index: u64,
}

impl NetworkContext<'_> {
    /// The random stream of the initial weights.
    pub fn rng(&self) -> EnvRng {
        named_rng(self.seed, "weights", self.index)
    }

    /// An extension that the scenario must have for this network. `section` and `what` are for the error message.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] naming the section and what is missing.
    pub fn extension<T: Any>(&self, section: &str, what: &str) -> Result<&T, ExperimentError> {
        let missing = || ExperimentError::Input(format!("[{section}] needs a scenario that {what}"));
        self.extensions.get::<T>().ok_or_else(missing)
    }
}

/// A kind of network: a section of experiments, for one role.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::NetworkKind;
/// use brasa_nn::{ActorCriticRole, MlpActorCritic};
///
/// let wide = NetworkKind::<ActorCriticRole>::new("wide_network", |config, cx| {
///     MlpActorCritic::new(config, &cx.spec.obs, &cx.spec.action, cx.device, &mut cx.rng())
/// });
/// let mut registry = registry();
/// registry.network(wide.fits(|spec, _| (spec.obs.width() > 100).then_some(1)));
/// // An experiment may name the network that its environments would not get by default.
/// let experiment = registry.parse("[scenario.pole]\n[wide_network]\n[learner]\n", "room.toml", &[])?;
/// assert!(experiment.to_toml().contains("[wide_network]"));
/// # Ok::<(), brasa_experiment::ExperimentError>(())
/// ```
#[must_use]
pub struct NetworkKind<R: Role> {
    section: String,
    fits: Fits,
    read: Read<R>,
    adapt: Option<Adapt<R>>,
}

impl<R: Role> std::fmt::Debug for NetworkKind<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkKind").field("section", &self.section).finish_non_exhaustive()
    }
}

/// How well a kind fits the environments. An experiment that names no network gets the kind with the highest number.
type Fits = Box<dyn Fn(&EnvSpec, &Extensions) -> Option<u32> + Send + Sync>;
/// Reads a section.
type Read<R> = Box<dyn Fn(&Source, &str) -> Result<(toml::Value, Build<R>), ExperimentError> + Send + Sync>;
/// Creates a network.
type Build<R> = Box<dyn Fn(&NetworkContext<'_>) -> Result<Boxed<R>, ExperimentError> + Send + Sync>;
/// Adapts a network to a scenario with other extensions.
type Adapt<R> = Arc<dyn Fn(&Boxed<R>, &NetworkContext<'_>) -> Result<Boxed<R>, ExperimentError> + Send + Sync>;

impl<R: Role> NetworkKind<R> {
    /// A kind of network that `build` creates from the section `[SECTION]`.
    pub fn new<C, M, E>(
        section: &str,
        build: impl Fn(&C, &NetworkContext<'_>) -> Result<M, E> + Send + Sync + 'static,
    ) -> Self
    where
        C: Serialize + DeserializeOwned + Default + Send + Sync + 'static,
        M: Module + Erase<R> + 'static,
        E: std::fmt::Display + 'static,
    {
        let build = Arc::new(build);
        let read = move |source: &Source, name: &str| {
            let config: C = source.section(name)?;
            let resolved = toml::Value::try_from(&config).map_err(ExperimentError::input)?;
            let (name, build) = (name.to_owned(), build.clone());
            let build = move |context: &NetworkContext<'_>| {
                let network = build(&config, context);
                network.map(Boxed::new).map_err(|error| ExperimentError::Input(format!("[{name}] {error}")))
            };
            let build: Build<R> = Box::new(build);
            Ok((resolved, build))
        };
        Self { section: section.to_owned(), fits: Box::new(|_, _| Some(0)), read: Box::new(read), adapt: None }
    }

    /// Sets how well the kind fits environments. An experiment that names no network gets the kind of the role with the highest
    /// number. `None` excludes the kind. Default 0.
    pub fn fits(mut self, fits: impl Fn(&EnvSpec, &Extensions) -> Option<u32> + Send + Sync + 'static) -> Self {
        self.fits = Box::new(fits);
        self
    }

    /// Sets how a trained network is adapted to a scenario with other extensions, such as other graphs.
    pub fn adapts(
        mut self,
        adapt: impl Fn(&Boxed<R>, &NetworkContext<'_>) -> Result<Boxed<R>, ExperimentError> + Send + Sync + 'static,
    ) -> Self {
        self.adapt = Some(Arc::new(adapt));
        self
    }
}

/// The network of an experiment before it is created.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_core::{Obs, OnPolicyLearner};
/// # use brasa_nn::ActorCriticRole;
/// # use brasa_train::{Checkpoint, OnPolicy, restore_policy};
/// # use std::path::Path;
/// use brasa_experiment::{App, Context, ExperimentError, NetworkPlan, Session};
/// # use brasa_experiment::{Algorithm, LoadedPolicy, Plan, PolicyContext, Sections};
///
/// struct OwnPlan {
///     config: FixedConfig,
///     network: NetworkPlan<ActorCriticRole>,
/// }
///
/// impl brasa_experiment::Plan for OwnPlan {
///     fn replays(&self) -> bool {
///         false
///     }
///     fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
///         let network = self.network.build(&context.network(0))?;
///         let learner = Fixed::new(network, self.config.clone(), context.seed()).map_err(ExperimentError::input)?;
///         let training = OnPolicy::new(context.envs::<Obs>(learner.gamma())?, learner, context.run())?;
///         Ok(Session::new(training, context.spec(), |policy, _| Ok(policy.clone())))
///     }
/// #     fn policy(
/// #         &self,
/// #         context: &PolicyContext<'_>,
/// #         checkpoint: &Checkpoint,
/// #         path: &Path,
/// #     ) -> Result<LoadedPolicy, ExperimentError> {
/// #         let network = restore_policy(self.network.build(&context.network())?, checkpoint, path)?;
/// #         LoadedPolicy::restored(network, context, checkpoint, path, |policy, _| Ok(policy.clone()))
/// #     }
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
pub struct NetworkPlan<R: Role> {
    build: Arc<Build<R>>,
    adapt: Option<Adapt<R>>,
}

impl<R: Role> std::fmt::Debug for NetworkPlan<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkPlan").finish_non_exhaustive()
    }
}

impl<R: Role> Clone for NetworkPlan<R> {
    fn clone(&self) -> Self {
        Self { build: Arc::clone(&self.build), adapt: self.adapt.clone() }
    }
}

impl<R: Role> NetworkPlan<R> {
    /// Creates the network.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if the network does not support the environments.
    pub fn build(&self, context: &NetworkContext<'_>) -> Result<Boxed<R>, ExperimentError> {
        (self.build)(context)
    }

    /// Adapts a trained network to another scenario of the same kind. A network that does not depend on the scenario is unchanged.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if the network does not support the environments.
    pub fn adapt(&self, network: &Boxed<R>, context: &NetworkContext<'_>) -> Result<Boxed<R>, ExperimentError> {
        self.adapter()(network, context)
    }

    /// [`NetworkPlan::adapt`] without the plan.
    pub(crate) fn adapter(&self) -> Adapt<R> {
        self.adapt.clone().unwrap_or_else(|| Arc::new(|network, _| Ok(network.clone())))
    }
}

impl NetworkPlan<ActorCriticRole> {
    /// A network for each index in `of_agents`, which has that of every agent; none if all agents share one network.
    pub(crate) fn separate(self, of_agents: &[usize]) -> Self {
        type Separate = SeparateActorCritic<Boxed<ActorCriticRole>>;
        let Some(n_networks) = of_agents.iter().max().map(|last| last + 1) else { return self };
        let (of_agents, one) = (of_agents.to_vec(), self.clone());
        let join = move |networks| {
            let joined = SeparateActorCritic::new(networks, of_agents.clone());
            joined.map(Boxed::new).map_err(|error| ExperimentError::Input(format!("`train.policies`: {error}")))
        };
        let (join, joined) = (Arc::new(join), Arc::new(self.adapter()));
        let adapt: Adapt<ActorCriticRole> = {
            let join = join.clone();
            Arc::new(move |network, context| {
                let separate = network.downcast_ref::<Separate>().expect("it was built by this plan");
                join(separate.networks().iter().map(|network| joined(network, context)).collect::<Result<_, _>>()?)
            })
        };
        let build: Build<ActorCriticRole> = Box::new(move |context| {
            let network = |index| one.build(&NetworkContext { index, ..*context });
            join((0..n_networks as u64).map(network).collect::<Result<_, _>>()?)
        });
        Self { build: Arc::new(build), adapt: Some(adapt) }
    }
}

/// The networks of a program.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    /// Section and kind in the order of registration; each is a `NetworkKind<R>`.
    kinds: Vec<(String, Box<dyn Any + Send + Sync>)>,
}

impl Networks {
    /// Adds a kind of network.
    pub fn add<R: Role>(&mut self, kind: NetworkKind<R>) {
        self.kinds.push((kind.section.clone(), Box::new(kind)));
    }

    /// Adds all kinds of `other`.
    pub(crate) fn extend(&mut self, other: Networks) {
        self.kinds.extend(other.kinds);
    }

    /// Names of all sections.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|(section, _)| section.as_str())
    }

    /// Sections of one role.
    pub(crate) fn sections_of<R: Role>(&self) -> Vec<&str> {
        self.of_role::<R>().map(|kind| kind.section.as_str()).collect()
    }

    fn of_role<R: Role>(&self) -> impl Iterator<Item = &NetworkKind<R>> {
        self.kinds.iter().filter_map(|(_, kind)| kind.downcast_ref())
    }

    /// The kind of a role that fits the environments best, with its number.
    pub(crate) fn best_fit<R: Role>(&self, spec: &EnvSpec, extensions: &Extensions) -> Option<(u32, &str)> {
        let fits = self.of_role::<R>().filter_map(|kind| Some(((kind.fits)(spec, extensions)?, kind)));
        // The first one of equal numbers.
        let best = fits.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(fit, kind)| (fit, kind.section.as_str()))
    }

    /// Reads the section `section` of the role.
    pub(crate) fn read<R: Role>(
        &self,
        section: &str,
        source: &Source,
    ) -> Result<(toml::Value, NetworkPlan<R>), ExperimentError> {
        let kind = self.of_role::<R>().find(|kind| kind.section == section);
        let kind = kind.ok_or_else(|| ExperimentError::Input(format!("[{section}] is no network for {}", R::NAME)))?;
        let (resolved, build) = (kind.read)(source, section)?;
        Ok((resolved, NetworkPlan { build: Arc::new(build), adapt: kind.adapt.clone() }))
    }
}
