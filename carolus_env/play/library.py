"""What a page offers: agents, and the games of files that are named on the command line."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from carolus_env import bots
from carolus_env.bots import Agent, registry
from carolus_env.networks.files import NAMES, ModelError
from carolus_env.play.session import agents_of
from carolus_env.records import Record, RecordError, names_of, record_line, scan_records

MAX_LINES: Final = 2000
"""Maximum number of lines read of a file, with or without a game."""
MAX_BYTES: Final = 32 * 2**20
"""Maximum number of bytes read of a file, after unpacking."""


class GameFile:
    """The games of one file, plain or gzip; with ``lost_by`` only those that this agent lost.

    RecordError says why it holds none.
    """

    def __init__(self, path: str | Path, lost_by: str | None = None) -> None:
        self.name = os.fspath(path) + (f": lost by {lost_by}" if lost_by else "")
        self.problems: list[str] = []  # a sentence for each error in the file
        self.games: list[dict[str, Any]] = []
        self.lines: list[bytes] = []  # each game's record
        size = 0
        for line, entry in scan_records(path):
            if len(self.games) + len(self.problems) == MAX_LINES or size >= MAX_BYTES:
                self.problems.insert(0, f"only the first {len(self.games):,} games are listed")
                break
            try:
                if isinstance(entry, RecordError):
                    raise entry
                if lost_by is not None and not was_lost(entry, lost_by):
                    continue
                self.lines.append(record_line(entry))
            except RecordError as error:
                self.problems.append(f"line {line}: {error.reason}")
                continue
            size += len(self.lines[-1])
            self.games.append(_summary(line, entry))
        if not self.games:
            raise RecordError([*self.problems, "there is no game record in it"][0])


def was_lost(record: Record, agent: str) -> bool:
    """Return whether ``agent`` played the game and lost in all its seats."""
    result = record["result"]
    seats = [seat for seat, spec in enumerate(agents_of(record)) if spec == agent]
    if result is None or not seats or len(result["returns"]) <= max(seats):
        return False
    return all(result["returns"][seat] < 0 for seat in seats)


def _summary(line: int, record: Record) -> dict[str, Any]:
    """Return a game for a list; ``rounds`` is None before its end."""
    number, result = record.get("game"), record["result"] or {}
    title = f"game {number}" if type(number) is int and number >= 0 else f"line {line}"
    return {"title": title, "names": names_of(record), "rounds": result.get("rounds")}


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
_MOST_IDLE: Final = 16


class Level(NamedTuple):
    """A level of strength."""

    name: str
    about: str  # a description in a few words
    agents: dict[int, str]  # the spec of the agent that plays so, by number of players


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
"""Levels from weakest to strongest: about -1,000, about -300, above the ladder."""


class RosterError(ValueError):
    """A spec that is wrong, or that a page may not name."""


class Roster:
    """The agents that a page may use.

    A page names agents by spec. It may not name files, neither Python nor models: those are
    named on the command line by the user who starts the server, and offered under that spec.
    """

    def __init__(self, named: Sequence[str] = ()) -> None:
        self._named = tuple(named)
        self._idle = [(spec, _made(spec)) for spec in self._named]
        self._lock = threading.Lock()

    def menu(self) -> dict[str, str]:
        """Return the agents on offer and a description of each, those of the command line first."""
        return {**dict.fromkeys(self._named, "named on the command line"), **OFFERED}

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
        """Make a new agent; RosterError where a page may not name it, or an option is wrong."""
        if not self.allows(spec):
            raise RosterError(
                f"{spec[:100]!r} is not offered here; offered are {', '.join(self.menu())}. To use "
                "an agent from a file, name it on the command line with --bot"
            )
        return _made(spec)

    @contextmanager
    def lending(self) -> Iterator[Callable[[str], Agent]]:
        """Yield a function that lends agents to the ``with`` block, for it alone.

        To make one can take long: it may load a network or start a program. After an error what
        was lent is not lent again.
        """
        lent: list[tuple[str, Agent]] = []

        def lend(spec: str) -> Agent:
            with self._lock:
                found = next((pair for pair in self._idle if pair[0] == spec), None)
                if found is not None:
                    self._idle.remove(found)
            lent.append(found or (spec, self.make(spec)))
            return lent[-1][1]

        yield lend
        with self._lock:
            self._idle = [*self._idle, *lent][-_MOST_IDLE:]


def _made(spec: str) -> Agent:
    try:
        return bots.make(spec)
    except (ValueError, ModelError) as error:
        raise RosterError(str(error)) from error
