//! Input that is none becomes no plausible action, in every format: continuous actions are NaN, choices -1.
#![allow(clippy::expect_used)]

use crate::common;

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use brasa_export::{ExportedPolicy, JsModule, Layer, NO_ACTION, Output};
use common::programs::{folder, has, python, run_onnx};
use common::{graph_policies, policies};

/// An observation and a mask of one environment, and whether its first row is valid.
struct Case {
    obs: Vec<f32>,
    mask: Option<Vec<f32>>,
    is_valid: bool,
}

fn cases(policy: &ExportedPolicy) -> Vec<Case> {
    let n_obs = policy.n_agents * policy.obs_width;
    let mut obs = common::numbers(n_obs, 3.0);
    if let Layer::Graph(_) = policy.layers[0] {
        obs[..2].copy_from_slice(&[1.0, 2.0]);
    }
    let mask = policy.masked.then(|| vec![1.0; policy.n_agents * policy.n_actions()]);
    let with = |i: usize, value: f32| {
        let mut obs = obs.clone();
        obs[i] = value;
        Case { obs, mask: mask.clone(), is_valid: false }
    };
    let mut cases = vec![Case { obs: obs.clone(), mask: mask.clone(), is_valid: true }];
    cases.extend([0, policy.obs_width / 2, policy.obs_width - 1].map(|i| with(i, f32::NAN)));
    if let Layer::Graph(network) = &policy.layers[0] {
        let graphs = [-1.0, 2.0, 0.5, 1e9, -1e9, f32::INFINITY, f32::NEG_INFINITY];
        cases.extend(graphs.map(|graph| with(0, graph)));
        // Graph 1 has three nodes.
        assert_eq!(network.edges.nodes[1], 3);
        cases.extend([-1.0, 3.0, 1.5, 1e9, f32::INFINITY].map(|node| with(1, node)));
    }
    if let (Some(mask), Output::Choice { heads }) = (mask, &policy.output) {
        let own = 0..heads[0];
        for value in [0.0, f32::NAN, -1.0] {
            let mut mask = mask.clone();
            mask[own.clone()].fill(value);
            cases.push(Case { obs: obs.clone(), mask: Some(mask), is_valid: false });
        }
        let mut one = mask.clone();
        one[heads[0] - 1] = f32::NAN;
        cases.push(Case { obs: obs.clone(), mask: Some(one), is_valid: false });
        cases.push(Case { obs, mask: None, is_valid: false });
    }
    cases
}

/// Policies whose scores are the actions, too.
fn all() -> Vec<(String, ExportedPolicy)> {
    let scores = graph_policies().into_iter().map(|(name, policy)| {
        (format!("{name}_scores"), ExportedPolicy { output: Output::Real, masked: false, ..policy })
    });
    policies().into_iter().map(|(name, policy)| (name.to_owned(), policy)).chain(scores).collect()
}

fn is_same(got: f64, expected: f32) -> bool {
    got.is_nan() && expected.is_nan() || (got - f64::from(expected)).abs() <= 1e-5 * f64::from(expected.abs()).max(1.0)
}

/// Compares the actions of all cases of a policy, one after the other.
fn compare(name: &str, policy: &ExportedPolicy, cases: &[Case], got: &mut impl Iterator<Item = f64>) {
    for (i, case) in cases.iter().enumerate() {
        let expected = policy.act(&case.obs, case.mask.as_deref());
        for expected in &expected {
            let got = got.next().expect("an action");
            assert!(is_same(got, *expected), "{name}, case {i}: {got} instead of {expected}");
        }
        let first = expected[0];
        match &policy.output {
            Output::Real => assert_eq!(first.is_nan(), !case.is_valid, "{name}, case {i}: {first}"),
            _ => assert_eq!(first == NO_ACTION, !case.is_valid, "{name}, case {i}: {first}"),
        }
    }
}

