//! A batch that is stepped by worker threads.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use ndarray::{Array2, ArrayView2, s};

use crate::env_vec::panic_message;
use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Episode, InvalidField, StateTag};

/// Chunks of environments, one per thread; the calling thread steps the first chunk itself.
///
/// Threads are started once and wait on a condition variable between steps. Random numbers are addressed by the global
/// index of the environment, so results are the same for any number of threads.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec, Threaded};
///
/// // Two threads, with four walks each.
/// let mut batch = Threaded::new(8, 2, |envs| EnvVec::new(envs, |_| Walk(0.0)))?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// batch.step(ndarray::Array2::zeros((8, 1)).view(), &mut slabs)?;
/// assert!(slabs.obs.iter().all(|place| *place == 2.0));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct Threaded<B> {
    chunks: Vec<Arc<Chunk<B>>>,
    bounds: Vec<Range<usize>>,
    workers: Vec<JoinHandle<()>>,
    spec: EnvSpec,
}

#[derive(Debug)]
struct Chunk<B> {
    state: Mutex<Work<B>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Work<B> {
    batch: B,
    slabs: BatchSlabs,
    actions: Array2<f32>,
    order: Order,
    result: Result<(), EnvError>,
}

/// The next task of a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Wait,
    Reset(u64),
    Step,
    Stop,
}

impl<B: EnvBatch> Work<B> {
    fn run(&mut self) {
        let first = AssertUnwindSafe(|| match self.order {
            Order::Reset(seed) => self.batch.reset(seed, &mut self.slabs),
            Order::Step => self.batch.step(self.actions.view(), &mut self.slabs),
            Order::Wait | Order::Stop => Ok(()),
        });
        // Batches convert panics of their environments to errors; this catches a panic of the batch itself.
        self.result = catch_unwind(first).unwrap_or_else(|panic| {
            Err(EnvError::Panicked { env: 0, seed: 0, episode: 0, step: 0, message: panic_message(panic.as_ref()) })
        });
        self.order = Order::Wait;
    }
}

impl<B> Chunk<B> {
    fn lock(&self) -> MutexGuard<'_, Work<B>> {
        // A poisoned lock means a panic outside `Work::run`, which cannot leave a partially written state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, mut condition: impl FnMut(&Work<B>) -> bool) -> MutexGuard<'_, Work<B>> {
        self.changed.wait_while(self.lock(), |work| condition(work)).unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: EnvBatch + 'static> Threaded<B> {
    /// Splits `0..n_envs` into `n_threads` chunks, constructed by `make`.
    ///
    /// # Errors
    /// Errors of `make`; [`EnvError::Argument`] unless `1 <= n_threads <= n_envs`; [`EnvError::Scenario`] if
    /// the system cannot start a thread.
    pub fn new(
        n_envs: usize,
        n_threads: usize,
        mut make: impl FnMut(Range<usize>) -> Result<B, EnvError>,
    ) -> Result<Self, EnvError> {
        if n_threads == 0 || n_threads > n_envs {
            return Err(EnvError::Argument(InvalidField::new(
                "n_threads",
                "must be between 1 and the number of environments",
                n_threads,
            )));
        }
        let bounds: Vec<_> = (0..n_threads).map(|i| i * n_envs / n_threads..(i + 1) * n_envs / n_threads).collect();
        let mut chunks = Vec::with_capacity(n_threads);
        for range in &bounds {
            let batch = make(range.clone())?;
            let slabs = BatchSlabs::new(batch.spec());
            let actions = Array2::zeros((batch.n_rows(), batch.spec().action.width()));
            let work = Work { batch, slabs, actions, order: Order::Wait, result: Ok(()) };
            chunks.push(Arc::new(Chunk { state: Mutex::new(work), changed: Condvar::new() }));
        }
        let mut workers = Vec::with_capacity(n_threads - 1);
        for (index, chunk) in chunks.iter().enumerate().skip(1) {
            let chunk = Arc::clone(chunk);
            let worker = Builder::new().name(format!("brasa-env-{index}")).spawn(move || serve(&chunk));
            match worker {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    stop(&chunks, &mut workers);
                    return Err(EnvError::Scenario(Box::new(error)));
                }
            }
        }
        let spec = chunks[0].lock().batch.spec().with_n_envs(n_envs);
        Ok(Self { chunks, bounds, workers, spec })
    }

    fn tag() -> StateTag {
        StateTag::of::<Self>(1)
    }

    /// Gives `order` to every chunk, runs the first one on this thread and collects all results in `out`.
    fn run(&mut self, order: Order, actions: Option<ArrayView2<f32>>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        for (chunk, envs) in self.chunks.iter().zip(&self.bounds).rev() {
            let rows = envs.start * self.spec.n_agents..envs.end * self.spec.n_agents;
            let mut work = chunk.lock();
            if let Some(actions) = &actions {
                work.actions.assign(&actions.slice(s![rows, ..]));
            }
            work.order = order;
            drop(work);
            chunk.changed.notify_one();
        }
        let mut result = Ok(());
        for (index, (chunk, envs)) in self.chunks.iter().zip(&self.bounds).enumerate() {
            let mut work = if index == 0 {
                let mut work = chunk.lock();
                work.run();
                work
            } else {
                chunk.wait_while(|work| work.order != Order::Wait)
            };
            // The error of the first environment is returned, in whatever order threads finish.
            let chunk_result = std::mem::replace(&mut work.result, Ok(()));
            if result.is_ok() {
                result = chunk_result;
            }
            collect(&work.slabs, envs, self.spec.n_agents, order, out);
        }
        result
    }
}

