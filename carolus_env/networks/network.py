"""The network: each team's win probability, and with a policy head a residual.

The layers after the sums are those of the position's stage (`inputs.STAGES`)::

    sums = rows[picked].sum() + features @ inputs + bias
    first = leaky(sums[:-LINEAR])
    second = leaky(first @ hidden[stage] + hidden_bias[stage])
    scores = out[stage] @ concatenate(second, sums[-LINEAR:]) + out_bias[stage]
    value = softmax(scores of the teams)
    logit = residual + sharpness * log(value / (1 - value))

A policy head is one more score, the *residual* of the position after a candidate (a disc, a crown
or a whole turn). The policy is the softmax of the candidates' logits; the value is that of the team
that chooses. After a candidate that ends the game it is known, and the residual 0.

Positions that are valued one after the other are much alike, so the sums are updated by what has
changed; `reset_accumulator` begins anew, and must be called whenever the weights have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.kernels import turns
from carolus_env.engine.rules import MAX_PLAYERS, MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import States, as_states, common_players
from carolus_env.networks.files import Model
from carolus_env.networks.inputs import (
    MOST_ROWS,
    STAGES,
    Inputs,
    copy_inputs,
    encode,
    layout,
    team_role,
)
from carolus_env.planning.heuristic import FEATURES, softmax
from carolus_env.planning.plans import play_plan
from carolus_env.system.arrays import F32, F64, I32, I64, Int, Records, allocate, float32, int64
from carolus_env.system.compiler import entry, inlined, kernel, separate
from carolus_env.system.options import whole_number

LINEAR: Final = 8  # sums that pass the hidden layers by
LEAK: Final = np.float32(0.05)  # slope of the rectifiers below 0
WIDTH_LIMITS: Final = (LINEAR + 8, 1024)
HIDDEN_LIMITS: Final = (4, 1024)  # the lowest and the highest `Size.width` and `Size.hidden`
SHARPNESS: Final = 20.0  # sharpness of a policy that has not learnt yet
SUREST: Final = 0.998  # bounds of values in the logits: at most this, and at least 1 less this


@dataclass(frozen=True)
class Size:
    """The sizes of a network; ValueError for those that none can have."""

    players: int
    width: int = 64  # sums of the first layer, the `LINEAR` ones included; a multiple of 4
    hidden: int = 32  # units of the second layer
    policy: bool = False  # whether the network has a policy head

    def __post_init__(self) -> None:
        whole_number("players", self.players, 2, MAX_PLAYERS)
        whole_number("width", self.width, *WIDTH_LIMITS)
        whole_number("hidden", self.hidden, *HIDDEN_LIMITS)
        if self.width % 4 > 0:  # kernels take four at a time
            raise ValueError(f"width must be a multiple of 4, got {self.width}")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each array of weights."""
        teams = TEAMS[self.players]
        return {
            "rows": (layout(self.players).rows, self.width),
            "features": (teams * len(FEATURES), self.width),
            "bias": (self.width,),
            "hidden": (STAGES, self.width - LINEAR, self.hidden),
            "hidden_bias": (STAGES, self.hidden),
            "out": (STAGES, teams + self.policy, self.hidden + LINEAR),
            "out_bias": (STAGES, teams + self.policy),
            "sharpness": (int(self.policy),),
        }


def random_weights(size: Size, seed: int) -> dict[str, F32]:
    """Return small random weights, alike for all stages; zeros for rows and policy head."""
    random, teams = np.random.default_rng(seed), TEAMS[size.players]
    weights = {name: np.zeros(shape, np.float32) for name, shape in size.shapes().items()}
    for weight, spread in (
        (weights["features"], 1.0),
        (weights["hidden"], 1.0),
        (weights["out"][:, :teams].swapaxes(1, 2), 0.5),
    ):
        shape = weight.shape[-2:]
        weight[...] = random.standard_normal(shape) * spread / np.sqrt(shape[0])
    weights["sharpness"][:] = SHARPNESS
    return weights


class NetworkModel(Model[Size]):
    """A trained network, with or without a policy head; see `Model`."""

    format: ClassVar[str] = "carolus-network"
    version: ClassVar[int] = 1
    size_type: ClassVar[type] = Size


# ------------------------------------------------------------------------------------ in kernels

MOST_UPDATES: Final = 32
"""Incremental updates of the sums before a full recompute, so that rounding errors stay small."""
_MOST, _LEAST = float32(SUREST), float32(1 - SUREST)


class Weights(NamedTuple):
    """The arrays of `Size.shapes`, or numbers for each of them."""

    rows: F32
    features: F32
    bias: F32
    hidden: F32
    hidden_bias: F32
    out: F32
    out_bias: F32
    sharpness: F32

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Weights:
        """Copy arrays by name."""
        return cls(*(np.array(arrays[name], np.float32, order="C") for name in cls._fields))


class Activations(NamedTuple):
    """Scratch: the outputs of the layers for one position."""

    sums: Annotated[F32, "width"]
    first: Annotated[F32, "rectified"]  # width - LINEAR
    second: Annotated[F32, "hidden"]
    scores: Annotated[F32, "scores"]  # by team role; with a policy head one more, the residual
    values: Annotated[F32, "teams"]  # by team role


