"""Records A2C updates of Stable-Baselines3 as golden numbers.

    pip install torch==2.9.1 stable-baselines3==2.9.2 gymnasium==1.2.3
    python scripts/record_a2c.py crates/brasa-a2c/tests/data/sb3_update.json

The rollout is made up (random observations, rewards and ends). The update itself is `stable_baselines3.A2C.train`,
called three times on the same rollout, so that the state of the optimiser counts. Its optimiser is PyTorch's RMSprop
unless told otherwise; "rmsprop_tf" has the variant that starts from ones and adds `eps` inside of the root.
"""

import json
import sys

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import A2C
from stable_baselines3.common.logger import configure
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from stable_baselines3.common.vec_env import DummyVecEnv

ROWS, STEPS, WIDTH = 2, 8, 5
CALLS = 3


class Nothing(gymnasium.Env):
    """Only its spaces count."""

    def __init__(self, action_space):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (WIDTH,), np.float32)
        self.action_space = action_space

    def reset(self, seed=None, options=None):
        return np.zeros(WIDTH, np.float32), {}

    def step(self, action):
        return np.zeros(WIDTH, np.float32), 0.0, False, False, {}


def numbers(array):
    array = np.asarray(array.detach().numpy() if isinstance(array, torch.Tensor) else array)
    return [float(x) for x in array.astype(np.float64).reshape(-1)]


def weights(policy):
    names = {"mlp_extractor.policy_net": "actor.hidden", "mlp_extractor.value_net": "critic.hidden"}
    out = {}
    for name, value in policy.state_dict().items():
        for old, new in names.items():
            if name.startswith(old):
                _, _, index, kind = name.split(".")
                name = f"{new}.{int(index) // 2}.{kind}"
        name = name.replace("action_net", "actor_head").replace("value_net", "critic_head")
        value = value.T if value.ndim == 2 else value  # ours is [inputs, outputs]
        out[name] = {"shape": list(value.shape), "values": numbers(value.contiguous())}
    return out


def record(action_space, seed, policy=None, **settings):
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    model = A2C(
        "MlpPolicy",
        DummyVecEnv([lambda: Nothing(action_space)] * ROWS),
        n_steps=STEPS,
        policy_kwargs={"net_arch": [8, 6], **(policy or {})},
        device="cpu",
        **settings,
    )
    model.set_logger(configure(None, []))
    with torch.no_grad():  # make outputs differ visibly: the initial head is nearly 0
        for parameter in model.policy.action_net.parameters():
            parameter.add_(torch.as_tensor(rng.normal(size=parameter.shape) * 0.3, dtype=torch.float32))
    before = weights(model.policy)

    buffer = model.rollout_buffer
    buffer.reset()
    starts = np.ones(ROWS)
    flags = []
    for _ in range(STEPS):
        obs = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
        with torch.no_grad():
            actions, values, log_probs = model.policy(torch.as_tensor(obs))
        rewards = rng.normal(size=ROWS)
        buffer.add(obs, actions.numpy().reshape(ROWS, -1), rewards, starts, values, log_probs)
        starts = (rng.uniform(size=ROWS) < 0.25).astype(np.float64)
        flags.append(starts)
    assert 0 < np.sum(flags) < ROWS * STEPS
    last_values = torch.as_tensor(rng.normal(size=ROWS), dtype=torch.float32)
    buffer.compute_returns_and_advantage(last_values, starts)
    rollout = {
        "obs": numbers(buffer.observations),
        "action": numbers(buffer.actions),
        "log_prob": numbers(buffer.log_probs),
        "value": numbers(buffer.values),
        "reward": numbers(buffer.rewards),
        "terminated": numbers(np.stack(flags)),
        "last_value": numbers(last_values),
        "advantage": numbers(buffer.advantages),
        "target": numbers(buffer.returns),
    }

    norms, clip_grad_norm_ = [], torch.nn.utils.clip_grad_norm_

    def recorded_clip(*arguments):
        norms.append(float(clip_grad_norm_(*arguments)))

    torch.nn.utils.clip_grad_norm_ = recorded_clip
    model._current_progress_remaining = 1.0
    logged, after = [], []
    for _ in range(CALLS):
        model.train()
        logged.append({k: float(v) for k, v in model.logger.name_to_value.items() if k.startswith("train/")})
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
        "logged": logged,
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
    versions = {"torch": torch.__version__, "stable_baselines3": stable_baselines3.__version__, "numpy": np.__version__}
    with open(path, "w") as file:
        json.dump({"versions": versions, "n_rows": ROWS, "n_steps": STEPS, "cases": cases}, file)


main(sys.argv[1])
