//! Import of data sets: from CityLearn's wheels or from a `schema.json`, to a folder that [`District::load`] reads.
//!
//! A wheel holds its data sets as `citylearn/data/NAME/schema.json` with the files that this schema names. An import has the schema, every
//! file that it names, and weights of networks as safetensors instead of PyTorch's `.pth`.

use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use brasa_env::field;
use brasa_power::{EnergyError, delimited::without_mark};
use serde_json::Value;

use super::{
    CityLearn, CityLearnConfig, District, LoadOptions, Physics,
    files::Files,
    schema::{json, with_hint},
};
use brasa_export::{Archive, Budget, StateDict};

const SCHEMA: &str = "schema.json";

/// Folder of the data sets in a wheel.
const SETS: &str = "citylearn/data/";

/// A data set that was imported.
///
/// ```
/// use brasa_citylearn::{Imported, import};
///
/// # let dir = tempfile::tempdir()?;
/// # for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/citylearn_ev"))? {
/// #     let path = entry?.path();
/// #     let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
/// #     if path.extension().is_some_and(|end| end == "gz") && !stem.ends_with(".bin") {
/// #         let mut to = std::fs::File::create(dir.path().join(stem))?;
/// #         std::io::copy(&mut flate2::read::GzDecoder::new(std::fs::File::open(&path)?), &mut to)?;
/// #     }
/// # }
/// // `dir` has a data set of CityLearn: a `schema.json` and its files.
/// let imported: Imported = import(dir.path(), None, &dir.path().join("vehicles"))?;
/// assert_eq!((imported.district.buildings().len(), imported.district.chargers().len()), (3, 4));
/// assert!(imported.to_string().contains("[scenario.citylearn]"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Imported {
    /// Where it is: the `data` of `[scenario.citylearn]`.
    pub folder: PathBuf,
    /// The files in it.
    pub files: Vec<String>,
    /// The weights of networks that were converted, as the schema names them.
    pub converted: Vec<String>,
    /// The district as read from the folder.
    pub district: District,
    /// What is unlikely about the PV of the data, which needs `accept_unlikely_pv = true`.
    pub unlikely_pv: Option<String>,
    /// The rules that refuse the data set, and why.
    pub refused: Vec<(Physics, String)>,
}

impl Imported {
    /// Steps per episode that fit the data with every set of rules: 30 days, or all of them.
    pub fn episode_steps(&self) -> usize {
        let month = (EPISODE_HOURS / self.district.hours_per_step()).round() as usize;
        // CityLearn's rules have no action for the last row.
        month.min(self.district.n_rows() - 1).max(1)
    }
}

/// Hours of the episodes that an import proposes.
const EPISODE_HOURS: f64 = 720.0;

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { district, .. } = self;
        let (rows, hours) = (district.n_rows(), district.hours_per_step());
        let counted = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let files = counted(self.files.len(), "file");
        let buildings = counted(district.buildings().len(), "building");
        writeln!(f, "{}: {files}, {buildings}, {rows} rows of {hours} h", self.folder.display())?;
        if !self.converted.is_empty() {
            writeln!(f, "converted to safetensors: {}", self.converted.join(", "))?;
        }
        for (physics, reason) in &self.refused {
            writeln!(f, "not with physics = \"{}\": {reason}", physics.name())?;
        }
        for warning in district.warnings() {
            writeln!(f, "{warning}")?;
        }
        writeln!(f, "\n[scenario.citylearn]\ndata = {:?}", self.folder.display().to_string())?;
        let (steps, fewest) = (self.episode_steps(), rows - 1);
        writeln!(f, "episode_steps = {steps}  # at most {rows}, with the rules of CityLearn {fewest}")?;
        if let Some(reason) = &self.unlikely_pv {
            writeln!(f, "accept_unlikely_pv = true  # {reason}")?;
        }
        Ok(())
    }
}

