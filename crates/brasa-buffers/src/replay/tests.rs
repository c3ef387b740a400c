//! Tests of the buffer with counting environments: an observation contains row, episode and step.

use std::collections::{HashMap, VecDeque};

use brasa_core::env::{EnvRng, Space, named_rng};
use brasa_core::{Obs, PolicyState, Schedule};
use brasa_test::{device, spec_of_rows};
use burn::tensor::{DType, Shape, TensorData};
use proptest::prelude::*;
use rand::RngExt;

use super::*;

const GAMMA: f64 = 0.5;

fn tensor<const D: usize>(values: Vec<f32>, shape: impl Into<Shape>) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), &device())
}

fn floats<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().try_to_vec().expect("f32")
}

/// Sampling of a buffer; both implementations of priorities run on any device.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Uniform,
    PrioritizedOnHost,
    PrioritizedOnDevice,
}

const FORMS: [Form; 3] = [Form::Uniform, Form::PrioritizedOnHost, Form::PrioritizedOnDevice];

fn replay<O: Compact, A: Compact>(config: &ReplayConfig, obs: &O, action: &A, form: Form) -> ReplayBuffer<O, A> {
    replay_of(config, 1, obs, action, form)
}

fn replay_of<O: Compact, A: Compact>(
    config: &ReplayConfig,
    interval: u64,
    obs: &O,
    action: &A,
    form: Form,
) -> ReplayBuffer<O, A> {
    let mut replay = ReplayBuffer::new(config, &spec_of_rows(obs.n_rows(), interval), obs, action, GAMMA, &device())
        .expect("the settings are sound");
    // On the CPU this test alone moves rows from the host to itself.
    replay.run_device = config.on_host.then(device);
    if form != Form::Uniform {
        let stored_on = replay.device.clone();
        let [n_rows, n_slots] = [replay.n_rows, replay.ring.n_slots()];
        let on_host = form == Form::PrioritizedOnHost;
        let config_of_priorities = PrioritizedConfig { alpha: 1.0, ..PrioritizedConfig::default() };
        replay.n_step = NStepBatch::new([config.n_step, n_rows, n_slots], GAMMA, on_host, &stored_on);
        replay.priorities = Some(Priorities::in_form(&config_of_priorities, n_rows * n_slots, &stored_on, on_host));
    }
    replay
}

/// The end of a step for one row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    No,
    Terminated,
    Truncated,
    Both,
}

#[derive(Debug, Clone)]
struct Script {
    n_rows: usize,
    n_slots: usize,
    n_step: usize,
    /// Whether every step returns successors, and only those of truncated rows, as environments on a device do.
    on_device: bool,
    /// Least number of steps between two truncations of a row.
    interval: usize,
    /// Per step: whether all rows are reset before it, and its end per row.
    steps: Vec<(bool, Vec<End>)>,
    form: Form,
    /// Whether the buffer is on the host.
    on_host: bool,
    seed: u64,
}

fn scripts() -> impl Strategy<Value = Script> {
    let end =
        prop_oneof![8 => Just(End::No), 1 => Just(End::Terminated), 1 => Just(End::Truncated), 1 => Just(End::Both)];
    let form = prop_oneof![Just(FORMS[0]), Just(FORMS[1]), Just(FORMS[2])];
    (1usize..=4, 3usize..=12, 1usize..=5, any::<[bool; 2]>(), 1usize..=20, form, any::<u64>()).prop_flat_map(
        move |(n_rows, n_slots, n_step, [on_device, on_host], interval, form, seed)| {
            let step = (proptest::bool::weighted(0.05), proptest::collection::vec(end.clone(), n_rows));
            proptest::collection::vec(step, 1..60).prop_map(move |mut steps| {
                keep_apart(&mut steps, interval);
                Script { n_rows, n_slots, n_step, on_device, interval, steps, form, on_host, seed }
            })
        },
    )
}

/// Turns truncations into nothing that come too soon after the last one of the row.
fn keep_apart(steps: &mut [(bool, Vec<End>)], interval: usize) {
    let mut allowed = vec![0; steps[0].1.len()];
    for (step, (_, ends)) in steps.iter_mut().enumerate() {
        for (end, allowed) in ends.iter_mut().zip(&mut allowed) {
            if matches!(end, End::Truncated | End::Both) {
                if step < *allowed {
                    *end = if *end == End::Both { End::Terminated } else { End::No };
                } else {
                    *allowed = step + interval;
                }
            }
        }
    }
}

type Key = [usize; 3];

/// Counting environments with a record of their steps.
struct Counters {
    /// Episode and step per row.
    now: Vec<[usize; 2]>,
    record: HashMap<Key, End>,
    /// Expected content of the slots: the number of a step, or no start.
    slots: VecDeque<Option<usize>>,
    n_slots: usize,
    pushed: usize,
    interval: usize,
    /// Steps since successors are merged.
    merged: Option<usize>,
    begun: bool,
}

/// The reward as a function of row, episode and step.
fn reward(key: Key) -> f32 {
    ((key[0] * 7 + key[1] * 13 + key[2] * 5) % 11) as f32 - 5.0
}

fn rows_of(keys: &[Key]) -> Tensor<2> {
    tensor(keys.iter().flatten().map(|x| *x as f32).collect(), [keys.len(), 3])
}

impl Counters {
    fn new(n_rows: usize, n_slots: usize, interval: usize) -> Self {
        let (now, record, slots) = (vec![[0, 0]; n_rows], HashMap::new(), VecDeque::new());
        Self { now, record, slots, n_slots, pushed: 0, interval, merged: None, begun: true }
    }

