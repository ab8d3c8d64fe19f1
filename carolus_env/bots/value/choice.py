"""How the value network chooses: whole turns, discs and crowns, by the position after them.

For a turn the planner lists the best plans by its evaluation, the network values the position after
each of them, before the dice, and the best is played. Discs and crowns are chosen by the position
after them. How it looks further ahead: `ahead`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env.engine.state import STATE, States
from carolus_env.networks.forward import Network, reset_accumulator, team_value
from carolus_env.planning.choices import Lister, list_choices
from carolus_env.planning.plans import play_plan
from carolus_env.system.compiler import rare


class Chooser(NamedTuple):
    """What the kernels of this module need: a network, how candidates are listed, and scratch."""

    net: Network
    """The network."""
    lister: Lister
    """How choices are listed; K of them at most."""
    values: npt.NDArray[np.float64]
    """``(K,)`` float64: the share of the win after each choice, of the team to move."""
    after: States
    """``(1,)`` STATE: the position after a choice."""

    @classmethod
    def of(
        cls, net: Network, width: int, weights: npt.NDArray[np.float64], candidates: int
    ) -> Chooser:
        """Return a chooser with scratch of its own.

        Args:
            net: the network.
            width: where paladins may go: an index into `plans.WIDTHS`.
            weights: ``(F,)`` float64, of the evaluation.
            candidates: how many of a turn's plans are kept.
        """
        lister = Lister.of(width, weights, candidates)
        return cls(net, lister, np.zeros(len(lister.choices)), np.zeros(1, STATE))


@rare
def value_choices(s, chooser, count):
    """Write the value after each of the first choices; returns the best one's index."""
    team, best = int64(s["team"][s["player"]]), 0
    reset_accumulator(chooser.net)
    for k in range(count):
        chooser.after[0] = s
        play_plan(chooser.after[0], chooser.lister.choices[k])
        chooser.values[k] = team_value(chooser.after[0], team, chooser.net)
        if chooser.values[k] > chooser.values[best]:
            best = k
    return best


@rare
def best_choice(s, chooser):
    """Return the best choice by the position after it, a plan."""
    count = list_choices(s, chooser.lister)
    return chooser.lister.choices[value_choices(s, chooser, count)]