/// The names of the data sets in a wheel, sorted.
///
/// ```
/// use brasa_citylearn::data_sets;
///
/// # let dir = tempfile::tempdir()?;
/// # let wheel = dir.path().join("CityLearn-2.5.0-py3-none-any.whl");
/// # let mut writer = zip::ZipWriter::new(std::fs::File::create(&wheel)?);
/// # writer.start_file("citylearn/data/baeda_3dem/schema.json", zip::write::SimpleFileOptions::default())?;
/// # writer.finish()?;
/// // `wheel` is the path of a wheel of CityLearn.
/// assert_eq!(data_sets(&wheel)?, ["baeda_3dem"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`EnergyError::Read`] without the file; [`EnergyError::Import`] if it is no wheel or holds no data set.
pub fn data_sets(wheel: &Path) -> Result<Vec<String>, EnergyError> {
    open(wheel).map(|(_, sets)| sets)
}

/// Writes the data set of `source` to `folder`, which must be empty or absent, and verifies that it loads.
///
/// `source` is the path of a `schema.json`, of its folder, or of a wheel (a file `*.whl`), of which `set` is the data set. The files are written beside `folder` and
/// renamed at the end, so that a failed import leaves nothing.
///
/// ```
/// use brasa_citylearn::{District, LoadOptions, import};
///
/// # let dir = tempfile::tempdir()?;
/// # for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/citylearn_ev"))? {
/// #     let path = entry?.path();
/// #     let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
/// #     if path.extension().is_some_and(|end| end == "gz") && !stem.ends_with(".bin") {
/// #         let mut to = std::fs::File::create(dir.path().join(stem))?;
/// #         std::io::copy(&mut flate2::read::GzDecoder::new(std::fs::File::open(&path)?), &mut to)?;
/// #     }
/// # }
/// // `dir` has a data set of CityLearn: a `schema.json` and its files.
/// let to = dir.path().join("vehicles");
/// let imported = import(dir.path(), None, &to)?;
/// assert!(imported.files.contains(&"schema.json".to_owned()));
/// let options = LoadOptions { accept_unlikely_pv: true, ..LoadOptions::default() };
/// let read = District::load(&to.display().to_string(), options)?;
/// assert_eq!(read.n_rows(), imported.district.n_rows());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`EnergyError`]: what is wrong with the source, its file and the rule, or what in the data set is not modeled; an
/// unknown `set`, with the names that the wheel has; a `folder` that is not empty or cannot be written.
pub fn import(source: &Path, set: Option<&str>, folder: &Path) -> Result<Imported, EnergyError> {
    check_empty(folder)?;
    let (origin, schema, mut named, mut budget) = if source.is_dir()
        || source.extension().is_some_and(|end| end == "json")
    {
        if let Some(set) = set {
            return refuse(source, format!("only a wheel has data sets by name, got the name `{set}` for a schema"));
        }
        from_schema(source)?
    } else {
        from_wheel(source, set)?
    };
    let converted = convert(&origin, &mut named, &mut budget)?;
    named.insert(SCHEMA.into(), schema);
    let contents = Arc::new(named);
    let read = |accept_unlikely_pv: bool| {
        let files = Files::Memory(origin.clone(), Arc::clone(&contents));
        District::read(files, SCHEMA, LoadOptions { accept_unlikely_pv, ..LoadOptions::default() })
    };
    let (district, unlikely_pv) = match read(false) {
        Ok(district) => (district, None),
        // The second error, if any, is one of the data set, and not of its PV.
        Err(error) => (read(true)?, Some(error.to_string())),
    };
    write(&contents, folder, &district)?;
    let refused = Physics::ALL.into_iter().filter_map(|physics| {
        let data = folder.to_string_lossy().into_owned();
        let config = CityLearnConfig { data, physics, accept_unlikely_pv: true, ..CityLearnConfig::default() };
        CityLearn::new(config).err().map(|error| (physics, error.to_string()))
    });
    let refused = refused.collect();
    let files = contents.keys().cloned().collect();
    Ok(Imported { folder: folder.into(), files, converted, district, unlikely_pv, refused })
}

fn refuse<T>(path: &Path, reason: String) -> Result<T, EnergyError> {
    Err(EnergyError::Import { path: path.into(), reason: field::printable(&reason) })
}

