//! Buildings with thermal demand, thermal storages or power outages.
//!
//! A building serves its demands for cooling, heating and hot water with devices and storages of its own, then its other
//! load; the battery comes last, or first if it discharges. A storage that discharges comes before its device.
//! In an outage each of them gets what PV, the battery and the ones before have left.

use serde::{Deserialize, Serialize};

use super::{
    Battery, BatteryState, Physics,
    district::Exogenous,
    dynamics::Dynamics,
    schema_thermal::USES,
    thermal::{Device, Tank},
};

/// The constants of a building.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Home {
    /// By end use: cooling, heating, hot water.
    pub(super) devices: [Device; 3],
    pub(super) tanks: [Option<Tank>; 3],
    /// The network of indoor temperatures.
    pub(super) dynamics: Option<Dynamics>,
}

/// The data of a building in one row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct HomeRow {
    pub(super) demand_kwh: [f32; 3],
    /// Heat or cold per electricity.
    pub(super) cop: [f64; 3],
    /// Electricity of the devices without storages, in kWh.
    pub(super) ideal_kwh: f32,
    pub(super) is_outage: bool,
    /// Generation of PV, which CityLearn 2.5 does not round to f32.
    pub(super) pv_kwh: f64,
    pub(super) room: Room,
}

/// What the data has on the rooms of a building.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Room {
    /// Indoor temperature, in degrees Celsius, as the set points.
    pub(super) temperature_c: f32,
    pub(super) cooling_set_c: f32,
    pub(super) heating_set_c: f32,
    /// Comfort above and below the set points, in K.
    pub(super) band_k: f32,
    pub(super) occupants: f32,
    /// 0 off, 1 cooling, 2 heating, 3 both.
    pub(super) hvac_mode: u8,
}

/// A quantity of a building that depends on actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sensor {
    /// State of charge of the storage of an end use.
    TankSoc(usize),
    /// Heat or cold that reaches the rooms, in kWh.
    Served(usize),
    /// Electricity of a device, in kWh.
    Device(usize),
    /// Electricity that a storage costs or saves, in kWh.
    Tank(usize),
    /// Electricity into the battery, in kWh.
    Battery,
    /// Indoor temperature, in degrees Celsius, and its differences from the set points.
    Temperature,
    CoolingDelta,
    HeatingDelta,
}

impl Sensor {
    /// The sensor with CityLearn's name.
    pub(super) fn named(name: &str) -> Option<Self> {
        if name == "electrical_storage_electricity_consumption" {
            return Some(Self::Battery);
        }
        let (slot, what) = USES.iter().enumerate().find_map(|(slot, part)| Some((slot, name.strip_prefix(part)?)))?;
        match what {
            "_storage_soc" => Some(Self::TankSoc(slot)),
            "_demand" => Some(Self::Served(slot)),
            "_electricity_consumption" => Some(Self::Device(slot)),
            "_storage_electricity_consumption" => Some(Self::Tank(slot)),
            _ => None,
        }
    }

    /// The sensor with CityLearn's name of a building whose indoor temperature is predicted.
    pub(super) fn indoors(name: &str) -> Option<Self> {
        match name {
            "indoor_dry_bulb_temperature" => Some(Self::Temperature),
            "indoor_dry_bulb_temperature_cooling_delta" => Some(Self::CoolingDelta),
            "indoor_dry_bulb_temperature_heating_delta" => Some(Self::HeatingDelta),
            _ => None,
        }
    }

    /// Its value in the data, if it has one: CityLearn shows the temperature of a row before it predicts it.
    pub(super) fn in_data(self, row: &HomeRow) -> Option<f32> {
        let Room { temperature_c, cooling_set_c, heating_set_c, .. } = row.room;
        match self {
            Self::Temperature => Some(temperature_c),
            Self::CoolingDelta => Some(temperature_c - cooling_set_c),
            Self::HeatingDelta => Some(temperature_c - heating_set_c),
            _ => None,
        }
    }

