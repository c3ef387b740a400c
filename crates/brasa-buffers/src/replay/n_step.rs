//! n-step transitions from sampled rows.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::outcome;
use super::priorities::Drawn;
use super::ring::Ring;
use crate::Packed;

/// Assembles transitions of up to `n_step` steps.
#[derive(Debug, Clone)]
pub(super) struct NStepBatch {
    n_step: usize,
    n_rows: usize,
    n_slots: usize,
    /// Used if the host does not know the sampled rows.
    links: Option<Links>,
    /// Gamma to the power 0, 1, ... `n_step`.
    powers: Vec<f32>,
    /// `[n_step, 1]`: factors of the rewards, gamma to the power 0, 1, ...
    reward_powers: Tensor<2>,
    /// `[n_step]`: factors of the bootstrapped value, gamma to the power 1, 2, ...
    successor_powers: Tensor<1>,
}

/// A copy of the ring's order on the device; every tensor is `[n_slots + 1]`.
#[derive(Debug, Clone)]
struct Links {
    /// Per start the start that follows it, else `n_slots`.
    followers: Tensor<1, Int>,
    /// [`Ring::after`].
    after: Tensor<1, Int>,
    /// [`Ring::end`], else that of [`Ring::after`].
    ends: Tensor<1, Int>,
}

/// Slots of the steps of transitions and of their next observations, each as rows `[n_step, batch]`.
struct Path {
    steps: Tensor<2, Int>,
    /// Next observations of rows that were not truncated.
    after: Tensor<2, Int>,
    /// Next observations of truncated rows; `None` if there are none.
    ends: Option<Tensor<2, Int>>,
}

/// End slots and returns of transitions.
pub(super) struct Taken {
    pub rows: Tensor<1, Int>,
    pub successors: Tensor<1, Int>,
    pub reward: Tensor<1>,
    pub discount: Tensor<1>,
    /// `[batch]`: the number of steps taken after the first; `None` if there are none.
    pub more: Option<Tensor<1, Int>>,
}

/// Rows of consecutive steps.
pub(super) struct Chain {
    /// `[n_steps * batch]`, step by step. Behind the newest step its row is repeated.
    pub rows: Drawn,
    /// The same: 0 for repeated rows, else 1.
    pub exist: Tensor<1>,
}

impl NStepBatch {
    /// For `[n_step, n_rows, n_slots]`; `on_host` says whether the host knows the sampled rows.
    pub fn new([n_step, n_rows, n_slots]: [usize; 3], gamma: f64, on_host: bool, device: &Device) -> Self {
        let table = || upload(vec![n_slots as i32; n_slots + 1], device);
        let links = (!on_host).then(|| Links { followers: table(), after: table(), ends: table() });
        let powers: Vec<f32> = (0..=n_step).map(|k| gamma.powi(k as i32) as f32).collect();
        let from = |k: usize| Tensor::<1>::from_data(TensorData::new(powers[k..k + n_step].to_vec(), [n_step]), device);
        let (reward_powers, successor_powers) = (from(0).reshape([n_step, 1]), from(1));
        Self { n_step, n_rows, n_slots, links, powers, reward_powers, successor_powers }
    }

    pub fn n_step(&self) -> usize {
        self.n_step
    }

    /// Records the newest transition, from `slot`, which follows the one from `leader`.
    pub fn link(&mut self, ring: &Ring, leader: Option<usize>, slot: usize) {
        let Some(links) = &mut self.links else { return };
        let mut set = |table: fn(&mut Links) -> &mut Tensor<1, Int>, at: usize, to: usize| {
            table(links).inplace(|all| all.slice_fill(at..at + 1, to as i32));
        };
        if let Some(leader) = leader {
            set(|links| &mut links.followers, leader, slot);
        }
        let after = ring.after(slot);
        set(|links| &mut links.followers, slot, self.n_slots);
        set(|links| &mut links.after, slot, after);
        set(|links| &mut links.ends, slot, ring.end(slot).unwrap_or(after));
    }

    /// Records [`Ring::end`] of a start.
    pub fn set_end(&mut self, slot: usize, end: usize) {
        if let Some(links) = &mut self.links {
            links.ends.inplace(|all| all.slice_fill(slot..slot + 1, end as i32));
        }
    }

    /// Recomputes all links from the ring.
    pub fn relink(&mut self, ring: &Ring) {
        let Some(links) = &mut self.links else { return };
        let device = links.after.device();
        let table = |of: &dyn Fn(usize) -> Option<usize>| {
            let of = |slot: usize| ring.starts()[slot].then(|| of(slot)).flatten().unwrap_or(self.n_slots);
            upload((0..self.n_slots).map(of).chain([self.n_slots]).map(|slot| slot as i32).collect(), &device)
        };
        *links = Links {
            followers: table(&|slot| ring.follower(slot)),
            after: table(&|slot| Some(ring.after(slot))),
            ends: table(&|slot| ring.end(slot).or(Some(ring.after(slot)))),
        };
    }

