//! What a person sees while training goes on.

use std::io::IsTerminal;

use brasa::train::Iteration;
use indicatif::{ProgressBar, ProgressStyle};

/// Lines that a log file gets instead of a bar.
const LINES: u64 = 10;

/// A bar on a terminal, some lines elsewhere, nothing when quiet.
pub struct Progress {
    view: View,
    total: u64,
}

enum View {
    Bar(ProgressBar),
    Lines { next: u64 },
    Nothing,
}

impl Progress {
    /// Progress of a run of `total` environment steps that has taken `done`.
    pub fn new(quiet: bool, done: u64, total: u64) -> Self {
        let view = if quiet {
            View::Nothing
        } else if std::io::stderr().is_terminal() {
            let style = "{bar:24} {percent:>3}%  {pos}/{len} steps  {msg}  {eta} left";
            let bar = ProgressBar::new(total).with_position(done);
            bar.set_style(ProgressStyle::with_template(style).expect("the template is valid").progress_chars("━╸─"));
            bar.reset_eta();
            View::Bar(bar)
        } else {
            View::Lines { next: done }
        };
        Self { view, total }
    }

    /// Shows one round.
    pub fn show(&mut self, iteration: &Iteration) {
        let message = summary(iteration);
        match &mut self.view {
            View::Bar(bar) => {
                bar.set_position(iteration.env_steps.min(self.total));
                bar.set_message(message);
            }
            View::Lines { next } if iteration.env_steps >= *next => {
                *next = iteration.env_steps + self.total / LINES;
                eprintln!("{}/{} steps  {message}", iteration.env_steps, self.total);
            }
            View::Lines { .. } | View::Nothing => {}
        }
    }

    /// Leaves the terminal as it was.
    pub fn finish(&self) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }
}

/// Speed, return and, where there is one, carbon against the reference.
fn summary(iteration: &Iteration) -> String {
    let mut parts = vec![format!("{:.0} steps/s", iteration.steps_per_sec)];
    if let Some(mean) = iteration.metric("rollout/ep_rew_mean") {
        parts.push(format!("return {mean:.1}"));
    }
    let carbon = iteration.metric("rollout/carbon_kg").zip(iteration.metric("rollout/reference_carbon_kg"));
    if let Some((carbon, reference)) = carbon.filter(|(_, reference)| *reference > 0.0) {
        parts.push(format!("carbon {:.3} of reference", carbon / reference));
    }
    parts.join("  ")
}
