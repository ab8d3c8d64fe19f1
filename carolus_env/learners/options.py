"""The options of training runs: those of every learner, and those of learners by self-play."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from carolus_env.bots import make
from carolus_env.bots.network import find
from carolus_env.engine.rules import DISCS, Rules
from carolus_env.networks.files import NAMES
from carolus_env.networks.network import HIDDEN_LIMITS, WIDTH_LIMITS, Size, random_weights
from carolus_env.planning.plans import MOST_PLANS, WIDTHS
from carolus_env.system.machine import MOST_THREADS, cores
from carolus_env.system.options import check_fields, group, option

SLOWEST: Final = 1e-9  # the lowest learning rate: float32 weights of 0.01 do not feel a lower one
FLAT: Final = "share of the run in which the learning rate stays; then it decays geometrically"

algorithm: Final = partial(option, heading="algorithm")
network: Final = partial(option, heading="network")
evaluation: Final = partial(option, heading="evaluation")


def every(default: int, unit: str, what: str = "evaluations, each with a checkpoint") -> Any:
    """Return an option of decisions or games between two evaluations, or other events."""
    return evaluation(default, f"{unit} between two {what}", among=(1, None))


def rate(default: float, about: str, heading: str = "") -> Any:
    """Return an option of a learning rate."""
    return option(default, about, among=(SLOWEST, None), below=1, heading=heading)


@dataclass
class RunConfig(ABC):
    """Rules, names and evaluations of a training run."""

    learner_name: ClassVar[str]  # as files and the command line give it
    unit: ClassVar[str]  # of the run: decisions or games learnt from
    length: ClassVar[str]  # name of the option that says how many of them
    bot: ClassVar[str] = ""  # name of the bot that plays the models; empty: that of the learner
    hint: ClassVar[str] = ""  # advice that is printed when a run starts

    rules: Rules = group(Rules, "rules")

    minutes: float | None = option(
        None,
        "minutes of learning by the clock, instead of a number of decisions or games; compiling "
        "and evaluating come on top. Such a run is not reproducible: it learns as much as it can",
        kind=float,
        above=0,
    )
    seed: int = option(1, "seed of games, network and sampling", among=(0, 2**64 - 1))
    name: str | None = option(
        None, "the run's folder is RUNS/NAME; by default learner, players, seed and time", kind=str
    )
    runs: Path = option(Path("runs"), "the folder of all runs", metavar="FOLDER")

    eval_every: int = every(250_000, "decisions or games")
    curve_every: int = every(1, "decisions or games", "points of the curve")
    eval_games: int = evaluation(
        100,
        "most games against each agent in an evaluation; fewer where the interval is narrow",
        among=(1, None),
    )
    final_games: int = evaluation(
        600, "most games against each agent in the final evaluation", among=(1, None)
    )
    eval_bots: tuple[str, ...] = evaluation(
        (),
        "bots that are met in evaluations besides planner and rungs of the ladder, by spec",
        metavar="BOT",
    )
    eval_suite: str | None = evaluation(
        None,
        "half of the suite to measure mean regret on, too; the other half is for publication",
        kind=str,
        among=("learn",),
    )
    checkpoint_every: int | None = evaluation(
        None,
        "decisions or games between two checkpoints; by default one at each evaluation",
        kind=int,
        among=(1, None),
    )

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def players(self) -> int:
        """Players of a game."""
        return self.rules.players

    @property
    def resumable(self) -> tuple[str, ...]:
        """The options that may change when a run is resumed: its length."""
        return self.length, "minutes"

    @property
    def budget(self) -> str:
        """Length of the run, in words."""
        if self.minutes is not None:
            return f"{self.minutes:g} minutes of learning, evaluations not counted"
        return f"{getattr(self, self.length):,} {self.unit}"

    @property
    def eval_threads(self) -> int:
        """Threads of evaluations, as many as training uses."""
        return 1

    def progress(self, done: int, seconds: float) -> float:
        """Return the fraction of the run, 0 to 1 or more, after decisions or games and seconds."""
        if self.minutes is not None:
            return seconds / 60 / self.minutes
        return done / int(getattr(self, self.length))

    @abstractmethod
    def round_size(self, done: int) -> int:
        """Return the decisions or games of the next round, after so many."""

    @abstractmethod
    def rate_at(self, progress: float) -> float:
        """Return the learning rate of the next round, after this fraction of the run."""

    def extended(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy of another length, to continue a run."""
        if self.length in changes and changes.get("minutes") is not None:
            raise ValueError(f"a run ends after {self.length} or after minutes: name one of them")
        instead = {"minutes": None} if self.length in changes else {}
        return dataclasses.replace(self, **{**instead, **changes})

    def check(self) -> None:
        """Refuse options that cannot work, before anything starts."""
        if self.name in ("", "..") or (self.name and self.name != Path(self.name).name):
            raise ValueError(f"name must be that of a folder in {self.runs}, got {self.name!r}")
        for spec in self.eval_bots:
            make(spec)


@dataclass
class SelfPlayConfig(RunConfig):
    """The options of learners that play with themselves in compiled code, on every core."""

    policy: ClassVar[bool] = False  # True if the network has a policy head

    workers: int = option(
        cores(),
        "number of workers, threads of one process; by default one per core; results depend on it",
        among=(1, MOST_THREADS),
    )
    start: str | None = option(
        None, "model to begin with, a path or 2p, 3p, 4p; by default random weights", kind=str
    )
    width: int = network(64, "sums of the network's first layer", among=WIDTH_LIMITS)
    hidden: int = network(32, "units of its second layer", among=HIDDEN_LIMITS)
    candidates: int = network(
        16, "turns that are compared, the planner's best ones", among=(DISCS, MOST_PLANS)
    )
    plans: str = network("stop", "where paladins may go, see the planner", among=WIDTHS)
    learning_rate: float = rate(0.01, "initial learning rate")
    learning_rate_end: float = rate(0.001, "learning rate at the end", "algorithm")
    flat: float = algorithm(0.0, FLAT, among=(0, None), below=1)

    @property
    def eval_threads(self) -> int:
        return min(self.workers, cores())

    @property
    def size(self) -> Size:
        """The network's size."""
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
        weights = random_weights(self.size, self.seed)
        if self.start is None:
            return weights
        model = find("ppo" if self.policy and self.start in NAMES else "value", self.start)
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
        self.first_weights()
