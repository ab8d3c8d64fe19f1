"""What people look at: cross table, plots and a page, from a tournament's summary alone.

The summary is the dict that a tournament writes as JSON. What it lacks (ratings, pairings,
statistics of play) is left out here. The same summary and the same matplotlib give the same bytes.

    >>> summary = json.loads(Path("runs/ladder/summary.json").read_text())
    >>> rich.print(cross_table(summary))
    >>> write_report(Path("runs/ladder"), summary)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carolus_env.engine.rules import DISCS
from carolus_env.system.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

FORMAT: Final = "carolus-tournament-summary"
VERSION: Final = 1

FEW_DEALS: Final = 50
"""With fewer the intervals of ratings are a little too narrow (docs/ratings.md)."""

INK, GREY, LINE, PAPER = "#222222", "#767676", "#e4e4e4", "#ffffff"
BLUE, VERMILION = "#0072b2", "#d55e00"
"""Two colours of Okabe and Ito, which the colour-blind can tell apart: more and less than half."""

Summary = Mapping[str, Any]


class SummaryError(ValueError):
    """This is no summary of a tournament; the text says what is wrong with it and where."""


# ------------------------------------------------------------------------------------ standings


@dataclass(frozen=True)
class Standing:
    """One agent's line of the cross table; None stands for what the summary lacks."""

    agent: int
    """Its number in the summary."""
    name: str
    """Its spec; with a number where two agents have the same."""
    rating: tuple[float, float, float] | None
    """Elo, and the 95 % interval's ends."""
    won: float | None
    """Its win rate in all games."""
    against: tuple[float | None, ...]
    """Its win rate against each agent, in the order of the standings."""
    microseconds: float | None
    """For a decision."""


def standings(summary: Summary) -> list[Standing]:
    """The agents by rating, the strongest first; those without one after them, by win rate.

    Raises:
        SummaryError: for what is no summary of a tournament.
    """
    agents = _agents(summary)
    names = _numbered([_plain(agent["spec"]) for agent in agents])
    ratings = [_rating(agent, f"agents[{k}]") for k, agent in enumerate(agents)]
    won = [_number(agent, "win_share", f"agents[{k}]") for k, agent in enumerate(agents)]
    taken = [_number(agent, "us_per_decision", f"agents[{k}]") for k, agent in enumerate(agents)]

    def place(k: int) -> tuple[float, float]:
        rating, rate = ratings[k], won[k]
        return (math.inf if rating is None else -rating[0], math.inf if rate is None else -rate)

    order = sorted(range(len(agents)), key=place)
    rates: dict[tuple[int, int], float] = {}
    for pairing in _pairings(summary):
        i, j = pairing.pair
        if pairing.rate is not None:
            rates[i, j], rates[j, i] = pairing.rate
    return [
        Standing(
            agent=k,
            name=names[k],
            rating=ratings[k],
            won=won[k],
            against=tuple(rates.get((k, other)) for other in order),
            microseconds=taken[k],
        )
        for k in order
    ]


def table_rows(summary: Summary) -> list[list[str]]:
    """The cross table as text, the headings first; no column of what the summary lacks.

    Opponents' columns are headed by their rank. A cell is the row's win rate in percent.

    Raises:
        SummaryError: for what is no summary of a tournament.
    """
    lines = standings(summary)
    columns = [
        ["#", *(str(rank) for rank in range(1, len(lines) + 1))],
        ["agent", *(line.name for line in lines)],
    ]
    if any(line.rating for line in lines):
        columns.append(["Elo [95 %]", *(_elo(line.rating) for line in lines)])
    if any(line.won is not None for line in lines):
        columns.append(["won %", *(_percent(line.won, 1) for line in lines)])
    if _crossed(lines):
        for k in range(len(lines)):
            cells = (_cell(line.against[k], rank == k) for rank, line in enumerate(lines))
            columns.append([str(k + 1), *cells])
    if any(line.microseconds is not None for line in lines):
        columns.append(["a decision", *(_duration(line.microseconds) for line in lines)])
    return [list(row) for row in zip(*columns, strict=True)]


