#!/usr/bin/env python3
"""Records episodes of `Catch` from bsuite for crates/brasa-classic/tests/suite/golden.rs.

pip install --no-deps bsuite==0.3.6 dm_env==1.6 && pip install dm-tree numpy
Usage: python scripts/record_catch.py > crates/brasa-classic/tests/data/catch.json
"""

import importlib.util
import json
import sys
import types

import numpy as np
# The package itself imports plots and all experiments; only its environments are needed.
places = importlib.util.find_spec("bsuite").submodule_search_locations
sys.modules["bsuite"] = types.ModuleType("bsuite")
sys.modules["bsuite"].__path__ = places
from bsuite.environments import catch  # noqa: E402

rng = np.random.default_rng(0)
episodes = []
while len(episodes) < 12:
    env = catch.Catch(seed=int(rng.integers(1 << 30)))
    first = env.reset().observation
    ball = int(np.flatnonzero(first[0])[0])
    # The first episodes begin in each column.
    if len(episodes) < 5 and ball != len(episodes):
        continue
    episode = {"name": f"catch {len(episodes)}", "initial_state": [ball, 0, 2], "actions": [], "observations": [], "rewards": [], "terminated": []}
    last = False
    while not last:
        # Half of the episodes are caught.
        paddle = int(np.flatnonzero(env._observation()[-1])[0])
        good = 1 + int(np.sign(ball - paddle))
        action = good if len(episodes) % 2 == 0 else int(rng.integers(3))
        step = env.step(action)
        last = step.last()
        episode["actions"].append(action)
        episode["observations"].append(step.observation.reshape(-1).tolist())
        episode["rewards"].append(step.reward)
        episode["terminated"].append(last)
    episodes.append(episode)
print(json.dumps(episodes, separators=(",", ":")))
