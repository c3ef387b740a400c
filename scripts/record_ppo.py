"""Records one PPO update of Stable-Baselines3, and GAE and losses of PyTorch, as golden numbers.

    pip install torch==2.15.0 stable-baselines3==2.9.2 gymnasium==1.2.3
    python scripts/record_ppo.py crates/brasa-ppo/tests/data/sb3_update.json

The rollout is made up (random observations, rewards and ends), so that every branch is met; the update itself is
`stable_baselines3.PPO.train`, run on one minibatch that holds the whole rollout, which makes its order irrelevant.
"""

import sys

import gymnasium
import numpy as np
from recording import ROWS, STEPS, Nothing, evaluated, fill, learner, updated, weights, write
from stable_baselines3 import PPO


def record(action_space, seed, **settings):
    rng = np.random.RandomState(seed)
    own = {"batch_size": ROWS * STEPS, "policy_kwargs": {"net_arch": [8, 6]}}
    model = learner(PPO, "MlpPolicy", lambda: Nothing(action_space), rng, seed, **own, **settings)
    before = weights(model.policy)
    rollout = fill(model, rng)
    rollout["evaluated"] = evaluated(model)
    return updated(model, settings, weights, before, rollout)


def main(path):
    discrete, box = gymnasium.spaces.Discrete(3), gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    several = gymnasium.spaces.MultiDiscrete([3, 2])
    clipped = lambda clip: record(box, 3, n_epochs=4, learning_rate=3e-3, ent_coef=0.01, clip_range_vf=clip)
    cases = {
        "discrete": record(discrete, 1, n_epochs=4, learning_rate=3e-3, ent_coef=0.01),
        "multi_discrete": record(several, 2, n_epochs=3, learning_rate=3e-3, ent_coef=0.02),
        "gaussian": clipped(0.01),
        "early_stop": record(discrete, 4, n_epochs=20, learning_rate=3e-2, target_kl=0.08),
        "not_normalized": record(
            discrete, 5, n_epochs=2, learning_rate=1e-3, normalize_advantage=False, max_grad_norm=0.1, vf_coef=0.7
        ),
    }
    # Values have left the range.
    assert cases["gaussian"]["after"] != clipped(100.0)["after"]
    write(path, cases)


if __name__ == "__main__":
    main(sys.argv[1])
