//! A replay buffer as bytes: the state for a resume, without unwritten rows.
//!
//! The order is: length of the head, head, the written rows of every array in pieces, the successors beside the ring, priorities. Numbers
//! are little-endian, in the precision of the buffer.

use std::ops::Range;

use brasa_core::read_back;
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{BufferError, ReplayBuffer};
use crate::compact::{Compact, Layout, Packed};
use crate::replay::ring::Ring;

const VERSION: u32 = 4;
/// Bytes per transfer: small relative to a large buffer, large relative to the overhead of a transfer.
const PIECE: usize = 8 << 20;

#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    n_slots: usize,
    n_rows: usize,
    arrays: Vec<Layout>,
    starts: Vec<bool>,
    ends: Vec<Option<usize>>,
    pending: Option<usize>,
    begun: bool,
    open: Option<usize>,
    linked: Vec<f32>,
    since_truncation: Vec<f32>,
    largest_priority: Option<f64>,
}

impl<O: Compact, A: Compact> ReplayBuffer<O, A> {
    /// The complete state for a resume; reads from the device.
    pub fn save(&self) -> Vec<u8> {
        let rows = self.ring.written() * self.n_rows;
        let priorities = self.priorities.as_ref().map(|priorities| priorities.leaves(rows));
        let head = Head {
            version: VERSION,
            n_slots: self.ring.n_slots(),
            n_rows: self.n_rows,
            arrays: self.arrays().map(|(array, _)| array.layout()).collect(),
            starts: self.ring.starts()[..self.ring.written()].to_vec(),
            ends: (0..self.ring.written()).map(|slot| self.ring.end(slot)).collect(),
            pending: self.pending,
            begun: self.begun,
            open: self.ring.open(),
            linked: read_back(self.linked.clone()),
            since_truncation: read_back(self.watch.since()),
            largest_priority: priorities.as_ref().map(|(largest, _)| *largest),
        };
        let head = postcard::to_stdvec(&head).expect("plain values always serialize");
        let leaves = priorities.map_or(Vec::new(), |(_, leaves)| leaves);
        let mut bytes =
            Vec::with_capacity(LENGTH + head.len() + self.teams(rows) * self.team_bytes() + leaves.len() * LEAF);
        bytes.extend((head.len() as u64).to_le_bytes());
        bytes.extend(head);
        for piece in self.pieces(rows) {
            self.arrays().for_each(|(array, n)| array.write(rows_of(&piece, n), &mut bytes));
        }
        let beside = self.beside(self.pending.is_some());
        self.obs_arrays().for_each(|(array, n)| array.write(rows_of(&beside, n), &mut bytes));
        bytes.extend(leaves.iter().flat_map(|leaf| leaf.to_le_bytes()));
        bytes
    }

    /// Restores saved bytes of a buffer of the same capacity, shape and precision. The next samples equal those of the
    /// saved buffer, bit for bit on the CPU.
    ///
    /// # Errors
    /// [`BufferError::State`] if the bytes do not fit; the buffer is then unchanged.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), BufferError> {
        let fail = |reason: String| BufferError::State { reason };
        let short = || fail(format!("{} bytes are too few", bytes.len()));
        let (length, rest) = bytes.split_first_chunk::<LENGTH>().ok_or_else(short)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
        let (head, mut rest) = rest.split_at_checked(length).ok_or_else(short)?;
        let head: Head = postcard::from_bytes(head).map_err(|error| fail(error.to_string()))?;
        if head.version != VERSION {
            return Err(fail(format!("version {}, version {VERSION} expected", head.version)));
        }
        for (what, saved, own) in [
            ("steps of capacity", head.n_slots, self.ring.n_slots()),
            ("rows per step", head.n_rows, self.n_rows),
            ("arrays", head.arrays.len(), self.arrays().count()),
        ] {
            if saved != own {
                return Err(fail(format!("it has {saved} {what}, this buffer has {own}")));
            }
        }
        for (i, (saved, own)) in head.arrays.iter().zip(self.arrays().map(|(array, _)| array.layout())).enumerate() {
            if *saved != own {
                return Err(fail(format!("array {i} has rows of {saved}, those of this buffer are {own}")));
            }
        }
        if head.largest_priority.is_some() != self.priorities.is_some() {
            let [with, without] = ["with priorities", "without"];
            let (saved, own) = if self.priorities.is_some() { (without, with) } else { (with, without) };
            return Err(fail(format!("it was saved {saved}, this buffer is {own}")));
        }
        let impossible = || fail("it describes an invalid ring".to_owned());
        if [&head.linked, &head.since_truncation].iter().any(|rows| rows.len() != head.n_rows) {
            return Err(impossible());
        }
        let is_flag = |flag: &f32| *flag == 0.0 || *flag == 1.0;
        if !head.linked.iter().all(is_flag) || !head.since_truncation.iter().all(|steps| *steps >= 0.0) {
            return Err(impossible());
        }
        // Successors beside the ring are waiting there for the rest of their steps.
        let points = head.ends.iter().flatten().any(|end| *end == head.n_slots);
        if points && head.pending.is_none() || head.pending.is_some_and(|steps| steps >= self.interval) {
            return Err(impossible());
        }
        let ring = Ring::from_parts(head.n_slots, head.starts, head.ends, head.open).ok_or_else(impossible)?;
        let beside = self.beside(head.pending.is_some());
        let rows = ring.written() * self.n_rows;
        let leaf_bytes = if self.priorities.is_some() { LEAF * rows } else { 0 };
        let expected = self.teams(rows) * self.team_bytes() + beside.len() * self.obs_bytes() + leaf_bytes;
        if rest.len() != expected {
            return Err(fail(format!("{} bytes of rows, {expected} expected", rest.len())));
        }

