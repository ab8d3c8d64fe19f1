"""Several counts in one number: byte k of a 64-bit *word* holds count k.

Work on all clans, or on eight regions, takes a few instructions instead of the dozens of a loop.

Words are unsigned, and so is every number that they are shifted by: Numba turns a
mixture of signed and unsigned numbers into floating-point numbers.
"""

from __future__ import annotations

from carolus_env.engine.rules import CLANS
from carolus_env.engine.state import CIRCLE
from carolus_env.system.arrays import I8, U8, Bits, Int, int64, uint64
from carolus_env.system.compiler import kernel

WORD = 8
"""Counts in a word."""
assert CIRCLE == 2 * WORD

NOTHING = uint64(0)
ALL_BITS = uint64(0xFFFFFFFFFFFFFFFF)
EACH_COUNT, EACH_CLAN = uint64(0x0101010101010101), uint64(0x0101010101)
_BYTE = uint64(0xFF)
_EVEN, _ODD, _SUM = uint64(0xFF00FF00FF), uint64(0xFF00FF), uint64(0xFFFF)
_1, _2, _8, _16, _32 = (uint64(k) for k in (1, 2, 8, 16, 32))


@kernel
def eight_counts(counts: U8 | I8, at: Int) -> Bits:
    """Return the word of ``counts[at : at + 8]``; the compiler makes one load of it."""
    word = NOTHING
    for k in range(WORD):
        word |= uint64(int64(counts[at + k]) & 255) << uint64(8 * k)
    return word


@kernel
def write_eight(word: Bits, out: U8, at: Int) -> None:
    """Write the eight counts to ``out[at : at + 8]``."""
    first = uint64(at)  # an unsigned index cannot count from the end: one store then does
    for k in range(WORD):
        out[first + uint64(k)] = (word >> uint64(8 * k)) & _BYTE


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
    return ones * _BYTE


@kernel
def all_if(bits: Bits, index: Int) -> Bits:
    """Return a word of ones if ``bits`` has a 1 at ``index``, else of zeros."""
    return ((bits >> uint64(index)) & _1) * ALL_BITS
