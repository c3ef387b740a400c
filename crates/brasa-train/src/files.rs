//! Files that are either whole or absent.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes `bytes` to a temporary name beside `path`, syncs and renames: whoever looks sees the old file or the new.
///
/// # Errors
/// Where the file system refuses; `path` is then unchanged.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // A full disk must not stay full because of what could not be finished.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_parent(path)
}

/// Writes `bytes` and waits until they are on disk.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits until the directory of `path` knows its new entry.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        // Directories cannot be synced on every system; the rename itself has happened.
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent).and_then(|dir| dir.sync_all()).or(Ok(())),
        _ => Ok(()),
    }
}
