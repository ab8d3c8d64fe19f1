"""The tables of a tournament, from its summary: what the terminal and the report show.

A terminal also shows progress and standings while games are played, with rich. One that is too
narrow for a table gets the columns on its left; names are shortened, never left out.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from carolus_env.evaluation.games import Progress
from carolus_env.evaluation.seating import labels
from carolus_env.evaluation.summary import Summary, anchor
from carolus_env.evaluation.tournament import Tournament
from carolus_env.system.command import aligned, text_width

BLUE, VERMILION = "#0072b2", "#d55e00"
"""More and less than half: two colours of Okabe and Ito, which the colour-blind can tell apart."""

Rating = tuple[float, float, float]
"""Elo, and the ends of its 95 % interval."""

_ELLIPSIS: Final = "\u2026"
_LONGEST_NAME: Final = 32


class Column(NamedTuple):
    """A column of a table: its head, and the side on which its cells are aligned."""

    head: str
    align: str = "right"


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    name: str = ""
    """The full name of an agent, where the text may be a shortened one."""
    rate: float | None = None
    """The win rate that colours the cell."""
    interval: Rating | None = None
    """A win rate and the ends of its interval, which the page draws."""


class Table(NamedTuple):
    """A table; the columns on the left say most, and are kept where there is little room."""

    title: str
    columns: list[Column]
    rows: list[list[Cell]]

    def texts(self) -> list[list[str]]:
        """Return heads and rows as text."""
        rows = ([cell.text for cell in row] for row in self.rows)
        return [[column.head for column in self.columns], *rows]


@dataclass(frozen=True)
class StandingsRow:
    """One agent's line of the cross table."""

    agent: int
    """The agent's number in the summary."""
    name: str
    """The agent's spec; with a number where two agents have the same."""
    rating: Rating
    bound: str
    """What the games say of the rating, see `ratings.Ratings.bounds`."""
    won: float
    """Win rate in all games."""
    against: tuple[float | None, ...]
    """Win rates against the agents, in the order of the standings; None: they never met."""


def standings(summary: Summary) -> list[StandingsRow]:
    """Return the agents by rating, the strongest first."""
    agents = summary["agents"]
    names = labels([printable(agent["spec"]) for agent in agents])
    order = sorted(range(len(agents)), key=lambda k: -agents[k]["rating"]["elo"])
    rates: dict[tuple[int, int], float] = {}
    for pairing in summary["pairings"]:
        i, j = pairing["pair"]
        rates[i, j], rates[j, i] = pairing["win_rate"]
    return [
        StandingsRow(
            agent=k,
            name=names[k],
            rating=_rating(agents[k]["rating"]),
            bound=agents[k]["rating"]["bound"],
            won=agents[k]["win_share"],
            against=tuple(rates.get((k, other)) for other in order),
        )
        for k in order
    ]


def _rating(values: Mapping[str, float]) -> Rating:
    return values["elo"], values["low"], values["high"]


# ------------------------------------------------------------------------------------ tables


def cross_table(summary: Summary) -> Table:
    """Return the ranking, with each agent's win rate against the agent of each rank, in percent."""
    lines = standings(summary)
    columns = [Column("#"), Column("agent", "left"), Column("Elo [95 %]"), Column("won %")]
    columns += [Column(str(rank), "center") for rank, _ in enumerate(lines, 1)]
    columns.append(Column("a decision"))
    rows = [
        [
            Cell(str(rank)),
            name,
            Cell(elo(line.rating, line.bound)),
            Cell(percent(line.won, 1)),
            *(
                Cell("-" if other == rank else percent(rate), rate=rate)
                for other, rate in enumerate(line.against, 1)
            ),
            Cell(duration(summary["agents"][line.agent]["us_per_decision"])),
        ]
        for rank, (line, name) in enumerate(zip(lines, _names(lines), strict=True), 1)
    ]
    return Table(title(summary), columns, rows)


