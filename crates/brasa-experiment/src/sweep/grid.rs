//! The runs of a sweep: every combination of experiments, settings and seeds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::ExperimentError;
use crate::train_config::MOST_SEED;

/// Largest number of runs; more are a mistake in a range.
const MAX_RUNS: usize = 100_000;

/// Seeds of a sweep or a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

impl FromStr for Seeds {
    type Err = String;

    /// A number `n` alone is the first `n` seeds. Otherwise numbers and half-open ranges, separated by commas: `0..20`, `3,7`, `0..5,100..105`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(n) = text.trim().parse::<u64>() {
            return format!("0..{n}").parse();
        }
        let number = |part: &str| {
            let digits = part.trim();
            digits.parse::<u64>().map_err(|_| format!("must be numbers or ranges such as 0..20, got `{digits}`"))
        };
        let mut seeds = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                None => seeds.push(number(part)?),
                Some((first, end)) => {
                    let (first, end) = (number(first)?, number(end)?);
                    if end <= first || end - first > MAX_RUNS as u64 {
                        return Err(format!("`{}` must have 1 to {MAX_RUNS} seeds", part.trim()));
                    }
                    seeds.extend(first..end);
                }
            }
        }
        if let Some(seed) = seeds.iter().find(|seed| **seed > MOST_SEED) {
            return Err(format!("must be at most {MOST_SEED}, got {seed}"));
        }
        match seeds.iter().collect::<BTreeSet<_>>().len() == seeds.len() {
            true => Ok(Self(seeds)),
            false => Err(format!("must name every seed once, got `{text}`")),
        }
    }
}

impl Seeds {
    /// As an argument that gives these seeds again.
    pub(crate) fn argument(&self) -> String {
        let Self(seeds) = self;
        let consecutive = seeds.windows(2).all(|pair| pair[1] == pair[0] + 1);
        match (seeds.first(), seeds.last()) {
            (Some(0), Some(last)) if consecutive => (last + 1).to_string(),
            (Some(first), Some(last)) if consecutive => format!("{first}..{}", last + 1),
            _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
        }
    }
}

/// One run of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub config: PathBuf,
    /// Settings such as `train.n_envs=16`.
    pub set: Vec<String>,
    pub seed: u64,
    /// Directory of the run.
    pub run_dir: PathBuf,
}

impl Planned {
    /// Config and settings, for messages.
    pub(crate) fn in_words(&self) -> String {
        let words = std::iter::once(self.config.display().to_string()).chain(self.set.iter().cloned());
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Every combination of `configs`, of the values in `set` and of `seeds`, with directories in `out`.
///
/// An item of `set` such as `train.n_envs=8,16` has several values, separated by commas outside of brackets and quotes.
///
/// # Errors
/// [`ExperimentError::Input`] if an item is not a setting, or two runs would have the same directory.
pub(crate) fn grid(
    configs: &[PathBuf],
    set: &[String],
    seeds: &Seeds,
    out: &Path,
) -> Result<Vec<Planned>, ExperimentError> {
    let settings = set.iter().map(|item| choices(item)).collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) =
        settings.iter().enumerate().find(|(i, (key, _))| settings[..*i].iter().any(|(known, _)| known == key))
    {
        let (_, (key, _)) = twice;
        return Err(ExperimentError::Input(format!("--set {key} is given twice: separate its values by commas")));
    }
    if settings.iter().any(|(key, values)| *key == "train.seed" && values.len() > 1) {
        return Err(ExperimentError::Input("--set train.seed has several values: give seeds as --seeds".into()));
    }
    let combinations =
        settings.iter().fold(configs.len() * seeds.0.len(), |n, (_, values)| n.saturating_mul(values.len()));
    if combinations > MAX_RUNS {
        return Err(ExperimentError::Input(format!("a sweep must have at most {MAX_RUNS} runs, got {combinations}")));
    }
    let swept: Vec<&str> = settings.iter().filter(|(_, values)| values.len() > 1).map(|(key, _)| *key).collect();
    let mut runs: Vec<Planned> = Vec::new();
    for config in configs {
        for choice in products(&settings) {
            let set: Vec<String> = choice.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let mut name = config.file_stem().map_or("run".into(), |stem| stem.to_string_lossy().into_owned());
            for (key, value) in choice.iter().filter(|(key, _)| swept.contains(key)) {
                name.push_str(&format!("-{}={}", short(key, &swept), file_name(value)));
            }
            for seed in &seeds.0 {
                let run_dir = out.join(format!("{name}-seed{seed}"));
                if let Some(known) = runs.iter().find(|known| known.run_dir == run_dir) {
                    let (one, other) = (known.set.join(" "), set.join(" "));
                    let (first, config) = (known.config.display(), config.display());
                    return Err(ExperimentError::Input(format!(
                        "two runs would have the directory {}: {first} {one} and {config} {other}",
                        run_dir.display()
                    )));
                }
                runs.push(Planned { config: config.clone(), set: set.clone(), seed: *seed, run_dir });
            }
        }
    }
    Ok(runs)
}

/// Key and values of an item.
fn choices(item: &str) -> Result<(&str, Vec<&str>), ExperimentError> {
    let wrong = || ExperimentError::Input(format!("--set must look like key=value or key=value,value, got `{item}`"));
    let (key, text) = item.split_once('=').ok_or_else(wrong)?;
    let values = split(text);
    match key.trim().is_empty() || values.iter().any(|value| value.is_empty()) {
        true => Err(wrong()),
        false => Ok((key.trim(), values)),
    }
}

/// The parts between commas outside of brackets, braces and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut first, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(text[first..at].trim());
                first = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(text[first..].trim());
    parts
}

