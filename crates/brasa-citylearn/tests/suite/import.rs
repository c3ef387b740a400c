//! Import of data sets from wheels and schemas.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::{
    io::{Cursor, Write},
    path::{Path, PathBuf},
};

use brasa_citylearn::{CityLearn, CityLearnConfig, District, Imported, LoadOptions, Physics, data_sets, import};
use brasa_env::Who;
use common::data::Data;
use serde_json::json;
use zip::{ZipWriter, write::SimpleFileOptions};

/// A wheel with data sets of `Data`.
struct Wheel {
    folder: tempfile::TempDir,
}

impl Wheel {
    /// `sets` has names and the files that each has in addition.
    fn new(sets: &[(&str, &Data)]) -> Self {
        let mut files = vec![("citylearn/__init__.py".to_owned(), Vec::new())];
        for (name, data) in sets {
            for entry in std::fs::read_dir(&data.folder).unwrap() {
                let path = entry.unwrap().path();
                let file = path.file_name().unwrap().to_str().unwrap();
                files.push((format!("citylearn/data/{name}/{file}"), std::fs::read(&path).unwrap()));
            }
        }
        Self::of(&files)
    }

    fn of(files: &[(String, Vec<u8>)]) -> Self {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            writer.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        let wheel = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(wheel.path(), writer.finish().unwrap().into_inner()).unwrap();
        wheel
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("CityLearn-0.0.0-py3-none-any.whl")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out/set")
    }

    fn import(&self, set: &str) -> Result<Imported, String> {
        import(&self.path(), Some(set), &self.out()).map_err(|error| error.to_string())
    }

    /// The import is refused and leaves nothing.
    #[track_caller]
    fn refused(&self, set: Option<&str>, parts: &[&str]) {
        let error = import(&self.path(), set, &self.out()).expect_err("it must be refused").to_string();
        for part in parts {
            assert!(error.contains(part), "`{error}` does not say `{part}`");
        }
        let left = std::fs::read_dir(self.out().parent().unwrap()).map_or(0, Iterator::count);
        assert_eq!(left, 0, "files remain");
    }
}

fn weights(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/weights").join(name)).unwrap()
}

/// `Data` whose home has a network with the weights in `Home.pth`.
fn with_network(weights: &[u8]) -> Data {
    let data = Data::new();
    data.home(|home| {
        home["type"] = json!("citylearn.building.LSTMDynamicsBuilding");
        home["dynamics"] = json!({"type": "citylearn.dynamics.LSTMDynamics", "attributes": {
            "filename": "Home.pth", "hidden_size": 3, "num_layers": 1, "lookback": 4,
            "input_observation_names": ["cooling_demand", "indoor_dry_bulb_temperature"],
            "input_normalization_minimum": [0.0, 10.0], "input_normalization_maximum": [1.0, 30.0],
        }});
    });
    std::fs::write(data.folder.join("Home.pth"), weights).unwrap();
    data
}

#[test]
fn a_wheel_has_sets_and_one_is_imported() {
    let data = Data::new();
    std::fs::write(data.folder.join("unused.csv"), "not named by the schema").unwrap();
    let wheel = Wheel::new(&[("second", &data), ("first", &data)]);
    assert_eq!(data_sets(&wheel.path()).unwrap(), ["first", "second"]);
    std::fs::create_dir_all(wheel.out()).unwrap();
    let imported = wheel.import("second").unwrap();
    assert_eq!(imported.files, ["Home.csv", "carbon.csv", "pricing.csv", "schema.json", "weather.csv"]);
    assert_eq!(std::fs::read_dir(wheel.out()).unwrap().count(), 5);
    assert_eq!(imported.district, data.load().unwrap());
    assert!(imported.converted.is_empty() && imported.refused.is_empty(), "{imported}");
    let text = imported.to_string();
    for part in ["5 files, 1 building, 240 rows of 1 h", "[scenario.citylearn]\ndata = "] {
        assert!(text.contains(part), "`{text}` does not say `{part}`");
    }
    wheel.import("second").map(|_| ()).expect_err("the folder has files now");
}

