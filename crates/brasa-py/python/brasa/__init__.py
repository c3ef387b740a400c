"""Brasa's environments and policies in Python.

>>> import brasa
>>> envs = brasa.make_vec("cart-pole", 8)
>>> obs, info = envs.reset(seed=1)
>>> obs.shape
(8, 4)

Every scenario is a ``gymnasium.vector.VectorEnv`` (``brasa.make_vec``), a ``gymnasium.Env`` (``brasa.make``), and registered with
Gymnasium as ``brasa/<Scenario>-v0`` when this package is imported. ``brasa.load`` reads the policy of a run.
"""

from brasa._brasa import __version__, scenarios
from brasa.env import Env
from brasa.policy import Policy, load
from brasa.registration import ids, register
from brasa.vector import VectorEnv

#: One environment, and several that step together: the classes by the names of Gymnasium's functions.
make = Env
make_vec = VectorEnv

__all__ = ["Env", "Policy", "VectorEnv", "__version__", "ids", "load", "make", "make_vec", "scenarios"]

register()
