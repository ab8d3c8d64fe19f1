"""Random streams: one 64-bit generator for each game, and one for each game's bots.

A stream is a uint64 that kernels advance (`engine.kernels.generator`). It belongs to a seed, not to
a place in a batch: seed ``k`` gives the same stream in any row.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from carolus_env.engine.kernels import generator
from carolus_env.engine.state import Ints, States, check_buffer
from carolus_env.system.arrays import U64, Bits
from carolus_env.system.compiler import entry, kernel
from carolus_env.system.options import whole_number


def new_streams(seed: int | Ints | None, n: int) -> npt.NDArray[np.uint64]:
    """Return ``n`` generators (uint64) for bots, independent of those of games with the same seeds.

    Stream ``i`` belongs to ``seed + i`` (or ``seed[i]``), for any ``n``.
    """
    started = seed_generators(seed, n)
    _fork(started)
    return started


def check_streams(generators: npt.NDArray[np.uint64], states: States) -> None:
    """Check that there is one stream for each game, which a kernel can advance."""
    check_buffer("generators", generators, states.shape, np.uint64)


def random_bits(generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Draw 64 random bits from each stream, in place: ``(N,)`` uint64."""
    check_streams(generators, np.asarray(generators))
    bits = np.empty_like(generators)
    _random_bits(generators, bits)
    return bits


@entry
def _random_bits(generators: U64, bits: Bits) -> None:
    for i in range(generators.shape[0]):
        generators[i] = generator.step(generators[i])
        bits[i] = generator.mix(generators[i])


@entry
def _fork(started: U64) -> None:
    for i in range(started.shape[0]):
        started[i] = generator.mix(~started[i])


@entry
def _seeded(seeds: U64) -> None:
    for i in range(seeds.shape[0]):
        seeds[i] = generator.mix(generator.step(seeds[i]))


def seed_generators(seed: int | Ints | None, n: int) -> npt.NDArray[np.uint64]:
    """Return ``n`` generators that start far apart, also for consecutive seeds."""
    n = whole_number("n, the number of streams,", n, 0)
    if seed is None:
        seed = secrets.randbits(63)
    if isinstance(seed, np.ndarray) and seed.ndim > 0:
        if seed.shape != (n,) or seed.dtype.kind not in "iu":
            raise ValueError(
                f"seed must be a number or {n} whole numbers, "
                f"got shape {seed.shape} and dtype {seed.dtype}"
            )
        if (seed < 0).any():
            raise ValueError(f"seeds must not be negative, got {seed.min()}")
        seeds = seed.astype(np.uint64)
    else:
        first = whole_number("seed", seed, 0, 2**64 - 1)
        seeds = np.uint64(first) + np.arange(n, dtype=np.uint64)
    _seeded(seeds)
    return seeds


def branches(streams: npt.ArrayLike, numbers: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Return derived streams, one for each of ``streams`` with each of ``numbers`` (broadcast).

    The same stream and number give the same branch; the stream is not advanced.
    """
    roots, names = np.broadcast_arrays(
        np.asarray(streams, np.uint64), np.asarray(numbers, np.uint64)
    )
    result = np.empty(roots.shape, np.uint64)
    _branch_all(np.array(roots).ravel(), np.array(names).ravel(), result.reshape(-1))
    return result


@kernel
def branch(stream: Bits, number: Bits) -> Bits:
    """Return the start of a stream that belongs to ``stream`` and a number (uint64).

    Seeds are scattered by the same ``mix``, so the stream is mixed once more: otherwise seed 1's
    branch 2 would be seed 2's branch 1.
    """
    scattered = generator.mix(generator.step(stream))
    return generator.mix(~(scattered ^ generator.mix(generator.step(number))))


@entry
def _branch_all(streams: U64, numbers: U64, out: U64) -> None:
    for i in range(out.shape[0]):
        out[i] = branch(streams[i], numbers[i])
