"""Ids of Gymnasium."""

import gymnasium as gym

from brasa._brasa import scenarios

#: What comes from Gymnasium is there already.
_FOREIGN = ("gymnasium",)


def _class_name(scenario: str) -> str:
    return "".join(part.capitalize() for part in scenario.split("-"))


def ids() -> dict[str, str]:
    """The ids of Gymnasium by scenario: ``{"cart-pole": "brasa/CartPole-v0", ...}``."""
    return {scenario: f"brasa/{_class_name(scenario)}-v0" for scenario in scenarios() if scenario not in _FOREIGN}


def register() -> None:
    """Registers every scenario; once."""
    for scenario, own in ids().items():
        if own not in gym.registry:
            gym.register(
                own, entry_point="brasa.env:Env", vector_entry_point="brasa.vector:VectorEnv", kwargs={"scenario": scenario}
            )
