//! The Burn-side vocabulary of Brasa: rows, vectorized environments, policies, learners, metrics, schedules.
