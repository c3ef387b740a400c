"""Ids of Gymnasium."""

import gymnasium as gym

from brasa._brasa import scenarios

#: What comes from Gymnasium is there already.
_FOREIGN = ("gymnasium",)


def ids():
    """The ids of Gymnasium by scenario: ``{"cart-pole": "brasa/CartPole-v0", ...}``."""
    name = lambda scenario: "".join(part.capitalize() for part in scenario.split("-"))
    return {scenario: f"brasa/{name(scenario)}-v0" for scenario in scenarios() if scenario not in _FOREIGN}


def register():
    """Registers every scenario; once."""
    for scenario, own in ids().items():
        if own not in gym.registry:
            gym.register(
                own, entry_point="brasa.env:Env", vector_entry_point="brasa.vector:VectorEnv", kwargs={"scenario": scenario}
            )
