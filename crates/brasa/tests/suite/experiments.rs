//! The shipped experiments: every config loads, presets equal their names, and errors name their cause.
#![allow(clippy::expect_used)]

use std::any::Any;
use std::path::{Path, PathBuf};

use brasa::energy::station::{Station, StationConfig};
use brasa::env::Scenario;
use brasa::experiment::Registry;
use brasa::uara::{BsAgent, BsAgentConfig, Candidates, Parity, Uara, UaraConfig};

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs")
}

/// The configs of a folder and the folders within.
fn config_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("configs are there");
    let paths = entries.map(|entry| entry.expect("the directory can be read").path());
    let files = paths.flat_map(|path| if path.is_dir() { config_files(&path) } else { vec![path] });
    // Their schema is among them.
    files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect()
}

/// Whether the interpreter of Gymnasium environments has the packages of the configs.
fn has_packages(packages: &str) -> bool {
    let python = std::env::var_os("BRASA_PYTHON").unwrap_or_else(|| "python3".into());
    let output = std::process::Command::new(python).args(["-c", &format!("import {packages}")]).output();
    output.is_ok_and(|output| output.status.success())
}

/// The values of published recipes for GPUs: parsed keys, with all defaults.
#[test]
fn recipes_for_gpus_have_the_published_values() {
    let registry = brasa::registry();
    for (recipe, values) in [
        (
            "published/rtx-4060-laptop-iquitos-sac",
            &[
                ("train.precision", "\"f16\""),
                ("train.n_envs", "1"),
                ("train.total_env_steps", "26280"),
                ("train.reward_smooth_lambda", "0.2"),
                ("sac.tau", "0.005"),
                ("sac.learning_rate", "0.0003"),
                ("sac.critic_learning_rate", "0.0005"),
                ("sac.ent_coef.auto", "0.05"),
                ("sac.max_grad_norm", "1.0"),
                ("off_policy.batch_size", "256"),
                ("off_policy.log_interval", "50"),
                ("off_policy.train_freq", "2"),
                ("off_policy.updates_per_step", "1024.0"),
                ("off_policy.learning_starts", "500"),
                ("off_policy.replay.capacity", "1000000"),
            ][..],
        ),
        (
            "published/rtx-4060-laptop-iquitos-ppo",
            &[
                ("train.total_env_steps", "26280"),
                ("train.reward_smooth_lambda", "0.15"),
                ("ppo.n_steps", "8192"),
                ("ppo.batch_size", "512"),
                ("ppo.n_epochs", "40"),
                ("ppo.gae_lambda", "0.95"),
                ("ppo.clip_range_vf", "0.2"),
                ("ppo.ent_coef", "0.001"),
                ("ppo.adaptive_kl", "0.003"),
                ("ppo.log_interval", "100"),
                ("ppo.learning_rate.linear.from", "0.0003"),
                ("network.actor_hidden", "[256, 256]"),
            ],
        ),
        (
            "published/rtx-4060-laptop-iquitos-a2c",
            &[
                ("train.total_env_steps", "43800"),
                ("train.reward_scale", "1.2"),
                ("train.reward_smooth_lambda", "0.1"),
                ("a2c.n_steps", "128"),
                ("a2c.batch_size", "2048"),
                ("a2c.gae_lambda", "0.9"),
                ("a2c.ent_coef", "0.02"),
                ("a2c.max_grad_norm", "1.0"),
                ("a2c.log_interval", "100"),
                ("a2c.learning_rate.exponential.from", "0.001"),
            ],
        ),
        (
            "published/rtx-4060-uara",
            &[
                ("train.total_env_steps", "50000"),
                ("dqn.gamma", "0.95"),
                ("dqn.learning_rate", "0.001"),
                ("dqn.target_update_interval", "100"),
                ("dqn.greedy_ramp.max", "0.95"),
                ("team_q_network.init", "\"glorot\""),
                ("off_policy.batch_size", "32"),
                ("off_policy.replay.capacity", "10000"),
                ("scenario.uara-bs-agent.users", "1000"),
                ("scenario.uara-bs-agent.small_cells", "35"),
            ],
        ),
        (
            "published/rtx-5090-evacuation-office",
            &[
                ("train.total_env_steps", "2000000"),
                ("train.eval_interval", "10000"),
                ("ppo.n_steps", "200"),
                ("ppo.batch_size", "64"),
                ("ppo.n_epochs", "8"),
            ],
        ),
        (
            "published/rtx-5090-evacuation-daycare",
            &[("train.total_env_steps", "3750000"), ("ppo.n_steps", "250"), ("ppo.ent_coef", "0.02")],
        ),
        (
            "published/rtx-5090-evacuation-warehouse",
            &[("train.total_env_steps", "3000000"), ("ppo.n_steps", "200"), ("ppo.learning_rate", "0.0001")],
        ),
        (
            "published/t4-cart-pole-ppo",
            &[
                ("train.n_envs", "8"),
                ("ppo.n_steps", "512"),
                ("ppo.batch_size", "256"),
                ("ppo.n_epochs", "10"),
                ("network.critic_hidden", "[256, 256]"),
            ],
        ),
        (
            "published/t4-cart-pole-dqn",
            &[
                ("train.n_envs", "8"),
                ("q_network.hidden", "[256, 256, 256]"),
                ("dqn.learning_rate", "0.0001"),
                ("off_policy.batch_size", "128"),
                // One update per four steps of eight environments.
                ("off_policy.updates_per_step", "0.03125"),
                ("off_policy.replay.capacity", "50000"),
            ],
        ),
    ] {
        let path = configs().join(recipe).with_extension("toml");
        let cards = ["rtx-4060-laptop", "rtx-4060", "rtx-5090", "t4"];
        let card =
            cards.into_iter().find(|card| recipe.starts_with(&format!("published/{card}"))).expect("a card's name");
        let device = [format!("train.device={card}")];
        let table: toml::Table =
            registry.load(&path, &device).expect("it is valid").to_toml().parse().expect("it is TOML");
        for (key, expected) in values {
            let whole = toml::Value::Table(table.clone());
            let value = key.split('.').try_fold(&whole, |value, name| value.get(name)).map(ToString::to_string);
            assert_eq!(value.as_deref(), Some(*expected), "{recipe}: {key}");
        }
    }
}

