"""A tournament on a terminal: progress and standings while it is played, tables at the end.

This uses rich. Without it the tables are plain, and there is no progress bar. A terminal that is
too narrow for a table gets the columns on its left; names are folded, never left out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from carolus_env.evaluation.games import Progress
from carolus_env.evaluation.report.tables import Table, blend, cross_table, pairings_table
from carolus_env.evaluation.seating import labels
from carolus_env.evaluation.tournament import Tournament
from carolus_env.system.terminal import aligned

if TYPE_CHECKING:
    from rich.console import Group

_REDRAWN: Final = 2.0  # seconds between two updates of the table, at least
_SPARED: Final = 20  # or this multiple of an update's time, for which games wait
_PATCH: Final = 4  # width of a coloured cell
_NAME: Final = 8  # least width of a column of names


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
            deal = tournament.plan.games_per_deal
            if tournament.games >= max(drawn + 1, deal) and begun - since > pause:
                live.update(Group(so_far(tournament.summary(), console.width), bar))
                drawn, since = tournament.games, time.monotonic()
                pause = max(_REDRAWN, _SPARED * (since - begun))

        yield update


def print_tables(title: str, summary: dict[str, Any]) -> None:
    """Print a row for each pairing, the stop rule, the cross table, and a cycle of agents.

    Args:
        title: title of the first table.
        summary: the tournament's summary.
    """
    _print_table(pairings_table(summary)._replace(title=title))
    print(f"{summary['stop_rule']['text']}\n" if "stop_rule" in summary else "")
    _print_table(cross_table(summary))
    if summary["cycle"]:
        print(f"cycle: {summary['cycle']}")


def _print_table(table: Table) -> None:
    try:
        from rich.console import Console
    except ImportError:
        print("\n".join([table.title, *aligned(table.texts())]))
        return
    console = Console()
    if console.is_terminal:
        console.print(rich_table(table, console.width))
    else:  # a file has no width that limits the table
        drawn = rich_table(table)
        Console(width=Console(width=100_000).measure(drawn).maximum).print(drawn)


def rich_table(table: Table, width: int | None = None) -> Any:
    """Return a table for a terminal. Colours repeat what the numbers say.

    Args:
        table: the table.
        width: characters of a line; columns on the right that do not fit are left out, and the
            caption says which. None: all fit.
    """
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.table import Table as RichTable
    from rich.text import Text

    widths = [max(map(cell_len, column)) for column in zip(*table.texts(), strict=True)]
    centred = [column.align == "center" for column in table.columns]  # a patch of colour
    widths = [max(size, _PATCH * patch) for size, patch in zip(widths, centred, strict=True)]
    named = [column.align == "left" and k < 2 for k, column in enumerate(table.columns)]
    least = [min(size, _NAME) if name else size for size, name in zip(widths, named, strict=True)]
    kept, caption = len(widths), ""
    if width is not None:
        while kept > 3 and sum(least[:kept]) + 2 * (kept - 1) > width:
            kept -= 1
        room = max(width - sum(least[:kept]) - 2 * (kept - 1), 0)
        for k in range(kept):
            more = min(widths[k] - least[k], room) if named[k] else 0
            widths[k], room = least[k] + more, room - more
    if kept < len(widths):
        rest = [column.head for column in table.columns[kept:]]
        caption = f"left out, for want of width: {', '.join(rest)}"
    drawn = RichTable(
        title=Text(table.title),
        caption=Text(caption) if caption else None,
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for k, column in enumerate(table.columns[:kept]):
        drawn.add_column(
            Text(column.head),
            justify=column.align,  # type: ignore[arg-type]
            width=widths[k],
            no_wrap=not named[k],
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(
            *(
                Text(cell.text)  # Text: a spec is not markup
                if cell.rate is None
                else Text(f"{cell.text:^{_PATCH}}", style=f"#000000 on {blend(cell.rate)}")
                for cell in row[:kept]
            )
        )
    return drawn


def so_far(summary: dict[str, Any], width: int) -> Group:
    """Return what is shown while a tournament is played, in so many characters a line."""
    from rich.console import Group
    from rich.text import Text

    parts = [
        "{} {elo:+.0f} [{low:.0f}, {high:.0f}]".format(name, **agent["rating"])
        for name, agent in zip(
            labels([agent["spec"] for agent in summary["agents"]]), summary["agents"], strict=True
        )
    ]
    lines = [f"Elo so far: {', '.join(parts)}"]
    if "stop_rule" in summary:
        lines.append(summary["stop_rule"]["text"])
    return Group(rich_table(pairings_table(summary), width), *map(Text, lines))
