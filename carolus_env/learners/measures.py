"""Statistics of training games."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carolus_env.engine.rules import REASON_NAMES
from carolus_env.envs.learner import Ended


def game_statistics(ended: Sequence[Ended]) -> dict[str, float]:
    """Statistics of games that ended, by name; none without games."""
    if not ended:
        return {}
    states = np.concatenate([some.states for some in ended])
    payoffs = np.concatenate([some.payoffs for some in ended])
    reasons = {
        f"ended_by_{name}": float(np.mean(states["reason"] == number))
        for number, name in enumerate(REASON_NAMES)
        if number > 0
    }
    return {
        "rounds": float(states["round"].mean()),
        "draws": float(np.mean((payoffs.max(axis=1) < 1) | (states["winners"] == 0))),
        "castles_of_the_winner": float(states["castles"].max(axis=1).mean()),
        "regions_left": float(states["regions"].mean()),
        "first_seat_payoff": float(payoffs[:, 0].mean()),
        **reasons,
    }