#[test]
fn a_schema_is_imported_with_the_files_of_its_root() {
    let (data, elsewhere, out) = (Data::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    data.schema(|schema| {
        schema["root_directory"] = json!(data.folder.to_str().unwrap());
        // A file of a building that is not included may be missing.
        schema["buildings"]["Other"] = json!({"include": false, "energy_simulation": "Other.csv"});
    });
    let schema = elsewhere.path().join("district.json");
    std::fs::rename(data.folder.join("schema.json"), &schema).unwrap();
    let imported = import(&schema, None, &out.path().join("set")).unwrap();
    let district = District::load(schema.to_str().unwrap(), LoadOptions::default()).unwrap();
    assert_eq!(imported.district, district);
    drop(data);
    let again = District::load(out.path().join("set").to_str().unwrap(), LoadOptions::default()).unwrap();
    assert_eq!(again, district, "the folder stands alone");
}

#[test]
fn networks_are_converted_from_both_formats() {
    for file in ["archive.pth", "pickles.pth"] {
        let wheel = Wheel::new(&[("net", &with_network(&weights(file)))]);
        let imported = wheel.import("net").unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(imported.converted, ["Home.pth"]);
        let bytes = std::fs::read(wheel.out().join("Home.safetensors")).unwrap();
        let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let shapes: [(&str, &[usize]); 6] = [
            ("l_lstm.weight_ih_l0", &[12, 2]),
            ("l_lstm.weight_hh_l0", &[12, 3]),
            ("l_lstm.bias_ih_l0", &[12]),
            ("l_lstm.bias_hh_l0", &[12]),
            ("l_linear.weight", &[1, 3]),
            ("l_linear.bias", &[1]),
        ];
        assert_eq!(read.len(), shapes.len());
        for (place, (name, shape)) in shapes.iter().enumerate() {
            let tensor = read.tensor(name).unwrap();
            assert_eq!(tensor.shape(), *shape, "{name}");
            let numbers = tensor.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            for (index, number) in numbers.enumerate() {
                assert_eq!(number, place as f32 + index as f32 / 8.0, "{name} of {file}");
            }
        }
        // Weights that are converted already are imported as they are.
        let out = wheel.folder.path().join("again");
        let again = import(&wheel.out(), None, &out).unwrap();
        assert_eq!(again.district, imported.district);
        assert!(again.converted.is_empty());
    }
}

#[test]
fn weights_that_cannot_be_converted_are_refused() {
    let archive = weights("archive.pth");
    let pickles = weights("pickles.pth");
    let network = |bytes: &[u8]| Wheel::new(&[("net", &with_network(bytes))]);
    network(&weights("double.pth")).refused(Some("net"), &["Home.pth", "32-bit floats", "DoubleStorage"]);
    network(&archive[..archive.len() / 2]).refused(Some("net"), &["Home.pth", "not a zip archive"]);
    network(&pickles[..pickles.len() - 2]).refused(Some("net"), &["Home.pth", "ends within the storage"]);
    network(&pickles[..100]).refused(Some("net"), &["Home.pth", "ends too early"]);
    network(b"0").refused(Some("net"), &["Home.pth", "its pickle has the operation 0x30, which is not supported"]);
    // Every shorter file is an error, never a panic.
    for length in (0..archive.len()).step_by(29) {
        network(&archive[..length]).refused(Some("net"), &["Home.pth"]);
    }
}

#[test]
fn a_wrong_wheel_is_refused() {
    let wheel = Wheel::new(&[("first", &Data::new()), ("second", &Data::new())]);
    wheel.refused(Some("third"), &["no data set `third`", "it has first, second"]);
    wheel.refused(None, &["needs the name", "first, second"]);
    let whole = std::fs::read(wheel.path()).unwrap();
    std::fs::write(wheel.path(), &whole[..whole.len() - 200]).unwrap();
    wheel.refused(Some("first"), &["wheel", "not a zip archive"]);
    std::fs::write(wheel.path(), "hello").unwrap();
    wheel.refused(Some("first"), &["must be a `schema.json`, its folder, or a wheel", "not a zip archive"]);
    std::fs::remove_file(wheel.path()).unwrap();
    wheel.refused(Some("first"), &["cannot read"]);
    Wheel::of(&[("citylearn/agent.py".into(), Vec::new())]).refused(Some("first"), &["no data set", "2.1.2"]);
}

#[test]
fn a_damaged_entry_is_refused() {
    let wheel = Wheel::new(&[("first", &Data::new())]);
    let mut bytes = std::fs::read(wheel.path()).unwrap();
    // In the middle of the archive lie the compressed tables.
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40].fill(0x55);
    std::fs::write(wheel.path(), bytes).unwrap();
    wheel.refused(Some("first"), &["cannot be read"]);
}

