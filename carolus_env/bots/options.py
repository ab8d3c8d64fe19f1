"""Options of bots in spec strings, ``name:key=value,key=value``.

A bot's options are a frozen dataclass whose fields are made by `system.options.option`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from carolus_env.bots.agent import AgentError
from carolus_env.system.options import check_fields, declared
from carolus_env.system.untrusted import unknown

Options = TypeVar("Options")


@dataclass(frozen=True)
class BotOptions:
    """Base of the options of a bot."""

    bot: ClassVar[str] = ""  # the bot's name, for errors

    def __post_init__(self) -> None:
        try:
            check_fields(self)
        except ValueError as error:
            raise AgentError(self.bot, f"option {error}") from None


def parse(name: str, kind: type[Options], argument: str) -> Options:
    """Parse the options ``key=value,key=value``; those not named have their defaults."""
    known = declared(kind)
    values: dict[str, Any] = {}
    for part in filter(None, argument.split(",")):
        key, equals, text = (word.strip() for word in part.partition("="))
        if not known:
            raise AgentError(name, f"takes no options, got {argument!r}")
        if not equals or key not in known:
            listed = "; ".join(f"{each}: {entry.describe()}" for each, entry in known.items())
            head = "has no option" if equals else "options are key=value, got"
            raise AgentError(name, unknown(head, key, known, listed))
        if key in values:
            raise AgentError(name, f"option {key} is given twice")
        values[key] = known[key].parse(text)
    return kind(**values)


@dataclass(frozen=True)
class NoOptions(BotOptions):
    """The options of a bot that has none."""
