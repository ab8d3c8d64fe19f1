"""What the environment costs in training: decisions a second, and shares of the time.

    python benchmarks/training.py
    python benchmarks/training.py --players 4 --opponents random --json four.json

The learner is sb3-contrib's MaskablePPO with its MlpPolicy, over single decisions, against a bot.

All opponents take turns in one process, together with an environment that costs nothing. A window
is some rollouts with their updates. The ratio divides decisions a second by those with the empty
environment in the same turn: it says how much of the learner's pace is left. The share is the time
inside the environment's methods, the opponents' decisions included, divided by all time. Needs the
extra ``train``.
"""

from __future__ import annotations

import os

# Threads that spin while they wait slow everything else down; set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
import tyro
from machine import line
from sb3_contrib import MaskablePPO

from carolus_env import Rules, engine, new_streams
from carolus_env.bots import is_compiled
from carolus_env.engine.rules import OVER
from carolus_env.envs.sb3 import CarolusVecEnv
from carolus_env.system.files import check_writable, write_json

PARTS = {
    "opponents": "environment: the opponents' decisions",
    "engine": "environment: engine",
    "masks_and_observations": "environment: masks and observations",
    "handing_over": "environment: handing results to the learner",
    "policy": "learner: policy in the rollout",
    "update": "learner: update",
    "rest": "learner: buffer and the rest",
}
"""Where the time of a run with Carolus goes; the shares sum to 1."""


