"""Environments for the tests of brasa-gym: spaces of every kind, masks, and every fault."""

import os
import signal
import sys
import threading
import time

import gymnasium
import numpy as np
from gymnasium import spaces


class Rooms(gymnasium.Env):
    """Observations of every kind in a `Dict`, two heads of actions with masks."""

    def __init__(self, mask=True):
        self.observation_space = spaces.Dict(
            {
                "walls": spaces.Box(-1.0, 1.0, (2, 2), np.float64),
                "count": spaces.Discrete(3, start=5),
                "bits": spaces.MultiBinary(2),
                "pair": spaces.Tuple((spaces.Discrete(2), spaces.MultiDiscrete([2, 3], start=[0, -1]))),
                "image": spaces.Box(0, 255, (2, 1, 3), np.uint8),
            }
        )
        self.action_space = spaces.MultiDiscrete([3, 2], start=[0, 4])
        self.with_mask = mask

    def look(self):
        rng = self.np_random
        obs = {
            "walls": rng.uniform(-1.0, 1.0, (2, 2)),
            "count": np.int64(rng.integers(5, 8)),
            "bits": rng.integers(0, 2, 2).astype(np.int8),
            "pair": (int(rng.integers(0, 2)), np.array([rng.integers(0, 2), rng.integers(-1, 2)])),
            "image": rng.integers(0, 256, (2, 1, 3)).astype(np.uint8),
        }
        # The first action of each head is always legal.
        self.mask = np.concatenate([[1], rng.integers(0, 2, 2), [1], rng.integers(0, 2, 1)]).astype(np.int8)
        return obs, {"action_mask": self.mask} if self.with_mask else {}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.look()

    def step(self, action):
        assert isinstance(action, np.ndarray) and action.dtype == np.int64 and self.action_space.contains(action)
        if self.with_mask:
            assert self.mask[action[0]] and self.mask[3 + action[1] - 4], f"{action} is illegal by {self.mask}"
        self.steps += 1
        obs, info = self.look()
        reward = float(action[0] - action[1])
        return obs, reward, bool(self.np_random.random() < 0.1), self.steps == 9, info


class Masked(gymnasium.Env):
    """Three actions, of which one is illegal; the mask is a method."""

    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(3, start=10)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.banned = int(self.np_random.integers(3))
        return self.banned, {}

    def action_masks(self):
        return [choice != self.banned for choice in range(3)]

    def step(self, action):
        assert type(action) is np.int64 and action - 10 != self.banned, f"{action} is illegal"
        reward = 1.0 if action - 10 == (self.banned + 1) % 3 else 0.0
        self.banned = int(self.np_random.integers(3))
        return self.banned, reward, bool(self.np_random.random() < 0.2), False, {}


class Parts(gymnasium.Env):
    """A `Dict` of actions, which come back as the observation."""

    def __init__(self, kind="discrete"):
        choices = {
            "discrete": {"a": spaces.Discrete(3, start=1), "b": spaces.MultiBinary(2), "c": spaces.MultiDiscrete([2, 4])},
            "boxes": {"x": spaces.Box(-1.0, 1.0, (2,)), "y": spaces.Box(0.0, 0.1, (1, 2), np.float64)},
            "mixed": {"a": spaces.Box(-1.0, 1.0, (2,)), "b": spaces.Discrete(3), "c": spaces.Discrete(2, start=4)},
            "integers": {"x": spaces.Box(0, 5, (2,), np.int64)},
            "unbounded": {"x": spaces.Box(-np.inf, np.inf, (1,)), "y": spaces.Box(0.0, 1.0, (1,))},
        }
        self.action_space = spaces.Dict(choices[kind])
        self.observation_space = spaces.Box(-10.0, 10.0, (spaces.flatdim(self.action_space),))

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(self.observation_space.shape, np.float32), {}

    def step(self, action):
        # Its own type check: shapes, dtypes and bounds.
        assert self.action_space.contains(action), f"{action} is not in {self.action_space}"
        return spaces.flatten(self.action_space, action).astype(np.float32), 1.0, False, False, {}


class Pictures(gymnasium.Env):
    """Images of bytes: pixel `i` after `t` steps is `37 i + 101 t` modulo 256. `returns` names the form in which they come back."""

    action_space = spaces.Discrete(2)

    def __init__(self, returns="bytes"):
        self.returns = returns
        image, row = spaces.Box(0, 255, (4, 3, 2), np.uint8), spaces.Box(0, 255, (24,), np.uint8)
        parts = spaces.Dict({"first": spaces.Box(0, 255, (4, 2), np.uint8), "last": spaces.Box(0, 255, (16,), np.uint8)})
        self.observation_space = {"a row": row, "parts": parts}.get(returns, image)

    def look(self):
        pixels = (37 * np.arange(24).reshape(4, 3, 2) + 101 * self.steps) % 256
        return {
            "bytes": pixels.astype(np.uint8),
            "integers": pixels,
            "whole floats": pixels.astype(np.float32),
            "halves": pixels + 0.5,
            "below": pixels - 256,
            "a row": pixels.astype(np.uint8).ravel(),
            "parts": {"first": pixels.astype(np.uint8).ravel()[:8].reshape(4, 2), "last": pixels.astype(np.uint8).ravel()[8:]},
        }[self.returns]

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.look(), {}

    def step(self, action):
        self.steps += 1
        return self.look(), 1.0, False, self.steps == 5, {}


