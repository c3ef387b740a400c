//! Policies that remember act alike in every format, over many steps: ONNX in onnxruntime, C by the compiler of the machine, JavaScript in Node.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use brasa_export::{ExportedPolicy, JsModule, Layer, Memory, Output};

use crate::common::programs::{answer, folder, has, python, run_c, run_onnx};
use crate::common::{memory_policies, numbers, policies};
use crate::formats::{assert_near, groups_of};

/// Steps of episodes of policies that remember.
const N_STEPS: usize = 100;

/// Observations of several steps of two environments, one of them unknown, masks, and the expected actions and states after each step.
struct Episodes {
    obs: Vec<Vec<f32>>,
    masks: Vec<Option<Vec<f32>>>,
    actions: Vec<Vec<f32>>,
    states: Vec<Vec<f32>>,
}

fn episodes(policy: &ExportedPolicy) -> Episodes {
    let rows = 2 * policy.n_agents;
    let mut all = Episodes { obs: vec![], masks: vec![], actions: vec![], states: vec![] };
    let mut state = Vec::new();
    for step in 0..N_STEPS {
        let mut obs: Vec<f32> = numbers(rows * policy.obs_width, 3.3 * step as f32).iter().map(|x| 2.0 * x).collect();
        if let Some(Layer::Normalize { mean, .. }) = policy.layers.first() {
            obs.iter_mut().zip(mean.iter().cycle()).for_each(|(x, mean)| *x += *mean as f32);
        }
        if step == 40 {
            obs[1] = f32::NAN;
        }
        let flags = (0..rows * policy.n_actions()).map(|i| f32::from(u8::from((i + step) % 3 > 0))).collect();
        let mask = policy.masked.then_some(flags);
        let before = state.clone();
        all.actions.push(policy.act_from(&obs, mask.as_deref(), &mut state));
        assert_eq!(state.len(), rows * policy.state_width());
        if step == 40 {
            assert_eq!(state[..policy.state_width()], before[..policy.state_width()], "an unknown row changes nothing");
        }
        all.states.push(state.clone());
        all.obs.push(obs);
        all.masks.push(mask);
    }
    all
}

/// As [`assert_near`], where NaN is NaN.
fn assert_like(what: &str, got: &[Option<f64>], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let known = got.iter().zip(expected).filter(|(_, expected)| !expected.is_nan());
    let (got_known, expected_known): (Vec<f64>, Vec<f32>) =
        known.map(|(got, expected)| (got.expect("a number"), *expected)).unzip();
    assert_near(what, &got_known, &expected_known, 1e-5);
    let unknown = got.iter().zip(expected).filter(|(_, expected)| expected.is_nan());
    assert!(unknown.into_iter().all(|(got, _)| got.is_none_or(f64::is_nan)), "{what}: NaN stays NaN");
}

/// Without a state, a policy begins an episode at every call.
#[test]
fn what_is_remembered_changes_actions() {
    for (name, policy) in memory_policies() {
        // Scores, which change even where choices do not.
        let policy = ExportedPolicy { output: Output::Real, masked: false, ..policy };
        let Episodes { obs, masks, actions, states } = episodes(&policy);
        assert!(policy.state_width() > 0, "{name}");
        assert_eq!(policy.act(&obs[0], masks[0].as_deref()), actions[0], "{name}: the first step");
        assert!((1..20).any(|step| policy.act(&obs[step], masks[step].as_deref()) != actions[step]), "{name}");
        assert!(states.iter().flatten().all(|x| x.is_finite()), "{name}");
    }
    let (_, policy) = policies().swap_remove(0);
    assert_eq!(policy.state_width(), 0);
}

