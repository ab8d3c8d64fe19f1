"""What the dice of games were worth, counted while they are played (`analysis.luck`).

A game's luck is the sum over its rolls of what each was worth less its mean over all rolls, by a
value function that the plan names before anything is played. Its mean is 0, so shares of the win
less luck have the mean of the shares (the chance part of AIVAT, Burch and others, AAAI 2018).

The set-up's rolls and the territories are left out. A deal is played in every seating, and a value
function does not know who sits where: what it thinks of a start is the same for each agent, summed
over the seatings. Only what depends on the set-up's crowns would differ.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env.analysis.luck import luck
from carolus_env.analysis.values import Floats, Value, value_function
from carolus_env.arena.lockstep import Rolled
from carolus_env.arena.seating import Plan
from carolus_env.engine.chance import draw_faces
from carolus_env.engine.rules import TEAMS
from carolus_env.engine.state import STATE, States

METHOD: Final = "faces"
"""How a roll's luck is counted, see `analysis.luck`."""

_ROLLS: Final = 40  # of a game, for a guess of the time
_VALUED: Final = 6  # positions for each roll


def value_of(plan: Plan) -> Value | None:
    """The value function of a plan; None: it has none.

    Raises:
        ValueError: when it cannot be made, or is not what it was when the plan was made.
    """
    if plan.luck is None:
        return None
    value = value_function(plan.luck, plan.rules.players)
    if value.version != plan.luck_version:
        raise ValueError(
            f"value function {plan.luck!r} must have version {plan.luck_version}, as when the "
            f"tournament was planned, got {value.version}"
        )
    return value


def luck_of(plan: Plan) -> dict[str, str | None]:
    """How a plan's luck is counted, for its summary."""
    return {"value": plan.luck, "version": plan.luck_version, "method": METHOD}


def seconds_a_game(value: Value, states: States) -> float:
    """Roughly how long counting a game's luck takes; compiles what it needs.

    Args:
        value: of the plan.
        states: ``(N,)`` positions.
    """
    value(states)
    started = time.perf_counter()
    value(states)
    return (time.perf_counter() - started) / len(states) * _ROLLS * _VALUED


class LuckCount:
    """Counts the luck of games in play.

    Args:
        value: of positions.
        games: how many.
        players: of each.

    Attributes:
        rolled: where `lockstep.step` writes the games that roll.
        totals: ``(games, teams)`` float64, the luck so far.
    """

    def __init__(self, value: Value, games: int, players: int) -> None:
        self.value = value
        self.rolled = Rolled(
            filled=np.zeros(1, np.int64),
            games=np.empty(games, np.int64),
            before=np.empty(games, STATE),
        )
        self.totals = np.zeros((games, TEAMS[players]))

    def add(self) -> None:
        """Add the luck of the rolls that the last step has written."""
        count = int(self.rolled.filled[0])
        self.rolled.filled[0] = 0
        if count:
            before = self.rolled.before[:count].copy()
            faces = draw_faces(before)
            self.totals[self.rolled.games[:count]] += luck(before, faces, self.value, METHOD)

    def of_seats(self, team: npt.NDArray[np.integer]) -> Floats:
        """Each seat's luck; partners halve their team's, as they do with the share of the win.

        Args:
            team: ``(games, players)``: the team of each seat.

        Returns:
            ``(games, players)`` float64.
        """
        found: Floats = np.take_along_axis(self.totals, team.astype(np.int64), axis=1)
        return found * self.totals.shape[1] / max(team.shape[1], 1)
