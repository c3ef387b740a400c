//! Electric vehicles and chargers: their schedule, and their step with each set of rules.
//!
//! A charger has a schedule: for every row, which vehicle is connected or arriving. A vehicle is a battery that is
//! charged, or discharged into the building, only while it is connected. An action of a charger is the fraction of its
//! largest power. Energy passes the charger's efficiency and then the battery's.

use ndarray::ArrayView1;

use super::{
    Battery, BatteryState, Curve, Physics,
    limits::ChargingLimits,
    plugs::{Plug, PlugState, Schedule},
    rewards::{SeenCharger, SeenVehicle},
    sampling::Normals,
};

/// An electric vehicle.
///
/// ```
/// use brasa_citylearn::{District, LoadOptions, Vehicle};
///
/// # let dir = tempfile::tempdir()?;
/// # for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/citylearn_ev"))? {
/// #     let path = entry?.path();
/// #     let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
/// #     if path.extension().is_some_and(|end| end == "gz") && !stem.ends_with(".bin") {
/// #         let mut to = std::fs::File::create(dir.path().join(stem))?;
/// #         std::io::copy(&mut flate2::read::GzDecoder::new(std::fs::File::open(&path)?), &mut to)?;
/// #     }
/// # }
/// // `dir` has a data set with electric vehicles.
/// let options = LoadOptions { accept_unlikely_pv: true, ..LoadOptions::default() };
/// let district = District::load(&dir.path().display().to_string(), options)?;
/// let vehicles: &[Vehicle] = district.vehicles();
/// assert!(!vehicles.is_empty());
/// assert!(vehicles.iter().all(|vehicle| vehicle.battery.capacity_kwh > 0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Vehicle {
    /// Its name in the schema.
    pub name: String,
    /// Its battery.
    pub battery: Battery,
    /// Its battery in CityLearn 2.5, which reads fewer parameters from the schema and has other defaults.
    pub battery_citylearn25: Battery,
}

/// A charger.
///
/// ```
/// use brasa_citylearn::{Charger, District, LoadOptions};
///
/// # let dir = tempfile::tempdir()?;
/// # for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/citylearn_ev"))? {
/// #     let path = entry?.path();
/// #     let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
/// #     if path.extension().is_some_and(|end| end == "gz") && !stem.ends_with(".bin") {
/// #         let mut to = std::fs::File::create(dir.path().join(stem))?;
/// #         std::io::copy(&mut flate2::read::GzDecoder::new(std::fs::File::open(&path)?), &mut to)?;
/// #     }
/// # }
/// // `dir` has a data set with electric vehicles.
/// let options = LoadOptions { accept_unlikely_pv: true, ..LoadOptions::default() };
/// let district = District::load(&dir.path().display().to_string(), options)?;
/// let chargers: &[Charger] = district.chargers();
/// assert_eq!(chargers.len(), 4);
/// assert!(chargers.iter().all(|charger| charger.building < district.buildings().len()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Charger {
    /// Its name in the schema.
    pub name: String,
    /// The building it belongs to, as an index.
    pub building: usize,
    /// Largest power while charging, in kW on the grid side: an action of 1.
    pub max_charging_kw: f64,
    /// Smallest power while charging, in kW; less is 0, or this power in CityLearn 2.5.
    pub min_charging_kw: f64,
    /// Largest power while discharging, in kW: an action of -1; 0 if the charger cannot discharge.
    pub max_discharging_kw: f64,
    /// Smallest power while discharging, in kW.
    pub min_discharging_kw: f64,
    /// Efficiency while charging as a function of the power over its largest.
    pub charge_efficiency: Curve,
    /// Efficiency while discharging as a function of the power over its largest.
    pub discharge_efficiency: Curve,
}

/// The vehicles and chargers of a district under one set of rules.
#[derive(Debug)]
pub(super) struct Mobility {
    physics: Physics,
    pub(super) batteries: Vec<Battery>,
    pub(super) chargers: Vec<Charger>,
    /// Column of each charger's action.
    pub(super) action_columns: Vec<usize>,
    pub(super) limits: Vec<ChargingLimits>,
    /// `[row * n_vehicles + vehicle]`.
    visits: Vec<Visit>,
    /// `[row * n_chargers + charger]`: the connected vehicle.
    connected: Vec<Option<usize>>,
    /// `[row * n_chargers + charger]`: state of charge of a connected vehicle in an episode that starts with this row.
    at_start: Vec<Option<f32>>,
    /// `[row * n_chargers + charger]`: the state of charge that a vehicle needs at its departure, and the steps until then.
    departures: Vec<[f32; 2]>,
}

