//! A penalty for imports while storages hold energy and for exports while they have room.

use brasa_power::EnergyError;

use super::{Attributes, RewardClass, Seen};

/// The sum over the storages of `-(1 + sign(E) soc) |E|`, with the net consumption `E` of the building.
#[derive(Debug)]
pub(super) struct Solar;

impl RewardClass for Solar {
    fn reward(&self, seen: &Seen) -> f64 {
        let net_kwh = seen.net_kwh;
        let sign = if net_kwh == 0.0 { 0.0 } else { net_kwh.signum() };
        seen.socs.iter().flatten().map(|soc| -(1.0 + sign * soc) * net_kwh.abs()).sum()
    }
}

pub(super) fn make(attributes: &Attributes) -> Result<Box<dyn RewardClass>, EnergyError> {
    attributes.only(&[])?;
    Ok(Box::new(Solar))
}
