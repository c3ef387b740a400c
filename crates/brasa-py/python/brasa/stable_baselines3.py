"""A batch for Stable-Baselines3, whose vector environments are not Gymnasium's."""

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from brasa.vector import VectorEnv


class Sb3VecEnv(VecEnv):
    """The environments of a ``brasa.VectorEnv`` in the mode ``SAME_STEP``, for ``PPO("MlpPolicy", Sb3VecEnv(envs))``.

    Environments with several agents become as many: Stable-Baselines3 has one policy for all rows, each with its own reward. Masks are
    there for `MaskablePPO` of sb3-contrib. Every info has ``terminal_observation`` and ``TimeLimit.truncated`` where an episode ended, and
    ``episode`` with its return and length.
    """

    def __init__(self, envs: VectorEnv):
        if envs._next_step:
            raise ValueError("`envs` must have the autoreset mode SAME_STEP")
        self.envs = envs
        form = envs.form
        self._n_agents = form.n_agents
        low, high = (bound.reshape(form.n_agents, -1)[0] for bound in (form.obs_space.low, form.obs_space.high))
        self._shape = low.shape
        super().__init__(envs.num_envs * form.n_agents, spaces.Box(low, high, dtype=np.float32), self._one(form))
        self._actions = None
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, dtype=int)

    @staticmethod
    def _one(form):
        """The action space of one agent."""
        if form.n_agents == 1:
            return form.action_space
        if isinstance(form.action_space, spaces.Box):
            return spaces.Box(form.action_space.low[0], form.action_space.high[0], dtype=np.float32)
        heads = form.action_space.nvec.reshape(form.n_agents, -1)[0]
        return spaces.Discrete(int(heads[0])) if form.action_space.nvec.ndim == 1 else spaces.MultiDiscrete(heads)

    def _rows(self, array):
        # A copy: Stable-Baselines3 stores the observations of a step after the next one.
        return array.reshape(self.num_envs, *self._shape).copy()

    def reset(self):
        seed = next((seed for seed in self._seeds if seed is not None), None)
        self._reset_seeds()
        obs, _ = self.envs.reset(seed=seed)
        self._returns[:], self._lengths[:] = 0, 0
        return self._rows(obs)

    def step_async(self, actions):
        self._actions = np.asarray(actions).reshape(self.envs.action_space.shape)

    def step_wait(self):
        obs, reward, terminated, truncated, info = self.envs.step(self._actions)
        if self._n_agents > 1:
            reward = info["reward"].reshape(-1)
            terminated, truncated = terminated.repeat(self._n_agents), truncated.repeat(self._n_agents)
        ended = terminated | truncated
        self._returns += reward
        self._lengths += 1
        infos = [{} for _ in range(self.num_envs)]
        if ended.any():
            final = self._rows(self.envs._final_obs)
            for i in np.flatnonzero(ended):
                infos[i] = {
                    "terminal_observation": final[i],
                    "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                    "episode": {"r": float(self._returns[i]), "l": int(self._lengths[i])},
                }
            self._returns[ended], self._lengths[ended] = 0, 0
        return self._rows(obs), reward.astype(np.float32), ended, infos

    def action_masks(self):
        """``[rows, n_actions]``."""
        return self.envs.action_masks().reshape(self.num_envs, -1)

    def close(self):
        self.envs.close()

    def get_attr(self, attr_name, indices=None):
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name, value, indices=None):
        raise AttributeError("environments of a batch have no attributes of their own")

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        if method_name == "action_masks":
            return [self.action_masks()[i] for i in self._get_indices(indices)]
        raise AttributeError(f"environments of a batch have no method `{method_name}` of their own")

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * len(list(self._get_indices(indices)))

    def has_attr(self, attr_name):
        return attr_name == "action_masks" and self.envs.form.n_actions > 0 or attr_name == "render_mode"