/// The folder of a data set for messages, its schema, and the files that this names; those that are missing are of buildings that are not included.
/// What is made of the files shares the budget.
type Source = (PathBuf, Vec<u8>, BTreeMap<String, Vec<u8>>, Budget);

fn open(wheel: &Path) -> Result<(Archive<File>, Vec<String>), EnergyError> {
    let file = File::open(wheel).map_err(|cause| EnergyError::Read { path: wheel.into(), cause })?;
    let archive = match Archive::new(file) {
        Ok(archive) => archive,
        Err(reason) => return refuse(wheel, format!("must be a `{SCHEMA}`, its folder, or a wheel, but {reason}")),
    };
    let name = |entry: String| {
        let set = entry.strip_prefix(SETS)?.strip_suffix(SCHEMA)?.strip_suffix('/')?;
        (!set.contains('/')).then(|| set.to_owned())
    };
    let mut sets: Vec<String> = archive.names().into_iter().filter_map(name).collect();
    if sets.is_empty() {
        let rule = "the last version of CityLearn whose wheel has data sets is 2.1.2";
        return refuse(wheel, format!("it has no data set `{SETS}NAME/{SCHEMA}`; {rule}"));
    }
    sets.sort_unstable();
    Ok((archive, sets))
}

fn from_wheel(wheel: &Path, set: Option<&str>) -> Result<Source, EnergyError> {
    let (mut archive, sets) = open(wheel)?;
    let Some(set) = set.filter(|set| sets.iter().any(|known| known == set)) else {
        let asked = set.map_or("needs the name of a data set".into(), |set| format!("has no data set `{set}`"));
        return refuse(wheel, format!("{asked}; it has {}", sets.join(", ")));
    };
    let prefix = format!("{SETS}{set}/");
    let entries = archive.names();
    let origin = wheel.join(&prefix);
    let schema = archive.read(&format!("{prefix}{SCHEMA}")).or_else(|reason| refuse(wheel, reason.to_string()))?;
    let value = archive.budget().json(without_mark(&schema));
    let value = value.map_err(|reason| schema_error(&origin.join(SCHEMA), &with_hint(&schema, reason.to_string())))?;
    let mut read = |name: &str| {
        let entry = format!("{prefix}{name}");
        let bytes = entries.contains(&entry).then(|| archive.read(&entry));
        bytes.transpose().or_else(|reason| refuse(wheel, reason.to_string()))
    };
    let files = named_files(&origin, &value, &mut read)?;
    Ok((origin, schema, files, archive.into_budget()))
}

fn from_schema(path: &Path) -> Result<Source, EnergyError> {
    let path = if path.is_dir() { path.join(SCHEMA) } else { path.into() };
    let mut schema = std::fs::read(&path).map_err(|cause| EnergyError::Read { path: path.clone(), cause })?;
    let mut value = parse(&path, &schema)?;
    let mut folder = path.parent().unwrap_or(Path::new("")).to_owned();
    // The files are then beside the schema.
    if let Some(root) = value.get_mut("root_directory").filter(|root| !root.is_null()) {
        match root.take() {
            Value::String(text) => folder = text.into(),
            other => return refuse(&path, format!("`root_directory` must be a text, got {other}")),
        }
        schema = format!("{value:#}\n").into_bytes();
    }
    let read = |name: &str| {
        let path = folder.join(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(EnergyError::Read { path, cause }),
        }
    };
    let files = named_files(&folder, &value, read)?;
    let n_bytes = files.values().map(|bytes| bytes.len() as u64).sum();
    Ok((folder, schema, files, Budget::of(n_bytes)))
}

fn parse(path: &Path, schema: &[u8]) -> Result<Value, EnergyError> {
    json(without_mark(schema)).map_err(|reason| schema_error(path, &reason))
}

fn schema_error(path: &Path, reason: &str) -> EnergyError {
    EnergyError::Schema { path: path.into(), reason: field::printable(reason) }
}

