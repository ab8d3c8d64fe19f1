"""What a roll was worth: the value after it, less the mean over all rolls, by exact chance.

The mean over all rolls is known exactly, so what is subtracted has the mean 0 whatever the value
function: results stay unbiased. How much spread goes with it depends on the value function. This is
the chance part of AIVAT (Burch, Schmid, Moravcik, Morrill and Bowling, AAAI 2018), and backgammon's
variance reduction (Zare and others; GNU Backgammon).

A cheaper way, ``faces``, values one roll for each face of a die, the one that shows this face
alone, and takes a roll's value for the mean of its dice's. That too has a known mean, so it is as
unbiased, with 6 values a roll instead of 56 (three dice) or 126 (four).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env.analysis.values import Floats, Value
from carolus_env.engine.chance import apply_roll, chance_outcomes
from carolus_env.engine.rules import FACES, ROLL, TEAMS
from carolus_env.engine.state import States, common_players, pick

METHODS: Final = ("exact", "faces")

_MOST: Final = 1 << 16  # positions valued at once, at most


def luck(
    states: States, faces: npt.NDArray[np.integer], value: Value, method: str = "exact"
) -> Floats:
    """What given rolls are worth, more than the mean of all rolls.

    Args:
        states: ``(N,)`` games of one number of players that wait for a roll of the same number of
            dice.
        faces: ``(N, dice)``, what is rolled; 0-4 are the clans, 5 the crown.
        value: of positions.
        method: ``exact``: every roll is valued; ``faces``: those of one face alone.

    Returns:
        ``(N, teams)`` float64: the mean over all rolls is 0; rows sum to 0.

    Raises:
        ValueError: for an unknown method, or games that do not fit.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    teams = TEAMS[common_players(states, "luck")]
    if (states["phase"] != ROLL).any():
        raise ValueError("luck is that of a roll, but some games do not wait for one")
    found = np.zeros((len(states), teams))
    if not len(states):
        return found
    dice = int(states["dice_due"][0])
    rolls, weights = _valued_rolls(dice, method)
    shown = _counts(rolls)
    step = max(1, _MOST // len(rolls))
    for start in range(0, len(states), step):
        part = slice(start, start + step)
        some = states[part]
        after = pick(some, np.repeat(np.arange(len(some)), len(rolls)))
        apply_roll(after, np.tile(rolls, (len(some), 1)))
        values = value(after).reshape(len(some), len(rolls), teams)
        # For each of the valued rolls, its weight in the given roll less that in the mean.
        counts = _counts(faces[part])
        if method == "faces":
            shares = counts / dice - weights
        else:
            shares = (counts[:, None] == shown).all(axis=2) - weights
        found[part] = np.einsum("nk,nkt->nt", shares, values)
    return found


def _valued_rolls(dice: int, method: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64]]:
    """The rolls to value, ``(K, dice)``, and the weight of each in the mean."""
    if method == "faces":
        one_face = np.repeat(np.arange(FACES, dtype=np.uint8)[:, None], dice, axis=1)
        return one_face, np.full(FACES, 1 / FACES)
    outcomes = chance_outcomes(dice)
    return outcomes.faces, outcomes.probabilities


def _counts(rolls: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """How often each face shows, ``(K, 6)``."""
    return np.stack([(rolls == face).sum(axis=1) for face in range(FACES)], axis=1)
