"""``mcts`` and ``search``: tree search over whole turns and dice, without and with a network."""

from carolus_env.bots.search.guided import NetworkJudge, SearchOptions
from carolus_env.bots.search.mcts import Choice, Judge, MctsBot, MctsOptions, TreeOptions

__all__ = [
    "Choice",
    "Judge",
    "MctsBot",
    "MctsOptions",
    "NetworkJudge",
    "SearchOptions",
    "TreeOptions",
]