def cross_table(summary: Summary) -> Table:
    """The cross table for a terminal. Colours repeat what the numbers say.

    Raises:
        SummaryError: for what is no summary of a tournament.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    lines, (head, *rows) = standings(summary), table_rows(summary)
    names = _short(line.name for line in lines)
    first = _first_opponent(head)
    table = Table(
        title=Text(_title(summary)),
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for k, name in enumerate(head):
        opponent = first <= k < first + len(lines)
        table.add_column(
            Text(name),
            justify="left" if name == "agent" else "center" if opponent else "right",
            no_wrap=name != "agent",
            overflow="fold",
        )
    for line, name, row in zip(lines, names, rows, strict=True):
        row[1] = name
        cells = [Text(cell) for cell in row]  # Text: a spec is no markup
        for k, rate in enumerate(line.against):
            if rate is not None and first + k < len(cells):
                cells[first + k] = Text(f"{row[first + k]:^4}", style=f"#000000 on {_blend(rate)}")
        table.add_row(*cells)
    return table


def markdown_table(summary: Summary) -> str:
    """The cross table in Markdown, ending with a line break.

    Raises:
        SummaryError: for what is no summary of a tournament.
    """
    head, *rows = table_rows(summary)
    ruler = ["---" if name == "agent" else "---:" for name in head]
    for row in rows:
        row[1] = re.sub(r"([\\`*_\[\]<>|&~])", r"\\\1", row[1])
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ruler, *rows))


def write_report(folder: Path, summary: Summary) -> list[Path]:
    """Write plots and a page that needs nothing else; all is made before anything is written.

    Args:
        folder: made where there is none.
        summary: of a tournament, whole or cut short.

    Returns:
        What was written: ``report.html``; ``ratings.svg`` and ``.png`` where there are ratings,
        ``wins.svg`` and ``.png`` where there are pairings.

    Raises:
        OSError: when a file cannot be written.
        SummaryError: for what is no summary of a tournament.
    """
    import matplotlib

    lines = standings(summary)
    files: dict[str, bytes] = {}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's own settings are
        matplotlib.rcParams.update(_STYLE)
        if any(line.rating for line in lines):
            files |= _images("ratings", _ratings_plot(lines))
        if _crossed(lines):
            files |= _images("wins", _wins_plot(lines))
    drawn = files.get("ratings.svg", b"").decode()
    files["report.html"] = _page(summary, lines, drawn).encode()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_file(folder / name, data)
    return [folder / name for name in files]


# ------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class _Pairing:
    """What the report needs of a pairing; None for what is lacking."""

    pair: tuple[int, int]
    rate: tuple[float, float] | None
    ci95: tuple[tuple[float, float], tuple[float, float]] | None  # (low, high) of each agent
    games: float | None
    wins: tuple[float, float] | None
    draws: float | None
    castles: tuple[float, float] | None
    rounds: float | None
    ends: Mapping[str, float]


def _agents(summary: Summary) -> list[Mapping[str, Any]]:
    if not isinstance(summary, Mapping) or summary.get("format") != FORMAT:
        given = summary.get("format") if isinstance(summary, Mapping) else summary
        raise SummaryError(f"format must be {FORMAT!r}, got {given!r:.80}")
    if summary.get("version") != VERSION:
        raise SummaryError(f"version must be {VERSION}, got {summary.get('version')!r:.80}")
    agents = _listed(summary, "agents")
    if not agents:
        raise SummaryError("agents must be one or more, got none")
    for k, agent in enumerate(agents):
        if not isinstance(agent.get("spec"), str):
            raise SummaryError(f"agents[{k}]: spec must be a text, got {agent.get('spec')!r:.80}")
    return agents


def _pairings(summary: Summary) -> list[_Pairing]:
    agents = len(summary["agents"])
    found = []
    for k, pairing in enumerate(_listed(summary, "pairings")):
        where = f"pairings[{k}]"
        found.append(
            _Pairing(
                pair=_pair(pairing, agents, where),
                rate=_two(pairing, "win_rate", where),
                ci95=_intervals(pairing, where),
                games=_number(pairing, "games", where),
                wins=_two(pairing, "wins", where),
                draws=_number(pairing, "draws", where),
                castles=_two(pairing, "mean_castles", where),
                rounds=_number(pairing, "mean_rounds", where),
                ends=_counts(pairing, "ends", where),
            )
        )
    return found


def _pair(pairing: Mapping[str, Any], agents: int, where: str) -> tuple[int, int]:
    pair: Any = pairing.get("pair")
    two = isinstance(pair, list | tuple) and len(pair) == 2 and all(type(k) is int for k in pair)
    if not two or pair[0] == pair[1] or not 0 <= min(pair) <= max(pair) < agents:
        raise SummaryError(
            f"{where}: pair must be two different agents of 0 to {agents - 1}, got {pair!r:.80}"
        )
    return pair[0], pair[1]


def _listed(holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    values = holder.get(key) or []
    if not isinstance(values, list) or not all(isinstance(value, Mapping) for value in values):
        raise SummaryError(f"{key} must be a list of objects, got {values!r:.80}")
    return values


def _part(holder: Mapping[str, Any], key: str, where: str = "summary") -> Mapping[str, Any]:
    value = holder.get(key) or {}
    if not isinstance(value, Mapping):
        raise SummaryError(f"{where}: {key} must be an object, got {value!r:.80}")
    return value


def _rating(agent: Mapping[str, Any], where: str) -> tuple[float, float, float] | None:
    rating = _part(agent, "rating", where)
    elo, low, high = (_number(rating, key, f"{where}: rating") for key in ("elo", "low", "high"))
    if elo is None:
        return None
    return elo, elo if low is None else low, elo if high is None else high


def _number(holder: Mapping[str, Any], key: str, where: str) -> float | None:
    """A finite number, or None where there is none."""
    value = holder.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SummaryError(f"{where}: {key} must be a finite number, got {value!r:.80}")
    return float(value)


def _numbers(holder: Mapping[str, Any], key: str, where: str, n: int) -> list[float] | None:
    """``n`` finite numbers, or None where there are none."""
    values = holder.get(key)
    if values is None:
        return None
    if not isinstance(values, list | tuple) or len(values) != n or None in values:
        raise SummaryError(f"{where}: {key} must be {n} numbers, got {values!r:.80}")
    return [_number({key: value}, key, where) or 0.0 for value in values]


def _two(holder: Mapping[str, Any], key: str, where: str) -> tuple[float, float] | None:
    values = _numbers(holder, key, where, 2)
    return None if values is None else (values[0], values[1])


def _intervals(
    pairing: Mapping[str, Any], where: str
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    ends = pairing.get("ci95")
    if ends is None:
        return None
    if not isinstance(ends, list | tuple) or len(ends) != 2 or None in ends:
        raise SummaryError(f"{where}: ci95 must be two intervals, got {ends!r:.80}")
    first, second = (_numbers({"ci95": end}, "ci95", where, 2) or (0, 0) for end in ends)
    return (first[0], first[1]), (second[0], second[1])


def _counts(holder: Mapping[str, Any], key: str, where: str) -> Mapping[str, float]:
    counts = _part(holder, key, where)
    return {str(name): _number(counts, name, f"{where}: {key}") or 0.0 for name in counts}


# ------------------------------------------------------------------------------------ words


def _plain(text: object) -> str:
    """Characters that can be printed and encoded, others replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def _numbered(names: Sequence[str]) -> list[str]:
    return [
        f"{name} #{names[: k + 1].count(name)}" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    ]


