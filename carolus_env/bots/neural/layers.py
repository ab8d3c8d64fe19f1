"""The layers of the `network` as kernels, for one position: `inference` puts them together.

A vector or matrix of weights is named by its start in the array of all weights. Below, d is the
width `Size.region`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import float32

from carolus_env.bots.neural.network import MESSAGE_SCALE
from carolus_env.engine.rules import CLANS, TERRITORIES
from carolus_env.system.compiler import kernel, part, rare

Floats = npt.NDArray[np.float32]


class Weights(NamedTuple):
    """The weights, with the scratch that `add` needs."""

    numbers: Floats
    """``(W,)`` float32: all weights, one array after the other."""
    nonzero: npt.NDArray[np.int64]
    """``(longest input + 1,)`` int64, scratch: the indices of inputs other than 0."""


@rare
def begin(numbers, start, out):
    """Copy the vector that begins at ``start`` to ``out``."""
    for j in range(out.shape[0]):
        out[j] = numbers[start + j]


@rare
def add(x, weights, start, out):
    """``out += x @ matrix``, where the matrix begins at ``start`` of the weights.

    First the indices of nonzero inputs are collected without a branch, which the processor could
    not predict. Then their lines are added, four at a time.
    """
    numbers, nonzero = weights.numbers, weights.nonzero
    width, count = out.shape[0], 0
    for i in range(x.shape[0]):
        nonzero[count] = i
        count += x[i] != 0
    fours = count - count % 4
    for k in range(0, fours, 4):
        a, b, c, d = nonzero[k], nonzero[k + 1], nonzero[k + 2], nonzero[k + 3]
        line_a, line_b = line_of(numbers, start, a, width), line_of(numbers, start, b, width)
        line_c, line_d = line_of(numbers, start, c, width), line_of(numbers, start, d, width)
        x_a, x_b, x_c, x_d = x[a], x[b], x[c], x[d]
        for j in range(width):
            out[j] += (x_a * line_a[j] + x_b * line_b[j]) + (x_c * line_c[j] + x_d * line_d[j])
    for k in range(fours, count):
        add_scaled(x[nonzero[k]], line_of(numbers, start, nonzero[k], width), out)


@part
def line_of(numbers, start, i, width):
    """Line ``i`` of the matrix that begins at ``start``."""
    first = start + i * width
    return numbers[first : first + width]


@rare
def add_scaled(factor, x, out):
    """``out += factor * x``."""
    if factor != 0:
        for j in range(out.shape[0]):
            out[j] += factor * x[j]


@rare
def rectify(out):
    """``out = max(out, 0)``."""
    for j in range(out.shape[0]):
        out[j] = max(out[j], float32(0))


@rare
def dot(x, y):
    """The scalar product."""
    total = float32(0)
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@kernel
def add_sum(scale, lines, count, line, weights, start, out):
    """``out += (scale * sum of the first lines) @ matrix``; ``line`` is overwritten."""
    line[:] = 0
    for i in range(count):
        add_scaled(float32(scale), lines[i], line)
    add(line, weights, start, out)


@kernel
def add_messages(seen, start, stride, messages, count, out):
    """Add the first messages, each times its number of paladins in ``seen``."""
    for k in range(count):
        add_scaled(float32(MESSAGE_SCALE) * seen[start + k * stride], messages[k], out)


@rare
def write_clans(before, line, weights, matrix, sending, clans, messages):
    """A layer of all clans, and their messages to the regions.

    Args:
        before: ``(5, ...)`` the layer before.
        line: ``(d,)`` added to each clan, biases included.
        weights: `Weights`.
        matrix, sending: where the matrices of the layer and of the messages begin.
        clans, messages: ``(5, d)``, written.
    """
    for c in range(CLANS):
        begin(line, 0, clans[c])
        add(before[c], weights, matrix, clans[c])
        rectify(clans[c])
        messages[c][:] = 0
        add(clans[c], weights, sending, messages[c])


@rare
def write_regions(before, line, weights, biases, matrix, seen, paladins, messages, regions):
    """A layer of all regions, which receive the messages of the clans with paladins there.

    Args:
        before: ``(15, ...)`` the layer before.
        line: ``(d,)`` added to each region.
        weights: `Weights`.
        biases, matrix: where the biases (of each region) and the matrix begin.
        seen: ``(length,)`` the observation.
        paladins: where the paladins on regions begin in it.
        messages: ``(5, d)``.
        regions: ``(regions, d)``, written.
    """
    for i in range(regions.shape[0]):
        begin(weights.numbers, biases + i * line.shape[0], regions[i])
        add_scaled(float32(1), line, regions[i])
        add_messages(seen, paladins + i, TERRITORIES, messages, CLANS, regions[i])
        add(before[i], weights, matrix, regions[i])
        rectify(regions[i])
