"""``random``: every legal action equally likely."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import Agent
from carolus_env.state import States


class RandomBot(Agent):
    """Plays uniformly at random: the lowest rung of every ladder."""

    name = "random"

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        return engine.random_actions(states, generators)
