//! The log of a run: everything that is printed on standard error, with times.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::waiting::aside;

/// Most lines that wait for a log to be opened.
const MOST_WAITING: usize = 1000;

/// The log of this process: standard error is one of the process, too.
struct Log {
    file: Option<File>,
    /// Lines, with times, from before the run had a directory.
    waiting: Vec<String>,
}

static LOG: Mutex<Log> = Mutex::new(Log { file: None, waiting: Vec::new() });

fn log() -> MutexGuard<'static, Log> {
    // Lines are added as a whole, so the log is valid after a panic.
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends to the file at `path` what this process prints from now on, and what it has printed since its start or since [`close_log`],
/// at most 1,000 lines. It takes the place of a log that is open.
///
/// ```
/// use brasa_train::{close_log, note, open_log};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("run.log");
/// note("before the run has a directory");
/// open_log(&path)?;
/// note("epoch 1");
/// close_log();
/// let log = std::fs::read_to_string(&path)?;
/// let lines: Vec<_> = log.lines().filter_map(|line| line.split_once(' ')).map(|(_, line)| line).collect();
/// assert_eq!(lines, ["before the run has a directory", "epoch 1"]);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be opened or written.
pub fn open_log(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut log = log();
    file.write_all(log.waiting.concat().as_bytes())?;
    log.waiting.clear();
    log.file = Some(file);
    Ok(())
}

/// Closes the log. What is printed from now on belongs to the next one.
///
/// ```
/// use brasa_train::{close_log, note, open_log};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("run.log");
/// open_log(&path)?;
/// note("epoch 1");
/// close_log();
/// note("of the next run");
/// assert_eq!(std::fs::read_to_string(&path)?.lines().count(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn close_log() {
    log().file = None;
}

/// Adds lines to the log without printing them. Errors, such as a full disk, are ignored: they must not end a run.
///
/// ```
/// use brasa_train::{note, open_log};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("run.log");
/// open_log(&path)?;
/// note("two\nlines");
/// let log = std::fs::read_to_string(&path)?;
/// // Every line begins with its time: `2026-03-01T09:30:00Z two`.
/// assert!(log.lines().map(|line| &line[21..]).eq(["two", "lines"]));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn note(text: &str) {
    let time = utc_now();
    let lines: String = text.lines().map(|line| format!("{time} {line}\n")).collect();
    let Log { file, waiting } = &mut *log();
    match file {
        // One write: a kill leaves whole lines.
        Some(file) => {
            let _ = file.write_all(lines.as_bytes());
        }
        None if waiting.len() < MOST_WAITING => waiting.push(lines),
        None => {}
    }
}

/// Writes a line to standard error and to the log. Errors, such as a closed pipe or a full disk, are ignored: they must not end a run.
///
/// ```
/// use brasa_train::{open_log, say};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("run.log");
/// open_log(&path)?;
/// say("saved the policy");
/// assert!(std::fs::read_to_string(&path)?.ends_with(" saved the policy\n"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn say(line: &str) {
    let _ = aside(|| writeln!(io::stderr().lock(), "{line}"));
    note(line);
}

/// Whether this process prints results and errors only.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Sets whether [`say_progress`] and the views of progress print.
///
/// ```
/// use brasa_train::{is_quiet, say_progress, set_quiet};
///
/// set_quiet(true);
/// // Only the log receives this line.
/// say_progress("50 % of all steps");
/// assert!(is_quiet());
/// ```
pub fn set_quiet(is_quiet: bool) {
    QUIET.store(is_quiet, Ordering::Relaxed);
}

/// Whether this process prints results, warnings and errors only.
///
/// ```
/// use brasa_train::{is_quiet, set_quiet};
///
/// assert!(!is_quiet());
/// set_quiet(true);
/// assert!(is_quiet());
/// ```
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes a line about what is going on to the log, and to standard error unless [`set_quiet`] forbids it.
///
/// ```
/// use brasa_train::{open_log, say_progress, set_quiet};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("run.log");
/// open_log(&path)?;
/// set_quiet(true);
/// say_progress("50 % of all steps");
/// // Nothing is printed, but the log has the line.
/// assert!(std::fs::read_to_string(&path)?.ends_with(" 50 % of all steps\n"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn say_progress(line: &str) {
    match is_quiet() {
        true => note(line),
        false => say(line),
    }
}

/// Standard error, with a copy in the log: for messages that another library formats.
///
/// ```
/// use std::io::Write;
///
/// use brasa_train::{StandardError, open_log};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("run.log");
/// open_log(&path)?;
/// // Such as the output of `tracing_subscriber::fmt().with_writer(|| StandardError)`.
/// StandardError.write_all(b"WARN the disk is slow\n")?;
/// assert!(std::fs::read_to_string(&path)?.ends_with("Z WARN the disk is slow\n"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct StandardError;

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        note(String::from_utf8_lossy(bytes).trim_end());
        aside(|| io::stderr().lock().write_all(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The present time as text: `2026-03-01T09:30:00Z`.
///
/// ```
/// let now = brasa_train::utc_now();
/// assert_eq!(now.len(), "2026-03-01T09:30:00Z".len());
/// assert!(now.as_str() > "2026-01-01T00:00:00Z" && now.ends_with('Z'));
/// ```
pub fn utc_now() -> String {
    utc(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs()))
}

/// The time `secs` seconds after the begin of 1970 as text (Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`).
fn utc(secs: u64) -> String {
    let (days, of_day) = (secs / 86_400, secs % 86_400);
    // Years begin in March, so that a leap day is the last one.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let of_400_years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_400_years + of_400_years / 4 - of_400_years / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = of_400_years + 400 * era + u64::from(month <= 2);
    let (hours, minutes, seconds) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_of_the_calendar() {
        for (secs, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(secs), text);
        }
    }

    #[test]
    fn a_log_has_what_was_printed_before_and_after_it_was_opened() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (first, second) = (dir.path().join("first.log"), dir.path().join("second.log"));
        note("before");
        open_log(&first).expect("the directory can be written");
        note("one\ntwo");
        StandardError.write_all(b"WARN three\n").expect("standard error takes it");
        close_log();
        note("between");
        open_log(&second).expect("the directory can be written");
        open_log(&first).expect("it is there");
        note("four");
        close_log();
        // Other tests of this process may print.
        let lines = |path| {
            let text = std::fs::read_to_string(path).expect("it was written");
            let mine = ["before", "one", "two", "WARN three", "between", "four"];
            let of = |line: &str| {
                let (time, line) = line.split_once(' ').expect("a time comes first");
                assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
                mine.contains(&line).then(|| line.to_owned())
            };
            text.lines().filter_map(of).collect::<Vec<_>>()
        };
        assert_eq!(lines(&first), ["before", "one", "two", "WARN three", "four"]);
        assert_eq!(lines(&second), ["between"]);
    }
}
