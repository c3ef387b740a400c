//! Exported policies of every kind of network act like the policies of the runs they come from.
//!
//! The formats themselves are tested in `brasa-export`.
#![allow(clippy::expect_used)]

use crate::common;

use std::path::Path;

use brasa::contracts::export::{ExportedPolicy, Layer, NO_ACTION, Output};
use brasa::device::open_named;
use brasa::env::{BatchSlabs, named_rng};
use brasa::experiment::LoadedPolicy;
use brasa::ndarray::{Array2, s};
use brasa::rand::RngExt;
use common::page::{train, trained};
use common::{arg, run, succeed};

const REPLAY: &str = "[off_policy]\nlearning_starts = 50\nbatch_size = 16\ntrain_freq = 8\nupdates_per_step = 0.25\n\
    log_interval = 64\n[off_policy.replay]\ncapacity = 1000\n";
const SHORT: &str = "[train]\ntotal_env_steps = 256\nn_envs = 2\n";

/// Compares on random observations and masks, also far outside of the usual range.
fn assert_same(name: &str, policy: &LoadedPolicy, exported: &ExportedPolicy) {
    let n_rows = 40 * policy.spec().n_agents;
    let rng = &mut named_rng(5, "test", 0);
    let mut obs = Array2::from_shape_fn((n_rows, exported.obs_width), |_| rng.random_range(-3.0f32..3.0));
    if let Some(Layer::Graph(network)) = exported.layers.first() {
        // The graph and the own node.
        for (row, mut obs) in obs.rows_mut().into_iter().enumerate() {
            let nodes = &network.edges.nodes;
            obs[0] = (row % nodes.len()) as f32;
            obs[1] = (row / nodes.len() % nodes[row % nodes.len()]) as f32;
        }
    }
    let n_actions = exported.n_actions();
    let mask = exported.masked.then(|| {
        let flags = policy.spec().actions_per_flag();
        let mut mask = Array2::from_shape_fn((n_rows, n_actions), |(row, action)| {
            f32::from(u8::from(((action / flags) * 7 + row).is_multiple_of(3)))
        });
        // At least one is legal.
        mask.column_mut(0).fill(1.0);
        (0..flags).for_each(|i| mask.column_mut(i).fill(1.0));
        mask.column_mut(n_actions - 1).fill(1.0);
        mask
    });
    let expected = policy.act(obs.view(), mask.as_ref().map(|mask| mask.view())).expect("they fit");
    let flat = |array: &Array2<f32>| array.iter().copied().collect::<Vec<f32>>();
    let got = exported.act(&flat(&obs), mask.as_ref().map(flat).as_deref());
    assert_eq!(expected.dim(), (n_rows, exported.action_width()), "{name}");
    let mut distinct = Vec::new();
    for (i, (got, expected)) in got.iter().zip(expected.iter()).enumerate() {
        assert!((got - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{name}, {i}: {got} instead of {expected}");
        distinct.push(got.to_bits());
    }
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > 1, "{name}: one action alone shows nothing");
    assert_refused_alike(name, policy, exported, &obs, mask.as_ref());
}

/// One number of the first row is changed: it has no action then, and the other rows keep theirs.
fn assert_refused_alike(
    name: &str,
    policy: &LoadedPolicy,
    exported: &ExportedPolicy,
    obs: &Array2<f32>,
    mask: Option<&Array2<f32>>,
) {
    let act = |obs: &Array2<f32>, mask: Option<&Array2<f32>>| {
        let actions = policy.act(obs.view(), mask.map(|mask| mask.view())).expect("they fit");
        let flat = |array: &Array2<f32>| array.iter().copied().collect::<Vec<f32>>();
        let alike =
            |a: f32, b: f32| a.is_nan() == b.is_nan() && (a.is_nan() || (a - b).abs() <= 1e-5 * a.abs().max(1.0));
        let others = exported.act(&flat(obs), mask.map(flat).as_deref());
        assert!(actions.iter().zip(&others).all(|(a, b)| alike(*a, *b)), "{name}: {actions} and {others:?}");
        actions
    };
    let whole = act(obs, mask);
    let none = |action: f32| if exported.n_actions() > 0 { action == NO_ACTION } else { action.is_nan() };
    let last = exported.obs_width - 1;
    let mut changes = vec![(0, f32::NAN), (last, f32::NAN)];
    if matches!(exported.layers.first(), Some(Layer::Graph(_))) {
        for column in [0, 1] {
            changes.extend([1e9, 0.5, -1.0, f32::INFINITY, 999.0].map(|value| (column, value)));
        }
    }
    for (column, value) in changes {
        let mut obs = obs.clone();
        obs[[0, column]] = value;
        let actions = act(&obs, mask);
        assert!(
            actions.row(0).iter().all(|action| none(*action)),
            "{name}: {} for {value} in {column}",
            actions.row(0)
        );
        assert_eq!(actions.slice(s![1.., ..]), whole.slice(s![1.., ..]), "{name}: {value} in {column}");
    }
    // A network over graphs multiplies the columns of missing nodes by 0, its export never reads them.
    if !matches!(exported.layers.first(), Some(Layer::Graph(_))) {
        let mut far = obs.clone();
        far.column_mut(last).fill(f32::INFINITY);
        act(&far, mask);
    }

    // As a controller of environments, it is an error.
    let spec = policy.spec().with_n_envs(2);
    let mut actions = Array2::zeros((spec.n_rows(), spec.action.width()));
    let mut refused = |change: fn(&mut BatchSlabs)| {
        let mut view = BatchSlabs::new(&spec);
        change(&mut view);
        policy.controller(&spec).act(&view, actions.view_mut()).expect_err("there is no action").to_string()
    };
    let words = refused(|view| {
        let last = view.obs.nrows() - 1;
        view.obs.row_mut(last).fill(f32::NAN);
        // Where agents share all of their observation, a row has no numbers of its own.
        view.shared.row_mut(1).fill(f32::NAN);
    });
    assert_eq!(words, "the policy has no action for environment 1: its observation has a number that is NaN", "{name}");
    if mask.is_some() {
        let words = refused(|view| view.mask.fill(0.0));
        assert_eq!(words, "the policy has no action for environment 0: its mask forbids every action", "{name}");
    }

    let shape = (obs.nrows(), exported.n_actions());
    let ones = Array2::ones(shape);
    let message = |obs: &Array2<f32>, mask: Option<&Array2<f32>>| {
        policy.act(obs.view(), mask.map(|mask| mask.view())).expect_err("it does not fit").to_string()
    };
    let narrow = Array2::zeros((obs.nrows(), last));
    assert!(message(&narrow, mask).contains("`obs` must be rows of"), "{name}");
    assert!(message(&Array2::zeros((0, exported.obs_width)), mask).contains("`obs` must be rows of"), "{name}");
    let Some(mask) = mask else {
        assert!(message(obs, Some(&ones)).contains("`mask` must not be given"), "{name}");
        return;
    };
    assert!(message(obs, None).contains("`mask` must be given"), "{name}");
    assert!(message(obs, Some(&Array2::ones((shape.0, shape.1 - 1)))).contains("`mask` must have the shape"), "{name}");
    let span = policy.spec().actions_per_flag();
    let Output::Choice { heads } = &exported.output else { panic!("{name}: masks are of choices") };
    for value in [f32::NAN, 0.0] {
        let mut mask = mask.clone();
        let own = if value.is_nan() { span } else { heads[0] };
        mask.slice_mut(s![0, ..own]).fill(value);
        let actions = act(obs, Some(&mask));
        assert_eq!(actions[[0, 0]], NO_ACTION, "{name}: {value}");
        assert_eq!(actions.slice(s![.., 1..]), whole.slice(s![.., 1..]), "{name}: {value}");
        assert_eq!(actions.slice(s![1.., ..]), whole.slice(s![1.., ..]), "{name}: {value}");
    }
    if span > 1 {
        let mut mask = ones;
        mask[[0, 1]] = 0.0;
        assert!(message(obs, Some(&mask)).contains("`mask` must have equal flags"), "{name}");
    }
}

#[test]
fn every_kind_of_network_acts_alike() {
    let device = open_named("cpu").expect("flex is a default feature");
    // Short training leaves biased policies; weights of gain 1 act in several ways.
    let ppo = "[ppo]\nn_steps = 32\nbatch_size = 64\nlearning_rate = 1e-2\n";
    let team = |sharing: &str| {
        format!(
            "[scenario.uara]\nusers = 3\nchannels = 2\nepisode_steps = 5\nobserve = [\"state\"]\n[scenario.uara.layout]\n\
            redraw = \"never\"\n{SHORT}[dqn]\n[team_q_network]\nhidden = [8]\n{sharing}\n{REPLAY}"
        )
    };
    let normalized = SHORT.replace("[train]", "[train]\nnormalize_obs = true");
    for (name, experiment) in [
        (
            "discrete",
            format!("[scenario.cart-pole]\n{normalized}[network]\nshared_hidden = [8]\nactivation = \"elu\"\n{ppo}"),
        ),
        ("clipped", format!("[scenario.pendulum]\n{normalized}[network]\northogonal = false\n{ppo}")),
        ("squashed-ppo", format!("[scenario.pendulum]\n{SHORT}[network]\nsquash = true\northogonal = false\n{ppo}")),
        (
            "sac",
            format!("[scenario.pendulum]\n{normalized}[sac]\n[actor]\nhidden = [8]\n[critics]\nhidden = [8]\n{REPLAY}"),
        ),
        (
            "sde",
            format!(
                "[scenario.pendulum]\n{SHORT}[sac]\n[actor]\nhidden = [8]\nstd = \"state-dependent\"\n[critics]\n\
                hidden = [8]\n{REPLAY}"
            ),
        ),
        (
            "td3",
            format!(
                "[scenario.pendulum]\n{SHORT}[td3]\n[deterministic_actor]\nhidden = [8]\n[critics]\nhidden = [8]\n{REPLAY}"
            ),
        ),
        ("dqn", format!("[scenario.cart-pole]\n{SHORT}[dqn]\n[q_network]\nhidden = [8]\n{REPLAY}")),
        ("dueling", format!("[scenario.cart-pole]\n{SHORT}[dqn]\n[q_network]\nhidden = [8]\ndueling = true\n{REPLAY}")),
        ("team", team("sharing = \"independent\"")),
        ("trunk", team("sharing = \"trunk\"\ndueling = true")),
        ("all", team("sharing = \"all\"")),
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let out = train(dir.path(), &experiment);
        let policy = brasa::load_policy(&out, &device).expect("the run is whole");
        let said = succeed(&["export", arg(&out), "--format", "safetensors"]);
        assert!(said.contains("exported.safetensors"), "{said}");
        let bytes = std::fs::read(out.join("exported.safetensors")).expect("it was written");
        let exported = ExportedPolicy::from_safetensors(&bytes).expect("it is an exported policy");
        assert_same(name, &policy, &exported);
        for (format, file) in [("onnx", "policy.onnx"), ("c", "policy.h")] {
            succeed(&["export", arg(&out), "--format", format]);
            assert!(out.join(file).metadata().expect("it was written").len() > 500);
        }
    }
}

#[test]
fn masks_of_several_choices_are_exported() {
    let device = open_named("cpu").expect("flex is a default feature");
    let dir = tempfile::tempdir().expect("a temporary directory");
    // One decision per responder, with masks.
    let experiment = format!(
        "[scenario.uara]\nusers = 3\nchannels = 2\nepisode_steps = 5\n{SHORT}[network]\n[ppo]\nn_steps = 32\nbatch_size = 64\n"
    );
    let out = train(dir.path(), &experiment);
    let policy = brasa::load_policy(&out, &device).expect("the run is whole");
    let exported = policy.exported().expect("it is an MLP");
    assert!(matches!(exported.output, Output::Choice { .. }));
    assert_same("masked", &policy, &exported);
}

#[test]
fn values_of_pairs_are_exported() {
    let device = open_named("cpu").expect("flex is a default feature");
    for (name, layers) in [("pairs", "hidden = [8, 6]\nactivation = \"tanh\""), ("one-layer", "hidden = [8]")] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let experiment = format!(
            "[scenario.uara]\nusers = 3\nchannels = 2\nepisode_steps = 5\n{SHORT}[dqn]\n\
            [pair_q_network]\n{layers}\n{REPLAY}"
        );
        let out = train(dir.path(), &experiment);
        let policy = brasa::load_policy(&out, &device).expect("the run is whole");
        let exported = policy.exported().expect("it has groups of columns");
        assert!(exported.layers.iter().any(|layer| matches!(layer, Layer::Groups(_))), "{name}");
        assert_same(name, &policy, &exported);
        for format in ["onnx", "c", "js"] {
            succeed(&["export", arg(&out), "--format", format]);
        }
    }
}

