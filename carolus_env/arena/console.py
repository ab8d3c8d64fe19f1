"""What a terminal shows of a tournament: progress with the table so far, and the tables at the end.

It looks best with rich; without it the tables are plain and nothing is shown while games go on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from carolus_env.arena.games import ArenaError, Progress
from carolus_env.arena.pairing import PairingResult
from carolus_env.arena.seating import Plan
from carolus_env.arena.summary import extra
from carolus_env.arena.tournament import Tournament

_COLUMNS = ("pairing", "games", "win rate % [95 %]", "W-D-L", "castles", "rounds", "ended by")
_WRAPPED = ("pairing", "ended by")  # where the terminal is narrow
_REDRAWN = 2.0  # seconds between two looks at the table so far


@contextlib.contextmanager
def watching(tournament: Tournament, *, quiet: bool = False) -> Iterator[Progress]:
    """A bar with the time left, and the table so far, on a terminal; else nothing."""
    try:
        from rich import progress
        from rich.console import Console, Group
        from rich.live import Live
    except ImportError:
        yield lambda done: None
        return
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done: None
        return
    bar = progress.Progress(
        progress.TextColumn("games"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    task = bar.add_task("games", total=tournament.plan.games)
    shown, looked = 0, time.monotonic()
    with Live(bar, console=console, transient=True, refresh_per_second=4) as live:

        def told(done: int) -> None:
            nonlocal shown, looked
            bar.update(task, completed=done)
            if tournament.games > shown and time.monotonic() - looked > _REDRAWN:
                table = _rich_table("", tournament.plan, tournament.pairings())
                live.update(Group(table, bar))
                shown, looked = tournament.games, time.monotonic()

        yield told


def print_tables(title: str, tournament: Tournament, summary: dict[str, Any] | None = None) -> None:
    """One row a pairing, seen from its first agent; how fast the agents are; the cross table.

    Args:
        title: of the first table.
        tournament: with at least one whole deal.
        summary: of it, for the cross table; None: without.
    """
    plan, pairings = tournament.plan, tournament.pairings()
    try:
        from rich.console import Console
    except ImportError:
        _print_plain(title, plan, pairings)
        print(_speeds(tournament))
        return

    def show(table: Any) -> None:
        console = Console()
        if not console.is_terminal:  # a file has no width that the table must fit
            console = Console(width=Console(width=10_000).measure(table).maximum)
        console.print(table)

    show(_rich_table(title, plan, pairings))
    print(_speeds(tournament))
    if summary is not None:
        with contextlib.suppress(ArenaError):  # its caller has said so
            show(extra("report").cross_table(summary))


def _rich_table(title: str, plan: Plan, pairings: Sequence[PairingResult]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=0
    )
    for name in _COLUMNS:
        table.add_column(Text(name), no_wrap=name not in _WRAPPED, overflow="fold")
    for row in _rows(plan, pairings):
        table.add_row(*map(Text, row))  # Text: a spec is no markup
    return table


def _print_plain(title: str, plan: Plan, pairings: Sequence[PairingResult]) -> None:
    rows = _rows(plan, pairings)
    print(title)
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    for row in (_COLUMNS, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _rows(plan: Plan, pairings: Sequence[PairingResult]) -> list[list[str]]:
    names = labels(plan.agents)
    return [
        _row(names[first], names[second], pairing)
        for (first, second), pairing in zip(plan.pairs, pairings, strict=False)
    ]


def _row(first: str, second: str, pairing: PairingResult) -> list[str]:
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


def _speeds(tournament: Tournament) -> str:
    agents = tournament.summary(rated=False)["agents"]
    taken = {agent["spec"]: agent["us_per_decision"] for agent in agents}
    return "time for a decision: " + ", ".join(f"{spec} {us:.3g} us" for spec, us in taken.items())


def labels(specs: Sequence[str]) -> list[str]:
    """The specs, numbered where one is given twice."""
    return [
        f"{spec} #{specs[: place + 1].count(spec)}" if specs.count(spec) > 1 else spec
        for place, spec in enumerate(specs)
    ]
