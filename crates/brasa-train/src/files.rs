//! Files that are either whole or absent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes `bytes` to a temporary name beside `path`, syncs and renames: a reader sees the old file or the new one.
///
/// A symbolic link at `path` or at the temporary name is replaced, never followed.
///
/// # Errors
/// Where the file system refuses; `path` is then unchanged.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    // What a killed process left, or somebody planted.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // A full disk must not stay full because of what could not be finished.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_parent(path)
}

/// Writes `bytes` into a new file and waits until they are on disk.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A file that exists already may be a link to somewhere else.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits until the directory of `path` knows its new entry.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent),
        _ => Ok(()),
    }
}

/// Waits until a directory knows its entries.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    match File::open(dir) {
        Ok(dir) => match dir.sync_all() {
            // Directories cannot be synced on every system.
            Err(error) if is_unsupported(&error) => Ok(()),
            synced => synced,
        },
        // Windows does not open directories.
        Err(_) if cfg!(windows) => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

/// Makes a directory and its parents, and waits until the one above knows it.
pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_dir(parent)?;
    }
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    sync_parent(dir)
}

/// The first of these files and directories that is a symbolic link.
pub(crate) fn first_link<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Option<&'a Path> {
    paths.into_iter().find(|path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()))
}