/// One vehicle in one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Visit {
    pub(super) charger: Option<usize>,
    before: Before,
    /// State of charge of a vehicle whose session starts with this row, if the schedule has one.
    arrival: Option<f32>,
    /// State of charge required after this row, the last one of a session.
    pub(super) required: Option<f32>,
}

#[cfg(feature = "optimum")]
impl Visit {
    /// The state of charge that the vehicle has before the step, whatever it had.
    pub(super) fn set_soc(&self) -> Option<f64> {
        match self.before {
            Before::Set(soc) => Some(f64::from(soc)),
            Before::Keep | Before::Drift(_) => None,
        }
    }
}

/// The change of a state of charge before the step of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    Keep,
    Set(f32),
    /// Multiplied, while driving or charging elsewhere.
    Drift(f64),
}

/// Energy of a step of all chargers of an environment, in kWh on the grid side.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct VehicleFlows {
    pub(super) in_kwh: f64,
    pub(super) out_kwh: f64,
    /// Energy that departing vehicles lack for their required state of charge.
    pub(super) shortfall_kwh: f64,
    /// Energy by which requests were above the limits on chargers.
    pub(super) violation_kwh: f64,
}

/// What a step of an environment changes.
pub(super) struct Slots<'a> {
    /// By vehicle.
    pub(super) states: &'a mut [BatteryState],
    /// By charger: energy on the grid side, in kWh, positive while charging.
    pub(super) energy_kwh: &'a mut [f64],
    /// What the limits show.
    pub(super) shown: &'a mut [f64],
    /// By charger, for rewards that need it; otherwise empty.
    pub(super) asked: &'a mut [Asked],
}

/// What a step asked of a charger.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Asked {
    /// Energy on the grid side, in kWh, positive when charging: what the vehicle takes may be less.
    pub(super) kwh: f64,
    /// State of charge of the vehicle before the step.
    soc_before: f64,
}

impl Mobility {
    /// Prepares a schedule for a set of rules; `None` without chargers.
    pub(super) fn new(
        schedule: Schedule,
        physics: Physics,
        action_columns: Vec<usize>,
        random_seed: u64,
    ) -> Option<Self> {
        let n_chargers = schedule.chargers.len();
        if n_chargers == 0 {
            return None;
        }
        let visits = visits(&schedule, physics, random_seed);
        let starts = schedule.plugs.iter().enumerate().map(|(cell, plug)| {
            plug.connected().and_then(|_| schedule.at_arrival(cell % n_chargers, plug, plug, physics))
        });
        let at_start = starts.collect();
        let departures =
            schedule.plugs.iter().enumerate().map(|(cell, plug)| {
                [schedule.fraction(cell % n_chargers, plug.required, physics), plug.departure_steps]
            });
        let departures = departures.collect();
        let Schedule { vehicles, chargers, plugs, limits, .. } = schedule;
        Some(Self {
            physics,
            batteries: vehicles
                .into_iter()
                .map(|vehicle| match physics {
                    Physics::CityLearn21 | Physics::CityLearn25 => vehicle.battery_citylearn25,
                    _ => vehicle.battery,
                })
                .collect(),
            chargers,
            limits,
            action_columns,
            visits,
            connected: plugs.iter().map(Plug::connected).collect(),
            at_start,
            departures,
        })
    }

    pub(super) fn n_vehicles(&self) -> usize {
        self.batteries.len()
    }

    /// Numbers that the limits on chargers show.
    pub(super) fn n_shown(&self) -> usize {
        self.limits.iter().map(ChargingLimits::n_shown).sum()
    }

    /// What the limits show at the start of an episode.
    pub(super) fn show_idle(&self, mut shown: &mut [f64]) {
        for limits in &self.limits {
            let (here, rest) = shown.split_at_mut(limits.n_shown());
            limits.show_idle(here);
            shown = rest;
        }
    }

