//! Devices without memory left, as an error.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::DeviceError;

/// What the messages of CubeCL and of drivers have in common if memory is exhausted, in lower case.
const SIGNS: [&str; 5] =
    ["out of device memory", "out of memory", "out-of-memory", "outofmemory", "can't allocate buffer of size"];

impl DeviceError {
    /// [`DeviceError::OutOfMemory`] if the message of a device or a panic says so.
    ///
    /// ```
    /// use brasa_device::DeviceError;
    ///
    /// let error = DeviceError::out_of_memory("out of device memory allocating 4096 bytes").expect("it says so");
    /// assert_eq!(error.to_string(), "the device has too little memory: out of device memory allocating 4096 bytes");
    /// assert!(DeviceError::out_of_memory("index out of bounds").is_none());
    /// ```
    pub fn out_of_memory(message: &str) -> Option<Self> {
        // Where the backend failed stands before and after it.
        let begin = |line: &str| SIGNS.iter().filter_map(|sign| line.to_ascii_lowercase().find(sign)).min();
        let reason = message.lines().find_map(|line| Some(&line[begin(line)?..]))?;
        Some(Self::OutOfMemory { reason: reason.trim().to_owned() })
    }
}

/// Calls `work`. A backend panics if an allocation fails: such a panic becomes an error, others go on.
///
/// ```
/// use brasa_device::catch_out_of_memory;
///
/// assert_eq!(catch_out_of_memory(|| 5)?, 5);
/// let error = catch_out_of_memory(|| panic!("can't allocate buffer of size: 99")).unwrap_err();
/// assert_eq!(error.to_string(), "the device has too little memory: can't allocate buffer of size: 99");
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
///
/// # Errors
/// [`DeviceError::OutOfMemory`].
pub fn catch_out_of_memory<T>(work: impl FnOnce() -> T) -> Result<T, DeviceError> {
    // What `work` leaves behind is given up by the caller together with the error.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| match DeviceError::out_of_memory(&text_of(&*panic)) {
        Some(error) => error,
        None => resume_unwind(panic),
    })
}

/// The message of a panic; empty if it has none.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_panics_about_memory_become_errors() {
        assert_eq!(catch_out_of_memory(|| 5).expect("nothing happens"), 5);
        let caught =
            catch_out_of_memory(|| panic!("the read failed: IoError\n  can't allocate buffer of size: 99\nat 0: main"));
        let error = caught.expect_err("it panicked");
        assert_eq!(error.to_string(), "the device has too little memory: can't allocate buffer of size: 99");
        let other = catch_unwind(|| catch_out_of_memory(|| panic!("a bug")));
        assert_eq!(text_of(&*other.expect_err("it goes on")), "a bug");
    }
}
