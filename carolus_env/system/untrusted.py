"""Data that a stranger may have written: parsed, checked and refused, never run.

The threat model, once for all readers. A record, a position, a results file, a model, a request to
the page's server may come from anybody. It may

- hold anything that its format can hold: other types, huge numbers, NaN, deep nesting, long texts,
  control characters, keys that are unknown or missing;
- be cut short, damaged, compressed without end, or another kind of file.

It must never run code (no pickle, no ``eval``, no import by name), never take memory or time
without bound, never reach a kernel unchecked, and never come back as escape codes on a terminal.
What is refused is refused with a `DataError` that names the place, the value (shortened) and what
was expected; readers raise it under their own names.

Python files that a user names (``my_bot.py:MyBot``) are the user's own code, and run.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt


class DataError(ValueError):
    """A value that does not fit; the text says where, what was expected and what was found."""


LONGEST_SHOWN: Final = 300  # characters of a value in an error text

_KINDS: Final = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
_SHORT: Final = reprlib.Repr()
_SHORT.maxlist = 15


def shown(value: object) -> str:
    """A value for an error text: shortened, in printable ASCII."""
    try:
        text = _SHORT.repr(value)
    except ValueError:  # a whole number of thousands of digits
        text = f"a {type(value).__name__} too long to show"
    return cut(ascii(text)[1:-1] if not (text.isascii() and text.isprintable()) else text)


def cut(text: str) -> str:
    """A text that is at most `LONGEST_SHOWN` characters long, and shows where it was cut."""
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + " ..."


def parse_json(data: str | bytes) -> Any:
    """What a JSON text holds; NaN and infinities are refused.

    Raises:
        DataError: for what is no JSON, with the place.
    """
    try:
        return json.loads(data.decode() if isinstance(data, bytes) else data,
                          parse_constant=_refuse_constant)  # fmt: skip
    except json.JSONDecodeError as error:
        place = f"column {error.colno}"
        if "\n" in error.doc[: error.pos]:
            place = f"line {error.lineno}, {place}"
        raise DataError(f"not JSON: {error.msg}, {place}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8: byte {error.start + 1}") from None
    except RecursionError:
        raise DataError("not JSON: nested too deeply") from None
    except ValueError as error:
        raise DataError(cut(f"not JSON: {error}")) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


# ------------------------------------------------------------------------------------ objects

# ``where`` is the path to ``data``, say ``"regions[2]"``; empty for the whole.


def is_a(value: object, kind: type) -> bool:
    """Whether a value is of a JSON type; true and false are no numbers, whole numbers are."""
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
    if kind is dict:
        return isinstance(value, Mapping)
    return isinstance(value, kind) and isinstance(value, bool) == (kind is bool)


def check(value: object, kind: type, name: str) -> Any:
    """The value itself, made sure to be of that JSON type (int, float, str, bool, list, dict).

    Raises:
        DataError: when it is not.
    """
    if not is_a(value, kind):
        raise DataError(f"{name} must be {_KINDS[kind]}, got {shown(value)}")
    return value


def get(data: Mapping[str, Any], key: str, kind: type, where: str = "") -> Any:
    """What stands under a key, of that JSON type.

    Raises:
        DataError: when it is missing or of another type.
    """
    if key not in data:
        raise DataError(f"{named(key, where)} is missing")
    return check(data[key], kind, named(key, where))


def whole(data: Mapping[str, Any], key: str, low: int, high: int, where: str = "") -> int:
    """A whole number from ``low`` to ``high``.

    Raises:
        DataError: when it is missing, no whole number, or outside.
    """
    value: int = get(data, key, int, where)
    if not low <= value <= high:
        raise DataError(f"{named(key, where)} must be from {low} to {high}, got {shown(value)}")
    return value


def one_of(data: Mapping[str, Any], key: str, allowed: Iterable[str], where: str = "") -> str:
    """One of some words.

    Raises:
        DataError: when it is missing, no text, or another word.
    """
    value: str = get(data, key, str, where)
    if value not in (words := tuple(allowed)):
        raise DataError(
            f"{named(key, where)} must be one of {', '.join(words)}, got {shown(value)}"
        )
    return value


def table(
    data: Mapping[str, Any], key: str, shape: tuple[int, ...], low: int, high: int, where: str = ""
) -> npt.NDArray[np.int64]:
    """Nested lists of whole numbers from ``low`` to ``high``, as an array of that shape.

    Raises:
        DataError: when it is missing, of another shape, or holds something else.
    """
    value, name = get(data, key, list, where), named(key, where)
    try:
        found = np.array(value, object)
    except ValueError:  # rows of different lengths
        found = np.array(None)
    if found.shape != shape or any(type(number) is not int for number in found.flat):
        size = " x ".join(map(str, shape))
        raise DataError(f"{name} must be {size} whole numbers, got {shown(value)}")
    if found.size and (found.min() < low or found.max() > high):
        raise DataError(f"{name} must be from {low} to {high}, got {shown(value)}")
    return found.astype(np.int64)


def only(data: Mapping[str, Any], known: Iterable[str], where: str = "") -> None:
    """Refuse keys that are not known: they could be misspelt ones.

    Raises:
        DataError: naming the first.
    """
    for key in data:
        if key not in (names := tuple(known)):
            raise DataError(
                f"{named('', where)}unknown key {shown(key)}, known are {', '.join(names)}"
            )


def named(key: str, where: str) -> str:
    """How an error calls what stands under a key."""
    return f"{where}.{key}" if where and key else f"{where}: " if where else key
