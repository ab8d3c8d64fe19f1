"""`GameBatch`: thousands of games in lockstep, all that a learner needs in one call.

It owns its games and the buffers that describe them: legal actions, observations, rewards and
flags. A step plays one decision in every game, replaces ended games by new ones, and fills the
buffers. A game depends on its seed alone, not on the number of games or threads.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine import observation as observing
from carolus_env.engine import stepping
from carolus_env.engine.chance import new_streams, seed_generators
from carolus_env.engine.rules import ACTIONS, OVER, Rules
from carolus_env.engine.state import Ints
from carolus_env.system.arrays import F64, I64
from carolus_env.system.machine import check_threads, runs, together
from carolus_env.system.options import one_of, whole_number

MOST_GAMES = 10_000_000


class Turn(NamedTuple):
    """Result of `GameBatch.step`: the buffers of the batch, which the next call overwrites.

    Attributes:
        observations: ``(n, length)`` uint8 or float32, each from the seat to move;
            None where the batch has no observations.
        masks: ``(n, 95)`` int8, legal actions of the seat to move.
        rewards: ``(n, players)`` float32: 0, or the payoffs of a game that has just ended.
        terminated: ``(n,)`` bool, games that have just ended by the rules. Their rows already
            show the next game.
        truncated: ``(n,)`` bool, games that have just reached ``max_rounds``; likewise.
    """

    observations: Any
    masks: Any
    rewards: Any
    terminated: Any
    truncated: Any

    def __repr__(self) -> str:
        terminated, truncated = np.asarray(self.terminated), np.asarray(self.truncated)
        ended = f"{terminated.sum():,} terminated, {truncated.sum():,} truncated"
        return f"<Turn of {len(self.masks):,} games: {ended}>"


class Rollout(NamedTuple):
    """The counts of `GameBatch.rollout`.

    Attributes:
        decisions: decisions in all games.
        games: games that ended.
        returns: ``(players,)`` float64, sum of the payoffs of each seat over those games.
    """

    decisions: int
    games: int
    returns: npt.NDArray[np.float64]


class Worker(NamedTuple):
    """A thread's games, and memory for it alone."""

    rows: I64
    totals: F64  # (1, players) sums of the payoffs of games that ended
    observed: tuple[Any, Any, Any]  # `Views.raw`, `scales` and `scaled`


