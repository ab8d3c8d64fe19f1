"""Play Carolus in the browser or in the terminal, and view recorded games.

    python -m carolus_env.play
    python -m carolus_env.play games.jsonl.gz --lost planner

The page can be reached from this machine only. The viewer opens FILEs of game records.
"""

from __future__ import annotations

import argparse
import sys
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from carolus_env.engine.rules import Rules
from carolus_env.play.roster import Roster, RosterError
from carolus_env.records import RecordError
from carolus_env.system.failures import install
from carolus_env.system.options import add_arguments, command_parser, from_arguments
from carolus_env.system.terminal import discard_output

PROGRAM: Final = "python -m carolus_env.play"
DONE, USER_ERROR, INTERRUPTED = 0, 2, 130
NO_EXTRA: Final = "the page needs the extra 'play': " + install("play")


def main(argv: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Run the command; returns the exit status.

    Args:
        argv: the command's arguments; None: those of the command line.
        program: the words before them on the command line.
    """
    options = _parser(program).parse_args(argv)
    try:
        return _terminal(options) if options.terminal else _serve(options, program)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader, say `head`, has closed the pipe
        discard_output()
        return 141


def _parser(program: str) -> argparse.ArgumentParser:
    parser = command_parser(__doc__, program)
    add = parser.add_argument
    add("files", metavar="FILE", nargs="*", help="game records, .jsonl or .jsonl.gz")
    add("--lost", metavar="BOT", help="open only the games of the FILEs that BOT lost")
    add("--bot", metavar="SPEC", action="append", default=[], help="also offer this bot: "
        "FILE.py:NAME, ppo:PATH, or any other spec; may be repeated")  # fmt: skip
    add("--port", type=int, metavar="N", help="listen on this port (default: 8715, or a free one)")
    add("--no-open", action="store_true", help="do not open a browser")
    add("--terminal", action="store_true", help="play in the terminal: a new game, or the "
        "first game of FILE")  # fmt: skip
    new = parser.add_argument_group("options of a new game in the terminal")
    new.add_argument("--people", type=int, default=1, metavar="N", help="people in the first seats "
        "(default: 1); bots take the others: each --bot in turn, or the planner")  # fmt: skip
    new.add_argument("--seed", type=int, metavar="N", help="seed of dice and bots")
    add_arguments(new, Rules)
    return parser


def _serve(options: argparse.Namespace, program: str) -> int:
    try:
        from carolus_env.play import server
        from carolus_env.play.api import Api
        from carolus_env.play.library import GameFile
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "anyio"):
            raise
        return _complain(NO_EXTRA)
    if options.lost and not options.files:
        return _complain("--lost needs a FILE of game records")
    if options.port is not None and not 0 <= options.port < 65536:
        return _complain(f"--port must be from 0 to 65535, got {options.port}")
    files = []
    for path in options.files:
        try:
            files.append(GameFile.from_path(path, options.lost))
        except RecordError as error:
            return _complain(f"{path}: {error}")
        except OSError as error:
            return _complain(f"{path}: {error.strerror or error}")
    try:
        api = Api(Roster(options.bot), files)
    except RosterError as error:
        return _complain(str(error))
    try:
        listening = server.open_socket(options.port)
    except OSError as error:
        return _complain(f"port {options.port}: {error.strerror or error}")
    address = f"http://{server.HOST}:{listening.getsockname()[1]}/"
    if api.named_files:
        address += f"replay/{next(iter(api.named_files))}"
    print(f"Carolus is at {address} (press Ctrl-C to stop)", flush=True)
    if not options.no_open:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    return server.serve(api, listening, program)


def _terminal(options: argparse.Namespace) -> int:
    from carolus_env.play import terminal

    if len(options.files) > 1:
        return _complain(f"the terminal plays one FILE, got {len(options.files)}")
    try:
        roster = Roster(options.bot)
        if options.files:
            session = terminal.taken_up(terminal.first_record(Path(options.files[0])), roster)
        else:
            rules = from_arguments(Rules, options)
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