class Accumulator(NamedTuple):
    """The inputs for which the sums were written, and scratch to compare them."""

    length: Annotated[I64, 1]  # number of rows; 0: there is nothing to update
    updates: Annotated[I64, 1]  # updates of the sums since they were computed in full
    rows: Annotated[I32, MOST_ROWS]
    features: Annotated[F32, MAX_TEAMS * len(FEATURES)]
    changed: Annotated[I64, MOST_ROWS]  # scratch: indices of rows, or features, that have changed
    before: Annotated[I32, MOST_ROWS]  # scratch: the rows that were there
    growth: Annotated[F32, MAX_TEAMS * len(FEATURES)]  # scratch: by how much features are greater


class Network(NamedTuple):
    """A network as kernels take it: weights and scratch."""

    layout: Any  # see `inputs.layout`
    weights: Weights
    inputs: Inputs  # scratch: of a position
    activations: Activations  # scratch: the outputs of its layers
    accumulator: Accumulator  # the inputs for which ``activations.sums`` were written

    @classmethod
    def of(cls, players: int, weights: Weights) -> Network:
        """Return a network with scratch of its own; the weights are shared."""
        if len(weights.rows) != layout(players).rows:
            raise ValueError(f"weights must be of a network for {players} players")
        width, hidden, scores = len(weights.bias), len(weights.hidden_bias[0]), len(weights.out[0])
        activations = allocate(
            Activations, width=width, rectified=width - LINEAR, hidden=hidden, scores=scores,
            teams=TEAMS[players],
        )  # fmt: skip
        inputs, accumulator = allocate(Inputs), allocate(Accumulator)
        return cls(layout(players), weights, inputs, activations, accumulator)


# ------------------------------------------------------------------------------------ layers


@kernel
def _leaky(number: np.float32) -> np.float32:
    return number if number > float32(0) else LEAK * number


@separate
def add_up(weights: Weights, inputs: Inputs, sums: F32) -> None:
    """Compute the first layer in full: add up the rows and features."""
    rows = weights.rows
    width, count = sums.shape[0], inputs.length[0]
    for j in range(width):
        sums[j] = weights.bias[j]
    fours = count - count % 4
    for i in range(0, fours, 4):  # four at a time: fewer passes over the sums
        a, b = rows[inputs.rows[i]], rows[inputs.rows[i + 1]]
        c, d = rows[inputs.rows[i + 2]], rows[inputs.rows[i + 3]]
        for j in range(width):
            sums[j] += (a[j] + b[j]) + (c[j] + d[j])
    for i in range(fours, count):
        a = rows[inputs.rows[i]]
        for j in range(width):
            sums[j] += a[j]
    for i in range(weights.features.shape[0]):
        number = inputs.features[i]
        if number != 0:
            a = weights.features[i]
            for j in range(width):
                sums[j] += number * a[j]


@inlined
def _exchange_rows(weights: Weights, inputs: Inputs, accumulator: Accumulator, sums: F32) -> None:
    """Update the sums by the rows that have changed."""
    rows, changed, before = weights.rows, accumulator.changed, accumulator.before
    count, old_count, n = inputs.length[0], accumulator.length[0], 0
    for k in range(min(count, old_count)):
        changed[n], before[n] = k, accumulator.rows[k]
        n += int64(inputs.rows[k] != accumulator.rows[k])
        accumulator.rows[k] = inputs.rows[k]
    twos = n - n % 2
    for i in range(0, twos, 2):
        a, b = rows[inputs.rows[changed[i]]], rows[before[i]]
        c, d = rows[inputs.rows[changed[i + 1]]], rows[before[i + 1]]
        for j in range(sums.shape[0]):
            sums[j] += (a[j] - b[j]) + (c[j] - d[j])
    if twos < n:
        a, b = rows[inputs.rows[changed[twos]]], rows[before[twos]]
        for j in range(sums.shape[0]):
            sums[j] += a[j] - b[j]
    for k in range(count, old_count):
        a = rows[accumulator.rows[k]]
        for j in range(sums.shape[0]):
            sums[j] -= a[j]
    for k in range(old_count, count):
        accumulator.rows[k] = inputs.rows[k]
        a = rows[inputs.rows[k]]
        for j in range(sums.shape[0]):
            sums[j] += a[j]
    accumulator.length[0] = count


@inlined
def _exchange_features(
    weights: Weights, inputs: Inputs, accumulator: Accumulator, sums: F32
) -> None:
    """Update the sums by the features that have changed."""
    features, changed, growths = weights.features, accumulator.changed, accumulator.growth
    n = 0
    for k in range(features.shape[0]):
        growth = inputs.features[k] - accumulator.features[k]
        changed[n], growths[n] = k, growth
        n += int64(growth != 0)
        accumulator.features[k] = inputs.features[k]
    twos = n - n % 2
    for i in range(0, twos, 2):
        a, b = features[changed[i]], features[changed[i + 1]]
        for j in range(sums.shape[0]):
            sums[j] += growths[i] * a[j] + growths[i + 1] * b[j]
    if twos < n:
        a = features[changed[twos]]
        for j in range(sums.shape[0]):
            sums[j] += growths[twos] * a[j]


