"""Checks of arguments: an error names the argument, what was expected, and what was given."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.system.untrusted import shown

MOST: Final = 2**63 - 1
"""The largest number that kernels can hold."""


def whole_number(name: str, value: Any, low: int, high: int = MOST) -> int:
    """Check a value; return it as an int.

    Raises:
        ValueError: unless it is a whole number from ``low`` to ``high``.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        among = f"from {low} to {high:,}" if high < MOST else f"of at least {low}"
        among = "from 0 to 2^64 - 1" if (low, high) == (0, 2**64 - 1) else among
        raise ValueError(f"{name} must be a whole number {among}, got {shown(value)}")
    return number


def integer(name: str, value: Any) -> int:
    """Check a value; return it as an int.

    Raises:
        TypeError: unless it is a whole number.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {shown(value)}") from None


def seed_number(seed: Any) -> int | None:
    """Check a seed; return it as an int, or None.

    Raises:
        ValueError: unless it is None or a whole number from 0 to 2^64 - 1.
    """
    return None if seed is None else whole_number("seed", seed, 0, 2**64 - 1)


def instance(name: str, value: Any, kind: type | tuple[type, ...], expected: str) -> Any:
    """Check a value, and return it.

    Raises:
        TypeError: unless it is of that kind, which ``expected`` describes.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {expected}, got {shown(value)}")
    return value


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """Check a value, and return it.

    Raises:
        ValueError: unless it is one of those that are allowed, of the same type.
    """
    if not any(type(value) is type(known) and value == known for known in allowed):
        raise ValueError(f"{name} must be one of {allowed}, got {shown(value)}")
    return value


def array(name: str, value: Any) -> npt.NDArray[Any]:
    """Check a value; return it as an array.

    Raises:
        ValueError: when it is none, such as a list of rows of different lengths.
    """
    try:
        return np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{name} must be an array: {error}") from None


def whole_numbers(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Check values; return them as an array of integers of that shape.

    Raises:
        ValueError: for another dtype or shape.
    """
    result = array(name, values)
    if result.dtype.kind not in "iu" or result.shape != shape:
        raise ValueError(
            f"{name} must be whole numbers of shape {shape}, "
            f"got shape {result.shape} and dtype {result.dtype}"
        )
    return result


def is_buffer(value: Any, shape: tuple[int, ...], dtype: npt.DTypeLike) -> bool:
    """Return whether a kernel can write an array of that shape and dtype into it."""
    return (
        isinstance(value, np.ndarray)
        and value.shape == shape
        and value.dtype == dtype
        and value.flags.carray
    )
