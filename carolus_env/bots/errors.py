"""Random moves with a given probability, which make weaker agents of a kind."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.kernels import generator, legal
from carolus_env.engine.state import States
from carolus_env.system.arrays import Bits, Int
from carolus_env.system.compiler import kernel
from carolus_env.system.options import option


def errors_option() -> float:
    """Return the field ``errors`` of a bot's options."""
    return option(0.0, "probability of a random legal action instead", among=(0.0, 1.0))


@kernel
def error(s: np.void, bits: Bits, errors: float) -> tuple[Int, Bits]:
    """Return a random legal action with probability ``errors``, else -1; and the advanced stream.

    Without errors nothing is drawn, so that the agent plays as one that knows no errors.
    """
    if errors > 0.0:
        bits = generator.step(bits)
        if generator.fraction(generator.mix(bits)) < errors:
            bits = generator.step(bits)
            return legal.random_action(legal.legal_set(s), generator.mix(bits)), bits
    return -1, bits


def with_errors(
    probabilities: npt.NDArray[np.float64], states: States, errors: float
) -> npt.NDArray[np.float64]:
    """Return the probabilities of an agent's actions, ``(N, ACTIONS)``, when it makes errors."""
    if errors == 0:
        return probabilities
    masks = engine.legal_masks(states)
    return (1 - errors) * probabilities + errors * masks / masks.sum(axis=1, keepdims=True)
