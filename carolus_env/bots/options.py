"""Options of bots in spec strings: each has a type, a range and a line of description.

A bot's options are a frozen dataclass whose fields are made by `option`. It is the only source of
the defaults, the parsing of ``name:key=value,key=value``, the error texts and the tables in
docs/bots.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from carolus_env.bots.agent import AgentError

Options = TypeVar("Options")


def option(default: Any, about: str, *, among: Any = None) -> Any:
    """A field of a dataclass of options.

    Args:
        default: the default value; its type is the option's type.
        about: what the option does, in a few words.
        among: the allowed values: a tuple of words, or (lowest, highest) of a number.
    """
    return field(default=default, metadata={"about": about, "among": among})


def check(name: str, options: Any) -> None:
    """Refuse values that their fields do not allow.

    Args:
        name: the bot's name, for the error.
        options: an instance of a dataclass of options.

    Raises:
        AgentError: for the first such value, with the option and its allowed values.
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
            raise _wrong_value(name, entry, value)


def parse(name: str, kind: type[Options], argument: str) -> Options:
    """The options of ``key=value,key=value``; those not named have their defaults.

    Args:
        name: the bot's name, for errors.
        kind: the dataclass of its options.
        argument: the text.

    Raises:
        AgentError: for an unknown, repeated or malformed option, with the list of known ones, or
            for a value that is not allowed.
    """
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for part in filter(None, argument.split(",")):
        key, equals, text = (word.strip() for word in part.partition("="))
        if not known:
            raise AgentError(name, f"takes no options, got {argument!r}")
        if not equals or key not in known:
            listed = "; ".join(f"{entry.name}: {allowed(entry)}" for entry in known.values())
            raise AgentError(name, f"has no option {part!r}; options are key=value of {listed}")
        if key in given:
            raise AgentError(name, f"option {key} is given twice")
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
        raise _wrong_value(name, entry, text) from None


def _wrong_value(name: str, entry: Any, value: object) -> AgentError:
    return AgentError(name, f"option {entry.name} must be {allowed(entry)}, got {value!r}")


def allowed(entry: Any) -> str:
    """The allowed values of a field, in words."""
    among = entry.metadata["among"]
    if isinstance(entry.default, str):
        return " or ".join(among)
    kind = "a whole number" if isinstance(entry.default, int) else "a number"
    return kind if among is None else f"{kind} from {among[0]:,} to {among[1]:,}"


def options_table(kind: type) -> str:
    """The options as a Markdown table (a test compares docs/bots.md with it)."""
    lines = ["| option | default | allowed | meaning |", "| --- | --- | --- | --- |"]
    for entry in fields(kind):
        about = entry.metadata["about"]
        lines.append(f"| `{entry.name}` | {entry.default} | {allowed(entry)} | {about} |")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class NoOptions:
    """The options of a bot that has none."""