/// On a processor the recipes of the T4 are smaller.
#[test]
fn recipes_adapt_to_the_processor() {
    let registry = brasa::registry();
    let path = configs().join("published/t4-cart-pole-dqn.toml");
    let load = |set: &[String]| registry.load(&path, set).expect("it is valid").to_toml();
    let table: toml::Table = load(&["train.device=cpu".to_owned()]).parse().expect("it is TOML");
    assert_eq!(
        (table["train"]["n_envs"].as_integer(), table["off_policy"]["batch_size"].as_integer()),
        (Some(1), Some(32))
    );
    let table: toml::Table =
        load(&["train.device=cpu".to_owned(), "train.n_envs=3".to_owned()]).parse().expect("it is TOML");
    assert_eq!(table["train"]["n_envs"].as_integer(), Some(3), "explicit settings win");
}

/// Records name a recipe that exists, and only records do.
#[test]
fn records_name_a_good_recipe() {
    let (registry, root) = (brasa::registry(), configs().join(".."));
    for path in config_files(&configs()) {
        let text = std::fs::read_to_string(&path).expect("the config can be read");
        let is_record = path.components().any(|part| part.as_os_str() == "published");
        assert_eq!(text.contains("good_recipe"), is_record, "{}", path.display());
        if is_record {
            let train = registry.load(&path, &[]).expect("it is valid").train;
            let good = root.join(train.good_recipe.expect("it is there"));
            let train = registry.load(&good, &[]).unwrap_or_else(|error| panic!("{}: {error}", path.display())).train;
            assert_eq!(train.good_recipe, None, "{}", good.display());
        }
    }
}

