//! Saved states of a batch of Gymnasium environments.

use brasa_env::{EnvError, Episode, StateTag};
use serde::{Deserialize, Serialize};

use super::{GymVec, Progress, STARTED};
use crate::GymError;

/// The rows that a policy sees next.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LastRows {
    pub(super) obs: Vec<f32>,
    pub(super) mask: Vec<f32>,
}

/// A saved batch.
#[derive(Serialize, Deserialize)]
struct Saved {
    identity: String,
    seed: u64,
    steps: u64,
    envs: Vec<Progress>,
    ended: Vec<Episode>,
    rows: LastRows,
    /// One pickled environment each, or why there are none.
    states: Result<Vec<Vec<u8>>, String>,
}

const TAG: StateTag = StateTag::new("gymnasium", 2);

impl GymVec {
    /// See [`brasa_env::EnvBatch::save`].
    pub(super) fn save_batch(&self) -> Vec<u8> {
        let states = match self.check().and_then(|()| self.states()) {
            Ok(states) => states,
            Err(error) => Err(self.fail(error).to_string()),
        };
        let (seed, steps, envs, ended) = (self.seed, self.steps, self.envs.clone(), self.ended.clone());
        let saved =
            Saved { identity: self.config.identity(), seed, steps, envs, ended, rows: self.last_rows(), states };
        TAG.encode(self.spec.n_envs, &saved)
    }

    /// See [`brasa_env::EnvBatch::load`].
    pub(super) fn load_batch(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        self.check()?;
        let saved: Saved = TAG.decode(self.spec.n_envs, bytes)?;
        let state_error = |reason: String| EnvError::State { reason };
        let identity = self.config.identity();
        if saved.identity != identity {
            return Err(state_error(format!("it is of the environment {}, this is {identity}", saved.identity)));
        }
        let LastRows { obs, mask } = &saved.rows;
        let (n_envs, n_rows, flags) = (self.spec.n_envs, self.spec.n_rows(), self.spec.mask_width());
        let fits = obs.len() == n_rows * self.spec.obs.width() && mask.len() == n_rows * flags;
        if !fits || saved.envs.len() != n_envs || saved.states.as_ref().is_ok_and(|states| states.len() != n_envs) {
            return Err(state_error(format!("its observations or environments are not those of `{}`", self.config.id)));
        }
        match &saved.states {
            Ok(states) => {
                let loaded = self.load_states(states);
                loaded.map_err(|error| state_error(self.fail(error).to_string()))?;
                self.interrupted = None;
            }
            Err(reason) => {
                tracing::warn!(
                    "`{}` was not saved with its state ({reason}): its episodes are truncated here, and new ones start",
                    self.config.id
                );
                self.interrupted = Some(saved.rows.clone());
            }
        }
        (self.seed, self.steps, self.envs, self.ended) = (saved.seed, saved.steps, saved.envs, saved.ended);
        (0..n_envs).for_each(|env| self.set_seed(env, self.envs[env].episode.wrapping_add(1)));
        // For a batch that is saved again before its next step.
        self.slabs.bytes_mut("flags").fill(STARTED);
        for (name, values) in [("obs", &saved.rows.obs), ("masks", &saved.rows.mask)] {
            self.slabs.write(name, values);
        }
        Ok(())
    }

    /// The rows that a policy sees next.
    fn last_rows(&self) -> LastRows {
        if let Some(last) = &self.interrupted {
            return last.clone();
        }
        let rows = |first: &str, next: &str, width: usize| {
            let mut rows = vec![0.0; self.spec.n_rows() * width];
            for (i, row) in rows.chunks_exact_mut(width.max(1)).enumerate() {
                let name = if self.slabs.flags(i) == 0 { next } else { first };
                self.slabs.read(name, i..i + 1, row);
            }
            rows
        };
        LastRows {
            obs: rows("obs", "next_obs", self.spec.obs.width()),
            mask: rows("masks", "next_masks", self.spec.mask_width()),
        }
    }

    /// The pickled environments, or why they cannot be pickled.
    fn states(&self) -> Result<Result<Vec<Vec<u8>>, String>, GymError> {
        self.workers.iter().try_for_each(|worker| worker.order(b'v', "save"))?;
        let mut states = Ok(Vec::new());
        for worker in &self.workers {
            let answer = worker.answer(b'v', "save")?;
            let mut rest = &answer[..];
            for _ in worker.envs.clone() {
                let (saved, state) = split_state(&mut rest).ok_or_else(|| GymError::System {
                    id: self.config.id.clone(),
                    what: "the saved states of a worker process",
                    message: format!("{} bytes are no such states", answer.len()),
                })?;
                match (&mut states, saved) {
                    (Ok(states), true) => states.push(state.to_vec()),
                    (Ok(_), false) => states = Err(String::from_utf8_lossy(state).into_owned()),
                    (Err(_), _) => {}
                }
            }
        }
        Ok(states)
    }

    fn load_states(&self, states: &[Vec<u8>]) -> Result<(), GymError> {
        for worker in &self.workers {
            let mut body = Vec::new();
            for env in worker.envs.clone() {
                let state = &states[env - self.first_env];
                body.extend((state.len() as u64).to_le_bytes());
                body.extend(state);
            }
            worker.order_with(b'l', &body, "load")?;
        }
        self.workers.iter().try_for_each(|worker| worker.done("load"))
    }
}

/// The first state of a worker's answer: whether it was saved, and its bytes or the reason.
fn split_state<'a>(rest: &mut &'a [u8]) -> Option<(bool, &'a [u8])> {
    let (saved, after) = rest.split_first()?;
    let (size, after) = after.split_first_chunk::<8>()?;
    let (state, after) = after.split_at_checked(u64::from_le_bytes(*size) as usize)?;
    *rest = after;
    Some((*saved == 1, state))
}
