"""Remaining actions of cached plans, for agents that think once a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.state import States, single

_REMEMBERED: Final = 10_000  # rests of plans


class Remembered:
    """The rest of each plan, by the game's stream and position.

    Equal games, of one deal against different opponents, say, share a rest; so it stays.
    """

    def __init__(self) -> None:
        self._rests: dict[tuple[int, bytes], list[int]] = {}

    def __len__(self) -> int:
        return len(self._rests)

    def rests(self, states: States, streams: npt.NDArray[np.uint64]) -> list[list[int]]:
        """Return the actions that are left of each game's plan; none where there is no plan."""
        keys = zip(streams.tolist(), map(_position, states), strict=True)
        return [self._rests.get(key, []) for key in keys]

    def keep(
        self, states: States, streams: npt.NDArray[np.uint64], plans: Sequence[Sequence[int]]
    ) -> npt.NDArray[np.int64]:
        """Keep what is left of each plan after its first action.

        Args:
            states: ``(N,)`` games, before that action.
            streams: ``(N,)`` uint64, as they will be when the game asks again.
            plans: one or more actions for each game.

        Returns:
            ``(N,)`` int64: the first actions.
        """
        actions = np.array([plan[0] for plan in plans], np.int64)
        rows = np.array([row for row, plan in enumerate(plans) if len(plan) > 1], np.int64)
        if not len(rows):
            return actions
        after = states[rows]
        engine.step(after, actions[rows], roll=False)
        for row, state in zip(rows.tolist(), after, strict=True):
            self._rests[int(streams[row]), _position(state)] = list(plans[row][1:])
        # The oldest are of past turns: a game asks for the rest of its plan at its next decision.
        for _ in range(len(self._rests) - max(_REMEMBERED, 2 * len(states))):
            del self._rests[next(iter(self._rests))]
        return actions


def _position(state: np.void) -> bytes:
    """Return a position as bytes, without its generator."""
    bare = single(state)
    bare["generator"] = 0
    return bare.tobytes()
