"""Files of game records that are named on the command line: lists of their games."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

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
