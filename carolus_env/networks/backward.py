"""Gradients of the network, and the optimisers, as kernels.

`backpropagate` goes from the gradient of a loss with respect to the scores down to the sums of the
first layer. What is done with each weight's gradient then is the caller's: a step of Adagrad at
once (`adagrad`), or a place in the sum of a batch (`accumulate`), from which `adam` takes a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy import float32

from carolus_env.networks.inputs import Inputs
from carolus_env.networks.network import LEAK, LINEAR, Activations, Weights
from carolus_env.system.arrays import F32, Int
from carolus_env.system.compiler import kernel, separate

BETA1: Final = np.float32(0.9)
BETA2: Final = np.float32(0.999)
EPSILON: Final = np.float32(1e-6)
"""Adam's decays of the mean gradient and the mean square, and the epsilon added to the root."""


class Deltas(NamedTuple):
    """Scratch: the gradient of a loss with respect to the outputs of each layer."""

    scores: F32  # (teams,); with a policy head there is one more
    second: F32  # (hidden,) before the rectifier
    sums: F32  # (width,) before the rectifier

    @classmethod
    def new(cls, activations: Activations) -> Deltas:
        """Allocate memory for a network with such layers."""
        layers = activations.scores, activations.second, activations.sums
        return cls(*map(np.zeros_like, layers))


@kernel
def _slope(output: np.float32) -> np.float32:
    """Return the slope of the rectifier that had this output."""
    return float32(1) if output > float32(0) else LEAK


@kernel
def transpose(matrix: F32, transposed: F32) -> None:
    """Write a matrix with its axes exchanged."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            transposed[j, i] = matrix[i, j]


@separate
def backpropagate(
    weights: Weights, stage: Int, hidden: F32, activations: Activations, deltas: Deltas
) -> None:
    """Write ``deltas.second`` and ``deltas.sums`` from ``deltas.scores``.

    ``hidden`` is the stage's hidden layer, transposed: ``(hidden, width - LINEAR)``, so that the
    innermost loop is over consecutive numbers.
    """
    scores, second, sums = deltas.scores, deltas.second, deltas.sums
    wide, count = activations.first.shape[0], second.shape[0]
    for j in range(count):
        second[j] = 0
    for i in range(sums.shape[0]):
        sums[i] = 0
    for k in range(scores.shape[0]):
        g, out = scores[k], weights.out[stage, k]
        for j in range(count):
            second[j] += g * out[j]
        for j in range(LINEAR):
            sums[wide + j] += g * out[count + j]
    for j in range(count):
        second[j] *= _slope(activations.second[j])
    for j in range(count):
        g, row = second[j], hidden[j]
        for i in range(wide):
            sums[i] += g * row[i]
    for i in range(wide):
        sums[i] *= _slope(activations.first[i])


@kernel
def learn_layers(
    change: Callable[..., Any], targets: Weights, states: Weights,
    stage: Int, activations: Activations, deltas: Deltas, rate: np.float32,
) -> None:  # fmt: skip
    """Use the gradients of a stage's layers, those after the first, to change targets and states.

    ``change(target, state, factor, vector, rate)`` is `adagrad` or `accumulate`; the gradient of
    the weights to change is ``factor`` times ``vector``.
    """
    hidden, wide = activations.second.shape[0], activations.first.shape[0]
    linear, scores = activations.sums[wide:], deltas.scores
    for k in range(scores.shape[0]):
        out, state = targets.out[stage, k], states.out[stage, k]
        change(out[:hidden], state[:hidden], scores[k], activations.second, rate)
        change(out[hidden:], state[hidden:], scores[k], linear, rate)
    change(targets.out_bias[stage], states.out_bias[stage], float32(1), scores, rate)
    hiddens, hidden_state = targets.hidden[stage], states.hidden[stage]
    for i in range(wide):
        change(hiddens[i], hidden_state[i], activations.first[i], deltas.second, rate)
    change(targets.hidden_bias[stage], states.hidden_bias[stage], float32(1), deltas.second, rate)


@kernel
def learn_inputs(
    change: Callable[..., Any], targets: Weights, states: Weights,
    inputs: Inputs, deltas: Deltas, rate: np.float32,
) -> None:  # fmt: skip
    """Use the gradients of the first layer; see `learn_layers`."""
    change(targets.bias, states.bias, float32(1), deltas.sums, rate)
    for k in range(inputs.length[0]):
        row = inputs.rows[k]
        change(targets.rows[row], states.rows[row], float32(1), deltas.sums, rate)
    for k in range(targets.features.shape[0]):
        number = inputs.features[k]
        if number != 0:
            change(targets.features[k], states.features[k], number, deltas.sums, rate)


# ------------------------------------------------------------------------------------ optimisers


@kernel
def accumulate(gradients: F32, _: F32, factor: np.float32, vector: F32, __: np.float32) -> None:
    """Add a gradient to the sum of a batch."""
    for j in range(gradients.shape[0]):
        gradients[j] += factor * vector[j]


@kernel
def adagrad(weights: F32, squares: F32, factor: np.float32, vector: F32, rate: np.float32) -> None:
    """Take a step of Adagrad (Duchi, Hazan and Singer, JMLR 12, 2011).

    Each weight has a learning rate of its own: ``rate`` over the root of the sum of its squared
    gradients, ``squares``.
    """
    for j in range(vector.shape[0]):
        g = factor * vector[j]
        squares[j] += g * g
        weights[j] -= rate * g / np.sqrt(squares[j])


@kernel
def adam(weights: F32, means: F32, squares: F32, gradients: F32, rate: np.float32) -> None:
    """Take a step of Adam (Kingma and Ba, arXiv:1412.6980) for a vector, and zero its gradients.

    The rate has the corrections of the first steps (`adam_rate`).
    """
    for i in range(weights.shape[0]):
        g = gradients[i]
        gradients[i] = 0
        means[i] = BETA1 * means[i] + (float32(1) - BETA1) * g
        squares[i] = BETA2 * squares[i] + (float32(1) - BETA2) * g * g
        weights[i] -= rate * means[i] / (np.sqrt(squares[i]) + EPSILON)


def adam_rate(rate: float, step: int) -> np.float32:
    """Return the rate of a step of Adam, from 1 on, corrected for means that begin with 0."""
    beta1, beta2 = float(BETA1), float(BETA2)
    return np.float32(rate * np.sqrt(1 - beta2**step) / (1 - beta1**step))
