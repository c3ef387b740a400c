//! A batch of districts, as struct of arrays over environments.

use std::{ops::Range, sync::Arc};

use brasa_env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, InvalidField, Space, StateTag, episode_rng};
use ndarray::ArrayView2;

use super::{
    BatteryState, Physics, Reward,
    clock::{Clock, State},
    district::Exogenous,
    episodes::Episodes,
    fleet::Fleet,
    home_batch::HomeSlots,
    homes::{HomeRow, HomeState},
    machines::{Machine, MachineState},
    observation::Source,
    rewards,
    rules::{self, Rules},
    vehicles::{Asked, Mobility, Slots, VehicleFlows},
    world::{Totals, World},
};

/// Columns of [`BatchSlabs::info`]: the contributions of a step to the figures of an episode.
pub(super) const INFO: [&str; 12] = [
    "grid_import_kwh",
    "carbon_kg",
    "cost",
    "ramping_kw",
    "daily_peak_rise_kw",
    "reference_grid_import_kwh",
    "reference_carbon_kg",
    "reference_cost",
    "reference_ramping_kw",
    "reference_daily_peak_rise_kw",
    "battery_in_kwh",
    "battery_out_kwh",
];

/// Further columns of districts with vehicles.
pub(super) const VEHICLE_INFO: [&str; 4] =
    ["vehicle_in_kwh", "vehicle_out_kwh", "vehicle_shortfall_kwh", "charging_violation_kwh"];

/// A batch of districts, with one row of observations and actions each.
///
/// An action has one number in `[-1, 1]` per battery, the fraction of its nominal power for charging (above 0) or
/// discharging, and one per charger, the fraction of its largest power, not below 0 if it cannot discharge; numbers
/// outside are clipped. An episode ends after [`episode_steps`](super::CityLearnConfig::episode_steps) steps, always as
/// `truncated`: a time limit, not an end of the task (CityLearn returns `terminated`).
///
/// ```
/// use brasa_citylearn::{CityLearn, CityLearnBatch, CityLearnConfig};
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use ndarray::Array2;
///
/// let mut envs: CityLearnBatch = CityLearn::new(CityLearnConfig::default())?.batch(0..2)?;
/// let mut slabs = BatchSlabs::new(envs.spec());
/// envs.reset(7, &mut slabs)?;
/// // Five batteries in each district, which do nothing: the reward is relative to a district without storage.
/// envs.step(Array2::zeros((2, 5)).view(), &mut slabs)?;
/// assert_eq!(slabs.reward.to_vec(), [0.0, 0.0]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct CityLearnBatch {
    world: Arc<World>,
    episodes: Episodes,
    spec: EnvSpec,
    first_env: u64,
    fleet: Fleet,
    /// By building: worth of a full battery; empty unless rewards are shaped.
    full_worth: Vec<f64>,
    state: State,
    scratch: Scratch,
}

/// Scratch memory of a step.
#[derive(Debug)]
struct Scratch {
    /// `[building * n_envs + env]`: energy at the grid's side, in kWh, positive when charging.
    balance_kwh: Vec<f64>,
    /// `[building * n_envs + env]`.
    net_kwh: Vec<f64>,
    /// `[env]`.
    totals: Vec<Totals>,
    /// `[env]`: energy into and out of batteries.
    flows_kwh: Vec<[f64; 2]>,
    /// `[env * n_chargers + charger]`: energy on the grid side, in kWh, positive when charging.
    charger_kwh: Vec<f64>,
    /// `[env * n_shown + place]`: what the limits on chargers show.
    shown: Vec<f64>,
    /// `[env * n_chargers + charger]`: what was asked of chargers; empty unless the reward needs it.
    asked: Vec<Asked>,
    /// `[building * n_envs + env]`: energy of washing machines, in kWh; empty without one.
    machine_kwh: Vec<f64>,
    /// `[env]`; empty without vehicles.
    vehicle_flows: Vec<VehicleFlows>,
    /// `[env]`: worth of the stored energy before the step; empty unless rewards are shaped.
    stored_worth: Vec<f64>,
}