    /// Whether each charger has a vehicle in `row`.
    pub(super) fn has_vehicle(&self, row: usize) -> impl Iterator<Item = bool> {
        self.connected[row * self.chargers.len()..][..self.chargers.len()].iter().map(Option::is_some)
    }

    /// Indices of the chargers of a building.
    pub(super) fn of_building(&self, building: usize) -> std::ops::Range<usize> {
        let first = self.chargers.partition_point(|charger| charger.building < building);
        first..self.chargers.partition_point(|charger| charger.building <= building)
    }

    /// The vehicles at the start of an episode with `row`.
    pub(super) fn start(&self, row: usize, states: &mut [BatteryState]) {
        for (state, battery) in states.iter_mut().zip(&self.batteries) {
            *state = match self.physics {
                Physics::CityLearn21 | Physics::CityLearn25 => battery.start_citylearn25(),
                Physics::CityLearn30 => battery.start_citylearn30(),
                Physics::Clean => battery.start_clean(),
            };
        }
        for charger in 0..self.chargers.len() {
            let cell = row * self.chargers.len() + charger;
            if let (Some(vehicle), Some(soc)) = (self.connected[cell], self.at_start[cell]) {
                states[vehicle].soc = f64::from(soc);
            }
        }
    }

    /// The vehicles at the start of an episode with `row`.
    #[cfg(feature = "optimum")]
    pub(super) fn started(&self, row: usize) -> Vec<BatteryState> {
        let mut states = vec![BatteryState { soc: 0.0, capacity_kwh: 0.0, efficiency: 1.0 }; self.n_vehicles()];
        self.start(row, &mut states);
        states
    }

    /// A vehicle in a row.
    #[cfg(feature = "optimum")]
    pub(super) fn visit(&self, row: usize, vehicle: usize) -> &Visit {
        &self.visits[row * self.batteries.len() + vehicle]
    }

    /// One step of all vehicles of an environment; `first` is the first one of an episode. In an outage, `left_kwh` is the energy
    /// that a building has left for its chargers.
    pub(super) fn step(
        &self,
        (row, first): (usize, bool),
        hours: f64,
        actions: ArrayView1<f32>,
        left_kwh: impl Fn(usize) -> Option<f64>,
        Slots { states, energy_kwh, shown, asked }: Slots<'_>,
    ) -> VehicleFlows {
        let mut flows = VehicleFlows::default();
        // Until the energy of each charger is known, its place has its action.
        for ((action, charger), column) in energy_kwh.iter_mut().zip(&self.chargers).zip(&self.action_columns) {
            let least = if charger.max_discharging_kw > 0.0 { -1.0 } else { 0.0 };
            *action = f64::from(actions[*column].clamp(least, 1.0));
        }
        let connected = &self.connected[row * self.chargers.len()..][..self.chargers.len()];
        let mut first_shown = 0;
        for limits in &self.limits {
            let shown = &mut shown[first_shown..first_shown + limits.n_shown()];
            let is_counted = |charger: usize| self.physics != Physics::Clean || connected[charger].is_some();
            flows.violation_kwh += limits.apply(&self.chargers, energy_kwh, is_counted, self.physics, hours, shown);
            first_shown += limits.n_shown();
        }
        self.limit_to_what_is_left(energy_kwh, connected, hours, left_kwh);
        for (place, asked) in asked.iter_mut().enumerate() {
            let soc_before = connected[place].map_or(0.0, |vehicle| match (first, self.physics) {
                // The one of the schema, not the one that the vehicle arrives with.
                (true, Physics::CityLearn30) => self.batteries[vehicle].initial_soc,
                _ => states[vehicle].soc,
            });
            *asked = Asked { kwh: self.asked_kwh(&self.chargers[place], energy_kwh[place], hours), soc_before };
        }
        for (action, vehicle) in energy_kwh.iter_mut().zip(connected) {
            if vehicle.is_none() {
                *action = 0.0;
            }
        }
        let visits = &self.visits[row * self.batteries.len()..];
        for ((visit, battery), state) in visits.iter().zip(&self.batteries).zip(states) {
            let action = visit.charger.map_or(0.0, |charger| energy_kwh[charger]);
            let charger = visit.charger.map(|charger| &self.chargers[charger]);
            let energy = match self.physics {
                Physics::CityLearn21 | Physics::CityLearn25 => {
                    step_citylearn25(visit, charger, battery, state, action, first)
                }
                Physics::CityLearn30 => step_citylearn30(visit, charger, battery, state, action, first),
                Physics::Clean => step_clean(visit, charger, battery, state, action, first, hours),
            };
            if let Some(charger) = visit.charger {
                energy_kwh[charger] = energy;
            }
            flows.in_kwh += energy.max(0.0);
            flows.out_kwh += (-energy).max(0.0);
            if let Some(required) = visit.required {
                flows.shortfall_kwh += (f64::from(required) - state.soc).max(0.0) * battery.capacity_kwh;
            }
        }
        flows
    }

