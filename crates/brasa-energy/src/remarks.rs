//! What is unlikely in data that is valid: a warning, with the range in which values are plausible.

use std::path::Path;

use brasa_env::field;
use brasa_power::{
    EnergyError,
    remarks::{SITE_KW, unlikely},
};

use crate::series::Series;

/// Plausible mean price of a kWh in currencies whose unit buys about a kWh.
const PRICE_PER_KWH: (f64, f64) = (0.005, 3.0);
/// These currencies.
const CURRENCIES: [&str; 10] = ["EUR", "USD", "GBP", "CHF", "CAD", "AUD", "NZD", "SGD", "PEN", "BRL"];
/// Plausible mean emissions of a kWh, in kg.
const CARBON_KG: (f64, f64) = (0.001, 2.0);
/// Plausible largest energy of a charging session, in kWh.
pub(crate) const SESSION_KWH: (f64, f64) = (0.2, 1000.0);

/// Smallest PV power that is read, as a share of the rated power and in kW: what inverters take at night. The lower one counts.
const STANDBY: (f64, f64) = (0.05, 0.5);
/// Least of the rated power that PV reaches in some step.
const LEAST_PV_SHARE: f64 = 0.01;

/// Adds a warning if the largest power of a load is unlikely.
pub(crate) fn check_load(path: &Path, load: &Series, warnings: &mut Vec<String>) {
    warnings.extend(unlikely(path, "the largest load", largest(load), SITE_KW, "kW"));
}

/// Adds a warning if the mean price of a kWh is unlikely, in a currency of which that is known.
pub(crate) fn check_prices(path: &Path, prices: &Series, currency: &str, warnings: &mut Vec<String>) {
    if CURRENCIES.contains(&currency) {
        // Without its sign: prices may be negative for a while.
        let mean = prices.values.iter().map(|price| price.abs()).sum::<f64>() / prices.values.len() as f64;
        warnings.extend(unlikely(path, "the mean price", mean, PRICE_PER_KWH, &format!("{currency}/kWh")));
    }
}

/// Adds a warning if the mean emissions of a kWh are unlikely.
pub(crate) fn check_carbon(path: &Path, carbon: &Series, warnings: &mut Vec<String>) {
    let mean = carbon.values.iter().sum::<f64>() / carbon.values.len() as f64;
    if mean > 0.0 {
        warnings.extend(unlikely(path, "the mean of the emissions", mean, CARBON_KG, "kg/kWh"));
    }
}

/// The PV of a file, in kW, for a field of `peak_kw`. What inverters take at night is read as 0.
///
/// # Errors
/// Those of [`Series::read`]; [`EnergyError::Cell`] for more than `peak_kw` and for less than inverters take.
pub(crate) fn read_pv(path: &Path, peak_kw: f64, warnings: &mut Vec<String>) -> Result<Series, EnergyError> {
    let least_kw = -(STANDBY.0 * peak_kw).max(STANDBY.1);
    let mut pv = Series::read(path, "pv", &[("kW", 1.0), ("W", 1e-3)], least_kw, peak_kw)?;
    pv.values.iter_mut().for_each(|kw| *kw = kw.max(0.0));
    let most = largest(&pv);
    if most > 0.0 {
        warnings.extend(unlikely(path, "the largest PV", most, (LEAST_PV_SHARE * peak_kw, peak_kw), "kW"));
    }
    Ok(pv)
}

/// Adds warnings on sessions: those without energy, which are left out, and a largest energy that is unlikely.
pub(crate) fn check_sessions(path: &Path, n_empty: usize, largest_kwh: f64, warnings: &mut Vec<String>) {
    if n_empty > 0 {
        let file = field::printable(&path.display().to_string());
        warnings
            .push(format!("{file}: {n_empty} sessions with less than 0.001 kWh are left out, as they charge nothing"));
    }
    warnings.extend(unlikely(path, "the largest energy of a session", largest_kwh, SESSION_KWH, "kWh"));
}

fn largest(series: &Series) -> f64 {
    series.values.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlikely_values_name_their_range() {
        let path = Path::new("load.csv");
        let of = |value: f64| {
            let mut warnings = Vec::new();
            let load = Series { start_minute: 0, interval_minutes: 60, values: vec![0.0, value] };
            check_load(path, &load, &mut warnings);
            warnings
        };
        let text =
            "load.csv: the largest load is 60000 kW, but 0.1 to 10000 kW are plausible; check the unit of the column";
        assert_eq!(of(60_000.0), [text]);
        assert_eq!(of(60.0), [""; 0]);
        assert_eq!(of(0.06).len(), 1);
        let mut warnings = Vec::new();
        let prices = Series { start_minute: 0, interval_minutes: 60, values: vec![120.0, -10.0] };
        check_prices(path, &prices, "JPY", &mut warnings);
        assert_eq!(warnings, [""; 0]);
        check_prices(path, &prices, "EUR", &mut warnings);
        assert!(warnings[0].contains("the mean price is 65 EUR/kWh, but 0.005 to 3 EUR/kWh"), "{warnings:?}");
    }
}
