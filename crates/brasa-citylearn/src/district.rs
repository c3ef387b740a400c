//! A district: its buildings, their time series, and its observations.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use brasa_env::field;
use brasa_power::{
    EnergyError, TraceStart, fail,
    remarks::{SITE_KW, unlikely},
};

use super::{
    Battery, Charger, Vehicle,
    chargers::{Timetable, make_charger, make_limits, make_vehicles, observe_limits},
    dates::{self, Dates},
    files::{Files, PHASE1},
    home_data::{Homes, derived},
    homes::Sensor,
    machines::Machine,
    plugs::Schedule,
    schema::{self, BuildingSchema, Schema},
    sizing::{Missing, make_battery, mean_daily_peak_kw},
    table::Table,
};

/// Largest number in a table, in whatever unit: sums of a year must stay numbers.
const MOST: f32 = 1e9;

/// A district as read from a data set; the same for every set of rules.
///
/// ```
/// use brasa_citylearn::District;
///
/// let district = District::phase1()?;
/// assert_eq!((district.buildings().len(), district.n_rows(), district.hours_per_step()), (5, 8760, 1.0));
/// assert!(district.vehicles().is_empty());
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct District {
    pub(super) buildings: Vec<Building>,
    pub(super) hours_per_step: f64,
    /// `[row * n_buildings + building]`.
    pub(super) series: Vec<Exogenous>,
    /// Hour of the day by row, as in the data: 0 to 24.
    pub(super) hour_of_day: Vec<f32>,
    /// When the first row begins, if the data have months and the rows reach another one.
    pub(super) start: Option<TraceStart>,
    pub(super) observed: Vec<Observed>,
    pub(super) schedule: Schedule,
    pub(super) machines: Vec<Machine>,
    /// Thermal devices and storages, and outages.
    pub(super) homes: Homes,
    /// Name in Python and attributes of the class of the schema's reward.
    pub(super) reward: Option<(String, serde_json::Map<String, serde_json::Value>)>,
    pub(super) random_seed: u64,
    pub(super) warnings: Vec<String>,
}

/// Options for reading a data set.
///
/// ```
/// use brasa_citylearn::{District, LoadOptions};
///
/// let options = LoadOptions { random_seed: Some(7), ..LoadOptions::default() };
/// // Another seed gives batteries with other parameters where the schema has none.
/// assert_ne!(District::load("phase1", options)?, District::phase1()?);
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadOptions {
    /// Seed of the device parameters that are missing in the schema, instead of the schema's seed.
    pub random_seed: Option<u64>,
    /// Whether an implausible PV yield is accepted.
    pub accept_unlikely_pv: bool,
}

/// The constants of one building.
///
/// ```
/// use brasa_citylearn::{Building, District};
///
/// let district = District::phase1()?;
/// let building: &Building = &district.buildings()[0];
/// assert_eq!(building.name, "Building_1");
/// assert_eq!(building.actions, ["electrical_storage"]);
/// assert!(building.pv_kw > 0.0);
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Building {
    /// Its name in the schema.
    pub name: String,
    /// Its battery, if it has a controlled one.
    pub battery: Option<Battery>,
    /// The same with the constants of CityLearn 2.1 for missing parameters.
    pub(super) battery_citylearn21: Option<Battery>,
    /// Whether its battery is sized automatically.
    pub(super) is_sized: bool,
    /// The active actions of its storages and devices, in the schema's order.
    pub actions: Vec<String>,
    /// Power of its PV system, in kW.
    pub pv_kw: f64,
}

/// The exogenous quantities of one building in one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Exogenous {
    pub(super) load_kwh: f32,
    pub(super) pv_kwh: f32,
    /// Money per kWh.
    pub(super) price: f32,
    /// kg of CO2 per kWh.
    pub(super) carbon: f32,
}

/// One component of the observation, in CityLearn's order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// CityLearn's name.
    pub(super) name: String,
    /// Its building; `None` if all buildings share it.
    pub(super) building: Option<usize>,
    pub(super) what: What,
}