    /// Limits the actions of chargers without the grid: none discharges, and each charges with at most what is left. In 3.0 every
    /// charger of a building gets all of it; the clean rules give each what the ones before leave.
    fn limit_to_what_is_left(
        &self,
        actions: &mut [f64],
        connected: &[Option<usize>],
        hours: f64,
        left_kwh: impl Fn(usize) -> Option<f64>,
    ) {
        if self.physics == Physics::CityLearn25 {
            return;
        }
        let mut taken = (usize::MAX, 0.0);
        for ((action, charger), vehicle) in actions.iter_mut().zip(&self.chargers).zip(connected) {
            let Some(left_kwh) = left_kwh(charger.building) else { continue };
            if taken.0 != charger.building {
                taken = (charger.building, 0.0);
            }
            let most_kw = charger.max_charging_kw;
            let wanted_kw = if *action > 0.0 { *action * most_kw } else { 0.0 };
            let power_kw = wanted_kw.min((left_kwh - taken.1).max(0.0) / hours);
            *action = if power_kw < charger.min_charging_kw || power_kw == 0.0 { 0.0 } else { power_kw / most_kw };
            if self.physics == Physics::Clean && vehicle.is_some() {
                taken.1 += *action * most_kw * hours;
            }
        }
    }

    /// What an action asks of a charger, in kWh on the grid side, positive when charging.
    fn asked_kwh(&self, charger: &Charger, action: f64, hours: f64) -> f64 {
        if self.physics == Physics::CityLearn25 {
            return charger.power_citylearn25(action);
        }
        let most_kw = if action > 0.0 { charger.max_charging_kw } else { charger.max_discharging_kw };
        if charger.battery_kw(action).0 == 0.0 { 0.0 } else { action * most_kw * hours }
    }

    /// What a reward sees of a charger after a step of `row`.
    pub(super) fn seen(
        &self,
        row: usize,
        charger: usize,
        hours: f64,
        asked: Asked,
        states: &[BatteryState],
    ) -> SeenCharger {
        let cell = row * self.chargers.len() + charger;
        let Charger { max_charging_kw, max_discharging_kw, .. } = self.chargers[charger];
        let vehicle = self.connected[cell].map(|vehicle| {
            let (battery, [required_soc, steps]) = (&self.batteries[vehicle], self.departures[cell]);
            let hours_left = match self.physics {
                Physics::CityLearn25 => f64::from(steps),
                _ => f64::from(steps.max(0.0)) * hours,
            };
            SeenVehicle {
                soc_before: asked.soc_before,
                soc: states[vehicle].soc,
                capacity_kwh: battery.capacity_kwh,
                least_kwh: (1.0 - battery.depth_of_discharge) * battery.capacity_kwh,
                required_soc: f64::from(required_soc),
                hours_left,
            }
        });
        SeenCharger { asked_kwh: asked.kwh, vehicle, max_charging_kw, max_discharging_kw }
    }

    /// The energy by which the requests in a building were above its limits, in kWh, from what the limits show.
    pub(super) fn violation_kwh(&self, building: usize, shown: &[f64]) -> f64 {
        let mut end = 0;
        for limits in &self.limits {
            end += limits.n_shown();
            if limits.building == building {
                return shown[end - 1];
            }
        }
        0.0
    }

