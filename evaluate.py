"""Let agents play each other: win rates with 95 % intervals, as a table and as JSON.

    python evaluate.py greedy random --players 3 --games 1000 --seed 7
    python evaluate.py ppo:runs/p2/best greedy my_bot.py:MyBot --json result.json

Every pair of the agents is a pairing. With 2 players both seatings are played equally often; with
3 each agent sits alone against two of the other, in all rotations; with 4 the agents are teams.
"""

from __future__ import annotations

import os

# Threads that spin while they wait slow everything else down; set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import contextlib
import itertools
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from carolus_env import arena, bots
from carolus_env._version import __version__
from carolus_env.files import check_writable, write_json
from carolus_env.rules import CROWN_CHOICES, PARTNERS, Rules

DONE, WRITE_FAILED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130


class UserError(Exception):
    """Something that the user can put right; the text is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script with these arguments (None: the command line's); returns the exit code."""
    try:
        options = _parser().parse_args(argv)
        code = _list_agents() if options.list else _evaluate(options)
        print(end="", flush=True)  # so that a full disk is met here, not at Python's exit
        return code
    except UserError as error:
        return _complain(str(error), USER_ERROR)
    except MemoryError:
        return _complain("not enough memory for so many games", USER_ERROR)
    except KeyboardInterrupt:
        return _complain("interrupted before any game was finished", INTERRUPTED)
    except BrokenPipeError:  # `| head` has seen enough
        return WRITE_FAILED
    except OSError as error:
        return _complain(f"the output could not be written: {error.strerror}", WRITE_FAILED)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="evaluate.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("agents", nargs="*", metavar="AGENT", help="two or more: see --list, or FILE.py:NAME")
    add("--players", type=int, default=2, metavar="P", help="2, 3 or 4 (default %(default)s)")
    add(
        "--games",
        type=int,
        default=1000,
        metavar="N",
        help="games of each pairing, rounded up to whole rotations (default %(default)s)",
    )
    add("--seed", type=int, default=0, metavar="S", help="the same seed gives the same games")
    add("--json", type=Path, metavar="FILE", help="write the results there too")
    add("--quiet", action="store_true", help="print nothing but errors")
    add("--list", action="store_true", help="list the known agents and stop")
    rules = parser.add_argument_group("rules")
    rules.add_argument("--crown-choice", choices=CROWN_CHOICES, default=CROWN_CHOICES[0])
    rules.add_argument("--partners", choices=PARTNERS, default=PARTNERS[0])
    rules.add_argument("--paladins-per-clan", type=int, default=40, metavar="K")
    rules.add_argument(
        "--max-rounds",
        type=_rounds,
        default=100,
        metavar="N",
        help="games are cut off then (default %(default)s); none: a game that is stuck never ends",
    )
    return parser


def _rounds(text: str) -> int | None:
    if text.lower() == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or none, got {text!r}") from None


def _list_agents() -> int:
    _register_learners()
    for name, about in bots.known().items():
        print(f"{name:14} {about}")
    print(f"{'FILE.py:NAME':14} an agent of your own from a Python file")
    return DONE


# ------------------------------------------------------------------------------------ evaluation


def _evaluate(options: argparse.Namespace) -> int:
    rules, played = _checked(options)
    agents = _make_agents(options.agents)
    if played > options.games and not options.quiet:
        print(
            f"{options.games} games rounded up to {played}: whole rotations of the seats",
            file=sys.stderr,
        )
    started = time.perf_counter()
    pairings, code, trouble = _play(options, rules, agents, played)
    seconds = time.perf_counter() - started

    unsaved = ""
    if options.json and pairings:
        report = _report(options, rules, pairings, seconds, complete=code == DONE)
        try:
            write_json(options.json, report)
        except OSError as error:
            unsaved = f"--json {options.json}: could not be written: {error.strerror or error}"
            code = code or WRITE_FAILED
    if pairings and (unsaved or not options.quiet):
        title = f"{rules.players} players, seed {options.seed}, {seconds:.1f} s"
        _print_table(title, _labels(options.agents), pairings)
    for text in filter(None, (trouble, unsaved)):
        _complain(text, code)
    return code


def _checked(options: argparse.Namespace) -> tuple[Rules, int]:
    """The rules, and how many games a pairing has; a `UserError` for what cannot be played."""
    try:
        rules = Rules(
            players=options.players,
            crown_choice=options.crown_choice,
            partners=options.partners,
            paladins_per_clan=options.paladins_per_clan,
            max_rounds=options.max_rounds,
        )
        played = len(arena.pairing_tables(rules, options.games))
    except ValueError as error:
        raise UserError(_one_line(error)) from error
    if not 0 <= options.seed < 2**64:
        raise UserError(f"seed must be from 0 to 2^64 - 1, got {options.seed}")
    if len(options.agents) < 2:
        raise UserError(f"name two agents or more, got {len(options.agents)} (--list shows them)")
    if options.json:
        try:
            check_writable(options.json)  # before hours are played
        except OSError as error:
            raise UserError(
                f"--json {options.json}: cannot be written: {error.strerror or error}"
            ) from error
    return rules, played


