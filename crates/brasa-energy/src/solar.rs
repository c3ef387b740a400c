//! Sun, sky and modules: the power of the PV field with a clear sky and with clouds.
//!
//! Geometry follows Duffie and Beckman, "Solar Engineering of Thermal Processes", chapters 1 and 2; the clear sky
//! is Haurwitz (1945) with the constants of pvlib; beam and diffuse light are split by Erbs et al. (1982) and
//! transposed to the plane of the modules with an isotropic sky. No data file is needed.

use std::f64::consts::TAU;

/// Irradiance outside the atmosphere, in W/m2.
const SOLAR_CONSTANT_W: f64 = 1367.0;
/// Reflectance of the ground.
pub(crate) const ALBEDO: f64 = 0.2;

/// Latitude of the tropics, in degrees.
const TROPIC_DEG: f64 = 23.44;

/// How much the seasons at a latitude are those of the north: 1 north of the tropics, -1 south of them, and proportional to the latitude within.
pub(crate) fn season(latitude_deg: f64) -> f64 {
    (latitude_deg / TROPIC_DEG).clamp(-1.0, 1.0)
}

/// A place on earth with its clock and the temperature of its air.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    /// Latitude, in degrees, positive in the north.
    pub(crate) latitude_deg: f64,
    /// Longitude, in degrees, positive in the east.
    pub(crate) longitude_deg: f64,
    /// Local standard time minus UTC, in hours.
    pub(crate) utc_offset_hours: f64,
    /// Yearly mean temperature of the air, in Celsius.
    pub(crate) air_c: f64,
    /// Temperature at 14 o'clock minus the daily mean, in degrees.
    pub(crate) day_swing_c: f64,
    /// Temperature of mid-July minus the yearly mean, in degrees.
    pub(crate) july_swing_c: f64,
}

/// Modules behind their inverters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Modules {
    /// Rated power of the modules, in kW.
    pub(crate) peak_kw: f64,
    /// Factor on the power, before the limit of the inverters.
    pub(crate) scale: f64,
    /// Limit of the inverters, in kW.
    pub(crate) inverter_kw: f64,
    /// Tilt from horizontal, in degrees.
    pub(crate) tilt_deg: f64,
    /// Direction that the modules face, clockwise from north, in degrees.
    pub(crate) azimuth_deg: f64,
    /// Losses except those by temperature, as a fraction.
    pub(crate) losses: f64,
    /// Loss of power per degree above 25 Celsius, as a fraction.
    pub(crate) temperature_coefficient: f64,
    /// Nominal operating cell temperature, in Celsius.
    pub(crate) noct_c: f64,
}

/// The sun in the middle of one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sun {
    /// Global horizontal irradiance of a clear sky, in W/m2; 0 at night.
    pub(crate) clear_w: f32,
    /// Horizontal irradiance outside the atmosphere, in W/m2.
    pub(crate) outside_w: f32,
    /// Beam on the modules per beam on the horizontal.
    pub(crate) beam_ratio: f32,
    /// Temperature of the air, in Celsius.
    pub(crate) air_c: f32,
}

