"""The value network: each team's expected share of the win, as plain NumPy.

Rows of tables and the planner's features (`inputs`) are added up to ``width`` sums. All but the
last `LINEAR` of them pass a leaky rectifier and a layer of ``hidden`` units; these and the `LINEAR`
sums, as they are, give a score to each team, and the softmax of the scores is the value. The layers
after the sums are those of the position's stage (`tables.STAGES`)::

    sums = rows[picked].sum() + numbers @ seen + bias
    first = leaky(sums[:-LINEAR])
    second = leaky(first @ hidden[stage] + hidden_bias[stage])
    scores = concatenate(second, sums[-LINEAR:]) @ out[stage] + out_bias[stage]
    value = softmax(scores)

`inference` has the same as kernels, and a test holds them to `forward`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots.planner.evaluation import FEATURES
from carolus_env.bots.value.inputs import SeenArrays
from carolus_env.bots.value.tables import STAGES, layout
from carolus_env.engine.rules import MAX_PLAYERS, TEAMS

Arrays = Mapping[str, npt.NDArray[np.float32]]

VERSION: Final = 3
"""Of the network and what it sees; it changes when old weights would mean something else."""
LINEAR: Final = 8
"""Sums that pass the hidden layers by."""
LEAK: Final = np.float32(0.05)
"""Slope of the rectifiers below 0."""


@dataclass(frozen=True)
class Size:
    """The sizes of a value network.

    Raises:
        ValueError: for a size that no network can have.
    """

    players: int
    """Number of players, 2 to 4."""
    width: int = 64
    """Sums of the first layer, the `LINEAR` ones included; a multiple of 4."""
    hidden: int = 32
    """Units of the second layer."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("players", 2, MAX_PLAYERS),
            ("width", LINEAR + 8, 1024),
            ("hidden", 4, 1024),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"{name} must be from {low} to {high}, got {value!r}")
        if self.width % 4 > 0:  # kernels take four at a time
            raise ValueError(f"width must be a multiple of 4, got {self.width}")


def shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """The shape of each array of weights."""
    teams = TEAMS[size.players]
    return {
        "rows": (layout(size.players).rows, size.width),
        "numbers": (teams * len(FEATURES), size.width),
        "bias": (size.width,),
        "hidden": (STAGES, size.width - LINEAR, size.hidden),
        "hidden_bias": (STAGES, size.hidden),
        "out": (STAGES, size.hidden + LINEAR, teams),
        "out_bias": (STAGES, teams),
    }


def random_weights(size: Size, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    """Weights to begin with: small random numbers, alike for all stages; the rows are zeros."""
    random = np.random.default_rng(seed)
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes(size).items()}
    for name, spread in (("numbers", 1.0), ("hidden", 1.0), ("out", 0.5)):
        shape = weights[name].shape[-2:]
        weights[name][...] = random.standard_normal(shape) * spread / np.sqrt(shape[0])
    return weights


def layers(
    weights: Arrays, seen: SeenArrays
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The sums ``(N, width)`` and the second layer's units ``(N, hidden)`` of each position."""
    rows = weights["rows"]
    with_nothing = np.vstack([rows, np.zeros((1, rows.shape[1]), np.float32)])  # row -1
    sums = with_nothing[seen.rows].sum(axis=1) + seen.numbers @ weights["numbers"]
    sums += weights["bias"]
    first = _leaky(sums[:, :-LINEAR])
    hidden, bias = weights["hidden"][seen.stages], weights["hidden_bias"][seen.stages]
    return sums, _leaky(np.einsum("ni,nij->nj", first, hidden) + bias)


def forward(weights: Arrays, seen: SeenArrays) -> npt.NDArray[np.float32]:
    """The value of each position for each team role: ``(N, teams)`` float32, rows sum to 1."""
    sums, second = layers(weights, seen)
    out, out_bias = weights["out"][seen.stages], weights["out_bias"][seen.stages]
    scores = np.einsum("nj,njt->nt", np.hstack([second, sums[:, -LINEAR:]]), out) + out_bias
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True), np.float32)


def _leaky(sums: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.where(sums > 0, sums, LEAK * sums).astype(np.float32)
