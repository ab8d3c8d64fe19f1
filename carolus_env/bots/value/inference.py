"""The value `network` as kernels, one position after the other.

`write_value` is what search and play ask: any position, over or not, gets each *team's* expected
share of the win.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import float32, int64

from carolus_env.bots.value.inputs import Seen, team_role, write_seen
from carolus_env.bots.value.network import LEAK, LINEAR
from carolus_env.bots.value.tables import Layout, layout
from carolus_env.engine.kernels import turns
from carolus_env.engine.rules import MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import States, as_states, common_players
from carolus_env.system.compiler import entry, kernel, part, rare

Floats = npt.NDArray[np.float32]

MOST_CHANGES: Final = 32
"""So often sums are changed by differences before they are added up anew."""


class ValueWeights(NamedTuple):
    """The arrays of `network.shapes`, or numbers for each of them."""

    rows: Floats
    numbers: Floats
    bias: Floats
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: Floats

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> ValueWeights:
        """Copies of arrays by name."""
        return cls(*(np.array(arrays[name], np.float32, order="C") for name in cls._fields))


class Units(NamedTuple):
    """Scratch: what the layers put out for one position."""

    sums: Floats
    """``(width,)`` float32."""
    first: Floats
    """``(width - LINEAR,)`` float32."""
    second: Floats
    """``(hidden,)`` float32."""
    chances: Floats
    """``(teams,)`` float32: the value, by team role."""

    @classmethod
    def new(cls, weights: ValueWeights) -> Units:
        """Fresh memory."""
        width, hidden = len(weights.bias), weights.hidden_bias.shape[1]
        sizes = (width, width - LINEAR, hidden, weights.out_bias.shape[1])
        return cls(*(np.zeros(size, np.float32) for size in sizes))


class Summed(NamedTuple):
    """What the sums of `Units` were written for, and scratch to tell what is new."""

    length: npt.NDArray[np.int64]
    """``(1,)`` int64: the number of rows; 0: nothing that can be built on."""
    changes: npt.NDArray[np.int64]
    """``(1,)`` int64: how often the sums were changed since they were added up."""
    rows: npt.NDArray[np.int32]
    """``(MOST_ROWS,)`` int32: the rows."""
    numbers: Floats
    """``(3 F,)`` float32: the features."""
    places: npt.NDArray[np.int64]
    """``(MOST_ROWS,)`` int64, scratch: the places of rows, or features, that are new."""
    before: npt.NDArray[np.int32]
    """``(MOST_ROWS,)`` int32, scratch: the rows that were there."""
    grown: Floats
    """``(3 F,)`` float32, scratch: by how much the features are greater."""

    @classmethod
    def new(cls, seen: Seen) -> Summed:
        """Fresh memory for what a network sees."""
        one, places = np.zeros(1, np.int64), np.zeros(len(seen.rows), np.int64)
        rows, numbers = np.zeros_like(seen.rows), np.zeros_like(seen.numbers)
        return cls(one, one.copy(), rows, numbers, places, rows.copy(), numbers.copy())


class ValueNet(NamedTuple):
    """A value network as kernels take it: weights and scratch."""

    layout: Layout
    """Where each table of rows begins."""
    weights: ValueWeights
    """The weights."""
    seen: Seen
    """Scratch: what it sees of a position."""
    units: Units
    """Scratch: what its layers put out."""
    summed: Summed
    """Scratch: what the sums were written for, where they go by differences."""

    @classmethod
    def of(cls, players: int, weights: ValueWeights) -> ValueNet:
        """A network with scratch of its own; the weights are shared."""
        seen = Seen.new()
        return cls(layout(players), weights, seen, Units.new(weights), Summed.new(seen))


# ------------------------------------------------------------------------------------ layers


@kernel
def _leaky(number):
    return number if number > float32(0) else LEAK * number


@rare
def write_sums(weights, seen, sums):
    """The first layer: add up the rows and features of `Seen`."""
    rows = weights.rows
    width, count = sums.shape[0], seen.length[0]
    for j in range(width):
        sums[j] = weights.bias[j]
    fours = count - count % 4
    for i in range(0, fours, 4):  # four at a time: fewer passes over the sums
        a, b = rows[seen.rows[i]], rows[seen.rows[i + 1]]
        c, d = rows[seen.rows[i + 2]], rows[seen.rows[i + 3]]
        for j in range(width):
            sums[j] += (a[j] + b[j]) + (c[j] + d[j])
    for i in range(fours, count):
        a = rows[seen.rows[i]]
        for j in range(width):
            sums[j] += a[j]
    for i in range(weights.numbers.shape[0]):
        number = seen.numbers[i]
        if number != 0:
            a = weights.numbers[i]
            for j in range(width):
                sums[j] += number * a[j]


@part
def _keep_summed(seen, summed):
    """The sums were added up for what is seen now."""
    summed.length[0], summed.changes[0] = seen.length[0], 0
    for k in range(seen.length[0]):
        summed.rows[k] = seen.rows[k]
    for k in range(summed.numbers.shape[0]):
        summed.numbers[k] = seen.numbers[k]


@part
def _exchange_rows(weights, seen, summed, sums):
    """Take rows that are gone from the sums, and add those that came."""
    rows, places, before = weights.rows, summed.places, summed.before
    count, old_count, changed = seen.length[0], summed.length[0], 0
    for k in range(min(count, old_count)):
        places[changed], before[changed] = k, summed.rows[k]
        changed += int64(seen.rows[k] != summed.rows[k])
        summed.rows[k] = seen.rows[k]
    twos = changed - changed % 2
    for i in range(0, twos, 2):
        a, b = rows[seen.rows[places[i]]], rows[before[i]]
        c, d = rows[seen.rows[places[i + 1]]], rows[before[i + 1]]
        for j in range(sums.shape[0]):
            sums[j] += (a[j] - b[j]) + (c[j] - d[j])
    if twos < changed:
        a, b = rows[seen.rows[places[twos]]], rows[before[twos]]
        for j in range(sums.shape[0]):
            sums[j] += a[j] - b[j]
    for k in range(count, old_count):
        a = rows[summed.rows[k]]
        for j in range(sums.shape[0]):
            sums[j] -= a[j]
    for k in range(old_count, count):
        summed.rows[k] = seen.rows[k]
        a = rows[seen.rows[k]]
        for j in range(sums.shape[0]):
            sums[j] += a[j]
    summed.length[0] = count


@part
def _exchange_numbers(weights, seen, summed, sums):
    """Take features out of the sums as they were, and add them as they are."""
    numbers, places, grown = weights.numbers, summed.places, summed.grown
    changed = 0
    for k in range(numbers.shape[0]):
        growth = seen.numbers[k] - summed.numbers[k]
        places[changed], grown[changed] = k, growth
        changed += int64(growth != 0)
        summed.numbers[k] = seen.numbers[k]
    twos = changed - changed % 2
    for i in range(0, twos, 2):
        a, b = numbers[places[i]], numbers[places[i + 1]]
        for j in range(sums.shape[0]):
            sums[j] += grown[i] * a[j] + grown[i + 1] * b[j]
    if twos < changed:
        a = numbers[places[twos]]
        for j in range(sums.shape[0]):
            sums[j] += grown[twos] * a[j]


@rare
def change_sums(weights, seen, summed, sums):
    """`write_sums` by differences to the position before, if there is one to build on.

    Choices of one turn lead to positions that are much alike. After some changes the sums are added
    up anew, so that what is lost by rounding stays small.
    """
    if summed.length[0] == 0 or summed.changes[0] == MOST_CHANGES:
        write_sums(weights, seen, sums)
        _keep_summed(seen, summed)
        return
    summed.changes[0] += 1
    _exchange_rows(weights, seen, summed, sums)
    _exchange_numbers(weights, seen, summed, sums)


@rare
def write_chances(weights, stage, units):
    """The other layers, those of a stage, from ``units.sums`` on."""
    sums, first, second, chances = units.sums, units.first, units.second, units.chances
    wide, hidden, teams = first.shape[0], second.shape[0], chances.shape[0]
    w_hidden, hidden_bias = weights.hidden[stage], weights.hidden_bias[stage]
    w_out, out_bias = weights.out[stage], weights.out_bias[stage]
    for i in range(wide):
        first[i] = _leaky(sums[i])
    for j in range(hidden):
        second[j] = hidden_bias[j]
    for i in range(0, wide, 4):
        a, b, c, d = first[i], first[i + 1], first[i + 2], first[i + 3]
        w_a, w_b = w_hidden[i], w_hidden[i + 1]
        w_c, w_d = w_hidden[i + 2], w_hidden[i + 3]
        for j in range(hidden):
            second[j] += (a * w_a[j] + b * w_b[j]) + (c * w_c[j] + d * w_d[j])
    for j in range(hidden):
        second[j] = _leaky(second[j])
    most, fours = float32(-1e30), hidden - hidden % 4
    for team in range(teams):
        score = out_bias[team]
        for j in range(0, fours, 4):
            a, b = second[j] * w_out[j, team], second[j + 1] * w_out[j + 1, team]
            c, d = second[j + 2] * w_out[j + 2, team], second[j + 3] * w_out[j + 3, team]
            score += (a + b) + (c + d)
        for j in range(fours, hidden):
            score += second[j] * w_out[j, team]
        for j in range(LINEAR):
            score += sums[wide + j] * w_out[hidden + j, team]
        chances[team] = score
        most = max(most, score)
    total = float32(0)
    for team in range(teams):
        chances[team] = np.exp(chances[team] - most)
        total += chances[team]
    for team in range(teams):
        chances[team] /= total


@rare
def write_roles(s, net):
    """Value ``s``, which is not over: write ``net.units.chances``, by team role."""
    write_seen(s, net.layout, net.seen)
    write_sums(net.weights, net.seen, net.units.sums)
    write_chances(net.weights, net.seen.stage[0], net.units)


@rare
def write_like_roles(s, net):
    """`write_roles` by differences to the position before."""
    write_seen(s, net.layout, net.seen)
    change_sums(net.weights, net.seen, net.summed, net.units.sums)
    write_chances(net.weights, net.seen.stage[0], net.units)


@part
def write_value(s, net, chances, like=False):
    """Write each team's expected share of the win in ``s``: ``(3,)`` float64.

    Args:
        s: the position.
        net: a `ValueNet`.
        chances: written.
        like: whether ``s`` is like the position before. From `forget_sums` on nothing else may be
            valued by ``net`` then, and nothing be learnt.
    """
    teams = int64(s["teams"])
    if s["phase"] == OVER:
        for team in range(teams):
            chances[team] = turns.team_win_share(s, team)
        return
    if like:
        write_like_roles(s, net)
    else:
        write_roles(s, net)
    for team in range(teams):
        chances[team] = net.units.chances[team_role(s, team)]


@kernel
def forget_sums(net):
    """Begin anew: the next position that is like the one before builds on nothing."""
    net.summed.length[0] = 0


@part
def like_value(s, team, net):
    """The team's expected share of the win in ``s``; see `write_value` for ``like``."""
    if s["phase"] == OVER:
        return turns.team_win_share(s, team)
    write_like_roles(s, net)
    return float(net.units.chances[team_role(s, team)])


# ------------------------------------------------------------------------------------ for Python


def values(states: States, weights: ValueWeights) -> npt.NDArray[np.float64]:
    """Each team's expected share of the win: ``(N, teams)`` float64; rows sum to 1.

    Args:
        states: ``(N,)`` games of one number of players, at any point.
        weights: of a network for that number of players.
    """
    players = common_players(as_states(states), "values")
    found = np.zeros((len(states), MAX_TEAMS))
    _values(states, ValueNet.of(players, weights), found)
    return found[:, : TEAMS[players]]


@entry
def _values(states, net, found):
    for g in range(states.shape[0]):
        write_value(states[g], net, found[g])
