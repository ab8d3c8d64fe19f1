"""What a player can do with a turn: plans, each a few placements and a move, best ones first.

A plan is worked out as a whole, once for every *set* of placements: they are listed in one order
only, since no other order leads anywhere else. It is one number, its actions packed in 7 bits
each (`pack`, `first_of`, `rest_of`).

How wide to look is a choice, `WIDTHS`: with ``stop`` paladins go to the own court or to the region
where the Emperor will stop; with ``one`` to the own court or to any one region, to defend it, say;
with ``all`` anywhere. ``all`` is exhaustive.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy import int64

from carolus_env.bots.planner.evaluation import FEATURES, advantage, write_scores
from carolus_env.engine.kernels.legal import emperor_steps
from carolus_env.engine.kernels.turns import move_emperor, place_paladin
from carolus_env.engine.rules import CLANS, DESTINATIONS, FIRST_MOVE, FIRST_PLACE, MAX_TEAMS
from carolus_env.engine.state import STATE
from carolus_env.system.compiler import kernel, part, rare

WIDTHS: Final = ("stop", "one", "all")
STOP, ONE, ALL = range(len(WIDTHS))

MOST_PLACEMENTS: Final = 4
_STEP: Final = 7  # bits of an action, which is stored plus 1: nothing is left when all bits are 0
_LOW: Final = (1 << _STEP) - 1

# Beyond this a plan is not worth keeping a place for.
NONE_YET: Final = -1e9


class Desk:
    """Room for the kernels to plan on: made once, used for every position in turn."""

    def __init__(self) -> None:
        levels = MOST_PLACEMENTS + 2
        self.boards = np.zeros(levels, STATE)
        self.cursor = np.zeros((3, levels), np.int64)
        self.features = np.zeros((MAX_TEAMS + 1, len(FEATURES)))
        self.scores = np.zeros(MAX_TEAMS)

    def room(self) -> tuple[Any, ...]:
        """What the kernels take as ``desk``."""
        return self.boards, self.cursor, self.features, self.scores


# ------------------------------------------------------------------------------------ packing


@kernel
def pack(plan, action, place):
    """The plan with ``action`` as its action number ``place``."""
    return plan | (int64(action) + 1) << (_STEP * place)


@kernel
def first_of(plan):
    """The first action of a plan."""
    return (plan & _LOW) - 1


@kernel
def rest_of(plan):
    """The plan without its first action; 0 when nothing is left."""
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
    """Put a plan into the list of the best, best first; returns how many are kept."""
    room = plans.shape[0]
    if kept == room:
        if not value > values[room - 1]:
            return kept
        kept -= 1
    place = kept
    while place > 0 and value > values[place - 1]:
        plans[place], values[place] = plans[place - 1], values[place - 1]
        place -= 1
    plans[place], values[place] = plan, value
    return kept + 1


@part
def _stop_at(board, steps, team, weights, desk):
    """What the position is worth to the team once the Emperor has moved so far."""
    boards, _, features, scores = desk
    last = boards.shape[0] - 1
    boards[last] = board
    move_emperor(boards[last], steps)
    write_scores(boards[last], weights, features, scores)
    return advantage(scores, team, int64(board["teams"]))


@rare
def list_plans(s, width, weights, desk, plans, values):
    """List the best plans of the player to act in ``s`` (phase place or move), best first.

    Args:
        s: the position; it stays as it is.
        width: `STOP`, `ONE` or `ALL`.
        weights: ``(F,)`` of the evaluation.
        desk: see `Desk`.
        plans, values: ``(K,)`` int64 and float64: the K best plans, and their log odds to win.

    Returns:
        How many there are, at most K.
    """
    boards, cursor, _, _ = desk
    following, targets, prefix = cursor[0], cursor[1], cursor[2]
    player, regions = int64(s["player"]), int64(s["regions"])
    team = int64(s["team"][player])
    steps = emperor_steps(s)
    stops = min(steps, regions)  # farther ones stop where he has been
    places = 1 + (stops if width == STOP else regions)
    left = int64(s["placements_left"])
    kept, depth = 0, 0
    boards[0] = s
    following[0], targets[0], prefix[0] = 0, 0, 0
    while depth >= 0:
        if depth == left:
            for stop in range(1, stops + 1):
                if width == STOP and targets[depth] != 0 and targets[depth] != stop:
                    continue
                value = _stop_at(boards[depth], stop, team, weights, desk)
                plan = pack(prefix[depth], FIRST_MOVE + stop - 1, depth)
                kept = _keep(plan, value, plans, values, kept)
            depth -= 1
            continue
        pair = following[depth]
        if pair == CLANS * places:
            depth -= 1
            continue
        following[depth] = pair + 1
        clan, target = pair // places, pair % places
        if boards[depth]["reserves"][player, clan] == 0:
            continue
        elsewhere = targets[depth] != 0 and targets[depth] != target
        if width != ALL and target != 0 and elsewhere:
            continue
        destination = 0 if target == 0 else 1 + target % regions
        boards[depth + 1] = boards[depth]
        place_paladin(boards[depth + 1], clan, destination)
        action = FIRST_PLACE + DESTINATIONS * clan + destination
        prefix[depth + 1] = pack(prefix[depth], action, depth)
        targets[depth + 1] = target if target != 0 else targets[depth]
        following[depth + 1] = pair
        depth += 1
    return kept
