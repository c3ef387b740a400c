//! CityLearn as a scenario: training batches, rule-based controllers, outcomes.

use std::{collections::BTreeSet, ops::Range, path::PathBuf, sync::Arc};

#[cfg(feature = "optimum")]
use brasa_env::ComparisonMemory;
use brasa_env::{
    Baseline, BaselineKind, BatchSlabs, Curve, Effort, EnvBatch, EnvError, EpisodeData, Evaluation, Figure, FigureRule,
    InvalidField, Measured, Outcome, Scenario, Split, Who, count_step, find_baseline, fingerprint,
};
use brasa_power::{
    EnergyError,
    scenario::{BOUND, FORESIGHT, LESS, at_least_one, curves, each_episode, figures, foresight_baselines},
};
use ndarray::Array2;

use super::{
    BuildingIndicators, CityLearnBatch, CityLearnConfig, Indicators, Pair, Recording,
    controllers::{CHARGE_AT_ONCE, HOUR_RULES},
    episodes::Episodes,
    recording::step_flows,
    world::World,
};
#[cfg(feature = "optimum")]
use brasa_power::optimum::memory;

/// Reference of ratios.
const REFERENCE: &str = "the same district without storage";

/// The figures of an episode; the last five have only a ratio.
pub(super) const FIGURES: [FigureRule<Indicators, Measured>; 14] = [
    ("cost", "cost [$]", LESS, |i| pair(i.district(|b| b.cost))),
    ("carbon_kg", "carbon [kg]", LESS, |i| pair(i.district(|b| b.carbon_kg))),
    ("grid_import_kwh", "grid import [kWh]", LESS, |i| pair(i.district(|b| b.import_kwh))),
    ("ramping_kw", "ramping [kW]", LESS, |i| pair(i.ramping_kw)),
    ("daily_peak_kw", "daily peak [kW]", LESS, |i| pair(i.daily_peak_kw)),
    ("peak_kw", "peak [kW]", LESS, |i| pair(i.peak_kw)),
    ("one_minus_load_factor", "one minus load factor", LESS, |i| pair(i.daily_one_minus_load_factor)),
    ("one_minus_load_factor_monthly", "one minus load factor monthly", LESS, |i| pair(i.monthly_one_minus_load_factor)),
    ("net_kwh", "net [kWh]", None, |i| pair(i.district(|b| b.net_kwh))),
    ("cost_building_mean", "cost building mean", LESS, |i| ratio(i.mean_ratio(|b| b.cost))),
    ("carbon_building_mean", "carbon building mean", LESS, |i| ratio(i.mean_ratio(|b| b.carbon_kg))),
    ("grid_import_building_mean", "grid import building mean", LESS, |i| ratio(i.mean_ratio(|b| b.import_kwh))),
    ("net_building_mean", "net building mean", None, |i| {
        // A mean of ratios to buildings that export more than they import says nothing.
        let imports = |b: &BuildingIndicators| b.net_kwh.control >= 0.0 && b.net_kwh.baseline > 0.0;
        ratio(i.mean_ratio(|b| b.net_kwh).filter(|_| i.buildings.iter().all(imports)))
    }),
    ("challenge_score", "challenge score", LESS, |i| ratio(i.challenge_score())),
];

fn pair(pair: Pair) -> Measured {
    Measured::new(pair.control).relative_to(pair.baseline)
}

fn ratio(ratio: Option<f64>) -> Measured {
    Measured::NONE.with_ratio(ratio)
}

/// A district with one configuration.
///
/// ```
/// use brasa_citylearn::{CityLearn, CityLearnConfig};
/// use brasa_env::{EnvBatch, Scenario};
///
/// let district = CityLearn::new(CityLearnConfig { episode_steps: Some(168), ..CityLearnConfig::default() })?;
/// assert_eq!(district.batch(0..4)?.spec().n_envs, 4);
/// assert!(district.baselines().iter().any(|baseline| baseline.name == "rule-based"));
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug)]
pub struct CityLearn {
    config: CityLearnConfig,
    pub(super) world: Arc<World>,
    pub(super) episodes: Episodes,
    #[cfg(feature = "optimum")]
    bounds: brasa_power::optimum::Bounds,
}

