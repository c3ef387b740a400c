//! Files that are either complete or absent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Writes `bytes` to a temporary file beside `path`, syncs and renames it. A reader sees the old file or the new one.
///
/// A symbolic link at `path` or at the temporary name is replaced, never followed.
///
/// ```
/// use brasa_train::write_atomically;
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("result.json");
/// write_atomically(&path, b"{}")?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// assert!(write_atomically(&dir.path().join("missing/result.json"), b"{}").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
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

/// Whether `path` is a name of standard output: `-`, or one of the system, such as `/dev/stdout`.
///
/// ```
/// use std::path::Path;
///
/// use brasa_train::is_standard_output;
///
/// assert!(is_standard_output(Path::new("-")) && is_standard_output(Path::new("/dev/stdout")));
/// // A file of this name.
/// assert!(!is_standard_output(Path::new("./-")));
/// ```
pub fn is_standard_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Writes `bytes` to the place that a user named.
///
/// - A name of standard output ([`is_standard_output`]): to standard output.
/// - A regular file or a free name: to a temporary file that is renamed, as in [`write_atomically`]. The new file has the mode of the old one.
/// - A symbolic link: to the file to which it points. The link stays.
/// - Anything else that exists, such as a pipe or a device: it is opened and written, and stays what it is.
///
/// [`OutputFile`] is the same for what is written little by little.
///
/// ```
/// use brasa_train::write_output;
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("policy.json");
/// write_output(&path, b"{}")?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// // A directory stays what it is.
/// assert!(write_output(dir.path(), b"{}").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If a file system operation fails; a regular file is then unchanged.
pub fn write_output(path: &Path, mut bytes: &[u8]) -> io::Result<()> {
    copy_output(path, &mut bytes)
}

/// As [`write_output`], with everything that `from` gives.
fn copy_output(path: &Path, from: &mut dyn Read) -> io::Result<()> {
    if is_standard_output(path) {
        let mut out = io::stdout().lock();
        return io::copy(from, &mut out).and_then(|_| out.flush());
    }
    if is_foreign_output(path) {
        let mut file = OpenOptions::new().write(true).open(path)?;
        return io::copy(from, &mut file).and_then(|_| file.flush());
    }
    let path = end_of_links(path)?;
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no file name"));
    };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let written = copy_synced(&temporary, from)
        .and_then(|()| match fs::metadata(&path) {
            Ok(old) => fs::set_permissions(&temporary, old.permissions()),
            Err(_) => Ok(()),
        })
        .and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        // An unfinished file must not keep a full disk full.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_parent(&path)
}

/// Whether something is at `path` that is not a regular file. A missing file, or one that the system does not let us see, is none: creating it
/// gives the reason.
fn is_foreign_output(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// A result that is written little by little, and appears at the place that a user named when it is complete ([`OutputFile::publish`]).
///
/// Until then, it is a file without a name, which disappears with the process. It can be sought, whatever the place is.
///
/// ```
/// use std::io::Write;
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("curve.csv");
/// let mut file = brasa_train::OutputFile::create(&path)?;
/// writeln!(file, "step,return")?;
/// assert!(!path.exists());
/// file.publish()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "step,return\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// An empty result for `path`, which is not touched. For a regular file it is on the same file system.
    ///
    /// # Errors
    /// If the directory of `path` is missing or cannot be written, or if `path` is a directory.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = if is_standard_output(path) {
            tempfile::tempfile()?
        } else if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        } else if is_foreign_output(path) {
            tempfile::tempfile()?
        } else {
            let end = end_of_links(path)?;
            let parent = end.parent().filter(|parent| !parent.as_os_str().is_empty());
            tempfile::tempfile_in(parent.unwrap_or(Path::new(".")))?
        };
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the whole result to its place, as [`write_output`] does.
    ///
    /// # Errors
    /// As [`write_output`].
    pub fn publish(mut self) -> io::Result<()> {
        self.file.rewind()?;
        copy_output(&self.path, &mut self.file)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// The path behind symbolic links, which need not exist.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    /// As many as Linux follows.
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Writes `bytes` to a new file and syncs it.
pub(crate) fn write_synced(path: &Path, mut bytes: &[u8]) -> io::Result<()> {
    copy_synced(path, &mut bytes)
}

/// Writes everything that `from` gives to a new file and syncs it.
fn copy_synced(path: &Path, from: &mut dyn Read) -> io::Result<()> {
    // An existing file could be a symbolic link.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    io::copy(from, &mut file)?;
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

/// The first of these that is there and neither a file nor a directory: a symbolic link, which a write would follow, or a pipe, for which a
/// reader would wait.
pub(crate) fn first_foreign<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Option<&'a Path> {
    let is_foreign = |metadata: std::fs::Metadata| !metadata.is_file() && !metadata.is_dir();
    paths.into_iter().find(|path| path.symlink_metadata().is_ok_and(is_foreign))
}
