//! What all links together make of each other.

use ndarray::NdFloat;

use crate::radio::{Interference, Link, Radio};

/// Works out the ratio of signal to interference and noise of every user; keeps its memory between calls.
#[derive(Debug, Clone)]
pub struct Receiver<T> {
    n_stations: usize,
    noise_mw: T,
    power_levels: Vec<T>,
    admission: bool,
    /// The latest user on each channel, and for each user the one before it.
    last: Vec<u16>,
    previous: Vec<u16>,
    rejected: Vec<bool>,
}

/// Nobody.
const NONE: u16 = u16::MAX;

impl<T: NdFloat> Receiver<T> {
    /// A receiver for the networks of `radio`.
    pub fn new(radio: &Radio) -> Self {
        let float = |x: f64| T::from(x).expect("every float type holds an f64, rounded");
        Self {
            n_stations: radio.n_stations,
            noise_mw: float(radio.noise_mw),
            power_levels: radio.power_levels.iter().map(|x| float(*x)).collect(),
            admission: radio.interference == Interference::PerTransmitter,
            last: vec![NONE; radio.n_channels],
            previous: vec![NONE; radio.n_users],
            rejected: vec![false; radio.n_users],
        }
    }

    /// Users that their station turned down in the latest call.
    pub fn rejected(&self) -> &[bool] {
        &self.rejected
    }

    /// The ratios of all users, as factors: 0 where a station does not reach its user or turns it down.
    ///
    /// # Shapes
    /// - `received_mw`: `[n_users, n_stations]`, what each user receives of each station at its full power, 0 where it
    ///   disturbs nobody
    /// - `reached`: `[n_users, n_stations]`, whether a station can serve a user
    /// - `links`, `sinr`: `[n_users]`
    ///
    /// # Panics
    /// If a length or a link does not fit.
    pub fn sinr(&mut self, received_mw: &[T], reached: &[bool], links: &[Link], sinr: &mut [T]) {
        self.sinr_without(None, received_mw, reached, links, sinr);
    }

    /// The same as if one user were silent, whose own ratio is then 0.
    ///
    /// # Panics
    /// As [`Receiver::sinr`].
    pub fn sinr_without(
        &mut self,
        silent: Option<usize>,
        received_mw: &[T],
        reached: &[bool],
        links: &[Link],
        sinr: &mut [T],
    ) {
        let n = self.previous.len();
        assert!(links.len() == n && sinr.len() == n, "one link per user");
        assert!(received_mw.len() == n * self.n_stations && reached.len() == received_mw.len(), "one power per pair");
        self.last.fill(NONE);
        if self.admission {
            self.admit(silent, received_mw, reached, links);
        }
        for (user, link) in links.iter().enumerate() {
            if silent == Some(user) || (self.admission && self.rejected[user]) {
                continue;
            }
            let last = &mut self.last[usize::from(link.channel)];
            self.previous[user] = std::mem::replace(last, user as u16);
        }
        for (user, (link, sinr)) in links.iter().zip(sinr).enumerate() {
            let row = &received_mw[user * self.n_stations..(user + 1) * self.n_stations];
            let own = usize::from(link.station);
            let turned_down = self.admission && self.rejected[user];
            if silent == Some(user) || turned_down || !reached[user * self.n_stations + own] {
                *sinr = T::zero();
                continue;
            }
            let mut interference = T::zero();
            let mut other = self.last[usize::from(link.channel)];
            while other != NONE {
                let their = links[usize::from(other)];
                if usize::from(other) != user {
                    interference += row[usize::from(their.station)] * self.power_levels[usize::from(their.power)];
                }
                other = self.previous[usize::from(other)];
            }
            *sinr = row[own] * self.power_levels[usize::from(link.power)] / (interference + self.noise_mw);
        }
    }

    /// Lets every station keep, of the users who ask for the same channel, the one it reaches best; the first of equals.
    fn admit(&mut self, silent: Option<usize>, received_mw: &[T], reached: &[bool], links: &[Link]) {
        self.rejected.fill(false);
        for (user, link) in links.iter().enumerate().filter(|(user, _)| silent != Some(*user)) {
            let at = |user: usize| user * self.n_stations + usize::from(links[user].station);
            if !reached[at(user)] {
                // A request that no station hears: nobody sends.
                self.rejected[user] = true;
                continue;
            }
            let mut other = self.last[usize::from(link.channel)];
            while other != NONE && links[usize::from(other)].station != link.station {
                other = self.previous[usize::from(other)];
            }
            let last = &mut self.last[usize::from(link.channel)];
            if other == NONE {
                self.previous[user] = std::mem::replace(last, user as u16);
            } else if received_mw[at(user)] > received_mw[at(usize::from(other))] {
                // The better one takes the place of the other in the list.
                self.rejected[usize::from(other)] = true;
                self.previous[user] = self.previous[usize::from(other)];
                if *last == other {
                    *last = user as u16;
                } else {
                    let mut later = *last;
                    while self.previous[usize::from(later)] != other {
                        later = self.previous[usize::from(later)];
                    }
                    self.previous[usize::from(later)] = user as u16;
                }
            } else {
                self.rejected[user] = true;
            }
        }
        self.last.fill(NONE);
    }
}
