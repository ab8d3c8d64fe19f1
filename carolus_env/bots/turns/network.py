"""The network of a policy over whole turns, as plain NumPy: a value network with one more output.

It looks at the position after each candidate, a disc, a crown or a whole turn, as the value network
does (`bots.value.network`), and gives it a value and a *residual*. The logit of a candidate is::

    logit = residual + sharpness * log(value / (1 - value))

with the value for the team that chooses. So the policy starts from what the value says, and learns
what to do differently; ``sharpness`` is one number, learnt with the rest. After a candidate that
ends the game the value is known, and the residual 0. The policy is the softmax of the logits.

`inference` has the same as kernels, and a test holds them to `forward`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots.value import network as value_network
from carolus_env.bots.value.inputs import SeenArrays
from carolus_env.bots.value.network import LINEAR, Arrays, Size
from carolus_env.bots.value.tables import STAGES

VERSION: Final = value_network.VERSION
"""Of the network and what it sees: the value network's."""
SHARPNESS: Final = 10.0
"""Of a network that has not learnt yet."""
SUREST: Final = 0.998
"""Values are seen as at most so much, and at least 1 less that, in the logits."""


def shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """The shape of each array of weights."""
    return {
        **value_network.shapes(size),
        "residual": (STAGES, size.hidden + LINEAR),
        "residual_bias": (STAGES,),
        "sharpness": (1,),
    }


def random_weights(size: Size, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    """Weights to begin with: the value network's, and no residual."""
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes(size).items()}
    weights |= value_network.random_weights(size, seed)
    weights["sharpness"][:] = SHARPNESS
    return weights


def forward(
    weights: Arrays, seen: SeenArrays
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The residual ``(N,)`` and the value ``(N, teams)``, by team role, of each position."""
    sums, second = value_network.layers(weights, seen)
    units = np.hstack([second, sums[:, -LINEAR:]])
    residual = (units * weights["residual"][seen.stages]).sum(axis=1)
    found = np.asarray(residual + weights["residual_bias"][seen.stages], np.float32)
    return found, value_network.forward(weights, seen)


def log_odds(value: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The log odds of values, within bounds."""
    bounded = np.clip(value, 1 - SUREST, SUREST)
    return np.asarray(np.log(bounded / (1 - bounded)), np.float32)
