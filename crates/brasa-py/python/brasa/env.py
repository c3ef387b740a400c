"""One environment."""

import gymnasium as gym
import numpy as np

from brasa.spaces import Form, open_batch


class Env(gym.Env):
    """One environment of a scenario; arguments as for ``VectorEnv``.

    Several environments in one ``VectorEnv`` are much faster than several of these: a step of one costs mostly Python.
    """

    metadata = {"render_modes": []}

    def __init__(self, scenario, *, settings=None, split="training", render_mode=None):
        if render_mode is not None:
            raise ValueError(f"`render_mode` must be None, got {render_mode!r}: reports draw episodes")
        self.render_mode = None
        self._batch, description = open_batch(scenario, settings, 1, split, False, 1)
        self.form = Form(description)
        self.observation_space = self.form.obs_space
        self.action_space = self.form.action_space
        arrays = self._batch.arrays()
        rows = {name: self.form.of_rows(arrays[name]) for name in ("obs", "final_obs", "mask", "final_mask")}
        self._obs, self._final_obs = rows["obs"], rows["final_obs"]
        self._masks = {False: rows["mask"], True: rows["final_mask"]}
        self._arrays = arrays
        # Whether the batch is at the start of an episode already: it starts the next one by itself.
        self._ended = False
        self._started = False
        # Whether the latest observation is that of a reset.
        self._is_first = True

    @property
    def info_names(self):
        """The figures of a step in ``info``."""
        return self.form.info_names

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None or not self._started:
            self._batch.reset(int(self.np_random.integers(2**63)) if seed is None else int(seed))
        elif not self._ended:
            self._batch.restart(0)
        self._ended, self._started, self._is_first = False, True, True
        return self._obs[0].copy(), self._info(False)

    def step(self, action):
        if not self._started or self._ended:
            raise gym.error.ResetNeeded("call reset before step, and after the end of an episode")
        self._batch.step(self.form.actions(np.asarray(action)[np.newaxis], 1), None)
        terminated, truncated = bool(self._arrays["terminated"][0]), bool(self._arrays["truncated"][0])
        self._ended, self._is_first = terminated or truncated, False
        info = {name: float(x) for name, x in zip(self.info_names, self._arrays["info"][0])}
        if self.form.n_agents > 1:
            info["reward"] = self._arrays["reward"].copy()
        reward = float(self.form.mean_of_rows(self._arrays["reward"])[0])
        return self._final_obs[0].copy(), reward, terminated, truncated, info | self._info(True)

    def _info(self, final):
        return {"action_mask": self._masks[final][0].copy()} if self.form.n_actions else {}

    def action_masks(self):
        """The mask of the latest observation: ``[(n_agents,) n_actions]``."""
        if not self.form.n_actions:
            raise AttributeError("this environment has no masks")
        return self._masks[not self._is_first][0].astype(bool)
