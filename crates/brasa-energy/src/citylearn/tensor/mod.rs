//! CityLearn districts as tensor operations.

mod batteries;

use brasa_core::{NoiseWidths, ObsParts, TensorDynamics, TensorState, TensorStep};
use brasa_env::{EnvBatch, EnvSpec};
use burn::tensor::{Device, Int, Tensor};

use batteries::{Batteries, indices, matrix};

use super::{CityLearn, Physics, Reward, episodes::Starts, observation::Source, world::Totals};
use crate::{EnergyError, error::fail};

/// The rules of a district for a device: data, batteries and observations are on the device.
///
/// Numbers have 32 bits, those of [`super::CityLearnBatch`] 64.
#[derive(Debug, Clone)]
pub struct TensorCityLearn {
    /// Of one environment.
    spec: EnvSpec,
    physics: Physics,
    reward: Reward,
    hours: f64,
    weights: [f64; 4],
    n_rows: usize,
    /// `[1, batteries]`: worth of a full battery, if rewards are shaped.
    full_worth: Option<Tensor<2>>,
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

/// Observations that depend on actions.
#[derive(Debug, Clone)]
struct Observed {
    /// `[columns]`: the place of each in states of charge, net consumptions and a zero.
    sources: Tensor<1, Int>,
    /// `[1, columns]`.
    low: Tensor<2>,
    /// `[1, columns]`.
    scale: Tensor<2>,
    /// `[width]`: the place of every observation in the known ones followed by these.
    order: Tensor<1, Int>,
}

/// The state of [`TensorCityLearn`]; every tensor has a row per environment.
#[derive(Debug, Clone)]
pub struct CityLearnTensors {
    /// Row of the data, `[n_envs, 1]`.
    row: Tensor<2>,
    /// Stored energy over nameplate capacity, `[n_envs, batteries]`.
    soc: Tensor<2>,
    /// Capacity lost by aging, in kWh, `[n_envs, batteries]`. It is small, and keeps digits that the remaining capacity would lose.
    lost_kwh: Tensor<2>,
    /// What is observed of batteries and buildings: states of charge, then net consumptions of the last step in kWh,
    /// `[n_envs, batteries + buildings]`.
    seen: Tensor<2>,
    /// Power of the last step and peak of the day, with storage and without, in kW, `[n_envs, 4]`.
    grid_kw: Tensor<2>,
    /// Round-trip efficiency of the last step, `[n_envs, batteries]`, with the rules of CityLearn 2.5; else without columns.
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

/// Sums over buildings, each `[n_envs, 1]`: see [`Totals`].
struct Sums {
    import_kwh: Tensor<2>,
    carbon_kg: Tensor<2>,
    cost: Tensor<2>,
    net_kwh: Tensor<2>,
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
        let mut order: Vec<usize> = (0..world.layout.width).collect();
        for (place, item) in dynamic.iter().enumerate() {
            order[item.column] = world.layout.width + place;
        }
        let (low, scale) = dynamic.iter().map(super::observation::Dynamic::range).unzip();
        let observed = Observed {
            sources: indices(dynamic.iter().map(source).collect(), device),
            low: matrix(low, dynamic.len().max(1), device),
            scale: matrix(scale, dynamic.len().max(1), device),
            order: indices(order, device),
        };
        let starts = self.episodes.starts();
        let full_worth = self.episodes.shaped.then(|| {
            let worth = world.full_battery_worth().into_iter().zip(&world.batteries);
            let worth: Vec<f64> = worth.filter_map(|(worth, battery)| battery.as_ref().map(|_| worth)).collect();
            matrix(worth, batteries, device)
        });
        let tensors = TensorCityLearn {
            full_worth,
            spec: self.batch(0..1)?.spec().clone(),
            physics: world.physics,
            reward: world.reward,
            hours: world.hours,
            weights: world.scaled_weights,
            n_rows: world.n_rows,
            starts,
            steps_per_day: u64::from(self.episodes.steps_per_day),
            n_buildings: n,
            series: matrix(series.collect(), 4 * n, device),
            reference: matrix(world.reference.iter().flat_map(totals).collect(), 4, device),
            first_reference: (world.physics == Physics::CityLearn25).then(|| {
                let first = (0..world.n_rows).flat_map(|row| totals(&world.without_storage(row, true)));
                matrix(first.collect(), 4, device)
            }),
            known: matrix(known.collect(), world.layout.width, device),
            batteries: Batteries::new(&world.batteries, world.physics, world.hours, device),
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

    fn part(&self, series: &Tensor<2>, i: usize) -> Tensor<2> {
        let (rows, n) = (series.dims()[0], self.n_buildings);
        series.clone().slice([0..rows, i * n..(i + 1) * n])
    }

    /// Upward ramp and rise of the daily peak, and the new `[last, peak]`, all in kW and `[n_envs, 1]`.
    fn see(&self, net_kw: Tensor<2>, grid_kw: [Tensor<2>; 2], step: u64) -> [Tensor<2>; 4] {
        let [last, peak] = grid_kw;
        let ramp = match step {
            0 => last.zeros_like(),
            _ => (net_kw.clone() - last).clamp_min(0.0),
        };
        let peak = if step.is_multiple_of(self.steps_per_day) { peak.zeros_like() } else { peak };
        let higher = peak.clone().max_pair(net_kw.clone());
        [ramp, higher.clone() - peak, net_kw, higher]
    }

    fn burden(&self, cost: Tensor<2>, carbon_kg: Tensor<2>, ramp: Tensor<2>, rise: Tensor<2>) -> Tensor<2> {
        let [w_cost, w_carbon, w_ramp, w_rise] = self.weights;
        cost * w_cost + carbon_kg * w_carbon + ramp * w_ramp + rise * w_rise
    }
}

impl TensorDynamics for TensorCityLearn {
    type State = CityLearnTensors;

