"""Games from their events, a byte each: every decision noted in a row of arrays.

`records.arrays` calls it; it says what the bytes and the arrays are.
"""

from __future__ import annotations

from typing import Final

from numpy import int64

from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.observation import scale_observation, write_observation
from carolus_env.engine.rules import BY_MAX_ROUNDS, FACES, OVER, ROLL
from carolus_env.system.compiler import entry

FACE: Final = 128
"""An event from here on is a die: ``FACE`` and what it shows. The others are actions."""
MOST_DICE: Final = 9


@entry
def unroll(
    states, events, bounds, firsts, masks, whole, scales, scaled,
    actions, seats, returns, dones, discounts, faces, payoffs, lasts, fault,
):  # fmt: skip
    """Play each game's events to its end; ``fault``: the game and the event that are not due."""
    for g in range(states.shape[0]):
        s = states[g]
        row, event, end = firsts[g], bounds[g], bounds[g + 1]
        fault[0], fault[1] = g, event
        for seat in range(lasts.shape[0]):
            lasts[seat] = -1
        while s["phase"] != OVER:
            fault[1] = event
            if s["phase"] == ROLL:
                due = int64(s["dice_due"])
                if event + due > end:
                    fault[1] = end
                    return
                for die in range(due):
                    face = int64(events[event + die]) - FACE
                    if face < 0 or face >= FACES:
                        fault[1] = event + die
                        return
                    faces[0, die] = face
                turns.take_roll(s, faces, 0)
                event += due
                continue
            if event >= end or not legal.is_legal(s, int64(events[event])):
                return
            seat = int64(s["player"])
            if masks is not None:
                legal.write_mask(legal.legal_set(s), masks, row)
            if whole is not None:
                if scaled is not None:
                    write_observation(s, seat, whole, 0)
                    scale_observation(whole, 0, scales, scaled, row)
                else:
                    write_observation(s, seat, whole, row)
            actions[row], seats[row] = events[event], seat
            dones[row], discounts[row] = False, 1.0
            lasts[seat] = row
            turns.play(s, int64(events[event]))
            row += 1
            event += 1
        if event != end:
            fault[1] = event
            return
        turns.write_returns(s, payoffs, 0)
        for k in range(firsts[g], row):
            returns[k] = payoffs[0, int64(seats[k])]
        for seat in range(int64(s["players"])):
            if lasts[seat] >= 0:
                dones[lasts[seat]] = True
                if s["reason"] != BY_MAX_ROUNDS:
                    discounts[lasts[seat]] = 0.0
    fault[0] = -1
