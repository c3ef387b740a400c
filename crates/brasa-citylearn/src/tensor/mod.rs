//! CityLearn districts as tensor operations.

mod batteries;

use brasa_core::{NoiseWidths, ObsParts, TensorDynamics, TensorState, TensorStep};
use brasa_env::{EnvBatch, EnvSpec};
use brasa_kernels::{Formulas, Value, concat, elementwise};
use brasa_power::{EnergyError, Starts, fail};
use burn::tensor::{Device, Int, Tensor};

use batteries::{After, Batteries, indices, matrix};

use super::{CityLearn, Physics, Reward, observation::Source, world::Totals};

/// The rules of a district for a device: data, batteries and observations are on the device.
///
/// Numbers have 32 bits, those of [`super::CityLearnBatch`] 64.
///
/// ```
/// # fn on(device: &burn::tensor::Device) -> Result<(), brasa_env::EnvError> {
/// use brasa_core::{TensorEnv, VecEnv};
/// use brasa_citylearn::{CityLearn, CityLearnConfig, TensorCityLearn};
///
/// // 64 environments on `device`, with the time limit of the scenario.
/// let (dynamics, steps): (TensorCityLearn, u32) = CityLearn::new(CityLearnConfig::default())?.tensors(device)?;
/// let mut envs = TensorEnv::<_>::new(dynamics, 64, device)?.with_time_limit(steps)?;
/// envs.reset(7)?;
/// assert_eq!(envs.n_envs(), 64);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TensorCityLearn {
    /// Of one environment.
    spec: EnvSpec,
    physics: Physics,
    reward: Reward,
    hours: f64,
    weights: [f64; 4],
    n_rows: usize,
    /// Rows at which episodes start; the first one without.
    starts: Option<Starts>,
    steps_per_day: u64,
    n_buildings: usize,
    /// `[rows, 4 * buildings]`: load, PV, price, carbon.
    series: Tensor<2>,
    /// `[rows, 4]`: [`Totals`] without storage.
    reference: Tensor<2>,
    /// The same for the first step of an episode, if its rules differ.
    first_reference: Option<Tensor<2>>,
    /// `[rows, width]`: observations, with zeros where they depend on actions.
    known: Tensor<2>,
    batteries: Batteries,
    observed: Observed,
}

/// Observations that depend on actions: the known ones have a scale of 0, those that depend on actions are known as 0.
#[derive(Debug, Clone)]
struct Observed {
    /// `[width]`: the place of each in states of charge, net consumptions and a zero.
    sources: Tensor<1, Int>,
    /// `[1, width]`.
    low: Tensor<2>,
    /// `[1, width]`.
    scale: Tensor<2>,
}

/// The state of [`TensorCityLearn`]; every tensor has a row per environment.
///
/// ```
/// # fn on(device: &burn::tensor::Device) -> Result<(), brasa_env::EnvError> {
/// use brasa_core::{TensorEnv, TensorState, VecEnv};
/// use brasa_citylearn::{CityLearn, CityLearnConfig, CityLearnTensors};
///
/// let (dynamics, _) = CityLearn::new(CityLearnConfig::default())?.tensors(device)?;
/// let mut envs = TensorEnv::<_>::new(dynamics, 64, device)?;
/// envs.reset(7)?;
/// let state: &CityLearnTensors = envs.state().expect("the environments were reset");
/// assert!(state.parts().iter().all(|part| part.dims()[0] == 64));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CityLearnTensors {
    /// Row of the data, `[n_envs, 1]`; after the last one comes the first.
    row: Tensor<2>,
    /// Stored energy over nameplate capacity, `[n_envs, batteries]`.
    soc: Tensor<2>,
    /// Capacity lost by aging, in kWh, `[n_envs, batteries]`. It is small, and keeps digits that the remaining capacity would lose.
    lost_kwh: Tensor<2>,
    /// What is observed of batteries and buildings: states of charge, then net consumptions of the last step in kWh, and a zero,
    /// `[n_envs, batteries + buildings + 1]`.
    seen: Tensor<2>,
    /// Power of the last step and peak of the day, with storage and without, in kW, `[n_envs, 4]`.
    grid_kw: Tensor<2>,
    /// Round-trip efficiency of the last step with the rules of CityLearn 2.5, else 0, `[n_envs, batteries]`.
    efficiency: Tensor<2>,
}

