"""``decisions`` plays a policy over single decisions (`networks.decisions`), with NumPy alone.

Models are files: your own, which `train.py --learner sb3` and `examples/ppo_torch.py` train, or
``2p``, ``3p`` and ``4p`` of the package.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent, AgentError, Opinion
from carolus_env.bots.models import path_of
from carolus_env.engine import legal_masks
from carolus_env.engine.observation import observe
from carolus_env.engine.rules import ACTIONS, TEAMS
from carolus_env.engine.state import States, as_states, common_players
from carolus_env.engine.streams import check_streams
from carolus_env.networks.decisions import DecisionModel, forward, softmax


class DecisionsBot(Agent):
    """Plays the likeliest legal action."""

    name = "decisions"

    def __init__(self, model: DecisionModel | None = None) -> None:
        self._only = model

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        players = as_states(states)["players"]
        check_streams(generators, states)
        actions = np.zeros(len(states), np.int64)
        for count in np.unique(players).tolist():
            actions[players == count] = self._answer(states[players == count])[0].argmax(axis=1)
        return actions

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return the policy, and win probabilities from what it expects each seat to be paid."""
        players = common_players(states, "opinions")
        logits, values = (answer.astype(np.float64) for answer in self._answer(states))
        each, teams = np.arange(len(states))[:, None], TEAMS[players]
        payoffs = np.zeros((len(states), teams))  # of partners the same
        seats = (states["player"][:, None] + np.arange(players)) % players
        payoffs[each, states["team"][each, seats]] = values
        shares = np.maximum((teams - 1) * payoffs + 1, 1e-6)
        return Opinion(softmax(logits, np), shares / shares.sum(axis=1, keepdims=True))

    def _model(self, players: int) -> DecisionModel:
        """Return the model for a number of players."""
        if self._only is None:
            return _of_the_package(players)
        if self._only.size.players != players:
            raise AgentError(
                self.name, f"has a model for {self._only.size.players} players, not for {players}"
            )
        return self._only

    def _answer(self, states: States) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return logits, those of illegal actions minus infinity, and values."""
        if len(states) == 0:
            return np.zeros((0, ACTIONS), np.float32), np.zeros((0, 2), np.float32)
        players = int(states["players"][0])
        weights = self._model(players).weights
        logits, values = forward(weights, observe(states).astype(np.float32), players, np)
        return np.where(legal_masks(states) == 1, logits, -np.inf), values


@cache
def _of_the_package(players: int) -> DecisionModel:
    return load(f"{players}p")


def load(name: str) -> DecisionModel:
    """Read a model by its name or path."""
    return DecisionModel.load(path_of("decisions", name))