    const STATE_VERSION: u32 = 2;

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
        let net_kwh = (self.part(&series, 0) - self.part(&series, 1)).expand([n_envs, self.n_buildings]);
        let soc = self.batteries.start_soc.clone().expand([n_envs, batteries]);
        CityLearnTensors {
            row,
            seen: Tensor::cat(vec![soc.clone(), net_kwh], 1),
            soc,
            lost_kwh: Tensor::zeros([n_envs, batteries], &device),
            grid_kw: Tensor::zeros([n_envs, 4], &device),
            efficiency: match self.physics {
                Physics::CityLearn21 | Physics::CityLearn25 => {
                    self.batteries.start_efficiency.clone().expand([n_envs, batteries])
                }
                Physics::Clean | Physics::CityLearn30 => Tensor::zeros([n_envs, 0], &device),
            },
        }
    }

    fn observe(&self, state: &CityLearnTensors) -> ObsParts {
        let n_envs = state.row.dims()[0];
        // After the last row comes the first.
        let row = state.row.clone().reshape([n_envs]).int().remainder_scalar(self.n_rows as i64);
        let known = self.known.clone().select(0, row);
        let own = match self.observed.sources.dims()[0] {
            0 => known,
            _ => {
                let none = Tensor::zeros([n_envs, 1], &state.row.device());
                let values = Tensor::cat(vec![state.seen.clone(), none], 1);
                let values = values.select(1, self.observed.sources.clone());
                let scaled = (values - self.observed.low.clone()) * self.observed.scale.clone();
                Tensor::cat(vec![known, scaled], 1).select(1, self.observed.order.clone())
            }
        };
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
        let (soc, lost_kwh, mut efficiency) = (state.soc, state.lost_kwh, state.efficiency);
        let before = self.full_worth.as_ref().map(|worth| soc.clone() * worth.clone());
        let [soc, lost_kwh, moved] = match self.physics {
            Physics::Clean => self.batteries.step_clean(soc, lost_kwh, action, self.hours),
            Physics::CityLearn30 => self.batteries.step_citylearn30(soc, lost_kwh, action, step == 0),
            Physics::CityLearn21 | Physics::CityLearn25 => {
                let [soc, lost_kwh, moved, last] = self.batteries.step_citylearn25(soc, lost_kwh, action, efficiency);
                efficiency = last;
                [soc, lost_kwh, moved]
            }
        };
        let series = self.rows(&self.series, &state.row, shared);
        let balance_kwh = self.batteries.per_building(moved.clone());
        // At the first step CityLearn 2.5 adds the load three times and the battery twice.
        let first = self.first_reference.as_ref().filter(|_| step == 0);
        let (loads, batteries) = if first.is_some() { (3.0, 2.0) } else { (1.0, 1.0) };
        let net_kwh = balance_kwh * batteries + (self.part(&series, 0) * loads - self.part(&series, 1));
        let import = net_kwh.clone().clamp_min(0.0);
        let with = Sums {
            import_kwh: import.clone().sum_dim(1),
            carbon_kg: (import.clone() * self.part(&series, 3)).sum_dim(1),
            cost: (import * self.part(&series, 2)).sum_dim(1),
            net_kwh: net_kwh.clone().sum_dim(1),
        };
        let reference = self.rows(first.unwrap_or(&self.reference), &state.row, shared).expand([n_envs, 4]);
        let column = |tensor: &Tensor<2>, i: usize| tensor.clone().slice([0..n_envs, i..i + 1]);
        let grid = |i: usize| [column(&state.grid_kw, i), column(&state.grid_kw, i + 1)];
        let [ramp, rise, last, peak] = self.see(with.net_kwh / self.hours, grid(0), step);
        let [reference_ramp, reference_rise, reference_last, reference_peak] =
            self.see(column(&reference, 3) / self.hours, grid(2), step);
        let borne = self.burden(with.cost.clone(), with.carbon_kg.clone(), ramp.clone(), rise.clone());
        let reward = match self.reward {
            Reward::GridImport => -with.import_kwh.clone(),
            Reward::Challenge => -borne,
            // Classes of CityLearn are refused when the tensors are made.
            _ => {
                let (cost, carbon_kg) = (column(&reference, 2), column(&reference, 1));
                self.burden(cost, carbon_kg, reference_ramp.clone(), reference_rise.clone()) - borne
            }
        };
        let reward = match (&self.full_worth, before) {
            (Some(worth), Some(before)) => reward + (soc.clone() * worth.clone() - before).sum_dim(1),
            _ => reward,
        };
        let flows = [moved.clone().clamp_min(0.0).sum_dim(1), (-moved).clamp_min(0.0).sum_dim(1)];
        // The order of `INFO`.
        let info = [with.import_kwh, with.carbon_kg, with.cost, ramp, rise]
            .into_iter()
            .chain([0, 1, 2].map(|i| column(&reference, i)))
            .chain([reference_ramp, reference_rise])
            .chain(flows);
        let seen = Tensor::cat(vec![soc.clone(), net_kwh], 1);
        let state = CityLearnTensors {
            row: state.row + 1.0,
            soc,
            lost_kwh,
            // CityLearn 2.5 observes zeros after the first step.
            seen: if self.physics == Physics::CityLearn25 { seen.zeros_like() } else { seen },
            grid_kw: Tensor::cat(vec![last, peak, reference_last, reference_peak], 1),
            efficiency,
        };
        let info = Some(Tensor::cat(info.collect(), 1));
        TensorStep { state, reward: reward.reshape([n_envs]), terminated: None, info }
    }
}
