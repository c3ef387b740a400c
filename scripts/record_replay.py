"""Records n-step returns of Stable-Baselines3 and prioritised sampling of Tianshou as golden numbers.

    pip install torch==2.9.1 stable-baselines3==2.9.2 gymnasium==1.2.3 tianshou==2.0.1
    python scripts/record_replay.py crates/brasa-buffers/tests/data/replay.json

n-step returns: a made-up sequence of steps in several environments goes into `NStepReplayBuffer`, and every entry of
the buffer is read back: while it is not full, when it is just full, and after it has overwritten its oldest entries.
A window that reaches the newest step stops there, with the discount of the steps it has.

Prioritised sampling: `PrioritizedReplayBuffer` stores (priority + 2^-23)^alpha in the leaves of its sum tree. It
divides importance weights by the largest of the batch; "weight_raw" is (N P)^-beta by definition, not divided.
"""

import json
import sys
from importlib.metadata import version

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.buffers import NStepReplayBuffer
from tianshou.data import Batch, PrioritizedReplayBuffer

N_ENVS, CAPACITY, STEPS, WIDTH = 3, 12, 17, 2
N_STEPS, GAMMA = 3, 0.9
ALPHA, BETA = 0.6, 0.4


def numbers(array):
    return [float(x) for x in np.asarray(array, dtype=np.float64).reshape(-1)]


def made_up_steps():
    """Steps of all environments in turn; ends at chosen places, a fresh first observation after each."""
    rng = np.random.RandomState(1)
    terminated, truncated = np.zeros((STEPS, N_ENVS)), np.zeros((STEPS, N_ENVS))
    # Ends one step apart, ends at the newest step of a full or an overwritten buffer, one environment with no end.
    for step, env in [(2, 0), (3, 0), (8, 0), (16, 0), (5, 1), (11, 1)]:
        terminated[step, env] = 1.0
    for step, env in [(6, 0), (11, 0), (3, 1), (9, 1), (14, 1)]:
        truncated[step, env] = 1.0
    obs = rng.normal(size=(STEPS + 1, N_ENVS, WIDTH)).astype(np.float32)
    final = rng.normal(size=(STEPS, N_ENVS, WIDTH)).astype(np.float32)
    ended = (terminated + truncated)[..., None] > 0.0
    return {
        "obs": obs[:-1],
        "next_obs": np.where(ended, final, obs[1:]),
        "action": rng.normal(size=(STEPS, N_ENVS)).astype(np.float32),
        "reward": rng.normal(size=(STEPS, N_ENVS)).astype(np.float32),
        "terminated": terminated,
        "truncated": truncated,
    }


def n_step_samples(steps, pushed):
    buffer = NStepReplayBuffer(
        CAPACITY * N_ENVS,
        gymnasium.spaces.Box(-np.inf, np.inf, (WIDTH,), np.float32),
        gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32),
        device="cpu",
        n_envs=N_ENVS,
        n_steps=N_STEPS,
        gamma=GAMMA,
    )
    for t in range(pushed):
        step = {name: value[t] for name, value in steps.items()}
        done = np.logical_or(step["terminated"], step["truncated"])
        infos = [{"TimeLimit.truncated": bool(flag)} for flag in step["truncated"]]
        buffer.add(step["obs"], step["next_obs"], step["action"][:, None], step["reward"], done, infos)
    out = {"pushed": pushed, "step": [], "env": [], "return": [], "discount": [], "done": [], "next_obs": []}
    randint = np.random.randint
    for t in range(max(0, pushed - CAPACITY), pushed):
        for env in range(N_ENVS):
            np.random.randint = lambda *_, size: np.full(size, env)  # the buffer draws the environment itself
            sample = buffer._get_samples(np.array([t % CAPACITY]))
            assert np.array_equal(sample.observations.numpy()[0], steps["obs"][t, env])
            assert sample.actions.item() == steps["action"][t, env]
            out["step"].append(t)
            out["env"].append(env)
            out["return"].append(sample.rewards.item())
            out["discount"].append(sample.discounts.item())
            out["done"].append(sample.dones.item())
            out["next_obs"] += numbers(sample.next_observations)
    np.random.randint = randint
    return out


def n_step():
    steps = made_up_steps()
    return {
        "n_envs": N_ENVS,
        "capacity": CAPACITY,
        "width": WIDTH,
        "n_steps": N_STEPS,
        "gamma": GAMMA,
        "steps": {name: numbers(value) for name, value in steps.items()},
        "samples": [n_step_samples(steps, pushed) for pushed in [7, CAPACITY, STEPS]],
    }


def prioritised():
    rng = np.random.RandomState(2)
    size = 20  # not a power of two: leaves that are never filled
    buffer = PrioritizedReplayBuffer(size, alpha=ALPHA, beta=BETA)
    transition = Batch(obs=0, act=0, rew=0.0, terminated=False, truncated=False, obs_next=0, info={})

    def reading(indices):
        leaves = np.array([buffer.weight[i] for i in range(len(buffer))])
        total = buffer.weight.reduce()
        sums = np.cumsum(leaves)
        masses = []
        while len(masses) < 50:  # away from the borders, where rounding would decide
            mass = rng.uniform(0.0, total)
            if np.abs(sums - mass).min() > 1e-4 * total:
                masses.append(mass)
        probability = leaves / total
        return {
            "filled": len(buffer),
            "leaf": numbers(leaves),
            "total": float(total),
            "probability": numbers(probability),
            "mass": masses,
            "mass_leaf": [int(i) for i in buffer.weight.get_prefix_sum_idx(np.array(masses))],
            "batch": [int(i) for i in indices],
            "weight": numbers(buffer[np.array(indices)].weight),
            "weight_raw": numbers((len(buffer) * probability[indices]) ** -BETA),
        }

    # Each stage first adds entries, at the largest priority so far, then sets priorities.
    stages = []
    for added, indices, priorities in [
        (13, range(13), [1.0, 0.5, 0.01, 3.0, 1e-4, 0.2, 0.7, 7.5, 0.05, 1.5, 0.9, 2.25, 0.3]),
        (7, [15, 16, 2], [0.6, 12.0, 0.4]),
        (4, [7, 19, 0, 9, 11], [0.02, 30.0, 4.0, 0.0, 1.1]),
        (0, [19], [0.25]),
    ]:
        for _ in range(added):
            buffer.add(transition)
        after_adding = [float(buffer.weight[i]) for i in range(len(buffer))]
        buffer.update_weight(np.array(indices), np.array(priorities))
        stages.append(
            {
                "added": added,
                "leaf_after_adding": after_adding,
                "indices": list(indices),
                "priorities": priorities,
                **reading(rng.randint(len(buffer), size=12)),
            }
        )
    return {"capacity": size, "alpha": ALPHA, "beta": BETA, "epsilon": 2.0**-23, "stages": stages}


def main(path):
    versions = {
        "stable_baselines3": version("stable_baselines3"),
        "tianshou": version("tianshou"),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    with open(path, "w") as file:
        json.dump({"versions": versions, "n_step": n_step(), "prioritised": prioritised()}, file)


main(sys.argv[1])
