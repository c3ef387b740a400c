//! Type-erased networks, for learners whose network is selected at run time.
//!
//! A [`Role`] is a set of traits, such as those of an actor-critic; [`Boxed`] is a Burn module with the traits of its
//! role. Parameters of 1 to 4 dimensions keep their names and identities, so optimizers and files are unchanged.

use std::any::Any;
use std::fmt::Debug;

use brasa_core::analytic::{ByActions, ByResults, CriticsInput};
use brasa_core::export::ExportedPolicy;
use brasa_core::{
    ActionValues, ActorCritic, Critics, Deterministic, Evaluation, Explore, HostActor, NetworkSizes, NoiseSpec, Obs,
    Policy, PolicyState, RandomWarmup, Reparameterized, Sequences, TeamObs,
};
use burn::module::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

/// The role of a network as a type, with the trait object that erases the type of the network.
///
/// ```
/// use brasa_nn::{ActorCriticRole, Boxed, Role, ValueRole};
///
/// /// A message about a network whose role is known when the program is compiled.
/// fn missing<R: Role>() -> String {
///     format!("the learner needs {}", R::NAME)
/// }
///
/// assert_eq!(missing::<ActorCriticRole>(), "the learner needs an actor-critic");
/// assert_eq!(missing::<ValueRole>(), "the learner needs a Q-network");
/// ```
pub trait Role: 'static {
    /// A trait object with the traits of the role.
    type Object: ErasedModule<Self> + ?Sized;
    /// Name in messages: `an actor-critic`.
    const NAME: &'static str;
}

/// A network of any type with the role `R`.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_core::ActionValues;
/// use brasa_nn::{Boxed, QNetwork, TeamQNetwork, ValueRole};
///
/// let device = brasa_device::open_named("cpu")?;
/// let network = Boxed::<ValueRole>::new(q_network(&device)?);
/// // The traits of the role do not depend on the type of the network.
/// assert_eq!(network.values(observed(&device)).dims(), [2, 3]);
/// assert!(network.downcast_ref::<QNetwork>().is_some());
/// assert!(network.downcast_ref::<TeamQNetwork>().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Boxed<R: Role + ?Sized>(Box<R::Object>);

impl<R: Role + ?Sized> Boxed<R> {
    /// Erases the type of `network`.
    pub fn new<M: Module + Erase<R>>(network: M) -> Self {
        Self(network.erase())
    }

    /// The network, if it is of type `M`.
    pub fn downcast_ref<M: 'static>(&self) -> Option<&M> {
        self.0.as_any().downcast_ref()
    }
}

/// A module with the traits of role `R`.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{Boxed, Erase, QNetwork, Role, ValueRole};
/// use burn::module::Module;
///
/// /// Boxes of several networks with one role.
/// fn boxes<R: Role, M: Module + Erase<R>>(networks: Vec<M>) -> Vec<Boxed<R>> {
///     networks.into_iter().map(Boxed::new).collect()
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let boxes: Vec<Boxed<ValueRole>> = boxes(vec![q_network(&device)?, q_network(&device)?]);
/// assert!(boxes.iter().all(|network| network.downcast_ref::<QNetwork>().is_some()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Erase<R: Role + ?Sized> {
    /// Erases its type.
    fn erase(self) -> Box<R::Object>;
}

/// The methods that [`Boxed`] needs of a module; implemented for every module with the traits of the role.
#[doc(hidden)]
#[allow(missing_docs, reason = "Burn's methods of the same names")]
pub trait ErasedModule<R: Role + ?Sized>: Debug + Send + Sync {
    fn clone_erased(&self) -> Box<R::Object>;
    fn fork_erased(self: Box<Self>, device: &Device) -> Box<R::Object>;
    fn to_device_erased(self: Box<Self>, device: &Device) -> Box<R::Object>;
    fn train_erased(self: Box<Self>) -> Box<R::Object>;
    fn valid_erased(&self) -> Box<R::Object>;
    fn materialize_erased(self: Box<Self>) -> Box<R::Object>;
    fn devices_erased(&self, devices: Devices) -> Devices;
    fn visit_erased(&self, visitor: &mut dyn ErasedVisitor);
    fn map_erased(self: Box<Self>, mapper: &mut dyn ErasedMapper) -> Box<R::Object>;
    fn as_any(&self) -> &dyn Any;
}

