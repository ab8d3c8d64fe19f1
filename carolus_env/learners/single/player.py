"""An agent that plays with PyTorch: quick on the large batches of training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch

from carolus_env import engine
from carolus_env.bots import Agent, drawn
from carolus_env.bots.neural import network
from carolus_env.engine import observation
from carolus_env.engine.state import States
from carolus_env.learners.single.policy import ILLEGAL_LOGIT


class TorchPlayer(Agent):
    """Plays a network's policy.

    Args:
        weights: of a network for games of ``players``.
        players: 2, 3 or 4.
        temperature: 0 takes the likeliest action; 1 draws from the policy.
        device: where the network runs.
    """

    name = "network"

    def __init__(
        self,
        weights: Mapping[str, npt.NDArray[np.float32]],
        players: int,
        *,
        temperature: float,
        device: str | torch.device,
    ) -> None:
        self._weights = {name: torch.from_numpy(w).to(device) for name, w in weights.items()}
        self._players, self._temperature, self._device = players, temperature, device

    @torch.no_grad()
    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """One legal action for each game."""
        seen = torch.from_numpy(observation.observe(states)).to(self._device).float()
        legal = torch.from_numpy(engine.legal_masks(states)).to(self._device).bool()
        logits, _ = network.forward(self._weights, seen, self._players, torch)
        logits = logits.masked_fill(~legal, ILLEGAL_LOGIT)
        if self._temperature == 0:
            return logits.argmax(dim=1).cpu().numpy()
        policy = torch.softmax(logits.double() / self._temperature, dim=1).cpu().numpy()
        return drawn(policy, generators)
