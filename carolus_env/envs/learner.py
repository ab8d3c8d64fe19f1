"""One learner a game, agents in the other seats: the base of all single-agent environments.

A batch of games in lockstep. Each game stops only at decisions of its learner; in between, the
other seats play on. A learner may play further seats, in self-play all of them, and then decides
for each of these. When a game ends, by anyone's decision, the learner is paid for one seat, and
`restart` begins the next game in that row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, AgentLike, is_compiled, lockstep, make
from carolus_env.bots.registry import is_function
from carolus_env.engine import chance, observation
from carolus_env.engine.rules import ACTIONS, OVER, Rules
from carolus_env.engine.state import Ints, States, copy, pick, put
from carolus_env.engine.streams import new_streams
from carolus_env.system.options import instance, seed_number, whole_number
from carolus_env.system.untrusted import shown

LEARNER = lockstep.NO_AGENT
"""Entry of a seating: a seat of the learner, whose decisions come from outside."""


class Opponents(Protocol):
    """The agents in the other seats, and their seating."""

    @property
    def agents(self) -> Sequence[Agent]:
        """All agents that may be seated; `seat` gives indices into it."""
        ...

    def seat(
        self, learner_seats: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Fill the seats of games that start now.

        Args:
            learner_seats: ``(n,)`` the learner's seat in each game.
            random: generator to draw from.

        Returns:
            ``(n, players)`` indices into ``agents``, or `LEARNER` for a further seat of the
            learner. The entry of ``learner_seats`` itself is ignored.
        """
        ...


Starts = Callable[[npt.NDArray[np.uint64], bool], tuple[States, npt.NDArray[np.int64]]]
"""Makes games that start elsewhere than new ones (`envs.options.start_from`), at their first
decision: of their seeds, ``(m,)``, and whether a user chose these; returns the games, ``(m,)``, and
the learner's seat in each, -1 where its seed decides."""


class Watcher(Protocol):
    """An observer of every decision, those of the opponents too."""

    def begun(self, rows: npt.NDArray[np.int64]) -> None:
        """Note that new games have started in these rows; nobody has decided yet."""
        ...

    def decided(
        self, rows: npt.NDArray[np.int64], before: States, actions: npt.NDArray[np.integer[Any]]
    ) -> None:
        """Note that ``actions`` were played in these rows, ``(m,)``; the games were ``before``."""
        ...


def _is_one(spec: object) -> TypeGuard[AgentLike]:
    """Return whether something names or is one agent."""
    return isinstance(spec, str | Agent) or is_function(spec)


