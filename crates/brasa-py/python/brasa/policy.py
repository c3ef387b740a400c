"""Policies of runs."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brasa._brasa import Policy as Native
from brasa.checked import numbers, rows
from brasa.spaces import Action, Form


class Policy:
    """The policy in the latest checkpoint of a run; it acts without exploration, on observations as environments give them.

    Threads may share it. ``copy.deepcopy`` shares what is loaded; ``pickle`` keeps the path of the run, which is read again and must still
    have the same latest checkpoint.
    """

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self._run = Path(run).resolve()
        self._native = Native(os.fspath(run))
        self.form = Form(json.loads(self._native.describe()))
        #: Spaces of one environment.
        self.observation_space: Action = self.form.obs_space
        self.action_space: Action = self.form.action_space

    @property
    def env_steps(self) -> int | None:
        """Steps of the environments until the checkpoint was written."""
        return self._native.env_steps

    @property
    def state_width(self) -> int:
        """Numbers per row that the policy remembers from step to step; 0 for a policy without memory."""
        return self._native.state_width

    def act(self, obs: npt.ArrayLike, mask: npt.ArrayLike | None = None) -> npt.NDArray[Any]:
        """Actions for observations of one environment, or of several (a first axis more), and their masks, one flag per action.

        Invalid input has no plausible action. Where an observation is NaN or names a graph or node that does not exist, continuous actions
        are NaN and choices are -1. A choice is -1 too if its mask has a NaN or forbids every action.

        Raises ``ValueError`` for another shape or type, if a mask is missing although the environments have masks, and for a policy that
        remembers: ``predict`` takes what it remembers.
        """
        if self.state_width:
            raise ValueError("this policy remembers: call `predict` with the state that it returned")
        return self._act(obs, mask, None)[0]

    def _act(
        self, obs: npt.ArrayLike, mask: npt.ArrayLike | None, state: npt.NDArray[np.float32] | None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32] | None]:
        given, shape = numbers("observations", obs), self.form.obs_shape
        one = given.ndim == len(shape)
        n = 1 if one else given.shape[0] if given.ndim else 0
        if n == 0 or given.shape != (shape if one else (n, *shape)):
            raise ValueError(f"observations must have the shape {_with_n(shape)}, got {given.shape}")
        flags = None
        if mask is not None:
            if not self.form.n_actions:
                raise ValueError("the mask must be None: this policy has no masks")
            flags, needed = numbers("the mask", mask), self.form.mask_shape
            if flags.shape != (needed if one else (n, *needed)):
                raise ValueError(f"the mask must have the shape {_with_n(needed)}, got {flags.shape}")
            flags = rows(flags, n * self.form.n_agents)
        elif self.form.n_actions:
            raise ValueError(f"a mask of the shape {_with_n(self.form.mask_shape)} must be given: not every action is legal")
        actions, state = self._native.act(rows(given, n * self.form.n_agents), flags, state)
        actions = actions.reshape((n, *self.form.action_shape))
        chosen = actions.astype(np.int64) if self.form.is_choice else actions
        return chosen[0] if one else chosen, state

    def predict(
        self,
        observation: npt.ArrayLike,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: npt.ArrayLike | None = None,
    ) -> tuple[npt.NDArray[Any], Any]:
        """As in Stable-Baselines3: ``(actions, state)``.

        A policy that remembers returns its state as ``[n_rows, state_width]``; ``None`` is that of episodes that begin, and so are rows where
        ``episode_start`` is true. Other policies return ``state`` as it is.
        """
        if not deterministic:
            raise ValueError("`deterministic` must be True: policies of runs act greedily")
        if not self.state_width:
            return self.act(observation, action_masks), state
        before = None
        if state is not None:
            before = numbers("the state", state).astype(np.float32)
            if before.shape[1:] != (self.state_width,):
                raise ValueError(f"the state must have the shape [n_rows, {self.state_width}], got {before.shape}")
            if episode_start is not None:
                starts = np.repeat(np.atleast_1d(numbers("`episode_start`", episode_start)), self.form.n_agents).astype(bool)
                if starts.shape != before.shape[:1]:
                    raise ValueError(f"`episode_start` must have a flag for each environment, got {np.shape(episode_start)}")
                before[starts] = 0.0
        return self._act(observation, action_masks, before)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Policy":
        # What is loaded never changes.
        other = Policy.__new__(Policy)
        other.__dict__ |= self.__dict__
        return other

    def __copy__(self) -> "Policy":
        return self.__deepcopy__({})

    def __reduce__(self) -> tuple[Any, tuple[str, int | None]]:
        return _again, (str(self._run), self.env_steps)


def _again(run: str, env_steps: int | None) -> Policy:
    """A pickled policy."""
    policy = Policy(run)
    if policy.env_steps != env_steps:
        raise RuntimeError(
            f"the policy was pickled after {env_steps} environment steps, and the run in {run} has gone on to {policy.env_steps}: "
            "load the run where the policy is needed"
        )
    return policy


def _with_n(shape: tuple[int, ...]) -> str:
    """A shape with and without a first axis."""
    return f"{shape} or (n, {', '.join(map(str, shape))})"


def load(run: str | os.PathLike[str]) -> Policy:
    """The policy of a run directory."""
    return Policy(run)
