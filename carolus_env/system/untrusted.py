"""Untrusted data: records, results, models, requests that may hold anything, damaged or vast.

Their readers run no code, take time and memory in proportion to what they are given, which is
limited, pass nothing unchecked to a kernel, and raise one kind of error, in short printable ASCII:
`DataError` here, which they raise again as an error of their own. Trusted are Python files and
programs that a user names, a training run's own folder, compiled kernels, and worker processes.
Texts of errors are here too.
"""

from __future__ import annotations

import json
import math
import os
import reprlib
import sysconfig
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import numpy as np
import numpy.typing as npt


class DataError(ValueError):
    """A value that was refused; the text says where it is, what was expected and what was found."""


LONGEST_SHOWN: Final = 300  # characters of a value in an error text

_FOLDERS: Final = (Path(__file__).parent.parent, *map(sysconfig.get_path, ("purelib", "stdlib")))
_LIBRARY_PATHS: Final = (*(f"{folder}{os.sep}" for folder in _FOLDERS), "<")

_KINDS: Final = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


class _Short(reprlib.Repr):
    """A short text of any value; classes, functions and objects have the names of their source."""

    def repr_type(self, value: type, level: int) -> str:
        return f"the class {value.__name__}"

    def repr_function(self, value: FunctionType, level: int) -> str:
        return "a lambda" if value.__name__ == "<lambda>" else f"the function {value.__name__}"

    def repr_instance(self, value: object, level: int) -> str:
        if type(value).__repr__ is object.__repr__:
            return f"an object of class {type(value).__name__}"
        return super().repr_instance(value, level)


_SHORT: Final = _Short()
_SHORT.maxlist = 15  # a number for each territory


def shown(value: object) -> str:
    """Return a value for an error text: shortened, in printable ASCII."""
    try:
        return cut(_SHORT.repr(value))
    except ValueError:  # an integer of thousands of digits
        return f"a {type(value).__name__} too long to show"


def cut(text: str, longest: int = LONGEST_SHOWN) -> str:
    """Return a text in printable ASCII; after ``longest`` characters it ends in `` ...``."""
    letters = text[: longest + 1]
    start = "".join(each if " " <= each <= "~" else ascii(each)[1:-1] for each in letters)
    return start if len(start) <= longest else start[:longest] + " ..."


def message(error: BaseException) -> str:
    """Return another one's error in a line, with the innermost place in their code that led to it.

    ``"KeyError: 'lost' (my_bot.py, line 12)"``; no place where there is none.
    """
    try:
        reason = str(error)
    except BaseException:  # of a class whose own text fails
        reason = ""
    text = type(error).__name__ + (f": {reason}" if reason else "")
    if isinstance(error, SyntaxError):  # its text says where it is
        return text
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_LIBRARY_PATHS):
            return f"{text} ({Path(frame.filename).name}, line {frame.lineno})"
    return text


def full_traceback(error: BaseException) -> str:
    """Return the error as Python prints it, with every line that led to it."""
    return "".join(traceback.format_exception(error))


def unknown(what: str, name: object, known: Iterable[str], listed: str | None = None) -> str:
    """Return the text of an error about an unknown name, with those that it may mean."""
    from difflib import get_close_matches

    names = list(known)
    close = get_close_matches(name, names, n=2) if isinstance(name, str) else []
    listed = ", ".join(names) if listed is None else listed
    meant = f"; did you mean {' or '.join(close)}?" if close else ""
    listed = f"{' K' if close else '; k'}nown are {listed}" if listed else ""
    return f"{what} {shown(name)}{meant}{listed}"


def parse_json(data: str | bytes) -> Any:
    """Parse a JSON text, which must be UTF-8; NaN, and numbers that no float holds, are refused."""
    try:
        text = data.decode() if isinstance(data, bytes) else data
        return json.loads(text, parse_constant=_finite, parse_float=_finite)
    except json.JSONDecodeError as error:
        position = f"column {error.colno}"
        if "\n" in error.doc[: error.pos]:
            position = f"line {error.lineno}, {position}"
        raise DataError(f"not JSON: {error.msg}, {position}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8: byte {error.start + 1}") from None
    except RecursionError:
        raise DataError("not JSON: nested too deeply") from None
    except ValueError as error:
        raise DataError(cut(f"not JSON: {error}")) from None


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    reason = "is not a number" if text.endswith(("N", "y")) else "is beyond every float"
    raise ValueError(f"{text[:100]} {reason}")


