//! Files that are either complete or absent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes `bytes` to a temporary file beside `path`, syncs and renames it. A reader sees the old file or the new one.
///
/// A symbolic link at `path` or at the temporary name is replaced, never followed.
///
/// # Errors
/// If a file system operation fails; `path` is then unchanged.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    // Left by a killed process, or placed there by another program.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // An unfinished file must not keep a full disk full.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_parent(path)
}

/// Writes `bytes` to a new file and syncs it.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // An existing file could be a symbolic link.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Syncs the directory that contains `path`.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent),
        _ => Ok(()),
    }
}

/// Syncs a directory, so that its entries are on disk.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    match File::open(dir) {
        Ok(dir) => match dir.sync_all() {
            // Some systems cannot sync directories.
            Err(error) if is_unsupported(&error) => Ok(()),
            synced => synced,
        },
        // Windows cannot open directories as files.
        Err(_) if cfg!(windows) => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

/// Creates a directory and its parents, and syncs the parent.
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