    fn keys(&self) -> Vec<Key> {
        self.now.iter().enumerate().map(|(row, [episode, step])| [row, *episode, *step]).collect()
    }

    fn obs(&self) -> Tensor<2> {
        rows_of(&self.keys())
    }

    fn slot(&mut self, content: Option<usize>) {
        self.slots.push_back(content);
        if self.slots.len() > self.n_slots {
            self.slots.pop_front();
        }
    }

    /// Starts new episodes in all rows.
    fn reset(&mut self) -> Tensor<2> {
        for [episode, step] in &mut self.now {
            (*episode, *step) = (*episode + 1, 0);
        }
        // The newest observation is the successor of the last step, if there is one.
        if self.slots.pop_back().is_some() && !self.begun {
            self.slots.push_back(None);
        }
        self.begun = true;
        self.slot(Some(self.pushed));
        self.obs()
    }

    fn step(&mut self, ends: &[End], on_device: bool) -> (Tensor<2>, StepBatch<Tensor<2>>) {
        let keys = self.keys();
        let mut next = keys.clone();
        for (i, end) in ends.iter().enumerate() {
            self.record.insert(keys[i], *end);
            next[i][2] += 1;
            self.now[i] = if *end == End::No { [next[i][1], next[i][2]] } else { [next[i][1] + 1, 0] };
        }
        self.pushed += 1;
        let is_cut = |end: &End| matches!(end, End::Truncated | End::Both);
        let successor = if on_device {
            // Other rows are not successors there.
            let rows = next.iter().zip(ends).map(|(key, end)| if is_cut(end) { *key } else { [99, 99, 99] });
            Successor::Rows(rows_of(&rows.collect::<Vec<_>>()))
        } else if ends.iter().any(is_cut) {
            Successor::Rows(rows_of(&next))
        } else if ends.iter().any(|end| *end != End::No) {
            Successor::Terminal
        } else {
            Successor::Same
        };
        if successor.rows().is_some() {
            self.merged.get_or_insert(0);
        }
        if let Some(steps) = &mut self.merged {
            *steps += 1;
            if *steps == self.interval {
                self.merged = None;
                self.slot(None);
            }
        }
        self.slot(Some(self.pushed));
        self.begun = false;
        let n = ends.len();
        let flags = |which: [End; 2]| tensor(ends.iter().map(|end| f32::from(which.contains(end))).collect(), [n]);
        let step = StepBatch {
            obs: self.obs(),
            successor,
            reward: tensor(keys.iter().map(|key| reward(*key)).collect(), [n]),
            terminated: flags([End::Terminated, End::Both]),
            truncated: flags([End::Truncated, End::Both]),
            elapsed: None,
        };
        (rows_of(&keys) * 0.5, step)
    }

    /// Number of starts: all steps except the newest observation.
    fn n_starts(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_some()).count() - 1
    }

    /// Return, discount and next observation of a transition from `key`, by definition.
    fn expected(&self, key: Key, n_step: usize) -> (f64, f64, Key) {
        let (mut sum, mut discount, mut at) = (0.0, 1.0, key);
        for _ in 0..n_step {
            let Some(end) = self.record.get(&at) else { break };
            sum += discount * f64::from(reward(at));
            discount *= GAMMA;
            at[2] += 1;
            if matches!(end, End::Terminated | End::Both) {
                return (sum, 0.0, at);
            }
            if *end == End::Truncated {
                break;
            }
        }
        (sum, discount, at)
    }

    fn check(&self, batch: &Transitions<Tensor<2>, Tensor<2>>, n_step: usize) {
        let (obs, action, next) = (floats(&batch.obs), floats(&batch.action), floats(&batch.next_obs));
        let (sums, discounts) = (floats(&batch.reward), floats(&batch.discount));
        for i in 0..sums.len() {
            let key = |values: &[f32]| -> Key { std::array::from_fn(|j| values[3 * i + j] as usize) };
            let from = key(&obs);
            assert!(self.record.contains_key(&from), "{from:?} was not taken yet");
            let (sum, discount, to) = self.expected(from, n_step);
            // Nothing is bootstrapped after a termination.
            assert!(discount == 0.0 || key(&next) == to, "successor of {from:?}: {:?}, not {to:?}", key(&next));
            assert!((f64::from(sums[i]) - sum).abs() < 1e-5, "return of {from:?}: {} instead of {sum}", sums[i]);
            assert_eq!(f64::from(discounts[i]), discount, "discount of {from:?}");
            assert_eq!(action[3 * i..3 * i + 3], obs[3 * i..3 * i + 3].iter().map(|x| x * 0.5).collect::<Vec<_>>());
        }
    }
}

fn run(script: &Script) {
    let mut envs = Counters::new(script.n_rows, script.n_slots, script.interval);
    let capacity = script.n_slots * script.n_rows + script.n_rows / 2;
    let config = ReplayConfig { capacity, n_step: script.n_step, on_host: script.on_host, ..ReplayConfig::default() };
    let mut replay = replay_of(&config, script.interval as u64, &envs.obs(), &envs.obs(), script.form);
    let mut rng = named_rng(script.seed, "test", 0);
    replay.begin(envs.reset());
    for (reset, ends) in &script.steps {
        if *reset {
            replay.begin(envs.reset());
        }
        let (action, step) = envs.step(ends, script.on_device);
        replay.push(action, &step).expect("it fits");
        assert_eq!(replay.n_transitions(), envs.n_starts() * script.n_rows);
        if replay.n_transitions() == 0 {
            continue;
        }
        let batch = replay.sample(24, 0.5, &mut rng);
        envs.check(&batch, script.n_step);
        let errors = (0..24).map(|_| rng.random::<f32>() * 3.0 - 1.5).collect();
        replay.set_priorities(&batch.rows, tensor(errors, [24]));
    }
}

