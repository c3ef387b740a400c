"""Policies of runs."""

import json
import os

import numpy as np

from brasa._brasa import Policy as Native
from brasa.spaces import Form


class Policy:
    """The policy in the latest checkpoint of a run; it acts without exploration, on observations as environments give them."""

    def __init__(self, run):
        self._native = Native(os.fspath(run))
        self.form = Form(json.loads(self._native.describe()))
        #: Spaces of one environment.
        self.observation_space = self.form.obs_space
        self.action_space = self.form.action_space

    def act(self, obs, mask=None):
        """Actions for observations of one environment, or of several (a first axis more); masks have the shape of actions' scores."""
        obs = np.asarray(obs, dtype=np.float32)
        shape = self.observation_space.shape
        if obs.shape[-len(shape):] != shape or obs.ndim > len(shape) + 1:
            raise ValueError(f"observations must have the shape {shape} or (n, {str(shape)[1:]}, got {obs.shape}")
        one = obs.ndim == len(shape)
        rows = np.ascontiguousarray(obs.reshape(-1, shape[-1]))
        if mask is not None:
            mask = np.ascontiguousarray(np.asarray(mask, dtype=np.float32).reshape(len(rows), -1))
        actions = self._native.act(rows, mask).reshape((-1, *self.action_space.shape))
        if self.form.is_choice:
            actions = actions.astype(np.int64)
        return actions[0] if one else actions

    def predict(self, observation, state=None, episode_start=None, deterministic=True, action_masks=None):
        """As in Stable-Baselines3: ``(actions, state)``."""
        if not deterministic:
            raise ValueError("`deterministic` must be True: policies of runs act greedily")
        return self.act(observation, action_masks), state


def load(run):
    """The policy of a run directory."""
    return Policy(run)