    /// Follows `n_step` steps from every sampled row, at most to the end of its episode or the newest step.
    pub fn follow(&self, rows: &Drawn, ring: &Ring, outcomes: &Packed) -> Taken {
        match (rows, outcomes.on_host()) {
            (Drawn::Host(rows), Some(outcomes)) => self.follow_in_memory(rows, ring, &outcomes),
            _ => self.follow_as_tensors(rows, ring, outcomes),
        }
    }

    /// The same where host and memory of the buffer are one: a walk per row instead of thirty operations on all of them.
    fn follow_in_memory(&self, rows: &[usize], ring: &Ring, outcomes: &[f32]) -> Taken {
        let (outcomes, _) = outcomes.as_chunks::<{ outcome::WIDTH }>();
        let numbers = || Vec::with_capacity(rows.len());
        let (mut reward, mut discount): (Vec<f32>, Vec<f32>) = (numbers(), numbers());
        let (mut successors, mut more) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for row in rows {
            let column = row % self.n_rows;
            let of = |slot: usize| &outcomes[slot * self.n_rows + column];
            let (mut slot, mut k) = (row / self.n_rows, 0);
            let mut sum = of(slot)[outcome::REWARD];
            // Steps are taken that are linked without a gap.
            while let Some(next) = (k + 1 < self.n_step).then(|| ring.follower(slot)).flatten()
                && of(next)[outcome::LINKED] > 0.0
            {
                (slot, k) = (next, k + 1);
                sum += of(slot)[outcome::REWARD] * self.powers[k];
            }
            let after = ring.after(slot);
            let is_truncated = of(slot)[outcome::TRUNCATED] != 0.0;
            let successor = if is_truncated { ring.end(slot).unwrap_or(after) } else { after };
            reward.push(sum);
            discount.push(of(slot)[outcome::BOOTSTRAPS] * self.powers[k + 1]);
            successors.push((successor * self.n_rows + column) as i32);
            more.push(k as i32);
        }
        let (n, device) = (rows.len(), self.successor_powers.device());
        let column = |numbers: Vec<f32>| Tensor::from_data(TensorData::new(numbers, [n]), &device);
        Taken {
            rows: upload(rows.iter().map(|row| *row as i32).collect(), &device),
            successors: upload(successors, &device),
            reward: column(reward),
            discount: column(discount),
            more: (self.n_step > 1).then(|| upload(more, &device)),
        }
    }

    /// The same as operations on all rows.
    pub fn follow_as_tensors(&self, rows: &Drawn, ring: &Ring, outcomes: &Packed) -> Taken {
        let Path { steps, after, ends } = match rows {
            Drawn::Host(rows) => self.on_host(rows, ring, &self.successor_powers.device()),
            Drawn::Device(rows) => self.on_device(rows, ring.has_ends()),
        };
        let [n, batch] = steps.dims();
        let rows = steps.clone().slice(0..1).reshape([batch]);
        let outcomes = outcomes.select(steps.reshape([n * batch])).into_floats().reshape([n, batch, outcome::WIDTH]);
        let column = |i: usize| outcomes.clone().slice([0..n, 0..batch, i..i + 1]).reshape([n, batch]);
        let (reward, bootstraps) = (column(outcome::REWARD), column(outcome::BOOTSTRAPS));
        let successors = match ends {
            Some(ends) => after.mask_where(column(outcome::TRUNCATED).bool(), ends),
            None => after,
        };
        if n == 1 {
            let discount = bootstraps.reshape([batch]) * self.powers[1];
            let (successors, reward) = (successors.reshape([batch]), reward.reshape([batch]));
            return Taken { rows, successors, reward, discount, more: None };
        }
        // 1 for every step of the transition: the first, and those linked to it without a gap.
        let first = Tensor::ones([1, batch], &reward.device());
        let taken = Tensor::cat(vec![first, column(outcome::LINKED).slice(1..n).cumprod(0)], 0);
        let reward = (reward * taken.clone() * self.reward_powers.clone()).sum_dim(0).reshape([batch]);
        // Flags of a file that was made for it may be other numbers.
        let last = (taken.sum_dim(0) - 1.0).clamp(0.0, (n - 1) as f32).int();
        let powers = self.successor_powers.clone().select(0, last.clone().reshape([batch]));
        let discount = bootstraps.gather(0, last.clone()).reshape([batch]) * powers;
        let more = Some(last.clone().reshape([batch]));
        Taken { rows, successors: successors.gather(0, last).reshape([batch]), reward, discount, more }
    }

