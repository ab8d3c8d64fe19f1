"""``greedy``: one decision at a time, the best immediate gain.

It tries every legal action and looks at once: first how many castles its team is ahead of the
other teams by, then how many clans. Ties are broken at random. It sees neither dice nor the
decisions to come, its own included.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env import engine
from carolus_env.bots.agent import Opinion
from carolus_env.bots.compiled import CompiledAgent, on_turn, stream_of
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.kernels.courts import controlling_team
from carolus_env.engine.rules import ACTIONS, CLANS, NOBODY
from carolus_env.engine.state import STATE, States, as_states, pick
from carolus_env.engine.streams import check_streams
from carolus_env.system.compiler import entry, kernel

_CASTLE = 100  # one castle outweighs any number of clans


class GreedyBot(CompiledAgent):
    """Takes the best immediate gain in castles, then in control; ties at random."""

    name = "greedy"

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        as_states(states)
        check_streams(generators, states)
        actions = np.empty(len(states), np.int64)
        _greedy_actions(states, generators, np.zeros(1, STATE), actions)
        return actions

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """The actions with the best immediate gain, all alike."""
        rows, actions = np.nonzero(engine.legal_masks(states))
        after = pick(states, rows)
        engine.step(after, actions, roll=False)
        points = np.full((len(states), ACTIONS), -np.inf)
        gains = np.empty(len(rows), np.int64)
        _standings(after, states["team"][rows, states["player"][rows]].astype(np.int64), gains)
        points[rows, actions] = gains
        best = points == points.max(axis=1, keepdims=True)
        return Opinion(best / best.sum(axis=1, keepdims=True))

    def play_on(
        self,
        states: States,
        generators: npt.NDArray[np.uint64],
        tables: npt.NDArray[np.int64],
        place: int,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> int:
        chosen = np.arange(len(states)) if rows is None else rows
        return _play_on(states, chosen, tables, place, generators, np.zeros(1, STATE))


@kernel
def standing(s, team):
    """How far the team is ahead: castles first, then controlled clans, less all others' share."""
    points = 0
    for other in range(int64(s["teams"])):
        sign = 1 if other == team else -1
        points += sign * _CASTLE * int64(s["castles"][other])
    for clan in range(CLANS):
        holder = controlling_team(s, clan)
        if holder == team:
            points += 1
        elif holder != NOBODY:
            points -= 1
    return points


@kernel
def best_action(s, scratch, bits):
    """The best action, ties by lot, and where the lots leave the stream ``bits``; -1: nobody's."""
    team = int64(s["team"][s["player"]])
    number = legal.legal_set(s)
    best, ties, chosen = -(1 << 30), 0, -1
    for action in range(ACTIONS):
        if legal.allows(number, action) == 0:
            continue
        scratch[0] = s
        turns.play(scratch[0], action)
        points = standing(scratch[0], team)
        if points > best:
            best, ties = points, 0
        if points == best:  # the k-th of equals replaces the last with probability 1 / k
            ties += 1
            bits = generator.step(bits)
            if generator.below(generator.mix(bits), ties) == 0:
                chosen = action
    return chosen, bits


@entry
def _standings(states, teams, points):
    for g in range(states.shape[0]):
        points[g] = standing(states[g], teams[g])


@entry
def _greedy_actions(states, generators, scratch, actions):
    for g in range(states.shape[0]):
        actions[g], generators[g] = best_action(states[g], scratch, generators[g])


@entry
def _play_on(states, rows, tables, place, generators, scratch):
    decisions = 0
    for i in range(rows.shape[0]):
        g = rows[i]
        s = states[g]
        while on_turn(s, tables, g, place):
            stream = stream_of(s, generators)
            action, generators[g, stream] = best_action(s, scratch, generators[g, stream])
            turns.play(s, action)
            turns.roll_on(s)
            decisions += 1
    return decisions
