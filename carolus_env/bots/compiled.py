"""Agents whose choice is a kernel: they play on by themselves, decision after decision.

Where a choice is compiled, so can be the whole way to somebody else's decision: one call then
plays thousands of games on, and no game comes back to Python in between. An agent that can do
that is a `CompiledAgent`; what plays games asks `is_compiled` and takes the way of `Agent.act`
for everybody else. Both ways take the same decisions out of the same streams.

A bot writes its choice as a kernel and adds an entry in whose loop `on_turn` asks whose decision
it is; `carolus_env.bots.random` is the shortest example.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeGuard

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env.bots.agent import Agent
from carolus_env.engine.rules import OVER
from carolus_env.engine.state import States
from carolus_env.system.compiler import kernel


class CompiledAgent(Agent):
    """An agent that can play on in many games by one call."""

    @abstractmethod
    def play_on(
        self,
        states: States,
        generators: npt.NDArray[np.uint64],
        tables: npt.NDArray[np.int64],
        place: int,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> int:
        """Decide in each game, again and again, until somebody else is to decide or it is over.

        What `act` and `engine.step` do in turns, with the same draws. What is due is rolled.
        Nothing is checked: this is for those who have checked it.

        Args:
            states: ``(N,)`` games without a due roll, played on in place.
            generators: ``(N, 1)`` or ``(N, players)`` uint64, C-contiguous: one stream a game,
                or one a seat; moved on in place.
            tables: ``(N, players)`` int64, who sits at each seat.
            place: which number in ``tables`` is this agent.
            rows: ``(M,)`` int64, games to play on; None: all.

        Returns:
            How many decisions it took.
        """


def is_compiled(agent: Agent) -> TypeGuard[CompiledAgent]:
    """Whether `CompiledAgent.play_on` stands for the agent's `act`.

    It does not where a subclass has changed `act` alone: then `act` is what counts.
    """
    for owner in (agent, *type(agent).__mro__):
        if "play_on" in vars(owner):
            return owner is not CompiledAgent
        if "act" in vars(owner):
            return False
    return False


@kernel
def on_turn(s, tables, row, place):
    """Whether ``place`` in ``tables[row]`` is to decide."""
    return s["phase"] != OVER and tables[row, s["player"]] == place


@kernel
def stream_of(s, generators):
    """Column of ``generators`` that the deciding seat draws from."""
    return int64(s["player"]) if generators.shape[1] > 1 else 0
