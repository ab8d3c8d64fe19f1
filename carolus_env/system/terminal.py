"""Output to a terminal that several commands share: a progress bar, columns of text."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path


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
        from rich.console import Console
    except ImportError:
        yield lambda done: None
        return
    console = Console(stderr=True)
    with progress.Progress(
        *progress.Progress.get_default_columns(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


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


def discard_output() -> None:
    """Discard what standard output still holds, or Python would try again on exit.

    Raises:
        OSError: when that is impossible.
    """
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
