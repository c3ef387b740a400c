//! Frames of episodes, for videos.

use ndarray::ArrayView2;

use crate::play::Playing;
use crate::{Controller, EnvBatch, EnvError, Episode, InvalidField, MAX_EPISODE_STEPS, field};

/// A picture in 8-bit RGB.
///
/// ```
/// use brasa_env::Frame;
///
/// // A gray gradient of 256 pixels in one row.
/// let rgb = (0..=255).flat_map(|level| [level; 3]).collect();
/// let frame = Frame::new(256, 1, rgb)?;
/// assert_eq!(&frame.rgb()[3 * 100..][..3], [100, 100, 100]);
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Frame {
    /// Largest width and height, in pixels.
    pub const MAX_SIDE: u32 = 4096;

    /// A frame of `height` rows with `width` pixels, each of which has the bytes red, green and blue in `rgb`.
    ///
    /// # Errors
    /// [`InvalidField`] unless width and height are in `[1, 4096]`, and for another number of bytes than `3 * width * height`.
    ///
    /// ```
    /// use brasa_env::Frame;
    ///
    /// let red = Frame::new(2, 1, vec![255, 0, 0, 255, 0, 0])?;
    /// assert_eq!((red.width(), red.height()), (2, 1));
    /// let error = Frame::new(5000, 1, Vec::new()).unwrap_err().to_string();
    /// assert_eq!(error, "`frame width` must be in [1, 4096] pixels, got 5000");
    /// # Ok::<(), brasa_env::InvalidField>(())
    /// ```
    pub fn new(width: u32, height: u32, rgb: Vec<u8>) -> Result<Self, InvalidField> {
        for (name, side) in [("frame width", width), ("frame height", height)] {
            field::rule((1..=Self::MAX_SIDE).contains(&side), name, "must be in [1, 4096] pixels", side)?;
        }
        let bytes = 3 * width as usize * height as usize;
        field::rule(
            rgb.len() == bytes,
            "frame bytes",
            format!("must be {bytes} for {width}x{height} pixels"),
            rgb.len(),
        )?;
        Ok(Self { width, height, rgb })
    }

    /// Pixels per row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Number of rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Red, green and blue of each pixel, row by row from the top.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }
}

/// What a reset or a step led to, before an automatic reset.
///
/// ```
/// use brasa_env::{Frame, Shown};
/// use ndarray::array;
///
/// /// One pixel, which is white where the first observation is above 0.
/// fn render(shown: &Shown<'_>) -> Result<Frame, brasa_env::InvalidField> {
///     Frame::new(1, 1, vec![if shown.obs[[0, 0]] > 0.0 { 255 } else { 0 }; 3])
/// }
///
/// let (obs, shared) = (array![[0.5]], array![[]]);
/// let shown = Shown { obs: obs.view(), shared: shared.view(), actions: None, episode_return: 0.0 };
/// assert_eq!(render(&shown)?.rgb(), [255, 255, 255]);
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// `[n_agents, obs width - shared width]`: the observations.
    pub obs: ArrayView2<'a, f32>,
    /// `[1, shared width]`: the part of the observation that all agents share.
    pub shared: ArrayView2<'a, f32>,
    /// `[n_agents, action width]`: the actions of the step; `None` after a reset.
    pub actions: Option<ArrayView2<'a, f32>>,
    /// Return of the episode so far.
    pub episode_return: f64,
}

/// One environment that renders its states: see [`Scenario::rendered`](crate::Scenario::rendered).
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvBatch, EnvError, EnvVec, Frame, RenderedEnv, Shown};
///
/// /// A walk as a row of pixels.
/// struct Filmed(EnvVec<Walk>);
///
/// impl RenderedEnv for Filmed {
///     fn batch(&mut self) -> &mut dyn EnvBatch {
///         &mut self.0
///     }
///     fn frame_secs(&self) -> f64 {
///         0.5
///     }
///     fn render(&mut self, shown: &Shown<'_>) -> Result<Frame, EnvError> {
///         let place = shown.obs[[0, 0]].clamp(0.0, 9.0) as usize;
///         Ok(Frame::new(10, 1, (0..30).map(|byte| if byte / 3 == place { 255 } else { 0 }).collect())?)
///     }
/// }
///
/// let mut filmed = Filmed(EnvVec::new(0..1, |_| Walk(0.0))?);
/// assert_eq!(filmed.batch().n_envs(), 1);
/// # Ok::<(), EnvError>(())
/// ```
pub trait RenderedEnv: Send {
    /// The environment, a batch of one.
    fn batch(&mut self) -> &mut dyn EnvBatch;

    /// Duration of a step in a video, in s.
    fn frame_secs(&self) -> f64;

