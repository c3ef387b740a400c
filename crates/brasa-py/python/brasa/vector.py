"""Environments that step together."""

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from brasa.batch import Batch, Exclusive
from brasa.checked import count, no_rendering, options_of_reset, seed_number, whether_replaced
from brasa.source import Scenario
from brasa.spaces import Form

_Floats = npt.NDArray[np.float32]
_Flags = npt.NDArray[np.bool_]
_Results = tuple[_Floats, _Floats, _Flags, _Flags, dict[str, Any]]


class VectorEnv(gym.vector.VectorEnv[_Floats, Any, npt.NDArray[Any]]):
    """Environments of a scenario that step together, without Python's lock.

    ``scenario``: a name (``brasa.scenarios()``), with its ``settings`` as a dictionary, or the path of an experiment.
    ``split``: ``"training"`` or ``"evaluation"``, which have different seeds, and data where the scenario divides them.
    ``autoreset_mode``: ``SAME_STEP`` (the default, and the faster one) or ``NEXT_STEP``, where every environment is stepped by itself.
    ``illegal_actions``: ``"replace"`` makes a choice that the mask forbids the first one that it allows, and counts it in
    ``info["illegal_actions"]``; ``"error"`` is a ``ValueError``.
    ``copy``: whether each call returns new arrays. Without, they are the same arrays, which the next call rewrites.
    ``n_threads``: of one batch in the mode ``SAME_STEP``; chosen by measurement by default.

    Environments with several agents have an axis of agents after that of environments in observations, actions and masks. Their reward is
    the mean over agents; ``info["reward"]`` has those of all.

    ``info`` has ``action_mask`` where the scenario has masks (1 for legal actions) and the figures of the step by name
    (``info_names``). Where an episode ended, ``final_obs`` and ``final_info`` are as Gymnasium defines them.

    One thread at a time may use it. ``copy.deepcopy`` and ``pickle`` keep its state.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(
        self,
        scenario: Scenario,
        num_envs: int = 1,
        *,
        settings: Mapping[str, Any] | None = None,
        split: Literal["training", "evaluation"] = "training",
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
        illegal_actions: Literal["replace", "error"] = "replace",
        copy: bool = True,
        n_threads: int | None = None,
        render_mode: None = None,
    ) -> None:
        mode = AutoresetMode(autoreset_mode)
        if mode not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
            raise ValueError(f"`autoreset_mode` must be SAME_STEP or NEXT_STEP, got {mode}")
        no_rendering(render_mode)
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        self.num_envs = count("num_envs", num_envs)
        self.render_mode = None
        self._replaces = whether_replaced(illegal_actions)
        self._next_step = mode == AutoresetMode.NEXT_STEP
        self._copy = bool(copy)
        threads = None if n_threads is None else count("n_threads", n_threads)
        self._batch = Batch(scenario, settings, self.num_envs, split, self._next_step, threads)
        self.form: Form = self._batch.form
        self.single_observation_space = self.form.obs_space
        self.single_action_space = self.form.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._held: _Flags = np.zeros(self.num_envs, dtype=bool)
        self._out = np.zeros_like(self._batch.obs)
        self._started = False
        self._exclusive = Exclusive()

    @property
    def info_names(self) -> list[str]:
        """The figures of a step in ``info``."""
        return self.form.info_names

    @property
    def final_obs(self) -> _Floats:
        """The observations at the end of the last step, before ended environments began again: an array that the next call rewrites."""
        return self._batch.final_obs

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Floats, dict[str, Any]]:
        """Starts new episodes. A list of seeds is refused: environments get theirs from one seed and their index."""
        options_of_reset(options)
        number = seed_number(seed)
        with self._exclusive:
            super().reset(seed=number)
            # Without a seed, the episodes of the next one of the generator.
            self._batch.native.reset(int(self.np_random.integers(2**63)) if number is None else number)
            self._held[:] = False
            self._started = True
            return self._given(self._batch.obs), self._step_info(self._batch.mask, with_figures=False)

    def step(self, actions: Any) -> _Results:
        """One step of all environments; in the mode ``NEXT_STEP``, ended ones begin an episode instead."""
        with self._exclusive:
            if not self._started:
                raise gym.error.ResetNeeded("call reset before step")
            batch, held = self._batch, self._held if self._next_step else None
            checked, illegal = self.form.legal_actions(actions, batch.mask, self._replaces, held)
            batch.native.step(checked, held)
            if self._next_step:
                return self._of_next_step(illegal)
            ended = batch.terminated | batch.truncated
            info = self._step_info(batch.mask, illegal=illegal)
            if ended.any():
                # What belongs to the step, not to the new episode, is in `final_info` too.
                final = self._figures(ended)
                if self.form.n_actions:
                    final |= {"action_mask": batch.final_mask.copy(), "_action_mask": ended}
                    final |= {"illegal_actions": illegal, "_illegal_actions": ended}
                info["final_obs"] = _objects(batch.final_obs, ended)
                info["_final_obs"] = ended
                info["final_info"] = final
                info["_final_info"] = ended
            reward = batch.mean_reward()
            return self._given(batch.obs), self._given(reward), self._given(batch.terminated), self._given(batch.truncated), info

    def _of_next_step(self, illegal: npt.NDArray[np.intp]) -> _Results:
        # An environment whose episode ended in the last step was not stepped: its `obs` is the first one of the new episode.
        batch, begins = self._batch, self._held.copy()
        ended = (batch.terminated | batch.truncated) & ~begins
        shape = (-1,) + (1,) * (batch.obs.ndim - 1)
        np.copyto(self._out, np.where(ended.reshape(shape), batch.final_obs, batch.obs))
        mask = np.where(ended.reshape(shape), batch.final_mask, batch.mask) if self.form.n_actions else batch.mask
        reward = batch.mean_reward() * ~begins
        info = self._step_info(mask, ~begins, illegal=illegal)
        terminated, truncated = batch.terminated & ~begins, batch.truncated & ~begins
        self._held = ended
        return self._given(self._out), reward, terminated, truncated, info

    def _given(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array.copy() if self._copy else array

    def _figures(self, where: _Flags) -> dict[str, Any]:
        info: dict[str, Any] = {}
        for i, name in enumerate(self.info_names):
            info[name], info[f"_{name}"] = self._batch.info[:, i].copy(), where
        return info

    def _step_info(
        self,
        mask: npt.NDArray[np.int8],
        where: _Flags | None = None,
        with_figures: bool = True,
        illegal: npt.NDArray[np.intp] | None = None,
    ) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, dtype=bool)
        where = everywhere if where is None else where
        info = self._figures(where) if with_figures else {}
        if with_figures and self.form.n_agents > 1:
            info["reward"], info["_reward"] = self._batch.reward.reshape(self.num_envs, -1).copy(), everywhere
        if self.form.n_actions:
            info["action_mask"], info["_action_mask"] = mask.copy(), everywhere
            if illegal is not None:
                info["illegal_actions"], info["_illegal_actions"] = illegal, where
        return info

    def action_masks(self) -> _Flags:
        """The masks of the latest observations, for programs that ask for them: ``[num_envs, (n_agents,) n_actions]``."""
        if not self.form.n_actions:
            raise AttributeError("these environments have no masks")
        return self._batch.mask.astype(bool)


def _objects(rows: _Floats, where: _Flags) -> npt.NDArray[np.object_]:
    """An array of arrays, ``None`` where there is none."""
    objects = np.full(len(rows), None, dtype=object)
    for i in np.flatnonzero(where):
        objects[i] = rows[i].copy()
    return objects
