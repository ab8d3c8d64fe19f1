"""Teach a model which discs the planner plays: ``python -m agents.fit_discs MODEL --out NAME``.

A disc decides the order and the reach of a whole round, and its result comes late: of all decisions
it is the one from which PPO learns least. The planner plays the round through for each disc. Here
the model plays against itself, in half of the decisions with the planner's disc; then the layers
that answer discs, and no others, learn the planner's choices by heart. `train.py --start` goes on
from there.
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
from carolus_env.engine.rules import DISC, DISCS, FIRST_DISC, OVER, Rules
from carolus_env.engine.streams import new_streams
from carolus_env.learners.player import TorchPlayer

LAYERS = ("disc", "reach")
"""Names of the weights that answer discs begin like this."""


@dataclass
class Options:
    """Teach a model which discs another agent plays."""

    model: Annotated[Path, tyro.conf.Positional]
    """The model to start from."""
    out: Path
    """Where the taught one is written."""
    teacher: str = "planner"
    """Whose discs are learnt, by spec string."""
    positions: int = 60_000
    """Choices of a disc to learn from."""
    games: int = 256
    """Games played side by side."""
    epochs: int = 8
    """Passes over the positions."""
    seed: int = 1
    """Of games and order."""


class Choices(NamedTuple):
    """Choices of a disc.

    Attributes:
        seen: ``(N, length)`` uint8 observations.
        legal: ``(N, 5)`` bool.
        discs: ``(N,)`` int64, from 0, the teacher's.
    """

    seen: npt.NDArray[np.uint8]
    legal: npt.NDArray[np.bool_]
    discs: npt.NDArray[np.int64]


def watch(model: Model, teacher: Agent, options: Options) -> Choices:
    """What the teacher would play in games of the model against itself."""
    rules, n = Rules(model.size.players), options.games
    player = TorchPlayer(model.weights, rules.players, temperature=1.0, device="cpu")
    random = np.random.default_rng(options.seed)
    states = engine.new_games(rules, n, seed=options.seed)
    streams, teachers = new_streams(options.seed, n), new_streams(options.seed + 1, n)
    noted: list[tuple[npt.NDArray[Any], ...]] = []
    found = 0
    with Progress() as progress:
        task = progress.add_task("watching", total=options.positions)
        while found < options.positions:
            actions = player.act(states, streams)
            rows = np.flatnonzero(states["phase"] == DISC)
            if len(rows):
                asked, masks = states[rows], engine.legal_masks(states[rows])
                own = teachers[rows]
                wanted = np.asarray(teacher.act(asked, own), np.int64)
                teachers[rows] = own
                open_ones = masks.sum(axis=1) > 1
                seen, legal = observation.observe(asked), masks[:, :DISCS] == 1
                noted.append((seen[open_ones], legal[open_ones], wanted[open_ones] - FIRST_DISC))
                actions[rows] = np.where(random.random(len(rows)) < 0.5, wanted, actions[rows])
                found += int(open_ones.sum())
                progress.update(task, completed=found)
            engine.step(states, actions)
            over = np.flatnonzero(states["phase"] == OVER)
            if len(over):
                states[over] = engine.next_games(states[over])
    columns: list[Any] = [np.concatenate(one) for one in zip(*noted, strict=True)]
    return Choices(*columns)


def teach(model: Model, choices: Choices, options: Options) -> tuple[Model, float, float]:
    """Learn the choices; the last tenth is kept apart.

    Returns:
        the taught model, and the share of the choices kept apart in which the likeliest disc is
        the teacher's, before and after.
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
        answers, _ = network.forward(weights, seen, model.size.players, torch)
        return answers[:, :DISCS].masked_fill(torch.from_numpy(~choices.legal[rows]), -1e9)

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
    """Watch, teach, write the model, and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = tyro.cli(Options, args=arguments, description=__doc__, prog="agents.fit_discs")
    torch.set_num_threads(1)
    try:
        model, teacher = find(str(options.model)), make(options.teacher)
    except ValueError as error:
        print(f"fit_discs: {error}", file=sys.stderr)
        return 2
    choices = watch(model, teacher, options)
    taught, before, after = teach(model, choices, options)
    command = shlex.join(["python", "-m", "agents.fit_discs", *arguments])
    about = {**model.about, "command": f"{model.about.get('command', '')}; {command}"}
    save(Model(taught.size, taught.weights, about), options.out)
    print(
        f"{options.out}: {len(choices.discs):,} choices, the teacher's disc in "
        f"{100 * before:.1f} % before and {100 * after:.1f} % after"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