class FixedOpponents:
    """The same agents in every game: one for all other seats, or one for each, clockwise.

    Args:
        rules: number of players and options.
        specs: a spec string or an agent, or a list of them.

    Raises:
        ValueError: for another number of agents than 1 or ``players - 1``.
    """

    def __init__(self, rules: Rules, specs: AgentLike | Sequence[AgentLike]) -> None:
        instance("rules", rules, Rules, "carolus_env.Rules")
        opponents = [specs] if _is_one(specs) else specs
        if not isinstance(opponents, Sequence) or not all(map(_is_one, opponents)):
            raise TypeError(
                "opponents must be spec strings or agents, one or a list of them, got "
                f"{shown(specs)}"
            )
        if len(opponents) not in (1, rules.players - 1):
            several = f" or a list of {rules.players - 1}, one for each seat after the learner's"
            raise ValueError(
                f"opponents must be one agent{several if rules.players > 2 else ''}, "
                f"got a list of {len(opponents)}"
            )
        self.agents = [make(spec) for spec in opponents]
        self._players = rules.players

    def seat(
        self, learner_seats: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Seat the agents clockwise from the learner, as `Opponents.seat`; the last sits on."""
        clockwise = (np.arange(self._players) - learner_seats[:, None]) % self._players
        return np.minimum(np.maximum(clockwise - 1, 0), len(self.agents) - 1)


class FinishedGames(NamedTuple):
    """The games that ended in a step.

    Attributes:
        rows: ``(k,)`` which games, ascending.
        states: ``(k,)`` their last positions.
        seats: ``(k,)`` the seat that the learner is paid for.
        tables: ``(k, players)`` the seating: index of the agent in each seat, or `LEARNER`.
        payoffs: ``(k, players)`` payoff of every seat.
    """

    rows: npt.NDArray[np.int64]
    states: States
    seats: npt.NDArray[np.int64]
    tables: npt.NDArray[np.int64]
    payoffs: npt.NDArray[np.float64]

    @property
    def learner_payoffs(self) -> npt.NDArray[np.float64]:
        """``(k,)`` float64 payoff of the learner's seat."""
        return self.payoffs[np.arange(len(self.rows)), self.seats]


class LearnerGames:
    """``n`` games, each waiting for its learner's decision.

    Args:
        rules: number of players and options.
        n: number of games.
        opponents: the players of the other seats. Its ``agents`` may change between steps: they are
            looked up at each decision.
        seat: the learner's seat. None: row ``i`` starts in seat ``(seed + i) % players`` and moves
            to the next seat with every game.
        seed: seed of the first games (row ``i`` takes ``seed + i``), their dice and the opponents'
            draws. None: from the operating system.
        start: False leaves the first games to `reset`, without which there are none.

    Attributes:
        states: ``(n,)`` the games, each at a decision of its learner.
        seats: ``(n,)`` the learner's seat in each.
        watcher: an observer of every decision, or None. It changes no game, but slows compiled
            opponents down, which then return to Python after each decision.

    Raises:
        ValueError: for ``n`` or ``seat`` out of range.
    """

    watcher: Watcher | None = None
    actions: int = ACTIONS
    """Upper bound of the numbers that `step` takes."""

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
        self.rules, self.n, self.opponents = rules, n, opponents
        self._all = np.arange(n)
        self._fixed_seat = seat
        self._random = np.random.default_rng(seed)
        self.states = engine.blank_games(rules, n)
        self.seats = np.zeros(n, np.int64)
        self._generators = new_streams(0, n)
        self._seatings = np.full((n, rules.players), LEARNER)
        if start:
            self.reset(seed)

    def reset(
        self,
        seed: int | np.integer[Any] | npt.NDArray[np.uint64] | None = None,
        rows: Ints | None = None,
        starts: Starts | None = None,
    ) -> None:
        """Start new games.

        Args:
            seed: one number, of which row ``i`` takes ``seed + i``, or ``(m,)`` numbers, one a row.
                A game depends on its seed alone. None: drawn by the generators of these games, or
                from the operating system where all are started.
            rows: ``(m,)`` games to start; None: all.
            starts: a function that makes the games from their seeds; None: new games.

        Raises:
            ValueError: as ``starts``, and for a game that ends before its learner decides. No game
                has changed.
        """
        if starts is None:
            self._start(seed, rows, None)
            return
        saved = self.numbers(), {name: array.copy() for name, array in self.arrays().items()}
        try:
            self._start(seed, rows, starts)
        except Exception:
            self.restore(*saved)
            raise

    def _start(
        self,
        seed: int | np.integer[Any] | npt.NDArray[np.uint64] | None,
        rows: Ints | None,
        starts: Starts | None,
    ) -> None:
        picked = self._all if rows is None else np.asarray(rows, np.int64)
        seeds = self._seeds(seed, rows)
        seats = (seeds % np.uint64(self.rules.players)).astype(np.int64)
        if starts is None:
            games = engine.new_games(self.rules, len(picked), seed=seeds)
        else:
            games, chosen = starts(seeds, seed is not None)
            seats = np.where(chosen < 0, seats, chosen)
        put(self.states, picked, games)
        self._generators[picked] = new_streams(seeds, len(picked))
        self.seats[picked] = seats if self._fixed_seat is None else self._fixed_seat
        self._begin(picked)
        ended = picked[self.states["phase"][picked] == OVER]
        if len(ended):
            row = int(ended[0])
            raise ValueError(
                f"reset: game {row} ends before its learner, seat {self.seats[row]}, decides"
            )

    def _seeds(
        self, seed: int | np.integer[Any] | npt.NDArray[np.uint64] | None, rows: Ints | None
    ) -> npt.NDArray[np.uint64]:
        """Return a seed for each game that starts, see `reset`."""
        if rows is None:
            first = int(seed) if isinstance(seed, int | np.integer) else None
            self._random = np.random.default_rng(first)
            seed = int(self._random.integers(2**62)) if seed is None else seed
        elif seed is None:
            drawn: npt.NDArray[np.uint64] = self.states["generator"][rows]
            return drawn
        if isinstance(seed, int | np.integer):
            return np.uint64(seed) + np.arange(
                self.n if rows is None else len(rows), dtype=np.uint64
            )
        return seed

    def step(
        self,
        actions: npt.NDArray[np.integer[Any]],
        rows: Ints | None = None,
        *,
        forfeits: bool = False,
    ) -> FinishedGames:
        """Carry out the learners' decisions; the others play on to the next ones or to the end.

        Args:
            actions: ``(m,)`` legal actions.
            rows: ``(m,)`` games to step; None: all.
            forfeits: True: an illegal action forfeits the game; False: it raises an error.

        Returns:
            The games that ended. They wait for `restart`.

        Raises:
            IllegalActionError: without ``forfeits``; no game has changed.
            ValueError, TypeError: see `engine.step`.
        """
        played = self._all if rows is None else np.asarray(rows, np.int64)
        self._play_on(self._decide(np.asarray(actions), played, forfeits))
        over = np.sort(played[self.states["phase"][played] == OVER])
        last = pick(self.states, over)
        return FinishedGames(
            over, last, self.seats[over], self._seatings[over], engine.returns(last)
        )

    def restart(self, rows: npt.NDArray[np.int64]) -> None:
        """Start the next game in each row; its dice and draws continue the streams of the last."""
        if len(rows) == 0:
            return
        put(self.states, rows, engine.next_games(pick(self.states, rows)))
        if self._fixed_seat is None:
            self.seats[rows] = (self.seats[rows] + 1) % self.rules.players
        self._begin(rows)

    def masks(self, out: npt.NDArray[np.int8] | None = None) -> npt.NDArray[np.int8]:
        """Return the learners' legal actions: ``(n, actions)`` int8."""
        return engine.legal_masks(self.states, out=out)

    def observations(self, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Write the learners' observations into ``out``, ``(n, length)`` uint8 or float32.

        The view is that of the seat to move, or of the learner's seat when the game is over.
        """
        over = self.states["phase"] == OVER
        viewers = np.where(over, self.seats, self.states["player"])
        return observation.observe(self.states, viewers, dtype=out.dtype, out=out)

    def last_observations(self, ended: FinishedGames, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return the final observations of the learners, from the seats they are paid for."""
        return observation.observe(ended.states, ended.seats, dtype=dtype)

    def infos(self) -> dict[str, npt.NDArray[Any]]:
        """Return infos on each game's decision, ``(n, ...)`` by name; here none."""
        return {}

    # -------------------------------------------------------------------------------- resuming

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return games, seats, seatings and the opponents' streams, for `restore`."""
        return {
            "states": self.states.view(np.uint8).reshape(self.n, -1),
            "seats": self.seats,
            "tables": self._seatings,
            "generators": self._generators,
        }

    def numbers(self) -> dict[str, Any]:
        """Return the generator that seats opponents, as values, for `restore`."""
        return {"random": self._random.bit_generator.state}

    def restore(self, numbers: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue the games from which `arrays` and `numbers` were taken.

        Raises:
            ValueError: when they have another number of games or players.
        """
        self.states.view(np.uint8).reshape(self.n, -1)[:] = arrays["states"]
        self.seats[:], self._seatings[:] = arrays["seats"], arrays["tables"]
        self._generators[:] = arrays["generators"]
        self._random.bit_generator.state = numbers["random"]

    # -------------------------------------------------------------------------------- inside

    def _begin(self, rows: npt.NDArray[np.int64]) -> None:
        """Seat the opponents and play on to the learners' first decisions.

        No game ends before that: every player plays a disc before the Emperor first moves.
        """
        seatings = self.opponents.seat(self.seats[rows], self._random)
        seatings[np.arange(len(rows)), self.seats[rows]] = LEARNER
        self._seatings[rows] = seatings
        if self.watcher is not None:
            self.watcher.begun(rows)
        self._play_on(rows)

    def _decide(
        self, actions: npt.NDArray[np.integer[Any]], rows: npt.NDArray[np.int64], forfeits: bool
    ) -> npt.NDArray[np.int64]:
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
        if self.watcher is not None and before is not None:
            self.watcher.decided(rows[legal], before[legal], actions[legal])
        return rows[legal]

    def _play_on(self, rows: npt.NDArray[np.int64]) -> None:
        """Let the other seats decide until each game is over or waits for its learner."""
        agents = self.opponents.agents
        games = lockstep.Games(self.states, self._seatings, self._generators[:, None])
        if (watcher := self.watcher) is not None:
            before = copy(self.states)
            for step in lockstep.play(games, agents, rows=rows):
                watcher.decided(step.rows, before[step.rows], step.actions)
                before = copy(self.states)
            return
        compiled = [(k, agent) for k, agent in enumerate(agents) if is_compiled(agent)]

        def play_compiled(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            """Let compiled agents play as far as they can, so that others have large batches."""
            decided = True
            while decided:
                decided = False
                for k, agent in compiled:
                    moved = agent.play_on(games.states, games.streams, games.tables, k, rows)
                    decided |= moved > 0 and len(compiled) > 1
            return rows

        def go_on(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            chance.roll(self.states, rows=rows)
            return play_compiled(rows)

        if len(compiled) == len(agents):
            play_compiled(rows)
            return
        for _ in lockstep.play(games, agents, go_on, rows=rows):
            pass
