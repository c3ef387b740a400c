//! `plan`: its memory is what a run allocates, runs that do not fit are refused, and settings are lowered until one fits.
#![allow(clippy::expect_used)]

use crate::common;

use std::path::Path;

use common::{arg, brasa, run, succeed};
use serde_json::Value;

/// Runs a command with `--json` in the directory to which the files of configs are relative.
fn json(args: &[&str]) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = brasa().args(args).current_dir(root).output().expect("the command starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

/// The planned bytes of a config, and those that its first iterations allocate at most.
fn planned_and_measured(config: &str, set: &[&str]) -> (f64, f64) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(config);
    let mut args = vec![arg(&path), "--json", "--device", "cpu", "--set", "train.executor=serial"];
    // The content of a replay buffer joins checkpoints as it comes.
    let text = std::fs::read_to_string(&path).expect("the config exists");
    if ["[sac", "[dqn", "[td3"].iter().any(|section| text.contains(section)) {
        args.extend(["--set", "off_policy.save_replay=false", "--set", "off_policy.log_interval=100"]);
    }
    args.extend(set.iter().flat_map(|item| ["--set", item]));
    let plan = json(&[&["plan"], &args[..]].concat());
    let check = json(&[&["check"], &args[..]].concat());
    (plan["bytes"].as_f64().expect("a number"), check["memory_bytes"].as_f64().expect("a number"))
}

fn assert_close(config: &str, set: &[&str]) {
    let (planned, measured) = planned_and_measured(config, set);
    println!("{config} {set:?}: planned {planned:.0}, measured {measured:.0} bytes, ratio {:.3}", planned / measured);
    assert!((planned / measured - 1.0).abs() < 0.1, "{config}: planned {planned} bytes, measured {measured}");
}

/// An experiment, and the profile of a machine with `usable_gib`.
fn on_a_small_machine(dir: &Path, usable_gib: f64) -> (String, String) {
    on_a_small("flex", dir, usable_gib)
}

/// The same of a machine with the `backend`.
fn on_a_small(backend: &str, dir: &Path, usable_gib: f64) -> (String, String) {
    let (config, profile) = (dir.join("sac.toml"), dir.join("small.toml"));
    let text = "[scenario.pendulum]\n[train]\ntotal_env_steps = 100\n[actor]\nhidden = [16]\n[critics]\nhidden = [16]\n\
        [sac]\n[off_policy]\nlearning_starts = 10\n[off_policy.replay]\ncapacity = 100_000\n";
    std::fs::write(&config, text).expect("the directory can be written");
    let text = format!(
        "name = \"small\"\ntitle = \"a small machine\"\nbackend = \"{backend}\"\nmemory_gib = 1.0\nusable_gib = {usable_gib}\n"
    );
    std::fs::write(&profile, text).expect("the directory can be written");
    (arg(&config).to_owned(), arg(&profile).to_owned())
}

#[test]
fn runs_that_do_not_fit_are_refused_and_made_to_fit() {
    let dir = tempfile::tempdir().expect("there is room");
    let (config, profile) = on_a_small_machine(dir.path(), 0.0045);
    let out = dir.path().join("run");
    let train = |config: &str| run(&["train", config, "--device", &profile, "--out", arg(&out), "--quiet"]);
    let refused = train(&config);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("lower `off_policy.replay.capacity`") && error.contains("small has 4.6 MiB"), "{error}");
    assert!(!out.exists(), "nothing was written");
    let planned = run(&["plan", &config, "--device", &profile]);
    let text = String::from_utf8_lossy(&planned.stdout).into_owned();
    assert_eq!(planned.status.code(), Some(1), "{text}");
    assert!(text.contains("does not fit") && text.contains("replay buffer"), "{text}");

    let fitted = dir.path().join("fitted.toml");
    let text = succeed(&["plan", &config, "--device", &profile, "--fit", arg(&fitted)]);
    assert!(text.contains("off_policy.replay.capacity: 100000 to "), "{text}");
    let written = std::fs::read_to_string(&fitted).expect("it was written");
    assert!(written.starts_with("# Fits small.\n# off_policy.replay.precision: f32 to f16\n"), "{written}");
    let trained = train(arg(&fitted));
    assert!(trained.status.success(), "{}", String::from_utf8_lossy(&trained.stderr));
}

