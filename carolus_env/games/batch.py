"""`GameBatch`: thousands of games in lockstep, all that a learner needs in one call.

`GameBatch` owns its games and the buffers that describe them: legal actions, observations,
rewards and flags. A step plays one decision in every game, replaces ended games by
new ones, and fills the buffers. Nothing is allocated after the start.

    >>> batch = GameBatch(Rules(players=2), 4096, seed=1, observation="uint8")
    >>> for _ in range(100):
    ...     turn = batch.step(batch.sample())

A game depends on its seed alone, not on the number of games or threads.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine import chance, stepping
from carolus_env.engine import observation as observing
from carolus_env.engine.rules import ACTIONS, TERRITORIES, Rules
from carolus_env.engine.state import Ints, put
from carolus_env.engine.streams import new_streams, seed_generators
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
            and JAX read in place (docs/gpu.md). Needs the extra ``gpu``.

    Attributes:
        rules, n, device: the arguments.
        states: ``(n,)`` of dtype `STATE`, the games themselves. After changing them, `refresh`.
        masks, observations, rewards, terminated, truncated: the buffers, see `Turn`. On a GPU they,
            and the states, are `device.DeviceArray`.

    Raises:
        ValueError: for an impossible option, naming it and what is allowed.
        ImportError: for ``"cuda"`` without the extra ``gpu``.
        RuntimeError: for ``"cuda"`` without a GPU.
    """

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
        n = whole_number("n, the number of games,", n, 1, MOST_GAMES)
        one_of("observation", observation, (None, "uint8", "float32"))
        one_of("device", device, ("cpu", "cuda"))
        self.rules, self.n, self.device = rules, n, device
        self._games: Any
        if device == "cuda":
            from carolus_env.engine.device import check_gpu

            check_gpu()
            from carolus_env.games.cuda import CudaGames

            self._games = CudaGames(rules, n, observation)
        else:
            self._games = CpuGames(rules, n, observation, check_threads(threads))
        self._link()
        self.reset(seed)

    def __repr__(self) -> str:
        return f"<GameBatch of {self.n:,} games of {self.rules.players} players>"

    def _link(self) -> None:
        games = self._games
        self.states, self.masks, self.observations = games.states, games.masks, games.observations
        self.rewards, self.terminated, self.truncated = (
            games.rewards,
            games.terminated,
            games.truncated,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("rules", "n", "device", "_games")}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        vars(self).update(attributes)
        self._link()

    def reset(self, seed: int | Ints | None = None) -> Turn:
        """Restart all games; ``seed`` as above."""
        if seed is None:
            seed = np.random.SeedSequence().generate_state(self.n, np.uint64)
        self._games.reset(seed_generators(seed, self.n), new_streams(seed, self.n))
        return self.turn()

    def turn(self, *, copy: bool = False) -> Turn:
        """Return the buffers, or copies of them."""
        buffers = (self.observations, self.masks, self.rewards, self.terminated, self.truncated)
        if copy:
            return Turn(*(None if part is None else part.copy() for part in buffers))
        return Turn(*buffers)

    def refresh(self) -> None:
        """Update masks and observations after ``states`` were changed by hand.

        Dice that are due are rolled, and a new game takes the place of one that is over: each game
        waits for a decision then.
        """
        self._games.refresh()

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
        self._games.play(actions, check)
        return self.turn(copy=copy)

    def check(self) -> None:
        """Wait for the GPU.

        Raises:
            IllegalActionError: for an illegal action of a step since the last check.
        """
        self._games.check()

    def sample(self) -> Any:
        """Draw a random legal action for each game, all equally likely, from the batch's streams.

        Returns:
            ``(n,)`` int64, a buffer that the next call overwrites.
        """
        return self._games.sample()

    def rollout(self, decisions: int) -> Rollout:
        """Play ``decisions`` random legal decisions in every game, without leaving the kernel.

        Masks and observations are written at every decision, as by `step`. Games that end are
        counted; rewards and flags are cleared.
        """
        decisions = whole_number("decisions", decisions, 0)
        return Rollout(decisions * self.n, *self._games.rollout(decisions))

    def clone(self) -> GameBatch:
        """Return an independent copy, with the same future dice and samples."""
        return copy.deepcopy(self)


