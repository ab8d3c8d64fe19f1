"""The options of a training run by self-play PPO over single decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from carolus_env.bots import make
from carolus_env.bots.neural.network import Size
from carolus_env.learners.options import Learner, RunOptions


@dataclass
class Config(RunOptions):
    """All options of a training run by self-play PPO over single decisions."""

    learner_name: ClassVar[Learner] = "single"
    unit: ClassVar[str] = "decisions"

    steps: int = 1_500_000
    """Decisions to learn from, in all."""
    start: str | None = None
    """A model to start from (2p, or a path without suffix); by default from scratch."""

    games: int = 512
    """Games played side by side."""
    rollout: int = 64
    """Decisions in each game between two updates of the network."""
    batch: int = 2048
    """Decisions in a gradient step."""
    epochs: int = 2
    """Passes over the decisions of a rollout."""
    learning_rate: float = 1e-3
    """Learning rate at the start; it falls geometrically ..."""
    learning_rate_end: float = 5e-4
    """... to this at the end."""
    gamma: float = 1.0
    """Discount for each decision of any seat."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation, over the decisions of all seats."""
    entropy: float = 0.01
    """Weight of the entropy bonus at the start; it changes linearly ..."""
    entropy_end: float = 0.008
    """... to this at the end."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    clip: float = 0.2
    """PPO's clip range."""
    region: int = 32
    """Width of the network's layers for each region and clan."""
    trunk: int = 128
    """Width of its layers for the whole position."""
    threads: int = 1
    """Threads of PyTorch."""
    device: str = "auto"
    """Where the network is trained: cpu, cuda, ...; auto: cuda if there is one."""

    bots: tuple[str, ...] = ()
    """Bots as opponents, by spec; by default the learner plays every seat of all games."""
    self_share: float = 0.8
    """Share of the games in which it plays every seat, where there are bots."""

    @property
    def budget(self) -> str:
        return f"{self.steps:,} {self.unit}"

    @property
    def size(self) -> Size:
        """The network's size."""
        return Size(self.players, self.region, self.trunk)

    def learning_rate_at(self, left: float) -> float:
        """The learning rate when this share of the steps is left: from 1 down to 0."""
        start, end = self.learning_rate, self.learning_rate_end
        return float(end * (start / end) ** min(max(left, 0.0), 1.0))

    def entropy_at(self, left: float) -> float:
        """The weight of the entropy bonus when this share of the steps is left."""
        left = min(max(left, 0.0), 1.0)
        return self.entropy_end + (self.entropy - self.entropy_end) * left

    def check(self) -> None:
        """Refuse options that cannot work, before anything starts.

        Raises:
            ValueError: naming the option, its value and what is allowed.
        """
        import torch

        super().check()
        _ = self.size
        self.check_counts(
            *("steps", "games", "rollout", "batch", "epochs", "threads"),
        )
        if self.games * self.rollout < 2:
            raise ValueError("games times rollout must be at least 2")
        for name, high in (("gamma", 1.0), ("gae_lambda", 1.0), ("clip", 1.0)):
            if not 0 < getattr(self, name) <= high:
                raise ValueError(f"{name} must lie in (0, {high:g}], got {getattr(self, name)}")
        for name in ("learning_rate", "learning_rate_end"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in (0, 1), got {getattr(self, name)}")
        for name in ("entropy", "entropy_end", "value_weight"):
            if not 0 <= getattr(self, name) <= 100:
                raise ValueError(f"{name} must lie in [0, 100], got {getattr(self, name)}")
        for spec in self.bots:
            make(spec)
        try:
            if self.device != "auto":
                torch.device(self.device)
        except RuntimeError:
            raise ValueError(f"device {self.device!r} is unknown to PyTorch") from None
