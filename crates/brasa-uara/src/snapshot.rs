//! A network at one time, as input of the baselines.

use std::sync::Arc;

use crate::radio::{Link, Radio};
use crate::receiver::Receiver;

/// The gains of a network at one time.
///
/// ```
/// use brasa_uara::{Interference, Link, Radio, Snapshot};
///
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// // Two users and two stations; user 0 is near station 0, and user 1 near station 1.
/// let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// let link = |station, channel| Link { station, channel, power: 0 };
/// assert_eq!(snapshot.outcome(&[link(0, 0), link(1, 1)]).satisfied, [true, true]);
/// // On one channel they interfere.
/// assert_eq!(snapshot.outcome(&[link(0, 0), link(1, 0)]).satisfied, [false, false]);
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The constants of the network.
    pub radio: Arc<Radio>,
    /// `[n_users, n_stations]`: power that a user receives from a station at full power, mW; 0 if it does not
    /// interfere.
    pub received_mw: Vec<f64>,
    /// `[n_users, n_stations]`: whether a station can serve a user.
    pub reached: Vec<bool>,
    /// `[n_users, n_stations]`: whether a learner may choose the station; this may include stations that do not reach
    /// it.
    pub allowed: Vec<bool>,
}

/// The result of a joint choice of links.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::{Link, Outcome};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let links = [Link { station: 0, channel: 0, power: 0 }, Link { station: 1, channel: 1, power: 0 }];
/// let outcome: Outcome = snapshot.outcome(&links);
/// assert_eq!((outcome.qos_rate(), outcome.jain()), (1.0, 1.0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// SINR of each user, as a factor.
    pub sinr: Vec<f64>,
    /// Rate of each user, Mb/s.
    pub rate_mbps: Vec<f64>,
    /// Whether each user is satisfied.
    pub satisfied: Vec<bool>,
}

impl Snapshot {
    /// The result of `links`, one per user.
    ///
    /// # Panics
    /// If there is not one link per user, or a link is invalid.
    pub fn outcome(&self, links: &[Link]) -> Outcome {
        self.outcome_with(&mut Receiver::new(&self.radio), links)
    }

    /// The same with the memory of a receiver for this network, for many calls.
    ///
    /// # Panics
    /// As [`Snapshot::outcome`].
    pub fn outcome_with(&self, receiver: &mut Receiver<f64>, links: &[Link]) -> Outcome {
        let mut sinr = vec![0.0; links.len()];
        receiver.sinr(&self.received_mw, &self.reached, links, &mut sinr);
        let rate_mbps = sinr.iter().map(|sinr| self.radio.rate_mbps(*sinr)).collect();
        let satisfied = sinr.iter().map(|sinr| *sinr >= self.radio.min_sinr).collect();
        Outcome { sinr, rate_mbps, satisfied }
    }

    /// Power that `user` receives from `station` at full power, mW.
    pub fn received_mw(&self, user: usize, station: usize) -> f64 {
        self.received_mw[user * self.radio.n_stations + station]
    }

    /// Whether `station` can serve `user` and may be chosen.
    pub fn usable(&self, user: usize, station: usize) -> bool {
        let at = user * self.radio.n_stations + station;
        self.reached[at] && self.allowed[at]
    }
}

impl Outcome {
    /// Fraction of satisfied users.
    pub fn qos_rate(&self) -> f64 {
        let satisfied = self.satisfied.iter().filter(|satisfied| **satisfied).count();
        satisfied as f64 / self.satisfied.len() as f64
    }

    /// Sum of all rates, Mb/s.
    pub fn sum_rate_mbps(&self) -> f64 {
        self.rate_mbps.iter().sum()
    }

    /// Jain's fairness index of the rates (Jain et al. 1984): 1 if all are equal, `1 / n` if one user has the whole
    /// rate, 0 if all rates are 0.
    pub fn jain(&self) -> f64 {
        jain(self.rate_mbps.iter().copied())
    }
}

/// `(sum x)^2 / (n sum x^2)`.
pub(crate) fn jain(rates: impl Iterator<Item = f64>) -> f64 {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for rate in rates {
        n += 1.0;
        sum += rate;
        squares += rate * rate;
    }
    if squares > 0.0 { sum * sum / (n * squares) } else { 0.0 }
}