    /// Its value after a step with `row`.
    pub(super) fn value(self, state: &HomeState, row: &HomeRow) -> f64 {
        let flows = &state.flows;
        match self {
            Self::TankSoc(slot) => state.soc[slot],
            Self::Served(slot) => flows.served_kwh(slot),
            Self::Device(slot) => flows.device_kwh[slot],
            Self::Tank(slot) => flows.tank_kwh[slot] / row.cop[slot],
            Self::Battery => flows.battery_kwh,
            Self::Temperature => state.temperature_c,
            Self::CoolingDelta => state.temperature_c - f64::from(row.room.cooling_set_c),
            Self::HeatingDelta => state.temperature_c - f64::from(row.room.heating_set_c),
        }
    }

    /// Its value in CityLearn 2.5 after a step: that of `row`, on which nothing has acted yet.
    pub(super) fn blind(self, row: &HomeRow) -> f64 {
        match self {
            Self::Served(slot) => f64::from(row.demand_kwh[slot]),
            _ => 0.0,
        }
    }
}

/// The state of a building.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct HomeState {
    /// Stored energy over capacity of each storage, 0 to 1.
    pub(super) soc: [f64; 3],
    /// Indoor temperature of the last row, in degrees Celsius.
    pub(super) temperature_c: f64,
    /// Energy of the last step.
    pub(super) flows: HomeFlows,
}

/// Energy of one step, in kWh.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct HomeFlows {
    /// Electricity of each device.
    pub(super) device_kwh: [f64; 3],
    /// Heat or cold that each device gives to the rooms.
    pub(super) output_kwh: [f64; 3],
    /// Heat or cold into each storage, negative when discharging.
    pub(super) tank_kwh: [f64; 3],
    /// Demands of the step.
    pub(super) demand_kwh: [f64; 3],
    /// Electricity of the load; 2.5 counts the first row three times.
    pub(super) load_kwh: f64,
    /// Load that was served.
    pub(super) served_load_kwh: f64,
    /// Electricity into the battery.
    pub(super) battery_kwh: f64,
    /// Electricity that thermal storages cost or save.
    pub(super) tanks_electric_kwh: f64,
    /// Electricity of the battery as it enters the net consumption.
    pub(super) counted_battery_kwh: f64,
    /// Electricity of controlled devices above that of the demands of the data.
    pub(super) partial_load_kwh: f64,
    /// Net consumption of the building; 0 in an outage.
    pub(super) net_kwh: f64,
}

impl HomeFlows {
    /// What PV and the battery give beyond devices, load and battery, in kWh; `in_f32` rounds as CityLearn's series do.
    pub(super) fn left_kwh(&self, pv_kwh: f64, in_f32: bool) -> f64 {
        let round = |value: f64| if in_f32 { single(value) } else { value };
        let [cooling, heating, dhw] = self.device_kwh;
        let used = round(round(round(cooling + heating) + dhw) + self.load_kwh);
        round(pv_kwh - round(used + self.battery_kwh)).max(0.0)
    }

    /// Heat or cold that reaches the rooms.
    pub(super) fn served_kwh(&self, slot: usize) -> f64 {
        self.output_kwh[slot] - self.tank_kwh[slot].min(0.0)
    }

    /// Heat, cold and load that were served.
    pub(super) fn all_served_kwh(&self) -> f64 {
        (0..3).map(|slot| self.served_kwh(slot)).sum::<f64>() + self.served_load_kwh
    }

    /// What the net consumption would be lower by without control: without storages and with the demands of the data.
    pub(super) fn controlled_kwh(&self) -> f64 {
        self.counted_battery_kwh + self.tanks_electric_kwh + self.partial_load_kwh
    }
}

/// Actions of one building.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HomeActions {
    /// Fraction of each storage's capacity.
    pub(super) tanks: [f64; 3],
    /// Fraction of the battery's nominal power.
    pub(super) battery: f64,
    /// Fraction of the nominal power of the devices for cooling and heating; `None` if they serve the demand of the data.
    pub(super) devices: [Option<f64>; 2],
}

/// What is computed in a step: constants, data and the battery.
pub(super) struct HomeStep<'a> {
    pub(super) home: &'a Home,
    pub(super) row: &'a HomeRow,
    pub(super) exogenous: &'a Exogenous,
    pub(super) hours: f64,
    /// Whether it is the first step of an episode.
    pub(super) first: bool,
}