def _short(names: Iterable[str], length: int = 32) -> list[str]:
    """The names with their middles left out where they are long, still different."""
    head = length // 3
    return _numbered(
        [
            name if len(name) <= length else f"{name[:head]}\u2026{name[head + 1 - length :]}"
            for name in names
        ]
    )


def _title(summary: Summary) -> str:
    players = _number(_part(summary, "rules"), "players", "rules")
    parts = [f"{players:.0f} players" if players else "", str(summary.get("schedule") or "")]
    for key in ("deals", "games"):
        count = _number(summary, key, "summary")
        parts.append("" if count is None else f"{count:,.0f} {key}")
    parts.append("" if summary.get("seed") is None else f"seed {summary['seed']}")
    parts.append("" if summary.get("complete", True) else "cut short")
    return _plain(_spaced(", ".join(filter(None, parts))))


def _spaced(name: object) -> str:
    return str(name).replace("_", " ")


def _elo(rating: tuple[float, float, float] | None) -> str:
    if rating is None:
        return ""
    elo, low, high = map(round, rating)
    return f"{elo} [{low}, {high}]"


def _percent(rate: float | None, digits: int = 0) -> str:
    """In percent; 0 and 100 only for exactly that."""
    if rate is None:
        return ""
    text, least = f"{100 * rate:.{digits}f}", 10.0**-digits
    if float(text) >= 100 and rate < 1:
        return f">{100 - least:.{digits}f}"
    if float(text) <= 0 < rate:
        return f"<{least:.{digits}f}"
    return text