impl TensorState for CityLearnTensors {
    fn parts(&self) -> Vec<Tensor<2>> {
        let parts = [&self.row, &self.soc, &self.lost_kwh, &self.seen, &self.grid_kw, &self.efficiency];
        parts.map(Tensor::clone).to_vec()
    }

    fn from_parts(parts: Vec<Tensor<2>>) -> Self {
        let [row, soc, lost_kwh, seen, grid_kw, efficiency] =
            parts.try_into().expect("there are as many parts as were handed out");
        Self { row, soc, lost_kwh, seen, grid_kw, efficiency }
    }
}

/// Sums over buildings: see [`Totals`].
#[derive(Clone, Copy)]
struct Sums<'a> {
    import_kwh: Value<'a>,
    carbon_kg: Value<'a>,
    cost: Value<'a>,
    net_kwh: Value<'a>,
}

impl CityLearn {
    /// The district as tensor operations on `device`, and the steps of an episode.
    ///
    /// # Errors
    /// Those of [`CityLearn::batch`], and [`EnergyError::Field`] for a district with vehicles.
    pub fn tensors(&self, device: &Device) -> Result<(TensorCityLearn, u32), EnergyError> {
        let world = &*self.world;
        if let Some(mobility) = &world.mobility {
            return fail("data", "must have no chargers to run as tensor operations", &mobility.chargers[0].name);
        }
        if let Some(machine) = world.machines.first() {
            return fail("data", "must have no washing machines to run as tensor operations", &machine.name);
        }
        world.check_plain("to run as tensor operations")?;
        let (n, batteries) = (world.n_buildings, world.batteries.iter().flatten().count());
        let part = |of: fn(&super::district::Exogenous) -> f32, row: usize| {
            world.series[row * n..(row + 1) * n].iter().map(move |cell| f64::from(of(cell)))
        };
        let series = (0..world.n_rows).flat_map(|row| {
            let loads = part(|cell| cell.load_kwh, row).chain(part(|cell| cell.pv_kwh, row));
            loads.chain(part(|cell| cell.price, row)).chain(part(|cell| cell.carbon, row))
        });
        let totals = |totals: &Totals| [totals.import_kwh, totals.carbon_kg, totals.cost, totals.net_kwh];
        let known = (0..world.n_rows).flat_map(|row| world.layout.row(row)).map(|x| f64::from(*x));
        let dynamic = &world.layout.dynamic;
        let battery_of = |building: usize| world.batteries[..building].iter().flatten().count();
        // States of charge, net consumptions, and a zero for buildings without a battery.
        let source = |item: &super::observation::Dynamic| match item.source {
            Source::Net(building) => batteries + building,
            Source::Soc(building) if world.batteries[building].is_some() => battery_of(building),
            Source::Soc(_) => batteries + n,
            other => unreachable!("districts with {other:?} are refused above"),
        };
        let width = world.layout.width;
        let (mut sources, mut low, mut scale) = (vec![batteries + n; width], vec![0.0; width], vec![0.0; width]);
        for item in dynamic {
            sources[item.column] = source(item);
            (low[item.column], scale[item.column]) = item.range();
        }
        let observed = Observed {
            sources: indices(sources, device),
            low: matrix(low, 1, device),
            scale: matrix(scale, 1, device),
        };
        let starts = self.episodes.starts();
        let full_worth = self.episodes.shaped.then(|| {
            let worth = world.full_battery_worth().into_iter().zip(&world.batteries);
            worth.filter_map(|(worth, battery)| battery.as_ref().map(|_| worth)).collect()
        });
        let tensors = TensorCityLearn {
            spec: self.batch(0..1)?.spec().clone(),
            physics: world.physics,
            reward: world.reward,
            hours: world.hours,
            weights: world.scaled_weights,
            n_rows: world.n_rows,
            starts,
            steps_per_day: u64::from(self.episodes.steps_per_day),
            n_buildings: n,
            series: matrix(series.collect(), world.n_rows, device),
            reference: matrix(world.reference.iter().flat_map(totals).collect(), world.n_rows, device),
            first_reference: (world.physics == Physics::CityLearn25).then(|| {
                let first = (0..world.n_rows).flat_map(|row| totals(&world.without_storage(row, true)));
                matrix(first.collect(), world.n_rows, device)
            }),
            known: matrix(known.collect(), world.n_rows, device),
            batteries: Batteries::new(&world.batteries, world.physics, world.hours, full_worth, device),
            observed,
        };
        Ok((tensors, u32::try_from(self.episodes.steps).unwrap_or(u32::MAX)))
    }
}