/// Source of the values of an observation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// The data, row by row.
    Series(Vec<f32>),
    /// The state of charge of a building's battery.
    Soc(usize),
    /// The net consumption of a building.
    Net(usize),
    /// The state of charge of the vehicle at a charger.
    VehicleSoc(usize),
    /// The state of charge that the vehicle at a charger needs at departure.
    RequiredSoc(usize),
    /// The state of charge of the vehicle that arrives at a charger.
    ArrivalSoc(usize),
    /// A number that the limits on chargers show: the room below a limit or the violation.
    Limit(usize),
    /// A quantity of a building with thermal demand.
    Home(usize, Sensor),
}

impl District {
    /// The district of the CityLearn Challenge 2022, phase 1: five homes with battery and PV, one year, hourly.
    ///
    /// # Errors
    /// None in practice: the files are part of the crate.
    pub fn phase1() -> Result<Self, EnergyError> {
        Self::read(Files::Phase1, "schema.json", LoadOptions::default())
    }

    /// The data set `data`: `phase1`, the path of a schema, or of a folder with a `schema.json`.
    ///
    /// # Errors
    /// If a file, column or number is missing or invalid, or the schema needs features that are not modeled.
    pub fn load(data: &str, options: LoadOptions) -> Result<Self, EnergyError> {
        if data == PHASE1 {
            return Self::read(Files::Phase1, "schema.json", options);
        }
        let path = Path::new(data);
        if path.is_dir() {
            return Self::read(Files::Folder(path.into()), "schema.json", options);
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            let cause = std::io::ErrorKind::NotFound.into();
            return Err(EnergyError::Read { path: path.into(), cause });
        };
        Self::read(Files::Folder(folder.into()), name, options)
    }

    pub(super) fn read(files: Files, schema_name: &str, options: LoadOptions) -> Result<Self, EnergyError> {
        let (mut schema, files) = schema::read(&files, schema_name)?;
        let warnings = std::mem::take(&mut schema.warnings);
        let random_seed = options.random_seed.unwrap_or(schema.random_seed);
        let mut tables = Tables { files, last_row: schema.last_row, read: HashMap::new() };
        // Whether the rows are there is seen before there is memory for them.
        for building in &schema.buildings {
            tables.table(&building.energy_simulation)?;
        }
        tables.check_dates(&schema)?;
        let n_rows = schema.last_row - schema.first_row + 1;
        let blank = Exogenous { load_kwh: 0.0, pv_kwh: 0.0, price: 0.0, carbon: 0.0 };
        let n_buildings = schema.buildings.len();
        let n_series = n_buildings as f64 * (1.0 + schema.observations.len() as f64 / 4.0);
        let bytes = n_rows as f64 * n_series * size_of::<Exogenous>() as f64;
        field::fits_in_memory("buildings", n_buildings, bytes)?;
        let homes = Homes::read(&mut tables, &schema, random_seed)?;
        let mut district = Self {
            homes,
            reward: schema.reward.clone(),
            buildings: Vec::new(),
            hours_per_step: schema.seconds_per_step / 3600.0,
            series: vec![blank; n_rows * n_buildings],
            hour_of_day: Vec::new(),
            start: None,
            observed: Vec::new(),
            schedule: Schedule { vehicles: make_vehicles(&schema, random_seed)?, ..Schedule::default() },
            machines: Vec::new(),
            random_seed,
            warnings,
        };
        let mut timetables = Vec::new();
        for (index, building) in schema.buildings.iter().enumerate() {
            let columns = Columns::read(&mut tables, &schema, building, options)?;
            for row in 0..n_rows {
                district.series[row * n_buildings + index] = Exogenous {
                    load_kwh: columns.load_kwh[row],
                    pv_kwh: columns.pv_kwh[row],
                    price: columns.price[row],
                    carbon: columns.carbon[row],
                };
            }
            if index == 0 {
                let file = &building.energy_simulation;
                district.hour_of_day = tables.column(file, "hour", &schema, 0.0, 24.0)?;
                let mut dated = |name, most| match tables.table(file)?.has(name) {
                    true => tables.column(file, name, &schema, 1.0, most),
                    false => Ok(Vec::new()),
                };
                let (months, day_types) = (dated("month", 12.0)?, dated("day_type", 8.0)?);
                district.start = dates::start(&months, &day_types, &district.hour_of_day, district.hours_per_step);
            }
            district.observe(&mut tables, &schema, building, index, &columns)?;
            district.check_load(building, index);
            district.add_building(building, index)?;
            district.add_limits(building, index)?;
            district.add_chargers(&mut tables, &schema, (index, building), &mut timetables)?;
            for machine in &building.machines {
                let machine = Machine::read(&mut tables, &schema, index, machine)?;
                district.observed.extend(machine.observe(&schema, building));
                district.machines.push(machine);
            }
        }
        for row in 0..if timetables.is_empty() { 0 } else { n_rows } {
            district.schedule.plugs.extend(timetables.iter().map(|timetable| timetable.plugs[row]));
        }
        district.schedule.check()?;
        Ok(district)
    }

