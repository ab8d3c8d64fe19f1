"""Workers that play and learn side by side, and put together what they have learnt.

In a round each worker begins with the common weights and learns from games of its own. Then each
weight moves by the mean of what the workers have come to, over as many workers as learnt something
about it: few know a rare row of a table, which keeps all that they have learnt, and all know a
bias, where the sum would overshoot. This is done in the workers' order, so what is learnt depends
on the seed and on the number of workers, not on the cores that they find, or whether they are
threads of this process or actors elsewhere. One worker alone learns game by game.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.streams import branches, new_streams
from carolus_env.learners.value.config import ValueConfig
from carolus_env.learners.value.learning import Worker, learn, new_worker
from carolus_env.networks.forward import Weights
from carolus_env.networks.network import shapes
from carolus_env.planning.evaluation import all_weights
from carolus_env.planning.plans import WIDTHS
from carolus_env.system import workers
from carolus_env.system.processes import Workers

Floats = npt.NDArray[np.float32]
Learnt = tuple[Weights, Weights, npt.NDArray[np.float64], float]
"""A worker's weights and squares, what was told, and CPU seconds."""


class Crew:
    """Workers, and what they have learnt together.

    Args:
        config: of the run.
    """

    weights: Weights
    """The network's."""
    squares: Weights
    """The sum of the squares of each weight's gradients."""
    told: npt.NDArray[np.float64]
    """``(3,)`` float64: the sum over all games of what `learn` tells."""
    cpu_seconds: float
    """Of learning, of all workers."""
    actors: Workers | None = None
    """Who learns in place of threads, where not None; begun with `Actor` as their job."""
    waited: float = 0.0
    """Seconds spent on waiting for actors."""

    def __init__(self, config: ValueConfig) -> None:
        self._config, self._rules = config, config.rules()
        size = config.size
        self.weights = Weights.of(config.first_weights())
        firsts = {name: np.full(shape, config.first_square) for name, shape in shapes(size).items()}
        self.squares = Weights.of(firsts)
        self.told = np.zeros(3)
        self.cpu_seconds = 0.0
        self._workers = [self._worker() for _ in range(config.workers)]

    def _worker(self) -> Worker:
        """A worker with memory of its own."""
        config = self._config
        return new_worker(
            config.players,
            _copied(self.weights),
            _copied(self.squares),
            WIDTHS.index(config.plans),
            config.candidates,
            all_weights()[config.players].copy(),
        )

    def warm_up(self) -> None:
        """Compile what a round needs. Nothing is learnt: a round begins with the common weights."""
        self._learn(self._workers[0], np.arange(1), 0.0)

    def learn(self, first: int, count: int, rate: float) -> None:
        """One round.

        Args:
            first: number of its first game; a game's dice and exploration belong to its number.
            count: of its games, shared out among the workers.
            rate: of learning.
        """
        shares = workers.runs(count, len(self._workers))
        busy = self._workers[: len(shares)]
        games = np.arange(first, first + count)

        def task(place: int) -> Learnt:
            return self.learnt(busy[place], self.weights, self.squares, games[shares[place]], rate)

        if self.actors is None:
            found = workers.together(task, range(len(shares)))
        else:
            begun = time.monotonic()
            common = self.actors.share((self.weights, self.squares))
            found = self.actors.all((common, games[share], rate) for share in shares)
            self.waited += time.monotonic() - begun
        for _, _, told, seconds in found:
            self.told += told
            self.cpu_seconds += seconds
        self._put_together([one[0] for one in found], [one[1] for one in found])

    def learnt(
        self,
        worker: Worker,
        weights: Weights,
        squares: Weights,
        games: npt.NDArray[np.int64],
        rate: float,
    ) -> Learnt:
        """Let a worker learn from games by number, beginning with these weights and squares."""
        own = worker.chooser.net.weights, worker.squares
        for mine, common in zip(own, (weights, squares), strict=True):
            for array, begin in zip(mine, common, strict=True):
                array[...] = begin
        return *own, *self._learn(worker, games, rate)

    def _put_together(self, of_weights: Sequence[Weights], of_squares: Sequence[Weights]) -> None:
        """Take over what the workers of a round have learnt."""
        for name in Weights._fields:
            common: Floats = getattr(self.weights, name)
            squares: Floats = getattr(self.squares, name)
            learnt = [getattr(own, name) for own in of_weights]
            grown = [getattr(own, name) for own in of_squares]
            if len(learnt) == 1:  # to the last bit what it has learnt
                common[...], squares[...] = learnt[0], grown[0]
            else:
                mean_step(common, squares, learnt, grown)

    def _learn(
        self, worker: Worker, games: npt.NDArray[np.int64], rate: float
    ) -> tuple[npt.NDArray[np.float64], float]:
        """Play games by number and learn from each; returns what was told, and CPU seconds."""
        config, told = self._config, np.zeros(3)
        begun = time.thread_time()
        seeds = branches(np.uint64(config.seed), games)
        learn(
            engine.new_games(self._rules, len(games), seed=seeds),
            new_streams(seeds, len(games)),
            worker,
            config.exploration,
            config.trace,
            np.float32(rate),
            told,
        )
        return told, time.thread_time() - begun


@dataclass(frozen=True)
class Actor:
    """The job of actors: each learns from the games of a task as one worker of a crew."""

    config: ValueConfig

    def __call__(self) -> Callable[..., Learnt]:
        crew = Crew(replace(self.config, workers=1, start=None))
        [worker] = crew._workers

        def learn(
            common: tuple[Weights, Weights], games: npt.NDArray[np.int64], rate: float
        ) -> Learnt:
            return crew.learnt(worker, *common, games, rate)

        return learn


def _copied(arrays: Weights) -> Weights:
    return Weights.of(arrays._asdict())


def mean_step(
    weights: Floats, squares: Floats, learnt: Sequence[Floats], grown: Sequence[Floats]
) -> None:
    """Move common weights by the workers' mean difference, and add their squares.

    The mean is over the effective number of workers that learnt about a weight: with ``q`` the
    growth of a worker's squares, ``sum(q) ** 2 / sum(q ** 2)``. That is 1 where one alone did, and
    all of them where all did alike.

    Args:
        weights: changed in place.
        squares: the sum of the squares of each weight's gradients, changed in place.
        learnt: each worker's weights.
        grown: each worker's squares.
    """
    moved, total, of_squares = (np.zeros_like(weights) for _ in range(3))
    for own, own_squares in zip(learnt, grown, strict=True):
        growth = own_squares - squares
        moved += own - weights
        total += growth
        of_squares += growth * growth
    tiny = np.finfo(np.float32).tiny
    weights += moved / np.maximum(total * total / np.maximum(of_squares, tiny), np.float32(1))
    squares += total
