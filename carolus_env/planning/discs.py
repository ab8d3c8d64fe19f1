"""The search for a disc: every answer of the players after it is tried, without dice.

Each player chooses what is best for its team (max^n: Luckhardt and Irani, AAAI 1986). What a
position is worth once all have chosen is up to the bot.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from carolus_env.engine.kernels import legal
from carolus_env.engine.rules import DISCS, FIRST_DISC, MAX_PLAYERS, MAX_TEAMS
from carolus_env.engine.state import STATE, States
from carolus_env.planning.plans import NONE_YET, play
from carolus_env.system.arrays import F64, I64, int64
from carolus_env.system.compiler import inlined


class DiscScratch(NamedTuple):
    """Scratch of `search_discs`, by the number of discs chosen, and its result."""

    states: Annotated[States, MAX_PLAYERS + 1, STATE]  # the position
    untried: Annotated[I64, MAX_PLAYERS + 1]  # the discs still to try there, as bits
    outcomes: Annotated[F64, MAX_PLAYERS + 1, MAX_TEAMS]  # values of the best disc tried there
    values: Annotated[F64, DISCS, MAX_TEAMS]  # values of the discs that can be played, by team


@inlined
def search_discs(s: np.void, answers: Any, evaluate: Any, context: Any, scratch: Any) -> Any:
    """Value the discs that can be played in ``s``; returns the best one, as an action.

    Args:
        s: a position of phase disc.
        answers: a kernel of a position, returns the discs to try there, as bits.
        evaluate: a kernel ``(s, context, outcome)`` that writes what a position in which all have
            chosen is worth to each team; it may play on in it.
        context: an argument of ``evaluate``.
        scratch: a `DiscScratch`, whose ``values`` are written.
    """
    states, untried, outcomes = scratch.states, scratch.untried, scratch.outcomes
    teams, first = int64(s["teams"]), int64(s["turn"])
    choosers = int64(s["players"]) - first
    depth, chosen, trying = 0, -1, -1
    states[0] = s
    untried[0] = legal.playable_discs(s)
    outcomes[0, :] = NONE_YET
    while depth >= 0:
        if depth < choosers and untried[depth] != 0:
            disc = 1
            while untried[depth] >> (disc - 1) & 1 == 0:
                disc += 1
            untried[depth] ^= 1 << (disc - 1)
            trying = disc - 1 if depth == 0 else trying
            states[depth + 1] = states[depth]
            play(states[depth + 1], FIRST_DISC + disc - 1)
            depth += 1
            if depth < choosers:
                untried[depth] = answers(states[depth])
            outcomes[depth, :] = NONE_YET
            continue
        if depth == choosers:
            evaluate(states[depth], context, outcomes[depth])
        if depth == 1:
            for team in range(teams):
                scratch.values[trying, team] = outcomes[1, team]
        if depth > 0:  # is the outcome of the disc just tried the best one for its player?
            team = int64(s["team"][s["order"][first + depth - 1]])
            if outcomes[depth, team] > outcomes[depth - 1, team]:
                for other in range(teams):
                    outcomes[depth - 1, other] = outcomes[depth, other]
                if depth == 1:
                    chosen = FIRST_DISC + trying
        depth -= 1
    return chosen
