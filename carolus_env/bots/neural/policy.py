"""``ppo`` plays by the policy of a trained network; it does not need PyTorch.

Models are files (`bots.neural.model`): your own, or the package's first ones, which ``v1`` names,
for any number of players.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent, Opinion, drawn
from carolus_env.bots.model_files import ByPlayers, parsed
from carolus_env.bots.neural import model
from carolus_env.bots.neural.inference import Net
from carolus_env.bots.neural.model import V1, Model
from carolus_env.bots.options import check, option
from carolus_env.engine.rules import ACTIONS
from carolus_env.engine.state import States, as_states, common_players
from carolus_env.engine.streams import check_streams


@dataclass(frozen=True)
class PolicyOptions:
    """How `PolicyAgent` plays.

    Raises:
        AgentError: for a value that is not allowed, with the option and its allowed values.
    """

    temperature: float = option(
        0.0,
        "0: the likeliest action; 1: drawn from the policy; higher: flatter",
        among=(0, 100),
    )

    def __post_init__(self) -> None:
        check("ppo", self)


class PolicyAgent(Agent):
    """Plays by a network's policy.

    Args:
        policy: a model, for games of ``policy.size.players`` players; None: the models of the
            package, each read when it is first needed.
        options: see `PolicyOptions`.
    """

    name = "ppo"

    def __init__(self, policy: Model | None = None, options: PolicyOptions | None = None) -> None:
        self.options = options or PolicyOptions()
        self._networks = networks(policy)

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Choose one legal action for each game; of equally likely ones the lowest.

        Raises:
            AgentError: for games of another number of players than the model was trained for.
        """
        as_states(states)
        check_streams(generators, states)
        log_policy = np.zeros((len(states), ACTIONS))
        for players in np.unique(states["players"]).tolist():
            rows = np.flatnonzero(states["players"] == players)
            log_policy[rows], _ = self._networks.of(self.name, players).judge(states[rows])
        if self.options.temperature == 0:
            return log_policy.argmax(axis=1)
        log_policy -= log_policy.max(axis=1, keepdims=True)
        with np.errstate(over="ignore"):  # minus infinity near temperature 0
            weights = np.exp(log_policy / self.options.temperature)
        return drawn(weights, generators)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """The network's policy, regardless of the temperature, and its values."""
        net = self._networks.of(self.name, common_players(states, "opinions"))
        policy, values = net.judge(states)
        return Opinion(np.exp(policy), values)


def networks(policy: Model | None) -> ByPlayers[Model, Net]:
    """The network of one model, or those of the package's models."""
    return ByPlayers(policy, model.shipped, lambda found: Net(found.size, found.weights))


# ------------------------------------------------------------------------------------ specs


def find(name: str) -> Model | None:
    """The model that a spec names: `V1`, one of `NAMES`, or a path; None: the package's models.

    Raises:
        ModelError: see `model.find`.
    """
    return None if name == V1 else model.find(name)


def make_policy(argument: str) -> Agent:
    """``ppo:ARGUMENT``: ``v1`` or a path, then options, separated by commas."""
    policy, options = parsed("ppo", argument, PolicyOptions, find)
    return PolicyAgent(policy, options)
