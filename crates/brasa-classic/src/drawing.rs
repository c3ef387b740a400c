//! Drawings of the classic tasks, as functions of observation and action.

mod canvas;

use std::f32::consts::{FRAC_PI_2, PI, TAU};

use brasa_env::{EnvError, Frame, Shown};

use self::canvas::{Canvas, EMBER, INK, LINE, Point, SOFT};
use crate::acrobot::STEP_SECS;
use crate::{CartPoleRules, PendulumRules};

/// How a task is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawing {
    /// Duration of a step, in s.
    pub frame_secs: f64,
    draw: fn(obs: &[f32], action: Option<f32>) -> Canvas,
}

impl Drawing {
    /// The frame of a state.
    pub fn frame(&self, shown: &Shown<'_>) -> Result<Frame, EnvError> {
        let obs = shown.obs.row(0).to_vec();
        Ok((self.draw)(&obs, shown.actions.map(|actions| actions[[0, 0]])).into_frame()?)
    }

    pub fn cart_pole() -> Self {
        Self { frame_secs: CartPoleRules::default().step_secs, draw: cart_pole }
    }

    pub fn pendulum() -> Self {
        Self { frame_secs: PendulumRules::default().step_secs, draw: pendulum }
    }

    pub fn acrobot() -> Self {
        Self { frame_secs: STEP_SECS, draw: acrobot }
    }

    /// A step of the task has no duration in seconds; Gymnasium shows 30 in a second.
    pub fn mountain_car() -> Self {
        let draw = |obs: &[f32], action: Option<f32>| mountain_car(obs, action.map(|action| action - 1.0), 0.5);
        Self { frame_secs: 1.0 / 30.0, draw }
    }

    /// As [`Drawing::mountain_car`], with the goal and the forces of the continuous task.
    pub fn mountain_car_continuous() -> Self {
        let draw = |obs: &[f32], action: Option<f32>| mountain_car(obs, action, 0.45);
        Self { frame_secs: 1.0 / 30.0, draw }
    }
}

/// `point` moved by `length` in the direction `angle`, in rad, counterclockwise from the right.
fn moved((x, y): Point, angle: f32, length: f32) -> Point {
    (x + length * angle.cos(), y + length * angle.sin())
}

fn cart_pole(obs: &[f32], action: Option<f32>) -> Canvas {
    const CART: (f32, f32) = (0.5, 0.28);
    const AXLE: f32 = 0.09;
    let rules = CartPoleRules::default();
    let (position, angle, limit) = (obs[0], obs[2], rules.position_limit_m as f32);
    let mut canvas = Canvas::new(600, 260, 110.0, (300.0, 215.0));
    canvas.line(&[(-limit, 0.0), (limit, 0.0)], 2.0, SOFT);
    for end in [-limit, 0.0, limit] {
        canvas.line(&[(end, -0.07), (end, 0.0)], 2.0, SOFT);
    }
    let (low, high) = (AXLE, AXLE + CART.1);
    let (left, right) = (position - CART.0 / 2.0, position + CART.0 / 2.0);
    canvas.polygon(&[(left, low), (right, low), (right, high), (left, high)], INK);
    for wheel in [position - 0.15, position + 0.15] {
        canvas.disk((wheel, AXLE), AXLE, SOFT);
    }
    if let Some(action) = action {
        // A push acts on the side from which it comes.
        let (from, direction) = if action > 0.5 { (left, 1.0) } else { (right, -1.0) };
        let height = (low + high) / 2.0;
        canvas.arrow(&[(from - 0.4 * direction, height), (from - 0.06 * direction, height)], SOFT);
    }
    let foot = (position, high - 0.04);
    canvas.line(&[foot, moved(foot, FRAC_PI_2 - angle, 2.0 * rules.half_pole_length_m as f32)], 9.0, EMBER);
    canvas.disk(foot, 0.035, LINE);
    canvas
}

fn pendulum(obs: &[f32], action: Option<f32>) -> Canvas {
    let rules = PendulumRules::default();
    let mut canvas = Canvas::new(400, 400, 150.0, (200.0, 200.0));
    canvas.line(&arc(1.0, 0.0, TAU), 1.5, LINE);
    canvas.line(&[(0.0, 1.06), (0.0, 1.2)], 3.0, SOFT);
    // The angle is measured from upright, counterclockwise.
    canvas.line(&[(0.0, 0.0), (-obs[1], obs[0])], 18.0, EMBER);
    canvas.disk((0.0, 0.0), 0.05, INK);
    let torque = action.map_or(0.0, |torque| torque / rules.torque_limit_nm).clamp(-1.0, 1.0);
    if torque.abs() > 0.05 {
        canvas.arrow(&arc(0.35, -FRAC_PI_2, -FRAC_PI_2 + torque * 0.6 * PI), INK);
    }
    canvas
}