impl TensorCityLearn {
    /// The rows of a table: one for all environments if they have the same, else one per environment.
    fn rows(&self, table: &Tensor<2>, row: &Tensor<2>, shared: Option<usize>) -> Tensor<2> {
        match shared {
            Some(row) => table.clone().slice(row..row + 1),
            None => {
                let n_envs = row.dims()[0];
                table.clone().select(0, row.clone().reshape([n_envs]).int())
            }
        }
    }

    /// Upward ramp and rise of the daily peak, and the new `[last, peak]`, all in kW.
    fn see<'a>(
        &self,
        formulas: &'a Formulas,
        net_kw: Value<'a>,
        [last, peak]: [Value<'a>; 2],
        step: u64,
    ) -> [Value<'a>; 4] {
        // Nothing comes before the first step, and no peak before the first of a day.
        let none = formulas.constant(0.0);
        let ramp = if step == 0 { none } else { (net_kw - last).max(0.0) };
        let peak = if step.is_multiple_of(self.steps_per_day) { none } else { peak };
        let higher = peak.max(net_kw);
        [ramp, higher - peak, net_kw, higher]
    }

    fn burden<'a>(&self, cost: Value<'a>, carbon_kg: Value<'a>, ramp: Value<'a>, rise: Value<'a>) -> Value<'a> {
        let [w_cost, w_carbon, w_ramp, w_rise] = self.weights;
        cost * w_cost + carbon_kg * w_carbon + ramp * w_ramp + rise * w_rise
    }

    /// Flows of every building side by side: net consumption, import, its carbon and its cost, `[n_envs, 4 * buildings]`.
    fn flows(&self, n_envs: usize, moved: &Tensor<2>, series: &Tensor<2>, first: bool) -> Tensor<2> {
        let n = self.n_buildings;
        let of_buildings = self.batteries.of_buildings(moved.clone());
        // At the first step CityLearn 2.5 adds the load three times and the battery twice.
        let (loads, batteries) = if first { (3.0, 2.0) } else { (1.0, 1.0) };
        let [flows] = elementwise([n_envs, n], |formulas| {
            let series = formulas.matrix(series);
            let [load, pv, price, carbon] = [0, 1, 2, 3].map(|i| series.columns(i * n..(i + 1) * n));
            let balance = self.batteries.balance(formulas, &of_buildings, n);
            let net = balance * batteries + (load * loads - pv);
            let import = net.max(0.0);
            [vec![net, import, import * carbon, import * price]]
        });
        flows
    }
}

impl TensorDynamics for TensorCityLearn {
    type State = CityLearnTensors;

