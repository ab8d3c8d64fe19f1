"""Behaviour cloning in one file: a network learns to play like an agent, from its games alone.

    carolus dataset planner --games 4000 --out data
    python examples/clone_torch.py data

The data are those of `carolus dataset`: nothing is played while learning. The network learns the
likeliest action at each decision of every seat, by cross-entropy over the legal actions. Games of a
deal share their dice, so the last tenth of the games, not of the decisions, is held out. At the end
the network plays against bots.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import tyro
from torch import Tensor, nn

from carolus_env import arena
from carolus_env.bots import Agent
from carolus_env.engine import legal_masks, observation
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import States
from carolus_env.records.arrays import Arrays, load_arrays


@dataclass
class Args:
    """Behaviour cloning, with PyTorch alone."""

    data: tyro.conf.Positional[Path]
    """A folder of `carolus dataset`, with uint8 observations and masks."""
    epochs: int = 3
    """Passes over the decisions."""
    batch: int = 1024
    """Decisions in a gradient step."""
    learning_rate: float = 1e-3
    """Of Adam; it falls linearly to 0."""
    hidden: int = 256
    """Units in each of the two hidden layers."""
    seed: int = 1
    """Of the network and the order of the decisions."""
    games: int = 200
    """Against each opponent at the end."""
    opponents: tuple[str, ...] = ("random", "greedy")
    """Whom the network plays against at the end."""


class Cloned(nn.Module):
    """Logits of the 95 actions, those of illegal ones very low."""

    scales: Tensor

    def __init__(self, players: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("scales", torch.from_numpy(observation.scales(players)))
        self.layers = nn.Sequential(
            nn.Linear(observation.length(players), hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 95),
        )

    def forward(self, seen: Tensor, masks: Tensor) -> Tensor:
        """``(N, length)`` uint8 and ``(N, 95)`` int8 to ``(N, 95)`` logits."""
        logits: Tensor = self.layers(seen * self.scales)
        return logits.masked_fill(masks == 0, -1e9)


class Player(Agent):
    """Plays the network's likeliest action."""

    name = "clone"

    def __init__(self, network: Cloned) -> None:
        self.network = network

    @torch.no_grad()
    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        seen = observation.observe(states, states["player"].astype(np.int64), dtype=np.uint8)
        logits = self.network(torch.from_numpy(seen), torch.from_numpy(legal_masks(states)))
        chosen: npt.NDArray[np.int64] = logits.argmax(dim=1).numpy()
        return chosen


def rows(data: Arrays, chosen: npt.NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
    """Observations, masks and actions of some decisions."""
    assert data.observations is not None and data.masks is not None
    seen, masks = data.observations[chosen], data.masks[chosen]
    actions = data.actions[chosen].astype(np.int64)
    return torch.from_numpy(seen), torch.from_numpy(masks), torch.from_numpy(actions)


def train(data: Arrays, players: int, args: Args) -> Cloned:
    """Fit the network, with a line for each pass over the data."""
    random = np.random.default_rng(args.seed)
    split = np.searchsorted(data.games, (data.games[-1] + 1) * 9 // 10)
    held_out = np.arange(split, len(data.games))
    network = Cloned(players, args.hidden)
    optimizer = torch.optim.Adam(network.parameters(), args.learning_rate)
    steps = args.epochs * -(-split // args.batch)
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for epoch in range(args.epochs):
        order = random.permutation(split)
        for start in range(0, split, args.batch):
            seen, masks, actions = rows(data, np.sort(order[start : start + args.batch]))
            loss = nn.functional.cross_entropy(network(seen, masks), actions)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            falling.step()
        with torch.no_grad():
            seen, masks, actions = rows(data, held_out)
            same = (network(seen, masks).argmax(dim=1) == actions).float().mean().item()
        print(f"pass {epoch + 1}: {same:.1%} of {len(held_out):,} held-out actions", flush=True)
    return network


def main(args: Args) -> None:
    """Learn, then play."""
    torch.manual_seed(args.seed)
    data = load_arrays(args.data)
    if data.observations is None or data.observations.dtype != np.uint8 or data.masks is None:
        raise SystemExit(f"{args.data}: uint8 observations and masks are needed")
    players = np.load(args.data / "tables.npy", allow_pickle=False).shape[1]
    agent = Player(train(data, players, args))
    for opponent in args.opponents:
        found = arena.play_pairing((agent, opponent), Rules(players), args.games, seed=args.seed)
        low, high = found.ci95[0]
        print(f"against {opponent}: {found.win_rate[0]:.1%} (95 %: {low:.1%} to {high:.1%})")


if __name__ == "__main__":
    main(tyro.cli(Args))
