"""States of a game in OpenSpiel: in its set-up, or on the board. This needs no OpenSpiel.

The set-up's draws and the rolls are left to chance nodes, which list every outcome with its
probability; `carolus_env.integrations.openspiel` shows them to OpenSpiel.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.chance import apply_roll, chance_outcomes
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CLANS,
    OVER,
    PALADINS_LAID_OUT,
    ROLL,
    TERRITORIES,
    Rules,
)
from carolus_env.engine.state import States, copy, single
from carolus_env.notation import roll_text, to_line
from carolus_env.notation.vocabulary import CLAN_LETTERS

CHANCE: Final = -1
"""OpenSpiel's number of the player that chance is."""
TERMINAL: Final = -4
"""OpenSpiel's number of the player when the game is over."""


class SetUp:
    """A game whose set-up is being drawn: the clans on the first territories. Never changes."""

    __slots__ = ("clans", "legal", "player")

    def __init__(self, clans: tuple[int, ...] = ()) -> None:
        self.clans = clans
        self.player: int = CHANCE
        self.legal: tuple[int, ...] = ()

    def outcomes(self, players: int) -> list[tuple[int, float]]:
        """Return the clans that the next territory can get, or the seats of the first player."""
        if len(self.clans) == TERRITORIES:
            return [(seat, 1 / players) for seat in range(players)]
        rest = [PALADINS_LAID_OUT - self.clans.count(clan) for clan in range(CLANS)]
        return [(clan, rest[clan] / sum(rest)) for clan in range(CLANS) if rest[clan]]

    def drawn(self, outcome: int, rules: Rules) -> SetUp | Board:
        """Return the game after one more draw."""
        possible = [number for number, _ in self.outcomes(rules.players)]
        if outcome not in possible:
            raise ValueError(f"a chance outcome must be one of {possible} here, got {outcome}")
        if len(self.clans) < TERRITORIES:
            return SetUp((*self.clans, outcome))
        states = engine.new_games(
            rules, 1, seed=0, territories=self.clans, first_player=outcome, roll=False
        )
        return Board(without_dice(states[0]))

    def outcome_text(self, outcome: int) -> str:
        """Return the outcome of a draw, in words."""
        if len(self.clans) == TERRITORIES:
            return f"first player {outcome}"
        return f"territory {len(self.clans)} {CLAN_NAMES[outcome]}"

    def copy(self) -> SetUp:
        """Return the set-up itself, which never changes."""
        return self

    def __str__(self) -> str:
        return " ".join(["set-up |", *(CLAN_LETTERS[clan] for clan in self.clans)])


class Board:
    """A game after the set-up, and the decision or roll that is due.

    Attributes:
        states: ``(1,)`` of dtype `STATE`.
        player: the player who decides, as OpenSpiel counts; `CHANCE` or `TERMINAL`.
        legal: the legal actions.
    """

    __slots__ = ("legal", "player", "states")

    def __init__(self, states: States) -> None:
        self.states = states
        self._look()

    def _look(self) -> None:
        due = {ROLL: CHANCE, OVER: TERMINAL}
        self.player = due.get(int(self.states["phase"][0]), int(self.states["player"][0]))
        self.legal = tuple(engine.legal_actions(self.states).tolist())

    def play(self, action: int) -> None:
        """Carry out a decision; a roll is left to chance."""
        engine.step(self.states, np.array([action]), roll=False)
        self._look()

    def outcomes(self, players: int) -> list[tuple[int, float]]:
        """Return the rows of `chance_outcomes` for the dice that are due."""
        return list(_rolls(int(self.states["dice_due"][0])))

    def roll(self, outcome: int) -> None:
        """Roll a row of `chance_outcomes`."""
        apply_roll(self.states, self._faces(outcome))
        self._look()

    def outcome_text(self, outcome: int) -> str:
        """Return a roll in the notation."""
        return roll_text(self._faces(outcome).tolist())

    def _faces(self, outcome: int) -> npt.NDArray[np.uint8]:
        faces = chance_outcomes(self.states["dice_due"][0]).faces
        if not 0 <= outcome < len(faces):
            raise ValueError(
                f"a chance outcome must be from 0 to {len(faces) - 1} here, got {outcome}"
            )
        return faces[outcome]

    def copy(self) -> Board:
        """Return an independent copy."""
        return Board(copy(self.states))

    def __str__(self) -> str:
        return to_line(self.states[0], generator=False)


@cache
def _rolls(dice: int) -> tuple[tuple[int, float], ...]:
    return tuple(enumerate(chance_outcomes(dice).probabilities.tolist()))


def without_dice(record: np.void) -> States:
    """Return a copy, ``(1,)``, with no dice to come, so that equal positions are equal bytes."""
    states = single(record)
    states["generator"] = 0
    return states
