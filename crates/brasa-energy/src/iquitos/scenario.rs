//! The microgrid as a scenario: batches, controllers, outcomes against the uncontrolled reference.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{BatchSlabs, EnvBatch};
use ndarray::Array2;

use super::batch::IquitosBatch;
use super::config::IquitosConfig;
use super::controllers::Rule;
use super::dispatch::Flows;
use super::site::{Reference, Site};
use super::world::World;
use crate::{Control, EnergyError, EnergyScenario, Figure, Ledger, Outcome, Trace};

/// The Iquitos microgrid under one config.
///
/// Its controllers are `idle` (no order at all), `uncontrolled` (sockets at full power, the battery rests; the
/// reference of all ratios), `greedy` (sockets at full power, the battery follows the surplus and the need of the
/// site hour by hour) and `rule-based` (knows tariff, soft limit and feeder).
#[derive(Debug, Clone)]
pub struct Iquitos {
    site: Arc<Site>,
    /// The same site with episodes of a whole year, for evaluations.
    year: Arc<Site>,
}

impl Iquitos {
    /// The scenario of `config`; plays one uncontrolled year, some tens of milliseconds, to know its reference.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for settings that no simulation can follow.
    pub fn new(config: IquitosConfig) -> Result<Self, EnergyError> {
        config.validate()?;
        let year_config = IquitosConfig { episode_steps: None, random_start: false, ..config.clone() };
        let mut year = Site::new(year_config);
        year.reference = measure_reference(&year);
        let mut site = year.clone();
        site.config = config;
        Ok(Self { site: Arc::new(site), year: Arc::new(year) })
    }

    /// The settings.
    pub fn config(&self) -> &IquitosConfig {
        &self.site.config
    }

    /// Currency of costs.
    pub fn currency(&self) -> &str {
        &self.site.config.grid.currency
    }
}

/// Statistics of the uncontrolled year of seed 0.
fn measure_reference(year: &Site) -> Reference {
    let (mut cost_less, mut wanted_kwh) = (year.reference.clone(), 0.0);
    let mut counts = vec![0.0_f64; cost_less.vehicles_kwh.len()];
    let (mut carbon_kg, mut cost, mut pv_kwh) = (0.0, 0.0, 0.0);
    play_year(year, Rule::Uncontrolled, 0, |step, _, flows, _| {
        carbon_kg += flows.carbon_kg;
        cost += flows.cost;
        pv_kwh += flows.ledger.pv_available_kwh;
        wanted_kwh += flows.ledger.ev_delivered_kwh + flows.ledger.ev_unmet_kwh;
        let index = year.reference_index(step);
        cost_less.vehicles_kwh[index] += flows.ledger.ev_delivered_kwh;
        counts[index] += 1.0;
    });
    let steps = f64::from(year.steps_per_year);
    let vehicles_kwh = cost_less.vehicles_kwh.iter().zip(&counts).map(|(sum, n)| sum / n.max(1.0)).collect();
    Reference {
        carbon_kg: carbon_kg / steps,
        cost: cost / steps,
        pv_kwh: pv_kwh / steps,
        wanted_kwh: wanted_kwh / steps,
        vehicles_kwh,
    }
}

/// Plays the year of `seed` under `rule`; `each` sees the step, the stored energy after it, its flows and reward.
fn play_year(year: &Site, rule: Rule, seed: u64, mut each: impl FnMut(u32, f64, &Flows, f64)) {
    let mut world = World::new(Arc::new(year.clone()), 0..1);
    let mut orders_kw = vec![0.0; year.config.n_sockets()];
    world.state.seed = seed;
    world.begin(0, 0);
    for step in 0..year.steps_per_year {
        let order = rule.decide(year, &world.state.envs[0], world.sockets(0), &mut orders_kw);
        let played = world.play(0, &orders_kw, order);
        each(step, world.state.envs[0].stored_kwh, &played.flows, played.reward);
    }
}

/// What is added up over a year.
#[derive(Debug, Default)]
struct Tally {
    episode_return: f64,
    ledger: Ledger,
    carbon_kg: f64,
    cost: f64,
    peak_kw: f64,
    grid_excess_kwh: f64,
    feeder_excess_kwh: f64,
    turned_away: f64,
    trace: Trace,
}