proptest! {
    #[test]
    fn every_transition_is_the_one_that_was_taken(script in scripts()) {
        run(&script);
    }
}

/// Sequences of `config` from a buffer that is filled by `script`. What the policy remembers is a quarter of the observation.
fn run_sequences(script: &Script, sequences: SequenceConfig) {
    let mut envs = Counters::new(script.n_rows, script.n_slots, script.interval);
    let capacity = script.n_slots * script.n_rows + script.n_rows / 2;
    let config = ReplayConfig {
        capacity,
        n_step: script.n_step,
        on_host: script.on_host,
        sequences: Some(sequences),
        ..ReplayConfig::default()
    };
    let replay = replay_of(&config, script.interval as u64, &envs.obs(), &envs.obs(), script.form);
    let mut replay = replay.with_memory(3).expect("there is room");
    let mut rng = named_rng(script.seed, "test", 0);
    replay.begin(envs.reset());
    let n_steps = sequences.burn_in + sequences.length + script.n_step - 1;
    for (reset, ends) in &script.steps {
        if *reset {
            replay.begin(envs.reset());
        }
        let state = PolicyState { numbers: Some(envs.obs() * 0.25) };
        let (action, step) = envs.step(ends, script.on_device);
        replay.push_from(&state, action, &step).expect("it fits");
        if replay.n_transitions() == 0 {
            continue;
        }
        let n = 5;
        let batch = replay.sample(n * sequences.length, 0.5, &mut rng);
        envs.check(&batch, script.n_step);
        let replayed = batch.sequences.as_ref().expect("they were asked for");
        let keys = |values: &Tensor<2>| -> Vec<Key> {
            floats(values).chunks_exact(3).map(|row| std::array::from_fn(|i| row[i] as usize)).collect()
        };
        let (from, to) = (keys(&batch.obs), keys(&batch.next_obs));
        let (starts, weights) =
            (floats(&replayed.steps.starts), floats(batch.weight.as_ref().expect("they have some")));
        let discounts = floats(&batch.discount);
        let last: Vec<i64> = replayed.last.to_data().iter::<i64>().collect();
        assert_eq!((from.len(), starts.len(), replayed.burn_in), (n_steps * n, n_steps * n, sequences.burn_in));
        assert_eq!(floats(&replayed.steps.state), floats(&(batch.obs.clone().slice(0..n) * 0.25)));
        for row in 0..from.len() {
            let step = row / n;
            let is_learned = (sequences.burn_in..sequences.burn_in + sequences.length).contains(&step);
            assert!(is_learned || weights[row] == 0.0, "step {step}");
            if step == 0 {
                assert_eq!(starts[row], 0.0);
                continue;
            }
            let before = from[row - n];
            if weights[row] > 0.0 {
                assert_ne!(from[row], before, "a step that exists is another one");
                let expected = if starts[row] == 1.0 {
                    [before[0], from[row][1], 0]
                } else {
                    [before[0], before[1], before[2] + 1]
                };
                assert_eq!(from[row], expected);
                assert!(starts[row] == 0.0 || from[row][1] > before[1]);
            }
            if weights[row] > 0.0 && discounts[row] > 0.0 {
                let [env, episode, at] = from[last[row] as usize];
                assert_eq!(to[row], [env, episode, at + 1], "the state of a target is that behind the step before it");
            }
        }
        let learned = n * (sequences.length + script.n_step - 1);
        let errors = (0..learned).map(|_| rng.random::<f32>() * 3.0 - 1.5).collect();
        replay.set_priorities(&batch.rows, tensor(errors, [learned]));
    }
}

proptest! {
    #[test]
    fn sequences_are_consecutive_steps_with_what_was_remembered(
        script in scripts(), length in 1usize..5, burn_in in 0usize..4,
    ) {
        run_sequences(&script, SequenceConfig { length, burn_in, ..SequenceConfig::default() });
    }
}

#[test]
fn the_priority_of_a_sequence_mixes_its_greatest_and_mean_error() {
    let sequences = SequenceConfig { length: 2, burn_in: 1, max_share: 0.75 };
    let config = ReplayConfig { capacity: 100, sequences: Some(sequences), n_step: 2, ..ReplayConfig::default() };
    let mut envs = Counters::new(1, 100, 1);
    for form in [Form::PrioritizedOnHost, Form::PrioritizedOnDevice] {
        let mut replay = replay(&config, &envs.obs(), &envs.obs(), form).with_memory(3).expect("there is room");
        replay.begin(envs.reset());
        for _ in 0..20 {
            let (action, step) = envs.step(&[End::No], false);
            replay.push_from(&PolicyState::default(), action, &step).expect("it fits");
        }
        let batch = replay.sample(2, 0.0, &mut named_rng(0, "test", 0));
        // Two steps to learn from, and one that only a target needs.
        replay.set_priorities(&batch.rows, tensor(vec![-1.0, 3.0, 50.0], [3]));
        let leaves = replay.priorities.as_ref().expect("it has some").leaves(100).1;
        let first = batch.rows.to_data().iter::<i64>().next().expect("there is a row") as usize;
        let expected = 0.75 * 3.0 + 0.25 * 2.0;
        assert!((leaves[first] - expected).abs() < 1e-4, "{form:?}: {} instead of {expected}", leaves[first]);
    }
}

