"""A batch for Stable-Baselines3, whose vector environments are not Gymnasium's."""

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from brasa.spaces import Action, Form
from brasa.vector import VectorEnv

_Indices = None | int | Iterable[int]


class Sb3VecEnv(VecEnv):
    """The environments of a ``brasa.VectorEnv`` in the mode ``SAME_STEP``, for ``PPO("MlpPolicy", Sb3VecEnv(envs))``.

    Environments with several agents become as many: Stable-Baselines3 has one policy for all rows, each with its own reward. Masks are
    there for `MaskablePPO` of sb3-contrib.

    Every info has the figures of the step by name, as for ``VecMonitor(envs, info_keywords=...)``. Where an episode ended, it has
    ``terminal_observation``, ``TimeLimit.truncated``, and ``episode`` with its return and length.
    """

    def __init__(self, envs: VectorEnv) -> None:
        if not isinstance(envs, VectorEnv):
            raise ValueError(f"`envs` must be a brasa.VectorEnv, got {envs!r}")
        if envs.metadata["autoreset_mode"] != gym.vector.AutoresetMode.SAME_STEP:
            raise ValueError("`envs` must have the autoreset mode SAME_STEP")
        self.envs = envs
        form = envs.form
        self._n_agents = form.n_agents
        low, high = (bound.reshape(form.n_agents, -1)[0] for bound in (form.obs_space.low, form.obs_space.high))
        self._shape = low.shape
        super().__init__(envs.num_envs * form.n_agents, spaces.Box(low, high, dtype=np.float32), self._one(form))
        self._actions: npt.NDArray[Any] | None = None
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, dtype=int)

    @staticmethod
    def _one(form: Form) -> Action:
        """The action space of one agent."""
        space = form.action_space
        if form.n_agents == 1 or isinstance(space, spaces.Discrete):
            return space
        if isinstance(space, spaces.Box):
            return spaces.Box(space.low[0], space.high[0], dtype=np.float32)
        heads = space.nvec.reshape(form.n_agents, -1)[0]
        return spaces.Discrete(int(heads[0])) if space.nvec.ndim == 1 else spaces.MultiDiscrete(heads)

    def _rows(self, array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        # A copy: Stable-Baselines3 stores the observations of a step after the next one.
        return array.reshape(self.num_envs, *self._shape).copy()

    def reset(self) -> npt.NDArray[np.float32]:
        """Starts new episodes, with the first seed of ``seed`` if there is one."""
        seed = next((seed for seed in self._seeds if seed is not None), None)
        self._reset_seeds()
        obs, info = self.envs.reset(seed=seed)
        self._returns[:], self._lengths[:] = 0, 0
        self.reset_infos = self._infos(info)
        return self._rows(obs)

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keeps the actions until ``step_wait``."""
        self._actions = np.asarray(actions).reshape(self.envs.action_space.shape or ())

    def step_wait(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """One step with the actions of ``step_async``."""
        obs, reward, terminated, truncated, info = self.envs.step(self._actions)
        infos = self._infos(info)
        if self._n_agents > 1:
            reward = info["reward"].reshape(-1)
            terminated, truncated = terminated.repeat(self._n_agents), truncated.repeat(self._n_agents)
        ended = terminated | truncated
        self._returns += reward
        self._lengths += 1
        if ended.any():
            final = self._rows(self.envs.final_obs)
            for i in np.flatnonzero(ended):
                infos[i] |= {
                    "terminal_observation": final[i],
                    "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                    "episode": {"r": float(self._returns[i]), "l": int(self._lengths[i])},
                }
            self._returns[ended], self._lengths[ended] = 0, 0
        return self._rows(obs), reward.astype(np.float32), ended, infos

    def _infos(self, info: dict[str, Any]) -> list[dict[str, Any]]:
        """The figures of the step for each row: those of its environment."""
        names = [name for name in (*self.envs.info_names, "illegal_actions") if name in info]
        columns = [info[name].repeat(self._n_agents).tolist() for name in names]
        return [dict(zip(names, row)) for row in zip(*columns)] if names else [{} for _ in range(self.num_envs)]

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """``[rows, n_actions]``."""
        return self.envs.action_masks().reshape(self.num_envs, -1)

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: _Indices = None) -> list[Any]:
        """An attribute of the batch, for each of ``indices``."""
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: _Indices = None) -> None:
        """Not supported."""
        raise AttributeError("environments of a batch have no attributes of their own")

    def env_method(self, method_name: str, *method_args: Any, indices: _Indices = None, **method_kwargs: Any) -> list[Any]:
        """``action_masks``; others are not supported."""
        if method_name == "action_masks":
            return [self.action_masks()[i] for i in self._get_indices(indices)]
        raise AttributeError(f"environments of a batch have no method `{method_name}` of their own")

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: _Indices = None) -> list[bool]:
        """They are not."""
        return [False] * len(list(self._get_indices(indices)))

    def has_attr(self, attr_name: str) -> bool:
        """Whether ``get_attr`` has it."""
        return attr_name == "action_masks" and self.envs.form.n_actions > 0 or attr_name == "render_mode"

    def get_images(self) -> Sequence[Any]:
        """None: `brasa report` draws episodes."""
        return [None] * self.num_envs
