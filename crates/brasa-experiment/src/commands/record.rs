//! `eval --video`: records episodes of a policy.

use std::io::{BufWriter, Seek, Write};
use std::path::Path;

use brasa_env::{EnvError, Episode, play_rendered};
use brasa_train::{OutputFile, WaitView};
use serde_json::json;

use crate::args::EvalArgs;
use crate::comparison::{TRAINED, distinct, number};
use crate::load::Finished;
use crate::video::{Format, Video};
use crate::{ExperimentError, Registry, TrainConfig, output};

/// Most frames per second: browsers slow down animations with more.
const MOST_FRAMES_PER_SEC: f64 = 50.0;
/// Seconds for which the last frame of an episode is shown at least.
const END_SECS: f64 = 1.0;

/// An error of a recording.
struct RecordError(ExperimentError);

impl From<EnvError> for RecordError {
    fn from(error: EnvError) -> Self {
        Self(ExperimentError::of_running(error))
    }
}

impl From<ExperimentError> for RecordError {
    fn from(error: ExperimentError) -> Self {
        Self(error)
    }
}

/// Records the first episodes of an evaluation in `path`, which gets its content when the video is complete.
pub fn run(program: &str, registry: &Registry, args: &EvalArgs, path: &Path) -> Result<String, ExperimentError> {
    let format = Format::of(path)?;
    let open = |train: &TrainConfig| train.open_device_or(args.device.as_deref());
    let run = Finished::open(registry, &args.run_dir, &args.set, open, args.best, args.trust)?;
    let wanted = args.episodes.unwrap_or(1);
    let other = run.experiment.scenario.for_evaluation(wanted)?;
    let scenario = other.as_deref().unwrap_or(&*run.experiment.scenario);
    let n_episodes = distinct(scenario, wanted);
    let mut rendered = scenario.rendered(0)?.ok_or_else(|| no_frames(program, &run))?;
    let file = OutputFile::create(path).map_err(|error| ExperimentError::cannot_write(path, &error))?;
    let mut video = Video::new(BufWriter::new(file), format);
    let (mut episodes, view) = (Vec::new(), WaitView::episodes(TRAINED, n_episodes));
    for index in 0..n_episodes {
        if index > 0 {
            rendered = scenario.rendered(index as usize)?.ok_or_else(|| no_frames(program, &run))?;
        }
        let spec = rendered.batch().spec().clone();
        let policy = run.policy.adapted(&spec, &scenario.extensions())?;
        let seed = run.experiment.train.eval_seed;
        let is_sampled = args.sampled || run.experiment.train.eval_sampled;
        let mut controller = policy.controller_that(is_sampled, &spec, seed)?;
        let rate = Rate::of(rendered.frame_secs());
        let mut steps = 0;
        let episode = play_rendered(&mut *rendered, &mut *controller, seed, |env, shown, is_last| {
            let is_recorded = is_last || steps % rate.stride == 0;
            steps += 1;
            if is_recorded {
                let secs = if is_last { rate.frame_secs.max(END_SECS) } else { rate.frame_secs };
                video.add(env.render(shown)?, secs)?;
            }
            Ok::<(), RecordError>(())
        });
        episodes.push(episode.map_err(|RecordError(error)| error)?);
        view.show(index + 1);
    }
    drop(view);
    let summary = summary(path, &video, &episodes, args.json);
    let file = video.finish()?.into_inner().map_err(|error| ExperimentError::cannot_write(path, error.error()))?;
    output::publish(path, file, summary)
}

/// Which steps are frames, and for how long.
struct Rate {
    /// Every `stride`-th step is a frame: of a task with short steps, some are left out.
    stride: u64,
    frame_secs: f64,
}

impl Rate {
    fn of(step_secs: f64) -> Self {
        let stride = (1.0 / (step_secs * MOST_FRAMES_PER_SEC) - 1e-9).ceil().max(1.0);
        Self { stride: stride as u64, frame_secs: step_secs * stride }
    }
}

fn no_frames(program: &str, run: &Finished<'_>) -> ExperimentError {
    let entry = run.experiment.entry;
    let instead = match entry.sections.is_empty() {
        true => "implement `Scenario::rendered` for it".to_owned(),
        false => format!("write a page with its episodes by `{program} report {}`", run.run_dir.path().display()),
    };
    let name = &entry.name;
    ExperimentError::Input(format!("--video: the scenario must render its states, and `{name}` does not: {instead}"))
}

fn summary<W: Write + Seek + 'static>(path: &Path, video: &Video<W>, episodes: &[Episode], json: bool) -> String {
    let (width, height) = video.size().unwrap_or_default();
    let n_frames = video.n_frames();
    if json {
        let each = |episode: &Episode| json!({ "return": episode.episode_return, "length": episode.length });
        let document = json!({
            "video": path, "width": width, "height": height, "frames": n_frames,
            "episodes": episodes.iter().map(each).collect::<Vec<_>>(),
        });
        return format!("{document}\n");
    }
    let n = episodes.len();
    let mean = episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / n as f64;
    let about = if n == 1 { "1 episode, return".to_owned() } else { format!("{n} episodes, mean return") };
    format!("Video: {} ({about} {}, {n_frames} frames of {width}x{height} pixels)\n", path.display(), number(mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_steps_are_left_out() {
        for (step_secs, stride, frame_secs) in
            [(0.02, 1, 0.02), (0.2, 1, 0.2), (0.01, 2, 0.02), (0.008, 3, 0.024), (3600.0, 1, 3600.0)]
        {
            let rate = Rate::of(step_secs);
            assert_eq!(rate.stride, stride, "{step_secs}");
            assert!((rate.frame_secs - frame_secs).abs() < 1e-12, "{step_secs}");
        }
    }
}
