"""Scenarios and their settings as the text of an experiment."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Scenario = str | os.PathLike[str]


def source_of(scenario: Scenario, settings: Mapping[str, Any] | None) -> tuple[str, str]:
    """The text, and where it is from.

    ``scenario`` is a name, or the path of an experiment (``configs/iquitos-sac.toml``), whose section ``[scenario]`` counts.
    """
    if not isinstance(scenario, (str, os.PathLike)):
        raise ValueError(f"`scenario` must be a name or the path of an experiment, got {scenario!r}")
    if settings is not None and not isinstance(settings, Mapping):
        raise ValueError(f"`settings` must be a dictionary or None, got {settings!r}")
    if isinstance(scenario, os.PathLike) or scenario.endswith(".toml"):
        if settings is not None:
            raise ValueError("`settings` are for scenarios by name; an experiment has its own")
        return Path(scenario).read_text(encoding="utf-8"), str(scenario)
    return f"[scenario]\n{_toml(scenario)} = {_toml(settings or {})}\n", f"[scenario.{scenario}]"


def _toml(value: Any) -> str:
    """A value of settings as TOML in one line."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0):
        return "[" + ", ".join(map(_toml, value)) + "]"
    raise ValueError(f"`settings` must be numbers, texts, lists and dictionaries, got {value!r}")
