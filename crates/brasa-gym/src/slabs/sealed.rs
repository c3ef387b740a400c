//! Memory of Linux with a file descriptor, whose size cannot be changed once it is sealed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::fill;

/// A file in memory, sealed against other sizes.
pub(crate) struct Sealed {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl Sealed {
    /// `size` zeros; `None` where the system has no such memory, or another process could not open it.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(super) fn new(size: u64) -> io::Result<Option<Self>> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = match memfd_create("brasa-gym", flags) {
            Ok(file) => File::from(file),
            Err(Errno::ENOSYS | Errno::EPERM | Errno::EINVAL | Errno::EACCES) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        fill(&file, size)?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        let opens = File::options().read(true).write(true).open(&path).is_ok();
        Ok(opens.then_some(Self { file, path }))
    }
}
