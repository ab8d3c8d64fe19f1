"""Learning by self-play: workers side by side, their options, and how their results combine.

In a round each worker begins with the common weights, plays games of its own and learns from them;
`combine` then moves the common weights. This is done in the workers' order, so results depend on
the seed and on the number of workers, not on the number of cores.
"""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent
from carolus_env.bots.network import Selector, find
from carolus_env.engine.rules import DISCS
from carolus_env.learners import run
from carolus_env.learners.run import Arrays, Learner, RunConfig
from carolus_env.networks import network
from carolus_env.networks.network import NetworkModel, Size, Weights
from carolus_env.planning.plans import MOST_PLANS, WIDTHS
from carolus_env.system import machine
from carolus_env.system.arrays import F32
from carolus_env.system.cancellation import Stop
from carolus_env.system.compiler import entry
from carolus_env.system.options import option

C = TypeVar("C", bound="SelfPlayConfig")
Stats = npt.NDArray[np.float64]


@dataclass
class SelfPlayConfig(RunConfig):
    """The options of learners that play with themselves in compiled code, on every core."""

    policy: ClassVar[bool] = False  # True if the network has a policy head

    workers: int = option(
        machine.cores(),
        "number of workers, threads of one process; by default one per core; results depend on it",
        among=(1, machine.MOST_THREADS),
    )
    start: str | None = option(
        None,
        "model to begin with: a path, or 2p, 3p, 4p for the package's value network; by default "
        "random weights",
        kind=str,
    )
    width: int = run.network(64, "sums of the network's first layer", among=network.WIDTH_LIMITS)
    hidden: int = run.network(32, "units of its second layer", among=network.HIDDEN_LIMITS)
    candidates: int = run.network(
        16, "turns that are compared, the planner's best ones", among=(DISCS, MOST_PLANS)
    )
    plans: str = run.network("stop", "where paladins may go, see the planner", among=WIDTHS)
    learning_rate: float = run.rate(0.01, "initial learning rate")
    learning_rate_end: float = run.rate(0.001, "learning rate at the end", "algorithm")
    flat: float = run.algorithm(0.0, run.FLAT, among=(0, None), below=1)
    first_square: float = run.algorithm(
        0.1, "initial sum of each weight's squared gradients (Adagrad)", among=(1e-9, 1e6)
    )

    @property
    def size(self) -> Size:
        return Size(self.players, self.width, self.hidden, self.policy)

    @property
    def budget(self) -> str:
        return f"{super().budget}, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def rate_at(self, progress: float) -> float:
        decay = min(max((progress - self.flat) / (1 - self.flat), 0.0), 1.0)
        return float(self.learning_rate * (self.learning_rate_end / self.learning_rate) ** decay)

    def first_weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the weights to begin with.

        A policy may begin with a model that has no policy head, and the other way round.
        """
        weights = network.random_weights(self.size, self.seed)
        if self.start is None:
            return weights
        model = find("value", self.start)
        if dataclasses.replace(model.size, policy=self.policy) != self.size:
            raise ValueError(
                f"start must be a model of players={self.players}, width={self.width}, "
                f"hidden={self.hidden}; {self.start!r} has {model.size}"
            )
        for name, array in weights.items():
            start = model.weights[name]
            part = tuple(slice(min(pair)) for pair in zip(array.shape, start.shape, strict=True))
            array[part] = start[part]
        return weights

    def check(self) -> None:
        super().check()
        NetworkModel(self.size, self.first_weights()).to_bytes()


class Task(NamedTuple):
    """A worker's part of a round."""

    first: int  # number of its first game or decision: each has its own stream of random numbers
    size: int  # games or decisions to learn from
    rate: float  # learning rate


class SelfPlayLearner(ABC, Generic[C]):
    """A worker of an algorithm that learns a network by self-play.

    A subclass is an algorithm: `learners.ppo`, `learners.td`.
    """

    Config: ClassVar[type[SelfPlayConfig]]
    stats: ClassVar[tuple[str, ...]]  # names of the statistics; games is one of them

    def __init__(self, config: C) -> None:
        self.config = config
        weights = config.first_weights()
        self.shared: Arrays = {f"weights/{name}": weights[name] for name in Weights._fields}
        self.shared |= self.optimiser()
        self.weights: Weights = self.grouped("weights")

    @classmethod
    def begin(cls, config: C) -> WorkerPool:
        return WorkerPool(cls, config)

    def grouped(self, prefix: str) -> Weights:
        """Return the shared arrays ``prefix/NAME`` for each array of weights, not copied."""
        return Weights(*(self.shared[f"{prefix}/{name}"] for name in Weights._fields))

    def optimiser(self) -> Arrays:
        """Return what Adagrad begins with, sums of squares; ``shared`` has the weights."""
        first = np.float32(self.config.first_square)
        return {
            name.replace("weights/", "squares/"): np.full_like(array, first)
            for name, array in self.shared.items()
        }

    def selector(self) -> Selector:
        """Return what lists a decision's candidates and values them by the worker's weights."""
        config, plans = self.config, WIDTHS.index(self.config.plans)
        sizes = config.players, self.weights, plans, config.candidates
        return Selector.of(*sizes, policy=config.policy)

    def own(self, index: int) -> Arrays:
        """Return the initial state that the worker with this index keeps, such as its games."""
        return {}

    @abstractmethod
    def learn(self, own: Arrays, task: Task, stats: Stats) -> None:
        """Play, and learn from it, beginning with ``shared``.

        ``shared`` and ``own``, which the worker keeps until its next round, are changed; the sums
        of ``stats`` are added to.
        """

    @staticmethod
    @abstractmethod
    def metrics(sums: Mapping[str, float]) -> dict[str, float]:
        """Return the means, ``loss`` among them, from the sums of `stats` between two points."""

    @staticmethod
    @abstractmethod
    def agent(config: C, model: NetworkModel) -> Agent:
        """Return the bot that plays a model in evaluations."""

    def round(
        self, shared: Mapping[str, npt.NDArray[Any]], own: Arrays, task: Task
    ) -> tuple[Arrays, Stats, float]:
        """Begin with the common arrays; return what is shared then, statistics, CPU seconds."""
        for name, array in self.shared.items():
            array[...] = shared[name]
        stats, begun = np.zeros(len(self.stats)), time.thread_time()
        self.learn(own, task, stats)
        return self.shared, stats, time.thread_time() - begun


