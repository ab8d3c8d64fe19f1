"""The options of a training run by PPO over whole turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from carolus_env.bots.turns.bot import TurnPolicyOptions
from carolus_env.bots.turns.model import TurnModel
from carolus_env.bots.turns.network import random_weights
from carolus_env.learners.options import CompiledOptions, Learner


@dataclass
class TurnConfig(CompiledOptions):
    """All options of a training run by PPO over whole turns."""

    learner_name: ClassVar[Learner] = "ppo"
    unit: ClassVar[str] = "decisions"
    resumable: ClassVar[tuple[str, ...]] = ("steps", "on", "ray_address")

    steps: int = 2_400_000
    """Decisions to learn from, in all: a decision is a disc, a crown or a whole turn."""
    start: str | None = None
    """A model to start from (2p, or a path); by default random weights."""

    games: int = 256
    """Games played side by side, shared out among the workers."""
    rollout: int = 32
    """Decisions in each game between two updates of the network."""
    batch: int = 256
    """Decisions in a gradient step."""
    epochs: int = 1
    """Passes over the decisions of a rollout."""
    learning_rate: float = 0.004
    """Learning rate of Adam at the start; it falls geometrically ..."""
    learning_rate_end: float = 0.0002
    """... to this at the end."""
    gae_lambda: float = 0.9
    """Lambda of generalised advantage estimation, over the decisions of all seats."""
    trace: float = 0.8
    """Lambda of the values' targets."""
    entropy: float = 0.003
    """Weight of the entropy bonus."""
    value_weight: float = 4.0
    """Weight of the value's loss."""
    clip: float = 0.2
    """PPO's clip range."""

    candidates: int = 16
    """Turns that are chosen among, the planner's best ones."""
    eval_every: int = 1_200_000
    """Decisions between two evaluations, each with a checkpoint."""
    curve_every: int = 50_000
    """Decisions between two points of the curve."""

    @property
    def budget(self) -> str:
        return f"{self.steps:,} decisions, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def first_weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """The weights to begin with.

        Raises:
            ValueError: for a model of another size.
        """
        if self.start is None:
            return random_weights(self.size, self.seed)
        found = TurnModel.find(self.start)
        if found.size != self.size:
            raise ValueError(f"start {self.start!r} is a model of {found.size}, not {self.size}")
        return {name: array.copy() for name, array in found.weights.items()}

    def learning_rate_at(self, share: float) -> float:
        """The learning rate after this share of the run, from 0 to 1."""
        start, end = self.learning_rate, self.learning_rate_end
        return float(start * (end / start) ** min(max(share, 0.0), 1.0))

    def check(self) -> None:
        """Refuse options that cannot work, before anything starts.

        Raises:
            ValueError: naming the option, its value and what is allowed.
        """
        super().check()
        self.first_weights()
        TurnPolicyOptions(candidates=self.candidates)
        self.check_counts("steps", "games", "rollout", "batch", "epochs")
        if self.games < self.workers:
            raise ValueError(
                f"games must be at least one for each of {self.workers} workers, got {self.games}"
            )
        for name in ("learning_rate", "learning_rate_end"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in (0, 1), got {getattr(self, name)}")
        for name in ("gae_lambda", "trace"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        if not 0 < self.clip <= 1:
            raise ValueError(f"clip must lie in (0, 1], got {self.clip}")
        for name in ("entropy", "value_weight"):
            if not 0 <= getattr(self, name) <= 100:
                raise ValueError(f"{name} must lie in [0, 100], got {getattr(self, name)}")