/// Adds a building to the sums of its district.
#[inline(always)]
fn count<R: Rules>(row: &Exogenous, net_kwh: f64, balance_kwh: f64, totals: &mut Totals, flows: &mut [f64; 2]) {
    totals.add(net_kwh, row, R::SINGLE);
    flows[0] += if balance_kwh > 0.0 { balance_kwh } else { 0.0 };
    flows[1] -= if balance_kwh < 0.0 { balance_kwh } else { 0.0 };
}

/// Tag of saved states; the version changes with [`State`].
const TAG: StateTag = StateTag::new("citylearn", 4);

impl CityLearnBatch {
    pub(super) fn new(world: Arc<World>, episodes: Episodes, envs: Range<usize>) -> Self {
        let n_envs = envs.len();
        let action = Space::named_box(world.actions.iter().cloned());
        let (n_vehicles, n_chargers) =
            world.mobility.as_ref().map_or((0, 0), |mobility| (mobility.n_vehicles(), mobility.chargers.len()));
        let vehicle_info = VEHICLE_INFO.iter().filter(|_| n_chargers > 0);
        let spec = EnvSpec {
            info_names: INFO.iter().chain(vehicle_info).map(|name| (*name).to_owned()).collect(),
            truncation_interval: episodes.steps as u64,
            ..EnvSpec::new(world.layout.space.clone(), action, n_envs)
        };
        let cells = world.n_buildings * n_envs;
        let blank = BatteryState { soc: 0.0, capacity_kwh: 0.0, efficiency: 1.0 };
        let state = State {
            seed: 0,
            clocks: vec![Clock::default(); n_envs],
            batteries: vec![blank; cells],
            homes: vec![HomeState::default(); world.homes.as_ref().map_or(0, |homes| homes.n_buildings() * n_envs)],
            dynamics: world.homes.as_ref().map_or_else(Vec::new, |homes| homes.new_dynamics(n_envs)),
            vehicles: vec![blank; n_envs * n_vehicles],
            machines: (0..n_envs).flat_map(|_| world.machines.iter().map(Machine::new_state)).collect(),
        };
        let scratch = Scratch {
            balance_kwh: vec![0.0; cells],
            net_kwh: vec![0.0; cells],
            totals: vec![Totals::default(); n_envs],
            flows_kwh: vec![[0.0; 2]; n_envs],
            charger_kwh: vec![0.0; n_envs * n_chargers],
            asked: vec![Asked::default(); if world.reward_sees_chargers() { n_envs * n_chargers } else { 0 }],
            machine_kwh: vec![0.0; if world.machines.is_empty() { 0 } else { cells }],
            shown: vec![0.0; n_envs * world.mobility.as_ref().map_or(0, Mobility::n_shown)],
            vehicle_flows: vec![VehicleFlows::default(); if n_chargers > 0 { n_envs } else { 0 }],
            stored_worth: vec![0.0; if episodes.shaped { n_envs } else { 0 }],
        };
        let full_worth = if episodes.shaped { world.full_battery_worth() } else { Vec::new() };
        let fleet = Fleet::new(&world);
        let mut batch = Self { world, episodes, spec, first_env: envs.start as u64, fleet, full_worth, state, scratch };
        for env in 0..n_envs {
            batch.start(env);
        }
        batch
    }

