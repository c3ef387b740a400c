//! A network that is ready to run.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{BatchSlabs, EnvBatch, EnvRng, named_rng};
use ndarray::{Array2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use crate::batch::UaraBatch;
use crate::config::{Reward, UaraConfig};
use crate::error::UaraError;
use crate::radio::{Link, Radio};
use crate::trace::Trace;
use crate::yardsticks::{Objective, Yardstick};

/// Networks of one config.
#[derive(Debug, Clone)]
pub struct Uara {
    config: Arc<UaraConfig>,
    radio: Arc<Radio>,
}

/// A policy: what users see, as a batch writes it, and where their actions go, `[n_rows, 1]`.
pub type PolicyFn<'a> = dyn FnMut(&BatchSlabs, ArrayViewMut2<f32>) + 'a;

/// Who decides.
pub enum Control<'a> {
    /// A rule that sees every link of the network, and decides anew at each step.
    Rule(Yardstick),
    /// A policy.
    Policy(&'a mut PolicyFn<'a>),
}

/// How an episode went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Steps.
    pub steps: u32,
    /// Sum of rewards, averaged over users.
    pub episode_return: f64,
    /// Share of users that were satisfied, averaged over steps.
    pub qos_rate: f64,
    /// The same at the last step.
    pub final_qos_rate: f64,
    /// Sum of all rates, averaged over steps, Mb/s.
    pub sum_rate_mbps: f64,
    /// Jain's index of the rates, averaged over steps.
    pub jain: f64,
    /// Users that changed their station, per step.
    pub handovers: f64,
    /// Users of the busiest station, averaged over steps.
    pub busiest_station_users: f64,
    /// Whether everybody was satisfied at the last step.
    pub success: bool,
    /// The episode step by step, where it was asked for.
    #[serde(skip)]
    pub trace: Option<Trace>,
}

impl Uara {
    /// Checks the config.
    ///
    /// # Errors
    /// [`UaraError::Field`] naming the first field outside its rule.
    pub fn new(config: UaraConfig) -> Result<Self, UaraError> {
        config.validate()?;
        let radio = Arc::new(config.radio());
        Ok(Self { config: Arc::new(config), radio })
    }

    /// The settings.
    pub fn config(&self) -> &UaraConfig {
        &self.config
    }

    /// What does not change.
    pub fn radio(&self) -> &Radio {
        &self.radio
    }

    /// What the rules aim at: satisfied users where those are paid, else the sum of rates.
    pub fn objective(&self) -> Objective {
        match self.config.reward {
            Reward::Binary { .. } => Objective::Satisfied,
            Reward::Rate { .. } | Reward::Contribution { .. } | Reward::ProfitCost { .. } => Objective::SumRate,
        }
    }

    /// Environments with the global indices `envs`; the index, not the place, addresses random numbers.
    pub fn batch(&self, envs: Range<usize>) -> UaraBatch {
        UaraBatch::new(self.config.clone(), self.radio.clone(), envs)
    }

    /// Plays the first episode of the environments `envs` under `seed`; the same layouts, walks and fading for every
    /// `control`. Keeps the traces of the first `n_traces`.
    ///
    /// # Errors
    /// [`UaraError::Env`] where a policy chooses an option that its mask forbids.
    pub fn evaluate(
        &self,
        mut control: Control<'_>,
        envs: Range<usize>,
        seed: u64,
        n_traces: usize,
    ) -> Result<Vec<Played>, UaraError> {
        let n_users = self.radio.n_users;
        let mut batch = self.batch(envs.clone());
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(seed, &mut slabs)?;
        let mut actions = Array2::zeros((batch.n_rows(), 1));
        let mut rules: Vec<RuleMemory> = envs.clone().map(|env| RuleMemory::new(seed, env)).collect();
        let mut running: Vec<Running> = (0..envs.len()).map(|env| Running::new(&batch, env, env < n_traces)).collect();
        while running.iter().any(|episode| !episode.ended) {
            match &mut control {
                Control::Policy(policy) => policy(&slabs, actions.view_mut()),
                Control::Rule(rule) => {
                    for (env, memory) in rules.iter_mut().enumerate().filter(|(env, _)| !running[*env].ended) {
                        let links = memory.decide(self, *rule, &batch, env);
                        for (user, link) in links.into_iter().enumerate() {
                            let option = batch.option(env, user, link).expect("rules choose what snapshots allow");
                            actions[[env * n_users + user, 0]] = option as f32;
                        }
                    }
                    // Nobody looks at those whose episode is over, but they need an action that is legal.
                    for env in (0..envs.len()).filter(|env| running[*env].ended) {
                        self.any_action(&slabs, env, actions.view_mut());
                    }
                }
            }
            // Traces show links as they are when they are used, before time passes.
            for (env, episode) in running.iter_mut().enumerate().filter(|(_, episode)| !episode.ended) {
                episode.before(&batch, env, &actions);
            }
            batch.step(actions.view(), &mut slabs)?;
            for (env, episode) in running.iter_mut().enumerate().filter(|(_, episode)| !episode.ended) {
                episode.after(&slabs, env, n_users);
            }
        }
        Ok(running.into_iter().map(Running::finish).collect())
    }