def pairings_table(summary: Summary) -> Table:
    """Return every pairing, from its stronger agent's side."""
    lines = standings(summary)
    names = dict(zip((line.agent for line in lines), _names(lines), strict=True))
    rank = {line.agent: index for index, line in enumerate(lines)}
    rows = []
    for pairing in sorted(summary["pairings"], key=lambda p: sorted(rank[k] for k in p["pair"])):
        pair, wins, castles = pairing["pair"], pairing["wins"], pairing["mean_castles"]
        a, b = (0, 1) if rank[pair[0]] < rank[pair[1]] else (1, 0)
        rate, (low, high) = pairing["win_rate"][a], pairing["ci95"][a]
        ends = (f"{spaced(name)} {count:,}" for name, count in pairing["ends"].items())
        rows.append(
            [
                names[pair[a]],
                names[pair[b]],
                Cell(
                    f"{percent(rate, 1)} [{percent(low, 1)}, {percent(high, 1)}]",
                    interval=(rate, low, high),
                ),
                Cell(f"{wins[a]}-{pairing['draws']}-{wins[b]}"),
                Cell(f"{pairing['games']:,}"),
                Cell(f"{castles[a]:.1f} : {castles[b]:.1f}"),
                Cell(f"{pairing['mean_rounds']:.1f}"),
                Cell(printable(", ".join(ends))),
            ]
        )
    heads = ("won % [95 %]", "W-D-L", "games", "castles", "rounds")
    columns = [Column("agent", "left"), Column("against", "left"), *map(Column, heads)]
    return Table("", [*columns, Column("ended by", "left")], rows)


def play_table(summary: Summary) -> Table:
    """Return what each agent played, and how fast."""
    lines = standings(summary)
    agents = [summary["agents"][line.agent] for line in lines]
    rows = [
        [
            name,
            Cell(f"{agent['mean_castles']:.1f}"),
            Cell(f"{agent['games']:,}"),
            Cell(f"{agent['decisions']:,}"),
            Cell(duration(agent["us_per_decision"])),
        ]
        for name, agent in zip(_names(lines), agents, strict=True)
    ]
    heads = ("castles", "games", "decisions", "a decision")
    return Table("", [Column("agent", "left"), *map(Column, heads)], rows)


def _names(lines: Sequence[StandingsRow]) -> list[Cell]:
    names = [line.name for line in lines]
    return [Cell(short, name) for short, name in zip(shortened(names), names, strict=True)]


# ------------------------------------------------------------------------------------ texts


def printable(text: object) -> str:
    """Return the text, with characters that cannot be printed or encoded replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def shortened(names: Iterable[str], length: int = _LONGEST_NAME) -> list[str]:
    """Return the names, long ones without their middle, still all different."""
    head = length // 3
    return labels(
        [
            name if len(name) <= length else f"{name[:head]}{_ELLIPSIS}{name[head + 1 - length :]}"
            for name in names
        ]
    )


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
    ]
    if not summary["complete"]:
        parts.append("cut short")
    return printable(spaced(", ".join(parts)))


def spaced(name: object) -> str:
    """Return a key as words."""
    return str(name).replace("_", " ")


def elo(rating: Rating, bound: str) -> str:
    """Return a rating and its interval, or the one end that the games support.

    Args:
        rating: the rating.
        bound: see `ratings.Ratings.bounds`.
    """
    point, low, high = map(round, rating)
    ends = {"": f"{point} [{low}, {high}]", "below": f"below {high}", "above": f"above {low}"}
    return ends.get(bound, bound)


def percent(rate: float | None, digits: int = 0) -> str:
    """Format a rate in percent; 0 and 100 only for exactly that."""
    if rate is None:
        return ""
    text, least = f"{100 * rate:.{digits}f}", 10.0**-digits
    if float(text) >= 100 and rate < 1:
        return f">{100 - least:.{digits}f}"
    if float(text) <= 0 < rate:
        return f"<{least:.{digits}f}"
    return text


def duration(microseconds: float) -> str:
    """Format a duration in the unit that fits."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= 0.9995 * size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} us"


def strength_of_colour(rate: float) -> float:
    """Return the strength of a win rate's colour: 0 at one half, 0.75 at 0 and 1."""
    return 0.75 * abs(2 * min(max(rate, 0), 1) - 1)


