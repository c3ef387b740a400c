//! A cellular network, its baselines and its episodes. One program, so that the crates below are linked once.

mod common;

mod baselines;
mod bs_agent;
mod environment;
mod episodes;
mod physics;