#[test]
fn a_replay_buffer_that_a_gpu_cannot_hold_moves_to_the_host() {
    let dir = tempfile::tempdir().expect("there is room");
    let (config, profile) = on_a_small("cuda", dir.path(), 0.001);
    let fitted = dir.path().join("fitted.toml");
    let text = succeed(&["plan", &config, "--device", &profile, "--fit", arg(&fitted)]);
    assert!(text.contains("off_policy.replay.on_host: false to true"), "{text}");
    assert!(text.contains("on the host") && text.contains("fits"), "{text}");
    let written = std::fs::read_to_string(&fitted).expect("it was written");
    assert!(written.contains("on_host = true") && written.contains("capacity = 100000"), "{written}");
    let plan = json(&["plan", arg(&fitted), "--json"]);
    let stored = plan["footprint"]["stored"].as_f64().expect("a number");
    assert!(plan["host_bytes"].as_f64().is_some_and(|bytes| bytes >= stored && stored > 2e6), "{plan}");
    let parts = plan["parts"].as_array().expect("a list");
    assert!(parts.iter().all(|part| part["name"] != "replay buffer"), "{plan}");
}

/// A step of a GPU costs launches, whatever the number of environments: more of them make the run faster until memory ends.
#[test]
fn a_run_is_filled_until_it_gains_no_more() {
    let dir = tempfile::tempdir().expect("there is room");
    let filled = dir.path().join("filled.toml");
    let args = ["plan", "configs/cart-pole-ppo.toml", "--device", "t4", "--json"];
    let before = json(&args);
    let after = json(&[&args[..], &["--fill", arg(&filled)]].concat());
    let secs = |plan: &Value| plan["secs"].as_f64().expect("a number");
    assert!(secs(&after) * 1.5 < secs(&before), "{after}");
    let changes: Vec<&str> = after["changes"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(changes.iter().any(|change| change.starts_with("train.n_envs: 8 to ")), "{changes:?}");
    let text = std::fs::read_to_string(&filled).expect("it was written");
    assert!(text.starts_with("# Fills t4.\n# train.n_envs: 8 to "), "{text}");
    let again = json(&["plan", arg(&filled), "--device", "t4", "--json"]);
    assert_eq!(again["footprint"]["batch_rows"], after["footprint"]["batch_rows"]);
}

/// A recording keeps the memory of its gradient step, and learners with a delayed actor record two.
#[test]
fn recordings_are_planned_on_a_gpu() {
    let recordings = |config: &str, device: &str, set: &[&str]| {
        let set = set.iter().flat_map(|item| ["--set", item]);
        let plan = json(&["plan", config, "--device", device, "--json"].into_iter().chain(set).collect::<Vec<_>>());
        let work = plan["footprint"]["learning"]["bytes"].as_f64().expect("a number");
        let parts = plan["parts"].as_array().expect("a list");
        let bytes = |name: &str| {
            let part = parts.iter().find(|part| part["name"] == name);
            part.map(|part| part["bytes"].as_f64().expect("a number"))
        };
        // A learner with recordings has each network twice.
        bytes("recordings")
            .map_or(0.0, |recordings| (recordings - bytes("joined weights").expect("a GPU joins them")) / work)
    };
    // Memory for products depends on the caches of the processor, and is not equal in every measurement.
    let close = |ratio: f64, expected: f64| assert!((ratio / expected - 1.0).abs() < 0.1, "{ratio} of {expected}");
    let (sac, td3) = ("configs/pendulum-sac.toml", "configs/pendulum-td3.toml");
    let capture = "train.capture=true";
    assert_eq!(recordings(sac, "t4", &[]), 0.0);
    let launches = |set: &str| {
        json(&["plan", sac, "--device", "t4", "--json", "--set", set])["footprint"]["learning"]["launches"].as_f64()
    };
    assert!(launches("train.capture=false") > Some(10.0) && launches(capture) == Some(1.0));
    assert_eq!(recordings(sac, "cpu", &[capture]), 0.0);
    close(recordings(sac, "t4", &[capture]), 1.0);
    close(recordings(sac, "t4", &[capture, "sac.target_update_interval=4"]), 2.0);
    close(recordings(td3, "t4", &[capture]), 2.0);
}

#[test]
fn nothing_fits_a_machine_without_memory() {
    let dir = tempfile::tempdir().expect("there is room");
    let (config, profile) = on_a_small_machine(dir.path(), 1e-5);
    let fitted = dir.path().join("fitted.toml");
    let output = run(&["plan", &config, "--device", &profile, "--fit", arg(&fitted)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!fitted.exists(), "no experiment fits");
}

#[test]
fn a_plan_needs_no_device_and_bounds_its_time() {
    let dir = tempfile::tempdir().expect("there is room");
    let (config, _) = on_a_small_machine(dir.path(), 1.0);
    let plan = json(&["plan", &config, "--device", "t4", "--json"]);
    assert_eq!(plan["profile"], "t4");
    assert_eq!(plan["fits"], true);
    let phases = plan["phases"].as_array().expect("a list");
    assert_eq!(
        phases.iter().map(|phase| phase["name"].as_str().expect("text")).collect::<Vec<_>>(),
        ["environments", "acting", "updates"]
    );
    // An update of SAC is tens of kernels at least.
    let updates = &phases[2];
    assert_eq!((updates["bound"].as_str(), updates["times"].as_f64()), (Some("launches"), Some(90.0)));
    assert!(updates["secs"].as_f64().is_some_and(|secs| secs > 4e-5), "{updates}");
}

/// Launches that plans assume, compared with those that `scripts/count_launches.py --table` recorded of CUDA: they are never more, so the times
/// are at least right in this, and a share of them, as operations of Burn are not counted.
#[test]
fn planned_launches_are_at_most_those_that_were_recorded() {
    let cases: serde_json::Map<String, Value> =
        serde_json::from_str(include_str!("../data/cuda_launches.json")).expect("it was recorded");
    assert_eq!(cases.len(), 7);
    for (name, case) in cases {
        let path = format!("configs/{}.toml", case["config"].as_str().expect("a name"));
        let mut args = vec!["plan", &path, "--device", "rtx-4060", "--json"];
        let settings = case["settings"].as_array().expect("a list").iter();
        settings.for_each(|setting| args.extend(["--set", setting.as_str().expect("a setting")]));
        let plan = json(&args);
        let launches = |work: &str| plan["footprint"][work]["launches"].as_f64().expect("a number");
        let on_device = !plan["phases"][0]["bound"].is_null();
        assert_eq!(on_device, name.ends_with("on the device"), "{name}");
        let acting = launches("acting") + if on_device { launches("stepping") } else { 0.0 };
        for (what, planned) in [("step", acting), ("update", launches("learning"))] {
            let recorded = case[what].as_f64().expect("a number");
            println!("{name}: {planned} of {recorded} launches of a {what}");
            let share = planned / recorded;
            assert!((LEAST_SHARE..=1.0).contains(&share), "{name}: {planned} of {recorded} launches of a {what}");
        }
    }
}

/// Conversions are tensors on the CPU, but not launches of a plan. Layers of more than 512 units have a product each in every format; smaller networks
/// are one launch in 32 bits alone.
#[test]
fn products_of_16_bits_take_no_longer_in_a_plan() {
    for (config, networks) in [
        ("cart-pole-ppo", ["network.actor_hidden", "network.critic_hidden"]),
        ("pendulum-sac", ["actor.hidden", "critics.hidden"]),
    ] {
        let wide = networks.map(|field| format!("{field}=[520]"));
        let [full, half] = ["f32", "f16"].map(|precision| {
            let (path, setting) = (format!("configs/{config}.toml"), format!("train.precision={precision:?}"));
            let settings = ["--set", &setting, "--set", &wide[0], "--set", &wide[1]];
            let plan = json(&[&["plan", &path, "--device", "t4", "--json"], &settings[..]].concat());
            let phases = plan["phases"].as_array().expect("a list").iter().skip(1);
            let secs = phases
                .map(|phase| phase["secs"].as_f64().expect("a number") * phase["times"].as_f64().expect("a number"));
            secs.sum::<f64>()
        });
        assert!(half <= full, "{config}: {half} s instead of {full} s");
    }
}

/// Of the recorded launches.
const LEAST_SHARE: f64 = 0.15;

#[test]
fn planned_memory_is_what_a_run_allocates() {
    for config in ["acrobot-ppo.toml", "cart-pole-ppo.toml", "cart-pole-dqn.toml", "pendulum-sac.toml"] {
        assert_close(config, &[]);
    }
    assert_close("cart-pole-ppo.toml", &["train.pipeline=true"]);
    assert_close("citylearn-ppo.toml", &["train.pipeline=true"]);
    assert_close("pendulum-sac.toml", &["train.pipeline=true"]);
}

/// Every config; some of their iterations take minutes.
#[test]
fn planned_memory_of_every_config_is_what_a_run_allocates() {
    if std::env::var_os("BRASA_SLOW").is_none() {
        return;
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let in_folder = |folder: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(folder).expect("it exists");
        entries.map(|entry| entry.expect("it is readable").path()).collect()
    };
    let mut configs = in_folder(&dir);
    configs.extend(["rtx-4060", "rtx-5090", "t4"].iter().flat_map(|folder| in_folder(&dir.join(folder))));
    configs.sort();
    for config in configs.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let name = config.strip_prefix(&dir).expect("it lies there").to_str().expect("plain names");
        if name.starts_with("gymnasium-") && std::env::var_os("BRASA_PYTHON").is_none() {
            eprintln!("SKIPPED: {name}; set BRASA_PYTHON to a Python with gymnasium, mujoco and box2d");
            continue;
        }
        assert_close(name, &[]);
    }
}
