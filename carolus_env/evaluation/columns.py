"""The statistics of games: `COLUMNS`, the arrays of them (`Results`), and `FIGURES` of agents.

A new statistic of a game is a `Column` and a field of `Results`: the results file (`journal`) and
the table of its keys in docs/formats.md follow. A new column of the report is a `Figure`: the
summary, the cross table and the page follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.rules import (
    DESTINATIONS,
    DISCS,
    FIRST_PLACE,
    REASON_NAMES,
    disc_action,
)
from carolus_env.engine.state import Ints, States
from carolus_env.evaluation.seating import MOST_GAMES

SEATS: Final = -1
"""Size in a column's shape: one entry for each seat."""

_MOST: Final = 2**31 - 1


class Decisions(NamedTuple):
    """All ``D`` decisions of some games; those of one game are in their order."""

    games: npt.NDArray[np.uint16]
    """``(D,)``: the row of its game."""
    seats: npt.NDArray[np.uint8]
    """``(D,)``: the seat that decided."""
    actions: npt.NDArray[np.uint8]
    """``(D,)``."""
    leaders: npt.NDArray[np.uint8]
    """``(D,)``: 1 + the team that alone had the most castles after a move of the Emperor; or 0."""
    seconds: npt.NDArray[np.float32]
    """``(D,)``: time that it took, as part of a batch."""

    def pick(self, rows: npt.NDArray[Any]) -> Decisions:
        """Return the decisions of these rows."""
        columns: list[Any] = [column[rows] for column in self]
        return Decisions(*columns)

    def in_order(self) -> Decisions:
        """Sort by game."""
        return self.pick(np.argsort(self.games, kind="stable"))


class Finished(NamedTuple):
    """Finished games, from which the columns are read."""

    deals: npt.NDArray[np.int64]
    """``(G,)``."""
    seatings: npt.NDArray[np.int64]
    """``(G,)``."""
    tables: npt.NDArray[np.int64]
    """``(G, players)``: the agent at each seat."""
    states: States
    """``(G,)``: the states at the end."""
    decisions: Decisions

    def by_seat(
        self, of: npt.NDArray[np.bool_] | slice = slice(None), weights: Any = None
    ) -> npt.NDArray[Any]:
        """Count some of the decisions, or sum their weights: ``(G, players)``."""
        games, players = self.tables.shape
        places = self.decisions.games[of] * np.int64(players) + self.decisions.seats[of]
        return np.bincount(places, weights, games * players).reshape(games, players)


def _returns(games: Finished) -> npt.NDArray[np.float64]:
    return engine.returns(games.states)[:, : games.tables.shape[1]]


def _shares(games: Finished) -> npt.NDArray[np.float64]:
    return engine.win_shares(games.states)[:, : games.tables.shape[1]]


def _castles(games: Finished) -> npt.NDArray[np.uint8]:
    team = games.states["team"][:, : games.tables.shape[1]].astype(np.int64)
    result: npt.NDArray[np.uint8] = np.take_along_axis(games.states["castles"], team, axis=1)
    return result


def _rounds(games: Finished) -> npt.NDArray[np.uint32]:
    return games.states["round"]


def _reasons(games: Finished) -> npt.NDArray[np.uint8]:
    return games.states["reason"]


def _lead_changes(games: Finished) -> npt.NDArray[np.int64]:
    led = games.decisions.pick(games.decisions.leaders > 0).in_order()
    changes = (led.games[1:] == led.games[:-1]) & (led.leaders[1:] != led.leaders[:-1])
    return np.bincount(led.games[1:][changes], minlength=len(games.tables))


def _discs(games: Finished) -> npt.NDArray[np.int64]:
    actions = games.decisions.actions
    each = [games.by_seat(actions == disc_action(number)) for number in range(1, DISCS + 1)]
    return np.stack(each, axis=2)


def _to_court(games: Finished) -> npt.NDArray[np.int64]:
    return games.by_seat(_placed(games) & _into_court(games))


def _to_regions(games: Finished) -> npt.NDArray[np.int64]:
    return games.by_seat(_placed(games) & ~_into_court(games))


def _placed(games: Finished) -> npt.NDArray[np.bool_]:
    return games.decisions.actions >= FIRST_PLACE


def _into_court(games: Finished) -> npt.NDArray[np.bool_]:
    placed = games.decisions.actions.astype(np.int64) - FIRST_PLACE
    return placed % DESTINATIONS == 0


def _decisions(games: Finished) -> npt.NDArray[np.int64]:
    return games.by_seat()