/// Every combination of one value per key; the last key varies fastest.
fn products<'a>(settings: &[(&'a str, Vec<&'a str>)]) -> Vec<Vec<(&'a str, &'a str)>> {
    settings.iter().fold(vec![Vec::new()], |combinations, (key, values)| {
        let longer = |combination: &Vec<(&'a str, &'a str)>| {
            let combination = combination.clone();
            values.iter().map(move |value| [&combination[..], &[(*key, *value)]].concat()).collect::<Vec<_>>()
        };
        combinations.iter().flat_map(longer).collect()
    })
}

/// The last part of a key, or all of it if another key of the sweep has the same last part.
fn short<'a>(key: &'a str, keys: &[&str]) -> &'a str {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let is_unique = keys.iter().filter(|other| other.rsplit('.').next() == Some(last(key))).count() == 1;
    if is_unique { last(key) } else { key }
}

/// A value as a part of a file name.
fn file_name(value: &str) -> String {
    let plain = value.trim_matches(['"', '\'']);
    let keep = |character: char| character.is_alphanumeric() || "._+-".contains(character);
    let mut name: String = plain.chars().map(|character| if keep(character) { character } else { '_' }).collect();
    name.truncate(name.char_indices().nth(60).map_or(name.len(), |(at, _)| at));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_and_ranges() {
        assert_eq!("0..3".parse(), Ok(Seeds(vec![0, 1, 2])));
        assert_eq!("7, 3,10..12".parse(), Ok(Seeds(vec![7, 3, 10, 11])));
        // As in `compare`, a number alone counts.
        assert_eq!("3".parse(), Ok(Seeds(vec![0, 1, 2])));
        for text in ["3", "7,3", "5..6"] {
            let seeds: Seeds = text.parse().expect("they are seeds");
            assert_eq!(seeds.argument(), text);
        }
        for wrong in ["", "0", "a", "3..3", "5..2", "0..5,4", "1..", "0..99999999999"] {
            assert!(wrong.parse::<Seeds>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_separated_outside_of_brackets_and_quotes() {
        assert_eq!(split("1, 2,3"), ["1", "2", "3"]);
        assert_eq!(split("[64, 64],[128]"), ["[64, 64]", "[128]"]);
        assert_eq!(
            split("{ linear = { from = 1.0, to = 0.0 } },1e-3"),
            ["{ linear = { from = 1.0, to = 0.0 } }", "1e-3"]
        );
        assert_eq!(split("'a,b',\"c,d\""), ["'a,b'", "\"c,d\""]);
        assert!(choices("a=1,,2").is_err() && choices("=1").is_err() && choices("a").is_err());
    }

    #[test]
    fn the_last_key_varies_fastest() {
        let found = products(&[("a", vec!["1", "2"]), ("b", vec!["x"]), ("c", vec!["8", "9"])]);
        let words: Vec<String> = found.iter().map(|run| run.iter().map(|(k, v)| format!("{k}{v}")).collect()).collect();
        assert_eq!(words, ["a1bxc8", "a1bxc9", "a2bxc8", "a2bxc9"]);
        assert_eq!(products(&[]), [Vec::new()]);
    }

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!(short("learner.gamma", &["learner.gamma", "train.n_envs"]), "gamma");
        assert_eq!(short("actor.hidden", &["actor.hidden", "critics.hidden"]), "actor.hidden");
        assert_eq!(file_name("[64, 64]"), "_64__64_");
        assert_eq!(file_name("'per socket'"), "per_socket");
    }
}
