"""Arguments from outside, checked before they reach native code."""

import operator
from typing import Any

import numpy as np
import numpy.typing as npt


def seed_number(seed: Any) -> int | None:
    """A seed of 64 bits, or ``None``."""
    if seed is None:
        return None
    if not isinstance(seed, (int, np.integer)):
        raise ValueError(f"`seed` must be one number, got {seed!r}")
    if not 0 <= int(seed) < 2**64:
        raise ValueError(f"`seed` must be in 0..2**64, got {seed}")
    return int(seed)


def count(name: str, number: Any) -> int:
    """A whole number from 1 on."""
    try:
        whole = operator.index(number)
    except TypeError:
        raise ValueError(f"`{name}` must be a whole number, got {number!r}") from None
    if not 1 <= whole < 2**63:
        raise ValueError(f"`{name}` must be at least 1 and below 2**63, got {whole}")
    return whole


def options_of_reset(options: Any) -> None:
    """Environments have no options of ``reset``: those of other environments are ignored."""
    if options is not None and not isinstance(options, dict):
        raise ValueError(f"`options` must be a dictionary or None, got {options!r}")
    if options and options.get("reset_mask") is not None:
        raise ValueError("`options[\"reset_mask\"]` is not supported: ended environments start again by themselves")


def no_rendering(render_mode: Any) -> None:
    """Callers such as Stable-Baselines3 ask for a mode and, after a ``TypeError``, for none."""
    if render_mode is not None:
        raise TypeError(f"`render_mode` must be None, got {render_mode!r}: `brasa report` draws episodes")


def whether_replaced(illegal_actions: Any) -> bool:
    """Whether actions that a mask forbids are replaced."""
    if illegal_actions not in ("replace", "error"):
        raise ValueError(f"`illegal_actions` must be \"replace\" or \"error\", got {illegal_actions!r}")
    return bool(illegal_actions == "replace")


def numbers(name: str, values: Any) -> npt.NDArray[Any]:
    """An array of real numbers or truth values; texts, objects and lists of different lengths are a ``ValueError``."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be an array of numbers, got the type {array.dtype}")
    return array


def rows(array: npt.NDArray[Any], n: int) -> npt.NDArray[np.float32]:
    """``array`` as ``n`` rows of 32 bits, contiguous; what is too large becomes infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array.reshape(n, -1), dtype=np.float32)
