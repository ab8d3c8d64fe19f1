"""Teach a model the planner's discs: ``python -m agents.fit_discs MODEL --out NAME``.

A disc decides the order and the reach of a whole round, and its result comes late, so of all
decisions PPO learns least from discs. The planner plays the round through for each disc. Here the
model plays against itself, with the planner's disc in half of the decisions. Then the layers that
choose discs, and no others, learn the planner's choices. ``train.py --start`` continues from there.
"""

from __future__ import annotations

import os

# Threads that spin while they wait slow everything else down; set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import tyro
from rich.progress import Progress, track
from torch.nn import functional

from carolus_env import engine
from carolus_env.bots import Agent, make
from carolus_env.bots.neural import network
from carolus_env.bots.neural.model import Model, find, save
from carolus_env.engine import observation
from carolus_env.engine.rules import DISC, DISCS, OVER, Rules, action_parts
from carolus_env.engine.streams import new_streams
from carolus_env.learners.single.player import TorchPlayer

LAYERS = ("disc", "reach")
"""Names of the weights that choose discs begin with these."""


@dataclass
class Options:
    """Teach a model the discs of another agent."""

    model: Annotated[Path, tyro.conf.Positional]
    """The model to start from."""
    out: Path
    """Where the new model is written."""
    teacher: str = "planner"
    """The agent whose discs are learnt, by spec."""
    positions: int = 60_000
    """How many choices of a disc to learn from."""
    games: int = 256
    """Games played side by side."""
    epochs: int = 8
    """Passes over the positions."""
    seed: int = 1
    """Seed of the games and of the order of learning."""


class Choices(NamedTuple):
    """Choices of a disc.

    Attributes:
        seen: ``(N, length)`` uint8 observations.
        legal: ``(N, 5)`` bool.
        discs: ``(N,)`` int64, the teacher's, from 0.
    """

    seen: npt.NDArray[np.uint8]
    legal: npt.NDArray[np.bool_]
    discs: npt.NDArray[np.int64]


def collect(model: Model, teacher: Agent, options: Options) -> Choices:
    """The discs that the teacher would choose in games of the model against itself."""
    rules, n = Rules(model.size.players), options.games
    player = TorchPlayer(model.weights, rules.players, temperature=1.0, device="cpu")
    random = np.random.default_rng(options.seed)
    states = engine.new_games(rules, n, seed=options.seed)
    streams, teachers = new_streams(options.seed, n), new_streams(options.seed + 1, n)
    batches: list[tuple[npt.NDArray[Any], ...]] = []
    found = 0
    with Progress() as progress:
        task = progress.add_task("playing", total=options.positions)
        while found < options.positions:
            actions = player.act(states, streams)
            rows = np.flatnonzero(states["phase"] == DISC)
            if len(rows):
                asked, masks = states[rows], engine.legal_masks(states[rows])
                own = teachers[rows]  # the teacher advances these streams
                wanted = np.asarray(teacher.act(asked, own), np.int64)
                teachers[rows] = own
                free = masks.sum(axis=1) > 1
                discs = [action_parts(action).number - 1 for action in wanted[free]]
                seen, legal = observation.observe(asked), masks[:, :DISCS] == 1
                batches.append((seen[free], legal[free], np.array(discs, np.int64)))
                actions[rows] = np.where(random.random(len(rows)) < 0.5, wanted, actions[rows])
                found += int(free.sum())
                progress.update(task, completed=found)
            engine.step(states, actions)
            over = np.flatnonzero(states["phase"] == OVER)
            if len(over):
                states[over] = engine.next_games(states[over])
    columns: list[Any] = [np.concatenate(one) for one in zip(*batches, strict=True)]
    return Choices(*columns)


def teach(model: Model, choices: Choices, options: Options) -> tuple[Model, float, float]:
    """Learn all choices but the last tenth, which is a test set.

    Returns:
        the taught model, and the share of the test set in which the likeliest disc is the
        teacher's, before and after.
    """
    weights = {name: torch.from_numpy(w.copy()) for name, w in model.weights.items()}
    taught = [weight for name, weight in weights.items() if name.startswith(LAYERS)]
    for weight in taught:
        weight.requires_grad_()
    total = len(choices.discs)
    count, size, rate = total * 9 // 10, 512, 1e-3
    optimizer = torch.optim.Adam(taught, lr=rate)

    def logits(rows: npt.NDArray[np.int64]) -> torch.Tensor:
        seen = torch.from_numpy(choices.seen[rows]).float()
        outputs, _ = network.forward(weights, seen, model.size.players, torch)
        return outputs[:, :DISCS].masked_fill(torch.from_numpy(~choices.legal[rows]), -1e9)

    @torch.no_grad()
    def agreement() -> float:
        rows = np.arange(count, total)
        same = logits(rows).argmax(dim=1).numpy() == choices.discs[rows]
        return float(same.mean())

    before, random = agreement(), np.random.default_rng(options.seed)
    orders = [random.permutation(count) for _ in range(options.epochs)]
    steps = [order[start : start + size] for order in orders for start in range(0, count, size)]
    for done, rows in enumerate(track(steps, "learning")):
        optimizer.param_groups[0]["lr"] = rate * (1 - done / len(steps))
        loss = functional.cross_entropy(logits(rows), torch.from_numpy(choices.discs[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    learnt = {name: weight.detach().numpy().copy() for name, weight in weights.items()}
    return Model(model.size, learnt, model.about), before, agreement()


def main(arguments: list[str] | None = None) -> int:
    """Play, teach, write the model, and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = tyro.cli(Options, args=arguments, description=__doc__, prog="agents.fit_discs")
    torch.set_num_threads(1)
    try:
        model, teacher = find(str(options.model)), make(options.teacher)
    except ValueError as error:
        print(f"fit_discs: {error}", file=sys.stderr)
        return 2
    choices = collect(model, teacher, options)
    taught, before, after = teach(model, choices, options)
    command = shlex.join(["python", "-m", "agents.fit_discs", *arguments])
    about = {**model.about, "command": f"{model.about.get('command', '')}; {command}"}
    save(Model(taught.size, taught.weights, about), options.out)
    print(
        f"{options.out}: {len(choices.discs):,} choices, agreement with the teacher "
        f"{100 * before:.1f} % before, {100 * after:.1f} % after"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
