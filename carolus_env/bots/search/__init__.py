"""``mcts`` and ``search``: tree search over whole turns and dice, without and with a network."""

from carolus_env.bots.search.bot import Evaluator, SearchBot, SearchOptions
from carolus_env.bots.search.mcts import Choice, MctsBot, MctsOptions, TreeOptions, TreeSearch

__all__ = [
    "Choice",
    "Evaluator",
    "MctsBot",
    "MctsOptions",
    "SearchBot",
    "SearchOptions",
    "TreeOptions",
    "TreeSearch",
]
