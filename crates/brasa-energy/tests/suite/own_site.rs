//! One's own site as evidence: what training may see, which episodes differ, and forecasts that know the past alone.

use std::collections::BTreeSet;
use std::path::Path;

use brasa_energy::Trace;
use brasa_energy::iquitos::{ArrivalModel, FileConfig, Iquitos, IquitosConfig, RewardConfig, RewardKind};
use brasa_energy::station::{Station, StationConfig};
use brasa_env::{BatchSlabs, Effort, EpisodeData, Evaluation, Scenario, Split, Who};
use brasa_test::outcomes::{episode_return, play, value};
use ndarray::Array2;

/// Writes the hours of `days` days of UTC from March 1, 2024 as the series `name`.
fn write_hours(folder: &Path, name: &str, header: &str, days: usize, value: impl Fn(usize, usize) -> f64) {
    let mut text = format!("time [UTC],{header}\n");
    for (day, hour) in (0..days).flat_map(|day| (0..24).map(move |hour| (day, hour))) {
        text.push_str(&format!("2024-03-{:02} {hour:02}:00,{}\n", day + 1, value(day, hour)));
    }
    std::fs::write(folder.join(name), text).expect("it is written");
}

/// A site of `days` days whose PV, load and prices are files; `swap` exchanges the last two days.
fn site(folder: &Path, days: usize, pv_factor: f64, swap: bool) -> IquitosConfig {
    let place = |day: usize| match (swap, days - day) {
        (true, 1) => day - 1,
        (true, 2) => day + 1,
        _ => day,
    };
    let sun = |hour: usize| (1.0 - (hour as f64 - 12.0).powi(2) / 36.0).max(0.0);
    let pv = |day: usize, hour: usize| pv_factor * (20.0 + 5.0 * (place(day) % 3) as f64) * sun(hour);
    let load = |day: usize, hour: usize| 15.0 + (place(day) as f64 * 1.7) % 9.0 + if hour >= 18 { 15.0 } else { 0.0 };
    write_hours(folder, "pv.csv", "pv [kW]", days, pv);
    write_hours(folder, "load.csv", "load [kW]", days, load);
    write_hours(folder, "prices.csv", "price [PEN/kWh]", days, |_, hour| if hour < 5 { 0.09 } else { 0.3 });
    let path = |name: &str| Some(folder.join(name));
    let mut config = IquitosConfig {
        files: FileConfig {
            utc_offset_hours: 0.0,
            pv: path("pv.csv"),
            load: path("load.csv"),
            prices: path("prices.csv"),
            ..FileConfig::default()
        },
        ..IquitosConfig::default()
    };
    config.pv.peak_kw = 400.0;
    (config.battery.capacity_kwh, config.battery.power_kw) = (60.0, 30.0);
    (config.grid.soft_limit_kw, config.grid.demand_charge_per_kw) = (100.0, 0.0);
    // Vehicles would be random.
    (config.vehicles.arrivals, config.vehicles.profile_kwh) = (ArrivalModel::Profile, [0.0; 24]);
    config
}

fn scenario(config: IquitosConfig) -> Iquitos {
    Iquitos::new(config).expect("the files are valid")
}

/// A site that earns more than it pays: its cost is negative, and a lower cost is still worth something.
#[test]
fn cost_counts_in_the_reward_of_a_site_that_earns_money() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |kind: RewardKind, cost: f64| {
        let mut config = site(folder.path(), 7, 8.0, false);
        (config.grid.export_limit_kw, config.grid.export_price_per_kwh) = (1000.0, 0.10);
        let none = RewardConfig { carbon: 0.0, solar: 0.0, vehicles: 0.0, grid: 0.0, ..RewardConfig::default() };
        config.reward = RewardConfig { kind, cost, ..none };
        scenario(config)
    };
    let rules = ["idle", "uncontrolled", "greedy", "price-threshold", "rule-based"];
    for kind in [RewardKind::Normalised, RewardKind::Improvement] {
        let site = with(kind, 0.15);
        let outcomes = rules.map(|rule| play(&site, Who::Baseline(rule), 0));
        let costs = outcomes.each_ref().map(|outcome| value(&site, outcome, "cost"));
        assert!(costs[1] < -100.0, "{costs:?}");
        let mut order = [0, 1, 2, 3, 4];
        order.sort_by(|a, b| costs[*a].total_cmp(&costs[*b]));
        let returns = outcomes.each_ref().map(episode_return);
        assert!(order.windows(2).all(|pair| returns[pair[0]] >= returns[pair[1]] - 1e-9), "{costs:?} {returns:?}");
        assert!(returns[order[0]] - returns[order[4]] > 1.0, "{returns:?}");
        // The weight of the cost is that of the import that is paid, whatever exports earn.
        let twice = episode_return(&play(&with(kind, 0.30), Who::Baseline("greedy"), 0));
        assert!((twice / returns[2] - 2.0).abs() < 1e-9, "{twice} {returns:?}");
    }
}

