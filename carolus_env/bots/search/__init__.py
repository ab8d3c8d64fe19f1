"""``search`` and ``mcts``: looking ahead in a tree, by a value network and without one."""

from carolus_env.bots.search.bot import (
    Choice,
    Evaluator,
    MctsBot,
    MctsOptions,
    SearchBot,
    SearchOptions,
)

__all__ = ["Choice", "Evaluator", "MctsBot", "MctsOptions", "SearchBot", "SearchOptions"]
