"""Stages of a game: opening, middle and end, by the position alone."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env.engine.rules import CASTLES_TO_WIN, MIN_REGIONS
from carolus_env.engine.state import States, as_states

STAGES: Final = ("opening", "middle", "end")
"""Opening: no team has a third of the castles that it needs to win. End: a team has two thirds of
them, or at most `FEW_REGIONS` regions are left. Middle: the rest."""

FEW_REGIONS: Final = MIN_REGIONS + 2


def stages_of(states: States) -> npt.NDArray[np.int64]:
    """Return the stage of each game, as an index of `STAGES`: ``(N,)``."""
    states = as_states(states)
    needed = np.array(CASTLES_TO_WIN)[states["players"].astype(np.int64)]
    most = states["castles"].max(axis=1).astype(np.int64)
    end = (3 * most >= 2 * needed) | (states["regions"] <= FEW_REGIONS)
    return np.where(end, 2, np.where(3 * most >= needed, 1, 0))
