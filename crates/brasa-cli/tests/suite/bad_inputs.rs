//! Errors about wrong settings name the key, the rule and the value, and occur before any file is written.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use brasa::device::Machine;
use common::{arg, run, small_experiment, small_off_policy_experiment, succeed};

/// The error message for a wrong setting. The command must write no files.
fn refusal(dir: &Path, config: &Path, set: &str) -> String {
    let out = dir.join("refused");
    let output = run(&["train", arg(config), "--out", arg(&out), "--quiet", "--set", set]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{set}: {message}");
    assert!(!out.exists(), "{set}: something was written");
    assert!(!message.contains("panicked"), "{set}: {message}");
    message
}

fn config(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).expect("the directory can be written");
    path
}

#[test]
fn numbers_that_nothing_can_hold_or_do_are_refused_by_key_rule_and_value() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ppo = small_experiment(dir.path());
    let sac = small_off_policy_experiment(dir.path());
    let dqn =
        config(dir.path(), "dqn.toml", "[scenario.cart-pole]\n[train]\nn_envs = 4\n[q_network]\nhidden = [8]\n[dqn]\n");
    let gat = config(
        dir.path(),
        "gat.toml",
        "[scenario.evacuation]\nbuildings = { reference = \"office\" }\n[graph_network]\n",
    );
    // The rows fit into the memory of any machine, and what the networks keep of them for gradients does not.
    let rows = Machine::found().cpu.memory_gib * f64::from(1 << 30) / 64.0;
    let large_batch = format!("off_policy.batch_size={rows:.0}");
    for (config, set, named) in [
        (&ppo, "train.n_envs=0", ["`train.n_envs`", "at least 1", "0"]),
        (&ppo, "train.n_envs=1000000000000", ["`n_envs`", "must fit into the memory", "1000000000000"]),
        (&ppo, "train.total_env_steps=0", ["`train.total_env_steps`", "at least 1", "0"]),
        (&ppo, "train.checkpoint_secs=1e300", ["`train.checkpoint_secs`", "at most 3e10", "1"]),
        (&ppo, "train.checkpoint_secs=nan", ["`train.checkpoint_secs`", "finite", "NaN"]),
        (&ppo, "train.reward_scale=1e308", ["`train.reward_scale`", "at most 1000000", "1"]),
        (&ppo, "train.reward_scale=-1", ["`train.reward_scale`", "above 0", "-1"]),
        (&ppo, "train.keep_checkpoints=0", ["`train.keep_checkpoints`", "at least 1", "0"]),
        (&ppo, "train.keep_every=0", ["`train.keep_every`", "at least 1", "0"]),
        (&ppo, "train.eval_interval=0", ["`train.eval_interval`", "at least 1", "0"]),
        (&ppo, "train.device=\"flex:7\"", ["`device`", "must be one of", "flex:7"]),
        (&ppo, "train.executor={ threads = 9 }", ["`train.executor.threads`", "between 1 and `train.n_envs`", "9"]),
        (&ppo, "train.executor=\"threads\"", ["executor", "threads", "expected"]),
        (&ppo, "train.executor=\"quick\"", ["executor", "quick", "`auto`, `serial`, `threads`"]),
        (&ppo, "train.init_from=\"nowhere\"", ["nowhere", "is not a run directory", "config.toml"]),
        (&ppo, "ppo.n_steps=1000000000000", ["`n_steps`", "must fit into the memory", "1000000000000"]),
        (&ppo, "ppo.n_epochs=1000000000000", ["`n_epochs`", "at most 1000000", "1000000000000"]),
        (&sac, "critics.n_critics=100000", ["`n_critics`", "at most 1000", "100000"]),
        // Without effect on discrete actions, or without state-dependent exploration.
        (&ppo, "network.std=state-dependent", ["`std`", "no effect on discrete actions", "state-dependent"]),
        (&ppo, "network.log_std_init=-1", ["`log_std_init`", "no effect on discrete actions", "-1"]),
        (&ppo, "network.sde_sample_freq=4", ["`sde_sample_freq`", "no effect on discrete actions", "4"]),
        (
            &sac,
            "actor={ hidden = [16], std = \"dependent\", sde_sample_freq = 8 }",
            ["`sde_sample_freq`", "state-dependent", "8"],
        ),
        (&ppo, "ppo.n_steps=0", ["`n_steps`", "at least 1", "0"]),
        (&ppo, "ppo.batch_size=0", ["`batch_size`", "at least", "0"]),
        (&ppo, "ppo.gamma=1.5", ["`gamma`", "[0, 1]", "1.5"]),
        (&ppo, "ppo.clip_range=-1", ["`clip_range`", "at least 0", "-1"]),
        (&ppo, "ppo.learning_rate=\"fast\"", ["learning_rate", "linear = { from = A, to = B }", "fast"]),
        (
            &ppo,
            "ppo.learning_rate={ linear = { from = 1, to = 0 }, warmup = 500 }",
            ["learning_rate", "exponential", "warmup = 500"],
        ),
        (
            &ppo,
            "ppo.learning_rate={ linear = { from = 1, to = 0 }, exponential = { from = 1, to = 1 } }",
            ["learning_rate", "linear", "exponential"],
        ),
        (&ppo, "ppo.bogus=1", ["bogus", "[ppo] has no key", "list ppo"]),
        (&ppo, "bogus.x=1", ["bogus", "unknown section", "[ppo]"]),
        (&ppo, "network.actor_hidden=[1000000000]", ["`actor_hidden`", "at most 1048576", "1000000000"]),
        (&ppo, "network.actor_hidden=[0]", ["`actor_hidden`", "at least 1", "0"]),
        (&sac, "off_policy.replay.capacity=900000000", ["`capacity`", "must", "900000000"]),
        (&sac, "off_policy.replay.capacity=1000000000000", ["`capacity`", "must", "1000000000000"]),
        (&sac, "off_policy.replay.n_step=1000000000", ["`n_step`", "at most", "1000000000"]),
        (&sac, "off_policy.replay.prioritized.beta=7", ["`beta`", "[0, 1]", "7"]),
        (&sac, "off_policy.batch_size=1000000000000", ["`batch_size`", "must fit into the memory", "1000000000000"]),
        (
            &sac,
            "off_policy.learning_starts=100000000",
            ["`learning_starts`", "must be below `total_env_steps`", "100000000"],
        ),
        (&sac, &large_batch, ["the run needs ", " of memory, cpu has ", "lower `off_policy.batch_size`"]),
        (&sac, "off_policy.updates_per_step=1e300", ["`updates_per_step`", "at most 1000000", "1"]),
        (&sac, "critics.hidden=[1000000000, 1000000000]", ["`hidden`", "at most 1048576", "1000000000"]),
        (&sac, "sac.ent_coef={ auto = 1.0, bogus = 2 }", ["ent_coef", "{ auto = START }", "sac"]),
        (&sac, "sac.ent_coef={ automatic = 1.0 }", ["ent_coef", "{ auto = START }", "sac"]),
        (&sac, "sac.tau=0", ["`tau`", "(0, 1]", "0"]),
        (&dqn, "dqn.greedy_ramp={ from = 0.1, to = 0.9, steps = 10 }", ["dqn", "greedy_ramp", ""]),
        (
            &gat,
            "graph_network.layers=[{ heads = 1000000000, outputs = 16 }]",
            ["`layers`", "at most 65536", "1000000000"],
        ),
    ] {
        let message = refusal(dir.path(), config, set);
        for part in named {
            assert!(message.contains(part), "{set}: `{part}` is missing in: {message}");
        }
    }
    // The rule of a scenario, whose own error knows its field alone.
    let district = "[scenario.citylearn]\nphysics = \"citylearn-2.5\"\n[ppo]\n";
    let district = config(dir.path(), "district.toml", district);
    let message = refusal(dir.path(), &district, "scenario.citylearn.optimum=true");
    assert!(message.contains("[scenario.citylearn] `physics` must be `clean` for `optimum`"), "{message}");
    // A key with too many parts.
    let deep = format!("{}=1", vec!["a"; 51_500].join("."));
    assert!(refusal(dir.path(), &ppo, &deep).contains("must have at most 16 parts, got 51500"));
    // An algorithm that does not support the scenario.
    let evacuation = "[scenario.evacuation]\nbuildings = { reference = \"office\" }\n[dqn]\n";
    let message = refusal(dir.path(), &config(dir.path(), "dqn-office.toml", evacuation), "train.seed=1");
    assert!(!message.is_empty());
}

