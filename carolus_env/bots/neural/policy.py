"""``ppo`` plays what a trained network says.

It needs no torch. Models come as files (`bots.neural.model`): those of the package, ``2p``,
``3p`` and ``4p``, or one's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent, Opinion, drawn
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
        ValueError: for a value that is not allowed, naming the option and what is.
    """

    temperature: float = option(
        0.0, "0: the likeliest action; 1: drawn by the policy; higher: more alike", among=(0, 100)
    )

    def __post_init__(self) -> None:
        check("ppo", self)


class PolicyAgent(Agent):
    """Plays what a network says.

    Args:
        policy: for games of ``policy.size.players`` players; None: the models of the package,
            read when games of their numbers of players come.
        options: see `PolicyOptions`.
    """

    name = "ppo"

    def __init__(self, policy: Model | None = None, options: PolicyOptions | None = None) -> None:
        self.options = options or PolicyOptions()
        self._networks = Networks(policy)

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """One legal action for each game; of equally likely ones the lowest.

        Raises:
            ValueError: for games of another number of players than the model was trained for.
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
        with np.errstate(over="ignore"):  # near 0 all but the likeliest go to minus infinity
            weights = np.exp(log_policy / self.options.temperature)
        return drawn(weights, generators)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """The network's policy, whatever the temperature, and its values."""
        net = self._networks.of(self.name, common_players(states, "opinions"))
        policy, values = net.judge(states)
        return Opinion(np.exp(policy), values)


class Networks:
    """Networks by number of players: one model's, or those of the package as they are needed."""

    def __init__(self, policy: Model | None) -> None:
        self._fixed = policy is not None
        self._nets: dict[int, Net] = {}
        if policy is not None:
            self._nets[policy.size.players] = Net(policy.size, policy.weights)

    def of(self, name: str, players: int) -> Net:
        """The network for so many players; ``name`` is how an error calls the agent."""
        if players not in self._nets:
            if self._fixed:
                [own] = self._nets
                raise ValueError(f"agent {name!r} has a model for {own} players, not for {players}")
            policy = model.shipped(players)
            self._nets[players] = Net(policy.size, policy.weights)
        return self._nets[players]


# ------------------------------------------------------------------------------------ specs


def make_policy(argument: str) -> Agent:
    """``ppo:ARGUMENT``: ``2p``, a path or nothing, then options, all divided by commas."""
    policy, options = parsed("ppo", argument, PolicyOptions)
    return PolicyAgent(policy, options)


def parsed(name: str, argument: str, kind: type[Options]) -> tuple[Model | None, Options]:
    """The model that is named before the options, if any, and the options.

    Raises:
        ValueError: for a wrong option.
        ModelError: for a model that is not there or does not fit.
    """
    first, _, rest = argument.partition(",")
    key, equals, _ = first.partition("=")
    if not first or (equals and key.strip().isidentifier()):
        return None, parse(name, kind, argument)
    options = parse(name, kind, rest)
    return model.find(first), options
