"""One learner a game, the other seats played by agents: what single-agent environments share.

A batch of games in lockstep. The learner of each game sees its own decisions only; between two of
them everybody else plays on. When a game ends, whoever made the last move, the learner gets the
payoff of the seat it sat in, and the row starts its next game at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from carolus_env import engine, observation
from carolus_env.bots import Agent, make
from carolus_env.rules import OVER, Rules
from carolus_env.state import States
from carolus_env.streams import new_streams

LEARNER = -1  # at a table: the seat of the learner


class Opponents(Protocol):
    """Who sits at the learners' tables."""

    @property
    def agents(self) -> Sequence[Agent]:
        """Everybody who may sit at a table; `seat` gives indices into it."""
        ...

    def seat(
        self, learner_seats: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Fill the tables of games that start now.

        Args:
            learner_seats: ``(n,)`` seat of the learner in each game.
            random: to draw from.

        Returns:
            ``(n, players)`` indices into ``agents``; the learner's own seat is ignored.
        """
        ...


class FixedOpponents:
    """The same agents at every table: one for all seats, or one for each seat after the learner."""

    def __init__(self, rules: Rules, specs: str | Agent | Sequence[str | Agent]) -> None:
        given = [specs] if isinstance(specs, str | Agent) else list(specs)
        if len(given) not in (1, rules.players - 1):
            raise ValueError(
                f"opponents must be one agent or {rules.players - 1} (the seats after the "
                f"learner's, clockwise), got {len(given)}"
            )
        self.agents = [make(spec) for spec in given]
        self._players = rules.players

    def seat(
        self, learner_seats: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        clockwise = (np.arange(self._players) - learner_seats[:, None]) % self._players
        return np.minimum(np.maximum(clockwise - 1, 0), len(self.agents) - 1)


class Ended(NamedTuple):
    """The games that ended in a step, before their rows started anew.

    Attributes:
        rows: ``(k,)`` which games.
        states: ``(k,)`` their last positions.
        seats: ``(k,)`` where the learner sat.
        tables: ``(k, players)`` who sat where, as indices of agents; `LEARNER` for the learner.
        payoffs: ``(k, players)`` of every seat.
    """

    rows: npt.NDArray[np.int64]
    states: States
    seats: npt.NDArray[np.int64]
    tables: npt.NDArray[np.int64]
    payoffs: npt.NDArray[np.float64]


class LearnerGames:
    """``n`` games, each waiting for its learner's decision.

    Args:
        rules: number of players and options.
        n: number of games.
        opponents: who plays the other seats; may be replaced between steps for games to come.
        seat: the learner's seat, or None: each row goes round the seats from game to game.
        seed: of the first games (row ``i``: ``seed + i``), of the opponents' dice and draws.

    Attributes:
        states: ``(n,)`` the games, each at a decision of its learner.
        seats: ``(n,)`` the learner's seat in each.
    """

    def __init__(
        self,
        rules: Rules,
        n: int,
        opponents: Opponents,
        *,
        seat: int | None = None,
        seed: int | None = None,
    ) -> None:
        if n < 1:
            raise ValueError(f"n, the number of games, must be at least 1, got {n}")
        if seat is not None and not 0 <= seat < rules.players:
            raise ValueError(f"seat must be from 0 to {rules.players - 1} or None, got {seat}")
        self.rules, self.n, self.opponents = rules, n, opponents
        self._fixed_seat = seat
        self.reset(seed)

    def reset(self, seed: int | None = None) -> None:
        """Start all games anew."""
        n, players = self.n, self.rules.players
        self._random = np.random.default_rng(seed)
        first = int(self._random.integers(2**62)) if seed is None else seed
        self.states = engine.new_games(self.rules, n, seed=first)
        self._generators = new_streams(first, n)
        self.seats = np.arange(n, dtype=np.int64) % players
        if self._fixed_seat is not None:
            self.seats[:] = self._fixed_seat
        self._tables = np.empty((n, players), np.int64)
        self._seat(np.arange(n))
        ended: list[Ended] = []
        while ended or not self._all_wait():  # a game may end before its learner ever decides
            ended = self._play_on()

    def step(self, actions: npt.NDArray[np.integer[Any]]) -> list[Ended]:
        """Carry out the learners' decisions, and play on to their next ones.

        Args:
            actions: ``(n,)`` legal actions.

        Returns:
            The games that ended, in batches; a row appears more than once when its next game
            ended before the learner's turn (which takes a forfeit or an agent that resigns).

        Raises:
            IllegalActionError: see `engine.step`; no game has changed.
        """
        engine.step(self.states, actions)
        return self._play_on()

    def masks(self, out: npt.NDArray[np.int8] | None = None) -> npt.NDArray[np.int8]:
        """Legal actions of the learners: ``(n, 95)`` int8."""
        return engine.legal_masks(self.states, out=out)

    def observations(self, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the learners see, written into ``out``: ``(n, length)`` uint8 or float32."""
        return observation.observe(self.states, self.seats, dtype=out.dtype, out=out)

    # -------------------------------------------------------------------------------- inside

    def _all_wait(self) -> bool:
        return bool((self.states["player"] == self.seats).all())

    def _seat(self, rows: npt.NDArray[np.int64]) -> None:
        tables = self.opponents.seat(self.seats[rows], self._random)
        tables[np.arange(len(rows)), self.seats[rows]] = LEARNER
        self._tables[rows] = tables

    def _play_on(self) -> list[Ended]:
        """Others decide, and ended games start anew, until every game waits for its learner."""
        ended = []
        waiting = np.arange(self.n)
        while len(waiting):
            over = waiting[self.states["phase"][waiting] == OVER]
            if len(over):
                ended.append(self._finish(over))
            players = self.states["player"][waiting]
            others = players != self.seats[waiting]
            waiting, players = waiting[others], players[others]
            agents = self._tables[waiting, players]
            actions = np.empty(len(waiting), np.int64)
            for agent in np.unique(agents):
                mine = np.flatnonzero(agents == agent)
                rows = waiting[mine]
                streams = self._generators[rows]
                actions[mine] = self.opponents.agents[agent].act(self.states[rows], streams)
                self._generators[rows] = streams
            if len(waiting):
                engine.step(self.states, actions, rows=waiting)
        return ended

    def _finish(self, rows: npt.NDArray[np.int64]) -> Ended:
        """Note how games ended and start the next ones, from the same generators on."""
        last = self.states[rows]
        ended = Ended(rows, last, self.seats[rows], self._tables[rows], engine.returns(last))
        self.states[rows] = engine.next_games(last)
        if self._fixed_seat is None:
            self.seats[rows] = (self.seats[rows] + 1) % self.rules.players
        self._seat(rows)
        return ended
