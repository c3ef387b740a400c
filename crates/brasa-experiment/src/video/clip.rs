//! The pictures of an episode as few bytes, for the player of a page.
//!
//! A stream of zlib has the pictures one after the other, then the colors. A picture is the area in which it differs from the one before: left, top,
//! width and height as 16 bits, little-endian, then the number of the color of each pixel. A number below 192 is a byte. For others, `192 + n / 256`
//! and `n % 256` are two bytes, where `n` is the number minus 192.

use std::collections::HashMap;
use std::io::{self, Write};

use brasa_env::{Controller, EnvError, EnvSpec, Episode, Frame, RenderedEnv, Shown, play_rendered};
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::{changed, check_size};
use crate::ExperimentError;

/// Numbers of colors that are one byte.
const SHORT: usize = 192;
/// Most colors of a clip. Rounded colors have 5, 5 and 4 bits, which are not more.
const MOST_COLORS: usize = SHORT + (256 - SHORT) * 256;
/// Pictures are halved only if they keep so many pixels.
const LEAST_PIXELS: u32 = 30_000;

/// The size that a clip may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub frames: usize,
    pub bytes: usize,
}

/// Which part of the pictures of an episode is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detail {
    /// Every `stride`-th step has a picture.
    pub stride: u64,
    /// Width and height are divided by this number.
    pub scale: u32,
    /// Colors are rounded.
    pub is_rounded: bool,
}

/// The pictures of an episode.
#[derive(Debug)]
pub(crate) struct Clip {
    pub width: u32,
    pub height: u32,
    pub n_colors: usize,
    /// The stream of pictures and colors.
    pub stream: Vec<u8>,
    /// The step of each picture, and the return up to it.
    pub steps: Vec<u64>,
    pub returns: Vec<f64>,
    pub detail: Detail,
    /// Duration of a step in a video.
    pub step_secs: f64,
    pub episode: Episode,
}

fn not_compressed(error: io::Error) -> ExperimentError {
    ExperimentError::Failed(format!("cannot compress the pictures: {error}"))
}

/// Why a recording ended before the episode.
enum Stop {
    TooManyFrames,
    TooManyColors,
    TooManyBytes,
    Failed(ExperimentError),
}

impl From<EnvError> for Stop {
    fn from(error: EnvError) -> Self {
        Self::Failed(ExperimentError::of_running(error))
    }
}

impl From<ExperimentError> for Stop {
    fn from(error: ExperimentError) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(not_compressed(error))
    }
}

impl Clip {
    /// Records the first episode of `env` with a controller and `seed`, which has about `length` steps. If the clip would exceed `limits`, the
    /// episode is recorded again with less detail: rounded colors, then smaller pictures, then fewer of them.
    ///
    /// # Errors
    /// Those of the environment and the controller, and [`ExperimentError::Failed`] for pictures of several sizes.
    pub fn record(
        env: &mut dyn RenderedEnv,
        make: impl Fn(&EnvSpec) -> Box<dyn Controller>,
        seed: u64,
        length: u64,
        limits: Limits,
    ) -> Result<Self, ExperimentError> {
        let stride = length.div_ceil(limits.frames as u64 - 1).max(1);
        let mut detail = Detail { stride, scale: 1, is_rounded: false };
        loop {
            let mut writer = Writer::new(detail, limits);
            let mut controller = make(env.batch().spec());
            let add = |env: &mut dyn RenderedEnv, shown: &Shown<'_>, is_last| writer.add(env, shown, is_last);
            let episode = play_rendered(env, &mut *controller, seed, add);
            let pixels = writer.pixels();
            match episode {
                Ok(episode) => return writer.finish(episode, env.frame_secs()),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::TooManyColors) => detail.is_rounded = true,
                Err(Stop::TooManyBytes) if pixels / 4 >= LEAST_PIXELS => detail.scale *= 2,
                Err(Stop::TooManyBytes | Stop::TooManyFrames) => detail.stride *= 2,
            }
        }
    }
}

/// A clip during recording.
struct Writer {
    detail: Detail,
    limits: Limits,
    encoder: ZlibEncoder<Vec<u8>>,
    numbers: HashMap<[u8; 3], usize>,
    colors: Vec<u8>,
    /// Width and height of the pictures of the environment.
    size: Option<(u32, u32)>,
    last: Option<Frame>,
    steps: Vec<u64>,
    returns: Vec<f64>,
    n_steps: u64,
}

impl Writer {
    fn new(detail: Detail, limits: Limits) -> Self {
        Self {
            detail,
            limits,
            encoder: ZlibEncoder::new(Vec::new(), Compression::best()),
            numbers: HashMap::new(),
            colors: Vec::new(),
            size: None,
            last: None,
            steps: Vec::new(),
            returns: Vec::new(),
            n_steps: 0,
        }
    }

    /// Pixels of a picture.
    fn pixels(&self) -> u32 {
        self.last.as_ref().map_or(0, |frame| frame.width() * frame.height())
    }

