import os
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from brasa.spaces import Form

__version__: str
__all__: list[str]

Scenario = str | os.PathLike[str]
Split = Literal["training", "evaluation"]
Obs = npt.NDArray[np.float32]

def scenarios() -> list[str]: ...
def ids() -> dict[str, str]: ...
def make(
    scenario: Scenario, *, settings: dict[str, Any] | None = None, split: Split = "training", render_mode: None = None
) -> Env: ...
def make_vec(
    scenario: Scenario,
    num_envs: int,
    *,
    settings: dict[str, Any] | None = None,
    split: Split = "training",
    autoreset_mode: AutoresetMode = ...,
    copy: bool = True,
    n_threads: int | None = None,
) -> VectorEnv: ...
def load(run: str | os.PathLike[str]) -> Policy: ...

class Env(gym.Env[Obs, Any]):
    form: Form
    info_names: list[str]
    def __init__(
        self,
        scenario: Scenario,
        *,
        settings: dict[str, Any] | None = None,
        split: Split = "training",
        render_mode: None = None,
    ) -> None: ...
    def action_masks(self) -> npt.NDArray[np.bool_]: ...

class VectorEnv(gym.vector.VectorEnv[Obs, Any, npt.NDArray[Any]]):
    form: Form
    info_names: list[str]
    def __init__(
        self,
        scenario: Scenario,
        num_envs: int = 1,
        *,
        settings: dict[str, Any] | None = None,
        split: Split = "training",
        autoreset_mode: AutoresetMode = ...,
        copy: bool = True,
        n_threads: int | None = None,
    ) -> None: ...
    def action_masks(self) -> npt.NDArray[np.bool_]: ...

class Policy:
    form: Form
    observation_space: gym.spaces.Space[Any]
    action_space: gym.spaces.Space[Any]
    def __init__(self, run: str | os.PathLike[str]) -> None: ...
    def act(self, obs: npt.ArrayLike, mask: npt.ArrayLike | None = None) -> npt.NDArray[Any]: ...
    def predict(
        self,
        observation: npt.ArrayLike,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: npt.ArrayLike | None = None,
    ) -> tuple[npt.NDArray[Any], Any]: ...
