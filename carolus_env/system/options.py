"""Options with descriptions: fields of a dataclass, made by `option`.

A field has a type, a default, the allowed values and a line of description. From it follow checks
and their errors, arguments of commands, forms and tables in docs/.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import field, fields
from typing import Any, SupportsIndex, TypeVar

Options = TypeVar("Options")


def option(default: Any, about: str, *, among: Any = None, or_none: bool = False) -> Any:
    """Return a field of a dataclass of options.

    Args:
        default: the default value; its type is the option's type.
        about: a description of the option in a few words.
        among: the allowed values: a tuple of words, or (lowest, highest) of a number.
        or_none: True: None is allowed too.
    """
    return field(default=default, metadata={"about": about, "among": among, "or_none": or_none})


def allowed(entry: Any) -> str:
    """Return the allowed values of a field, in words."""
    among = entry.metadata["among"]
    also = " or None" if entry.metadata["or_none"] else ""
    if isinstance(entry.default, str):
        return " or ".join(among) + also
    kind = "a whole number" if isinstance(entry.default, int) else "a number"
    return (kind if among is None else f"{kind} from {among[0]:,} to {among[1]:,}") + also


def checked(entry: Any, value: Any) -> Any:
    """Return the value of an option, a whole number as an int.

    Raises:
        ValueError: for a value that the field does not allow, naming both.
    """
    usual, among = entry.default, entry.metadata["among"]
    if value is None and entry.metadata["or_none"]:
        return None
    if isinstance(usual, str):
        good = isinstance(value, str) and value in among
    else:
        good = isinstance(value, SupportsIndex) and not isinstance(value, bool | type)
        good = good or (isinstance(usual, float) and isinstance(value, float))
        good = good and (among is None or among[0] <= value <= among[1])
    if not good:
        raise ValueError(f"{entry.name} must be {allowed(entry)}, got {value!r}")
    return int(value) if isinstance(usual, int) else value


def value_text(value: Any) -> str:
    """Return a value as commands and positions write it."""
    return "none" if value is None else str(value)


def read_value(text: str) -> int | str | None:
    """Parse a number, None or else a word, whether it is allowed or not."""
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    return None if text.lower() == "none" else text


def values_text(options: dict[str, Any]) -> str:
    """Format options and their values in a line, for people."""
    return ", ".join(f"{name} {value_text(value)}" for name, value in options.items())


def command_parser(about: str | None, program: str | None = None) -> argparse.ArgumentParser:
    """Return a parser whose help shows ``about``, a module's docstring, as it is written."""
    return argparse.ArgumentParser(
        program, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_arguments(parser: argparse._ActionsContainer, kind: type) -> None:
    """Add an argument for each field: ``--max-rounds`` for ``max_rounds``."""
    for entry in fields(kind):
        usual = value_text(entry.default)
        parser.add_argument(
            "--" + entry.name.replace("_", "-"),
            type=read_value,
            default=entry.default,
            metavar="WORD" if isinstance(entry.default, str) else "N",
            help=f"{entry.metadata['about']}: {allowed(entry)} (default {usual})",
        )


def from_arguments(kind: type[Options], arguments: argparse.Namespace) -> Options:
    """Return the options that the arguments of `add_arguments` give.

    Raises:
        ValueError: for a value that its field does not allow.
    """
    return kind(**{entry.name: getattr(arguments, entry.name) for entry in fields(kind)})  # type: ignore[arg-type]


def form(kind: type) -> list[dict[str, Any]]:
    """Return each field as JSON that a form can be made from."""
    return [
        {"name": entry.name, "default": entry.default, **entry.metadata} for entry in fields(kind)
    ]


def described(kind: type[Options]) -> type[Options]:
    """Add the fields and their descriptions to the docstring of a dataclass of options."""
    lines = [
        f"{entry.name}: {entry.metadata['about']} ({allowed(entry)})."
        for entry in fields(kind)  # type: ignore[arg-type]
    ]
    listed = "\n        ".join(lines)
    kind.__doc__ = f"{kind.__doc__}\n    Attributes:\n        {listed}\n"
    return kind


def options_table(kind: type) -> str:
    """Return the options as a Markdown table (docs/ hold it; a test compares)."""
    lines = ["| option | default | allowed | meaning |", "| --- | --- | --- | --- |"]
    for entry in fields(kind):
        about = entry.metadata["about"]
        lines.append(f"| `{entry.name}` | {entry.default} | {allowed(entry)} | {about} |")
    return "\n".join(lines) + "\n"