    /// The rows of `n_steps` consecutive steps from every sampled row on.
    pub fn chain(&self, rows: &Drawn, ring: &Ring, n_steps: usize) -> Chain {
        match rows {
            Drawn::Host(rows) => {
                let (mut all, mut exist) = (Vec::with_capacity(n_steps * rows.len()), Vec::new());
                let mut last: Vec<(usize, bool)> = rows.iter().map(|row| (*row, true)).collect();
                for _ in 0..n_steps {
                    for (row, exists) in &mut last {
                        all.push(*row);
                        exist.push(f32::from(u8::from(*exists)));
                        let next = ring.follower(*row / self.n_rows);
                        *exists &= next.is_some();
                        *row = next.map_or(*row, |slot| slot * self.n_rows + *row % self.n_rows);
                    }
                }
                let (n, device) = (exist.len(), self.successor_powers.device());
                Chain { rows: Drawn::Host(all), exist: Tensor::from_data(TensorData::new(exist, [n]), &device) }
            }
            Drawn::Device(rows) => {
                let links = self.links.as_ref().expect("the device draws rows only with a copy of the links");
                let n_rows = self.n_rows as i64;
                let mut slot = rows.clone().div_scalar(n_rows);
                let column = rows.clone() - slot.clone() * n_rows;
                let mut exists = Tensor::<1>::ones(rows.dims(), &self.successor_powers.device());
                let (mut all, mut exist) = (Vec::new(), Vec::new());
                for _ in 0..n_steps {
                    all.push(slot.clone() * n_rows + column.clone());
                    exist.push(exists.clone());
                    let next = links.followers.clone().select(0, slot.clone());
                    let is_missing = next.clone().equal_scalar(self.n_slots as i64);
                    exists = exists.mask_fill(is_missing.clone(), 0.0);
                    slot = next.mask_where(is_missing, slot);
                }
                Chain { rows: Drawn::Device(Tensor::cat(all, 0)), exist: Tensor::cat(exist, 0) }
            }
        }
    }

    /// The path of sampled rows, in one upload.
    fn on_host(&self, rows: &[usize], ring: &Ring, device: &Device) -> Path {
        let (n, batch) = (self.n_step, rows.len());
        let parts = if ring.has_ends() { 3 } else { 2 };
        let mut indices = vec![0; parts * n * batch];
        let (steps, successors) = indices.split_at_mut(n * batch);
        let (after, ends) = successors.split_at_mut(n * batch);
        for (i, row) in rows.iter().enumerate() {
            let column = row % self.n_rows;
            let mut slot = Some(row / self.n_rows);
            for at in (i..n * batch).step_by(batch) {
                steps[at] = (slot.unwrap_or(self.n_slots) * self.n_rows + column) as i32;
                if let Some(slot) = slot {
                    let next = ring.after(slot);
                    after[at] = (next * self.n_rows + column) as i32;
                    if let Some(end) = ends.get_mut(at) {
                        *end = (ring.end(slot).unwrap_or(next) * self.n_rows + column) as i32;
                    }
                }
                slot = slot.and_then(|slot| ring.follower(slot));
            }
        }
        let indices = upload(indices, device).reshape([parts * n, batch]);
        let part = |i: usize| indices.clone().slice(i * n..(i + 1) * n);
        Path { steps: part(0), after: part(1), ends: (parts == 3).then(|| part(2)) }
    }

    /// The same from rows on the device.
    fn on_device(&self, rows: &Tensor<1, Int>, has_ends: bool) -> Path {
        let links = self.links.as_ref().expect("the device draws rows only with a copy of the links");
        let n_rows = self.n_rows as i64;
        let mut slot = rows.clone().div_scalar(n_rows);
        let column = rows.clone() - slot.clone() * n_rows;
        let row_of = |slot: Tensor<1, Int>| slot * n_rows + column.clone();
        let (mut steps, mut after, mut ends) = (vec![rows.clone()], Vec::new(), Vec::new());
        loop {
            after.push(row_of(links.after.clone().select(0, slot.clone())));
            if has_ends {
                ends.push(row_of(links.ends.clone().select(0, slot.clone())));
            }
            if steps.len() == self.n_step {
                break;
            }
            slot = links.followers.clone().select(0, slot);
            steps.push(row_of(slot.clone()));
        }
        let ends = has_ends.then(|| Tensor::stack(ends, 0));
        Path { steps: Tensor::stack(steps, 0), after: Tensor::stack(after, 0), ends }
    }
}

fn upload(indices: Vec<i32>, device: &Device) -> Tensor<1, Int> {
    let n = indices.len();
    Tensor::from_data(TensorData::new(indices, [n]), device)
}
