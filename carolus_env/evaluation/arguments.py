"""Checks of arguments: an error names the argument, what was expected, and what was given."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt


def whole_number(name: str, value: Any, low: int, high: int) -> int:
    """The value as an int.

    Raises:
        ValueError: unless it is a whole number from ``low`` to ``high``.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        limit = f"{high:,}" if high < 2**63 else "2^64 - 1"
        raise ValueError(f"{name} must be a whole number from {low} to {limit}, got {value!r}")
    return number


def whole_numbers(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The values as an array of integers of that shape.

    Raises:
        ValueError: for another dtype or shape.
    """
    found = np.asarray(values)
    if found.dtype.kind not in "iu" or found.shape != shape:
        raise ValueError(
            f"{name} must be whole numbers of shape {shape}, "
            f"got shape {found.shape} and dtype {found.dtype}"
        )
    return found


def seatings_array(
    tables: npt.ArrayLike, agents: int, players: int | None = None
) -> npt.NDArray[np.int64]:
    """``(G, players)`` int64, a copy: the agent at each seat of each game.

    Raises:
        ValueError: for another dtype or shape, or an agent that does not exist.
    """
    found = np.asarray(tables)
    if found.dtype.kind not in "iu" or found.ndim != 2 or players not in (None, found.shape[1]):
        raise ValueError(
            f"tables must be whole numbers of shape (games, {players or 'players'}), "
            f"got shape {found.shape} and dtype {found.dtype}"
        )
    if found.size and not 0 <= found.min() <= found.max() < agents:
        raise ValueError(
            f"tables must name agents 0 to {agents - 1}, got {found.min()} to {found.max()}"
        )
    return np.array(found, np.int64, order="C")
