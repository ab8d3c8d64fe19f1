"""The statistics of games: `COLUMNS`, and the arrays of them, `Results`.

A new statistic of a game is a `Column` and a field of `Results`: the results file (`journal`) and
the table of its keys in docs/formats.md follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.rules import REASON_NAMES
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
    seconds: npt.NDArray[np.float32]
    """``(D,)``: time that it took, as part of a batch."""

    def in_order(self) -> Decisions:
        """Sort by game."""
        rows = np.argsort(self.games, kind="stable")
        columns: list[Any] = [column[rows] for column in self]
        return Decisions(*columns)


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

    def by_seat(self, weights: Any = None) -> npt.NDArray[Any]:
        """Count the decisions, or sum their weights: ``(G, players)``."""
        games, players = self.tables.shape
        places = self.decisions.games * np.int64(players) + self.decisions.seats
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


def agent_statistics(results: Results, agents: int) -> list[dict[str, float]]:
    """Return statistics of each agent over all its seats, by name."""
    rows = np.arange(len(results))[:, None] * agents + results.tables

    def summed(values: npt.ArrayLike) -> npt.NDArray[Any]:
        return np.bincount(results.tables.ravel(), np.ravel(values), agents)

    timed = ~np.isnan(results.seconds)
    seconds = summed(np.where(timed, results.seconds, 0))
    columns = {
        "mean_castles": summed(results.castles) / np.maximum(summed(timed | True), 1),
        "games": np.bincount(np.unique(rows) % agents, minlength=agents),
        "decisions": summed(results.decisions).astype(np.int64),
        "seconds": seconds,
        "us_per_decision": 1e6 * seconds / np.maximum(summed(results.decisions * timed), 1),
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]
