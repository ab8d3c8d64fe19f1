"""``ppo`` plays what a trained network says; ``search`` searches with the same network's judgement.

Both run on NumPy. Models come as files (`carolus_env.bots.model`): those of the package, ``2p``,
``3p`` and ``4p``, or one's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine, network, observation
from carolus_env.bots import model
from carolus_env.bots.agent import Agent, uniforms
from carolus_env.bots.mcts import Judge, MctsBot, MctsOptions
from carolus_env.bots.model import Model
from carolus_env.bots.options import Options, check, option, parse
from carolus_env.rules import ACTIONS, TEAMS
from carolus_env.state import States, as_states, common_players
from carolus_env.streams import check_streams

SHIPPED: Final = {"2p": 2, "3p": 3, "4p": 4}
_PORTION: Final = 1024  # positions at a time: what lies between the layers stays in the cache


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
    """How ``search`` searches: the options of ``mcts``."""

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
        logits = np.zeros((len(states), ACTIONS))
        for players in np.unique(states["players"]).tolist():
            rows = np.flatnonzero(states["players"] == players)
            logits[rows] = self._networks.answers(self.name, states[rows], players)[0]
        legal = engine.legal_masks(states) == 1
        logits[~legal] = -np.inf
        if self.options.temperature == 0:
            return logits.argmax(axis=1)
        heights = np.exp(log_softmax(logits / self.options.temperature)).cumsum(axis=1)
        drawn = uniforms(generators) * heights[:, -1]
        return (heights <= drawn[:, None]).sum(axis=1)


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
        players = common_players(states, "judgements")
        logits, scores = self._networks.answers(self.name, states, players)
        policy = np.where(engine.legal_masks(states) == 1, logits, -np.inf)
        teams = TEAMS[players]
        own = states["team"][np.arange(len(states)), states["player"]].astype(np.int64)
        places = (np.arange(teams) - own[:, None]) % teams  # scores are counted from the own team
        chances = np.take_along_axis(np.exp(log_softmax(scores)), places, 1)
        return log_softmax(policy), chances


class _Networks:
    """One model, or the shipped ones as they are needed."""

    def __init__(self, policy: Model | None) -> None:
        self._fixed = policy is not None
        self._models = {} if policy is None else {policy.size.players: policy}

    def answers(
        self, name: str, states: States, players: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Logits ``(N, 95)`` and scores ``(N, teams)``, the deciding player's team first."""
        if players not in self._models:
            if self._fixed:
                [own] = self._models
                raise ValueError(f"agent {name!r} has a model for {own} players, not for {players}")
            self._models[players] = model.shipped(players)
        weights = self._models[players].weights
        logits, scores = np.empty((len(states), ACTIONS)), np.empty((len(states), TEAMS[players]))
        for start in range(0, len(states), _PORTION):
            rows = slice(start, start + _PORTION)
            seen = observation.observe(states[rows]).astype(np.float32)
            logits[rows], scores[rows] = network.forward(weights, seen, players, np)
        return logits, scores


def log_softmax(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Log probabilities along the last axis; minus infinity is a probability of 0."""
    less = x - x.max(axis=-1, keepdims=True)
    return less - np.log(np.exp(less).sum(axis=-1, keepdims=True))


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
    found = model.shipped(SHIPPED[first]) if first in SHIPPED else model.load(first)
    return found, options
