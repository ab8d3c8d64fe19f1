"""The `network` as a kernel, one position after the other: for play and for search.

It computes the same sums as `network.forward`, so the outputs agree up to rounding; a test compares
them. Observation, legal actions and the softmax are included. The many inputs of 0 are
skipped, and only the logits of the current phase are computed; so a position takes some
microseconds where NumPy takes hundreds. Unlike those of a matrix product, the outputs do not depend
on the other positions in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import float32, int64

from carolus_env.bots.neural import network
from carolus_env.bots.neural.layers import (
    Floats,
    Weights,
    add,
    add_messages,
    add_scaled,
    add_sum,
    begin,
    dot,
    line_of,
    rectify,
    write_clans,
    write_regions,
)
from carolus_env.bots.neural.network import (
    CASTLES_SCALE,
    CLAN_SCALE,
    CLANS_SUM_SCALE,
    COURT_SCALE,
    FEW_REGIONS,
    HELD,
    LEADS,
    MARGINS,
    REACH_SCALE,
    REGION_SCALE,
    REGIONS_SUM_SCALE,
    RESERVE_SCALE,
    SUPPLY_DIVISOR,
    Size,
    Steps,
)
from carolus_env.engine import observation
from carolus_env.engine.kernels import legal
from carolus_env.engine.observation import write_observation
from carolus_env.engine.rules import (
    ACTIONS,
    CASTLES_TO_WIN,
    CLANS,
    CROWN_CHOICE,
    DESTINATIONS,
    DICE,
    DISC,
    DISCS,
    FIRST_CROWN,
    FIRST_DISC,
    FIRST_MOVE,
    FIRST_PLACE,
    MAX_TEAMS,
    MOVE,
    TEAMS,
    TERRITORIES,
)
from carolus_env.engine.state import States
from carolus_env.system.compiler import entry, kernel, rare

_SIZES = ("players", "teams", "dice", "castles_to_win")


# In the shapes below, d and z are the widths `Size.region` and `Size.trunk`.


class Inputs(NamedTuple):
    """Scratch: the inputs of the first layers."""

    rest: Floats
    """``(A,)`` float32."""
    clans: Floats
    """``(5, B)`` float32."""
    regions: Floats
    """``(15, C)`` float32."""


class Layers(NamedTuple):
    """Scratch: the outputs of the layers."""

    rest: Floats
    """``(z,)`` float32."""
    trunk: Floats
    """``(z,)`` float32."""
    value: Floats
    """``(z,)`` float32."""
    clans: Floats
    """``(5, d)`` float32: the first layer of clans; later the third."""
    clans_2: Floats
    """``(5, d)`` float32: the second layer of clans."""
    messages: Floats
    """``(5, d)`` float32: what each clan sends to the regions with its paladins."""
    regions: Floats
    """``(15, d)`` float32: the first layer of regions, which is what they send to the clans."""
    regions_2: Floats
    """``(15, d)`` float32: the second layer of regions."""
    line: Floats
    """``(d,)`` float32: for sums of any kind."""


class Answers(NamedTuple):
    """Scratch: the network's outputs."""

    logits: Floats
    """``(95,)`` float32: of the actions; only those of the current phase are written."""
    scores: Floats
    """``(3,)`` float32: of the teams, the team of the player to move first."""


class NetArrays(NamedTuple):
    """A network as kernels take it: weights, lookup tables and scratch."""

    weights: Weights
    """The weights, and scratch to multiply by them."""
    offsets: npt.NDArray[np.void]
    """``(1,)``, an int64 for each array of `network.shapes`: where it begins in the weights."""
    layout: npt.NDArray[np.void]
    """``(1,)``, an int64 for each of `_SIZES`, and for each block of an observation: its start."""
    shared: npt.NDArray[np.int64]
    """``(K,)`` int64: the entries of an observation that belong to no region and no clan."""
    scales: Floats
    """``(K,)`` float32: the factors of these entries."""
    seen: npt.NDArray[np.uint8]
    """``(1, length)`` uint8, scratch: the observation."""
    inputs: Inputs
    """Scratch: 3 arrays."""
    layers: Layers
    """Scratch: 9 arrays."""
    answers: Answers
    """Scratch: 2 arrays."""


