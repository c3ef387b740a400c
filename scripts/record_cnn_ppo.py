"""Records one PPO update of Stable-Baselines3's CnnPolicy as golden numbers.

    pip install torch==2.15.0 stable-baselines3==2.9.2 gymnasium==1.4.0
    python scripts/record_cnn_ppo.py crates/brasa-ppo/tests/data/sb3_cnn_update.json

The rollout is made up, as in `record_ppo.py`, with images of two channels. The convolutions are smaller than those of `NatureCNN`, so that the file
is small; the rest is the policy's own: bytes divided by 255, one layer after the convolutions, and one body for actor and critic.
"""

import json
import sys

import gymnasium
import numpy as np
import stable_baselines3
import torch
from record_ppo import ROWS, STEPS, numbers
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

SHAPE = (2, 9, 10)


class Convolutions(BaseFeaturesExtractor):
    def __init__(self, space):
        super().__init__(space, 6)
        self.cnn = nn.Sequential(
            nn.Conv2d(SHAPE[0], 3, 4, stride=2), nn.ReLU(), nn.Conv2d(3, 4, 2, stride=1, padding=1), nn.ReLU(), nn.Flatten()
        )
        width = self.cnn(torch.zeros(1, *SHAPE)).shape[1]
        self.linear = nn.Sequential(nn.Linear(width, 6), nn.ReLU())

    def forward(self, images):
        return self.linear(self.cnn(images))


class Images(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, SHAPE, np.uint8)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        return np.zeros(SHAPE, np.uint8), {}

    def step(self, action):
        return np.zeros(SHAPE, np.uint8), 0.0, False, False, {}


def weights(policy):
    names = {
        "features_extractor.cnn.0": "network.body.cnn.convolutions.0",
        "features_extractor.cnn.2": "network.body.cnn.convolutions.1",
        "features_extractor.linear.0": "network.body.hidden.hidden.0",
        "action_net": "network.actor.output",
        "value_net": "network.critic.output",
    }
    out = {}
    for name, value in policy.state_dict().items():
        # The extractor is shared, and stands under three names.
        if name.startswith(("pi_", "vf_")):
            continue
        path, kind = name.rsplit(".", 1)
        value = value.T if value.ndim == 2 else value  # ours is [inputs, outputs]
        out[f"{names[path]}.{kind}"] = {"shape": list(value.shape), "values": numbers(value.contiguous())}
    return out


def record(seed, **settings):
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    model = PPO(
        "CnnPolicy",
        stable_baselines3.common.vec_env.DummyVecEnv([Images] * ROWS),
        n_steps=STEPS,
        batch_size=ROWS * STEPS,
        policy_kwargs={"features_extractor_class": Convolutions, "net_arch": []},
        device="cpu",
        **settings,
    )
    model.set_logger(configure(None, []))
    with torch.no_grad():
        for parameter in model.policy.action_net.parameters():
            parameter.add_(torch.as_tensor(rng.normal(size=parameter.shape) * 0.3, dtype=torch.float32))
    before = weights(model.policy)
    buffer = model.rollout_buffer
    buffer.reset()
    starts, flags = np.ones(ROWS), []
    for _ in range(STEPS):
        obs = rng.randint(0, 256, size=(ROWS, *SHAPE)).astype(np.uint8)
        with torch.no_grad():
            actions, values, log_probs = model.policy(torch.as_tensor(obs))
        log_probs = log_probs + torch.as_tensor(rng.normal(size=ROWS) * 0.25, dtype=torch.float32)
        buffer.add(obs, actions.numpy().reshape(ROWS, -1), rng.normal(size=ROWS), starts, values, log_probs)
        starts = (rng.uniform(size=ROWS) < 0.25).astype(np.float64)
        flags.append(starts)
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
    with torch.no_grad():
        obs = torch.as_tensor(buffer.observations.reshape(-1, *SHAPE))
        actions = torch.as_tensor(buffer.actions.reshape(-1))
        values, log_probs, entropy = model.policy.evaluate_actions(obs, actions)
    rollout["evaluated"] = {"value": numbers(values), "log_prob": numbers(log_probs), "entropy": numbers(entropy)}
    model._current_progress_remaining = 1.0
    model.train()
    logged = {k: float(v) for k, v in model.logger.name_to_value.items() if k.startswith("train/")}
    return {
        "gamma": model.gamma,
        "gae_lambda": model.gae_lambda,
        "settings": settings,
        "before": before,
        "rollout": rollout,
        "after": weights(model.policy),
        "logged": logged,
    }


def main(path):
    cases = {"images": record(1, n_epochs=4, learning_rate=3e-3, ent_coef=0.01)}
    versions = {"torch": torch.__version__, "stable_baselines3": stable_baselines3.__version__, "numpy": np.__version__}
    with open(path, "w") as file:
        json.dump({"versions": versions, "n_rows": ROWS, "n_steps": STEPS, "cases": cases}, file)


if __name__ == "__main__":
    main(sys.argv[1])
