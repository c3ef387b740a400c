//! IMDF as it is distributed: a zip archive.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::IMDF_FILES;

/// Most bytes of the files of an archive together.
const MOST_BYTES: u64 = 1 << 28;

/// Whether a file begins as a zip archive.
pub(super) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// Names and texts of the files of a building.
///
/// # Errors
/// The reason: a missing file, two of one name, or more than 256 MiB.
pub(super) fn read(bytes: Vec<u8>) -> Result<Vec<(String, String)>, String> {
    let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(|error| format!("it is not a zip archive: {error}"))?;
    let entries: Vec<String> = zip.file_names().flatten().map(|name| name.into_owned()).collect();
    let mut left = MOST_BYTES;
    let mut files = Vec::new();
    for (file, is_needed) in IMDF_FILES {
        // In any folder but that of file attributes, which macOS adds.
        let is_it = |entry: &&String| entry.rsplit('/').next() == Some(file) && !entry.starts_with("__MACOSX/");
        let found: Vec<&String> = entries.iter().filter(is_it).collect();
        match found[..] {
            [] if is_needed => return Err(format!("the archive has no `{file}`")),
            [] => {}
            [entry] => {
                let fail = |error: &dyn std::fmt::Display| format!("`{entry}` cannot be read: {error}");
                let content = zip.by_name(entry).map_err(|error| fail(&error))?;
                let mut text = String::new();
                // The size that an entry states is not to be trusted.
                content.take(left + 1).read_to_string(&mut text).map_err(|error| fail(&error))?;
                left = left
                    .checked_sub(text.len() as u64)
                    .ok_or_else(|| format!("its files must have at most {MOST_BYTES} bytes, up to `{entry}`"))?;
                files.push((entry.clone(), text));
            }
            _ => return Err(format!("the archive has {} files `{file}`; it must be one building", found.len())),
        }
    }
    Ok(files)
}
