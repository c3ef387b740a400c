//! The fixed series of the original study, as closed forms.
//!
//! Hours are labeled by their start: hour 12 lasts from 12:00 to 13:00 local time.

use std::f64::consts::TAU;

/// PV energy of the closed-form year, in kWh.
pub(crate) const CLOSED_FORM_KWH: f64 = 8_043_140.0;

/// Energy of the vehicles per hour of the day, in kWh; 3252 kWh per day.
///
/// The study publishes these hours rounded to 0.1 kWh; six of them are the installed 272 kW. For the others
/// `scripts/calibrate_iquitos_demand.py` finds the smallest correction (least squares; at most 0.029 kWh per
/// hour) for a daily sum of 3252 kWh and the yearly sums in `docs/reference/iquitos.md`.
pub(crate) const VEHICLES_HOURLY_KWH: [f64; 24] = [
    47.528_015_724,
    47.528_015_724,
    47.528_015_724,
    47.528_015_724,
    47.528_015_724,
    47.528_015_724,
    47.528_015_724,
    47.528_015_724,
    47.528_015_724,
    50.609_711_456,
    71.210_819_971,
    110.410_819_971,
    159.210_819_971,
    223.910_819_971,
    268.010_819_971,
    272.0,
    272.0,
    272.0,
    272.0,
    272.0,
    272.0,
    213.828_015_724,
    47.528_015_724,
    47.528_015_724,
];

/// Load of the mall per hour of the day, in kW: small multiples of one unit, 33,885 kWh per day.
pub(crate) fn mall_hourly_kw() -> [f64; 24] {
    const UNITS: [u8; 24] = [3, 3, 3, 3, 3, 4, 5, 6, 7, 7, 7, 6, 6, 6, 6, 6, 7, 8, 8, 7, 6, 5, 4, 3];
    UNITS.map(|units| f64::from(units) * 33_885.0 / 129.0)
}

/// PV energy of `hour` (0 to 23) of `day` (0 to 364) in a year of `annual_kwh`, in kWh.
///
/// A bell curve around 12:00 with a standard deviation of 3.5 h from 5 to 17 o'clock, and a seasonal variation of 5 %.
pub(crate) fn closed_form_pv_kwh(day: u32, hour: u32, annual_kwh: f64) -> f64 {
    // Sum of the bell curve over the 13 hours of a day; the seasonal variation cancels over a year.
    const BELL_SUM: f64 = 8.131_078_565_585_444;
    if !(5..=17).contains(&hour) {
        return 0.0;
    }
    let season = 1.0 + 0.05 * (TAU * (f64::from(day) - 79.0) / 365.0).sin();
    let bell = (-(f64::from(hour) - 12.0).powi(2) / (2.0 * 3.5 * 3.5)).exp();
    annual_kwh / (365.0 * BELL_SUM) * season * bell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_extremes_are_those_of_the_original_data() {
        let pv: Vec<f64> = (0..8760).map(|step| closed_form_pv_kwh(step / 24, step % 24, CLOSED_FORM_KWH)).collect();
        assert!((pv.iter().sum::<f64>() - 8_043_140.0).abs() < 1e-3);
        assert!((pv.iter().copied().fold(0.0, f64::max) - 2845.5991).abs() < 1e-4);
        assert!((pv[12] - 2577.5924).abs() < 1e-4);
        let mall = mall_hourly_kw();
        assert!((mall.iter().sum::<f64>() * 365.0 - 12_368_025.0).abs() < 1e-6);
        assert!((mall[0] - 788.02).abs() < 5e-3 && (mall[17] - 2101.40).abs() < 5e-3);
        assert!((VEHICLES_HOURLY_KWH.iter().sum::<f64>() - 3252.0).abs() < 1e-6);
        assert!((VEHICLES_HOURLY_KWH.iter().sum::<f64>() * 365.0 - 1_186_980.0).abs() < 1e-4);
    }
}
