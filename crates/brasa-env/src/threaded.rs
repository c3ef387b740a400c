//! A batch that is stepped by worker threads.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use ndarray::{ArrayView2, s};

use crate::batch::slab;
use crate::members::panic_message;
use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Episode, InvalidField, StateTag};

/// Chunks of environments, one per thread; the calling thread steps the first chunk itself.
///
/// Threads are started once and wait on a condition variable between steps. If there is a core for each of them, they first look for their next
/// task for 20 us, because to wake a thread takes as long as a thousand steps of a small environment. Random numbers are addressed by the global
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
    /// Whether there is an order, for threads that look before they wait.
    is_busy: AtomicBool,
    /// How long they look.
    patience: Duration,
}

#[derive(Debug)]
struct Work<B> {
    batch: B,
    slabs: BatchSlabs,
    order: Order,
    /// Borrowed from the caller, which waits in [`Threaded::run`].
    data: Option<Data<'static>>,
    result: Result<(), EnvError>,
    /// Threads that wait on the condition variable. Without one of them, a notification is a wasted system call.
    n_waiting: usize,
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
        let (actions, part) = self.data.take().unzip();
        let first = AssertUnwindSafe(|| {
            let result = match (self.order, actions.flatten()) {
                (Order::Reset(seed), _) => self.batch.reset(seed, &mut self.slabs),
                (Order::Step, Some(actions)) => self.batch.step(actions, &mut self.slabs),
                _ => Ok(()),
            };
            // Each thread copies its own results, which are in the memory of its core.
            if let Some(part) = part {
                part.collect(&mut self.slabs, self.order);
            }
            result
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

    /// Looks for a while until there is an order, or none.
    fn look_for(&self, is_busy: bool) {
        let (begin, mut looks) = (Instant::now(), 0u32);
        while self.is_busy.load(Ordering::Acquire) != is_busy {
            // To read the clock takes longer than to look.
            if looks.is_multiple_of(32) && begin.elapsed() >= self.patience {
                return;
            }
            looks = looks.wrapping_add(1);
            std::hint::spin_loop();
        }
    }

    fn wait_while(&self, mut condition: impl FnMut(&Work<B>) -> bool) -> MutexGuard<'_, Work<B>> {
        let mut work = self.lock();
        while condition(&work) {
            work.n_waiting += 1;
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
            work.n_waiting -= 1;
        }
        work
    }

    /// Unlocks the work after a change, and wakes a thread that waits for it.
    fn release(&self, work: MutexGuard<'_, Work<B>>) {
        let is_awaited = work.n_waiting > 0;
        drop(work);
        if is_awaited {
            self.changed.notify_one();
        }
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
        // A thread that looks for work keeps others from their core.
        let has_cores = available_parallelism().is_ok_and(|cores| n_threads <= cores.get());
        let patience = if has_cores { Duration::from_micros(20) } else { Duration::ZERO };
        for range in &bounds {
            let batch = make(range.clone())?;
            let slabs = BatchSlabs::new(batch.spec());
            let work = Work { batch, slabs, order: Order::Wait, data: None, result: Ok(()), n_waiting: 0 };
            let (state, changed, is_busy) = (Mutex::new(work), Condvar::new(), AtomicBool::new(false));
            chunks.push(Arc::new(Chunk { state, changed, is_busy, patience }));
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

    /// Gives `order` to every chunk, runs the first one on this thread and waits for all results in `out`.
    #[allow(unsafe_code, reason = "threads that are started once borrow memory of the caller")]
    fn run(&mut self, order: Order, actions: Option<ArrayView2<f32>>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.check(out);
        let mut rest = Part::new(out, self.spec.n_envs);
        // This thread runs the first chunk, after the others have begun.
        for (chunk, envs) in self.chunks.iter().zip(&self.bounds).rev() {
            let rows = envs.start * self.spec.n_agents..envs.end * self.spec.n_agents;
            let part = rest.split_off(envs.len());
            let data = (actions.as_ref().map(|actions| actions.slice(s![rows, ..])), part);
            // SAFETY: `Work::run` drops what it takes from here. This function returns after every chunk has run. Between here and there it does not
            // panic: `check` has found slabs that can be split, and `Work::run` catches panics.
            let data = unsafe { std::mem::transmute::<Data<'_>, Data<'static>>(data) };
            let mut work = chunk.lock();
            (work.order, work.data) = (order, Some(data));
            chunk.is_busy.store(true, Ordering::Release);
            chunk.release(work);
        }
        self.chunks[0].lock().run();
        self.chunks[0].is_busy.store(false, Ordering::Release);
        let mut result = Ok(());
        for chunk in &self.chunks {
            chunk.look_for(false);
            let mut work = chunk.wait_while(|work| work.order != Order::Wait);
            // The error of the first environment is returned, in whatever order threads finish.
            let chunk_result = std::mem::replace(&mut work.result, Ok(()));
            if result.is_ok() {
                result = chunk_result;
            }
        }
        result
    }

    /// After this check the slabs can be split.
    fn check(&self, out: &BatchSlabs) {
        let matrices = [&out.obs, &out.next_obs, &out.mask, &out.next_mask].map(|matrix| matrix.nrows());
        let columns = [out.reward.len(), out.elapsed.len(), out.terminated.len(), out.truncated.len()];
        let of_envs = [out.shared.nrows(), out.next_shared.nrows(), out.info.nrows()];
        let (n_rows, n_envs) = (self.spec.n_rows(), self.spec.n_envs);
        assert_eq!((matrices, columns, of_envs), ([n_rows; 4], [n_rows; 4], [n_envs; 3]), "shape of the slabs");
    }
}

/// Loop of a worker: wait for an order, execute it, report its end.
fn serve<B: EnvBatch>(chunk: &Chunk<B>) {
    loop {
        chunk.look_for(true);
        let mut work = chunk.wait_while(|work| work.order == Order::Wait);
        if work.order == Order::Stop {
            return;
        }
        work.run();
        // While the lock is held: the next order comes after this.
        chunk.is_busy.store(false, Ordering::Release);
        chunk.release(work);
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

/// Actions of a chunk, and the memory for its results.
type Data<'a> = (Option<ArrayView2<'a, f32>>, Part<'a>);

/// The memory of slabs, `[n_rows, width]` each and row by row, for environments that follow each other.
#[derive(Debug)]
struct Part<'a> {
    n_envs: usize,
    /// `obs`, `mask`, `shared`.
    now: [&'a mut [f32]; 3],
    /// `next_obs`, `next_mask`, `next_shared`, `reward`, `elapsed`.
    of_step: [&'a mut [f32]; 5],
    /// `terminated`, `truncated`.
    flags: [&'a mut [bool]; 2],
    info: &'a mut [f64],
}

impl<'a> Part<'a> {
    fn new(slabs: &'a mut BatchSlabs, n_envs: usize) -> Self {
        let BatchSlabs { obs, next_obs, shared, next_shared, mask, next_mask, .. } = slabs;
        let [next_obs, next_mask, next_shared] = [next_obs, next_mask, next_shared].map(slab);
        let [reward, elapsed] = [&mut slabs.reward, &mut slabs.elapsed].map(slab);
        Self {
            n_envs,
            now: [obs, mask, shared].map(slab),
            of_step: [next_obs, next_mask, next_shared, reward, elapsed],
            flags: [&mut slabs.terminated, &mut slabs.truncated].map(slab),
            info: slab(&mut slabs.info),
        }
    }

    /// Takes the last `n` environments away.
    fn split_off(&mut self, n: usize) -> Self {
        let place = [self.n_envs - n, self.n_envs];
        self.n_envs -= n;
        Self {
            n_envs: n,
            now: self.now.each_mut().map(|numbers| end_of(numbers, place)),
            of_step: self.of_step.each_mut().map(|numbers| end_of(numbers, place)),
            flags: self.flags.each_mut().map(|flags| end_of(flags, place)),
            info: end_of(&mut self.info, place),
        }
    }

    /// Copies the results of a chunk.
    fn collect(self, from: &mut BatchSlabs, order: Order) {
        fn copy<T: Copy, const N: usize>(to: [&mut [T]; N], from: [&mut [T]; N]) {
            to.into_iter().zip(from).for_each(|(to, from)| to.copy_from_slice(from));
        }
        let from = Part::new(from, self.n_envs);
        copy(self.now, from.now);
        if order == Order::Step {
            copy(self.of_step, from.of_step);
            copy(self.flags, from.flags);
            copy([self.info], [from.info]);
        }
    }
}

/// Splits the numbers of `n_envs` environments, and returns those from environment `first` on.
fn end_of<'a, T>(numbers: &mut &'a mut [T], [first, n_envs]: [usize; 2]) -> &'a mut [T] {
    let per_env = numbers.len() / n_envs;
    numbers.split_off_mut(per_env * first..).expect("the numbers of some environments are not more than those of all")
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
