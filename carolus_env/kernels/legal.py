"""What may be played: the legal set as a mask, one action's legality, a random legal action.

The three are written side by side by phase, and a test holds them against each other and against
an independent reading of the rules.
"""

from __future__ import annotations

from numpy import int64

from carolus_env.compiler import kernel
from carolus_env.kernels.courts import can_be_taken
from carolus_env.kernels.generator import below
from carolus_env.rules import (
    ACTIONS,
    CLANS,
    CROWN_CHOICE,
    DESTINATIONS,
    DISC,
    DISCS,
    FIRST_CROWN,
    FIRST_DISC,
    FIRST_MOVE,
    FIRST_PLACE,
    MOVE,
    PLACE,
)


@kernel
def playable_discs(s):
    """Bits of the discs that the player may play: bit d - 1 for disc d.

    A number already played this round is not allowed, unless that would leave no disc at all.
    """
    hand = int64(s["discs_in_hand"][s["player"]])
    fresh = hand
    for player in range(int64(s["players"])):
        played = int64(s["discs_played"][player])
        if played > 0:
            fresh &= ~(1 << (played - 1))
    if fresh == 0:
        return hand
    return fresh


@kernel
def emperor_steps(s):
    """How far the player may move the Emperor: the own disc."""
    return int64(s["discs_played"][s["player"]])


@kernel
def is_legal(s, action):
    """Whether ``action`` (any integer) is legal now."""
    if action < 0 or action >= ACTIONS:
        return False
    phase = int64(s["phase"])
    if phase == DISC:
        k = action - FIRST_DISC
        return 0 <= k < DISCS and (playable_discs(s) >> k) & 1 == 1
    if phase == CROWN_CHOICE:
        k = action - FIRST_CROWN
        return 0 <= k < CLANS and can_be_taken(s, k)
    if phase == MOVE:
        k = action - FIRST_MOVE
        return 0 <= k < emperor_steps(s)
    if phase == PLACE:
        k = action - FIRST_PLACE
        if k < 0:
            return False
        in_reserve = s["reserves"][s["player"], k // DESTINATIONS] > 0
        return in_reserve and k % DESTINATIONS <= int64(s["regions"])
    return False


@kernel
def write_mask(s, masks, row):
    """Set ``masks[row]`` to 1 at each legal action and 0 elsewhere."""
    for action in range(ACTIONS):
        masks[row, action] = 0
    phase = int64(s["phase"])
    if phase == DISC:
        discs = playable_discs(s)
        for k in range(DISCS):
            masks[row, FIRST_DISC + k] = (discs >> k) & 1
    elif phase == CROWN_CHOICE:
        for clan in range(CLANS):
            masks[row, FIRST_CROWN + clan] = can_be_taken(s, clan)
    elif phase == MOVE:
        for k in range(emperor_steps(s)):
            masks[row, FIRST_MOVE + k] = 1
    elif phase == PLACE:
        destinations = int64(s["regions"]) + 1
        for clan in range(CLANS):
            if s["reserves"][s["player"], clan] > 0:
                start = FIRST_PLACE + DESTINATIONS * clan
                for action in range(start, start + destinations):
                    masks[row, action] = 1


@kernel
def nth_set(bits, n):
    """Position of the n-th set bit, n counted from 0; -1 when there are not so many."""
    position = 0
    while bits > 0:
        if bits & 1:
            if n == 0:
                return position
            n -= 1
        bits >>= 1
        position += 1
    return -1


@kernel
def count_set(bits):
    """Number of set bits."""
    count = 0
    while bits > 0:
        count += bits & 1
        bits >>= 1
    return count


@kernel
def random_action(s, random_bits):
    """A legal action, each equally likely, from 64 random bits; -1 where nobody decides."""
    phase = int64(s["phase"])
    if phase == DISC:
        discs = playable_discs(s)
        return FIRST_DISC + nth_set(discs, below(random_bits, count_set(discs)))
    if phase == MOVE:
        return FIRST_MOVE + below(random_bits, emperor_steps(s))
    clans = 0
    if phase == CROWN_CHOICE:
        for clan in range(CLANS):
            clans |= int64(can_be_taken(s, clan)) << clan
        return FIRST_CROWN + nth_set(clans, below(random_bits, count_set(clans)))
    if phase == PLACE:
        for clan in range(CLANS):
            clans |= int64(s["reserves"][s["player"], clan] > 0) << clan
        destinations = int64(s["regions"]) + 1
        choice = below(random_bits, count_set(clans) * destinations)
        clan = nth_set(clans, choice // destinations)
        return FIRST_PLACE + DESTINATIONS * clan + choice % destinations
    return -1
