//! The cuts of thermal data sets and their recordings (`scripts/record_citylearn_thermal.py`).
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use brasa_citylearn::{CityLearnConfig, Physics, Reward};
use ndarray::Array2;
use serde_json::Value;

use super::golden::{gunzip, names};

const FIRST_HOME: &str = "Building_1.csv";

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/citylearn_thermal")
}

pub struct Golden {
    pub about: Value,
    /// `[row, quantity * n_buildings + building]`.
    pub rows: Array2<f32>,
}

pub fn golden(run: &str, version: &str) -> Golden {
    let about: Value = serde_json::from_slice(&gunzip(&data().join(format!("{run}-{version}.json.gz")))).unwrap();
    assert_eq!(about["citylearn"], version);
    let bytes = gunzip(&data().join(format!("{run}-{version}.bin.gz")));
    let values: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let width = names(&about["columns"]).len() * names(&about["buildings"]).len();
    Golden { rows: Array2::from_shape_vec((values.len() / width, width), values).unwrap(), about }
}

/// The cut with the schema of a recording, whose outages of one home are a column of its file.
pub fn cut(golden: &Golden) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = if golden.about["run"] == "cut_dynamics" { data().join("dynamics") } else { data() };
    for entry in std::fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".csv") || name.ends_with(".safetensors") {
            std::fs::write(folder.path().join(name), gunzip(&path)).unwrap();
        }
    }
    if golden.about["run"] == "cut_outages" {
        let path = folder.path().join(FIRST_HOME);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut with_outages = String::new();
        for (i, line) in text.lines().enumerate() {
            let signal = match i {
                0 => "power_outage",
                i if i > 1 && (30..41).contains(&((i - 1) % 77)) => "1",
                _ => "0",
            };
            with_outages += &format!("{line},{signal}\n");
        }
        std::fs::write(path, with_outages).unwrap();
    }
    std::fs::write(folder.path().join("schema.json"), golden.about["schema"].to_string()).unwrap();
    folder
}

pub fn config(physics: Physics, folder: &Path) -> CityLearnConfig {
    CityLearnConfig {
        data: folder.to_str().unwrap().to_owned(),
        physics,
        accept_unlikely_pv: true,
        reward: Reward::GridImport,
        ..CityLearnConfig::default()
    }
}
