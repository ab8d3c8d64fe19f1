"""The rules, and the engine that plays them for thousands of games in one call.

``rules`` sizes, options, actions; ``state`` the record of a game; ``kernels`` the rules, one game
at a time; ``chance`` new games, rolls, random streams; ``play`` decisions and results; ``stepping``
both in one kernel call, for the objects in `games`; ``observation`` players' inputs; ``cuda`` GPUs.
The functions that work on a batch of games are here at the top.
"""

from carolus_env.engine.chance import blank_games, new_games, next_games, rules_of
from carolus_env.engine.play import (
    IllegalActionError,
    are_legal,
    forfeit,
    is_over,
    legal_actions,
    legal_masks,
    random_actions,
    refusal,
    returns,
    step,
    strengths,
    whole_numbers,
    win_shares,
)
from carolus_env.engine.state import copy, pick

__all__ = [
    "IllegalActionError",
    "are_legal",
    "blank_games",
    "copy",
    "forfeit",
    "is_over",
    "legal_actions",
    "legal_masks",
    "new_games",
    "next_games",
    "pick",
    "random_actions",
    "refusal",
    "returns",
    "rules_of",
    "step",
    "strengths",
    "whole_numbers",
    "win_shares",
]