    /// Sets `env` to the start of its current episode.
    fn start(&mut self, env: usize) {
        let world = &*self.world;
        let clock = &mut self.state.clocks[env];
        let (seed, env_index) = (self.state.seed, self.first_env + env as u64);
        let row = self.episodes.first_row(|| episode_rng(seed, env_index, clock.episode));
        *clock = Clock { episode: clock.episode, row: (row + world.ahead()) as u32, ..Clock::default() };
        let n_envs = self.state.clocks.len();
        for (building, battery) in world.batteries.iter().enumerate() {
            if let Some(battery) = battery {
                self.state.batteries[building * n_envs + env] = match world.physics {
                    Physics::CityLearn21 => rules::CityLearn21::start(battery),
                    Physics::CityLearn25 => rules::CityLearn25::start(battery),
                    Physics::CityLearn30 => rules::CityLearn30::start(battery),
                    Physics::Clean => rules::Clean::start(battery),
                };
            }
        }
        if let Some(homes) = &world.homes {
            for building in 0..world.n_buildings {
                self.state.homes[building * n_envs + env] = homes.start(building, row);
                if let Some(state) = self.state.dynamics.get_mut(building * n_envs + env) {
                    state.restart();
                }
            }
        }
        let n_machines = world.machines.len();
        self.state.machines[env * n_machines..(env + 1) * n_machines].iter_mut().for_each(MachineState::restart);
        if let Some(mobility) = &world.mobility {
            let n_vehicles = mobility.n_vehicles();
            let n_shown = mobility.n_shown();
            mobility.show_idle(&mut self.scratch.shown[env * n_shown..(env + 1) * n_shown]);
            mobility.start(row, &mut self.state.vehicles[env * n_vehicles..(env + 1) * n_vehicles]);
        }
    }

    /// The states of charge that an observation has for vehicles at chargers.
    fn vehicle_soc(&self, env: usize, row: usize, charger: usize) -> f64 {
        let mobility = self.world.mobility.as_ref().expect("only districts with chargers observe them");
        let n_vehicles = mobility.n_vehicles();
        let vehicles = &self.state.vehicles[env * n_vehicles..(env + 1) * n_vehicles];
        mobility.observed_soc(row, self.state.clocks[env].step == 0, charger, vehicles)
    }

    /// A number that the limits on chargers show after the last step.
    fn shown_by_limits(&self, env: usize, place: usize) -> f64 {
        self.scratch.shown[env * (self.scratch.shown.len() / self.n_envs()) + place]
    }

    /// The data of a building with thermal demand.
    fn home_row(&self, row: usize, building: usize) -> &HomeRow {
        let homes = self.world.homes.as_ref().expect("only districts with homes observe them");
        &homes.rows[row * self.world.n_buildings + building]
    }

    /// Writes the observation at the start of an episode, with the net consumption of the row without storage.
    fn observe_start(&self, env: usize, into: &mut [f32]) {
        let world = &*self.world;
        let row = self.state.clocks[env].row as usize - world.ahead();
        into.copy_from_slice(world.layout.row(row));
        for dynamic in &world.layout.dynamic {
            let value = match dynamic.source {
                Source::Soc(building) => self.state.batteries[building * self.n_envs() + env].soc,
                Source::Net(building) => world.net_without_storage(row * world.n_buildings + building, false),
                Source::Charger(charger) => self.vehicle_soc(env, row, charger),
                Source::Limit(place) => self.shown_by_limits(env, place),
                Source::Home(building, sensor) => {
                    sensor.value(&self.state.homes[building * self.n_envs() + env], self.home_row(row, building))
                }
            };
            into[dynamic.column] = dynamic.scaled(value);
        }
    }

    /// Writes the observation after a step: the current row, and the results of the last step.
    fn observe<R: Rules>(&self, env: usize, into: &mut [f32]) {
        let world = &*self.world;
        // After the last row the first one is observed; without a division, which is slow.
        let row = self.state.clocks[env].row as usize - R::AHEAD;
        let row = if row == world.n_rows { 0 } else { row };
        let n_envs = self.state.clocks.len();
        into.copy_from_slice(world.layout.row(row));
        for dynamic in &world.layout.dynamic {
            let value = match dynamic.source {
                Source::Soc(_) | Source::Net(_) if R::BLIND => 0.0,
                Source::Soc(building) => self.state.batteries[building * n_envs + env].soc,
                Source::Net(building) => self.scratch.net_kwh[building * n_envs + env],
                Source::Charger(charger) => self.vehicle_soc(env, row, charger),
                Source::Limit(place) => self.shown_by_limits(env, place),
                Source::Home(building, sensor) if R::BLIND => sensor.blind(self.home_row(row, building)),
                Source::Home(building, sensor) => {
                    let last = if row == 0 { world.n_rows - 1 } else { row - 1 };
                    sensor.value(&self.state.homes[building * n_envs + env], self.home_row(last, building))
                }
            };
            into[dynamic.column] = dynamic.scaled(value);
        }
    }

