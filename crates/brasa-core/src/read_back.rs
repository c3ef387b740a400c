//! Reading from a device, counted.

use std::cell::Cell;

use burn::tensor::{DType, Tensor, TensorData, Transaction};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Number of reads of this thread so far. Each waits for the device; computations on the CPU that look at their own memory do not
/// count.
///
/// ```
/// use brasa_core::{Metrics, n_read_backs};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut metrics = Metrics::default();
/// for name in ["train/loss", "train/entropy"] {
///     metrics.push_tensor(name, Tensor::ones([1], &device));
/// }
/// let before = n_read_backs();
/// metrics.read()?;
/// assert_eq!(n_read_backs(), before + 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn n_read_backs() -> u64 {
    COUNT.get()
}

fn count() {
    COUNT.set(COUNT.get() + 1);
}

/// The numbers of a tensor, row by row; waits for the device.
///
/// ```
/// use brasa_core::read_back;
/// use burn::tensor::Tensor;
///
/// let tensor = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &brasa_device::open_named("cpu")?);
/// assert_eq!(read_back(tensor), [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn read_back<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    count();
    // Waits for the device: this is its purpose.
    let data = tensor.into_data();
    match data.dtype() {
        DType::F32 => data.try_into_vec().expect("the type was just looked at"),
        _ => data.iter().collect(),
    }
}

/// The data of tensors, in the order of their registration; waits for the device once.
///
/// ```
/// use brasa_core::{n_read_backs, read_all};
/// use burn::tensor::{Tensor, Transaction};
///
/// let device = brasa_device::open_named("cpu")?;
/// let [a, b] = [[1.0, 2.0], [3.0, 4.0]].map(|row| Tensor::<1>::from_floats(row, &device));
/// let before = n_read_backs();
/// let data = read_all(Transaction::default().register(a).register(b));
/// assert_eq!(data[1].iter::<f32>().collect::<Vec<_>>(), [3.0, 4.0]);
/// assert_eq!(n_read_backs(), before + 1);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn read_all(transaction: Transaction) -> Vec<TensorData> {
    count();
    // Waits for the device: this is its purpose.
    transaction.execute()
}

/// The numbers of several tensors; waits for the device once.
///
/// # Errors
/// The message of the device.
pub(crate) fn read_together(tensors: Vec<Tensor<1>>) -> Result<Vec<Vec<f32>>, String> {
    count();
    let transaction = tensors.into_iter().fold(Transaction::default(), Transaction::register);
    let data = transaction.try_execute().map_err(|error| format!("{error:?}"))?;
    Ok(data.into_iter().map(|data| data.iter().collect()).collect())
}
