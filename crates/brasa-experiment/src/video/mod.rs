//! Videos of episodes, as animated GIF or WebP, and clips for the player of a page.

mod clip;
mod gif;
mod webp;

use std::io::{Seek, Write};
use std::path::Path;

use brasa_env::Frame;
use brasa_train::is_standard_output;

use crate::ExperimentError;

pub(crate) use clip::{Clip, Limits};

/// Format of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Gif,
    WebP,
}

impl Format {
    /// The format that the ending of `path` names. Standard output has no ending; it gets a GIF.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for another ending.
    pub fn of(path: &Path) -> Result<Self, ExperimentError> {
        if is_standard_output(path) {
            return Ok(Self::Gif);
        }
        match path.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("gif") => Ok(Self::Gif),
            Some("webp") => Ok(Self::WebP),
            _ => Err(ExperimentError::Input(format!(
                "--video: the file must end in .gif or .webp, got {}",
                path.display()
            ))),
        }
    }
}

/// A part of a frame, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    left: u32,
    top: u32,
    width: u32,
    height: u32,
}

impl Area {
    /// The bytes of each row of the area in `frame`.
    fn rows(self, frame: &Frame) -> impl Iterator<Item = &[u8]> {
        (self.top..self.top + self.height).map(move |y| {
            let begin = 3 * (y as usize * frame.width() as usize + self.left as usize);
            &frame.rgb()[begin..begin + 3 * self.width as usize]
        })
    }
}

/// Writes the frames of a format.
trait Encoder<W> {
    /// Units of durations in a second.
    fn ticks_per_sec(&self) -> f64;

    /// Longest duration of a frame, in ticks.
    fn most_ticks(&self) -> f64;

    /// Offsets of areas are multiples of this number.
    fn alignment(&self) -> u32;

    /// Adds a frame that differs from the one before in `area` only, where it has the pixels `rgb`.
    fn add(&mut self, area: Area, rgb: &[u8], ticks: u32) -> Result<(), ExperimentError>;

    /// Ends the file.
    fn finish(self: Box<Self>) -> Result<W, ExperimentError>;
}

/// A video that is encoded frame by frame. It keeps one frame in memory.
pub(crate) struct Video<W> {
    state: State<W>,
    format: Format,
    /// The last frame.
    last: Option<Frame>,
    n_frames: u64,
    secs: f64,
}

enum State<W> {
    /// Before the first frame, whose size is that of the video.
    Empty(W),
    Encoding(Box<dyn Encoder<W>>),
    /// The encoder could not be made.
    Failed,
}

impl<W: Write + Seek + 'static> Video<W> {
    /// A video without frames in `out`.
    pub fn new(out: W, format: Format) -> Self {
        Self { state: State::Empty(out), format, last: None, n_frames: 0, secs: 0.0 }
    }

    /// Adds a frame that is shown for `secs`.
    ///
    /// # Errors
    /// [`ExperimentError::Failed`] for a frame of another size than the first one, or if it cannot be written.
    pub fn add(&mut self, frame: Frame, secs: f64) -> Result<(), ExperimentError> {
        let size = (frame.width(), frame.height());
        check_size(self.size(), &frame, self.n_frames)?;
        if let State::Empty(_) = self.state
            && let State::Empty(out) = std::mem::replace(&mut self.state, State::Failed)
        {
            self.state = State::Encoding(match self.format {
                Format::Gif => Box::new(gif::Gif::new(out, size.0, size.1)?),
                Format::WebP => Box::new(webp::WebP::new(out, size.0, size.1)?),
            });
        }
        let State::Encoding(encoder) = &mut self.state else { return Err(incomplete()) };
        let area = changed(self.last.as_ref(), &frame, encoder.alignment());
        let rgb: Vec<u8> = area.rows(&frame).flatten().copied().collect();
        // Durations are rounded, but their sum is not.
        let ticks_at = |secs: f64| (secs * encoder.ticks_per_sec()).round();
        let ticks = (ticks_at(self.secs + secs) - ticks_at(self.secs)).clamp(1.0, encoder.most_ticks()) as u32;
        encoder.add(area, &rgb, ticks)?;
        self.secs += secs;
        self.n_frames += 1;
        self.last = Some(frame);
        Ok(())
    }

    /// Number of frames so far.
    pub fn n_frames(&self) -> u64 {
        self.n_frames
    }

    /// Width and height in pixels, after the first frame.
    pub fn size(&self) -> Option<(u32, u32)> {
        self.last.as_ref().map(|frame| (frame.width(), frame.height()))
    }

    /// Ends the video.
    ///
    /// # Errors
    /// [`ExperimentError::Failed`] without a frame, or if the end cannot be written.
    pub fn finish(self) -> Result<W, ExperimentError> {
        match self.state {
            State::Encoding(encoder) => encoder.finish(),
            _ => Err(incomplete()),
        }
    }
}

/// Whether frame `index` has the size of the first one.
fn check_size(first: Option<(u32, u32)>, frame: &Frame, index: u64) -> Result<(), ExperimentError> {
    let size = (frame.width(), frame.height());
    match first.filter(|first| *first != size) {
        None => Ok(()),
        Some(first) => Err(ExperimentError::Failed(format!(
            "all frames of a video must have the size of the first one, {}x{} pixels, got {}x{} at frame {index}",
            first.0, first.1, size.0, size.1
        ))),
    }
}

fn incomplete() -> ExperimentError {
    ExperimentError::Failed("the video has no frames".into())
}

