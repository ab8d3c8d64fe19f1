"""``random``: every legal action is equally likely."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import Opinion
from carolus_env.bots.compiled import CompiledAgent, Entries
from carolus_env.engine.kernels import generator, legal
from carolus_env.engine.state import States
from carolus_env.system.arrays import Bits, Int
from carolus_env.system.compiler import kernel


@kernel
def choose(s: np.void, rest: Int, bits: Bits, context: None) -> tuple[Int, Int, Bits]:
    """Return a legal action, uniformly at random, no plan, and the advanced stream."""
    bits = generator.step(bits)
    return legal.random_action(legal.legal_set(s), generator.mix(bits)), 0, bits


class RandomBot(CompiledAgent):
    """Plays uniformly at random: the lowest rung of every ladder."""

    name = "random"
    entries = Entries.of(choose)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return equal probabilities of all legal actions."""
        masks = engine.legal_masks(states)
        return Opinion(masks / masks.sum(axis=1, keepdims=True))
