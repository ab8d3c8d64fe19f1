"""``ppo`` plays what a trained network says; ``search`` searches with the same network's judgement.

Neither needs torch. Models come as files (`carolus_env.bots.model`): those of the package, ``2p``,
``3p`` and ``4p``, or one's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from carolus_env.bots import model
from carolus_env.bots.agent import Agent, Opinion, drawn
from carolus_env.bots.inference import Net
from carolus_env.bots.mcts import Judge, MctsBot, MctsOptions
from carolus_env.bots.model import Model
from carolus_env.bots.options import Options, check, option, parse
from carolus_env.rules import ACTIONS
from carolus_env.state import States, as_states, common_players
from carolus_env.streams import check_streams


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


@dataclass(frozen=True)
class SearchOptions(MctsOptions):
    """How ``search`` searches: as ``mcts`` does, but the network values new positions.

    At the start of a turn that is the position after the planner's best plan, and whole turns have
    the planner's list and prior; the network's policy is the prior of discs and crowns. With
    ``moves="single"`` it is the prior of every choice.
    """

    leaf: str = option("network", "value of a new position", among=("network",))

    def __post_init__(self) -> None:
        check("search", self)


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
        self._networks = _Networks(policy)

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


class NetworkJudge(Judge):
    """A network's policy and value, for `MctsBot`.

    Args:
        policy: see `PolicyAgent`.
        name: how errors call it.
    """

    def __init__(self, policy: Model | None = None, *, name: str = "search") -> None:
        self.name = name
        self._networks = _Networks(policy)

    def judge(self, states: States) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """See `Judge`; games of one number of players.

        Raises:
            ValueError: for games of another number of players than the model was trained for.
        """
        return self.net(common_players(as_states(states), "judgements")).judge(states)

    def net(self, players: int) -> Net:
        return self._networks.of(self.name, players)


class _Networks:
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
    policy, options = _parsed("ppo", argument, PolicyOptions)
    return PolicyAgent(policy, options)


def make_search(argument: str) -> Agent:
    """``search:ARGUMENT``, in the same way."""
    policy, options = _parsed("search", argument, SearchOptions)
    name = f"search:{argument}" if argument else "search"
    return MctsBot(options, judge=NetworkJudge(policy, name=name))


def _parsed(name: str, argument: str, kind: type[Options]) -> tuple[Model | None, Options]:
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