@separate
def update_sums(weights: Weights, inputs: Inputs, accumulator: Accumulator, sums: F32) -> None:
    """Compute the first layer by updates, in full if there is nothing to update."""
    if accumulator.length[0] == 0 or accumulator.updates[0] == MOST_UPDATES:
        add_up(weights, inputs, sums)
        accumulator.length[0], accumulator.updates[0] = inputs.length[0], 0
        kept = accumulator
        copy_inputs(inputs.length[0], inputs.rows, inputs.features, kept.rows, kept.features)
        return
    accumulator.updates[0] += 1
    _exchange_rows(weights, inputs, accumulator, sums)
    _exchange_features(weights, inputs, accumulator, sums)


@separate
def apply_layers(weights: Weights, stage: Int, activations: Activations) -> None:
    """Compute the other layers, those of a stage, from ``activations.sums`` on."""
    sums, first, second = activations.sums, activations.first, activations.second
    wide, hidden = first.shape[0], second.shape[0]
    w_hidden, hidden_bias = weights.hidden[stage], weights.hidden_bias[stage]
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
    for k in range(activations.scores.shape[0]):
        activations.scores[k] = _score(weights, stage, activations, k)
    softmax(activations.values.shape[0], activations.scores, activations.values)


@kernel
def _score(weights: Weights, stage: Int, activations: Activations, k: Int) -> Any:
    """Compute one score."""
    second, sums, out = activations.second, activations.sums, weights.out[stage, k]
    hidden, wide = second.shape[0], activations.first.shape[0]
    score, fours = weights.out_bias[stage, k], hidden - hidden % 4
    for j in range(0, fours, 4):
        a, b = second[j] * out[j], second[j + 1] * out[j + 1]
        c, d = second[j + 2] * out[j + 2], second[j + 3] * out[j + 3]
        score += (a + b) + (c + d)
    for j in range(fours, hidden):
        score += second[j] * out[j]
    for j in range(LINEAR):
        score += sums[wide + j] * out[hidden + j]
    return score


@kernel
def log_odds(value: float) -> np.float32:
    """Return the log odds of a value, within bounds."""
    bounded = min(max(float32(value), _LEAST), _MOST)
    return np.log(bounded / (float32(1) - bounded))


@kernel
def reset_accumulator(net: Network) -> None:
    """Make the next position be computed in full."""
    net.accumulator.length[0] = 0


@separate
def evaluate(s: np.void, net: Network) -> None:
    """Write ``net.inputs`` and ``net.activations`` for a position that is not over."""
    encode(s, net.layout, net.inputs)
    update_sums(net.weights, net.inputs, net.accumulator, net.activations.sums)
    apply_layers(net.weights, net.inputs.stage[0], net.activations)


@kernel
def write_shares(s: np.void, values: Any) -> None:
    """Write each team's win probability where the game is over."""
    for team in range(int64(s["teams"])):
        values[team] = turns.team_win_share(s, team)


@inlined
def write_value(s: np.void, net: Network, values: Any) -> None:
    """Write each team's win probability in ``s``, over or not: ``(3,)`` float64."""
    if s["phase"] == OVER:
        write_shares(s, values)
        return
    evaluate(s, net)
    for team in range(int64(s["teams"])):
        values[team] = net.activations.values[team_role(s, team)]


@separate
def value_after(s: np.void, plan: Int, net: Network, after: Records, values: F64) -> None:
    """Write each team's win probability after a plan, before any dice."""
    after[0] = s
    play_plan(after[0], plan)
    write_value(after[0], net, values)


@separate
def value_plans(
    s: np.void, plans: I64, count: Int, net: Network, after: Records, values: F64
) -> None:
    """Write each team's win probability after each of the first plans: ``(K, 3)`` float64."""
    reset_accumulator(net)
    for k in range(count):
        value_after(s, plans[k], net, after, values[k])


def values(states: States, weights: Weights) -> npt.NDArray[np.float64]:
    """Return each team's win probability in games of one number of players: ``(N, teams)``."""
    states = as_states(states)
    players = common_players(states, "values")
    result = np.zeros((len(states), MAX_TEAMS))
    _values(states, Network.of(players, weights), result)
    return result[:, : TEAMS[players]]


@entry
def _values(states: Records, net: Network, out: Any) -> None:
    for g in range(states.shape[0]):
        reset_accumulator(net)  # so that a value does not depend on the games before
        write_value(states[g], net, out[g])


# ------------------------------------------------------------------------------------ gradients
# From the gradient of a loss with respect to the scores down to the sums of the first layer. What
# is done with each weight's gradient then is the caller's: a step of Adagrad at once (`adagrad`),
# or a place in the sum of a batch (`accumulate`), with which `adagrad` takes a step.


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
