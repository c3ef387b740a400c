"""Records one PPO update of Stable-Baselines3's CnnPolicy as golden numbers.

    pip install torch==2.15.0 stable-baselines3==2.9.2 gymnasium==1.4.0
    python scripts/record_cnn_ppo.py crates/brasa-ppo/tests/data/sb3_cnn_update.json

The rollout is made up, as in `record_ppo.py`, with images of two channels. The convolutions are smaller than those of `NatureCNN`, so that the file
is small; the rest is the policy's own: bytes divided by 255, one layer after the convolutions, and one body for actor and critic.
"""

import sys

import gymnasium
import numpy as np
import torch
from recording import ROWS, STEPS, Nothing, array, evaluated, fill, learner, updated, write
from stable_baselines3 import PPO
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


def images():
    return Nothing(gymnasium.spaces.Discrete(3), gymnasium.spaces.Box(0, 255, SHAPE, np.uint8))


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
        out[f"{names[path]}.{kind}"] = array(value)
    return out


def record(seed, **settings):
    rng = np.random.RandomState(seed)
    policy = {"features_extractor_class": Convolutions, "net_arch": []}
    own = {"batch_size": ROWS * STEPS, "policy_kwargs": policy}
    model = learner(PPO, "CnnPolicy", images, rng, seed, **own, **settings)
    before = weights(model.policy)
    rollout = fill(model, rng, observe=lambda: rng.randint(0, 256, size=(ROWS, *SHAPE)).astype(np.uint8))
    rollout["evaluated"] = evaluated(model)
    return updated(model, settings, weights, before, rollout)


def main(path):
    write(path, {"images": record(1, n_epochs=4, learning_rate=3e-3, ent_coef=0.01)})


if __name__ == "__main__":
    main(sys.argv[1])
