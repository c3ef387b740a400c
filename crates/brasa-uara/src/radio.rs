//! Powers, path loss and rates of a link.

use brasa_number::Number;
use serde::{Deserialize, Serialize};

/// The power in mW of a level in dBm.
///
/// ```
/// use brasa_uara::dbm_to_mw;
///
/// assert_eq!([dbm_to_mw(0.0), dbm_to_mw(30.0)], [1.0, 1000.0]);
/// ```
pub fn dbm_to_mw(dbm: f64) -> f64 {
    10f64.powf(dbm / 10.0)
}

/// The level in dBm of a power in mW.
///
/// ```
/// use brasa_uara::mw_to_dbm;
///
/// assert_eq!([mw_to_dbm(1.0), mw_to_dbm(100.0)], [0.0, 20.0]);
/// ```
pub fn mw_to_dbm(mw: f64) -> f64 {
    10.0 * mw.log10()
}

/// Shannon's capacity at an SINR, bit/s per Hz: `log2(1 + SINR)`.
pub(crate) fn bits_per_hz<N: Number>(sinr: N) -> N {
    (sinr + 1.0).log2()
}

/// Path loss: `at_1_m_db + decade_db log10(d)` dB at `d` m.
///
/// ```
/// use brasa_uara::PathLoss;
///
/// let loss = PathLoss { at_1_m_db: 34.0, decade_db: 40.0 };
/// assert_eq!([loss.db(1.0), loss.db(100.0)], [34.0, 114.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathLoss {
    /// Loss at 1 m, dB.
    pub at_1_m_db: f64,
    /// Additional loss per decade of distance, dB: 20 in free space, 30 to 40 among buildings.
    pub decade_db: f64,
}

impl PathLoss {
    /// The loss at `distance_m`, dB; `-inf` at 0.
    pub fn db(&self, distance_m: f64) -> f64 {
        self.at_1_m_db + self.decade_db * distance_m.log10()
    }
}

/// Model of interference, and of users that request the same channel of one station.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::Link;
///
/// // Two users request one channel of station 0: it admits the one with the stronger signal.
/// let links = [Link { station: 0, channel: 0, power: 0 }; 2];
/// let rates = |interference| {
///     let radio = Radio { interference, ..(*snapshot.radio).clone() };
///     Snapshot { radio: radio.into(), ..snapshot.clone() }.outcome(&links).rate_mbps
/// };
/// assert!((rates(Interference::PerTransmitter)[0] - 6.0).abs() < 1e-9);
/// assert_eq!(rates(Interference::PerTransmitter)[1], 0.0);
/// assert!(rates(Interference::PerLink).iter().all(|rate| (0.5..1.0).contains(rate)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interference {
    /// The sum over the links of all other users on the channel: a station that serves two users on it interferes twice
    /// with a third user, and the two users interfere with each other.
    #[default]
    PerLink,
    /// The sum over the other stations that transmit on the channel, each once: a station admits one user per channel,
    /// the one with the strongest signal, and rejects the others. With admission both sums are equal, so admission and
    /// interference are one setting.
    PerTransmitter,
}

/// The constants of a network.
///
/// ```
/// use brasa_uara::{Radio, UaraConfig};
///
/// let radio: Radio = UaraConfig::default().radio();
/// assert_eq!((radio.n_stations, radio.n_channels, radio.n_actions()), (26, 20, 520));
/// // An SINR of 3 gives 2 bit/s per Hz in 180 kHz.
/// assert_eq!(radio.rate_mbps(3.0), 0.36);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Radio {
    /// Users.
    pub n_users: usize,
    /// Stations.
    pub n_stations: usize,
    /// Channels; every station can transmit on each.
    pub n_channels: usize,
    /// Power levels of a link, as fractions of the station's power; `[1.0]` without a choice.
    pub power_levels: Vec<f64>,
    /// Bandwidth of a channel, Hz.
    pub bandwidth_hz: f64,
    /// Noise in a channel, mW.
    pub noise_mw: f64,
    /// Smallest SINR of a satisfied user; a factor, not dB.
    pub min_sinr: f64,
    /// Largest spectral efficiency, bit/s per Hz, if limited by modulation.
    pub max_bits_per_hz: Option<f64>,
    /// Model of interference.
    pub interference: Interference,
}

/// The link of a user.
///
/// ```
/// use brasa_uara::{Link, UaraConfig};
///
/// let radio = UaraConfig::default().radio();
/// let link = Link { station: 2, channel: 1, power: 0 };
/// // 20 channels per station.
/// assert_eq!(radio.option(link), 41);
/// assert_eq!(radio.link(41), link);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Link {
    /// The station that serves it.
    pub station: u16,
    /// The channel.
    pub channel: u16,
    /// The power level.
    pub power: u16,
}

impl Radio {
    /// Number of options of one user.
    pub fn n_actions(&self) -> usize {
        self.n_stations * self.options_per_station()
    }

    /// Number of consecutive options with the same station.
    pub fn options_per_station(&self) -> usize {
        self.n_channels * self.power_levels.len()
    }

    /// The link of option `(station * n_channels + channel) * levels + level`.
    pub fn link(&self, option: usize) -> Link {
        let levels = self.power_levels.len();
        let (pair, power) = (option / levels, option % levels);
        Link { station: (pair / self.n_channels) as u16, channel: (pair % self.n_channels) as u16, power: power as u16 }
    }

    /// The option of `link`.
    pub fn option(&self, link: Link) -> usize {
        let pair = usize::from(link.station) * self.n_channels + usize::from(link.channel);
        pair * self.power_levels.len() + usize::from(link.power)
    }

    /// The level with the most power, the first one if equal.
    pub fn full_power(&self) -> u16 {
        let levels = self.power_levels.iter().enumerate();
        levels.reduce(|a, b| if b.1 > a.1 { b } else { a }).map_or(0, |(level, _)| level as u16)
    }

    /// The rate at an SINR, Mb/s: Shannon's capacity, up to the largest spectral efficiency.
    pub fn rate_mbps<N: Number>(&self, sinr: N) -> N {
        let bits = bits_per_hz(sinr);
        self.max_bits_per_hz.map_or(bits, |most| bits.min_of(most)) * (self.bandwidth_hz / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_links_name_each_other() {
        let radio = Radio {
            n_users: 1,
            n_stations: 3,
            n_channels: 4,
            power_levels: vec![0.5, 1.0],
            bandwidth_hz: 1.0,
            noise_mw: 1.0,
            min_sinr: 1.0,
            max_bits_per_hz: Some(2.0),
            interference: Interference::PerLink,
        };
        assert_eq!(radio.n_actions(), 24);
        assert!((0..24).all(|option| radio.option(radio.link(option)) == option));
        assert_eq!(radio.link(8 + 3 * 2 + 1), Link { station: 1, channel: 3, power: 1 });
        assert_eq!(radio.rate_mbps(3.0), 2.0e-6);
        assert_eq!(radio.rate_mbps(1e9), 2.0e-6);
    }
}