impl Sun {
    /// The sun on `day` (0 to 364) at `hour` (0 to 24, local clock) over `modules` at `place`.
    pub(crate) fn at(day: u32, hour: f64, place: &Place, modules: &Modules) -> Self {
        let n = f64::from(day + 1);
        let declination = 23.45_f64.to_radians() * (TAU * (284.0 + n) / 365.0).sin();
        let b = TAU * (n - 81.0) / 364.0;
        let equation_of_time_minutes = 9.87 * (2.0 * b).sin() - 7.53 * b.cos() - 1.5 * b.sin();
        let solar_hour =
            hour + (4.0 * (place.longitude_deg - 15.0 * place.utc_offset_hours) + equation_of_time_minutes) / 60.0;
        let hour_angle = (15.0 * (solar_hour - 12.0)).to_radians();
        let latitude = place.latitude_deg.to_radians();
        let (sin_d, cos_d) = declination.sin_cos();
        let (sin_l, cos_l) = latitude.sin_cos();
        let cos_zenith = sin_l * sin_d + cos_l * cos_d * hour_angle.cos();
        // The day is warmest at 14 o'clock, the year in mid-July, day 196.
        let air_c = place.air_c
            + place.day_swing_c * (TAU * (hour - 8.0) / 24.0).sin()
            + place.july_swing_c * (TAU * (n - 196.0) / 365.0).cos();
        if cos_zenith < 0.01 {
            return Self { air_c: air_c as f32, ..Self::default() };
        }
        // Duffie and Beckman measure the azimuth of a surface from south, westward.
        let (sin_t, cos_t) = modules.tilt_deg.to_radians().sin_cos();
        let (sin_a, cos_a) = (modules.azimuth_deg - 180.0).to_radians().sin_cos();
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
    pub(crate) fn pv_kw(&self, transmission: f64, modules: &Modules) -> f64 {
        if !self.is_up() {
            return 0.0;
        }
        let global_w = f64::from(self.clear_w) * transmission;
        let diffuse_w = global_w * diffuse_share(global_w / f64::from(self.outside_w));
        let cos_tilt = modules.tilt_deg.to_radians().cos();
        let plane_w = (global_w - diffuse_w) * f64::from(self.beam_ratio)
            + diffuse_w * (1.0 + cos_tilt) / 2.0
            + global_w * ALBEDO * (1.0 - cos_tilt) / 2.0;
        let cell_c = f64::from(self.air_c) + plane_w * (modules.noct_c - 20.0) / 800.0;
        let power_kw = modules.peak_kw * plane_w / 1000.0
            * (1.0 - modules.temperature_coefficient * (cell_c - 25.0))
            * (1.0 - modules.losses);
        (power_kw * modules.scale).clamp(0.0, modules.inverter_kw)
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
    pub(crate) keep: f64,
    pub(crate) stir: f64,
    pub(crate) deviation: f64,
    /// Logit of the median transmission per month.
    logits: [f64; 12],
}

impl Clouds {
    /// Clouds for steps of `step_hours`: median transmission per month, correlation of consecutive hours and standard
    /// deviation of the logit.
    pub(crate) fn new(transmissions: [f64; 12], correlation: f64, deviation: f64, step_hours: f64) -> Self {
        let keep = correlation.powf(step_hours);
        Self {
            keep,
            stir: deviation * (1.0 - keep * keep).sqrt(),
            deviation,
            logits: transmissions.map(|p| (p / (1.0 - p)).ln()),
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

    /// Logit of the median transmission in `month` (0 to 11).
    pub(crate) fn logit(&self, month: u8) -> f64 {
        self.logits[usize::from(month)]
    }

    /// Transmission of the sky in `month`.
    pub(crate) fn transmission(&self, process: f64, month: u8) -> f64 {
        1.0 / (1.0 + (-(self.logit(month) + process)).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iquitos::{IquitosConfig, PvConfig};

    fn iquitos() -> (Place, Modules) {
        (PvConfig::PLACE, IquitosConfig::default().pv.modules())
    }

    #[test]
    fn noon_is_where_the_longitude_puts_it() {
        let (place, modules) = iquitos();
        // Day 104 (mid-April): the equation of time is near 0, so the sun culminates at 11:53.
        let clear = |minutes: u32| Sun::at(104, f64::from(minutes) / 60.0, &place, &modules).clear_w;
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
        let (place, modules) = iquitos();
        let sun = Sun::at(80, 12.0, &place, &modules);
        assert_eq!(sun.pv_kw(1.0, &Modules { inverter_kw: 1000.0, ..modules }), 1000.0);
        let lossless = Modules { losses: 0.0, inverter_kw: 1e6, ..modules };
        let ratio = sun.pv_kw(0.5, &modules) / sun.pv_kw(0.5, &lossless);
        assert!((ratio - (1.0 - 0.1362)).abs() < 1e-12);
    }
}