fn list(values: &[f32]) -> String {
    let number = |x: &f32| match x {
        x if x.is_nan() => "NaN".into(),
        x if x.is_infinite() => if *x > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        x => format!("{x:?}"),
    };
    values.iter().map(number).collect::<Vec<String>>().join(",")
}

#[test]
fn c_returns_no_plausible_action() {
    if !has("cc") {
        return;
    }
    let dir = folder("invalid-c");
    // All numbers of a case are one text: the compiler cannot compute with them.
    let mut main = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
    for (name, policy) in &all() {
        std::fs::write(dir.join(format!("{name}.h")), policy.to_c(name).expect("it is valid")).expect("written");
        writeln!(main, "#include \"{name}.h\"").expect("a string");
    }
    main.push_str("static void numbers(const char *text, float *out) {\n    char *end;\n    for (; *text; text = end + (*end == ',')) { *out++ = strtof(text, &end); }\n}\nint main(void) {\n    int i;\n");
    for (name, policy) in &all() {
        let upper = name.to_ascii_uppercase();
        for case in cases(policy) {
            let mask = case.mask.as_deref().map_or("NULL".into(), |_| "mask".to_owned());
            writeln!(
                main,
                "    {{ float obs[{}], mask[{}], action[{upper}_N_AGENTS * {upper}_ACTION_WIDTH];\n    (void)mask; numbers(\"{}\", obs); numbers(\"{}\", mask);\n    \
                {name}_act(obs, {mask}, action);\n    for (i = 0; i < {upper}_N_AGENTS * {upper}_ACTION_WIDTH; ++i) {{ printf(\"%.9g\\n\", action[i]); }} }}",
                case.obs.len(),
                case.mask.as_ref().map_or(1, Vec::len),
                list(&case.obs),
                list(case.mask.as_deref().unwrap_or_default()),
            )
            .expect("a string");
        }
    }
    main.push_str("    return 0;\n}\n");
    let (source, program) = (dir.join("main.c"), dir.join("main"));
    std::fs::write(&source, main).expect("it can be written");
    for flags in [["-std=c99", "-O2", "-pedantic"], ["-std=c11", "-O1", "-fsanitize=undefined,address"]] {
        let built = Command::new("cc")
            .args(flags)
            .args(["-Wall", "-Wextra", "-Werror"])
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .arg("-lm")
            .output();
        let built = built.expect("the compiler starts");
        if !built.status.success() && flags[2].starts_with("-fsanitize") {
            eprintln!("SKIPPED: the compiler has no sanitizers");
            continue;
        }
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let output = Command::new(&program).output().expect("it starts");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("digits");
        let mut printed = text.lines().map(|line| line.parse::<f64>().expect("a number"));
        for (name, policy) in &all() {
            compare(name, policy, &cases(policy), &mut printed);
        }
    }
    // In earlier C the functions of the header have other declarations.
    let (_, policy) = &all()[0];
    std::fs::write(
        dir.join("old.c"),
        format!("{}int main(void) {{ return 0; }}\n", policy.to_c("old").expect("valid")),
    )
    .expect("it can be written");
    let built =
        Command::new("cc").args(["-std=c90", "-fsyntax-only"]).arg(dir.join("old.c")).output().expect("it starts");
    assert!(!built.status.success() && String::from_utf8_lossy(&built.stderr).contains("needs C99"));
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

fn node(test: &str, script: &str, extension: &str) -> Option<String> {
    let dir = folder(&format!("invalid-{test}"));
    let path = dir.join(format!("main.{extension}"));
    std::fs::write(&path, script).expect("it can be written");
    let output = Command::new("node").arg(&path).stderr(Stdio::inherit()).output();
    std::fs::remove_dir_all(&dir).expect("it can be removed");
    match output {
        Err(_) => {
            eprintln!("SKIPPED: there is no node");
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "the script fails");
            Some(String::from_utf8(output.stdout).expect("text"))
        }
    }
}

