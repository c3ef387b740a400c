"""Steps environments with Gymnasium alone, and prints what they return; the judge of the tests of brasa-gym.

Reads JSON from stdin: `id`, `import`, `kwargs`, `seeds` (of each environment and episode), `actions` (of each step and environment,
as rows of numbers). Prints a list with one entry per environment: its first observation and, for each step, the observation before a
reset, the one after it, reward, terminated and truncated. Observations are flattened by Gymnasium.
"""

import json
import runpy
import sys

import gymnasium
import numpy as np
from gymnasium import spaces


def main():
    task = json.load(sys.stdin)
    for file in task["import"]:
        runpy.run_path(file)
    print(json.dumps([record(task, env) for env in range(len(task["seeds"]))]))


def record(task, index):
    env = gymnasium.make(task["id"], **task["kwargs"])
    seeds = iter(task["seeds"][index])
    flat = lambda obs: [float(x) for x in np.asarray(spaces.flatten(env.observation_space, obs), np.float32)]
    obs, _ = env.reset(seed=next(seeds))
    steps, first = [], flat(obs)
    for actions in task["actions"]:
        obs, reward, terminated, truncated, _ = env.step(action_of(env.action_space, actions[index]))
        before = after = flat(obs)
        if terminated or truncated:
            obs, _ = env.reset(seed=next(seeds))
            after = flat(obs)
        steps.append([before, after, float(np.float32(reward)), bool(terminated), bool(truncated)])
    return {"first": first, "steps": steps}


def action_of(space, row):
    if isinstance(space, spaces.Discrete):
        return np.int64(space.start + int(row[0]))
    if isinstance(space, spaces.MultiDiscrete):
        return (np.array(row, np.int64).reshape(space.shape) + space.start).astype(space.dtype)
    return np.array(row, np.float32).reshape(space.shape)


main()
