"""One learner a game, agents in the other seats: the base of all single-agent environments.

Games are played in lockstep, and each stops only at decisions of its learner; in between, the other
seats play on. When a game ends, by anyone's decision, the learner is paid for its seat, and
`LearnerGames.restart` begins the next game in that row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from carolus_env import engine
from carolus_env.bots import Agent, AgentLike, Checked, is_compiled, lockstep, make
from carolus_env.bots.compiled import CheckedCompiled
from carolus_env.bots.lockstep import Rows
from carolus_env.bots.registry import is_function
from carolus_env.engine import chance, observation
from carolus_env.engine.rules import ACTIONS, OVER, Rules
from carolus_env.engine.state import Ints, States, copy, pick, put
from carolus_env.envs import games_from, observation_box
from carolus_env.system.machine import room_of
from carolus_env.system.options import instance, seed_number, whole_number
from carolus_env.system.untrusted import shown

Opponents = AgentLike | Sequence[AgentLike]


def _is_one(spec: object) -> TypeGuard[AgentLike]:
    return isinstance(spec, str | Agent) or is_function(spec)


def agents_of(rules: Rules, opponents: Opponents) -> list[Agent]:
    """Return the agents in the other seats: one for all, or one for each, clockwise."""
    specs = [opponents] if _is_one(opponents) else opponents
    if not isinstance(specs, Sequence) or not all(map(_is_one, specs)):
        raise TypeError(
            f"opponents must be spec strings or agents, one or a list of them, got {shown(specs)}"
        )
    if len(specs) not in (1, rules.players - 1):
        several = f" or a list of {rules.players - 1}, one for each seat after the learner's"
        raise ValueError(
            f"opponents must be one agent{several if rules.players > 2 else ''}, "
            f"got a list of {len(specs)}"
        )
    return [_checked(make(spec)) for spec in specs]


def _checked(agent: Agent) -> Agent:
    """Check the choices of a user's compiled agent: it would never return from an illegal one."""
    theirs = is_compiled(agent) and room_of(type(agent).__module__) is None
    return CheckedCompiled(agent) if theirs and not isinstance(agent, Checked) else agent


class FinishedGames(NamedTuple):
    """The ``k`` games that ended in a step."""

    rows: Rows  # (k,) ascending
    states: States  # (k,) their last positions
    seats: npt.NDArray[np.int64]  # (k,) the learner's
    payoffs: npt.NDArray[np.float64]  # (k, players) of every seat

    @property
    def learner_payoffs(self) -> npt.NDArray[np.float64]:
        """``(k,)``."""
        return self.payoffs[np.arange(len(self.rows)), self.seats]