/// The action that discharges `needed_kwh`, from `direct`, which does so unless the battery is then empty before the end of the step, to
/// `most`, which gives at least as much: at less power, the standing loss takes more and the efficiency may be lower.
fn discharge_for(
    battery: &Battery,
    state: &BatteryState,
    needed_kwh: f64,
    (most, direct): (f64, f64),
    hours: f64,
) -> f64 {
    let gives = |action: f64| -battery.step_clean(&mut state.clone(), action, hours) >= needed_kwh - 1e-12;
    if gives(direct) {
        return direct;
    }
    let (mut enough, mut short) = (most, direct);
    // Each halves an interval of at most 1.
    for _ in 0..50 {
        let middle = 0.5 * (enough + short);
        if gives(middle) {
            enough = middle;
        } else {
            short = middle;
        }
    }
    enough
}

/// Rounds to f32, as in CityLearn's series.
fn single(value: f64) -> f64 {
    f64::from(value as f32)
}

impl Home {
    /// The state at the start of an episode.
    pub(super) fn start(&self, row: &HomeRow) -> HomeState {
        let soc = std::array::from_fn(|slot| self.tanks[slot].as_ref().map_or(0.0, |tank| single(tank.initial_soc)));
        let demand_kwh = row.demand_kwh.map(f64::from);
        // What is observed before the first step: demands without storages.
        let device_kwh = std::array::from_fn(|slot| single(demand_kwh[slot] / row.cop[slot]));
        let flows = HomeFlows { device_kwh, output_kwh: demand_kwh, demand_kwh, ..HomeFlows::default() };
        HomeState { soc, flows, temperature_c: f64::from(row.room.temperature_c) }
    }
}

