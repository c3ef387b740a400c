"""Records trajectories of classic control environments of Gymnasium, for the golden tests of `brasa-classic`.

Run it from the root of the repository with a Python that has `gymnasium`:

    python scripts/record_gymnasium.py crates/brasa-classic/tests/data/gymnasium.json

The environments are taken without their time limit. Initial states are float64, because Gymnasium keeps
its state so; observations are what Gymnasium returns, float32 written without loss.
"""

import json
import platform
import sys

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import (
    AcrobotEnv,
    CartPoleEnv,
    Continuous_MountainCarEnv,
    MountainCarEnv,
    PendulumEnv,
)


def record(env, name, state, policy, max_steps):
    """Plays one episode from `state` (float64) and keeps everything a replay can be compared with."""
    env.reset(seed=0)
    env.unwrapped.state = np.array(state, dtype=np.float64)
    episode = {
        "name": name,
        "initial_state": [float(x) for x in state],
        "actions": [],
        "observations": [],
        "rewards": [],
        "terminated": [],
    }
    for step in range(max_steps):
        action = policy(step, np.array(env.unwrapped.state))
        observation, reward, terminated, _, _ = env.step(action)
        episode["actions"].append(float(np.asarray(action).reshape(-1)[0]))
        episode["observations"].append([float(x) for x in observation])
        episode["rewards"].append(float(reward))
        episode["terminated"].append(bool(terminated))
        if terminated:
            break
    return episode


def cartpole():
    """Random, constant and balancing play; all but the last end by the rules."""
    rng = np.random.default_rng(1)
    env = CartPoleEnv()
    start = lambda: rng.uniform(-0.05, 0.05, size=4)
    # A hand-made feedback that keeps the pole up for long.
    balance = lambda _, s: int(s[2] + 0.4 * s[3] + 0.05 * s[0] + 0.1 * s[1] > 0)
    return [
        record(env, "random actions", start(), lambda *_: int(rng.integers(2)), 500),
        record(env, "other random actions", start(), lambda *_: int(rng.integers(2)), 500),
        record(env, "always left", start(), lambda *_: 0, 500),
        record(env, "always right", start(), lambda *_: 1, 500),
        record(env, "leaves the track", [2.35, 1.5, 0.0, 0.0], balance, 500),
        record(env, "balanced", start(), balance, 300),
    ]


def pendulum():
    """Torques inside, at and outside the limits of 2 Nm, from all quarters of the circle."""
    rng = np.random.default_rng(2)
    env = PendulumEnv()
    start = lambda: rng.uniform([-np.pi, -1.0], [np.pi, 1.0])
    draw = lambda limit: (lambda *_: np.array([rng.uniform(-limit, limit)], dtype=np.float32))
    constant = lambda torque: (lambda *_: np.array([torque], dtype=np.float32))
    # Pumps energy in, so that the speed limit and several turns are reached.
    pump = lambda _, s: np.array([2.0 if s[1] >= 0 else -2.0], dtype=np.float32)
    return [
        record(env, "random torques", start(), draw(2.0), 200),
        record(env, "torques beyond the limits", start(), draw(6.0), 200),
        record(env, "constant torque beyond the limit", start(), constant(-3.5), 100),
        record(env, "pumped into turning", start(), pump, 200),
        record(env, "no torque", [3.0, 0.5], constant(0.0), 100),
    ]


def mountain_car():
    """Random pushes, and pushes along the motion, which reach the goal."""
    rng = np.random.default_rng(3)
    env = MountainCarEnv()
    along = lambda _, s: 2 if s[1] >= 0 else 0
    return [
        record(env, "random pushes", [-0.5, 0.0], lambda *_: int(rng.integers(3)), 150),
        record(env, "along the motion", [rng.uniform(-0.6, -0.4), 0.0], along, 300),
        record(env, "into the left wall", [-1.1, -0.06], lambda *_: 0, 60),
    ]


def mountain_car_continuous():
    """Forces inside and beyond the limits, and forces along the motion, which reach the goal."""
    rng = np.random.default_rng(4)
    env = Continuous_MountainCarEnv()
    draw = lambda limit: (lambda *_: np.array([rng.uniform(-limit, limit)], dtype=np.float32))
    along = lambda _, s: np.array([0.9 if s[1] >= 0 else -0.9], dtype=np.float32)
    return [
        record(env, "random forces", [-0.5, 0.0], draw(1.0), 150),
        record(env, "forces beyond the limits", [rng.uniform(-0.6, -0.4), 0.0], draw(3.0), 150),
        record(env, "along the motion", [rng.uniform(-0.6, -0.4), 0.0], along, 300),
    ]


def acrobot():
    """Random torques, and torques along the motion of the second link, which reach the goal."""
    rng = np.random.default_rng(5)
    env = AcrobotEnv()
    start = lambda: rng.uniform(-0.1, 0.1, size=4)
    return [
        record(env, "random torques", start(), lambda *_: int(rng.integers(3)), 100),
        record(env, "along the motion", start(), lambda _, s: 2 if s[3] >= 0 else 0, 300),
        record(env, "fast", [3.0, -2.0, 12.0, -28.0], lambda *_: int(rng.integers(3)), 20),
    ]


def main():
    path = sys.argv[1]
    data = {
        "recorded_with": {
            "gymnasium": gymnasium.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "cartpole": cartpole(),
        "pendulum": pendulum(),
        "mountain_car": mountain_car(),
        "mountain_car_continuous": mountain_car_continuous(),
        "acrobot": acrobot(),
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, separators=(",", ":"))
        file.write("\n")
    for name in list(data)[1:]:
        for episode in data[name]:
            print(f"{name}: {episode['name']}: {len(episode['rewards'])} steps, return {sum(episode['rewards']):.3f}")


if __name__ == "__main__":
    main()
