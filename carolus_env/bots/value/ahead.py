"""Lookahead of the value network through the answers to a disc.

Every answer of the players after a disc is tried (`planning.discs`), the first player to act plays
its best turn, and that position is valued. No dice lie in between, so this is exact as far as the
values are.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots.value.choice import CandidateSelector, best_choice
from carolus_env.engine.kernels import legal
from carolus_env.engine.rules import CROWN_CHOICE, MAX_TEAMS, OVER, ROLL, TEAMS
from carolus_env.engine.state import STATE, States, as_states, common_players
from carolus_env.networks.forward import Network, Weights, reset_accumulator, write_value
from carolus_env.planning.discs import DiscScratch, search_discs
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import STOP, play_plan
from carolus_env.system.arrays import F64, Int, Records
from carolus_env.system.compiler import entry, separate
from carolus_env.system.options import option

LOOKS: Final = ("now", "turn")
"""Ways to value a disc: by the position after it, or by looking one turn ahead."""

COMPARED: Final = {2: 16, 3: 8}
"""Maximum number of turns compared in positions ahead, by number of teams."""


def discs_option() -> str:
    """Return the field ``discs`` of a bot's options."""
    return option(
        "turn",
        "value of a disc: now, or after all answers and the turn of the first player to act",
        among=LOOKS,
    )


class Ahead(NamedTuple):
    """Parameters and scratch of looking ahead."""

    selector: CandidateSelector
    """The selector of choices in positions ahead; its scratch is not the asking player's."""
    discs: DiscScratch
    """Scratch to look ahead at discs, and the win probabilities after each."""

    @classmethod
    def of(cls, players: int, weights: Weights, candidates: int) -> Ahead:
        """Allocate scratch to look ahead; the weights are shared.

        Args:
            players: number of players.
            weights: the network's weights.
            candidates: number of turns to compare in positions ahead, see `CandidateSelector.of`;
                paladins go to the court or to the region where the Emperor stops.
        """
        return cls(new_selector(players, weights, STOP, candidates), DiscScratch.new())


def new_selector(players: int, weights: Weights, width: int, candidates: int) -> CandidateSelector:
    """Return a selector with a network's scratch of its own."""
    listing = all_weights()[players].copy()
    return CandidateSelector.of(Network.of(players, weights), width, listing, candidates)


@separate
def value_next(s: np.void, selector: CandidateSelector, values: F64) -> None:
    """Play the best next choice, and write each team's win probability after it.

    The player's crowns, if there are any, come first.
    """
    while s["phase"] == CROWN_CHOICE:
        play_plan(s, best_choice(s, selector))
    if s["phase"] != OVER and s["phase"] != ROLL:
        play_plan(s, best_choice(s, selector))
    reset_accumulator(selector.net)
    write_value(s, selector.net, values)


@separate
def value_discs(s: np.void, ahead: Ahead) -> Int:
    """Look ahead at the discs that can be played in ``s``, and write ``ahead.discs.values``.

    Args:
        s: a position of phase disc.
        ahead: an `Ahead`.

    Returns:
        The best disc, as an action.
    """
    return search_discs(s, legal.playable_discs, value_next, ahead.selector, ahead.discs)


# ------------------------------------------------------------------------------------ for Python


def values_ahead(states: States, weights: Weights, candidates: int = 32) -> npt.NDArray[np.float64]:
    """Return each team's win probability after the best next choice: ``(N, teams)`` float64.

    The network has learnt positions in which dice are due. After a roll this is the better value,
    as it includes the best reply to it.

    Args:
        states: ``(N,)`` games of one number of players, at any point.
        weights: the weights of a network for that number of players.
        candidates: number of turns to compare, the planner's best ones.
    """
    players = common_players(as_states(states), "values")
    result = np.zeros((len(states), MAX_TEAMS))
    selector = new_selector(players, weights, STOP, candidates)
    _values_ahead(states, selector, np.zeros(1, STATE), result)
    return result[:, : TEAMS[players]]


@entry
def _values_ahead(states: Records, selector: CandidateSelector, spare: Any, out: Any) -> None:
    for g in range(states.shape[0]):
        spare[0] = states[g]
        value_next(spare[0], selector, out[g])
