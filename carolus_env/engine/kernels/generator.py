"""SplitMix64, the generator in every game's record (Steele, Lea and Flood, 2014).

A generator is one 64-bit number. `step` advances it, `mix` turns it into a random number. Games
never share one, so the same seed gives the same game in any batch and on any thread.
"""

from __future__ import annotations

import numpy as np

from carolus_env.system.arrays import Bits, Int
from carolus_env.system.compiler import COMPILED, kernel

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = (np.uint64(k) for k in (11, 27, 30, 31, 32))

if COMPILED:

    @kernel
    def _times(a: Bits, b: Bits) -> Bits:
        return a * b

    @kernel
    def _plus(a: Bits, b: Bits) -> Bits:
        return a + b

else:  # NumPy's scalars warn when they wrap around; compiled code does not

    def _times(a: Bits, b: Bits) -> Bits:
        return np.uint64(int(a) * int(b) & 0xFFFFFFFFFFFFFFFF)

    def _plus(a: Bits, b: Bits) -> Bits:
        return np.uint64(int(a) + int(b) & 0xFFFFFFFFFFFFFFFF)


@kernel
def step(generator: Bits) -> Bits:
    """Return the generator's next state."""
    return _plus(generator, GOLDEN_GAMMA)


@kernel
def mix(generator: Bits) -> Bits:
    """Return the 64 random bits of a generator's state."""
    z = _times(generator ^ (generator >> _30), _MIX_1)
    z = _times(z ^ (z >> _27), _MIX_2)
    return z ^ (z >> _31)


@kernel
def below(bits: Bits, n: Int) -> Int:
    """Return an integer in [0, n) from 64 random bits (n is small: the bias is below n / 2^32)."""
    return np.int64(_times(bits >> _32, np.uint64(n)) >> _32)


@kernel
def fraction(bits: Bits) -> float:
    """Return a random number from 0 to below 1 out of 64 random bits."""
    return float(bits >> _11) * 2.0**-53