#[test]
fn sequences_are_for_policies_that_remember_alone() {
    let (obs, spec) = (tensor::<2>(vec![0.0], [1, 1]), spec_of_rows(1, 1));
    let new = |sequences: Option<SequenceConfig>, width: usize| {
        let config = ReplayConfig { capacity: 100, sequences, ..ReplayConfig::default() };
        let replay = ReplayBuffer::new(&config, &spec, &obs, &obs, GAMMA, &device()).expect("the settings are sound");
        replay.with_memory(width).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(new(None, 0), Ok(()));
    assert_eq!(new(Some(SequenceConfig::default()), 8), Ok(()));
    let rule = "`sequences` must be left out: the network has no memory, got a length of 16";
    assert_eq!(new(Some(SequenceConfig::default()), 0), Err(rule.to_owned()));
    let rule = "`sequences` must be set for a network that remembers, such as { length = 16 }, got none";
    assert_eq!(new(None, 8), Err(rule.to_owned()));
}

/// A buffer that has wrapped, with all kinds of episode ends.
fn wrapped(config: &ReplayConfig, n_rows: usize, form: Form) -> (Counters, ReplayBuffer<Tensor<2>, Tensor<2>>, EnvRng) {
    let mut envs = Counters::new(n_rows, config.capacity / n_rows, 1);
    let mut replay = replay(config, &envs.obs(), &envs.obs(), form);
    replay.begin(envs.reset());
    let mut rng = named_rng(3, "test", 0);
    for _ in 0..3 * config.capacity / n_rows {
        let ends = [End::Terminated, End::Truncated, End::No, End::No, End::No, End::No];
        let ends: Vec<End> = (0..n_rows).map(|_| ends[rng.random_range(0..ends.len())]).collect();
        let (action, step) = envs.step(&ends, false);
        replay.push(action, &step).expect("it fits");
    }
    (envs, replay, rng)
}

#[test]
fn all_transitions_are_as_likely() {
    let config = ReplayConfig { capacity: 90, ..ReplayConfig::default() };
    let (_, replay, mut rng) = wrapped(&config, 3, Form::Uniform);
    let mut counts = HashMap::new();
    let draws = 300 * replay.n_transitions();
    for row in replay.sample(draws, 0.0, &mut rng).rows.to_data().iter::<i64>() {
        *counts.entry(row).or_insert(0.0) += 1.0;
    }
    let n = replay.n_transitions() as f64;
    assert_eq!(counts.len(), replay.n_transitions(), "every transition comes");
    let chi_squared: f64 = counts.values().map(|count: &f64| (count - 300.0).powi(2) / 300.0).sum();
    assert!((chi_squared - n).abs() < 4.0 * (2.0 * n).sqrt(), "chi-squared {chi_squared} of {n} rows");
}

#[test]
fn transitions_come_in_proportion_to_their_priority() {
    for form in [Form::PrioritizedOnHost, Form::PrioritizedOnDevice] {
        let config = ReplayConfig { capacity: 90, ..ReplayConfig::default() };
        let (_, mut replay, mut rng) = wrapped(&config, 3, form);
        // Errors of 1 to 4; with this many samples every row occurs at least once.
        let rows = replay.sample(5000, 0.0, &mut rng).rows;
        let error = |row: i64| (row % 4 + 1) as f32;
        let errors = tensor(rows.to_data().iter::<i64>().map(error).collect(), [5000]);
        replay.set_priorities(&rows, errors);
        let batch = replay.sample(100_000, 0.7, &mut rng);
        let mut counts = HashMap::new();
        for (row, weight) in batch.rows.to_data().iter::<i64>().zip(floats(&batch.weight.expect("prioritized"))) {
            *counts.entry(row).or_insert(0.0) += 1.0;
            // The least probable rows have an error of 1 and the weight 1.
            let expected = (1.0 / error(row)).powf(0.7);
            assert!((weight - expected).abs() < 1e-4, "{weight} instead of {expected}");
        }
        let sum: f64 = counts.keys().map(|row| f64::from(error(*row))).sum();
        assert_eq!(counts.len(), replay.n_transitions());
        for (row, count) in counts {
            let expected = 100_000.0 * f64::from(error(row)) / sum;
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "row {row}: {count} instead of {expected}");
        }
    }
}

#[test]
fn both_forms_of_priorities_draw_the_same_rows() {
    let config = ReplayConfig { capacity: 1500, n_step: 3, ..ReplayConfig::default() };
    let (_, mut host, _) = wrapped(&config, 2, Form::PrioritizedOnHost);
    let (_, mut device, _) = wrapped(&config, 2, Form::PrioritizedOnDevice);
    for round in 0..20 {
        let [a, b] = [&host, &device].map(|replay| replay.sample(64, 0.4, &mut named_rng(round, "test", 0)));
        let same = a.rows.clone().equal(b.rows.clone()).int().sum().into_scalar::<i64>();
        // Sums in 32 bits shift the boundaries between rows slightly.
        assert!(same >= 63, "{same} of 64 rows are the same");
        let gap = a.weight.expect("prioritized").sub(b.weight.expect("prioritized")).abs().max().into_scalar::<f32>();
        assert!(same < 64 || gap < 1e-5, "weights differ by {gap}");
        let errors = tensor((0..64).map(|i| ((i * 37 + round as usize) % 64) as f32 / 16.0).collect(), [64]);
        host.set_priorities(&a.rows, errors.clone());
        device.set_priorities(&a.rows, errors);
    }
}

