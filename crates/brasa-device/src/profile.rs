//! Device profiles: data of machines.

use serde::Serialize;

use crate::Backend;

/// Data sheet values of a kind of machine.
///
/// The performance of a run is measured, never derived from these values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// Short name, as in a config (`rtx-4060`).
    pub name: &'static str,
    /// The backend of the device.
    pub backend: Backend,
    /// Memory of the device in GiB; `None` for host memory.
    pub memory_gib: Option<f64>,
    /// Memory bandwidth in GB/s.
    pub bandwidth_gb_per_sec: Option<f64>,
    /// Peak single precision in TFLOP/s.
    pub fp32_tflops: Option<f64>,
    /// CUDA compute capability.
    pub compute_capability: Option<&'static str>,
}

/// All profiles.
pub fn profiles() -> &'static [Profile] {
    const fn cuda(name: &'static str, memory: f64, bandwidth: f64, tflops: f64, capability: &'static str) -> Profile {
        Profile {
            name,
            backend: Backend::Cuda,
            memory_gib: Some(memory),
            bandwidth_gb_per_sec: Some(bandwidth),
            fp32_tflops: Some(tflops),
            compute_capability: Some(capability),
        }
    }
    const PROFILES: &[Profile] = &[
        Profile {
            name: "cpu",
            backend: Backend::Flex,
            memory_gib: None,
            bandwidth_gb_per_sec: None,
            fp32_tflops: None,
            compute_capability: None,
        },
        // Ada AD107; the capability is 8.9, not the 8.6 of Ampere.
        cuda("rtx-4060", 8.0, 272.0, 15.1, "8.9"),
        cuda("rtx-5090", 32.0, 1792.0, 104.8, "12.0"),
        cuda("t4", 16.0, 320.0, 8.1, "7.5"),
        cuda("h200", 141.0, 4800.0, 67.0, "9.0"),
    ];
    PROFILES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = profiles().iter().map(|profile| profile.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), profiles().len());
    }
}