    /// Steps the batteries of every building at the current rows.
    pub(super) fn act(&mut self, actions: ArrayView2<f32>) {
        match self.world.physics {
            Physics::CityLearn21 => self.act_under::<rules::CityLearn21>(actions),
            Physics::CityLearn25 => self.act_under::<rules::CityLearn25>(actions),
            Physics::CityLearn30 => self.act_under::<rules::CityLearn30>(actions),
            Physics::Clean => self.act_under::<rules::Clean>(actions),
        }
    }

    fn act_under<R: Rules>(&mut self, actions: ArrayView2<f32>) {
        let world = &*self.world;
        let n_envs = self.state.clocks.len();
        for env in 0..self.scratch.stored_worth.len() {
            self.scratch.stored_worth[env] = self.stored_worth(env);
        }
        let Scratch {
            balance_kwh,
            net_kwh,
            totals,
            flows_kwh,
            charger_kwh,
            shown,
            asked,
            machine_kwh,
            vehicle_flows,
            ..
        } = &mut self.scratch;
        totals.fill(Totals::default());
        flows_kwh.fill([0.0; 2]);
        if let Some(homes) = &world.homes {
            let State { clocks, batteries, homes: states, dynamics, .. } = &mut self.state;
            let clock = |env: usize| (clocks[env].row as usize, clocks[env].step == 0);
            homes.step(world, actions, clock, HomeSlots { homes: states, dynamics, batteries, balance_kwh });
        } else if R::SIDE_BY_SIDE {
            let State { clocks, batteries, .. } = &mut self.state;
            self.fleet.step(batteries, balance_kwh, actions, |env| clocks[env].share());
        }
        if let Some(mobility) = &world.mobility {
            let State { vehicles, clocks, homes, .. } = &mut self.state;
            let vehicles = vehicles.chunks_exact_mut(mobility.n_vehicles());
            let chargers = charger_kwh.chunks_exact_mut(mobility.chargers.len());
            let envs = vehicles.zip(chargers).zip(&*clocks).zip(vehicle_flows).zip(actions.rows());
            let (n_shown, n_asked) = (mobility.n_shown(), asked.len() / n_envs);
            for (env, ((((states, energy_kwh), clock), flows), actions)) in envs.enumerate() {
                let (row, first) = (clock.row as usize, clock.step == 0);
                let shown = &mut shown[env * n_shown..(env + 1) * n_shown];
                let left_kwh = |building: usize| {
                    let index = row * world.n_buildings + building;
                    world.homes.as_ref()?.left_kwh(world, index, &homes[building * n_envs + env].flows)
                };
                let asked = &mut asked[env * n_asked..(env + 1) * n_asked];
                let slots = Slots { states, energy_kwh, shown, asked };
                *flows = mobility.step((row, first), world.hours, actions, left_kwh, slots);
            }
        }
        machine_kwh.fill(0.0);
        for (place, (machine, column)) in world.machines.iter().zip(&world.machine_columns).enumerate() {
            for (env, clock) in self.state.clocks.iter().enumerate() {
                let state = &mut self.state.machines[env * world.machines.len() + place];
                let energy = machine.step(state, clock.row as usize, clock.step == 0, actions[(env, *column)]);
                machine_kwh[machine.building * n_envs + env] += energy;
            }
        }
        for building in 0..world.n_buildings {
            let cells = building * n_envs..(building + 1) * n_envs;
            let balance_kwh = &mut balance_kwh[cells.clone()];
            if !R::SIDE_BY_SIDE
                && world.homes.is_none()
                && let (Some(battery), Some(column)) = (&world.batteries[building], world.action_columns[building])
            {
                let states = &mut self.state.batteries[cells.clone()];
                let cells = states.iter_mut().zip(&mut *balance_kwh).zip(&self.state.clocks);
                for (((state, balance), clock), action) in cells.zip(actions.column(column)) {
                    let action = f64::from(action.clamp(-1.0, 1.0));
                    *balance = R::step(battery, state, action, world.hours, clock.step == 0);
                }
            }
            let nets = net_kwh[cells].iter_mut().zip(&*balance_kwh);
            let sums = totals.iter_mut().zip(&mut *flows_kwh);
            let cells = nets.zip(sums).zip(&self.state.clocks);
            let chargers = world.mobility.as_ref().map_or(0..0, |mobility| mobility.of_building(building));
            if chargers.is_empty() && machine_kwh.is_empty() && world.homes.is_none() {
                for (((net, balance), (totals, flows)), clock) in cells {
                    let row = &world.series[clock.row as usize * world.n_buildings + building];
                    *net = R::net(row, *balance, clock.step == 0);
                    count::<R>(row, *net, *balance, totals, flows);
                }
            } else {
                let n_chargers = charger_kwh.len() / n_envs;
                for (env, (((net, balance), (totals, flows)), clock)) in cells.enumerate() {
                    let index = clock.row as usize * world.n_buildings + building;
                    let row = &world.series[index];
                    let vehicles = charger_kwh[env * n_chargers..][chargers.clone()].iter().sum();
                    let machines = machine_kwh.get(building * n_envs + env).copied().unwrap_or(0.0);
                    let own = match &world.homes {
                        None => R::net(row, *balance, clock.step == 0),
                        Some(_) => self.state.homes[building * n_envs + env].flows.net_kwh,
                    };
                    // A building without power takes nothing from the grid, whatever is behind its meter.
                    *net = match world.homes.as_ref().is_some_and(|homes| homes.is_outage(index)) {
                        true => own,
                        false => R::sum(R::sum(own, vehicles), machines),
                    };
                    count::<R>(row, *net, *balance, totals, flows);
                }
            }
        }
    }

