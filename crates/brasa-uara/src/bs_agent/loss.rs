//! Path losses and gains of macro and small cells.

/// Carrier of the macro cell, GHz.
const MACRO_GHZ: f64 = 2.8;
/// Carrier of small cells, Hz.
const SMALL_HZ: f64 = 28e9;
/// Speed of light as published, m/s.
const LIGHT_M_PER_S: f64 = 3e8;
/// Heights of the macro cell's antenna, of users and of the ground that reflects, m.
const MACRO_HEIGHT_M: f64 = 25.0;
const USER_HEIGHT_M: f64 = 2.5;
const GROUND_HEIGHT_M: f64 = 1.0;
/// Length of the antennas of small cells and of users served by them, m.
const ANTENNA_M: f64 = 0.009;

/// Gain of the antennas at both ends of a link of the macro cell, dB: a factor of 10 in amplitude each.
pub const MACRO_ANTENNAS_DB: f64 = 40.0;
/// A constant factor in the gain of the macro cell.
pub const MACRO_FACTOR: f64 = 0.01;
/// Shadowing of the macro cell in and out of sight, and of small cells, dB.
pub const MACRO_SIGHT_SHADOW_DB: f64 = 4.0;
pub const MACRO_HIDDEN_SHADOW_DB: f64 = 6.0;
pub const SMALL_SHADOW_DB: f64 = 5.8;
/// Shape of the gamma distribution of the gain of small cells, whose mean is 1.
pub const SMALL_FADING_SHAPE: f64 = 5.0;
/// Blocks that the power of a small cell is divided into.
pub const BLOCKS: f64 = 275.0;

/// Distance up to which the loss in sight grows by 22 dB per decade, m (3GPP TR 38.901, Table 7.4.1-1, note 1).
pub fn break_point_m() -> f64 {
    let heights = (MACRO_HEIGHT_M - GROUND_HEIGHT_M) * (USER_HEIGHT_M - GROUND_HEIGHT_M);
    4.0 * heights * MACRO_GHZ * 1e9 / LIGHT_M_PER_S
}

/// Loss between the macro cell and a user at a horizontal distance, dB (3GPP TR 38.901, Table 7.4.1-1, urban macro).
pub fn macro_loss_db(distance_m: f64, in_sight: bool) -> f64 {
    let rise = MACRO_HEIGHT_M - USER_HEIGHT_M;
    let log_slant = distance_m.hypot(rise).log10();
    let carrier = 20.0 * MACRO_GHZ.log10();
    let sight = if distance_m <= break_point_m() {
        28.0 + 22.0 * log_slant + carrier
    } else {
        28.0 + 40.0 * log_slant + carrier - 9.0 * (break_point_m().powi(2) + rise * rise).log10()
    };
    if in_sight {
        return sight;
    }
    sight.max(13.54 + 39.08 * log_slant + carrier - 0.6 * (USER_HEIGHT_M - 1.5))
}

/// Line-of-sight probability of the macro cell at a horizontal distance (3GPP TR 38.901, Table 7.4.2-1, urban macro,
/// users below 13 m).
pub fn macro_sight_probability(distance_m: f64) -> f64 {
    let near = (18.0 / distance_m).min(1.0);
    near + (-distance_m / 63.0).exp() * (1.0 - near)
}

/// Loss between a small cell and a user, dB: free space at 28 GHz with 61.4 dB at 1 m (Akdeniz et al. 2014, in sight).
pub fn small_loss_db(distance_m: f64) -> f64 {
    61.4 + 20.0 * distance_m.log10()
}

/// Gain of the antennas at both ends of a link of a small cell, dB: `20 log10(pi length / wavelength)` each.
pub fn small_antennas_db() -> f64 {
    let wavelength = LIGHT_M_PER_S / SMALL_HZ;
    2.0 * 20.0 * (std::f64::consts::PI * ANTENNA_M / wavelength).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value}, not {expected}");
    }

    #[test]
    fn closed_forms() {
        // 4 * 24 m * 1.5 m * 2.8e9 Hz / 3e8 m/s.
        near(break_point_m(), 1344.0);
        // 28 + 22 log10 sqrt(100^2 + 22.5^2) + 20 log10 2.8.
        near(macro_loss_db(100.0, true), 81.179086);
        // 13.54 + 39.08 log10 sqrt(100^2 + 22.5^2) + 20 log10 2.8 - 0.6.
        near(macro_loss_db(100.0, false), 100.462249);
        near(macro_loss_db(2000.0, true), 112.673178);
        near(small_loss_db(10.0), 81.4);
        near(small_antennas_db(), 16.857166);
    }

    #[test]
    fn nothing_jumps_at_the_break_point_and_sight_is_lost_with_distance() {
        let at = break_point_m();
        near(macro_loss_db(at, true), macro_loss_db(at * (1.0 + 1e-12), true));
        for distance in [10.0, 50.0, 200.0, 700.0, 3000.0] {
            assert!(macro_loss_db(distance, false) >= macro_loss_db(distance, true));
        }
        near(macro_sight_probability(18.0), 1.0);
        near(macro_sight_probability(180.0), 0.1 + 0.9 * (-180.0f64 / 63.0).exp());
        assert_eq!(macro_sight_probability(1.0), 1.0);
    }
}
