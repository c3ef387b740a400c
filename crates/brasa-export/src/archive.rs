//! Zip archives: wheels, weights of PyTorch, models of Stable-Baselines3.

use std::io::{Read, Seek, SeekFrom};

use zip::ZipArchive;

use crate::{Budget, ExportError};

/// Largest entry in bytes; the tables of a district have some million.
const MOST_BYTES: u64 = 1 << 28;

/// A zip archive in memory or in a file.
///
/// ```
/// use std::io::Cursor;
///
/// use brasa_export::Archive;
///
/// # let model = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/stable_baselines3/a2c.zip"))?;
/// // `model` has the bytes of a model of Stable-Baselines3.
/// let mut archive = Archive::new(Cursor::new(model))?;
/// assert!(archive.names().contains(&"policy.pth".to_owned()));
/// let data = archive.read("data")?;
/// assert!(archive.budget().json(&data)?["action_space"].is_object());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Archive<R> {
    zip: ZipArchive<R>,
    budget: Budget,
}

impl<R: Read + Seek> Archive<R> {
    /// Opens an archive.
    ///
    /// # Errors
    /// [`ExportError::Content`] if it is none.
    pub fn new(mut reader: R) -> Result<Self, ExportError> {
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
    /// [`ExportError::Content`] if there is no such entry, or it is damaged or too large.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>, ExportError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write};
    use zip::write::{SimpleFileOptions, ZipWriter};

    /// An archive of `n` entries that share one body: the directory at its end names it again and again.
    fn shared(body: &[u8], n: u16) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("000.csv", SimpleFileOptions::default()).expect("it can be written");
        writer.write_all(body).expect("it can be written");
        let mut bytes = writer.finish().expect("it can be written").into_inner();
        let find = |bytes: &[u8], mark: &[u8; 4]| bytes.windows(4).rposition(|four| four == mark).expect("it is there");
        let end = bytes.split_off(find(&bytes, b"PK\x05\x06"));
        let start = find(&bytes, b"PK\x01\x02");
        let entry = bytes.split_off(start);
        let name = entry.windows(7).position(|seven| seven == b"000.csv").expect("it is there");
        for i in 0..n {
            let mut entry = entry.clone();
            entry[name..name + 3].copy_from_slice(format!("{i:03}").as_bytes());
            bytes.extend(entry);
        }
        let size = (bytes.len() - start) as u32;
        bytes.extend(&end[..8]);
        bytes.extend([n.to_le_bytes(), n.to_le_bytes()].concat());
        bytes.extend(size.to_le_bytes());
        bytes.extend((start as u32).to_le_bytes());
        bytes.extend([0, 0]);
        bytes
    }

    #[test]
    fn entries_that_share_a_body_share_a_budget() {
        let bytes = shared(&vec![b'0'; 8 << 20], 200);
        assert!(bytes.len() < 50_000, "{}", bytes.len());
        let mut archive = Archive::new(Cursor::new(bytes)).expect("it is an archive");
        let names = archive.names();
        assert_eq!(names.len(), 200);
        let read = names.iter().map(|name| archive.read(name)).take_while(Result::is_ok).count();
        assert!((8..20).contains(&read), "{read} entries of 8 MiB");
        let error = archive.read(&names[read]).expect_err("nothing is left").to_string();
        assert!(error.contains("up to `"), "{error}");
    }
}
