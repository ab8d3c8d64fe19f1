"""Deals: all that is random in a game, by a seed and a number.

The set-up, each seat's dice and each seat's agent have random streams of their own, all derived
from one root. So games of one deal have the same dice, whatever is decided. Roots mix the seed and
the number: other than in `new_games`, where game ``i`` takes ``seed + i``, no two seeds share a
deal, however near they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.rules import MAX_PLAYERS, Rules
from carolus_env.engine.setup import new_games
from carolus_env.engine.state import Ints, States
from carolus_env.engine.streams import branches, seed_generators


class Deals(NamedTuple):
    """``G`` deals."""

    roots: npt.NDArray[np.uint64]
    """``(G,)``: each seeds a game, and all its streams are branches of it."""

    @classmethod
    def of(cls, seed: int, numbers: Ints) -> Deals:
        """Return the deals of a seed, 0 to 2^64 - 1, with these numbers, ``(G,)``."""
        return cls(branches(seed_generators(seed, 1), numbers))

    def games(self, rules: Rules, *, roll: bool = True) -> States:
        """Set up a game of each deal, see `new_games`."""
        return new_games(rules, len(self.roots), seed=self.roots, roll=roll)

    def dice(self) -> npt.NDArray[np.uint64]:
        """Return the generators by which the seats roll: ``(G, 4)``, see `chance.roll_dealt`."""
        return branches(self.roots[:, None], np.arange(MAX_PLAYERS))

    def streams(
        self, seatings: Ints | None = None, meetings: Ints | None = None
    ) -> npt.NDArray[np.uint64]:
        """Return the random stream of the agent at each seat: ``(G, 4)``.

        Games of one deal, seating and meeting have the same ones. All others have streams of their
        own, so that nothing an agent stores under a stream can belong to two games.

        Args:
            seatings: ``(G,)`` whole numbers; None: all 0.
            meetings: ``(G,)`` whole numbers; None: all 0.
        """
        seating = np.zeros(len(self.roots), np.int64) if seatings is None else seatings
        # Branches 0 to 3 are the dice.
        numbers = MAX_PLAYERS * (1 + seating[:, None]) + np.arange(MAX_PLAYERS)
        streams = branches(self.roots[:, None], numbers)
        if meetings is not None:
            later = meetings > 0
            streams[later] = branches(streams[later], meetings[later][:, None])
        return streams


def derived_seed(seed: int, number: int) -> int:
    """Return a seed of its own for each seed and number, for a part of what a seed plays."""
    return int(branches(seed_generators(seed, 1), number)[0])
