"""Records five steps of optimisers of PyTorch and Stable-Baselines3 as golden numbers.

    pip install torch==2.9.1 stable-baselines3==2.9.2
    python scripts/record_optimizers.py crates/brasa-nn/tests/data/optimizers.json

Weights and gradients are made up; gradients range over several powers of ten, so that the place of `eps` counts.
"""

import json
import sys

import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

STEPS = 5


def single(array):
    """A float64 tensor of float32 numbers."""
    return torch.as_tensor(np.asarray(array).astype(np.float32).astype(np.float64))


def record(optimizer, before, gradients, **settings):
    parameter = torch.nn.Parameter(before.clone())
    stepper = optimizer([parameter], **settings)
    after = []
    for gradient in gradients:
        parameter.grad = gradient.clone()
        stepper.step()
        after.append(parameter.detach().tolist())
    return {"settings": settings, "before": before.tolist(), "gradients": gradients.tolist(), "after": after}


def main(path):
    rng = np.random.RandomState(1)
    before = single(rng.normal(size=4))
    gradients = single(rng.normal(size=(STEPS, 4)) * [1.0, 1e-2, 1e-5, 1e-8])
    gradients[2, 0] = 0.0
    adam = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-8}
    cases = {
        "rmsprop": record(torch.optim.RMSprop, before, gradients, lr=1e-2, alpha=0.99, eps=1e-8, momentum=0.005),
        "rmsprop_plain": record(torch.optim.RMSprop, before, gradients, lr=1e-2, alpha=0.99, eps=1e-8),
        "rmsprop_tf": record(RMSpropTFLike, before, gradients, lr=1e-2, alpha=0.99, eps=1e-5),
        "adam_weight_decay": record(torch.optim.Adam, before, gradients, **adam, weight_decay=1e-2),
        "adam": record(torch.optim.Adam, before, gradients, **adam),
    }
    versions = {"torch": torch.__version__, "stable_baselines3": stable_baselines3.__version__}
    with open(path, "w") as file:
        json.dump({"versions": versions, "cases": cases}, file, indent=1)


main(sys.argv[1])
