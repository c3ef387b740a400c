//! The numbers of rules on the host.

use serde::{Deserialize, Serialize};

/// The numbers with which [`crate::RuleEnv`] computes.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/tanks.inc")); }
/// # use shown::*;
/// use brasa_env::{Env, Precision, RuleEnv, episode_rng};
///
/// // `Tank` is the tank of the page of `Rules`.
/// let level = |precision| {
///     let mut tank = RuleEnv::at(Tank, [0.3]).with_precision(precision);
///     tank.step(ndarray::array![0.0].view(), &mut episode_rng(0, 0, 0), ndarray::array![0.0].view_mut());
///     tank.state().0[0]
/// };
/// assert_eq!(level(Precision::F64), 0.3 * 0.9);
/// assert_eq!(level(Precision::F32), f64::from(0.3f32 * 0.9));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 64 bits, as in Gymnasium.
    #[default]
    F64,
    /// 32 bits, as on devices. Batches step faster, and states are kept small ([`crate::Rules::compact`]).
    F32,
}