@dataclass
class Args:
    """What the environment costs in training."""

    players: tuple[Literal[2, 3, 4], ...] = (2,)
    """Numbers of players, one after another."""
    opponents: tuple[str, ...] = ("random", "greedy", "planner")
    """Bots in all other seats, by spec; they take turns."""
    games: int = 1024
    """Games side by side against each."""
    size: int = 16_384
    """Decisions in a rollout, over all games."""
    batch: int = 2048
    """Decisions in a gradient step."""
    epochs: int = 4
    """Passes over the rollout in an update."""
    net: tuple[int, ...] = (64, 64)
    """Hidden layers of the policy, and of the value."""
    threads: int = 1
    """Threads of PyTorch."""
    seconds: float = 3.0
    """Least length of a window; it ends with an update."""
    repeats: int = 5
    """Windows of each opponent."""
    json: Path | None = None
    """Where the rows are written."""

    def __post_init__(self) -> None:
        for name in ("games", "size", "batch", "epochs", "threads", "repeats"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.size % self.games:
            raise ValueError(f"size {self.size} must be a multiple of games {self.games}")


# ------------------------------------------------------------------------------------ environments


class MidwayVecEnv(CarolusVecEnv):
    """Games that start midway: each is one random decision further than the one before.

    So every window has all phases in their proportions, early and late rounds too; games that start
    together would stay together for long. Where an opponent is to move at the start, the learner
    makes that one decision.
    """

    def reset(self) -> npt.NDArray[Any]:
        super().reset()
        states, ahead = self.games.states, np.arange(self.num_envs) % 256
        streams = new_streams(1, self.num_envs)
        for decision in range(ahead.max()):
            rows = np.flatnonzero(ahead > decision)
            engine.step(states, engine.random_actions(states, streams, rows=rows), rows=rows)
            self.games.restart(rows[states["phase"][rows] == OVER])
        return self.look()


class EmptyVecEnv(MidwayVecEnv):
    """The same spaces at no cost: the same positions every time, no rewards, no ends of games.

    The positions are of all phases, because PyTorch's exp is several times slower on the logits of
    masked actions: with every action legal, MaskablePPO would be up to a third faster.

    Args:
        rules: number of players and options.
        n: number of games that it pretends to have.
    """

    def __init__(self, rules: Rules, n: int) -> None:
        super().__init__(rules, n, seed=1)
        self._seen = super().reset()
        self._rewards, self._dones = np.zeros(n, np.float32), np.zeros(n, np.bool_)
        self._infos: list[dict[str, Any]] = [{} for _ in range(n)]
        self._rows = list(self._masks)

    def reset(self) -> Any:
        return self._seen

    def step_wait(self) -> Any:
        return self._seen, self._rewards, self._dones, self._infos

    def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:
        return self._rows


# ------------------------------------------------------------------------------------ learners


class Learner:
    """A learner on one environment, and where its time goes.

    Attributes:
        rates: decisions a second of each window.
        shares: the environment's share of the time in each window.
    """

    def __init__(self, env: CarolusVecEnv, args: Args) -> None:
        self.rates: list[float] = []
        self.shares: list[float] = []
        self._seconds: dict[str, float] = defaultdict(float)
        self._size = args.size
        options: dict[str, Any] = {
            "n_steps": args.size // env.num_envs,
            "batch_size": min(args.batch, args.size),
            "n_epochs": args.epochs,
            "seed": 1,
            "device": "cpu",
        }
        net = {"net_arch": list(args.net)}
        self._model = MaskablePPO("MlpPolicy", env, policy_kwargs=net, **options)
        self._watch("environment", env, "step", "env_method", "action_masks")
        self._watch("games", env.games, "step", "restart")
        self._watch("masks_and_observations", env.games, "masks", "observations")
        for agent in env.games.opponents.agents:
            self._watch("opponents", agent, "play_on" if is_compiled(agent) else "act")
        self._watch("policy", self._model.policy, "forward")
        self._watch("update", self._model, "train")

    def warm_up(self) -> None:
        """A rollout and its update, not counted: they compile, and fill PyTorch's memory pools."""
        self._model.learn(self._size)
        self._seconds.clear()

    def train(self, seconds: float) -> None:
        """A window: rollouts with their updates, for at least this many seconds."""
        inside, decisions, elapsed = self._seconds["environment"], 0, 0.0
        started = time.perf_counter()
        while not decisions or elapsed < seconds:
            self._model.learn(self._size, reset_num_timesteps=False)
            decisions += self._size
            elapsed = time.perf_counter() - started
        self._seconds["all"] += elapsed
        self.rates.append(decisions / elapsed)
        self.shares.append((self._seconds["environment"] - inside) / elapsed)

    def parts(self) -> dict[str, float]:
        """Each part's share of all windows; see `PARTS`."""
        spent = self._seconds
        learner = spent["policy"] + spent["update"]
        derived = {
            "engine": spent["games"] - spent["opponents"],
            "handing_over": spent["environment"] - spent["games"] - spent["masks_and_observations"],
            "rest": spent["all"] - spent["environment"] - learner,
        }
        return {part: round({**spent, **derived}[part] / spent["all"], 4) for part in PARTS}

    def _watch(self, part: str, owner: Any, *methods: str) -> None:
        for method in methods:
            setattr(owner, method, self._timed(part, getattr(owner, method)))

    def _timed(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            result = method(*args, **kwargs)
            self._seconds[part] += time.perf_counter() - started
            return result

        return timed


# ------------------------------------------------------------------------------------ measuring


def learners(args: Args, rules: Rules) -> dict[str, Learner]:
    """A learner against each opponent, and ``empty``, on the empty environment."""
    made = {
        spec: Learner(MidwayVecEnv(rules, args.games, spec, seed=1), args)
        for spec in args.opponents
    }
    return {**made, "empty": Learner(EmptyVecEnv(rules, args.games), args)}


def measure(args: Args, players: int) -> list[dict[str, Any]]:
    """A row for each opponent; they take turns."""
    made = learners(args, Rules(players))
    for learner in made.values():
        learner.warm_up()
    order = list(made)
    for _ in range(args.repeats):
        for name in order:
            made[name].train(args.seconds)
        order.reverse()  # back and forth, so that a slow spell hits all equally
    return [row(args, players, spec, made) for spec in args.opponents]


def row(args: Args, players: int, opponents: str, made: Mapping[str, Learner]) -> dict[str, Any]:
    """The figures against one opponent."""
    ours, empty = made[opponents], made["empty"]
    return {
        "opponents": opponents,
        "players": players,
        "games": args.games,
        "net": " ".join(map(str, args.net)),
        "rollout": args.size,
        "batch": min(args.batch, args.size),
        "epochs": args.epochs,
        "threads": torch.get_num_threads(),
        "seconds": args.seconds,
        "repeats": args.repeats,
        **spread("decisions_per_s", ours.rates),
        **spread("empty_per_s", empty.rates),
        **spread("ratio", [a / b for a, b in zip(ours.rates, empty.rates, strict=True)], 4),
        **spread("share", ours.shares, 4),
        "parts": ours.parts(),
    }


def spread(name: str, values: Sequence[float], digits: int | None = None) -> dict[str, float]:
    """Median, smallest and largest as entries of a row."""
    return {
        name: round(statistics.median(values), digits),
        f"{name}_min": round(min(values), digits),
        f"{name}_max": round(max(values), digits),
    }


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows of `measure`."""
    first = rows[0]
    print(
        f"\n{first['players']} players, {first['games']} games, rollout {first['rollout']}, "
        f"batch {first['batch']}, {first['epochs']} epochs, torch threads: {first['threads']}"
    )
    figures = (
        ("decisions_per_s", "decisions/s, learnt from", ",.0f"),
        ("empty_per_s", "with the empty environment", ",.0f"),
        ("ratio", "ratio", ".2f"),
        ("share", "environment's share of the time", ".1%"),
    )
    for row in rows:
        print(f"\nagainst {row['opponents']}, network {row['net']}")
        for key, text, form in figures:
            low, high = row[f"{key}_min"], row[f"{key}_max"]
            print(f"{text:46}{row[key]:>10{form}}   ({low:{form}} to {high:{form}})")
        for part, text in PARTS.items():
            print(f"  {text:44}{row['parts'][part]:>10.1%}")
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the rows, and write the JSON."""
    args = tyro.cli(Args, args=arguments, description=__doc__)
    if args.json:
        check_writable(args.json)
    torch.set_num_threads(args.threads)
    machine = line("torch", "stable-baselines3", "sb3-contrib")
    print(machine)
    rows: list[dict[str, Any]] = []
    for players in args.players:
        measured = measure(args, players)
        show(measured)
        rows += [{**each, "machine": machine} for each in measured]
    if args.json:
        write_json(args.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
