//! The vehicles, chargers and washing machines of a schema.

use brasa_power::EnergyError;

use super::{
    schema::{CellSchema, MOST, NO_CELL},
    section::Section,
};

/// An electric vehicle; missing parameters are sampled.
pub(super) struct VehicleSchema {
    pub(super) name: String,
    pub(super) capacity_kwh: f64,
    pub(super) nominal_power_kw: f64,
    pub(super) cells: CellSchema,
}

/// A charger of a building.
pub(super) struct ChargerSchema {
    pub(super) name: String,
    /// File of its schedule.
    pub(super) schedule: String,
    pub(super) max_charging_kw: f64,
    pub(super) min_charging_kw: f64,
    pub(super) max_discharging_kw: f64,
    pub(super) min_discharging_kw: f64,
    pub(super) efficiency: f64,
    pub(super) charge_curve: Option<Vec<(f64, f64)>>,
    pub(super) discharge_curve: Option<Vec<(f64, f64)>>,
}

/// The limits on the chargers of a building.
pub(super) struct LimitsSchema {
    pub(super) building_kw: Option<f64>,
    pub(super) phases: Vec<PhaseSchema>,
    /// Whether agents observe the room below the limits, the violation, and the phase of each charger.
    pub(super) show_headroom: bool,
    pub(super) show_violation: bool,
    pub(super) show_phases: bool,
}

/// A phase of a building, with the names of its chargers.
pub(super) struct PhaseSchema {
    pub(super) name: String,
    pub(super) limit_kw: Option<f64>,
    pub(super) chargers: Vec<String>,
}

/// Power limit of chargers without one, in kW; CityLearn's constant.
const DEFAULT_POWER_KW: f64 = 50.0;

pub(super) fn parse_vehicles(vehicles: Option<Section>) -> Result<Vec<VehicleSchema>, EnergyError> {
    let Some(vehicles) = vehicles else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (name, vehicle) in vehicles.entries()? {
        let (is_included, battery) = (vehicle.flag("include", true)?, vehicle.section("battery")?);
        vehicle.close(&["type"], &[])?;
        if !is_included {
            continue;
        }
        let attributes = battery.ok_or_else(|| vehicle.needs("battery", ""))?.attributes()?;
        let cells = CellSchema::parse(&attributes)?;
        let capacity_kwh = attributes.number("capacity", f64::MIN_POSITIVE, MOST)?;
        attributes.close(&[&NO_CELL[..], &["random_seed"]].concat(), &[])?;
        all.push(VehicleSchema {
            name: name.to_owned(),
            capacity_kwh: capacity_kwh.ok_or_else(|| attributes.needs("capacity", ", in kWh"))?,
            nominal_power_kw: cells.nominal_power_kw.ok_or_else(|| attributes.needs("nominal_power", ", in kW"))?,
            cells,
        });
    }
    Ok(all)
}

/// The chargers of `building`; `steered` is whether they have actions.
pub(super) fn parse_chargers(building: &Section, steered: bool) -> Result<Vec<ChargerSchema>, EnergyError> {
    let Some(chargers) = building.section("chargers")? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (name, charger) in chargers.entries()? {
        if !steered {
            return Err(charger.fail("needs the active action `electric_vehicle_storage`"));
        }
        if charger.get("noise_std").is_some_and(|noise| noise.as_f64() != Some(0.0)) {
            return Err(charger.unsupported("noise in the states of charge (`noise_std`)"));
        }
        let schedule = charger.text("charger_simulation")?;
        let attributes = charger.attributes()?;
        let power = |key: &str, default: f64| attributes.number(key, 0.0, MOST).map(|power| power.unwrap_or(default));
        let read = ChargerSchema {
            name: name.to_owned(),
            schedule: schedule.ok_or_else(|| charger.needs("charger_simulation", ""))?,
            max_charging_kw: power("max_charging_power", DEFAULT_POWER_KW)?,
            min_charging_kw: power("min_charging_power", 0.0)?,
            max_discharging_kw: power("max_discharging_power", DEFAULT_POWER_KW)?,
            min_discharging_kw: power("min_discharging_power", 0.0)?,
            efficiency: attributes.number("efficiency", f64::MIN_POSITIVE, 1.0)?.unwrap_or(1.0),
            charge_curve: attributes.points("charge_efficiency_curve")?,
            discharge_curve: attributes.points("discharge_efficiency_curve")?,
        };
        // The first is a limit of no version, and the second a label.
        let ignored = ["nominal_power", "charger_type", "seconds_per_time_step", "phase_connection"];
        attributes.close(&ignored, &[])?;
        for (direction, least, most) in [
            ("charging", read.min_charging_kw, read.max_charging_kw),
            ("discharging", read.min_discharging_kw, read.max_discharging_kw),
        ] {
            if least > most {
                let rule =
                    format!("`min_{direction}_power` must be at most `max_{direction}_power` {most}, got {least}");
                return Err(charger.fail(&rule));
            }
        }
        all.push(read);
    }
    Ok(all)
}

/// The limits on the chargers of `building`, if it has any.
pub(super) fn parse_limits(building: &Section) -> Result<Option<LimitsSchema>, EnergyError> {
    if building.is_off("charging_constraints") {
        return Ok(None);
    }
    let limits = building.needed_section("charging_constraints")?;
    let mut phases: Vec<PhaseSchema> = Vec::new();
    for (index, phase) in limits.items("phases")?.into_iter().enumerate() {
        let read = PhaseSchema {
            name: phase.text("name")?.unwrap_or_else(|| format!("phase_{}", index + 1)),
            limit_kw: phase.number("limit_kw", 0.0, MOST)?,
            chargers: phase.names("chargers")?,
        };
        phase.close(&[], &[])?;
        if let Some(twice) = read.chargers.iter().find(|name| phases.iter().any(|phase| phase.chargers.contains(name)))
        {
            return Err(phase.fail(&format!("must have chargers of no other phase, got {twice}")));
        }
        phases.push(read);
    }
    let shown = limits.section("observations")?;
    let shows = |key: &str, default: bool| shown.as_ref().map_or(Ok(default), |shown| shown.flag(key, default));
    let read = LimitsSchema {
        building_kw: limits.number("building_limit_kw", 0.0, MOST)?,
        show_headroom: shows("headroom", true)?,
        show_violation: shows("violation", true)?,
        show_phases: shows("phase_encoding", false)? && !phases.is_empty(),
        phases,
    };
    if let Some(shown) = &shown {
        shown.close(&[], &["headroom_export"])?;
    }
    limits.close(&[], &["electrical_service", "expose_observations"])?;
    Ok(Some(read))
}

/// Names and files of the washing machines of `building`; `steered` is whether they have actions.
pub(super) fn parse_machines(building: &Section, steered: bool) -> Result<Vec<(String, String)>, EnergyError> {
    if building.is_off("washing_machines") {
        return Ok(Vec::new());
    }
    let mut machines = Vec::new();
    for (name, machine) in building.needed_section("washing_machines")?.entries()? {
        if !steered {
            return Err(machine.fail("needs the active action `washing_machine`"));
        }
        let file = "washing_machine_energy_simulation";
        let (path, is_sized) = (machine.text(file)?, machine.flag("autosize", false)?);
        machine.close(&["type"], &[])?;
        if is_sized {
            return Err(machine.unsupported("automatic sizing (`autosize`)"));
        }
        machines.push((name.to_owned(), path.ok_or_else(|| machine.needs(file, ""))?));
    }
    Ok(machines)
}