    /// Worth of the energy in the batteries of `env`; 0 unless rewards are shaped.
    fn stored_worth(&self, env: usize) -> f64 {
        let states = self.state.batteries.iter().skip(env).step_by(self.n_envs());
        self.full_worth.iter().zip(states).map(|(worth, state)| worth * state.soc).sum()
    }

    /// Writes rewards and observations, advances the clocks, and starts the next episodes.
    pub(super) fn conclude(&mut self, out: &mut BatchSlabs) {
        match self.world.physics {
            Physics::CityLearn21 => self.conclude_under::<rules::CityLearn21>(out),
            Physics::CityLearn25 => self.conclude_under::<rules::CityLearn25>(out),
            Physics::CityLearn30 => self.conclude_under::<rules::CityLearn30>(out),
            Physics::Clean => self.conclude_under::<rules::Clean>(out),
        }
    }

    fn conclude_under<R: Rules>(&mut self, out: &mut BatchSlabs) {
        let steps_per_day = self.episodes.steps_per_day;
        let n_envs = self.n_envs();
        for env in 0..n_envs {
            let world = &*self.world;
            let State { clocks, homes, batteries, vehicles: vehicle_states, .. } = &mut self.state;
            let clock = &mut clocks[env];
            let totals = self.scratch.totals[env];
            let first = clock.step == 0;
            let reference = match first {
                true => world.without_storage(clock.row as usize, true),
                false => world.reference[clock.row as usize],
            };
            let first_of_day = clock.step.is_multiple_of(steps_per_day);
            let (ramp, rise) = clock.grid[0].see(totals.net_kwh / world.hours, first, first_of_day);
            let (reference_ramp, reference_rise) =
                clock.grid[1].see(reference.net_kwh / world.hours, first, first_of_day);
            let flows = self.scratch.flows_kwh[env];
            let info = [
                totals.import_kwh,
                totals.carbon_kg,
                totals.cost,
                ramp,
                rise,
                reference.import_kwh,
                reference.carbon_kg,
                reference.cost,
                reference_ramp,
                reference_rise,
                flows[0],
                flows[1],
            ];
            let burden = |cost: f64, carbon_kg: f64, ramp: f64, rise: f64| {
                let [w_cost, w_carbon, w_ramp, w_rise] = world.scaled_weights;
                w_cost * cost + w_carbon * carbon_kg + w_ramp * ramp + w_rise * rise
            };
            let borne = burden(totals.cost, totals.carbon_kg, ramp, rise);
            let vehicles = self.scratch.vehicle_flows.get(env).copied().unwrap_or_default();
            let borne = borne + world.shortfall_weight * vehicles.shortfall_kwh;
            let reward = match (world.reward, &world.reward_class) {
                (_, Some(class)) => {
                    let place = (env, n_envs, clock.row as usize);
                    let Scratch { net_kwh, asked, shown, .. } = &self.scratch;
                    let sources =
                        rewards::Sources { homes, batteries, net_kwh, vehicles: vehicle_states, asked, shown };
                    rewards::district(world, &**class, place, sources)
                }
                (Reward::GridImport, None) => -totals.import_kwh,
                (Reward::Challenge, None) => -borne,
                (_, None) => burden(reference.cost, reference.carbon_kg, reference_ramp, reference_rise) - borne,
            };
            let shaping = self.scratch.stored_worth.get(env).map_or(0.0, |before| self.stored_worth(env) - before);
            let clock = &mut self.state.clocks[env];
            clock.row += 1;
            clock.step += 1;
            let ended = clock.step as usize == self.episodes.steps;

            out.reward[env] = (reward + shaping) as f32;
            out.terminated[env] = false;
            out.truncated[env] = ended;
            let mut slots = out.info.row_mut(env);
            let slots = slots.as_slice_mut().expect("slabs are allocated in standard layout");
            slots[..INFO.len()].copy_from_slice(&info);
            if world.mobility.is_some() {
                let VehicleFlows { in_kwh, out_kwh, shortfall_kwh, violation_kwh } = vehicles;
                slots[INFO.len()..].copy_from_slice(&[in_kwh, out_kwh, shortfall_kwh, violation_kwh]);
            }
            let mut next_obs = out.next_obs.row_mut(env);
            let next_obs = next_obs.as_slice_mut().expect("slabs are allocated in standard layout");
            self.observe::<R>(env, next_obs);
            let mut obs = out.obs.row_mut(env);
            let obs = obs.as_slice_mut().expect("slabs are allocated in standard layout");
            if ended {
                self.state.clocks[env].episode += 1;
                self.start(env);
                self.observe_start(env, obs);
            } else {
                obs.copy_from_slice(next_obs);
            }
        }
    }