    /// Adds the state of the next step, if it is one of those with a picture.
    fn add(&mut self, env: &mut dyn RenderedEnv, shown: &Shown<'_>, is_last: bool) -> Result<(), Stop> {
        let step = self.n_steps;
        self.n_steps += 1;
        if !is_last && !step.is_multiple_of(self.detail.stride) {
            return Ok(());
        }
        if self.steps.len() == self.limits.frames {
            return Err(Stop::TooManyFrames);
        }
        let frame = env.render(shown)?;
        check_size(self.size, &frame, self.steps.len() as u64)?;
        self.size = Some((frame.width(), frame.height()));
        self.steps.push(step);
        self.returns.push(shown.episode_return);
        let frame = self.detail.reduced(frame)?;
        let area = changed(self.last.as_ref(), &frame, 1);
        let mut bytes: Vec<u8> = [area.left, area.top, area.width, area.height]
            .into_iter()
            .flat_map(|side| (side as u16).to_le_bytes())
            .collect();
        // Most neighbors have one color.
        let mut before = None;
        for pixel in area.rows(&frame).flat_map(|row| row.as_chunks::<3>().0) {
            let number = match before {
                Some((color, number)) if color == *pixel => number,
                _ => {
                    let next = self.numbers.len();
                    let number = *self.numbers.entry(*pixel).or_insert(next);
                    if number == next {
                        self.colors.extend(pixel);
                    }
                    number
                }
            };
            before = Some((*pixel, number));
            match number.checked_sub(SHORT) {
                None => bytes.push(number as u8),
                Some(rest) => bytes.extend([(SHORT + rest / 256).min(255) as u8, (rest % 256) as u8]),
            }
        }
        self.last = Some(frame);
        if self.numbers.len() > MOST_COLORS {
            return Err(Stop::TooManyColors);
        }
        self.encoder.write_all(&bytes)?;
        match self.encoder.get_ref().len() > self.limits.bytes && self.steps.len() > 2 {
            true => Err(Stop::TooManyBytes),
            false => Ok(()),
        }
    }

    fn finish(mut self, episode: Episode, step_secs: f64) -> Result<Clip, ExperimentError> {
        self.encoder.write_all(&self.colors).map_err(not_compressed)?;
        let stream = self.encoder.finish().map_err(not_compressed)?;
        let (width, height) = self.last.map(|frame| (frame.width(), frame.height())).unwrap_or_default();
        let (steps, returns, n_colors) = (self.steps, self.returns, self.numbers.len());
        Ok(Clip { width, height, n_colors, stream, steps, returns, detail: self.detail, step_secs, episode })
    }
}

impl Detail {
    /// A picture with this detail: means of squares of pixels, then rounded colors.
    fn reduced(self, frame: Frame) -> Result<Frame, ExperimentError> {
        if self.scale == 1 && !self.is_rounded {
            return Ok(frame);
        }
        let (scale, row) = (self.scale as usize, 3 * frame.width() as usize);
        let (width, height) = (frame.width() as usize / scale, frame.height() as usize / scale);
        let mut rgb = Vec::with_capacity(3 * width * height);
        for (y, x, channel) in
            (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |channel| (y, x, channel))))
        {
            let square = (0..scale * scale).map(|i| (y * scale + i / scale) * row + 3 * (x * scale + i % scale));
            let sum: usize = square.map(|at| usize::from(frame.rgb()[at + channel])).sum();
            let mean = (sum / (scale * scale)) as u8;
            rgb.push(if self.is_rounded { rounded(mean, channel) } else { mean });
        }
        Frame::new(width as u32, height as u32, rgb).map_err(ExperimentError::input)
    }
}