    fn add_building(&mut self, building: &BuildingSchema, index: usize) -> Result<(), EnergyError> {
        let is_sized = building.battery.as_ref().is_some_and(|battery| battery.sizing.is_some());
        let peak_kw = if is_sized { self.mean_daily_peak_kw(index) } else { 0.0 };
        let drawn = (self.random_seed, peak_kw);
        let battery = |missing: Missing| -> Result<Option<Battery>, EnergyError> {
            let schema = building.battery.as_ref();
            schema.map(|battery| make_battery(battery, building, drawn, missing)).transpose()
        };
        self.buildings.push(Building {
            name: building.name.clone(),
            battery: battery(Missing::Drawn)?,
            battery_citylearn21: battery(Missing::Constant)?,
            is_sized,
            actions: building.thermal.actions.clone(),
            pv_kw: building.pv_kw,
        });
        Ok(())
    }

    /// The limits of a building's chargers; its own chargers are added afterwards.
    fn add_limits(&mut self, building: &BuildingSchema, index: usize) -> Result<(), EnergyError> {
        let Some(of_schema) = &building.limits else { return Ok(()) };
        let first_charger = self.schedule.chargers.len();
        let first_shown = self.schedule.limits.iter().map(|limits| limits.n_shown()).sum();
        let (chargers, n_rows) = (&building.chargers, self.n_rows());
        let limits = make_limits(of_schema, (index, &building.name), chargers, first_charger)?;
        self.observed.extend(observe_limits(of_schema, &limits, chargers, first_charger, first_shown, n_rows));
        self.schedule.limits.push(limits);
        Ok(())
    }

    fn add_chargers(
        &mut self,
        tables: &mut Tables,
        schema: &Schema,
        (index, building): (usize, &BuildingSchema),
        timetables: &mut Vec<Timetable>,
    ) -> Result<(), EnergyError> {
        for charger in &building.chargers {
            let timetable = Timetable::read(tables, schema, &charger.schedule)?;
            let charger = make_charger(charger, index)?;
            let place = self.schedule.chargers.len();
            self.observed.extend(timetable.observe(schema, building, (place, &charger), &self.schedule.vehicles));
            self.schedule.chargers.push(charger);
            self.schedule.in_percent.push(timetable.in_percent);
            timetables.push(timetable);
        }
        Ok(())
    }

    /// Number of rows, of [`District::hours_per_step`] each.
    pub fn n_rows(&self) -> usize {
        self.hour_of_day.len()
    }

    /// Duration of a row in hours.
    pub fn hours_per_step(&self) -> f64 {
        self.hours_per_step
    }

    /// The buildings, in the schema's order.
    pub fn buildings(&self) -> &[Building] {
        &self.buildings
    }

    /// The electric vehicles, in the schema's order.
    pub fn vehicles(&self) -> &[Vehicle] {
        &self.schedule.vehicles
    }

    /// The chargers, in the order of the buildings.
    pub fn chargers(&self) -> &[Charger] {
        &self.schedule.chargers
    }