class WorkerPool(Learner):
    """Workers, each on a thread, and their common state: weights and that of the optimiser."""

    def __init__(self, kind: type[SelfPlayLearner[Any]], config: SelfPlayConfig) -> None:
        self._kind, self._config = kind, config
        self._workers = [kind(config) for _ in range(config.workers)]
        self.shared = {name: array.copy() for name, array in self._workers[0].shared.items()}
        self.own = [worker.own(index) for index, worker in enumerate(self._workers)]
        self.stats, self.noted = np.zeros((2, len(kind.stats)))  # sums: now, and at the last `note`

    def warm_up(self) -> None:
        own = {name: array.copy() for name, array in self.own[0].items()}
        self._workers[0].round(self.shared, own, Task(0, 1, 0.0))  # it begins with common arrays
        shared = {name: array.copy() for name, array in self.shared.items()}
        combine(shared, [shared] * min(len(self._workers), 2))

    def learn(self, first: int, count: int, rate: float, stop: Stop | None = None) -> int:
        parts = machine.runs(count, len(self._workers))
        tasks = [Task(first + part.start, part.stop - part.start, rate) for part in parts]
        results = machine.together(
            lambda k: self._workers[k].round(self.shared, self.own[k], tasks[k]), range(len(tasks))
        )
        for _, stats, seconds in results:
            self.stats += stats
            self.cpu_seconds += seconds
        combine(self.shared, [shared for shared, *_ in results])
        return count

    def metrics(self) -> dict[str, float]:
        sums = (self.stats - self.noted).tolist()
        return self._kind.metrics(dict(zip(self._kind.stats, sums, strict=True)))

    def note(self) -> None:
        self.noted[:] = self.stats

    def model(self, about: Mapping[str, Any]) -> NetworkModel:
        weights = {name: self.shared[f"weights/{name}"].copy() for name in Weights._fields}
        games = int(self.stats[self._kind.stats.index("games")])
        about = {"games": games, "workers": self._config.workers, **about}
        return NetworkModel(self._config.size, weights, about)

    def agent(self, model: NetworkModel) -> Agent:
        return self._kind.agent(self._config, model)

    def arrays(self) -> Arrays:
        own = {f"own/{k}/{name}": a for k, some in enumerate(self.own) for name, a in some.items()}
        return {**self.shared, **own, "stats": self.stats, "noted": self.noted}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        for name, array in self.arrays().items():
            if array.shape != arrays[name].shape:
                raise ValueError(f"{name} must be {array.shape}, got {arrays[name].shape}")
            array[...] = arrays[name]


def combine(common: Arrays, results: Sequence[Mapping[str, npt.NDArray[Any]]]) -> None:
    """Move common arrays by the mean of the workers' moves, Adagrad's sums of squares by the sum.

    Sums that forget may fall: then they move by the mean, too, or they could fall below 0.
    The mean is over the effective number of workers: ``sum(|d|)**2 / sum(d**2)`` of the moves d. It
    is 1 where one alone moved, so that a rare row of a table keeps its full move, and the number of
    workers where all moved alike.
    """
    if len(results) == 1:  # exact
        for name, array in common.items():
            array[...] = results[0][name]
        return

    def move(name: str) -> None:
        array, moved = common[name], np.stack([arrays[name] for arrays in results])
        is_sum = name.startswith("squares/")
        _add_moves(array.reshape(-1), moved.reshape(len(moved), -1), is_sum)

    machine.together(move, list(common))


@entry
def _add_moves(common: F32, moved: F32, is_sum: bool) -> None:
    """Add the workers' moves, their sum or mean, to numbers ``(n,)``; ``moved`` is (workers, n)."""
    for i in range(common.shape[0]):
        total, size, square = np.float32(0), np.float32(0), np.float32(0)
        for worker in range(moved.shape[0]):
            move = moved[worker, i] - common[i]
            total += move
            size += abs(move)
            square += move * move
        grows = is_sum and total > 0
        if not grows and square > 0:  # the squares of tiny moves may be 0
            total /= max(size * size / square, np.float32(1))
        common[i] += total
