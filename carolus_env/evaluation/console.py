"""A tournament on a terminal: progress and standings while it is played, tables at the end.

This uses rich. Without it the tables are plain, and there is no progress bar.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from carolus_env.evaluation.columns import duration
from carolus_env.evaluation.games import ArenaError, Progress
from carolus_env.evaluation.pairing import PairingResult
from carolus_env.evaluation.seating import Plan, labels
from carolus_env.evaluation.stopping import standing_text
from carolus_env.evaluation.summary import extra, ratings
from carolus_env.evaluation.tournament import Tournament
from carolus_env.system.terminal import aligned

_COLUMNS = ("pairing", "games", "win rate % [95 %]", "W-D-L", "castles", "rounds", "ended by")
_WRAPPED = ("pairing", "ended by")  # where the terminal is narrow
_REDRAWN = 2.0  # seconds between two updates of the table, at least
_SPARED = 20  # or this multiple of an update's time, for which games wait


@contextlib.contextmanager
def watching(tournament: Tournament, *, quiet: bool = False) -> Iterator[Progress]:
    """Show a progress bar, the time left and the table so far; on a terminal only."""
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
    drawn, since, pause = 0, time.monotonic(), _REDRAWN
    with Live(bar, console=console, transient=True, refresh_per_second=4) as live:

        def update(done: int) -> None:
            nonlocal drawn, since, pause
            bar.update(task, completed=done)
            begun = time.monotonic()
            if tournament.games > drawn and begun - since > pause:
                table = _rich_table("", tournament.plan, tournament.pairings())
                live.update(Group(table, *_rated(tournament), *_stop_rule(tournament), bar))
                drawn, since = tournament.games, time.monotonic()
                pause = max(_REDRAWN, _SPARED * (since - begun))

        yield update


def print_tables(title: str, tournament: Tournament, summary: dict[str, Any] | None = None) -> None:
    """Print a row for each pairing, from its first agent's side; times; stop rule; cross table.

    Args:
        title: title of the first table.
        tournament: a tournament with at least one complete deal.
        summary: the tournament's summary, for the cross table; None: no cross table.
    """
    plan, pairings = tournament.plan, tournament.pairings()
    try:
        from rich.console import Console
    except ImportError:
        _print_plain(title, plan, pairings)
        print("\n".join([_speeds(tournament), *_stop_rule(tournament)]))
        _print_cycle(summary)
        return

    def print_table(table: Any) -> None:
        console = Console()
        if not console.is_terminal:  # a file has no width that limits the table
            console = Console(width=Console(width=10_000).measure(table).maximum)
        console.print(table)

    print_table(_rich_table(title, plan, pairings))
    for line in ([] if summary else [_speeds(tournament)]) + _stop_rule(tournament):
        print(line)
    if summary is not None:
        with contextlib.suppress(ArenaError):  # the caller has reported a missing extra
            print_table(extra("report").cross_table(summary))
    _print_cycle(summary)


def _print_cycle(summary: dict[str, Any] | None) -> None:
    if summary and summary["cycle"]:
        print(f"cycle: {summary['cycle']}")


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
        table.add_row(*map(Text, row))  # Text: a spec is not markup
    return table


def _print_plain(title: str, plan: Plan, pairings: Sequence[PairingResult]) -> None:
    print("\n".join([title, *aligned([_COLUMNS, *_rows(plan, pairings)])]))


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


def _rated(tournament: Tournament) -> list[str]:
    """Return the ratings so far in one line; empty without any, or without the extra."""
    plan = tournament.plan
    try:
        result = ratings(plan, tournament.results)
    except (ArenaError, ValueError):  # or not all have met
        return []
    parts = [
        f"{name} {elo:+.0f} [{low:.0f}, {high:.0f}]"
        for name, elo, low, high in zip(
            labels(plan.agents), result.elo, result.low, result.high, strict=True
        )
    ]
    return [f"Elo so far: {', '.join(parts)}"]


def _stop_rule(tournament: Tournament) -> list[str]:
    """Return the stop rule's state in one line; empty without a rule or a complete deal."""
    standing = tournament.standing()
    return [] if standing is None else [standing_text(tournament.plan, standing)]


def _speeds(tournament: Tournament) -> str:
    agents = tournament.summary(rated=False)["agents"]
    taken = {agent["spec"]: agent["us_per_decision"] for agent in agents}
    return "time for a decision: " + ", ".join(
        f"{spec} {duration(us)}" for spec, us in taken.items()
    )
