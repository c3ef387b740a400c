#!/usr/bin/env python3
"""Records episodes of `simple_reference_v3` from MPE2 for crates/brasa-classic/src/reference.rs.

pip install mpe2==1.1.1
Usage: python scripts/record_reference.py > crates/brasa-classic/tests/data/reference.json
"""

import json

import numpy as np
from mpe2 import simple_reference_v3

rng = np.random.default_rng(0)
episodes = []
for index in range(6):
    local_ratio = [0.5, 0.0, 1.0][index % 3]
    env = simple_reference_v3.parallel_env(local_ratio=local_ratio)
    env.reset(seed=index)
    world = env.unwrapped.world
    # The landmark of an agent is in the mind of the other one.
    goals = [world.landmarks.index(agent.goal_a.goal_b) for agent in world.agents]
    episode = {
        "local_ratio": local_ratio,
        "positions": [agent.state.p_pos.tolist() for agent in world.agents],
        "landmarks": [landmark.state.p_pos.tolist() for landmark in world.landmarks],
        "goals": goals,
        "actions": [],
        "observations": [],
        "rewards": [],
        "truncated": [],
    }
    names = list(env.agents)
    while env.agents:
        pairs = [(int(rng.integers(5)), int(rng.integers(10))) for _ in names]
        actions = {name: move + 5 * word for name, (move, word) in zip(names, pairs)}
        observations, rewards, _, truncated, _ = env.step(actions)
        episode["actions"].append([number for pair in pairs for number in pair])
        episode["observations"].append([observations[name].astype(float).round(9).tolist() for name in names])
        episode["rewards"].append([float(rewards[name]) for name in names])
        episode["truncated"].append(bool(truncated[names[0]]))
    episodes.append(episode)
print(json.dumps(episodes, separators=(",", ":")))
