//! A replay buffer as bytes: what a resume needs, and no more than was written.
//!
//! The length of the head and the head, then the written rows of every array in pieces, then their priorities. Numbers
//! are little-endian and as wide as in the buffer.

use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{BufferError, Replay};
use crate::compact::{Compact, Layout, Packed};
use crate::replay::ring::Ring;

const VERSION: u32 = 1;
/// Bytes that are moved at once: little next to a large buffer, much next to the cost of moving.
const PIECE: usize = 8 << 20;

#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    n_slots: usize,
    n_rows: usize,
    arrays: Vec<Layout>,
    starts: Vec<bool>,
    open: Option<usize>,
    written: usize,
    linked: Vec<f32>,
    largest_priority: Option<f64>,
}

impl<O: Compact, A: Compact> Replay<O, A> {
    /// Everything that a resume needs; reads from the device.
    pub fn save(&self) -> Vec<u8> {
        let rows = self.ring.written() * self.n_rows;
        let priorities = self.priorities.as_ref().map(|priorities| priorities.leaves(rows));
        let head = Head {
            version: VERSION,
            n_slots: self.ring.n_slots(),
            n_rows: self.n_rows,
            arrays: self.arrays().map(Packed::layout).collect(),
            starts: self.ring.starts().to_vec(),
            open: self.ring.open(),
            written: self.ring.written(),
            linked: self.linked.to_data().iter().collect(),
            largest_priority: priorities.as_ref().map(|(largest, _)| *largest),
        };
        let head = postcard::to_stdvec(&head).expect("plain values always serialize");
        let leaves = priorities.map_or(Vec::new(), |(_, leaves)| leaves);
        let mut bytes = Vec::with_capacity(LENGTH + head.len() + rows * self.row_bytes() + leaves.len() * LEAF);
        bytes.extend((head.len() as u64).to_le_bytes());
        bytes.extend(head);
        for piece in self.pieces(rows) {
            self.arrays().for_each(|array| array.write(piece.clone(), &mut bytes));
        }
        bytes.extend(leaves.iter().flat_map(|leaf| leaf.to_le_bytes()));
        bytes
    }

    /// Goes on from saved bytes of a buffer of the same capacity, shape and precision. What is drawn next is what would
    /// have been drawn, bit for bit on the host's processor.
    ///
    /// # Errors
    /// [`BufferError::State`] where the bytes do not fit; the buffer is then as before.
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
        for (i, (saved, own)) in head.arrays.iter().zip(self.arrays().map(Packed::layout)).enumerate() {
            if *saved != own {
                return Err(fail(format!("array {i} has rows of {saved}, those of this buffer are {own}")));
            }
        }
        if head.largest_priority.is_some() != self.priorities.is_some() {
            let [with, without] = ["with priorities", "without"];
            let (saved, own) = if self.priorities.is_some() { (without, with) } else { (with, without) };
            return Err(fail(format!("it was saved {saved}, this buffer is {own}")));
        }
        let impossible = || fail("it describes a ring that cannot be".to_owned());
        if head.starts.len() != head.n_slots || head.linked.len() != head.n_rows {
            return Err(impossible());
        }
        let ring = Ring::from_parts(head.starts, head.open, head.written).ok_or_else(impossible)?;
        let rows = ring.written() * self.n_rows;
        let leaf_bytes = if self.priorities.is_some() { LEAF * rows } else { 0 };
        let expected = rows * self.row_bytes() + leaf_bytes;
        if rest.len() != expected {
            return Err(fail(format!("{} bytes of rows, {expected} expected", rest.len())));
        }

        for piece in self.pieces(rows) {
            self.arrays_mut().for_each(|array| array.read(piece.clone(), &mut rest));
        }
        if let (Some(priorities), Some(largest)) = (&mut self.priorities, head.largest_priority) {
            let leaves = rest.as_chunks::<LEAF>().0.iter().map(|leaf| f64::from_le_bytes(*leaf));
            priorities.set_leaves(largest, &leaves.collect::<Vec<_>>());
        }
        self.linked = Tensor::from_data(TensorData::new(head.linked, [self.n_rows]), &self.device);
        self.paths.relink(&ring);
        self.ring = ring;
        Ok(())
    }

    fn arrays(&self) -> impl Iterator<Item = &Packed> {
        self.obs.iter().chain(&self.action).chain([&self.outcome])
    }

    fn arrays_mut(&mut self) -> impl Iterator<Item = &mut Packed> {
        self.obs.iter_mut().chain(&mut self.action).chain([&mut self.outcome])
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.arrays().map(|array| array.layout().bytes_per_row()).sum()
    }

    /// The first `rows` rows, so many at a time that no copy is large.
    fn pieces(&self, rows: usize) -> impl Iterator<Item = std::ops::Range<usize>> + use<O, A> {
        let step = (PIECE / self.row_bytes()).max(1);
        (0..rows).step_by(step).map(move |first| first..rows.min(first + step))
    }
}

/// Bytes of the head's length.
const LENGTH: usize = size_of::<u64>();
/// Bytes of a priority.
const LEAF: usize = size_of::<f64>();