/// Without an import there is no scale of cost, carbon and peaks: a weight is an error, not a term that vanishes.
#[test]
fn a_weight_without_a_scale_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = site(folder.path(), 3, 0.0, false);
    write_hours(folder.path(), "load.csv", "load [kW]", 3, |_, _| 0.0);
    let refused = |config: &IquitosConfig| Iquitos::new(config.clone()).expect_err("it is refused").to_string();
    let rule = "must be 0 for a site that has none of it without control, the scale of this term";
    assert_eq!(refused(&config), format!("`reward.carbon` {rule}, got 0.5"));
    config.reward.carbon = 0.0;
    assert_eq!(refused(&config), format!("`reward.cost` {rule}, got 0.15"));
    config.reward.cost = 0.0;
    config.reward.ramp = 0.2;
    assert_eq!(refused(&config), format!("`reward.ramp` {rule}, got 0.2"));
    config.reward.ramp = 0.0;
    assert!(Iquitos::new(config).is_ok());
}

fn parts(scenario: &dyn Scenario, split: Split) -> BTreeSet<u64> {
    match scenario.data(split) {
        EpisodeData::Fixed(parts) => parts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pass_over_files_is_one_episode_and_training_sees_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = site(folder.path(), 7, 1.0, false);
    let whole = scenario(config.clone());
    assert_eq!((whole.n_episodes(Effort::Compare), whole.n_distinct_episodes()), (1, Some(1)));
    assert_eq!(whole.about_episodes(1), "The 7 days of the files, the same for every controller.");
    assert_eq!(parts(&whole, Split::Train), parts(&whole, Split::Evaluation));
    // The first two days alone.
    let short = scenario(IquitosConfig { episode_steps: Some(48), ..config.clone() });
    assert_eq!(parts(&short, Split::Train).len(), 2);
    assert!(parts(&short, Split::Train).is_subset(&parts(&short, Split::Evaluation)));
    // Equal days of another file are known again, by their numbers.
    let other = tempfile::tempdir().expect("a folder");
    let again = scenario(site(other.path(), 5, 1.0, false));
    assert!(parts(&again, Split::Evaluation).is_subset(&parts(&whole, Split::Train)));
    let another = scenario(site(other.path(), 5, 1.1, false));
    assert!(parts(&another, Split::Evaluation).is_disjoint(&parts(&whole, Split::Train)));
    // Random vehicles make every pass another.
    let mut random = config;
    random.vehicles.arrivals = ArrivalModel::Poisson;
    assert_eq!(scenario(random).n_distinct_episodes(), None);
    assert_eq!(scenario(IquitosConfig::default()).data(Split::Train), EpisodeData::Sampled);
    assert_eq!(scenario(IquitosConfig::seed()).n_distinct_episodes(), Some(1));
}

#[test]
fn days_of_a_microgrid_are_held_out_from_training() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = IquitosConfig {
        episode_steps: Some(48),
        random_start: true,
        held_out_days: Some(4),
        ..site(folder.path(), 9, 1.0, false)
    };
    let held_out = scenario(config.clone());
    assert_eq!((held_out.n_episodes(Effort::Compare), held_out.n_distinct_episodes()), (2, Some(2)));
    assert_eq!(parts(&held_out, Split::Evaluation).len(), 2);
    assert!(parts(&held_out, Split::Evaluation).is_disjoint(&parts(&held_out, Split::Train)));
    // The days are the fourth and the eighth, with the load of these days.
    let outcomes = held_out.evaluate(Who::Baseline("idle"), &Evaluation::new(3, 5)).expect("they are played");
    let load = |day: usize| -> f64 {
        (0..24).map(|hour| 15.0 + (day as f64 * 1.7) % 9.0 + if hour >= 18 { 15.0 } else { 0.0 }).sum()
    };
    let seen: Vec<f64> = outcomes.iter().map(|outcome| outcome.detail("ledger.load_kwh").expect("a flow")).collect();
    for (seen, day) in seen.iter().zip([3, 7, 3]) {
        assert!((seen - load(day)).abs() < 1e-9, "{seen} {}", load(day));
    }
    assert_eq!(outcomes[0].length, 24);
    // What training observes never has the load of these days.
    let mut batch = held_out.batch(0..32).expect("a batch");
    let mut slabs = BatchSlabs::new(brasa_env::EnvBatch::spec(&batch));
    let column =
        brasa_env::EnvBatch::spec(&batch).info_names.iter().position(|name| name == "load_kwh").expect("a column");
    brasa_env::EnvBatch::reset(&mut batch, 3, &mut slabs).expect("a reset");
    let actions = Array2::zeros((32, slabs_width(&batch)));
    let of_day = |day: usize| 15.0 + (day as f64 * 1.7) % 9.0;
    let mut loads = BTreeSet::new();
    for _ in 0..480 {
        brasa_env::EnvBatch::step(&mut batch, actions.view(), &mut slabs).expect("a step");
        loads.extend(slabs.info.column(column).iter().map(|kwh| (kwh * 1e6).round() as i64));
    }
    for day in 0..9 {
        let seen = loads.contains(&((of_day(day) * 1e6).round() as i64));
        // The last day is too short for an episode.
        assert_eq!(seen, ![3, 7, 8].contains(&day), "day {day}");
    }
    let refused = |config: IquitosConfig| Iquitos::new(config).expect_err("it is refused").to_string();
    let rule = "must be at most 24, the steps between two parts that are held out";
    assert_eq!(
        refused(IquitosConfig { held_out_days: Some(2), ..config.clone() }),
        format!("`episode_steps` {rule}, got 48")
    );
    assert!(refused(IquitosConfig { held_out_weeks: Some(2), ..config.clone() }).contains("must not come with"));
    assert!(
        refused(IquitosConfig { held_out_days: Some(10), ..config }).contains("`held_out_days` must be at least 2")
    );
    let without_files = IquitosConfig { held_out_days: Some(4), episode_steps: Some(24), ..IquitosConfig::default() };
    assert_eq!(refused(without_files), "`held_out_days` needs files with days, which are held out, got 4");
}

