"""Spaces of a batch as Gymnasium's, and its arrays in their shapes."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from brasa.checked import numbers, rows

Action = spaces.Box | spaces.Discrete | spaces.MultiDiscrete


class Form:
    """Shapes of observations, actions and masks of one environment, with or without an axis for agents."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.n_agents: int = description["n_agents"]
        #: Names of the components of an agent's observation.
        self.obs_names: list[str] | None = description["obs"].get("names")
        #: Figures of a step.
        self.info_names: list[str] = description["info"]
        #: Flags of a mask, 0 without masks.
        self.n_actions: int = description["n_actions"]
        self._agents: tuple[int, ...] = () if self.n_agents == 1 else (self.n_agents,)
        action = description["action"]
        self._is_single: bool = action.get("single", False)
        #: The number of actions of each choice of an agent; none if actions are numbers.
        self.heads: list[int] = action["heads"] if action["kind"] == "choice" else []
        self.obs_space: spaces.Box = self._box(description["obs"])
        self.action_space: Action = self._choices() if self.heads else self._box(action)

    @property
    def is_choice(self) -> bool:
        """Whether actions are indices."""
        return bool(self.heads)

    def _box(self, description: dict[str, Any]) -> spaces.Box:
        if description["kind"] == "box":
            low = np.array([-np.inf if x is None else x for x in description["low"]], dtype=np.float32)
            high = np.array([np.inf if x is None else x for x in description["high"]], dtype=np.float32)
        else:
            # Indices as numbers.
            high = np.array(description["heads"], dtype=np.float32) - 1
            low = np.zeros_like(high)
        shape = self._agents + low.shape
        return spaces.Box(np.broadcast_to(low, shape).copy(), np.broadcast_to(high, shape).copy(), dtype=np.float32)

    def _choices(self) -> Action:
        heads = np.asarray(self.heads, dtype=np.int64)
        if self._is_single:
            return spaces.Discrete(int(heads[0])) if not self._agents else spaces.MultiDiscrete(np.tile(heads, self.n_agents))
        return spaces.MultiDiscrete(np.broadcast_to(heads, self._agents + heads.shape).copy())

    @property
    def obs_shape(self) -> tuple[int, ...]:
        """Of one environment."""
        return self.obs_space.shape

    @property
    def action_shape(self) -> tuple[int, ...]:
        """Of one environment."""
        return self.action_space.shape or ()

    @property
    def mask_shape(self) -> tuple[int, ...]:
        """Of one environment."""
        return (*self._agents, self.n_actions)

    def of_rows(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """``[rows, ...]`` as ``[num_envs, (n_agents,) ...]``: a view."""
        return array.reshape((len(array) // self.n_agents, *self._agents, *array.shape[1:]))

    def actions(self, actions: Any, num_envs: int) -> npt.NDArray[np.float32]:
        """Actions of ``num_envs`` environments as ``[rows, width]``, checked."""
        given, shape = numbers("actions", actions), (num_envs, *self.action_shape)
        if given.shape != shape:
            raise ValueError(f"actions must have the shape {shape}, got {given.shape}")
        checked = rows(given, num_envs * self.n_agents)
        if not self.is_choice:
            if not np.isfinite(checked).all():
                raise ValueError("actions must be numbers, got NaN or infinity")
        else:
            legal = (checked >= 0) & (checked < self.heads) & (checked == np.floor(checked))
            if not legal.all():
                row, head = np.argwhere(~legal)[0]
                raise ValueError(f"action {head} must be in 0..{self.heads[head]}, got {checked[row, head]}")
        return checked

    def legal_actions(
        self,
        actions: Any,
        mask: npt.NDArray[np.int8],
        replaces: bool,
        held: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.intp]]:
        """``actions`` for environments with ``mask``, and the number of forbidden choices of each environment that is not ``held``.

        Such a choice becomes the first one that its mask allows; without ``replaces`` it is an error.
        """
        checked = self.actions(actions, len(mask))
        illegal = np.zeros(checked.shape, dtype=bool)
        if self.n_actions:
            flags, first = mask.reshape(len(checked), -1), 0
            legal = checked.copy()
            for head, n in enumerate(self.heads):
                own = flags[:, first : first + n]
                illegal[:, head] = own[np.arange(len(own)), checked[:, head].astype(np.int64)] == 0
                np.copyto(legal[:, head], own.argmax(axis=1), where=illegal[:, head], casting="unsafe")
                first += n
            checked = legal
            if held is not None:
                illegal[held.repeat(self.n_agents)] = False
        if illegal.any() and not replaces:
            row, head = np.argwhere(illegal)[0]
            where = f"agent {row % self.n_agents} of environment {row // self.n_agents}"
            raise ValueError(f"action {head} of {where} must be one that the mask allows")
        return checked, illegal.reshape(len(mask), -1).sum(axis=1)
