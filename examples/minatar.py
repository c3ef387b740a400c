"""Registers the games of MinAtar (`pip install minatar`) with Gymnasium, which the package itself does on request only."""

from minatar.gym import register_envs

register_envs()
