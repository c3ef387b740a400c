//! Whole episodes under rules and policies.
#![allow(clippy::unwrap_used)]

use brasa_env::{BatchSlabs, EnvBatch, named_rng};
use brasa_uara::yardsticks::greedy;
use brasa_uara::{
    Candidates, Control, LayoutConfig, Objective, Redraw, Uara, UaraConfig, Yardstick, exploration_floor,
};
use ndarray::ArrayViewMut2;

/// Layouts of the published network, one per environment.
fn layouts(min_sinr_db: f64) -> Uara {
    let layout = LayoutConfig { redraw: Redraw::Environment, ..UaraConfig::cly2020().layout };
    Uara::new(UaraConfig { layout, min_sinr_db, ..UaraConfig::cly2020() }).unwrap()
}

#[test]
fn v19_rules_satisfy_as_many_as_the_bands_say() {
    for (min_sinr_db, strongest) in [(5.0, 0.62), (0.0, 0.64)] {
        let scenario = layouts(min_sinr_db);
        let (mut random, mut strongest_random, mut greedy) = (0.0, 0.0, 0.0);
        let n = 200;
        let mut batch = scenario.batch(0..n);
        batch.reset(0, &mut BatchSlabs::new(batch.spec())).unwrap();
        let rng = &mut named_rng(0, "test", 0);
        for env in 0..n {
            let snapshot = batch.snapshot(env);
            let mut qos =
                |rule: Yardstick| snapshot.outcome(&rule.choose(&snapshot, Objective::Satisfied, rng)).qos_rate();
            random += qos(Yardstick::Random) / n as f64;
            strongest_random += qos(Yardstick::StrongestRandom) / n as f64;
            greedy += qos(Yardstick::Greedy) / n as f64;
        }
        assert!((random - 0.045).abs() < 0.01, "random {random}");
        assert!((strongest_random - strongest).abs() < 0.03, "strongest {strongest_random}");
        assert!(greedy >= 0.99, "greedy {greedy}");
        println!("{min_sinr_db} dB: random {random:.4}, strongest {strongest_random:.4}, greedy {greedy:.5}");
    }
}

#[test]
fn v20_a_perfect_policy_that_explores_fails_most_of_the_time() {
    let scenario = layouts(5.0);
    let n = 60;
    let mut batch = scenario.batch(0..n);
    batch.reset(0, &mut BatchSlabs::new(batch.spec())).unwrap();
    let rng = &mut named_rng(0, "test", 1);
    let floors: Vec<_> = (0..n)
        .map(|env| {
            let snapshot = batch.snapshot(env);
            let links = greedy(&snapshot, Objective::Satisfied);
            exploration_floor(&snapshot, &links, 0.1, 4000, rng)
        })
        .collect();
    let all = floors.iter().map(|floor| floor.all_satisfied).sum::<f64>() / n as f64;
    assert!((all - 0.046).abs() < 0.003, "{all}");
    println!("all satisfied {all:.4}: {:.1} failed steps", 1.0 / all - 1.0);
}

#[test]
fn rules_and_policies_play_the_same_episodes() {
    let scenario = Uara::new(UaraConfig::physical()).unwrap();
    let rule = scenario.evaluate(Control::Rule(Yardstick::Greedy), 3..6, 9, 1).unwrap();
    // A policy that repeats what greedy did is judged alike.
    let mut batch = scenario.batch(3..6);
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(9, &mut slabs).unwrap();
    let mut repeat = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| {
        for env in 0..3 {
            for (user, link) in greedy(&batch.snapshot(env), scenario.objective()).into_iter().enumerate() {
                actions[[env * 30 + user, 0]] = batch.option(env, user, link).unwrap() as f32;
            }
        }
        batch.step(actions.view(), &mut slabs).unwrap();
    };
    let policy = scenario.evaluate(Control::Policy(&mut repeat), 3..6, 9, 1).unwrap();
    assert_eq!(rule, policy);
    let trace = rule[0].trace.as_ref().unwrap();
    assert_eq!((trace.frames.len(), trace.stations_m.len(), rule[1].trace.is_none()), (40, 26, true));
    let qos = |frame: &brasa_uara::Frame| frame.satisfied.iter().filter(|on| **on).count() as f64 / 30.0;
    let mean = trace.frames.iter().map(qos).sum::<f64>() / 40.0;
    assert!((mean - rule[0].qos_rate).abs() < 0.002, "{mean} and {}", rule[0].qos_rate);
    let rate = trace.frames.iter().map(|frame| frame.rate_mbps.iter().sum::<f64>()).sum::<f64>() / 40.0;
    assert!((rate / rule[0].sum_rate_mbps - 1.0).abs() < 1e-4);
}

#[test]
fn episodes_end_at_success_or_run_out() {
    let config = UaraConfig { episode_steps: 20, candidates: Candidates::Covered, ..UaraConfig::cly2020() };
    let scenario = Uara::new(config).unwrap();
    let greedy = &scenario.evaluate(Control::Rule(Yardstick::Greedy), 0..1, 0, 0).unwrap()[0];
    assert_eq!((greedy.steps, greedy.final_qos_rate, greedy.success), (1, 1.0, true));
    let random = &scenario.evaluate(Control::Rule(Yardstick::Random), 0..1, 0, 0).unwrap()[0];
    assert_eq!((random.steps, random.success), (20, false));
    assert!((random.episode_return / 20.0 - (2.0 * random.qos_rate - 1.0)).abs() < 1e-6);
}
