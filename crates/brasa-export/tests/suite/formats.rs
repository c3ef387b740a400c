//! Every format computes the same actions: ONNX in onnxruntime, C by the compiler of the machine, JavaScript in Node, safetensors read
//! again.
//!
//! ONNX needs a Python with `onnx` and `onnxruntime` (`BRASA_PYTHON`, default `python3`), C a compiler `cc`, JavaScript
//! `node`. Without them the tests say
//! that they are skipped.
#![allow(clippy::expect_used)]

use crate::common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use brasa_export::{About, Column, ExportError, ExportedPolicy, Groups, ImageLayer, JsModule, Layer, Output};
use common::programs::{answer, folder, has, python, run_c, run_onnx};
use common::{FAR, graph_policies, linear, memory_policies, numbers, policies};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

const N_ENVS: usize = 50;

/// Observations and, where the policy knows them, masks with a legal action in every choice.
fn inputs(policy: &ExportedPolicy) -> (Vec<f32>, Option<Vec<f32>>) {
    let n_rows = N_ENVS * policy.n_agents;
    let mut obs: Vec<f32> = numbers(n_rows * policy.obs_width, 9.0).iter().map(|x| 3.0 * x).collect();
    if let Some(Layer::Normalize { mean, .. }) = policy.layers.first() {
        obs.iter_mut().zip(mean.iter().cycle()).for_each(|(x, mean)| *x += *mean as f32);
    }
    if let Some(Layer::Graph(network)) = policy.layers.first() {
        for (row, obs) in obs.chunks_exact_mut(policy.obs_width).enumerate() {
            let graph = row % 2;
            obs[0] = graph as f32;
            obs[1] = (row / 2 % network.edges.nodes[graph]) as f32;
        }
    }
    let heads = policy.output.heads();
    let mut mask = Vec::new();
    for row in 0..n_rows {
        for n in heads {
            mask.extend((0..*n).map(|i| if i == row % n || (i + row) % 3 == 0 { 1.0 } else { 0.0 }));
        }
    }
    (obs, policy.masked.then_some(mask))
}

pub fn assert_near(what: &str, got: &[f64], expected: &[f32], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let gap = (got - f64::from(*expected)).abs();
        assert!(
            gap <= tolerance * f64::from(expected.abs()).max(1.0),
            "{what}, number {i}: {got} instead of {expected}"
        );
    }
}

