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

MOST_SIMS: Final = 20_000
"""Simulations of a search that a page asks for."""
MOST_SECONDS: Final = 30
"""Its budget of time."""
THINKING_SECONDS: Final = 60
"""How long an agent that a page names may take for a decision or a hint."""
LIMITS: Final = (
    f"A search has up to {MOST_SIMS:,} simulations or {MOST_SECONDS} seconds, and a bot is stopped "
    f"after {THINKING_SECONDS} seconds. Bots that are named on the command line with --bot have no "
    "limits."
)

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
        limited: whether `LIMITS` hold for the others.

    Raises:
        RosterError: for one that cannot be made.
    """

    def __init__(self, named: Sequence[str] = (), *, limited: bool = True) -> None:
        self._named, self._limited = tuple(named), limited
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

    def is_named(self, spec: str) -> bool:
        """Whether it was named on the command line."""
        return spec in self._named

    def allows(self, spec: str) -> bool:
        """Whether a page may name this agent; its options are not checked."""
        if self.is_named(spec):
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
            RosterError: when a page may not name it, or an option is wrong or beyond the limits.
        """
        if not self.allows(spec):
            offered = ", ".join(row.spec for row in self.menu())
            raise RosterError(
                f"{spec[:100]!r} is not offered here; offered are {offered}. To use an agent from "
                "a file, name it on the command line with --bot"
            )
        agent = _made(spec)
        if self._limited and not self.is_named(spec):
            options = getattr(agent, "options", None)
            for name, most in (("sims", MOST_SIMS), ("seconds", MOST_SECONDS)):
                if (asked := getattr(options, name, 0)) > most:
                    raise RosterError(f"{name} may be up to {most:,} here, got {asked:,}. {LIMITS}")
        return agent


def _made(spec: str) -> Agent:
    try:
        return bots.make(spec)
    except (ValueError, ModelError) as error:
        raise RosterError(str(error)) from error