def blend(rate: float) -> str:
    """Return a win rate's colour: blue for more than half, vermilion for less, white between."""
    strong, part = (BLUE if rate > 0.5 else VERMILION), strength_of_colour(rate)
    channels = (int(strong[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 + part * (channel - 255)):02x}" for channel in channels)


def facts(summary: Summary) -> list[tuple[str, Any]]:
    """Return all that is needed to play the tournament again, by name."""
    result = [(key, summary[key]) for key in ("schedule", "seed", "deals", "games")]
    result.append(("time", duration(1e6 * summary["seconds"])))
    for key in ("rules", "versions", "machine"):
        result += summary[key].items()
    result += [(key, summary.get(key)) for key in ("commit", "command")]
    return [(spaced(name), value) for name, value in result if value is not None]


# ------------------------------------------------------------------------------------ the terminal

_REDRAWN: Final = 2.0  # seconds between two updates of the table, at least
_SPARED: Final = 20  # or this multiple of an update's time, for which games wait
_NAME: Final = 9  # least length to which names are shortened
_MOST_LEFT: Final = 3  # columns on the left that are never left out


@contextlib.contextmanager
def watching(tournament: Tournament, *, quiet: bool = False) -> Iterator[Progress]:
    """Show a progress bar, the time left and the table so far; on a terminal only."""
    try:
        from rich import progress
        from rich.console import Console, Group
        from rich.live import Live
        from rich.text import Text
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
                live.update(Group(Text(so_far(tournament.summary(), console.width)), bar))
                drawn, since = tournament.games, time.monotonic()
                pause = max(_REDRAWN, _SPARED * (since - begun))

        yield update


def print_tables(title: str, summary: dict[str, Any], *, ratings: bool = True) -> None:
    """Print a row for each pairing, the stop rule and the cross table.

    Args:
        title: title of the first table.
        summary: the tournament's summary.
        ratings: False: print the pairings alone.
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(text_table(pairings_table(summary)._replace(title=title), width))
    if not ratings:
        return
    print(f"{summary['stop_rule']['text']}\n" if "stop_rule" in summary else "")
    print(text_table(cross_table(summary), width))


def text_table(table: Table, width: int | None = None) -> str:
    """Return a table as text.

    Args:
        table: the table.
        width: characters of a line: names lose their middle, and columns on the right that still do
            not fit are left out, and named below. None: all fit.
    """
    texts, heads = table.texts(), [column.head for column in table.columns]
    right = {k for k, column in enumerate(table.columns) if column.align != "left"}
    named = {0, 1} - right
    names = list(dict.fromkeys(row[k] for row in texts[1:] for k in named))

    def lines(kept: int, length: int) -> list[str]:
        short = dict(zip(names, shortened(names, length), strict=True))
        rows = [[short.get(cell, cell) for cell in row[:kept]] for row in texts]
        return aligned(rows, right=right)

    if width is None:
        return "\n".join(filter(None, [table.title, *lines(len(heads), _LONGEST_NAME)]))
    kept = len(heads)
    while (room := width - max(map(text_width, lines(kept, _NAME)))) < 0 and kept > _MOST_LEFT:
        kept -= 1
    left_out = f"left out, for want of width: {', '.join(heads[kept:])}" if heads[kept:] else ""
    shown = lines(kept, _NAME + max(room, 0) // len(named))
    return "\n".join([*textwrap.wrap(table.title, width), *shown, *textwrap.wrap(left_out, width)])


def so_far(summary: dict[str, Any], width: int) -> str:
    """Return what is shown while a tournament is played, in so many characters a line."""
    parts = [
        "{} {elo:+.0f} [{low:.0f}, {high:.0f}]".format(name, **agent["rating"])
        for name, agent in zip(
            labels([agent["spec"] for agent in summary["agents"]]), summary["agents"], strict=True
        )
    ]
    lines = [text_table(pairings_table(summary), width), f"Elo so far: {', '.join(parts)}"]
    if "stop_rule" in summary:
        lines.append(summary["stop_rule"]["text"])
    return "\n".join(lines)