    fn any_action(&self, slabs: &BatchSlabs, env: usize, mut actions: ArrayViewMut2<f32>) {
        for row in env * self.radio.n_users..(env + 1) * self.radio.n_users {
            let station = slabs.mask.row(row).iter().position(|flag| *flag > 0.0).unwrap_or(0);
            actions[[row, 0]] = (station * self.radio.options_per_station()) as f32;
        }
    }
}

/// What a rule keeps from step to step.
struct RuleMemory {
    rng: EnvRng,
    /// What it decided where nothing that it looks at changes.
    kept: Option<Vec<Link>>,
}

impl RuleMemory {
    fn new(seed: u64, env: usize) -> Self {
        Self { rng: named_rng(seed, "controller", env as u64), kept: None }
    }

    fn decide(&mut self, scenario: &Uara, rule: Yardstick, batch: &UaraBatch, env: usize) -> Vec<Link> {
        if let Some(links) = &self.kept {
            return links.clone();
        }
        let links = rule.choose(&batch.snapshot(env), scenario.objective(), &mut self.rng);
        let draws = matches!(rule, Yardstick::Random | Yardstick::StrongestRandom);
        if !draws && !scenario.config.dynamics.changes() {
            self.kept = Some(links.clone());
        }
        links
    }
}

/// An episode that is being played.
struct Running {
    played: Played,
    ended: bool,
}

impl Running {
    fn new(batch: &UaraBatch, env: usize, traced: bool) -> Self {
        let played = Played {
            steps: 0,
            episode_return: 0.0,
            qos_rate: 0.0,
            final_qos_rate: 0.0,
            sum_rate_mbps: 0.0,
            jain: 0.0,
            handovers: 0.0,
            busiest_station_users: 0.0,
            success: false,
            trace: traced.then(|| Trace::new(batch, env)),
        };
        Self { played, ended: false }
    }

    fn before(&mut self, batch: &UaraBatch, env: usize, actions: &Array2<f32>) {
        if let Some(trace) = &mut self.played.trace {
            let snapshot = batch.snapshot(env);
            let n_users = snapshot.radio.n_users;
            let links: Option<Vec<Link>> =
                (0..n_users).map(|user| batch.link(env, user, actions[[env * n_users + user, 0]])).collect();
            // The batch refuses what is no link.
            links.into_iter().for_each(|links| trace.record(&snapshot, batch.layout(env), links));
        }
    }

    fn after(&mut self, slabs: &BatchSlabs, env: usize, n_users: usize) {
        let rows = env * n_users..(env + 1) * n_users;
        let rewards = rows.clone().map(|row| f64::from(slabs.reward[row]));
        let played = &mut self.played;
        played.steps += 1;
        played.episode_return += rewards.sum::<f64>() / n_users as f64;
        let figure = |i: usize| slabs.info[[env, i]];
        let sums = [
            &mut played.qos_rate,
            &mut played.sum_rate_mbps,
            &mut played.jain,
            &mut played.handovers,
            &mut played.busiest_station_users,
        ];
        sums.into_iter().enumerate().for_each(|(i, sum)| *sum += figure(i));
        self.ended = slabs.episode_end(rows.start);
        if self.ended {
            played.final_qos_rate = figure(0);
            played.success = figure(0) == 1.0;
        }
    }

    fn finish(self) -> Played {
        let Played { steps, qos_rate, sum_rate_mbps, jain, handovers, busiest_station_users, .. } = self.played;
        let mean = |sum: f64| sum / f64::from(steps);
        Played {
            qos_rate: mean(qos_rate),
            sum_rate_mbps: mean(sum_rate_mbps),
            jain: mean(jain),
            handovers: mean(handovers),
            busiest_station_users: mean(busiest_station_users),
            ..self.played
        }
    }
}
