//! The player of an episode of the trained policy.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use brasa_train::{RunDir, WaitView};
use serde_json::{Value, json};

use super::page::escape;
use crate::comparison::{ComparisonResult, TRAINED, counted, number};
use crate::video::{Clip, Limits};
use crate::{Experiment, ExperimentError};

/// The pictures take a MiB of the page in base 64.
const LIMITS: Limits = Limits { frames: 501, bytes: 3 << 18 };

/// The player of a page.
pub(crate) enum Player {
    /// The scenario does not render its states.
    None,
    /// Rendering would start a program, which takes seconds: `report` does it.
    Later,
    /// Why the states could not be rendered.
    Failed(String),
    Clip(Box<Clip>),
}

impl Player {
    /// The first episode of the evaluation with the policy of `result`.
    pub fn of(experiment: &Experiment<'_>, result: &ComparisonResult) -> Self {
        match Self::record(experiment, result) {
            Ok(Some(clip)) => Self::Clip(Box::new(clip)),
            Ok(None) => Self::None,
            Err(error) => Self::Failed(error.to_string()),
        }
    }

    /// As [`Player::of`], unless it takes seconds.
    pub fn after_training(experiment: &Experiment<'_>, result: &ComparisonResult) -> Self {
        match experiment.entry.programs.is_empty() {
            true => Self::of(experiment, result),
            false => Self::Later,
        }
    }

    fn record(experiment: &Experiment<'_>, result: &ComparisonResult) -> Result<Option<Clip>, ExperimentError> {
        let scenario = result.scenario.as_deref().unwrap_or(&*experiment.scenario);
        let Some(policy) = &result.policy else { return Ok(None) };
        let _view = WaitView::new("pictures of an episode");
        let Some(mut env) = scenario.rendered(0)? else { return Ok(None) };
        let policy = policy.adapted(&env.batch().spec().clone(), &scenario.extensions())?;
        let outcomes = result.played.iter().find(|row| row.name == TRAINED).map_or(&[][..], |row| &row.outcomes);
        let length = outcomes.first().map_or(0, |outcome| outcome.length);
        let seed = experiment.train.eval_seed;
        Clip::record(&mut *env, |spec| policy.controller(spec), seed, length, LIMITS).map(Some)
    }

    /// The data for the script of the page.
    pub fn data(&self) -> Value {
        let Self::Clip(clip) = self else { return Value::Null };
        let returns: Vec<Value> = clip.returns.iter().map(|value| json!((value * 1e4).round() / 1e4)).collect();
        json!({
            "width": clip.width, "height": clip.height, "scale": clip.detail.scale, "seconds": clip.step_secs,
            "colors": clip.n_colors, "steps": clip.steps, "returns": returns,
            "pictures": BASE64_STANDARD.encode(&clip.stream),
        })
    }

    /// The section of the page.
    pub fn to_html(&self, run_dir: &RunDir) -> String {
        let command = format!("brasa report {}", run_dir.path().display());
        let about = match self {
            Self::None => return String::new(),
            Self::Later => format!("<code>{}</code> adds a player of an episode.", escape(&command)),
            Self::Failed(error) => format!("The states could not be rendered: {}", escape(error)),
            Self::Clip(clip) => about(clip),
        };
        let place = match self {
            Self::Clip(_) => "<section id=\"episode-player\" aria-label=\"Player of an episode\"></section>\n",
            _ => "",
        };
        format!("<h2>An episode of the policy</h2>\n<p>{about}</p>\n{place}\n")
    }
}

/// What the pictures show, and what was left out.
fn about(clip: &Clip) -> String {
    let (length, detail) = (clip.episode.length, clip.detail);
    let mut sentences = vec![format!(
        "The first episode of the evaluation has {} and a return of {}.",
        counted(length, "step"),
        number(clip.episode.episode_return)
    )];
    let pictures = counted(clip.steps.len() as u64, "picture");
    sentences.push(match detail.stride {
        1 => format!("Its {pictures} show the start and every step."),
        stride => format!(
            "Its {pictures} show every {stride}{} step and the end: a page has at most {} pictures of 1 MiB together.",
            ending(stride),
            LIMITS.frames
        ),
    });
    if detail.scale > 1 {
        sentences.push(format!("Width and height are 1/{} of the original ones.", detail.scale));
    }
    if detail.is_rounded {
        sentences.push("Colors are rounded.".to_owned());
    }
    sentences.join(" ")
}

/// The ending of an ordinal number.
fn ending(number: u64) -> &'static str {
    match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinal_numbers_have_their_endings() {
        let all = [2, 3, 4, 11, 12, 21, 22, 103, 112].map(|n| format!("{n}{}", ending(n)));
        assert_eq!(all, ["2nd", "3rd", "4th", "11th", "12th", "21st", "22nd", "103rd", "112th"]);
    }
}
