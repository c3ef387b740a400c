//! Animated GIF.

use std::io::Write;

use gif::{EncodingError, Repeat};

use super::{Area, Encoder};
use crate::ExperimentError;

/// How carefully colors are chosen for areas with more than 256 colors: from 1 (slow) to 30.
const SPEED: i32 = 10;

pub(super) struct Gif<W: Write>(gif::Encoder<W>);

impl<W: Write> Gif<W> {
    /// # Panics
    /// If a side has more than 65535 pixels.
    pub fn new(out: W, width: u32, height: u32) -> Result<Self, ExperimentError> {
        let mut encoder = gif::Encoder::new(out, pixels(width), pixels(height), &[]).map_err(failed)?;
        encoder.set_repeat(Repeat::Infinite).map_err(failed)?;
        Ok(Self(encoder))
    }
}

impl<W: Write> Encoder<W> for Gif<W> {
    fn ticks_per_sec(&self) -> f64 {
        100.0
    }

    fn most_ticks(&self) -> f64 {
        f64::from(u16::MAX)
    }

    fn alignment(&self) -> u32 {
        1
    }

    fn add(&mut self, area: Area, rgb: &[u8], ticks: u32) -> Result<(), ExperimentError> {
        let frame = gif::Frame::from_rgb_speed(pixels(area.width), pixels(area.height), rgb, SPEED);
        let frame = gif::Frame { left: pixels(area.left), top: pixels(area.top), delay: pixels(ticks), ..frame };
        self.0.write_frame(&frame).map_err(failed)
    }

    fn finish(self: Box<Self>) -> Result<W, ExperimentError> {
        self.0.into_inner().map_err(failed)
    }
}

fn pixels(count: u32) -> u16 {
    count.try_into().expect("frames have at most 4096 pixels per side, and delays are limited")
}

fn failed(error: EncodingError) -> ExperimentError {
    ExperimentError::Failed(format!("cannot encode the video: {error}"))
}
