"""The report on a tournament, made from its summary: cross table, plots and an HTML page.

``standings`` is the ranking and the cross table, for a terminal; ``plots`` the
pictures; ``page`` the HTML; ``texts`` how values are written; ``report.css`` the page's style.
The same summary and the same matplotlib give the same bytes.

    >>> summary = json.loads(Path("runs/ladder/summary.json").read_text())
    >>> rich.print(cross_table(summary))
    >>> write_report(Path("runs/ladder"), summary)
"""

from __future__ import annotations

from pathlib import Path

from carolus_env.evaluation.report.page import page
from carolus_env.evaluation.report.plots import plots
from carolus_env.evaluation.report.standings import (
    StandingsRow,
    cross_table,
    standings,
    table_rows,
)
from carolus_env.evaluation.summary import Summary
from carolus_env.system.files import write_file

__all__ = [
    "StandingsRow",
    "cross_table",
    "standings",
    "table_rows",
    "write_report",
]


def write_report(folder: Path, summary: Summary) -> list[Path]:
    """Write plots and a self-contained page; all are made before the first is written.

    Args:
        folder: folder of the report; created if it does not exist.
        summary: a tournament's summary, complete or not, with ratings or without.

    Returns:
        The files: ``ratings.svg`` and ``.png`` where there are ratings, ``wins.svg`` and ``.png``,
        ``report.html``.

    Raises:
        OSError: when a file cannot be written.
        ValueError: when this is not the summary of a tournament.
    """
    lines = standings(summary)
    files = plots(lines)
    drawn = files.get("ratings.svg", b"").decode()
    files["report.html"] = page(summary, lines, drawn).encode()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_file(folder / name, data)
    return [folder / name for name in files]
