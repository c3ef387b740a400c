//! Criterion benches of environments, policies and learners.
//!
//! This crate depends on no algorithm and no scenario. Brasa's own benches use it, and so can a bench of a custom environment,
//! network or learner.
//!
//! | function | measures | unit of the throughput |
//! |---|---|---|
//! | [`bench_steps`] | a step of a batch on the host | environment steps |
//! | [`bench_device_steps`] | a step of environments on a device | environment steps |
//! | [`bench_act`] | a decision for all environments, as a training loop makes it | environment steps |
//! | [`bench_update`] | an update of a learner | gradient steps |
//! | [`bench_iteration`] | an iteration of a training loop | environment steps |
//! | [`bench()`] | any other function | that of the caller |
//!
//! The id of a measurement is `subject/part/size/device`, for example `ppo/update/256-rows/cpu`. Each function checks the result of what
//! it measures before the clock starts. What a filter excludes is not constructed.
//!
//! ```
//! use brasa_bench_kit::{bench_steps, settings};
//! use brasa_classic::CartPole;
//! use brasa_env::EnvVec;
//! use brasa_bench_kit::criterion::Criterion;
//!
//! fn cart_pole(criterion: &mut Criterion) {
//!     bench_steps(criterion, "cart-pole/step", &[1, 64], |envs| EnvVec::new(envs, |_| CartPole::default()).unwrap());
//! }
//!
//! brasa_bench_kit::criterion::criterion_group! { name = benches; config = settings(); targets = cart_pole }
//! // In a bench, `criterion_main!(benches)` is the `main` function.
//! # cart_pole(&mut settings().warm_up_time(std::time::Duration::from_millis(1)).measurement_time(std::time::Duration::from_millis(10)));
//! ```

mod act;
mod learn;
mod measure;
mod place;
mod steps;

pub use act::bench_act;
pub use criterion;
pub use learn::{bench_iteration, bench_update};
pub use measure::{NOISE_THRESHOLD, bench, settings};
pub use place::Place;
pub use steps::{bench_device_steps, bench_steps, random_actions};