def _seconds(games: Finished) -> npt.NDArray[np.float64]:
    return games.by_seat(weights=games.decisions.seconds)


PLANNED: Final = "planned"

Source = str | Callable[[Finished], npt.NDArray[Any]]


class Column(NamedTuple):
    """One statistic of a game.

    Attributes:
        key: the key in a line of the results file; empty: not there.
        name: attribute of `Results`; empty: not there.
        dtype: dtype of the attribute.
        shape: shape of one game's value; `SEATS` stands for the number of players.
        low: least possible value.
        high: greatest possible value.
        source: `PLANNED` for a value of the plan, with which a file must agree; else a function of
            `Finished` games.
        meaning: a description for docs/formats.md.
        words: the file's words for the values 0, 1, ...; None: not a value.
    """

    key: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    low: int
    high: int
    source: Source
    meaning: str
    words: tuple[str | None, ...] = ()

    def shape_of(self, games: int, players: int) -> tuple[int, ...]:
        """Return the column's shape for a number of games."""
        return (games, *(players if size == SEATS else size for size in self.shape))


# fmt: off
COLUMNS: Final = (
    Column("game",         "",             "i8", (),             0, MOST_GAMES, PLANNED,
           "number of the game in the plan"),
    Column("meeting",      "",             "i8", (),             0, MOST_GAMES, PLANNED,
           "number of the meeting: which agents are compared"),
    Column("deal",         "deals",        "i8", (),             0, MOST_GAMES, PLANNED,
           "number of the deal"),
    Column("seating",      "seatings",     "i8", (),             0, MOST_GAMES, PLANNED,
           "number of the seating among those of the meeting"),
    Column("table",        "tables",       "i8", (SEATS,),       0, MOST_GAMES, PLANNED,
           "agent at each seat, an index of the header's `agents`"),
    Column("returns",      "returns",      "f8", (SEATS,),      -1, 1,          _returns,
           "payoff of each seat ([rules](rules.md))"),
    Column("shares",       "shares",       "f8", (SEATS,),       0, 1,          _shares,
           "win share of each seat, with sum 1; partners halve their team's share; "
           "when nobody has won, all teams have the same"),
    Column("castles",      "castles",      "u1", (SEATS,),       0, 15,         _castles,
           "castles in play of each seat's team at the end"),
    Column("rounds",       "rounds",       "u4", (),             0, 2**32 - 1,  _rounds,
           "rounds begun"),
    Column("reason",       "reasons",      "u1", (),             0, 4,          _reasons,
           "why the game ended", tuple(REASON_NAMES)),
    Column("lead_changes", "lead_changes", "i4", (),             0, _MOST,      _lead_changes,
           "how often the sole lead in castles passed to another team"),
    Column("discs",        "discs",        "i4", (SEATS, DISCS), 0, _MOST,      _discs,
           "how often each seat played disc 1 to 5"),
    Column("to_court",     "to_court",     "i4", (SEATS,),       0, _MOST,      _to_court,
           "paladins that each seat played to its court"),
    Column("to_regions",   "to_regions",   "i4", (SEATS,),       0, _MOST,      _to_regions,
           "paladins that each seat played to regions"),
    Column("decisions",    "decisions",    "i4", (SEATS,),       0, _MOST,      _decisions,
           "decisions of each seat"),
    Column("",             "seconds",      "f8", (SEATS,),       0, _MOST,      _seconds,
           "time for the decisions of each seat"),
)
# fmt: on


