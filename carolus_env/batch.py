"""Thousands of games in lockstep, everything that a learner needs in one call.

`GameBatch` owns its games and the buffers that describe them: legal actions, observations,
rewards and flags. A step plays one decision in every game, starts the games that ended anew and
fills the buffers. Nothing is allocated after the start.

    >>> batch = GameBatch(Rules(players=2), 4096, seed=1, observation="uint8")
    >>> for _ in range(100):
    ...     turn = batch.step(batch.sample())

Games depend on their seeds alone: neither the number of games nor of threads changes a result.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env import engine
from carolus_env import observation as seen
from carolus_env.compiler import entry, kernel, rare
from carolus_env.kernels import generator, legal, turns
from carolus_env.rules import ACTIONS, BY_MAX_ROUNDS, OVER, TERRITORIES, Rules
from carolus_env.state import Ints
from carolus_env.streams import new_streams
from carolus_env.workers import check_threads, split

MOST_GAMES = 1_000_000


class Turn(NamedTuple):
    """What `GameBatch.step` tells: the buffers of the batch, which its next call overwrites.

    Attributes:
        observations: ``(n, length)`` uint8 or float32, each as the seat to move sees its game;
            None where the batch was made without.
        masks: ``(n, 95)`` int8, legal actions of the seat to move.
        rewards: ``(n, players)`` float32: zeros, but the payoffs of a game that has just ended.
        terminated: ``(n,)`` bool, games that have just ended by the rules. Their rows show the
            next game already.
        truncated: ``(n,)`` bool, games that have just reached ``max_rounds``; likewise.
    """

    observations: npt.NDArray[Any] | None
    masks: npt.NDArray[np.int8]
    rewards: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]


class Rollout(NamedTuple):
    """What `GameBatch.rollout` counted.

    Attributes:
        decisions: decisions made, of all games together.
        games: games that ended.
        returns: ``(players,)`` float64, sum of the payoffs of each seat over those games.
    """

    decisions: int
    games: int
    returns: npt.NDArray[np.float64]


class GameBatch:
    """``n`` games, each waiting for a decision, and the buffers that describe them.

    Args:
        rules: number of players and options, the same for all games.
        n: number of games, 1 to 1,000,000.
        seed: game ``i`` takes ``seed + i`` (or ``seed[i]``), for its dice and for `sample`. None:
            from the operating system.
        observation: ``"uint8"``, ``"float32"``, or None to write no observations.
        threads: how many share the work. Games share nothing, so results stay the same.

    Attributes:
        rules, n, threads: as given.
        states: ``(n,)`` of dtype `STATE`, the games themselves. After changing them, `refresh`.
        masks, observations, rewards, terminated, truncated: the buffers, see `Turn`.

    Raises:
        ValueError: for an impossible option, naming it and what is allowed.
    """

    def __init__(
        self,
        rules: Rules,
        n: int,
        *,
        seed: int | Ints | None = None,
        observation: Literal["uint8", "float32"] | None = None,
        threads: int = 1,
    ) -> None:
        if not 1 <= n <= MOST_GAMES:
            raise ValueError(f"n, the number of games, must be from 1 to {MOST_GAMES:,}, got {n}")
        if observation not in (None, "uint8", "float32"):
            raise ValueError(f"observation must be 'uint8', 'float32' or None, got {observation!r}")
        self.rules, self.n, self.threads = rules, n, check_threads(threads)
        self.states = engine.new_games(rules, n, seed=0)
        self.masks = np.zeros((n, ACTIONS), np.int8)
        self.rewards = np.zeros((n, rules.players), np.float32)
        self.terminated = np.zeros(n, np.bool_)
        self.truncated = np.zeros(n, np.bool_)
        self.observations: npt.NDArray[Any] | None = None
        self._scales: npt.NDArray[np.float32] | None = None
        self._rows: npt.NDArray[np.uint8] | None = None
        if observation is not None:
            length = seen.length(rules.players)
            self.observations = np.zeros((n, length), observation)
            if observation == "float32":  # written as whole numbers first, a row for each worker
                self._scales = seen.scales(rules.players)
                self._rows = np.zeros((threads, length), np.uint8)
        self._actions = np.zeros(n, np.int64)
        self._numbers = np.zeros(n, np.int64)  # of the legal sets
        self._blank = engine.blank_games(rules, 1)
        self._room = np.zeros((threads, TERRITORIES), np.int64)
        self._totals = np.zeros((threads, rules.players))
        self.reset(seed)

    def reset(self, seed: int | Ints | None = None) -> Turn:
        """Start all games anew; ``seed`` as above."""
        if seed is None:
            seed = np.random.SeedSequence().generate_state(self.n, np.uint64)
        self.states[:] = engine.new_games(self.rules, self.n, seed=seed)
        self._generators = new_streams(seed, self.n)
        self.rewards[:] = 0
        self.terminated[:] = self.truncated[:] = False
        self.refresh()
        return self.turn()

    def turn(self, *, copy: bool = False) -> Turn:
        """The buffers as they stand, or copies of them."""
        buffers = (self.observations, self.masks, self.rewards, self.terminated, self.truncated)
        if copy:
            return Turn(*(None if part is None else part.copy() for part in buffers))  # type: ignore[arg-type]
        return Turn(*buffers)

    def refresh(self) -> None:
        """Write masks and observations anew, after ``states`` were changed by hand."""
        split(
            lambda first, last, worker: _show(
                self.states,
                first,
                last,
                worker,
                self._numbers,
                self.masks,
                self.observations,
                self._scales,
                self._rows,
            ),
            self.n,
            self.threads,
        )

    def step(self, actions: npt.ArrayLike, *, copy: bool = False) -> Turn:
        """Play one decision in every game; games that end start anew at once.

        Args:
            actions: ``(n,)`` action numbers, of any integer dtype.
            copy: True returns copies instead of the buffers themselves.

        Raises:
            IllegalActionError: when a game does not allow its action. No game has changed.
            ValueError, TypeError: when ``actions`` are not ``n`` integers.
        """
        chosen = engine.whole_numbers(actions, "actions", self.n)
        wrong = max(
            split(
                lambda first, last, worker: _first_illegal(self.states, chosen, first, last),
                self.n,
                self.threads,
            )
        )
        if wrong >= 0:
            wrong = _first_illegal(self.states, chosen, 0, self.n)
            raise engine.refusal(self.states, wrong, int(chosen[wrong]))
        split(
            lambda first, last, worker: _play(
                self.states,
                chosen,
                first,
                last,
                worker,
                self._blank,
                self._room,
                self.rewards,
                self.terminated,
                self.truncated,
                self._numbers,
                self.masks,
                self.observations,
                self._scales,
                self._rows,
            ),
            self.n,
            self.threads,
        )
        return self.turn(copy=copy)

    def sample(self, weights: npt.NDArray[np.floating[Any]] | None = None) -> npt.NDArray[np.int64]:
        """A random legal action for each game, from the batch's own streams.

        Args:
            weights: ``(n, 95)`` float32 or float64, at least 0: a legal action is as likely as
                its weight says, what is illegal has none. None: all legal actions alike.

        Returns:
            ``(n,)`` int64, a buffer that the next call overwrites.

        Raises:
            ValueError: for weights of another shape or dtype, or when the legal actions of a game
                have no weight, or one that is negative, infinite or no number.
        """
        if weights is None:
            split(
                lambda first, last, worker: _sample(
                    self._numbers, self._generators, first, last, self._actions
                ),
                self.n,
                self.threads,
            )
            return self._actions
        if weights.shape != self.masks.shape or weights.dtype not in (np.float32, np.float64):
            raise ValueError(
                f"weights must be float32 or float64 of shape {self.masks.shape}, "
                f"got shape {weights.shape} and dtype {weights.dtype}"
            )
        weights = np.ascontiguousarray(weights)
        split(
            lambda first, last, worker: _sample_weighted(
                self._numbers, self._generators, first, last, weights, self._actions
            ),
            self.n,
            self.threads,
        )
        if (self._actions < 0).any():
            game = int(np.argmax(self._actions < 0))
            given = weights[game][self.masks[game] == 1].tolist()
            raise ValueError(
                f"game {game}: the legal actions must have weights >= 0, some of them more, "
                f"got {given}"
            )
        return self._actions

    def rollout(self, decisions: int) -> Rollout:
        """Play ``decisions`` random legal decisions in every game, without leaving the kernel.

        Masks and observations are written at every decision, as `step` does. What ended meanwhile
        is counted; rewards and flags are cleared.
        """
        if decisions < 0:
            raise ValueError(f"decisions must not be negative, got {decisions}")
        self._totals[:] = 0
        ended = split(
            lambda first, last, worker: _rollout(
                self.states,
                self._generators,
                first,
                last,
                worker,
                decisions,
                self._blank,
                self._room,
                self._totals,
                self._numbers,
                self.masks,
                self.observations,
                self._scales,
                self._rows,
            ),
            self.n,
            self.threads,
        )
        self.rewards[:] = 0
        self.terminated[:] = self.truncated[:] = False
        return Rollout(decisions * self.n, sum(ended), self._totals.sum(axis=0))

    def clone(self) -> GameBatch:
        """An independent copy, dice and samples to come included."""
        return copy.deepcopy(self)


# ------------------------------------------------------------------------------------ kernels


@kernel
def show(s, g, worker, masks, observations, scales, rows):
    """Write what may be played and what is seen; returns the number of the legal set."""
    number = legal.legal_set(s)
    if masks is not None:
        legal.write_mask(number, masks, g)
    if observations is not None:
        if scales is None:
            seen.write_observation(s, int64(s["player"]), observations, g)
        else:
            seen.write_observation(s, int64(s["player"]), rows, worker)
            seen.scale_observation(rows, worker, scales, observations, g)
    return number


@rare
def start_anew(states, g, worker, blank, room):
    """The next game with the same rules, from the generator on."""
    bits = states[g]["generator"]
    states[g] = blank[0]
    states[g]["generator"] = bits
    turns.set_up(states[g], room, worker)


@entry
def _show(states, first, last, worker, numbers, masks, observations, scales, rows):
    for g in range(first, last):
        numbers[g] = show(states[g], g, worker, masks, observations, scales, rows)


@entry
def _first_illegal(states, actions, first, last):
    """The first game that does not allow its action, or -1."""
    for g in range(first, last):
        if not legal.is_legal(states[g], actions[g]):
            return g
    return -1


@entry
def _play(
    states,
    actions,
    first,
    last,
    worker,
    blank,
    room,
    rewards,
    terminated,
    truncated,
    numbers,
    masks,
    observations,
    scales,
    rows,
):
    for g in range(first, last):
        s = states[g]
        turns.play(s, actions[g])
        turns.roll_on(s)
        for seat in range(rewards.shape[1]):
            rewards[g, seat] = 0.0
        truncated[g] = s["reason"] == BY_MAX_ROUNDS
        terminated[g] = (s["phase"] == OVER) & (s["reason"] != BY_MAX_ROUNDS)
        if s["phase"] == OVER:
            turns.write_returns(s, rewards, g)
            start_anew(states, g, worker, blank, room)
        numbers[g] = show(s, g, worker, masks, observations, scales, rows)


@entry
def _sample(numbers, generators, first, last, actions):
    for g in range(first, last):
        generators[g] = generator.step(generators[g])
        actions[g] = legal.random_action(numbers[g], generator.mix(generators[g]))


@entry
def _sample_weighted(numbers, generators, first, last, weights, actions):
    for g in range(first, last):
        generators[g] = generator.step(generators[g])
        chance = generator.fraction(generator.mix(generators[g]))
        actions[g] = legal.weighted_action(numbers[g], weights, g, chance)


@entry
def _rollout(
    states,
    generators,
    first,
    last,
    worker,
    decisions,
    blank,
    room,
    totals,
    numbers,
    masks,
    observations,
    scales,
    rows,
):
    ended = 0
    for _ in range(decisions):
        for g in range(first, last):
            s = states[g]
            number = show(s, g, worker, masks, observations, scales, rows)
            generators[g] = generator.step(generators[g])
            turns.play(s, legal.random_action(number, generator.mix(generators[g])))
            turns.roll_on(s)
            if s["phase"] == OVER:
                ended += 1
                turns.add_returns(s, totals, worker)
                start_anew(states, g, worker, blank, room)
    for g in range(first, last):
        numbers[g] = show(states[g], g, worker, masks, observations, scales, rows)
    return ended