fn slabs_width(batch: &dyn brasa_env::EnvBatch) -> usize {
    batch.spec().action.width()
}

/// A station with prices, PV and sessions of `days` days.
fn station(folder: &Path, days: usize) -> StationConfig {
    write_hours(folder, "prices.csv", "price [EUR/kWh]", days, |day, hour| 0.1 + 0.01 * ((day + hour) % 7) as f64);
    write_hours(folder, "pv.csv", "pv [kW]", days, |day, hour| if hour == 12 { 5.0 + day as f64 } else { 0.0 });
    let mut sessions = String::from("arrival [UTC],departure [UTC],energy [kWh],socket\n");
    for day in 1..=days {
        sessions.push_str(&format!("2024-03-{day:02} 09:00,2024-03-{day:02} 12:00,{},ac\n", 5 + day));
    }
    std::fs::write(folder.join("sessions.csv"), sessions).expect("it is written");
    let mut config = StationConfig { utc_offset_hours: 0.0, ..StationConfig::default() };
    config.prices.file = Some(folder.join("prices.csv"));
    config.pv.file = Some(folder.join("pv.csv"));
    config.arrivals.file = Some(folder.join("sessions.csv"));
    config
}

#[test]
fn each_day_of_a_recorded_station_is_one_episode() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = station(folder.path(), 7);
    let recorded = Station::new(config.clone()).expect("valid");
    assert_eq!(recorded.n_distinct_episodes(), Some(7));
    let days = |station: &Station, n: u64| -> Vec<u32> {
        (0..n).map(|index| station.evaluation_episode(11, index).first_day).collect()
    };
    assert_eq!(days(&recorded, 9), [0, 1, 2, 3, 4, 5, 6, 0, 1]);
    let outcomes = recorded.evaluate(Who::Baseline("uncontrolled"), &Evaluation::new(8, 11)).expect("played");
    let returns: Vec<f64> = outcomes.iter().map(episode_return).collect();
    assert_eq!(returns[0], returns[7]);
    assert!(returns[..7].windows(2).all(|pair| pair[0] != pair[1]), "{returns:?}");
    assert_eq!(parts(&recorded, Split::Train), parts(&recorded, Split::Evaluation));

    let held_out = Station::new(StationConfig { held_out_days: Some(3), ..config.clone() }).expect("valid");
    assert_eq!((held_out.n_distinct_episodes(), days(&held_out, 3)), (Some(2), vec![2, 5, 2]));
    assert!(parts(&held_out, Split::Evaluation).is_disjoint(&parts(&held_out, Split::Train)));
    let trained: BTreeSet<u32> = (0..60).map(|seed| held_out.episode(seed, 0, 0).first_day).collect();
    assert_eq!(trained, [0, 1, 3, 4, 6].into());
    // A controller plays the days of the rules.
    let mut still = |_: &BatchSlabs, mut actions: ndarray::ArrayViewMut2<f32>| -> Result<(), brasa_env::EnvError> {
        actions.fill(-1.0);
        Ok(())
    };
    let controlled = held_out.evaluate(Who::Controller(&mut still), &Evaluation::new(2, 11)).expect("played");
    for (outcome, day) in controlled.iter().zip([2.0, 5.0]) {
        let pv_kwh = outcome.detail("ledger.pv_available_kwh").expect("a flow");
        assert!((pv_kwh - 5.0 - day).abs() < 1e-9, "{pv_kwh}");
    }
    // With random cars no episode repeats.
    let mut random = config;
    random.arrivals.file = None;
    assert_eq!(Station::new(random).expect("valid").n_distinct_episodes(), None);
    assert_eq!(Station::new(StationConfig::default()).expect("valid").data(Split::Train), EpisodeData::Sampled);
}

