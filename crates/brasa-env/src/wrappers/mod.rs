//! Wrappers around a batch; they compose in any order, the innermost first.

mod episode_stats;
mod moments;
mod normalize_obs;
mod scale_reward;
mod shape_reward;
mod time_limit;

pub use episode_stats::EpisodeStats;
pub use moments::RunningMoments;
pub use normalize_obs::NormalizeObs;
pub use scale_reward::ScaleReward;
pub use shape_reward::ShapeReward;
pub use time_limit::TimeLimit;

/// The methods of [`crate::EnvBatch`] that a wrapper hands on unchanged.
macro_rules! forward_to_inner {
    () => {
        fn n_envs(&self) -> usize {
            self.inner.n_envs()
        }
        fn n_agents(&self) -> usize {
            self.inner.n_agents()
        }
        fn action_space(&self) -> &crate::Space {
            self.inner.action_space()
        }
        fn shared_width(&self) -> usize {
            self.inner.shared_width()
        }
        fn has_mask(&self) -> bool {
            self.inner.has_mask()
        }
        fn options_per_flag(&self) -> usize {
            self.inner.options_per_flag()
        }
        fn has_elapsed(&self) -> bool {
            self.inner.has_elapsed()
        }
        fn info_names(&self) -> &[String] {
            self.inner.info_names()
        }
    };
}
pub(crate) use forward_to_inner;
