//! Settings of the scenario in which stations choose users.

use serde::{Deserialize, Serialize};

use brasa_env::field;

use crate::config::Redraw;
use crate::config::validate::check_steps;
use crate::error::UaraError;

/// Settings of [`BsAgentBatch`](crate::BsAgentBatch); the defaults are the published values.
///
/// ```
/// use brasa_uara::BsAgentConfig;
///
/// let config: BsAgentConfig = toml::from_str("users = 20\nsmall_cells = 3")?;
/// config.validate()?;
/// assert_eq!((config.n_stations(), config.episode_steps), (4, 500));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BsAgentConfig {
    /// Number of users. Default 1000; at most as many as stations can be connected.
    pub users: usize,
    /// Small cells besides the one macro cell, anywhere in its disk. Default 35.
    pub small_cells: usize,
    /// Radius of the disk around the macro cell with all positions, m. Default 700.
    pub radius_m: f64,
    /// Power of the macro cell over all channels, dBm. Default 46.
    pub macro_dbm: f64,
    /// Power of a small cell over all channels, dBm. Default 30.
    pub small_dbm: f64,
    /// Bandwidth of the macro cell, Hz. Default 100e6.
    pub macro_bandwidth_hz: f64,
    /// Bandwidth of a small cell, Hz. Default 200e6.
    pub small_bandwidth_hz: f64,
    /// Number of channels of a station, which divide its power and bandwidth; a link uses one of them. Default 20.
    pub channels: usize,
    /// Rate of the base layer of a video, Mb/s, for each class of demand; all classes have the same
    /// probability. Default `[4, 2, 1]`. A user is connected if a station gives it at least this rate.
    pub base_mbps: [f64; 3],
    /// Rate of each further layer, Mb/s, for each class. Default `[12, 10, 9]`.
    pub layer_mbps: [f64; 3],
    /// Reward of a station whose user is not connected; otherwise the reward is the rate in Mb/s. Default 0.
    pub unconnected_reward: f64,
    /// Steps after which an episode is truncated. Default 500.
    pub episode_steps: u32,
    /// When positions, fading and demand are sampled again. Default `never`, as all published episodes use one network.
    pub redraw: Redraw,
    /// Seed of networks that outlast an episode. Default 0.
    pub seed: u64,
    /// The defects of the published system. All on by default.
    pub parity: BsAgentParity,
}

/// Defects of the published system; each can be switched off separately.
///
/// ```
/// use brasa_uara::{BsAgentConfig, BsAgentParity};
///
/// assert!(BsAgentParity::default().later_write_wins);
/// // All defects but one are off.
/// let parity = BsAgentParity { mismatched_noise: true, ..BsAgentParity::none() };
/// BsAgentConfig { parity, ..BsAgentConfig::default() }.validate()?;
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BsAgentParity {
    /// Noise does not fit the bandwidth of links: -148.365 dBW, the noise of 366 kHz, for the macro cell, and the noise
    /// of the whole bandwidth for a small cell. Off: -204 dBW/Hz over one channel, and a noise figure of 10 dB in small
    /// cells as published.
    pub mismatched_noise: bool,
    /// Small cells divide their power by the number of channels and then by 275 blocks, though a link has a whole
    /// channel. Off: by the number of channels.
    pub power_divided_twice: bool,
    /// An episode succeeds when all users are connected, which is impossible with fewer stations than users, so that
    /// every episode is truncated. Off: when every station connects a different user, or all users are connected.
    pub all_users_must_connect: bool,
    /// Of two stations that chose the same user, the one with the larger index determines whether it is connected. Off:
    /// it is if either connects it.
    pub later_write_wins: bool,
    /// The macro cell is in line of sight within its radius, so for all users. Off: with the probability of 3GPP TR
    /// 38.901, Table 7.4.2-1, urban macro.
    pub macro_always_in_sight: bool,
    /// Shadowing of 4, 6 and 5.8 dB is used as a variance of `10^(dB / 10)` of a factor with mean 1. Off: as the
    /// standard deviation in dB of a factor with median 1, as in the sources of the path losses.
    pub linear_shadowing_variance: bool,
}

impl Default for BsAgentConfig {
    fn default() -> Self {
        Self {
            users: 1000,
            small_cells: 35,
            radius_m: 700.0,
            macro_dbm: 46.0,
            small_dbm: 30.0,
            macro_bandwidth_hz: 100e6,
            small_bandwidth_hz: 200e6,
            channels: 20,
            base_mbps: [4.0, 2.0, 1.0],
            layer_mbps: [12.0, 10.0, 9.0],
            unconnected_reward: 0.0,
            episode_steps: 500,
            redraw: Redraw::Never,
            seed: 0,
            parity: BsAgentParity::default(),
        }
    }
}

impl Default for BsAgentParity {
    fn default() -> Self {
        Self {
            mismatched_noise: true,
            power_divided_twice: true,
            all_users_must_connect: true,
            later_write_wins: true,
            macro_always_in_sight: true,
            linear_shadowing_variance: true,
        }
    }
}

impl BsAgentParity {
    /// None of the defects.
    pub fn none() -> Self {
        Self {
            mismatched_noise: false,
            power_divided_twice: false,
            all_users_must_connect: false,
            later_write_wins: false,
            macro_always_in_sight: false,
            linear_shadowing_variance: false,
        }
    }
}

/// Largest number of users or small cells.
const MOST: usize = 10_000;

impl BsAgentConfig {
    /// The macro cell and the small cells.
    pub fn n_stations(&self) -> usize {
        1 + self.small_cells
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`UaraError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), UaraError> {
        for (field, value, least) in
            [("users", self.users, 1), ("small_cells", self.small_cells, 0), ("channels", self.channels, 1)]
        {
            field::rule((least..=MOST).contains(&value), field, format!("must be between {least} and {MOST}"), value)?;
        }
        for (field, value) in [
            ("radius_m", self.radius_m),
            ("macro_bandwidth_hz", self.macro_bandwidth_hz),
            ("small_bandwidth_hz", self.small_bandwidth_hz),
        ] {
            // A draw of distances and rates must stay a number of 32 bits.
            field::rule(value > 0.0 && value <= 1e15, field, "must be above 0 and at most 1e15", value)?;
        }
        for (field, value) in [("macro_dbm", self.macro_dbm), ("small_dbm", self.small_dbm)] {
            field::rule((-100.0..=100.0).contains(&value), field, "must be between -100 and 100 dBm", value)?;
        }
        for (field, values) in [("base_mbps", self.base_mbps), ("layer_mbps", self.layer_mbps)] {
            field::rule(
                values.iter().all(|value| *value > 0.0 && value.is_finite()),
                field,
                "must be finite and above 0",
                format!("{values:?}"),
            )?;
        }
        field::within("unconnected_reward", self.unconnected_reward, -1e6, 1e6)?;
        check_steps(self.episode_steps)?;
        Ok(field::fits_in_memory("users", self.users, 16.0 * (self.users * self.n_stations()) as f64)?)
    }
}
