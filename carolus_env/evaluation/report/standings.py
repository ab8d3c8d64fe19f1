"""The ranking and the cross table: as rows of text and for a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from carolus_env.evaluation.columns import FIGURES
from carolus_env.evaluation.report.texts import (
    Rating,
    blend,
    elo,
    percent,
    printable,
    shortened,
    title,
    written,
)
from carolus_env.evaluation.seating import labels
from carolus_env.evaluation.summary import Summary, check_summary

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class StandingsRow:
    """One agent's line of the cross table."""

    agent: int
    """The agent's number in the summary."""
    name: str
    """The agent's spec; with a number where two agents have the same."""
    rating: Rating | None
    """None: the tournament was not rated."""
    won: float
    """Win rate in all games."""
    against: tuple[float | None, ...]
    """Win rates against the agents, in the order of the standings; None: they never met."""


def standings(summary: Summary) -> list[StandingsRow]:
    """Return the agents by rating, the strongest first; by win rate where there are no ratings.

    Raises:
        ValueError: when this is not the summary of a tournament.
    """
    agents = check_summary(summary)["agents"]
    names = labels([printable(agent["spec"]) for agent in agents])
    ratings = [agent["rating"] and _rating(agent["rating"]) for agent in agents]

    def sort_key(k: int) -> float:
        return -float(ratings[k][0] if ratings[k] else agents[k]["win_share"])

    order = sorted(range(len(agents)), key=sort_key)
    rates: dict[tuple[int, int], float] = {}
    for pairing in summary["pairings"]:
        i, j = pairing["pair"]
        rates[i, j], rates[j, i] = pairing["win_rate"]
    return [
        StandingsRow(
            agent=k,
            name=names[k],
            rating=ratings[k],
            won=agents[k]["win_share"],
            against=tuple(rates.get((k, other)) for other in order),
        )
        for k in order
    ]


def _rating(values: dict[str, float]) -> Rating:
    return values["elo"], values["low"], values["high"]


def table_rows(summary: Summary) -> list[list[str]]:
    """Return the cross table as text, headings first; with a column for ratings if there are any.

    Opponents' columns are headed by their rank. A cell is the row's win rate in percent.

    Raises:
        ValueError: when this is not the summary of a tournament.
    """
    lines = standings(summary)
    columns = [
        ["#", *(str(rank) for rank in range(1, len(lines) + 1))],
        ["agent", *(line.name for line in lines)],
    ]
    if any(line.rating for line in lines):
        columns.append(["Elo [95 %]", *(elo(line.rating, line.won) for line in lines)])
    columns.append(["won %", *(percent(line.won, 1) for line in lines)])
    for k in range(len(lines)):
        cells = ("-" if rank == k else percent(line.against[k]) for rank, line in enumerate(lines))
        columns.append([str(k + 1), *cells])
    for figure in FIGURES:
        if figure.ranked:
            values = (summary["agents"][line.agent][figure.key] for line in lines)
            columns.append([*figure.heads, *(written(value, figure.how) for value in values)])
    return [list(row) for row in zip(*columns, strict=True)]


def cross_table(summary: Summary) -> Table:
    """Return the cross table for a terminal. Colours repeat what the numbers say.

    Raises:
        ValueError: when this is not the summary of a tournament.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    lines, (head, *rows) = standings(summary), table_rows(summary)
    names = shortened(line.name for line in lines)
    first = head.index("1")
    table = Table(
        title=Text(title(summary)),
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
        cells = [Text(cell) for cell in row]  # Text: a spec is not markup
        for k, rate in enumerate(line.against, first):
            if rate is not None:
                cells[k] = Text(f"{row[k]:^4}", style=f"#000000 on {blend(rate)}")
        table.add_row(*cells)
    return table
