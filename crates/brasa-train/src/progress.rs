//! Progress of training runs on standard error.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use brasa_core::env::Curve;
use indicatif::{ProgressBar, ProgressStyle};

use crate::waiting::Place;
use crate::{Iteration, is_quiet, note, say_progress};

/// Number of lines that are printed if standard error is not a terminal.
const LINES: u64 = 10;

/// Phases of an iteration, as in the metrics `time/PHASE`.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{OnPolicy, PHASES, Run, Training};
///
/// let mut training = OnPolicy::new(cart_poles(4), ppo(), Run { total_env_steps: 128, seed: 0 })?;
/// let iteration = training.iterate()?;
/// assert!(PHASES.iter().all(|phase| iteration.metric(&format!("time/{phase}")).is_some()));
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
pub const PHASES: [&str; 4] = ["environment", "transfer", "acting", "learning"];

/// Time between the lines of a wait if standard error is not a terminal.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// Whether bars are drawn.
pub(crate) fn shows_bars() -> bool {
    std::io::stderr().is_terminal() && !is_quiet()
}

/// Shows progress on standard error: a bar on a terminal, a few lines elsewhere.
///
/// ```
/// use brasa_train::{Iteration, ProgressView, open_log};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("run.log");
/// # open_log(&path)?;
/// let mut view = ProgressView::new(0, 2000, Vec::new());
/// let metrics = vec![("rollout/ep_rew_mean".to_owned(), 21.5)];
/// view.show(&Iteration { env_steps: 1000, total_env_steps: 2000, steps_per_sec: 500.0, metrics, ended: Vec::new() });
/// view.finish();
/// assert!(std::fs::read_to_string(&path)?.contains("50 %  1,000 steps  mean return 21.5  500 steps/s  2 s left"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ProgressView {
    /// On a terminal.
    bar: Option<ProgressBar>,
    /// Environment steps of the next line.
    next: u64,
    total: u64,
    curves: Vec<Curve>,
    _place: Place,
}

impl ProgressView {
    /// Progress of a run with `total` environment steps, `done` of them already taken. Shows the return and `curves`.
    pub fn new(done: u64, total: u64, curves: Vec<Curve>) -> Self {
        let bar = shows_bars().then(|| {
            let style = "{bar:24} {percent:>3} %  {human_pos} steps  {msg}";
            let bar = ProgressBar::new(total).with_position(done);
            bar.set_style(ProgressStyle::with_template(style).expect("the template is valid").progress_chars("━╸─"));
            bar.reset_eta();
            bar
        });
        Self { bar, next: done, total, curves, _place: Place::take() }
    }

    /// Shows one iteration.
    pub fn show(&mut self, iteration: &Iteration) {
        let message = self.summary(iteration);
        let line = (iteration.env_steps >= self.next).then(|| {
            self.next = iteration.env_steps + self.total / LINES;
            let percent = 100.0 * iteration.env_steps as f64 / self.total.max(1) as f64;
            format!("{:>3.0} %  {} steps  {message}", percent.min(100.0), grouped(iteration.env_steps))
        });
        match (&self.bar, line) {
            (Some(bar), line) => {
                bar.set_position(iteration.env_steps.min(self.total));
                bar.set_message(message);
                // The log has the lines of a run without a terminal.
                line.iter().for_each(|line| note(line));
            }
            (None, Some(line)) => say_progress(&line),
            (None, None) => {}
        }
    }

    /// Removes the bar from the terminal.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn summary(&self, iteration: &Iteration) -> String {
        let metric = |name: &str| iteration.metric(name);
        let mut parts = Vec::new();
        parts.extend(metric("rollout/ep_rew_mean").map(|mean| format!("mean return {mean:.1}")));
        let shown = self.curves.iter().filter_map(|curve| Some((curve, curve_value(curve, metric)?)));
        parts.extend(shown.map(|(curve, value)| format!("{} {value:.3}", curve.label)));
        parts.push(format!("{} steps/s", grouped(iteration.steps_per_sec.round() as u64)));
        let left = self.total.saturating_sub(iteration.env_steps) as f64 / iteration.steps_per_sec.max(1e-9);
        parts.push(format!("{} left", in_words(Duration::from_secs_f64(left.min(1e12)))));
        parts.extend(phases(metric).map(|phases| format!("(time: {phases})")));
        parts.extend(gpu(metric));
        parts.join("  ")
    }
}

/// A count with separated thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let separator = |i: usize| if i > 0 && (digits.len() - i).is_multiple_of(3) { "," } else { "" };
    digits.chars().enumerate().map(|(i, digit)| format!("{}{digit}", separator(i))).collect()
}

/// Progress of several runs: a bar on a terminal, elsewhere a line every half minute.
///
/// ```
/// use brasa_train::RunsView;
///
/// // Two runs of 10,000 steps: one is finished, the other one has taken 2,500 steps.
/// let mut view = RunsView::new(20_000, 2);
/// view.show(12_500, 1, 1, 0);
/// # assert!(format!("{view:?}").contains("n_runs: 2"));
/// ```
#[derive(Debug)]
pub struct RunsView {
    bar: Option<ProgressBar>,
    total: u64,
    n_runs: usize,
    last_line: Instant,
    _place: Place,
}

impl RunsView {
    /// Progress of `n_runs` runs with `total` environment steps together.
    pub fn new(total: u64, n_runs: usize) -> Self {
        let bar = shows_bars().then(|| {
            let bar = ProgressBar::new(total);
            let style = "{bar:24} {percent:>3} %  {msg}  {eta} left";
            bar.set_style(ProgressStyle::with_template(style).expect("the template is valid").progress_chars("━╸─"));
            bar
        });
        Self { bar, total, n_runs, last_line: Instant::now(), _place: Place::take() }
    }

