//! Changes of links over time: movement of users and fading.

use std::f64::consts::{PI, TAU};

use brasa_env::EnvRng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::config::{DynamicsConfig, UaraConfig};
use crate::layout::Layout;

/// Speed of light, m/s.
const LIGHT_M_PER_S: f64 = 299_792_458.0;

/// The current channel, and the state of its changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// The current positions.
    pub layout: Layout,
    /// Destination of each user, m; empty without movement.
    waypoints_m: Vec<[f64; 2]>,
    /// `[n_users, n_stations, 2]`: complex amplitude of each link (real and imaginary part) with mean power 1; empty
    /// without fading.
    amplitudes: Vec<f32>,
}

impl Channel {
    /// Starts in `layout`; random changes use `rng`.
    pub fn new(config: &UaraConfig, layout: Layout, rng: &mut EnvRng) -> Self {
        let mut normal = || -> f32 { StandardNormal.sample(rng) };
        let n_amplitudes = if config.dynamics.fading { 2 * layout.users_m.len() * layout.stations_m.len() } else { 0 };
        let amplitudes = (0..n_amplitudes).map(|_| normal() * HALF.sqrt()).collect();
        let n_walkers = if config.dynamics.speed_m_per_s > 0.0 { layout.users_m.len() } else { 0 };
        let waypoints_m = (0..n_walkers).map(|user| layout.waypoint(config, user, rng)).collect();
        Self { layout, waypoints_m, amplitudes }
    }

    /// Advances by one step; `correlation` is that of [`fading_correlation`].
    pub fn advance(&mut self, config: &UaraConfig, correlation: f64, rng: &mut EnvRng) {
        let reach = config.dynamics.speed_m_per_s * config.dynamics.step_secs;
        for user in 0..self.waypoints_m.len() {
            let (at, to) = (self.layout.users_m[user], self.waypoints_m[user]);
            let (dx, dy) = (to[0] - at[0], to[1] - at[1]);
            let distance = dx.hypot(dy);
            if distance <= reach {
                self.layout.users_m[user] = to;
                self.waypoints_m[user] = self.layout.waypoint(config, user, rng);
            } else {
                self.layout.users_m[user] = [at[0] + dx * reach / distance, at[1] + dy * reach / distance];
            }
        }
        let (keep, take) = (correlation as f32, ((1.0 - correlation * correlation) / 2.0).sqrt() as f32);
        for amplitude in &mut self.amplitudes {
            let normal: f32 = StandardNormal.sample(rng);
            *amplitude = keep * *amplitude + take * normal;
        }
    }

    /// The current received power, from the mean received power, mW.
    ///
    /// # Panics
    /// If a length does not fit.
    pub fn fade(&self, average_mw: &[f64], received_mw: &mut [f32]) {
        assert_eq!(average_mw.len(), received_mw.len(), "one power per link");
        if self.amplitudes.is_empty() {
            received_mw.iter_mut().zip(average_mw).for_each(|(now, average)| *now = *average as f32);
            return;
        }
        let (amplitudes, _) = self.amplitudes.as_chunks::<2>();
        for ((now, average), [re, im]) in received_mw.iter_mut().zip(average_mw).zip(amplitudes) {
            *now = *average as f32 * (re * re + im * im);
        }
    }
}

/// Power of each part of an amplitude; the total is 1.
const HALF: f32 = 0.5;

/// Correlation of amplitudes from one step to the next: `J0(2 pi f t)` with the Doppler frequency `f = v carrier / c`
/// (Jakes 1974).
pub fn fading_correlation(dynamics: &DynamicsConfig) -> f64 {
    let doppler_hz = dynamics.speed_m_per_s * dynamics.carrier_hz / LIGHT_M_PER_S;
    bessel_j0(TAU * doppler_hz * dynamics.step_secs)
}

/// `J0(x) = 1/pi int_0^pi cos(x sin t) dt`. The midpoint rule converges geometrically for a periodic function.
fn bessel_j0(x: f64) -> f64 {
    let n = 32 + x.abs().min(1e4) as usize;
    (0..n).map(|i| (x * (PI * (i as f64 + 0.5) / n as f64).sin()).cos()).sum::<f64>() / n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_env::named_rng;

    #[test]
    fn bessel_values_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 9.1.
        for (x, value) in
            [(0.0, 1.0), (0.5, 0.9384698072), (1.0, 0.7651976866), (2.4048255577, 0.0), (10.0, -0.2459357645)]
        {
            assert!((bessel_j0(x) - value).abs() < 1e-9, "{x}: {}", bessel_j0(x));
        }
        let correlation = fading_correlation(&DynamicsConfig::default());
        assert!((correlation - bessel_j0(TAU * 1.5 * 2e9 / LIGHT_M_PER_S * 0.01)).abs() < 1e-15);
        assert!((0.90..0.91).contains(&correlation), "{correlation}");
    }

    #[test]
    fn fading_keeps_its_power_and_its_correlation() {
        let config = UaraConfig::physical();
        let rng = &mut named_rng(0, "test", 0);
        let mut channel = Channel::new(&config, Layout::draw(&config, rng), rng);
        let n = config.users * config.n_stations();
        let (average, mut now, mut before) = (vec![1.0; n], vec![0.0f32; n], vec![0.0f32; n]);
        let (mut mean, mut product, rounds) = (0.0, 0.0, 300);
        for _ in 0..rounds {
            channel.fade(&average, &mut before);
            channel.advance(&config, 0.9, rng);
            channel.fade(&average, &mut now);
            for (a, b) in before.iter().zip(&now) {
                mean += f64::from(*a);
                product += f64::from(a * b);
            }
        }
        let count = (n * rounds) as f64;
        assert!((mean / count - 1.0).abs() < 0.02, "{}", mean / count);
        // Powers of Rayleigh amplitudes have variance 1 and the squared correlation of the amplitudes.
        assert!((product / count - 1.81).abs() < 0.05, "{}", product / count);
    }

    #[test]
    fn users_walk_at_their_speed_and_stay_at_home() {
        let mut config = UaraConfig::physical();
        (config.dynamics.speed_m_per_s, config.dynamics.step_secs) = (20.0, 1.0);
        let rng = &mut named_rng(0, "test", 1);
        let mut channel = Channel::new(&config, Layout::draw(&config, rng), rng);
        for _ in 0..200 {
            let before = channel.layout.users_m.clone();
            channel.advance(&config, 0.9, rng);
            for (user, (a, b)) in before.iter().zip(&channel.layout.users_m).enumerate() {
                assert!((a[0] - b[0]).hypot(a[1] - b[1]) <= 20.0 + 1e-9);
                let home = channel.layout.stations_m[usize::from(channel.layout.homes[user])];
                assert!((b[0] - home[0]).hypot(b[1] - home[1]) <= 500.0 + 1e-6);
            }
        }
    }
}
