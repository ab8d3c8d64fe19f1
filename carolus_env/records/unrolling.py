"""Games from their events, a byte each: every decision noted in a row of arrays.

`records.arrays` calls it; it says what the bytes and the arrays are.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.loop import play_on
from carolus_env.engine.rules import BY_MAX_ROUNDS, FACES, OVER, ROLL
from carolus_env.engine.stepping import Views, write_views
from carolus_env.system.arrays import F32, F64, I8, I64, U8, Bools, Records, int64
from carolus_env.system.compiler import entry, kernel

FACE: Final = 128
"""An event from here on is a die: ``FACE`` and what it shows. The others are actions."""
MOST_DICE: Final = 9


class Recorded(NamedTuple):
    """A game's events, and the arrays for its decisions, which are arguments of `unroll`."""

    events: U8
    end: int
    """The index after the game's last event."""
    first: int
    """The row of the game's first decision."""
    views: Views
    actions: U8
    seats: U8
    dones: Bools
    discounts: F32
    faces: U8
    lasts: I64


@kernel
def _read_action(s: np.void, count: Any, event: Any, game: Any) -> Any:
    """Play the action and note the decision: an ``act`` of `play_on`.

    ``event`` is the number of the next event, or the bits of the wrong one inverted.
    """
    if event < 0 or event >= game.end or not legal.is_legal(s, int64(game.events[event])):
        return False, event
    row, seat = game.first + count, int64(s["player"])
    write_views(s, row, game.views)
    game.actions[row], game.seats[row] = game.events[event], seat
    game.dones[row], game.discounts[row] = False, 1.0
    game.lasts[seat] = row
    turns.play(s, int64(game.events[event]))
    return True, event + 1


@kernel
def _read_dice(s: np.void, count: Any, event: Any, game: Any) -> Any:
    """Take the dice that are due: a ``roll`` of `play_on`."""
    while s["phase"] == ROLL:
        due = int64(s["dice_due"])
        if event + due > game.end:
            return ~game.end
        for die in range(due):
            face = int64(game.events[event + die]) - FACE
            if face < 0 or face >= FACES:
                return ~(event + die)
            game.faces[0, die] = face
        turns.take_roll(s, game.faces, 0)
        event += due
    return event


@entry
def unroll(
    states: Records, events: U8, bounds: I64, firsts: I64,
    masks: I8 | None, raw: U8 | None, scales: F32 | None, scaled: F32 | None,
    actions: U8, seats: U8, returns: F32, dones: Bools, discounts: F32,
    faces: U8, payoffs: F64, lasts: I64, fault: I64,
) -> None:  # fmt: skip
    """Play each game's events to its end; ``fault``: the game and the event that are not due."""
    for g in range(states.shape[0]):
        s = states[g]
        for seat in range(lasts.shape[0]):
            lasts[seat] = -1
        game = Recorded(
            events, bounds[g + 1], firsts[g], Views(masks, raw, scales, scaled),
            actions, seats, dones, discounts, faces, lasts,
        )  # fmt: skip
        begun = _read_dice(s, 0, bounds[g], game)
        count, event = play_on(_read_action, _read_dice, s, begun, game)
        if s["phase"] != OVER or event != bounds[g + 1]:
            fault[0], fault[1] = g, max(event, ~event)
            return
        turns.write_returns(s, payoffs, 0)
        for k in range(firsts[g], firsts[g] + count):
            returns[k] = payoffs[0, int64(seats[k])]
        for seat in range(int64(s["players"])):
            if lasts[seat] >= 0:
                dones[lasts[seat]] = True
                if s["reason"] != BY_MAX_ROUNDS:
                    discounts[lasts[seat]] = 0.0
    fault[0] = -1
