"""Play Carolus in the browser or in the terminal, and view recorded games.

    carolus play
    carolus play games.jsonl.gz --lost planner

The page can be reached from this machine only. The viewer opens FILEs of game records.
"""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from carolus_env.engine.rules import MAX_PLAYERS, Rules
from carolus_env.play.session import Roster
from carolus_env.records import RecordError
from carolus_env.system.command import DONE, command, needs, parse, refuse_unused
from carolus_env.system.failures import MissingExtraError, UserError
from carolus_env.system.options import declared, group, option

_NEW: Final = "options of a new game in the terminal"


@dataclass(frozen=True)
class PlayOptions:
    """The options of the command."""

    files: tuple[str, ...] = option(
        (),
        "game records, .jsonl or .jsonl.gz, - for standard input",
        positional=True,
        metavar="FILE",
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
    terminal: bool = option(False, "play in the terminal: a new game, or the first game of FILE")
    people: int = option(
        1,
        "people in the first seats; bots take the others: each --bot in turn, or the planner",
        among=(0, MAX_PLAYERS),
        heading=_NEW,
    )
    seed: int | None = option(
        None, "seed of dice and bots", kind=int, among=(0, 2**64 - 1), heading=_NEW
    )
    rules: Rules = group(Rules, _NEW)


_GAME: Final = ("people", "seed", *declared(Rules))
MODES: Final = {
    "the page": ("files", "lost", "bot", "port", "no_open"),
    "--terminal with a FILE": ("terminal", "files", "bot"),
    "--terminal": ("terminal", "bot", *_GAME),
}
"""The options that each way to play uses; it refuses the rest."""


@command("carolus play")
def main(arguments: Sequence[str], program: str) -> int:
    """Open the page or the terminal, and return the exit code."""
    options, given = parse(PlayOptions, arguments, program, __doc__)
    with_file = " with a FILE" if options.files else ""
    mode = f"--terminal{with_file}" if options.terminal else "the page"
    refuse_unused(given, MODES[mode], mode)
    needs(given, "lost", options.files, "a FILE of game records")
    needs(given, "partners", options.rules.players == 4, "--players 4")
    return _terminal(options) if options.terminal else _serve(options, program)


def _serve(options: PlayOptions, program: str) -> int:
    try:
        from carolus_env.play import server
        from carolus_env.play.session import GameFile
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "anyio"):
            raise
        raise MissingExtraError(error.name, "the page", "play") from error
    files = []
    for path in options.files:
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
    page = "replay/0" if files else ""
    address = f"http://{server.HOST}:{listening.getsockname()[1]}/{page}"
    print(f"Carolus is at {address} (press Ctrl-C to stop)", flush=True)
    if not options.no_open:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    return server.serve(api, listening, program)


def _terminal(options: PlayOptions) -> int:
    from carolus_env.play import terminal

    if len(options.files) > 1:
        raise UserError(f"the terminal plays one FILE, got {len(options.files)}")
    if "-" in options.files:
        raise UserError("the terminal reads your moves from the standard input: name a FILE")
    roster = Roster(options.bot)
    if options.files:
        try:
            record = terminal.first_record(Path(options.files[0]))
        except OSError as error:
            raise UserError(f"{error.filename}: {error.strerror or error}") from error
        session = terminal.taken_up(record, roster)
    else:
        people, seed = options.people, options.seed
        session = terminal.new_session(options.rules, roster, options.bot, people, seed)
    terminal.run(session, roster)
    return DONE
