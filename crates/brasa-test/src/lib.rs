//! Helpers for the tests of Brasa.

#[cfg(feature = "device")]
pub mod golden;
pub mod memory;
pub mod mutate;
#[cfg(feature = "outcomes")]
pub mod outcomes;

#[cfg(feature = "device")]
use brasa_env::{EnvSpec, Space};
#[cfg(feature = "device")]
use burn::tensor::Device;

/// The device of tests: the CPU, or `BRASA_TEST_DEVICE` (`cuda`, `wgpu`).
///
/// # Panics
/// If that device cannot be opened.
#[cfg(feature = "device")]
pub fn device() -> Device {
    let name = std::env::var("BRASA_TEST_DEVICE").unwrap_or_else(|_| "cpu".into());
    brasa_device::open_named(&name).unwrap_or_else(|error| panic!("BRASA_TEST_DEVICE: {error}"))
}

/// A specification for tests of buffers: environments of one agent with these rows and time between truncations.
#[cfg(feature = "device")]
pub fn spec_of_rows(n_rows: usize, truncation_interval: u64) -> EnvSpec {
    EnvSpec { truncation_interval, ..EnvSpec::new(Space::Discrete(1), Space::Discrete(1), n_rows) }
}

/// Cases of a property test: `quick`, or with `BRASA_SLOW` at least 1,000.
pub fn cases(quick: u32) -> u32 {
    if std::env::var_os("BRASA_SLOW").is_some() { quick.max(1000) } else { quick }
}

/// Whether long tests run, which `BRASA_SLOW` enables; otherwise prints a message.
pub fn slow(test: &str) -> bool {
    let slow = std::env::var_os("BRASA_SLOW").is_some();
    if !slow {
        eprintln!("SKIPPED: {test} takes minutes; set BRASA_SLOW=1 to run it");
    }
    slow
}
