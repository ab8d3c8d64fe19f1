"""Commands about games: ``carolus play`` plays and shows them, ``carolus replay`` checks them."""

from __future__ import annotations

import asyncio
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from carolus_env.notation import game_text
from carolus_env.play.session import Roster
from carolus_env.records import Record, RecordError, replay, scan_records, start_of
from carolus_env.system.command import USER_ERROR, command, needs, parse
from carolus_env.system.files import expanded
from carolus_env.system.machine import MissingExtraError
from carolus_env.system.options import UserError, argument, option

_PLAY: Final = """\
Play Carolus in the browser, and view recorded games.

    carolus play
    carolus play games.jsonl.gz --lost planner

The page can be reached from this machine only. The viewer opens FILEs of game records.
"""


@dataclass(frozen=True)
class PlayOptions:
    """The options of ``carolus play``."""

    files: tuple[str, ...] = argument(
        "game records, .jsonl or .jsonl.gz, - for standard input", "FILE", ()
    )
    lost: str | None = option(
        None, "open only the games of the FILEs that BOT lost", kind=str, metavar="BOT"
    )
    bot: tuple[str, ...] = option(
        (),
        "also offer this bot: FILE.py:NAME, ppo:PATH, or any other spec; may be repeated",
        repeated=True,
        metavar="SPEC",
    )
    port: int | None = option(
        None, "listen on this port; by default 8715, or a free one", kind=int, among=(0, 65535)
    )
    no_open: bool = option(False, "do not open a browser")


@command("carolus play")
def main(arguments: Sequence[str], program: str) -> int:
    """Serve the page until Ctrl-C, and return the exit code."""
    options, given = parse(PlayOptions, arguments, program, _PLAY)
    needs(given, "lost", options.files, "a FILE of game records")
    try:
        from carolus_env.play import server
        from carolus_env.play.session import GameFile
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "anyio"):
            raise
        raise MissingExtraError(error.name, "the page", "play") from error
    if hasattr(sys, "ps1") or asyncio._get_running_loop() is not None:
        text = "the page ends Python with itself: start `carolus play` as a program of its own"
        raise UserError(f"{text}, in a notebook by `!carolus play`")
    files = []
    for path in map(str, map(expanded, options.files)):
        try:
            files.append(GameFile(path, options.lost))
        except (OSError, RecordError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"{path}: {reason}") from error
    api = server.Api(Roster(options.bot), files)
    try:
        listening = server.open_socket(options.port)
    except OSError as error:
        raise UserError(f"port {options.port}: {error.strerror or error}") from error
    address = f"http://{server.HOST}:{listening.getsockname()[1]}/{'replay/0' * bool(files)}"
    print(f"Carolus is at {address} (press Ctrl-C to stop)", flush=True)
    if not options.no_open:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    return server.serve(api, listening, program)


# ------------------------------------------------------------------------------------ replay

_REPLAY: Final = """\
Replay game records (JSON Lines, plain or gzip) and compare them with the engine: player to move,
dice, legal actions, states, results.

Exit code: 0: no difference; 1: a difference; 2: a file that is missing, cannot be read or is not a
record (the other games are still replayed).
"""


@dataclass(frozen=True)
class ReplayOptions:
    """The options of ``carolus replay``."""

    files: tuple[str, ...] = argument("a file of game records, or - for standard input", "FILE")
    quiet: bool = option(False, "do not show the first difference")
    text: bool = option(False, "print the games in notation (docs/notation.md)")


@command("carolus replay", failed=USER_ERROR)
def check(arguments: Sequence[str], program: str) -> int:
    """Replay, print, and return the exit code."""
    options = parse(ReplayOptions, arguments, program, _REPLAY).options
    games = differences = problems = 0
    for path in map(str, map(expanded, options.files)):
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
