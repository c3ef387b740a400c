//! Reinforcement learning on Burn: one crate that re-exports the others.
