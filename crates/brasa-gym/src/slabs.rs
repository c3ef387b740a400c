//! The memory that the batch and its workers share: one array after another in one file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
mod sealed;

use memmap2::MmapMut;
use tempfile::NamedTempFile;

use brasa_env::EnvSpec;

use crate::GymError;

/// Where each array of the shared memory begins, its columns and its rows.
#[derive(Debug)]
pub(crate) struct Layout {
    n_envs: usize,
    arrays: Vec<Array>,
}
#[derive(Debug)]
struct Array {
    name: &'static str,
    offset: usize,
    columns: usize,
    bytes_per_number: usize,
    /// The number of agents, or 1.
    rows_per_env: usize,
}

impl Array {
    /// The bytes of `n_envs` environments.
    fn bytes(&self, n_envs: usize) -> usize {
        n_envs * self.rows_per_env * self.columns * self.bytes_per_number
    }
}

/// Arrays begin at multiples of a cache line.
const LINE: usize = 64;

impl Layout {
    /// The arrays of the environments of `spec`.
    pub(crate) fn new(spec: &EnvSpec) -> Self {
        let (n_envs, n_agents, obs_width, flags) = (spec.n_envs, spec.n_agents, spec.obs.width(), spec.mask_width());
        let discrete = spec.action.numbers().is_none();
        let of_obs = if spec.obs.has_bytes() { 1 } else { 4 };
        let sizes = [
            ("actions", spec.action.width(), if discrete { 8 } else { 4 }, n_agents),
            ("seeds", 1, 8, 1),
            ("rewards", 1, 8, n_agents),
            // Before the wrappers, if the batch keeps episodes.
            ("raw_rewards", usize::from(spec.keeps_episodes), 8, 1),
            ("flags", 1, 1, n_agents),
            ("next_obs", obs_width, of_obs, n_agents),
            ("obs", obs_width, of_obs, n_agents),
            ("next_masks", flags, 4, n_agents),
            ("masks", flags, 4, n_agents),
        ];
        let mut offset = 0;
        let place = |(name, columns, bytes_per_number, rows_per_env)| {
            let array = Array { name, offset, columns, bytes_per_number, rows_per_env };
            offset += array.bytes(n_envs).next_multiple_of(LINE);
            array
        };
        Self { n_envs, arrays: sizes.into_iter().map(place).collect() }
    }

    /// Bytes of all arrays.
    pub(crate) fn bytes(&self) -> usize {
        self.arrays.iter().map(|array| array.bytes(self.n_envs).next_multiple_of(LINE)).sum()
    }

    /// The description for a worker whose first environment is `first_env` of the batch, as JSON.
    pub(crate) fn for_worker(&self, path: &Path, first_env: usize) -> String {
        let mut layout = serde_json::json!({
            "path": path.display().to_string(), "n_envs": self.n_envs, "first_env": first_env,
        });
        for array in &self.arrays {
            layout[array.name] = serde_json::json!([array.offset, array.columns, array.rows_per_env]);
        }
        layout.to_string()
    }

    fn array(&self, name: &str) -> &Array {
        self.arrays.iter().find(|array| array.name == name).expect("a name of `Layout::new`")
    }
}

/// A file by which workers map the shared memory. They may map it as long as this value exists.
pub(crate) enum SharedFile {
    /// A file without a name whose size nobody can change.
    #[cfg(target_os = "linux")]
    Sealed(sealed::Sealed),
    /// A file that is removed with this value.
    Named(NamedTempFile),
}

impl SharedFile {
    fn new(size: u64, folder: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(sealed) = sealed::Sealed::new(size)? {
            return Ok(Self::Sealed(sealed));
        }
        let file = tempfile::Builder::new().prefix("brasa-gym-").tempfile_in(folder)?;
        fill(file.as_file(), size)?;
        Ok(Self::Named(file))
    }

    fn as_file(&self) -> &File {
        match self {
            #[cfg(target_os = "linux")]
            Self::Sealed(sealed) => &sealed.file,
            Self::Named(file) => file.as_file(),
        }
    }

    /// The name by which a process of this user opens it.
    pub(crate) fn path(&self) -> &Path {
        match self {
            #[cfg(target_os = "linux")]
            Self::Sealed(sealed) => &sealed.path,
            Self::Named(file) => file.path(),
        }
    }
}

/// The mapped file.
#[derive(Debug)]
pub(crate) struct SharedSlabs {
    memory: MmapMut,
    pub(crate) layout: Layout,
}

impl SharedSlabs {
    /// Memory for `layout`, and the file by which workers map it; it may be dropped when they have.
    ///
    /// # Errors
    /// [`GymError::SharedMemory`] if there is not enough.
    pub(crate) fn new(layout: Layout, id: &str) -> Result<(Self, SharedFile), GymError> {
        let folder = folder();
        let fail = |error: io::Error| GymError::SharedMemory {
            id: id.to_owned(),
            bytes: layout.bytes() as u64,
            folder: folder.display().to_string(),
            message: error.to_string(),
        };
        let file = SharedFile::new(layout.bytes() as u64, &folder).map_err(fail)?;
        // SAFETY: the file is new, and no process but the workers gets its name.
        // - Its size: on Linux it is sealed, so that no process can shorten it and reads never leave it. Elsewhere the name is removed once the workers
        //   have mapped it; a worker that shortened the file before would end this process by a signal.
        // - Its bytes: a worker writes them only between a command and its reply, while this process waits. An environment that breaks this,
        //   from a thread of its own, changes numbers under a reader. Every pattern of bits is a number of these arrays, every number is
        //   copied once before it is checked, and no reference into the memory outlives a call.
        #[allow(unsafe_code, reason = "memory that is shared with other processes")]
        let memory = unsafe { MmapMut::map_mut(file.as_file()) }.map_err(fail)?;
        Ok((Self { memory, layout }, file))
    }

