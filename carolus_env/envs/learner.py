"""A learner in each game, the other seats played by agents: what single-agent environments share.

A batch of games in lockstep. The learner of each game sees its own decisions only; between two of
them everybody else plays on. It may hold several seats of a table, all of them in self-play: then
it decides for whoever is to move. When a game ends, whoever made the last move, the learner gets
the payoff of the seat it sat in, and the row starts its next game at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, is_compiled, make
from carolus_env.engine import observation
from carolus_env.engine.rules import OVER, Rules
from carolus_env.engine.state import Ints, States, pick, put
from carolus_env.engine.streams import new_streams

LEARNER = -1  # at a table: where the learner sits


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
            ``(n, players)`` indices into ``agents``, or `LEARNER` for one more seat of the
            learner's; what is said of its own seat is ignored.
        """
        ...


class Watcher(Protocol):
    """Who is told of every decision, the opponents' too."""

    def begun(self, rows: npt.NDArray[np.int64]) -> None:
        """New games stand in these rows, before their first decision."""
        ...

    def decided(
        self, rows: npt.NDArray[np.int64], before: States, actions: npt.NDArray[np.integer[Any]]
    ) -> None:
        """These games, ``(m,)``, went on from ``before`` by ``actions``."""
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
    """The games that ended in a step.

    Attributes:
        rows: ``(k,)`` which games, ascending.
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

    @property
    def learners_payoffs(self) -> npt.NDArray[np.float64]:
        """``(k,)`` payoff of the learner's seat."""
        return self.payoffs[np.arange(len(self.rows)), self.seats]


