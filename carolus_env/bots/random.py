"""``random``: every legal action is equally likely."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import Opinion
from carolus_env.bots.compiled import CompiledAgent, Entries, choose_in_all, play_games_on
from carolus_env.engine.kernels import generator, legal
from carolus_env.engine.state import States
from carolus_env.system.compiler import entry, kernel


@kernel
def choose(s, bits, context):
    """A legal action, uniformly at random, and the advanced stream."""
    bits = generator.step(bits)
    return legal.random_action(legal.legal_set(s), generator.mix(bits)), bits


@entry
def _act(states, generators, actions, rows, context):
    choose_in_all(choose, states, generators, actions, rows, context)


@entry
def _play_on(states, generators, seating, place, rows, context):
    return play_games_on(choose, states, generators, seating, place, rows, context)


class RandomBot(CompiledAgent):
    """Plays uniformly at random: the lowest rung of every ladder."""

    name = "random"
    entries = Entries(_act, _play_on)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """All legal actions are equally likely."""
        masks = engine.legal_masks(states)
        return Opinion(masks / masks.sum(axis=1, keepdims=True))
