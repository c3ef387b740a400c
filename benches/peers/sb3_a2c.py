"""A2C on CartPole-v1 from start to end in Stable-Baselines3, with RL Zoo's hyper-parameters.

    python benches/peers/sb3_a2c.py [--steps 100000] [--seed 0] [--threads 1]

Prints one line of JSON with the same fields as `sb3_cartpole.py`. The clock runs from making the environments to the
last update, without imports and without the evaluation.
"""

from timed import cart_pole

if __name__ == "__main__":
    cart_pole(__doc__, "A2C", "A2C on CartPole-v1", 100_000, 8, {"ent_coef": 0.0})
