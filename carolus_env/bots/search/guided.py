"""``search``: the tree search of ``mcts`` with a trained network as its judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent
from carolus_env.bots.model_files import parsed
from carolus_env.bots.neural import model
from carolus_env.bots.neural.inference import Net
from carolus_env.bots.neural.model import Model
from carolus_env.bots.neural.policy import networks
from carolus_env.bots.options import check
from carolus_env.bots.search.mcts import Judge, MctsBot, TreeOptions
from carolus_env.engine.state import States, as_states, common_players


@dataclass(frozen=True)
class SearchOptions(TreeOptions):
    """How ``search`` searches: like ``mcts``, but the network values new positions.

    Where a turn begins, the network values the position after the planner's best plan, and the
    choices and their priors are the planner's. The network's policy is the prior of discs and
    crowns; with ``moves="single"``, of every choice.

    Raises:
        AgentError: for a value that is not allowed, with the option and its allowed values.
    """

    def __post_init__(self) -> None:
        check("search", self)


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


def make_search(argument: str) -> Agent:
    """``search:ARGUMENT``: a model's name or path or nothing, then options, separated by commas."""
    policy, options = parsed("search", argument, SearchOptions, model.find)
    name = f"search:{argument}" if argument else "search"
    return MctsBot(options, judge=NetworkJudge(policy, name=name))
