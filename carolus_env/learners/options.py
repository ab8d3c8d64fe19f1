"""The options that every training run has, whatever learns in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from carolus_env.bots import make
from carolus_env.engine.rules import Rules
from carolus_env.networks.network import Size
from carolus_env.planning.plans import WIDTHS
from carolus_env.system import places
from carolus_env.system.machine import cores
from carolus_env.system.processes import Processes, Workers
from carolus_env.system.workers import check_threads

Learner = Literal["ppo", "value", "sb3"]
"""What learns: a policy over whole turns by PPO, a value network by TD(lambda), or sb3-contrib's
MaskablePPO."""


@dataclass
class RunOptions:
    """Rules, names and evaluations of a training run."""

    learner_name: ClassVar[Learner]
    """The learner's name, as files and the command line give it."""
    unit: ClassVar[str]
    """What the run counts: the decisions or the games that were learnt from."""
    resumable: ClassVar[tuple[str, ...]]
    """The options that may change when a run is resumed: its length and its backend."""

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

    seed: int = 1
    """Seed of games, network and sampling."""
    name: str | None = None
    """The run's folder is RUNS/NAME; by default learner, players, seed and time."""
    runs: str = "runs"
    """The folder of all runs."""

    eval_every: int = 250_000
    """Decisions or games between two evaluations, each with a checkpoint."""
    eval_games: int = 100
    """Games against each agent in an evaluation."""
    final_games: int = 600
    """Games against each agent in the final evaluation."""
    eval_bots: tuple[str, ...] = ()
    """Bots that are met in evaluations besides rungs of the ladder, by spec."""
    eval_suite: Literal["learn"] | None = None
    """Also measure, in every evaluation, what decisions give away in this half of the suite of
    positions; some seconds each. The other half is for what is published."""
    checkpoint_every: int | None = None
    """As eval_every, between two checkpoints; by default one at each evaluation."""

    @property
    def budget(self) -> str:
        """How long the run is, in words."""
        raise NotImplementedError

    def extended(self, changes: Mapping[str, Any]) -> Self:
        """With another budget, to continue a run."""
        return dataclasses.replace(self, **changes)

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
        self.rules()
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

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON, with the learner."""
        return {"learner": self.learner_name, **dataclasses.asdict(self)}


@dataclass
class CompiledOptions(RunOptions):
    """What a learner has besides that is compiled and runs on every core."""

    workers: int = field(default_factory=cores)
    """That play and learn; by default one a core. Results depend on their number."""
    on: Literal["threads", "processes", "ray"] = "threads"
    """What they are: threads, processes on this machine, or tasks on a cluster of Ray, with the
    extra ray. Results are the same."""
    ray_address: str | None = None
    """Of the cluster; by default RAY_ADDRESS, or one that runs here, or a new one."""
    width: int = 64
    """Sums of the network's first layer."""
    hidden: int = 32
    """Activations of its second layer."""
    plans: str = "stop"
    """Where paladins may go, see the planner: stop, one or all."""
    curve_every: int = 1
    """Decisions or games between two points of the curve."""

    @property
    def size(self) -> Size:
        """The network's size."""
        return Size(self.players, self.width, self.hidden)

    def check(self) -> None:
        """See `RunOptions.check`."""
        super().check()
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")
        _ = self.size
        if self.plans not in WIDTHS:
            raise ValueError(f"plans must be {' or '.join(WIDTHS)}, got {self.plans!r}")
        self.check_counts("curve_every", "workers")
        check_threads(self.workers)
        places.check(self.on, self.ray_address)

    def actors(self) -> Workers | None:
        """The workers that are not threads; to be closed.

        Raises:
            WorkerError: when there is no such cluster.
        """
        if self.on == "ray":
            return places.cluster(self.ray_address, (), most=self.workers)
        return Processes(self.workers) if self.on == "processes" else None
