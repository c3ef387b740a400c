//! Drawings of the tasks.

use std::collections::BTreeSet;

use brasa_classic::{CartPole, Classic};
use brasa_env::{EnvError, Evaluation, Frame, Scenario, Who, play_rendered};

/// The frames of the episode `index` with the rule, and its length.
fn frames(scenario: &dyn Scenario, index: usize, seed: u64) -> (Vec<Frame>, u64) {
    let mut env = scenario.rendered(index).expect("it starts").expect("it is rendered");
    let mut rule = brasa_env::find_baseline(&scenario.baselines(), "rule-based")
        .and_then(brasa_env::Baseline::controller)
        .expect("there is a rule");
    let mut frames = Vec::new();
    let episode = play_rendered(&mut *env, &mut *rule, seed, |env, shown, is_last| {
        assert_eq!(shown.actions.is_none(), frames.is_empty());
        frames.push((env.render(shown)?, is_last));
        Ok::<(), EnvError>(())
    })
    .expect("it ends");
    assert!(frames.iter().enumerate().all(|(i, (_, is_last))| *is_last == (i as u64 == episode.length)));
    (frames.into_iter().map(|(frame, _)| frame).collect(), episode.length)
}

#[test]
fn every_task_is_rendered() {
    /// Name, scenario, size of a frame, seconds of a step.
    type Task = (&'static str, Box<dyn Scenario>, (u32, u32), f64);
    let tasks: [Task; 5] = [
        ("cart-pole", Box::new(Classic::cart_pole()), (600, 260), 0.02),
        ("pendulum", Box::new(Classic::pendulum()), (400, 400), 0.05),
        ("acrobot", Box::new(Classic::acrobot()), (400, 400), 0.2),
        ("mountain-car", Box::new(Classic::mountain_car()), (600, 400), 1.0 / 30.0),
        ("mountain-car-continuous", Box::new(Classic::mountain_car_continuous()), (600, 400), 1.0 / 30.0),
    ];
    for (name, scenario, size, secs) in tasks {
        let env = scenario.rendered(0).expect("it starts").expect("it is rendered");
        assert_eq!(env.frame_secs(), secs, "{name}");
        let (rendered, length) = frames(&*scenario, 1, 3);
        assert_eq!(rendered.len() as u64, length + 1, "{name}");
        assert!(rendered.iter().all(|frame| (frame.width(), frame.height()) == size), "{name}");
        let moving = rendered.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // A pendulum stands still at last.
        assert!(moving >= 50, "{name}: {moving} of {} frames differ", rendered.len());
        // A GIF has 256 colors per frame.
        let most = rendered.iter().map(|frame| frame.rgb().chunks_exact(3).collect::<BTreeSet<_>>().len()).max();
        assert!(most.is_some_and(|most| (3..=256).contains(&most)), "{name}: {most:?} colors");
        assert!(frames(&*scenario, 1, 3).0 == rendered, "{name} repeats");
        assert!(frames(&*scenario, 2, 3).0 != rendered, "{name}: another episode");
        // The same episode as that of an evaluation.
        let evaluation = Evaluation { episodes: 1..2, seed: 3, n_traces: 0 };
        let outcomes = scenario.evaluate(Who::Baseline("rule-based"), &evaluation).expect("it runs");
        assert_eq!(outcomes[0].length, length, "{name}");
    }
}

#[test]
fn own_tasks_have_no_drawing() {
    assert!(Classic::new(CartPole::default, 10).rendered(0).expect("it is no error").is_none());
}
