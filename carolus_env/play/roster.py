"""Which agents a page may have: those of the package, and those that the command line names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from carolus_env import bots
from carolus_env.bots import Agent, registry
from carolus_env.bots.neural.model import NAMES, ModelError

OFFERED: Final = {
    "random": "any legal action",
    "greedy": "the best immediate gain",
    "planner": "plans its whole turn",
    "ppo": "a trained network",
    "mcts:sims=100": "searches a little ahead",
    "mcts:sims=1000": "searches further",
    "search:sims=100": "searches with the network",
}
"""What a page offers; any other options may be typed."""
ADVISERS: Final = ("greedy", "planner", "ppo", "mcts:sims=100", "search:sims=100")
"""Those that a page can ask for hints and values."""

_NO_VALUES: Final = ("greedy",)
_OWN_MODELS: Final = ("ppo", "search")


class RosterError(ValueError):
    """A spec that cannot be played, or that a page may not name."""


class Seatable(NamedTuple):
    """An agent that a page offers: its spec and a few words."""

    spec: str
    about: str


class Roster:
    """The agents that a page may seat.

    A page names agents by spec, but no file: neither Python nor a model. Those are named on the
    command line by who starts the server, and then offered under that very name.

    Args:
        named: specs of the command line, of any kind; each is made once, to see that it can be.

    Raises:
        RosterError: for one that cannot be made.
    """

    def __init__(self, named: Sequence[str] = ()) -> None:
        self._named = tuple(named)
        for spec in self._named:
            _made(spec)

    def menu(self) -> list[Seatable]:
        """What is offered, those of the command line first."""
        rows = [Seatable(spec, "named on the command line") for spec in self._named]
        return rows + [Seatable(spec, about) for spec, about in OFFERED.items()]

    def advisers(self) -> list[str]:
        """Those to ask for hints and values, those of the command line first."""
        return [*self._named, *ADVISERS]

    def valuers(self) -> list[str]:
        """Those of them that say what a position is worth; strangers may."""
        return [spec for spec in self.advisers() if spec not in _NO_VALUES]

    def allows(self, spec: str) -> bool:
        """Whether a page may name it; it may still have a wrong option."""
        if spec in self._named:
            return True
        name, _, argument = spec.partition(":")
        if name not in registry.OPTIONS:
            return False
        if name not in _OWN_MODELS:
            return True
        first = argument.partition(",")[0]  # a model, or the first option
        key, equals, _ = first.partition("=")
        return not first or first in NAMES or (bool(equals) and key.strip().isidentifier())

    def make(self, spec: str) -> Agent:
        """A new agent.

        Raises:
            RosterError: when a page may not name it, or it cannot be made.
        """
        if not self.allows(spec):
            offered = ", ".join(row.spec for row in self.menu())
            raise RosterError(
                f"{spec[:100]!r} is not offered here; offered are {offered}. An agent from a file "
                "is named on the command line, by --bot"
            )
        return _made(spec)


def _made(spec: str) -> Agent:
    try:
        return bots.make(spec)
    except (ValueError, ModelError) as error:
        raise RosterError(str(error)) from error
