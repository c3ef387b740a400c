//! Broken files for readers: valid ones, changed at random, the same for the same seed.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::memory::Counting;

/// Longest that a reader may take for one file.
const MOST_TIME: Duration = Duration::from_secs(1);
/// Above this a file is read again: the best of three counts.
const SUSPECT: Duration = Duration::from_millis(50);
/// Most memory that a reader may take for one file, in bytes.
const MOST_BYTES: usize = 1 << 30;
/// A file that takes longer ends the process: there is no other way out of an endless loop.
const HUNG: Duration = Duration::from_secs(60);

/// Numbers that readers may stumble over.
const NUMBERS: [&str; 24] = [
    "0",
    "-0",
    "-1",
    "1",
    "0.5",
    "1e308",
    "-1e308",
    "1e309",
    "1e-308",
    "5e-324",
    "1e9",
    "1e12",
    "1e300",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "null",
    "4294967296",
    "18446744073709551616",
    "-9223372036854775809",
    "2147483648",
    "1e400",
    "0x10",
];
/// What no text expects.
const BYTES: [&[u8]; 14] =
    [b"\"", b",", b":", b"(", b")", b"[", b"]", b"{", b"}", b"\n", b"\0", b"\xff", b"\x1b[31m", b"\xef\xbb\xbf"];

/// Changes files at random.
#[derive(Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// The changes that `seed` stands for.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `n`, or 0 (SplitMix64).
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// `file` with one to four changes.
    pub fn mutate(&mut self, file: &[u8]) -> Vec<u8> {
        let mut bytes = file.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let n = bytes.len();
        let at = self.below(n);
        match self.below(12) {
            0 if n > 0 => bytes[at] ^= 1 << self.below(8),
            1 if n > 0 => drop(bytes.drain(at..(at + 1 + self.below(40)).min(n))),
            2 => insert(bytes, at, BYTES[self.below(BYTES.len())]),
            3 => bytes.truncate(at),
            4 => {
                // A span again, somewhere else, as often as not many times.
                let span = bytes[at..(at + 1 + self.below(400)).min(n)].to_vec();
                let times = [1, 1, 2, 50][self.below(4)];
                insert(bytes, self.below(n), &span.repeat(times));
            }
            5..=7 => {
                let number = NUMBERS[self.below(NUMBERS.len())].as_bytes();
                self.replace(bytes, is_of_number, number);
            }
            8 => {
                // Deep nesting.
                let (open, close) =
                    [("(", ")"), ("[", "]"), ("{\"a\":", "}"), ("GEOMETRYCOLLECTION(", ")")][self.below(4)];
                let depth = [2, 20, 130, 6250][self.below(4)];
                let mut nested = open.repeat(depth);
                nested.push_str(&close.repeat(if self.below(2) == 0 { depth } else { 0 }));
                insert(bytes, at, nested.as_bytes());
            }
            9 => self.swap(bytes),
            10 => {
                // Another word, from elsewhere in the file.
                let from = self.below(n);
                let word = bytes[token(bytes, from, is_of_word)].to_vec();
                self.replace(bytes, is_of_word, &word);
            }
            _ => {
                // A line again, or no more.
                let line = token(bytes, at, |byte| byte != b'\n');
                if self.below(2) == 0 {
                    let copy = [&bytes[line.clone()], b"\n"].concat();
                    insert(bytes, line.start, &copy);
                } else {
                    drop(bytes.drain(line));
                }
            }
        }
    }

    /// Replaces the token of some kind at or after a random place.
    fn replace(&mut self, bytes: &mut Vec<u8>, is_part: fn(u8) -> bool, by: &[u8]) {
        let from = self.below(bytes.len());
        let at = bytes[from..].iter().position(|byte| is_part(*byte)).map_or(from, |n| from + n);
        let range = token(bytes, at, is_part);
        drop(bytes.splice(range, by.iter().copied()));
    }

    /// Lets two tokens change places.
    fn swap(&mut self, bytes: &mut Vec<u8>) {
        let n = bytes.len();
        let (a, b) = (token(bytes, self.below(n), is_of_word), token(bytes, self.below(n), is_of_word));
        let (a, b) = if a.start <= b.start { (a, b) } else { (b, a) };
        if a.end <= b.start {
            let swapped = [&bytes[b.clone()], &bytes[a.end..b.start], &bytes[a.clone()]].concat();
            drop(bytes.splice(a.start..b.end, swapped));
        }
    }
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+')
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'"')
}

/// The token around `at`; empty where there is none.
fn token(bytes: &[u8], at: usize, is_part: fn(u8) -> bool) -> std::ops::Range<usize> {
    if !bytes.get(at).is_some_and(|byte| is_part(*byte)) {
        return at.min(bytes.len())..at.min(bytes.len());
    }
    let start = bytes[..at].iter().rposition(|byte| !is_part(*byte)).map_or(0, |n| n + 1);
    let end = bytes[at..].iter().position(|byte| !is_part(*byte)).map_or(bytes.len(), |n| at + n);
    start..end
}

fn insert(bytes: &mut Vec<u8>, at: usize, what: &[u8]) {
    let at = at.min(bytes.len());
    drop(bytes.splice(at..at, what.iter().copied()));
}