class LearnerGames:
    """``n`` games, each waiting for its learner's decision.

    Args:
        rules: number of players and options.
        n: number of games.
        opponents: who plays the other seats. Its ``agents`` may change between steps: who decides
            for a place at a table is looked up at each decision.
        seat: the learner's seat, or None: row ``i`` starts in seat ``(seed + i) % players`` and
            goes on to the next with every game.
        seed: of the first games (row ``i``: ``seed + i``), of the opponents' dice and draws.

    Attributes:
        states: ``(n,)`` the games, each at a decision of its learner.
        seats: ``(n,)`` the learner's seat in each.
        watcher: told of every decision, or None. The games are the same, but slower: compiled
            opponents come back to Python after each.
    """

    watcher: Watcher | None = None

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
        self._random = np.random.default_rng(seed)
        self.states = engine.blank_games(rules, n)
        self.seats = np.zeros(n, np.int64)
        self._generators = new_streams(0, n)
        self._tables = np.empty((n, rules.players), np.int64)
        self.reset(seed)

    def reset(
        self,
        seed: int | np.integer[Any] | npt.NDArray[np.uint64] | None = None,
        rows: Ints | None = None,
    ) -> None:
        """Start games anew.

        Args:
            seed: one number, from which row ``i`` takes ``seed + i``, or ``(m,)`` numbers, one a
                row. A game depends on its own seed alone. None: from the operating system.
            rows: ``(m,)`` games to start; None: all.
        """
        picked = np.arange(self.n) if rows is None else np.asarray(rows, np.int64)
        if rows is None:
            single = int(seed) if isinstance(seed, int | np.integer) else None
            self._random = np.random.default_rng(single)
        if seed is None:
            seed = int(self._random.integers(2**62))
        if isinstance(seed, int | np.integer):
            seed = np.uint64(seed) + np.arange(len(picked), dtype=np.uint64)
        put(self.states, picked, engine.new_games(self.rules, len(picked), seed=seed))
        self._generators[picked] = new_streams(seed, len(picked))
        self.seats[picked] = seed % np.uint64(self.rules.players)
        if self._fixed_seat is not None:
            self.seats[picked] = self._fixed_seat
        self._begin(picked)

    def step(
        self,
        actions: npt.NDArray[np.integer[Any]],
        rows: Ints | None = None,
        *,
        forfeits: bool = False,
    ) -> Ended:
        """Carry out the learners' decisions; the others play on to the next ones, or to the end.

        Args:
            actions: ``(m,)`` legal actions.
            rows: ``(m,)`` games that go on; None: all.
            forfeits: whether an illegal action loses the game instead of being an error.

        Returns:
            The games that ended. They wait for `restart`.

        Raises:
            IllegalActionError: see `engine.step`; no game has changed.
        """
        played = np.arange(self.n) if rows is None else np.asarray(rows, np.int64)
        before = None if self.watcher is None else pick(self.states, played)
        try:
            engine.step(self.states, actions, rows=rows)
            going_on = played
        except engine.IllegalActionError:  # it has changed no game, so this is asked only now
            if not forfeits:
                raise
            going_on = self._forfeit_illegal(np.asarray(actions), played)
        if self.watcher is not None and before is not None:
            legal = np.isin(played, going_on)
            self.watcher.decided(going_on, before[legal], np.asarray(actions)[legal])
        self._play_on(going_on)
        over = np.sort(played[self.states["phase"][played] == OVER])
        last = pick(self.states, over)
        seats, tables = self.seats[over], self._tables[over]
        return Ended(over, last, seats, tables, engine.returns(last))

    def restart(self, rows: npt.NDArray[np.int64]) -> None:
        """Start the next game in each row, dice and draws from where the last one left them."""
        if len(rows) == 0:
            return
        put(self.states, rows, engine.next_games(pick(self.states, rows)))
        if self._fixed_seat is None:
            self.seats[rows] = (self.seats[rows] + 1) % self.rules.players
        self._begin(rows)

    def masks(self, out: npt.NDArray[np.int8] | None = None) -> npt.NDArray[np.int8]:
        """Legal actions of the learners: ``(n, 95)`` int8."""
        return engine.legal_masks(self.states, out=out)

    def observations(self, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the learners see, written into ``out``: ``(n, length)`` uint8 or float32.

        They look from the seat that is to decide; when the game is over, from their own.
        """
        over = self.states["phase"] == OVER
        viewers = np.where(over, self.seats, self.states["player"])
        return observation.observe(self.states, viewers, dtype=out.dtype, out=out)

    # -------------------------------------------------------------------------------- resuming

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """With `numbers`, what `restore` needs: games, seats, tables, the opponents' streams."""
        return {
            "states": self.states.view(np.uint8).reshape(self.n, -1),
            "seats": self.seats,
            "tables": self._tables,
            "generators": self._generators,
        }

    def numbers(self) -> dict[str, Any]:
        """See `arrays`: the generator that seats opponents, as plain values."""
        return {"random": self._random.bit_generator.state}

    def restore(self, numbers: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Be in the midst of the games that `arrays` and `numbers` were asked of.

        Raises:
            ValueError: where they are of another number of games or players.
        """
        self.states.view(np.uint8).reshape(self.n, -1)[:] = arrays["states"]
        self.seats[:], self._tables[:] = arrays["seats"], arrays["tables"]
        self._generators[:] = arrays["generators"]
        self._random.bit_generator.state = numbers["random"]

    # -------------------------------------------------------------------------------- inside

    def _begin(self, rows: npt.NDArray[np.int64]) -> None:
        """Seat the opponents, and play on to the learners' first decisions.

        No game ends before: everybody plays a disc before the first Emperor moves.
        """
        tables = self.opponents.seat(self.seats[rows], self._random)
        tables[np.arange(len(rows)), self.seats[rows]] = LEARNER
        self._tables[rows] = tables
        if self.watcher is not None:
            self.watcher.begun(rows)
        self._play_on(rows)

    def _forfeit_illegal(
        self, actions: npt.NDArray[np.integer[Any]], rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """A step in which an illegal action ends the game; returns the games with a legal one."""
        legal = engine.are_legal(self.states, actions, rows=rows)
        engine.forfeit(self.states, rows=rows[~legal])
        engine.step(self.states, actions[legal], rows=rows[legal])
        return rows[legal]

    def _play_on(self, rows: npt.NDArray[np.int64]) -> None:
        """The others decide until each game is over or waits for its learner."""
        agents = self.opponents.agents
        compiled = [(k, agent) for k, agent in enumerate(agents) if is_compiled(agent)]
        if self.watcher is not None:
            compiled = []
        streams = self._generators[:, None]
        while len(rows):
            # Compiled ones go all the way first, so that the rest decide in the largest batches.
            decided = True
            while decided:
                decided = False
                for place, agent in compiled:
                    moved = agent.play_on(self.states, streams, self._tables, place, rows)
                    decided |= moved > 0 and len(compiled) > 1
            if len(compiled) == len(agents):
                return
            rows = self._decide_once(rows)

    def _decide_once(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """One decision in each game that does not wait for its learner; returns those games."""
        places = self._tables[rows, self.states["player"][rows]]
        places[self.states["phase"][rows] == OVER] = LEARNER
        waiting = places != LEARNER
        rows, places = rows[waiting], places[waiting]
        actions = np.empty(len(rows), np.int64)
        for place in np.flatnonzero(np.bincount(places)).tolist():
            mine = np.flatnonzero(places == place)
            games = rows[mine]
            streams = self._generators[games]
            actions[mine] = self.opponents.agents[place].act(pick(self.states, games), streams)
            self._generators[games] = streams
        before = None if self.watcher is None else pick(self.states, rows)
        engine.step(self.states, actions, rows=rows)
        if self.watcher is not None and before is not None:
            self.watcher.decided(rows, before, actions)
        return rows
