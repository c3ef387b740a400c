//! Sun, sky and modules: the power of the PV field with a clear sky and with clouds.
//!
//! Geometry follows Duffie and Beckman, "Solar Engineering of Thermal Processes", chapters 1 and 2; the clear sky
//! is Haurwitz (1945) with the constants of pvlib; beam and diffuse light are split by Erbs et al. (1982) and
//! transposed to the plane of the modules with an isotropic sky. No data file is needed.

use std::f64::consts::TAU;

use super::config::PvConfig;

/// Latitude of Iquitos, in degrees.
const LATITUDE_DEG: f64 = -3.75;
/// Longitude of Iquitos, in degrees; local time belongs to -75.
const LONGITUDE_DEG: f64 = -73.25;
/// Longitude of local time (UTC-5), in degrees.
const TIME_LONGITUDE_DEG: f64 = -75.0;
/// Irradiance outside the atmosphere, in W/m2.
const SOLAR_CONSTANT_W: f64 = 1367.0;
/// Reflectance of the ground.
pub(super) const ALBEDO: f64 = 0.2;

/// The sun in the middle of one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sun {
    /// Global horizontal irradiance of a clear sky, in W/m2; 0 at night.
    pub(super) clear_w: f32,
    /// Horizontal irradiance outside the atmosphere, in W/m2.
    pub(super) outside_w: f32,
    /// Beam on the modules per beam on the horizontal.
    pub(super) beam_ratio: f32,
    /// Temperature of the air, in Celsius.
    pub(super) air_c: f32,
}

impl Sun {
    /// The sun on `day` (0 to 364) at `hour` (0 to 24, local clock) over modules of `config`.
    pub(crate) fn at(day: u32, hour: f64, config: &PvConfig) -> Self {
        let n = f64::from(day + 1);
        let declination = 23.45_f64.to_radians() * (TAU * (284.0 + n) / 365.0).sin();
        let b = TAU * (n - 81.0) / 364.0;
        let equation_of_time_minutes = 9.87 * (2.0 * b).sin() - 7.53 * b.cos() - 1.5 * b.sin();
        let solar_hour = hour + (4.0 * (LONGITUDE_DEG - TIME_LONGITUDE_DEG) + equation_of_time_minutes) / 60.0;
        let hour_angle = (15.0 * (solar_hour - 12.0)).to_radians();
        let latitude = LATITUDE_DEG.to_radians();
        let (sin_d, cos_d) = declination.sin_cos();
        let (sin_l, cos_l) = latitude.sin_cos();
        let cos_zenith = sin_l * sin_d + cos_l * cos_d * hour_angle.cos();
        // Mean 26.5 Celsius, largest at 14 o'clock.
        let air_c = 26.5 + 5.0 * (TAU * (hour - 8.0) / 24.0).sin();
        if cos_zenith < 0.01 {
            return Self { air_c: air_c as f32, ..Self::default() };
        }
        // Duffie and Beckman measure the azimuth of a surface from south, westward.
        let (sin_t, cos_t) = config.tilt_deg.to_radians().sin_cos();
        let (sin_a, cos_a) = (config.azimuth_deg - 180.0).to_radians().sin_cos();
        let cos_incidence = sin_d * sin_l * cos_t - sin_d * cos_l * sin_t * cos_a
            + cos_d * cos_l * cos_t * hour_angle.cos()
            + cos_d * sin_l * sin_t * cos_a * hour_angle.cos()
            + cos_d * sin_t * sin_a * hour_angle.sin();
        let distance = 1.0 + 0.033 * (TAU * n / 365.0).cos();
        Self {
            clear_w: (1098.0 * cos_zenith * (-0.059 / cos_zenith).exp()) as f32,
            outside_w: (SOLAR_CONSTANT_W * distance * cos_zenith) as f32,
            // Near the horizon the ratio diverges while the beam goes to 0; the limit keeps the product finite.
            beam_ratio: (cos_incidence.max(0.0) / cos_zenith.max(0.05)) as f32,
            air_c: air_c as f32,
        }
    }

    /// Whether PV power is possible.
    pub(crate) fn is_up(&self) -> bool {
        self.clear_w > 0.0
    }

