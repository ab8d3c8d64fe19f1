"""The choices that a rollout compares: discs, crowns, or whole turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, OVER, PHASE_NAMES, PLACE, ROLL
from carolus_env.engine.state import RAW, States, pick, single
from carolus_env.notation import turn_texts
from carolus_env.planning.plans import best_plans

KINDS: Final = ("disc", "turn", "crown")
"""Kinds of decision. A turn is all that remains of it: paladins and the Emperor's move."""

MOST: Final = 4096  # candidates of a turn


def kind_of(state: np.void) -> str:
    """Return the kind of decision due in game ``states[i]``, one of `KINDS`.

    Raises:
        ValueError: when no decision is due.
    """
    phase = int(state["phase"])
    kinds = {DISC: "disc", CROWN_CHOICE: "crown", PLACE: "turn", MOVE: "turn"}
    if phase not in kinds:
        raise ValueError(f"no decision is due: the game's phase is {PHASE_NAMES[phase]}")
    return kinds[phase]


def candidates(state: np.void, most: int = 8) -> list[tuple[int, ...]]:
    """Return the choices of the player to move, each as its actions in order.

    Discs and crowns are all listed, by action number. Turns are listed best first by the planner's
    evaluation; each set of placements occurs once, in one order.

    Args:
        state: game ``states[i]``, in which a decision is due.
        most: turns to list, at most; 1 to 4,096.

    Raises:
        ValueError: when no decision is due, or for another argument that does not fit.
    """
    if not 1 <= most <= MOST:
        raise ValueError(f"most must be a whole number from 1 to {MOST:,}, got {most!r}")
    if kind_of(state) != "turn":
        return [(int(action),) for action in engine.legal_actions(state)]
    return [tuple(actions) for actions in best_plans(state, most, "one")]


def after(state: np.void, choices: list[tuple[int, ...]]) -> States:
    """Return the position after each choice, before any dice: ``(K,)``.

    Raises:
        ValueError: for an empty choice, or one that passes a roll or another player's decision.
        IllegalActionError: for an illegal action.
    """
    states = pick(single(state), np.zeros(len(choices), np.int64))
    player = int(state["player"])
    for row, actions in enumerate(choices):
        if not actions:
            raise ValueError("a candidate needs one action or more")
        for index, action in enumerate(actions):
            going = states["phase"][row] not in (ROLL, OVER)
            if index and not (going and states["player"][row] == player):
                raise ValueError(
                    f"candidate {list(actions)}: after {index} of its actions player {player} "
                    "does not decide"
                )
            engine.step(states, np.array([action]), rows=np.array([row]), roll=False)
    return states


def choice_text(game: States, actions: Sequence[int]) -> str:
    """Return a choice in notation; ``game`` is the position, ``(1,)``."""
    turns = turn_texts(game, [{"action": action} for action in actions])
    return ", ".join(turn.text for turn in turns)


def distinct(states: States) -> npt.NDArray[np.int64]:
    """Return the rows of the first of each set of equal positions, ascending."""
    _, first = np.unique(states.view(RAW), return_index=True)
    return np.sort(first)