#[test]
fn javascript_returns_no_plausible_action() {
    let mut script = String::new();
    for (name, policy) in &all() {
        script.push_str(&policy.to_js(name, JsModule::Script).expect("it is valid"));
        for case in cases(policy) {
            let mask =
                case.mask.as_deref().map_or("null".into(), |mask| format!("[{}]", list(mask).replace("-1.0", "0.0")));
            let call = format!("{name}.act([{}], {mask})", list(&case.obs));
            let n = policy.n_agents * policy.action_width();
            match case.mask.is_none() && policy.masked {
                // What other programs answer by -1 is an error here.
                true => writeln!(
                    script,
                    "try {{ {call}; }} catch (error) {{ if (/^`mask` must be given/.test(error.message)) console.log(Array({n}).fill(-1).join('\\n')); }}"
                ),
                false => writeln!(script, "console.log({call}.join('\\n'));"),
            }
            .expect("a string");
        }
    }
    let Some(text) = node("actions", &script, "js") else { return };
    let mut printed = text.lines().map(|line| line.parse::<f64>().expect("a number"));
    for (name, policy) in &all() {
        compare(name, policy, &cases(policy), &mut printed);
    }
}

#[test]
fn javascript_checks_lengths_and_types() {
    let (_, policy) = policies().into_iter().find(|(name, _)| *name == "choices").expect("it is one of them");
    let (_, real) = policies().into_iter().find(|(name, _)| *name == "squashed").expect("it is one of them");
    let script = policy.to_js("policy", JsModule::Script).expect("valid")
        + &real.to_js("real", JsModule::Script).expect("valid");
    let checks = r#"
    const obs = [0, 1, 2, 3, 4], mask = [1, 1, 1, 1, 1, 1, 1];
    const wrong = [
      [RangeError, () => policy.act([[0, 1, 2, 3, 4]], mask)], [RangeError, () => policy.act([0, 1, 2, 3], mask)],
      [RangeError, () => policy.act([...obs, 5], mask)], [RangeError, () => policy.act([...obs, ...obs], mask)],
      [TypeError, () => policy.act([0, 1, [2], 3, 4], mask)], [TypeError, () => policy.act([0, 1, "2", 3, 4], mask)],
      [TypeError, () => policy.act([0, 1, null, 3, 4], mask)], [TypeError, () => policy.act([0, 1, , 3, 4], mask)],
      [TypeError, () => policy.act("01234", mask)], [TypeError, () => policy.act({ length: 5 }, mask)], [TypeError, () => policy.act()],
      [TypeError, () => policy.act(new BigInt64Array(5), mask)], [TypeError, () => policy.act(new DataView(new ArrayBuffer(5)), mask)],
      [TypeError, () => policy.act(obs, mask.map((flag) => flag === 1))], [RangeError, () => policy.act(obs, [1, 1])],
      [RangeError, () => policy.act(obs, [...mask, 1])], [TypeError, () => policy.act(obs, true)], [TypeError, () => policy.act(obs, [mask, 1, 1, 1, 1, 1, 1])], [RangeError, () => policy.act(obs, [mask])],
      [RangeError, () => policy.act(obs, mask.map(() => 0.5))], [TypeError, () => real.act(obs, mask)], [RangeError, () => policy.scores([obs])],
      [RangeError, () => policy.scores([1])], [TypeError, () => policy.act(obs)], [TypeError, () => policy.act(obs, null)],
    ];
    wrong.forEach(([kind, call], i) => {
      let error = null;
      try { call(); } catch (caught) { error = caught; }
      if (!(error instanceof kind) || !/^`(obs|mask)/.test(error.message)) throw new Error(`call ${i}: ${error}`);
    });
    const same = (a, b) => { if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(`${a} is not ${b}`); };
    same(policy.act(Float32Array.from(obs), Uint8Array.from(mask)), policy.act(obs, mask));
    console.log("checked");"#;
    if let Some(text) = node("checks", &(script + checks), "js") {
        assert_eq!(text, "checked\n");
    }
}

/// A script is a CommonJS module too, and the name is exported by an ES module.
#[test]
fn javascript_is_loaded_as_each_kind_of_module() {
    let (_, policy) = policies().into_iter().find(|(name, _)| *name == "discrete").expect("it is one of them");
    let expected = policy.act(&[0.0, 1.0, 2.0, 3.0, 4.0], None)[0];
    let dir = folder("modules");
    let write = |file: &str, text: &str| std::fs::write(dir.join(file), text).expect("it can be written");
    for (file, module) in
        [("policy.js", JsModule::Script), ("policy.cjs", JsModule::Script), ("policy.mjs", JsModule::Es)]
    {
        write(file, &policy.to_js("policy", module).expect("it is valid"));
    }
    write("policy.d.ts", &policy.to_js_types("policy", JsModule::Script).expect("it is valid"));
    write("policy.d.mts", &policy.to_js_types("policy", JsModule::Es).expect("it is valid"));
    let call = "console.log(policy.act([0, 1, 2, 3, 4])[0], policy.about.version);\n";
    write("script.js", &(policy.to_js("policy", JsModule::Script).expect("it is valid") + call));
    write("require.cjs", &format!("const policy = require('./policy.cjs');\n{call}"));
    write("require_js.cjs", &format!("const policy = require('./policy.js');\n{call}"));
    write("named.mjs", &format!("import {{ policy }} from './policy.mjs';\n{call}"));
    write("default.mjs", &format!("import policy from './policy.mjs';\n{call}"));
    for file in ["script.js", "require.cjs", "require_js.cjs", "named.mjs", "default.mjs"] {
        let Ok(output) = Command::new("node").arg(dir.join(file)).stderr(Stdio::inherit()).output() else {
            eprintln!("SKIPPED: there is no node");
            break;
        };
        let text = String::from_utf8(output.stdout).expect("text");
        assert_eq!(text, format!("{expected} {}\n", env!("CARGO_PKG_VERSION")), "{file}");
    }
    // The types, where TypeScript is installed.
    write(
        "use.mts",
        "import policy from './policy.mjs';\nconst action: number = policy.act(new Float32Array(5), null)[0];\nconst low: number | null = policy.about.obs[0].low;\nexport { action, low };\n",
    );
    write(
        "use.cts",
        "import policy = require('./policy.js');\nconst scores: Float32Array = policy.scores([0, 1])[0];\nexport = scores;\n",
    );
    match Command::new("tsc")
        .args(["--noEmit", "--strict", "--module", "node16", "use.mts", "use.cts"])
        .current_dir(&dir)
        .output()
    {
        Err(_) => eprintln!("SKIPPED: there is no tsc"),
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

#[test]
fn onnx_runtime_returns_no_plausible_action() {
    let Some(python) = python() else { return };
    let dir = folder("invalid-onnx");
    for (name, policy) in &all() {
        // Its mask is no optional input.
        let cases: Vec<Case> = cases(policy).into_iter().filter(|case| case.mask.is_some() || !policy.masked).collect();
        let array = |values: Vec<f32>, width: usize| {
            let shape =
                if policy.n_agents == 1 { vec![cases.len(), width] } else { vec![cases.len(), policy.n_agents, width] };
            format!("{{\"shape\": {shape:?}, \"values\": [{}]}}", list(&values))
        };
        let obs = array(cases.iter().flat_map(|case| case.obs.clone()).collect(), policy.obs_width);
        let mask: Vec<f32> = cases.iter().flat_map(|case| case.mask.clone().unwrap_or_default()).collect();
        let given = match policy.masked {
            true => format!("{{\"obs\": {obs}, \"mask\": {}}}", array(mask, policy.n_actions())),
            false => format!("{{\"obs\": {obs}}}"),
        };
        let outputs = run_onnx(&python, &dir, name, policy, &given);
        compare(name, policy, &cases, &mut outputs["action"].values.iter().map(|x| x.unwrap_or(f64::NAN)));
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}
