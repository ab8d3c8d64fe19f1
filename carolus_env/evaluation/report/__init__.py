"""The report on a tournament, made from its summary: tables, plots and an HTML page.

``tables`` is what the terminal and the page show; ``plots`` the pictures; ``page.html`` the page's
template. The same summary and the same matplotlib give the same bytes.

    >>> summary = json.loads(Path("runs/ladder/summary.json").read_text())
    >>> cross_table(summary).texts()
    >>> write_report(Path("runs/ladder"), summary)
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from carolus_env.evaluation.report.plots import GREY, INK, LINE, PAPER, plots
from carolus_env.evaluation.report.tables import (
    BLUE,
    StandingsRow,
    Table,
    cross_table,
    facts,
    pairings_table,
    percent,
    play_table,
    printable,
    spaced,
    standings,
    strength_of_colour,
)
from carolus_env.evaluation.summary import Summary
from carolus_env.system.failures import MissingExtraError
from carolus_env.system.files import write_file

__all__ = [
    "StandingsRow",
    "Table",
    "check_installed",
    "cross_table",
    "pairings_table",
    "standings",
    "write_report",
]

FEW_DEALS: Final = 50
"""Number of deals below which the ratings' intervals are too narrow (docs/evaluation.md)."""


def check_installed() -> None:
    """Fail before a tournament is played if its report could not be written.

    Raises:
        MissingExtraError: when a package is missing; the text says how to install it.
    """
    for package in ("matplotlib", "jinja2"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "a report", "evaluation")


def write_report(folder: Path, summary: Summary) -> list[Path]:
    """Write plots and a self-contained page; all are made before the first is written.

    Args:
        folder: folder of the report; created if it does not exist.
        summary: a tournament's summary, complete or not.

    Returns:
        The files: ``ratings.svg`` and ``.png``, ``wins.svg`` and ``.png``, ``report.html``.

    Raises:
        MissingExtraError: when the extra ``evaluation`` is missing.
        OSError: when a file cannot be written.
        ValueError: when this is not the summary of a tournament.
    """
    check_installed()
    files = plots(standings(summary))
    files["report.html"] = _page(summary, files["ratings.svg"].decode()).encode()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_file(folder / name, data)
    return [folder / name for name in files]


def _page(summary: Summary, drawn: str) -> str:
    """Return the page: HTML that needs no other file, in light and dark colours."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        return value if isinstance(value, Markup) else printable(value)

    engine = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=finalize, keep_trailing_newline=True
    )
    ends = summary["play"]["ends"]
    total = sum(ends.values())
    tiles = [(f"{summary['play']['mean_rounds']:.1f}", "rounds a game")]
    tiles += [(f"{percent(n / total, 1)} %", f"ended by {spaced(end)}") for end, n in ends.items()]
    return engine.from_string(Path(__file__).with_name("page.html").read_text()).render(
        strength_of_colour=strength_of_colour,
        ranking=cross_table(summary),
        pairings=pairings_table(summary),
        agents=play_table(summary),
        plot=Markup(_themed(drawn)),
        stop_rule=summary.get("stop_rule"),
        cycle=summary["cycle"],
        deals=summary["deals"],
        few_deals=summary["deals"] < FEW_DEALS,
        tiles=tiles,
        facts=facts(summary),
    )


def _themed(svg: str) -> str:
    """Return a plot as part of the page, in the page's colours."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.find("<svg") :], flags=re.DOTALL)
    for colour, name in (
        (INK, "var(--ink)"),
        (GREY, "var(--grey)"),
        (LINE, "var(--line)"),
        (BLUE, "var(--more)"),
        (PAPER, "none"),
    ):
        svg = svg.replace(colour, name)
    return svg.replace("<svg ", '<svg role="img" aria-label="ratings with their intervals" ', 1)
