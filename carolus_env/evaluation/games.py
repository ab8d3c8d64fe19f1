"""Games side by side: all agents to move are asked, then all answers are played, in lockstep.

A game depends on the seed, its deal, its seating and its agents, not on how many games are played
at once or in which order. A *deal* is the territories, the first player and, for each seat, the
faces of all its rolls, whatever is played. So games of one deal differ only in who sits where,
and luck that comes from the dice alone cancels.

Every seat of every game has its own random stream for the agent there. Agents get copies of the
states; the generator in a copy comes from that stream and does not reveal the dice.

What is kept of a game are its `COLUMNS`, in arrays `Results`. A new statistic is a `Column` and a
field of `Results`: the results file (`journal`) and the table in docs/formats.md follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, Checked, lockstep
from carolus_env.bots.agent import CHANGED
from carolus_env.engine.chance import roll_dealt
from carolus_env.engine.rules import OVER, PHASE_NAMES, REASON_NAMES, Rules
from carolus_env.engine.setup import Deals
from carolus_env.engine.state import Ints, States, copy
from carolus_env.engine.streams import new_streams
from carolus_env.evaluation.seating import MOST_GAMES, Fixtures
from carolus_env.records import Record, make_record
from carolus_env.system import cancellation, failures
from carolus_env.system.options import instance, whole_number

SIDE_BY_SIDE: Final = 4096
"""Most games in play at once; fewer than 2^16 (`Decisions.games`)."""

Progress = Callable[[int], None]
"""A function of the number of finished games, called whenever it grows."""


class ArenaError(failures.UserError):
    """A tournament cannot continue: an agent failed or broke the rules, or something is missing.

    Attributes:
        agent: name of the agent at fault; None: not an agent's fault.
        reason: a description; the text of the error names the agent too.
        traceback: the agent's own traceback, as Python prints it; empty without one.
    """

    traceback = ""

    def __init__(self, text: str, agent: str | None = None, reason: str | None = None) -> None:
        super().__init__(text)
        self.agent, self.reason = agent, text if reason is None else reason


def agent_error(error: BaseException, agent: str, what: str) -> ArenaError:
    """Return an `ArenaError` that names the agent once, in front unless the error names it.

    Args:
        error: the agent's exception; one with an attribute ``agent`` names it (`bots.AgentError`).
        agent: the agent's name.
        what: text after the name, where the error does not name the agent.
    """
    if isinstance(named := getattr(error, "agent", None), str):
        result = ArenaError(str(error), named, str(getattr(error, "reason", error)))
    else:
        result = ArenaError(f"agent {agent!r}{what}", agent, what.lstrip(": "))
    result.traceback = failures.full_traceback(error)
    return result


def play_games(
    tables: npt.ArrayLike | Fixtures,
    agents: Sequence[Agent],
    rules: Rules,
    *,
    seed: int,
    progress: Progress | None = None,
) -> Results:
    """Play games to their end, many at once.

    Args:
        tables: ``(G, players)`` whole numbers: which of ``agents`` sits at each seat of each game;
            game ``g`` is of deal ``g``. Or `Fixtures`, which name deals, seatings and meetings:
            games of one deal have the same set-up and dice, and the agents' random streams depend
            on deal, seating and meeting.
        agents: the players; each answers all games in which it is to move in one batch.
        rules: rules of all games.
        seed: 0 to 2^64 - 1; no two seeds share a deal (`engine.setup.Deals`).
        progress: a function of the number of finished games.

    Raises:
        ArenaError: when an agent fails, or answers what is not a legal action.
        Stopped: when the work is to end (`system.cancellation`).
        ValueError: for impossible tables, deals, seatings or an impossible seed.
    """
    played = _finished(tables, agents, rules, seed, progress)
    return Results.joined([Results.of(finished) for finished in played])


def play_and_record(
    tables: npt.ArrayLike | Fixtures,
    agents: Sequence[Agent],
    rules: Rules,
    *,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Results, list[npt.NDArray[np.uint8]]]:
    """Play games as `play_games` does; returns the actions of each game, too (`game_record`)."""
    parts, actions = [], []
    for finished in _finished(tables, agents, rules, seed, progress):
        parts.append(Results.of(finished))
        actions += _split(finished.decisions, len(finished.tables))
    return Results.joined(parts), actions


def _finished(
    tables: npt.ArrayLike | Fixtures,
    agents: Sequence[Agent],
    rules: Rules,
    seed: int,
    progress: Progress | None,
) -> Iterator[Finished]:
    """Play as many games side by side as `SIDE_BY_SIDE` allows, then the next ones."""
    instance("rules", rules, Rules, "carolus_env.Rules")
    instance("agents", agents, Sequence, "a list of agents")
    for agent in agents:
        instance("agents", agent, Agent, "a list of agents (carolus_env.make makes them)")
    fixtures = tables if isinstance(tables, Fixtures) else Fixtures.of(tables)
    fixtures = fixtures.checked(len(agents), rules.players)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    for start in range(0, max(len(fixtures.tables), 1), SIDE_BY_SIDE):
        block = Fixtures(*(column[start : start + SIDE_BY_SIDE] for column in fixtures))
        yield _side_by_side(block, agents, rules, seed, progress, start)


def game_record(rules: Rules, seed: int, deal: int, actions: npt.NDArray[np.uint8]) -> Record:
    """Return the record of a game that `play_and_record` played (`carolus_env.records`).

    Args:
        rules: the game's rules.
        seed: the seed given to `play_games`.
        deal: the game's deal.
        actions: the game's actions.
    """
    deals = Deals.of(seed, np.array([deal]))
    start = deals.games(rules, roll=False)
    return make_record(start, actions.tolist(), dice=deals.dice()[0])


# ------------------------------------------------------------------------------------ playing


def _side_by_side(
    fixtures: Fixtures,
    agents: Sequence[Agent],
    rules: Rules,
    seed: int,
    progress: Progress | None,
    done: int,
) -> Finished:
    """Play games in lockstep, when ``done`` of the caller's games are finished."""
    tables = fixtures.tables
    deals = Deals.of(seed, fixtures.deals)
    states, dice = deals.games(rules, roll=False), deals.dice()
    streams = deals.streams(fixtures.seatings, fixtures.meetings)
    games = lockstep.Games(states, tables, streams)

    def roll(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        roll_dealt(states, dice, rows)
        return rows

    log = [_noted(lockstep.NOTHING)]
    try:
        for step in lockstep.play(games, agents, roll, answer=answer):
            log.append(_noted(step))
            over = int((states["phase"][step.rows] == OVER).sum())
            done += over
            if over and progress is not None:
                progress(done)
            cancellation.current().check()
    except engine.IllegalActionError as error:
        raise _refusal(error, states, fixtures, agents) from None
    decisions = Decisions(*map(np.concatenate, zip(*log, strict=True)))
    return Finished(fixtures.deals, fixtures.seatings, tables, states, decisions)


def _noted(step: lockstep.Step) -> Decisions:
    """Extract the statistics' inputs from a step that was just played."""
    return Decisions(
        step.rows.astype(np.uint16),
        step.seats,
        step.actions.astype(np.uint8),
        step.seconds.astype(np.float32),
    )


def _split(decisions: Decisions, games: int) -> list[npt.NDArray[np.uint8]]:
    """Split the actions by game."""
    ends = np.cumsum(np.bincount(decisions.games, minlength=games))[:-1]
    return np.split(decisions.in_order().actions, ends) if games else []


def _refusal(
    error: engine.IllegalActionError, states: States, fixtures: Fixtures, agents: Sequence[Agent]
) -> ArenaError:
    phase = PHASE_NAMES[int(states["phase"][error.game])]
    agent = agents[fixtures.tables[error.game, error.player]].name
    reason = (
        f"answered action {error.action} as player {error.player} in phase {phase} "
        f"of deal {fixtures.deals[error.game]}, seating {fixtures.seatings[error.game]}; "
        f"legal are {error.legal}"
    )
    return ArenaError(f"agent {agent!r} {reason}", agent, reason)


def answer(agent: Agent, states: States, generators: npt.NDArray[np.uint64]) -> Ints:
    """Return the agent's actions. Whether they are legal is checked when they are played.

    Raises:
        ArenaError: when it fails, does not answer one whole number a game, or, from a user's file,
            changes the states.
    """
    # Agents from a user's file come wrapped in checks, most of which would be done twice here.
    checked = isinstance(agent, Checked)
    player = agent.agent if isinstance(agent, Checked) else agent
    before = states.tobytes() if checked else b""
    try:
        actions = np.asarray(player.act(states, generators))
    except cancellation.Stopped:
        raise
    except (Exception, SystemExit) as error:
        raise agent_error(error, agent.name, f" failed with {failures.message(error)}") from error
    if checked and states.tobytes() != before:
        raise ArenaError(f"agent {agent.name!r} {CHANGED}", agent.name, CHANGED)
    if actions.dtype.kind not in "iu" or actions.shape != states.shape:
        reason = (
            f"must answer one whole number a game, shape {states.shape}, "
            f"got shape {actions.shape} and dtype {actions.dtype}"
        )
        raise ArenaError(f"agent {agent.name!r} {reason}", agent.name, reason)
    return actions


def warm_up(agents: Sequence[Agent], rules: Rules) -> None:
    """Play some decisions of each agent, so that compiling and loading do not count as thinking."""
    positions = _positions(rules)
    for agent in agents:
        answer(agent, copy(positions), new_streams(0, len(positions)))


def refusal(agent: Agent, rules: Rules) -> str:
    """Return why an agent cannot play by these rules, in one line; empty if it can.

    It is asked for the first decision of a game.
    """
    try:
        answer(agent, engine.new_games(rules, 1, seed=0), new_streams(0, 1))
    except ArenaError as error:
        return " ".join(str(error).split())
    return ""


def _positions(rules: Rules) -> States:
    """Return a game in each phase that occurs in one random game."""
    by_phase: dict[int, States] = {}
    game, stream = engine.new_games(rules, 1, seed=0), new_streams(0, 1)
    while not engine.is_over(game)[0] and len(by_phase) < 4:
        by_phase.setdefault(int(game["phase"][0]), copy(game))
        engine.step(game, engine.random_actions(game, stream))
    return np.concatenate(list(by_phase.values()))


# ------------------------------------------------------------------------------------ results

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
    return engine.returns(games.states).reshape(games.tables.shape)


def _shares(games: Finished) -> npt.NDArray[np.float64]:
    return engine.win_shares(games.states).reshape(games.tables.shape)


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
