"""The agents that a page offers: those of the package, and those named on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from carolus_env import bots
from carolus_env.bots import Agent, registry
from carolus_env.bots.models import NAMES
from carolus_env.networks.files import ModelError

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
ADVISERS: Final = ("value", "planner", "ppo", "mcts:sims=100", "search:sims=100", "greedy")
"""Agents that a page can ask for hints and values."""

_MODELS: Final = ("decisions", "ppo", "search", "value")
"""Agents whose spec may name a model, and so a file."""


class Level(NamedTuple):
    """A level of strength.

    Attributes:
        name: the level's name.
        about: a description in a few words.
        agents: the spec of the agent that plays so, by number of players.
    """

    name: str
    about: str
    agents: dict[int, str]


LEVELS: Final = (
    Level(
        "easy",
        "plans its turns, but plays many of them at random",
        {2: "planner:errors=0.33", 3: "planner:errors=0.52", 4: "planner:errors=0.56"},
    ),
    Level(
        "medium",
        "plans its turns, and occasionally blunders",
        {2: "planner:errors=0.09", 3: "planner:errors=0.15", 4: "planner:errors=0.14"},
    ),
    Level(
        "hard",
        "searches ahead with a trained network",
        {2: "search:2p,sims=100", 3: "search:3p,sims=100", 4: "search:4p,sims=100"},
    ),
)
"""Levels from weakest to strongest: about -1,000, about -300 and above all of docs/evaluation.md."""


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
        """Return the agents on offer, those of the command line first."""
        rows = [Offer(spec, "named on the command line") for spec in self._named]
        return rows + [Offer(spec, about) for spec, about in OFFERED.items()]

    def advisers(self) -> list[str]:
        """Return the agents that give hints, those of the command line first."""
        return [*self._named, *ADVISERS]

    def allows(self, spec: str) -> bool:
        """Return whether a page may name this agent; its options are not checked."""
        if spec in self._named:
            return True
        name, _, argument = spec.partition(":")
        if name not in registry.OPTIONS:
            return False
        first = argument.partition(",")[0]  # a model, or the first option
        if name not in _MODELS or not first or first in NAMES:
            return True
        key, equals, _ = first.partition("=")
        return bool(equals) and key.strip().isidentifier()

    def make(self, spec: str) -> Agent:
        """Make a new agent.

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
