"""TD(lambda) over the positions after decisions, as kernels: games are played and learnt from.

A worker plays one game after the other against itself. The positions after its decisions (before
the dice) are remembered. When a game is over, the targets are worked out backwards: the last
position is to be worth the result, and each earlier one a mixture of the value after the best next
decision and of the target there (Sutton, Machine Learning 3, 1988; after-states as in Tesauro,
CACM 38, 1995). Values are shares of the win by team, so each position teaches every team's share.
Where a decision was not the best but one at random, the targets before it take the best one's
value: errors made on purpose teach nothing about the positions before them.

Each weight has a learning rate of its own (Adagrad: Duchi, Hazan and Singer, JMLR 12, 2011).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import float32, int64

from carolus_env.bots.value.choice import Chooser, value_choices
from carolus_env.engine.kernels import generator, turns
from carolus_env.engine.rules import MAX_TEAMS, OVER
from carolus_env.engine.state import STATE, States
from carolus_env.networks.forward import (
    Activations,
    Network,
    Weights,
    add_up,
    apply_layers,
    write_roles,
    write_value,
)
from carolus_env.networks.network import LEAK, LINEAR
from carolus_env.networks.tables import MOST_ROWS
from carolus_env.planning.choices import list_choices
from carolus_env.planning.evaluation import FEATURES
from carolus_env.planning.plans import play_plan
from carolus_env.system.compiler import entry, kernel, part, rare

LONGEST: Final = 1024
"""Positions that are remembered of a game; of a longer one the last ones are learnt from."""

Floats = npt.NDArray[np.float32]


class History(NamedTuple):
    """The positions after the decisions of a game."""

    counts: npt.NDArray[np.int64]
    """``(T,)`` int64: the number of rows."""
    rows: npt.NDArray[np.int32]
    """``(T, MOST_ROWS)`` int32: the rows, see `Inputs`."""
    stages: npt.NDArray[np.int64]
    """``(T,)`` int64: the stage of the game."""
    numbers: Floats
    """``(T, 3 F)`` float32: the features."""
    own: npt.NDArray[np.int64]
    """``(T,)`` int64: the team with role 0."""
    values: npt.NDArray[np.float64]
    """``(T, 3)`` float64: the value after the best decision, by team."""
    followed: npt.NDArray[np.bool_]
    """``(T,)`` bool: that was the decision."""

    @classmethod
    def new(cls) -> History:
        """Fresh memory."""
        return cls(
            np.zeros(LONGEST, np.int64),
            np.zeros((LONGEST, MOST_ROWS), np.int32),
            np.zeros(LONGEST, np.int64),
            np.zeros((LONGEST, MAX_TEAMS * len(FEATURES)), np.float32),
            np.zeros(LONGEST, np.int64),
            np.zeros((LONGEST, MAX_TEAMS)),
            np.zeros(LONGEST, np.bool_),
        )


class Gradients(NamedTuple):
    """Scratch: how much the loss grows with each layer's outputs."""

    scores: Floats
    """``(teams,)`` float32."""
    second: Floats
    """``(hidden,)`` float32."""
    sums: Floats
    """``(width,)`` float32."""
    target: npt.NDArray[np.float64]
    """``(3,)`` float64: the target by team."""

    @classmethod
    def new(cls, units: Activations) -> Gradients:
        """Fresh memory for a network with such units."""
        scores, second, sums = (
            np.zeros(len(layer), np.float32) for layer in (units.chances, units.second, units.sums)
        )
        return cls(scores, second, sums, np.zeros(MAX_TEAMS))


class Worker(NamedTuple):
    """What one worker learns with. Nothing in it is shared with another worker."""

    chooser: Chooser
    """The network and how it chooses."""
    squares: Weights
    """The sum of the squares of each weight's gradients."""
    history: History
    """Scratch: the game under way."""
    gradients: Gradients
    """Scratch."""
    state: States
    """``(1,)`` STATE: the game under way."""


