"""Games in lockstep as kernels: one call plays a decision in every game and asks for the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.kernels.actions import destination_of, disc_of
from carolus_env.engine.rules import FIRST_CROWN, FIRST_PLACE, OVER
from carolus_env.engine.streams import branch
from carolus_env.system.compiler import entry, kernel


class Games(NamedTuple):
    """``G`` games that are played side by side; every array is changed in place."""

    states: npt.NDArray[np.void]
    """``(G,)`` of dtype `state.STATE`."""
    tables: npt.NDArray[np.int64]
    """``(G, players)``: the agent at each seat; never changed."""
    dice: npt.NDArray[np.uint64]
    """``(G, players)``: the generator by which each seat rolls."""
    streams: npt.NDArray[np.uint64]
    """``(G, players)``: the random stream of the agent at each seat."""
    counts: npt.NDArray[np.void]
    """``(G, players)`` of dtype `columns.COUNTS`."""
    leads: npt.NDArray[np.void]
    """``(G,)`` of dtype `columns.LEADS`."""


class Questions(NamedTuple):
    """The games in play, grouped by the agent to move: ``I`` of them.

    Agent ``k`` answers entries ``bounds[k]`` to ``bounds[k + 1] - 1``.
    """

    in_play: npt.NDArray[np.int64]
    """``(I,)``: the numbers of the games in play, ascending."""
    games: npt.NDArray[np.int64]
    """``(I,)``: the number of the game of each question."""
    states: npt.NDArray[np.void]
    """``(I,)`` of dtype `state.STATE`: copies for the agents, with generators of their streams."""
    streams: npt.NDArray[np.uint64]
    """``(I,)``: the agents' random streams, which they move on."""
    bounds: npt.NDArray[np.int64]
    """``(agents + 2,)``: where each agent's questions begin; the last entry is unused."""


@entry
def begin(games, questions):
    """Roll the set-up's dice, and ask for the first decisions."""
    for g in range(games.states.shape[0]):
        turns.roll_dealt(games.states[g], games.dice, g)
    ask(games, questions, questions.in_play.shape[0])


@entry
def step(games, questions, actions, seconds):
    """Advance every game by one decision, and ask for the next ones.

    Args:
        games: `Games`.
        questions: the `Questions` that were answered; the first entries become the next ones.
        actions: ``(I,)`` int64, the answers.
        seconds: ``(agents,)``, what each agent took for one of them.

    Returns:
        the index of the first illegal action (then nothing was played) or -1, and how many games
        are still in play.
    """
    asked = questions.games.shape[0]
    for i in range(asked):
        if not legal.is_legal(games.states[questions.games[i]], actions[i]):
            return i, asked
    for i in range(asked):
        g = questions.games[i]
        s = games.states[g]
        seat = int64(s["player"])
        games.streams[g, seat] = questions.streams[i]
        count(games.counts[g, seat], actions[i], seconds[games.tables[g, seat]])
        turns.play(s, actions[i])
        turns.roll_dealt(s, games.dice, g)
        note_lead(s, games.leads[g])
    left = 0
    for i in range(asked):
        g = questions.in_play[i]
        questions.in_play[left] = g
        left += int64(games.states[g]["phase"] != OVER)
    ask(games, questions, left)
    return -1, left


@kernel
def count(counts, action, seconds):
    """Add a decision to the statistics of its seat."""
    counts["decisions"] += 1
    counts["seconds"] += seconds
    if action >= FIRST_PLACE:
        if destination_of(action) == 0:
            counts["to_court"] += 1
        else:
            counts["to_regions"] += 1
    elif action < FIRST_CROWN:
        counts["discs"][disc_of(action) - 1] += 1


@kernel
def note_lead(s, lead):
    """Track which team last had the sole lead in castles."""
    leaders = turns.teams_with_most_castles(s)
    if leaders & (leaders - 1) != 0:
        return
    leader = 1 + int64(leaders > 1) + int64(leaders > 2)
    before = int64(lead["leader"])
    lead["leader"] = leader
    lead["changes"] += int64(before != 0 and before != leader)


@kernel
def ask(games, questions, left):
    """Group the ``left`` games in play by the agent to move, and copy what it may see."""
    bounds = questions.bounds
    for k in range(bounds.shape[0]):
        bounds[k] = 0
    for i in range(left):
        g = questions.in_play[i]
        bounds[games.tables[g, games.states[g]["player"]] + 2] += 1
    for k in range(2, bounds.shape[0]):
        bounds[k] += bounds[k - 1]
    for i in range(left):  # bounds[k + 1] goes from the start of agent k's questions to their end
        g = questions.in_play[i]
        s = games.states[g]
        seat = int64(s["player"])
        agent = games.tables[g, seat]
        place = bounds[agent + 1]
        bounds[agent + 1] = place + 1
        questions.games[place] = g
        questions.streams[place] = games.streams[g, seat]
        questions.states[place] = s
        decision = np.uint64(int64(games.counts[g, seat]["decisions"]))
        questions.states[place]["generator"] = branch(games.streams[g, seat], decision)