impl<M: Module + Erase<R> + Sync + 'static, R: Role + ?Sized> ErasedModule<R> for M {
    fn clone_erased(&self) -> Box<R::Object> {
        self.clone().erase()
    }
    fn fork_erased(self: Box<Self>, device: &Device) -> Box<R::Object> {
        self.fork(device).erase()
    }
    fn to_device_erased(self: Box<Self>, device: &Device) -> Box<R::Object> {
        self.to_device(device).erase()
    }
    fn train_erased(self: Box<Self>) -> Box<R::Object> {
        self.train().erase()
    }
    fn valid_erased(&self) -> Box<R::Object> {
        self.valid().erase()
    }
    fn materialize_erased(self: Box<Self>) -> Box<R::Object> {
        self.materialize().erase()
    }
    fn devices_erased(&self, devices: Devices) -> Devices {
        self.collect_devices(devices)
    }
    fn visit_erased(&self, visitor: &mut dyn ErasedVisitor) {
        self.visit(&mut Inside(visitor));
    }
    fn map_erased(self: Box<Self>, mapper: &mut dyn ErasedMapper) -> Box<R::Object> {
        self.map(&mut Inside(mapper)).erase()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<R: Role + ?Sized> Clone for Boxed<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone_erased())
    }
}

impl<R: Role + ?Sized> Debug for Boxed<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<R: Role + ?Sized> Module for Boxed<R> {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.0.devices_erased(devices)
    }
    fn fork(self, device: &Device) -> Self {
        Self(self.0.fork_erased(device))
    }
    fn to_device(self, device: &Device) -> Self {
        Self(self.0.to_device_erased(device))
    }
    fn train(self) -> Self {
        Self(self.0.train_erased())
    }
    fn valid(&self) -> Self {
        Self(self.0.valid_erased())
    }
    fn materialize(self) -> Self {
        Self(self.0.materialize_erased())
    }
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.0.visit_erased(&mut Outside(visitor));
    }
    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        Self(self.0.map_erased(&mut Outside(mapper)))
    }
}

// What Burn asks of a module inside another one.
impl<R: Role + ?Sized> ModuleDisplayDefault for Boxed<R> {
    fn content(&self, content: Content) -> Option<Content> {
        Some(content)
    }

    fn num_params(&self) -> usize {
        Module::num_params(self)
    }
}

impl<R: Role + ?Sized> ModuleDisplay for Boxed<R> {}

/// An object-safe visitor for a type-erased module.
#[doc(hidden)]
#[allow(missing_docs, reason = "Burn's methods, one for each number of dimensions")]
pub trait ErasedVisitor {
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
    fn float_1(&mut self, param: &Param<Tensor<1>>);
    fn float_2(&mut self, param: &Param<Tensor<2>>);
    fn float_3(&mut self, param: &Param<Tensor<3>>);
    fn float_4(&mut self, param: &Param<Tensor<4>>);
}

/// An object-safe mapper for a type-erased module.
#[doc(hidden)]
#[allow(missing_docs, reason = "Burn's methods, one for each number of dimensions")]
pub trait ErasedMapper {
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
    fn float_1(&mut self, param: Param<Tensor<1>>) -> Param<Tensor<1>>;
    fn float_2(&mut self, param: Param<Tensor<2>>) -> Param<Tensor<2>>;
    fn float_3(&mut self, param: Param<Tensor<3>>) -> Param<Tensor<3>>;
    fn float_4(&mut self, param: Param<Tensor<4>>) -> Param<Tensor<4>>;
}