    /// Energy of each battery in the last [`CityLearnBatch::act`] of environment 0, in kWh.
    pub(super) fn balances_kwh(&self) -> impl Iterator<Item = f64> {
        self.scratch.balance_kwh.iter().step_by(self.n_envs()).copied()
    }

    /// Net consumption of each building in the same step, in kWh.
    pub(super) fn nets_kwh(&self) -> impl Iterator<Item = f64> {
        self.scratch.net_kwh.iter().step_by(self.n_envs()).copied()
    }

    /// The batteries of environment 0.
    pub(super) fn battery_states(&self) -> impl Iterator<Item = &BatteryState> {
        self.state.batteries.iter().step_by(self.n_envs())
    }

    /// The buildings with thermal demand of environment 0; empty without any.
    pub(super) fn homes(&self) -> impl Iterator<Item = &HomeState> {
        self.state.homes.iter().step_by(self.n_envs())
    }

    /// The vehicles of environment 0, and the energy of each charger in the same step, in kWh.
    pub(super) fn vehicles(&self) -> (&[BatteryState], &[f64]) {
        let n_envs = self.n_envs();
        let (vehicles, chargers) = (self.state.vehicles.len() / n_envs, self.scratch.charger_kwh.len() / n_envs);
        (&self.state.vehicles[..vehicles], &self.scratch.charger_kwh[..chargers])
    }

    /// The energy of the washing machines of a building in environment 0 in the same step, in kWh.
    pub(super) fn machine_kwh(&self, building: usize) -> f64 {
        self.scratch.machine_kwh.get(building * self.n_envs()).copied().unwrap_or(0.0)
    }

    /// The energy of the vehicles of environment 0 in the same step.
    pub(super) fn vehicle_flows(&self) -> VehicleFlows {
        self.scratch.vehicle_flows.first().copied().unwrap_or_default()
    }

