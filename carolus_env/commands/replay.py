"""Replay game records (JSON Lines, plain or gzip) and compare them with the engine: player to move,
dice, legal actions, states, results.

Exit code: 0: no difference; 1: a difference; 2: a file that is missing, cannot be read or is not a
record (the other games are still replayed).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from carolus_env.notation import game_text
from carolus_env.records import Record, RecordError, replay, scan_records, start_of
from carolus_env.system.command import USER_ERROR, command, parse
from carolus_env.system.options import REQUIRED, option


@dataclass(frozen=True)
class ReplayOptions:
    """The options of the command."""

    files: tuple[str, ...] = option(
        REQUIRED,
        "a file of game records, or - for standard input",
        kind=tuple,
        positional=True,
        metavar="FILE",
    )
    quiet: bool = option(False, "do not show the first difference")
    text: bool = option(False, "print the games in notation (docs/notation.md)")


@command("carolus replay", failed=USER_ERROR)
def main(arguments: Sequence[str], program: str) -> int:
    """Replay, print, and return the exit code."""
    options = parse(ReplayOptions, arguments, program, __doc__).options
    games = differences = problems = 0
    for path in options.files:
        for line, entry in _entries(path):
            if isinstance(entry, str):
                print(entry, file=sys.stderr)
                problems += 1
                continue
            result = replay(entry)
            if options.text and not result:
                print(game_text(start_of(entry), entry["events"]))
            if result and not differences and not options.quiet:
                print(f"{path}, line {line}, {result[0]}")
            games += 1
            differences += len(result)
    print(f"{games} games, {differences} differences", flush=True)
    return 2 if problems else 1 if differences else 0


def _entries(path: str) -> Iterator[tuple[int, Record | str]]:
    """Yield each game of a file with its line, and each thing wrong with the file as text."""
    errors: list[tuple[int, RecordError]] | None = []  # those before the first record
    try:
        for line, entry in scan_records(path):
            if isinstance(entry, RecordError) and errors is not None:
                errors.append((line, entry))
                continue
            yield from ((number, str(error)) for number, error in errors or ())
            errors = None
            yield line, str(entry) if isinstance(entry, RecordError) else entry
    except OSError as error:
        yield 0, f"{path}: {error.strerror or error}"
        return
    if errors is not None:
        reason = "".join(f": line {line}: {error.reason}" for line, error in errors[:1])
        yield 0, f"{path}: holds no game record{reason}"