        for piece in self.pieces(rows) {
            self.arrays_mut().for_each(|(array, n)| array.read(rows_of(&piece, n), &mut rest));
        }
        self.obs_arrays_mut().for_each(|(array, n)| array.read(rows_of(&beside, n), &mut rest));
        if let (Some(priorities), Some(largest)) = (&mut self.priorities, head.largest_priority) {
            let leaves = rest.as_chunks::<LEAF>().0.iter().map(|leaf| f64::from_le_bytes(*leaf));
            priorities.set_leaves(largest, &leaves.collect::<Vec<_>>());
        }
        let upload = |rows: Vec<f32>| Tensor::from_data(TensorData::new(rows, [self.n_rows]), &self.device);
        self.linked = upload(head.linked);
        self.watch.set_since(upload(head.since_truncation));
        self.n_step.relink(&ring);
        (self.ring, self.pending, self.begun, self.expected) = (ring, head.pending, head.begun, None);
        Ok(())
    }

    /// All arrays, with their rows per team.
    fn arrays(&self) -> impl Iterator<Item = (&Packed, usize)> {
        let n_agents = self.n_agents;
        let others = self.action.iter().chain([&self.outcome]).chain(&self.remembered);
        self.obs_arrays().chain(others.map(move |array| (array, n_agents)))
    }

    fn arrays_mut(&mut self) -> impl Iterator<Item = (&mut Packed, usize)> {
        let n_agents = self.n_agents;
        let obs = self.obs.iter_mut().zip(self.shared_by.iter().map(move |n| n_agents / n));
        let others = self.action.iter_mut().chain([&mut self.outcome]).chain(&mut self.remembered);
        obs.chain(others.map(move |array| (array, n_agents)))
    }

    /// The arrays of observations, with their rows per team.
    fn obs_arrays(&self) -> impl Iterator<Item = (&Packed, usize)> {
        self.obs.iter().zip(self.shared_by.iter().map(|n| self.n_agents / n))
    }

    fn obs_arrays_mut(&mut self) -> impl Iterator<Item = (&mut Packed, usize)> {
        let n_agents = self.n_agents;
        self.obs.iter_mut().zip(self.shared_by.iter().map(move |n| n_agents / n))
    }

    /// Bytes of the observations of a team in one environment.
    pub(super) fn obs_bytes(&self) -> usize {
        self.obs_arrays().map(|(array, n)| n * array.layout().bytes_per_row()).sum()
    }

    /// The teams of the slot after the last one of the ring; none unless it is `used`.
    fn beside(&self, used: bool) -> Range<usize> {
        let first = self.teams(self.ring.n_slots() * self.n_rows);
        first..first + if used { self.teams(self.n_rows) } else { 0 }
    }

    /// Bytes of the rows of a team in one environment.
    pub(super) fn team_bytes(&self) -> usize {
        self.arrays().map(|(array, n)| n * array.layout().bytes_per_row()).sum()
    }

    fn teams(&self, rows: usize) -> usize {
        rows / self.n_agents
    }

    /// The teams of the first `rows` rows, in pieces of limited size.
    fn pieces(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<O, A> {
        let (step, teams) = ((PIECE / self.team_bytes()).max(1), self.teams(rows));
        (0..teams).step_by(step).map(move |first| first..teams.min(first + step))
    }
}

/// The rows of some teams in an array with `n` rows per team.
fn rows_of(teams: &Range<usize>, n: usize) -> Range<usize> {
    teams.start * n..teams.end * n
}

/// Bytes of the head's length.
const LENGTH: usize = size_of::<u64>();
/// Bytes of a priority.
const LEAF: usize = size_of::<f64>();
