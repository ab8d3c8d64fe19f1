"""Bots without a network: ``random``, ``greedy`` and ``planner``.

``greedy`` compares the positions right after every legal action; it foresees neither dice nor later
decisions. ``planner`` lists the plans for its paladins and the Emperor (`planning.plans`), and
plays the one that leaves the best position (`planning.heuristic`). To choose a disc it plays the
round to its end, all players acting by their best plans and no dice rolled, and values that
position. A crown becomes the clan that leaves the best position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from carolus_env import engine
from carolus_env.bots.agent import BotOptions, Opinion
from carolus_env.bots.compiled import CompiledAgent, Entries, error, errors_option, with_errors
from carolus_env.engine import rules
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.kernels.courts import controlling_team
from carolus_env.engine.state import STATE, States, common_players, copy
from carolus_env.planning import heuristic, plans
from carolus_env.planning.heuristic import advantage, chances, weights_table, write_scores
from carolus_env.planning.plans import WIDTHS, CandidateList, DiscScratch, PlanScratch
from carolus_env.system.arrays import F64, U64, Bits, Int, Records, allocate, int64
from carolus_env.system.compiler import entry, inlined, kernel, separate
from carolus_env.system.options import option

# ------------------------------------------------------------------------------------ random


@kernel
def choose_at_random(s: np.void, rest: Int, bits: Bits, context: None) -> tuple[Int, Int, Bits]:
    """Return a legal action, uniformly at random, no plan, and the advanced stream."""
    bits = generator.step(bits)
    return legal.random_action(legal.legal_set(s), generator.mix(bits)), 0, bits


class RandomBot(CompiledAgent):
    """Plays uniformly at random: the lowest rung of every ladder."""

    name = "random"
    entries = Entries.of(choose_at_random)

    def opinion(self, states: States, generators: U64) -> Opinion:
        """Return equal probabilities of all legal actions."""
        masks = engine.legal_masks(states)
        return Opinion(masks / masks.sum(axis=1, keepdims=True))


# ------------------------------------------------------------------------------------ greedy

_CASTLE = 100  # one castle outweighs any number of clans


@dataclass(frozen=True)
class GreedyOptions(BotOptions):
    """Options of `GreedyBot`; see docs/bots.md."""

    bot = "greedy"

    errors: float = errors_option()


@kernel
def points_after(s: np.void, action: Int, after: Records) -> Int:
    """Return the lead in points of the team to move after an action: castles, then clans."""
    after[0] = s
    turns.play(after[0], action)
    team, points = int64(s["team"][s["player"]]), 0
    for other in range(int64(s["teams"])):
        sign = 1 if other == team else -1
        points += sign * _CASTLE * int64(after[0]["castles"][other])
    for clan in range(rules.CLANS):
        holder = controlling_team(after[0], clan)
        if holder == team:
            points += 1
        elif holder != rules.NOBODY:
            points -= 1
    return points


@kernel
def choose_greedily(s: np.void, rest: Int, bits: Bits, greedy: Any) -> tuple[Int, Int, Bits]:
    """Return the best action (-1: none is due), ties broken at random, no plan, and the stream."""
    errors, after = greedy
    chosen, bits = error(s, bits, errors)
    if chosen >= 0:
        return chosen, 0, bits
    legal_set, best, ties = legal.legal_set(s), -(1 << 30), 0
    for action in range(rules.ACTIONS):
        if legal.allows(legal_set, action) == 0:
            continue
        points = points_after(s, action, after)
        if points > best:
            best, ties = points, 0
        if points == best:  # the k-th of equals replaces the last with probability 1 / k
            ties += 1
            bits = generator.step(bits)
            if generator.below(generator.mix(bits), ties) == 0:
                chosen = action
    return chosen, 0, bits


@entry
def _write_points(states: Records, after: Records, points: F64) -> None:
    for g in range(states.shape[0]):
        legal_set = legal.legal_set(states[g])
        for action in range(rules.ACTIONS):
            if legal.allows(legal_set, action) != 0:
                points[g, action] = points_after(states[g], action, after)


class GreedyBot(CompiledAgent):
    """Takes the best immediate gain in castles, then in clans; ties are broken at random."""

    name = "greedy"
    entries = Entries.of(choose_greedily)

    def __init__(self, options: GreedyOptions | None = None) -> None:
        self.options = options or GreedyOptions()

    def context(self, players: int) -> tuple[float, States]:
        return float(self.options.errors), np.zeros(1, STATE)

    def opinion(self, states: States, generators: U64) -> Opinion:
        """Return equal probabilities of the actions with the best immediate gain, errors apart."""
        points = np.full((len(states), rules.ACTIONS), -np.inf)
        _write_points(states, np.zeros(1, STATE), points)
        best = points == points.max(axis=1, keepdims=True)
        chosen = best / best.sum(axis=1, keepdims=True)
        return Opinion(with_errors(chosen, states, self.options.errors))


# ------------------------------------------------------------------------------------ planner


@dataclass(frozen=True)
class PlannerOptions(BotOptions):
    """Options of `PlannerBot`; see docs/bots.md."""

    bot = "planner"

    plans: str = option(
        "stop",
        "where paladins may go besides the player's court: to the region where the Emperor stops, "
        "to any one region, or anywhere",
        among=WIDTHS,
    )
    errors: float = errors_option()


@inlined
def _best_plan(s: np.void, turn: CandidateList) -> Any:
    """Return the plan of the player to move that leaves the best position, listed in ``turn``."""
    plans.list_plans(s, turn.width, turn.weights, turn.scratch, turn.plans[:1], turn.scores)
    return turn.plans[0]


@separate
def best_crown(s: np.void, weights: F64, scratch: PlanScratch) -> Int:
    """Return the clan to make of the crown, as an action."""
    team, chosen, best = int64(s["team"][s["player"]]), -1, -np.inf
    clans = legal.clans_to_take(s)
    for clan in range(rules.CLANS):
        if clans >> clan & 1 == 0:
            continue
        scratch.states[0] = s
        plans.play(scratch.states[0], rules.FIRST_CROWN + clan)
        write_scores(scratch.states[0], weights, scratch.features, scratch.scores)
        value = advantage(scratch.scores, team, int64(s["teams"]))
        if value > best:
            chosen, best = rules.FIRST_CROWN + clan, value
    return chosen


@inlined
def _answers(s: np.void) -> Any:
    """Return the bits of discs to try for a later player; of three and more two, for speed."""
    discs = legal.playable_discs(s)
    if s["players"] == 2:
        return discs
    return discs & -discs | 1 << (heuristic.HIGHEST_DISC[discs] - 1)


@inlined
def _value_round(s: np.void, turn: CandidateList, outcome: Any) -> None:
    """Play the round by the best plans, without dice, and write each team's log odds of winning."""
    weights, scratch, begun = turn.weights, turn.scratch, s["round"]
    while s["round"] == begun:
        if plans.in_turn(s):
            plans.play_plan(s, _best_plan(s, turn))
        elif s["phase"] == rules.CROWN_CHOICE:
            plans.play(s, best_crown(s, weights, scratch))
        elif s["phase"] == rules.ROLL:
            s["dice_due"] = 0
            turns.end_turn(s)
        else:
            break
    write_scores(s, weights, scratch.features, scratch.scores)
    for team in range(int64(s["teams"])):
        outcome[team] = advantage(scratch.scores, team, int64(s["teams"]))