impl CityLearn {
    /// Reads the data and prepares the shared state of all environments.
    ///
    /// # Errors
    /// If a setting, the schema or the data are invalid.
    pub fn new(config: CityLearnConfig) -> Result<Self, EnergyError> {
        let world = Arc::new(World::new(&config)?);
        #[cfg(feature = "optimum")]
        if config.optimum {
            super::foresight::check_homes(&world, 0..world.all_steps())?;
        }
        let episodes = Episodes::new(&config, &world)?;
        Ok(Self {
            config,
            world,
            episodes,
            #[cfg(feature = "optimum")]
            bounds: Default::default(),
        })
    }

    /// The settings.
    pub fn config(&self) -> &CityLearnConfig {
        &self.config
    }

    /// What is unlikely in the data, and unknown keys of the schema; logged once by [`CityLearn::new`].
    pub fn warnings(&self) -> &[String] {
        &self.world.warnings
    }

    /// The environments with the global indices `envs`; the index addresses the random numbers.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for an empty range.
    pub fn batch(&self, envs: Range<usize>) -> Result<CityLearnBatch, EnergyError> {
        self.batch_of(self.episodes, envs)
    }

    fn batch_of(&self, episodes: Episodes, envs: Range<usize>) -> Result<CityLearnBatch, EnergyError> {
        at_least_one(&envs)?;
        Ok(CityLearnBatch::new(Arc::clone(&self.world), episodes, envs))
    }

    /// Runs one episode over the complete data in one environment, independent of the episodes of training.
    ///
    /// # Errors
    /// If `who` is an unknown baseline, or a controller fails or returns a non-finite number.
    pub fn record(&self, who: Who<'_>, seed: u64) -> Result<Recording, EnergyError> {
        self.record_rows(who, seed, 0..self.world.all_steps())
    }

