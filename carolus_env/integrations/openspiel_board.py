"""Where a game in OpenSpiel is: in its set-up, or on the board. This needs no OpenSpiel.

The set-up's draws and the rolls are left to chance nodes, which list every outcome with its
probability; `carolus_env.integrations.openspiel` shows them to OpenSpiel.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.chance import apply_roll, chance_outcomes
from carolus_env.engine.kernels.legal import LEGAL_SETS
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CLANS,
    DISC,
    OVER,
    PALADINS_LAID_OUT,
    PLACE,
    ROLL,
    TERRITORIES,
    Rules,
)
from carolus_env.engine.state import STATE, States, from_bytes, single
from carolus_env.engine.stepping import (
    ILLEGAL,
    PHASE_BITS,
    PLAYER_BITS,
    PLAYER_SHIFT,
    SET_SHIFT,
    play_one,
)
from carolus_env.notation import roll_text, to_line
from carolus_env.notation.words import CLAN_LETTERS

CHANCE: Final = -1
"""OpenSpiel's number of the player that chance is."""
TERMINAL: Final = -4
"""OpenSpiel's number of the player when the game is over."""

_LEGAL: Final = tuple(tuple(np.flatnonzero(row).tolist()) for row in LEGAL_SETS)
"""The action numbers of each legal set, ascending."""
_NOTHING: Final[tuple[int, ...]] = ()


class SetUp:
    """A game whose set-up is being drawn: the clans on the first territories. Never changes."""

    __slots__ = ("clans", "legal", "player")

    def __init__(self, clans: tuple[int, ...] = ()) -> None:
        self.clans = clans
        self.player, self.legal = CHANCE, _NOTHING

    def outcomes(self, players: int) -> list[tuple[int, float]]:
        """Clans that the next territory can get, or seats of the first player."""
        if len(self.clans) == TERRITORIES:
            return [(seat, 1 / players) for seat in range(players)]
        left = [PALADINS_LAID_OUT - self.clans.count(clan) for clan in range(CLANS)]
        return [(clan, left[clan] / sum(left)) for clan in range(CLANS) if left[clan]]

    def drawn(self, outcome: int, rules: Rules) -> SetUp | Board:
        """The game after one more draw."""
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
        """What a draw brings, in words."""
        if len(self.clans) == TERRITORIES:
            return f"first player {outcome}"
        return f"territory {len(self.clans)} {CLAN_NAMES[outcome]}"

    def copy(self) -> SetUp:
        """Itself."""
        return self

    def __str__(self) -> str:
        return " ".join(["set-up |", *(CLAN_LETTERS[clan] for clan in self.clans)])

    def __deepcopy__(self, memo: dict[int, object]) -> SetUp:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return SetUp, (self.clans,)


class Board:
    """A game after the set-up, and what is due in it.

    Attributes:
        states: ``(1,)`` of dtype `STATE`, over bytes of its own.
        phase: what is due.
        player: who decides, as OpenSpiel counts; `CHANCE` or `TERMINAL`.
        legal: the legal actions.
    """

    __slots__ = ("legal", "phase", "player", "states")

    def __init__(self, states: States) -> None:
        self.states = states
        self._look()

    def _look(self) -> None:
        if self.states["phase"][0] == ROLL:  # which `play_one` would roll
            self.phase, self.player, self.legal = ROLL, CHANCE, _NOTHING
        else:
            self._keep(play_one(self.states, -1, None, None, None))

    def _keep(self, due: int) -> None:
        self.phase = due & PHASE_BITS
        self.player = due >> PLAYER_SHIFT & PLAYER_BITS if self.phase != OVER else TERMINAL
        self.legal = _LEGAL[due >> SET_SHIFT]

    def play(self, action: int) -> None:
        """Carry out a decision; a roll is left to chance."""
        if self.phase not in (DISC, PLACE):
            engine.step(self.states, np.array([action]), roll=False)
            self._look()
            return
        # No roll follows a disc or a paladin: one call plays and looks.
        due = play_one(self.states, action, None, None, None) if action >= 0 else ILLEGAL
        if due == ILLEGAL:
            raise engine.refusal(self.states, 0, action)
        self._keep(due)

    def outcomes(self, players: int) -> list[tuple[int, float]]:
        """Rows of `chance_outcomes` for the dice that are due."""
        return list(_rolls(int(self.states["dice_due"][0])))

    def roll(self, outcome: int) -> None:
        """Roll a row of `chance_outcomes`."""
        apply_roll(self.states, self._faces(outcome))
        self._look()

    def outcome_text(self, outcome: int) -> str:
        """A roll in the notation."""
        return roll_text(self._faces(outcome).tolist())

    def _faces(self, outcome: int) -> npt.NDArray[np.uint8]:
        faces = chance_outcomes(self.states["dice_due"][0]).faces
        if not 0 <= outcome < len(faces):
            raise ValueError(
                f"a chance outcome must be from 0 to {len(faces) - 1} here, got {outcome}"
            )
        return faces[outcome]

    def copy(self) -> Board:
        """An independent copy, as whole bytes."""
        other = object.__new__(Board)
        other.states = copied(self.states)
        other.phase, other.player, other.legal = self.phase, self.player, self.legal
        return other

    def __str__(self) -> str:
        return _line(self.states.tobytes())

    def __deepcopy__(self, memo: dict[int, object]) -> Board:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.states.tobytes(),)


def _restored(data: bytes) -> Board:
    """The board that was pickled."""
    return Board(from_bytes(data))


@lru_cache(maxsize=10_000)  # algorithms that solve a game name each state many times
def _line(data: bytes) -> str:
    return to_line(np.frombuffer(data, STATE)[0], generator=False)


def copied(states: States) -> States:
    """``(1,)`` a copy: `engine.copy` in a tenth of its time, for one game."""
    return np.frombuffer(bytearray(states.tobytes()), STATE)


@cache
def _rolls(dice: int) -> tuple[tuple[int, float], ...]:
    return tuple(enumerate(chance_outcomes(dice).probabilities.tolist()))


def without_dice(record: np.void) -> States:
    """``(1,)`` a copy with no dice to come, so that equal positions are equal bytes."""
    states = single(record)
    states["generator"] = 0
    return states
