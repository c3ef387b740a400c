"""Steps environments with Gymnasium alone, and prints what they return; the judge of the tests of brasa-gym.

Reads JSON from stdin: `id`, `import`, `kwargs`, `seeds` (of each environment and episode), `actions` (of each step and environment,
as rows of numbers). Prints a list with one entry per environment: its first observation and, for each step, the observation before a
reset, the one after it, and reward, terminated and truncated of each agent. Observations are flattened by Gymnasium; those of a team
follow one another.
"""

import importlib.util
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
    of = record_team if task["id"].endswith(":parallel_env") else record
    print(json.dumps([of(task, env) for env in range(len(task["seeds"]))]))


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
        steps.append([before, after, [float(np.float32(reward))], [bool(terminated)], [bool(truncated)]])
    return {"first": first, "steps": steps}


def record_team(task, index):
    module = task["id"].removesuffix(":parallel_env")
    if module.endswith(".py"):
        make = runpy.run_path(module)["parallel_env"]
    else:
        make = importlib.import_module(module).parallel_env
    env = make(**task["kwargs"])
    agents, seeds = env.possible_agents, iter(task["seeds"][index])
    space, choices = env.observation_space(agents[0]), env.action_space(agents[0])

    def flat(obs):
        # Who left observes zeros.
        rows = [spaces.flatten(space, obs[a]) if a in obs else np.zeros(spaces.flatdim(space)) for a in agents]
        return [float(x) for x in np.concatenate(rows).astype(np.float32)]

    obs, _ = env.reset(seed=next(seeds))
    steps, first = [], flat(obs)
    for actions in task["actions"]:
        rows = actions[index * len(agents) : (index + 1) * len(agents)]
        acts = {agent: action_of(choices, row) for agent, row in zip(agents, rows) if agent in env.agents}
        obs, rewards, terminations, truncations, _ = env.step(acts)
        before = after = flat(obs)
        terminated = truncated = [False] * len(agents)
        if not env.agents:
            truncated = [bool(truncations.get(agent) and not terminations.get(agent)) for agent in agents]
            terminated = [not cut for cut in truncated]
            obs, _ = env.reset(seed=next(seeds))
            after = flat(obs)
        steps.append([before, after, [float(np.float32(rewards.get(agent, 0.0))) for agent in agents], terminated, truncated])
    return {"first": first, "steps": steps}


def action_of(space, row):
    if isinstance(space, spaces.Discrete):
        return np.int64(space.start + int(row[0]))
    if isinstance(space, spaces.MultiDiscrete):
        return (np.array(row, np.int64).reshape(space.shape) + space.start).astype(space.dtype)
    return np.array(row, np.float32).reshape(space.shape)


main()
