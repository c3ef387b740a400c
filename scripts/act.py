"""Acts with the policy of a checkpoint: an MLP actor-critic with tanh and discrete actions, as docs/reference/weights.md describes it.

    python scripts/act.py runs/x/checkpoints/step-100000/policy.safetensors < observations.json

Reads rows of observations as JSON, writes one action each. Needs safetensors and numpy.
"""

import json
import sys

import numpy as np
from safetensors.numpy import load_file

path, obs = sys.argv[1], json.load(sys.stdin)

arrays = load_file(path)
x = np.array(obs, dtype=np.float32)
if "obs_moments.mean" in arrays:
    count, mean, squares = (arrays[f"obs_moments.{name}"].astype(np.float64).sum(0) for name in ("count", "mean", "squares"))
    x = np.clip((x - mean) / np.sqrt(squares / count + 1e-8), -10, 10).astype(np.float32)
layer = 0
while f"network.actor.hidden.{layer}.weight" in arrays:
    x = np.tanh(x @ arrays[f"network.actor.hidden.{layer}.weight"] + arrays[f"network.actor.hidden.{layer}.bias"])
    layer += 1
action = (x @ arrays["network.actor_head.output.weight"] + arrays["network.actor_head.output.bias"]).argmax(1)

print(json.dumps(action.tolist()))