#[test]
fn every_shipped_config_loads_and_reads_back_as_it_is_written_out() {
    let registry = brasa::registry();
    let mut count = 0;
    let (with_gymnasium, with_minatar) = (has_packages("gymnasium, mujoco, Box2D"), has_packages("minatar"));
    for path in config_files(&configs()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_runnable = with_gymnasium && (with_minatar || !name.contains("minatar"));
        if name.starts_with("gymnasium-") && !is_runnable {
            eprintln!("SKIPPED: {name}; set BRASA_PYTHON to a Python with gymnasium, mujoco, box2d and minatar");
            continue;
        }
        // Paths of data are relative to the root of the repository.
        let root = configs().parent().expect("configs are in the repository").display().to_string();
        let shipped = std::fs::read_to_string(&path).expect("the config can be read");
        let shipped = shipped.replace("\"examples/", &format!("\"{root}/examples/"));
        let experiment =
            registry.parse(&shipped, &path.display().to_string(), &[]).unwrap_or_else(|error| panic!("{error}"));
        // The config of a run directory must parse as the same experiment.
        let text = experiment.to_toml();
        let again =
            registry.parse(&text, "resolved", &[]).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(again.to_toml(), text, "{}", path.display());
        count += 1;
    }
    assert!(count >= 30, "{count} configs");
}

#[test]
fn configs_of_networks_are_the_presets() {
    let covered = |config| UaraConfig { candidates: Candidates::Covered, ..config };
    let published = Parity { bootstrap_success: true, unguarded_distance: true };
    let registry = brasa::registry();
    for (name, expected) in [
        ("uara-physical", UaraConfig::physical()),
        ("uara-cly2020", covered(UaraConfig::cly2020())),
        ("uara-cly2020-published", UaraConfig { parity: published, ..UaraConfig::cly2020() }),
        ("uara-zhao2019", covered(UaraConfig::zhao2019())),
    ] {
        let scenario = scenario(&registry, name);
        let any: &dyn Any = &*scenario;
        assert_eq!(any.downcast_ref::<Uara>().expect("it is a network").config(), &expected, "{name}");
    }
    for name in ["uara-bs-agent-2025", "uara-bs-agent-2025-optimized"] {
        let scenario = scenario(&registry, name);
        let any: &dyn Any = &*scenario;
        assert_eq!(
            any.downcast_ref::<BsAgent>().expect("stations choose").config(),
            &BsAgentConfig::default(),
            "{name}"
        );
    }
}

#[test]
fn configs_of_stations_are_the_presets() {
    let registry = brasa::registry();
    // Apart from what makes learning easier.
    let plain = ["socket_actions='linear'", "reward.kind='profit'", "reward.shaped=false"];
    let plain = plain.map(|set| format!("scenario.station.{set}"));
    for (name, expected) in
        [("station-ppo", StationConfig::default()), ("station-chargax-ppo", StationConfig::chargax())]
    {
        let path = configs().join(name).with_extension("toml");
        let scenario = registry.load(&path, &plain).expect("it is valid").scenario;
        let any: &dyn Any = &*scenario;
        assert_eq!(any.downcast_ref::<Station>().expect("it is a station").config(), &expected, "{name}");
    }
}

fn scenario(registry: &Registry, name: &str) -> std::sync::Arc<dyn Scenario> {
    let path = configs().join(name).with_extension("toml");
    registry.load(&path, &[]).expect("it is valid").scenario
}

/// The experiment with all defaults.
fn resolved(text: &str, set: &[String]) -> toml::Table {
    let registry = brasa::registry();
    let experiment = registry.parse(text, "test", set).unwrap_or_else(|error| panic!("{error}"));
    experiment.to_toml().parse().expect("it is TOML")
}

#[test]
fn overrides_reach_nested_values() {
    let set = [
        "ppo.gamma=0.5".to_owned(),
        "train.device=cuda:1".into(),
        "ppo.learning_rate={ linear = { from = 1e-3, to = 0.0 } }".into(),
    ];
    let table = resolved("[scenario.cart-pole]\n[ppo]\ngamma = 0.9\n", &set);
    assert_eq!(table["ppo"]["gamma"].as_float(), Some(0.5));
    assert_eq!(table["train"]["device"].as_str(), Some("cuda:1"));
    assert_eq!(table["ppo"]["learning_rate"]["linear"]["from"].as_float(), Some(1e-3));
}

