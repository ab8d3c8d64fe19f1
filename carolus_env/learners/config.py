"""The options of a training run, from the command line or a TOML file."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from carolus_env.bots import make
from carolus_env.bots.neural.network import Size
from carolus_env.engine.rules import Rules

_REMOVED: Final = {"shaping": 0.0}
"""Options of earlier versions, with the value that left them unused."""
_FIRST_BOTS: Final = ["random", "greedy", "planner"]
"""The default of ``eval_bots`` before policies were placed on the ladder."""


@dataclass
class Config:
    """All options of a training run."""

    players: int = 2
    """2, 3 or 4 (two teams of two)."""
    crown_choice: Literal["on_roll", "deferred"] = "on_roll"
    """When a crown becomes a paladin."""
    partners: Literal["opposite", "adjacent"] = "opposite"
    """Where partners sit with 4 players."""
    paladins_per_clan: int = 40
    """Size of the supply."""
    max_rounds: int | None = 100
    """Games are cut off after this many rounds."""

    steps: int = 1_500_000
    """Decisions to learn from, in all."""
    seed: int = 1
    """Seed of games, network and sampling."""
    name: str | None = None
    """The run's folder is RUNS/NAME; by default the name holds players, seed and time."""
    runs: str = "runs"
    """The folder of all runs."""
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
    """Bots as opponents, by spec."""
    self_share: float = 0.8
    """Share of the games in which the learner plays every seat."""
    earlier_share: float = 0.2
    """Share of the games against an earlier self; the bots share the rest."""
    earlier: int = 30
    """How many earlier selves are stored."""
    on_duty: int = 3
    """How many of them are active as opponents in a rollout."""
    hardness: float = 1.0
    """How strongly hard opponents are preferred; 0: not at all."""
    remember_every: int = 100_000
    """Decisions after which the next earlier self is stored."""

    eval_every: int = 250_000
    """Decisions between two evaluations, each with a checkpoint."""
    eval_games: int = 100
    """Games against each agent in an evaluation."""
    final_games: int = 2000
    """Games against each agent in the final evaluation."""
    eval_bots: tuple[str, ...] = ()
    """Bots that the policy meets in evaluations besides rungs of the ladder, by spec."""
    checkpoint_every: int | None = None
    """Decisions between two checkpoints; by default one at each evaluation."""

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
        """Refuse options that cannot work, before anything starts.

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
        for name in ("entropy", "entropy_end", "value_weight", "hardness"):
            if not 0 <= getattr(self, name) <= 100:
                raise ValueError(f"{name} must lie in [0, 100], got {getattr(self, name)}")
        if self.earlier < 0:
            raise ValueError(f"earlier must be at least 0, got {self.earlier}")
        for spec in (*self.bots, *self.eval_bots):
            make(spec)
        try:
            if self.device != "auto":
                torch.device(self.device)
        except RuntimeError:
            raise ValueError(f"device {self.device!r} is unknown to PyTorch") from None


def read(path: Path) -> Config:
    """The options of a TOML file; those it leaves out keep their defaults.

    Raises:
        ValueError: for a file that cannot be read, and naming the first option that is unknown
            or has the wrong type.
    """
    try:
        found = tomllib.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ValueError(f"{path}: not a TOML file ({error})") from None
    try:
        return from_mapping(found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def from_run(options: Mapping[str, Any]) -> Config:
    """The options in a run's ``config.json``, also that of a run begun by an earlier version.

    Raises:
        ValueError: for a run that used an option which no longer exists, and as `from_mapping`.
    """
    options = dict(options)
    for name, unused in _REMOVED.items():
        if options.pop(name, unused) != unused:
            raise ValueError(
                f"option {name!r} no longer exists; resume the run with the version that began it"
            )
    if options.get("eval_bots") == _FIRST_BOTS:
        del options["eval_bots"]
    return from_mapping(options)


def from_mapping(options: Mapping[str, Any]) -> Config:
    """Options by name.

    Raises:
        ValueError: naming the first option that is unknown or has the wrong type.
    """
    import pydantic

    names = [field.name for field in dataclasses.fields(Config)]
    if unknown := [name for name in options if name not in names]:
        raise ValueError(f"unknown option {unknown[0]!r}; known are {', '.join(names)}")
    try:
        # strict, but as JSON: there a list is accepted for a tuple
        return pydantic.TypeAdapter(Config).validate_json(json.dumps(options), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"option {where!r}: {first['msg']}, got {first['input']!r}") from None