/// Two sites that differ in their last two days alone: a planner that knows the past decides alike until then.
#[cfg(feature = "optimum")]
#[test]
fn a_receding_horizon_knows_the_past_alone() {
    let power = |swap: bool, baseline: &str, forecast: bool| -> Vec<f32> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = IquitosConfig { optimum: true, ..site(folder.path(), 5, 1.0, swap) };
        (config.grid.demand_charge_per_kw, config.reward.cost) = (5.0, 5.0);
        if forecast {
            (config.files.pv_forecast, config.files.load_forecast) =
                (config.files.pv.clone(), config.files.load.clone());
        }
        let scenario = scenario(config);
        brasa_test::outcomes::trace::<Trace>(&play(&scenario, Who::Baseline(baseline), 0)).battery_kw.clone()
    };
    let same = |a: &[f32], b: &[f32]| a.iter().zip(b).take_while(|(a, b)| (*a - *b).abs() < 1e-2).count();
    let honest = [false, true].map(|swap| power(swap, "receding-horizon", false));
    // The first 72 hours are equal.
    assert!(same(&honest[0], &honest[1]) >= 72, "{}", same(&honest[0], &honest[1]));
    let perfect = [false, true].map(|swap| power(swap, "perfect-forecast", false));
    assert!(same(&perfect[0], &perfect[1]) < 72);
    // A forecast that is right is a perfect one, except for prices, which repeat every day here.
    let forecast = power(false, "receding-horizon", true);
    assert_eq!(same(&forecast, &perfect[0]), forecast.len());
}
