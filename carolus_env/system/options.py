"""Options and arguments: an error names the value, what was expected, and what was given.

An option is a field of a dataclass, declared once by `option`: commands, spec strings of bots, TOML
files, ``config.json``, positions in text, forms and the tables in docs/ read what it says.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from carolus_env.system.files import expanded
from carolus_env.system.untrusted import shown

INT64_MAX: Final = 2**63 - 1
"""The largest number that kernels can hold."""
REQUIRED: Final = MISSING
"""The default of an option that has none."""

Options = TypeVar("Options")
End: TypeAlias = float | None


class UserError(Exception):
    """An error that the user can correct; the text says how, in a line."""

    def __init__(self, text: str = "", code: int = 2, details: str = "") -> None:
        super().__init__(text)
        self.code = code  # of a command that ends by it
        self.details = details  # further lines, for standard error


@dataclass(frozen=True, eq=False)
class Option:
    """A number, a word of several, true or false, a text, a path, or a tuple of texts.

    What is of type object is checked by whom it is for.
    """

    default: Any
    about: str  # a description in a few words
    kind: type  # of the values
    among: Any = None  # words, or (lowest, highest) of a number: None where there is no such limit
    above: float | None = None  # limits of a number that are not allowed themselves
    below: float | None = None
    or_none: bool = False  # None is allowed too
    heading: str = ""  # of its group in --help
    metavar: str = ""  # name of the value in --help
    positional: bool = False  # the words of a command line that belong to no option
    repeated: bool = False  # each time that it is given adds one text; False: given once, with all

    def check(self, value: Any, name: str) -> Any:
        """Return a value, of its type; ``name`` is the option as the user gave it."""
        if value is None and self.or_none:
            return None
        try:
            if self.kind in (int, float):
                return (whole_number if self.kind is int else number)("", value, *self._ends())
            if self.kind is Path:
                if self.metavar == "FOLDER" and str(value) == "-":  # the standard output
                    raise ValueError
                return expanded(value)
            if self.kind is tuple:
                texts = instance("", value, (list, tuple), "")
                return tuple(instance("", text, str, "") for text in texts)
            if self.among and value not in self.among:
                raise ValueError
            return instance("", value, self.kind, "")
        except (ValueError, TypeError):
            raise ValueError(f"{name} must be {self.describe()}, got {shown(value)}") from None

    def parse(self, text: str) -> Any:
        """Parse a value as users write it; a text that is none of its type stays a text."""
        if self.or_none and text.lower() == "none":
            return None
        if self.kind is bool:
            return {"true": True, "false": False}.get(text.lower(), text)
        if self.kind is float or (self.kind is int and re.fullmatch(r"[+-]?[0-9_]{1,30}", text)):
            with suppress(ValueError):
                return self.kind(text)
        return text

    def describe(self) -> str:
        """Return the allowed values, in words."""
        if self.kind in (int, float):
            words = _limits(self.kind, *self._ends())
        elif self.kind is Path:
            words = "a folder" if self.metavar == "FOLDER" else "a path"
        elif self.among:
            words = " or ".join(self.among)
        elif self.kind is bool:
            words = "true or false"
        else:
            words = "a list of texts" if self.kind is tuple else "a text"
        return words + (" or None" if self.or_none and self.default is not None else "")

    def _ends(self) -> tuple[End, ...]:
        return (*(self.among or (None, None)), self.above, self.below)


def option(
    default: Any, about: str, *, kind: type | None = None, among: Any = None, **rest: Any
) -> Any:
    """Return a field of a dataclass; ``kind``: where the default's type is not the values'."""
    kind = kind or (Path if isinstance(default, Path) else type(default))
    rest["or_none"] = rest.get("or_none", default is None)
    return field(default=default, metadata={"option": Option(default, about, kind, among, **rest)})


def argument(about: str, metavar: str, default: Any = REQUIRED, *, kind: type = tuple) -> Any:
    """Return a field for the words of a command line that belong to no option."""
    return option(default, about, kind=kind, positional=True, metavar=metavar)


def group(kind: type, heading: str) -> Any:
    """Return a field that holds a dataclass of options, a group of its own in --help."""
    return field(default_factory=kind, metadata={"heading": heading})


def declared(kind: Any) -> dict[str, Option]:
    """Return the options of a dataclass by name; those of its groups have the group's heading."""
    found: dict[str, Option] = {}
    for entry in fields(kind):
        if _is_group(entry):
            for name, each in declared(entry.default_factory).items():
                found[name] = dataclasses.replace(each, heading=entry.metadata["heading"])
        elif entry.metadata:
            found[entry.name] = entry.metadata["option"]
        else:
            raise TypeError(f"the field {entry.name} must be declared by option(...)")
    return found


