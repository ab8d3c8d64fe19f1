"""``decisions`` plays a policy over single decisions (`networks.decisions`), with NumPy alone.

`train.py --learner sb3` and `examples/ppo_torch.py` train such networks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent, AgentError, Opinion
from carolus_env.engine import legal_masks
from carolus_env.engine.observation import observe
from carolus_env.engine.rules import ACTIONS, TEAMS
from carolus_env.engine.state import States
from carolus_env.networks.decisions import DecisionModel, forward


class DecisionsBot(Agent):
    """Plays the likeliest legal action.

    Args:
        model: the network.
    """

    name = "decisions"

    def __init__(self, model: DecisionModel) -> None:
        self.model = model

    def act(
        self, states: States, generators: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.integer[Any]]:
        """See `Agent.act`.

        Raises:
            AgentError: for games of another number of players.
        """
        return self._forward(states)[0].argmax(axis=1)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return the policy, and win probabilities from what it expects each seat to be paid."""
        logits, values = (answer.astype(np.float64) for answer in self._forward(states))
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        players, each = self.model.size.players, np.arange(len(states))[:, None]
        teams = TEAMS[players]
        payoffs = np.zeros((len(states), teams))  # of partners the same
        seats = (states["player"][:, None] + np.arange(players)) % players
        payoffs[each, states["team"][each, seats]] = values
        shares = np.maximum((teams - 1) * payoffs + 1, 1e-6)
        return Opinion(
            odds / odds.sum(axis=1, keepdims=True), shares / shares.sum(axis=1, keepdims=True)
        )

    def _forward(self, states: States) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return logits, those of illegal actions minus infinity, and values."""
        model, players = self.model, self.model.size.players
        if others := sorted({*np.unique(states["players"]).tolist()} - {players}):
            raise AgentError(self.name, f"has a model for {players} players, not for {others[0]}")
        if len(states) == 0:
            return np.zeros((0, ACTIONS), np.float32), np.zeros((0, players), np.float32)
        observations = observe(states).astype(np.float32)
        logits, values = forward(model.weights, observations, players, np)
        return np.where(legal_masks(states) == 1, logits, -np.inf), values


def make_decisions(argument: str) -> Agent:
    """Make the agent of ``decisions:PATH``.

    Raises:
        AgentError: without a path.
        ModelError: for a model that cannot be read or does not fit.
    """
    if not argument:
        raise AgentError("decisions", "needs the path of a model, as in decisions:runs/mine/best")
    return DecisionsBot(DecisionModel.load(argument))