/// Adapter from Burn's visitor or mapper to the object-safe trait.
struct Outside<'a, V>(&'a mut V);
/// Adapter from the object-safe trait back to Burn's generic one.
struct Inside<'a, V: ?Sized>(&'a mut V);

impl<V: ModuleVisitor> ErasedVisitor for Outside<'_, V> {
    fn enter(&mut self, name: &str, container: &str) {
        self.0.enter_module(name, container);
    }
    fn exit(&mut self, name: &str, container: &str) {
        self.0.exit_module(name, container);
    }
    fn float_1(&mut self, param: &Param<Tensor<1>>) {
        self.0.visit_float(param);
    }
    fn float_2(&mut self, param: &Param<Tensor<2>>) {
        self.0.visit_float(param);
    }
    fn float_3(&mut self, param: &Param<Tensor<3>>) {
        self.0.visit_float(param);
    }
    fn float_4(&mut self, param: &Param<Tensor<4>>) {
        self.0.visit_float(param);
    }
}

impl<M: ModuleMapper> ErasedMapper for Outside<'_, M> {
    fn enter(&mut self, name: &str, container: &str) {
        self.0.enter_module(name, container);
    }
    fn exit(&mut self, name: &str, container: &str) {
        self.0.exit_module(name, container);
    }
    fn float_1(&mut self, param: Param<Tensor<1>>) -> Param<Tensor<1>> {
        self.0.map_float(param)
    }
    fn float_2(&mut self, param: Param<Tensor<2>>) -> Param<Tensor<2>> {
        self.0.map_float(param)
    }
    fn float_3(&mut self, param: Param<Tensor<3>>) -> Param<Tensor<3>> {
        self.0.map_float(param)
    }
    fn float_4(&mut self, param: Param<Tensor<4>>) -> Param<Tensor<4>> {
        self.0.map_float(param)
    }
}

impl ModuleVisitor for Inside<'_, dyn ErasedVisitor + '_> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.0.enter(name, container_type);
    }
    fn exit_module(&mut self, name: &str, container_type: &str) {
        self.0.exit(name, container_type);
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let param: &dyn Any = param;
        if let Some(param) = param.downcast_ref() {
            self.0.float_1(param);
        } else if let Some(param) = param.downcast_ref() {
            self.0.float_2(param);
        } else if let Some(param) = param.downcast_ref() {
            self.0.float_3(param);
        } else if let Some(param) = param.downcast_ref() {
            self.0.float_4(param);
        } else {
            panic!("a parameter of a boxed network has 1 to 4 dimensions, got {D}");
        }
    }
}

impl ModuleMapper for Inside<'_, dyn ErasedMapper + '_> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.0.enter(name, container_type);
    }
    fn exit_module(&mut self, name: &str, container_type: &str) {
        self.0.exit(name, container_type);
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let mut place = Some(param);
        let this: &mut dyn Any = &mut place;
        // The parameter moves out and back in, so that it has a single owner and its memory is reused in place.
        if let Some(place) = this.downcast_mut::<Option<Param<Tensor<1>>>>() {
            *place = place.take().map(|param| self.0.float_1(param));
        } else if let Some(place) = this.downcast_mut::<Option<Param<Tensor<2>>>>() {
            *place = place.take().map(|param| self.0.float_2(param));
        } else if let Some(place) = this.downcast_mut::<Option<Param<Tensor<3>>>>() {
            *place = place.take().map(|param| self.0.float_3(param));
        } else if let Some(place) = this.downcast_mut::<Option<Param<Tensor<4>>>>() {
            *place = place.take().map(|param| self.0.float_4(param));
        } else {
            panic!("a parameter of a boxed network has 1 to 4 dimensions, got {D}");
        }
        place.expect("it was put back")
    }
}