#[test]
fn onnx_runtime_computes_the_same_actions() {
    let Some(python) = python() else { return };
    let dir = folder("onnx");
    for (name, policy) in policies() {
        let (obs, mask) = inputs(&policy);
        let shape = |width: usize| match policy.n_agents {
            1 => vec![N_ENVS, width],
            n => vec![N_ENVS, n, width],
        };
        let array = |values: &[f32], width| serde_json::json!({ "shape": shape(width), "values": values });
        let mut given = BTreeMap::from([("obs", array(&obs, policy.obs_width))]);
        if let Some(mask) = &mask {
            given.insert("mask", array(mask, policy.n_actions()));
        }
        let given = serde_json::to_string(&given).expect("numbers serialize");
        let outputs = run_onnx(&python, &dir, name, &policy, &given);
        let read = |output: &str| -> Vec<f64> { outputs[output].values.iter().map(|x| x.expect("a number")).collect() };
        assert_eq!(outputs["action"].shape, shape(policy.action_width()), "{name}");
        assert_near(name, &read("action"), &policy.act(&obs, mask.as_deref()), 1e-5);
        if policy.n_actions() > 0 {
            let all = ExportedPolicy { output: Output::Real, ..policy.clone() };
            let (scores, width) = (all.act(&obs, None), all.action_width());
            let scores: Vec<f32> = scores.chunks(width).flat_map(|row| &row[..policy.n_actions()]).copied().collect();
            assert_near(name, &read("scores"), &scores, 1e-5);
        }
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

#[test]
fn c_computes_the_same_actions() {
    if !has("cc") {
        return;
    }
    let dir = folder("c");
    let mut policies = policies();
    // Their scores too.
    for (name, (_, policy)) in ["pointer_scores", "index_scores"].into_iter().zip(graph_policies()) {
        policies.push((name, ExportedPolicy { output: Output::Real, masked: false, ..policy }));
    }
    // One program with all policies: their names must not collide.
    let mut main = String::from("#include <stdio.h>\n#include <stdlib.h>\n");
    for (name, policy) in &policies {
        std::fs::write(dir.join(format!("{name}.h")), policy.to_c(name).expect("it is valid")).expect("written");
        writeln!(main, "#include \"{name}.h\"").expect("a string");
    }
    main.push_str("int main(void) {\n    int env, i;\n");
    for (name, policy) in &policies {
        let upper = name.to_ascii_uppercase();
        let (obs, mask) = inputs(policy);
        let list = |values: &[f32]| values.iter().map(|x| format!("{x:?}f")).collect::<Vec<_>>().join(",");
        writeln!(main, "    {{ static const float obs[] = {{ {} }};", list(&obs)).expect("a string");
        let mask = match mask {
            Some(mask) => {
                writeln!(main, "    static const float mask[] = {{ {} }};", list(&mask)).expect("a string");
                format!("mask + env * {upper}_N_AGENTS * {upper}_N_ACTIONS")
            }
            None => "NULL".into(),
        };
        writeln!(
            main,
            "    float action[{upper}_N_AGENTS * {upper}_ACTION_WIDTH];\n    for (env = 0; env < {N_ENVS}; ++env) {{\n        \
            {name}_act(obs + env * {upper}_N_AGENTS * {upper}_OBS_WIDTH, {mask}, action);\n        \
            for (i = 0; i < {upper}_N_AGENTS * {upper}_ACTION_WIDTH; ++i) {{ printf(\"%.9g\\n\", action[i]); }} }} }}"
        )
        .expect("a string");
    }
    main.push_str("    return 0;\n}\n");
    let text = run_c(&dir, &main);
    let mut printed = text.lines().map(|line| line.parse::<f64>().expect("a number"));
    for (name, policy) in &policies {
        let (obs, mask) = inputs(policy);
        let expected = policy.act(&obs, mask.as_deref());
        let got: Vec<f64> = printed.by_ref().take(expected.len()).collect();
        assert_near(name, &got, &expected, 1e-6);
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

#[test]
fn javascript_computes_the_same_actions() {
    if !has("node") {
        return;
    }
    for (name, policy) in policies() {
        let (obs, mask) = inputs(&policy);
        let mut script = policy.to_js(name, JsModule::Script).expect("it is valid");
        let numbers = |values: &[f32]| serde_json::to_string(values).expect("numbers serialize");
        write!(
            script,
            "const obs = {}, mask = {}, n = {}, m = {};\nconst actions = [], scores = [];\n\
            for (let env = 0; env < {N_ENVS}; env++) {{\n\
            const own = obs.slice(env * n, (env + 1) * n);\n\
            actions.push(...{name}.act(own, mask && mask.slice(env * m, (env + 1) * m)));\n\
            for (const row of {name}.scores(own)) scores.push(...row);\n}}\n\
            console.log(JSON.stringify([actions, scores]));\n",
            numbers(&obs),
            mask.as_deref().map_or("null".into(), numbers),
            policy.n_agents * policy.obs_width,
            policy.n_agents * policy.n_actions(),
        )
        .expect("a string");
        let printed = answer(Command::new("node").arg("-"), &script).expect("the script ends well");
        let [actions, scores]: [Vec<f64>; 2] = serde_json::from_str(&printed).expect("it prints JSON");
        assert_near(name, &actions, &policy.act(&obs, mask.as_deref()), 1e-5);
        let expected = ExportedPolicy { output: Output::Real, ..policy.clone() }.act(&obs, None);
        assert_near(name, &scores, &expected, 1e-5);
    }
}

/// As training does: the difference has 64 bits.
#[test]
fn observations_far_from_0_are_normalized_in_64_bits() {
    let normalize = Layer::Normalize { mean: vec![FAR], deviation: vec![0.7], clip: 10.0 };
    let policy = ExportedPolicy {
        obs_width: 1,
        n_agents: 1,
        masked: false,
        layers: vec![normalize],
        output: Output::Real,
        about: About::default(),
    };
    for policy in [&policy, &ExportedPolicy::from_safetensors(&policy.to_safetensors()).expect("it was just written")] {
        for x in [5_712_343.0f32, 5_712_345.5, 5_712_348.0] {
            assert_eq!(policy.act(&[x], None), [((f64::from(x) - FAR) / 0.7) as f32]);
        }
    }
}

#[test]
fn files_without_remainders_are_read() {
    let (_, policy) = policies().into_iter().find(|(name, _)| *name == "squashed").expect("it is one of them");
    let bytes = policy.to_safetensors();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).expect("it was just written");
    let all = SafeTensors::deserialize(&bytes).expect("it was just written");
    let write = |keep: &dyn Fn(&str) -> bool, cut: usize| {
        let arrays = all.iter().filter(|(name, _)| keep(name)).map(|(name, view)| {
            let cut = if name.ends_with("_low") { cut } else { 0 };
            let data = &view.data()[4 * cut..];
            (name, TensorView::new(view.dtype(), vec![data.len() / 4], data).expect("floats"))
        });
        safetensors::serialize(arrays, metadata.metadata().clone()).expect("valid")
    };
    let old = ExportedPolicy::from_safetensors(&write(&|name| !name.ends_with("_low"), 0)).expect("it is complete");
    let Layer::Normalize { mean, .. } = &old.layers[0] else { panic!("it is normalized") };
    assert_eq!(mean[1], f64::from(FAR as f32));
    assert_eq!(old.layers[1..], policy.layers[1..]);
    let error = ExportedPolicy::from_safetensors(&write(&|_| true, 1)).expect_err("a remainder is missing").to_string();
    assert_eq!(error, "this is not an exported policy: `0.mean` has 5 numbers, its remainders 4");
}

/// Every format states origin, order, units and bounds; texts of a run cannot end a comment or a script.
#[test]
fn exports_say_where_they_come_from() {
    let (_, mut policy) = policies().into_iter().find(|(name, _)| *name == "squashed").expect("it is one of them");
    let column = |name: &str, unit: Option<&str>, low, high| Column {
        name: name.into(),
        unit: unit.map(str::to_owned),
        low,
        high,
    };
    policy.about = About {
        run: Some("a*/</script>\"\n{{DATA}}".into()),
        step: Some(2048),
        config: Some("e1e5018e".into()),
        obs: vec![column("import_kwh", Some("kWh"), Some(0.5), None); 5],
        actions: vec![column("battery_kw", Some("kW"), Some(-2.0), Some(2.0)); 2],
    };
    let safetensors = policy.to_safetensors();
    assert_eq!(policy.to_safetensors(), safetensors);
    assert_eq!(ExportedPolicy::from_safetensors(&safetensors).expect("it was just written"), policy);
    let (_, metadata) = SafeTensors::read_metadata(&safetensors).expect("it was just written");
    let entries = metadata.metadata().clone().expect("it has metadata");
    assert!(
        entries["brasa_layout"].contains("[inputs, outputs]") && entries.contains_key("brasa_version"),
        "{entries:?}"
    );
    let c = policy.to_c("policy").expect("it is valid");
    let head = c.split("*/").next().expect("a comment");
    for part in ["obs 4: import_kwh in kWh, 0.5 to inf", "action 1: battery_kw in kW, -2 to 2", "step 2048", "e1e5018e"]
    {
        assert!(head.contains(part), "{head} has no {part}");
    }
    assert!(c.contains("#define POLICY_STEP 2048ull\n") && c.contains("#define POLICY_CONFIG \"e1e5018e\"\n"));
    let js = policy.to_js("policy", JsModule::Script).expect("it is valid");
    assert!(js.contains("\"step\":2048") && js.contains("\"unit\":\"kWh\"") && !js.contains("</script>"));
    let onnx = policy.to_onnx().expect("it is valid");
    for part in [
        "brasa.run",
        "brasa.step",
        "2048",
        "brasa.config",
        "e1e5018e",
        "brasa.version",
        "brasa.obs",
        "import_kwh",
        "brasa.actions",
    ] {
        assert!(onnx.windows(part.len()).any(|bytes| bytes == part.as_bytes()), "{part}");
    }
}

#[test]
fn safetensors_are_read_again() {
    for (name, policy) in policies().into_iter().chain(memory_policies()) {
        let bytes = policy.to_safetensors();
        assert_eq!(ExportedPolicy::from_safetensors(&bytes).expect("it was just written"), policy, "{name}");
        let cut = ExportedPolicy::from_safetensors(&bytes[..bytes.len() - 5]).expect_err("it is cut");
        assert!(cut.to_string().starts_with("this is not an exported policy"), "{cut}");
    }
    let other = ExportedPolicy::from_safetensors(b"something else").expect_err("it is no policy");
    assert!(matches!(other, ExportError::File(_)));
}

pub fn groups_of(policy: &mut ExportedPolicy) -> &mut Groups {
    let groups = policy.layers.iter_mut().find_map(|layer| match layer {
        Layer::Groups(groups) => Some(groups),
        _ => None,
    });
    groups.expect("it has groups")
}

#[test]
fn layers_that_do_not_fit_and_bad_names_are_refused() {
    let named = |name: &str| policies().into_iter().find(|(other, _)| *other == name).expect("it is one of them").1;
    let mut policy = named("discrete");
    let fault = |policy: &ExportedPolicy| policy.to_onnx().expect_err("it does not fit").to_string();
    policy.output = Output::Choice { heads: vec![3] };
    assert_eq!(fault(&policy), "layer 3: the choices must have 4 actions together, and each at least one, got [3]");
    for heads in [vec![], vec![2, 2], vec![0, 3]] {
        let shown = format!("{heads:?}");
        policy.output = Output::Both { heads };
        let rule = "the choices must have fewer than 4 actions together, and each at least one";
        assert_eq!(fault(&policy), format!("layer 3: {rule}, got {shown}"));
    }
    policy.output = Output::Choice { heads: vec![3] };
    policy.layers.push(Layer::Scale { factor: vec![1.0; 4], offset: vec![0.0; 3] });
    assert_eq!(fault(&policy), "layer 3: `offset` must have 4 numbers, got 3");
    policy.layers[0] = linear(6, 16, 1, 0.0);
    assert_eq!(fault(&policy), "layer 0: `weight` must have 80 numbers, or 1 times as many, got 96");
    let mut policy = named("pairs");
    groups_of(&mut policy).layers.push(Layer::Graph(Box::new(match &named("pointer").layers[0] {
        Layer::Graph(network) => (**network).clone(),
        _ => panic!("a graph"),
    })));
    assert_eq!(fault(&policy), "layer 1: layer 3 of a group must be a function of its columns alone");
    groups_of(&mut policy).layers[2] = linear(7, 2, 1, 0.0);
    let rule = "layer 1: layer 2 of a group: `weight` must have 16 numbers, or 1 times as many, got 14";
    assert_eq!(fault(&policy), rule);
    groups_of(&mut policy).columns[4] = 5;
    assert_eq!(fault(&policy), "layer 1: `columns` must be below 5, got 5");
    groups_of(&mut policy).columns.pop();
    assert_eq!(fault(&policy), "layer 1: `columns` must have a positive multiple of 3 indices, got 17");
    for (name, change, expected) in [
        ("image", 0, "layer 1: an image of 2 x 5 x 8 does not have 70 numbers"),
        ("image", 1, "layer 1: `window` of 3 with stride 0 and padding 1 does not fit the image"),
        ("image", 2, "layer 1: `window` of 8 with stride 2 and padding 1 does not fit the image"),
        ("image", 3, "layer 1: `weight` must have 4 x 2 x 3 x 3 numbers, got 71"),
        ("image_residual", 4, "layer 1: `padding` must be below 3, got 3"),
        ("image_residual", 5, "layer 2: a residual must have 36 columns, as its input, got 5"),
        ("image_residual", 6, "layer 2: layer 4 of a residual must be a function of its columns alone"),
    ] {
        let mut policy = named(name);
        let nested = policy.layers[2].clone();
        let last = policy.layers.last().expect("it has layers").clone();
        match (&mut policy.layers[1..3], change) {
            ([Layer::Image(ImageLayer::Convolution { input, window, weight, .. }), _], 0..=3) => match change {
                0 => input.width += 1,
                1 => window.stride = 0,
                2 => window.size = 8,
                _ => drop(weight.pop()),
            },
            ([Layer::Image(ImageLayer::MaxPool { window, .. }), _], 4) => window.padding = 3,
            ([_, Layer::Residual(layers)], 5) => layers.push(last),
            ([_, Layer::Residual(layers)], _) => layers.push(nested),
            _ => panic!("{name} has other layers"),
        }
        assert_eq!(fault(&policy), expected);
    }
    let policy = named("clipped");
    assert!(matches!(policy.to_c("2 fast"), Err(ExportError::Name(_))));
    for word in ["for", "typeof", "class", "module", "await", "NaN", "atob", "template"] {
        assert!(matches!(policy.to_c(word), Err(ExportError::Reserved(_))), "{word}");
        assert!(matches!(policy.to_js(word, JsModule::Script), Err(ExportError::Reserved(_))), "{word}");
        assert!(matches!(policy.to_js_types(word, JsModule::Es), Err(ExportError::Reserved(_))), "{word}");
    }
}