@dataclass(frozen=True)
class Results:
    """``G`` finished games with the same rules; row ``g`` of every array is one game.

    `COLUMNS` has the meaning and the bounds of each array.
    """

    deals: npt.NDArray[np.int64]
    """``(G,)``"""
    seatings: npt.NDArray[np.int64]
    """``(G,)``"""
    tables: npt.NDArray[np.int64]
    """``(G, players)``: index of the agent at each seat."""
    returns: npt.NDArray[np.float64]
    """``(G, players)``: as `engine.returns`."""
    shares: npt.NDArray[np.float64]
    """``(G, players)``: as `engine.win_shares`."""
    castles: npt.NDArray[np.uint8]
    """``(G, players)``"""
    rounds: npt.NDArray[np.uint32]
    """``(G,)``"""
    reasons: npt.NDArray[np.uint8]
    """``(G,)``: index of `rules.REASON_NAMES`."""
    lead_changes: npt.NDArray[np.int32]
    """``(G,)``"""
    discs: npt.NDArray[np.int32]
    """``(G, players, 5)``"""
    to_court: npt.NDArray[np.int32]
    """``(G, players)``"""
    to_regions: npt.NDArray[np.int32]
    """``(G, players)``"""
    decisions: npt.NDArray[np.int32]
    """``(G, players)``"""
    seconds: npt.NDArray[np.float64]
    """``(G, players)``: each decision counts as its part of a batch's time; NaN: unknown."""

    def __len__(self) -> int:
        return len(self.tables)

    @staticmethod
    def of(games: Finished) -> Results:
        """Return every column, read from finished games."""
        columns = {}
        for column in COLUMNS:
            if not column.name:
                continue
            if column.source == PLANNED:
                values = getattr(games, column.name)
            else:
                assert callable(column.source)
                values = column.source(games)
            columns[column.name] = np.array(values, column.dtype)
        return Results(**columns)

    def rows(self, rows: Ints | npt.NDArray[np.bool_] | slice) -> Results:
        """Return the games of these rows."""
        return Results(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @staticmethod
    def joined(parts: Sequence[Results]) -> Results:
        """Return the games of several results of the same number of players, one or more."""

        def column(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        return Results(**{f.name: column(f.name) for f in fields(Results)})


assert [field.name for field in fields(Results)] == [c.name for c in COLUMNS if c.name]


# ------------------------------------------------------------------------------------ of agents

BAR: Final = "bar"
TIME: Final = "time"


def duration(microseconds: float) -> str:
    """Format a duration in the unit that fits."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= 0.9995 * size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} us"


class Figure(NamedTuple):
    """A figure of the report on each agent.

    Attributes:
        key: the key in the summary.
        heads: heads of its columns on the page; without any it is in the summary only.
        how: the way to show it: `BAR`: a share; `TIME`: microseconds; else a format.
        value: a function of the results and the agent's seats, ``(G, players)`` bool; a list for
            several columns.
        ranked: True: a column of the cross table, too.
    """

    key: str
    heads: tuple[str, ...]
    how: str
    value: Callable[[Results, npt.NDArray[np.bool_]], float | list[float]]
    ranked: bool = False


def _disc_use(results: Results, seats: npt.NDArray[np.bool_]) -> list[float]:
    discs = results.discs[seats].sum(axis=0)
    shares: list[float] = (discs / max(discs.sum(), 1)).tolist()
    return shares


def _court_share(results: Results, seats: npt.NDArray[np.bool_]) -> float:
    court, regions = int(results.to_court[seats].sum()), int(results.to_regions[seats].sum())
    return court / max(court + regions, 1)


def _us_per_decision(results: Results, seats: npt.NDArray[np.bool_]) -> float:
    decisions, seconds = results.decisions[seats], results.seconds[seats]
    timed = ~np.isnan(seconds)
    return 1e6 * float(seconds[timed].sum() / max(decisions[timed].sum(), 1))


FIGURES: Final = (
    Figure("disc_use", tuple(f"disc {k + 1}" for k in range(DISCS)), BAR, _disc_use),
    Figure("court_share", ("to court",), BAR, _court_share),
    Figure("mean_castles", ("castles",), "{:.1f}", lambda r, seats: float(r.castles[seats].mean())),
    Figure("games", ("games",), "{:,}", lambda r, seats: int(seats.any(axis=1).sum())),
    Figure("decisions", ("decisions",), "{:,}", lambda r, seats: int(r.decisions[seats].sum())),
    Figure("seconds", (), "", lambda r, seats: float(np.nansum(r.seconds[seats]))),
    Figure("us_per_decision", ("a decision",), TIME, _us_per_decision, ranked=True),
)
"""The figures of each agent, over all its seats, in the order of the page."""


def columns_table() -> str:
    """Return the keys of a game's line as a Markdown table (docs/formats.md; a test compares)."""
    lines = ["| key | `Results` | shape | range | meaning |", "| --- | --- | --- | --- | --- |"]
    sizes = {SEATS: "players"}
    for column in COLUMNS:
        if not column.key:
            continue
        shape = " x ".join(str(sizes.get(size, size)) for size in column.shape) or "-"
        bounds = f"{column.low} to {_power(column.high)}"
        if column.words:
            bounds = ", ".join(f"`{word}`" for word in column.words if word)
        elif column.source == PLANNED:
            bounds = "as planned"
        name = f"`{column.name}`" if column.name else "-"
        lines.append(f"| `{column.key}` | {name} | {shape} | {bounds} | {column.meaning} |")
    return "\n".join(lines) + "\n"


def _power(number: int) -> str:
    bits = number.bit_length()
    return f"2^{bits} - 1" if bits > 16 and number == 2**bits - 1 else str(number)