@separate
def choose_by_plans(s: np.void, rest: Int, bits: Bits, planner: Any) -> tuple[Int, Int, Bits]:
    """Return the planner's decision, no plan, and the stream, drawn from only for errors."""
    turn, discs, errors = planner
    chosen, bits = error(s, bits, errors)
    if chosen >= 0:
        return chosen, 0, bits
    if s["phase"] == rules.DISC:
        return plans.search_discs(s, _answers, _value_round, turn, discs), 0, bits
    if s["phase"] == rules.CROWN_CHOICE:
        return best_crown(s, turn.weights, turn.scratch), 0, bits
    return plans.first_of(_best_plan(s, turn)), 0, bits


class PlannerBot(CompiledAgent):
    """Plans whole turns by an evaluation with fitted weights.

    ``weights`` of it are ``(5, F)`` float64, by number of players; None: the fitted ones.
    """

    name = "planner"
    entries = Entries.of(choose_by_plans)

    def __init__(
        self, options: PlannerOptions | None = None, *, weights: F64 | None = None
    ) -> None:
        self.options, self._weights = options or PlannerOptions(), weights_table(weights)

    def context(self, players: int) -> tuple[CandidateList, DiscScratch, float]:
        width = WIDTHS.index(self.options.plans)
        turn = CandidateList.of(width, self._weights[players], 1)
        return turn, allocate(DiscScratch), float(self.options.errors)

    def opinion(self, states: States, generators: U64) -> Opinion:
        """Return the choice, and the evaluation where the turn that it plans ends.

        For discs and crowns that is the evaluation of the present position.
        """
        planner = PlannerBot(replace(self.options, errors=0.0), weights=self._weights)
        choices = planner.act(states, generators)
        ends, turns_left = copy(states), np.isin(states["phase"], (rules.PLACE, rules.MOVE))
        while turns_left.any():
            rows = np.flatnonzero(turns_left)
            engine.step(ends, planner.act(ends[rows], generators[rows]), rows=rows, roll=False)
            turns_left &= np.isin(ends["phase"], (rules.PLACE, rules.MOVE))
        values = chances(ends, self._weights)[:, : rules.TEAMS[common_players(states, "opinions")]]
        chosen = with_errors(np.eye(rules.ACTIONS)[choices], states, self.options.errors)
        return Opinion(chosen, values)