    /// Runs one episode over these rows.
    pub(super) fn record_rows(
        &self,
        mut who: Who<'_>,
        seed: u64,
        rows: Range<usize>,
    ) -> Result<Recording, EnergyError> {
        let world = &*self.world;
        if let Who::Baseline(name) = who {
            find_baseline(&self.baselines(), name)?;
        }
        let (steps, n) = (rows.len(), world.n_buildings);
        let mut batch = CityLearnBatch::new(Arc::clone(&self.world), Episodes::of(world, rows.start, steps), 0..1);
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(seed, &mut slabs).map_err(EnergyError::Env)?;
        let mut actions = Array2::zeros((1, world.n_actions()));
        let mut recording = Recording {
            first_row: rows.start,
            net_kwh: Array2::zeros((steps, n)),
            soc: Array2::zeros((steps, n)),
            battery_kwh: Array2::zeros((steps, n)),
            tank_soc: Array2::zeros((steps, 3 * batch.homes().count())),
            device_kwh: Array2::zeros((steps, 3 * batch.homes().count())),
            temperature_c: Array2::zeros((steps, batch.homes().count())),
            expected_kwh: Array2::zeros((steps, batch.homes().count())),
            served_kwh: Array2::zeros((steps, batch.homes().count())),
            removed_kwh: Array2::zeros((steps, batch.homes().count())),
            charger_kwh: Array2::zeros((steps, batch.vehicles().1.len())),
            vehicle_soc: Array2::zeros((steps, batch.vehicles().0.len())),
            reward: Vec::with_capacity(steps),
            capacity_kwh: Vec::new(),
            vehicle_capacity_kwh: Vec::new(),
            flows: Vec::with_capacity(steps),
        };
        let stored = |batch: &CityLearnBatch| -> f64 {
            let batteries = batch.battery_states().zip(&world.batteries);
            batteries.map(|(state, battery)| battery.as_ref().map_or(0.0, |b| state.soc * b.capacity_kwh)).sum()
        };
        if let Who::Controller(controller) = &mut who {
            controller.begin();
        }
        for (step, row_of_data) in rows.enumerate() {
            match &mut who {
                Who::Baseline(name) => {
                    let rule = HOUR_RULES.iter().find(|rule| rule.name == *name);
                    let [batteries, chargers] = rule
                        .map_or([0.0; 2], |rule| [rule.action(world.hour_of_day[row_of_data]), rule.charger_action()]);
                    actions.fill(batteries);
                    for column in world.mobility.iter().flat_map(|mobility| &mobility.action_columns) {
                        actions[(0, *column)] = chargers;
                    }
                    for column in &world.machine_columns {
                        actions[(0, *column)] = chargers;
                    }
                }
                Who::Controller(controller) => controller.act(&slabs, actions.view_mut())?,
            }
            if let Some(value) = actions.iter().find(|value| !value.is_finite()) {
                let value = value.to_string();
                return Err(EnvError::Argument(InvalidField::new("actions", "must be finite", value)).into());
            }
            let before = stored(&batch);
            batch.act(actions.view());
            let after = stored(&batch);
            let row = |values: Vec<f64>| ndarray::Array1::from(values);
            let (nets, balances): (Vec<f64>, Vec<f64>) = (batch.nets_kwh().collect(), batch.balances_kwh().collect());
            let mut flows = step_flows(world, row_of_data + world.ahead(), &batch);
            for (building, state) in batch.homes().enumerate() {
                for slot in 0..3 {
                    recording.tank_soc[(step, 3 * building + slot)] = state.soc[slot];
                    recording.device_kwh[(step, 3 * building + slot)] = state.flows.device_kwh[slot];
                }
                recording.temperature_c[(step, building)] = state.temperature_c;
                let load_kwh = f64::from(world.series[step * n + building].load_kwh);
                recording.expected_kwh[(step, building)] = state.flows.demand_kwh.iter().sum::<f64>() + load_kwh;
                recording.served_kwh[(step, building)] = state.flows.all_served_kwh();
                recording.removed_kwh[(step, building)] = state.flows.controlled_kwh();
            }
            let (vehicles, charger_kwh) = batch.vehicles();
            recording.charger_kwh.row_mut(step).assign(&row(charger_kwh.to_vec()));
            recording.vehicle_soc.row_mut(step).assign(&row(vehicles.iter().map(|state| state.soc).collect()));
            recording.vehicle_capacity_kwh = vehicles.iter().map(|state| state.capacity_kwh).collect();
            recording.soc.row_mut(step).assign(&row(batch.battery_states().map(|state| state.soc).collect()));
            recording.net_kwh.row_mut(step).assign(&row(nets));
            recording.battery_kwh.row_mut(step).assign(&row(balances));
            recording.capacity_kwh = batch.battery_states().map(|state| state.capacity_kwh).collect();
            batch.conclude(&mut slabs);
            count_step();
            recording.reward.push(slabs.reward[0]);
            flows.battery_change_kwh = after - before;
            // CityLearn does not record losses: they are computed from the other three flows.
            flows.battery_lost_kwh = flows.battery_in_kwh - flows.battery_out_kwh - flows.battery_change_kwh;
            recording.flows.push(flows);
        }
        Ok(recording)
    }

    /// The outcome of a baseline with perfect foresight: the schedule, or the bound of the return.
    #[cfg(feature = "optimum")]
    fn foreseen(&self, baseline: &str, rows: Range<usize>, traced: bool) -> Result<Outcome, EnergyError> {
        self.bounds.outcome(baseline, (rows.start as u64, rows.end as u64), || {
            let (optimum, recording) = self.optimum_of(rows)?;
            Ok((optimum, recording.outcome(&self.world, traced)))
        })
    }

    #[cfg(not(feature = "optimum"))]
    fn foreseen(&self, _: &str, _: Range<usize>, _: bool) -> Result<Outcome, EnergyError> {
        unreachable!("`validate` rejects the baselines without linear programs")
    }

    /// The rows of each episode of the evaluation: the weeks that are held out, or all.
    fn weeks(&self) -> Vec<Range<usize>> {
        let (available, week) = (self.world.all_steps(), self.episodes.steps_per_week());
        match self.config.held_out_weeks {
            None => std::iter::once(0..available).collect(),
            Some(every) => {
                let ends = (1..).map(|i| i * every * week).take_while(|end| *end <= available);
                ends.map(|end| end - week..end).collect()
            }
        }
    }