class CpuGames:
    """The games of a `GameBatch` in main memory, and the buffers that describe them.

    `cuda.CudaGames` has the same methods.
    """

    def __init__(self, rules: Rules, n: int, observation: str | None, threads: int) -> None:
        self.rules, self.n, self.threads = rules, n, threads
        self.states = engine.blank_games(rules, n)
        self.masks = np.zeros((n, ACTIONS), np.int8)
        self.rewards = np.zeros((n, rules.players), np.float32)
        self.terminated = np.zeros(n, np.bool_)
        self.truncated = np.zeros(n, np.bool_)
        self.observations: npt.NDArray[Any] | None = None
        self._scales: npt.NDArray[np.float32] | None = None
        self._whole: npt.NDArray[np.uint8] | None = None
        if observation is not None:
            length = observing.length(rules.players)
            self.observations = np.zeros((n, length), observation)
            if observation == "float32":  # first as whole numbers, in a row for each worker
                self._scales = observing.scales(rules.players)
                self._whole = np.zeros((threads, 1, length), np.uint8)
        self._actions = np.zeros(n, np.int64)
        self._legal_rows = np.zeros(n, np.int64)  # the games' legal sets
        self.generators = np.zeros(n, np.uint64)
        self._blank = engine.blank_games(rules, 1)
        self._territories = np.zeros((threads, 1, TERRITORIES), np.int64)
        self._totals = np.zeros((threads, 1, rules.players))
        self._share_out()

    def _share_out(self) -> None:
        """Give each worker its rows of every buffer, and separate scratch.

        A kernel that loops over all rows of its arrays needs no check for negative indices; with
        a first and a last row it would, and be a fifth slower.
        """
        self._buffers = [
            stepping.Buffers(
                rows,
                self.states[rows],
                self.generators[rows],
                self._actions[rows],
                stepping.ResetSource(self._blank, self._territories[worker]),
                stepping.Outcomes(self.rewards[rows], self.terminated[rows], self.truncated[rows]),
                self._totals[worker],
                self._legal_rows[rows],
                self._views(rows, worker),
            )
            for worker, rows in enumerate(runs(self.n, self.threads))
        ]

    def _views(self, rows: slice, worker: int) -> stepping.Views:
        masks = self.masks[rows]
        if self.observations is None:
            return stepping.Views(masks, None, None, None)
        if self._whole is None:
            return stepping.Views(masks, self.observations[rows], None, None)
        return stepping.Views(masks, self._whole[worker], self._scales, self.observations[rows])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_buffers"}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        vars(self).update(attributes)
        self._share_out()  # new views: copied ones would not be of the copy

    def __deepcopy__(self, memo: dict[int, Any]) -> CpuGames:
        memo[id(self.states)] = engine.copy(self.states)  # otherwise copied field by field
        copied = object.__new__(type(self))
        copied.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return copied

    def reset(self, generators: npt.NDArray[np.uint64], streams: npt.NDArray[np.uint64]) -> None:
        """Restart all games by their generators, and the streams of `sample`."""
        games = engine.blank_games(self.rules, self.n)
        games["generator"] = generators
        self.states[:] = engine.next_games(games)
        self.generators[:] = streams
        self.clear()
        self._update()

    def clear(self) -> None:
        """Clear rewards and flags."""
        self.rewards[:] = 0
        self.terminated[:] = self.truncated[:] = False

    def refresh(self) -> None:
        """See `GameBatch.refresh`."""
        over = np.flatnonzero(engine.is_over(self.states))
        put(self.states, over, engine.next_games(engine.pick(self.states, over)))
        chance.roll(self.states)
        self._update()

    def _update(self) -> None:
        """Update all views."""
        together(
            lambda own: stepping.refresh_views(own.states, own.legal_rows, *own.views),
            self._buffers,
        )

    def play(self, actions: npt.ArrayLike, check: bool) -> None:
        """See `GameBatch.step`; always checked."""
        chosen = engine.whole_numbers(actions, "actions", self.n)
        wrong = together(
            lambda own: stepping.first_illegal(own.states, chosen[own.rows]), self._buffers
        )
        for own, row in zip(self._buffers, wrong, strict=True):
            if row >= 0:
                game = own.rows.start + row
                raise engine.refusal(self.states, game, int(chosen[game]))
        together(
            lambda own: stepping.play_batch(
                own.states, chosen[own.rows], *own.fresh, *own.outcomes, own.legal_rows, *own.views
            ),
            self._buffers,
        )

    def check(self) -> None:
        """Do nothing: `play` checks."""

    def sample(self) -> npt.NDArray[np.int64]:
        """See `GameBatch.sample`."""
        together(
            lambda own: stepping.sample(own.legal_rows, own.generators, own.actions), self._buffers
        )
        return self._actions

    def rollout(self, decisions: int) -> tuple[int, npt.NDArray[np.float64]]:
        """See `GameBatch.rollout`; returns the games that ended, and the sums of their payoffs."""
        self._totals[:] = 0
        ended = together(
            lambda own: stepping.rollout(
                own.states,
                own.generators,
                decisions,
                *own.fresh,
                own.totals,
                own.legal_rows,
                *own.views,
            ),
            self._buffers,
        )
        self.clear()
        return sum(ended), self._totals.sum(axis=(0, 1))
