"""Checks of arguments: an error names the argument, what was expected, and what was given."""

from __future__ import annotations

import math
import operator
from contextlib import suppress
from numbers import Real
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.system.untrusted import shown

INT64_MAX: Final = 2**63 - 1
"""The largest number that kernels can hold."""


def whole_number(
    name: str,
    value: Any,
    low: int | None = None,
    high: int | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
) -> int:
    """Check a value; return it as an int.

    Args:
        name: the value's name, for the error.
        value: an int, or what stands for one, such as a NumPy integer.
        low: the lowest number that is allowed; None: no limit.
        high: the highest; None: no limit, but 2^63 - 1.
        above: a limit that is not allowed itself.
        below: the same.

    Raises:
        ValueError: unless it is a whole number between these limits.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not _within(
        number, low, INT64_MAX if high is None else high, above, below
    ):
        expected = limits(int, low, high, above=above, below=below)
        raise ValueError(f"{name} must be {expected}, got {shown(value)}")
    return number


def number(
    name: str,
    value: Any,
    low: float | None = None,
    high: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """Check a value; return it as a float.

    Args:
        name: the value's name, for the error.
        value: a float or an int, of Python or NumPy.
        low: the lowest number that is allowed; None: no limit.
        high: the highest; None: no limit.
        above: a limit that is not allowed itself.
        below: the same.

    Raises:
        ValueError: unless it is a finite number between these limits.
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # a whole number beyond every float
            result = float(value)
            if math.isfinite(result) and _within(value, low, high, above, below):
                return result
    expected = limits(float, low, high, above=above, below=below)
    raise ValueError(f"{name} must be {expected}, got {shown(value)}")


def _within(
    value: Any, low: float | None, high: float | None, above: float | None, below: float | None
) -> bool:
    """Return whether a number lies between limits, of which each may be missing."""
    return bool(
        (low is None or value >= low)
        and (high is None or value <= high)
        and (above is None or value > above)
        and (below is None or value < below)
    )


def limits(
    kind: type,
    low: float | None,
    high: float | None,
    *,
    above: float | None = None,
    below: float | None = None,
) -> str:
    """Return in words which numbers are allowed, an int or a float between limits."""
    text = "a whole number" if kind is int else "a number"
    if (low, high) == (0, 2**64 - 1):
        return f"{text} from 0 to 2^64 - 1"
    if low is not None and high is not None:
        return f"{text} from {low:,} to {high:,}"
    ends = [("of at least", low), ("above", above), ("of at most", high), ("below", below)]
    named = [f"{words} {end:,}" for words, end in ends if end is not None]
    return " ".join([text, " and ".join(named)]) if named else text


def integer(name: str, value: Any) -> int:
    """Check a value; return it as an int.

    Raises:
        TypeError: unless it is a whole number; True and False are none.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
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
