"""Output to a terminal that several commands share: a progress bar, columns of text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


@contextlib.contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a progress bar on standard error; none without a terminal or rich.

    Args:
        what: name of the things to count.
        total: number of things.

    Yields:
        what to call with the number that is done.
    """
    try:
        from rich import progress
    except ImportError:
        yield lambda done: None
        return
    console = plain_console(stderr=True)
    with progress.Progress(
        *progress.Progress.get_default_columns(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console that prints texts as they are: names of users' hold what they like.

    Lines are as long as they are, so that commands in them can be copied.
    """
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_table(console: Console, table: Any) -> None:
    """Print a table of rich's as wide as it is, since a narrow one would drop names.

    Args:
        console: see `plain_console`.
        table: the table.
    """
    unlimited = console.options.update(max_width=10_000)
    width = console.measure(table, options=unlimited).maximum
    console.print(table, width=max(width, 1), crop=False, soft_wrap=False)


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """Format rows of cells as lines with aligned columns.

    Args:
        rows: rows of the same number of cells, one or more.
        right: True: all columns but the first are aligned on the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right and k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
