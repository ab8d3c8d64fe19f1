"""Behaviour cloning: a network learns to play like an agent, from a data set of its games.

    carolus dataset planner --games 4000 --out data
    python clone_torch.py data
    carolus evaluate clone_torch.py:Trained greedy

Nothing is played while learning. The network learns the action of each decision, of every seat, by
cross-entropy over the legal actions. The last tenth of the games, not of the decisions, is held
out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import torch
except ModuleNotFoundError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'carolus-env[sb3]'") from None
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from carolus_env.engine import observation
from carolus_env.integrations.agents import DecisionAgent
from carolus_env.records.arrays import Arrays, load_arrays

WEIGHTS = Path("clone_torch.safetensors")
BATCH, PASSES, LEARNING_RATE = 1024, 3, 1e-3


def make_network(length: int) -> nn.Sequential:
    """Make a network with the logits of the 95 actions."""
    layers = [nn.Linear(length, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(256, 95))


def logits_of(network: nn.Module, observations: Any, masks: Any) -> Tensor:
    """Compute logits ``(N, 95)`` from observations and masks; the lowest where illegal."""
    logits: Tensor = network(torch.from_numpy(np.asarray(observations, np.float32)))
    return logits.masked_fill(torch.from_numpy(masks == 0), torch.finfo(logits.dtype).min)


def train(data: Arrays, players: int) -> nn.Module:
    """Fit a network, with a line for each pass over the data."""
    assert data.observations is not None and data.masks is not None
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    first = int(np.searchsorted(data.games, (data.games[-1] + 1) * 9 // 10))  # held out from here
    network = make_network(observation.length(players))
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    scales = observation.scales(players)
    for number in range(PASSES):
        for chosen in np.array_split(random.permutation(first), -(-first // BATCH)):
            rows = np.sort(chosen)  # the arrays are files
            logits = logits_of(network, data.observations[rows] * scales, data.masks[rows])
            actions = torch.from_numpy(data.actions[rows].astype(np.int64))
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits, actions).backward()
            optimizer.step()
        with torch.no_grad():
            held_out = data.observations[first:] * scales
            result = logits_of(network, held_out, data.masks[first:]).argmax(dim=1).numpy()
        same = (result == data.actions[first:]).mean()
        print(f"pass {number + 1}: {same:.1%} of {len(result):,} held-out actions", flush=True)
    return network


class Trained(DecisionAgent):
    """Plays the network's likeliest action."""

    def __init__(self) -> None:
        weights = load_file(WEIGHTS)
        entries = weights["0.weight"].shape[1]
        super().__init__(next(n for n in (2, 3, 4) if observation.length(n) == entries))
        self.network = make_network(entries)
        self.network.load_state_dict(weights)

    @torch.no_grad()
    def choose(
        self, observations: npt.NDArray[Any], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        chosen: npt.NDArray[np.int64]
        chosen = logits_of(self.network, observations, masks).argmax(dim=1).numpy()
        return chosen


def main(folder: str) -> None:
    """Learn from a folder of `carolus dataset`, and save the weights."""
    data = load_arrays(folder)
    if data.observations is None or data.observations.dtype != np.uint8:
        raise SystemExit(f"{folder}: uint8 observations are needed")
    players = int(data.seats.max()) + 1
    save_file(train(data, players).state_dict(), WEIGHTS)
    print(f"saved: {WEIGHTS}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