#[test]
fn a_wrong_data_set_is_refused_and_leaves_nothing() {
    let data = Data::new();
    std::fs::remove_file(data.folder.join("weather.csv")).unwrap();
    let missing = ["`buildings.Home.weather` names `weather.csv`, which is missing"];
    Wheel::new(&[("set", &data)]).refused(Some("set"), &missing);
    let data = Data::new();
    data.home(|home| home["energy_simulation"] = json!("../Home.csv"));
    Wheel::new(&[("set", &data)]).refused(Some("set"), &["within the data set", "`../Home.csv`"]);
    let data = Data::new();
    let path = data.folder.join("Home.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    Wheel::new(&[("set", &data)]).refused(Some("set"), &["citylearn/data/set/Home.csv", "rows", "asks for 240"]);
    let data = Data::new();
    data.home(|home| home["occupant"] = json!({"type": "citylearn.occupant.LogisticRegressionOccupant"}));
    Wheel::new(&[("set", &data)]).refused(Some("set"), &["`occupant`", "not modeled"]);
    std::fs::write(data.folder.join("schema.json"), "{").unwrap();
    Wheel::new(&[("set", &data)]).refused(Some("set"), &["citylearn/data/set/schema.json", "EOF"]);
}

#[test]
fn a_folder_with_files_is_refused() {
    let (data, out) = (Data::new(), tempfile::tempdir().unwrap());
    std::fs::write(out.path().join("mine.txt"), "mine").unwrap();
    let error = import(&data.folder, None, out.path()).unwrap_err().to_string();
    assert!(error.contains("must be an empty folder or none"), "{error}");
    let error = import(&data.folder, None, &out.path().join("mine.txt")).unwrap_err().to_string();
    assert!(error.contains("cannot write"), "{error}");
    let error = import(&data.folder, Some("first"), &out.path().join("new")).unwrap_err().to_string();
    assert!(error.contains("only a wheel has data sets"), "{error}");
}

#[test]
fn unlikely_pv_and_rules_that_refuse_are_named() {
    let data = Data::new();
    data.home(|home| home["cooling_storage"] = json!(null));
    let path = data.folder.join("Home.csv");
    let weak = std::fs::read_to_string(&path).unwrap().replace(",500\n", ",5\n");
    std::fs::write(&path, weak).unwrap();
    let out = tempfile::tempdir().unwrap();
    let imported = import(&data.folder, None, &out.path().join("set")).unwrap();
    let reason = imported.unlikely_pv.as_deref().unwrap();
    assert!(reason.contains("solar_generation"), "{reason}");
    assert!(imported.to_string().contains("accept_unlikely_pv = true  # "), "{imported}");
    let network = with_network(&weights("archive.pth"));
    let imported = import(&network.folder, None, &out.path().join("net")).unwrap();
    let [(physics, reason)] = imported.refused.as_slice() else { panic!("{imported}") };
    assert_eq!(*physics, Physics::CityLearn21);
    assert!(imported.to_string().contains(&format!("not with physics = \"citylearn-2.1\": {reason}")));
}

/// The settings that an import prints fit the data with all rules, however short it is.
#[test]
fn the_printed_settings_make_a_scenario() {
    let (data, out) = (Data::new(), tempfile::tempdir().unwrap());
    data.schema(|schema| schema["comment"] = json!("ten days"));
    let imported = import(&data.folder, None, &out.path().join("set")).unwrap();
    let text = imported.to_string();
    assert!(text.contains("unknown keys without effect: `comment`\n"), "{text}");
    let line = text.lines().find_map(|line| line.strip_prefix("episode_steps = ")).expect(&text);
    assert_eq!(line, "239  # at most 240, with the rules of CityLearn 239");
    assert_eq!(imported.episode_steps(), 239);
    for physics in Physics::ALL {
        let episode_steps = Some(imported.episode_steps());
        let data = imported.folder.to_str().unwrap().to_owned();
        CityLearn::new(CityLearnConfig {
            data,
            physics,
            episode_steps,
            random_start: true,
            ..CityLearnConfig::default()
        })
        .unwrap();
    }
}

#[test]
fn rules_have_the_names_of_the_configuration() {
    for physics in Physics::ALL {
        assert_eq!(serde_json::to_value(physics).unwrap(), physics.name());
    }
}

/// The sets of the last wheel with data are imported, load and run.
#[test]
fn every_set_of_the_last_wheel_is_imported_and_runs_to_its_end() {
    let Some(wheel) = std::env::var_os("BRASA_CITYLEARN_WHEEL").map(PathBuf::from) else {
        eprintln!("SKIPPED: set BRASA_CITYLEARN_WHEEL to the wheel CityLearn 2.1.2");
        return;
    };
    let names = data_sets(&wheel).unwrap();
    assert_eq!(names.len(), 18, "{names:?}");
    let out = tempfile::tempdir().unwrap();
    for name in names {
        let imported = import(&wheel, Some(&name), &out.path().join(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{imported}");
        let has_networks = name.contains("_2023_") || name == "baeda_3dem";
        assert_eq!(imported.converted.is_empty(), !has_networks, "{name}");
        for physics in [Physics::Clean, Physics::CityLearn30, Physics::CityLearn25] {
            let data = imported.folder.to_str().unwrap().to_owned();
            let config = CityLearnConfig { data, physics, accept_unlikely_pv: true, ..CityLearnConfig::default() };
            let recording = CityLearn::new(config).unwrap().record(Who::Baseline("rule-based"), 0).unwrap();
            let steps = recording.net_kwh.nrows();
            assert!(steps >= if has_networks { 719 } else { 8759 }, "{name}: {steps}");
            assert!(recording.net_kwh.iter().chain(&recording.temperature_c).all(|x| x.is_finite()));
            println!("{physics:?}: {steps} steps");
        }
    }
}
