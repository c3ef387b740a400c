//! The shipped experiments: every config loads, presets equal their names, and errors name their cause.
#![allow(clippy::expect_used)]

use std::any::Any;
use std::path::{Path, PathBuf};

use brasa::env::Scenario;
use brasa::experiment::Registry;
use brasa::uara::{BsAgent, BsAgentConfig, Candidates, Parity, Uara, UaraConfig};

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs")
}

#[test]
fn every_shipped_config_loads_and_reads_back_as_it_is_written_out() {
    let registry = brasa::registry();
    let mut count = 0;
    for entry in std::fs::read_dir(configs()).expect("configs are there") {
        let path = entry.expect("the directory can be read").path();
        let experiment = registry.load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
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
    assert!(message("[scenario.cart-pole]\n[dqn]\n[ppo]", &[]).contains("there are [ppo] and [dqn]"));
    assert!(message("[scenario.cart-pole]\n[train]\nscale_reward = true\n[dqn]", &[]).contains("must be off"));
    let stray = message("[scenario.cart-pole]\n[dqn]\n[network]", &[]);
    assert_eq!(stray, "[network] is no part of dqn, which has [q_network], [off_policy]");
    let two = message("[scenario.cart-pole]\n[ppo]\n[network]\n[graph_network]", &[]);
    assert_eq!(two, "one network learns, but there are [network] and [graph_network]");
    assert!(message("[scenario.moon]", &[]).contains("unknown scenario `moon`; there are citylearn"));
    assert!(message("[scenario.cart-pole]\nx = 1", &[]).contains("unknown field `x`"));
    assert!(
        message("[scenario.cart-pole]\n[scenario.pendulum]", &[])
            .contains("[scenario.cart-pole] and [scenario.pendulum]")
    );
    assert!(message("[ppo]", &[]).contains("an experiment needs [scenario.NAME]"));
    assert!(message("[scenario.cart-pole]\n[optimizer]", &[]).contains("unknown section [optimizer]"));
    assert!(message(text, &["ppo.gamma".into()]).contains("must look like key=value"));
    assert!(message(text, &["ppo.gama=1".into()]).contains("unknown field `gama`"));
    assert!(message(text, &["train.n_envs=0".into()]).contains("`train.n_envs` must be at least 1, got 0"));
    let fixed = message("[scenario.uara]\n[train]\nnormalize_obs = true\n[dqn]", &[]);
    assert!(fixed.contains("`train.normalize_obs` must be off"), "{fixed}");
}
