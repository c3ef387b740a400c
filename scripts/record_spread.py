#!/usr/bin/env python3
"""Records episodes of `simple_spread_v3` from MPE2 for crates/brasa-classic/src/spread.

pip install mpe2==1.1.1
Usage: python scripts/record_spread.py > crates/brasa-classic/tests/data/spread.json
"""

import json

import numpy as np
from mpe2 import simple_spread_v3

rng = np.random.default_rng(0)
episodes = []
for index in range(8):
    n, local_ratio = [(3, 0.5), (3, 0.25), (5, 0.5), (1, 0.0)][index % 4]
    env = simple_spread_v3.parallel_env(N=n, local_ratio=local_ratio)
    env.reset(seed=index)
    world = env.unwrapped.world
    # Odd episodes begin with agents that touch, all of them near one landmark.
    if index % 2 == 1:
        for agent in world.agents:
            agent.state.p_pos = world.landmarks[0].state.p_pos + rng.uniform(-0.2, 0.2, 2)
    episode = {
        "local_ratio": local_ratio,
        "positions": [agent.state.p_pos.tolist() for agent in world.agents],
        "landmarks": [landmark.state.p_pos.tolist() for landmark in world.landmarks],
        "actions": [],
        "observations": [],
        "rewards": [],
        "truncated": [],
    }
    names = list(env.agents)
    while env.agents:
        actions = {name: int(rng.integers(5)) for name in names}
        observations, rewards, _, truncated, _ = env.step(actions)
        episode["actions"].append([actions[name] for name in names])
        episode["observations"].append([observations[name].astype(float).round(9).tolist() for name in names])
        episode["rewards"].append([float(rewards[name]) for name in names])
        episode["truncated"].append(bool(truncated[names[0]]))
    episodes.append(episode)
print(json.dumps(episodes, separators=(",", ":")))