    /// What is unlikely in the data, and keys of the schema that are unknown and have no effect, by the names of files in the data set.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The rows of a building.
    fn series_of(&self, index: usize) -> impl Iterator<Item = &Exogenous> {
        self.series.iter().skip(index).step_by(self.series.len() / self.n_rows().max(1))
    }

    /// Warns of a largest load that no building has.
    fn check_load(&mut self, building: &BuildingSchema, index: usize) {
        let largest_kw =
            self.series_of(index).fold(0.0, |most: f32, row| most.max(row.load_kwh)) / self.hours_per_step as f32;
        if largest_kw > 0.0 {
            let (file, what) = (Path::new(&building.energy_simulation), "the largest `non_shiftable_load`");
            self.warnings.extend(unlikely(file, what, f64::from(largest_kw), SITE_KW, "kW"));
        }
    }

    /// The mean of the daily peaks of a building's consumption without storage and PV, in kW.
    fn mean_daily_peak_kw(&self, index: usize) -> f64 {
        let rows = self.series_of(index).zip(self.homes.of(index));
        let consumption: Vec<f32> = rows.map(|(row, home)| row.load_kwh + home.ideal_kwh).collect();
        mean_daily_peak_kw(&consumption, self.hours_per_step)
    }

    /// Appends the active observations of `building`; shared ones are added once, with the first building that has
    /// them.
    fn observe(
        &mut self,
        tables: &mut Tables,
        schema: &Schema,
        building: &BuildingSchema,
        index: usize,
        columns: &Columns,
    ) -> Result<(), EnergyError> {
        let predicted = self.homes.homes[index].dynamics.is_some();
        for (name, shared) in &schema.observations {
            let seen = *shared && self.observed.iter().any(|other| other.name == *name);
            // Those of chargers and washing machines follow, for each of them.
            let of_vehicles = name.contains("electric_vehicle_") || name.starts_with("washing_machine_");
            if seen || of_vehicles || building.inactive_observations.contains(name) {
                continue;
            }
            let what = match name.as_str() {
                "electrical_storage_soc" => What::Soc(index),
                "net_electricity_consumption" => What::Net(index),
                "non_shiftable_load" => What::Series(columns.load_kwh.clone()),
                "solar_generation" => What::Series(columns.pv_kwh.clone()),
                "electricity_pricing" => What::Series(columns.price.clone()),
                "carbon_intensity" => What::Series(columns.carbon.clone()),
                name => match Sensor::named(name).or_else(|| Sensor::indoors(name).filter(|_| predicted)) {
                    Some(sensor) if self.homes.matter => What::Home(index, sensor),
                    // Without thermal demand there is nothing to see.
                    Some(sensor) if sensor != Sensor::Battery => What::Series(vec![0.0; columns.load_kwh.len()]),
                    _ => What::Series(match derived(name, tables, schema, (building, index), &self.homes)? {
                        Some(values) => values,
                        None => tables.observation(name, schema, building)?,
                    }),
                },
            };
            self.observed.push(Observed { name: name.clone(), building: (!shared).then_some(index), what });
        }
        Ok(())
    }
}

/// The series of one building.
pub(super) struct Columns {
    load_kwh: Vec<f32>,
    pv_kwh: Vec<f32>,
    price: Vec<f32>,
    carbon: Vec<f32>,
}

impl Columns {
    /// A column of a building's file; `default` where a cell is empty and in every row if there is no such column.
    pub(super) fn optional(
        name: &str,
        default: f32,
        tables: &mut Tables,
        schema: &Schema,
        building: &BuildingSchema,
    ) -> Result<Vec<f32>, EnergyError> {
        let table = tables.table(&building.energy_simulation)?;
        if !table.has(name) {
            return Ok(vec![default; schema.last_row - schema.first_row + 1]);
        }
        let mut values = table.column_or(name, -MOST, MOST, default)?;
        values.truncate(schema.last_row + 1);
        values.drain(..schema.first_row);
        Ok(values)
    }

