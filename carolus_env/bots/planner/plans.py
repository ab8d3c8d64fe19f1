"""The plans of a turn, best first: a plan is all placements of the turn and the Emperor's move.

Each *set* of placements is listed once, in one order, since every order leads to the same position.
A plan is one number that holds its actions in 7 bits each (`pack`, `first_of`, `rest_of`).

`WIDTHS` says where paladins may go. With ``stop`` they go to the player's court or to the region
where the Emperor will stop; with ``one`` to the court or to any one region, for instance to defend
it; with ``all`` anywhere. So ``all`` is exhaustive.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env.bots.planner.evaluation import FEATURES, advantage, all_weights, write_scores
from carolus_env.engine.kernels.legal import emperor_steps
from carolus_env.engine.kernels.turns import move_emperor, place_paladin
from carolus_env.engine.rules import CLANS, DESTINATIONS, FIRST_MOVE, FIRST_PLACE, MAX_TEAMS
from carolus_env.engine.state import STATE, States, single
from carolus_env.system.compiler import entry, kernel, part, rare

WIDTHS: Final = ("stop", "one", "all")
STOP, ONE, ALL = range(len(WIDTHS))

MOST_PLACEMENTS: Final = 4
_STEP: Final = 7  # bits of an action; it is stored plus 1, so 0 means that no action is left
_LOW: Final = (1 << _STEP) - 1

NONE_YET: Final = -1e9
"""A value below that of any position."""

LEVEL: Final = np.dtype(
    [
        ("following", "<i8"),  # the next pair of clan and target to try here
        ("target", "<i8"),  # the one region that paladins went to so far, 0: none
        ("plan", "<i8"),  # the placements so far, see `pack`
    ]
)


class PlanScratch(NamedTuple):
    """Scratch in which kernels list and value plans, reused for each position."""

    states: States
    """``(6,)`` STATE: the position after that many placements; the last is for what is valued."""
    levels: npt.NDArray[np.void]
    """``(6,)`` LEVEL: how far the listing is after that many placements."""
    features: npt.NDArray[np.float64]
    """``(4, F)`` float64: the features of each team, see `evaluation.write_features`."""
    scores: npt.NDArray[np.float64]
    """``(3,)`` float64: the score of each team, see `evaluation.write_scores`."""

    @classmethod
    def new(cls) -> PlanScratch:
        """Fresh memory."""
        depth = MOST_PLACEMENTS + 2
        return cls(
            np.zeros(depth, STATE),
            np.zeros(depth, LEVEL),
            np.zeros((MAX_TEAMS + 1, len(FEATURES))),
            np.zeros(MAX_TEAMS),
        )


# ------------------------------------------------------------------------------------ packing


@kernel
def pack(plan, action, place):
    """The plan with ``action`` added at index ``place``, which is still free."""
    return plan | (int64(action) + 1) << (_STEP * place)


@kernel
def first_of(plan):
    """The first action of a plan."""
    return (plan & _LOW) - 1


@kernel
def rest_of(plan):
    """The plan without its first action; 0 when no action is left."""
    return plan >> _STEP


def actions_of(plan: int) -> list[int]:
    """The action numbers of a plan, in order."""
    actions = []
    while plan:
        actions.append((plan & _LOW) - 1)
        plan >>= _STEP
    return actions


# ------------------------------------------------------------------------------------ listing


@kernel
def _keep(plan, value, plans, values, kept):
    """Insert a plan into the list of the best, best first; returns the new length."""
    longest = plans.shape[0]
    if kept == longest:
        if not value > values[longest - 1]:
            return kept
        kept -= 1
    place = kept
    while place > 0 and value > values[place - 1]:
        plans[place], values[place] = plans[place - 1], values[place - 1]
        place -= 1
    plans[place], values[place] = plan, value
    return kept + 1


@part
def _value_of_stop(s, steps, team, weights, scratch):
    """The team's log odds of winning once the Emperor has moved ``steps``."""
    last = scratch.states.shape[0] - 1
    scratch.states[last] = s
    move_emperor(scratch.states[last], steps)
    write_scores(scratch.states[last], weights, scratch.features, scratch.scores)
    return advantage(scratch.scores, team, int64(s["teams"]))


@rare
def list_plans(s, width, weights, scratch, plans, values):
    """List the best plans of the player to move in ``s`` (phase place or move), best first.

    Args:
        s: the position; it is not changed.
        width: `STOP`, `ONE` or `ALL`.
        weights: ``(F,)`` of the evaluation.
        scratch: a `PlanScratch`.
        plans, values: ``(K,)`` int64 and float64, written: the K best plans and their log odds of
            winning.

    Returns:
        The number of plans listed, at most K.
    """
    states, levels = scratch.states, scratch.levels
    player, regions = int64(s["player"]), int64(s["regions"])
    team = int64(s["team"][player])
    steps = emperor_steps(s)
    stops = min(steps, regions)  # after a full circle the same stops come again
    targets = 1 + (stops if width == STOP else regions)  # 0 the court, k the region k steps ahead
    left = int64(s["placements_left"])
    kept, depth = 0, 0
    states[0] = s
    levels[0]["following"], levels[0]["target"], levels[0]["plan"] = 0, 0, 0
    while depth >= 0:
        level = levels[depth]
        if depth == left:
            for stop in range(1, stops + 1):
                if width == STOP and level["target"] != 0 and level["target"] != stop:
                    continue
                value = _value_of_stop(states[depth], stop, team, weights, scratch)
                plan = pack(level["plan"], FIRST_MOVE + stop - 1, depth)
                kept = _keep(plan, value, plans, values, kept)
            depth -= 1
            continue
        pair = level["following"]
        if pair == CLANS * targets:
            depth -= 1
            continue
        level["following"] = pair + 1
        clan, target = pair // targets, pair % targets
        if states[depth]["reserves"][player, clan] == 0:
            continue
        elsewhere = level["target"] != 0 and level["target"] != target
        if width != ALL and target != 0 and elsewhere:
            continue
        destination = 0 if target == 0 else 1 + target % regions
        states[depth + 1] = states[depth]
        place_paladin(states[depth + 1], clan, destination)
        action = FIRST_PLACE + DESTINATIONS * clan + destination
        below = levels[depth + 1]
        below["plan"] = pack(level["plan"], action, depth)
        below["target"] = target if target != 0 else level["target"]
        below["following"] = pair
        depth += 1
    return kept


def best_plans(state: np.void, most: int, width: str = "stop") -> list[list[int]]:
    """The actions of the best plans by the fitted weights, best first.

    Args:
        state: game ``states[i]``, in phase place or move.
        most: plans to list, at most.
        width: one of `WIDTHS`.
    """
    plans, values = np.zeros(most, np.int64), np.zeros(most)
    weights = all_weights()[int(state["players"])].copy()
    found = _list(single(state), WIDTHS.index(width), weights, PlanScratch.new(), plans, values)
    return [actions_of(int(plan)) for plan in plans[:found]]


@entry
def _list(states, width, weights, scratch, plans, values):
    return list_plans(states[0], width, weights, scratch, plans, values)
