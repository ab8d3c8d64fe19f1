"""The options of a training run, on the command line and in a file alike."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from carolus_env.bots import make
from carolus_env.bots.neural.network import Size
from carolus_env.engine.rules import Rules


@dataclass
class Config:
    """Train a policy by self-play; docs/training.md tells how it works."""

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

    steps: int = 1_500_000
    """Decisions to learn from."""
    seed: int = 1
    """Of games, network and sampling."""
    name: str | None = None
    """The run's folder is runs/NAME; left out: made from players, seed and time."""
    runs: str = "runs"
    """Where runs are kept."""
    start: str | None = None
    """A model to start from (2p, or a path without its suffix); left out: from scratch."""

    games: int = 512
    """Games played side by side."""
    rollout: int = 64
    """Decisions in each game between two updates."""
    batch: int = 2048
    """Decisions in a gradient step."""
    epochs: int = 2
    """Passes over the decisions of an update."""
    learning_rate: float = 1e-3
    """At the start; it falls geometrically ..."""
    learning_rate_end: float = 5e-4
    """... to this at the end."""
    gamma: float = 1.0
    """Discount for each decision of the table."""
    gae_lambda: float = 0.95
    """Of generalised advantage estimation, over the table's decisions."""
    entropy: float = 0.01
    """Weight of the entropy bonus at the start; it goes linearly ..."""
    entropy_end: float = 0.008
    """... to this at the end."""
    value_weight: float = 0.5
    """Weight of the value's loss."""
    clip: float = 0.2
    """PPO's clip range."""
    shaping: float = 0.0
    """Potential-based shaping: how many times the evaluation's payoff is the potential."""
    region: int = 32
    """Numbers that the network keeps of each region and clan."""
    trunk: int = 128
    """Numbers that it keeps of the whole."""
    threads: int = 1
    """Torch's threads."""
    device: str = "auto"
    """Where the network is trained: cpu, cuda, ...; auto: cuda where there is one."""

    bots: tuple[str, ...] = ()
    """Scripted opponents, by spec string."""
    self_share: float = 0.8
    """Share of the tables at which the learner holds every seat."""
    earlier_share: float = 0.2
    """Share with an earlier self as opponent; the bots share the rest."""
    earlier: int = 30
    """Earlier selves that are kept."""
    on_duty: int = 3
    """Earlier selves that are met at a time."""
    hardness: float = 1.0
    """How much hard opponents are preferred; 0: not at all."""
    remember_every: int = 100_000
    """Decisions between two earlier selves."""

    eval_every: int = 250_000
    """Decisions between two evaluations, each with a checkpoint."""
    eval_games: int = 100
    """Games of an evaluation against each of `eval_bots`."""
    final_games: int = 2000
    """Games of the last evaluation."""
    eval_bots: tuple[str, ...] = ("random", "greedy", "planner")
    """Whom the policy is measured against. The best policy is the one that beats the last best."""
    checkpoint_every: int | None = None
    """Decisions between two checkpoints; left out: one at each evaluation."""

    @property
    def size(self) -> Size:
        """Of the network."""
        return Size(self.players, self.region, self.trunk)

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
        import torch

        self.rules()
        _ = self.size
        for name in ("steps", "games", "rollout", "batch", "epochs", "threads", "remember_every",
                     "eval_every", "eval_games", "final_games", "on_duty"):  # fmt: skip
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.checkpoint_every is not None and self.checkpoint_every < 1:
            raise ValueError(f"checkpoint_every must be at least 1, got {self.checkpoint_every}")
        if self.games * self.rollout < 2:
            raise ValueError("games times rollout must be at least 2")
        for name, high in (("gamma", 1.0), ("gae_lambda", 1.0), ("clip", 1.0)):
            if not 0 < getattr(self, name) <= high:
                raise ValueError(f"{name} must lie in (0, {high:g}], got {getattr(self, name)}")
        for name in ("learning_rate", "learning_rate_end"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in (0, 1), got {getattr(self, name)}")
        for name in ("entropy", "entropy_end", "value_weight", "shaping", "hardness"):
            if not 0 <= getattr(self, name) <= 100:
                raise ValueError(f"{name} must lie in [0, 100], got {getattr(self, name)}")
        if self.earlier < 0:
            raise ValueError(f"earlier must be at least 0, got {self.earlier}")
        if not self.eval_bots:
            raise ValueError("eval_bots must name at least one agent")
        for spec in (*self.bots, *self.eval_bots):
            make(spec)
        try:
            if self.device != "auto":
                torch.device(self.device)
        except RuntimeError:
            raise ValueError(f"device {self.device!r} is none that torch knows") from None


def read(path: Path) -> Config:
    """The options that a TOML file holds; what it leaves out keeps its default.

    Raises:
        ValueError: for a file that cannot be read, and naming each option that is unknown or
            not of the right type.
    """
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: no options can be read ({error})") from None
    try:
        return from_mapping(found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def from_mapping(options: Mapping[str, Any]) -> Config:
    """Options by name.

    Raises:
        ValueError: naming each option that is unknown or not of the right type.
    """
    import pydantic

    names = [field.name for field in dataclasses.fields(Config)]
    if unknown := [name for name in options if name not in names]:
        raise ValueError(f"unknown option {unknown[0]!r}; known are {', '.join(names)}")
    try:
        # as JSON, so that lists may stand for tuples while everything else keeps its type
        return pydantic.TypeAdapter(Config).validate_json(json.dumps(options), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"option {where!r}: {first['msg']}, got {first['input']!r}") from None
