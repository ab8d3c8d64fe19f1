"""Five counts in one number: byte k of a *word* holds the count of clan k.

Where all clans are handled alike this does in a few instructions what a loop does in dozens. The
compiler makes one or two loads of `clan_word`, and one store of `put`.
"""

from __future__ import annotations

from numpy import int64

from carolus_env.compiler import kernel

_EVEN, _ODD, _SUM = 0xFF00FF00FF, 0xFF00FF, 0xFFFF
_COPIES, _LOWEST = 0x10204081, 0x0101010101
ROOM = 0x3FF  # no observation is longer; so the compiler knows that no index is negative


@kernel
def clan_word(counts, row):
    """The five counts of ``counts[row]``."""
    first = int64(counts[row, 0]) | int64(counts[row, 1]) << 8
    second = int64(counts[row, 2]) << 16 | int64(counts[row, 3]) << 24
    return first | second | int64(counts[row, 4]) << 32


@kernel
def spread(bits):
    """Bit k becomes a 1 in byte k."""
    return (bits * _COPIES) & _LOWEST


@kernel
def lanes(bits):
    """Bit k becomes a byte of ones: what keeps the counts of those clans in a word."""
    return 255 * spread(bits)


@kernel
def sum_of(word):
    """The sum of the five counts."""
    pairs = (word & _EVEN) + ((word >> 8) & _ODD)
    return (pairs + (pairs >> 16) + (pairs >> 32)) & _SUM


@kernel
def put(word, out, row, at):
    """Write the five counts to ``out[row, at : at + 5]``."""
    start = at & ROOM
    for k in range(5):
        out[row, start + k] = (word >> (8 * k)) & 255
