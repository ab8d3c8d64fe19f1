"""The `network` as a kernel, one position after the other: for play and for search.

The same sums as `network.forward`, so the same answers up to rounding; a test holds it to that.
Observing, legal actions and the softmax are part of it. Zeros, of which there are many, are not
multiplied, and only what is asked in the phase is answered; so a position takes some microseconds
where NumPy takes hundreds. Other than a matrix product's, the answers do not depend on which other
positions are asked for at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy import float32, int64

from carolus_env.bots.neural import network
from carolus_env.bots.neural.network import FEW_REGIONS, HELD, LEADS, MARGINS, Size
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
from carolus_env.system.compiler import entry, kernel, part, rare

_SIZES = ("players", "teams", "dice", "castles_to_win")


class Net:
    """A network's weights and the room to use them, as the kernels take them.

    Args:
        size: of the network.
        weights: of `network.shapes`.
    """

    def __init__(self, size: Size, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        players = size.players
        self.size = size
        # the last layer of placements is used the other way round
        laid = [w.T if name == "place_region" else w for name, w in sorted(weights.items())]
        self.weights = np.concatenate([w.ravel() for w in laid])
        starts = np.cumsum([0, *(w.size for w in laid)])[:-1]
        self.at = np.zeros(1, [(name, np.int64) for name in sorted(weights)])
        for name, start in zip(sorted(weights), starts, strict=True):
            self.at[name] = start

        blocks, where = observation.layout(players), observation.slices(players)
        self.see = np.zeros(1, [(name, np.int64) for name in (*_SIZES, *where)])
        for name, block in where.items():
            self.see[name] = block.start
        self.see["players"], self.see["teams"] = players, TEAMS[players]
        self.see["dice"], self.see["castles_to_win"] = DICE[players], CASTLES_TO_WIN[players]
        shared = [
            block for block in blocks if block.name not in network.BY_REGION | network.BY_CLAN
        ]
        entries = [np.arange(where[b.name].start, where[b.name].stop) for b in shared]
        self.entries = np.concatenate(entries)
        self.scales = observation.scales(players)[self.entries]

        shapes, d, z = network.shapes(size), size.region, size.trunk
        rest, clan, region = (shapes[name][0] for name in ("rest", "clan", "region"))
        inputs = (rest,), (CLANS, clan), (TERRITORIES, region)
        layers = *[(z,)] * 3, *[(CLANS, d)] * 3, *[(TERRITORIES, d)] * 2, (d,)
        answers = (ACTIONS,), (MAX_TEAMS,)
        self._shapes = [(shape, int(np.prod(shape))) for shape in (*inputs, *layers, *answers)]
        self._floats = sum(count for _, count in self._shapes)
        self._widest = 1 + max(rest, d, z)
        self._seen = observation.length(players)

    def room(self) -> tuple[Any, ...]:
        """What the kernels take as ``net``, with new room to calculate in."""
        flat, at, views = np.zeros(self._floats, np.float32), 0, []
        for shape, count in self._shapes:
            views.append(flat[at : at + count].reshape(shape))
            at += count
        seen = np.zeros((1, self._seen), np.uint8)
        w = self.weights, np.zeros(self._widest, np.int64)
        given = w, self.at, self.see, self.entries, self.scales
        return *given, seen, tuple(views[:3]), tuple(views[3:-2]), tuple(views[-2:])

    def judge(self, states: States) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """What the network says of games of its number of players in which somebody is to decide.

        Returns:
            ``(N, 95)`` log probabilities of the actions, minus infinity where one is illegal;
            ``(N, teams)`` chances to win by number of team.
        """
        policy = np.empty((len(states), ACTIONS))
        chances = np.empty((len(states), MAX_TEAMS))
        _judge(states, self.room(), policy, chances)
        return policy, chances[:, : TEAMS[self.size.players]]


@entry
def _judge(states, net, policy, chances):
    for g in range(states.shape[0]):
        judge(states[g], net, policy, g, chances[g])


@rare
def judge(s, net, policy, row, chances):
    """Write ``policy[row]``, log probabilities, and ``chances``, by number of team."""
    _, _, _, _, _, seen, _, _, (logits, scores) = net
    write_observation(s, int64(s["player"]), seen, 0)
    _write_inputs(net, int64(s["regions"]))
    _write_answers(net, int64(s["regions"]), int64(s["phase"]))

    number = legal.legal_set(s)
    most, total = -np.inf, 0.0
    for action in range(ACTIONS):
        policy[row, action] = -np.inf
        if legal.allows(number, action):
            policy[row, action] = logits[action]
            most = max(most, logits[action])
    for action in range(ACTIONS):
        if policy[row, action] > -np.inf:
            total += np.exp(policy[row, action] - most)
    less = most + np.log(total)
    for action in range(ACTIONS):
        policy[row, action] -= less

    teams, own = int64(s["teams"]), int64(s["team"][s["player"]])
    most, total = scores[0], 0.0
    for k in range(1, teams):
        most = max(most, scores[k])
    for k in range(teams):
        total += np.exp(float(scores[k] - most))
    for k in range(MAX_TEAMS):
        chances[k] = 0.0
    for k in range(teams):
        chances[(own + k) % teams] = np.exp(float(scores[k] - most)) / total


# ------------------------------------------------------------------------------------ inputs


@kernel
def _steps(x, low_high, line, at):
    """1 for each whole number of the range that ``x`` reaches, else 0; returns the next place."""
    low, high = low_high
    for k in range(low, high):
        line[at] = x >= k
        at += 1
    return at


@kernel
def _over_others(seen, start, stride, count, k):
    """The ``k``-th of ``count`` numbers less the most of the others."""
    most = int64(-1)
    for other in range(count):
        if other != k:
            most = max(most, int64(seen[start + other * stride]))
    return int64(seen[start + k * stride]) - most


@rare
def _write_inputs(net, regions):
    """What `network.forward` puts into its first layers."""
    _, _, sees, entries, scales, rows, (rest, clans, circle), _, _ = net
    see, seen = sees[0], rows[0]
    players, teams = see["players"], see["teams"]

    for k in range(entries.shape[0]):
        rest[k] = seen[entries[k]] * scales[k]
    at = _steps(int64(seen[see["placements_left"]]), (1, see["dice"] + 1), rest, entries.shape[0])
    for k in range(teams):
        at = _steps(int64(seen[see["castles"] + k]), (1, see["castles_to_win"] + 1), rest, at)
    _steps(regions, FEW_REGIONS, rest, at)

    for c in range(CLANS):
        line, at = clans[c], 0
        for k in range(players):
            lead = _over_others(seen, see["courts"] + c, CLANS, players, k)
            at = _steps(lead, LEADS, line, at)
        for k in range(players):
            at = _steps(int64(seen[see["reserves"] + k * CLANS + c]), HELD, line, at)
        sides = at + 3 * players  # who controls it: by team
        line[sides] = line[sides + 1] = 0
        for k in range(players):
            held = seen[see["control"] + k * CLANS + c]
            line[at + k] = held
            line[at + players + k] = float32(0.1) * seen[see["courts"] + k * CLANS + c]
            line[at + 2 * players + k] = float32(0.2) * seen[see["reserves"] + k * CLANS + c]
            if teams == 2:
                line[sides + (0 if seen[see["partner"] + k] else 1)] += held
            else:
                line[sides + k] = held
        at = sides + teams
        line[at] = seen[see["supply"] + c] / float32(40)
        paladins = 0
        for i in range(regions):
            paladins += int64(seen[see["region_paladins"] + c * TERRITORIES + i])
        line[at + 1] = float32(0.05) * paladins

    for i in range(regions):
        line = circle[i]
        line[0] = 1
        at = 1 + 2 * teams
        for k in range(1 if teams == 2 else teams):
            margin = _over_others(seen, see["region_strength"] + i, TERRITORIES, teams, k)
            at = _steps(margin, MARGINS, line, at)
        following = i + 1 if i + 1 < regions else 0
        before = i - 1 if i > 0 else regions - 1
        for k in range(teams):
            for place, start in ((i, 1), (following, at), (before, at + 2 * teams)):
                castles = seen[see["region_castles"] + k * TERRITORIES + place]
                line[start + k] = castles > 0
                line[start + teams + k] = float32(0.25) * castles
        paladins = 0
        for c in range(CLANS):
            paladins += int64(seen[see["region_paladins"] + c * TERRITORIES + i])
        line[at + 4 * teams] = float32(0.2) * paladins


# ------------------------------------------------------------------------------------ layers


@rare
def _begin(numbers, start, out):
    """``out`` is the vector that begins there."""
    for j in range(out.shape[0]):
        out[j] = numbers[start + j]


@rare
def _add(x, w, start, out):
    """``out += x @ matrix``, with the matrix of weights that begins at ``start``.

    First the numbers that are not 0 are picked, without a branch: which they are nobody can
    guess, the processor no more than we. Then they are added four at a time.
    """
    weights, picked = w
    width, count = out.shape[0], 0
    for i in range(x.shape[0]):
        picked[count] = i
        count += x[i] != 0
    fours = count - count % 4
    for k in range(0, fours, 4):
        a, b, c, d = picked[k], picked[k + 1], picked[k + 2], picked[k + 3]
        line_a, line_b = _line(weights, start, a, width), _line(weights, start, b, width)
        line_c, line_d = _line(weights, start, c, width), _line(weights, start, d, width)
        x_a, x_b, x_c, x_d = x[a], x[b], x[c], x[d]
        for j in range(width):
            out[j] += (x_a * line_a[j] + x_b * line_b[j]) + (x_c * line_c[j] + x_d * line_d[j])
    for k in range(fours, count):
        _add_some(x[picked[k]], _line(weights, start, picked[k], width), out)


@part
def _line(weights, start, i, width):
    first = start + i * width
    return weights[first : first + width]


@rare
def _add_some(amount, x, out):
    """``out += amount * x``."""
    if amount != 0:
        for j in range(out.shape[0]):
            out[j] += amount * x[j]


@rare
def _rectify(out):
    for j in range(out.shape[0]):
        out[j] = max(out[j], float32(0))


@rare
def _times(x, y):
    total = float32(0)
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@kernel
def _add_all(amount, lines, count, line, w, start, out):
    """``out += (amount * sum of the first lines) @ w``; ``line`` is overwritten."""
    line[:] = 0
    for i in range(count):
        _add_some(amount, lines[i], line)
    _add(line, w, start, out)


@kernel
def _hear(seen, start, stride, told, count, out):
    """Add what each of ``count`` tells, as often as there are paladins."""
    for k in range(count):
        _add_some(float32(0.2) * seen[start + k * stride], told[k], out)


@rare
def _tell(before, line, w, start, telling, clans, told):
    """A layer of every clan, on top of ``line``, and what each tells the regions."""
    for c in range(CLANS):
        _begin(line, 0, clans[c])
        _add(before[c], w, start, clans[c])
        _rectify(clans[c])
        told[c][:] = 0
        _add(clans[c], w, telling, told[c])


@rare
def _listen(before, line, w, starts, seen, paladins, told, circle):
    """A layer of every region, on top of ``line`` and of what the clans there tell."""
    own, start = starts
    for i in range(circle.shape[0]):
        _begin(w[0], own + i * line.shape[0], circle[i])
        _add_some(float32(1), line, circle[i])
        _hear(seen, paladins + i, TERRITORIES, told, CLANS, circle[i])
        _add(before[i], w, start, circle[i])
        _rectify(circle[i])


@rare
def _write_answers(net, regions, phase):
    """The layers of `network.forward`; of the logits those that the phase asks for."""
    w, ats, sees, _, _, rows, (rest_in, clans_in, circle_in), layers, (logits, scores) = net
    rest, trunk, value, clans, clans_2, told, circle, circle_2, line = layers
    at, see, seen = ats[0], sees[0], rows[0]
    d, paladins = line.shape[0], see["region_paladins"]

    _begin(w[0], at["rest_b"], rest)
    _add(rest_in, w, at["rest"], rest)
    _rectify(rest)

    _begin(w[0], at["clan_b"], line)
    _add(rest, w, at["clan_rest"], line)
    _tell(clans_in, line, w, at["clan"], at["region_clan"], clans, told)

    line[:] = 0
    _add(rest, w, at["region_rest"], line)
    weights = at["region_b"], at["region"]
    _listen(circle_in, line, w, weights, seen, paladins, told, circle[:regions])

    for c in range(CLANS):
        line[:] = 0
        _hear(seen, paladins + c * TERRITORIES, 1, circle, regions, line)
        _begin(w[0], at["clan_2_b"], clans_2[c])
        _add(line, w, at["clan_2_region"], clans_2[c])
        _add(clans[c], w, at["clan_2"], clans_2[c])
        _rectify(clans_2[c])

    _begin(w[0], at["trunk_b"], trunk)
    _add(rest, w, at["trunk_rest"], trunk)
    _add_all(float32(0.2), circle, regions, line, w, at["trunk_region"], trunk)
    _add_all(float32(0.4), clans_2, CLANS, line, w, at["trunk_clan"], trunk)
    _rectify(trunk)

    _begin(w[0], at["clan_3_b"], line)
    _add(trunk, w, at["clan_3_trunk"], line)
    _tell(clans_2, line, w, at["clan_3"], at["region_2_clan"], clans, told)

    line[:] = 0
    _add(trunk, w, at["region_2_trunk"], line)
    weights = at["region_2_b"], at["region_2"]
    _listen(circle, line, w, weights, seen, paladins, told, circle_2[:regions])

    _begin(w[0], at["value_b"], value)
    _add(trunk, w, at["value_trunk"], value)
    _add_all(float32(0.2), circle_2, regions, line, w, at["value_region"], value)
    _add_all(float32(0.4), clans, CLANS, line, w, at["value_clan"], value)
    _rectify(value)
    own_scores = scores[: see["teams"]]
    _begin(w[0], at["score_b"], own_scores)
    _add(value, w, at["score"], own_scores)

    if phase == DISC:
        discs = logits[FIRST_DISC : FIRST_DISC + DISCS]
        _begin(w[0], at["disc_b"], discs)
        _add(trunk, w, at["disc"], discs)
        heard, reached = told[0], told[1]
        heard[:] = 0
        _add(trunk, w, at["reach_trunk"], heard)
        _add(value, w, at["reach_value"], heard)
        line[:] = 0
        for k in range(DISCS):
            if k + 1 < regions:
                _add_some(float32(0.5), circle_2[k + 1], line)
            _begin(w[0], at["reach_b"] + k * d, reached)
            _add_some(float32(1), heard, reached)
            _add(line, w, at["reach_region"], reached)
            _rectify(reached)
            discs[k] += _times(reached, w[0][at["reach"] : at["reach"] + d])
    elif phase == CROWN_CHOICE:
        for c in range(CLANS):
            logits[FIRST_CROWN + c] = _times(clans[c], w[0][at["crown"] : at["crown"] + d])
    elif phase == MOVE:
        for k in range(DISCS):
            stop = circle_2[(k + 1) % regions]
            logits[FIRST_MOVE + k] = (
                _times(stop, w[0][at["move"] : at["move"] + d]) + w[0][at["move_b"] + k]
            )
    else:
        for c in range(CLANS):
            first = FIRST_PLACE + c * DESTINATIONS
            logits[first] = _times(clans[c], w[0][at["court"] : at["court"] + d])
            line[:] = 0
            _add(clans[c], w, at["place_clan"], line)
            told[c][:] = 0
            _add(line, w, at["place_region"], told[c])
            _add_some(float32(1), w[0][at["place_by_region"] : at["place_by_region"] + d], told[c])
            by_clan = _times(clans[c], w[0][at["place_by_clan"] : at["place_by_clan"] + d])
            for i in range(regions):
                logits[first + 1 + i] = by_clan + _times(circle_2[i], told[c])