def _is_group(entry: dataclasses.Field[Any]) -> bool:
    return is_dataclass(entry.default_factory)


def check_fields(options: Any) -> None:
    """Check each option of a dataclass, and give it its type; for ``__post_init__``."""
    for entry in fields(options):
        if not _is_group(entry):
            value = entry.metadata["option"].check(getattr(options, entry.name), entry.name)
            object.__setattr__(options, entry.name, value)


def value_text(value: Any) -> str:
    """Return a value as commands and positions write it, which `Option.parse` reads."""
    return "none" if value is None else str(value)


def values_text(options: Mapping[str, Any]) -> str:
    """Format options and their values in a line, for people."""
    return ", ".join(f"{name} {value_text(value)}" for name, value in options.items())


# ------------------------------------------------------------------------------------ dataclasses


def make(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Return options by name, those of groups among them; the others have their defaults."""
    given: dict[str, Any] = {}
    for entry in fields(kind):  # type: ignore[arg-type]
        if _is_group(entry):
            given[entry.name] = make(entry.default_factory, values)  # type: ignore[arg-type]
        elif entry.name in values:
            given[entry.name] = values[entry.name]
    return kind(**given)


def replaced(options: Options, values: Mapping[str, Any]) -> Options:
    """Return a copy with other values by name, those of groups among them."""
    return make(type(options), {**_values(options), **values})


def as_dict(options: Any) -> dict[str, Any]:
    """Return the values by name, those of groups among them, as JSON and TOML can hold them."""
    values = _values(options).items()
    return {name: str(value) if isinstance(value, Path) else value for name, value in values}


def _values(options: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for entry in fields(options):
        value = getattr(options, entry.name)
        values |= _values(value) if _is_group(entry) else {entry.name: value}
    return values


# ------------------------------------------------------------------------------------ descriptions


def form(kind: type) -> list[dict[str, Any]]:
    """Return each option as JSON that a form can be made from."""
    keys = ("default", "about", "among", "or_none")
    return [
        {"name": name, **{key: getattr(entry, key) for key in keys}}
        for name, entry in declared(kind).items()
    ]


def described(kind: type[Options]) -> type[Options]:
    """Add the options and their descriptions to the docstring of a dataclass."""
    kind.__doc__ = f"{kind.__doc__}\n    Attributes:\n"
    for name, entry in declared(kind).items():
        kind.__doc__ += f"        {name}: {entry.about} ({entry.describe()}).\n"
    return kind


# ------------------------------------------------------------------------------------ arguments


def whole_number(name: str, value: Any, low: End = None, high: End = None, *ends: End) -> int:
    """Check a value, ``low`` to ``high``, and ``above`` and ``below`` others; return an int."""
    try:
        result = integer(name, value)
        if _within(result, low, INT64_MAX if high is None else high, *ends):
            return result
    except TypeError:
        pass
    raise ValueError(f"{name} must be {_limits(int, low, high, *ends)}, got {shown(value)}")


def number(
    name: str, value: Any, low: End = None, high: End = None, above: End = None, below: End = None
) -> float:
    """Check a value, ``low`` to ``high``, and ``above`` and ``below`` others; return a float."""
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # a whole number beyond every float
            result = float(value)
            if math.isfinite(result) and _within(value, low, high, above, below):
                return result
    limits = _limits(float, low, high, above, below)
    raise ValueError(f"{name} must be {limits}, got {shown(value)}")


def _within(value: Any, low: End, high: End, above: End = None, below: End = None) -> bool:
    return bool(
        (low is None or value >= low)
        and (high is None or value <= high)
        and (above is None or value > above)
        and (below is None or value < below)
    )


def _limits(kind: type, low: End, high: End, above: End = None, below: End = None) -> str:
    """Return in words which numbers are allowed, whole ones or any between limits."""
    text = "a whole number" if kind is int else "a number"
    if (low, high) == (0, 2**64 - 1):
        return f"{text} from 0 to 2^64 - 1"
    if low is not None and high is not None:
        return f"{text} from {low:,} to {high:,}"
    ends = {"of at least": low, "above": above, "of at most": high, "below": below}
    named = [f"{words} {end:,}" for words, end in ends.items() if end is not None]
    return f"{text} {' and '.join(named)}".rstrip()


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


def whole_numbers(name: str, values: npt.ArrayLike, *shapes: tuple[int, ...]) -> npt.NDArray[Any]:
    """Check values; return them as an array of integers of one of the shapes."""
    result = array(name, values)
    if result.dtype.kind not in "iu" or result.shape not in shapes:
        raise ValueError(
            f"{name} must be whole numbers of shape {' or '.join(map(str, shapes))}, "
            f"got shape {result.shape} and dtype {result.dtype}"
        )
    return result