    /// Shows the environment steps so far and the number of runs that are finished, that run, and that failed.
    pub fn show(&mut self, steps: u64, finished: usize, running: usize, failed: usize) {
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let message = format!("{finished} of {} runs finished, {running} running{failed}", self.n_runs);
        match &self.bar {
            Some(bar) => {
                bar.set_position(steps.min(self.total));
                bar.set_message(message);
            }
            None if self.last_line.elapsed() >= SILENCE => {
                self.last_line = Instant::now();
                say_progress(&format!(
                    "{:.0} % of all steps, {message}",
                    100.0 * steps as f64 / self.total.max(1) as f64
                ));
            }
            None => {}
        }
    }
}

impl Drop for RunsView {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Share of each phase in the time of an iteration, from its metrics; `None` if they have no times.
///
/// ```
/// use brasa_train::phases;
///
/// let secs = |name: &str| match name {
///     "time/environment" => Some(3.0),
///     "time/learning" => Some(1.0),
///     _ => None,
/// };
/// assert_eq!(phases(secs).as_deref(), Some("environment 75 %, learning 25 %"));
/// ```
pub fn phases(metric: impl Fn(&str) -> Option<f64>) -> Option<String> {
    let secs = PHASES.map(|name| metric(&format!("time/{name}")).unwrap_or(0.0));
    let total = secs.iter().sum::<f64>();
    let share = |(name, secs): (&str, f64)| format!("{name} {:.0} %", 100.0 * secs / total);
    let shown = PHASES.into_iter().zip(secs).filter(|(_, secs)| *secs >= 0.005 * total);
    (total > 0.0).then(|| shown.map(share).collect::<Vec<_>>().join(", "))
}

/// What to raise where a GPU is idle, by the phase that takes most of the time.
fn to_raise(longest: &str) -> &'static str {
    match longest {
        "learning" => "a larger batch would use it",
        "environment" => "environments on the device (`train.env_device`), or more threads, would use it",
        _ => "a higher `train.n_envs` would use it",
    }
}

/// State of the GPU, and below a load of half the phase that it waits for; `None` without these metrics.
fn gpu(metric: impl Fn(&str) -> Option<f64>) -> Option<String> {
    let (busy, used) = (metric("gpu/busy")?, metric("gpu/memory_gib")?);
    let secs = |name: &&str| metric(&format!("time/{name}")).unwrap_or(0.0);
    let longest = PHASES.into_iter().max_by(|a, b| secs(a).total_cmp(&secs(b)))?;
    let waits = format!(", most time goes to {longest}: {}", to_raise(longest));
    let waits = if busy < 0.5 { waits } else { String::new() };
    Some(format!("GPU {:.0} % busy, {used:.1} GiB{waits}", 100.0 * busy))
}

/// A duration as text, in the unit that suits its size.
///
/// ```
/// use std::time::Duration;
///
/// use brasa_train::in_words;
///
/// let secs = [90, 600, 9000, 864_000];
/// assert_eq!(secs.map(|secs| in_words(Duration::from_secs(secs))), ["90 s", "10 min", "2.5 h", "10.0 days"]);
/// ```
pub fn in_words(time: Duration) -> String {
    match time.as_secs() {
        secs @ 0..120 => format!("{secs} s"),
        secs @ 120..7200 => format!("{} min", secs / 60),
        secs @ 7200..172_800 => format!("{:.1} h", secs as f64 / 3600.0),
        secs => format!("{:.1} days", secs as f64 / 86_400.0),
    }
}

/// The value of `curve` for the metrics `metric`; `None` if a metric is missing or the divisor is not positive.
///
/// ```
/// use brasa_core::env::Curve;
/// use brasa_train::curve_value;
///
/// # let curve = Curve { label: "".into(), metric: "".into(), divided_by: None, evaluated: None, figure: None };
/// let (metric, divided_by) = ("rollout/carbon_kg".to_owned(), Some("rollout/energy_kwh".to_owned()));
/// let curve = Curve { label: "kg per kWh".into(), metric, divided_by, ..curve };
/// let known = [("rollout/carbon_kg", 1.5), ("rollout/energy_kwh", 6.0)];
/// let metric = |name: &str| known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
/// assert_eq!(curve_value(&curve, metric), Some(0.25));
/// assert_eq!(curve_value(&curve, |_| None), None);
/// ```
pub fn curve_value(curve: &Curve, metric: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let value = metric(&curve.metric)?;
    match &curve.divided_by {
        None => Some(value),
        Some(by) => metric(by).filter(|by| *by > 0.0).map(|by| value / by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        assert_eq!([7, 999, 1000, 10_496, 1_234_567].map(grouped), ["7", "999", "1,000", "10,496", "1,234,567"]);
    }

    #[test]
    fn an_idle_gpu_names_the_longest_phase() {
        let shown = |busy: f64| {
            let metrics = [("gpu/busy", busy), ("gpu/memory_gib", 2.25), ("time/acting", 1.0), ("time/transfer", 3.0)];
            gpu(|name| metrics.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
        };
        assert_eq!(shown(0.9).as_deref(), Some("GPU 90 % busy, 2.2 GiB"));
        assert_eq!(
            shown(0.3).as_deref(),
            Some("GPU 30 % busy, 2.2 GiB, most time goes to transfer: a higher `train.n_envs` would use it")
        );
        assert_eq!(gpu(|_| None), None);
    }
}
