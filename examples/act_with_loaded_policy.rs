//! The policy of a finished run in a program of its own, for any algorithm and network: it acts on rows of observations.
//!
//! ```text
//! cargo run --release -- train configs/cart-pole-ppo.toml --out runs/cart-pole
//! cargo run --release -p brasa-examples --example act_with_loaded_policy -- runs/cart-pole
//! ```

use brasa::classic::Classic;
use brasa::env::Who;
use brasa::ndarray::array;
use brasa_examples::mean_return;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let run =
        std::env::args().nth(1).ok_or("give the directory of a run on CartPole, as the header of this file shows")?;
    let device = brasa::device::open_named("cpu")?;
    let mut policy = brasa::load_policy(&run, &device)?;

    // Position and velocity of the cart, angle and angular velocity of the pole: it leans to the left, then to the right.
    let observed = array![[0.0, 0.0, -0.1, 0.0], [0.0, 0.0, 0.1, 0.0]];
    println!("pushes to the left (0) or right (1): {}", policy.act(observed.view(), None)?);

    let task = Classic::cart_pole();
    println!("rule-based (baseline): {:.1}", mean_return(&task, Who::Baseline("rule-based"))?);
    println!("loaded policy:         {:.1}", mean_return(&task, Who::Controller(&mut policy))?);
    Ok(())
}
