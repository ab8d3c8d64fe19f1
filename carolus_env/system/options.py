"""Options and arguments: an error names the value, what was expected, and what was given.

An option is a field of a dataclass that is declared once, by `option`: a name, a type, a default,
the allowed values and a line of description. Commands (`system.command`), spec strings of bots,
TOML files, ``config.json``, positions in text, forms and the tables in docs/ all read it, and
`checked` is what all of them check values by. Arguments of functions are checked by the functions
at the end.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, field, fields, is_dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from carolus_env.system.untrusted import shown

INT64_MAX: Final = 2**63 - 1
"""The largest number that kernels can hold."""

Options = TypeVar("Options")
REQUIRED: Final = MISSING
"""The default of an option that has none."""


def option(
    default: Any,
    about: str,
    *,
    kind: type | None = None,
    among: Any = None,
    above: float | None = None,
    below: float | None = None,
    or_none: bool = False,
    what: str = "",
    heading: str = "",
    metavar: str = "",
    positional: bool = False,
    repeated: bool = False,
) -> Any:
    """Return a field of a dataclass of options.

    Args:
        default: the default value, or `REQUIRED`.
        about: a description in a few words.
        kind: the type, where that of the default does not say it: int, float, bool, str, Path,
            tuple, of several texts, or object, which is checked by whom it is for.
        among: the allowed values: a tuple of words, or (lowest, highest) of a number, each of them
            None where there is no such limit.
        above: limit of a number that is not allowed itself.
        below: the same.
        or_none: True: None is allowed too, as it always is where it is the default.
        what: a description of the allowed texts where any is allowed.
        heading: heading of its group in --help.
        metavar: name of the value in --help.
        positional: True: the words of a command line that belong to no option.
        repeated: True: each time that it is given adds one text; False: it is given once, with all.
    """
    return field(
        default=default,
        metadata={
            "about": about,
            "kind": kind or (Path if isinstance(default, Path) else type(default)),
            "among": among,
            "above": above,
            "below": below,
            "or_none": or_none or default is None,
            "what": what,
            "heading": heading,
            "metavar": metavar,
            "positional": positional,
            "repeated": repeated,
        },
    )


def group(kind: type, heading: str) -> Any:
    """Return a field that holds a dataclass of options, a group of its own in --help."""
    return field(default_factory=kind, metadata={"heading": heading})


def declared(kind: Any) -> dict[str, Field[Any]]:
    """Return the options of a dataclass by name, those of its groups among them."""
    found: dict[str, Field[Any]] = {}
    for entry in fields(kind):
        if _is_group(entry):
            found |= declared(entry.default_factory)
        elif entry.metadata:
            found[entry.name] = entry
        else:
            raise TypeError(f"the field {entry.name} must be declared by option(...)")
    return found


def headings(kind: Any) -> dict[str, str]:
    """Return the heading of each option of a dataclass: its own, or that of its group."""
    found: dict[str, str] = {}
    for entry in fields(kind):
        if _is_group(entry):
            found |= dict.fromkeys(declared(entry.default_factory), entry.metadata["heading"])
        else:
            found[entry.name] = entry.metadata["heading"]
    return found


def _is_group(entry: Field[Any]) -> bool:
    return is_dataclass(entry.default_factory)


# ------------------------------------------------------------------------------------ values


def allowed(entry: Field[Any]) -> str:
    """Return the allowed values of an option, in words."""
    about = entry.metadata
    also = " or None" if about["or_none"] and entry.default is not None else ""
    kind = about["kind"]
    if about["what"]:
        return str(about["what"]) + also
    if kind in (int, float):
        low, high = about["among"] or (None, None)
        return limits(kind, low, high, above=about["above"], below=about["below"]) + also
    if about["among"] is not None:
        return " or ".join(about["among"]) + also
    return ("a folder" if about["metavar"] == "FOLDER" else _TEXTS[kind]) + also


_TEXTS: Final = {
    str: "a text",
    Path: "a path",
    bool: "true or false",
    tuple: "a list of texts",
    object: "a text",
}


def checked(entry: Field[Any], value: Any, name: str = "") -> Any:
    """Return the value of an option, of its type."""
    about = entry.metadata
    if value is None and about["or_none"]:
        return None
    try:
        return _CHECKS[about["kind"]](about, value)
    except (ValueError, TypeError):
        wanted = allowed(entry)
        raise ValueError(f"{name or entry.name} must be {wanted}, got {shown(value)}") from None


def _number(about: Mapping[str, Any], value: Any) -> float:
    low, high = about["among"] or (None, None)
    check = whole_number if about["kind"] is int else number
    return check("", value, low, high, above=about["above"], below=about["below"])


def _text(about: Mapping[str, Any], value: Any) -> str:
    if not isinstance(value, str) or (about["among"] is not None and value not in about["among"]):
        raise ValueError
    return value


def _path(about: Mapping[str, Any], value: Any) -> Path:
    if about["metavar"] == "FOLDER" and str(value) == "-":  # the standard output
        raise ValueError
    return Path(value).expanduser()


def _flag(about: Mapping[str, Any], value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _texts(about: Mapping[str, Any], value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise ValueError
    return tuple(value)


_CHECKS: Final[dict[type, Callable[[Mapping[str, Any], Any], Any]]] = {
    int: _number,
    float: _number,
    str: _text,
    Path: _path,
    bool: _flag,
    tuple: _texts,
    object: lambda _, value: value,
}


def check_fields(options: Any) -> None:
    """Check each option of a dataclass, and give it its type; for ``__post_init__``."""
    for entry in fields(options):
        if not _is_group(entry):
            value = checked(entry, getattr(options, entry.name))
            object.__setattr__(options, entry.name, value)


def parsed(entry: Field[Any], text: str) -> Any:
    """Parse an option's value as users write it; a text that is none of its type stays a text."""
    kind = entry.metadata["kind"]
    if entry.metadata["or_none"] and text.lower() == "none":
        return None
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind is float or (kind is int and re.fullmatch(r"[+-]?[0-9_]{1,30}", text)):
        with suppress(ValueError):
            return kind(text)
    return text


