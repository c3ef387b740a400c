//! How the backend of a GPU holds memory, compiles and chooses kernels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DeviceError;

/// How the backend of a GPU holds memory, compiles and chooses kernels. The CPU ignores it.
///
/// The settings are those of CubeCL. What is not set here comes from a file `cubecl.toml` or `burn.toml` in the working directory, and from
/// CubeCL's environment variables.
///
/// ```
/// use brasa_device::{Allocator, GpuSettings};
///
/// // Once, before the first device is opened.
/// GpuSettings { allocator: Some(Allocator::Async), ..Default::default() }.apply()?;
/// let device = brasa_device::open_named("cpu")?;
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GpuSettings {
    /// Allocator of the memory of NVIDIA GPUs: `sync`, the default, or `async`, the pool of CUDA. With `async`, memory is added without
    /// waiting for running kernels, and CUDA may reserve more of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocator: Option<Allocator>,
    /// Which tensors get memory of exactly their size, which is kept: `enabled`, the default, weights; `size-match` also tensors of
    /// the size of a weight, as gradients and moments; `disabled` none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_memory: Option<PersistentMemory>,
    /// How many kernels are timed before one is chosen, with the feature `autotune`: `minimal`, `balanced`, the default, `extensive` or
    /// `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autotune: Option<AutotuneLevel>,
    /// Whether compiled kernels are kept in the cache directory of the user, with the feature `kernel-cache`. Default yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_cache: Option<bool>,
}

/// Allocator of the memory of NVIDIA GPUs.
///
/// ```
/// use brasa_device::{Allocator, GpuSettings};
///
/// let settings: GpuSettings = toml::from_str("allocator = \"async\"")?;
/// assert_eq!(settings.allocator, Some(Allocator::Async));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Allocator {
    /// `cuMemAlloc`: memory is added after running kernels have ended.
    Sync,
    /// `cuMemAllocAsync`: memory is added in the order of the stream.
    Async,
}

/// Which tensors get memory of exactly their size, which is kept until they are dropped.
///
/// ```
/// use brasa_device::{GpuSettings, PersistentMemory};
///
/// let settings: GpuSettings = toml::from_str("persistent_memory = \"size-match\"")?;
/// assert_eq!(settings.persistent_memory, Some(PersistentMemory::SizeMatch));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PersistentMemory {
    /// Weights.
    Enabled,
    /// Weights, and every tensor of the size of a weight.
    SizeMatch,
    /// None.
    Disabled,
}

/// How many kernels are timed before one is chosen.
///
/// ```
/// use brasa_device::{AutotuneLevel, GpuSettings};
///
/// let settings = GpuSettings { autotune: Some(AutotuneLevel::Full), ..Default::default() };
/// # #[cfg(not(feature = "autotune"))] {
/// let error = settings.apply().unwrap_err();
/// assert_eq!(error.to_string(), "`train.gpu.autotune` needs a program built with `--features autotune`");
/// # }
/// # assert!(!settings.is_unset());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AutotuneLevel {
    /// The fewest.
    Minimal,
    /// Those that are usually fast.
    Balanced,
    /// More.
    Extensive,
    /// All.
    Full,
}

impl GpuSettings {
    /// Whether no setting is set.
    pub fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    /// Makes these the settings of the GPUs of this process. Call it before the first device is opened: backends read their settings once.
    ///
    /// # Errors
    /// [`DeviceError::Setting`] if a setting needs a feature that is not compiled in, or a GPU was already used with other settings.
    pub fn apply(&self) -> Result<(), DeviceError> {
        self.check_features()?;
        #[cfg(any(feature = "cuda", feature = "wgpu"))]
        self.apply_to_cubecl()?;
        Ok(())
    }