#[test]
fn rows_are_followed_alike_in_memory_and_as_tensors() {
    for n_step in [1, 3] {
        let config = ReplayConfig { capacity: 300, n_step, ..ReplayConfig::default() };
        let (_, replay, _) = wrapped(&config, 2, Form::Uniform);
        let rows = Drawn::Host(replay.draw(200, &mut named_rng(1, "test", 0)));
        let ReplayBuffer { n_step: batch, ring, outcome, .. } = &replay;
        let [a, b] = [batch.follow(&rows, ring, outcome), batch.follow_as_tensors(&rows, ring, outcome)];
        let same = |a: Tensor<1, Int>, b: Tensor<1, Int>| assert_eq!(a.to_data(), b.to_data());
        same(a.rows, b.rows);
        same(a.successors, b.successors);
        assert_eq!(a.more.is_some(), n_step > 1);
        a.more.zip(b.more).into_iter().for_each(|(a, b)| same(a, b));
        assert_eq!(floats(&a.discount), floats(&b.discount));
        assert_eq!(floats(&a.reward), floats(&b.reward));
    }
}

#[test]
fn new_transitions_get_the_largest_priority_so_far_and_overwritten_ones_none() {
    for form in [Form::PrioritizedOnHost, Form::PrioritizedOnDevice] {
        let config = ReplayConfig { capacity: 12, ..ReplayConfig::default() };
        let (mut envs, mut replay, mut rng) = wrapped(&config, 1, form);
        let rows = replay.sample(200, 0.0, &mut rng).rows;
        replay.set_priorities(&rows, Tensor::full([200], 7.0, &device()));
        replay.set_priorities(&rows, Tensor::full([200], 0.25, &device()));
        let open = replay.ring.open().expect("it has begun");
        let (action, step) = envs.step(&[End::No], false);
        replay.push(action, &step).expect("it fits");
        let (largest, leaves) = replay.priorities.as_ref().expect("prioritized").leaves(12);
        assert!((largest - 7.0).abs() < 1e-4, "{largest}");
        assert!((leaves[open] - 7.0).abs() < 1e-4, "{leaves:?}");
        for (slot, leaf) in leaves.iter().enumerate() {
            assert_eq!(*leaf > 0.0, replay.ring.starts()[slot], "slot {slot} of {leaves:?}");
        }
        // Errors of overwritten rows have no effect.
        let gone = Tensor::<1, Int>::full([1], replay.ring.open().expect("open") as i64, &device());
        replay.set_priorities(&gone, Tensor::full([1], 100.0, &device()));
        assert_eq!(replay.priorities.as_ref().expect("prioritized").leaves(12), (largest, leaves));
    }
}

#[test]
fn stored_rows_and_drawn_batches_do_not_change_later() {
    let config = ReplayConfig { capacity: 20, n_step: 2, ..ReplayConfig::default() };
    for form in FORMS {
        let (mut envs, mut replay, mut rng) = wrapped(&config, 2, form);
        let batch = replay.sample(50, 0.5, &mut rng);
        let read = |batch: &Transitions<Tensor<2>, Tensor<2>>| {
            let parts = [&batch.reward, &batch.discount].map(floats);
            ([&batch.obs, &batch.action, &batch.next_obs].map(floats), parts)
        };
        let before = read(&batch);
        for _ in 0..30 {
            let (mut action, mut step) = envs.step(&[End::No, End::Truncated], true);
            replay.push(action.clone(), &step).expect("it fits");
            // The caller may overwrite its tensors after the call.
            action.inplace(|x| x + 1000.0);
            step.obs.inplace(|x| x + 1000.0);
            if let Successor::Rows(rows) = &mut step.successor {
                *rows = rows.clone() + 1000.0;
            }
            step.reward.inplace(|x| x + 1000.0);
            step.terminated.inplace(|x| x + 1000.0);
        }
        assert_eq!(read(&batch), before);
        envs.check(&replay.sample(100, 0.5, &mut rng), 2);
    }
}

#[test]
fn storage_is_written_in_place() {
    // A second handle would make the next push copy everything.
    for form in FORMS {
        let config = ReplayConfig { capacity: 20, n_step: 3, ..ReplayConfig::default() };
        let (mut envs, mut replay, mut rng) = wrapped(&config, 2, form);
        let batch = replay.sample(50, 0.5, &mut rng);
        replay.set_priorities(&batch.rows, batch.reward.clone());
        assert!(replay.obs.iter().chain(&replay.action).chain([&replay.outcome]).all(Packed::can_mut));
        let (action, step) = envs.step(&[End::No, End::No], false);
        replay.push(action, &step).expect("it fits");
        assert!(replay.obs.iter().chain(&replay.action).chain([&replay.outcome]).all(Packed::can_mut));
    }
}

/// Observations with a mask, one action of four.
fn masked_step(at: usize) -> (Tensor<2>, StepBatch<Obs>) {
    let obs = |at: usize| Obs {
        values: tensor(vec![at as f32 / 100.0, -1.5, 70_000.0], [1, 3]),
        mask: Some(tensor((0..4).map(|i| f32::from((at + i).is_multiple_of(3))).collect(), [1, 4])),
    };
    let end = at % 7 == 6;
    let flag = |flag: bool| tensor(vec![f32::from(flag)], [1]);
    let step = StepBatch {
        obs: obs(if end { 0 } else { at + 1 }),
        successor: if end { Successor::Rows(obs(at + 1)) } else { Successor::Same },
        reward: tensor(vec![at as f32], [1]),
        terminated: flag(end),
        truncated: flag(false),
        elapsed: None,
    };
    (tensor(vec![(at % 4) as f32], [1, 1]), step)
}

