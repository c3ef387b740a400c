//! Reading of recordings.
#![allow(clippy::unwrap_used)]

use std::{io::Read, path::Path};

use brasa_citylearn::{CityLearn, Recording};
use brasa_env::{BatchSlabs, EnvError, Who};
use ndarray::ArrayViewMut2;
use serde_json::Value;

pub fn gunzip(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// A temporary folder with the unpacked data set in `from`, a folder of `.gz` files beside recordings (`.bin.gz`).
pub fn unpacked(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap();
        if path.extension().is_some_and(|extension| extension == "gz") && !name.to_str().unwrap().ends_with(".bin") {
            std::fs::write(folder.path().join(name), gunzip(&path)).unwrap();
        }
    }
    folder
}

pub fn names(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// The actions of the recordings with sines, by step and column.
pub fn sine(step: usize, column: usize) -> f64 {
    0.8 * (0.3 * step as f64 + column as f64).sin()
}

/// NumPy's `RandomState(7).uniform(-1, 1, n)` at every step, column by column; those from `idle_from` up are 0.
pub fn uniform(idle_from: f64) -> impl FnMut(usize, usize) -> f64 {
    let mut generator = rand_mt::Mt::new(7);
    move |_, _| {
        let (high, low) = (generator.next_u32() >> 5, generator.next_u32() >> 6);
        let number = -1.0 + 2.0 * ((f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0);
        if number.abs() < idle_from { number } else { 0.0 }
    }
}

/// One pass over the whole data with the actions `action(step, column)`.
pub fn record(scenario: &CityLearn, mut action: impl FnMut(usize, usize) -> f64) -> Recording {
    let mut step = 0;
    let mut policy = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        actions.row_mut(0).iter_mut().enumerate().for_each(|(column, slot)| *slot = action(step, column) as f32);
        step += 1;
        Ok(())
    };
    scenario.record(Who::Controller(&mut policy), 0).unwrap()
}