impl HomeStep<'_> {
    /// The demands of the step: those of the data, or what controlled devices give with their share of power.
    fn demands(&self, actions: &HomeActions, round: fn(f64) -> f64) -> [f64; 3] {
        let mut demands = self.row.demand_kwh.map(f64::from);
        for (slot, share) in actions.devices.iter().enumerate() {
            if let Some(share) = share {
                let is_on = [1 + slot as u8, 3].contains(&self.row.room.hvac_mode);
                let power = share.min(1.0) * self.home.devices[slot].nominal_kw * self.hours;
                demands[slot] = if is_on { round(power * self.row.cop[slot]) } else { 0.0 };
            }
        }
        demands
    }

    /// Electricity of controlled devices above that of the demands of the data.
    fn partial_load_kwh(&self, demand_kwh: &[f64; 3]) -> f64 {
        let HomeRow { demand_kwh: data, cop, .. } = self.row;
        (0..3).map(|slot| (demand_kwh[slot] - f64::from(data[slot])) / cop[slot]).sum()
    }

    /// One step; the results are in the state.
    pub(super) fn run(
        &self,
        physics: Physics,
        state: &mut HomeState,
        battery: Option<(&Battery, &mut BatteryState)>,
        actions: HomeActions,
    ) {
        state.flows = match physics {
            Physics::CityLearn21 | Physics::CityLearn25 => {
                self.run_citylearn::<false>(&mut state.soc, battery, actions)
            }
            Physics::CityLearn30 => self.run_citylearn::<true>(&mut state.soc, battery, actions),
            Physics::Clean => self.run_clean(&mut state.soc, battery, actions),
        };
    }

    /// A step of CityLearn 2.5.0 or, with `V3`, of 3.0.2, both with steps of one hour.
    ///
    /// In 2.5 the action of the heating storage is a fraction of the capacity of the *cooling* storage and that of the hot
    /// water storage one of the *heating* storage; the first step counts devices and loads three times, before, during
    /// and after the step.
    fn run_citylearn<const V3: bool>(
        &self,
        soc: &mut [f64; 3],
        battery: Option<(&Battery, &mut BatteryState)>,
        actions: HomeActions,
    ) -> HomeFlows {
        let Self { home, row, exogenous, first, .. } = *self;
        let load_kwh = f64::from(exogenous.load_kwh);
        let pv_kwh = if V3 { f64::from(exogenous.pv_kwh) } else { row.pv_kwh };
        let round = |value: f64| if V3 { single(value) } else { value };
        let demand_kwh = self.demands(&actions, single);
        let partial_load_kwh = self.partial_load_kwh(&demand_kwh);
        let mut flows = HomeFlows { demand_kwh, partial_load_kwh, ..HomeFlows::default() };
        let counted_before = first && !V3;
        if counted_before {
            flows.device_kwh = std::array::from_fn(|slot| single(demand_kwh[slot] / self.first_cop(slot)));
            flows.load_kwh = load_kwh;
        }
        if V3 && !first {
            for (tank, soc) in home.tanks.iter().zip(&mut *soc) {
                if let Some(tank) = tank {
                    tank.pass_citylearn30(soc);
                }
            }
        }
        let left = |flows: &HomeFlows| match row.is_outage {
            false => f64::INFINITY,
            true => {
                let [cooling, heating, dhw] = flows.device_kwh;
                let used = single(single(single(cooling + heating) + dhw) + flows.load_kwh);
                round(pv_kwh - single(used + flows.battery_kwh)).max(0.0)
            }
        };
        let step_battery = |flows: &mut HomeFlows, battery: Option<(&Battery, &mut BatteryState)>| {
            let Some((battery, state)) = battery else { return };
            let mut request = (actions.battery * battery.nominal_power_kw).min(left(flows));
            flows.battery_kwh = f64::from(if V3 {
                if row.is_outage && request < 0.0 {
                    let heat: f64 = (0..3).map(|slot| f64::from(row.demand_kwh[slot]) / row.cop[slot]).sum();
                    request = request.max(-(heat + load_kwh - pv_kwh).max(0.0));
                }
                battery.pass_citylearn30(state, if first { 0.0 } else { 1.0 });
                battery.charge_citylearn30(state, request)
            } else {
                battery.charge_citylearn25(state, request)
            });
        };
        let mut battery = battery;
        if actions.battery < 0.0 {
            step_battery(&mut flows, battery.take());
        }
        for slot in 0..3 {
            let room = |flows: &HomeFlows| {
                left(flows).min(home.devices[slot].nominal_kw - flows.device_kwh[slot]) * row.cop[slot]
            };
            let serve = |flows: &mut HomeFlows| {
                let rest = single(demand_kwh[slot] - (-flows.tank_kwh[slot]).max(0.0));
                let output = rest.min(room(flows));
                flows.output_kwh[slot] = single(output);
                flows.device_kwh[slot] = single(flows.device_kwh[slot] + (output / row.cop[slot]).max(0.0));
            };
            let capacity_kwh = |slot: usize| home.tanks[slot].as_ref().map_or(0.0, |tank| tank.capacity_kwh);
            let store = |flows: &mut HomeFlows, soc: &mut f64| {
                let Some(tank) = &home.tanks[slot] else { return };
                let scale = if V3 { tank.capacity_kwh } else { capacity_kwh(slot.saturating_sub(1)) };
                let request = actions.tanks[slot] * scale;
                let request = if request > 0.0 { request.min(room(flows)) } else { request.max(-demand_kwh[slot]) };
                let energy = if V3 { tank.step_citylearn30(soc, request) } else { tank.step_citylearn25(soc, request) };
                flows.tank_kwh[slot] = energy;
                flows.device_kwh[slot] = single(flows.device_kwh[slot] + energy.max(0.0) / row.cop[slot]);
            };
            if actions.tanks[slot] < 0.0 {
                store(&mut flows, &mut soc[slot]);
                serve(&mut flows);
            } else {
                serve(&mut flows);
                store(&mut flows, &mut soc[slot]);
            }
        }
        let served_load = load_kwh.min(left(&flows));
        flows.served_load_kwh = served_load;
        flows.load_kwh = single(flows.load_kwh + served_load);
        if battery.is_some() {
            step_battery(&mut flows, battery.take());
        }
        flows.counted_battery_kwh = flows.battery_kwh;
        if first {
            // The package adds up the first row again from the energy of devices and storages.
            for slot in 0..3 {
                let heat = single(flows.output_kwh[slot] + flows.tank_kwh[slot]);
                let before = if V3 { 0.0 } else { flows.device_kwh[slot] };
                let cop = if V3 { row.cop[slot] } else { self.first_cop(slot) };
                flows.device_kwh[slot] = single(before + heat / cop);
            }
            if V3 {
                flows.load_kwh = served_load;
            } else {
                flows.load_kwh = single(flows.load_kwh + served_load);
                flows.counted_battery_kwh = 2.0 * flows.battery_kwh;
            }
        }
        flows.tanks_electric_kwh = (0..3).map(|slot| flows.tank_kwh[slot] / row.cop[slot]).sum();
        if !row.is_outage {
            let [cooling, heating, dhw] = flows.device_kwh;
            let devices = single(single(cooling + heating) + dhw);
            flows.net_kwh = single(single(single(devices + flows.load_kwh) + flows.counted_battery_kwh) - pv_kwh);
        }
        flows
    }

    /// The coefficient that CityLearn 2.5 takes for the first row: that of hot water for an electric heater of rooms.
    fn first_cop(&self, slot: usize) -> f64 {
        let devices = &self.home.devices;
        let swapped = slot == 1 && devices[1].is_heater() && devices[2].is_heater();
        self.row.cop[if swapped { 2 } else { slot }]
    }

    /// A step of the clean rules: any time step, in f64; a storage never gives more than is used.
    fn run_clean(
        &self,
        soc: &mut [f64; 3],
        battery: Option<(&Battery, &mut BatteryState)>,
        actions: HomeActions,
    ) -> HomeFlows {
        let Self { home, row, exogenous, hours, .. } = *self;
        let (load_kwh, pv_kwh) = (f64::from(exogenous.load_kwh), f64::from(exogenous.pv_kwh));
        let demand_kwh = self.demands(&actions, |exact| exact);
        let partial_load_kwh = self.partial_load_kwh(&demand_kwh);
        let mut flows = HomeFlows { demand_kwh, partial_load_kwh, ..HomeFlows::default() };
        // In an outage a battery that discharges gives what is used of the energy that it could give.
        let from_battery = match &battery {
            Some((battery, state)) if row.is_outage && actions.battery < 0.0 => {
                let mut copy = BatteryState::clone(state);
                -battery.step_clean(&mut copy, actions.battery, hours)
            }
            _ => 0.0,
        };
        let used = |flows: &HomeFlows| flows.device_kwh.iter().sum::<f64>() + flows.load_kwh;
        let left = |flows: &HomeFlows| match row.is_outage {
            true => (pv_kwh + from_battery - used(flows)).max(0.0),
            false => f64::INFINITY,
        };
        for (slot, soc) in soc.iter_mut().enumerate() {
            let room = |flows: &HomeFlows| {
                let power = home.devices[slot].nominal_kw * hours - flows.device_kwh[slot];
                left(flows).min(power.max(0.0)) * row.cop[slot]
            };
            let demand = flows.demand_kwh[slot];
            let request = home.tanks[slot]
                .as_ref()
                .map_or(0.0, |tank| (actions.tanks[slot] * tank.capacity_kwh * hours).max(-demand));
            let mut store = |flows: &mut HomeFlows, request: f64| {
                if let Some(tank) = &home.tanks[slot] {
                    flows.tank_kwh[slot] = tank.step_clean(soc, request, hours);
                }
            };
            if request < 0.0 {
                store(&mut flows, request);
            }
            let output = (demand + flows.tank_kwh[slot]).clamp(0.0, room(&flows));
            flows.output_kwh[slot] = output;
            flows.device_kwh[slot] = output / row.cop[slot];
            if request >= 0.0 {
                let request = request.min(room(&flows));
                store(&mut flows, request);
                flows.device_kwh[slot] += flows.tank_kwh[slot].max(0.0) / row.cop[slot];
            }
        }
        flows.load_kwh = load_kwh.min(left(&flows));
        flows.served_load_kwh = flows.load_kwh;
        if let Some((battery, state)) = battery {
            let scale = battery.nominal_power_kw * hours;
            let action = match row.is_outage {
                false => actions.battery,
                true if actions.battery < 0.0 => {
                    let needed = (used(&flows) - pv_kwh).max(0.0);
                    let direct = actions.battery.max(-needed / scale);
                    discharge_for(battery, state, needed.min(from_battery), (actions.battery, direct), hours)
                }
                true => actions.battery.min(left(&flows) / scale),
            };
            flows.battery_kwh = battery.step_clean(state, action, hours);
        }
        flows.counted_battery_kwh = flows.battery_kwh;
        flows.tanks_electric_kwh = (0..3).map(|slot| flows.tank_kwh[slot] / row.cop[slot]).sum();
        if !row.is_outage {
            flows.net_kwh = used(&flows) + flows.battery_kwh - pv_kwh;
        }
        flows
    }
}
