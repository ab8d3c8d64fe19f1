"""The loop that plays games in batches: agents decide, dice are rolled, and again.

All agents to move are asked, each for all its games in one batch, then all answers are played. So
results do not depend on how many games are played at once. Agents get copies of the states, in
which the generator comes from their own stream, and reveals nothing about the dice to come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.bots.agent import Agent
from carolus_env.engine import chance
from carolus_env.engine.chance import branch
from carolus_env.engine.play import play_all
from carolus_env.engine.rules import OVER
from carolus_env.engine.state import STATE, Ints, States
from carolus_env.system.arrays import F64, I64, U8, U64, Int, Records, int64, uint64
from carolus_env.system.compiler import entry, kernel

NO_AGENT: Final = -1
"""Entry of a seating table: a seat that no agent plays. The loop leaves a game waiting there."""

Rows = I64
Roll = Callable[[Rows], Rows]
Answer = Callable[[Agent, States, U64], Ints]


class Games(NamedTuple):
    """``N`` games to be played side by side, in place."""

    states: States  # (N,)
    tables: I64  # (N, players) the number of each seat's agent, or `NO_AGENT`
    streams: U64  # (N, players) each seat's random stream; or (N, 1) for all


class Step(NamedTuple):
    """One decision in each of ``M`` games, grouped by agent."""

    rows: Rows
    shown: States  # the games before the decision, as the agents observed them
    seats: U8  # that decided
    actions: I64
    seconds: F64  # each decision's part of the time for its batch


def answer(agent: Agent, states: States, streams: U64) -> Ints:
    """Return the agent's actions, one integer a game; that they are legal is checked by `play`."""
    return engine.whole_numbers(agent.act(states, streams), "actions", len(states))


def play(
    games: Games, agents: Sequence[Agent], roll: Roll | None = None,
    *, rows: Rows | None = None, answer: Answer = answer,
) -> Iterator[Step]:  # fmt: skip
    """Play games on until each is over, waits at a seat of `NO_AGENT`, or is left by ``roll``.

    Each step is yielded when it is played and the dice are rolled. ``roll``, called with the games
    in play before the first decision and after each, rolls the dice that are due and returns the
    games that go on; None: all do, by their own generators. A step with an illegal action is not
    played, but an `IllegalActionError`.
    """
    states, tables, streams = games

    def roll_own(rows: Rows) -> Rows:
        chance.roll(states, rows=rows)
        return rows

    go_on = roll or roll_own
    rows = go_on(np.arange(len(states)) if rows is None else rows)
    while True:
        shown, drawn = np.empty(len(rows), STATE), np.empty(len(rows), np.uint64)
        deciding, ends = np.empty(len(rows), np.int64), np.zeros(len(agents) + 2, np.int64)
        _ask(states, tables, streams, rows, deciding, shown, drawn, ends)
        if not (count := int(ends[-2])):
            return
        rows, shown = deciding[:count], shown[:count]
        seats = shown["player"].astype(np.uint8)  # an agent might change it
        actions, seconds = np.empty(count, np.int64), np.empty(count)
        for agent, start, end in zip(agents, ends[:-2].tolist(), ends[1:-1].tolist(), strict=True):
            if start < end:
                begun = time.perf_counter()
                actions[start:end] = answer(agent, shown[start:end], drawn[start:end])
                seconds[start:end] = (time.perf_counter() - begun) / (end - start)
        wrong = play_all(states, rows, actions, False)
        if wrong >= 0:
            raise engine.refusal(states, int(rows[wrong]), int(actions[wrong]))
        streams[rows, seats if streams.shape[1] > 1 else 0] = drawn[:count]
        rows = go_on(rows)
        yield Step(deciding[:count], shown, seats, actions, seconds)


@entry
def _ask(
    states: Records, tables: I64, streams: U64, rows: I64,
    deciding: I64, shown: Records, drawn: U64, bounds: I64,
) -> None:  # fmt: skip
    """Group the games in which an agent must decide by agent, and copy their observable states.

    Agent ``k`` decides in games ``deciding[bounds[k]]`` to ``deciding[bounds[k + 1] - 1]``.
    """
    for i in range(rows.shape[0]):
        s = states[rows[i]]
        agent = tables[rows[i], s["player"]]
        if s["phase"] != OVER and agent >= 0:
            bounds[agent + 2] += 1
    for k in range(2, bounds.shape[0]):
        bounds[k] += bounds[k - 1]
    for i in range(rows.shape[0]):  # bounds[k + 1] goes from the start of agent k's games on
        g = rows[i]
        s = states[g]
        agent = tables[g, s["player"]]
        if s["phase"] == OVER or agent < 0:
            continue
        slot = bounds[agent + 1]
        bounds[agent + 1] = slot + 1
        deciding[slot], drawn[slot] = g, streams[g, s["player"] if streams.shape[1] > 1 else 0]
        shown[slot] = s
        shown[slot]["generator"] = branch(drawn[slot], uint64(_number(s)))


@kernel
def _number(s: np.void) -> Int:
    """Return a number that no other decision of the game has."""
    turn = (int64(s["round"]) << 3 | int64(s["turn"])) << 3 | int64(s["phase"])
    return turn << 8 | int64(s["crowns"][s["player"]]) << 4 | int64(s["placements_left"])
