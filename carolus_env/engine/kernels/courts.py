"""Paladins between supply, reserves and courts; control of the clans.

Several counts fit in one number: byte k of a 64-bit *word* holds count k. Work on all clans, or on
eight regions, then takes a few instructions instead of the dozens of a loop. Words are unsigned,
and so is every number that they are shifted by: of signed and unsigned ones Numba makes floats.
"""

from __future__ import annotations

import numpy as np

from carolus_env.engine.rules import CLANS, CROWN, MAX_PLAYERS, NOBODY
from carolus_env.system.arrays import I8, U8, Bits, Int, int64, uint64
from carolus_env.system.compiler import kernel, separate

NOTHING = uint64(0)
BYTE, EACH_COUNT, EACH_CLAN = (uint64(k) for k in (0xFF, 0x0101010101010101, 0x0101010101))
_EVEN, _ODD, _SUM = uint64(0xFF00FF00FF), uint64(0xFF00FF), uint64(0xFFFF)
_1, _2, _8, _16, _32 = (uint64(k) for k in (1, 2, 8, 16, 32))


@kernel
def clan_word(counts: U8 | I8) -> Bits:
    """Return the word of the five counts of ``counts``."""
    word = NOTHING
    for clan in range(CLANS):
        word |= uint64(int64(counts[clan]) & 255) << uint64(8 * clan)
    return word


@kernel
def sum_of(word: Bits) -> Int:
    """Return the sum of the five counts."""
    pairs = (word & _EVEN) + ((word >> _8) & _ODD)
    return int64((pairs + (pairs >> _16) + (pairs >> _32)) & _SUM)


@kernel
def where_equal(word: Bits, value: Int) -> Bits:
    """Return a 1 for each count that equals ``value``; they may be from -1 to 6."""
    differs = word ^ (uint64(value) * EACH_COUNT)
    return ~(differs | (differs >> _1) | (differs >> _2)) & EACH_COUNT


@kernel
def lanes(ones: Bits) -> Bits:
    """Return a byte of ones for each 1: the mask that keeps those counts of a word."""
    return ones * BYTE


@separate
def smallest_court(s: np.void, clan: Int) -> Int:
    """Return the clan's paladins in the court that holds the fewest."""
    fewest = int64(s["courts"][0, clan])
    for player in range(1, int64(s["players"])):
        fewest = min(fewest, int64(s["courts"][player, clan]))
    return fewest


@kernel
def can_be_taken(s: np.void, clan: Int) -> bool:
    """Return whether the clan can be taken: the supply or every court holds at least one of it."""
    return s["supply"][clan] > 0 or smallest_court(s, clan) > 0


@separate
def return_from_courts(s: np.void, clan: Int) -> None:
    """Take as many from every court as the smallest holds, to the supply; so no control changes."""
    returned = smallest_court(s, clan)
    for player in range(int64(s["players"])):
        s["courts"][player, clan] -= returned
        s["supply"][clan] += returned


@kernel
def take_paladin(s: np.void, player: Int, clan: Int) -> None:
    """Take one from the supply into the reserve; the courts fill an empty supply first."""
    if s["supply"][clan] == 0:
        return_from_courts(s, clan)
    s["supply"][clan] -= 1
    s["reserves"][player, clan] += 1


@kernel
def take_face(s: np.void, player: Int, face: Int) -> None:
    """Take what a die shows: a paladin of that clan; a crown if it shows one or none is left."""
    is_clan = int64(face != CROWN)
    clan = face * is_clan
    if s["supply"][clan] > 0:  # nearly always; then no branch depends on the face
        s["supply"][clan] -= is_clan
        s["reserves"][player, clan] += is_clan
        s["crowns"][player] += 1 - is_clan
    elif face != CROWN and can_be_taken(s, face):
        take_paladin(s, player, face)
    else:
        s["crowns"][player] += 1


@kernel
def most_elsewhere(s: np.void, player: Int, clan: Int) -> tuple[Int, Int]:
    """Return the most paladins of the clan in another court, and in an opponent's reserve."""
    court, reserve, team = 0, 0, s["team"][player]
    for other in range(int64(s["players"])):
        if other != player:
            court = max(court, int64(s["courts"][other, clan]))
            if s["team"][other] != team:
                reserve = max(reserve, int64(s["reserves"][other, clan]))
    return court, reserve


@kernel
def place_in_court(s: np.void, player: Int, clan: Int) -> None:
    """Place a paladin in the court; with the lead comes control, with a tie control stays."""
    s["courts"][player, clan] += 1
    if int64(s["courts"][player, clan]) > most_elsewhere(s, player, clan)[0]:
        s["control"][clan] = player


@kernel
def controlling_team(s: np.void, clan: Int) -> Int:
    """Return the team of the seat that controls the clan, or NOBODY."""
    player = int64(s["control"][clan])
    team = int64(s["team"][max(player, 0)])
    return NOBODY if player == NOBODY else team


@kernel
def clans_held(s: np.void, player: Int) -> Bits:
    """Return a word with a 1 for each clan that the player controls."""
    return where_equal(clan_word(s["control"]), player) & EACH_CLAN


@kernel
def clans_of(s: np.void, team: Int) -> Bits:
    """Return a word with a 1 for each clan that the team's members control."""
    clans = NOTHING
    for player in range(MAX_PLAYERS):  # seats that are not used hold none
        clans |= clans_held(s, player) * uint64(s["team"][player] == team)
    return clans


@kernel
def reserve_size(s: np.void, player: Int) -> Int:
    """Return the number of paladins in the reserve, crowns not counted."""
    return sum_of(clan_word(s["reserves"][player]))
