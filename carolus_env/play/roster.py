"""The agents that a page offers: those of the package, and those named on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from carolus_env import bots
from carolus_env.bots import Agent, registry
from carolus_env.bots.model_files import NAMES, ModelError
from carolus_env.bots.neural.model import V1

OFFERED: Final = {
    "random": "any legal action",
    "greedy": "the best immediate gain",
    "planner": "plans its whole turn",
    "ppo": "a trained policy",
    "mcts:sims=100": "searches a little ahead",
    "mcts:sims=1000": "searches further",
    "value": "judges the position after its turn",
    "search:sims=100": "searches with that judgement",
}
"""The package's agents on the menu; a page may also ask for other options of them."""
ADVISERS: Final = ("greedy", "planner", "ppo", "mcts:sims=100", "value", "search:sims=100")
"""Agents that a page can ask for hints and values."""

_NO_VALUES: Final = ("greedy",)
_MODELS: Final = {"ppo": (V1, *NAMES), "search": (V1, *NAMES), "value": NAMES}
"""Agents with models, and the models of the package that they may be named with."""


class RosterError(ValueError):
    """A spec that is wrong, or that a page may not name."""


class Offer(NamedTuple):
    """An agent on the menu: its spec and a short description."""

    spec: str
    about: str


class Roster:
    """The agents that a page may use.

    A page names agents by spec. It may not name files, neither Python nor models: those are
    named on the command line by the user who starts the server, and offered under that spec.

    Args:
        named: specs from the command line, of any kind; each is made once, as a check.

    Raises:
        RosterError: for one that cannot be made.
    """

    def __init__(self, named: Sequence[str] = ()) -> None:
        self._named = tuple(named)
        for spec in self._named:
            _made(spec)

    def menu(self) -> list[Offer]:
        """The agents on offer, those of the command line first."""
        rows = [Offer(spec, "named on the command line") for spec in self._named]
        return rows + [Offer(spec, about) for spec, about in OFFERED.items()]

    def advisers(self) -> list[str]:
        """The agents that give hints, those of the command line first."""
        return [*self._named, *ADVISERS]

    def valuers(self) -> list[str]:
        """The advisers that may value positions; those of the command line are assumed to."""
        return [spec for spec in self.advisers() if spec not in _NO_VALUES]

    def allows(self, spec: str) -> bool:
        """Whether a page may name this agent; its options are not checked."""
        if spec in self._named:
            return True
        name, _, argument = spec.partition(":")
        if name not in registry.OPTIONS:
            return False
        if name not in _MODELS:
            return True
        first = argument.partition(",")[0]  # a model, or the first option
        key, equals, _ = first.partition("=")
        return not first or first in _MODELS[name] or (bool(equals) and key.strip().isidentifier())

    def make(self, spec: str) -> Agent:
        """A new agent.

        Raises:
            RosterError: when a page may not name it, or an option is wrong.
        """
        if not self.allows(spec):
            offered = ", ".join(row.spec for row in self.menu())
            raise RosterError(
                f"{spec[:100]!r} is not offered here; offered are {offered}. To use an agent from "
                "a file, name it on the command line with --bot"
            )
        return _made(spec)


def _made(spec: str) -> Agent:
    try:
        return bots.make(spec)
    except (ValueError, ModelError) as error:
        raise RosterError(str(error)) from error