    /// The state of charge that the observation of `row` has for the vehicle at `charger`; -0.1 without one.
    ///
    /// CityLearn 2.5 shows only the one at arrival, then 0; 3.0 shows the one after the last step.
    pub(super) fn observed_soc(&self, row: usize, first: bool, charger: usize, states: &[BatteryState]) -> f64 {
        let Some(vehicle) = self.connected[row * self.chargers.len() + charger] else { return f64::from(-0.1_f32) };
        let arrival = self.visits[row * self.batteries.len() + vehicle].arrival.filter(|_| !first).map(f64::from);
        match self.physics {
            _ if first => states[vehicle].soc,
            Physics::CityLearn21 | Physics::CityLearn25 => arrival.unwrap_or(0.0),
            Physics::CityLearn30 => states[vehicle].soc,
            Physics::Clean => arrival.unwrap_or(states[vehicle].soc),
        }
    }
}

/// CityLearn 2.5: a step starts from the state of charge of the row before. A connected vehicle with an action of
/// exactly 0 has the state of charge 0 after the step, unless it arrived in this row.
fn step_citylearn25(
    visit: &Visit,
    charger: Option<&Charger>,
    battery: &Battery,
    state: &mut BatteryState,
    action: f64,
    first: bool,
) -> f64 {
    let Some(charger) = charger.filter(|_| action != 0.0) else {
        state.soc = match (first, visit.before) {
            (false, Before::Set(soc)) => f64::from(soc),
            (false, Before::Keep) if visit.charger.is_some() => 0.0,
            _ => state.soc,
        };
        return 0.0;
    };
    let energy = charger.power_citylearn25(action);
    let (energy_kwh, efficiency) = if action > 0.0 {
        let efficiency = charger.charge_efficiency.at(action);
        (energy * efficiency, efficiency)
    } else {
        let efficiency = charger.discharge_efficiency.at(-action);
        (energy / efficiency, efficiency)
    };
    let balance = f64::from(battery.step_citylearn25(state, energy_kwh / battery.nominal_power_kw));
    f64::from(at_grid(balance, efficiency) as f32)
}

/// CityLearn 3.0: standing loss and arrival before the step; a vehicle without action keeps its energy.
fn step_citylearn30(
    visit: &Visit,
    charger: Option<&Charger>,
    battery: &Battery,
    state: &mut BatteryState,
    action: f64,
    first: bool,
) -> f64 {
    if !first {
        let last_soc = state.soc;
        battery.pass_citylearn30(state, 1.0);
        match visit.before {
            Before::Keep => {}
            Before::Set(soc) => state.soc = f64::from(soc),
            Before::Drift(factor) => state.soc = f64::from((last_soc * factor).clamp(0.0, 1.0) as f32),
        }
    }
    let Some(charger) = charger else { return 0.0 };
    let (battery_kw, efficiency) = charger.battery_kw(action);
    let balance = f64::from(battery.step_citylearn30(state, battery_kw / battery.nominal_power_kw));
    f64::from(at_grid(balance, efficiency) as f32)
}

/// The clean rules: a session starts with the schedule's state of charge, or the one of the last departure.
fn step_clean(
    visit: &Visit,
    charger: Option<&Charger>,
    battery: &Battery,
    state: &mut BatteryState,
    action: f64,
    first: bool,
    hours: f64,
) -> f64 {
    if let (false, Before::Set(soc)) = (first, visit.before) {
        state.soc = f64::from(soc);
    }
    let Some(charger) = charger else { return 0.0 };
    let (battery_kw, efficiency) = charger.battery_kw(action);
    let energy = battery.step_clean(state, battery_kw / battery.nominal_power_kw, hours);
    at_grid(energy, efficiency)
}

/// Energy on the grid side of a charger for an energy at the vehicle, positive when charging.
fn at_grid(energy: f64, efficiency: f64) -> f64 {
    if energy >= 0.0 { energy / efficiency } else { energy * efficiency }
}

