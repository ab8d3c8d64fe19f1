"""``search``: the tree search of ``mcts`` with a trained network as its judge.

The network is a value network (`bots.value`), which values the position after each choice, before
the dice; or a policy with a value (`bots.neural`). A model's file says which it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from carolus_env.bots.agent import Agent
from carolus_env.bots.model_files import NAMES, format_of, parsed, split
from carolus_env.bots.neural import model, policy
from carolus_env.bots.options import check, option
from carolus_env.bots.search.forest import CROWNS, Settings
from carolus_env.bots.search.judges import NetworkJudge, ValueJudge
from carolus_env.bots.search.mcts import MctsBot, TreeOptions, root_width
from carolus_env.bots.value import model as value_model

AUTO: Final = "auto"
_WIDE: Final = 32  # plans of a later turn
_NARROW: Final = 12  # the same where the clock ends the search: half as many simulations more


@dataclass(frozen=True)
class SearchOptions(TreeOptions):
    """How ``search`` searches with a policy: like ``mcts``, but the network values new positions.

    Where a turn begins, the network values the position after the planner's best plan, and the
    choices and their priors are the planner's. The network's policy is the prior of discs and
    crowns; with ``moves="single"``, of every choice.

    Raises:
        AgentError: for a value that is not allowed, with the option and its allowed values.
    """

    def __post_init__(self) -> None:
        check("search", self)


@dataclass(frozen=True)
class ValueSearchOptions(TreeOptions):
    """How ``search`` searches with a value network: it values the position after each choice.

    The planner only lists the plans of a turn. Priors are the softmax of the values, as log odds.
    Where the clock ends a search, ``width`` and ``crowns`` have defaults that make more of a
    second. With a number of simulations they stay as they were: rungs of the ladder play so.

    Raises:
        AgentError: for a value that is not allowed, with the option and its allowed values.
    """

    width: int = option(
        0,
        "most plans considered in a later turn, the best ones; 0: 32, or 12 with `seconds`",
        among=(0, 4096),
    )
    root_width: int = root_width(128)
    crowns: str = option(
        AUTO,
        "what chooses crowns inside the tree: the evaluation or the network; auto: planner, or "
        "value with `seconds`",
        among=(AUTO, *CROWNS),
    )

    def __post_init__(self) -> None:
        check("search", self)

    def settings(self, leaf: int) -> Settings:
        timed = self.seconds > 0
        width = self.width or (_NARROW if timed else _WIDE)
        crowns = CROWNS[timed] if self.crowns == AUTO else self.crowns
        found = TreeOptions.settings(replace(self, width=width), leaf)
        return found._replace(crowns=CROWNS.index(crowns))


def make_search(argument: str) -> Agent:
    """``search:ARGUMENT``: a model's name or path or nothing, then options, separated by commas."""
    name = f"search:{argument}" if argument else "search"
    if _has_policy(split(argument)[0]):
        found, options = parsed("search", argument, SearchOptions, policy.find)
        return MctsBot(options, judge=NetworkJudge(found, name=name))
    value, value_options = parsed("search", argument, ValueSearchOptions, value_model.find)
    return MctsBot(value_options, judge=ValueJudge(value, name=name))


def _has_policy(name: str) -> bool:
    """Whether the model of that name or path is a policy; else it is a value network."""
    if not name or name in NAMES:
        return False
    return name == model.V1 or format_of(name, (model.FORMAT, value_model.FORMAT)) == model.FORMAT
