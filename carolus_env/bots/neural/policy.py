"""``ppo`` plays by the policy of a trained network; it does not need PyTorch.

Models are files (`bots.neural.model`): your own, or ``2p``, ``3p`` and ``4p`` of the package.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent, AgentError, Opinion, drawn
from carolus_env.bots.neural import model
from carolus_env.bots.neural.inference import Net
from carolus_env.bots.neural.model import Model
from carolus_env.bots.options import Options, check, option, parse
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
        self._networks = Networks(policy)

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


class Networks:
    """Networks by number of players: of one model, or the package's, read when needed."""

    def __init__(self, policy: Model | None) -> None:
        self._fixed = policy is not None
        self._nets: dict[int, Net] = {}
        if policy is not None:
            self._nets[policy.size.players] = Net(policy.size, policy.weights)

    def of(self, name: str, players: int) -> Net:
        """The network for games of ``players`` players.

        Args:
            name: the agent's name, for the error.
            players: 2, 3 or 4.

        Raises:
            AgentError: when the one model is for another number of players.
        """
        if players not in self._nets:
            if self._fixed:
                [trained] = self._nets
                raise AgentError(name, f"has a model for {trained} players, not for {players}")
            policy = model.shipped(players)
            self._nets[players] = Net(policy.size, policy.weights)
        return self._nets[players]


# ------------------------------------------------------------------------------------ specs


def make_policy(argument: str) -> Agent:
    """``ppo:ARGUMENT``: ``2p``, a path or nothing, then options, all separated by commas."""
    policy, options = parsed("ppo", argument, PolicyOptions)
    return PolicyAgent(policy, options)


def parsed(name: str, argument: str, kind: type[Options]) -> tuple[Model | None, Options]:
    """The model named before the options, None if there is none, and the options.

    Raises:
        AgentError: for a wrong option.
        ModelError: for a model that is missing or does not fit.
    """
    first, _, rest = argument.partition(",")
    key, equals, _ = first.partition("=")
    if not first or (equals and key.strip().isidentifier()):
        return None, parse(name, kind, argument)
    options = parse(name, kind, rest)
    return model.find(first), options