def value_text(value: Any) -> str:
    """Return a value as commands and positions write it, which `parsed` reads."""
    return "none" if value is None else str(value)


def values_text(options: Mapping[str, Any]) -> str:
    """Format options and their values in a line, for people."""
    return ", ".join(f"{name} {value_text(value)}" for name, value in options.items())


# ------------------------------------------------------------------------------------ dataclasses


def make(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Return options by name; those of groups among them, and the others with their defaults.

    Raises:
        ValueError: for a value that is not allowed.
    """
    given: dict[str, Any] = {}
    for entry in fields(kind):  # type: ignore[arg-type]
        if _is_group(entry):
            assert isinstance(entry.default_factory, type)
            given[entry.name] = make(entry.default_factory, values)
        elif entry.name in values:
            given[entry.name] = values[entry.name]
    return kind(**given)


def replaced(options: Options, values: Mapping[str, Any]) -> Options:
    """Return a copy with other values by name, those of groups among them."""
    changes: dict[str, Any] = {}
    for entry in fields(options):  # type: ignore[arg-type]
        if _is_group(entry):
            changes[entry.name] = replaced(getattr(options, entry.name), values)
        elif entry.name in values:
            changes[entry.name] = values[entry.name]
    return dataclasses.replace(options, **changes)  # type: ignore[type-var]


def as_dict(options: Any) -> dict[str, Any]:
    """Return the values by name, those of groups among them, as JSON and TOML can hold them."""
    values: dict[str, Any] = {}
    for entry in fields(options):
        value = getattr(options, entry.name)
        if _is_group(entry):
            values |= as_dict(value)
        else:
            values[entry.name] = str(value) if isinstance(value, Path) else value
    return values


# ------------------------------------------------------------------------------------ descriptions


def form(kind: type) -> list[dict[str, Any]]:
    """Return each option as JSON that a form can be made from."""
    return [
        {
            "name": entry.name,
            "default": entry.default,
            **{key: entry.metadata[key] for key in ("about", "among", "or_none")},
        }
        for entry in declared(kind).values()
    ]


def described(kind: type[Options]) -> type[Options]:
    """Add the options and their descriptions to the docstring of a dataclass."""
    lines = [
        f"{name}: {entry.metadata['about']} ({allowed(entry)})."
        for name, entry in declared(kind).items()
    ]
    listed = "\n        ".join(lines)
    kind.__doc__ = f"{kind.__doc__}\n    Attributes:\n        {listed}\n"
    return kind


def options_table(kind: type) -> str:
    """Return the options as a Markdown table (docs/ hold it; a test compares)."""
    lines = ["| option | default | allowed | meaning |", "| --- | --- | --- | --- |"]
    for name, entry in declared(kind).items():
        about = entry.metadata["about"]
        lines.append(f"| `{name}` | {entry.default} | {allowed(entry)} | {about} |")
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------ arguments


def whole_number(
    name: str,
    value: Any,
    low: int | None = None,
    high: int | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
) -> int:
    """Check a value; return it as an int."""
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
    """Check a value; return it as a float."""
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
    """Check a value; return it as an int."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {shown(value)}") from None


def seed_number(seed: Any) -> int | None:
    """Check a seed; return it as an int, or None."""
    return None if seed is None else whole_number("seed", seed, 0, 2**64 - 1)


def instance(name: str, value: Any, kind: type | tuple[type, ...], expected: str) -> Any:
    """Check a value, and return it."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {expected}, got {shown(value)}")
    return value


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """Check a value, and return it."""
    if not any(type(value) is type(known) and value == known for known in allowed):
        raise ValueError(f"{name} must be one of {allowed}, got {shown(value)}")
    return value


def array(name: str, value: Any) -> npt.NDArray[Any]:
    """Check a value; return it as an array. An empty list counts as one of integers."""
    try:
        result = np.asarray(value)
        return result.astype(np.int64) if isinstance(value, list) and not value else result
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
