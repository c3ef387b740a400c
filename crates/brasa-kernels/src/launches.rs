//! Counting launches.

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
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};

        use burn_cubecl::cubecl::logging::{LaunchObservation, LaunchObserver};

        #[derive(Default)]
        struct Counter(AtomicUsize);

        impl LaunchObserver for Counter {
            fn launched(&self, _kernel: &'static str) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }

        let counter = Arc::new(Counter::default());
        let observation = LaunchObservation::new(counter.clone());
        work();
        drop(observation);
        counter.0.load(Ordering::Relaxed)
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    {
        work();
        0
    }
}
