"""Teach a model what a stronger, slower agent decides: ``python -m agents.imitate --help``.

    python -m agents.imitate runs/2p/best --teacher search:runs/2p/best,sims=64 --out runs/2p-taught
    python train.py --start runs/2p-taught ...   # PPO goes on from there

The teacher plays against itself; now and then the pupil's own choice is played instead, so that
the teacher is also asked what to do after the pupil's mistakes (Ross, Gordon and Bagnell, AISTATS
2011). Then the pupil learns the teacher's decisions and the games' results by heart. When the
teacher is a search with the pupil's own judgement, this is expert iteration (Anthony, Tian and
Barber, NeurIPS 2017).
"""

from __future__ import annotations

import os

# Threads that spin while they wait slow everything else down; set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import tyro
from rich.progress import track
from torch.nn import functional

from agents.ppo import TorchPlayer, from_side
from agents.training import commit, versions
from carolus_env import engine, network, observation
from carolus_env.bots import Agent, make
from carolus_env.bots.model import Model, load, save
from carolus_env.machine import machine
from carolus_env.rules import OVER, Rules
from carolus_env.state import pick
from carolus_env.streams import new_streams

_SEED = 3_000_000_019  # far from the seeds of training and evaluation


@dataclass
class Options:
    """Teach a model what another agent decides."""

    model: Annotated[Path, tyro.conf.Positional]
    """The pupil, a model to start from."""
    teacher: str
    """Who decides, by spec string."""
    out: Path
    """Where the taught model is written."""
    games: int = 1024
    """Games of the teacher against itself."""
    together: int = 256
    """Games played side by side."""
    own_choices: float = 0.1
    """Share of the decisions that the pupil's policy makes."""
    epochs: int = 4
    """Passes over the decisions."""
    batch: int = 1024
    """Decisions in a gradient step."""
    learning_rate: float = 5e-4
    """At the start; it falls linearly to nothing."""
    value_weight: float = 1.0
    """Weight of the results' loss; the decisions' is 1."""
    seed: int = 1
    """Of games and minibatches."""


class Lessons(NamedTuple):
    """What a teacher has decided, and how the games ended.

    Attributes:
        seen: ``(N, length)`` uint8 observations.
        masks: ``(N, 95)`` bool.
        actions: ``(N,)`` int64, the teacher's.
        parts: ``(N, teams)`` float32, each team's part of the win, the decider's first.
        game: ``(N,)`` int64, number of the game.
    """

    seen: npt.NDArray[np.uint8]
    masks: npt.NDArray[np.bool_]
    actions: npt.NDArray[np.int64]
    parts: npt.NDArray[np.float32]
    game: npt.NDArray[np.int64]


def watch(
    teacher: Agent, pupil: Agent, rules: Rules, games: int, *, own_choices: float, seed: int
) -> Lessons:
    """Games of the teacher against itself, all side by side.

    Args:
        teacher: is asked in every position.
        pupil: decides what is played in a share ``own_choices`` of them.
        rules: of the games.
        games: how many.
        own_choices: from 0 to 1.
        seed: of deals, dice and choices.
    """
    random = np.random.default_rng(seed)
    states = engine.new_games(rules, games, seed=seed)
    streams, others = new_streams(seed, games), new_streams(seed + 1, games)
    number = np.arange(games)
    parts = np.zeros((games, rules.teams), np.float32)
    noted: list[tuple[npt.NDArray[Any], ...]] = []
    while len(states):
        masks = engine.legal_masks(states)
        actions = np.asarray(teacher.act(states, streams), np.int64)
        sides = states["team"][np.arange(len(states)), states["player"]].astype(np.int64)
        choice = np.flatnonzero(masks.sum(axis=1) > 1)  # nothing is learnt from the others
        seen = observation.observe(states, rows=choice)
        noted.append((seen, masks[choice] == 1, actions[choice], sides[choice], number[choice]))
        own = np.flatnonzero(random.random(len(states)) < own_choices)
        if len(own):
            actions[own] = pupil.act(pick(states, own), others[number[own]])
        engine.step(states, actions)
        over = states["phase"] == OVER
        if over.any():
            payoffs = engine.returns(states[over])
            first = [int(np.argmax(states[0]["team"] == team)) for team in range(rules.teams)]
            parts[number[over]] = ((rules.teams - 1) * payoffs[:, first] + 1) / rules.teams
            states, streams, number = states[~over], streams[~over], number[~over]
    columns: list[Any] = [np.concatenate(one) for one in zip(*noted, strict=True)]
    seen, legal, decided, sides, game = columns
    return Lessons(seen, legal, decided, from_side(parts[game], sides), game)


