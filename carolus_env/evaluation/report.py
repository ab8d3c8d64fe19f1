"""The report on a tournament, made from its summary: a plot, and a page of tables in HTML.

The same summary and the same versions of matplotlib and rich give the same bytes.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from carolus_env.evaluation import tables
from carolus_env.evaluation.summary import Summary
from carolus_env.evaluation.tables import BLUE, StandingsRow, percent, spaced
from carolus_env.system.failures import MissingExtraError
from carolus_env.system.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_DEALS: Final = 50
"""Number of deals below which the ratings' intervals are too narrow (docs/evaluation.md)."""


def check_installed() -> None:
    """Fail before a tournament is played if its report could not be written."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "a report", "evaluation")


def write_report(folder: Path, summary: Summary) -> list[Path]:
    """Write a plot and a self-contained page; all are made before the first is written."""
    check_installed()
    files = _plots(tables.standings(summary))
    files["report.html"] = _page(summary, files["ratings.svg"].decode()).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_file(folder / name, data)
    return [folder / name for name in files]


# ------------------------------------------------------------------------------------ the page

_STYLE: Final = """\
body{margin:0 auto;padding:1.5rem;max-width:80rem;background:#fff;color:#1c1c1c;
font:15px/1.45 system-ui,sans-serif}
p{color:#6b6b6b}pre{overflow-x:auto;font-size:.9rem}svg{max-width:100%;height:auto}"""


def _page(summary: Summary, drawn: str) -> str:
    """Return the page: HTML that needs no other file."""
    ends = summary["play"]["ends"]
    shares = [f"{percent(n / sum(ends.values()), 1)} % by {spaced(end)}" for end, n in ends.items()]
    notes = ["400 Elo points are odds of 10 to 1; in brackets the 95 % interval."]
    if "stop_rule" in summary:
        notes.append(f"Stop rule: {summary['stop_rule']['text']}.")
    notes.append("Numbered columns: win rate in percent against the agent of that rank.")
    if summary["deals"] < FEW_DEALS:
        notes.append(f"With only {summary['deals']} deals the intervals are a little too narrow.")
    title = _escaped(tables.title(summary))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tournament: {title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Carolus Magnus</h1>
<p>{title}</p>
<h2>Ranking</h2>
<div role="img" aria-label="ratings with their intervals">
{re.sub("<metadata>.*?</metadata>", "", drawn[drawn.find("<svg") :], flags=re.DOTALL)}
</div>
{_table(tables.cross_table(summary))}
<p>{_escaped(" ".join(notes))}</p>
<h2>Pairings</h2>
{_table(tables.pairings_table(summary))}
<p>{summary["play"]["mean_rounds"]:.1f} rounds a game; ended: {_escaped(", ".join(shares))}</p>
<h2>Made with</h2>
{_table(tables.facts_table(summary))}
</body>
</html>
"""


def _escaped(text: str) -> str:
    return html.escape(tables.printable(text))


def _table(table: tables.Table) -> str:
    """Return a table as HTML; every text in it is escaped."""
    console = Console(record=True, file=io.StringIO(), width=tables.WIDE, legacy_windows=False)
    console.print(table.fitted(tables.WIDE))
    return f"<pre>{console.export_html(code_format='{code}', inline_styles=True)}</pre>"


# ------------------------------------------------------------------------------------ the plot

_INK, _GREY = "#222222", "#767676"
_MOST_LINES: Final = 200  # lines of the plot, before they are closer together
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.hashsalt": "carolus",  # else ids in the file are random
    "text.parse_math": False,  # a spec is not a formula
    "font.size": 10,
    **dict.fromkeys((f"axes.spines.{side}" for side in ("top", "right", "left")), False),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), _GREY),
    **dict.fromkeys(
        ("axes.labelcolor", "text.color", "xtick.labelcolor", "ytick.labelcolor"), _INK
    ),
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
    "ytick.major.size": 0,
}


def _plots(lines: Sequence[StandingsRow]) -> dict[str, bytes]:
    """Return the plot of the ratings as files by name."""
    import matplotlib

    files, metadata = {}, {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # independent of the user's settings
        matplotlib.rcParams.update(_SETTINGS)
        figure = _ratings_plot(lines)
        for kind, about in metadata.items():
            image = io.BytesIO()
            how: Any = {"bbox_inches": "tight", "pad_inches": 0.08}  # all texts fit
            figure.savefig(image, format=kind, dpi=160, metadata=about, **how)
            files[f"ratings.{kind}"] = image.getvalue()
    return files


def _ratings_plot(lines: Sequence[StandingsRow]) -> Figure:
    """Plot ratings with their intervals, the strongest agent on top, numbers at the right."""
    from matplotlib.figure import Figure

    height = 0.75 + 0.33 * min(len(lines), _MOST_LINES)
    figure = Figure(figsize=(8, height), layout="constrained", facecolor="#ffffff")
    axes = figure.subplots()
    points = [line.rating["elo"] for line in lines]
    spread = max(points) - min(points)
    # The interval of a perfect score may end far outside: an arrow shows that it continues.
    least, most = min(points) - max(200, spread), max(points) + max(200, spread)
    for y, line in enumerate(lines):
        point, low, high = (line.rating[key] for key in ("elo", "low", "high"))
        axes.plot([max(low, least), min(high, most)], [y, y], color=BLUE, linewidth=2, alpha=0.55)
        axes.plot(point, y, "o", color=BLUE, markersize=6)
        for end, beyond, marker in ((least, low < least, "<"), (most, high > most, ">")):
            if beyond:
                axes.plot(end, y, marker, color=BLUE, markersize=5)
        axes.annotate(
            tables.elo(line.rating),
            (1, y),
            (8, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )
    axes.set_yticks(range(len(lines)), tables.shortened(line.name for line in lines))
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.margins(x=0.04)
    axes.grid(axis="x")
    axes.axvline(0, color=_GREY, linewidth=0.8, zorder=0.5)
    axes.set_xlabel("Elo with 95 % interval")
    return figure
