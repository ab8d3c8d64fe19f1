"""The options of training runs: those of every learner, and those of learners by self-play."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent, make
from carolus_env.bots.models import NAMES, find
from carolus_env.engine.rules import DISCS, Rules
from carolus_env.evaluation.placing import Advance, Evaluation, evaluate
from carolus_env.networks.network import Size, random_weights
from carolus_env.planning.plans import MOST_PLANS, WIDTHS
from carolus_env.system.machine import cores
from carolus_env.system.threads import check_threads


@dataclass
class RunConfig:
    """Rules, names and evaluations of a training run."""

    learner_name: ClassVar[str]
    """The learner's name, as files and the command line give it."""
    unit: ClassVar[str]
    """Unit of the run: decisions or games learnt from."""
    resumable: ClassVar[tuple[str, ...]]
    """The options that may change when a run is resumed: its length."""
    bot: ClassVar[str] = ""
    """Name of the bot that plays the models; empty: that of the learner."""
    hint: ClassVar[str] = ""
    """Advice that is printed when a run starts."""

    rules: Rules = field(default_factory=Rules)
    """Number of players and options of the games."""

    seed: int = 1
    """Seed of games, network and sampling."""
    name: str | None = None
    """The run's folder is RUNS/NAME; by default learner, players, seed and time."""
    runs: str = "runs"
    """The folder of all runs."""

    eval_every: int = 250_000
    """Decisions or games between two evaluations, each with a checkpoint."""
    eval_games: int = 100
    """Games against each agent in an evaluation, at most; fewer where the interval is narrow."""
    final_games: int = 600
    """Games against each agent in the final evaluation, at most."""
    eval_bots: tuple[str, ...] = ()
    """Bots that are met in evaluations besides planner and rungs of the ladder, by spec."""
    eval_suite: Literal["learn"] | None = None
    """Half of the suite to measure mean regret on, too; the other half is for publication."""
    checkpoint_every: int | None = None
    """Decisions or games between two checkpoints; default: one at each evaluation."""

    @property
    def players(self) -> int:
        """Players of a game."""
        return self.rules.players

    @property
    def budget(self) -> str:
        """Length of the run, in words."""
        raise NotImplementedError

    def extended(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with another budget, to continue a run."""
        return dataclasses.replace(self, **changes)

    def check(self) -> None:
        """Refuse options that cannot work, before anything starts.

        Raises:
            ValueError: naming the option, its value and what is allowed.
        """
        self.check_counts("eval_every", "eval_games", "final_games")
        if self.checkpoint_every is not None:
            self.check_counts("checkpoint_every")
        for spec in self.eval_bots:
            make(spec)

    def check_counts(self, *names: str) -> None:
        """Refuse numbers below 1.

        Raises:
            ValueError: naming the first option that has one.
        """
        for name in names:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def check_ranges(self, *names: str, low: float, high: float) -> None:
        """Refuse numbers outside a range.

        Raises:
            ValueError: naming the first option that is.
        """
        for name in names:
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must lie in [{low}, {high}], got {getattr(self, name)}")

    @property
    def eval_threads(self) -> int:
        """Threads of evaluations, as many as training uses."""
        return 1

    def evaluate(
        self,
        agent: Agent,
        games: int,
        near: float | None = None,
        *,
        advance: Advance = lambda spec, games: None,
    ) -> Evaluation:
        """Measure an agent against `planner` and on the ladder; see `placing.evaluate`."""
        return evaluate(
            agent,
            self.rules,
            games,
            near=near,
            bots=self.eval_bots,
            half=self.eval_suite,
            threads=self.eval_threads,
            advance=advance,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the learner, and its options with those of the rules."""
        options = dataclasses.asdict(self)
        return {"learner": self.learner_name, **options.pop("rules"), **options}


@dataclass
class SelfPlayConfig(RunConfig):
    """The options of learners that play with themselves in compiled code, on every core."""

    policy: ClassVar[bool] = False
    """True if the network has a policy head."""

    workers: int = field(default_factory=cores)
    """Number of workers, threads of one process; default: one per core. Results depend on it."""
    start: str | None = None
    """Model to begin with, a path or 2p, 3p, 4p; default: random weights."""
    width: int = 64
    """Sums of the network's first layer."""
    hidden: int = 32
    """Units of its second layer."""
    candidates: int = 16
    """Turns that are compared, the planner's best ones."""
    plans: str = "stop"
    """Allowed destinations of paladins, see the planner: stop, one or all."""
    learning_rate: float = 0.01
    """Initial learning rate."""
    learning_rate_end: float = 0.001
    """Learning rate at the end."""
    flat: float = 0.0
    """Share of the run in which the learning rate stays; then it decays geometrically."""
    curve_every: int = 1
    """Decisions or games between two points of the curve."""

    @property
    def eval_threads(self) -> int:
        """See `RunConfig.eval_threads`."""
        return min(self.workers, cores())

    @property
    def size(self) -> Size:
        """The network's size."""
        return Size(self.players, self.width, self.hidden, self.policy)

    def share(self, done: int, cpu_seconds: float) -> float:
        """Return the share of the run that is done, from 0 to 1 or more."""
        raise NotImplementedError

    def round_size(self, done: int) -> int:
        """Return the decisions or games of the next round."""
        raise NotImplementedError

    def rate_at(self, share: float) -> float:
        """Return the learning rate after this share of the run."""
        decay = min(max((share - self.flat) / (1 - self.flat), 0.0), 1.0)
        return float(self.learning_rate * (self.learning_rate_end / self.learning_rate) ** decay)

    def first_weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the weights to begin with.

        A policy may begin with a model that has no policy head, and the other way round.

        Raises:
            ValueError: for a model of another size.
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
        """See `RunConfig.check`."""
        super().check()
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"seed must be from 0 to 2**64 - 1, got {self.seed}")
        _ = self.size
        if self.plans not in WIDTHS:
            raise ValueError(f"plans must be {' or '.join(WIDTHS)}, got {self.plans!r}")
        if not DISCS <= self.candidates <= MOST_PLANS:
            raise ValueError(
                f"candidates must be from {DISCS} to {MOST_PLANS}, got {self.candidates}"
            )
        self.check_counts("curve_every", "workers")
        for name in ("learning_rate", "learning_rate_end"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in (0, 1), got {getattr(self, name)}")
        if not 0 <= self.flat < 1:
            raise ValueError(f"flat must lie in [0, 1), got {self.flat}")
        check_threads(self.workers, "workers")
        self.first_weights()