class Worded(gymnasium.Env):
    observation_space = spaces.Dict({"mission": spaces.Text(10), "x": spaces.Box(0.0, 1.0, (1,))})
    action_space = spaces.Discrete(2)


class Locked(gymnasium.Env):
    """A counter that cannot be pickled."""

    observation_space = spaces.Box(0.0, 1000.0, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.lock = threading.Lock()

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.count = float(self.np_random.integers(100))
        return np.array([self.count], np.float32), {}

    def step(self, action):
        self.count += 1.0
        return np.array([self.count], np.float32), 1.0, False, False, {}


class Faulty(gymnasium.Env):
    """Does what `fault` says at the third step of its first episode after a reset with a seed of the batch."""

    action_space = spaces.Discrete(2)

    def __init__(self, fault="none", path=""):
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,))
        self.fault, self.path = fault, path
        print("made", flush=True)
        if fault == "make":
            raise ValueError("no such room")

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        if self.fault == "reset" and seed != 0:
            raise KeyError("lost")
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        obs, reward = np.zeros(2, np.float32), 1.0
        if self.steps == 3:
            if self.fault == "raise":
                raise RuntimeError("the door is stuck")
            if self.fault == "exit":
                print("last words", file=sys.stderr)
                sys.exit(3)
            if self.fault in ("stray", "huge"):
                import __main__

                # The sixth reply: made, mapped, reset, and three steps.
                huge = b"e" + (6).to_bytes(4, "little") + (1 << 62).to_bytes(8, "little")
                os.write(__main__.REPLIES, b"d" if self.fault == "stray" else huge)
            if self.fault in ("stray", "huge"):
                import __main__

                # The sixth reply: made, mapped, reset, and three steps.
                huge = b"e" + (6).to_bytes(4, "little") + (1 << 62).to_bytes(8, "little")
                os.write(__main__.REPLIES, b"d" if self.fault == "stray" else huge)
            if self.fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fault == "hang":
                time.sleep(1000)
            if self.fault == "spin":
                while True:
                    pass
            if self.fault == "nan_obs":
                obs[1] = np.nan
            if self.fault == "nan_reward":
                reward = float("nan")
            if self.fault == "reward_array":
                reward = np.ones(1)
            if self.fault == "reward_list":
                reward = [1.0, 2.0]
            if self.fault == "shape":
                obs = np.zeros(1, np.float32)
            if self.fault == "print":
                print("d" * 100_000)
                os.system("echo dddd")
            if self.fault == "truncate":
                return obs, reward, False, True, {}
        return obs, reward, False, False, {}


class Rendered(gymnasium.Env):
    """A pixel that moves by a column in each step of an episode of four steps. `fault` says what is wrong with its frames."""

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 10}
    observation_space = spaces.Box(0.0, 4.0, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, render_mode=None, fault="none"):
        self.render_mode, self.fault, self.size = render_mode, fault, (6, 5)
        if fault == "rate":
            self.metadata = {"render_fps": float("inf")}
        # Frames as no worker writes them: their sides do not fit their bytes, or there are too many bytes.
        if fault == "sides":
            self.lie((1 << 31).to_bytes(4, "little") * 2 + bytes(30))
        if fault == "bytes":
            self.lie(bytes(60_000_000))
        if fault == "empty":
            self.lie(b"")

    @staticmethod
    def lie(body):
        import __main__

        __main__.Worker.picture = lambda _: body

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.fault == "grows":
            self.size = (6, 5 + self.steps)
        return np.array([self.steps], np.float32), 1.0, self.steps == 4, False, {}

    def render(self):
        if self.render_mode != "rgb_array" or self.fault == "nothing":
            return None
        if self.fault == "raise":
            raise RuntimeError("no display")
        if self.fault == "floats":
            return np.zeros((5, 6, 3))
        if self.fault == "gray":
            return np.zeros((5, 6), np.uint8)
        if self.fault == "wide":
            return np.zeros((1, 5000, 3), np.uint8)
        frame = np.zeros((self.size[1], self.size[0], 3), np.uint8)
        frame[2, self.steps] = (255, 128, 0)
        return frame


class Scaled(gymnasium.Wrapper):
    """Rewards times a factor."""

    def __init__(self, env, factor=1.0):
        super().__init__(env)
        self.factor = factor

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward * self.factor, terminated, truncated, info


for name, entry in {
    "Rooms": Rooms,
    "Masked": Masked,
    "Parts": Parts,
    "Pictures": Pictures,
    "Worded": Worded,
    "Locked": Locked,
    "Faulty": Faulty,
    "Rendered": Rendered,
}.items():
    gymnasium.register(f"brasa/{name}-v0", entry_point=entry)
