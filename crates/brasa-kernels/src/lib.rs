//! Operations fused by hand as Burn backend extensions.
//!
//! Each has a body of plain operations, so every backend has it, and a test that compares the two. An operation comes
//! here when a profile calls for it, never before. This crate knows no policies and no loops.

mod tanh;

pub use tanh::{linear_tanh, tanh};
