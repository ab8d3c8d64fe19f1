"""What a rollout teaches, as kernels: the gradient of PPO's loss, and steps of Adam.

The loss of a decision is PPO's clipped one (Schulman et al., arXiv:1707.06347) less a bonus for
entropy, and the cross-entropy between the value after the choice and its target. The value steers
the logits, too (`bots.turns.network`), but does not learn from that: there it is taken as given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import float32

from carolus_env.bots.turns.inference import Head, Judge, log_odds, residual_of, soften
from carolus_env.networks.forward import (
    Weights,
    apply_layers,
    reset_accumulator,
    update_sums,
)
from carolus_env.networks.network import LEAK, LINEAR
from carolus_env.system.compiler import entry, kernel, part, rare

Floats = npt.NDArray[np.float32]


class Loss(NamedTuple):
    """Numbers of the loss, float32."""

    clip: np.float32
    """How far the ratio of probabilities may go from 1."""
    entropy: np.float32
    """Weight of the entropy."""
    value: np.float32
    """Weight of the value's loss."""
    mean: np.float32
    """The advantages' mean, which is subtracted ..."""
    scale: np.float32
    """... and what they are multiplied by then."""
    share: np.float32
    """1 over the decisions of a gradient step."""


class Layers(NamedTuple):
    """Scratch: what the layers put out for each candidate of a decision, and gradients of that."""

    sums: Floats
    """``(K, width)`` float32."""
    first: Floats
    """``(K, width - LINEAR)`` float32."""
    second: Floats
    """``(K, hidden)`` float32."""
    chances: Floats
    """``(K, teams)`` float32, by team role."""
    values: Floats
    """``(K,)`` float32: the share of the win of the team that chooses."""
    g_logits: Floats
    """``(K,)`` float32."""
    g_scores: Floats
    """``(teams,)`` float32."""
    g_second: Floats
    """``(hidden,)`` float32."""
    g_sums: Floats
    """``(K, width)`` float32."""
    turned: Floats
    """``(stages, hidden, width - LINEAR)`` float32: the hidden layer's weights by its units."""

    @classmethod
    def new(cls, judge: Judge) -> Layers:
        """Fresh memory for a network and its candidates."""
        most, units = len(judge.logits), judge.net.units
        width, hidden, teams = len(units.sums), len(units.second), len(units.chances)
        stages = len(judge.net.weights.hidden)
        sizes: tuple[tuple[int, ...], ...] = (
            *((most, width), (most, width - LINEAR), (most, hidden), (most, teams)),
            *((most,), (most,), (teams,), (hidden,), (most, width)),
            (stages, hidden, width - LINEAR),
        )
        return cls(*(np.zeros(size, np.float32) for size in sizes))


class Gradients(NamedTuple):
    """The sum of a worker's gradients since the last step."""

    weights: Weights
    """Of the network but its head."""
    head: Head
    """Of its head."""
    touched: npt.NDArray[np.bool_]
    """``(rows,)`` bool: the rows that any of them is about."""


# ------------------------------------------------------------------------------------ the loss


@part
def _recall(memory, d, k, judge, layers):
    """Find out again what the network says of a candidate; returns the residual."""
    net = judge.net
    seen, units = net.seen, net.units
    seen.length[0], seen.stage[0] = memory.lengths[d, k], memory.stages[d, k]
    for i in range(seen.length[0]):
        seen.rows[i] = memory.rows[d, k, i]
    for i in range(memory.numbers.shape[2]):
        seen.numbers[i] = memory.numbers[d, k, i]
    update_sums(net.weights, seen, net.summed, units.sums)
    apply_layers(net.weights, seen.stage[0], units)
    for j in range(units.sums.shape[0]):
        layers.sums[k, j] = units.sums[j]
    for j in range(units.first.shape[0]):
        layers.first[k, j] = units.first[j]
    for j in range(units.second.shape[0]):
        layers.second[k, j] = units.second[j]
    for role in range(units.chances.shape[0]):
        layers.chances[k, role] = units.chances[role]
    return residual_of(units, judge.head, seen.stage[0])