    /// CityLearn's indicators of a recording of this scenario.
    pub fn indicators(&self, recording: &Recording) -> Indicators {
        recording.indicators(&self.world)
    }
}

impl Scenario for CityLearn {
    fn envs(&self, split: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        let episodes = match split {
            Split::Train => self.episodes,
            Split::Evaluation => Episodes::whole(&self.world),
        };
        Ok(Box::new(self.batch_of(episodes, envs)?))
    }

    fn files(&self) -> Vec<PathBuf> {
        // The embedded district is no file.
        let is_embedded = self.config.data == super::files::PHASE1;
        (!is_embedded).then(|| PathBuf::from(&self.config.data)).into_iter().collect()
    }

    fn figures(&self) -> Vec<Figure> {
        figures(&FIGURES, "$", REFERENCE)
    }

    fn baselines(&self) -> Vec<Baseline> {
        let kind = |name| if name == "idle" { BaselineKind::Idle } else { BaselineKind::Heuristic };
        let vehicles = self.world.mobility.is_some();
        let rules = HOUR_RULES.iter().filter(|rule| vehicles || rule.name != CHARGE_AT_ONCE);
        let rules = rules.map(|rule| Baseline::new(rule.name, kind(rule.name)));
        rules.chain(foresight_baselines().into_iter().filter(|_| self.config.optimum)).collect()
    }

    fn n_episodes(&self, _: Effort) -> u64 {
        self.weeks().len() as u64
    }

    /// A pass over the complete data has no randomness.
    fn n_distinct_episodes(&self) -> Option<u64> {
        Some(self.weeks().len() as u64)
    }

    /// The days of the data.
    fn data(&self, split: Split) -> EpisodeData {
        let rows: Vec<Range<usize>> = match split {
            Split::Train => self.episodes.rows().collect(),
            Split::Evaluation => self.weeks(),
        };
        let (per_day, n) = (self.world.steps_per_day(), self.world.n_buildings);
        let days: BTreeSet<usize> =
            rows.into_iter().flat_map(|rows| rows.start / per_day..rows.end.div_ceil(per_day)).collect();
        EpisodeData::fixed(days.into_iter().map(|day| {
            let end = ((day + 1) * per_day * n).min(self.world.series.len());
            let series = &self.world.series[day * per_day * n..end];
            fingerprint(series.iter().flat_map(|row| [row.load_kwh, row.pv_kwh, row.price, row.carbon]).map(f64::from))
        }))
    }

    #[cfg(feature = "optimum")]
    fn comparison_memory(&self) -> Option<ComparisonMemory> {
        /// Terms of a program per step and action: those of a battery, about.
        const TERMS: usize = 41;
        let n_steps = self.weeks().iter().map(Range::len).max().unwrap_or(0);
        self.config.optimum.then(|| memory((TERMS * n_steps * self.world.actions.len()) as f64))
    }

    fn about_episodes(&self, n_episodes: u64) -> String {
        match n_episodes {
            n if self.config.held_out_weeks.is_some() => {
                format!(
                    "Means over {n} weeks that `held_out_weeks` keeps from training, the same for every controller."
                )
            }
            1 => "One pass over the whole data, the same for every controller.".to_owned(),
            n => format!("Means over {n} passes over the whole data, the same for every controller."),
        }
    }

    fn curves(&self) -> Vec<Curve> {
        curves()
    }

    /// Passes over the complete data, or the weeks that are held out, independent of the episodes of training; traces are [`crate::Trace`]s.
    fn evaluate(&self, mut who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        let weeks = self.weeks();
        each_episode(evaluation, |episode, traced| -> Result<_, EnergyError> {
            let rows = weeks[episode.index as usize % weeks.len()].clone();
            match who {
                Who::Baseline(name @ (FORESIGHT | BOUND)) if self.config.optimum => self.foreseen(name, rows, traced),
                _ => Ok(self.record_rows(who.reborrow(), episode.seed, rows)?.outcome(&self.world, traced)),
            }
        })
    }
}
