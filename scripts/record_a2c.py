"""Records A2C updates of Stable-Baselines3 as golden numbers.

    pip install torch==2.9.1 stable-baselines3==2.9.2 gymnasium==1.2.3
    python scripts/record_a2c.py crates/brasa-a2c/tests/data/sb3_update.json

The rollout is made up (random observations, rewards and ends). The update itself is `stable_baselines3.A2C.train`,
called three times on the same rollout, so that the state of the optimiser counts. Its optimiser is PyTorch's RMSprop
unless told otherwise; "rmsprop_tf" has the variant that starts from ones and adds `eps` inside of the root.
"""

import sys

import gymnasium
import numpy as np
import torch
from recording import ROWS, STEPS, Nothing, fill, learner, logged, weights, write
from stable_baselines3 import A2C
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

CALLS = 3


def record(action_space, seed, policy=None, **settings):
    rng = np.random.RandomState(seed)
    policy = {"net_arch": [8, 6], **(policy or {})}
    model = learner(A2C, "MlpPolicy", lambda: Nothing(action_space), rng, seed, policy_kwargs=policy, **settings)
    before = weights(model.policy)
    rollout = fill(model, rng, drift=0.0)
    assert 0 < np.sum(rollout["terminated"]) < ROWS * STEPS

    norms, clip_grad_norm_ = [], torch.nn.utils.clip_grad_norm_

    def recorded_clip(*arguments):
        norms.append(float(clip_grad_norm_(*arguments)))

    torch.nn.utils.clip_grad_norm_ = recorded_clip
    metrics, after = [], []
    for _ in range(CALLS):
        model.train()
        metrics.append(logged(model))
        after.append(weights(model.policy))
    torch.nn.utils.clip_grad_norm_ = clip_grad_norm_
    optimizer = model.policy.optimizer
    return {
        "gamma": model.gamma,
        "gae_lambda": model.gae_lambda,
        "settings": {
            "learning_rate": model.learning_rate,
            "ent_coef": model.ent_coef,
            "vf_coef": model.vf_coef,
            "max_grad_norm": model.max_grad_norm,
            "normalize_advantage": model.normalize_advantage,
            "optimizer": type(optimizer).__name__,
            "eps": optimizer.defaults["eps"],
        },
        "before": before,
        "rollout": rollout,
        "grad_norm": norms,
        "logged": metrics,
        "after": after,
    }


def main(path):
    discrete = gymnasium.spaces.Discrete(3)
    gaussian = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    cases = {
        "rmsprop": record(discrete, 1, learning_rate=3e-3, ent_coef=0.01),
        "rmsprop_tf": record(
            discrete,
            5,
            policy={"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"alpha": 0.99, "eps": 1e-5}},
            learning_rate=3e-3,
            ent_coef=0.01,
        ),
        "adam": record(discrete, 2, learning_rate=3e-3, use_rms_prop=False),
        "gaussian": record(gaussian, 3, learning_rate=3e-3, ent_coef=0.01),
        "normalized": record(discrete, 4, learning_rate=3e-3, normalize_advantage=True, gae_lambda=0.9, vf_coef=0.4),
    }
    for case in cases.values():
        assert max(case["grad_norm"]) > 0.5  # gradients were clipped
    write(path, cases)


if __name__ == "__main__":
    main(sys.argv[1])
