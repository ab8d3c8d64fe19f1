"""``random``: every legal action equally likely."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import Opinion
from carolus_env.bots.compiled import CompiledAgent, on_turn, stream_of
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.state import States
from carolus_env.system.compiler import entry


class RandomBot(CompiledAgent):
    """Plays uniformly at random: the lowest rung of every ladder."""

    name = "random"

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        return engine.random_actions(states, generators)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Every legal action is as good as any other."""
        legal_ones = engine.legal_masks(states)
        return Opinion(legal_ones / legal_ones.sum(axis=1, keepdims=True))

    def play_on(
        self,
        states: States,
        generators: npt.NDArray[np.uint64],
        tables: npt.NDArray[np.int64],
        place: int,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> int:
        chosen = np.arange(len(states)) if rows is None else rows
        return _play_on(states, chosen, tables, place, generators)


@entry
def _play_on(states, rows, tables, place, generators):
    decisions = 0
    for i in range(rows.shape[0]):
        g = rows[i]
        s = states[g]
        while on_turn(s, tables, g, place):
            stream = stream_of(s, generators)
            generators[g, stream] = generator.step(generators[g, stream])
            bits = generator.mix(generators[g, stream])
            turns.play(s, legal.random_action(legal.legal_set(s), bits))
            turns.roll_on(s)
            decisions += 1
    return decisions
