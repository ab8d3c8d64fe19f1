"""The environment's share of a MaskablePPO run: Carolus beside an environment that costs nothing.

    python benchmarks/training.py
    python benchmarks/training.py --players 2 4 --opponents random greedy --json training.json

They are trained in turns in one process, in windows of a few rollouts with their updates. The share
is given twice: the seconds inside the environment's methods over all seconds, and
1 - (steps/s with Carolus) / (steps/s with the empty environment) of windows side by side, which is
the difference of two large times and scatters more.

The empty environment hands out masks of the game's first decisions, always the same. Another one
allows every action. It is no measure of the environment's cost, since the update is faster with it:
torch's exp is several times slower on the logits of masked actions, whoever made the masks. It is
printed as the ceiling of any environment. Needs the extra ``train``.
"""

from __future__ import annotations

import os

# Threads that spin while they wait slow everything else down; set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import itertools
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import line
from sb3_contrib import MaskablePPO

from carolus_env import ACTIONS, Rules
from carolus_env.envs.sb3 import CarolusVecEnv
from carolus_env.files import write_json

PARTS = {
    "opponents_and_engine": "environment: opponents and engine",
    "masks_and_observations": "environment: masks and observations",
    "handing_over": "environment: handing over to SB3",
    "policy": "SB3: policy in the rollout",
    "update": "SB3: update",
    "rest": "SB3: buffer, mask stacking and the rest",
}
"""Where the time of a run with Carolus goes; the shares sum to 1."""


class EmptyVecEnv(CarolusVecEnv):
    """Same spaces, no cost: the same observations and masks for ever, no rewards, no ends.

    Args:
        rules: number of players and options.
        n: number of games that it seems to have.
        masked: True for masks of the game's first decisions, False for every action legal.
    """

    def __init__(self, rules: Rules, n: int, *, masked: bool) -> None:
        super().__init__(rules, n, seed=1)
        self._seen = super().reset()
        self._rewards, self._dones = np.zeros(n, np.float32), np.zeros(n, np.bool_)
        self._infos: list[dict[str, Any]] = [{} for _ in range(n)]
        self._rows = list(self.action_masks() if masked else np.ones((n, ACTIONS), np.int8))

    def reset(self) -> Any:
        return self._seen

    def step_wait(self) -> Any:
        return self._seen, self._rewards, self._dones, self._infos

    def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:
        return self._rows


