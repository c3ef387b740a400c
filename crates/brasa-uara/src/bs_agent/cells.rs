//! Random positions, fading and demand of a network, and derived powers.

use brasa_env::EnvRng;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Gamma, StandardNormal};

use super::config::BsAgentConfig;
use super::loss;

/// A network of one macro cell, the first station, and small cells around it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cells {
    /// `[stations, users]`: power that a user receives from a station, W.
    pub received_w: Vec<f32>,
    /// `[users]`: class of demand of each user.
    pub class: Vec<u8>,
}

impl Cells {
    /// Samples a network. The number of random numbers per user and station does not depend on the parity flags, so
    /// that a flag changes only its own effect.
    pub fn draw(config: &BsAgentConfig, rng: &mut EnvRng) -> Self {
        let small_m: Vec<[f64; 2]> = (0..config.small_cells)
            .map(|_| {
                let radius = config.radius_m * rng.random::<f64>().sqrt();
                polar(radius, rng)
            })
            .collect();
        let mut cells = Self { received_w: vec![0.0; config.n_stations() * config.users], class: Vec::new() };
        let fading = Gamma::new(loss::SMALL_FADING_SHAPE, 1.0 / loss::SMALL_FADING_SHAPE)
            .expect("shape and scale are positive constants");
        let per_channel = |dbm: f64| 10f64.powf((dbm - 30.0) / 10.0) / config.channels as f64;
        let (macro_w, small_w) = (per_channel(config.macro_dbm), per_channel(config.small_dbm));
        let blocks = if config.parity.power_divided_twice { loss::BLOCKS } else { 1.0 };
        for user in 0..config.users {
            let radius = config.radius_m * rng.random::<f64>();
            let at = polar(radius, rng);
            cells.class.push(rng.random_range(0..3u8));
            let in_sight = rng.random::<f64>() < loss::macro_sight_probability(radius);
            let in_sight = if config.parity.macro_always_in_sight { radius < config.radius_m } else { in_sight };
            let shadow_db = if in_sight { loss::MACRO_SIGHT_SHADOW_DB } else { loss::MACRO_HIDDEN_SHADOW_DB };
            let shadow = shadow(config, shadow_db, rng);
            let fast: f64 = Exp1.sample(rng);
            let gain_db = loss::MACRO_ANTENNAS_DB - loss::macro_loss_db(radius, in_sight);
            let gain = loss::MACRO_FACTOR * shadow * fast * 10f64.powf(gain_db / 10.0);
            cells.received_w[user] = (macro_w * gain) as f32;
            for (cell, small_m) in small_m.iter().enumerate() {
                // A minimum distance, because the power would be infinite at 0.
                let distance = (at[0] - small_m[0]).hypot(at[1] - small_m[1]).max(1e-3);
                // It is a part of the loss, as published, so it divides.
                let factor = fading.sample(rng) / self::shadow(config, loss::SMALL_SHADOW_DB, rng) / blocks;
                let gain_db = loss::small_antennas_db() - loss::small_loss_db(distance);
                let gain = factor * 10f64.powf(gain_db / 10.0);
                cells.received_w[(1 + cell) * config.users + user] = (small_w * gain) as f32;
            }
        }
        cells
    }
}

/// A position at a distance from the macro cell, in a random direction.
fn polar(radius_m: f64, rng: &mut EnvRng) -> [f64; 2] {
    let angle = std::f64::consts::TAU * rng.random::<f64>();
    [radius_m * angle.cos(), radius_m * angle.sin()]
}

/// A lognormal factor.
fn shadow(config: &BsAgentConfig, db: f64, rng: &mut EnvRng) -> f64 {
    let normal: f64 = StandardNormal.sample(rng);
    if config.parity.linear_shadowing_variance {
        // Mean 1 and variance v: exp(N(-s^2 / 2, s^2)) with s^2 = ln(1 + v).
        let variance = (1.0 + 10f64.powf(db / 10.0)).ln();
        return (variance.sqrt() * normal - variance / 2.0).exp();
    }
    10f64.powf(db * normal / 10.0)
}

