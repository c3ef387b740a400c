"""DQN on CartPole-v1 from start to end in Stable-Baselines3, with RL Zoo's hyper-parameters or its own defaults.

    python benches/peers/sb3_dqn.py [--settings zoo] [--steps 50000] [--seed 0] [--threads 1]

Prints one line of JSON with the same fields as `sb3_cartpole.py`. The clock runs from making the environments to the
last update, without imports and without the evaluation.
"""

from timed import cart_pole

ZOO = {
    "learning_rate": 2.3e-3,
    "batch_size": 64,
    "buffer_size": 100_000,
    "learning_starts": 1000,
    "gamma": 0.99,
    "target_update_interval": 10,
    "train_freq": 256,
    "gradient_steps": 128,
    "exploration_fraction": 0.16,
    "exploration_final_eps": 0.04,
    "policy_kwargs": {"net_arch": [256, 256]},
}


def more(parser):
    parser.add_argument("--settings", choices=["zoo", "default"], default="zoo")


if __name__ == "__main__":
    settings = lambda found: ZOO if found.settings == "zoo" else {}
    cart_pole(__doc__, "DQN", "DQN on CartPole-v1", 50_000, 1, settings, more)