/// The nearest of 32 values of red and green, or of 16 values of blue.
fn rounded(value: u8, channel: usize) -> u8 {
    let most = if channel == 2 { 15 } else { 31 };
    let level = (u32::from(value) * most + 127) / 255;
    (level * 255 / most) as u8
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use brasa_env::wrappers::TimeLimit;
    use brasa_env::{BatchSlabs, Env, EnvRng, EnvVec, RenderedBatch, Space, Step};
    use flate2::read::ZlibDecoder;
    use ndarray::{ArrayView1, ArrayViewMut1, ArrayViewMut2};

    use super::*;

    /// Counts its steps.
    #[derive(Default)]
    struct Count(f32);

    impl Env for Count {
        type State = f32;
        fn obs_space(&self) -> Space {
            Space::named_box([("step", 0.0, 1e6)])
        }
        fn action_space(&self) -> Space {
            Space::uniform_box(-1.0, 1.0, ["none"])
        }
        fn reset(&mut self, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
            self.0 = 0.0;
            obs[0] = 0.0;
        }
        fn step(&mut self, _: ArrayView1<f32>, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
            self.0 += 1.0;
            obs[0] = self.0;
            Step { reward: 0.5, ..Step::default() }
        }
        fn state(&self) -> f32 {
            self.0
        }
        fn set_state(&mut self, state: f32) {
            self.0 = state;
        }
    }

    /// The pictures in a clip, as a page reads them.
    fn pictures(clip: &Clip) -> Vec<Vec<u8>> {
        let mut stream = Vec::new();
        ZlibDecoder::new(clip.stream.as_slice()).read_to_end(&mut stream).expect("it is a stream of zlib");
        let colors = stream.split_off(stream.len() - 3 * clip.n_colors);
        let mut bytes = stream.into_iter();
        let (width, height) = (clip.width as usize, clip.height as usize);
        let mut canvas = vec![0; 3 * width * height];
        let mut all = Vec::new();
        for _ in &clip.steps {
            let mut next = || usize::from(bytes.next().expect("there is more"));
            let [left, top, wide, high] = [(); 4].map(|()| next() + 256 * next());
            for at in (top..top + high).flat_map(|y| (left..left + wide).map(move |x| 3 * (y * width + x))) {
                let number = match next() {
                    short if short < SHORT => short,
                    long => SHORT + 256 * (long - SHORT) + next(),
                };
                canvas[at..at + 3].copy_from_slice(&colors[3 * number..3 * number + 3]);
            }
            all.push(canvas.clone());
        }
        assert_eq!(bytes.next(), None);
        all
    }

    /// Records `length` steps with the pictures `render` of a step.
    fn clip(length: u32, limits: Limits, render: fn(u32) -> Frame) -> Clip {
        let batch = TimeLimit::new(EnvVec::new(0..1, |_| Count::default()).expect("one environment"), length);
        let batch = batch.expect("a limit");
        let shown = move |shown: &Shown<'_>| Ok(render(shown.obs[[0, 0]] as u32));
        let mut env = RenderedBatch::new(batch, 0.1, shown).expect("it is one environment");
        let idle = |_: &BatchSlabs, _: ArrayViewMut2<f32>| Ok::<(), EnvError>(());
        Clip::record(&mut env, |_| Box::new(idle), 0, u64::from(length), limits).expect("it can be recorded")
    }

    const LARGE: Limits = Limits { frames: 500, bytes: 1 << 20 };

    /// A red pixel on 400 x 200 pixels of many colors.
    fn moving(step: u32) -> Frame {
        let mut rgb: Vec<u8> = (0..80_000u32).flat_map(|i| [(i % 40) as u8 * 6, (i / 8000) as u8 * 20, 7]).collect();
        rgb[3 * (step as usize * 401 % 80_000)..][..3].copy_from_slice(&[255, 0, 0]);
        Frame::new(400, 200, rgb).expect("it is valid")
    }

    /// Noise.
    fn noise(step: u32) -> Frame {
        let mut state = step.wrapping_mul(2_654_435_761) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        Frame::new(400, 400, (0..480_000).map(|_| next()).collect()).expect("it is valid")
    }

    #[test]
    fn a_clip_has_the_pixels_of_every_step_and_the_return() {
        let clip = clip(30, LARGE, moving);
        assert_eq!(clip.detail, Detail { stride: 1, scale: 1, is_rounded: false });
        assert_eq!(clip.steps, (0..=30).collect::<Vec<_>>());
        assert_eq!((clip.returns[0], clip.returns[30], clip.episode.episode_return), (0.0, 15.0, 15.0));
        // More colors than a byte counts.
        assert!(clip.n_colors > 256, "{}", clip.n_colors);
        let expected: Vec<Vec<u8>> = (0..=30).map(|step| moving(step).rgb().to_vec()).collect();
        assert!(pictures(&clip) == expected);
    }

    #[test]
    fn long_episodes_have_fewer_pictures_and_the_last_one() {
        let clip = clip(100, Limits { frames: 12, ..LARGE }, moving);
        assert_eq!(clip.detail, Detail { stride: 10, scale: 1, is_rounded: false });
        assert_eq!(clip.steps, (0..=100).step_by(10).collect::<Vec<_>>());
        assert!(pictures(&clip)[10] == moving(100).rgb());
    }

    #[test]
    fn photographs_lose_colors_then_size_then_steps() {
        let limits = Limits { bytes: 200_000, ..LARGE };
        let clip = clip(8, limits, noise);
        assert_eq!(clip.detail, Detail { stride: 4, scale: 2, is_rounded: true });
        assert_eq!((clip.width, clip.height, clip.steps.as_slice()), (200, 200, &[0, 4, 8][..]));
        assert!(clip.n_colors <= MOST_COLORS && clip.stream.len() < 2 * limits.bytes, "{}", clip.stream.len());
        let first = &pictures(&clip)[0];
        let frame = noise(0);
        for at in [0, 1, 2, 3 * 200 * 199 + 3 * 199] {
            let (y, x, channel) = (at / 600, at % 600 / 3, at % 3);
            let square = [0, 3, 1200, 1203].map(|i| u32::from(frame.rgb()[1200 * 2 * y + 6 * x + channel + i]));
            let mean = (square.iter().sum::<u32>() / 4) as u8;
            assert_eq!(first[at], rounded(mean, channel));
            assert!(first[at].abs_diff(mean) <= 9, "{} for {mean}", first[at]);
        }
    }
}
