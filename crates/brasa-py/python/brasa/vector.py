"""Environments that step together."""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from brasa.spaces import Form, open_batch


class VectorEnv(gym.vector.VectorEnv):
    """Environments of a scenario that step together, without Python's lock.

    ``scenario``: a name (``brasa.scenarios()``), with its ``settings`` as a dictionary, or the path of an experiment.
    ``split``: ``"training"`` or ``"evaluation"``, which have different seeds, and data where the scenario divides them.
    ``autoreset_mode``: ``SAME_STEP`` (the default, and the faster one) or ``NEXT_STEP``, where every environment is stepped by itself.
    ``copy``: whether each call returns new arrays. Without, they are the same arrays, which the next call rewrites.
    ``n_threads``: of one batch in the mode ``SAME_STEP``; chosen by measurement by default.

    Environments with several agents have an axis of agents after that of environments in observations, actions and masks. Their reward is
    the mean over agents; ``info["reward"]`` has those of all.

    ``info`` has ``action_mask`` where the scenario has masks (1 for legal actions) and the figures of the step by name
    (``info_names``). Where an episode ended, ``final_obs`` and ``final_info`` are as Gymnasium defines them.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(
        self,
        scenario,
        num_envs=1,
        *,
        settings=None,
        split="training",
        autoreset_mode=AutoresetMode.SAME_STEP,
        copy=True,
        n_threads=None,
    ):
        mode = AutoresetMode(autoreset_mode)
        if mode not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
            raise ValueError(f"`autoreset_mode` must be SAME_STEP or NEXT_STEP, got {mode}")
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        self.num_envs = num_envs
        self.render_mode = None
        self._next_step = mode == AutoresetMode.NEXT_STEP
        self._copy = copy
        self._batch, description = open_batch(scenario, settings, num_envs, split, self._next_step, n_threads)
        self.form = Form(description)
        self.single_observation_space = self.form.obs_space
        self.single_action_space = self.form.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        arrays = self._batch.arrays()
        rows = {name: self.form.of_rows(arrays[name]) for name in ("obs", "final_obs", "mask", "final_mask")}
        self._obs, self._final_obs = rows["obs"], rows["final_obs"]
        self._mask, self._final_mask = rows["mask"], rows["final_mask"]
        # All agents of an environment end together.
        n_agents = self.form.n_agents
        self._terminated = arrays["terminated"][::n_agents]
        self._truncated = arrays["truncated"][::n_agents]
        self._reward, self._info = arrays["reward"], arrays["info"]
        self._held = np.zeros(num_envs, dtype=bool)
        self._out = np.zeros_like(self._obs)
        self._started = False

    @property
    def info_names(self):
        """The figures of a step in ``info``."""
        return self.form.info_names

    def reset(self, *, seed=None, options=None):
        """Starts new episodes. A list of seeds is refused: environments get theirs from one seed and their index."""
        if options and options.get("reset_mask") is not None:
            raise ValueError("`options[\"reset_mask\"]` is not supported: ended environments start again by themselves")
        if seed is not None and not isinstance(seed, (int, np.integer)):
            raise ValueError(f"`seed` must be one number, got {seed!r}")
        super().reset(seed=seed)
        # Without a seed, the episodes of the next one of the generator.
        self._batch.reset(int(self.np_random.integers(2**63)) if seed is None else int(seed))
        self._held[:] = False
        self._started = True
        return self._given(self._obs), self._step_info(self._mask, with_figures=False)

    def step(self, actions):
        if not self._started:
            raise gym.error.ResetNeeded("call reset before step")
        self._batch.step(self.form.actions(actions, self.num_envs), self._held if self._next_step else None)
        if self._next_step:
            return self._of_next_step()
        ended = self._terminated | self._truncated
        info = self._step_info(self._mask)
        if ended.any():
            # What belongs to the step, not to the new episode, is in `final_info` too.
            final = self._figures(ended)
            if self.form.n_actions:
                final |= {"action_mask": self._final_mask.copy(), "_action_mask": ended}
            info["final_obs"] = _objects(self._final_obs, ended)
            info["_final_obs"] = ended
            info["final_info"] = final
            info["_final_info"] = ended
        return self._results(self._obs, info)

    def _of_next_step(self):
        # An environment whose episode ended in the last step was not stepped: its `obs` is the first one of the new episode.
        begins, ended = self._held.copy(), (self._terminated | self._truncated) & ~self._held
        shape = (-1,) + (1,) * (self._obs.ndim - 1)
        np.copyto(self._out, np.where(ended.reshape(shape), self._final_obs, self._obs))
        mask = np.where(ended.reshape(shape), self._final_mask, self._mask) if self.form.n_actions else self._mask
        reward = self.form.mean_of_rows(self._reward) * ~begins
        info = self._step_info(mask, ~begins)
        terminated, truncated = self._terminated & ~begins, self._truncated & ~begins
        self._held = ended
        return self._given(self._out), reward, terminated, truncated, info

    def _results(self, obs, info):
        reward = self.form.mean_of_rows(self._reward)
        return self._given(obs), self._given(reward), self._given(self._terminated), self._given(self._truncated), info

    def _given(self, array):
        return array.copy() if self._copy else array

    def _figures(self, where):
        info = {}
        for i, name in enumerate(self.info_names):
            info[name], info[f"_{name}"] = self._info[:, i].copy(), where
        return info

    def _step_info(self, mask, where=None, with_figures=True):
        everywhere = np.ones(self.num_envs, dtype=bool)
        info = self._figures(everywhere if where is None else where) if with_figures else {}
        if with_figures and self.form.n_agents > 1:
            info["reward"], info["_reward"] = self._reward.reshape(self.num_envs, -1).copy(), everywhere
        if self.form.n_actions:
            info["action_mask"], info["_action_mask"] = mask.copy(), everywhere
        return info

    def action_masks(self):
        """The masks of the latest observations, for programs that ask for them: ``[num_envs, (n_agents,) n_actions]``."""
        if not self.form.n_actions:
            raise AttributeError("these environments have no masks")
        return self._mask.astype(bool)


def _objects(rows, where):
    """An array of arrays, ``None`` where there is none."""
    objects = np.full(len(rows), None, dtype=object)
    for i in np.flatnonzero(where):
        objects[i] = rows[i].copy()
    return objects
