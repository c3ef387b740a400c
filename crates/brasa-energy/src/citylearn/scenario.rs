//! CityLearn as a scenario: batches to train on, rule-based controllers, outcomes.

use std::{ops::Range, sync::Arc};

use brasa_env::{BatchSlabs, EnvBatch, EnvError};
use ndarray::Array2;

use super::{
    CityLearnBatch, CityLearnConfig, Indicators, Recording, batch::Episodes, controllers::HOUR_RULES,
    recording::step_flows, world::World,
};
use crate::{Control, EnergyError, EnergyScenario, Outcome};

/// A district under one configuration.
pub struct CityLearn {
    config: CityLearnConfig,
    world: Arc<World>,
    episodes: Episodes,
}

impl CityLearn {
    /// Reads the data and prepares what all environments share.
    ///
    /// # Errors
    /// Where a setting, the schema or the data cannot be used.
    pub fn new(config: CityLearnConfig) -> Result<Self, EnergyError> {
        let world = Arc::new(World::new(&config)?);
        let episodes = Episodes::new(&config, &world)?;
        Ok(Self { config, world, episodes })
    }

    /// The settings.
    pub fn config(&self) -> &CityLearnConfig {
        &self.config
    }

    /// Runs one episode over the whole data in one environment, whatever the episodes of training are.
    ///
    /// # Errors
    /// Where `control` names an unknown controller, or a policy gives a number that is not finite.
    pub fn record(&self, mut control: Control<'_>, seed: u64) -> Result<Recording, EnergyError> {
        let world = &*self.world;
        let rule = match &control {
            Control::Policy(_) => None,
            Control::Rule(name) => {
                let rule = HOUR_RULES.iter().find(|rule| rule.name == *name);
                Some(rule.ok_or_else(|| EnergyError::Field {
                    field: "controller".into(),
                    rule: format!("must be one of {}", self.controllers().join(", ")),
                    value: (*name).into(),
                })?)
            }
        };
        let (steps, n) = (world.all_steps(), world.n_buildings);
        let mut batch = CityLearnBatch::new(Arc::clone(&self.world), Episodes::whole(world), 0..1);
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(seed, &mut slabs).map_err(EnergyError::Env)?;
        let mut actions = Array2::zeros((1, world.n_actions()));
        let mut recording = Recording {
            net_kwh: Array2::zeros((steps, n)),
            soc: Array2::zeros((steps, n)),
            battery_kwh: Array2::zeros((steps, n)),
            reward: Vec::with_capacity(steps),
            capacity_kwh: Vec::new(),
            flows: Vec::with_capacity(steps),
        };
        let stored = |batch: &CityLearnBatch| -> f64 {
            let batteries = batch.battery_states().zip(&world.batteries);
            batteries.map(|(state, battery)| battery.as_ref().map_or(0.0, |b| state.soc * b.capacity_kwh)).sum()
        };
        for step in 0..steps {
            match &mut control {
                Control::Rule(_) => {
                    actions.fill(rule.map_or(0.0, |rule| rule.action(world.hour_of_day[step])));
                }
                Control::Policy(policy) => policy(slabs.obs.view(), actions.view_mut()),
            }
            if let Some(value) = actions.iter().find(|value| !value.is_finite()) {
                let value = value.to_string();
                return Err(EnvError::Argument { field: "actions", rule: "must be finite", value }.into());
            }
            let before = stored(&batch);
            batch.act(actions.view());
            let after = stored(&batch);
            let row = |values: Vec<f64>| ndarray::Array1::from(values);
            let (nets, balances): (Vec<f64>, Vec<f64>) = (batch.nets_kwh().collect(), batch.balances_kwh().collect());
            let mut flows = step_flows(world, step, &nets, &balances);
            recording.soc.row_mut(step).assign(&row(batch.battery_states().map(|state| state.soc).collect()));
            recording.net_kwh.row_mut(step).assign(&row(nets));
            recording.battery_kwh.row_mut(step).assign(&row(balances));
            recording.capacity_kwh = batch.battery_states().map(|state| state.capacity_kwh).collect();
            batch.conclude(&mut slabs);
            recording.reward.push(slabs.reward[0]);
            flows.battery_change_kwh = after - before;
            // CityLearn keeps no account of losses: they are what the other three leave.
            flows.battery_lost_kwh = flows.battery_in_kwh - flows.battery_out_kwh - flows.battery_change_kwh;
            recording.flows.push(flows);
        }
        Ok(recording)
    }

    /// CityLearn's indicators of a recording of this scenario.
    pub fn indicators(&self, recording: &Recording) -> Indicators {
        recording.indicators(&self.world)
    }
}

impl EnergyScenario for CityLearn {
    type Batch = CityLearnBatch;

    fn batch(&self, envs: Range<usize>) -> Result<CityLearnBatch, EnergyError> {
        Ok(CityLearnBatch::new(Arc::clone(&self.world), self.episodes, envs))
    }

    fn controllers(&self) -> Vec<&'static str> {
        HOUR_RULES.iter().map(|rule| rule.name).collect()
    }

    fn evaluate(&self, control: Control<'_>, seed: u64) -> Result<Outcome, EnergyError> {
        Ok(self.record(control, seed)?.outcome(&self.world))
    }
}
