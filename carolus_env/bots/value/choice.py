"""How the value network chooses: whole turns, discs and crowns, by the position after them.

For a turn the planner lists the best plans by its evaluation, the network values the position after
each of them, before the dice, and the best is played. Discs and crowns are chosen by the position
after them. How it looks further ahead: `ahead`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env.bots.planner.bot import play
from carolus_env.bots.planner.plans import PlanScratch, first_of, list_plans, rest_of
from carolus_env.bots.value.inference import ValueNet, team_value
from carolus_env.engine.kernels import legal
from carolus_env.engine.rules import (
    DISC,
    DISCS,
    FIRST_CROWN,
    FIRST_DISC,
    MOVE,
    PLACE,
)
from carolus_env.engine.state import STATE, States
from carolus_env.system.compiler import kernel, rare

EVERY: Final = 4096
"""More plans than a turn has, but for some turns with paladins anywhere."""


class Chooser(NamedTuple):
    """What the kernels of this module need: a network, how candidates are listed, and scratch."""

    net: ValueNet
    """The network."""
    width: int
    """Where paladins may go: an index into `plans.WIDTHS`."""
    weights: npt.NDArray[np.float64]
    """``(F,)`` float64: of the evaluation that lists the candidates."""
    candidates: int
    """How many of a turn's plans are kept."""
    plan: PlanScratch
    """Scratch to list plans."""
    choices: npt.NDArray[np.int64]
    """``(K,)`` int64: the choices, as plans; K is 5 or the number of candidates if that is more."""
    scores: npt.NDArray[np.float64]
    """``(K,)`` float64: what the evaluation says of them."""
    values: npt.NDArray[np.float64]
    """``(K,)`` float64: the share of the win after each choice, of the team to move."""
    after: States
    """``(1,)`` STATE: the position after a choice."""

    @classmethod
    def of(
        cls, net: ValueNet, width: int, weights: npt.NDArray[np.float64], candidates: int
    ) -> Chooser:
        """A chooser with scratch of its own.

        Args:
            net: the network.
            width: where paladins may go: an index into `plans.WIDTHS`.
            weights: ``(F,)`` float64, of the evaluation.
            candidates: how many of a turn's plans are kept; 0: up to `EVERY`, in no order, so that
                the evaluation has no say.
        """
        if candidates == 0:
            weights, candidates = np.zeros_like(weights), EVERY
        most = max(candidates, DISCS)
        return cls(
            net,
            width,
            weights,
            candidates,
            PlanScratch.new(),
            np.zeros(most, np.int64),
            np.zeros(most),
            np.zeros(most),
            np.zeros(1, STATE),
        )


@kernel
def in_turn(s):
    """Whether the player to move is in its action turn."""
    return s["phase"] == PLACE or s["phase"] == MOVE


@kernel
def play_choice(s, choice):
    """Play the actions of a choice."""
    while choice != 0:
        play(s, first_of(choice))
        choice = rest_of(choice)


@rare
def list_choices(s, chooser):
    """Write the choices in ``s``: a turn's candidates, or the legal actions; returns how many."""
    if in_turn(s):
        choices, scores = chooser.choices[: chooser.candidates], chooser.scores
        return list_plans(s, chooser.width, chooser.weights, chooser.plan, choices, scores)
    is_disc = s["phase"] == DISC
    bits = legal.playable_discs(s) if is_disc else legal.clans_to_take(s)
    first, count = FIRST_DISC if is_disc else FIRST_CROWN, 0
    for k in range(DISCS):  # as many as there are clans
        if bits >> k & 1:
            chooser.choices[count] = first + k + 1  # a plan of one action
            count += 1
    return count


@rare
def value_choices(s, chooser, count):
    """Write the value after each of the first choices; returns the best one's index."""
    team, best = int64(s["team"][s["player"]]), 0
    for k in range(count):
        chooser.after[0] = s
        play_choice(chooser.after[0], chooser.choices[k])
        chooser.values[k] = team_value(chooser.after[0], team, chooser.net)
        if chooser.values[k] > chooser.values[best]:
            best = k
    return best


@rare
def best_choice(s, chooser):
    """The best choice by the position after it, a plan."""
    return chooser.choices[value_choices(s, chooser, list_choices(s, chooser))]