/// Every setting of four experiments with a value of another type.
#[test]
fn every_setting_names_itself_where_its_type_is_wrong() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let uara = "[scenario.uara]\nusers = 4\nepisode_steps = 40\n[train]\ntotal_env_steps = 40\nn_envs = 1\n\
        [team_q_network]\nhidden = [8]\n[dqn]\n[off_policy]\nlearning_starts = 100\n[off_policy.replay]\ncapacity = 400\n";
    let iquitos = "[scenario.iquitos]\n[train]\ntotal_env_steps = 1\nn_envs = 1\n[ppo]\nn_steps = 2\nbatch_size = 2\nn_epochs = 1\n";
    let office = "[scenario.evacuation]\nbuildings = { reference = \"office\" }\n[train]\ntotal_env_steps = 1\nn_envs = 1\n\
        [ppo]\nn_steps = 2\nbatch_size = 2\nn_epochs = 1\n";
    let configs = [
        small_experiment(dir.path()),
        small_off_policy_experiment(dir.path()),
        config(dir.path(), "uara.toml", uara),
        config(dir.path(), "office.toml", office),
        config(dir.path(), "iquitos.toml", iquitos),
    ];
    let (mut checked, mut of_number) = (0, 0);
    for (i, config) in configs.iter().enumerate() {
        // Each experiment is trained briefly, because the `config.toml` of its run lists every setting.
        let out = dir.path().join(format!("run-{i}"));
        let steps = ["--steps", "128", "--quiet"];
        succeed(&[&["train", arg(config), "--out", arg(&out)], &steps[..]].concat());
        let resolved: toml::Table =
            toml::from_str(&fs::read_to_string(out.join("config.toml")).expect("the run left it")).expect("it is TOML");
        let mut settings = Vec::new();
        collect(&resolved, "", &mut settings);
        for (key, value) in settings {
            let wrong = if value.is_str() { "12345" } else { "\"nonsense\"" };
            let message = refusal(dir.path(), config, &format!("{key}={wrong}"));
            let names_itself = key.split('.').skip(1).any(|part| message.contains(part));
            assert!(names_itself, "{key}={wrong}: {message}");
            // The value, or the text in its place.
            let shows =
                message.contains(wrong.trim_matches('"')) || message.contains("expected") || message.contains("one of");
            assert!(shows, "{key}={wrong}: {message}");
            checked += 1;
            of_number += usize::from(!value.is_str());
        }
    }
    println!(
        "{checked} settings with a value of another type, {of_number} of them numbers, lists or switches: each was refused by name"
    );
    assert!(checked >= 200, "{checked}");
}

fn collect(table: &toml::Table, prefix: &str, settings: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => collect(inner, &key, settings),
            value => settings.push((key, value.clone())),
        }
    }
}