/// Points on a circle around the origin.
fn arc(radius: f32, from: f32, to: f32) -> Vec<Point> {
    const PARTS: u16 = 64;
    let angle = |part: u16| from + (to - from) * f32::from(part) / f32::from(PARTS);
    (0..=PARTS).map(|part| moved((0.0, 0.0), angle(part), radius)).collect()
}

fn acrobot(obs: &[f32], action: Option<f32>) -> Canvas {
    let mut canvas = Canvas::new(400, 400, 85.0, (200.0, 200.0));
    canvas.line(&[(-2.2, 1.0), (2.2, 1.0)], 2.0, SOFT);
    // Angles from hanging down: of the first link, and of the second one from the first.
    let (first, bend) = (obs[1].atan2(obs[0]), obs[3].atan2(obs[2]));
    let joint = moved((0.0, 0.0), first - FRAC_PI_2, 1.0);
    let tip = moved(joint, first + bend - FRAC_PI_2, 1.0);
    canvas.line(&[(0.0, 0.0), joint], 14.0, INK);
    canvas.line(&[joint, tip], 14.0, EMBER);
    canvas.disk((0.0, 0.0), 0.055, LINE);
    canvas.disk(joint, 0.055, LINE);
    let torque = action.map_or(0.0, |action| action - 1.0);
    if torque != 0.0 {
        // In the larger angle between both links.
        let middle = first + bend / 2.0 + if bend < 0.0 { 0.0 } else { PI };
        let around_joint = |(x, y): Point| (joint.0 + x, joint.1 + y);
        let turn = arc(0.3, middle - torque * 0.35 * PI, middle + torque * 0.35 * PI);
        canvas.arrow(&turn.into_iter().map(around_joint).collect::<Vec<_>>(), SOFT);
    }
    canvas
}

fn mountain_car(obs: &[f32], force: Option<f32>, goal: f32) -> Canvas {
    const LEFT: f32 = -1.2;
    const RIGHT: f32 = 0.6;
    const WHEEL: f32 = 0.025;
    let ground = |x: f32| 0.45 * (3.0 * x).sin();
    // Above the road is room for the flag.
    let mut canvas = Canvas::new(600, 400, 600.0 / (RIGHT - LEFT), (400.0, 230.0));
    let road: Vec<Point> = (0..=180_u8).map(|i| LEFT + f32::from(i) / 100.0).map(|x| (x, ground(x))).collect();
    let mut hill = road.clone();
    hill.extend([(RIGHT, -1.0), (LEFT, -1.0)]);
    canvas.polygon(&hill, LINE);
    canvas.line(&road, 2.0, SOFT);
    canvas.line(&[(goal, ground(goal)), (goal, ground(goal) + 0.16)], 2.0, INK);
    canvas
        .polygon(&[(goal, ground(goal) + 0.16), (goal - 0.07, ground(goal) + 0.13), (goal, ground(goal) + 0.1)], EMBER);
    let position = obs[0];
    let slope = (3.0 * 0.45 * (3.0 * position).cos()).atan();
    let (along, up) = ((slope.cos(), slope.sin()), (-slope.sin(), slope.cos()));
    let at = |x: f32, y: f32| (position + x * along.0 + y * up.0, ground(position) + x * along.1 + y * up.1);
    canvas.polygon(
        &[at(-0.07, WHEEL), at(0.07, WHEEL), at(0.07, 0.055), at(0.035, 0.085), at(-0.04, 0.085), at(-0.07, 0.055)],
        EMBER,
    );
    for wheel in [-0.04, 0.04] {
        canvas.disk(at(wheel, WHEEL), WHEEL, INK);
    }
    let force = force.unwrap_or(0.0).clamp(-1.0, 1.0);
    if force.abs() > 0.05 {
        canvas.arrow(&[at(0.0, 0.13), at(0.16 * force, 0.13)], INK);
    }
    canvas
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;

    /// Whatever a state is, its drawing ends and has its size.
    #[test]
    fn states_outside_the_frame_are_drawn() {
        let all = [
            Drawing::cart_pole(),
            Drawing::pendulum(),
            Drawing::acrobot(),
            Drawing::mountain_car(),
            Drawing::mountain_car_continuous(),
        ];
        for (i, drawing) in all.into_iter().enumerate() {
            let sizes = [0.0, 1e3, -1e9, f32::MAX, f32::INFINITY, f32::NAN].map(|number| {
                let (obs, action) = (Array2::from_elem((1, 6), number), array![[number]]);
                let shown =
                    Shown { obs: obs.view(), shared: obs.view(), actions: Some(action.view()), episode_return: 0.0 };
                let frame = drawing.frame(&shown).expect("it is rendered");
                (frame.width(), frame.height())
            });
            assert!(sizes.iter().all(|size| *size == sizes[0]), "drawing {i}");
        }
    }
}
