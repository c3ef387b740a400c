//! What a machine can hold and do: device profiles and opening a Burn backend.
//!
//! This is the only crate that names backends. Features decide what is compiled in, [`open`] what runs.

mod open;
mod profile;

pub use open::{Backend, DeviceError, backends, open, open_named, runs_on_host};
pub use profile::{Profile, profiles};