#[test]
fn policies_over_graphs_are_exported() {
    let device = open_named("cpu").expect("flex is a default feature");
    let world = "[scenario.evacuation.buildings.generated]\ncount = 2\n\
        [scenario.evacuation.buildings.generated.generator]\nnodes = [10, 12]\nfloors = [1, 1]\n\
        [train]\ntotal_env_steps = 256\nn_envs = 2\n[ppo]\nn_steps = 32\nbatch_size = 64\nlearning_rate = 1e-2\n\
        [graph_network]\northogonal = false\n";
    for (name, network) in [
        ("pointer", "layers = [{ heads = 2, outputs = 4 }, { heads = 3, outputs = 5, concat = false }]\n"),
        ("plain", "layers = [{ heads = 2, outputs = 4 }]\nnorm = \"none\"\nresidual = false\nedge_features = false\n"),
        (
            "index",
            "layers = [{ heads = 2, outputs = 4 }, { heads = 1, outputs = 6 }]\nversion = \"v1\"\nnorm = \"graph\"\n\
            trunk = \"separate\"\nfinish_last = false\nactivation = \"relu\"\n\
            [graph_network.readout]\nown = true\nmean = true\nmax = false\nagent = false\n\
            [graph_network.head.index]\nhidden = [8]\noptions = 15\n",
        ),
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let out = train(dir.path(), &format!("{world}{network}"));
        let policy = brasa::load_policy(&out, &device).expect("the run is whole");
        succeed(&["export", arg(&out), "--format", "safetensors"]);
        let bytes = std::fs::read(out.join("exported.safetensors")).expect("it was written");
        let exported = ExportedPolicy::from_safetensors(&bytes).expect("it is an exported policy");
        assert_same(name, &policy, &exported);
        // The episodes of an evaluation are in other buildings.
        let config = dir.path().join("experiment.toml");
        let output = run(&["baseline", arg(&config), "--policy", arg(&out.join("exported.safetensors"))]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains("an exported policy has the graphs of its training"), "{message}");
    }
}