/// Lets `read` have changed copies of `files`, and holds it to no panic, 1 s and 1 GiB for each. `read` returns why it refused one, without
/// control characters, and panics where what it accepted is not usable. There are `n` of them, or with `BRASA_SLOW=1` a million;
/// `BRASA_MUTATIONS` and `BRASA_MUTATION_SEED` say otherwise.
///
/// # Panics
/// Where `read` panics, takes too long or too much. The file is kept in the temporary folder and named.
pub fn hold_reader<E: Display>(
    reader: &str,
    files: &[Vec<u8>],
    memory: &Counting,
    n: u64,
    mut read: impl FnMut(&[u8]) -> Result<(), E>,
) {
    /// Memory is counted for the whole process, so one reader is held at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let mut read = |bytes: &[u8]| {
        let refused = read(bytes).err().map(|error| error.to_string());
        let obeyed = refused.as_ref().filter(|message| message.contains(char::is_control));
        assert!(obeyed.is_none(), "a terminal obeys {obeyed:?}");
        refused.is_none()
    };
    let of_env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let is_slow = std::env::var_os("BRASA_SLOW").is_some();
    let n = of_env("BRASA_MUTATIONS").unwrap_or(if is_slow { 1_000_000 } else { n });
    let first = of_env("BRASA_MUTATION_SEED").unwrap_or(0);
    let watch = Watch::new(reader);
    let (mut accepted, mut longest, mut peak) = (0u64, (Duration::ZERO, 0), (0usize, 0));
    for file in files {
        assert!(read(file), "{reader}: the files that are changed must be valid");
    }
    for seed in first..first + n {
        let bytes = Mutator::new(seed).mutate(&files[seed as usize % files.len()]);
        watch.begin(seed, &bytes);
        let before = memory.restart();
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| read(&bytes)));
        let (mut took, held) = (start.elapsed(), memory.peak().saturating_sub(before));
        // Whatever else the machine does makes a file slow once, not three times.
        for _ in 0..2 {
            if took > SUSPECT && result.is_ok() {
                let again = Instant::now();
                read(&bytes);
                took = took.min(again.elapsed());
            }
        }
        watch.end();
        let is_accepted = result.unwrap_or_else(|_| panic!("{reader} panicked: {}", keep(reader, seed, &bytes)));
        accepted += u64::from(is_accepted);
        longest = longest.max((took, seed));
        peak = peak.max((held, seed));
        assert!(took < MOST_TIME, "{reader} took {took:?}: {}", keep(reader, seed, &bytes));
        assert!(held < MOST_BYTES, "{reader} took {held} bytes: {}", keep(reader, seed, &bytes));
    }
    let (mib, refused) = (peak.0 as f64 / f64::from(1 << 20), n - accepted);
    eprintln!(
        "{reader}: {n} files, {accepted} accepted, {refused} refused; longest {:.1} ms (seed {}), most memory {mib:.1} MiB (seed {})",
        1e3 * longest.0.as_secs_f64(),
        longest.1,
        peak.1,
    );
}

/// Writes a file that a reader does not survive to the temporary folder, and says where.
fn keep(reader: &str, seed: u64, bytes: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("brasa-{}-{seed}", reader.replace(' ', "-")));
    match std::fs::write(&path, bytes) {
        Ok(()) => format!("seed {seed}, kept as {}", path.display()),
        Err(error) => format!("seed {seed}, not kept: {error}"),
    }
}

/// Ends the process where a file takes for ever.
struct Watch {
    /// Milliseconds since the start when the file was begun; 0 between files.
    begun: Arc<AtomicU64>,
    file: Arc<Mutex<(u64, Vec<u8>)>>,
    start: Instant,
}

impl Watch {
    fn new(reader: &str) -> Self {
        let watch = Self { begun: Arc::default(), file: Arc::default(), start: Instant::now() };
        let (begun, file, start, reader) = (watch.begun.clone(), watch.file.clone(), watch.start, reader.to_owned());
        std::thread::spawn(move || {
            // The owner is gone once nobody else counts.
            while Arc::strong_count(&begun) > 1 {
                std::thread::sleep(Duration::from_secs(1));
                let since = begun.load(Ordering::Relaxed);
                if since > 0 && start.elapsed().as_millis() as u64 > since + HUNG.as_millis() as u64 {
                    let (seed, bytes) = file.lock().map(|file| file.clone()).unwrap_or_default();
                    eprintln!("{reader} hangs: {}", keep(&reader, seed, &bytes));
                    std::process::abort();
                }
            }
        });
        watch
    }

    fn begin(&self, seed: u64, bytes: &[u8]) {
        if let Ok(mut file) = self.file.lock() {
            file.0 = seed;
            file.1.clear();
            file.1.extend_from_slice(bytes);
        }
        self.begun.store(self.start.elapsed().as_millis() as u64 + 1, Ordering::Relaxed);
    }

    fn end(&self) {
        self.begun.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_those_of_the_seed_and_rarely_none() {
        let file = b"Shop: POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))\nexit: LINESTRING (1 0, 2 0)\n";
        let changed = |seed| Mutator::new(seed).mutate(file);
        let mut same = 0;
        for seed in 0..2000 {
            assert_eq!(changed(seed), changed(seed));
            same += usize::from(changed(seed) == file);
        }
        assert!(same < 200, "{same} of 2000 files are unchanged");
        // Nothing is too short to be changed.
        (0..200).for_each(|seed| drop(Mutator::new(seed).mutate(b"")));
    }
}
