//! What the action of a socket asks for.

use serde::{Deserialize, Serialize};

/// The share of the full power that a socket's action in [-1, 1] asks for.
///
/// ```
/// use brasa_energy::iquitos::{IquitosConfig, SocketActions};
///
/// let config: IquitosConfig = serde_json::from_str(r#"{ "socket_actions": "hold-back" }"#)?;
/// assert_eq!(config.socket_actions, SocketActions::HoldBack);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SocketActions {
    /// `(1 + action) / 2`: 0 is half the power.
    #[default]
    Linear,
    /// `1 + min(action, 0)`: 0 and above is full power, as without control. An untrained policy, whose actions are around 0, then
    /// serves vehicles, and learns where to hold back; with many sockets of which each changes the reward by less than its
    /// noise, a policy hardly leaves the actions that it starts from.
    HoldBack,
}

impl SocketActions {
    /// The share of the full power for an action in [-1, 1].
    #[inline]
    pub(crate) fn share(self, action: f32) -> f32 {
        match self {
            Self::Linear => 0.5 * (action + 1.0),
            Self::HoldBack => 1.0 + action.min(0.0),
        }
    }

    /// The largest action that makes a difference, and the slope and the value at 0 of the share up to it.
    pub(crate) fn line(self) -> (f32, f64, f64) {
        match self {
            Self::Linear => (1.0, 0.5, 0.5),
            Self::HoldBack => (0.0, 1.0, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_share_are_the_same() {
        for actions in [SocketActions::Linear, SocketActions::HoldBack] {
            for action in [-1.0, -0.25, 0.0, 0.5, 1.0] {
                let (most, slope, offset) = actions.line();
                let share = f64::from(f32::min(action, most)) * slope + offset;
                assert_eq!(f64::from(actions.share(action)), share, "{actions:?} {action}");
            }
        }
    }
}
