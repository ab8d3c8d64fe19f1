"""Choices of a player: a disc, a crown, or one of a turn's plans.

A choice is a plan (`plans`): a disc or a crown is one of a single action. Of a turn the best plans
by an evaluation are listed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.kernels import legal
from carolus_env.engine.rules import DISC, DISCS, FIRST_CROWN, FIRST_DISC, MOVE, PLACE
from carolus_env.planning.plans import PlanScratch, list_plans
from carolus_env.system.arrays import I64, Int
from carolus_env.system.compiler import kernel, separate

EVERY: Final = 4096
"""More plans than a turn has, but for some turns with paladins anywhere."""


class CandidateGenerator(NamedTuple):
    """Options of the candidate list, the list, and scratch."""

    width: int
    """Allowed destinations of paladins: an index into `plans.WIDTHS`."""
    weights: npt.NDArray[np.float64]
    """``(F,)`` float64: of the evaluation that picks and orders a turn's plans."""
    most: int
    """Maximum number of a turn's plans that are kept."""
    plan: PlanScratch
    """Scratch to list plans."""
    choices: npt.NDArray[np.int64]
    """``(K,)`` int64: the choices, as plans; K is 5 or ``most``, whichever is more."""
    scores: npt.NDArray[np.float64]
    """``(K,)`` float64: the evaluation's scores of a turn's plans."""

    @classmethod
    def of(cls, width: int, weights: npt.NDArray[np.float64], most: int) -> CandidateGenerator:
        """Return a list with scratch of its own.

        Args:
            width: an index into `plans.WIDTHS`: where paladins may go.
            weights: ``(F,)`` float64, the evaluation's weights.
            most: the number of a turn's plans to keep.
        """
        length = max(most, DISCS)
        return cls(
            width,
            weights,
            most,
            PlanScratch.new(),
            np.zeros(length, np.int64),
            np.zeros(length),
        )


@kernel
def in_turn(s: np.void) -> bool:
    """Return whether the player to move is in its action turn."""
    return s["phase"] == PLACE or s["phase"] == MOVE


@kernel
def list_actions(s: np.void, choices: I64) -> Int:
    """Write the legal discs or crowns of ``s`` as plans of one action; returns how many."""
    is_disc = s["phase"] == DISC
    bits = legal.playable_discs(s) if is_disc else legal.clans_to_take(s)
    first, count = FIRST_DISC if is_disc else FIRST_CROWN, 0
    for k in range(DISCS):  # as many as there are clans
        if bits >> k & 1:
            choices[count] = first + k + 1
            count += 1
    return count


@separate
def list_choices(s: np.void, proposals: CandidateGenerator) -> Int:
    """Write the choices in ``s``: a turn's plans, or the legal actions; returns how many.

    ``proposals.plan.total`` holds how many there were, those left out too.
    """
    if in_turn(s):
        choices, scores = proposals.choices[: proposals.most], proposals.scores
        return list_plans(s, proposals.width, proposals.weights, proposals.plan, choices, scores)
    count = list_actions(s, proposals.choices)
    proposals.plan.total[0] = count
    return count
