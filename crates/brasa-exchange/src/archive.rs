//! Zip archives: wheels, weights of PyTorch, models of Stable-Baselines3.

use std::io::{Read, Seek, SeekFrom};

use zip::ZipArchive;

use crate::Budget;

/// Largest entry in bytes; the tables of a district have some million.
const MOST_BYTES: u64 = 1 << 28;

/// A zip archive in memory or in a file.
pub struct Archive<R> {
    zip: ZipArchive<R>,
    budget: Budget,
}

impl<R: Read + Seek> Archive<R> {
    /// Opens an archive.
    ///
    /// # Errors
    /// The reason, as the end of a sentence about the file.
    pub fn new(mut reader: R) -> Result<Self, String> {
        let size = reader.seek(SeekFrom::End(0)).map_err(|error| format!("it cannot be read: {error}"))?;
        let zip = ZipArchive::new(reader).map_err(|error| format!("it is not a zip archive: {error}"))?;
        Ok(Self { zip, budget: Budget::of(size) })
    }

    /// The names of the entries, as far as they are text.
    pub fn names(&self) -> Vec<String> {
        self.zip.file_names().flatten().map(|name| name.into_owned()).collect()
    }

    /// What is left of the memory that the archive may take, for what is made of its entries.
    pub fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// The same after the last entry.
    pub fn into_budget(self) -> Budget {
        self.budget
    }

    /// The bytes of an entry, checked against its checksum; at most 256 MiB, and all entries together at most the budget of the archive
    /// ([`Budget::of`]).
    ///
    /// # Errors
    /// The reason, as the end of a sentence about the file.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let bytes = read_entry(&mut self.zip, name, &self.budget)?;
        self.budget.spend(bytes.len())?;
        Ok(bytes)
    }
}

/// An entry of an archive, which may take what `budget` has left.
pub(crate) fn read_entry<R: Read + Seek>(
    zip: &mut ZipArchive<R>,
    name: &str,
    budget: &Budget,
) -> Result<Vec<u8>, String> {
    let most = MOST_BYTES.min(budget.left());
    let entry = zip.by_name(name).map_err(|error| format!("`{name}` cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    // The size that an entry states is not to be trusted.
    entry.take(most + 1).read_to_end(&mut bytes).map_err(|error| format!("`{name}` cannot be read: {error}"))?;
    let n_bytes = bytes.len() as u64;
    if n_bytes > MOST_BYTES {
        return Err(format!("`{name}` must have at most {MOST_BYTES} bytes"));
    }
    if n_bytes > most {
        return Err(format!("{}, up to `{name}`", budget.exceeded()));
    }
    Ok(bytes)
}
