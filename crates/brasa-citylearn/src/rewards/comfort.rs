//! A penalty for indoor temperatures away from the set points.

use brasa_power::{EnergyError, fail};

use super::{Attributes, RewardClass, Seen, solar::Solar};

/// Within the band around the set point the penalty is the distance, on the side where the device does too much; outside,
/// the distance to a power. Without a mode of cooling or heating, the band is around both set points.
#[derive(Debug)]
struct Comfort {
    /// In K; that of the data without one.
    band_k: Option<f64>,
    lower_exponent: f64,
    higher_exponent: f64,
}

impl RewardClass for Comfort {
    fn reward(&self, seen: &Seen) -> f64 {
        let room = &seen.room;
        let heats = seen.heating_kwh > seen.cooling_kwh;
        let band_k = self.band_k.unwrap_or_else(|| f64::from(room.band_k));
        let (cooling_c, heating_c) = (f64::from(room.cooling_set_c), f64::from(room.heating_set_c));
        let temperature_c = seen.temperature_c;
        let when = |heats: bool, yes: f64, no: f64| if heats { yes } else { no };
        if let 1 | 2 = room.hvac_mode {
            let set_c = if room.hvac_mode == 1 { cooling_c } else { heating_c };
            let distance = (temperature_c - set_c).abs();
            return if temperature_c < set_c - band_k {
                -distance.powf(when(room.hvac_mode == 2, self.lower_exponent, self.higher_exponent))
            } else if temperature_c < set_c {
                when(heats, 0.0, -distance)
            } else if temperature_c <= set_c + band_k {
                when(heats, -distance, 0.0)
            } else {
                -distance.powf(when(heats, self.higher_exponent, self.lower_exponent))
            };
        }
        let (above, below) = ((temperature_c - cooling_c).abs(), (temperature_c - heating_c).abs());
        if temperature_c < heating_c - band_k {
            -below.powf(when(heats, self.lower_exponent, self.higher_exponent))
        } else if temperature_c < heating_c {
            -below
        } else if temperature_c <= cooling_c {
            0.0
        } else if temperature_c < cooling_c + band_k {
            -above
        } else {
            -above.powf(when(heats, self.higher_exponent, self.lower_exponent))
        }
    }
}

const ATTRIBUTES: [&str; 3] = ["band", "lower_exponent", "higher_exponent"];

fn read(attributes: &Attributes) -> Result<Comfort, EnergyError> {
    Ok(Comfort {
        band_k: attributes.number("band")?,
        lower_exponent: attributes.number("lower_exponent")?.unwrap_or(2.0),
        higher_exponent: attributes.number("higher_exponent")?.unwrap_or(2.0),
    })
}

pub(super) fn make(attributes: &Attributes) -> Result<Box<dyn RewardClass>, EnergyError> {
    attributes.only(&ATTRIBUTES)?;
    Ok(Box::new(read(attributes)?))
}

/// The weighted sum of the penalty for storages and the one for temperatures.
#[derive(Debug)]
struct Both {
    comfort: Comfort,
    weights: [f64; 2],
}

impl RewardClass for Both {
    fn reward(&self, seen: &Seen) -> f64 {
        self.weights[0] * Solar.reward(seen) + self.weights[1] * self.comfort.reward(seen)
    }
}

pub(super) fn with_solar(attributes: &Attributes) -> Result<Box<dyn RewardClass>, EnergyError> {
    let [band, lower, higher] = ATTRIBUTES;
    attributes.only(&[band, lower, higher, "coefficients"])?;
    let weights = match attributes.values.get("coefficients").filter(|value| !value.is_null()) {
        None => [1.0; 2],
        Some(value) => match serde_json::from_value(value.clone()) {
            Ok(weights) => weights,
            Err(_) => return fail("reward.coefficients", "must be two numbers", value),
        },
    };
    Ok(Box::new(Both { comfort: read(attributes)?, weights }))
}