/// Loop of a worker: wait for an order, execute it, report its end.
fn serve<B: EnvBatch>(chunk: &Chunk<B>) {
    loop {
        let mut work = chunk.wait_while(|work| work.order == Order::Wait);
        if work.order == Order::Stop {
            return;
        }
        work.run();
        drop(work);
        chunk.changed.notify_one();
    }
}

fn stop<B>(chunks: &[Arc<Chunk<B>>], workers: &mut Vec<JoinHandle<()>>) {
    for chunk in chunks {
        chunk.lock().order = Order::Stop;
        chunk.changed.notify_all();
    }
    for worker in workers.drain(..) {
        // A worker that panicked has already stopped.
        drop(worker.join());
    }
}

fn collect(from: &BatchSlabs, envs: &Range<usize>, n_agents: usize, order: Order, out: &mut BatchSlabs) {
    let rows = envs.start * n_agents..envs.end * n_agents;
    out.obs.slice_mut(s![rows.clone(), ..]).assign(&from.obs);
    out.shared.slice_mut(s![envs.clone(), ..]).assign(&from.shared);
    out.mask.slice_mut(s![rows.clone(), ..]).assign(&from.mask);
    if order == Order::Step {
        out.next_obs.slice_mut(s![rows.clone(), ..]).assign(&from.next_obs);
        out.next_shared.slice_mut(s![envs.clone(), ..]).assign(&from.next_shared);
        out.next_mask.slice_mut(s![rows.clone(), ..]).assign(&from.next_mask);
        out.reward.slice_mut(s![rows.clone()]).assign(&from.reward);
        out.terminated.slice_mut(s![rows.clone()]).assign(&from.terminated);
        out.truncated.slice_mut(s![rows.clone()]).assign(&from.truncated);
        out.elapsed.slice_mut(s![rows]).assign(&from.elapsed);
        out.info.slice_mut(s![envs.clone(), ..]).assign(&from.info);
    }
}

impl<B> Drop for Threaded<B> {
    fn drop(&mut self) {
        stop(&self.chunks, &mut self.workers);
    }
}

impl<B: EnvBatch + 'static> EnvBatch for Threaded<B> {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.run(Order::Reset(seed), None, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        assert_eq!(actions.dim(), (self.n_rows(), self.spec.action.width()), "shape of the actions");
        self.run(Order::Step, Some(actions), out)
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let chunk = self.bounds.partition_point(|range| range.end <= env);
        let mut guard = self.chunks[chunk].lock();
        let work = &mut *guard;
        let local = env - self.bounds[chunk].start;
        work.batch.restart(local, &mut work.slabs)?;
        let rows = local * self.spec.n_agents..(local + 1) * self.spec.n_agents;
        let out_rows = env * self.spec.n_agents..(env + 1) * self.spec.n_agents;
        out.obs.slice_mut(s![out_rows.clone(), ..]).assign(&work.slabs.obs.slice(s![rows.clone(), ..]));
        out.mask.slice_mut(s![out_rows, ..]).assign(&work.slabs.mask.slice(s![rows, ..]));
        out.shared.row_mut(env).assign(&work.slabs.shared.row(local));
        Ok(())
    }

    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        for (chunk, envs) in self.chunks.iter().zip(&self.bounds) {
            let first = episodes.len();
            chunk.lock().batch.drain_episodes(episodes);
            // Indices of a chunk start at 0.
            episodes[first..].iter_mut().for_each(|episode| episode.env += envs.start);
        }
    }

    fn save(&self) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = self.chunks.iter().map(|chunk| chunk.lock().batch.save()).collect();
        Self::tag().encode(self.spec.n_envs, &parts)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let parts: Vec<Vec<u8>> = Self::tag().decode(self.spec.n_envs, bytes)?;
        if parts.len() != self.chunks.len() {
            return Err(EnvError::State {
                reason: format!("it was saved by {} threads, this run has {}", parts.len(), self.chunks.len()),
            });
        }
        self.chunks.iter().zip(&parts).try_for_each(|(chunk, part)| chunk.lock().batch.load(part))
    }
}
