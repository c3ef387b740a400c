//! The SINR of all links with interference.

use ndarray::NdFloat;
use pulp::{Simd, WithSimd};

use crate::radio::{Interference, Link, Radio};

/// Computes the SINR of every user; reuses its memory between calls.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::{Link, Receiver};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let links = [Link { station: 0, channel: 0, power: 0 }, Link { station: 1, channel: 1, power: 0 }];
/// let (mut receiver, mut sinr) = (Receiver::new(&snapshot.radio), [0.0; 2]);
/// receiver.sinr(&snapshot.received_mw, &snapshot.reached, &links, &mut sinr);
/// assert!(sinr.iter().all(|sinr| (sinr - 63.0).abs() < 1e-9));
/// assert_eq!(receiver.rejected(), [false, false]);
/// ```
#[derive(Debug, Clone)]
pub struct Receiver<T> {
    n_stations: usize,
    noise_mw: T,
    power_levels: Vec<T>,
    admission: bool,
    /// `[n_channels, width]`: the transmit power of each station on each channel, as a fraction of its full power,
    /// summed over its links; all zeros between calls.
    sent: Vec<T>,
    /// `[n_stations, width]`: 1 on the diagonal.
    own: Vec<T>,
    /// Number of stations, rounded up to whole lanes.
    width: usize,
    /// The latest user on each channel, and for each user the one before it; for admission.
    last: Vec<u16>,
    previous: Vec<u16>,
    rejected: Vec<bool>,
}

/// SIMD lanes of sums.
const LANES: usize = 8;

/// No user.
const NONE: u16 = u16::MAX;

impl<T: NdFloat> Receiver<T> {
    /// A receiver for the networks of `radio`.
    pub fn new(radio: &Radio) -> Self {
        let float = |x: f64| T::from(x).expect("every float type holds an f64, rounded");
        let width = radio.n_stations.next_multiple_of(LANES);
        let mut own = vec![T::zero(); radio.n_stations * width];
        (0..radio.n_stations).for_each(|station| own[station * width + station] = T::one());
        Self {
            n_stations: radio.n_stations,
            sent: vec![T::zero(); radio.n_channels * width],
            own,
            width,
            noise_mw: float(radio.noise_mw),
            power_levels: radio.power_levels.iter().map(|x| float(*x)).collect(),
            admission: radio.interference == Interference::PerTransmitter,
            last: vec![NONE; radio.n_channels],
            previous: vec![NONE; radio.n_users],
            rejected: vec![false; radio.n_users],
        }
    }

    /// Users that were rejected in the latest call.
    pub fn rejected(&self) -> &[bool] {
        &self.rejected
    }

    /// The SINR of all users, as factors: 0 if a station does not reach or rejects its user.
    ///
    /// # Shapes
    /// - `received_mw`: `[n_users, n_stations]`, power that each user receives from each station at full power, 0 if
    ///   the station does not interfere
    /// - `reached`: `[n_users, n_stations]`, whether a station can serve a user
    /// - `links`, `sinr`: `[n_users]`
    ///
    /// # Panics
    /// If a length or a link does not fit.
    pub fn sinr(&mut self, received_mw: &[T], reached: &[bool], links: &[Link], sinr: &mut [T]) {
        self.sinr_without(None, received_mw, reached, links, sinr);
    }

    /// The same without one user, whose SINR is 0.
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
        self.rejected.fill(false);
        if self.admission {
            self.admit(silent, received_mw, reached, links);
        }
        let sends = |user: usize| silent != Some(user) && !self.rejected[user];
        let (width, levels) = (self.width, &self.power_levels);
        let at = |link: &Link| usize::from(link.channel) * width + usize::from(link.station);
        for (_, link) in links.iter().enumerate().filter(|(user, _)| sends(*user)) {
            self.sent[at(link)] += levels[usize::from(link.power)];
        }
        let Self { sent, own, noise_mw, n_stations, .. } = &*self;
        let (n_stations, noise_mw) = (*n_stations, *noise_mw);
        let (levels, sends) = (&self.power_levels[..], &sends);
        pulp::Arch::new().dispatch(Ratios {
            received_mw,
            reached,
            links,
            sent,
            own,
            levels,
            noise_mw,
            n_stations,
            width,
            sends,
            sinr,
        });
        links.iter().for_each(|link| self.sent[at(link)] = T::zero());
    }

    /// Every station admits, of the users that request the same channel, the one with the strongest signal; the first
    /// if equal.
    fn admit(&mut self, silent: Option<usize>, received_mw: &[T], reached: &[bool], links: &[Link]) {
        self.last.fill(NONE);
        for (user, link) in links.iter().enumerate().filter(|(user, _)| silent != Some(*user)) {
            let at = |user: usize| user * self.n_stations + usize::from(links[user].station);
            if !reached[at(user)] {
                // A request that does not reach a station has no transmission.
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
                // The stronger user replaces the other in the list.
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
    }
}

/// The SINR of all users, compiled for the instruction set of the CPU.
struct Ratios<'a, T, F> {
    received_mw: &'a [T],
    reached: &'a [bool],
    links: &'a [Link],
    sent: &'a [T],
    own: &'a [T],
    levels: &'a [T],
    noise_mw: T,
    n_stations: usize,
    width: usize,
    sends: &'a F,
    sinr: &'a mut [T],
}

impl<T: NdFloat, F: Fn(usize) -> bool> WithSimd for Ratios<'_, T, F> {
    type Output = ();

    // A closure of this size would not be compiled for the selected instruction set.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { received_mw, reached, links, sent, own, levels, noise_mw, n_stations, width, sends, sinr } = self;
        let rows = received_mw.chunks_exact(n_stations).zip(reached.chunks_exact(n_stations));
        for (user, (((link, sinr), received), reached)) in
            links.iter().zip(sinr).zip(rows.clone().map(|row| row.0)).zip(rows.map(|row| row.1)).enumerate()
        {
            let (station, channel) = (usize::from(link.station), usize::from(link.channel));
            if !sends(user) || !reached[station] {
                *sinr = T::zero();
                continue;
            }
            let power = levels[usize::from(link.power)];
            let sent = &sent[channel * width..(channel + 1) * width];
            let own = &own[station * width..(station + 1) * width];
            *sinr = received[station] * power / (others(received, sent, own, power) + noise_mw);
        }
    }
}

/// The interference of a user, from all links on its channel except its own: `sum (sent - power own) received`.
///
/// The own power is subtracted before the product, not from the sum: without other transmissions the result is exactly
/// 0.
#[inline(always)]
fn others<T: NdFloat>(received: &[T], sent: &[T], own: &[T], power: T) -> T {
    let (received, rest) = received.as_chunks::<LANES>();
    let ((sent, _), (own, _)) = (sent.as_chunks::<LANES>(), own.as_chunks::<LANES>());
    let mut sums = [T::zero(); LANES];
    for ((received, sent), own) in received.iter().zip(sent).zip(own) {
        for lane in 0..LANES {
            sums[lane] += (sent[lane] - power * own[lane]) * received[lane];
        }
    }
    if let (Some(sent), Some(own)) = (sent.get(received.len()), own.get(received.len())) {
        for (lane, received) in rest.iter().enumerate() {
            sums[lane] += (sent[lane] - power * own[lane]) * *received;
        }
    }
    sums.into_iter().fold(T::zero(), |sum, x| sum + x)
}