@rare
def _go_back(memory, d, k, judge, layers, gradients, with_value):
    """Add the gradient of one candidate's logit, and of its scores if its value learns.

    The first layer learns later (`_teach_rows`), from ``layers.g_sums``, which is written.
    """
    weights, head = judge.net.weights, judge.head
    own, own_head = gradients.weights, gradients.head
    stage, g_logit = memory.stages[d, k], layers.g_logits[k]
    sums, first, second = layers.sums[k], layers.first[k], layers.second[k]
    g_scores, g_second, g_sums = layers.g_scores, layers.g_second, layers.g_sums[k]
    wide, hidden, teams = first.shape[0], second.shape[0], g_scores.shape[0]
    out, g_out = weights.out[stage], own.out[stage]
    residual, g_residual = head.residual[stage], own_head.residual[stage]
    for j in range(hidden + LINEAR):
        unit = second[j] if j < hidden else sums[wide + j - hidden]
        g = g_logit * residual[j]
        g_residual[j] += g_logit * unit
        if with_value:
            for role in range(teams):
                g += g_scores[role] * out[j, role]
                g_out[j, role] += g_scores[role] * unit
        if j < hidden:
            g_second[j] = g * (float32(1) if unit > float32(0) else LEAK)
        else:
            g_sums[wide + j - hidden] = g
    own_head.residual_bias[stage] += g_logit
    if with_value:
        for role in range(teams):
            own.out_bias[stage, role] += g_scores[role]
    turned, g_hiddens, fours = layers.turned[stage], own.hidden[stage], hidden - hidden % 4
    for i in range(wide):
        g_sums[i] = 0
    for j in range(0, fours, 4):  # four at a time: fewer passes over the sums
        a, b, c, e = turned[j], turned[j + 1], turned[j + 2], turned[j + 3]
        g_a, g_b, g_c, g_e = g_second[j], g_second[j + 1], g_second[j + 2], g_second[j + 3]
        for i in range(wide):
            g_sums[i] += (g_a * a[i] + g_b * b[i]) + (g_c * c[i] + g_e * e[i])
    for j in range(fours, hidden):
        a, g_a = turned[j], g_second[j]
        for i in range(wide):
            g_sums[i] += g_a * a[i]
    for i in range(wide):
        unit, into = first[i], g_hiddens[i]
        g_sums[i] *= float32(1) if unit > float32(0) else LEAK
        for j in range(hidden):
            into[j] += unit * g_second[j]
    for j in range(hidden):
        own.hidden_bias[stage, j] += g_second[j]


@rare
def _teach_rows(memory, d, layers, gradients):
    """Add the gradients of the first layer, of all candidates of a decision together.

    Candidates share most rows. A row that several candidates in a row have learns from the sum of
    their gradients, so each candidate only visits what is new: where `update_sums` adds a row, its
    gradient and all later ones are added, and where it takes one away, they are taken back.
    """
    own, rows, numbers, g_sums = gradients.weights, memory.rows[d], memory.numbers[d], layers.g_sums
    width, later = g_sums.shape[1], -1
    for k in range(memory.counts[d] - 1, -1, -1):
        if memory.over[d, k] < 0:
            if later >= 0:
                for j in range(width):
                    g_sums[k, j] += g_sums[later, j]
            later = k
    before, length_before = -1, 0
    for k in range(memory.counts[d]):
        if memory.over[d, k] >= 0:
            continue
        g, length = g_sums[k], memory.lengths[d, k]
        if before < 0:
            _add(own.bias, g, float32(1))
        for i in range(max(length, length_before)):
            new = rows[k, i] if i < length else -1
            old = rows[before, i] if i < length_before else -1
            if new != old:
                if old >= 0:
                    _add(own.rows[old], g, float32(-1))
                if new >= 0:
                    _add(own.rows[new], g, float32(1))
                    gradients.touched[new] = True
        for i in range(numbers.shape[1]):
            growth = numbers[k, i] - (numbers[before, i] if before >= 0 else float32(0))
            if growth != 0:
                _add(own.numbers[i], g, growth)
        before, length_before = k, length


@kernel
def _turn(hidden, turned):
    """Write the hidden layer's weights with the last two axes exchanged."""
    for stage in range(hidden.shape[0]):
        for i in range(hidden.shape[1]):
            for j in range(hidden.shape[2]):
                turned[stage, j, i] = hidden[stage, i, j]


@kernel
def _add(into, vector, factor):
    """Add ``factor`` times a vector."""
    for j in range(into.shape[0]):
        into[j] += factor * vector[j]


