"""Spaces of a batch as Gymnasium's, and its arrays in their shapes."""

import json
import os
from pathlib import Path

import numpy as np
from gymnasium import spaces

from brasa._brasa import Batch


def open_batch(scenario, settings, num_envs, split, apart, n_threads):
    """The native batch, and its description.

    ``scenario`` is a name, or the path of an experiment (``configs/iquitos-sac.toml``), whose section ``[scenario]`` counts.
    """
    if isinstance(scenario, os.PathLike) or scenario.endswith(".toml"):
        if settings is not None:
            raise ValueError("`settings` are for scenarios by name; an experiment has its own")
        text, origin = Path(scenario).read_text(encoding="utf-8"), str(scenario)
    else:
        text, origin = f"[scenario]\n{_toml(scenario)} = {_toml(settings or {})}\n", f"[scenario.{scenario}]"
    batch = Batch(text, origin, num_envs, split, apart, n_threads)
    return batch, json.loads(batch.describe())


def _toml(value):
    """A value of settings as TOML in one line."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    raise ValueError(f"`settings` must be numbers, texts, lists and dictionaries, got {value!r}")


class Form:
    """Shapes of observations, actions and masks of one environment, with or without an axis for agents."""

    def __init__(self, description):
        self.n_agents = description["n_agents"]
        #: Names of the components of an agent's observation.
        self.obs_names = description["obs"].get("names")
        #: Figures of a step.
        self.info_names = description["info"]
        self.n_actions = description["n_actions"]
        self._agents = () if self.n_agents == 1 else (self.n_agents,)
        action = description["action"]
        self._heads = np.asarray(action["heads"], dtype=np.int64) if action["kind"] == "choice" else None
        #: Whether actions are indices.
        self.is_choice = self._heads is not None
        self.obs_space = self._space(description["obs"])
        self.action_space = self._space(action)

    def _space(self, description):
        if description["kind"] == "box":
            low = np.array([-np.inf if x is None else x for x in description["low"]], dtype=np.float32)
            high = np.array([np.inf if x is None else x for x in description["high"]], dtype=np.float32)
            shape = self._agents + low.shape
            return spaces.Box(np.broadcast_to(low, shape).copy(), np.broadcast_to(high, shape).copy(), dtype=np.float32)
        heads = np.asarray(description["heads"], dtype=np.int64)
        if description["single"]:
            return spaces.Discrete(int(heads[0])) if not self._agents else spaces.MultiDiscrete(np.tile(heads, self.n_agents))
        return spaces.MultiDiscrete(np.broadcast_to(heads, self._agents + heads.shape).copy())

    def of_rows(self, array):
        """``[rows, ...]`` as ``[num_envs, (n_agents,) ...]``: a view."""
        return array.reshape((len(array) // self.n_agents, *self._agents, *array.shape[1:]))

    def mean_of_rows(self, rewards):
        """The mean reward of an environment's agents."""
        return rewards if not self._agents else rewards.reshape(-1, self.n_agents).mean(axis=1)

    def actions(self, actions, num_envs):
        """Actions of ``num_envs`` environments as ``[rows, width]`` of float32, checked."""
        shape = self.action_space.shape
        given = np.asarray(actions)
        if given.shape != (num_envs, *shape):
            raise ValueError(f"actions must have the shape {(num_envs, *shape)}, got {given.shape}")
        rows = given.reshape(num_envs * self.n_agents, -1)
        if self._heads is None:
            if not np.isfinite(rows).all():
                raise ValueError("actions must be numbers, got NaN or infinity")
        else:
            legal = (rows >= 0) & (rows < self._heads) & (rows == np.floor(rows))
            if not legal.all():
                row, head = np.argwhere(~legal)[0]
                raise ValueError(f"action {head} must be in 0..{self._heads[head]}, got {rows[row, head]}")
        return np.ascontiguousarray(rows, dtype=np.float32)