class LearnerGames:
    """``n`` games, each waiting for its learner's decision.

    Args:
        opponents: a spec string or an agent for all other seats, or a list of one for each seat
            after the learner's, clockwise.
        seat: the learner's seat. None: row ``i`` starts in seat ``(seed + i) % players`` and moves
            to the next seat with every game.
        seed: seed of the first games (row ``i`` takes ``seed + i``), their dice and the opponents'
            draws. None: from the operating system.
        start: False leaves the first games to `reset`.

    Attributes:
        states: ``(n,)`` the games, each at a decision of its learner.
        seats: ``(n,)`` the learner's seat in each.
        failed: ``(n,)`` bool, the games in which an opponent failed, or was interrupted.
        watcher: an observer of every decision and beginning, such as `gym.Pictures`, or None.
    """

    watcher: Any = None
    actions: int = ACTIONS  # `step` takes numbers below this

    def __init__(
        self,
        rules: Rules,
        n: int,
        opponents: Opponents,
        *,
        seat: int | None = None,
        seed: int | None = None,
        start: bool = True,
    ) -> None:
        instance("rules", rules, Rules, "carolus_env.Rules")
        n = whole_number("n, the number of games,", n, 1)
        if seat is not None:
            seat = whole_number("seat", seat, 0, rules.players - 1)
        seed = seed_number(seed)
        self.rules, self.n, self.agents = rules, n, agents_of(rules, opponents)
        self._compiled = [(k, agent) for k, agent in enumerate(self.agents) if is_compiled(agent)]
        self._all, self._fixed_seat = np.arange(n), seat
        self.states = engine.blank_games(rules, n)
        self.seats, self.failed = np.zeros(n, np.int64), np.zeros(n, np.bool_)
        self._generators = chance.new_streams(0, n)
        self._seatings = np.full((n, rules.players), lockstep.NO_AGENT)
        if start:
            self.reset(seed)

    def reset(
        self,
        seed: int | npt.NDArray[np.uint64] | None = None,
        rows: Rows | None = None,
        starts: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Start new games in ``rows``, ``(m,)``; None: in all.

        Args:
            seed: one number, of which row ``i`` takes ``seed + i``, or ``(m,)`` numbers, one a row.
                A game depends on its seed alone. None: drawn by the generators of these games, or
                from the operating system where all are started.
            starts: for each row some of `envs.RESET_OPTIONS`.

        A start that is impossible or over, or ends before its learner decides, is a ValueError, and
        no game has changed.
        """
        if isinstance(seed, np.ndarray):
            seeds = seed
        elif seed is None and rows is not None:
            seeds = self.states["generator"][rows]
        else:
            first = np.random.default_rng().integers(2**62) if seed is None else seed
            count = self.n if rows is None else len(rows)
            seeds = np.uint64(first) + np.arange(count, dtype=np.uint64)
        rows = self._all if rows is None else rows
        seats = (seeds % np.uint64(self.rules.players)).astype(np.int64)
        if starts is None:
            games = engine.new_games(self.rules, len(rows), seed=seeds)
        else:
            games, chosen = games_from(self.rules, starts, seeds, seed is not None)
            seats = np.where(chosen < 0, seats, chosen)
        arrays = self.states, self.seats, self.failed, self._generators, self._seatings
        before = [array[rows] for array in arrays]
        put(self.states, rows, games)
        self._generators[rows] = chance.new_streams(seeds, len(rows))
        self.seats[rows] = seats if self._fixed_seat is None else self._fixed_seat
        try:
            self._begin(rows)
            if len(ended := rows[self.states["phase"][rows] == OVER]):
                row = int(ended[0])
                raise ValueError(
                    f"reset: game {row} ends before its learner, seat {self.seats[row]}, decides"
                )
        except Exception:
            for array, values in zip(arrays, before, strict=True):
                array[rows] = values
            if starts is not None:  # else an agent has failed, maybe before there were games
                self._prepare(rows)
            raise

    def step(
        self,
        actions: npt.NDArray[np.integer[Any]],
        rows: Ints | None = None,
        *,
        forfeits: bool = False,
    ) -> FinishedGames:
        """Carry out the learners' decisions; the others play on to the next ones or to the end.

        ``actions``, ``(m,)``, are those of the games in ``rows``; None: of all. An illegal one
        forfeits the game, or is an IllegalActionError, and no game has changed. Returns the games
        that ended; they wait for `restart`. Games that have `failed` are a ResetNeeded.
        """
        played = self._all if rows is None else np.asarray(rows, np.int64)
        if self.failed[played].any():
            failed = np.flatnonzero(self.failed).tolist()
            raise gymnasium.error.ResetNeeded(f"an opponent failed in games {failed}: reset them")
        self.play_on(self._decide(np.asarray(actions), played, forfeits))
        over = np.sort(played[self.states["phase"][played] == OVER])
        last = pick(self.states, over)
        return FinishedGames(over, last, self.seats[over], engine.returns(last))

    def restart(self, rows: Rows) -> None:
        """Start the next game in each row; its dice and draws continue the streams of the last."""
        if len(rows) == 0:
            return
        put(self.states, rows, engine.next_games(pick(self.states, rows)))
        if self._fixed_seat is None:
            self.seats[rows] = (self.seats[rows] + 1) % self.rules.players
        self._begin(rows)

    def box(self, dtype: np.dtype[Any]) -> spaces.Box:
        """Return the space of a learner's observations."""
        return observation_box(self.rules.players, dtype)

    def actions_of(self, number: int) -> list[int]:
        """Return the actions, in order, of a decision in the first game."""
        return [number]

    def masks(self, out: npt.NDArray[np.int8] | None = None) -> npt.NDArray[np.int8]:
        """Return the learners' legal actions: ``(n, actions)`` int8."""
        return engine.legal_masks(self.states, out=out)

    def observations(self, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Write the learners' observations into ``out``, ``(n, length)`` uint8 or float32."""
        return observation.observe(self.states, self.seats, dtype=out.dtype, out=out)

    def last_observations(self, ended: FinishedGames, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return the final observations of the learners, from the seats they are paid for."""
        return observation.observe(ended.states, ended.seats, dtype=dtype)

    def infos(self) -> dict[str, npt.NDArray[Any]]:
        """Return infos on each game's decision, ``(n, ...)`` by name; here none."""
        return {}

    def _begin(self, rows: Rows) -> None:
        """Seat the agents clockwise from the learner, the last in all that are left; play on.

        No new game ends before its learner's first decision: every player plays a disc before the
        Emperor first moves.
        """
        clockwise = (np.arange(self.rules.players) - self.seats[rows, None]) % self.rules.players
        self._seatings[rows] = np.minimum(clockwise - 1, len(self.agents) - 1)  # the learner: -1
        if self.watcher is not None:
            self.watcher.decided(rows, self.states[rows], np.full(len(rows), -1))
        self.play_on(rows)

    def _decide(self, actions: Ints, rows: Rows, forfeits: bool) -> Rows:
        """Carry out the learners' decisions; returns the rows of those that were legal."""
        before = None if self.watcher is None else pick(self.states, rows)
        legal = np.ones(len(rows), np.bool_)
        try:
            engine.step(self.states, actions, rows=None if rows is self._all else rows)
        except engine.IllegalActionError:  # no game has changed: legality is checked only now
            if not forfeits:
                raise
            legal = engine.are_legal(self.states, actions, rows=rows)
            engine.forfeit(self.states, rows=rows[~legal])
            engine.step(self.states, actions[legal], rows=rows[legal])
        if before is not None:
            self.watcher.decided(rows[legal], before[legal], actions[legal])
        return rows[legal]

    def play_on(self, rows: Rows) -> None:
        """Let the other seats decide until each game is over or waits for its learner."""
        games = lockstep.Games(self.states, self._seatings, self._generators[:, None])
        self.failed[rows] = True  # until all is done
        if self.watcher is not None:
            before = copy(self.states)
            for step in lockstep.play(games, self.agents, rows=rows):
                self.watcher.decided(step.rows, before[step.rows], step.actions)
                before = copy(self.states)
        elif len(self._compiled) == len(self.agents):
            self._play_compiled(games, rows)
        else:

            def go_on(rows: Rows) -> Rows:
                chance.roll(self.states, rows=rows)
                self._play_compiled(games, rows)
                return rows

            for _ in lockstep.play(games, self.agents, go_on, rows=rows):
                pass
        self._prepare(rows)
        self.failed[rows] = False

    def _play_compiled(self, games: lockstep.Games, rows: Rows) -> None:
        """Let compiled agents play as far as they can, so that others have large batches."""
        decided = True
        while decided:
            decided = False
            for k, agent in self._compiled:
                moved = agent.play_on(games.states, games.streams, games.tables, k, rows)
                decided |= moved > 0 and len(self._compiled) > 1

    def _prepare(self, rows: Rows) -> None:
        """Prepare the learners' decisions in these rows; here there is nothing to prepare."""