def _cell(rate: float | None, itself: bool) -> str:
    return "-" if itself else _percent(rate)


def _duration(microseconds: float | None) -> str:
    if microseconds is None:
        return ""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= 0.9995 * size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} us"


def _crossed(lines: Sequence[Standing]) -> bool:
    return any(rate is not None for line in lines for rate in line.against)


def _first_opponent(head: Sequence[str]) -> int:
    """The column of the first opponent, behind the last where there is none."""
    return head.index("1") if "1" in head else len(head)


def _blend(rate: float) -> str:
    """Blue for more than half, vermilion for less, white between."""
    strong, part = (BLUE if rate > 0.5 else VERMILION), 0.75 * abs(2 * min(max(rate, 0), 1) - 1)
    channels = (int(strong[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 + part * (channel - 255)):02x}" for channel in channels)


# ------------------------------------------------------------------------------------ plots

_STYLE: Final[dict[Any, Any]] = {
    "svg.hashsalt": "carolus",  # else ids in the file are random
    "text.parse_math": False,  # a spec is no formula
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


def _images(name: str, figure: Figure) -> dict[str, bytes]:
    files = {}
    for kind, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
        image = BytesIO()
        how: Any = {"bbox_inches": "tight", "pad_inches": 0.08}  # whatever is written fits
        figure.savefig(image, format=kind, dpi=160, metadata=metadata, **how)
        files[f"{name}.{kind}"] = image.getvalue()
    return files


def _ratings_plot(lines: Sequence[Standing]) -> Figure:
    """Points with their intervals, the strongest agent on top, numbers at the right."""
    from matplotlib.figure import Figure

    rated = [(line, line.rating) for line in lines if line.rating is not None]
    figure = Figure(figsize=(8, 0.75 + 0.33 * len(rated)), layout="constrained", facecolor=PAPER)
    axes = figure.subplots()
    points = [rating[0] for _, rating in rated]
    spread = max(points) - min(points)
    # The ends of a perfect score's interval may be far out: an arrow says that it goes on.
    least, most = min(points) - max(200, spread), max(points) + max(200, spread)
    for y, (_, (elo, low, high)) in enumerate(rated):
        axes.plot([max(low, least), min(high, most)], [y, y], color=BLUE, linewidth=2, alpha=0.55)
        axes.plot(elo, y, "o", color=BLUE, markersize=6)
        for end, beyond, marker in ((least, low < least, "<"), (most, high > most, ">")):
            if beyond:
                axes.plot(end, y, marker, color=BLUE, markersize=5)
        axes.annotate(
            _elo((elo, low, high)),
            (1, y),
            (8, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )
    axes.set_yticks(range(len(rated)), _short(line.name for line, _ in rated))
    axes.set_ylim(len(rated) - 0.5, -0.5)
    axes.margins(x=0.04)
    axes.grid(axis="x")
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=0.5)
    axes.set_xlabel("Elo with 95 % interval")
    return figure


def _wins_plot(lines: Sequence[Standing]) -> Figure:
    """A square for each two agents: what the row's agent has won of the games in percent."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    n = len(lines)
    names = _short((line.name for line in lines), 28)
    figure = Figure(figsize=(0.46 * n, 0.46 * n), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
    for y, line in enumerate(lines):
        for x, rate in enumerate(line.against):
            colour = LINE if x == y or rate is None else _blend(rate)
            axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=colour, linewidth=0))
            if x != y:
                axes.text(x, y, _percent(rate), ha="center", va="center_baseline", fontsize=9)
    ranks = [str(rank) for rank in range(1, n + 1)]
    axes.set_xticks(range(n), ranks)
    axes.xaxis.tick_top()
    numbered = [f"{name}  {rank}" for name, rank in zip(names, ranks, strict=True)]
    axes.set_yticks(range(n), numbered)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("row's win rate in %", loc="right", fontsize=10, pad=8)
    return figure


# ------------------------------------------------------------------------------------ the page


_WORDS: Final = ("agent", "against", "ended by")
"""Columns of text, which starts at the left."""


class _Html(str):
    """Text that is HTML already; any other is escaped when it is put into a tag."""

    __slots__ = ()


def _tag(name: str, *content: object, **attributes: object) -> _Html:
    inner = "".join(part if isinstance(part, _Html) else escape(_plain(part)) for part in content)
    given = "".join(
        f' {key.strip("_")}="{escape(_plain(value))}"' for key, value in attributes.items()
    )
    return _Html(f"<{name}{given}>{inner}</{name}>")


def _join(parts: Iterable[_Html]) -> _Html:
    return _Html("".join(parts))


def _table(head: Sequence[str], rows: Iterable[Sequence[_Html]]) -> _Html:
    """A table that scrolls by itself where it is too wide; cells are ``td`` already."""
    kinds = ("name" if name in _WORDS else "number" for name in head)
    top = _tag(
        "tr", *(_tag("th", name, class_=kind) for name, kind in zip(head, kinds, strict=True))
    )
    body = _join(_tag("tr", *row) for row in rows)
    table = _tag("table", _tag("thead", top), _tag("tbody", body))
    return _tag("div", table, class_="wide")


def _name(name: str) -> _Html:
    [short] = _short([name])
    return _tag("td", short, class_="name", title=name)


def _bar(part: float | None, longest: float = 1.0) -> _Html:
    """A cell with a percentage and a bar of that length."""
    if part is None:
        return _tag("td")
    width = 100 * min(max(part / longest if longest else 0, 0), 1)
    bar = _tag("i", style=f"width:{width:.1f}%")
    return _tag("td", _percent(part, 1), _tag("div", bar, class_="bar"), class_="barred")


def _page(summary: Summary, lines: Sequence[Standing], drawn: str) -> str:
    title = f"Tournament: {_title(summary)}"
    parts = [
        _tag("h1", "Carolus Magnus"),
        _tag("p", _title(summary), class_="lead"),
        _ranking(summary, lines, drawn),
        _pairings_part(summary, lines),
        _play_part(summary, lines),
        _made_part(summary),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{_tag('title', title)}\n<style>{_CSS}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, parts))
        + "\n</body>\n</html>\n"
    )


def _ranking(summary: Summary, lines: Sequence[Standing], drawn: str) -> _Html:
    head, *rows = table_rows(summary)
    first = _first_opponent(head)
    cells = []
    for line, row in zip(lines, rows, strict=True):
        tags = [_tag("td", cell) for cell in row]
        tags[1] = _name(line.name)
        for k in range(first, min(first + len(lines), len(row))):
            rate = line.against[k - first]
            tags[k] = _tag("td", row[k], class_="cell", style=_tint(rate))
        cells.append(tags)
    notes = []
    if drawn:
        notes.append("400 Elo points are odds of 10 to 1; in brackets the 95 % interval.")
    if first < len(head):
        notes.append("Numbered columns: win rate in percent against the agent of that rank.")
    deals = _number(summary, "deals", "summary")
    if drawn and deals is not None and deals < FEW_DEALS:
        notes.append(f"With only {deals:.0f} deals the intervals are a little too narrow.")
    return _tag(
        "section",
        _tag("h2", "Ranking"),
        _Html(_themed(drawn)),
        _table(head, cells),
        _tag("p", " ".join(notes), class_="note"),
    )


def _tint(rate: float | None) -> str:
    if rate is None:
        return ""
    colour = "var(--more)" if rate > 0.5 else "var(--less)"
    part = 75 * abs(2 * min(max(rate, 0), 1) - 1)
    return f"background:color-mix(in srgb,{colour} {part:.0f}%,transparent)"


def _themed(svg: str) -> str:
    """A plot as part of the page, in the page's colours."""
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


def _pairings_part(summary: Summary, lines: Sequence[Standing]) -> _Html:
    """Every pairing, seen from its stronger agent."""
    rank = {line.agent: place for place, line in enumerate(lines)}
    rows = []
    for pairing in sorted(_pairings(summary), key=lambda p: sorted(rank[k] for k in p.pair)):
        a, b = (0, 1) if rank[pairing.pair[0]] < rank[pairing.pair[1]] else (1, 0)
        rate = None if pairing.rate is None else pairing.rate[a]
        ends = None if pairing.ci95 is None else pairing.ci95[a]
        score = castles = interval = ""
        if pairing.wins is not None and pairing.draws is not None:
            score = f"{pairing.wins[a]:.0f}-{pairing.draws:.0f}-{pairing.wins[b]:.0f}"
        if pairing.castles is not None:
            castles = f"{pairing.castles[a]:.1f} : {pairing.castles[b]:.1f}"
        if ends is not None:
            interval = f" [{_percent(ends[0], 1)}, {_percent(ends[1], 1)}]"
        rows.append(
            [
                _name(lines[rank[pairing.pair[a]]].name),
                _name(lines[rank[pairing.pair[b]]].name),
                _tag("td", _count(pairing.games)),
                _tag("td", score),
                _tag("td", _percent(rate, 1) + interval),
                _tag("td", _interval(rate, ends)),
                _tag("td", castles),
                _tag("td", "" if pairing.rounds is None else f"{pairing.rounds:.1f}"),
                _tag("td", _ends(pairing.ends), class_="name"),
            ]
        )
    if not rows:
        return _Html("")
    head = ["agent", "against", "games", "W-D-L", "won % [95 %]", "0 to 100 %"]
    head += ["castles", "rounds", "ended by"]
    return _tag("section", _tag("h2", "Pairings"), _table(head, rows))


def _count(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f}"


def _ends(ends: Mapping[str, float]) -> str:
    return ", ".join(f"{_spaced(name)} {count:,.0f}" for name, count in ends.items())


def _interval(rate: float | None, ends: tuple[float, float] | None) -> _Html:
    """A win rate and its interval between 0 and 100 %, with a mark at one half."""
    if rate is None:
        return _Html("")
    low, high = ends or (rate, rate)
    colour = f"var(--{'more' if rate > 0.5 else 'less'})"
    return _Html(
        '<svg viewBox="-4 0 108 12" width="96" height="12" aria-hidden="true">'
        '<path d="M0 6H100M50 2V10" style="stroke:var(--line)"/>'
        f'<path d="M{100 * low:.1f} 6H{100 * high:.1f}" style="stroke:{colour};stroke-width:2.5"/>'
        f'<circle cx="{100 * rate:.1f}" cy="6" r="3" style="fill:{colour}"/></svg>'
    )


def _play_part(summary: Summary, lines: Sequence[Standing]) -> _Html:
    play, agents = _part(summary, "play"), _agents(summary)
    parts = []
    figures = [
        (text, f"{value:.1f}")
        for key, text in (("mean_rounds", "rounds a game"), ("mean_lead_changes", "lead changes"))
        if (value := _number(play, key, "play")) is not None
    ]
    ends = _counts(play, "ends", "play")
    total = sum(ends.values())
    figures += [
        (f"ended by {_spaced(name)}", f"{_percent(n / total, 1)} %")
        for name, n in ends.items()
        if total
    ]
    if figures:
        tiles = (_tag("div", _tag("b", value), _tag("span", text)) for text, value in figures)
        parts.append(_tag("div", *tiles, class_="tiles"))

    used = {k: _numbers(agent, "disc_use", f"agents[{k}]", DISCS) for k, agent in enumerate(agents)}
    longest = max((max(use) for use in used.values() if use), default=1.0)
    rows = []
    for line in lines:
        agent, where = agents[line.agent], f"agents[{line.agent}]"
        discs: Sequence[float | None] = used[line.agent] or [None] * DISCS
        castles = _number(agent, "mean_castles", where)
        rows.append(
            [
                _name(line.name),
                *(_bar(part, longest) for part in discs),
                _bar(_number(agent, "court_share", where)),
                _tag("td", "" if castles is None else f"{castles:.1f}"),
                _tag("td", _count(_number(agent, "games", where))),
                _tag("td", _count(_number(agent, "decisions", where))),
                _tag("td", _duration(line.microseconds)),
            ]
        )
    head = ["agent", *(f"disc {k}" for k in range(1, DISCS + 1)), "to court", "castles", "games"]
    parts.append(_table([*head, "decisions", "a decision"], rows))
    note = "Discs: percent of those played. To court: percent of the paladins played."
    return _tag("section", _tag("h2", "Play"), *parts, _tag("p", note, class_="note"))


def _made_part(summary: Summary) -> _Html:
    """Everything that it takes to play the tournament again."""
    facts = [(key, summary.get(key)) for key in ("schedule", "seed", "deals", "games")]
    seconds = _number(summary, "seconds", "summary")
    facts.append(("time", None if seconds is None else _duration(1e6 * seconds)))
    for key in ("rules", "versions", "machine"):
        facts += list(_part(summary, key).items())
    items = [
        _tag("div", _tag("dt", _spaced(name)), _tag("dd", value))
        for name, value in facts
        if value is not None
    ]
    return _tag("section", _tag("h2", "Made with"), _tag("dl", *items))


_CSS: Final = """
:root{color-scheme:light dark;--ink:#1c1c1c;--grey:#6b6b6b;--line:#e2e2e2;--paper:#fff;
--more:#0072b2;--less:#d55e00}
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--grey:#9a9a9a;--line:#3a3d42;--paper:#17191c;
--more:#3d9bd6;--less:#e8823a}}
body{margin:0 auto;padding:1.5rem;max-width:80rem;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,sans-serif}
h1{margin:0;font-size:1.7rem}h2{margin:2.2rem 0 .7rem;font-size:1.15rem}
.lead{margin:.1rem 0 0;color:var(--grey)}.note{margin:.5rem 0;color:var(--grey);font-size:.85rem}
.wide{overflow-x:auto}svg[role=img]{display:block;max-width:100%;height:auto;margin:0 0 1rem}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .45rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{color:var(--grey);font-weight:500}.name{text-align:left}
td.cell{min-width:1.7rem;padding:.28rem .2rem;text-align:center;border:2px solid var(--paper)}
td.barred{min-width:3.6rem}
.bar{height:4px;background:var(--line)}.bar i{display:block;height:4px;background:var(--more)}
.tiles{display:flex;flex-wrap:wrap;gap:.7rem 2rem;margin-bottom:1rem}
.tiles b{display:block;font-size:1.3rem}.tiles span{color:var(--grey);font-size:.85rem}
dl{columns:4 13rem;margin:0}dl div{break-inside:avoid;padding-bottom:.5rem}
dt{color:var(--grey);font-size:.8rem}dd{margin:0;overflow-wrap:anywhere}
"""
