//! What a public type promises whatever it is used for: it moves to another thread, several threads share it, it shows itself. Compilation is
//! the test.

use std::error::Error;
use std::fmt::Debug;

use brasa::buffers::{BufferError, ReplayBuffer, RolloutBuffer, Transitions};
use brasa::contracts::{HostEnv, MetricsError, Obs, Sink, SinkError, VecEnv};
use brasa::device::{DeviceError, Machine, Profile, RunMonitor};
use brasa::env::{EnvBatch, EnvError, EnvSpec, InvalidField, RenderedEnv, Scenario, Space};
use brasa::experiment::{App, Experiment, ExperimentError, LoadedPolicy, Registry, Session};
use brasa::nn::{MlpActorCritic, SquashedActor};
use brasa::shards::ShardError;
use brasa::train::{CheckpointError, OnPolicy, RunDir, RunDirError, StopToken, TrainError, Trainer};
use burn::tensor::Tensor;

type Batch = HostEnv<Box<dyn EnvBatch>>;
type Ppo = brasa::ppo::Ppo<MlpActorCritic>;

fn moves<T: Send>() {}
fn is_shared<T: Send + Sync>() {}
fn shows_itself<T: Debug>() {}
/// What `?` turns into `Box<dyn Error + Send + Sync>`, as programs and `anyhow` want it.
fn is_an_error<T: Error + Send + Sync + 'static>() {}

#[test]
fn errors_leave_their_thread() {
    is_an_error::<InvalidField>();
    is_an_error::<EnvError>();
    is_an_error::<DeviceError>();
    is_an_error::<BufferError>();
    is_an_error::<MetricsError>();
    is_an_error::<SinkError>();
    is_an_error::<CheckpointError>();
    is_an_error::<RunDirError>();
    is_an_error::<ShardError>();
    is_an_error::<TrainError>();
    is_an_error::<ExperimentError>();
}

#[test]
fn a_run_moves_to_another_thread() {
    moves::<Batch>();
    moves::<Ppo>();
    moves::<Trainer<OnPolicy<Batch, Ppo>>>();
    moves::<ReplayBuffer<Obs, Tensor<2>>>();
    moves::<RolloutBuffer<Obs, Tensor<2>>>();
    moves::<Transitions<Obs, Tensor<2>>>();
    moves::<Session>();
    moves::<Experiment<'static>>();
    moves::<RunMonitor>();
    moves::<App>();
    is_shared::<RunDir>();
    is_shared::<StopToken>();
    is_shared::<Registry>();
    is_shared::<LoadedPolicy>();
    is_shared::<EnvSpec>();
    is_shared::<Space>();
    is_shared::<Machine>();
    is_shared::<Profile>();
    is_shared::<Box<dyn Scenario>>();
}

#[test]
fn everything_shows_itself() {
    shows_itself::<Batch>();
    shows_itself::<Ppo>();
    shows_itself::<Trainer<OnPolicy<Batch, Ppo>>>();
    shows_itself::<brasa::sac::Sac<SquashedActor, brasa::nn::MlpCritics>>();
    shows_itself::<Session>();
    shows_itself::<Experiment<'static>>();
    shows_itself::<LoadedPolicy>();
    shows_itself::<Registry>();
    shows_itself::<App>();
    shows_itself::<Box<dyn Scenario>>();
}

/// The traits that are used as objects.
#[test]
fn traits_are_objects() {
    moves::<Box<dyn EnvBatch>>();
    moves::<Box<dyn VecEnv<Obs = Obs, Action = Tensor<2>>>>();
    moves::<Box<dyn RenderedEnv>>();
    moves::<Box<dyn Sink>>();
}