# ------------------------------------------------------------------------------------ objects

# ``where`` is the path to ``data``, say ``"regions[2]"``; empty for the outermost object.


def is_a(value: object, kind: type) -> bool:
    """Return whether a value is of a JSON type; integers are ``float`` too, no bool is."""
    if kind is float:
        try:
            return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
        except OverflowError:  # an integer beyond every float
            return False
    if kind is dict:
        return isinstance(value, Mapping)
    return type(value) is kind or (isinstance(value, kind) and not isinstance(value, bool))


def check(value: object, kind: type, name: str) -> Any:
    """Check that a value is of a JSON type (int, float, str, bool, list, dict), and return it."""
    if not is_a(value, kind):
        raise DataError(f"{name} must be {_KINDS[kind]}, got {shown(value)}")
    return value


def get(data: Mapping[str, Any], key: str, kind: type, where: str = "") -> Any:
    """Check the type of a key's value, and return it."""
    try:
        value = data[key]
    except KeyError:
        raise DataError(f"{named(key, where)} is missing") from None
    return value if is_a(value, kind) else check(value, kind, named(key, where))


def expect(data: Mapping[str, Any], **values: str | int) -> None:
    """Check keys that say what the data is: its ``format``, its ``version``."""
    for key, value in values.items():
        if get(data, key, type(value)) != value:
            raise DataError(f"{key} must be {value!r}, got {shown(data[key])}")


def integer(data: Mapping[str, Any], key: str, low: int, high: int, where: str = "") -> int:
    """Check a whole number from ``low`` to ``high``, and return it."""
    value: int = get(data, key, int, where)
    if not low <= value <= high:
        raise DataError(f"{named(key, where)} must be from {low} to {high}, got {shown(value)}")
    return value


def integers(data: Mapping[str, Any], key: str, where: str = "") -> list[int]:
    """Check a list of whole numbers, of any length and any size, and return it."""
    values: list[int] = get(data, key, list, where)
    if not {*map(type, values)} <= {int}:
        for index, value in enumerate(values):
            check(value, int, f"{named(key, where)}[{index}]")
    return values


def one_of(data: Mapping[str, Any], key: str, allowed: Iterable[str], where: str = "") -> str:
    """Check that a value is one of several words, and return it."""
    value: str = get(data, key, str, where)
    if value not in (words := tuple(allowed)):
        raise DataError(
            f"{named(key, where)} must be one of {', '.join(words)}, got {shown(value)}"
        )
    return value


def table(
    data: Mapping[str, Any], key: str, shape: tuple[int, ...], low: int, high: int, where: str = ""
) -> npt.NDArray[np.int64]:
    """Check nested lists of integers from ``low`` to ``high``; return an array of that shape."""
    value, name = get(data, key, list, where), named(key, where)
    try:
        result = np.array(value, object)
    except ValueError:  # rows of different lengths
        result = np.array(None)
    if result.shape != shape or any(type(number) is not int for number in result.flat):
        size = " x ".join(map(str, shape))
        raise DataError(f"{name} must be {size} whole numbers, got {shown(value)}")
    if result.size and (result.min() < low or result.max() > high):
        raise DataError(f"{name} must be from {low} to {high}, got {shown(value)}")
    return result.astype(np.int64)


def only(data: Mapping[str, Any], known: Iterable[str], where: str = "") -> None:
    """Refuse unknown keys: one of them could be a known key misspelt."""
    names = tuple(known)
    for key in data:
        if key not in names:
            raise DataError(unknown(f"{named('', where)}unknown key", key, names))


def named(key: str, where: str) -> str:
    """Return the name of a key's value in an error text."""
    return f"{where}.{key}" if where and key else f"{where}: " if where else key
