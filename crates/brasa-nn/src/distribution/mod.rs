//! Distributions over actions: log-probabilities, entropies and samples as functions on tensors.
//!
//! Log-probabilities and entropies are sums over the dimensions of an action, never means.

pub mod categorical;
pub mod gaussian;
pub mod hybrid;