    fn read(
        tables: &mut Tables,
        schema: &Schema,
        building: &BuildingSchema,
        options: LoadOptions,
    ) -> Result<Self, EnergyError> {
        let file = &building.energy_simulation;
        let zeros = || vec![0.0; schema.last_row - schema.first_row + 1];
        let sun = tables.column(file, "solar_generation", schema, 0.0, MOST)?;
        if !options.accept_unlikely_pv {
            check_pv(tables, schema, building, &sun)?;
        }
        // The same arithmetic as CityLearn, in f32: kW times W per kW, divided by 1000, times hours.
        let (pv_kw, hours) = (building.pv_kw as f32, (schema.seconds_per_step / 3600.0) as f32);
        Ok(Self {
            load_kwh: tables.column(file, "non_shiftable_load", schema, 0.0, MOST)?,
            pv_kwh: sun.iter().map(|watts| pv_kw * watts / 1000.0 * hours).collect(),
            price: match &building.pricing {
                Some(file) => tables.column(file, "electricity_pricing", schema, -MOST, MOST)?,
                None => zeros(),
            },
            carbon: match &building.carbon_intensity {
                Some(file) => tables.column(file, "carbon_intensity", schema, 0.0, 2.0)?,
                None => zeros(),
            },
        })
    }
}

/// Rejects an implausible yearly PV yield: kWh per kWp instead of W per kW are 1000 times too small.
fn check_pv(tables: &Tables, schema: &Schema, building: &BuildingSchema, sun: &[f32]) -> Result<(), EnergyError> {
    let hours = sun.len() as f64 * schema.seconds_per_step / 3600.0;
    // Less than a week gives no estimate; a part of a year may be only winter or only summer.
    let (low, high) = if hours >= 8000.0 { (200.0, 2200.0) } else { (20.0, 4400.0) };
    if building.pv_kw == 0.0 || hours < 168.0 {
        return Ok(());
    }
    let mean_w_per_kw = sun.iter().map(|watts| f64::from(*watts)).sum::<f64>() / sun.len() as f64;
    let kwh_per_kwp = mean_w_per_kw * 8.76;
    if (low..=high).contains(&kwh_per_kwp) {
        return Ok(());
    }
    fail(
        &format!("{} of {}", tables.files.path(&building.energy_simulation).display(), building.name),
        &format!(
            "must have `solar_generation` in W per kW of PV, which gives {low} to {high} kWh per kWp and year \
             (`accept_unlikely_pv` if the data means it)"
        ),
        format!("{kwh_per_kwp:.3} kWh per kWp and year"),
    )
}

/// The tables of a data set, each read only once.
pub(super) struct Tables {
    files: Files,
    last_row: usize,
    read: HashMap<String, Table>,
}

impl Tables {
    pub(super) fn table(&mut self, file: &str) -> Result<&Table, EnergyError> {
        if !self.read.contains_key(file) {
            let table = Table::read(&self.files, file)?;
            if table.n_rows() <= self.last_row {
                let reason = format!("has {} rows, but the schema asks for {}", table.n_rows(), self.last_row + 1);
                return Err(EnergyError::Schema { path: table.path().clone(), reason });
            }
            self.read.insert(file.into(), table);
        }
        Ok(&self.read[file])
    }

    /// Checks the dates of all files, each by itself and against the first building.
    fn check_dates(&mut self, schema: &Schema) -> Result<(), EnergyError> {
        let rule = dates::Rule {
            seconds_per_step: schema.seconds_per_step,
            last_row: schema.last_row,
            jumps: schema.episode_starts.clone(),
        };
        let buildings = || schema.buildings.iter();
        let mut files: Vec<(&String, bool)> = buildings().map(|building| (&building.energy_simulation, true)).collect();
        for building in buildings() {
            let [weather, pricing, carbon] =
                [Some(&building.weather), building.pricing.as_ref(), building.carbon_intensity.as_ref()];
            files.extend([weather, pricing, carbon].into_iter().flatten().map(|file| (file, true)));
            files.extend(building.chargers.iter().map(|charger| (&charger.schedule, false)));
            files.extend(building.machines.iter().map(|(_, file)| (file, false)));
        }
        let mut first = None;
        let mut checked = HashSet::new();
        for (place, (file, whole)) in files.into_iter().enumerate().filter(|(_, (file, _))| checked.insert(*file)) {
            let table = self.table(file)?;
            if place < schema.buildings.len() {
                table.needed("hour")?;
            }
            let dates = Dates::read(table, &rule)?;
            match &first {
                None => first = Some(dates),
                Some(first) => dates.check_against(table, first, whole)?,
            }
        }
        Ok(())
    }