    const STATE_VERSION: u32 = 3;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        self.spec.with_n_envs(n_envs)
    }

    fn noise(&self) -> NoiseWidths {
        NoiseWidths { start: usize::from(self.starts.is_some()), step: 0 }
    }

    fn terminates(&self) -> bool {
        false
    }

    fn start(&self, noise: Tensor<2>) -> CityLearnTensors {
        let (n_envs, device) = (noise.dims()[0], noise.device());
        let batteries = self.batteries.start_soc.dims()[1];
        let (row, shared) = match self.starts {
            Some(Starts { n, per_block, gap }) => {
                // 32 bits may round a number just below 1 up.
                let index = (noise * n as f64).floor().clamp_max((n - 1) as f64);
                // A half away from whole numbers, so that rounding does not matter.
                let block = ((index.clone() + 0.5) / per_block as f64).floor();
                (index + block * gap as f64, None)
            }
            None => (Tensor::zeros([n_envs, 1], &device), Some(0)),
        };
        let series = self.rows(&self.series, &row, shared);
        let n = self.n_buildings;
        let [net_kwh] = elementwise([n_envs, n], |formulas| {
            let series = formulas.matrix(&series);
            [vec![series.columns(0..n) - series.columns(n..2 * n)]]
        });
        let soc = self.batteries.start_soc.clone().expand([n_envs, batteries]);
        CityLearnTensors {
            row,
            seen: Tensor::cat(vec![soc.clone(), net_kwh, Tensor::zeros([n_envs, 1], &device)], 1),
            soc,
            lost_kwh: Tensor::zeros([n_envs, batteries], &device),
            grid_kw: Tensor::zeros([n_envs, 4], &device),
            efficiency: match self.physics {
                Physics::CityLearn21 | Physics::CityLearn25 => {
                    self.batteries.start_efficiency.clone().expand([n_envs, batteries])
                }
                Physics::Clean | Physics::CityLearn30 => Tensor::zeros([n_envs, batteries], &device),
            },
        }
    }

    fn observe(&self, state: &CityLearnTensors) -> ObsParts {
        let n_envs = state.row.dims()[0];
        let known = self.known.clone().select(0, state.row.clone().reshape([n_envs]).int());
        let Observed { sources, low, scale } = &self.observed;
        let seen = state.seen.clone().select(1, sources.clone());
        let [own] = elementwise(known.dims(), |formulas| {
            let [known, seen, low, scale] = [&known, &seen, low, scale].map(|matrix| formulas.read(matrix));
            [vec![known + (seen - low) * scale]]
        });
        ObsParts { shared: None, own: Some(own), mask: None, n_agents: 1, actions_per_flag: 1 }
    }

    fn step(
        &self,
        state: CityLearnTensors,
        action: Tensor<2>,
        _: Tensor<2>,
        step: Option<u64>,
    ) -> TensorStep<CityLearnTensors> {
        let step = step.expect("no episode terminates, so that all have the same time");
        let n_envs = state.row.dims()[0];
        let shared = self.starts.is_none().then_some(step as usize);
        let series = self.rows(&self.series, &state.row, shared);
        // The first step of CityLearn 2.5 has a reference of its own.
        let first = self.first_reference.as_ref().filter(|_| step == 0);
        let reference = self.rows(first.unwrap_or(&self.reference), &state.row, shared);
        let before = [state.soc, state.lost_kwh, state.efficiency];
        let After { soc, lost_kwh, efficiency, moved } =
            self.batteries.step(self.physics, before, &action, self.hours, step == 0);
        let flows = self.flows(n_envs, &moved, &series, first.is_some());
        let (n, batteries) = (self.n_buildings, soc.dims()[1]);
        let [row, grid_kw, reward, info, zero] = elementwise([n_envs, 1], |formulas| {
            let flows = formulas.matrix(&flows);
            let sum = |i: usize| flows.sum(i * n..(i + 1) * n);
            let with = Sums { net_kwh: sum(0), import_kwh: sum(1), carbon_kg: sum(2), cost: sum(3) };
            let moved = formulas.matrix(&moved);
            let [charged_kwh, discharged_kwh, gain] = [1, 2, 3].map(|i| moved.sum(i * batteries..(i + 1) * batteries));
            let reference = formulas.matrix(&reference);
            let [reference_import_kwh, reference_carbon_kg, reference_cost, reference_net_kwh] =
                [0, 1, 2, 3].map(|i| reference.column(i));
            let before = formulas.matrix(&state.grid_kw);
            let grid = |i: usize| [before.column(i), before.column(i + 1)];
            let [ramp, rise, last, peak] = self.see(formulas, with.net_kwh / self.hours, grid(0), step);
            let [reference_ramp, reference_rise, reference_last, reference_peak] =
                self.see(formulas, reference_net_kwh / self.hours, grid(2), step);
            let borne = self.burden(with.cost, with.carbon_kg, ramp, rise);
            let reward = match self.reward {
                Reward::GridImport => -with.import_kwh,
                Reward::Challenge => -borne,
                // Classes of CityLearn are refused when the tensors are made.
                _ => self.burden(reference_cost, reference_carbon_kg, reference_ramp, reference_rise) - borne,
            };
            let next = formulas.read(&state.row) + 1.0;
            let row = next.greater(self.n_rows as f64 - 0.5).select(0.0, next);
            // The order of `INFO`.
            let info = vec![
                with.import_kwh,
                with.carbon_kg,
                with.cost,
                ramp,
                rise,
                reference_import_kwh,
                reference_carbon_kg,
                reference_cost,
                reference_ramp,
                reference_rise,
                charged_kwh,
                discharged_kwh,
            ];
            let grid_kw = vec![last, peak, reference_last, reference_peak];
            [vec![row], grid_kw, vec![reward + gain], info, vec![formulas.constant(0.0)]]
        });
        // CityLearn 2.5 observes zeros after the first step.
        let seen = match self.physics {
            Physics::CityLearn25 => state.seen.zeros_like(),
            _ => concat(vec![soc.clone(), flows.slice([0..n_envs, 0..n]), zero]),
        };
        let state = CityLearnTensors { row, soc, lost_kwh, seen, grid_kw, efficiency };
        TensorStep { state, reward: reward.reshape([n_envs]), terminated: None, info: Some(info) }
    }
}
