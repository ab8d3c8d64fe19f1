"""The network: each team's win probability, and with a policy head a residual.

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

`forward` has it as kernels; a test compares them with NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from carolus_env.engine.rules import MAX_PLAYERS, TEAMS
from carolus_env.networks.files import Model
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