class GameBatch:
    """``n`` games, each waiting for a decision, and the buffers that describe them.

    Args:
        rules: number of players and options, the same for all games.
        n: number of games, 1 to 10,000,000.
        seed: game ``i`` takes ``seed + i`` (or ``seed[i]``), for its dice and for `sample`. None:
            from the operating system.
        observation: ``"uint8"``, ``"float32"``, or None for no observations.
        threads: threads that share the work; the results are the same.
        device: ``"cpu"``, or ``"cuda"`` for an NVIDIA GPU: the same games, in arrays that PyTorch
            and JAX read in place (docs/gpu.md). Needs the extra ``gpu`` (else an ImportError), and
            a GPU (else a RuntimeError).

    Attributes:
        rules, n, device: the arguments.
        states: ``(n,)`` of dtype `STATE`, the games themselves. After changing them, `refresh`.
        masks, observations, rewards, terminated, truncated: the buffers, see `Turn`. On a GPU they,
            and the states, are `engine.cuda.DeviceArray`.
    """

    def __new__(cls, *_: Any, device: str = "cpu", **__: Any) -> GameBatch:
        """Make the batch of that device."""
        if one_of("device", device, ("cpu", "cuda")) == "cuda":
            from carolus_env.engine.cuda import check_gpu

            check_gpu()
            from carolus_env.games.cuda import CudaBatch as cls  # noqa: N813
        return object.__new__(cls)

    def __init__(
        self,
        rules: Rules,
        n: int,
        *,
        seed: int | Ints | None = None,
        observation: Literal["uint8", "float32"] | None = None,
        threads: int = 1,
        device: Literal["cpu", "cuda"] = "cpu",
    ) -> None:
        self.rules, self.device = rules, device
        self.n = whole_number("n, the number of games,", n, 1, MOST_GAMES)
        self._observation = one_of("observation", observation, (None, "uint8", "float32"))
        self._allocate(check_threads(threads))
        self.reset(seed)

    def __repr__(self) -> str:
        return f"<GameBatch of {self.n:,} games of {self.rules.players} players>"

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self) and not name.startswith("_"):  # kernels would write past its end
            raise AttributeError(f"{name} cannot be replaced: write into it, as {name}[:] = ...")
        super().__setattr__(name, value)

    def _allocate(self, threads: int) -> None:
        rules, n = self.rules, self.n
        self.states: Any = engine.blank_games(rules, n)
        self.masks: Any = np.zeros((n, ACTIONS), np.int8)
        self.rewards: Any = np.zeros((n, rules.players), np.float32)
        self.terminated: Any = np.zeros(n, np.bool_)
        self.truncated: Any = np.zeros(n, np.bool_)
        length, kind = observing.length(rules.players), self._observation
        self.observations: Any = None if kind is None else np.zeros((n, length), kind)
        self.generators: Any = np.zeros(n, np.uint64)  # of `sample`
        self._actions: Any = np.zeros(n, np.int64)
        self._legal_rows = np.zeros(n, np.int64)  # the games' legal sets
        self._blank = engine.blank_games(rules, 1)
        scales = observing.scales(rules.players)
        self._workers = []
        for run in runs(n, threads):
            observed: Any = (self.observations, None, None)
            if kind == "float32":  # first as whole numbers, in a worker's own row
                observed = (np.zeros((1, length), np.uint8), scales, self.observations)
            totals = np.zeros((1, rules.players))
            self._workers.append(Worker(np.arange(n)[run], totals, observed))

    def reset(self, seed: int | Ints | None = None) -> Turn:
        """Restart all games; ``seed`` as above."""
        if seed is None:
            seed = np.random.SeedSequence().generate_state(self.n, np.uint64)
        self._restart(seed_generators(seed, self.n), new_streams(seed, self.n))
        return self.turn()

    def _restart(self, generators: npt.NDArray[np.uint64], streams: npt.NDArray[np.uint64]) -> None:
        self.states["phase"] = OVER
        self.states["generator"] = generators
        self.generators[:] = streams
        self._clear()
        self._play(np.full(self.n, -1))

    def _clear(self) -> None:
        self.rewards[:] = 0
        self.terminated[:] = self.truncated[:] = False

    def turn(self, *, copy: bool = False) -> Turn:
        """Return the buffers, or copies of them."""
        buffers = (self.observations, self.masks, self.rewards, self.terminated, self.truncated)
        if copy:
            return Turn(*(None if part is None else part.copy() for part in buffers))
        return Turn(*buffers)

    def refresh(self) -> None:
        """Update masks and observations after ``states`` were changed by hand.

        Dice that are due are rolled, and a new game takes the place of one that is over: each game
        waits for a decision then. Games of another number of players are a ValueError.
        """
        self._check_players()
        self._play(np.full(self.n, -1))

    def step(self, actions: Any, *, copy: bool = False, check: bool = False) -> Turn:
        """Play one decision in every game; a game that ends is replaced by a new one at once.

        Args:
            actions: ``(n,)`` action numbers, of any integer dtype; for a batch on a GPU they may be
                a tensor there.
            copy: True returns copies instead of the buffers themselves.
            check: on a GPU True refuses an illegal action at once, which waits for the GPU. By
                default its game stays as it is, later steps do nothing, and the error comes from
                the next call that waits anyway: `check`, `rollout`, or ``copy_to_host`` of an array
                of the batch. Without a GPU actions are always checked.

        Raises:
            IllegalActionError: for an illegal action. Then no game has changed.
            ValueError, TypeError: when ``actions`` are not ``n`` integers.
        """
        chosen = engine.whole_numbers(actions, "actions", self.n)
        illegal = together(
            lambda own: stepping.find_illegal(self.states, own.rows, chosen, self.rules.players),
            self._workers,
        )
        for game in illegal:
            if game >= 0:
                self._check_players()
                raise engine.refusal(self.states, game, int(chosen[game]))
        self._play(chosen)
        return self.turn(copy=copy)

    def _check_players(self) -> None:
        """Refuse ``states`` that the buffers are too small for."""
        if (np.asarray(self.states)["players"] != self.rules.players).any():
            raise ValueError(f"states must be games of {self.rules.players} players, as the batch")

    def _play(self, actions: npt.NDArray[np.int64]) -> None:
        """Play legal actions, -1 for none, and update all buffers."""
        results = self.rewards, self.terminated, self.truncated, self._legal_rows, self.masks
        together(
            lambda own: stepping.play_batch(
                self.states, own.rows, actions, self._blank, *results, *own.observed
            ),
            self._workers,
        )

    def check(self) -> None:
        """Wait for the GPU; an illegal action since the last check is an `IllegalActionError`."""

    def sample(self) -> Any:
        """Draw a random legal action for each game, all equally likely, from the batch's streams.

        Returns:
            ``(n,)`` int64, a buffer that the next call overwrites.
        """
        together(
            lambda own: stepping.sample(own.rows, self._legal_rows, self.generators, self._actions),
            self._workers,
        )
        return self._actions

    def rollout(self, decisions: int) -> Rollout:
        """Play ``decisions`` random legal decisions in every game, without leaving the kernel.

        Masks and observations are written at every decision, as by `step`. Games that end are
        counted; rewards and flags are cleared.
        """
        decisions = whole_number("decisions", decisions, 0)
        self._check_players()
        for own in self._workers:
            own.totals[:] = 0
        ended = together(
            lambda own: stepping.rollout(
                *(self.states, own.rows, self.generators, decisions, self._blank, own.totals),
                *(self._legal_rows, self.masks, *own.observed),
            ),
            self._workers,
        )
        self._clear()
        returns = np.sum([own.totals[0] for own in self._workers], axis=0)
        return Rollout(decisions * self.n, sum(ended), returns)

    def clone(self) -> GameBatch:
        """Return an independent copy, with the same future dice and samples."""
        return copy.deepcopy(self)

    def __setstate__(self, parts: dict[str, Any]) -> None:
        vars(self).update(copy.deepcopy(parts))  # joblib and Ray hand over arrays read-only

    def __deepcopy__(self, memo: dict[int, Any]) -> GameBatch:
        memo[id(self.states)] = engine.copy(self.states)  # otherwise copied field by field
        copied = object.__new__(type(self))
        vars(copied).update(copy.deepcopy(vars(self), memo))
        return copied
