"""Choices of the value network: whole turns, discs and crowns, by the position after them.

For a turn the planner lists the best plans by its evaluation, the network values the position after
each of them, before the dice, and the best is played. Discs and crowns are chosen by the position
after them. How it looks further ahead: `ahead`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.state import STATE, States
from carolus_env.networks.forward import Network, reset_accumulator, team_value
from carolus_env.planning.choices import CandidateGenerator, list_choices
from carolus_env.planning.plans import play_plan
from carolus_env.system.arrays import Int, int64
from carolus_env.system.compiler import separate


class CandidateSelector(NamedTuple):
    """Context of this module's kernels: a network, the candidate list, and scratch."""

    net: Network
    """The network."""
    proposals: CandidateGenerator
    """The candidate list; K of them at most."""
    values: npt.NDArray[np.float64]
    """``(K,)`` float64: the win probability after each choice, of the team to move."""
    after: States
    """``(1,)`` STATE: the position after a choice."""

    @classmethod
    def of(
        cls, net: Network, width: int, weights: npt.NDArray[np.float64], candidates: int
    ) -> CandidateSelector:
        """Return a selector with scratch of its own.

        Args:
            net: the network.
            width: an index into `plans.WIDTHS`: where paladins may go.
            weights: ``(F,)`` float64, the evaluation's weights.
            candidates: the number of a turn's plans to keep.
        """
        proposals = CandidateGenerator.of(width, weights, candidates)
        return cls(net, proposals, np.zeros(len(proposals.choices)), np.zeros(1, STATE))


@separate
def value_choices(s: np.void, selector: CandidateSelector, count: Int) -> Int:
    """Write the value after each of the first choices; returns the best one's index."""
    team, best = int64(s["team"][s["player"]]), 0
    reset_accumulator(selector.net)
    for k in range(count):
        selector.after[0] = s
        play_plan(selector.after[0], selector.proposals.choices[k])
        selector.values[k] = team_value(selector.after[0], team, selector.net)
        if selector.values[k] > selector.values[best]:
            best = k
    return best


@separate
def best_choice(s: np.void, selector: CandidateSelector) -> Int:
    """Return the best choice by the position after it, a plan."""
    count = list_choices(s, selector.proposals)
    return selector.proposals.choices[value_choices(s, selector, count)]
