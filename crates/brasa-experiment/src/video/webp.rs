//! Animated WebP: a container around frames without loss.
//!
//! The container is that of [RFC 9649](https://www.rfc-editor.org/rfc/rfc9649#section-2.7): `image-webp` encodes single pictures.

use std::io::{self, Seek, SeekFrom, Write};

use image_webp::{ColorType, WebPEncoder};

use super::{Area, Encoder};
use crate::ExperimentError;

/// Bytes before the chunks of a file: `RIFF`, its size, `WEBP`.
const FILE_HEAD: usize = 12;
/// Bytes before the content of a chunk: its name, its size.
const CHUNK_HEAD: usize = 8;
/// Flag of an animation in the chunk `VP8X`.
const ANIMATED: u8 = 0b10;
/// Flag of a frame that replaces the pixels of its area.
const REPLACES: u8 = 0b10;

pub(super) struct WebP<W> {
    out: W,
    /// Bytes after `RIFF` and its size.
    size: u64,
}

impl<W: Write + Seek> WebP<W> {
    pub fn new(mut out: W, width: u32, height: u32) -> Result<Self, ExperimentError> {
        out.write_all(b"RIFF\0\0\0\0WEBP").map_err(failed)?;
        let mut video = Self { out, size: 4 };
        let mut about = vec![ANIMATED, 0, 0, 0];
        about.extend([width - 1, height - 1].into_iter().flat_map(three_bytes));
        video.chunk(b"VP8X", &[&about])?;
        // The color of the ground, which no frame shows, and the number of repetitions, 0 for no end.
        video.chunk(b"ANIM", &[&[255; 4], &[0; 2]])?;
        Ok(video)
    }

    /// Writes a chunk with the content `parts`.
    fn chunk(&mut self, name: &[u8; 4], parts: &[&[u8]]) -> Result<(), ExperimentError> {
        let size = parts.iter().map(|part| part.len()).sum::<usize>();
        let padding: &[u8] = if size % 2 == 1 { &[0] } else { &[] };
        self.size += (CHUNK_HEAD + size + padding.len()) as u64;
        if self.size > u64::from(u32::MAX) {
            let message = "a WebP file has at most 4 GiB: record fewer episodes, or a .gif";
            return Err(ExperimentError::Failed(message.into()));
        }
        let head = [name.as_slice(), &(size as u32).to_le_bytes()].concat();
        let all = [head.as_slice()].into_iter().chain(parts.iter().copied()).chain([padding]);
        all.into_iter().try_for_each(|part| self.out.write_all(part)).map_err(failed)
    }
}

impl<W: Write + Seek> Encoder<W> for WebP<W> {
    fn ticks_per_sec(&self) -> f64 {
        1000.0
    }

    fn most_ticks(&self) -> f64 {
        f64::from((1 << 24) - 1)
    }

    fn alignment(&self) -> u32 {
        2
    }

    fn add(&mut self, area: Area, rgb: &[u8], ticks: u32) -> Result<(), ExperimentError> {
        let mut picture = Vec::new();
        WebPEncoder::new(&mut picture)
            .encode(rgb, area.width, area.height, ColorType::Rgb8)
            .map_err(|error| ExperimentError::Failed(format!("cannot encode the video: {error}")))?;
        let mut head: Vec<u8> = [area.left / 2, area.top / 2, area.width - 1, area.height - 1, ticks]
            .into_iter()
            .flat_map(three_bytes)
            .collect();
        head.push(REPLACES);
        self.chunk(b"ANMF", &[&head, &picture[FILE_HEAD..]])
    }

    fn finish(mut self: Box<Self>) -> Result<W, ExperimentError> {
        let size = (self.size as u32).to_le_bytes();
        self.out.seek(SeekFrom::Start(4)).and_then(|_| self.out.write_all(&size)).map_err(failed)?;
        self.out.seek(SeekFrom::End(0)).and_then(|_| self.out.flush()).map_err(failed)?;
        Ok(self.out)
    }
}

/// A number below 2^24, little-endian.
fn three_bytes(number: u32) -> [u8; 3] {
    let [low, middle, high, _] = number.to_le_bytes();
    [low, middle, high]
}

fn failed(error: io::Error) -> ExperimentError {
    ExperimentError::Failed(format!("cannot encode the video: {error}"))
}
