"""``mcts`` and ``search``: tree search over whole turns and dice, without and with a network."""

from carolus_env.bots.search.guided import SearchOptions, ValueSearchOptions
from carolus_env.bots.search.judges import Judge, NetworkJudge, ValueJudge
from carolus_env.bots.search.mcts import Choice, MctsBot, MctsOptions, TreeOptions

__all__ = [
    "Choice",
    "Judge",
    "MctsBot",
    "MctsOptions",
    "NetworkJudge",
    "SearchOptions",
    "TreeOptions",
    "ValueJudge",
    "ValueSearchOptions",
]
