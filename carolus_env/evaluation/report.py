"""The tables of a tournament on the terminal, and its report: a plot, and the tables in HTML.

The same summary and the same versions of matplotlib and rich give the same bytes.
"""

from __future__ import annotations

import contextlib
import html
import io
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich import progress
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from carolus_env.evaluation.games import Progress
from carolus_env.evaluation.ratings import rating_text
from carolus_env.evaluation.tournament import Summary, Tournament, anchor, labels
from carolus_env.system.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_DEALS: Final = 50  # with fewer the ratings' intervals are too narrow (docs/evaluation.md)


def has_pictures() -> bool:
    """Return whether matplotlib is there, without which a report has no pictures."""
    return find_spec("matplotlib") is not None


def write_report(folder: Path, summary: Summary) -> list[Path]:
    """Write plots and a self-contained page; all are made before the first is written."""
    files = _plots(standings(summary)) if has_pictures() else {}
    files["report.html"] = _page(summary, files.get("ratings.svg", b"").decode()).encode()
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
    ends = summary["play"]["ends"]
    shares = [f"{percent(n / sum(ends.values()), 1)} % by {spaced(end)}" for end, n in ends.items()]
    notes = ["400 Elo points are odds of 10 to 1; in brackets the 95 % interval."]
    if "stop_rule" in summary:
        notes.append(f"Stop rule: {summary['stop_rule']['text']}.")
    notes.append("Numbered columns: win rate in percent against the agent of that rank.")
    notes.append("By place: win rate as the player who begins, as the next one, and so on.")
    if summary["deals"] < FEW_DEALS:
        notes.append(f"With only {summary['deals']} deals the intervals are a little too narrow.")
    heading, svg = _escaped(title(summary)), drawn[drawn.find("<svg") :]
    plot = re.sub("<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tournament: {heading}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Carolus Magnus</h1>
<p>{heading}</p>
<h2>Ranking</h2>
{f'<div role="img" aria-label="ratings with their intervals">{plot}</div>' if plot else ""}
{_table(cross_table(summary))}
<p>{_escaped(" ".join(notes))}</p>
<h2>Pairings</h2>
{_table(pairings_table(summary))}
<p>{summary["play"]["mean_rounds"]:.1f} rounds a game; ended: {_escaped(", ".join(shares))}</p>
<h2>Made with</h2>
{_table(facts_table(summary))}
</body>
</html>
"""


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _table(table: Table) -> str:
    """Return a table as HTML; every text in it is escaped."""
    console = Console(record=True, file=io.StringIO(), width=WIDE, legacy_windows=False)
    console.print(table.fitted(WIDE))
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
        rating = printable(rating_text(line.rating))
        axes.text(1.02, y, rating, transform=axes.get_yaxis_transform(), va="center")
    axes.set_yticks(range(len(lines)), shortened(line.name for line in lines))
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.margins(x=0.04)
    axes.grid(axis="x")
    axes.axvline(0, color=_GREY, linewidth=0.8, zorder=0.5)
    axes.set_xlabel("Elo with 95 % interval")
    return figure


BLUE, VERMILION = "#0072b2", "#d55e00"  # more and less than half (Okabe and Ito)
WIDE: Final = 100_000  # characters of a line, where nothing limits it

_LONGEST_NAME: Final = 32
_NAME: Final = 9  # least width of a column of names
_MOST_LEFT: Final = 3  # columns on the left that are never left out
_SPACE: Final = 2  # between columns
_REDRAWN: Final = 2.0  # seconds between two updates of the table, at least
_SPARED: Final = 20  # or this multiple of an update's time, for which games wait


class StandingsRow(NamedTuple):
    """An agent, its rating and its win rate in all games."""

    agent: int  # its number in the summary
    name: str  # its spec; with a number where two agents have the same
    rating: dict[str, Any]  # elo, low, high, bound
    won: float


def standings(summary: Summary) -> list[StandingsRow]:
    """Return the agents by rating, the strongest first."""
    agents = summary["agents"]
    names = labels([printable(agent["spec"]) for agent in agents])
    rows = [StandingsRow(k, names[k], a["rating"], a["win_share"]) for k, a in enumerate(agents)]
    return sorted(rows, key=lambda row: -row.rating["elo"])


# ------------------------------------------------------------------------------------ tables


class Table(NamedTuple):
    """A table; the columns on the left say most, and are kept where there is little room."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Text]]
    names: Sequence[int]  # columns of agents' names
    words: Sequence[int] = ()  # further columns that are aligned on the left

    def texts(self) -> list[list[str]]:
        return [[*self.heads], *([cell.plain for cell in row] for row in self.rows)]

    def fitted(self, width: int) -> RenderableType:
        """Return what is shown in so many characters a line."""
        widths = [max(map(cell_len, column)) for column in zip(*self.texts(), strict=True)]
        least = [min(w, _NAME) if k in self.names else w for k, w in enumerate(widths)]
        kept = len(widths)
        while kept > _MOST_LEFT and sum(least[:kept]) + _SPACE * (kept - 1) > width:
            kept -= 1
        result = RichTable(box=None, padding=(0, _SPACE, 0, 0), pad_edge=False, header_style="")
        for k, head in enumerate(self.heads[:kept]):
            side: Any = "left" if k in (*self.names, *self.words) else "right"
            result.add_column(head, justify=side, no_wrap=k not in self.names, overflow="fold")
        for row in self.rows:
            result.add_row(*row[:kept])
        rest = f"left out, for want of width: {', '.join(self.heads[kept:])}"
        return Group(result, rest) if self.heads[kept:] else result


def cross_table(summary: Summary) -> Table:
    """Return the ranking, with each agent's win rate against the agent of each rank, in percent."""
    rates: dict[tuple[int, int], float] = {}
    for pairing in summary["pairings"]:
        i, j = pairing["pair"]
        rates[i, j], rates[j, i] = pairing["win_rate"]
    lines, rows = standings(summary), []
    for rank, line in enumerate(lines, 1):
        rating = printable(rating_text(line.rating))
        cells = map(Text, (str(rank), line.name, rating, percent(line.won, 1)))
        against = [rates.get((line.agent, other.agent)) for other in lines]
        shown = [Text(percent(rate), _colours(rate)) for rate in against]
        shown[rank - 1] = Text("-")
        taken = duration(summary["agents"][line.agent]["us_per_decision"])
        by_place = " ".join(percent(rate) for rate in summary["agents"][line.agent]["by_place"])
        rows.append([*cells, *shown, Text(taken), Text(by_place)])
    ranks = [str(rank) for rank, _ in enumerate(lines, 1)]
    heads = ("#", "agent", "Elo [95 %]", "won %", *ranks, "a decision", "won % by place")
    return Table(heads, rows, [1])


def pairings_table(summary: Summary) -> Table:
    """Return every pairing, from its stronger agent's side."""
    ranked = {line.agent: (rank, line.name) for rank, line in enumerate(standings(summary))}
    rows = []
    for pairing in sorted(summary["pairings"], key=lambda p: sorted(ranked[k] for k in p["pair"])):
        sides = sorted((ranked[k], side) for side, k in enumerate(pairing["pair"]))
        ((_, first), a), ((_, second), b) = sides
        wins, castles = pairing["wins"], pairing["mean_castles"]
        rate, ends = pairing["win_rate"][a], pairing["ends"].items()
        low, high = (percent(end, 1) for end in pairing["ci95"][a])
        cells = (
            f"{wins[a]}-{pairing['draws']}-{wins[b]}",
            f"{pairing['games']:,}",
            f"{castles[a]:.1f} : {castles[b]:.1f}",
            f"{pairing['mean_rounds']:.1f}",
            printable(", ".join(f"{spaced(name)} {count:,}" for name, count in ends)),
        )
        won = Text(f"{percent(rate, 1)} [{low}, {high}]", _colours(rate))
        rows.append([Text(first), Text(second), won, *map(Text, cells)])
    heads = ("agent", "against", "won % [95 %]", "W-D-L", "games", "castles", "rounds", "ended by")
    return Table(heads, rows, [0, 1], [len(heads) - 1])


def facts_table(summary: Summary) -> Table:
    """Return all that is needed to play the tournament again, by name."""
    facts = {key: summary[key] for key in ("schedule", "seed", "deals", "games")}
    facts["time"] = f"{summary['seconds']:,.1f} s"
    facts |= summary["rules"] | summary["versions"] | summary["machine"]
    facts |= {key: summary.get(key) for key in ("commit", "command")}
    known = {spaced(key): value for key, value in facts.items() if value is not None}
    rows = [[Text(printable(text)) for text in fact] for fact in known.items()]
    return Table(["", ""], rows, [1], [0])


def printable(text: object) -> str:
    """Return the text, with characters that cannot be printed or encoded replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def shortened(names: Iterable[str], length: int = _LONGEST_NAME) -> list[str]:
    """Return the names, long ones without their middle, still all different."""
    head = length // 3
    tail = length - head - 1
    return labels([n if len(n) <= length else f"{n[:head]}\u2026{n[-tail:]}" for n in names])


def title(summary: Summary) -> str:
    """Return the report's title in one line."""
    agents = [agent["spec"] for agent in summary["agents"]]
    zero = anchor(agents, summary["schedule"])
    parts = [
        f"{summary['rules']['players']} players",
        summary["schedule"],
        f"{summary['deals']:,} deal{'s' * (summary['deals'] != 1)}",
        f"{summary['games']:,} games",
        f"seed {summary['seed']}",
        f"Elo by these games alone, 0: {'the mean' if zero is None else agents[zero]}",
        *([] if summary["complete"] else ["cut short"]),
    ]
    return printable(spaced(", ".join(parts)))


def spaced(name: object) -> str:
    """Return a key as words."""
    return str(name).replace("_", " ")


def percent(rate: float | None, digits: int = 0) -> str:
    """Format a rate in percent; 0 and 100 only for exactly that."""
    if rate is None:
        return ""
    text, least = f"{100 * rate:.{digits}f}", 10.0**-digits
    if float(text) >= 100 and rate < 1:
        return f">{100 - least:.{digits}f}"
    return f"<{least:.{digits}f}" if float(text) <= 0 < rate else text


def duration(microseconds: float) -> str:
    """Format a duration in the unit that fits."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= 0.9995 * size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} us"


def _colours(rate: float | None) -> str:
    """Return a win rate's style: on blue for more than half, vermilion for less, else white."""
    if rate is None:
        return ""
    strong = BLUE if rate > 0.5 else VERMILION
    part = 0.75 * abs(2 * min(max(rate, 0), 1) - 1)
    channels = (round(255 + part * (int(strong[k : k + 2], 16) - 255)) for k in (1, 3, 5))
    return "#1c1c1c on #" + "".join(f"{channel:02x}" for channel in channels)


# ------------------------------------------------------------------------------------ the terminal


def print_tables(heading: str, summary: Summary, *, ratings: bool = True) -> None:
    """Print a row for each pairing and, with ``ratings``, the stop rule and the cross table."""
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else WIDE)
    with console.capture() as captured:  # rich would end the process where nobody reads
        console.print(Text(heading), _shown(summary, console.width, ratings=ratings), sep="\n")
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _shown(summary: Summary, width: int, *, ratings: bool = True) -> RenderableType:
    parts = [pairings_table(summary).fitted(width)]
    if ratings:
        rule = [printable(summary["stop_rule"]["text"])] if "stop_rule" in summary else []
        parts += [*map(Text, (*rule, "", title(summary))), cross_table(summary).fitted(width)]
    return Group(*parts)


@contextlib.contextmanager
def watching(tournament: Tournament, *, quiet: bool = False) -> Iterator[Progress]:
    """Show a progress bar, the time left and the table so far; on a terminal only."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done: None
        return
    columns = *progress.Progress.get_default_columns(), progress.MofNCompleteColumn()
    bar = progress.Progress(*columns, progress.TimeElapsedColumn())
    task = bar.add_task("games", total=tournament.plan.games)
    drawn, since, pause = 0, time.monotonic(), _REDRAWN
    with Live(bar, console=console, transient=True, refresh_per_second=4) as live:

        def update(done: int) -> None:
            nonlocal drawn, since, pause
            bar.update(task, completed=done)
            begun = time.monotonic()
            deal = tournament.plan.games_per_deal
            if tournament.games >= max(drawn + 1, deal) and begun - since > pause:
                live.update(Group(_shown(tournament.summary(), console.width), bar))
                drawn, since = tournament.games, time.monotonic()
                pause = max(_REDRAWN, _SPARED * (since - begun))

        yield update
