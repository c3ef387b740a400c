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
    /// `[n_slots + 1]`: per slot the start that follows it, else `n_slots`. Used if the host does not know the sampled
    /// rows and `n_step` is above 1.
    followers: Option<Tensor<1, Int>>,
    gamma: f64,
    /// `[n_step, 1]`: factors of the rewards, gamma to the power 0, 1, ...
    reward_powers: Tensor<2>,
    /// `[n_step]`: factors of the bootstrapped value, gamma to the power 1, 2, ...
    successor_powers: Tensor<1>,
}

/// End slots and returns of transitions.
pub(super) struct Taken {
    pub rows: Tensor<1, Int>,
    pub successors: Tensor<1, Int>,
    pub reward: Tensor<1>,
    pub discount: Tensor<1>,
}

impl NStepBatch {
    /// For `[n_step, n_rows, n_slots]`; `on_host` says whether the host knows the sampled rows.
    pub fn new([n_step, n_rows, n_slots]: [usize; 3], gamma: f64, on_host: bool, device: &Device) -> Self {
        let followers = (!on_host && n_step > 1).then(|| upload(vec![n_slots as i32; n_slots + 1], device));
        let powers = |from: usize| {
            let powers = (from..from + n_step).map(|k| gamma.powi(k as i32) as f32).collect();
            Tensor::<1>::from_data(TensorData::new::<f32, _>(powers, [n_step]), device)
        };
        let (reward_powers, successor_powers) = (powers(0).reshape([n_step, 1]), powers(1));
        Self { n_step, n_rows, n_slots, followers, gamma, reward_powers, successor_powers }
    }

    /// Records that the newest transition, from `slot`, follows the one from `leader`.
    pub fn link(&mut self, leader: Option<usize>, slot: usize) {
        let end = self.n_slots as i32;
        let Some(followers) = &mut self.followers else { return };
        for (from, to) in leader.map(|leader| (leader, slot as i32)).into_iter().chain([(slot, end)]) {
            followers.inplace(|all| all.slice_fill(from..from + 1, to));
        }
    }

    /// Recomputes all links from the ring.
    pub fn relink(&mut self, ring: &Ring) {
        if let Some(followers) = &mut self.followers {
            let follower =
                |slot: usize| ring.starts()[slot].then(|| ring.follower(slot)).flatten().unwrap_or(self.n_slots);
            let all = (0..self.n_slots).map(follower).chain([self.n_slots]).map(|slot| slot as i32).collect();
            *followers = upload(all, &followers.device());
        }
    }

    /// Follows `n_step` steps from every sampled row, at most to the end of its episode or the newest step.
    pub fn follow(&self, rows: &Drawn, ring: &Ring, outcomes: &Packed) -> Taken {
        let (steps, successors) = match rows {
            Drawn::Host(rows) => self.on_host(rows, ring, &self.successor_powers.device()),
            Drawn::Device(rows) => self.on_device(rows),
        };
        let [n, batch] = steps.dims();
        let rows = steps.clone().slice(0..1).reshape([batch]);
        let outcomes = outcomes.select(steps.reshape([n * batch])).into_floats().reshape([n, batch, outcome::WIDTH]);
        let column = |i: usize| outcomes.clone().slice([0..n, 0..batch, i..i + 1]).reshape([n, batch]);
        let (reward, bootstraps) = (column(outcome::REWARD), column(outcome::BOOTSTRAPS));
        if n == 1 {
            let discount = bootstraps.reshape([batch]) * self.gamma;
            return Taken { rows, successors: successors.reshape([batch]), reward: reward.reshape([batch]), discount };
        }
        // 1 for every step of the transition: the first, and those linked to it without a gap.
        let first = Tensor::ones([1, batch], &reward.device());
        let taken = Tensor::cat(vec![first, column(outcome::LINKED).slice(1..n).cumprod(0)], 0);
        let reward = (reward * taken.clone() * self.reward_powers.clone()).sum_dim(0).reshape([batch]);
        let last = (taken.sum_dim(0) - 1.0).int();
        let powers = self.successor_powers.clone().select(0, last.clone().reshape([batch]));
        let discount = bootstraps.gather(0, last.clone()).reshape([batch]) * powers;
        Taken { rows, successors: successors.gather(0, last).reshape([batch]), reward, discount }
    }

    /// The rows of up to `n_step` steps and of their next observations, both `[n_step, batch]`, in one upload.
    fn on_host(&self, rows: &[usize], ring: &Ring, device: &Device) -> (Tensor<2, Int>, Tensor<2, Int>) {
        let (n, batch) = (self.n_step, rows.len());
        let mut indices = vec![0; 2 * n * batch];
        let (steps, successors) = indices.split_at_mut(n * batch);
        for (i, row) in rows.iter().enumerate() {
            let column = row % self.n_rows;
            let mut slot = Some(row / self.n_rows);
            for at in (i..n * batch).step_by(batch) {
                steps[at] = (slot.unwrap_or(self.n_slots) * self.n_rows + column) as i32;
                successors[at] = slot.map_or(0, |slot| ring.after(slot) * self.n_rows + column) as i32;
                slot = slot.and_then(|slot| ring.follower(slot));
            }
        }
        let indices = upload(indices, device).reshape([2 * n, batch]);
        (indices.clone().slice(0..n), indices.slice(n..2 * n))
    }

    /// The same from rows on the device.
    fn on_device(&self, rows: &Tensor<1, Int>) -> (Tensor<2, Int>, Tensor<2, Int>) {
        let (n_rows, n_slots) = (self.n_rows as i64, self.n_slots as i64);
        let mut slot = rows.clone().div_scalar(n_rows);
        let column = rows.clone() - slot.clone() * n_rows;
        let (mut steps, mut successors) = (vec![rows.clone()], Vec::new());
        loop {
            let next = (slot.clone() + 1).remainder_scalar(n_slots);
            successors.push(next * n_rows + column.clone());
            match &self.followers {
                Some(followers) if steps.len() < self.n_step => slot = followers.clone().select(0, slot),
                _ => return (Tensor::stack(steps, 0), Tensor::stack(successors, 0)),
            }
            steps.push(slot.clone() * n_rows + column.clone());
        }
    }
}

fn upload(indices: Vec<i32>, device: &Device) -> Tensor<1, Int> {
    let n = indices.len();
    Tensor::from_data(TensorData::new(indices, [n]), device)
}