/// Reads the files that a schema names, wherever it does.
fn named_files(
    origin: &Path,
    schema: &Value,
    mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>, EnergyError>,
) -> Result<BTreeMap<String, Vec<u8>>, EnergyError> {
    let mut files = BTreeMap::new();
    let mut open = vec![(String::new(), schema, true)];
    while let Some((place, value, needed)) = open.pop() {
        let at = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
        match value {
            Value::Object(object) => {
                let needed = needed && object.get("include") != Some(&Value::Bool(false));
                open.extend(object.iter().map(|(key, value)| (at(key), value, needed)));
            }
            Value::Array(list) => {
                open.extend(list.iter().enumerate().map(|(i, value)| (at(&i.to_string()), value, needed)))
            }
            Value::String(name) if is_file(name) && !files.contains_key(name) => {
                if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
                    return refuse(origin, format!("`{place}` must name a file within the data set, got `{name}`"));
                }
                // Weights may have been converted before.
                let converted = name.strip_suffix(".pth").map(|stem| format!("{stem}.safetensors"));
                let mut found = None;
                for name in [Some(name.clone()), converted].into_iter().flatten() {
                    if found.is_none() {
                        found = read(&name)?.map(|bytes| (name, bytes));
                    }
                }
                match found {
                    Some((name, bytes)) => drop(files.insert(name, bytes)),
                    None if needed => return refuse(origin, format!("`{place}` names `{name}`, which is missing")),
                    None => {}
                }
            }
            _ => {}
        }
    }
    Ok(files)
}

fn is_file(text: &str) -> bool {
    [".csv", ".pth", ".safetensors"].iter().any(|end| text.ends_with(end))
}

/// Replaces weights of PyTorch, and returns their names.
fn convert(
    origin: &Path,
    files: &mut BTreeMap<String, Vec<u8>>,
    budget: &mut Budget,
) -> Result<Vec<String>, EnergyError> {
    let mut converted = Vec::new();
    for (name, bytes) in std::mem::take(files) {
        match name.strip_suffix(".pth") {
            None => drop(files.insert(name, bytes)),
            Some(stem) => {
                let weights = StateDict::read_within(&bytes, budget).and_then(|weights| weights.to_safetensors());
                let weights = weights.or_else(|reason| refuse(&origin.join(&name), reason.to_string()))?;
                files.insert(format!("{stem}.safetensors"), weights);
                converted.push(name);
            }
        }
    }
    Ok(converted)
}

fn check_empty(folder: &Path) -> Result<(), EnergyError> {
    if folder.file_name().is_none() {
        return refuse(folder, "must be the path of a folder to write".into());
    }
    match std::fs::read_dir(folder).map(|mut entries| entries.next()) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => refuse(folder, "must be an empty folder or none, but it has files".into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(EnergyError::Write { path: folder.into(), cause }),
    }
}

/// Writes the files to a folder beside `folder`, reads the district back, and renames the folder.
fn write(files: &BTreeMap<String, Vec<u8>>, folder: &Path, district: &District) -> Result<(), EnergyError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.with_file_name(format!(".{name}.{}", std::process::id()));
    let done = write_and_rename(files, &beside, folder, district);
    if done.is_err() {
        // The error is what matters; a remaining folder is harmless.
        let _ = std::fs::remove_dir_all(&beside);
    }
    done
}

fn write_and_rename(
    files: &BTreeMap<String, Vec<u8>>,
    beside: &Path,
    folder: &Path,
    district: &District,
) -> Result<(), EnergyError> {
    for (name, bytes) in files {
        let path = beside.join(name);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, bytes));
        written.map_err(|cause| EnergyError::Write { path, cause })?;
    }
    let options = LoadOptions { accept_unlikely_pv: true, ..LoadOptions::default() };
    if District::read(Files::Folder(beside.into()), SCHEMA, options)? != *district {
        return refuse(folder, "what was written is not what was read".into());
    }
    let renamed = match std::fs::remove_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => std::fs::rename(beside, folder),
    };
    renamed.map_err(|cause| EnergyError::Write { path: folder.into(), cause })
}