def teach(pupil: Model, lessons: Lessons, options: Options) -> tuple[Model, dict[str, float]]:
    """Learn the lessons; every tenth game is kept apart to see how well it went.

    Returns:
        the taught model, and of the games kept apart, before and after: share of the teacher's
        decisions that the likeliest action is, and the mean log loss of the results.
    """
    torch.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    weights = {name: torch.from_numpy(w.copy()) for name, w in pupil.weights.items()}
    for weight in weights.values():
        weight.requires_grad_()
    apart = lessons.game % 10 == 9
    kept, learnt = np.flatnonzero(apart), np.flatnonzero(~apart)
    optimizer = torch.optim.Adam(list(weights.values()), lr=options.learning_rate, eps=1e-5)

    def judged(rows: npt.NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        seen = torch.from_numpy(lessons.seen[rows]).float()
        logits, scores = network.forward(weights, seen, pupil.size.players, torch)
        logits = logits.masked_fill(torch.from_numpy(~lessons.masks[rows]), -1e9)
        parts = torch.from_numpy(lessons.parts[rows])
        return (
            logits,
            torch.from_numpy(lessons.actions[rows]),
            -(parts * torch.log_softmax(scores, dim=1)).sum(dim=1),
        )

    @torch.no_grad()
    def examined() -> tuple[float, float]:
        same, off = 0.0, 0.0
        for start in range(0, len(kept), options.batch):
            logits, actions, losses = judged(kept[start : start + options.batch])
            same += float((logits.argmax(dim=1) == actions).sum())
            off += float(losses.sum())
        return same / max(len(kept), 1), off / max(len(kept), 1)

    before = examined()
    steps = [
        order[start : start + options.batch]
        for order in (random.permutation(learnt) for _ in range(options.epochs))
        for start in range(0, len(order), options.batch)
    ]
    for done, rows in enumerate(track(steps, "learning")):
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * (1 - done / len(steps))
        logits, actions, losses = judged(rows)
        loss = functional.cross_entropy(logits, actions) + options.value_weight * losses.mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 0.5)
        optimizer.step()
    after = examined()
    taught = {name: weight.detach().numpy().copy() for name, weight in weights.items()}
    found = {"same_before": before[0], "same_after": after[0],
             "loss_before": before[1], "loss_after": after[1]}  # fmt: skip
    return Model(pupil.size, taught, pupil.about), found


def main(arguments: list[str] | None = None) -> int:
    """Watch, teach, write the model, and return the exit code."""
    options = tyro.cli(Options, args=arguments, description=__doc__, prog="agents.imitate")
    torch.set_num_threads(1)
    started = time.perf_counter()
    try:
        first = load(options.model)
        teacher = make(options.teacher)
    except ValueError as error:
        print(f"imitate: {error}", file=sys.stderr)
        return 2
    pupil = TorchPlayer(first.weights, first.size.players, temperature=1.0, device="cpu")
    rules, lessons = Rules(first.size.players), []
    for start in track(range(0, options.games, options.together), "watching"):
        count = min(options.together, options.games - start)
        seed = _SEED * options.seed + start
        one = watch(teacher, pupil, rules, count, own_choices=options.own_choices, seed=seed)
        lessons.append(one._replace(game=one.game + start))
    together = Lessons(*(np.concatenate(part) for part in zip(*lessons, strict=True)))
    taught, found = teach(first, together, options)
    seconds = time.perf_counter() - started
    command = "python -m agents.imitate " + " ".join(arguments or sys.argv[1:])
    about = {
        **first.about,
        "command": f"{first.about.get('command', '')}; {command}",
        "decisions": int(first.about.get("decisions", 0)),
        "imitated": len(together.actions),
        "seconds": round(float(first.about.get("seconds", 0)) + seconds, 1),
        "machine": machine(),
        "commit": commit(),
        "versions": versions(),
    }
    save(Model(taught.size, taught.weights, about), options.out)
    print(
        f"{options.out}: {len(together.actions):,} decisions of {options.games} games; as the "
        f"teacher {100 * found['same_before']:.1f} % before, {100 * found['same_after']:.1f} % "
        f"after; log loss of the results {found['loss_before']:.4f}, {found['loss_after']:.4f}; "
        f"{seconds:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
