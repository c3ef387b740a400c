"""The native batch with its arrays: what environments have in common."""

import json
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from brasa._brasa import Batch as Native
from brasa.source import Scenario, source_of
from brasa.spaces import Form


class Exclusive:
    """A lock that is never waited for: the results of a step are read after it, so a second thread would mix them up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("another thread is using these environments: make some for each thread, or guard them with a lock")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type["Exclusive"], tuple[()]]:
        return Exclusive, ()


class Batch:
    """A native batch, which rewrites its arrays with every call. A copy, also by ``pickle``, goes on exactly as the original would."""

    def __init__(
        self,
        scenario: Scenario,
        settings: Mapping[str, Any] | None,
        num_envs: int,
        split: str,
        apart: bool,
        n_threads: int | None,
    ) -> None:
        if not isinstance(split, str):
            raise ValueError(f"`split` must be \"training\" or \"evaluation\", got {split!r}")
        self._open(*source_of(scenario, settings), num_envs, split, apart, n_threads)

    def _open(self, text: str, origin: str, num_envs: int, split: str, apart: bool, n_threads: int | None) -> None:
        self._made_of = (text, origin, num_envs, split, apart)
        self.native = Native(text, origin, num_envs, split, apart, n_threads)
        self.form = Form(json.loads(self.native.describe()))
        self._arrays: dict[str, npt.NDArray[Any]] = dict(self.native.arrays())
        rows = {name: self.form.of_rows(self._arrays[name]) for name in ("obs", "final_obs", "mask", "final_mask")}
        self.obs: npt.NDArray[np.float32] = rows["obs"]
        self.final_obs: npt.NDArray[np.float32] = rows["final_obs"]
        self.mask: npt.NDArray[np.int8] = rows["mask"]
        self.final_mask: npt.NDArray[np.int8] = rows["final_mask"]
        self.reward: npt.NDArray[np.float32] = self._arrays["reward"]
        self.info: npt.NDArray[np.float64] = self._arrays["info"]
        # All agents of an environment end together.
        self.terminated: npt.NDArray[np.bool_] = self._arrays["terminated"][:: self.form.n_agents]
        self.truncated: npt.NDArray[np.bool_] = self._arrays["truncated"][:: self.form.n_agents]

    def mean_reward(self) -> npt.NDArray[np.float32]:
        """The mean reward of each environment's agents: with one agent, the array itself."""
        n_agents = self.form.n_agents
        return self.reward if n_agents == 1 else self.reward.reshape(-1, n_agents).mean(axis=1)

    def __getstate__(self) -> dict[str, Any]:
        # A saved state depends on the number of threads.
        return {
            "made_of": (*self._made_of, self.native.n_threads),
            "saved": self.native.save(),
            "arrays": {name: array.copy() for name, array in self._arrays.items()},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._open(*state["made_of"])
        for name, array in state["arrays"].items():
            np.copyto(self._arrays[name], array)
        self.native.load(state["saved"])
