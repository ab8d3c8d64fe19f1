"""``rollout_policy`` plays rollouts: each choice by the value network, quickly, without options.

Labels of positions rest on its play, so it is a bot of its own: the options of `value` and their
defaults can change without it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from carolus_env.bots.compiled import CompiledByTurns, Entries
from carolus_env.bots.models import Models
from carolus_env.bots.value.ahead import new_selector
from carolus_env.bots.value.choice import CandidateSelector, best_choice
from carolus_env.planning.plans import STOP
from carolus_env.system.arrays import Bits, Int
from carolus_env.system.compiler import separate

CANDIDATES: Final = 8
"""Number of a turn's plans that the network compares, the planner's best ones."""


@separate
def choose(s: np.void, rest: Int, bits: Bits, selector: CandidateSelector) -> tuple[Int, Bits]:
    """Return the rest of the plan, or the choice with the best position after it; the stream."""
    return (rest if rest != 0 else best_choice(s, selector)), bits


class RolloutPolicy(CompiledByTurns):
    """Plays discs, crowns and one of eight whole turns by the package's value network."""

    name = "rollout_policy"
    entries = Entries.of_plans(choose)

    def __init__(self) -> None:
        super().__init__()
        self._models = Models("value", None)

    def context_of(self, players: int) -> CandidateSelector:
        """Return the network and the selector of choices for games of ``players`` players."""
        weights = self._models.weights(self.name, players)
        return new_selector(players, weights, STOP, CANDIDATES)
