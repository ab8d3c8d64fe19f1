"""``greedy``: the best immediate gain, one decision at a time.

It compares the positions right after every legal action: by its team's lead in castles over the
other teams, then by clans. It foresees neither dice nor later decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import BotOptions, Opinion
from carolus_env.bots.compiled import CompiledAgent, Entries, error, errors_option, with_errors
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.kernels.courts import controlling_team
from carolus_env.engine.rules import ACTIONS, CLANS, NOBODY
from carolus_env.engine.state import STATE, States, pick
from carolus_env.system.arrays import I64, Bits, Int, Records, int64
from carolus_env.system.compiler import entry, kernel

_CASTLE = 100  # one castle outweighs any number of clans


@dataclass(frozen=True)
class GreedyOptions(BotOptions):
    """Options of `GreedyBot`; see docs/bots.md."""

    bot = "greedy"

    errors: float = errors_option()


class Greedy(NamedTuple):
    """Context of the kernel."""

    errors: float  # probability of a random move
    scratch: States  # (1,) the position after an action


@kernel
def standing(s: np.void, team: Int) -> Int:
    """Return the team's lead in points over all others: castles first, then controlled clans."""
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
def choose(s: np.void, rest: Int, bits: Bits, greedy: Greedy) -> tuple[Int, Int, Bits]:
    """Return the best action, ties broken at random, no plan, and the advanced stream.

    The action is -1 when no decision is due.
    """
    chosen, bits = error(s, bits, greedy.errors)
    if chosen >= 0:
        return chosen, 0, bits
    team = int64(s["team"][s["player"]])
    legal_set = legal.legal_set(s)
    scratch, best, ties = greedy.scratch, -(1 << 30), 0
    for action in range(ACTIONS):
        if legal.allows(legal_set, action) == 0:
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
    return chosen, 0, bits


@entry
def _standings(states: Records, teams: I64, points: I64) -> None:
    for g in range(states.shape[0]):
        points[g] = standing(states[g], teams[g])


class GreedyBot(CompiledAgent):
    """Takes the best immediate gain in castles, then in clans; ties are broken at random."""

    name = "greedy"
    entries = Entries.of(choose)

    def __init__(self, options: GreedyOptions | None = None) -> None:
        self.options = options or GreedyOptions()

    def context(self, players: int) -> Greedy:
        return Greedy(float(self.options.errors), np.zeros(1, STATE))

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return equal probabilities of the actions with the best immediate gain, errors apart."""
        rows, actions = np.nonzero(engine.legal_masks(states))
        after = pick(states, rows)
        engine.step(after, actions, roll=False)
        points = np.full((len(states), ACTIONS), -np.inf)
        gains = np.empty(len(rows), np.int64)
        _standings(after, states["team"][rows, states["player"][rows]].astype(np.int64), gains)
        points[rows, actions] = gains
        best = points == points.max(axis=1, keepdims=True)
        chosen = best / best.sum(axis=1, keepdims=True)
        return Opinion(with_errors(chosen, states, self.options.errors))