class Learner:
    """MaskablePPO on one environment, and where its time goes.

    Attributes:
        seconds: spent so far in each watched part, and ``"all"``.
    """

    def __init__(
        self, env: CarolusVecEnv, size: int, batch: int, epochs: int, net: Sequence[int]
    ) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._size = size
        self._model = MaskablePPO(
            "MlpPolicy",
            env,
            n_steps=size // env.num_envs,
            batch_size=min(batch, size),
            n_epochs=epochs,
            policy_kwargs={"net_arch": list(net)},
            seed=1,
            device="cpu",
        )
        self._watch("opponents_and_engine", env.games, "step", "restart")
        self._watch("masks_and_observations", env.games, "masks", "observations")
        self._watch("environment", env, "step", "env_method")
        self._watch("policy", self._model.policy, "forward")
        self._watch("update", self._model, "train")

    def train(self, rollouts: int) -> float:
        """Play so many rollouts, update after each, and return the steps a second."""
        steps, started = rollouts * self._size, time.perf_counter()
        self._model.learn(steps, reset_num_timesteps=False)
        elapsed = time.perf_counter() - started
        self.seconds["all"] += elapsed
        return steps / elapsed

    def _watch(self, part: str, owner: Any, *methods: str) -> None:
        for method in methods:
            setattr(owner, method, self._timed(part, getattr(owner, method)))

    def _timed(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            result = method(*args, **kwargs)
            self.seconds[part] += time.perf_counter() - started
            return result

        return timed


def shares(seconds: dict[str, float]) -> dict[str, float]:
    """Each part's share of all the time; see `PARTS`."""
    inside = seconds["opponents_and_engine"] + seconds["masks_and_observations"]
    watched = seconds["environment"] + seconds["policy"] + seconds["update"]
    unwatched = {
        "handing_over": seconds["environment"] - inside,
        "rest": seconds["all"] - watched,
    }
    return {part: round({**seconds, **unwatched}[part] / seconds["all"], 4) for part in PARTS}


def spread(name: str, values: Sequence[float], digits: int | None = None) -> dict[str, float]:
    """Median, smallest and largest as entries of a row."""
    return {
        name: round(statistics.median(values), digits),
        f"{name}_min": round(min(values), digits),
        f"{name}_max": round(max(values), digits),
    }


def measure(
    games: int,
    players: int,
    opponents: str,
    *,
    net: Sequence[int] = (64, 64),
    size: int = 16_384,
    batch: int = 2048,
    epochs: int = 4,
    rollouts: int = 3,
    repeats: int = 3,
) -> dict[str, Any]:
    """One row: steps a second of both, the environment's share of the time, and the parts of it.

    Args:
        games: played side by side.
        players: 2, 3 or 4.
        opponents: spec string of the agent in all seats but the learner's.
        net: hidden layers, of the policy and of the value each.
        size: decisions in a rollout, in all games together.
        batch: decisions in a gradient step.
        epochs: passes over the rollout in an update.
        rollouts: in a window.
        repeats: windows of each environment, in turns.
    """
    rules = Rules(players)
    envs = {
        "carolus": CarolusVecEnv(rules, games, opponents, seed=1),
        "empty": EmptyVecEnv(rules, games, masked=True),
        "all_legal": EmptyVecEnv(rules, games, masked=False),
    }
    learners = {name: Learner(env, size, batch, epochs, net) for name, env in envs.items()}
    for learner in learners.values():  # the first rollout compiles, and fills torch's pools
        learner.train(1)
        learner.seconds.clear()
    rates: dict[str, list[float]] = {name: [] for name in learners}
    timed = []
    seconds = learners["carolus"].seconds
    for _ in range(repeats):
        before = dict(seconds)
        for name, learner in learners.items():
            rates[name].append(learner.train(rollouts))
        inside = seconds["environment"] - before.get("environment", 0)
        timed.append(inside / (seconds["all"] - before.get("all", 0)))
    pairs = zip(rates["carolus"], rates["empty"], strict=True)
    return {
        "games": games,
        "players": players,
        "opponents": opponents,
        "net": " ".join(map(str, net)),
        "rollout": size,
        "batch": min(batch, size),
        "epochs": epochs,
        "threads": torch.get_num_threads(),
        "rollouts": rollouts,
        "repeats": repeats,
        **spread("carolus_steps_per_s", rates["carolus"]),
        **spread("empty_steps_per_s", rates["empty"]),
        **spread("all_legal_steps_per_s", rates["all_legal"]),
        **spread("share", [1 - with_carolus / without for with_carolus, without in pairs], 4),
        **spread("timed_share", timed, 4),
        **shares(seconds),
    }


def show(row: dict[str, Any]) -> None:
    """Print a row of `measure`."""
    print(
        f"\n{row['games']} games, {row['players']} players, opponents {row['opponents']}, "
        f"net {row['net']}, rollout {row['rollout']}, batch {row['batch']}, "
        f"{row['epochs']} epochs, torch threads: {row['threads']}"
    )
    for key, text, form in (
        ("carolus_steps_per_s", "steps/s with Carolus", ",.0f"),
        ("empty_steps_per_s", "steps/s with the empty environment", ",.0f"),
        ("all_legal_steps_per_s", "steps/s with the empty one, all legal", ",.0f"),
        ("share", "environment's share, from the rates", ".1%"),
        ("timed_share", "environment's share, timed", ".1%"),
    ):
        low, high = row[f"{key}_min"], row[f"{key}_max"]
        print(f"{text:42}{row[key]:>10{form}}   ({low:{form}} to {high:{form}})")
    for part, text in PARTS.items():
        print(f"  {text:40}{row[part]:>10.1%}")
    sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    """Measure, print the tables, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", nargs="+", type=int, default=[1024])
    parser.add_argument("--players", nargs="+", type=int, choices=(2, 3, 4), default=[2])
    parser.add_argument("--opponents", nargs="+", metavar="SPEC", default=["random"])
    parser.add_argument("--net", nargs="+", type=int, default=[64, 64], help="hidden layers")
    parser.add_argument("--size", type=int, default=16_384, help="decisions in a rollout")
    parser.add_argument("--batch", type=int, default=2048, help="decisions in a gradient step")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--rollouts", type=int, default=3, help="in a window")
    parser.add_argument("--repeats", type=int, default=3, help="windows of each")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    for games in options.games:
        if games < 1 or options.size % games:
            parser.error(f"--size {options.size} is no multiple of --games {games}")
    torch.set_num_threads(options.threads)
    machine = line("torch", "stable-baselines3", "sb3-contrib")
    print(machine)
    rows = []
    for games, players, opponents in itertools.product(
        options.games, options.players, options.opponents
    ):
        row = measure(
            games,
            players,
            opponents,
            net=options.net,
            size=options.size,
            batch=options.batch,
            epochs=options.epochs,
            rollouts=options.rollouts,
            repeats=options.repeats,
        )
        show(row)
        rows.append({**row, "machine": machine})
    if options.json:
        write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
