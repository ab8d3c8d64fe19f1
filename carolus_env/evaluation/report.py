"""The report on a tournament, made from its summary: plots, and a page of the template page.html.

The same summary and the same matplotlib give the same bytes.

    >>> summary = json.loads(Path("runs/ladder/summary.json").read_text())
    >>> cross_table(summary).texts()
    >>> write_report(Path("runs/ladder"), summary)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carolus_env.evaluation.summary import Summary
from carolus_env.evaluation.tables import (
    BLUE,
    StandingsRow,
    Table,
    blend,
    cross_table,
    elo,
    facts,
    pairings_table,
    percent,
    play_table,
    printable,
    shortened,
    spaced,
    standings,
    strength_of_colour,
)
from carolus_env.system.failures import MissingExtraError
from carolus_env.system.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


# ------------------------------------------------------------------------------------ plots

INK, GREY, LINE, PAPER = "#222222", "#767676", "#e4e4e4", "#ffffff"

MOST_SQUARES: Final = 40
"""Agents of which the plot of win rates has a square with a number for each pair."""

_MOST_LINES: Final = 200  # lines of the plot of ratings, before they are closer together
_STYLE: Final[dict[Any, Any]] = {
    "svg.hashsalt": "carolus",  # else ids in the file are random
    "text.parse_math": False,  # a spec is not a formula
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": LINE,
    "axes.axisbelow": True,
    "ytick.major.size": 0,
}


def plots(lines: Sequence[StandingsRow]) -> dict[str, bytes]:
    """Return the plots as files by name."""
    import matplotlib

    files: dict[str, bytes] = {}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # independent of the user's settings
        matplotlib.rcParams.update(_STYLE)
        files |= _images("ratings", _ratings_plot(lines))
        files |= _images("wins", _wins_plot(lines))
    return files


def _images(name: str, figure: Figure) -> dict[str, bytes]:
    files = {}
    for kind, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
        image = BytesIO()
        how: Any = {"bbox_inches": "tight", "pad_inches": 0.08}  # all texts fit
        figure.savefig(image, format=kind, dpi=160, metadata=metadata, **how)
        files[f"{name}.{kind}"] = image.getvalue()
    return files


def _ratings_plot(lines: Sequence[StandingsRow]) -> Figure:
    """Plot ratings with their intervals, the strongest agent on top, numbers at the right."""
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(8, 0.75 + 0.33 * min(len(lines), _MOST_LINES)),
        layout="constrained",
        facecolor=PAPER,
    )
    axes = figure.subplots()
    points = [line.rating[0] for line in lines]
    spread = max(points) - min(points)
    # The interval of a perfect score may end far outside: an arrow shows that it continues.
    least, most = min(points) - max(200, spread), max(points) + max(200, spread)
    for y, line in enumerate(lines):
        point, low, high = line.rating
        axes.plot([max(low, least), min(high, most)], [y, y], color=BLUE, linewidth=2, alpha=0.55)
        axes.plot(point, y, "o", color=BLUE, markersize=6)
        for end, beyond, marker in ((least, low < least, "<"), (most, high > most, ">")):
            if beyond:
                axes.plot(end, y, marker, color=BLUE, markersize=5)
        axes.annotate(
            elo(line.rating, line.bound),
            (1, y),
            (8, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )
    axes.set_yticks(range(len(lines)), shortened(line.name for line in lines))
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.margins(x=0.04)
    axes.grid(axis="x")
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=0.5)
    axes.set_xlabel("Elo with 95 % interval")
    return figure


def _wins_plot(lines: Sequence[StandingsRow]) -> Figure:
    """Return a square for each pair of agents: the win rate of the row's agent in percent.

    With more than `MOST_SQUARES` agents the squares are smaller, and without numbers.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure

    n = len(lines)
    size, many = 0.46 * min(n, MOST_SQUARES), n > MOST_SQUARES
    font = 9 * min(1, MOST_SQUARES / n)
    names = shortened((line.name for line in lines), 28)
    figure = Figure(figsize=(size, size), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    colours = [
        [to_rgb(LINE if x == y or rate is None else blend(rate)) for x, rate in enumerate(row)]
        for y, row in enumerate(line.against for line in lines)
    ]
    axes.pcolormesh(colours, edgecolors=PAPER, linewidth=0 if many else 1.4, rasterized=many)
    if not many:
        for y, line in enumerate(lines):
            for x, rate in enumerate(line.against):
                if x != y:
                    where: Any = {"ha": "center", "va": "center_baseline", "fontsize": font}
                    axes.text(x + 0.5, y + 0.5, percent(rate), **where)
    middles = [k + 0.5 for k in range(n)]
    ranks = [str(rank) for rank in range(1, n + 1)]
    axes.set(xlim=(0, n), ylim=(n, 0))
    axes.set_xticks(middles, ranks, fontsize=font + 1)
    axes.xaxis.tick_top()
    numbered = [f"{name}  {rank}" for name, rank in zip(names, ranks, strict=True)]
    axes.set_yticks(middles, numbered, fontsize=font + 1)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("row's win rate in %", loc="right", fontsize=10, pad=8)
    return figure
