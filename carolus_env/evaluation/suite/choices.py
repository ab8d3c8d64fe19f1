"""Choices of agents: a disc, a crown, or all that remains of a turn."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent, Checked, lockstep
from carolus_env.engine.dealing import Deals
from carolus_env.engine.rules import MAX_PLAYERS, MOVE, PLACE
from carolus_env.engine.state import States, copy


class Chosen(NamedTuple):
    """An agent's choices in ``N`` positions.

    Attributes:
        actions: the actions of each choice, in order.
        after: ``(N,)`` the positions after them, before any dice, with generator 0.
        decisions: number of decisions that the agent took.
    """

    actions: list[tuple[int, ...]]
    after: States
    decisions: int


def choose(agent: Agent, states: States, numbers: npt.NDArray[np.int64], seed: int = 0) -> Chosen:
    """Let an agent decide in every position; in a turn, until the turn is over.

    Args:
        agent: an agent; its answers are checked.
        states: ``(N,)`` positions in which a decision is due; unchanged.
        numbers: ``(N,)``; a position's number and the seed decide the agent's random stream, so
            answers do not depend on other positions.
        seed: 0 to 2^64 - 1.

    Raises:
        AgentError: when the agent answers something else than legal actions.
    """
    agent = agent if isinstance(agent, Checked) else Checked(agent)
    after = copy(states)
    streams = Deals.of(seed, numbers).roots
    actions: list[tuple[int, ...]] = [() for _ in range(len(after))]
    placing, calls, decisions = after["phase"] == PLACE, itertools.count(), 0

    def go_on(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Yield all games at first, then those still placing paladins, until the turn ends."""
        same = np.isin(after["phase"][rows], (PLACE, MOVE))
        return rows[placing[rows] & same] if next(calls) else rows

    tables = np.zeros((len(after), MAX_PLAYERS), np.int64)
    games = lockstep.Games(after, tables, streams[:, None])
    for step in lockstep.play(games, [agent], go_on):
        decisions += len(step.rows)
        for row, action in zip(step.rows, step.actions, strict=True):
            actions[row] += (int(action),)
    after["generator"] = 0
    return Chosen(actions, after, decisions)