    fn check_features(&self) -> Result<(), DeviceError> {
        let needs = |setting, is_set: bool, is_on: bool, feature: &str| match is_set && !is_on {
            true => Err(DeviceError::Setting {
                setting,
                reason: format!("needs a program built with `--features {feature}`"),
            }),
            false => Ok(()),
        };
        needs("autotune", self.autotune.is_some(), cfg!(feature = "autotune"), "autotune")?;
        needs("kernel_cache", self.kernel_cache == Some(true), cfg!(feature = "kernel-cache"), "kernel-cache")
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn apply_to_cubecl(&self) -> Result<(), DeviceError> {
        use cubecl_runtime::config::{CubeClRuntimeConfig, RuntimeConfig};

        let wanted = self.changed(CubeClRuntimeConfig::from_current_dir().override_from_env());
        if CubeClRuntimeConfig::try_set(wanted.clone()) {
            return Ok(());
        }
        let in_use = CubeClRuntimeConfig::get();
        let is_other = [
            ("allocator", wanted.memory.cuda.allocator != in_use.memory.cuda.allocator),
            ("persistent_memory", differ(&wanted.memory.persistent_memory, &in_use.memory.persistent_memory)),
            ("autotune", differ(&wanted.autotune.level, &in_use.autotune.level)),
            #[cfg(feature = "kernel-cache")]
            ("kernel_cache", wanted.compilation.cache != in_use.compilation.cache),
        ];
        match is_other.into_iter().find(|(_, is_other)| *is_other) {
            Some((setting, _)) => {
                let reason = "has another value in this process, which has used a GPU already".to_owned();
                Err(DeviceError::Setting { setting, reason })
            }
            None => Ok(()),
        }
    }

    /// CubeCL's settings with these in place of its own.
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn changed(
        &self,
        mut config: cubecl_runtime::config::CubeClRuntimeConfig,
    ) -> cubecl_runtime::config::CubeClRuntimeConfig {
        use cubecl_runtime::config::{autotune, memory};

        if let Some(allocator) = self.allocator {
            config.memory.cuda.allocator = match allocator {
                Allocator::Sync => memory::CudaAllocator::Sync,
                Allocator::Async => memory::CudaAllocator::Async,
            };
        }
        if let Some(which) = self.persistent_memory {
            config.memory.persistent_memory = match which {
                PersistentMemory::Enabled => memory::PersistentMemory::Enabled,
                PersistentMemory::SizeMatch => memory::PersistentMemory::SizeMatch,
                PersistentMemory::Disabled => memory::PersistentMemory::Disabled,
            };
        }
        if let Some(level) = self.autotune {
            config.autotune.level = match level {
                AutotuneLevel::Minimal => autotune::AutotuneLevel::Minimal,
                AutotuneLevel::Balanced => autotune::AutotuneLevel::Balanced,
                AutotuneLevel::Extensive => autotune::AutotuneLevel::Extensive,
                AutotuneLevel::Full => autotune::AutotuneLevel::Full,
            };
        }
        #[cfg(feature = "kernel-cache")]
        {
            use cubecl_runtime::config::cache::CacheConfig;

            config.compilation.cache = self.kernel_cache.unwrap_or(true);
            // The default is a folder of the project, which an installed program does not have.
            if matches!(config.environment.path, CacheConfig::Target) {
                config.environment.path = CacheConfig::Global;
            }
        }
        config
    }
}

/// Whether two settings of CubeCL, which have no equality, are spelled differently.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
fn differ<T: std::fmt::Debug>(a: &T, b: &T) -> bool {
    format!("{a:?}") != format!("{b:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_set_by_default() {
        let settings: GpuSettings = toml::from_str("").expect("all fields are optional");
        assert_eq!(settings, GpuSettings::default());
        assert_eq!(toml::to_string(&settings).expect("a table"), "");
        settings.apply().expect("nothing to set");
    }

    #[cfg(not(feature = "autotune"))]
    #[test]
    fn a_missing_feature_is_named() {
        let settings = GpuSettings { autotune: Some(AutotuneLevel::Full), ..Default::default() };
        let error = settings.apply().expect_err("a feature is missing");
        assert_eq!(error.to_string(), "`train.gpu.autotune` needs a program built with `--features autotune`");
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    #[test]
    fn settings_replace_those_of_cubecl() {
        use cubecl_runtime::config::{CubeClRuntimeConfig, memory};

        let text = "allocator = \"async\"\npersistent_memory = \"size-match\"\nautotune = \"full\"\n";
        let settings: GpuSettings = toml::from_str(text).expect("known settings");
        let config = settings.changed(CubeClRuntimeConfig::default());
        assert_eq!(config.memory.cuda.allocator, memory::CudaAllocator::Async);
        assert!(matches!(config.memory.persistent_memory, memory::PersistentMemory::SizeMatch));
        assert!(!differ(&config.autotune.level, &cubecl_runtime::config::autotune::AutotuneLevel::Full));
        let kept = GpuSettings::default().changed(config);
        assert_eq!(kept.memory.cuda.allocator, memory::CudaAllocator::Async);
    }
}
