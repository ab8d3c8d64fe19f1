"""``planner``: plans a whole turn at once, and chooses a disc by playing the round to its end.

It lists the plans for its paladins and the Emperor (`plans`), and plays the one that leaves the
best position (`heuristic`). To choose a disc it plays the round to its end, all players
acting by their best plans and no dice rolled, and values that position. A crown becomes the clan
that leaves the best position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import BotOptions, Opinion
from carolus_env.bots.compiled import CompiledAgent, Entries, error, errors_option, with_errors
from carolus_env.engine import rules
from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.state import States, common_players, copy
from carolus_env.planning import plans
from carolus_env.planning.heuristic import advantage, chances, weights_table, write_scores
from carolus_env.planning.plans import WIDTHS, DiscScratch, PlanScratch, search_discs
from carolus_env.system.arrays import F64, I64, Bits, Int, allocate, int64
from carolus_env.system.compiler import inlined, separate
from carolus_env.system.options import option


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


class RoundScratch(NamedTuple):
    """Scratch to play a round, reused for each position."""

    plan: PlanScratch
    plans: Annotated[I64, 1]  # the best plan of a turn
    values: Annotated[F64, 1]  # its value
    discs: DiscScratch


class Planner(NamedTuple):
    """Context of the planner's kernels: parameters and scratch."""

    width: int  # allowed destinations of paladins: an index into `plans.WIDTHS`
    errors: float  # probability of a random move
    weights: F64  # (5, F) of the evaluation, by number of players
    scratch: RoundScratch


@inlined
def best_plan(s: np.void, width: Int, weights: F64, scratch: RoundScratch) -> Any:
    """Return the plan of the player to move that leaves the best position."""
    plans.list_plans(s, width, weights, scratch.plan, scratch.plans, scratch.values)
    return scratch.plans[0]


@separate
def best_crown(s: np.void, weights: F64, scratch: PlanScratch) -> Int:
    """Return the clan to make of the crown, as an action."""
    team, chosen, best = int64(s["team"][s["player"]]), -1, plans.NONE_YET
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
def _play_round(s: np.void, width: Int, weights: F64, scratch: RoundScratch) -> None:
    """Play the best plan of every player still to act this round; no dice are rolled."""
    begun = s["round"]
    while s["round"] == begun:
        if s["phase"] == rules.PLACE or s["phase"] == rules.MOVE:
            plans.play_plan(s, best_plan(s, width, weights, scratch))
        elif s["phase"] == rules.CROWN_CHOICE:
            plans.play(s, best_crown(s, weights, scratch.plan))
        elif s["phase"] == rules.ROLL:
            s["dice_due"] = 0
            turns.end_turn(s)
        else:
            break


@inlined
def _answers(s: np.void) -> Any:
    """Return the bits of discs to try for a later player; only two with more than two players.

    More answers would cost much time and change little.
    """
    discs = legal.playable_discs(s)
    if s["players"] == 2:
        return discs
    lowest = discs & -discs
    highest = lowest
    for d in range(rules.DISCS):
        if discs >> d & 1:
            highest = 1 << d
    return lowest | highest


@inlined
def _value_round(s: np.void, planner: Planner, outcome: Any) -> None:
    """Play the round in ``s`` to its end, and write each team's log odds of winning."""
    weights, scratch = planner.weights[int64(s["players"])], planner.scratch
    _play_round(s, planner.width, weights, scratch)
    write_scores(s, weights, scratch.plan.features, scratch.plan.scores)
    for team in range(int64(s["teams"])):
        outcome[team] = advantage(scratch.plan.scores, team, int64(s["teams"]))


@separate
def choose(s: np.void, rest: Int, bits: Bits, planner: Planner) -> tuple[Int, Int, Bits]:
    """Return the planner's decision, no plan, and the stream, drawn from only for errors."""
    chosen, bits = error(s, bits, planner.errors)
    if chosen >= 0:
        return chosen, 0, bits
    weights, scratch = planner.weights[int64(s["players"])], planner.scratch
    if s["phase"] == rules.DISC:
        return search_discs(s, _answers, _value_round, planner, scratch.discs), 0, bits
    if s["phase"] == rules.CROWN_CHOICE:
        return best_crown(s, weights, scratch.plan), 0, bits
    return plans.first_of(best_plan(s, planner.width, weights, scratch)), 0, bits


class PlannerBot(CompiledAgent):
    """Plans whole turns by an evaluation with fitted weights.

    Args:
        options: None: the defaults.
        weights: ``(5, F)`` float64 of the evaluation, by number of players; None: the fitted ones.
    """

    name = "planner"
    entries = Entries.of(choose)

    def __init__(
        self,
        options: PlannerOptions | None = None,
        *,
        weights: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.options = options or PlannerOptions()
        self._width = WIDTHS.index(self.options.plans)
        self._weights = weights_table(weights)

    def context(self, players: int) -> Planner:
        errors = float(self.options.errors)
        return Planner(self._width, errors, self._weights, allocate(RoundScratch))

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
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
