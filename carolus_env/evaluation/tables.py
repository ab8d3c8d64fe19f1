"""The tables of a tournament, from its summary: what the terminal and the report show.

A terminal also shows progress and standings while games are played. That uses rich; without it
tables are plain, and there is no progress bar. One that is too narrow for a table gets the columns
on its left; names are folded, never left out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carolus_env.evaluation.games import Progress
from carolus_env.evaluation.seating import labels
from carolus_env.evaluation.summary import Summary, anchor
from carolus_env.evaluation.tournament import Tournament
from carolus_env.system.command import aligned

if TYPE_CHECKING:
    from rich.console import Group

BLUE, VERMILION = "#0072b2", "#d55e00"
"""More and less than half: two colours of Okabe and Ito, which the colour-blind can tell apart."""

Rating = tuple[float, float, float]
"""Elo, and the ends of its 95 % interval."""

_ELLIPSIS: Final = "\u2026"


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
            Cell(elo(line.rating, line.won)),
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


def shortened(names: Iterable[str], length: int = 32) -> list[str]:
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
        f"Elo 0: {'the mean' if zero is None else agents[zero]}",
    ]
    if not summary["complete"]:
        parts.append("cut short")
    return printable(spaced(", ".join(parts)))


def spaced(name: object) -> str:
    """Return a key as words."""
    return str(name).replace("_", " ")


def elo(rating: Rating, won: float) -> str:
    """Return a rating and its interval; one end, where all games were won or lost.

    Args:
        rating: the rating.
        won: the agent's win rate in all games.
    """
    point, low, high = map(round, rating)
    if low < high and won in (0, 1):
        return f"above {low}" if won else f"below {high}"
    return f"{point} [{low}, {high}]"


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
    return [(spaced(name), value) for name, value in result if value is not None]


# ------------------------------------------------------------------------------------ the terminal

_REDRAWN: Final = 2.0  # seconds between two updates of the table, at least
_SPARED: Final = 20  # or this multiple of an update's time, for which games wait
_PATCH: Final = 4  # width of a coloured cell
_NAME: Final = 8  # least width of a column of names


@contextlib.contextmanager
def watching(tournament: Tournament, *, quiet: bool = False) -> Iterator[Progress]:
    """Show a progress bar, the time left and the table so far; on a terminal only."""
    try:
        from rich import progress
        from rich.console import Console, Group
        from rich.live import Live
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
                live.update(Group(so_far(tournament.summary(), console.width), bar))
                drawn, since = tournament.games, time.monotonic()
                pause = max(_REDRAWN, _SPARED * (since - begun))

        yield update


def print_tables(title: str, summary: dict[str, Any]) -> None:
    """Print a row for each pairing, the stop rule, the cross table, and a cycle of agents.

    Args:
        title: title of the first table.
        summary: the tournament's summary.
    """
    _print_table(pairings_table(summary)._replace(title=title))
    print(f"{summary['stop_rule']['text']}\n" if "stop_rule" in summary else "")
    _print_table(cross_table(summary))
    if summary["cycle"]:
        print(f"cycle: {summary['cycle']}")


def _print_table(table: Table) -> None:
    try:
        from rich.console import Console
    except ImportError:
        print("\n".join([table.title, *aligned(table.texts())]))
        return
    console = Console()
    if console.is_terminal:
        console.print(rich_table(table, console.width))
    else:  # a file has no width that limits the table
        drawn = rich_table(table)
        Console(width=Console(width=100_000).measure(drawn).maximum).print(drawn)


def rich_table(table: Table, width: int | None = None) -> Any:
    """Return a table for a terminal. Colours repeat what the numbers say.

    Args:
        table: the table.
        width: characters of a line; columns on the right that do not fit are left out, and the
            caption says which. None: all fit.
    """
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.table import Table as RichTable
    from rich.text import Text

    widths = [max(map(cell_len, column)) for column in zip(*table.texts(), strict=True)]
    centred = [column.align == "center" for column in table.columns]  # a patch of colour
    widths = [max(size, _PATCH * patch) for size, patch in zip(widths, centred, strict=True)]
    named = [column.align == "left" and k < 2 for k, column in enumerate(table.columns)]
    least = [min(size, _NAME) if name else size for size, name in zip(widths, named, strict=True)]
    kept, caption = len(widths), ""
    if width is not None:
        while kept > 3 and sum(least[:kept]) + 2 * (kept - 1) > width:
            kept -= 1
        room = max(width - sum(least[:kept]) - 2 * (kept - 1), 0)
        for k in range(kept):
            more = min(widths[k] - least[k], room) if named[k] else 0
            widths[k], room = least[k] + more, room - more
    if kept < len(widths):
        rest = [column.head for column in table.columns[kept:]]
        caption = f"left out, for want of width: {', '.join(rest)}"
    drawn = RichTable(
        title=Text(table.title),
        caption=Text(caption) if caption else None,
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for k, column in enumerate(table.columns[:kept]):
        drawn.add_column(
            Text(column.head),
            justify=column.align,  # type: ignore[arg-type]
            width=widths[k],
            no_wrap=not named[k],
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(
            *(
                Text(cell.text)  # Text: a spec is not markup
                if cell.rate is None
                else Text(f"{cell.text:^{_PATCH}}", style=f"#000000 on {blend(cell.rate)}")
                for cell in row[:kept]
            )
        )
    return drawn


def so_far(summary: dict[str, Any], width: int) -> Group:
    """Return what is shown while a tournament is played, in so many characters a line."""
    from rich.console import Group
    from rich.text import Text

    parts = [
        "{} {elo:+.0f} [{low:.0f}, {high:.0f}]".format(name, **agent["rating"])
        for name, agent in zip(
            labels([agent["spec"] for agent in summary["agents"]]), summary["agents"], strict=True
        )
    ]
    lines = [f"Elo so far: {', '.join(parts)}"]
    if "stop_rule" in summary:
        lines.append(summary["stop_rule"]["text"])
    return Group(rich_table(pairings_table(summary), width), *map(Text, lines))
