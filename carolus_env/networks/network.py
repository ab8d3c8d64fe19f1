"""The network: each team's win probability, and with a policy head a residual, in NumPy.

Rows of tables and the planner's features (`inputs`) are added up to ``width`` sums. All but the
last `LINEAR` of them pass a leaky rectifier and a layer of ``hidden`` units; these and the `LINEAR`
sums, unchanged, give the scores. The layers after the sums are those of the position's stage
(`tables.STAGES`)::

    sums = rows[picked].sum() + features @ inputs + bias
    first = leaky(sums[:-LINEAR])
    second = leaky(first @ hidden[stage] + hidden_bias[stage])
    scores = out[stage] @ concatenate(second, sums[-LINEAR:]) + out_bias[stage]
    value = softmax(scores of the teams)

A policy head is one more score, the *residual*. A policy compares the positions after each
candidate (a disc, a crown or a whole turn); the logit of a candidate is::

    logit = residual + sharpness * log(value / (1 - value))

with the value for the team that chooses. So a policy starts from what the value says, and learns
what to do differently; ``sharpness`` is one number, learnt with the rest. After a candidate that
ends the game the value is known, and the residual 0. The policy is the softmax of the logits.

`forward` has the same as kernels; a test compares both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from carolus_env.engine.rules import MAX_PLAYERS, TEAMS
from carolus_env.networks.files import Model
from carolus_env.networks.inputs import InputArrays
from carolus_env.networks.tables import STAGES, layout
from carolus_env.planning.heuristic import FEATURES
from carolus_env.system.arrays import F32
from carolus_env.system.options import whole_number

Arrays = Mapping[str, F32]

LINEAR: Final = 8
"""Sums that pass the hidden layers by."""
LEAK: Final = np.float32(0.05)
"""Slope of the rectifiers below 0."""
WIDTH_LIMITS: Final = (LINEAR + 8, 1024)
HIDDEN_LIMITS: Final = (4, 1024)
"""The lowest and the highest `Size.width` and `Size.hidden`."""
SHARPNESS: Final = 10.0
"""Sharpness of a policy that has not learnt yet."""
SUREST: Final = 0.998
"""Bounds of values in the logits: at most this, and at least 1 less this."""


@dataclass(frozen=True)
class Size:
    """The sizes of a network.

    Raises:
        ValueError: for a size that no network can have.
    """

    players: int  # Number of players, 2 to 4
    width: int = 64  # Sums of the first layer, the `LINEAR` ones included; a multiple of 4
    hidden: int = 32  # Units of the second layer
    policy: bool = False  # True if the network has a policy head

    def __post_init__(self) -> None:
        for name, (low, high) in (
            ("players", (2, MAX_PLAYERS)),
            ("width", WIDTH_LIMITS),
            ("hidden", HIDDEN_LIMITS),
        ):
            whole_number(name, getattr(self, name), low, high)
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
    """Return random weights to begin with.

    They are small random numbers, alike for all stages; the rows and the policy head are zeros.
    """
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


# ------------------------------------------------------------------------------------ forward


def scores(weights: Arrays, inputs: InputArrays) -> F32:
    """Return the scores of positions.

    Args:
        weights: the weights by name, see `Size.shapes`.
        inputs: inputs of N positions.

    Returns:
        ``(N, teams)`` float32, by team role; with a policy head ``(N, teams + 1)``, the residual
        last.
    """
    rows, stages = weights["rows"], inputs.stages
    with_nothing = np.vstack([rows, np.zeros((1, rows.shape[1]), np.float32)])  # row -1
    sums = with_nothing[inputs.rows].sum(axis=1) + inputs.features @ weights["features"]
    sums += weights["bias"]
    first = _leaky(sums[:, :-LINEAR])
    second = np.einsum("ni,nij->nj", first, weights["hidden"][stages])
    units = np.hstack([_leaky(second + weights["hidden_bias"][stages]), sums[:, -LINEAR:]])
    result = np.einsum("nj,ntj->nt", units, weights["out"][stages]) + weights["out_bias"][stages]
    return np.asarray(result, np.float32)


def values(weights: Arrays, inputs: InputArrays) -> F32:
    """Return each team role's win probability: ``(N, teams)`` float32, rows sum to 1."""
    teams = inputs.features.shape[1] // len(FEATURES)
    result = scores(weights, inputs)[:, :teams]
    odds = np.exp(result - result.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True), np.float32)


def log_odds(value: F32) -> F32:
    """Return the log odds of values, within bounds."""
    bounded = np.clip(value, 1 - SUREST, SUREST)
    return np.asarray(np.log(bounded / (1 - bounded)), np.float32)


def _leaky(sums: F32) -> F32:
    return np.where(sums > 0, sums, LEAK * sums).astype(np.float32)
