//! Zip archives: wheels, weights of PyTorch, models of Stable-Baselines3.

use std::io::{Read, Seek};

use zip::ZipArchive;

/// Largest entry in bytes; the tables of a district have some million.
const MOST_BYTES: u64 = 1 << 28;

/// A zip archive in memory or in a file.
pub struct Archive<R>(ZipArchive<R>);

impl<R: Read + Seek> Archive<R> {
    /// Opens an archive.
    ///
    /// # Errors
    /// The reason, as the end of a sentence about the file.
    pub fn new(reader: R) -> Result<Self, String> {
        ZipArchive::new(reader).map(Self).map_err(|error| format!("it is not a zip archive: {error}"))
    }

    /// The names of the entries, as far as they are text.
    pub fn names(&self) -> Vec<String> {
        self.0.file_names().flatten().map(|name| name.into_owned()).collect()
    }

    /// The bytes of an entry, checked against its checksum; at most 256 MiB.
    ///
    /// # Errors
    /// The reason, as the end of a sentence about the file.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let entry = self.0.by_name(name).map_err(|error| format!("`{name}` cannot be read: {error}"))?;
        let mut bytes = Vec::new();
        // The size that an entry states is not to be trusted.
        entry
            .take(MOST_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("`{name}` cannot be read: {error}"))?;
        match bytes.len() as u64 > MOST_BYTES {
            true => Err(format!("`{name}` must have at most {MOST_BYTES} bytes")),
            false => Ok(bytes),
        }
    }
}
