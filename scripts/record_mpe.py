#!/usr/bin/env python3
"""Records episodes of MPE2 for crates/brasa-classic.

pip install mpe2==1.1.1
Usage: python scripts/record_mpe.py spread > crates/brasa-classic/tests/data/spread.json
       python scripts/record_mpe.py reference > crates/brasa-classic/tests/data/reference.json
"""

import json
import sys

import numpy as np
from mpe2 import simple_reference_v3, simple_spread_v3

rng = np.random.default_rng(0)


def played(env, local_ratio, draw, of_mpe, flat, **more):
    """One episode with actions that `draw` draws, from the state of `env`."""
    world = env.unwrapped.world
    episode = {
        "local_ratio": local_ratio,
        "positions": [agent.state.p_pos.tolist() for agent in world.agents],
        "landmarks": [landmark.state.p_pos.tolist() for landmark in world.landmarks],
        **more,
        "actions": [],
        "observations": [],
        "rewards": [],
        "truncated": [],
    }
    names = list(env.agents)
    while env.agents:
        drawn = [draw() for _ in names]
        observations, rewards, _, truncated, _ = env.step({name: of_mpe(x) for name, x in zip(names, drawn)})
        episode["actions"].append(flat(drawn))
        episode["observations"].append([observations[name].astype(float).round(9).tolist() for name in names])
        episode["rewards"].append([float(rewards[name]) for name in names])
        episode["truncated"].append(bool(truncated[names[0]]))
    return episode


def spread():
    for index in range(8):
        n, local_ratio = [(3, 0.5), (3, 0.25), (5, 0.5), (1, 0.0)][index % 4]
        env = simple_spread_v3.parallel_env(N=n, local_ratio=local_ratio)
        env.reset(seed=index)
        world = env.unwrapped.world
        # Odd episodes begin with agents that touch, all of them near one landmark.
        if index % 2 == 1:
            for agent in world.agents:
                agent.state.p_pos = world.landmarks[0].state.p_pos + rng.uniform(-0.2, 0.2, 2)
        yield played(env, local_ratio, lambda: int(rng.integers(5)), lambda move: move, lambda moves: moves)


def reference():
    for index in range(6):
        local_ratio = [0.5, 0.0, 1.0][index % 3]
        env = simple_reference_v3.parallel_env(local_ratio=local_ratio)
        env.reset(seed=index)
        world = env.unwrapped.world
        # The landmark of an agent is in the mind of the other one.
        goals = [world.landmarks.index(agent.goal_a.goal_b) for agent in world.agents]
        yield played(
            env,
            local_ratio,
            lambda: (int(rng.integers(5)), int(rng.integers(10))),
            lambda pair: pair[0] + 5 * pair[1],
            lambda pairs: [number for pair in pairs for number in pair],
            goals=goals,
        )


print(json.dumps(list({"spread": spread, "reference": reference}[sys.argv[1]]()), separators=(",", ":")))
