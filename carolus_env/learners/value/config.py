"""The options of a training run of a value network by TD(lambda)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from carolus_env.bots.value.bot import ValueOptions
from carolus_env.bots.value.model import find
from carolus_env.learners.options import CompiledOptions, Learner
from carolus_env.networks.network import random_weights


@dataclass
class ValueConfig(CompiledOptions):
    """All options of a training run of a value network."""

    learner_name: ClassVar[Learner] = "value"
    unit: ClassVar[str] = "games"
    resumable: ClassVar[tuple[str, ...]] = ("games", "minutes", "on", "ray_address")

    games: int = 50_000
    """Games to learn from, in all."""
    minutes: float | None = None
    """CPU minutes of learning, of all workers together, instead of games. The same options then
    learn from another number of games each time, so such a run is not reproducible."""
    games_per_round: int = 20
    """Games of each worker between two exchanges of what was learnt."""

    start: str | None = None
    """Model to begin with, a path or 2p, 3p, 4p; by default random weights."""

    candidates: int = 16
    """Turns that the network compares, the planner's best ones."""

    rate: float = 0.03
    """Learning rate; it stays ..."""
    flat: float = 0.4
    """... for this share of the run, then falls geometrically ..."""
    rate_end: float = 0.03
    """... to this share of itself at the end."""
    first_square: float = 0.1
    """What the sum of each weight's squared gradients begins with (Adagrad)."""
    trace: float = 0.5
    """Lambda: the weight of the target after the next decision against its value."""
    exploration: float = 0.03
    """How likely a decision is one at random."""

    eval_every: int = 10_000
    """Games between two evaluations, each with a checkpoint."""
    curve_every: int = 500
    """Games between two points of the curve."""

    @property
    def budget(self) -> str:
        amount = f"{self.games:,} games"
        if self.minutes is not None:
            amount = f"{self.minutes:g} CPU minutes of learning"
        return f"{amount}, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def first_weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """The weights to begin with.

        Raises:
            ValueError: for a model of another size.
        """
        if self.start is None:
            return random_weights(self.size, self.seed)
        found = find(self.start)
        if found.size != self.size:
            raise ValueError(
                f"start must be a model of players={self.players}, width={self.width}, "
                f"hidden={self.hidden}; {self.start!r} has {found.size}"
            )
        return dict(found.weights)

    def rate_at(self, share: float) -> float:
        """The learning rate after this share of the run, from 0 to 1."""
        if share < self.flat:
            return self.rate
        return float(self.rate * self.rate_end ** ((share - self.flat) / (1 - self.flat)))

    def extended(self, changes: Mapping[str, Any]) -> Self:
        """With another number of games or minutes; games alone replace minutes."""
        instead = {"minutes": None} if "games" in changes else {}
        return replace(self, **{**instead, **changes})

    def check(self) -> None:
        """Refuse options that cannot work, before anything starts.

        Raises:
            ValueError: naming the option, its value and what is allowed.
        """
        super().check()
        self.first_weights()
        ValueOptions(candidates=self.candidates)
        self.check_counts("games", "games_per_round")
        if self.minutes is not None and not self.minutes > 0:
            raise ValueError(f"minutes must be more than 0, got {self.minutes}")
        for name, high in (("rate", 1.0), ("rate_end", 1.0), ("first_square", 1e6)):
            if not 0 < getattr(self, name) <= high:
                raise ValueError(f"{name} must lie in (0, {high:g}], got {getattr(self, name)}")
        for name in ("trace", "exploration"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        if not 0 <= self.flat < 1:
            raise ValueError(f"flat must lie in [0, 1), got {self.flat}")
