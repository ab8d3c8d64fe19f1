"""The page of a report: HTML that needs no other file, in light and dark colours.

Every text is escaped when it is put into a tag, so a name cannot become HTML.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from carolus_env.evaluation.columns import BAR, FIGURES, Figure, duration
from carolus_env.evaluation.report.standings import StandingsRow, table_rows
from carolus_env.evaluation.report.texts import (
    BLUE,
    GREY,
    INK,
    LINE,
    PAPER,
    percent,
    printable,
    shortened,
    spaced,
    strength_of_colour,
    title,
    written,
)
from carolus_env.evaluation.summary import Summary

FEW_DEALS: Final = 50
"""Number of deals below which the ratings' intervals are too narrow (docs/evaluation.md)."""

_STYLE: Final = Path(__file__).with_name("report.css")
_TEXT_COLUMNS: Final = ("agent", "against", "ended by")  # left-aligned


def page(summary: Summary, lines: Sequence[StandingsRow], drawn: str) -> str:
    """Return the page.

    Args:
        summary: the tournament's summary.
        lines: the tournament's standings.
        drawn: plot of the ratings as SVG; empty: there are none.
    """
    parts = [
        _tag("h1", "Carolus Magnus"),
        _tag("p", title(summary), class_="lead"),
        _ranking(summary, lines, drawn),
        _pairings(summary, lines),
        _play(summary, lines),
        _origin(summary),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{_tag('title', f'Tournament: {title(summary)}')}\n"
        f"<style>\n{_STYLE.read_text()}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


# ------------------------------------------------------------------------------------ sections


def _ranking(summary: Summary, lines: Sequence[StandingsRow], drawn: str) -> _Html:
    head, *rows = table_rows(summary)
    first = head.index("1")
    cells = []
    for line, row in zip(lines, rows, strict=True):
        tags = [_tag("td", cell) for cell in row]
        tags[1] = _name(line.name)
        for k, rate in enumerate(line.against, first):
            tags[k] = _tag("td", row[k], class_="cell", style=_tint(rate))
        cells.append(tags)
    notes = []
    if drawn:
        notes.append("400 Elo points are odds of 10 to 1; in brackets the 95 % interval.")
    if "stop_rule" in summary:
        notes.append(f"Stop rule: {summary['stop_rule']['text']}.")
    notes.append("Numbered columns: win rate in percent against the agent of that rank.")
    if summary["cycle"]:
        notes.append(f"Cycle: {summary['cycle']}.")
    if drawn and summary["deals"] < FEW_DEALS:
        notes.append(f"With only {summary['deals']} deals the intervals are a little too narrow.")
    return _tag(
        "section",
        _tag("h2", "Ranking"),
        _Html(_themed(drawn)),
        _table(head, cells),
        _tag("p", " ".join(notes), class_="note"),
    )


def _pairings(summary: Summary, lines: Sequence[StandingsRow]) -> _Html:
    """Return every pairing, from its stronger agent's side."""
    rank = {line.agent: index for index, line in enumerate(lines)}
    rows = []
    for pairing in sorted(summary["pairings"], key=lambda p: sorted(rank[k] for k in p["pair"])):
        pair, wins, castles = pairing["pair"], pairing["wins"], pairing["mean_castles"]
        a, b = (0, 1) if rank[pair[0]] < rank[pair[1]] else (1, 0)
        rate, (low, high) = pairing["win_rate"][a], pairing["ci95"][a]
        ends = (f"{spaced(name)} {count:,}" for name, count in pairing["ends"].items())
        rows.append(
            [
                _name(lines[rank[pair[a]]].name),
                _name(lines[rank[pair[b]]].name),
                _tag("td", f"{pairing['games']:,}"),
                _tag("td", f"{wins[a]}-{pairing['draws']}-{wins[b]}"),
                _tag("td", f"{percent(rate, 1)} [{percent(low, 1)}, {percent(high, 1)}]"),
                _tag("td", _interval(rate, low, high)),
                _tag("td", f"{castles[a]:.1f} : {castles[b]:.1f}"),
                _tag("td", f"{pairing['mean_rounds']:.1f}"),
                _tag("td", ", ".join(ends), class_="name"),
            ]
        )
    head = ["agent", "against", "games", "W-D-L", "won % [95 %]", "0 to 100 %"]
    head += ["castles", "rounds", "ended by"]
    return _tag("section", _tag("h2", "Pairings"), _table(head, rows))


def _play(summary: Summary, lines: Sequence[StandingsRow]) -> _Html:
    play, agents = summary["play"], summary["agents"]
    figures = [
        ("rounds a game", f"{play['mean_rounds']:.1f}"),
        ("lead changes", f"{play['mean_lead_changes']:.1f}"),
    ]
    total = sum(play["ends"].values())
    figures += [
        (f"ended by {spaced(name)}", f"{percent(count / total, 1)} %")
        for name, count in play["ends"].items()
    ]
    tiles = (_tag("div", _tag("b", value), _tag("span", text)) for text, value in figures)
    shown = [figure for figure in FIGURES if figure.heads]
    cells = [_cells_of(figure, [agents[line.agent] for line in lines]) for figure in shown]
    rows = [
        [_name(line.name), *itertools.chain(*parts)]
        for line, *parts in zip(lines, *cells, strict=True)
    ]
    head = ["agent", *(name for figure in shown for name in figure.heads)]
    note = "Discs: percent of those played. To court: percent of the paladins played."
    return _tag(
        "section",
        _tag("h2", "Play"),
        _tag("div", *tiles, class_="tiles"),
        _table(head, rows),
        _tag("p", note, class_="note"),
    )


def _origin(summary: Summary) -> _Html:
    """Return all that is needed to play the tournament again, as HTML."""
    facts = [(key, summary[key]) for key in ("schedule", "seed", "deals", "games")]
    facts.append(("time", duration(1e6 * summary["seconds"])))
    for key in ("rules", "versions", "machine"):
        facts += summary[key].items()
    items = [
        _tag("div", _tag("dt", spaced(name)), _tag("dd", value))
        for name, value in facts
        if value is not None
    ]
    return _tag("section", _tag("h2", "Made with"), _tag("dl", *items))


# ------------------------------------------------------------------------------------ HTML


class _Html(str):
    """Text that is HTML already; any other is escaped when it is put into a tag."""

    __slots__ = ()


def _tag(name: str, *content: object, **attributes: object) -> _Html:
    inner = "".join(
        part if isinstance(part, _Html) else escape(printable(part)) for part in content
    )
    written = "".join(
        f' {key.strip("_")}="{escape(printable(value))}"' for key, value in attributes.items()
    )
    return _Html(f"<{name}{written}>{inner}</{name}>")


def _table(head: Sequence[str], rows: Iterable[Sequence[_Html]]) -> _Html:
    """Return a table that scrolls by itself where it is too wide; cells are ``td`` already."""
    top = _tag(
        "tr",
        *(_tag("th", name, class_="name" if name in _TEXT_COLUMNS else "number") for name in head),
    )
    body = _Html("".join(_tag("tr", *row) for row in rows))
    table = _tag("table", _tag("thead", top), _tag("tbody", body))
    return _tag("div", table, class_="wide")


def _name(name: str) -> _Html:
    [short] = shortened([name])
    return _tag("td", short, class_="name", title=name)


def _bar(part: float, longest: float = 1.0) -> _Html:
    """Return a cell with a percentage and a bar of that length."""
    width = 100 * min(max(part / longest if longest else 0, 0), 1)
    bar = _tag("i", style=f"width:{width:.1f}%")
    return _tag("td", percent(part, 1), _tag("div", bar, class_="bar"), class_="barred")


def _cells_of(figure: Figure, agents: Sequence[Mapping[str, Any]]) -> list[list[_Html]]:
    """Return a figure's cells for each agent; the longest bar of its columns is full length."""
    several = len(figure.heads) > 1
    parts = [agent[figure.key] if several else [agent[figure.key]] for agent in agents]
    if figure.how == BAR:
        longest = max(map(max, parts)) if several else 1.0
        return [[_bar(part, longest) for part in row] for row in parts]
    return [[_tag("td", written(part, figure.how)) for part in row] for row in parts]


def _tint(rate: float | None) -> str:
    if rate is None:
        return ""
    colour = "var(--more)" if rate > 0.5 else "var(--less)"
    part = 100 * strength_of_colour(rate)
    return f"background:color-mix(in srgb,{colour} {part:.0f}%,transparent)"


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


def _interval(rate: float, low: float, high: float) -> _Html:
    """Return a win rate and its interval between 0 and 100 %, with a mark at one half."""
    colour = f"var(--{'more' if rate > 0.5 else 'less'})"
    return _Html(
        '<svg viewBox="-4 0 108 12" width="96" height="12" aria-hidden="true">'
        '<path d="M0 6H100M50 2V10" style="stroke:var(--line)"/>'
        f'<path d="M{100 * low:.1f} 6H{100 * high:.1f}" style="stroke:{colour};stroke-width:2.5"/>'
        f'<circle cx="{100 * rate:.1f}" cy="6" r="3" style="fill:{colour}"/></svg>'
    )
