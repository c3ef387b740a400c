//! What a program waits for, on standard error: episodes of an evaluation, data, a schedule, a device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use brasa_core::env::steps_played;
use indicatif::{ProgressBar, ProgressStyle};

use crate::progress::{SILENCE, grouped, in_words, shows_bars};
use crate::{is_quiet, say_progress};

/// Waits that are shorter show nothing.
const SHORT: Duration = Duration::from_secs(2);
/// Time between two looks at the clock.
const TICK: Duration = Duration::from_millis(250);

/// Views that show something, the innermost one last.
static VIEWS: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);
/// The line of a wait on a terminal.
static LINE: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each value is valid after a panic of another thread.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes with `write` to a terminal that may show the line of a wait.
pub(crate) fn aside<T>(write: impl FnOnce() -> T) -> T {
    let line = lock(&LINE).clone();
    match line {
        Some(line) => line.suspend(write),
        None => write(),
    }
}

/// The place of a view among those of the process. Only the innermost one shows its wait.
#[derive(Debug)]
pub(crate) struct Place(u64);

impl Place {
    pub fn take() -> Self {
        let place = NEXT.fetch_add(1, Ordering::Relaxed);
        lock(&VIEWS).push(place);
        Self(place)
    }

    fn is_innermost(&self) -> bool {
        lock(&VIEWS).last() == Some(&self.0)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&VIEWS).retain(|place| *place != self.0);
    }
}

/// Shows on standard error what the program waits for, after two seconds: a line that changes on a terminal, elsewhere a line every half minute.
///
/// The line has the steps of episodes since the view was made, so a single episode that takes minutes is seen to go on. Of several views, the one that
/// was made last shows its wait.
///
/// ```
/// let view = brasa_train::WaitView::episodes("rule-based", 20);
/// // Evaluate the first episode.
/// view.show(1);
/// ```
#[derive(Debug)]
pub struct WaitView {
    wait: Arc<Wait>,
    ticker: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Wait {
    what: String,
    /// Number of episodes, if they are counted.
    total: Option<u64>,
    done: AtomicU64,
    begin: Instant,
    /// Steps of the process at the begin.
    steps: u64,
    place: Place,
    has_ended: Mutex<bool>,
    end: Condvar,
}

impl WaitView {
    /// A view of the wait for `what`.
    pub fn new(what: &str) -> Self {
        Self::of(what.to_owned(), None)
    }

    /// A view of `total` episodes with the controller `name`.
    pub fn episodes(name: &str, total: u64) -> Self {
        Self::of(format!("`{name}`"), Some(total))
    }

    fn of(what: String, total: Option<u64>) -> Self {
        let wait = Arc::new(Wait {
            what,
            total,
            done: AtomicU64::new(0),
            begin: Instant::now(),
            steps: steps_played(),
            place: Place::take(),
            has_ended: Mutex::new(false),
            end: Condvar::new(),
        });
        let ticking = Arc::clone(&wait);
        // Without the thread, nothing is shown.
        let spawn = || Builder::new().name("progress".into()).spawn(move || ticking.tick()).ok();
        let ticker = if is_quiet() { None } else { spawn() };
        Self { wait, ticker }
    }

    /// Shows that `done` episodes are complete.
    pub fn show(&self, done: u64) {
        self.wait.done.store(done, Ordering::Relaxed);
    }
}

impl Drop for WaitView {
    fn drop(&mut self) {
        *lock(&self.wait.has_ended) = true;
        self.wait.end.notify_all();
        if let Some(ticker) = self.ticker.take() {
            // A panic of the thread has been printed.
            let _ = ticker.join();
        }
    }
}

impl Wait {
    /// Shows the wait until it ends.
    fn tick(&self) {
        let (mut line, mut last_line) = (None::<ProgressBar>, self.begin);
        let mut has_ended = lock(&self.has_ended);
        while !*has_ended {
            has_ended = self.end.wait_timeout(has_ended, TICK).unwrap_or_else(PoisonError::into_inner).0;
            let is_shown = !*has_ended && self.begin.elapsed() >= SHORT && self.place.is_innermost();
            match (is_shown, shows_bars()) {
                (true, true) => {
                    let line = line.get_or_insert_with(|| {
                        let style = ProgressStyle::with_template("{spinner} {msg}").expect("the template is valid");
                        let line = ProgressBar::new_spinner().with_style(style);
                        *lock(&LINE) = Some(line.clone());
                        line
                    });
                    line.set_message(self.text());
                    line.tick();
                }
                (true, false) if last_line.elapsed() >= SILENCE => {
                    last_line = Instant::now();
                    say_progress(&self.text());
                }
                (true, false) => {}
                (false, _) => {
                    if let Some(line) = line.take() {
                        *lock(&LINE) = None;
                        line.finish_and_clear();
                    }
                }
            }
        }
    }

    fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(total) = self.total {
            parts.push(format!("{} of {} episodes", grouped(self.done.load(Ordering::Relaxed)), grouped(total)));
        }
        let steps = steps_played() - self.steps;
        if steps > 0 {
            parts.push(format!("{} steps", grouped(steps)));
        }
        parts.push(in_words(self.begin.elapsed()));
        format!("{}: {}", self.what, parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use brasa_core::env::count_step;

    use super::*;

    #[test]
    fn a_long_episode_shows_its_steps_and_other_waits_their_time() {
        let view = WaitView::episodes("rule-based", 1200);
        view.show(3);
        // Tests of other threads count, too.
        (0..2500).for_each(|_| count_step());
        let text = view.wait.text();
        let (begin, end) = ("`rule-based`: 3 of 1,200 episodes, ", " steps, 0 s");
        let steps = text.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
        let steps: u64 = steps.expect(&text).replace(',', "").parse().expect(&text);
        assert!(steps >= 2500, "{text}");
        let other = WaitView::new("reading the experiment");
        assert!(other.wait.text().starts_with("reading the experiment: "));
    }

    #[test]
    fn the_innermost_view_shows_its_wait() {
        let outer = Place::take();
        let inner = Place::take();
        assert!(!outer.is_innermost());
        drop(inner);
        // A view of another test may be inside.
        assert!(lock(&VIEWS).contains(&outer.0));
        let place = outer.0;
        drop(outer);
        assert!(!lock(&VIEWS).contains(&place));
    }
}