/// Noise of a link of the macro cell and of small cells, W.
pub fn noise_w(config: &BsAgentConfig) -> [f64; 2] {
    // Thermal noise, dBW/Hz, and the noise figure of small cells, dB.
    let thermal = |bandwidth_hz: f64| -204.0 + 10.0 * bandwidth_hz.log10();
    let channels = config.channels as f64;
    let dbw = if config.parity.mismatched_noise {
        [-148.365, thermal(config.small_bandwidth_hz) + 10.0]
    } else {
        [thermal(config.macro_bandwidth_hz / channels), thermal(config.small_bandwidth_hz / channels) + 10.0]
    };
    dbw.map(|dbw| 10f64.powf(dbw / 10.0))
}

#[cfg(test)]
mod tests {
    use brasa_env::named_rng;

    use super::super::config::BsAgentParity;
    use super::*;

    fn config(parity: BsAgentParity) -> BsAgentConfig {
        BsAgentConfig { users: 4000, small_cells: 2, parity, ..BsAgentConfig::default() }
    }

    fn draw(parity: BsAgentParity) -> Cells {
        Cells::draw(&config(parity), &mut named_rng(0, "cells", 0))
    }

    #[test]
    fn shadowing_has_the_moments_it_says() {
        let mut rng = named_rng(0, "shadow", 0);
        let mut sample = |parity, db| -> Vec<f64> {
            let config = config(parity);
            (0..200_000).map(|_| shadow(&config, db, &mut rng)).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let linear = sample(BsAgentParity::default(), 4.0);
        let center = mean(&linear);
        let variance = mean(&linear.iter().map(|x| (x - center).powi(2)).collect::<Vec<_>>());
        assert!((center - 1.0).abs() < 0.02, "{center}");
        assert!((variance / 10f64.powf(0.4) - 1.0).abs() < 0.2, "{variance}");
        let decibels: Vec<f64> =
            sample(BsAgentParity::none(), 5.8).iter().map(|factor| 10.0 * factor.log10()).collect();
        let center = mean(&decibels);
        let deviation = mean(&decibels.iter().map(|x| (x - center).powi(2)).collect::<Vec<_>>()).sqrt();
        assert!(center.abs() < 0.05 && (deviation - 5.8).abs() < 0.05, "{center}, {deviation}");
    }

    #[test]
    fn each_flag_changes_what_it_is_about_and_nothing_else() {
        let published = draw(BsAgentParity::default());
        let (small, n) = (4000..12_000, 4000);
        let once = draw(BsAgentParity { power_divided_twice: false, ..BsAgentParity::default() });
        assert_eq!(once.received_w[..n], published.received_w[..n]);
        for (once, twice) in once.received_w[small.clone()].iter().zip(&published.received_w[small.clone()]) {
            assert!((once / twice / 275.0 - 1.0).abs() < 1e-5);
        }
        let hidden = draw(BsAgentParity { macro_always_in_sight: false, ..BsAgentParity::default() });
        assert_eq!(hidden.received_w[small.clone()], published.received_w[small]);
        let changed = hidden.received_w[..n].iter().zip(&published.received_w[..n]).filter(|(a, b)| a != b).count();
        // At 700 m the line-of-sight probability is very small.
        assert!((0.6..0.9).contains(&(changed as f64 / n as f64)), "{changed}");
        let decibels = draw(BsAgentParity { linear_shadowing_variance: false, ..BsAgentParity::default() });
        assert!(decibels.received_w.iter().zip(&published.received_w).all(|(a, b)| a != b));
        assert_eq!(decibels.class, published.class);
        assert_eq!(hidden.class, published.class);
    }

    #[test]
    fn noise_of_the_published_and_of_the_own_bandwidth() {
        let dbw = |parity| noise_w(&config(parity)).map(|watt| 10.0 * watt.log10());
        let near =
            |one: [f64; 2], other: [f64; 2]| assert!((0..2).all(|i| (one[i] - other[i]).abs() < 1e-4), "{one:?}");
        near(dbw(BsAgentParity::default()), [-148.365, -110.9897]);
        // 11.4 dB more in a channel of 5 MHz than in 366 kHz, and 13 dB less in 10 MHz than in 200 MHz.
        near(dbw(BsAgentParity::none()), [-137.0103, -124.0]);
    }
}
