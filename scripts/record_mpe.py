#!/usr/bin/env python3
"""Records episodes of MPE2 for crates/brasa-classic.

pip install mpe2==1.1.1
Usage: python scripts/record_mpe.py spread > crates/brasa-classic/tests/data/spread.json
       python scripts/record_mpe.py reference > crates/brasa-classic/tests/data/reference.json
       python scripts/record_mpe.py tag > crates/brasa-classic/tests/data/tag.json
"""

import json
import sys

import numpy as np
from mpe2 import simple_reference_v3, simple_spread_v3, simple_tag_v3

rng = np.random.default_rng(0)
MOVE = lambda: int(rng.integers(5))
SAME = lambda drawn: drawn


def played(env, draw, of_mpe, flat, **more):
    """One episode with actions that `draw` draws, from the state of `env`."""
    world = env.unwrapped.world
    episode = {
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
        yield played(env, MOVE, SAME, SAME, local_ratio=local_ratio)


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
            lambda: (int(rng.integers(5)), int(rng.integers(10))),
            lambda pair: pair[0] + 5 * pair[1],
            lambda pairs: [number for pair in pairs for number in pair],
            local_ratio=local_ratio,
            goals=goals,
        )


def tag():
    for index in range(6):
        predators, obstacles = [(3, 2), (2, 1), (4, 3)][index % 3]
        env = simple_tag_v3.parallel_env(num_adversaries=predators, num_obstacles=obstacles)
        env.reset(seed=index)
        world = env.unwrapped.world
        prey = world.agents[-1].state
        # Even episodes begin with predators around the prey and an obstacle beside it, odd ones with a prey that flies out of the field.
        if index % 2 == 0:
            for agent in world.agents[:-1]:
                agent.state.p_pos = prey.p_pos + rng.uniform(-0.15, 0.15, 2)
            world.landmarks[0].state.p_pos = prey.p_pos + 0.2
        else:
            prey.p_pos, prey.p_vel = np.array([0.95, -0.85]), np.array([1.2, -0.4])
        speeds = [agent.state.p_vel.tolist() for agent in world.agents]
        episode = played(env, MOVE, SAME, SAME, speeds=speeds)
        # The prey does not see its own speed twice.
        for rows in episode["observations"]:
            rows[-1] += [0.0, 0.0]
        yield episode


print(json.dumps(list({"spread": spread, "reference": reference, "tag": tag}[sys.argv[1]]()), separators=(",", ":")))
