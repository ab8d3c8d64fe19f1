"""Record files that were opened: their games, position by position."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env.engine.rules import Rules
from carolus_env.engine.state import States
from carolus_env.notation.words import team_names
from carolus_env.play.session import (
    LONGEST_NAME,
    check_replays,
    log_line,
)
from carolus_env.records import (
    Record,
    RecordError,
    positions,
    record_line,
    scan_file,
    scan_records,
)

MAX_GAMES: Final = 2000
"""Games that are taken of a file; what is no game counts too."""
MAX_TAKEN: Final = 32 * 2**20
"""Bytes of records that are taken of a file, when it is unpacked."""


class Summary(NamedTuple):
    """A game of a file, in a line of a list."""

    title: str
    names: tuple[str, ...]
    players: int
    rounds: int | None
    reason: str | None
    winners: tuple[int, ...]


class Replay:
    """A game of a record, which replays, in all its positions.

    Attributes:
        record: the game's.
        rules, names: of the game; names that cannot be shown are replaced.
        agents: the spec of each seat as far as the record tells, None: it does not.
        states: ``(events + 1,)``, before each event and after the last.
        log: a line for each event.
        decisions: indices of the events that are decisions.

    Raises:
        RecordError: when it does not replay.
    """

    def __init__(self, record: Record) -> None:
        check_replays(record)
        self.record = record
        self.rules = Rules.from_dict(record["rules"])
        self.names = names_of(record)
        self.agents = agents_of(record)
        self.states: States = positions(record)
        events = record["events"]
        teams = team_names(self.rules, self.names)
        self.log = [
            log_line(self.states[index], self.states[index + 1], index, event, teams)
            for index, event in enumerate(events)
        ]
        self.decisions = [index for index, event in enumerate(events) if "action" in event]

    @property
    def events(self) -> int:
        """How many there are; positions are numbered from 0 to this."""
        return len(self.log)

    def last(self, position: int) -> tuple[np.void, int] | None:
        """The state before the last decision before a position, and that decision."""
        for index in range(position - 1, -1, -1):
            event: dict[str, Any] = self.record["events"][index]
            if "action" in event:
                return self.states[index], event["action"]
        return None


class Book:
    """The games of one file, kept as lines and read when they are looked at.

    Attributes:
        name: of the file.
        problems: what was wrong with it, a sentence each.
        games: a line for a list, of each game.
    """

    def __init__(self, name: str, entries: Iterable[tuple[int, Record | RecordError]]) -> None:
        self.name = name
        self.problems: list[str] = []
        self.games: list[Summary] = []
        self._lines: list[bytes] = []
        self._opened: dict[int, Replay] = {}
        taken = 0
        for line, entry in entries:
            if len(self.games) + len(self.problems) == MAX_GAMES or taken > MAX_TAKEN:
                if self.games:
                    shown = f"only the first {len(self.games):,} games are shown"
                    self.problems.insert(0, shown)
                break
            try:
                if isinstance(entry, RecordError):
                    raise entry
                data = record_line(entry)
            except RecordError as error:
                self.problems.append(f"line {line}: {error.reason}")
                continue
            taken += len(data)
            self._lines.append(data)
            self.games.append(_summary(line, entry))

    @classmethod
    def of_bytes(cls, name: str, data: bytes) -> Book:
        """The games of a file's content, plain or gzip.

        Raises:
            RecordError: when there is none in it; with the reason.
        """
        return cls(name, scan_file(io.BytesIO(data), name, most=MAX_TAKEN))._or_refused()

    @classmethod
    def of_file(cls, path: str | Path, lost_by: str | None = None) -> Book:
        """The games of a file.

        Args:
            path: plain or gzip.
            lost_by: an agent; only games that it lost, by the names in the records.

        Raises:
            RecordError: when there is none in it.
            OSError: when it cannot be read.
        """
        entries: Iterable[tuple[int, Record | RecordError]] = scan_records(path)
        if lost_by is None:
            return cls(os.fspath(path), entries)._or_refused()
        kept = (
            (line, entry)
            for line, entry in entries
            if isinstance(entry, RecordError) or lost(entry, lost_by)
        )
        return cls(f"{os.fspath(path)}: lost by {lost_by}", kept)._or_refused()

    def opened(self, game: int) -> Replay | None:
        """One of the games, if it is the one that was looked at last."""
        return self._opened.get(game)

    def replay(self, game: int) -> Replay:
        """One of the games; may take a moment.

        Raises:
            IndexError: when there is no such game.
            RecordError: when it does not replay.
        """
        if not 0 <= game < len(self._lines):
            raise IndexError(game)
        found = Replay(json.loads(self._lines[game]))
        self._opened = {game: found}
        return found

    def _or_refused(self) -> Book:
        if not self.games:
            raise RecordError(self.problems[0] if self.problems else "there is no game in it")
        return self


def lost(record: Record, agent: str) -> bool:
    """Whether ``agent`` sat in the game and every seat of its lost."""
    result = record["result"]
    seats = [seat for seat, spec in enumerate(agents_of(record)) if spec == agent]
    if result is None or not seats or len(result["returns"]) <= max(seats):
        return False
    return all(result["returns"][seat] < 0 for seat in seats)


def names_of(record: Record) -> tuple[str, ...]:
    """The seats' names that a record carries, made fit to be shown; else ``player 0`` and on."""
    players = Rules.from_dict(record["rules"]).players
    for key in ("names", "agents"):
        given: Any = record.get(key)
        if _texts(given, players):
            return tuple(_shown(name) or f"player {seat}" for seat, name in enumerate(given))
    return tuple(f"player {seat}" for seat in range(players))


def agents_of(record: Record) -> tuple[str | None, ...]:
    """The seats' agents that a record carries, None: not told, or a person."""
    players = Rules.from_dict(record["rules"]).players
    given = record.get("agents")
    if not isinstance(given, list) or len(given) != players:
        return (None,) * players
    return tuple(spec if isinstance(spec, str) else None for spec in given)


def _texts(given: Any, players: int) -> bool:
    return (
        isinstance(given, list)
        and len(given) == players
        and all(isinstance(name, str) for name in given)
    )


def _shown(name: str) -> str:
    letters = [letter if letter.isprintable() else "?" for letter in name[:LONGEST_NAME]]
    return "".join(letters).strip()


def _summary(line: int, record: Record) -> Summary:
    result = record["result"]
    names = names_of(record)
    number = record.get("game")
    title = f"game {number}" if type(number) is int and number >= 0 else f"line {line}"
    return Summary(
        title,
        names,
        len(names),
        result and result["rounds"],
        result and _shown(result["reason"]),
        tuple(result["winners"]) if result else (),
    )
