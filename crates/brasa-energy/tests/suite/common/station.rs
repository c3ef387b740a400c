//! Random charging stations and their actions.

use brasa_energy::station::{
    ActionMode, ArrivalConfig, LimitMode, NodeConfig, PlaceKind, SocketConfig, SocketKind, StationConfig,
};
use brasa_env::{EnvBatch, EnvRng, Space, named_rng};
use ndarray::Array2;
use rand::RngExt;

/// Random actions of the space that are sometimes extreme.
pub fn random_actions(batch: &dyn EnvBatch, rng: &mut EnvRng) -> Array2<f32> {
    let extreme = rng.random_range(0..5);
    let heads = match &batch.spec().action {
        Space::MultiDiscrete(heads) => Some(heads.clone()),
        _ => None,
    };
    Array2::from_shape_fn((batch.n_rows(), batch.spec().action.width()), |(_, i)| {
        let range = heads.as_ref().map_or((-1.0, 1.0), |heads| (0.0, (heads[i] - 1) as f32));
        match extreme {
            0 => range.1,
            1 => range.0,
            _ => {
                let x = range.0 + (range.1 - range.0) * rng.random::<f32>();
                if heads.is_some() { x.round() } else { 1.5 * x }
            }
        }
    })
}

/// A random station: any tree, any groups, battery and PV anywhere.
pub fn random_config(seed: u64) -> StationConfig {
    let mut rng = named_rng(seed, "config", 0);
    let mut config = StationConfig {
        // Minutes are rare: a year of them takes most of the time of a test.
        step_minutes: [1, 5, 5, 10, 10, 15, 15, 15, 20, 30, 30, 30, 60, 60, 60, 60][rng.random_range(0..16)],
        actions: if rng.random() { ActionMode::Continuous } else { ActionMode::Discrete },
        limits: if rng.random_range(0..4) > 0 { LimitMode::Curtail } else { LimitMode::Penalize },
        v2g: rng.random(),
        episode_steps: Some(rng.random_range(20..80)),
        ..StationConfig::default()
    };
    config.nodes = (0..rng.random_range(1..6))
        .map(|i: usize| {
            let parent = (i > 0).then(|| format!("node_{}", rng.random_range(0..i)));
            let limit_kw = rng.random_range(5.0..300.0);
            let efficiency = rng.random_range(0.8..=1.0);
            let mut node = NodeConfig::new(&format!("node_{i}"), parent.as_deref(), limit_kw, efficiency);
            if rng.random_range(0..5) == 0 {
                node.limit_kw = None;
            }
            node
        })
        .collect();
    let n_nodes = config.nodes.len();
    config.sockets = (0..rng.random_range(1..4))
        .map(|i| SocketConfig {
            name: format!("group_{i}"),
            parent: format!("node_{}", rng.random_range(0..n_nodes)),
            count: rng.random_range(1..6),
            kind: if rng.random() { SocketKind::Ac } else { SocketKind::Dc },
            voltage_v: rng.random_range(100.0..800.0),
            current_a: rng.random_range(10.0..300.0),
            phases: if rng.random() { 1 } else { 3 },
            efficiency: rng.random_range(0.7..=1.0),
            limit_kw: rng.random::<bool>().then(|| rng.random_range(5.0..200.0)),
        })
        .collect();
    let place = |rng: &mut EnvRng| Some(format!("node_{}", rng.random_range(0..n_nodes)));
    config.battery.parent = place(&mut rng);
    config.battery.capacity_kwh = [0.0, 50.0, 1000.0][rng.random_range(0..3)];
    config.battery.power_kw = rng.random_range(0.0..400.0);
    config.battery.charge_efficiency = rng.random_range(0.6..=1.0);
    config.battery.discharge_efficiency = rng.random_range(0.6..=1.0);
    (config.battery.soc_min, config.battery.soc_max) = (0.1, 0.9);
    config.battery.standing_loss_per_day = rng.random_range(0.0..0.5);
    config.pv.parent = place(&mut rng);
    config.pv.peak_kw = [0.0, 300.0][rng.random_range(0..2)];
    config.prices.export_limit_kw = rng.random::<bool>().then(|| rng.random_range(0.0..50.0));
    config.arrivals = ArrivalConfig {
        place: [PlaceKind::Highway, PlaceKind::Residential, PlaceKind::Workplace, PlaceKind::Shopping]
            [rng.random_range(0..4)],
        cars_per_day: rng.random_range(0.0..2000.0),
        workday_hours: Some(vec![1.0; 24]),
        weekend_hours: Some(vec![1.0; 24]),
        energy_bound_share: Some(rng.random()),
        patience_hours: rng.random_range(0.0..3.0),
        ..ArrivalConfig::default()
    };
    config
}