#[test]
fn an_exported_policy_over_a_graph_plays_as_its_run_does() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let experiment = "[scenario.evacuation]\nbuildings = { reference = \"office\" }\n[train]\ntotal_env_steps = 256\n\
        n_envs = 2\n[ppo]\nn_steps = 64\nbatch_size = 64\nlearning_rate = 1e-2\n[graph_network]\n\
        layers = [{ heads = 2, outputs = 4 }]\n";
    let out = train(dir.path(), experiment);
    succeed(&["export", arg(&out), "--format", "safetensors"]);
    let (config, file) = (dir.path().join("experiment.toml"), out.join("exported.safetensors"));
    let played = succeed(&["baseline", arg(&config), "--policy", arg(&file), "--json"]);
    assert_eq!(trained(&played), trained(&succeed(&["eval", arg(&out), "--json"])));
}

#[test]
fn a_bad_name_and_a_bad_place_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), &format!("[scenario.cart-pole]\n{SHORT}[ppo]\nn_steps = 32\nbatch_size = 64\n"));
    let refused = |args: &[&str]| {
        let output = run(&[&["export", arg(&out)], args].concat());
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let message = refused(&["--format", "c", "--name", "2 fast"]);
    assert!(message.contains("must have letters, digits and `_`, and begin with a letter, got `2 fast`"), "{message}");
    let nowhere = dir.path().join("nowhere/policy.onnx");
    let message = refused(&["--format", "onnx", "--out", arg(&nowhere)]);
    assert!(message.contains("cannot write"), "{message}");
    let missing = refused_run(&dir.path().join("no-run"));
    assert!(missing.contains("no-run"), "{missing}");
}

fn refused_run(path: &Path) -> String {
    let output = run(&["export", arg(path), "--format", "onnx"]);
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}