impl Tally {
    fn add(&mut self, year: &Site, stored_kwh: f64, flows: &Flows, reward: f64) {
        let ledger = &flows.ledger;
        self.episode_return += reward;
        self.ledger.add(ledger);
        self.carbon_kg += flows.carbon_kg;
        self.cost += flows.cost;
        self.peak_kw = self.peak_kw.max(ledger.grid_import_kwh / year.step_hours);
        self.grid_excess_kwh += flows.grid_excess_kwh;
        self.feeder_excess_kwh += flows.feeder_excess_kwh;
        self.turned_away += f64::from(flows.turned_away);
        let kw = |kwh: f64| (kwh / year.step_hours) as f32;
        let capacity_kwh = year.config.battery.capacity_kwh;
        self.trace.load_kw.push(kw(ledger.load_kwh));
        self.trace.pv_kw.push(kw(ledger.pv_available_kwh));
        self.trace.battery_kw.push(kw(ledger.battery_in_kwh - ledger.battery_out_kwh));
        self.trace.ev_kw.push(kw(ledger.ev_delivered_kwh));
        self.trace.grid_kw.push(kw(ledger.grid_import_kwh - ledger.grid_export_kwh));
        self.trace.soc.push(if capacity_kwh > 0.0 { (stored_kwh / capacity_kwh) as f32 } else { 0.0 });
    }

    fn figures(&self) -> [(&'static str, f64); 14] {
        let l = &self.ledger;
        let used_kwh = l.load_kwh + l.ev_delivered_kwh;
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        [
            ("grid_import_kwh", l.grid_import_kwh),
            ("carbon_kg", self.carbon_kg),
            ("cost", self.cost),
            ("peak_kw", self.peak_kw),
            ("ev_delivered_kwh", l.ev_delivered_kwh),
            ("ev_unmet_kwh", l.ev_unmet_kwh),
            ("ev_turned_away", self.turned_away),
            ("pv_curtailed_kwh", l.pv_curtailed_kwh),
            ("grid_export_kwh", l.grid_export_kwh),
            ("grid_excess_kwh", self.grid_excess_kwh),
            ("feeder_excess_kwh", self.feeder_excess_kwh),
            ("battery_out_kwh", l.battery_out_kwh),
            ("self_sufficiency", 1.0 - share(l.grid_import_kwh, used_kwh)),
            (
                "self_consumption",
                share(l.pv_available_kwh - l.pv_curtailed_kwh - l.grid_export_kwh, l.pv_available_kwh),
            ),
        ]
    }
}

impl EnergyScenario for Iquitos {
    type Batch = IquitosBatch;

    fn batch(&self, envs: Range<usize>) -> Result<IquitosBatch, EnergyError> {
        if envs.is_empty() {
            return Err(EnergyError::Field {
                field: "n_envs".into(),
                rule: "must be at least 1".into(),
                value: "0".into(),
            });
        }
        Ok(IquitosBatch::new(Arc::clone(&self.site), envs))
    }

    fn controllers(&self) -> Vec<&'static str> {
        Rule::ALL.iter().map(|rule| rule.name()).collect()
    }

    /// Plays a whole year, whatever `episode_steps` says, and the same year without control for the ratios.
    ///
    /// `cost` is in [`Iquitos::currency`]. Of `self_sufficiency` and `self_consumption`, larger is better.
    fn evaluate(&self, control: Control<'_>, seed: u64) -> Result<Outcome, EnergyError> {
        let year = &self.year;
        let mut tally = Tally::default();
        match control {
            Control::Rule(name) => {
                let rule = Rule::ALL.into_iter().find(|rule| rule.name() == name);
                let rule = rule.ok_or_else(|| EnergyError::Field {
                    field: "controller".into(),
                    rule: format!("must be one of {}", self.controllers().join(", ")),
                    value: name.into(),
                })?;
                play_year(year, rule, seed, |_, stored, flows, reward| tally.add(year, stored, flows, reward));
            }
            Control::Policy(policy) => {
                let mut batch = IquitosBatch::new(Arc::clone(year), 0..1);
                let mut slabs = BatchSlabs::new(batch.spec());
                let mut actions = Array2::zeros((1, batch.spec().action.width()));
                batch.reset(seed, &mut slabs)?;
                for _ in 0..year.steps_per_year {
                    policy(slabs.obs.view(), actions.view_mut());
                    let stored_before = batch.soc(0) * year.config.battery.capacity_kwh;
                    batch.step(actions.view(), &mut slabs)?;
                    // The last step resets the battery, so what is stored after it follows from the flows.
                    let flows = *batch.flows(0);
                    let stored = stored_before + flows.ledger.battery_change_kwh;
                    tally.add(year, stored, &flows, f64::from(slabs.reward[0]));
                }
            }
        }
        let mut reference = Tally::default();
        play_year(year, Rule::Uncontrolled, seed, |_, stored, flows, reward| {
            reference.add(year, stored, flows, reward);
        });
        let figures = tally.figures().into_iter().zip(reference.figures());
        let figure = |((name, value), (_, reference)): ((&'static str, f64), (_, f64))| Figure {
            name,
            value: Some(value),
            ratio: (reference != 0.0).then(|| value / reference),
        };
        Ok(Outcome {
            episode_return: tally.episode_return,
            figures: figures.map(figure).collect(),
            ledger: tally.ledger,
            trace: tally.trace,
        })
    }
}
