"""Legal actions: the legal set as one number, as a mask, and a random choice from it.

Few legal sets can occur, so they are data: each is a row of `LEGAL_SETS`, and `legal_set` returns
the number of the current row. The rows come in blocks of 32, one row for each set of discs or
clans (its bits are the row's number):

    block 0      discs that may be played
    block 1      clans that a crown may become
    block 2      steps of the Emperor; here the row is the number of steps; 0: no decision is due
    block 3 + n  clans that paladins may be played of, with n regions in the circle
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from carolus_env.engine import rules
from carolus_env.engine.kernels.courts import can_be_taken
from carolus_env.engine.kernels.generator import below, mix, step
from carolus_env.system.arrays import I8, U64, Bits, Int, int64
from carolus_env.system.compiler import kernel

BLOCK = 32
DISC_SETS, CROWN_SETS, MOVE_SETS, PLACE_SETS = 0, BLOCK, 2 * BLOCK, 3 * BLOCK
assert 1 << rules.DISCS == 1 << rules.CLANS == BLOCK


def _members(row: int) -> list[int]:
    """Return the positions of the set bits of a row's number."""
    return [k for k in range(rules.CLANS) if row >> k & 1]


def _legal_sets() -> npt.NDArray[np.int8]:
    sets = np.zeros((PLACE_SETS + BLOCK * (rules.TERRITORIES + 1), rules.ACTIONS), np.int8)
    for row in range(BLOCK):
        for k in _members(row):
            sets[DISC_SETS + row, rules.FIRST_DISC + k] = 1
            sets[CROWN_SETS + row, rules.FIRST_CROWN + k] = 1
            for regions in range(rules.TERRITORIES + 1):
                court = rules.FIRST_PLACE + rules.DESTINATIONS * k
                sets[PLACE_SETS + BLOCK * regions + row, court : court + 1 + regions] = 1
    for steps in range(rules.DISCS + 1):
        sets[MOVE_SETS + steps, rules.FIRST_MOVE : rules.FIRST_MOVE + steps] = 1
    return sets


LEGAL_SETS = _legal_sets()
"""``(608, 95)`` int8 masks."""

# A legal action is FIRST_ACTION + STRIDE * member + choice: a member of the row's set (any one for
# a move), and a choice from 0 to below SPAN. So a random one needs no branch on the phase.
HOW_MANY = np.array([len(_members(row)) for row in range(BLOCK)])
NTH_MEMBER = np.array([(_members(row) + [0] * rules.CLANS)[: rules.CLANS] for row in range(BLOCK)])
FIRST_ACTION = np.array(
    [rules.FIRST_DISC, rules.FIRST_CROWN, rules.FIRST_MOVE]
    + [rules.FIRST_PLACE] * (rules.TERRITORIES + 1)
)
STRIDE = np.array([1, 1, 0] + [rules.DESTINATIONS] * (rules.TERRITORIES + 1))
SPAN = np.array(
    [1] * BLOCK
    + [1] * BLOCK
    + [min(row, rules.DISCS) for row in range(BLOCK)]
    + [1 + regions for regions in range(rules.TERRITORIES + 1) for _ in range(BLOCK)],
    np.uint8,  # small: all tables together must fit into a GPU's 64 KiB of constants
)
_LOWER_HALF = np.uint64(32)


@kernel
def playable_discs(s: np.void) -> Int:
    """Return the bits of the discs that the player may play: bit d - 1 for disc d.

    A number already played this round is not allowed, unless that would leave no disc at all.
    """
    hand = int64(s["discs_in_hand"][s["player"]])
    fresh = hand
    for player in range(int64(s["players"])):
        played = int64(s["discs_played"][player])
        fresh &= ~((1 << played) >> 1)
    return hand if fresh == 0 else fresh


@kernel
def clans_to_take(s: np.void) -> Int:
    """Return the bits of the clans that a crown may become."""
    clans = 0
    for clan in range(rules.CLANS):
        clans |= int64(can_be_taken(s, clan)) << clan
    return clans


@kernel
def clans_in_reserve(s: np.void) -> Int:
    """Return the bits of the clans that the player has paladins of."""
    player, clans = int64(s["player"]), 0
    for clan in range(rules.CLANS):
        clans |= int64(s["reserves"][player, clan] > 0) << clan
    return clans


@kernel
def emperor_steps(s: np.void) -> Int:
    """Return the most steps that the player may move the Emperor: the number of its disc."""
    return int64(s["discs_played"][s["player"]])


@kernel
def legal_set(s: np.void) -> Int:
    """Return the row of `LEGAL_SETS` with the actions that are legal now."""
    phase = s["phase"]
    if phase == rules.CROWN_CHOICE:
        return CROWN_SETS + clans_to_take(s)
    # Compute all three, then choose: in a batch no branch predictor could guess.
    place = PLACE_SETS + BLOCK * int64(s["regions"]) + clans_in_reserve(s)
    move = MOVE_SETS + emperor_steps(s)
    disc = DISC_SETS + playable_discs(s)
    legal_row = place if phase == rules.PLACE else MOVE_SETS  # the latter: no decision is due
    legal_row = move if phase == rules.MOVE else legal_row
    return disc if phase == rules.DISC else legal_row


@kernel
def allows(legal_row: Int, action: Int) -> Int:
    """Return 1 where the legal set of that row holds ``action``, else 0.

    The only place that reads the table: a compiler for GPUs copies it for each place that does.
    """
    return LEGAL_SETS[legal_row, action]


@kernel
def is_legal(s: np.void, action: Int) -> bool:
    """Return whether ``action`` (any integer) is legal now."""
    return 0 <= action < rules.ACTIONS and allows(legal_set(s), action) == 1


@kernel
def write_mask(legal_row: Int, masks: I8, row: Int) -> None:
    """Copy a legal set into ``masks[row]``."""
    for action in range(rules.ACTIONS):
        masks[row, action] = allows(legal_row, action)


@kernel
def random_action(legal_row: Int, random_bits: Bits) -> Int:
    """Sample a member of a legal set uniformly; -1 where no decision is due."""
    member = NTH_MEMBER[legal_row % BLOCK, below(random_bits, HOW_MANY[legal_row % BLOCK])]
    choice = below(random_bits << _LOWER_HALF, SPAN[legal_row])
    action = FIRST_ACTION[legal_row // BLOCK] + STRIDE[legal_row // BLOCK] * member + choice
    return -1 if legal_row == MOVE_SETS else action


@kernel
def draw_action(legal_row: Int, generators: U64, g: Int) -> Int:
    """Sample a member of a legal set uniformly by stream ``g``; -1 where no decision is due."""
    generators[g] = step(generators[g])
    return random_action(legal_row, mix(generators[g]))
