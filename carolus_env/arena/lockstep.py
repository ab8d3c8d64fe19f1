"""Games in lockstep as kernels: one call plays a decision in every game and shows what is next."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy import int64

from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.rules import DESTINATIONS, DISCS, FIRST_CROWN, FIRST_PLACE, OVER
from carolus_env.engine.streams import branch
from carolus_env.system.compiler import entry, kernel

# What is counted of each seat: discs 1 to 5, then these.
TO_COURT: Final = DISCS
TO_REGIONS: Final = DISCS + 1
DECISIONS: Final = DISCS + 2
COUNTS: Final = DISCS + 3


@entry
def begin(
    states,
    tables,
    streams,
    dice,
    counts,
    leads,
    seconds,
    in_play,
    asked,
    drawn,
    bounds,
    shown,
):
    """The rolls of the set-up, and the first games to show."""
    for g in range(states.shape[0]):
        turns.roll_dealt(states[g], dice, g)
    show(states, tables, streams, counts, in_play, in_play.shape[0], asked, drawn, bounds, shown)


@entry
def step(
    states,
    tables,
    streams,
    dice,
    counts,
    leads,
    seconds,
    costs,
    actions,
    in_play,
    asked,
    drawn,
    bounds,
    shown,
):
    """Play every game on by one decision, and show those that go on.

    Returns:
        the index of the first illegal action (then nothing was played) or -1, and how many games
        are still in play.
    """
    for i in range(asked.shape[0]):
        if not legal.is_legal(states[asked[i]], actions[i]):
            return i, asked.shape[0]
    for i in range(asked.shape[0]):
        g = asked[i]
        s = states[g]
        seat = int64(s["player"])
        streams[g, seat] = drawn[i]
        seconds[g, seat] += costs[tables[g, seat]]
        count(counts, g, seat, actions[i])
        turns.play(s, actions[i])
        turns.roll_dealt(s, dice, g)
        note_lead(s, leads, g)
    left = 0
    for i in range(in_play.shape[0]):
        g = in_play[i]
        in_play[left] = g
        left += int64(states[g]["phase"] != OVER)
    show(states, tables, streams, counts, in_play, left, asked, drawn, bounds, shown)
    return -1, left


@kernel
def count(counts, g, seat, action):
    """What a decision of the seat adds to its statistics."""
    counts[g, seat, DECISIONS] += 1
    if action >= FIRST_PLACE:
        to_court = (action - FIRST_PLACE) % DESTINATIONS == 0
        counts[g, seat, TO_COURT if to_court else TO_REGIONS] += 1
    elif action < FIRST_CROWN:
        counts[g, seat, action] += 1


@kernel
def note_lead(s, leads, g):
    """``leads[g]``: 1 + the last team to have most castles alone, and how often that changed."""
    leaders = turns.teams_with_most_castles(s)
    if leaders & (leaders - 1) != 0:
        return
    leader = 1 + int64(leaders > 1) + int64(leaders > 2)
    before = int64(leads[g, 0])
    leads[g, 0] = leader
    leads[g, 1] += int64(before != 0 and before != leader)


@kernel
def show(states, tables, streams, counts, in_play, left, asked, drawn, bounds, shown):
    """Group the games in play by the agent that is to decide, and copy what it may see.

    Agent ``k`` gets ``shown[bounds[k] : bounds[k + 1]]`` with the streams in ``drawn``; ``asked``
    are the numbers of these games.
    """
    for k in range(bounds.shape[0]):
        bounds[k] = 0
    for i in range(left):
        g = in_play[i]
        bounds[tables[g, states[g]["player"]] + 2] += 1
    for k in range(2, bounds.shape[0]):
        bounds[k] += bounds[k - 1]
    for i in range(left):  # bounds[k + 1] goes from the start of agent k's games to their end
        g = in_play[i]
        s = states[g]
        seat = int64(s["player"])
        agent = tables[g, seat]
        place = bounds[agent + 1]
        bounds[agent + 1] = place + 1
        asked[place] = g
        drawn[place] = streams[g, seat]
        shown[place] = s
        number = np.uint64(int64(counts[g, seat, DECISIONS]))
        shown[place]["generator"] = branch(streams[g, seat], number)
