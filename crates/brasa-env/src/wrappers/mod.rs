//! Wrappers around a batch; they can be nested.

mod episode_stats;
mod inner_slabs;
mod joint_obs;
mod moments;
mod normalize_obs;
mod previous_action;
mod scale_reward;
mod shape_reward;
mod time_limit;
mod wrapper;

pub(crate) use episode_stats::EpisodeCounter;
pub use episode_stats::EpisodeStats;
pub use joint_obs::JointObs;
pub use moments::RunningMoments;
pub use normalize_obs::NormalizeObs;
pub use previous_action::PreviousAction;
pub use scale_reward::ScaleReward;
pub use shape_reward::ShapeReward;
pub use time_limit::TimeLimit;
pub use wrapper::Wrapper;