class Net:
    """A network as a kernel.

    Args:
        size: of the network.
        weights: the arrays that `network.shapes` names.
    """

    def __init__(self, size: Size, weights: Mapping[str, Floats]) -> None:
        players = size.players
        self.size = size
        # `_write_answers` multiplies the last layer of placements from the other side.
        laid = [w.T if name == "place_region" else w for name, w in sorted(weights.items())]
        self._weights = np.concatenate([w.ravel() for w in laid])
        starts = np.cumsum([0, *(w.size for w in laid)])[:-1]
        self._offsets = np.zeros(1, [(name, np.int64) for name in sorted(weights)])
        for name, start in zip(sorted(weights), starts, strict=True):
            self._offsets[name] = start

        blocks, where = observation.layout(players), observation.slices(players)
        self._layout = np.zeros(1, [(name, np.int64) for name in (*_SIZES, *where)])
        for name, block in where.items():
            self._layout[name] = block.start
        self._layout["players"], self._layout["teams"] = players, TEAMS[players]
        self._layout["dice"] = DICE[players]
        self._layout["castles_to_win"] = CASTLES_TO_WIN[players]
        shared = [
            block for block in blocks if block.name not in network.BY_REGION | network.BY_CLAN
        ]
        entries = [np.arange(where[b.name].start, where[b.name].stop) for b in shared]
        self._shared = np.concatenate(entries)
        self._scales = observation.scales(players)[self._shared]

        shapes, d, z = network.shapes(size), size.region, size.trunk
        rest, clan, region = (shapes[name][0] for name in ("rest", "clan", "region"))
        inputs = (rest,), (CLANS, clan), (TERRITORIES, region)
        layers = *[(z,)] * 3, *[(CLANS, d)] * 3, *[(TERRITORIES, d)] * 2, (d,)
        answers = (ACTIONS,), (MAX_TEAMS,)
        self._shapes = [(shape, int(np.prod(shape))) for shape in (*inputs, *layers, *answers)]
        self._floats = sum(count for _, count in self._shapes)
        self._longest = max(rest, d, z)
        self._length = observation.length(players)

    def arrays(self) -> NetArrays:
        """What the kernels take as ``net``, with fresh scratch."""
        flat, at, views = np.zeros(self._floats, np.float32), 0, []
        for shape, count in self._shapes:
            views.append(flat[at : at + count].reshape(shape))
            at += count
        return NetArrays(
            Weights(self._weights, np.zeros(self._longest + 1, np.int64)),
            self._offsets,
            self._layout,
            self._shared,
            self._scales,
            np.zeros((1, self._length), np.uint8),
            Inputs(*views[:3]),
            Layers(*views[3:-2]),
            Answers(*views[-2:]),
        )

    def judge(self, states: States) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Evaluate games of its number of players that wait for a decision.

        Returns:
            ``(N, 95)`` float64 log probabilities of the actions, minus infinity where illegal;
            ``(N, teams)`` float64 win probabilities, by number of team.
        """
        policy = np.empty((len(states), ACTIONS))
        chances = np.empty((len(states), MAX_TEAMS))
        _judge(states, self.arrays(), policy, chances)
        return policy, chances[:, : TEAMS[self.size.players]]


@entry
def _judge(states, net, policy, chances):
    for g in range(states.shape[0]):
        judge(states[g], net, policy, g, chances[g])


@rare
def judge(s, net, policy, row, chances):
    """Write ``policy[row]``, log probabilities, and ``chances``, by number of team."""
    logits, scores = net.answers.logits, net.answers.scores
    write_observation(s, int64(s["player"]), net.seen, 0)
    _write_inputs(net, int64(s["regions"]))
    _write_answers(net, int64(s["regions"]), int64(s["phase"]))

    legal_set = legal.legal_set(s)
    most, total = -np.inf, 0.0
    for action in range(ACTIONS):
        policy[row, action] = -np.inf
        if legal.allows(legal_set, action):
            policy[row, action] = logits[action]
            most = max(most, logits[action])
    for action in range(ACTIONS):
        if policy[row, action] > -np.inf:
            total += np.exp(policy[row, action] - most)
    less = most + np.log(total)
    for action in range(ACTIONS):
        policy[row, action] -= less

    teams, mine = int64(s["teams"]), int64(s["team"][s["player"]])
    most, total = scores[0], 0.0
    for k in range(1, teams):
        most = max(most, scores[k])
    for k in range(teams):
        total += np.exp(float(scores[k] - most))
    for k in range(MAX_TEAMS):
        chances[k] = 0.0
    for k in range(teams):
        chances[(mine + k) % teams] = np.exp(float(scores[k] - most)) / total


# ------------------------------------------------------------------------------------ inputs


@kernel
def _write_steps(x, steps, line, at):
    """1 for each of the `Steps` that ``x`` reaches, else 0; returns the next index."""
    for k in range(steps.low, steps.high):
        line[at] = x >= k
        at += 1
    return at


@kernel
def _over_others(seen, start, stride, count, k):
    """The ``k``-th of ``count`` numbers less the largest of the others."""
    most = int64(-1)
    for other in range(count):
        if other != k:
            most = max(most, int64(seen[start + other * stride]))
    return int64(seen[start + k * stride]) - most


@rare
def _write_inputs(net, regions):
    """Write the inputs of the first layers, from ``net.seen``."""
    see, seen = net.layout[0], net.seen[0]
    rest, clans, circle = net.inputs.rest, net.inputs.clans, net.inputs.regions
    players, teams, shared = see["players"], see["teams"], net.shared.shape[0]

    for k in range(shared):
        rest[k] = seen[net.shared[k]] * net.scales[k]
    placements = int64(seen[see["placements_left"]])
    at = _write_steps(placements, Steps(1, see["dice"] + 1), rest, shared)
    for k in range(teams):
        castles = int64(seen[see["castles"] + k])
        at = _write_steps(castles, Steps(1, see["castles_to_win"] + 1), rest, at)
    _write_steps(regions, FEW_REGIONS, rest, at)

    for c in range(CLANS):
        line, at = clans[c], 0
        for k in range(players):
            lead = _over_others(seen, see["courts"] + c, CLANS, players, k)
            at = _write_steps(lead, LEADS, line, at)
        for k in range(players):
            held = int64(seen[see["reserves"] + k * CLANS + c])
            at = _write_steps(held, HELD, line, at)
        sides = at + 3 * players  # the team in control
        line[sides] = line[sides + 1] = 0
        for k in range(players):
            controls = seen[see["control"] + k * CLANS + c]
            court = seen[see["courts"] + k * CLANS + c]
            reserve = seen[see["reserves"] + k * CLANS + c]
            line[at + k] = controls
            line[at + players + k] = float32(COURT_SCALE) * court
            line[at + 2 * players + k] = float32(RESERVE_SCALE) * reserve
            if teams == 2:
                line[sides + (0 if seen[see["partner"] + k] else 1)] += controls
            else:
                line[sides + k] = controls
        at = sides + teams
        line[at] = seen[see["supply"] + c] / float32(SUPPLY_DIVISOR)
        paladins = 0
        for i in range(regions):
            paladins += int64(seen[see["region_paladins"] + c * TERRITORIES + i])
        line[at + 1] = float32(CLAN_SCALE) * paladins

    for i in range(regions):
        line = circle[i]
        line[0] = 1
        at = 1 + 2 * teams
        for k in range(1 if teams == 2 else teams):
            margin = _over_others(seen, see["region_strength"] + i, TERRITORIES, teams, k)
            at = _write_steps(margin, MARGINS, line, at)
        following = i + 1 if i + 1 < regions else 0
        before = i - 1 if i > 0 else regions - 1
        for k in range(teams):
            for place, start in ((i, 1), (following, at), (before, at + 2 * teams)):
                castles = seen[see["region_castles"] + k * TERRITORIES + place]
                line[start + k] = castles > 0
                line[start + teams + k] = float32(CASTLES_SCALE) * castles
        paladins = 0
        for c in range(CLANS):
            paladins += int64(seen[see["region_paladins"] + c * TERRITORIES + i])
        line[at + 4 * teams] = float32(REGION_SCALE) * paladins


# ------------------------------------------------------------------------------------ answers


@rare
def _write_answers(net, regions, phase):
    """The layers of `network.forward`; of the logits only those of the phase."""
    inputs, layers = net.inputs, net.layers
    logits, scores = net.answers.logits, net.answers.scores
    rest, trunk, value, line = layers.rest, layers.trunk, layers.value, layers.line
    clans, clans_2, messages = layers.clans, layers.clans_2, layers.messages
    circle, circle_2 = layers.regions, layers.regions_2
    w, at, see, seen = net.weights, net.offsets[0], net.layout[0], net.seen[0]
    d, paladins = line.shape[0], see["region_paladins"]

    begin(w.numbers, at["rest_b"], rest)
    add(inputs.rest, w, at["rest"], rest)
    rectify(rest)

    begin(w.numbers, at["clan_b"], line)
    add(rest, w, at["clan_rest"], line)
    write_clans(inputs.clans, line, w, at["clan"], at["region_clan"], clans, messages)

    line[:] = 0
    add(rest, w, at["region_rest"], line)
    biases, matrix, written = at["region_b"], at["region"], circle[:regions]
    write_regions(inputs.regions, line, w, biases, matrix, seen, paladins, messages, written)

    for c in range(CLANS):
        line[:] = 0
        add_messages(seen, paladins + c * TERRITORIES, 1, circle, regions, line)
        begin(w.numbers, at["clan_2_b"], clans_2[c])
        add(line, w, at["clan_2_region"], clans_2[c])
        add(clans[c], w, at["clan_2"], clans_2[c])
        rectify(clans_2[c])

    begin(w.numbers, at["trunk_b"], trunk)
    add(rest, w, at["trunk_rest"], trunk)
    add_sum(REGIONS_SUM_SCALE, circle, regions, line, w, at["trunk_region"], trunk)
    add_sum(CLANS_SUM_SCALE, clans_2, CLANS, line, w, at["trunk_clan"], trunk)
    rectify(trunk)

    begin(w.numbers, at["clan_3_b"], line)
    add(trunk, w, at["clan_3_trunk"], line)
    write_clans(clans_2, line, w, at["clan_3"], at["region_2_clan"], clans, messages)

    line[:] = 0
    add(trunk, w, at["region_2_trunk"], line)
    biases, matrix, written = at["region_2_b"], at["region_2"], circle_2[:regions]
    write_regions(circle, line, w, biases, matrix, seen, paladins, messages, written)

    begin(w.numbers, at["value_b"], value)
    add(trunk, w, at["value_trunk"], value)
    add_sum(REGIONS_SUM_SCALE, circle_2, regions, line, w, at["value_region"], value)
    add_sum(CLANS_SUM_SCALE, clans, CLANS, line, w, at["value_clan"], value)
    rectify(value)
    playing = scores[: see["teams"]]
    begin(w.numbers, at["score_b"], playing)
    add(value, w, at["score"], playing)

    if phase == DISC:
        discs = logits[FIRST_DISC : FIRST_DISC + DISCS]
        begin(w.numbers, at["disc_b"], discs)
        add(trunk, w, at["disc"], discs)
        whole, reached = messages[0], messages[1]  # the messages are not needed any more
        whole[:] = 0
        add(trunk, w, at["reach_trunk"], whole)
        add(value, w, at["reach_value"], whole)
        line[:] = 0
        for k in range(DISCS):
            if k + 1 < regions:
                add_scaled(float32(REACH_SCALE), circle_2[k + 1], line)
            begin(w.numbers, at["reach_b"] + k * d, reached)
            add_scaled(float32(1), whole, reached)
            add(line, w, at["reach_region"], reached)
            rectify(reached)
            discs[k] += dot(reached, line_of(w.numbers, at["reach"], 0, d))
    elif phase == CROWN_CHOICE:
        for c in range(CLANS):
            logits[FIRST_CROWN + c] = dot(clans[c], line_of(w.numbers, at["crown"], 0, d))
    elif phase == MOVE:
        for k in range(DISCS):
            stop = dot(circle_2[(k + 1) % regions], line_of(w.numbers, at["move"], 0, d))
            logits[FIRST_MOVE + k] = stop + w.numbers[at["move_b"] + k]
    else:
        for c in range(CLANS):
            first = FIRST_PLACE + c * DESTINATIONS
            logits[first] = dot(clans[c], line_of(w.numbers, at["court"], 0, d))
            line[:] = 0
            add(clans[c], w, at["place_clan"], line)
            messages[c][:] = 0
            add(line, w, at["place_region"], messages[c])
            by_region = line_of(w.numbers, at["place_by_region"], 0, d)
            add_scaled(float32(1), by_region, messages[c])
            by_clan = dot(clans[c], line_of(w.numbers, at["place_by_clan"], 0, d))
            for i in range(regions):
                logits[first + 1 + i] = by_clan + dot(circle_2[i], messages[c])
