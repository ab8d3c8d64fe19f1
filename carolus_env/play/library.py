"""Files of game records: a list of their games, each opened when it is asked for."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from carolus_env.engine.rules import Rules
from carolus_env.play.session import Replay
from carolus_env.records import (
    Record,
    RecordError,
    names_of,
    printable,
    record_line,
    scan_file,
    scan_records,
)

MAX_LINES: Final = 2000
"""Maximum number of lines read of a file, with or without a game."""
MAX_BYTES: Final = 32 * 2**20
"""Maximum number of bytes read of a file, after unpacking."""


class Summary(NamedTuple):
    """A game of a file, for a list of its games."""

    title: str
    names: tuple[str, ...]
    players: int
    rounds: int | None
    reason: str | None
    winners: tuple[int, ...]


class GameFile:
    """The games of one file, kept as lines and replayed when they are opened.

    Attributes:
        name: the file's name.
        problems: descriptions of errors in the file, a sentence each.
        games: a summary of each game.

    Raises:
        RecordError: when it holds no game; with the reason.
    """

    def __init__(self, name: str, entries: Iterable[tuple[int, Record | RecordError]]) -> None:
        self.name = name
        self.problems: list[str] = []
        self.games: list[Summary] = []
        self._lines: list[bytes] = []
        self._opened: tuple[int, Replay] | None = None
        size = 0
        for line, entry in entries:
            if len(self.games) + len(self.problems) == MAX_LINES or size > MAX_BYTES:
                self.problems.insert(0, f"only the first {len(self.games):,} games are listed")
                break
            try:
                if isinstance(entry, RecordError):
                    raise entry
                data = record_line(entry)
            except RecordError as error:
                self.problems.append(f"line {line}: {error.reason}")
                continue
            size += len(data)
            self._lines.append(data)
            self.games.append(_summary(line, entry))
        if not self.games:
            raise RecordError([*self.problems, "there is no game record in it"][0])

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> GameFile:
        """Return the games in the content of a file, plain or gzip.

        Raises:
            RecordError: when there is none; with the reason.
        """
        return cls(name, scan_file(io.BytesIO(data), name, most=MAX_BYTES))

    @classmethod
    def from_path(cls, path: str | Path, lost_by: str | None = None) -> GameFile:
        """Return the games of a file.

        Args:
            path: plain or gzip.
            lost_by: an agent's spec; keep only the games that it lost.

        Raises:
            RecordError: when there is none.
            OSError: when the file cannot be read.
        """
        entries: Iterable[tuple[int, Record | RecordError]] = scan_records(path)
        if lost_by is None:
            return cls(os.fspath(path), entries)
        lost = (
            (line, entry)
            for line, entry in entries
            if isinstance(entry, RecordError) or was_lost(entry, lost_by)
        )
        return cls(f"{os.fspath(path)}: lost by {lost_by}", lost)

    def replay(self, game: int) -> Replay:
        """Open one of the games; the one opened last is kept.

        Raises:
            IndexError: when there is no such game.
            RecordError: when it does not replay.
        """
        if not 0 <= game < len(self._lines):
            raise IndexError(game)
        if self._opened is None or self._opened[0] != game:
            replay = Replay(json.loads(self._lines[game]))
            replay.log()  # here, in the thread of the request
            self._opened = game, replay
        return self._opened[1]


def was_lost(record: Record, agent: str) -> bool:
    """Return whether ``agent`` played the game and lost in all its seats."""
    result = record["result"]
    seats = [seat for seat, spec in enumerate(agents_of(record)) if spec == agent]
    if result is None or not seats or len(result["returns"]) <= max(seats):
        return False
    return all(result["returns"][seat] < 0 for seat in seats)


def agents_of(record: Record) -> tuple[str | None, ...]:
    """Return the spec of each seat's agent, from the record; None: a person, or unknown."""
    players = Rules.from_dict(record["rules"]).players
    value = record.get("agents")
    if not isinstance(value, list) or len(value) != players:
        return (None,) * players
    return tuple(spec if isinstance(spec, str) else None for spec in value)


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
        result and printable(result["reason"]),
        tuple(result["winners"]) if result else (),
    )
