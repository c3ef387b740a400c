//! TensorBoard event files.
//!
//! Implemented here because existing crates depend on image codecs and a protobuf compiler, and only two messages are needed:
//! `Event { 1: wall_time, 2: step, 3: file_version, 5: Summary }` and `Summary { 1: { 1: tag, 2: simple_value } }`,
//! each framed as a TFRecord: length, its checksum, data, its checksum (masked CRC-32C).

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use brasa_core::{Sink, SinkError};

/// Appends scalars to an event file. A resumed run starts another file; TensorBoard joins them.
///
/// ```
/// use brasa_core::Sink;
/// use brasa_train::sinks::TensorBoard;
///
/// let dir = tempfile::tempdir()?;
/// let mut sink = TensorBoard::create(dir.path(), 0)?;
/// sink.scalar(2048, "rollout/ep_rew_mean", 21.5)?;
/// sink.flush()?;
/// // `tensorboard --logdir` on the directory shows the curve.
/// let file = std::fs::read_dir(dir.path())?.next().expect("one file")?;
/// assert!(file.file_name().to_string_lossy().starts_with("events.out.tfevents."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TensorBoard {
    file: BufWriter<File>,
}

impl TensorBoard {
    /// Creates `events.out.tfevents.<seconds>.brasa` in `dir`. Events after `env_steps` are removed from earlier files, because a
    /// resumed run writes them again.
    ///
    /// # Errors
    /// If a file system operation fails.
    pub fn create(dir: &Path, env_steps: u64) -> io::Result<Self> {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("events.out.tfevents.") && name.ends_with(".brasa") {
                cut(&path, env_steps)?;
            }
        }
        let mut seconds = seconds_since_1970() as u64;
        let mut path;
        // A run that is resumed within the same second needs another file.
        loop {
            path = dir.join(format!("events.out.tfevents.{seconds:010}.brasa"));
            if !path.exists() {
                break;
            }
            seconds += 1;
        }
        let file = OpenOptions::new().create_new(true).write(true).open(path)?;
        let mut sink = Self { file: BufWriter::new(file) };
        let mut event = field_f64(1, seconds_since_1970());
        event.extend(field_bytes(3, b"brain.Event:2"));
        sink.record(&event)?;
        sink.file.flush()?;
        Ok(sink)
    }

    fn record(&mut self, data: &[u8]) -> io::Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        self.file.write_all(&length)?;
        self.file.write_all(&masked_crc(&length).to_le_bytes())?;
        self.file.write_all(data)?;
        self.file.write_all(&masked_crc(data).to_le_bytes())
    }
}

impl Sink for TensorBoard {
    fn scalar(&mut self, env_steps: u64, name: &str, value: f64) -> Result<(), SinkError> {
        let mut scalar = field_bytes(1, name.as_bytes());
        scalar.push(2 << 3 | 5);
        scalar.extend((value as f32).to_le_bytes());
        let summary = field_bytes(1, &scalar);
        let mut event = field_f64(1, seconds_since_1970());
        event.push(2 << 3);
        event.extend(varint(env_steps));
        event.extend(field_bytes(5, &summary));
        Ok(self.record(&event)?)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(self.file.flush()?)
    }
}

/// Truncates a file before the first record that is incomplete or belongs to a later step.
fn cut(path: &Path, env_steps: u64) -> io::Result<()> {
    let bytes = std::fs::read(path)?;
    let mut whole = 0;
    while let Some(data) = record_at(&bytes[whole..]).filter(|data| step_of(data) <= env_steps) {
        whole += data.len() + 16;
    }
    match whole < bytes.len() {
        true => OpenOptions::new().write(true).open(path)?.set_len(whole as u64),
        false => Ok(()),
    }
}

/// The data of the record at the start of `bytes`, if it is complete.
fn record_at(bytes: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    let data = bytes.get(12..length.checked_add(12)?)?;
    let crc = bytes.get(12 + length..16 + length)?;
    (crc == masked_crc(data).to_le_bytes()).then_some(data)
}

/// The step of an event of this sink: it follows 9 bytes with the time. The first event of a file has none, which gives 0.
fn step_of(event: &[u8]) -> u64 {
    let varint = event.get(9..).and_then(|rest| rest.strip_prefix(&[2 << 3])).unwrap_or_default();
    let end = varint.iter().position(|byte| byte & 0x80 == 0).map_or(0, |last| last + 1);
    varint[..end.min(10)].iter().rev().fold(0, |step, byte| step << 7 | u64::from(byte & 0x7f))
}

fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn field_f64(number: u8, value: f64) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 1];
    bytes.extend(value.to_le_bytes());
    bytes
}

fn field_bytes(number: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    bytes.extend(varint(value.len() as u64));
    bytes.extend(value);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_masked_crc_32c() {
        // The check value of CRC-32C, masked as TFRecord specifies.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked_crc(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn a_resumed_run_repeats_no_event() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut sink = TensorBoard::create(dir.path(), 0).expect("the directory can be written");
        (1..=4).for_each(|i| sink.scalar(i * 1000, "train/loss", 0.5).expect("the file can be written"));
        sink.flush().expect("the file can be written");
        let path =
            std::fs::read_dir(dir.path()).expect("it is there").next().expect("one file").expect("readable").path();
        // A partial last record, as after a kill.
        let mut bytes = std::fs::read(&path).expect("the file is there");
        bytes.truncate(bytes.len() - 3);
        std::fs::write(&path, &bytes).expect("the file can be written");
        let steps = || {
            let bytes = std::fs::read(&path).expect("the file is there");
            let (mut at, mut steps) = (0, Vec::new());
            while let Some(data) = record_at(&bytes[at..]) {
                steps.push(step_of(data));
                at += data.len() + 16;
            }
            assert_eq!(at, bytes.len(), "nothing torn is left");
            steps
        };
        drop(TensorBoard::create(dir.path(), 10_000).expect("the directory can be written"));
        assert_eq!(steps(), [0, 1000, 2000, 3000]);
        drop(TensorBoard::create(dir.path(), 2000).expect("the directory can be written"));
        assert_eq!(steps(), [0, 1000, 2000]);
    }

    #[test]
    fn every_record_is_framed_and_holds_its_scalar() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut sink = TensorBoard::create(dir.path(), 0).expect("the directory can be written");
        sink.scalar(300, "train/loss", 0.5).expect("the file can be written");
        sink.flush().expect("the file can be written");
        let path = std::fs::read_dir(dir.path()).expect("it is there").next().expect("one file").expect("readable");
        let bytes = std::fs::read(path.path()).expect("the file is there");
        let mut records = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().expect("8 bytes")) as usize;
            assert_eq!(rest[8..12], masked_crc(&rest[..8]).to_le_bytes());
            let data = &rest[12..12 + length];
            assert_eq!(rest[12 + length..16 + length], masked_crc(data).to_le_bytes());
            records.push(data.to_vec());
            rest = &rest[16 + length..];
        }
        assert_eq!(records.len(), 2);
        assert!(records[0].ends_with(b"brain.Event:2"));
        // Step 300 as a varint, the tag, and 0.5 as a little-endian f32 after the key of field 2.
        let (step, tag, value) = (&[0x10, 0xac, 0x02][..], &b"train/loss"[..], &[0x15, 0, 0, 0, 0x3f][..]);
        for part in [step, tag, value] {
            assert!(records[1].windows(part.len()).any(|window| window == part), "{part:?} in {:?}", records[1]);
        }
    }
}
