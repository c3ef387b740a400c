//! Rollout storage on the device and generalized advantage estimation.