    /// Identifies the scenario in saved states.
    fn scenario(&self) -> String {
        let (world, starts) = (&self.world, self.episodes.starts());
        let gaps = starts.filter(|starts| starts.gap > 0).map(|starts| format!(" {starts:?}"));
        format!(
            "{:?} {} x {} steps {} random {} first {}{}",
            world.physics,
            world.n_rows,
            world.building_names.join(","),
            self.episodes.steps,
            starts.is_some(),
            self.first_env,
            gaps.unwrap_or_default()
        )
    }

    fn check_shapes(&self, out: &BatchSlabs) {
        assert_eq!(out.obs.dim(), (self.n_envs(), self.world.layout.width), "shape of the slab `obs`");
        assert_eq!(out.next_obs.dim(), out.obs.dim(), "shape of the slab `next_obs`");
        assert_eq!(out.reward.len(), self.n_envs(), "length of the slab `reward`");
        assert_eq!(out.info.dim(), (self.n_envs(), self.spec.info_names.len()), "shape of the slab `info`");
    }
}

impl EnvBatch for CityLearnBatch {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.check_shapes(out);
        self.state.seed = seed;
        for env in 0..self.n_envs() {
            self.state.clocks[env].episode = 0;
            self.start(env);
            let mut obs = out.obs.row_mut(env);
            self.observe_start(env, obs.as_slice_mut().expect("slabs are allocated in standard layout"));
        }
        Ok(())
    }

    /// Steps every environment.
    ///
    /// # Errors
    /// [`EnvError::Argument`] if an action is not finite; the state is then unchanged.
    ///
    /// # Panics
    /// If the shape of actions or slabs does not fit.
    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        assert_eq!(actions.dim(), (self.n_envs(), self.world.n_actions()), "shape of the actions");
        self.check_shapes(out);
        let finite = match actions.as_slice() {
            // Without an early exit, so that the compiler vectorizes.
            Some(actions) => actions.iter().fold(true, |finite, value| finite & value.is_finite()),
            None => false,
        };
        if !finite && let Some(value) = actions.iter().find(|value| !value.is_finite()) {
            return Err(EnvError::Argument(InvalidField::new("actions", "must be finite", value)));
        }
        self.act(actions);
        self.conclude(out);
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.check_shapes(out);
        self.state.clocks[env].episode += 1;
        self.start(env);
        let mut obs = out.obs.row_mut(env);
        self.observe_start(env, obs.as_slice_mut().expect("slabs are allocated in standard layout"));
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        TAG.encode(self.n_envs(), &(self.scenario(), &self.state))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let fail = |reason: String| Err(EnvError::State { reason });
        let (other, state): (String, State) = TAG.decode(self.n_envs(), bytes)?;
        let scenario = self.scenario();
        if other != scenario {
            return fail(format!("it was saved by `{other}`, this is `{scenario}`"));
        }
        let (clocks, batteries) = (state.clocks.len(), state.batteries.len());
        if state.homes.len() != self.state.homes.len() {
            return fail(format!("it holds {} thermal homes, this has {}", state.homes.len(), self.state.homes.len()));
        }
        let networks = state.dynamics.len() == self.state.dynamics.len()
            && self.world.homes.as_ref().is_none_or(|homes| homes.fits(&state.dynamics, self.n_envs()));
        if !networks {
            return fail("its networks of indoor temperatures are others".into());
        }
        if state.vehicles.len() != self.state.vehicles.len() {
            return fail(format!("it holds {} vehicles, this has {}", state.vehicles.len(), self.state.vehicles.len()));
        }
        let machines = (0..self.n_envs()).flat_map(|_| &self.world.machines);
        if state.machines.len() != self.state.machines.len()
            || state.machines.iter().zip(machines).any(|(state, machine)| !machine.fits(state))
        {
            return fail("its washing machines are others".into());
        }
        if clocks != self.n_envs() || batteries != self.state.batteries.len() {
            return fail(format!("it holds {batteries} batteries, this has {}", self.state.batteries.len()));
        }
        if state.clocks.iter().any(|clock| clock.row as usize >= self.world.n_rows) {
            return fail("a clock is past the end of the data".into());
        }
        self.state = state;
        Ok(())
    }
}
