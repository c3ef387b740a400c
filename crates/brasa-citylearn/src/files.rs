//! The files of a data set, embedded in the crate or in a folder.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use brasa_power::EnergyError;
use flate2::read::GzDecoder;

/// Name of the embedded district.
pub(super) const PHASE1: &str = "phase1";

/// The embedded files, compressed; `data/NOTICE.md` has their origin and license.
const EMBEDDED: [(&str, &[u8]); 9] = [
    ("schema.json", include_bytes!("../data/schema.json.gz")),
    ("Building_1.csv", include_bytes!("../data/Building_1.csv.gz")),
    ("Building_2.csv", include_bytes!("../data/Building_2.csv.gz")),
    ("Building_3.csv", include_bytes!("../data/Building_3.csv.gz")),
    ("Building_4.csv", include_bytes!("../data/Building_4.csv.gz")),
    ("Building_5.csv", include_bytes!("../data/Building_5.csv.gz")),
    ("weather.csv", include_bytes!("../data/weather.csv.gz")),
    ("pricing.csv", include_bytes!("../data/pricing.csv.gz")),
    ("carbon_intensity.csv", include_bytes!("../data/carbon_intensity.csv.gz")),
];

/// The files of a data set.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Files {
    /// The embedded 2022 phase 1 district.
    Phase1,
    /// A folder.
    Folder(PathBuf),
    /// Files in memory, with the folder that messages name.
    Memory(PathBuf, Arc<BTreeMap<String, Vec<u8>>>),
}

impl Files {
    /// The path of `name` in messages.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Phase1 => Path::new(PHASE1).join(name),
            Self::Folder(folder) | Self::Memory(folder, _) => folder.join(name),
        }
    }

    /// The bytes of the file called `name`.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, EnergyError> {
        let path = self.path(name);
        let failed = |cause| EnergyError::Read { path: path.clone(), cause };
        match self {
            Self::Folder(_) => std::fs::read(&path).map_err(failed),
            Self::Memory(_, files) => {
                files.get(name).cloned().ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
            }
            Self::Phase1 => {
                let packed = EMBEDDED.iter().find(|(known, _)| *known == name);
                let (_, packed) = packed.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
                let mut bytes = Vec::new();
                GzDecoder::new(*packed).read_to_end(&mut bytes).map_err(failed)?;
                Ok(bytes)
            }
        }
    }
}
