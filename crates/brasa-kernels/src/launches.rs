//! Counting launches.

use std::collections::BTreeMap;

/// How many kernels `work` launches on GPUs; 0 in a program without a backend for them. Kernels of all threads of the process count.
///
/// Small networks need more launches than arithmetic on a GPU, so this number is what their time depends on.
///
/// ```
/// use brasa_kernels::n_launches;
/// use burn::tensor::Tensor;
///
/// let x = Tensor::<1>::ones([4], &brasa_device::open_named("cpu")?);
/// // The CPU launches no kernels.
/// assert_eq!(n_launches(|| drop((x * 2.0).tanh().into_data())), 0);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn n_launches(work: impl FnOnce()) -> usize {
    launches_by_kernel(work).values().sum()
}

/// The same for every kernel by its name.
///
/// ```
/// use brasa_kernels::launches_by_kernel;
/// use burn::tensor::Tensor;
///
/// let x = Tensor::<1>::ones([4], &brasa_device::open_named("cpu")?);
/// for (kernel, n) in launches_by_kernel(|| drop(x.tanh())) {
///     println!("{kernel}: {n}");
/// }
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn launches_by_kernel(work: impl FnOnce()) -> BTreeMap<&'static str, usize> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use std::sync::{Arc, Mutex, PoisonError};

        use burn_cubecl::cubecl::logging::{LaunchObservation, LaunchObserver};

        #[derive(Default)]
        struct Counts(Mutex<BTreeMap<&'static str, usize>>);

        impl LaunchObserver for Counts {
            fn launched(&self, kernel: &'static str) {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kernel).or_default() += 1;
            }
        }

        let counts = Arc::new(Counts::default());
        let observation = LaunchObservation::new(counts.clone());
        work();
        drop(observation);
        std::mem::take(&mut *counts.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    {
        work();
        BTreeMap::new()
    }
}