@entry
def add_gradients(chosen, memory, judge, layers, gradients, loss, told):
    """Add up the gradients of some decisions.

    Args:
        chosen: ``(B,)`` int64: the decisions, rows of the memory.
        memory: a `Memory`.
        judge: a `Judge`, for the network.
        layers: a `Layers`.
        gradients: a `Gradients`, added to.
        loss: a `Loss`.
        told: ``(5,)`` float64, added to: decisions, their entropy, how many were clipped, values
            that were learnt, and their cross-entropy.
    """
    logits, probabilities, values = judge.logits, judge.probabilities, layers.values
    teams = layers.g_scores.shape[0]
    _turn(judge.net.weights.hidden, layers.turned)
    for i in range(chosen.shape[0]):
        d = chosen[i]
        reset_accumulator(judge.net)
        count, choice, team = memory.counts[d], memory.chosen[d], memory.team[d]
        for k in range(count):
            residual = float32(0)
            values[k] = memory.over[d, k]
            if values[k] < 0:
                residual = _recall(memory, d, k, judge, layers)
                values[k] = layers.chances[k, (team - memory.own[d, k] + teams) % teams]
            judge.odds[k] = log_odds(values[k])
            logits[k] = residual + judge.head.sharpness[0] * judge.odds[k]
        total = soften(count, logits, probabilities)
        entropy = float32(0)
        for k in range(count):
            entropy -= probabilities[k] * (logits[k] - total)
        ratio = np.exp(logits[choice] - total - memory.log_probs[d])
        advantage = (memory.advantages[d] - loss.mean) * loss.scale
        clipped = ratio > 1 + loss.clip if advantage > 0 else ratio < 1 - loss.clip
        told[0] += 1
        told[1] += entropy
        told[2] += 1.0 if clipped else 0.0
        g_sharpness = float32(0)
        for k in range(count):
            p = probabilities[k]
            g = loss.entropy * p * (logits[k] - total + entropy)
            if not clipped:
                g -= advantage * ratio * ((float32(1) if k == choice else float32(0)) - p)
            layers.g_logits[k] = g * loss.share
            g_sharpness += layers.g_logits[k] * judge.odds[k]
        gradients.head.sharpness[0] += g_sharpness
        for k in range(count):
            if memory.over[d, k] >= 0:
                continue  # nothing to learn: the network was not asked
            if k == choice:
                told[3] += 1
                for role in range(teams):
                    target = memory.targets[d, (memory.own[d, k] + role) % teams]
                    chance = layers.chances[k, role]
                    told[4] -= target * np.log(max(chance, float32(1e-9)))
                    layers.g_scores[role] = (chance - target) * loss.value * loss.share
            _go_back(memory, d, k, judge, layers, gradients, k == choice)
        _teach_rows(memory, d, layers, gradients)


# ------------------------------------------------------------------------------------ steps


class Adam(NamedTuple):
    """Numbers of a step of Adam (Kingma and Ba, arXiv:1412.6980), float32."""

    rate: np.float32
    """Of learning, with the corrections of the first steps."""
    of_means: np.float32
    """How much of the mean gradient is kept."""
    of_squares: np.float32
    """How much of the mean square is kept."""
    tiny: np.float32
    """Added to the root of the mean square."""


@kernel
def _step(weights, means, squares, gradients, adam):
    """One step for a vector of weights; the workers' gradients are summed, and zeroed."""
    for i in range(weights.shape[0]):
        g = float32(0)
        for worker in range(gradients.shape[0]):
            g += gradients[worker, i]
            gradients[worker, i] = 0
        means[i] = adam.of_means * means[i] + (float32(1) - adam.of_means) * g
        squares[i] = adam.of_squares * squares[i] + (float32(1) - adam.of_squares) * g * g
        weights[i] -= adam.rate * means[i] / (np.sqrt(squares[i]) + adam.tiny)


@entry
def step(weights, means, squares, gradients, adam):
    """One step of Adam for weights ``(n,)``; ``gradients`` are ``(workers, n)``."""
    _step(weights, means, squares, gradients, adam)


@entry
def step_rows(first, end, touched, weights, means, squares, gradients, adam):
    """The same for rows ``first`` to ``end - 1``, but only for those that a gradient touched.

    Args:
        touched: ``(workers, rows)`` bool, set to False.
        weights, means, squares: ``(rows, width)``.
        gradients: ``(workers, rows, width)``.
    """
    workers = gradients.shape[0]
    for row in range(first, end):
        is_touched = False
        for worker in range(workers):
            is_touched = is_touched or touched[worker, row]
            touched[worker, row] = False
        if is_touched:
            _step(weights[row], means[row], squares[row], gradients[:, row], adam)