def new_worker(
    players: int,
    weights: Weights,
    squares: Weights,
    width: int,
    candidates: int,
    evaluation: npt.NDArray[np.float64],
) -> Worker:
    """A worker with scratch of its own, which changes ``weights`` and ``squares``.

    Args:
        players: number of players.
        weights: of the network.
        squares: the sum of the squares of each weight's gradients so far.
        width: where paladins may go in candidates, an index into `plans.WIDTHS`.
        candidates: how many of a turn's plans are valued.
        evaluation: ``(F,)`` float64: weights of the evaluation that lists them.
    """
    net = Network.of(players, weights)
    chooser = Chooser.of(net, width, evaluation, candidates)
    gradients, state = Gradients.new(net.units), np.zeros(1, STATE)
    return Worker(chooser, squares, History.new(), gradients, state)


# ------------------------------------------------------------------------------------ updates


@kernel
def _change(weights, squares, factor, gradient, rate):
    """One step of Adagrad for a vector of weights, whose gradient is times a factor."""
    for j in range(gradient.shape[0]):
        g = factor * gradient[j]
        squares[j] += g * g
        weights[j] -= rate * g / np.sqrt(squares[j])


@rare
def update(seen, own, teams, worker, rate):
    """Move the value of a position towards the target: one step down the cross-entropy.

    Args:
        seen: what the network sees of the position, a `Inputs`.
        own: the team with role 0.
        teams: the number of teams.
        worker: a `Worker`; the target is in its ``gradients``.
        rate: of learning, float32.

    Returns:
        The cross-entropy before the step.
    """
    weights, squares, gradients = worker.chooser.net.weights, worker.squares, worker.gradients
    units = worker.chooser.net.units
    add_up(weights, seen, units.sums)
    stage = seen.stage[0]
    out, out_bias = weights.out[stage], weights.out_bias[stage]
    hiddens, hidden_bias = weights.hidden[stage], weights.hidden_bias[stage]
    apply_layers(weights, stage, units)
    wide, hidden, loss = units.first.shape[0], units.second.shape[0], 0.0
    for role in range(teams):
        target = gradients.target[(own + role) % teams]
        loss -= target * np.log(max(float(units.chances[role]), 1e-9))
        gradients.scores[role] = units.chances[role] - float32(target)
    scores, second, sums = gradients.scores, gradients.second, gradients.sums
    for j in range(hidden):
        g = float32(0)
        for role in range(teams):
            g += scores[role] * out[j, role]
        second[j] = g * (float32(1) if units.second[j] > float32(0) else LEAK)
    for j in range(LINEAR):
        g = float32(0)
        for role in range(teams):
            g += scores[role] * out[hidden + j, role]
        sums[wide + j] = g
    for i in range(0, wide, 4):  # four at a time: one sum would wait for the next
        a, b = hiddens[i], hiddens[i + 1]
        c, d = hiddens[i + 2], hiddens[i + 3]
        g_a, g_b, g_c, g_d = float32(0), float32(0), float32(0), float32(0)
        for j in range(hidden):
            g_a += second[j] * a[j]
            g_b += second[j] * b[j]
            g_c += second[j] * c[j]
            g_d += second[j] * d[j]
        sums[i], sums[i + 1], sums[i + 2], sums[i + 3] = g_a, g_b, g_c, g_d
    for i in range(wide):
        sums[i] *= float32(1) if units.first[i] > float32(0) else LEAK
    for j in range(hidden):
        _change(out[j], squares.out[stage, j], units.second[j], scores, rate)
    for j in range(LINEAR):
        number = units.sums[wide + j]
        _change(out[hidden + j], squares.out[stage, hidden + j], number, scores, rate)
    _change(out_bias, squares.out_bias[stage], float32(1), scores, rate)
    for i in range(wide):
        _change(hiddens[i], squares.hidden[stage, i], units.first[i], second, rate)
    _change(hidden_bias, squares.hidden_bias[stage], float32(1), second, rate)
    _change(weights.bias, squares.bias, float32(1), sums, rate)
    for k in range(seen.length[0]):
        row = seen.rows[k]
        _change(weights.rows[row], squares.rows[row], float32(1), sums, rate)
    for k in range(weights.numbers.shape[0]):
        number = seen.numbers[k]
        if number != 0:
            _change(weights.numbers[k], squares.numbers[k], number, sums, rate)
    return loss


