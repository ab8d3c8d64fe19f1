"""Play Carolus in the browser, and look at recorded games.

    python -m carolus_env.play
    python -m carolus_env.play games.jsonl.gz --lost planner

Starts a page on this machine alone. FILEs are game records, opened in the viewer.
"""

from __future__ import annotations

import argparse
import sys
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from carolus_env.engine.rules import CROWN_CHOICES, Rules
from carolus_env.play.roster import Roster, RosterError
from carolus_env.records import RecordError

DONE, USER_ERROR, INTERRUPTED = 0, 2, 130
NO_EXTRA: Final = "the page needs the extra 'play': pip install 'carolus-env[play]'"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (None: the command line's); returns the exit status."""
    options = _parser().parse_args(argv)
    try:
        return _terminal(options) if options.terminal else _serve(options)
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m carolus_env.play",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", metavar="FILE", nargs="*", help="game records, .jsonl or .jsonl.gz")
    add("--lost", metavar="BOT", help="of the FILEs only the games that this agent lost")
    add("--bot", metavar="SPEC", action="append", default=[], help="offer this agent too; "
        "repeatable: FILE.py:NAME, ppo:PATH, or any other spec")  # fmt: skip
    add("--port", type=int, metavar="N", help="listen there (default: one that is free)")
    add("--no-open", action="store_true", help="do not open the browser")
    add("--terminal", action="store_true", help="play in the terminal instead: a new game, or the "
        "first of a FILE")  # fmt: skip
    new = parser.add_argument_group("a new game in the terminal")
    new.add_argument("--players", type=int, default=2, metavar="N", help="2, 3 or 4 (default: 2)")
    new.add_argument("--people", type=int, default=1, metavar="N", help="in the first seats "
        "(default: 1); in the others each --bot in turn, or the planner")  # fmt: skip
    new.add_argument("--crown-choice", choices=CROWN_CHOICES, default=CROWN_CHOICES[0])
    new.add_argument("--seed", type=int, metavar="N", help="of dice and bots")
    return parser


def _serve(options: argparse.Namespace) -> int:
    try:
        from carolus_env.play import server
        from carolus_env.play.library import Book
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "anyio"):
            raise
        return _complain(NO_EXTRA)
    if options.lost and not options.files:
        return _complain("--lost picks games of a FILE: name one")
    if options.port is not None and not 0 <= options.port < 65536:
        return _complain(f"--port must be from 0 to 65535, got {options.port}")
    books = []
    for path in options.files:
        try:
            books.append(Book.of_file(path, options.lost))
        except RecordError as error:
            return _complain(f"{path}: {error}")
        except OSError as error:
            return _complain(f"{path}: {error.strerror or error}")
    try:
        house = server.House(Roster(options.bot), books)
    except RosterError as error:
        return _complain(str(error))
    try:
        listening = server.open_socket(options.port)
    except OSError as error:
        return _complain(f"port {options.port}: {error.strerror or error}")
    address = f"http://{server.HOST}:{listening.getsockname()[1]}/"
    if house.opened:
        address += f"replay/{house.opened[0]}"
    print(f"Carolus is at {address} (Ctrl-C stops it)", flush=True)
    if not options.no_open:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    server.make_server(house, listening).run(sockets=[listening])
    return DONE


def _terminal(options: argparse.Namespace) -> int:
    from carolus_env.play import terminal

    if len(options.files) > 1:
        return _complain(f"in the terminal one FILE is played, got {len(options.files)}")
    try:
        roster = Roster(options.bot)
        if options.files:
            session = terminal.taken_up(terminal.first_record(Path(options.files[0])), roster)
        else:
            rules = Rules(options.players, options.crown_choice)
            session = terminal.new_session(rules, roster, options.bot, options.people, options.seed)
    except ValueError as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror or error}")
    terminal.run(session, roster)
    return DONE


def _complain(text: str) -> int:
    print(f"carolus_env.play: {text}", file=sys.stderr)
    return USER_ERROR


if __name__ == "__main__":
    sys.exit(main())
