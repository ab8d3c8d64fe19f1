"""What values positions for the search in place of the evaluation: networks, or your own judge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from carolus_env.bots.model_files import ByPlayers
from carolus_env.bots.neural.inference import Net
from carolus_env.bots.neural.model import Model
from carolus_env.bots.neural.policy import networks
from carolus_env.bots.value import model as value_model
from carolus_env.bots.value.inference import ValueNet, ValueWeights, values
from carolus_env.bots.value.model import ValueModel
from carolus_env.engine.state import States, as_states, common_players


class Judge(ABC):
    """Values positions instead of the evaluation: for example a learned policy and value."""

    @abstractmethod
    def judge(
        self, states: States
    ) -> tuple[npt.NDArray[np.floating[Any]], npt.NDArray[np.floating[Any]]]:
        """Value games that wait for a decision.

        Where a whole turn is to be planned, a search asks about the position after the turn's best
        plan (by the evaluation) and the dice that follow, else about the position itself.

        Args:
            states: ``(N,)`` games of one number of players. Must not be changed.

        Returns:
            ``(N, 95)``: log probabilities of the actions; those of illegal actions are ignored.
            ``(N, teams)``: each team's expected share of the win; rows sum to 1.
        """

    def net(self, players: int) -> Net | None:
        """The network for ``players`` players, if `judge` does nothing but ask it.

        A search then asks it inside the kernel. None: the search calls `judge`.
        """
        return None


class NetworkJudge(Judge):
    """A network's policy and value, for `MctsBot`.

    Args:
        policy: the model, see `PolicyAgent`.
        name: the agent's name, for errors.
    """

    def __init__(self, policy: Model | None = None, *, name: str = "search") -> None:
        self.name = name
        self._networks = networks(policy)

    def judge(self, states: States) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """See `Judge`; the games must have one number of players.

        Raises:
            AgentError: for games of another number of players than the model was trained for.
        """
        return self.net(common_players(as_states(states), "judgements")).judge(states)

    def net(self, players: int) -> Net:
        return self._networks.of(self.name, players)


class ValueJudge:
    """A value network, for `MctsBot`: it is asked about the position after each choice.

    Args:
        value: the model, see `ValueBot`.
        name: the agent's name, for errors.
    """

    def __init__(self, value: ValueModel | None = None, *, name: str = "search") -> None:
        self.name = name
        self._weights = ByPlayers(
            value, value_model.shipped, lambda found: ValueWeights.of(found.weights)
        )

    def values(self, states: States) -> npt.NDArray[np.float64]:
        """Each team's expected share of the win: ``(N, teams)``; rows sum to 1.

        Raises:
            AgentError: for games of another number of players than the model was trained for.
        """
        players = common_players(as_states(states), "values")
        return values(states, self._weights.of(self.name, players))

    def net(self, players: int) -> ValueNet:
        """The network for ``players`` players, with scratch of its own."""
        return ValueNet.of(players, self._weights.of(self.name, players))