    /// Power of the field for a `transmission` relative to the clear sky, in kW.
    pub(crate) fn pv_kw(&self, transmission: f64, config: &PvConfig) -> f64 {
        if !self.is_up() {
            return 0.0;
        }
        let global_w = f64::from(self.clear_w) * transmission;
        let diffuse_w = global_w * diffuse_share(global_w / f64::from(self.outside_w));
        let cos_tilt = config.tilt_deg.to_radians().cos();
        let plane_w = (global_w - diffuse_w) * f64::from(self.beam_ratio)
            + diffuse_w * (1.0 + cos_tilt) / 2.0
            + global_w * ALBEDO * (1.0 - cos_tilt) / 2.0;
        let cell_c = f64::from(self.air_c) + plane_w * (config.noct_c - 20.0) / 800.0;
        let power_kw = config.peak_kw * plane_w / 1000.0
            * (1.0 - config.temperature_coefficient * (cell_c - 25.0))
            * (1.0 - config.losses);
        (power_kw * config.scale).clamp(0.0, config.inverter_kw)
    }
}

/// Diffuse part of the global irradiance at clearness index `kt`: Erbs et al. (1982), equation 1.
fn diffuse_share(kt: f64) -> f64 {
    if kt <= 0.22 {
        1.0 - 0.09 * kt
    } else if kt <= 0.8 {
        0.9511 + kt * (-0.1604 + kt * (4.388 + kt * (-16.638 + kt * 12.336)))
    } else {
        0.165
    }
}

/// Clouds: the logit of the transmission as an autoregressive process of order one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clouds {
    pub(super) keep: f64,
    pub(super) stir: f64,
    pub(super) deviation: f64,
    wet_logit: f64,
    dry_logit: f64,
}

impl Clouds {
    /// Clouds of `config` for steps of `step_hours`.
    pub(crate) fn new(config: &PvConfig, step_hours: f64) -> Self {
        let keep = config.cloud_correlation.powf(step_hours);
        let logit = |p: f64| (p / (1.0 - p)).ln();
        Self {
            keep,
            stir: config.cloud_deviation * (1.0 - keep * keep).sqrt(),
            deviation: config.cloud_deviation,
            wet_logit: logit(config.wet_transmission),
            dry_logit: logit(config.dry_transmission),
        }
    }

    /// The process at the start of an episode, from a standard normal number.
    pub(crate) fn start(&self, normal: f64) -> f64 {
        self.deviation * normal
    }

    /// The process one step later, from a standard normal number.
    pub(crate) fn next(&self, process: f64, normal: f64) -> f64 {
        self.keep * process + self.stir * normal
    }

    /// Logit of the median transmission in `month` (0 to 11); December to May is wet.
    pub(super) fn logit(&self, month: u8) -> f64 {
        if month < 5 || month == 11 { self.wet_logit } else { self.dry_logit }
    }

    /// Transmission of the sky in `month`.
    pub(crate) fn transmission(&self, process: f64, month: u8) -> f64 {
        1.0 / (1.0 + (-(self.logit(month) + process)).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noon_is_where_the_longitude_puts_it() {
        let config = PvConfig::default();
        // Day 104 (mid-April): the equation of time is near 0, so the sun culminates at 11:53.
        let clear = |minutes: u32| Sun::at(104, f64::from(minutes) / 60.0, &config).clear_w;
        let best = (600..840).max_by(|a, b| clear(*a).total_cmp(&clear(*b))).expect("not empty");
        assert!((best as i32 - (11 * 60 + 53)).abs() <= 2, "{best}");
        assert_eq!(clear(3 * 60), 0.0);
        assert!(clear(12 * 60) > 950.0);
    }

    #[test]
    fn the_split_is_continuous_and_overcast_is_diffuse() {
        assert!((diffuse_share(0.0) - 1.0).abs() < 1e-12);
        assert!((diffuse_share(0.22) - diffuse_share(0.2201)).abs() < 0.01);
        assert!((diffuse_share(0.8) - 0.165).abs() < 0.01);
    }

    #[test]
    fn inverters_clip_and_losses_cost() {
        let sun = Sun::at(80, 12.0, &PvConfig::default());
        let small = PvConfig { inverter_kw: 1000.0, ..PvConfig::default() };
        assert_eq!(sun.pv_kw(1.0, &small), 1000.0);
        let lossless = PvConfig { losses: 0.0, inverter_kw: 1e6, ..PvConfig::default() };
        let ratio = sun.pv_kw(0.5, &PvConfig::default()) / sun.pv_kw(0.5, &lossless);
        assert!((ratio - (1.0 - 0.1362)).abs() < 1e-12);
    }
}
