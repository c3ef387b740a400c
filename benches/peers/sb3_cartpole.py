"""PPO on CartPole-v1 from start to end in Stable-Baselines3, with RL Zoo's hyper-parameters.

    python benches/peers/sb3_cartpole.py [--steps 100000] [--seed 0] [--threads 1]

Prints one line of JSON with the same fields as `cargo run --release --package brasa-benches --example cart_pole`. The
clock runs from making the environments to the last update, without imports and without the evaluation.
"""

from timed import cart_pole

SETTINGS = {
    "n_steps": 32,
    "batch_size": 256,
    "n_epochs": 20,
    "gamma": 0.98,
    "gae_lambda": 0.8,
    "ent_coef": 0.0,
    "learning_rate": lambda remaining: remaining * 1e-3,
    "clip_range": lambda remaining: remaining * 0.2,
}

if __name__ == "__main__":
    cart_pole(__doc__, "PPO", "PPO on CartPole-v1", 100_000, 8, SETTINGS)