fn masked(precision: Precision, form: Form, steps: usize) -> ReplayBuffer<Obs, Tensor<2>> {
    let (action, step) = masked_step(0);
    let config = ReplayConfig { capacity: 40, n_step: 2, precision, ..ReplayConfig::default() };
    let mut replay = replay(&config, &step.obs, &action, form);
    replay.begin(step.obs);
    push_masked(&mut replay, 0..steps);
    replay
}

fn push_masked(replay: &mut ReplayBuffer<Obs, Tensor<2>>, steps: Range<usize>) {
    for at in steps {
        let (action, step) = masked_step(at);
        replay.push(action, &step).expect("it fits");
    }
}

/// The precisions that the device supports.
fn precisions() -> impl Iterator<Item = Precision> {
    let all = [Precision::F32, Precision::F16, Precision::U8 { low: -1.5, high: 3.6 }];
    all.into_iter().filter(|precision| device().supports_dtype(precision.dtype()))
}

#[test]
fn masks_and_discrete_actions_come_back_as_they_were() {
    for precision in precisions() {
        let replay = masked(precision, Form::Uniform, 100);
        let batch = replay.sample(200, 0.0, &mut named_rng(0, "test", 0));
        let (action, reward) = (floats(&batch.action), floats(&batch.reward));
        let (values, mask) = (floats(&batch.obs.values), floats(&batch.obs.mask.expect("they have one")));
        for i in 0..200 {
            assert!(mask[4 * i..4 * i + 4].iter().all(|flag| *flag == 0.0 || *flag == 1.0));
            assert!((0..4).any(|a| action[i] == a as f32), "{}", action[i]);
            assert!(reward[i] < 200.0);
            assert_eq!(values[3 * i + 1], -1.5, "an end of the range is exact");
            // 70,000 exceeds the range of 16 bits.
            let largest = match precision {
                Precision::F32 => 70_000.0,
                Precision::F16 => 65_504.0,
                Precision::U8 { high, .. } => high,
            };
            assert!((values[3 * i + 2] / largest - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn every_index_of_an_action_comes_back_in_every_precision() {
    for precision in precisions() {
        let obs: Tensor<2> = tensor(vec![0.5], [1, 1]);
        let config = ReplayConfig { capacity: 8, precision, ..ReplayConfig::default() };
        let mut replay = ReplayBuffer::new(&config, &spec_of_rows(1, 1), &obs, &obs, 0.9, &device())
            .expect("the settings are sound");
        replay.begin(obs.clone());
        let zero = tensor(vec![0.0], [1]);
        // 2049 and 70001 have no 16-bit float.
        let indices = [2048.0, 2049.0, 70_001.0];
        for index in indices {
            let (reward, terminated, truncated) = (zero.clone(), zero.clone(), zero.clone());
            let step = StepBatch {
                obs: obs.clone(),
                successor: Successor::Same,
                reward,
                terminated,
                truncated,
                elapsed: None,
            };
            replay.push(tensor(vec![index], [1, 1]), &step).expect("it fits");
        }
        let drawn = floats(&replay.sample(64, 0.0, &mut named_rng(0, "test", 0)).action);
        assert!(drawn.iter().all(|index| indices.contains(index)), "{precision:?}: {drawn:?}");
        assert!(indices.iter().all(|index| drawn.contains(index)), "{precision:?}: {drawn:?}");
    }
}

#[test]
fn a_resumed_buffer_goes_on_bit_for_bit() {
    let bits = |batch: Transitions<Obs, Tensor<2>>| {
        let parts = [batch.reward, batch.discount, batch.weight.unwrap_or(tensor(vec![1.0], [1]))];
        let obs = [batch.obs, batch.next_obs].map(|obs| (obs.values.to_data(), obs.mask.map(|mask| mask.to_data())));
        (parts.map(|part| part.to_data()), obs, batch.action.to_data(), batch.rows.to_data())
    };
    for form in FORMS {
        for precision in precisions() {
            // Before the first wrap and after it.
            for steps in [1, 11, 100] {
                let mut one = masked(precision, form, steps);
                let batch = one.sample(16, 0.5, &mut named_rng(1, "test", 0));
                one.set_priorities(&batch.rows, batch.reward);
                let saved = one.save();
                // The previous content of the other buffer is replaced.
                let mut other = masked(precision, form, 17);
                other.load(&saved).expect("it fits");
                assert_eq!(other.save(), saved);
                for from in [200, 203, 260] {
                    let [a, b] = [&mut one, &mut other].map(|replay| {
                        push_masked(replay, from..from + 3);
                        let batch = replay.sample(32, 0.5, &mut named_rng(from as u64, "test", 0));
                        replay.set_priorities(&batch.rows, batch.reward.clone());
                        bits(batch)
                    });
                    assert_eq!(a, b, "{form:?} in {precision:?} after {steps} steps");
                }
            }
        }
    }
}

#[test]
fn a_buffer_on_the_host_gives_the_same_batches_to_the_device_of_the_run() {
    let (action, step) = masked_step(0);
    for (precision, form) in precisions().flat_map(|precision| [(precision, FORMS[0]), (precision, FORMS[1])]) {
        let [mut here, mut away] = [false, true].map(|on_host| {
            let config = ReplayConfig { capacity: 40, n_step: 2, precision, on_host, ..ReplayConfig::default() };
            let mut replay = replay(&config, &step.obs, &action, form);
            replay.begin(step.obs.clone());
            replay
        });
        for at in 0..100 {
            let [a, b] = [&mut here, &mut away].map(|replay| {
                push_masked(replay, at..at + 1);
                let batch = replay.sample(16, 0.5, &mut named_rng(at as u64, "test", 0));
                replay.set_priorities(&batch.rows, batch.reward.clone());
                batch
            });
            assert_eq!(b.obs.values.device(), device());
            assert_eq!(b.reward.device(), device());
            assert_eq!(floats(&a.obs.values), floats(&b.obs.values));
            assert_eq!(floats(&a.next_obs.values), floats(&b.next_obs.values));
            assert_eq!(a.obs.mask.as_ref().map(floats), b.obs.mask.as_ref().map(floats));
            assert_eq!(floats(&a.action), floats(&b.action));
            assert_eq!([&a.reward, &a.discount].map(floats), [&b.reward, &b.discount].map(floats));
            assert_eq!(a.weight.as_ref().map(floats), b.weight.as_ref().map(floats));
        }
        // Without bytes on the device, its masks are stored as floats.
        if device().supports_dtype(Precision::U8 { low: 0.0, high: 1.0 }.dtype()) {
            assert_eq!(here.save(), away.save(), "a checkpoint of one can be loaded by the other");
        }
    }
}

#[test]
fn an_unused_buffer_can_be_saved() {
    let (action, step) = masked_step(0);
    let config = ReplayConfig { capacity: 40, ..ReplayConfig::default() };
    let mut replay = replay(&config, &step.obs, &action, Form::PrioritizedOnHost);
    replay.load(&replay.save()).expect("it fits");
    assert_eq!(replay.n_transitions(), 0);
    replay.begin(step.obs);
    push_masked(&mut replay, 0..10);
    assert_eq!(replay.n_transitions(), 10);
}

#[test]
fn saved_bytes_that_do_not_fit_change_nothing_and_are_explained() {
    let mut replay = masked(Precision::F32, Form::Uniform, 30);
    let saved = replay.save();
    let mut refuse = |bytes: &[u8], part: &str| {
        let error = replay.load(bytes).expect_err("it does not fit").to_string();
        assert!(error.contains(part), "`{error}` says nothing of `{part}`");
    };
    refuse(&[], "0 bytes are too few");
    refuse(&saved[..20], "20 bytes are too few");
    refuse(&saved[..saved.len() - 1], "bytes of rows");
    refuse(&[&saved[..], &[0]].concat(), "bytes of rows");
    if device().supports_dtype(Precision::F16.dtype()) {
        refuse(&masked(Precision::F16, Form::Uniform, 30).save(), "array 0 has rows of 3 numbers in f16");
    }
    refuse(&masked(Precision::F32, Form::PrioritizedOnHost, 30).save(), "with priorities");
    let (action, step) = masked_step(0);
    let smaller = ReplayConfig { capacity: 39, ..ReplayConfig::default() };
    let smaller =
        ReplayBuffer::new(&smaller, &spec_of_rows(1, 1), &step.obs, &action, GAMMA, &device()).expect("sound");
    refuse(&smaller.save(), "39 steps of capacity, this buffer has 40");
    let mut broken = saved.clone();
    broken[8] = 9;
    refuse(&broken, "version 9");
    assert_eq!(replay.save(), saved);
}

/// Whether the buffer found a truncation that comes too soon: at the push where the host can read the flags, else in its count.
fn is_refused(replay: &ReplayBuffer<Tensor<2>, Tensor<2>>, pushed: Result<(), BufferError>) -> bool {
    match replay.early_truncations() {
        Some(early) => pushed.is_ok() && floats(&early)[0] > 0.0,
        None => pushed.is_err(),
    }
}

#[test]
fn truncations_sooner_than_the_specification_permits_are_refused() {
    // Three environments with a time limit of 5 steps, one of which starts two steps later.
    let ends = |step: usize| {
        [0, 0, 2].map(|late| if step % 5 == (4 + late) % 5 && step > late { End::Truncated } else { End::No })
    };
    for (form, on_device, on_host) in [(FORMS[0], false, false), (FORMS[1], true, false), (FORMS[2], true, true)] {
        for (interval, refused_at) in [(1, None), (5, None), (6, Some(9)), (EnvSpec::NEVER, Some(4))] {
            let config = ReplayConfig { capacity: 3000, on_host, ..ReplayConfig::default() };
            let mut envs = Counters::new(3, 1000, usize::try_from(interval).unwrap_or(usize::MAX));
            let mut replay = replay_of(&config, interval, &envs.obs(), &envs.obs(), form);
            replay.begin(envs.reset());
            let refused = (0..200).find(|step| {
                let (action, step) = envs.step(&ends(*step), on_device);
                let before = replay.early_truncations().is_none().then(|| replay.save());
                let pushed = replay.push(action, &step);
                let refused = is_refused(&replay, pushed);
                assert!(!refused || before.is_none_or(|before| before == replay.save()), "an error changes nothing");
                refused
            });
            assert_eq!(refused, refused_at, "{form:?}, interval {interval}");
            if refused.is_none() {
                envs.check(&replay.sample(1000, 0.5, &mut named_rng(0, "test", 0)), 1);
            }
        }
    }
}

#[test]
fn a_resumed_buffer_remembers_the_latest_truncations() {
    let config = ReplayConfig { capacity: 60, ..ReplayConfig::default() };
    let mut envs = Counters::new(1, 60, 8);
    let new = |envs: &Counters| replay_of(&config, 8, &envs.obs(), &envs.obs(), Form::Uniform);
    let mut replay = new(&envs);
    replay.begin(envs.reset());
    for end in [End::No, End::Truncated, End::No] {
        let (action, step) = envs.step(&[end], false);
        replay.push(action, &step).expect("it fits");
    }
    let mut resumed = new(&envs);
    resumed.load(&replay.save()).expect("it fits");
    let (action, step) = envs.step(&[End::Truncated], false);
    let pushed = resumed.push(action, &step);
    assert!(is_refused(&resumed, pushed));
}

#[test]
fn the_specification_of_other_environments_is_refused() {
    let (action, step) = masked_step(0);
    let new = |spec: &EnvSpec| ReplayBuffer::new(&ReplayConfig::default(), spec, &step.obs, &action, GAMMA, &device());
    let error = new(&spec_of_rows(2, 1)).expect_err("there is one row").to_string();
    assert_eq!(error, "`spec` must have the rows of the observations, got 2 for 1 rows");
    let error = new(&spec_of_rows(1, 0)).expect_err("no interval").to_string();
    assert_eq!(error, "`truncation_interval` must be at least 1, got 0");
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    let (action, step) = masked_step(0);
    let text = |config: ReplayConfig, gamma: f64| {
        ReplayBuffer::new(&config, &spec_of_rows(1, 1), &step.obs, &action, gamma, &device())
            .expect_err("not sound")
            .to_string()
    };
    let config = ReplayConfig::default;
    assert_eq!(text(config(), 1.5), "`gamma` must be in [0, 1], got 1.5");
    let small = ReplayConfig { capacity: 2, ..config() };
    assert_eq!(text(small, 0.9), "`capacity` must be at least 3, 3 steps of all rows, got 2");
    let large = ReplayConfig { capacity: 1 << 31, ..config() };
    assert!(text(large, 0.9).starts_with("`capacity` must stay below 2^30"));
    let beta = PrioritizedConfig { beta: Schedule::from(-1.0), ..PrioritizedConfig::default() };
    assert!(text(ReplayConfig { prioritized: Some(beta), ..config() }, 0.9).starts_with("`beta` must"));
    for (low, high) in [(1.0, 1.0), (-3e38, 3e38), (0.0, f32::INFINITY)] {
        let range = ReplayConfig { precision: Precision::U8 { low, high }, ..config() };
        assert!(text(range, 0.9).starts_with("`precision` must have finite ends"), "{low} to {high}");
    }
}

#[test]
fn images_of_bytes_take_a_byte_per_pixel_and_come_back_exactly() {
    if !device().supports_dtype(DType::U8) {
        eprintln!("SKIPPED: this device has no bytes");
        return;
    }
    let (width, action) = (6 * 5 * 2, Tensor::<2>::zeros([1, 1], &device()));
    let image = |step: usize| {
        let pixels: Vec<f32> = (0..width).map(|i| ((37 * i + 101 * step) % 256) as f32).collect();
        Tensor::<2>::from_data(TensorData::new(pixels, [1, width]), &device())
    };
    let of_bytes = EnvSpec { obs: Space::image(6, 5, 2), ..spec_of_rows(1, 1) };
    for precision in [Precision::F32, Precision::F16] {
        let config = ReplayConfig { capacity: 64, precision, ..ReplayConfig::default() };
        let mut replay = ReplayBuffer::new(&config, &of_bytes, &image(0), &action, GAMMA, &device()).expect("sound");
        assert_eq!(replay.bytes_per_transition(), width + 4 + 16, "{precision:?}");
        replay.begin(image(0));
        for step in 1..20 {
            let zero = || Tensor::<1>::zeros([1], &device());
            let batch = StepBatch {
                obs: image(step),
                successor: Successor::Same,
                reward: zero(),
                terminated: zero(),
                truncated: zero(),
                elapsed: None,
            };
            replay.push(action.clone(), &batch).expect("no row is truncated");
        }
        let drawn = replay.sample(64, 0.0, &mut named_rng(0, "test", 0));
        let rows = [drawn.obs, drawn.next_obs].map(brasa_core::read_back);
        let known: Vec<Vec<f32>> = (0..20).map(|step| brasa_core::read_back(image(step))).collect();
        assert!(rows.iter().all(|rows| rows.chunks(width).all(|row| known.iter().any(|image| image == row))));
    }
    // Other numbers keep the precision of the settings.
    let floats = EnvSpec { obs: Space::shaped(0.0, 1.0, [6, 5, 2]), ..spec_of_rows(1, 1) };
    let config = ReplayConfig { capacity: 64, ..ReplayConfig::default() };
    let replay = ReplayBuffer::new(&config, &floats, &image(0), &action, GAMMA, &device()).expect("sound");
    assert_eq!(replay.bytes_per_transition(), 4 * width + 4 + 16);
}

#[test]
fn memory_per_transition_is_that_of_the_numbers_kept() {
    let (obs, action) = (Tensor::<2>::zeros([1, 530], &device()), Tensor::<2>::zeros([1, 129], &device()));
    for precision in precisions() {
        let kept = match precision {
            Precision::F32 => 4 * 530 + 4 * 129,
            Precision::F16 => 2 * 530 + 4 * 129,
            Precision::U8 { .. } => 530 + 4 * 129,
        };
        let config = ReplayConfig { capacity: 1000, precision, ..ReplayConfig::default() };
        let per_transition = |form| replay(&config, &obs, &action, form).bytes_per_transition();
        assert_eq!(per_transition(Form::Uniform), kept + 16);
        // A priority, and its part of the sums.
        assert_eq!(per_transition(Form::PrioritizedOnHost), kept + 16 + 9);
        // What a plan computes is what a buffer has.
        for interval in [1, 4] {
            let spec = spec_of_rows(1, interval);
            let replay = ReplayBuffer::new(&config, &spec, &obs, &action, GAMMA, &device()).expect("sound");
            let planned = ReplayBuffer::bytes_of(&config, &spec, &obs, &action, &device());
            assert_eq!(planned, replay.bytes() as f64);
        }
    }
}