#[test]
fn onnx_runtime_remembers() {
    let Some(python) = python() else { return };
    let dir = folder("onnx-memory");
    for (name, policy) in memory_policies() {
        let Episodes { obs, masks, actions, states } = episodes(&policy);
        let array = |steps: &[f32], width: usize| {
            let shape = match policy.n_agents {
                1 => vec![N_STEPS, 2, width],
                n => vec![N_STEPS, 2, n, width],
            };
            serde_json::json!({ "shape": shape, "values": steps })
        };
        let mut given = BTreeMap::from([("obs", array(&obs.concat(), policy.obs_width))]);
        if policy.masked {
            let masks: Vec<f32> = masks.into_iter().flatten().flatten().collect();
            given.insert("mask", array(&masks, policy.n_actions()));
        }
        // JSON has no NaN, but Python reads it.
        let given = serde_json::to_string(&given).expect("numbers serialize").replace("null", "NaN");
        let outputs = run_onnx(&python, &dir, name, &policy, &given);
        assert_like(name, &outputs["action"].values, &actions.concat());
        assert_like(name, &outputs["next_state"].values, &states.concat());
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

#[test]
fn c_remembers() {
    if !has("cc") {
        return;
    }
    let dir = folder("c-memory");
    let mut main = String::from("#include <stdio.h>\n#include <stdlib.h>\n");
    for (name, policy) in memory_policies() {
        let header = policy.to_c(name).expect("it is valid");
        std::fs::write(dir.join(format!("{name}.h")), header).expect("written");
        writeln!(main, "#include \"{name}.h\"").expect("a string");
    }
    main.push_str("int main(void) {\n    int step, env, i;\n");
    for (name, policy) in memory_policies() {
        let upper = name.to_ascii_uppercase();
        let Episodes { obs, masks, .. } = episodes(&policy);
        let number = |x: &f32| if x.is_nan() { "NAN".to_owned() } else { format!("{x:?}f") };
        let list = |values: &[f32]| values.iter().map(number).collect::<Vec<_>>().join(",");
        writeln!(main, "    {{ static const float obs[] = {{ {} }};", list(&obs.concat())).expect("a string");
        let masks: Vec<f32> = masks.into_iter().flatten().flatten().collect();
        let mask = if masks.is_empty() { "NULL" } else { "mask + at * N_ACTIONS" };
        if policy.masked {
            writeln!(main, "    static const float mask[] = {{ {} }};", list(&masks)).expect("a string");
        }
        let mask = mask.replace("N_ACTIONS", &format!("{upper}_N_ACTIONS"));
        writeln!(
            main,
            "    static float state[2 * {upper}_N_AGENTS * {upper}_STATE_WIDTH];\n    \
            float action[{upper}_N_AGENTS * {upper}_ACTION_WIDTH];\n    \
            for (step = 0; step < {N_STEPS}; ++step) {{ for (env = 0; env < 2; ++env) {{\n        \
            int at = (2 * step + env) * {upper}_N_AGENTS;\n        \
            float *own = state + env * {upper}_N_AGENTS * {upper}_STATE_WIDTH;\n        \
            {name}_act(obs + at * {upper}_OBS_WIDTH, {mask}, own, action);\n        \
            for (i = 0; i < {upper}_N_AGENTS * {upper}_ACTION_WIDTH; ++i) {{ printf(\"%.9g\\n\", action[i]); }}\n        \
            for (i = 0; i < {upper}_N_AGENTS * {upper}_STATE_WIDTH; ++i) {{ printf(\"%.9g\\n\", own[i]); }} }} }} }}"
        )
        .expect("a string");
    }
    main.push_str("    return 0;\n}\n");
    let text = run_c(&dir, &main);
    let mut printed = text.lines().map(|line| line.parse::<f64>().ok());
    for (name, policy) in memory_policies() {
        let Episodes { actions, states, .. } = episodes(&policy);
        for (step, (actions, states)) in actions.iter().zip(&states).enumerate() {
            let halves =
                |values: &[f32], env: usize| values[env * values.len() / 2..(env + 1) * values.len() / 2].to_vec();
            for env in 0..2 {
                let expected = [halves(actions, env), halves(states, env)].concat();
                let got: Vec<_> = printed.by_ref().take(expected.len()).collect();
                assert_like(&format!("{name}, step {step}"), &got, &expected);
            }
        }
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

#[test]
fn javascript_remembers() {
    if !has("node") {
        return;
    }
    for (name, policy) in memory_policies() {
        let mut script = policy.to_js(name, JsModule::Script).expect("it is valid");
        let Episodes { obs, masks, actions, states } = episodes(&policy);
        let numbers = |values: &[f32]| serde_json::to_string(values).expect("numbers serialize").replace("null", "NaN");
        let masks: Vec<f32> = masks.into_iter().flatten().flatten().collect();
        write!(
            script,
            "const obs = {}, mask = {}, n = {}, m = {};\nconst actions = [], states = [];\n\
            const own = [{name}.start(), {name}.start()];\n\
            for (let at = 0; at < {}; at++) {{\n\
            const row = obs.slice(at * n, (at + 1) * n), state = own[at % 2];\n\
            {name}.scores(row, state);\n\
            actions.push(...{name}.act(row, mask && mask.slice(at * m, (at + 1) * m), state));\n\
            states.push(...state);\n}}\n\
            let error = \"\";\ntry {{ {name}.act(obs.slice(0, n), mask && mask.slice(0, m)); }} catch (e) {{ error = e.message; }}\n\
            console.log(JSON.stringify([actions, states, error]));\n",
            numbers(&obs.concat()),
            if masks.is_empty() { "null".into() } else { numbers(&masks) },
            policy.n_agents * policy.obs_width,
            policy.n_agents * policy.n_actions(),
            2 * N_STEPS,
        )
        .expect("a string");
        let printed = answer(Command::new("node").arg("-"), &script).expect("the script ends well");
        let (got, after, error): (Vec<Option<f64>>, Vec<Option<f64>>, String) =
            serde_json::from_str(&printed).expect("it prints JSON");
        assert_like(name, &got, &actions.concat());
        assert_like(name, &after, &states.concat());
        assert_eq!(error, "`state` must be given to a policy that remembers: `start()` where an episode begins");
    }
}

#[test]
fn layers_that_remember_must_fit_too() {
    let named = |name: &str| memory_policies().into_iter().find(|(other, _)| *other == name).expect("it is one").1;
    let fault = |policy: &ExportedPolicy| policy.validate().expect_err("it does not fit").to_string();
    let mut policy = named("frames");
    policy.layers[0] = Layer::Memory(Memory::Window { frames: 0 });
    assert_eq!(fault(&policy), "layer 0: `frames` must be at least 1, got 0");
    policy.layers[0] = Layer::Memory(Memory::Window { frames: usize::MAX });
    assert!(fault(&policy).ends_with("rows of 5 columns are too many"), "{}", fault(&policy));
    for (change, expected) in [
        (0, "layer 0: `input.weight` must have 120 numbers, got 119"),
        (1, "layer 0: `input.bias` must have 24 numbers, got 23"),
        (2, "layer 0: `output.weight` must have 192 numbers, got 191"),
        (3, "layer 0: `output.bias` must have a positive multiple of 3 numbers, got 23"),
        (4, "layer 0: `input.bias` must have finite numbers, got NaN at index 23"),
    ] {
        let mut policy = named("gru");
        let Layer::Memory(Memory::Recurrent { input, output, .. }) = &mut policy.layers[0] else { panic!("a GRU") };
        let list =
            [&mut input.weight, &mut input.bias, &mut output.weight, &mut output.bias].into_iter().nth(change % 4);
        let list = list.expect("one of four");
        match change {
            4 => input.bias[23] = f32::NAN,
            _ => drop(list.pop()),
        }
        assert_eq!(fault(&policy), expected);
    }
    let mut policy = policies().into_iter().find(|(name, _)| *name == "pairs").expect("it is one of them").1;
    groups_of(&mut policy).layers.push(Layer::Memory(Memory::Window { frames: 2 }));
    assert_eq!(fault(&policy), "layer 1: layer 3 of a group must be a function of its columns alone");
}