    /// The bytes of rows `rows` of an array.
    fn bytes(&self, name: &str, rows: std::ops::Range<usize>) -> &[u8] {
        let array = self.layout.array(name);
        let row = array.columns * array.bytes_per_number;
        &self.memory[array.offset + rows.start * row..array.offset + rows.end * row]
    }

    /// The bytes of a whole array.
    pub(crate) fn bytes_mut(&mut self, name: &str) -> &mut [u8] {
        let array = self.layout.array(name);
        let size = array.bytes(self.layout.n_envs);
        &mut self.memory[array.offset..array.offset + size]
    }

    /// Copies rows of an array of floats; whether all are finite.
    pub(crate) fn read(&self, name: &str, rows: std::ops::Range<usize>, to: &mut [f32]) -> bool {
        let from = self.bytes(name, rows);
        if self.layout.array(name).bytes_per_number == 1 {
            assert_eq!(from.len(), to.len(), "size of `{name}`");
            to.iter_mut().zip(from).for_each(|(to, from)| *to = f32::from(*from));
            return true;
        }
        let (numbers, _) = from.as_chunks::<4>();
        assert_eq!(numbers.len(), to.len(), "size of `{name}`");
        let mut is_finite = true;
        for (to, from) in to.iter_mut().zip(numbers) {
            *to = f32::from_ne_bytes(*from);
            is_finite &= to.is_finite();
        }
        is_finite
    }

    /// Writes all numbers of an array, in the type that [`SharedSlabs::read`] reads.
    pub(crate) fn write(&mut self, name: &str, values: &[f32]) {
        let bytes: Vec<u8> = match self.layout.array(name).bytes_per_number {
            1 => values.iter().map(|value| *value as u8).collect(),
            _ => values.iter().flat_map(|value| value.to_ne_bytes()).collect(),
        };
        self.bytes_mut(name).copy_from_slice(&bytes);
    }

    /// The number of a row in `rewards` or `raw_rewards`.
    pub(crate) fn reward(&self, name: &str, row: usize) -> f64 {
        let (numbers, _) = self.bytes(name, row..row + 1).as_chunks::<8>();
        f64::from_ne_bytes(numbers[0])
    }

    /// The flags of a row.
    pub(crate) fn flags(&self, row: usize) -> u8 {
        self.bytes("flags", row..row + 1)[0]
    }

    /// Sets the seed of the next episode of an environment.
    pub(crate) fn set_seed(&mut self, env: usize, seed: i64) {
        self.bytes_mut("seeds")[8 * env..8 * (env + 1)].copy_from_slice(&seed.to_ne_bytes());
    }
}

/// A folder in memory where there is one.
fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Writes `size` zeros: a file with holes would end the process when its pages cannot be had later.
fn fill(mut file: &File, size: u64) -> io::Result<()> {
    let mut zeros = io::repeat(0).take(size);
    io::copy(&mut zeros, &mut file).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_env::{MaskSpec, Space};

    fn obs(width: usize) -> Space {
        Space::uniform_box(-1.0, 1.0, (0..width).map(|i| i.to_string()))
    }

    #[test]
    fn arrays_do_not_overlap() {
        let choices = Space::MultiDiscrete(vec![2, 2]);
        let mask = Some(MaskSpec::default());
        let layout = Layout::new(&EnvSpec { mask, n_agents: 2, ..EnvSpec::new(obs(5), choices, 3) });
        let mut end = 0;
        for array in &layout.arrays {
            assert!(array.offset >= end && array.offset % LINE == 0, "{}", array.name);
            end = array.offset + array.bytes(layout.n_envs);
        }
        assert!(layout.bytes() >= end);
    }

    #[test]
    fn numbers_go_through() {
        let (mut slabs, file) =
            SharedSlabs::new(Layout::new(&EnvSpec::new(obs(3), obs(1), 2)), "A").expect("a few bytes");
        drop(file);
        let written = [1.0_f32, 2.0, 3.0, 4.0, f32::NAN, 6.0];
        for (to, from) in slabs.bytes_mut("obs").chunks_exact_mut(4).zip(written) {
            to.copy_from_slice(&from.to_ne_bytes());
        }
        let mut row = [0.0; 3];
        assert!(slabs.read("obs", 0..1, &mut row));
        assert_eq!(row, [1.0, 2.0, 3.0]);
        assert!(!slabs.read("obs", 1..2, &mut row));
    }

    /// A worker that shortens the file would end this process at its next read.
    #[test]
    #[cfg(target_os = "linux")]
    fn no_process_can_shorten_the_memory() {
        let layout = Layout::new(&EnvSpec::new(obs(3), obs(1), 2));
        let (mut slabs, file) = SharedSlabs::new(layout, "A").expect("a few bytes");
        let other =
            File::options().read(true).write(true).open(file.path()).expect("a process of this user may open it");
        for size in [0, 1 << 20] {
            assert_eq!(other.set_len(size).expect_err("its size is fixed").kind(), io::ErrorKind::PermissionDenied);
        }
        slabs.bytes_mut("obs").fill(0);
        let mut row = [1.0; 3];
        assert!(slabs.read("obs", 1..2, &mut row) && row == [0.0; 3]);
    }

    /// A device that is always full, where the system has one.
    #[test]
    fn full_memory_is_an_error() {
        let Ok(full) = File::options().write(true).open("/dev/full") else {
            eprintln!("SKIPPED: this system has no /dev/full");
            return;
        };
        assert_eq!(fill(&full, 1).expect_err("nothing fits").kind(), io::ErrorKind::StorageFull);
    }
}
