//! Names, units and bounds of spaces, for files that other programs read.

use brasa_env::Space;
use brasa_export::Column;

/// Units by the last part of a name.
const UNITS: [(&str, &str); 20] = [
    ("kwh", "kWh"),
    ("kw", "kW"),
    ("kwp", "kW"),
    ("kva", "kVA"),
    ("kg", "kg"),
    ("eur", "EUR"),
    ("usd", "USD"),
    ("soles", "PEN"),
    ("celsius", "degree Celsius"),
    ("percent", "%"),
    ("m", "m"),
    ("km", "km"),
    ("m2", "m2"),
    ("s", "s"),
    ("min", "min"),
    ("h", "h"),
    ("rad", "rad"),
    ("db", "dB"),
    ("dbm", "dBm"),
    ("mbps", "Mbit/s"),
];

/// The columns of a space in their order. A choice has the bounds of its index.
pub(crate) fn columns(space: &Space) -> Vec<Column> {
    let choices = space.heads().iter().map(|n| (Some(0.0), Some(n.saturating_sub(1) as f32)));
    let finite = |bound: &f32| bound.is_finite().then_some(*bound);
    let numbers = space.numbers().into_iter().flat_map(|numbers| numbers.low.iter().zip(&numbers.high));
    let bounds = choices.chain(numbers.map(|(low, high)| (finite(low), finite(high))));
    let named = space.names().into_iter().zip(bounds);
    named.map(|(name, (low, high))| Column { unit: unit(&name), name, low, high }).collect()
}

/// The unit that a name ends with, such as kWh of `import_kwh`.
pub(crate) fn unit(name: &str) -> Option<String> {
    let (_, end) = name.rsplit_once('_')?;
    let (_, unit) = UNITS.iter().find(|(suffix, _)| *suffix == end)?;
    Some((*unit).to_owned())
}