# ------------------------------------------------------------------------------------ games


@part
def _remember(s, worker, place):
    """Keep what the network saw of ``s``, which it has just valued."""
    seen, history = worker.chooser.net.seen, worker.history
    history.counts[place] = seen.length[0]
    history.stages[place] = seen.stage[0]
    history.own[place] = int64(s["team"][s["player"]])
    for k in range(seen.length[0]):
        history.rows[place, k] = seen.rows[k]
    for k in range(worker.chooser.net.weights.numbers.shape[0]):
        history.numbers[place, k] = seen.numbers[k]


@part
def _recall(history, place, seen):
    """Take back what the network saw."""
    seen.length[0] = history.counts[place]
    seen.stage[0] = history.stages[place]
    for k in range(seen.length[0]):
        seen.rows[k] = history.rows[place, k]
    for k in range(history.numbers.shape[1]):
        seen.numbers[k] = history.numbers[place, k]


@part
def _play_game(worker, exploration, bits):
    """Play the game in ``worker.state`` to its end.

    Returns:
        The number of positions kept, and the stream.
    """
    s, chooser, history = worker.state[0], worker.chooser, worker.history
    net, after = chooser.net, chooser.after[0]
    place = 0
    turns.roll_on(s)
    while s["phase"] != OVER:
        count = list_choices(s, chooser.lister)
        best = value_choices(s, chooser, count)
        bits = generator.step(bits)
        chosen = best
        if generator.fraction(generator.mix(bits)) < exploration:
            bits = generator.step(bits)
            chosen = generator.below(generator.mix(bits), count)
        if place == LONGEST:  # as if the game began later
            place = 0
        history.followed[place] = chosen == best
        chooser.after[0] = s
        play_plan(after, chooser.lister.choices[best])
        write_value(after, net, history.values[place])
        if chosen != best:
            chooser.after[0] = s
            play_plan(after, chooser.lister.choices[chosen])
            if after["phase"] != OVER:
                write_roles(after, net)
        worker.state[0] = after
        if after["phase"] == OVER:
            history.counts[place] = 0
        else:
            _remember(after, worker, place)
        place += 1
        turns.roll_on(s)
    return place, bits


@part
def _learn_from_game(worker, places, trace, rate):
    """Learn from the game that is over, its last position first; returns the sum of losses."""
    s, history, seen = worker.state[0], worker.history, worker.chooser.net.seen
    target, teams, loss = worker.gradients.target, int64(s["teams"]), 0.0
    for team in range(teams):
        target[team] = turns.team_win_share(s, team)
    for place in range(places - 1, -1, -1):
        if history.counts[place] > 0:  # else the game is over there, and the value known
            _recall(history, place, seen)
            loss += update(seen, history.own[place], teams, worker, rate)
        kept = trace if history.followed[place] else 0.0
        for team in range(teams):
            target[team] = kept * target[team] + (1.0 - kept) * history.values[place, team]
    return loss


@entry
def learn(starts, streams, worker, exploration, trace, rate, told):
    """Play games from their starts, one after the other, and learn from each.

    Args:
        starts: ``(N,)`` games, not changed.
        streams: ``(N,)`` uint64: a stream for each game's exploration.
        worker: a `Worker`, whose weights learn.
        exploration: how likely a decision is one at random.
        trace: lambda.
        rate: of learning, float32.
        told: ``(3,)`` float64, added to: positions learnt from, the sum of their losses, and the
            rounds of the games.
    """
    for g in range(starts.shape[0]):
        worker.state[0] = starts[g]
        places, _ = _play_game(worker, exploration, streams[g])
        told[0] += places
        told[1] += _learn_from_game(worker, places, trace, rate)
        told[2] += int64(worker.state[0]["round"])
