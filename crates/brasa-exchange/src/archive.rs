//! Zip archives: wheels, weights of PyTorch, models of Stable-Baselines3.

use std::io::{Read, Seek, SeekFrom};

use zip::ZipArchive;

/// Largest entry in bytes; the tables of a district have some million.
const MOST_BYTES: u64 = 1 << 28;
/// Bytes of all entries together, as a multiple of the bytes of the archive, beyond [`FREE`]: tables are compressed to a tenth, and an archive
/// whose entries share one body to nothing.
const RATIO: u64 = 100;
/// Bytes that any archive may have.
const FREE: u64 = 1 << 26;

/// A zip archive in memory or in a file.
pub struct Archive<R> {
    zip: ZipArchive<R>,
    /// Bytes that may still be read.
    left: u64,
}

impl<R: Read + Seek> Archive<R> {
    /// Opens an archive.
    ///
    /// # Errors
    /// The reason, as the end of a sentence about the file.
    pub fn new(mut reader: R) -> Result<Self, String> {
        let size = reader.seek(SeekFrom::End(0)).map_err(|error| format!("it cannot be read: {error}"))?;
        let zip = ZipArchive::new(reader).map_err(|error| format!("it is not a zip archive: {error}"))?;
        Ok(Self { zip, left: FREE.saturating_add(size.saturating_mul(RATIO)) })
    }

    /// The names of the entries, as far as they are text.
    pub fn names(&self) -> Vec<String> {
        self.zip.file_names().flatten().map(|name| name.into_owned()).collect()
    }

    /// The bytes of an entry, checked against its checksum; at most 256 MiB, and all entries together at most 64 MiB and 100 times the size
    /// of the archive.
    ///
    /// # Errors
    /// The reason, as the end of a sentence about the file.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let most = MOST_BYTES.min(self.left);
        let entry = self.zip.by_name(name).map_err(|error| format!("`{name}` cannot be read: {error}"))?;
        let mut bytes = Vec::new();
        // The size that an entry states is not to be trusted.
        entry.take(most + 1).read_to_end(&mut bytes).map_err(|error| format!("`{name}` cannot be read: {error}"))?;
        let n_bytes = bytes.len() as u64;
        if n_bytes > MOST_BYTES {
            return Err(format!("`{name}` must have at most {MOST_BYTES} bytes"));
        }
        if n_bytes > most {
            return Err(format!("its entries have more than {RATIO} times the bytes of the archive, up to `{name}`"));
        }
        self.left -= n_bytes;
        Ok(bytes)
    }
}
