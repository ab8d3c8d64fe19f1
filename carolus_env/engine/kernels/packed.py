"""Several counts in one number: byte k of a 64-bit *word* holds count k.

Work on all clans, or on all regions, takes a few instructions instead of the dozens of a loop. A
`clan_word` holds the five counts of the clans; a *circle*, which is two words, those of up to 15
regions.

Words are unsigned, and so is every number that they are shifted by: Numba turns a
mixture of signed and unsigned numbers into floating-point numbers.
"""

from __future__ import annotations

import sys

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy import int64, uint64

from carolus_env.engine.rules import CLANS, TERRITORIES
from carolus_env.engine.state import CIRCLE
from carolus_env.system.compiler import COMPILED, kernel

WORD = CIRCLE // 2  # counts in a word

NOTHING = uint64(0)
EACH_CLAN = uint64(0x0101010101)
_ALL, _BYTE = uint64(0xFFFFFFFFFFFFFFFF), uint64(0xFF)
_ONES, _COPIES = uint64(0x0101010101010101), uint64(0x10204081)
_EVEN, _ODD, _SUM = uint64(0xFF00FF00FF), uint64(0xFF00FF), uint64(0xFFFF)
_1, _2, _8, _16, _32, _56 = (uint64(k) for k in (1, 2, 8, 16, 32, 56))

_FIRST = np.array(
    [[(1 << 8 * min(max(n - k, 0), WORD)) - 1 for k in (0, WORD)] for n in range(CIRCLE + 1)],
    np.uint64,
)
"""``_FIRST[n]`` keeps the first n counts of a circle."""


@kernel
def place_in_word(value, k):
    """A word with ``value``, from 0 to 255, as count k."""
    return uint64(value) << uint64(8 * k)


@kernel
def one_hot(number):
    """A word with a 1 as count ``number - 1``; of zeros for the number 0."""
    return place_in_word(1, number) >> _8


@kernel
def where_equal(word, value):
    """A 1 for each count that equals ``value``; they may be from -1 to 6."""
    differs = word ^ (uint64(value) * _ONES)
    return ~(differs | (differs >> _1) | (differs >> _2)) & _ONES


@kernel
def lanes(ones):
    """A byte of ones for each 1: the mask that keeps those counts of a word."""
    return ones * _BYTE


# ------------------------------------------------------------------------------------ memory

# `put` and `load` move a word at once. Of most loops over its bytes (below) the compiler makes the
# same, but not of all; and these need no check for negative indices.

if COMPILED and sys.byteorder == "little":

    def _address(context, builder, array_type, array, row, at, bits):
        """Pointer to ``array[row, at]``, or to ``array[at]``, as a number of that many bits."""
        parts = context.make_array(array_type)(context, builder, array)
        if row is not None:
            at = builder.add(at, builder.mul(row, builder.extract_value(parts.strides, 0)))
        start = builder.bitcast(parts.data, ir.IntType(8).as_pointer())
        return builder.bitcast(builder.gep(start, [at]), ir.IntType(bits).as_pointer())

    def _writer(how_many):
        bits = 8 * how_many

        @intrinsic
        def write(_, word, out, row, at):
            def generate(context, builder, signature, values):
                word, array, row, at = values
                where = _address(context, builder, signature.args[1], array, row, at, bits)
                if bits < 64:
                    word = builder.trunc(word, ir.IntType(bits))
                builder.store(word, where, align=1)
                return context.get_dummy_value()

            return types.void(types.uint64, out, types.int64, types.int64), generate

        return write

    @intrinsic
    def load(_, counts, at):
        """The eight counts from ``counts[at]`` on; those outside of ``counts`` are undefined."""

        def generate(context, builder, signature, values):
            array, at = values
            where = _address(context, builder, signature.args[0], array, None, at, 64)
            return builder.load(where, align=1)

        return types.uint64(counts, types.int64), generate

else:

    def _writer(how_many):
        @kernel
        def write(word, out, row, at):
            for k in range(how_many):
                out[row, at + k] = (word >> uint64(8 * k)) & _BYTE

        return write

    @kernel
    def load(counts, at):
        word = NOTHING
        for k in range(max(-at, 0), min(len(counts) - at, WORD)):
            word |= place_in_word(int64(counts[at + k]) & 255, k)
        return word


put = _writer(WORD)
"""``put(word, out, row, at)`` writes the eight counts to ``out[row, at : at + 8]``."""

put_one = _writer(1)
"""``put_one(word, out, row, at)`` writes the first count to ``out[row, at]``."""

_put_four = _writer(4)


@kernel
def put_clans(word, out, row, at):
    """Write the five counts to ``out[row, at : at + 5]``."""
    _put_four(word, out, row, at)
    put_one(word >> _32, out, row, at + 4)


# ------------------------------------------------------------------------------------ the clans


@kernel
def clan_word(counts):
    """The five counts of ``counts``."""
    word = NOTHING
    for clan in range(CLANS):
        word |= place_in_word(int64(counts[clan]) & 255, clan)
    return word


@kernel
def spread(bits):
    """Bit k becomes a 1 as count k, for five bits."""
    return (uint64(bits) * _COPIES) & EACH_CLAN


@kernel
def sum_of(word):
    """The sum of the five counts."""
    pairs = (word & _EVEN) + ((word >> _8) & _ODD)
    return int64((pairs + (pairs >> _16) + (pairs >> _32)) & _SUM)


@kernel
def all_if(bits, place):
    """A word of ones if ``bits`` has a 1 at ``place``, else of zeros."""
    return ((bits >> uint64(place)) & _1) * _ALL


# ------------------------------------------------------------------------------------ the circle


@kernel
def turn_to(start, count):
    """What `turned` needs, to turn a circle of ``count`` so that region ``start`` comes first."""
    wrapped = count - start  # where region 0 comes
    low, high = _FIRST[wrapped, 0], _FIRST[wrapped, 1]
    return start, wrapped, low, high, _FIRST[count, 0] ^ low, _FIRST[count, 1] ^ high


@kernel
def turned(counts, turn):
    """The circle of ``counts``, turned: from region ``start`` to the last, then from 0 on.

    Reads 16 bytes twice, from where the first of those regions would be, inside the field or not,
    and keeps only the bytes that belong to each part.
    """
    start, wrapped, low, high, low_rest, high_rest = turn
    return (
        (load(counts, start) & low) | (load(counts, -wrapped) & low_rest),
        (load(counts, start + WORD) & high) | (load(counts, WORD - wrapped) & high_rest),
    )


@kernel
def ones_of(count):
    """A circle with a 1 for each of ``count`` regions."""
    return _FIRST[count, 0] & _ONES, _FIRST[count, 1] & _ONES


@kernel
def put_circle(circle, out, row, at):
    """Write 15 counts to ``out[row, at : at + 15]``, and a zero after them."""
    put(circle[0], out, row, at)
    put(circle[1], out, row, at + WORD)


@kernel
def put_last_circle(circle, out, row, at):
    """Write 15 counts to ``out[row, at : at + 15]``, and nothing after them."""
    put(circle[0], out, row, at)
    put((circle[0] >> _56) | (circle[1] << _8), out, row, at + TERRITORIES - WORD)
