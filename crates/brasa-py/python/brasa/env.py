"""One environment."""

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from brasa.batch import Batch, Exclusive
from brasa.checked import no_rendering, options_of_reset, seed_number, whether_replaced
from brasa.source import Scenario
from brasa.spaces import Form


class Env(gym.Env[npt.NDArray[Any], Any]):
    """One environment of a scenario; arguments as for ``VectorEnv``.

    Several environments in one ``VectorEnv`` are much faster than several of these: a step of one costs mostly Python.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario,
        *,
        settings: Mapping[str, Any] | None = None,
        split: Literal["training", "evaluation"] = "training",
        illegal_actions: Literal["replace", "error"] = "replace",
        render_mode: None = None,
    ) -> None:
        no_rendering(render_mode)
        self.render_mode = None
        self._replaces = whether_replaced(illegal_actions)
        self._batch = Batch(scenario, settings, 1, split, False, 1)
        self.form: Form = self._batch.form
        self.observation_space: gym.Space[npt.NDArray[Any]] = self.form.obs_space
        self.action_space: gym.Space[Any] = self.form.action_space
        # Whether the batch is at the start of an episode already: it starts the next one by itself.
        self._ended = False
        self._started = False
        # Whether the latest observation is that of a reset.
        self._is_first = True
        self._exclusive = Exclusive()

    @property
    def info_names(self) -> list[str]:
        """The figures of the step in ``info``."""
        return self.form.info_names

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Starts the first episode of ``seed``, or without one the next episode."""
        options_of_reset(options)
        seed = seed_number(seed)
        with self._exclusive:
            super().reset(seed=seed)
            if seed is not None or not self._started:
                self._batch.native.reset(int(self.np_random.integers(2**63)) if seed is None else seed)
            elif not self._ended:
                self._batch.native.restart(0)
            self._ended, self._started, self._is_first = False, True, True
            return self._batch.obs[0].copy(), self._info()

    def step(self, action: Any) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """One step. An action that the mask forbids is replaced, or an error: ``illegal_actions``."""
        with self._exclusive:
            if not self._started or self._ended:
                raise gym.error.ResetNeeded("call reset before step, and after the end of an episode")
            batch = self._batch
            actions, illegal = self.form.legal_actions([action], batch.mask, self._replaces)
            batch.native.step(actions, None)
            terminated, truncated = bool(batch.terminated[0]), bool(batch.truncated[0])
            self._ended, self._is_first = terminated or truncated, False
            info: dict[str, Any] = dict(zip(self.info_names, batch.info[0].tolist()))
            if self.form.n_agents > 1:
                info["reward"] = batch.reward.copy()
            if self.form.n_actions:
                info["illegal_actions"] = int(illegal.sum())
            return batch.final_obs[0].copy(), float(batch.mean_reward()[0]), terminated, truncated, info | self._info()

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._mask().copy()} if self.form.n_actions else {}

    def _mask(self) -> npt.NDArray[np.int8]:
        own: npt.NDArray[np.int8] = (self._batch.mask if self._is_first else self._batch.final_mask)[0]
        return own

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The mask of the latest observation: ``[(n_agents,) n_actions]``."""
        if not self.form.n_actions:
            raise AttributeError("this environment has no masks")
        return self._mask().astype(bool)