impl Charger {
    /// Power on the grid side for an action in CityLearn 2.5, in kW: at least the smallest one. Powers are compared with energies, as
    /// if a step had one hour.
    fn power_citylearn25(&self, action: f64) -> f64 {
        if action > 0.0 {
            (action * self.max_charging_kw).min(self.max_charging_kw).max(self.min_charging_kw)
        } else if action < 0.0 {
            (action * self.max_discharging_kw).min(-self.min_discharging_kw).max(-self.max_discharging_kw)
        } else {
            0.0
        }
    }

    /// Power at the vehicle for an action, in kW, and the charger's efficiency; a power below the smallest one is 0.
    pub(super) fn battery_kw(&self, action: f64) -> (f64, f64) {
        let charging = action >= 0.0;
        let (least, most, curve) = match charging {
            true => (self.min_charging_kw, self.max_charging_kw, &self.charge_efficiency),
            false => (self.min_discharging_kw, self.max_discharging_kw, &self.discharge_efficiency),
        };
        let power = action.abs() * most;
        if power < least || power == 0.0 {
            return (0.0, 1.0);
        }
        let efficiency = curve.at(action.abs());
        (if charging { power * efficiency } else { -power / efficiency }, efficiency)
    }
}

/// Every vehicle in every row.
fn visits(schedule: &Schedule, physics: Physics, random_seed: u64) -> Vec<Visit> {
    let (n_chargers, n_vehicles) = (schedule.chargers.len(), schedule.vehicles.len());
    let n_rows = schedule.plugs.len() / n_chargers;
    let plug = |row: usize, charger: usize| &schedule.plugs[row * n_chargers + charger];
    let blank = Visit { charger: None, before: Before::Keep, arrival: None, required: None };
    let mut visits = vec![blank; n_rows * n_vehicles];
    // CityLearn draws the drift of vehicles that are away from a generator of its own; with its episodes from the
    // first row, it is a part of the schedule. In 2.5 it is not reproducible and reaches no connected vehicle.
    let mut normals = Normals::new(random_seed as u32);
    for row in 0..n_rows {
        let here = &mut visits[row * n_vehicles..(row + 1) * n_vehicles];
        let mut arriving_next = vec![None; n_vehicles];
        for charger in 0..n_chargers {
            let now = plug(row, charger);
            let next = (row + 1 < n_rows).then(|| plug(row + 1, charger));
            if let Some(vehicle) = now.connected() {
                let visit = &mut here[vehicle];
                visit.charger = Some(charger);
                let last = row.checked_sub(1).map(|row| plug(row, charger));
                let continued = last.is_some_and(|last| last.connected() == Some(vehicle));
                let told = last.filter(|last| matches!(last.state, PlugState::Arriving | PlugState::Away));
                if !continued || (now.other_session && physics != Physics::CityLearn25) {
                    visit.arrival = schedule.at_arrival(charger, told.unwrap_or(now), now, physics);
                }
                let goes_on = next.is_none_or(|next| next.connected() == Some(vehicle) && !next.other_session);
                visit.required =
                    (!goes_on && now.required >= 0.0).then(|| schedule.fraction(charger, now.required, physics));
            } else if let Some((next, vehicle)) = next.and_then(|next| Some((next, next.connected()?))) {
                let told = if now.arriving() == Some(vehicle) { now } else { next };
                arriving_next[vehicle] = Some(schedule.fraction(charger, told.arrival, physics));
            }
        }
        for (visit, arriving) in here.iter_mut().zip(arriving_next) {
            visit.before = match (visit.arrival, physics) {
                (Some(soc), _) => Before::Set(soc),
                (None, Physics::Clean) => Before::Keep,
                (None, _) if visit.charger.is_some() => Before::Keep,
                (None, Physics::CityLearn21 | Physics::CityLearn25) => match arriving {
                    // Without a state of charge at arrival, 2.5 leaves 0.
                    Some(soc) => Before::Set(soc.max(0.0)),
                    None => Before::Keep,
                },
                (None, Physics::CityLearn30) => match arriving {
                    Some(soc) if soc >= 0.0 => Before::Set(soc),
                    Some(_) => Before::Keep,
                    None if row > 0 && row + 1 < n_rows => Before::Drift(normals.next(1.0, 0.2).clamp(0.6, 1.4)),
                    None => Before::Keep,
                },
            };
        }
    }
    visits
}