#[test]
fn a_table_that_leaves_epsilon_out_keeps_that_of_its_algorithm() {
    let adam = |text: &str, section: &str| {
        let table = resolved(&format!("[scenario.pendulum]\n{text}"), &[]);
        let adam = table[section].get("adam").or_else(|| table[section]["optimizer"].get("adam")).cloned();
        adam.expect("it is Adam")["epsilon"].as_float()
    };
    assert_eq!(adam("[sac.adam]\nbeta_1 = 0.8", "sac"), Some(1e-8));
    assert_eq!(adam("[td3.adam]\nbeta_1 = 0.8", "td3"), Some(1e-8));
    assert_eq!(adam("[ppo.adam]\nbeta_1 = 0.8", "ppo"), Some(1e-5));
}

#[test]
fn sections_that_an_experiment_leaves_out_are_chosen_by_what_the_scenario_says() {
    let sections = |text: &str| -> Vec<String> { resolved(text, &[]).keys().cloned().collect() };
    assert!(sections("[scenario.cart-pole]\n").contains(&"ppo".to_owned()), "the first algorithm learns");
    assert!(
        sections("[scenario.evacuation]\nbuildings = { reference = \"office\" }").contains(&"graph_network".to_owned())
    );
    assert!(sections("[scenario.cart-pole]\n[dqn]").contains(&"q_network".to_owned()));
    assert!(sections("[scenario.uara]\n[dqn]").contains(&"pair_q_network".to_owned()));
    assert!(sections("[scenario.uara-bs-agent]\n[dqn]").contains(&"team_q_network".to_owned()));
}

#[test]
fn mistakes_are_named() {
    let registry = brasa::registry();
    let message = |text: &str, set: &[String]| match registry.parse(text, "file", set) {
        Ok(_) => panic!("it is wrong: {text} {set:?}"),
        Err(error) => error.to_string(),
    };
    let text = "[scenario.cart-pole]\n[ppo]\ngamma = 0.9\n";
    let misspelled = message("[scenario.cart-pole]\n[ppo]\ngama = 0.9", &[]);
    assert!(misspelled.contains("unknown field `gama`") && misspelled.contains("line 3"), "{misspelled}");
    // A change of another key leaves the error to the file.
    let changed = message("[scenario.cart-pole]\n[ppo]\ngama = 0.9", &["train.seed=5".into()]);
    assert_eq!(changed, misspelled);
    assert!(
        message("[scenario.cart-pole]\n[dqn]\n[ppo]", &[])
            .contains("one algorithm, found [ppo] (the config) and [dqn] (the config)")
    );
    assert!(message("[scenario.cart-pole]\n[train]\nscale_reward = true\n[dqn]", &[]).contains("must be off"));
    let stray = message("[scenario.cart-pole]\n[dqn]\n[network]", &[]);
    assert_eq!(stray, "[network] is no part of dqn, which has [q_network], [off_policy]");
    let two = message("[scenario.cart-pole]\n[ppo]\n[network]\n[graph_network]", &[]);
    assert_eq!(two, "an experiment has one network for each role, found [network] and [graph_network]");
    assert!(message("[scenario.moon]", &[]).contains("unknown scenario `moon`; there are citylearn"));
    let near = message("[scenario.cart-poel]", &[]);
    assert!(near.contains("unknown scenario `cart-poel` (did you mean `cart-pole`?); there are"), "{near}");
    assert!(message("[scenario.cart-pole]\n[pppo]", &[]).contains("unknown section [pppo] (did you mean `ppo`?)"));
    assert!(message("[scenario.cart-pole]\nx = 1", &[]).contains("unknown field `x`"));
    assert!(
        message("[scenario.cart-pole]\n[scenario.pendulum]", &[])
            .contains("[scenario.cart-pole] and [scenario.pendulum]")
    );
    assert!(message("[ppo]", &[]).contains("an experiment needs [scenario.NAME]"));
    assert!(message("[scenario.cart-pole]\n[optimizer]", &[]).contains("unknown section [optimizer]"));
    assert!(message(text, &["ppo.gamma".into()]).contains("must look like key=value"));
    assert!(message(text, &["ppo.gama=1".into()]).contains("[ppo] has no key `gama`. Did you mean `gamma`?"));
    assert!(message(text, &["train.n_envs=0".into()]).contains("`train.n_envs` must be at least 1, got 0"));
    let fixed = message("[scenario.uara]\n[train]\nnormalize_obs = true\n[dqn]", &[]);
    assert!(fixed.contains("`train.normalize_obs` must be off"), "{fixed}");
}
