"""What agents choose: a disc, a crown, or all that is left of a turn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.analysis.sampling import ask
from carolus_env.bots import Agent, Checked
from carolus_env.engine.rules import MOVE, PLACE
from carolus_env.engine.state import States, copy
from carolus_env.engine.streams import branches, seed_generators


class Chosen(NamedTuple):
    """What an agent chose in ``N`` positions.

    Attributes:
        actions: of each choice, in order.
        after: ``(N,)`` the positions after them, before any dice, with generator 0.
        decisions: that the agent was asked for.
    """

    actions: list[tuple[int, ...]]
    after: States
    decisions: int


def choose(agent: Agent, states: States, numbers: npt.NDArray[np.int64], seed: int = 0) -> Chosen:
    """Let an agent decide in every position; in a turn, until the turn is over.

    Args:
        agent: any; its answers are checked.
        states: ``(N,)`` positions in which a decision is due; unchanged.
        numbers: ``(N,)``; a position's number and the seed decide the agent's random stream, so
            answers do not depend on what else is asked.
        seed: 0 to 2^64 - 1.

    Raises:
        AgentError: when the agent answers something else than legal actions.
    """
    agent = agent if isinstance(agent, Checked) else Checked(agent)
    after = copy(states)
    streams = branches(seed_generators(seed, 1), numbers.astype(np.uint64))
    actions: list[tuple[int, ...]] = [() for _ in range(len(after))]
    going, asked = np.arange(len(after)), 0
    while len(going):
        drawn = streams[going]
        taken = np.array([len(actions[row]) for row in going])
        answers = ask(agent, after[going], drawn, taken)
        streams[going] = drawn
        asked += len(going)
        placing = after["phase"][going] == PLACE
        engine.step(after, answers, rows=going, roll=False)
        for row, action in zip(going, answers, strict=True):
            actions[row] += (int(action),)
        same = np.isin(after["phase"][going], (PLACE, MOVE))
        going = going[placing & same]
    after["generator"] = 0
    return Chosen(actions, after, asked)