    /// The path of a file, for messages.
    pub(super) fn path(&self, file: &str) -> std::path::PathBuf {
        self.files.path(file)
    }

    /// The demand `name` of a building, in kWh.
    pub(super) fn demand(
        &mut self,
        name: &str,
        schema: &Schema,
        building: &BuildingSchema,
    ) -> Result<Vec<f32>, EnergyError> {
        self.column(&building.energy_simulation, name, schema, 0.0, MOST)
    }

    /// A known series of a building from the file that has it, as its observation of the same name.
    pub(super) fn known(
        &mut self,
        name: &str,
        schema: &Schema,
        building: &BuildingSchema,
    ) -> Result<Vec<f32>, EnergyError> {
        self.observation(name, schema, building)
    }

    /// The bytes of a file.
    pub(super) fn bytes(&self, file: &str) -> Result<Vec<u8>, EnergyError> {
        self.files.read(file)
    }

    /// The outdoor temperatures of a building, in degrees Celsius; 0 if its weather has none.
    pub(super) fn temperatures(&mut self, schema: &Schema, building: &BuildingSchema) -> Result<Vec<f32>, EnergyError> {
        let name = "outdoor_dry_bulb_temperature";
        if building.thermal.devices.iter().flatten().any(|device| device.is_heat_pump)
            || self.table(&building.weather)?.has(name)
        {
            return self.column(&building.weather, name, schema, -100.0, 100.0);
        }
        Ok(vec![0.0; schema.last_row - schema.first_row + 1])
    }

    /// The rows with an outage in a building's file.
    pub(super) fn outages(
        &mut self,
        schema: &Schema,
        building: &BuildingSchema,
    ) -> Result<Option<Vec<bool>>, EnergyError> {
        let signals = Columns::optional("power_outage", 0.0, self, schema, building)?;
        Ok(Some(signals.into_iter().map(|signal| signal != 0.0).collect()))
    }

    /// A column in the rows that the schema simulates.
    fn column(
        &mut self,
        file: &str,
        name: &str,
        schema: &Schema,
        low: f32,
        high: f32,
    ) -> Result<Vec<f32>, EnergyError> {
        let mut values = self.table(file)?.column(name, low, high)?;
        values.truncate(schema.last_row + 1);
        values.drain(..schema.first_row);
        Ok(values)
    }

    /// A column that is only observed, from the file of the building that has it.
    fn observation(&mut self, name: &str, schema: &Schema, building: &BuildingSchema) -> Result<Vec<f32>, EnergyError> {
        let files = [Some(&building.energy_simulation), Some(&building.weather), building.pricing.as_ref()];
        for file in files.into_iter().flatten() {
            if self.table(file)?.has(name) {
                return self.column(file, name, schema, -MOST, MOST);
            }
        }
        // Buildings without prices observe 0; otherwise a missing price column is an error.
        if name.starts_with("electricity_pricing") && building.pricing.is_none() {
            return Ok(vec![0.0; schema.last_row - schema.first_row + 1]);
        }
        let file = match name {
            name if name.starts_with("electricity_pricing") => building.pricing.as_ref(),
            name if name.starts_with("outdoor_") || name.contains("_solar_irradiance") => Some(&building.weather),
            _ => None,
        };
        match file {
            Some(file) => self.column(file, name, schema, -MOST, MOST),
            None => Err(EnergyError::Schema {
                path: self.files.path("schema.json"),
                reason: format!("`{}` asks for the observation `{name}`, which is not modeled", building.name),
            }),
        }
    }
}
