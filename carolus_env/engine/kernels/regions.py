"""Strength, settling, castles and merging.

Regions are kept as a list, sorted by their counter-clockwise end; the Emperor's place is an index
in it. The region after the last one is the first: the territories lie in a circle.
"""

from __future__ import annotations

import numpy as np

from carolus_env.engine.kernels import courts
from carolus_env.engine.rules import CLANS, NOBODY
from carolus_env.engine.state import CIRCLE
from carolus_env.system.arrays import I8, U8, Bits, Int, int64, uint64
from carolus_env.system.compiler import kernel, separate

WORD = 8  # regions in a word of counts
assert CIRCLE == 2 * WORD

ALL_BITS = uint64(0xFFFFFFFFFFFFFFFF)
_1, _8, _16, _32 = (uint64(k) for k in (1, 8, 16, 32))
_255, _SUM, _EVEN = uint64(255), uint64(0xFFFF), uint64(0x00FF00FF00FF00FF)


@kernel
def region_at(s: np.void, steps: Int) -> Int:
    """Return the region ``steps`` clockwise from the Emperor's, at most twice round."""
    count = int64(s["regions"])
    region = int64(s["emperor"]) + steps
    region = region - count if region >= count else region
    return region - count if region >= count else region


@kernel
def strength(s: np.void, region: Int, team: Int) -> Int:
    """Return the paladins of the clans that the team's members control, plus its castles there."""
    held = courts.lanes(courts.clans_of(s, team))
    paladins = courts.sum_of(courts.clan_word(s["region_paladins"][:, region]) & held)
    castles = int64(s["region_castles"][region])
    return paladins + (castles if s["region_owner"][region] == team else 0)


@kernel
def strongest_team(s: np.void, region: Int) -> Int:
    """Return the team strictly stronger than every other, or NOBODY for a tie or no strength."""
    best, most = NOBODY, 0
    for team in range(int64(s["teams"])):
        power = strength(s, region, team)
        if power > most:
            best, most = team, power
        elif power == most:
            best = NOBODY
    return best


@kernel
def take_over(s: np.void, region: Int, team: Int) -> None:
    """Build the team's first castle, or replace every castle by one of its own."""
    owner = int64(s["region_owner"][region])
    castles = 1
    if owner != NOBODY:
        castles = int64(s["region_castles"][region])
        s["castles"][owner] -= castles
    s["castles"][team] += castles
    s["region_castles"][region] = castles
    s["region_owner"][region] = team


@separate
def absorb_next(s: np.void, region: Int) -> None:
    """Merge the region with its clockwise neighbour; the new one starts where the region does."""
    count = int64(s["regions"])
    gone = (region + 1) % count
    s["region_castles"][region] += s["region_castles"][gone]
    for clan in range(CLANS):
        s["region_paladins"][clan, region] += s["region_paladins"][clan, gone]
    if s["emperor"] == gone:
        s["emperor"] = region
    if s["emperor"] > gone:
        s["emperor"] -= 1
    for i in range(gone, count - 1):
        s["region_first"][i] = s["region_first"][i + 1]
        s["region_owner"][i] = s["region_owner"][i + 1]
        s["region_castles"][i] = s["region_castles"][i + 1]
        for clan in range(CLANS):
            s["region_paladins"][clan, i] = s["region_paladins"][clan, i + 1]
    last = count - 1  # unused entries stay zero: equal games have equal bytes
    s["region_first"][last] = 0
    s["region_owner"][last] = 0
    s["region_castles"][last] = 0
    for clan in range(CLANS):
        s["region_paladins"][clan, last] = 0
    s["regions"] = last


@separate
def merge_neighbours(s: np.void) -> None:
    """Join the Emperor's region with its neighbours of the same team.

    The merged region is not settled again (docs/rules.md).
    """
    emperor = int64(s["emperor"])
    owner = s["region_owner"][emperor]
    if s["region_owner"][region_at(s, 1)] == owner:
        absorb_next(s, emperor)
    before = region_at(s, int64(s["regions"]) - 1)
    if before != int64(s["emperor"]) and s["region_owner"][before] == owner:
        absorb_next(s, before)


@kernel
def settle_region(s: np.void) -> bool:
    """Settle the region where the Emperor stands; True when its owner changed."""
    region = int64(s["emperor"])
    team = strongest_team(s, region)
    if team == NOBODY or team == int64(s["region_owner"][region]):
        return False
    take_over(s, region, team)
    merge_neighbours(s)
    return True


# ------------------------------------------------------------------------------------ the circle


@kernel
def eight_counts(counts: U8 | I8, at: Int) -> Bits:
    """Return the word of ``counts[at : at + 8]``; the compiler makes one load of it."""
    word = courts.NOTHING
    for k in range(WORD):
        word |= uint64(int64(counts[at + k]) & 255) << uint64(8 * k)
    return word


@kernel
def write_eight(word: Bits, out: U8, at: Int) -> None:
    """Write the eight counts to ``out[at : at + 8]``."""
    first = uint64(at)  # an unsigned index cannot count from the end: one store then does
    for k in range(WORD):
        out[first + uint64(k)] = (word >> uint64(8 * k)) & courts.BYTE


@kernel
def all_if(bits: Bits, index: Int) -> Bits:
    """Return a word of ones if ``bits`` has a 1 at ``index``, else of zeros."""
    return ((bits >> uint64(index)) & _1) * ALL_BITS


@kernel
def strengths(s: np.void, team: Int) -> tuple[Bits, Bits]:
    """Return a circle of the paladins that count for the team, castles not included.

    Counts are bytes: with more than 255 paladins on a region they are wrong, so no rule rests on
    them.
    """
    clans = courts.clans_of(s, team)
    low, high = courts.NOTHING, courts.NOTHING
    for clan in range(CLANS):
        counts = (clans >> uint64(8 * clan)) & uint64(1)
        low += eight_counts(s["region_paladins"][clan], 0) * counts
        high += eight_counts(s["region_paladins"][clan], WORD) * counts
    return low, high


@kernel
def count_at(circle: tuple[Bits, Bits], region: Int) -> Int:
    """Return the count of ``region`` in a circle, which is two words."""
    word = circle[0] if region < WORD else circle[1]
    return int64((word >> uint64(8 * (region % WORD))) & _255)


@kernel
def paladins_out(s: np.void, clan: Int) -> Int:
    """Return the clan's paladins on all regions, at most 200."""
    word = eight_counts(s["region_paladins"][clan], 0) + eight_counts(
        s["region_paladins"][clan], WORD
    )
    pairs = (word & _EVEN) + ((word >> _8) & _EVEN)
    pairs += pairs >> _32
    return int64((pairs + (pairs >> _16)) & _SUM)


@kernel
def heir_of(owner: Int, power_0: Int, power_1: Int, power_2: Int) -> Int:
    """Return the team that would get a region of these strengths, ``owner`` for a tie."""
    heir = owner
    heir = 0 if power_0 > max(power_1, power_2) else heir
    heir = 1 if power_1 > max(power_0, power_2) else heir
    return 2 if power_2 > max(power_0, power_1) else heir
