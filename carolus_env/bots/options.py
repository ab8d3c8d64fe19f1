"""Options of bots in spec strings: typed, with a range and a line about each.

A bot's options are a frozen dataclass whose fields are made by `option`. From it come the
defaults, the parsing of ``name:key=value,key=value``, every error text and the tables in
docs/bots.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

Options = TypeVar("Options")


def option(default: Any, about: str, *, among: Any = None) -> Any:
    """A field of a dataclass of options.

    Args:
        default: its value where nothing is said; its type is the option's.
        about: what it does, in a few words.
        among: the values allowed: a tuple of words, or (lowest, highest) of a number.
    """
    return field(default=default, metadata={"about": about, "among": among})


def check(name: str, options: Any) -> None:
    """Refuse a value that its field does not allow, naming the bot, the option and what is.

    Raises:
        ValueError: for the first such value.
    """
    for entry in fields(options):
        value, among = getattr(options, entry.name), entry.metadata["among"]
        number = isinstance(entry.default, (int, float))
        whole = isinstance(entry.default, int)
        good = isinstance(value, type(entry.default)) and not isinstance(value, bool)
        if number and not whole and isinstance(value, int) and not isinstance(value, bool):
            good = True
        if good and among is not None:
            good = among[0] <= value <= among[1] if number else value in among
        if not good:
            raise ValueError(
                f"agent {name!r}: option {entry.name} must be {allowed(entry)}, got {value!r}"
            )


def parse(name: str, kind: type[Options], argument: str) -> Options:
    """The options that ``key=value,key=value`` names; the others as by default.

    Raises:
        ValueError: for an unknown, repeated or malformed option, with the list of the right ones,
            or for a value that is not allowed.
    """
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for part in filter(None, argument.split(",")):
        key, equals, text = (word.strip() for word in part.partition("="))
        if not equals or key not in known:
            listed = "; ".join(f"{entry.name}: {allowed(entry)}" for entry in known.values())
            raise ValueError(
                f"agent {name!r} has no option {part!r}; options are key=value of {listed}"
                if known
                else f"agent {name!r} takes no options, got {argument!r}"
            )
        if key in given:
            raise ValueError(f"agent {name!r}: option {key} is given twice")
        given[key] = _value(name, known[key], text)
    options = kind(**given)
    check(name, options)
    return options


def _value(name: str, entry: Any, text: str) -> Any:
    if isinstance(entry.default, str):
        return text
    try:
        return type(entry.default)(text)
    except ValueError:
        raise ValueError(
            f"agent {name!r}: option {entry.name} must be {allowed(entry)}, got {text!r}"
        ) from None


def allowed(entry: Any) -> str:
    """What a field may hold, in words."""
    among = entry.metadata["among"]
    if isinstance(entry.default, str):
        return " or ".join(among)
    kind = "a whole number" if isinstance(entry.default, int) else "a number"
    return kind if among is None else f"{kind} from {among[0]:,} to {among[1]:,}"


def options_table(kind: type) -> str:
    """The options as a Markdown table (docs/bots.md holds it; a test compares)."""
    lines = ["| option | default | allowed | meaning |", "| --- | --- | --- | --- |"]
    for entry in fields(kind):
        about = entry.metadata["about"]
        lines.append(f"| `{entry.name}` | {entry.default} | {allowed(entry)} | {about} |")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class NoOptions:
    """Of a bot that has none."""