/// The smallest area outside which `frame` equals `last`, with offsets that are multiples of `alignment`; one pixel if the frames are equal.
fn changed(last: Option<&Frame>, frame: &Frame, alignment: u32) -> Area {
    let (width, height) = (frame.width() as usize, frame.height() as usize);
    let Some(last) = last else {
        return Area { left: 0, top: 0, width: frame.width(), height: frame.height() };
    };
    let (mut left, mut right, mut top, mut bottom) = (width, 0, height, 0);
    let rows = frame.rgb().chunks_exact(3 * width).zip(last.rgb().chunks_exact(3 * width));
    for (y, (row, last)) in rows.enumerate().filter(|(_, (row, last))| row != last) {
        let differs = |x: &usize| row[3 * x..3 * x + 3] != last[3 * x..3 * x + 3];
        left = (0..width).find(differs).map_or(left, |x| left.min(x));
        right = (0..width).rfind(differs).map_or(right, |x| right.max(x));
        top = top.min(y);
        bottom = y;
    }
    if top == height {
        return Area { left: 0, top: 0, width: 1, height: 1 };
    }
    let aligned = |offset: usize| offset as u32 / alignment * alignment;
    let (left, top) = (aligned(left), aligned(top));
    Area { left, top, width: right as u32 + 1 - left, height: bottom as u32 + 1 - top }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use ::gif::{ColorOutput, DecodeOptions};
    use image_webp::WebPDecoder;

    use super::*;

    /// A frame of 7 x 5 pixels with a red pixel on a ground of many colors.
    fn frame(x: usize, y: usize) -> Frame {
        let mut rgb: Vec<u8> = (0..7 * 5).flat_map(|pixel: u8| [3 * pixel, 250 - pixel, 7]).collect();
        rgb[3 * (y * 7 + x)..][..3].copy_from_slice(&[255, 0, 0]);
        Frame::new(7, 5, rgb).expect("it is valid")
    }

    fn frames() -> Vec<Frame> {
        [(0, 0), (6, 4), (6, 4), (3, 1), (5, 3)].map(|(x, y)| frame(x, y)).into()
    }

    fn encoded(format: Format, secs: f64) -> Vec<u8> {
        let mut video = Video::new(Cursor::new(Vec::new()), format);
        frames().into_iter().for_each(|frame| video.add(frame, secs).expect("it fits"));
        assert_eq!((video.n_frames(), video.size()), (5, Some((7, 5))));
        video.finish().expect("it is complete").into_inner()
    }

    #[test]
    fn a_gif_has_the_frames() {
        let bytes = encoded(Format::Gif, 1.0 / 30.0);
        let mut options = DecodeOptions::new();
        options.set_color_output(ColorOutput::RGBA);
        let mut decoder = options.read_info(bytes.as_slice()).expect("it is a GIF");
        let (mut canvas, mut delays) = (vec![0; 3 * 7 * 5], Vec::new());
        for expected in frames() {
            let part = decoder.read_next_frame().expect("it is a frame").expect("there is one more");
            delays.push(part.delay);
            for (i, pixel) in part.buffer.chunks_exact(4).enumerate() {
                let (x, y) = (i % usize::from(part.width), i / usize::from(part.width));
                let at = 3 * ((usize::from(part.top) + y) * 7 + usize::from(part.left) + x);
                canvas[at..at + 3].copy_from_slice(&pixel[..3]);
            }
            assert_eq!(canvas, expected.rgb());
        }
        assert!(decoder.read_next_frame().expect("it ends").is_none());
        // A sixth of a second, in hundredths.
        assert_eq!(delays, [3, 4, 3, 3, 4]);
    }

    #[test]
    fn a_webp_has_the_frames() {
        let bytes = encoded(Format::WebP, 1.0 / 30.0);
        assert_eq!(bytes.len(), 8 + u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes")) as usize);
        let mut decoder = WebPDecoder::new(Cursor::new(bytes)).expect("it is a WebP");
        assert_eq!((decoder.num_frames(), decoder.dimensions(), decoder.has_alpha()), (5, (7, 5), false));
        assert_eq!(decoder.loop_duration(), 167);
        let mut canvas = vec![0; 3 * 7 * 5];
        for expected in frames() {
            decoder.read_frame(&mut canvas).expect("there is one more");
            assert_eq!(canvas, expected.rgb());
        }
    }

    #[test]
    fn durations_are_limited() {
        for format in [Format::Gif, Format::WebP] {
            encoded(format, 1e9);
            encoded(format, 1e-9);
        }
    }

    #[test]
    fn frames_of_another_size_and_videos_without_frames_are_errors() {
        let mut video = Video::new(Cursor::new(Vec::new()), Format::Gif);
        video.add(frame(0, 0), 0.1).expect("it fits");
        let other = Frame::new(7, 4, vec![0; 84]).expect("it is valid");
        let error = video.add(other, 0.1).expect_err("it is lower").to_string();
        assert_eq!(error, "all frames of a video must have the size of the first one, 7x5 pixels, got 7x4 at frame 1");
        let empty = Video::new(Cursor::new(Vec::new()), Format::WebP);
        assert_eq!(empty.finish().expect_err("it is empty").to_string(), "the video has no frames");
    }

    #[test]
    fn the_format_is_that_of_the_ending() {
        assert_eq!(Format::of(Path::new("a/b.GIF")).expect("it is known"), Format::Gif);
        assert_eq!(Format::of(Path::new("b.gif.webp")).expect("it is known"), Format::WebP);
        assert_eq!(Format::of(Path::new("-")).expect("it is known"), Format::Gif);
        for other in ["b.mp4", "gif", ".gif", "b."] {
            let error = Format::of(Path::new(other)).expect_err("it is not known").to_string();
            assert_eq!(error, format!("--video: the file must end in .gif or .webp, got {other}"));
        }
    }
}
