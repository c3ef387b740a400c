//! Random sites.

pub mod station;