def _play(
    options: argparse.Namespace, rules: Rules, agents: Sequence[bots.Agent], played: int
) -> tuple[list[arena.PairingResult], int, str]:
    """The pairings as far as they came, the exit code, and what stopped them."""
    pairings: list[arena.PairingResult] = []
    finished = 0
    total = played * (len(agents) * (len(agents) - 1) // 2)
    try:
        with _progress_bar(total, options.quiet) as advance:

            def progress(done: int) -> None:
                nonlocal finished
                finished = done
                advance(done)

            pairs = arena.round_robin(
                agents, rules, options.games, seed=options.seed, progress=progress
            )
            for pairing in pairs:  # not list(pairs): an error keeps what is complete
                pairings.append(pairing)  # noqa: PERF402
    except arena.ArenaError as error:
        return pairings, USER_ERROR, _one_line(error)
    except KeyboardInterrupt:
        counted = sum(pairing.games for pairing in pairings)
        text = (
            f"interrupted: {finished} of {total} games finished, {counted} counted "
            "(those played side by side count together: the short ones finish first)"
        )
        return pairings, INTERRUPTED, text
    return pairings, DONE, ""


def _register_learners() -> str:
    """Import what learns, for its specs; it imports torch only when one is used."""
    try:
        import agents  # noqa: F401
    except ImportError as error:
        return "" if error.name == "agents" else f" (agents that learn are missing: {error})"
    return ""


def _make_agents(specs: Sequence[str]) -> list[bots.Agent]:
    missing = _register_learners()
    made: dict[str, bots.Agent] = {}
    for spec in specs:
        if spec in made:
            continue
        try:
            made[spec] = bots.make(spec)
        except bots.UnknownAgentError as error:
            known = ", ".join(bots.known())
            raise UserError(
                f"unknown agent {spec!r}; known are {known} or FILE.py:NAME{missing}"
            ) from error
        except Exception as error:  # a file or model of the user's own can fail in any way
            text = _one_line(error)
            named = text.startswith("agent ")
            raise UserError(text if named else f"agent {spec!r}: {text}") from error
    return [made[spec] for spec in specs]


@contextlib.contextmanager
def _progress_bar(total: int, quiet: bool) -> Iterator[arena.Progress]:
    """A bar with the time left on a terminal, where rich is installed; else nothing."""
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        yield lambda done: None
        return
    console = Console(stderr=True)
    with progress.Progress(
        progress.TextColumn("games"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    ) as bar:
        task = bar.add_task("games", total=total)
        yield lambda done: bar.update(task, completed=done)


# ------------------------------------------------------------------------------------ the table

_COLUMNS = (
    "pairing",
    "games",
    "win rate % [95 %]",
    "W-D-L",
    "castles",
    "rounds",
    "ended by",
)
_WRAPPED = ("pairing", "ended by")  # where the terminal is narrow


def _print_table(
    title: str, labels: Sequence[str], pairings: Sequence[arena.PairingResult]
) -> None:
    """One row a pairing, seen from its first agent; then how fast the agents are."""
    rows = [
        _row(first, second, pairing)
        for (first, second), pairing in zip(
            itertools.combinations(labels, 2), pairings, strict=False
        )
    ]
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print(title)
        widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
        for row in (_COLUMNS, *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())
    else:
        table = Table(
            title=Text(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=0
        )
        for name in _COLUMNS:
            table.add_column(Text(name), no_wrap=name not in _WRAPPED, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))  # Text: a spec is no markup
        console = Console()
        if not console.is_terminal:  # a file has no width that the table must fit
            console = Console(width=Console(width=10_000).measure(table).maximum)
        console.print(table)
    print(f"time for a decision: {_speeds(pairings)}")


def _speeds(pairings: Sequence[arena.PairingResult]) -> str:
    taken: dict[str, tuple[float, int]] = {}
    for pairing in pairings:
        for spec, seconds, decisions in zip(
            pairing.agents, pairing.seconds, pairing.decisions, strict=True
        ):
            before = taken.get(spec, (0.0, 0))
            taken[spec] = before[0] + seconds, before[1] + decisions
    return ", ".join(
        f"{spec} {1e6 * seconds / decisions:.3g} us" for spec, (seconds, decisions) in taken.items()
    )


def _row(first: str, second: str, pairing: arena.PairingResult) -> list[str]:
    low, high = pairing.ci95[0]
    return [
        f"{first} : {second}",
        str(pairing.games),
        f"{100 * pairing.win_rate[0]:.1f} [{100 * low:.1f}, {100 * high:.1f}]",
        f"{pairing.wins[0]}-{pairing.draws}-{pairing.wins[1]}",
        "{:.1f} : {:.1f}".format(*pairing.mean_castles),
        f"{pairing.mean_rounds:.1f}",
        ", ".join(f"{reason} {count}" for reason, count in pairing.ends.items()),
    ]


def _labels(specs: Sequence[str]) -> list[str]:
    """The specs, numbered where one is given twice."""
    return [
        f"{spec} #{specs[: place + 1].count(spec)}" if specs.count(spec) > 1 else spec
        for place, spec in enumerate(specs)
    ]


# ------------------------------------------------------------------------------------ the file


def _report(
    options: argparse.Namespace,
    rules: Rules,
    pairings: Sequence[arena.PairingResult],
    seconds: float,
    *,
    complete: bool,
) -> dict[str, Any]:
    """What the JSON file holds; only `seconds` differ between two runs with the same seed."""
    versions = {"carolus-env": __version__, "python": platform.python_version()}
    for name in ("numpy", "numba", "torch"):  # torch only where an agent has needed it
        if name in sys.modules:
            versions[name] = sys.modules[name].__version__
    versions["platform"] = platform.platform()
    return {
        "players": rules.players,
        "games": options.games,
        "seed": options.seed,
        "rules": rules.to_dict(),
        "versions": versions,
        "agents": list(options.agents),
        "complete": complete,
        "results": [pairing.to_dict() for pairing in pairings],
        "seconds": seconds,
    }


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _complain(text: str, code: int) -> int:
    print(f"evaluate.py: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