/// Defines a role and the trait object of its networks.
macro_rules! role {
    ($(#[$doc:meta])* $role:ident, $object:ident, $name:literal: $($bounds:tt)+) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $role {}
        impl Role for $role {
            type Object = dyn $object;
            const NAME: &'static str = $name;
        }
        $(#[$doc])*
        pub trait $object: $($bounds)+ + ErasedModule<$role> {}
        impl<M: $($bounds)+ + Module + Sync + 'static> $object for M {}
        impl<M: $($bounds)+ + Module + Sync + 'static> Erase<$role> for M {
            fn erase(self) -> Box<dyn $object> {
                Box::new(self)
            }
        }
    };
}

role! {
    /// Actor and critic in one network, for PPO and A2C.
    ///
    /// ```
    /// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
    /// # use shown::*;
    /// use brasa_core::ActorCritic;
    /// use brasa_nn::{ActorCriticNetwork, ActorCriticRole, Boxed};
    ///
    /// /// The number of values of a network of any type.
    /// fn n_values(network: &dyn ActorCriticNetwork, obs: brasa_core::Obs) -> usize {
    ///     network.value(obs).dims()[0]
    /// }
    ///
    /// let device = brasa_device::open_named("cpu")?;
    /// assert_eq!(n_values(&actor_critic(&device)?, observed(&device)), 2);
    /// let network = Boxed::<ActorCriticRole>::new(actor_critic(&device)?);
    /// assert_eq!(network.value(observed(&device)).dims(), [2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ActorCriticRole, ActorCriticNetwork, "an actor-critic": ActorCritic<Obs = Obs, Action = Tensor<2>>
}
role! {
    /// Actors and critics of a team in one network, for PPO and A2C.
    ///
    /// ```
    /// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
    /// # use shown::*;
    /// use brasa_core::Policy;
    /// use brasa_core::env::{EnvSpec, Space, named_rng};
    /// use brasa_nn::{Boxed, TeamActorCritic, TeamActorCriticNetwork, TeamActorCriticRole};
    ///
    /// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
    /// let spec = EnvSpec { n_agents: 4, ..EnvSpec::new(obs_space(), Space::Discrete(3), 2) };
    /// let network = TeamActorCritic::new(&Default::default(), &spec, &device, rng)?;
    /// let object: &dyn TeamActorCriticNetwork = &network;
    /// assert_eq!(object.n_agents(), 4);
    /// assert_eq!(Boxed::<TeamActorCriticRole>::new(network).n_agents(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    TeamActorCriticRole, TeamActorCriticNetwork, "an actor-critic of a team":
    ActorCritic<Obs = TeamObs, Action = Tensor<2>>
}
role! {
    /// Samples continuous actions as a differentiable function of noise, for SAC.
    ///
    /// ```
    /// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
    /// # use shown::*;
    /// use brasa_core::Reparameterized;
    /// use brasa_nn::{Boxed, StochasticActorNetwork, StochasticActorRole};
    /// use burn::tensor::Tensor;
    ///
    /// /// Numbers of noise of a network of any type.
    /// fn noise(network: &dyn StochasticActorNetwork) -> usize {
    ///     network.noise_width()
    /// }
    ///
    /// let device = brasa_device::open_named("cpu")?;
    /// assert_eq!(noise(&squashed_actor(&device)?), 1);
    /// let network = Boxed::<StochasticActorRole>::new(squashed_actor(&device)?);
    /// let (action, _log_prob) = network.rsample(observed(&device), Tensor::zeros([2, 1], &device));
    /// assert_eq!(action.dims(), [2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    StochasticActorRole, StochasticActorNetwork, "a stochastic actor":
    Reparameterized<Obs = Obs, Action = Tensor<2>, Extra = ()> + RandomWarmup
}
role! {
    /// Deterministic, differentiable actions, for deterministic policy gradients.
    ///
    /// ```
    /// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
    /// # use shown::*;
    /// use brasa_core::{Explore, Policy};
    /// use brasa_nn::{Boxed, DeterministicActorNetwork, DeterministicActorRole};
    ///
    /// /// Numbers of an action of a network of any type.
    /// fn width(network: &dyn DeterministicActorNetwork, obs: brasa_core::Obs) -> usize {
    ///     network.act(obs, Explore::Greedy).0.dims()[1]
    /// }
    ///
    /// let device = brasa_device::open_named("cpu")?;
    /// assert_eq!(width(&deterministic_actor(&device)?, observed(&device)), 1);
    /// let network = Boxed::<DeterministicActorRole>::new(deterministic_actor(&device)?);
    /// assert_eq!(network.act(observed(&device), Explore::Greedy).0.dims(), [2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    DeterministicActorRole, DeterministicActorNetwork, "a deterministic actor":
    Deterministic<Obs = Obs, Action = Tensor<2>, Extra = ()> + RandomWarmup
}
role! {
    /// Several estimates of the value of an action.
    ///
    /// ```
    /// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
    /// # use shown::*;
    /// use brasa_core::Critics;
    /// use brasa_nn::{Boxed, CriticsNetwork, CriticsRole};
    /// use burn::tensor::Tensor;
    ///
    /// let device = brasa_device::open_named("cpu")?;
    /// let action = || Tensor::<2>::zeros([2, 1], &device);
    /// let critics: &dyn CriticsNetwork = &two_critics(&device)?;
    /// assert_eq!(critics.values(observed(&device), action()).dims(), [2, 2]);
    /// let boxed = Boxed::<CriticsRole>::new(two_critics(&device)?);
    /// assert_eq!(boxed.values(observed(&device), action()).dims(), [2, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    CriticsRole, CriticsNetwork, "critics": Critics<Obs = Obs, Action = Tensor<2>>
}
role! {
    /// Values of all actions of a row, for DQN.
    ///
    /// ```
    /// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
    /// # use shown::*;
    /// use brasa_core::ActionValues;
    /// use brasa_nn::{Boxed, ValueNetwork, ValueRole};
    ///
    /// let device = brasa_device::open_named("cpu")?;
    /// let network: &dyn ValueNetwork = &q_network(&device)?;
    /// assert_eq!(network.n_actions(), 3);
    /// let boxed = Boxed::<ValueRole>::new(q_network(&device)?);
    /// assert_eq!(boxed.values(observed(&device)).dims(), [2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ValueRole, ValueNetwork, "a Q-network": ActionValues<Obs = Obs>
}
role! {
    /// Values of all actions, for a team of independent learners.
    ///
    /// ```
    /// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
    /// # use shown::*;
    /// use brasa_core::ActionValues;
    /// use brasa_core::env::{Space, named_rng};
    /// use brasa_nn::{Boxed, TeamQNetwork, TeamQNetworkConfig, TeamValueNetwork, TeamValueRole};
    ///
    /// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
    /// let network =
    ///     TeamQNetwork::new(&TeamQNetworkConfig::default(), 4, &obs_space(), &Space::Discrete(3), &device, rng)?;
    /// let object: &dyn TeamValueNetwork = &network;
    /// assert_eq!(object.n_learners(), 4);
    /// assert_eq!(Boxed::<TeamValueRole>::new(network).n_actions(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    TeamValueRole, TeamValueNetwork, "a Q-network of a team": ActionValues<Obs = TeamObs>
}

impl<R: Role + ?Sized> Policy for Boxed<R>
where
    R::Object: Policy,
{
    type Obs = <R::Object as Policy>::Obs;
    type Action = <R::Object as Policy>::Action;
    type Extra = <R::Object as Policy>::Extra;
    fn noise(&self) -> NoiseSpec {
        self.0.noise()
    }
    fn act(&self, obs: Self::Obs, explore: Explore) -> (Self::Action, Self::Extra) {
        self.0.act(obs, explore)
    }
    fn state_width(&self) -> usize {
        self.0.state_width()
    }
    fn act_from(&self, obs: Self::Obs, state: &mut PolicyState, explore: Explore) -> (Self::Action, Self::Extra) {
        self.0.act_from(obs, state, explore)
    }
    fn to_env(&self, action: Self::Action) -> Self::Action {
        self.0.to_env(action)
    }
    fn sizes(&self) -> Option<NetworkSizes> {
        self.0.sizes()
    }
    fn is_stochastic(&self) -> bool {
        self.0.is_stochastic()
    }
    fn has_action_for(&self, obs: &[f32]) -> bool {
        self.0.has_action_for(obs)
    }
    fn exported(&self) -> Option<ExportedPolicy> {
        self.0.exported()
    }
}

impl<R: Role + ?Sized> ActorCritic for Boxed<R>
where
    R::Object: ActorCritic,
{
    fn value(&self, obs: Self::Obs) -> Tensor<1> {
        self.0.value(obs)
    }
    fn value_from(&self, obs: Self::Obs, state: &PolicyState) -> Tensor<1> {
        self.0.value_from(obs, state)
    }
    fn evaluate(&self, obs: Self::Obs, action: Self::Action) -> Evaluation {
        self.0.evaluate(obs, action)
    }
    fn evaluate_sequences(&self, obs: Self::Obs, action: Self::Action, sequences: &Sequences) -> Evaluation {
        self.0.evaluate_sequences(obs, action, sequences)
    }
    fn choice(&self, obs: &Self::Obs) -> Option<Tensor<1>> {
        self.0.choice(obs)
    }
    fn gradient(&self, obs: &Self::Obs, action: &Self::Action, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        self.0.gradient(obs, action, by)
    }
    fn gradient_of_sequences(
        &self,
        obs: &Self::Obs,
        action: &Self::Action,
        sequences: &Sequences,
        by: &mut ByResults<'_, 3>,
    ) -> Option<Vec<f32>> {
        self.0.gradient_of_sequences(obs, action, sequences, by)
    }
    fn host_actor(&self) -> Option<Box<dyn HostActor>> {
        self.0.host_actor()
    }
    fn std(&self) -> Option<Tensor<1>> {
        self.0.std()
    }
}

impl<R: Role + ?Sized> RandomWarmup for Boxed<R>
where
    R::Object: RandomWarmup,
{
    fn random_action(&self, obs: Self::Obs, noise: Tensor<2>) -> Self::Action {
        self.0.random_action(obs, noise)
    }
}

impl<R: Role + ?Sized> Reparameterized for Boxed<R>
where
    R::Object: Reparameterized,
{
    fn noise_width(&self) -> usize {
        self.0.noise_width()
    }
    fn rsample(&self, obs: Self::Obs, noise: Tensor<2>) -> (Self::Action, Tensor<1>) {
        self.0.rsample(obs, noise)
    }
    fn gradient(
        &self,
        obs: &Self::Obs,
        noise: &Tensor<2>,
        by: &mut ByActions<'_, Self::Action, 1>,
    ) -> Option<Vec<f32>> {
        self.0.gradient(obs, noise, by)
    }
}

impl<R: Role + ?Sized> Deterministic for Boxed<R>
where
    R::Object: Deterministic,
{
    fn gradient(&self, obs: &Self::Obs, by: &mut ByActions<'_, Self::Action, 0>) -> Option<Vec<f32>> {
        self.0.gradient(obs, by)
    }
}

impl<R: Role + ?Sized> Critics for Boxed<R>
where
    R::Object: Critics,
{
    type Obs = <R::Object as Critics>::Obs;
    type Action = <R::Object as Critics>::Action;
    fn values(&self, obs: Self::Obs, action: Self::Action) -> Tensor<2> {
        self.0.values(obs, action)
    }
    fn gradient(
        &self,
        obs: &Self::Obs,
        action: &Self::Action,
        of: CriticsInput,
        by: &mut ByResults<'_, 1>,
    ) -> Option<Vec<f32>> {
        self.0.gradient(obs, action, of, by)
    }
}

impl<R: Role + ?Sized> ActionValues for Boxed<R>
where
    R::Object: ActionValues,
{
    type Obs = <R::Object as ActionValues>::Obs;
    fn values(&self, obs: Self::Obs) -> Tensor<2> {
        self.0.values(obs)
    }
    fn obs_width(&self) -> Option<usize> {
        self.0.obs_width()
    }
    fn sizes(&self) -> Option<NetworkSizes> {
        self.0.sizes()
    }
    fn n_actions(&self) -> usize {
        self.0.n_actions()
    }
    fn action_mask(&self, obs: &Self::Obs) -> Option<Tensor<2>> {
        self.0.action_mask(obs)
    }
    fn best(&self, obs: Self::Obs) -> (Tensor<2>, Tensor<1>) {
        self.0.best(obs)
    }
    fn values_of(&self, obs: Self::Obs, action: Tensor<2>) -> Tensor<1> {
        self.0.values_of(obs, action)
    }
    fn gradient(&self, obs: &Self::Obs, action: &Tensor<2>, by: &mut ByResults<'_, 1>) -> Option<Vec<f32>> {
        self.0.gradient(obs, action, by)
    }
    fn state_width(&self) -> usize {
        self.0.state_width()
    }
    fn values_from(&self, obs: Self::Obs, state: &mut PolicyState) -> Tensor<2> {
        self.0.values_from(obs, state)
    }
    fn best_from(&self, obs: Self::Obs, state: &mut PolicyState) -> (Tensor<2>, Tensor<1>) {
        self.0.best_from(obs, state)
    }
    fn values_of_sequences(&self, obs: Self::Obs, action: Tensor<2>, sequences: &Sequences) -> Tensor<1> {
        self.0.values_of_sequences(obs, action, sequences)
    }
    fn states_of_sequences(&self, obs: Self::Obs, sequences: &Sequences) -> Tensor<2> {
        self.0.states_of_sequences(obs, sequences)
    }
    fn gradient_of_sequences(
        &self,
        obs: &Self::Obs,
        action: &Tensor<2>,
        sequences: &Sequences,
        by: &mut ByResults<'_, 1>,
    ) -> Option<Vec<f32>> {
        self.0.gradient_of_sequences(obs, action, sequences, by)
    }
    fn random_action_width(&self) -> usize {
        self.0.random_action_width()
    }
    fn random_action(&self, obs: &Self::Obs, noise: Tensor<2>) -> Tensor<2> {
        self.0.random_action(obs, noise)
    }
    fn n_learners(&self) -> usize {
        self.0.n_learners()
    }
    fn exported(&self) -> Option<ExportedPolicy> {
        self.0.exported()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActorCriticConfig, MlpActorCritic, Step, Trainable, named_params};
    use brasa_core::env::{Space, named_rng};

    fn network() -> MlpActorCritic {
        let obs = Space::uniform_box(-1.0, 1.0, ["x", "y"]);
        let device = brasa_test::device().autodiff();
        let rng = &mut named_rng(3, "weights", 0);
        MlpActorCritic::new(&ActorCriticConfig::default(), &obs, &Space::Discrete(3), &device, rng)
            .expect("it is valid")
    }

    #[test]
    fn a_boxed_network_has_the_parameters_of_the_network_and_learns_alike() {
        let plain = network();
        let boxed: Boxed<ActorCriticRole> = Boxed::new(plain.clone());
        assert_eq!(named_params(&boxed), named_params(&plain));
        assert!(boxed.downcast_ref::<MlpActorCritic>().is_some());
        fn learned<M: Module + ActorCritic<Obs = Obs, Action = Tensor<2>>>(network: M) -> Vec<crate::NamedParam> {
            let mut trainable = Trainable::new(network, crate::AdamConfig::default()).expect("it has parameters");
            for _ in 0..3 {
                let obs = Tensor::from_floats([[0.3, -0.2], [0.1, 0.9]], &brasa_test::device());
                let loss = trainable.module().value(Obs::new(obs)).square().mean();
                trainable.step(&loss, Step::new(1e-2, Some(0.5)));
            }
            named_params(&trainable.valid())
        }
        assert_ne!(named_params(&plain), learned(plain.clone()));
        assert_eq!(learned(boxed), learned(plain));
    }
}
