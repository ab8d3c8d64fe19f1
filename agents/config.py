"""The options of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from agents.league import League
from carolus_env.bots import make
from carolus_env.rules import Rules


@dataclass
class Config:
    """Train a policy by self-play; see docs/training.md for what each option does."""

    players: int = 2
    """2, 3 or 4 (two teams)."""
    crown_choice: Literal["on_roll", "deferred"] = "on_roll"
    """When a crown becomes a paladin."""
    partners: Literal["opposite", "adjacent"] = "opposite"
    """Seats of the teams of four."""
    paladins_per_clan: int = 40
    """Size of the supply."""
    max_rounds: int | None = 100
    """Games are cut off after that many rounds."""

    steps: int = 3_000_000
    """Decisions of the learner to train for."""
    seed: int = 1
    """Of games, network and sampling."""
    name: str | None = None
    """The run's folder is runs/NAME; left out: made from players, seed and time."""
    runs: str = "runs"
    """Where runs are kept."""

    games: int = 512
    """Games played side by side."""
    rollout: int = 64
    """Decisions in each game between two updates."""
    batch: int = 4096
    """Decisions in a gradient step."""
    epochs: int = 4
    """Passes over the decisions of an update."""
    learning_rate: float = 1e-3
    """At the start; it falls linearly to a tenth."""
    gamma: float = 0.999
    """Discount for each decision."""
    gae_lambda: float = 0.95
    """Of generalised advantage estimation."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    clip: float = 0.2
    """PPO's clip range."""
    hidden: tuple[int, ...] = (128, 128)
    """Hidden layers of policy and value."""
    threads: int = 1
    """Torch's threads; more are seldom faster for small networks."""
    device: str = "cpu"
    """Where the network is trained: cpu, cuda, ..."""

    bots: tuple[str, ...] = ("greedy", "random")
    """Scripted opponents, by spec string."""
    self_share: float = 0.5
    """Share of the games against the current self."""
    earlier_share: float = 0.2
    """Share against earlier selves; the bots share the rest."""
    earlier: int = 20
    """Earlier selves that are kept."""
    remember_every: int = 200_000
    """Decisions between two earlier selves."""

    eval_every: int = 500_000
    """Decisions between two evaluations, each with a checkpoint."""
    eval_games: int = 400
    """Games of an evaluation against each of `eval_bots`."""
    final_games: int = 2000
    """Games of the last evaluation."""
    eval_bots: tuple[str, ...] = ("random", "greedy")
    """Whom the policy is measured against. The best policy is the one that beats the last best."""

    def rules(self) -> Rules:
        """The game's rules.

        Raises:
            ValueError: for options that no game can have.
        """
        return Rules(
            self.players,
            self.crown_choice,
            self.partners,
            self.paladins_per_clan,
            self.max_rounds,
        )

    def check(self) -> None:
        """Refuse numbers that cannot work, before anything starts.

        Raises:
            ValueError: naming the option, its value and what is allowed.
        """
        self.rules()
        for name in ("steps", "games", "rollout", "batch", "epochs", "threads", "remember_every",
                     "eval_every", "eval_games", "final_games"):  # fmt: skip
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.games * self.rollout < 2:
            raise ValueError("games times rollout must be at least 2")
        for name, high in (("gamma", 1.0), ("gae_lambda", 1.0), ("clip", 1.0)):
            if not 0 < getattr(self, name) <= high:
                raise ValueError(f"{name} must lie in (0, {high:g}], got {getattr(self, name)}")
        if not 0 < self.learning_rate < 1:
            raise ValueError(f"learning_rate must lie in (0, 1), got {self.learning_rate}")
        if not self.eval_bots:
            raise ValueError("eval_bots must name at least one agent")
        for spec in (*self.bots, *self.eval_bots):
            make(spec)
        try:
            torch.device(self.device)
        except RuntimeError:
            raise ValueError(f"device {self.device!r} is none that torch knows") from None
        self.league()

    def league(self) -> League:
        """The opponents that the options ask for."""
        return League(
            self.rules(),
            self.bots,
            earlier=self.earlier,
            self_share=self.self_share,
            earlier_share=self.earlier_share,
        )
