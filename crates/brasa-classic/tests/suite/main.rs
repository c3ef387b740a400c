//! Classic control tasks. One program, so that the crates below are linked once.

/// Calls a generic function with every task whose rules are written once, and its name.
macro_rules! every_task {
    ($check:ident) => {
        $check::<brasa_classic::CartPole>("cart-pole");
        $check::<brasa_classic::Pendulum>("pendulum");
        $check::<brasa_classic::MountainCar>("mountain car");
        $check::<brasa_classic::MountainCarContinuous>("mountain car, continuous");
        $check::<brasa_classic::Acrobot>("acrobot");
        $check::<brasa_classic::Catch>("catch");
        $check::<brasa_classic::CartPoleNoVelocity>("cart-pole without speeds");
        $check::<brasa_classic::PendulumNoVelocity>("pendulum without its speed");
        $check::<brasa_classic::MountainCarContinuousNoVelocity>("mountain car, continuous, without its speed");
    };
}

mod contract;
mod golden;
mod popgym;
mod rendered;
mod scenario;
mod together;