    /// Renders the state after the last reset or step, before an automatic reset. All frames of an environment have one size.
    ///
    /// # Errors
    /// If the environment cannot render it.
    fn render(&mut self, shown: &Shown<'_>) -> Result<Frame, EnvError>;
}

/// A batch of one environment as a [`RenderedEnv`] whose frames are a function of observations and actions.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvError, EnvVec, Frame, RenderedBatch, RenderedEnv, Shown};
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let white = |_: &Shown<'_>| -> Result<Frame, EnvError> { Ok(Frame::new(1, 1, vec![255; 3])?) };
/// let env = RenderedBatch::new(EnvVec::new(0..1, |_| Walk(0.0))?, 0.5, white)?;
/// assert_eq!(env.frame_secs(), 0.5);
/// let error = RenderedBatch::new(EnvVec::new(0..2, |_| Walk(0.0))?, 0.5, white).unwrap_err();
/// assert_eq!(error.to_string(), "`n_envs` must be 1 for a rendered environment, got 2");
/// # Ok::<(), EnvError>(())
/// ```
pub struct RenderedBatch<B, F> {
    batch: B,
    frame_secs: f64,
    render: F,
}

impl<B: std::fmt::Debug, F> std::fmt::Debug for RenderedBatch<B, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenderedBatch")
            .field("frame_secs", &self.frame_secs)
            .field("batch", &self.batch)
            .finish_non_exhaustive()
    }
}

impl<B, F> RenderedBatch<B, F>
where
    B: EnvBatch,
    F: FnMut(&Shown<'_>) -> Result<Frame, EnvError> + Send,
{
    /// The only environment of `batch`, whose states are rendered by `render`, with `frame_secs` seconds for each step.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for another number of environments than 1, and for a duration that is not finite and above 0.
    pub fn new(batch: B, frame_secs: f64, render: F) -> Result<Self, EnvError> {
        field::rule(batch.n_envs() == 1, "n_envs", "must be 1 for a rendered environment", batch.n_envs())?;
        field::positive("frame_secs", frame_secs)?;
        Ok(Self { batch, frame_secs, render })
    }
}

impl<B, F> RenderedEnv for RenderedBatch<B, F>
where
    B: EnvBatch,
    F: FnMut(&Shown<'_>) -> Result<Frame, EnvError> + Send,
{
    fn batch(&mut self) -> &mut dyn EnvBatch {
        &mut self.batch
    }

    fn frame_secs(&self) -> f64 {
        self.frame_secs
    }

    fn render(&mut self, shown: &Shown<'_>) -> Result<Frame, EnvError> {
        (self.render)(shown)
    }
}

/// Runs the first episode of `env` with `seed`, the same as in [`play_episodes`](crate::play_episodes). `each` is called after the reset and
/// after each step, with `true` at the end of the episode. It renders the frames that it needs.
///
/// # Errors
/// Those of the environment, the controller and `each`; [`EnvError::Endless`] as in [`play_episodes`](crate::play_episodes).
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvError, EnvVec, Frame, RenderedBatch, Shown, play_rendered};
///
/// // `Walk` goes on a line from 3 to the goal at 0, and `left` always goes there.
/// let render = |shown: &Shown<'_>| -> Result<Frame, EnvError> {
///     Ok(Frame::new(1, 1, vec![shown.obs[[0, 0]] as u8; 3])?)
/// };
/// let mut env = RenderedBatch::new(EnvVec::new(0..1, |_| Walk(0.0))?, 0.5, render)?;
/// let mut places = Vec::new();
/// play_rendered::<EnvError>(&mut env, &mut left, 0, |env, shown, _| {
///     places.push(env.render(shown)?.rgb()[0]);
///     Ok(())
/// })?;
/// // One frame after the reset, and one after each step.
/// assert_eq!(places, [3, 2, 1, 0]);
/// # Ok::<(), EnvError>(())
/// ```
pub fn play_rendered<E: From<EnvError>>(
    env: &mut (dyn RenderedEnv + '_),
    controller: &mut (dyn Controller + '_),
    seed: u64,
    mut each: impl FnMut(&mut dyn RenderedEnv, &Shown<'_>, bool) -> Result<(), E>,
) -> Result<Episode, E> {
    let mut playing = Playing::start(env.batch(), seed)?;
    let (mut first, mut so_far) = (None, 0.0);
    for step in 0..=MAX_EPISODE_STEPS {
        if step > 0 {
            playing.step(env.batch(), controller)?;
            first = playing.ended.drain(..).next();
            so_far = match &first {
                Some(Episode { episode_return, .. }) => *episode_return,
                None => so_far + f64::from(playing.slabs.reward.sum()) / playing.slabs.reward.len() as f64,
            };
        }
        let (slabs, actions) = (&playing.slabs, playing.actions.view());
        let (obs, shared, actions) = match step {
            0 => (slabs.obs.view(), slabs.shared.view(), None),
            _ => (slabs.next_obs.view(), slabs.next_shared.view(), Some(actions)),
        };
        let shown = Shown { obs, shared, actions, episode_return: so_far };
        each(env, &shown, first.is_some())?;
        if let Some(episode) = first {
            return Ok(episode);
        }
    }
    Err(EnvError::Endless { env: 0, steps: MAX_EPISODE_STEPS }.into())
}
