"""``planner``: plans its whole turn at once, and chooses its disc by playing the round through.

At the start of a turn it lists what its paladins and the Emperor can do (`plans`), values the
position after each plan (`evaluation`), and starts on the best one. For a disc it tries each
together with what the players after it may answer, lets everybody act by their best plan in the
order that follows, without dice, and values the end of the round; each chooses what is best for
the own team (max^n: Luckhardt and Irani, AAAI 1986). A crown becomes the clan that leaves the
best position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env import engine
from carolus_env.bots.agent import Opinion
from carolus_env.bots.compiled import CompiledAgent, on_turn
from carolus_env.bots.options import check, option
from carolus_env.bots.planner.evaluation import advantage, all_weights, chances, write_scores
from carolus_env.bots.planner.plans import NONE_YET, WIDTHS, Desk, first_of, list_plans, rest_of
from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.rules import (
    ACTIONS,
    CLANS,
    CROWN_CHOICE,
    DISC,
    DISCS,
    FIRST_CROWN,
    FIRST_DISC,
    MAX_PLAYERS,
    MAX_TEAMS,
    MOVE,
    PLACE,
    ROLL,
    TEAMS,
)
from carolus_env.engine.state import STATE, States, as_states, common_players
from carolus_env.engine.streams import check_streams
from carolus_env.system.compiler import entry, part, rare


@dataclass(frozen=True)
class PlannerOptions:
    """How `PlannerBot` plans; see docs/bots.md.

    Raises:
        ValueError: for a value that is not allowed, naming the option and what is.
    """

    plans: str = option(
        "stop",
        "where paladins may go besides the own court: to the region where the Emperor stops, to "
        "any one region, or anywhere",
        among=WIDTHS,
    )

    def __post_init__(self) -> None:
        check("planner", self)


class PlannerBot(CompiledAgent):
    """Plans whole turns by an evaluation with fitted weights.

    Args:
        options: see `PlannerOptions`.
        weights: ``(5, F)`` of the evaluation, by number of players; None: the fitted ones.
    """

    name = "planner"

    def __init__(
        self,
        options: PlannerOptions | None = None,
        *,
        weights: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.options = options or PlannerOptions()
        self._width = WIDTHS.index(self.options.plans)
        self._weights = all_weights().copy() if weights is None else weights

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        as_states(states)
        check_streams(generators, states)
        actions = np.empty(len(states), np.int64)
        _planned_actions(states, actions, self._width, self._weights, RoundDesk().room())
        return actions

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Its choice, and the evaluation of the end of the turn that it plans; of discs and crowns,
        of the position as it is."""
        choices = self.act(states, generators)
        ends, turns_left = states.copy(), np.isin(states["phase"], (PLACE, MOVE))
        while turns_left.any():
            rows = np.flatnonzero(turns_left)
            engine.step(ends, self.act(ends[rows], generators[rows]), rows=rows, roll=False)
            turns_left &= np.isin(ends["phase"], (PLACE, MOVE))
        values = chances(ends, self._weights)[:, : TEAMS[common_players(states, "opinions")]]
        return Opinion(np.eye(ACTIONS)[choices], values)

    def play_on(
        self,
        states: States,
        generators: npt.NDArray[np.uint64],
        tables: npt.NDArray[np.int64],
        place: int,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> int:
        chosen = np.arange(len(states)) if rows is None else rows
        return _play_on(
            states, chosen, tables, place, self._width, self._weights, RoundDesk().room()
        )


class RoundDesk(Desk):
    """Room to plan a round on."""

    def __init__(self) -> None:
        super().__init__()
        self.plans, self.values = np.zeros(1, np.int64), np.zeros(1)
        self.tables = np.zeros(MAX_PLAYERS + 2, STATE)
        self.untried = np.zeros(MAX_PLAYERS + 1, np.int64)
        self.outcomes = np.zeros((MAX_PLAYERS + 1, MAX_TEAMS))

    def room(self) -> tuple[Any, ...]:
        return super().room(), self.plans, self.values, self.tables, self.untried, self.outcomes


# ------------------------------------------------------------------------------------ turns


@part
def best_plan(s, width, weights, round_desk):
    """The plan of the player to act that leaves the best position."""
    desk, plans, values = round_desk[0], round_desk[1], round_desk[2]
    list_plans(s, width, weights, desk, plans, values)
    return plans[0]


@rare
def best_crown(s, weights, desk):
    """The clan that the crown to be decided had best become, as an action."""
    boards, _, features, scores = desk
    team, chosen, best = int64(s["team"][s["player"]]), -1, NONE_YET
    clans = legal.clans_to_take(s)
    for clan in range(CLANS):
        if clans >> clan & 1 == 0:
            continue
        boards[0] = s
        play(boards[0], FIRST_CROWN + clan)
        write_scores(boards[0], weights, features, scores)
        value = advantage(scores, team, int64(s["teams"]))
        if value > best:
            chosen, best = FIRST_CROWN + clan, value
    return chosen


# ------------------------------------------------------------------------------------ rounds


@rare
def play(s, action):
    """`turns.play`, as a function of its own."""
    turns.play(s, action)


@part
def pass_roll(s):
    """Go on without the dice that are due."""
    s["dice_due"] = 0
    turns.end_turn(s)


@part
def play_round(s, width, weights, round_desk):
    """Everybody still to act this round does by their best plan; no dice are rolled."""
    begun = s["round"]
    while s["round"] == begun:
        if s["phase"] == PLACE or s["phase"] == MOVE:
            plan = best_plan(s, width, weights, round_desk)
            while plan != 0:
                play(s, first_of(plan))
                plan = rest_of(plan)
        elif s["phase"] == CROWN_CHOICE:
            play(s, best_crown(s, weights, round_desk[0]))
        elif s["phase"] == ROLL:
            pass_roll(s)
        else:
            break


@part
def _answers(s):
    """Discs that a later chooser is expected to think of: of more than two players, the extremes.

    More of them would cost much for little.
    """
    discs = legal.playable_discs(s)
    if s["players"] == 2:
        return discs
    lowest = discs & -discs
    highest = lowest
    for d in range(DISCS):
        if discs >> d & 1:
            highest = 1 << d
    return lowest | highest


@part
def best_disc(s, width, weights, round_desk):
    """The disc to play, as an action."""
    desk, _, _, tables, untried, outcomes = round_desk
    _, _, features, scores = desk
    teams, first = int64(s["teams"]), int64(s["turn"])
    depth, chosen, trying = 0, -1, -1
    choosers = int64(s["players"]) - first
    tables[0] = s
    untried[0] = legal.playable_discs(s)
    outcomes[0, :] = NONE_YET
    while depth >= 0:
        if depth < choosers and untried[depth] != 0:
            disc = 1
            while untried[depth] >> (disc - 1) & 1 == 0:
                disc += 1
            untried[depth] ^= 1 << (disc - 1)
            trying = FIRST_DISC + disc - 1 if depth == 0 else trying
            tables[depth + 1] = tables[depth]
            play(tables[depth + 1], FIRST_DISC + disc - 1)
            depth += 1
            if depth < choosers:
                untried[depth] = _answers(tables[depth])
            outcomes[depth, :] = NONE_YET
            continue
        if depth == choosers:
            play_round(tables[depth], width, weights, round_desk)
            write_scores(tables[depth], weights, features, scores)
            for team in range(teams):
                outcomes[depth, team] = advantage(scores, team, teams)
        if depth > 0:  # what comes of the disc just tried: does its player like it best?
            seat = int64(s["order"][first + depth - 1])
            team = int64(s["team"][seat])
            if outcomes[depth, team] > outcomes[depth - 1, team]:
                for other in range(teams):
                    outcomes[depth - 1, other] = outcomes[depth, other]
                if depth == 1:
                    chosen = trying
        depth -= 1
    return chosen


@part
def planned_action(s, width, weights, round_desk):
    """The planner's decision."""
    if s["phase"] == DISC:
        return best_disc(s, width, weights[int64(s["players"])], round_desk)
    if s["phase"] == CROWN_CHOICE:
        return best_crown(s, weights[int64(s["players"])], round_desk[0])
    return first_of(best_plan(s, width, weights[int64(s["players"])], round_desk))


@entry
def _planned_actions(states, actions, width, weights, round_desk):
    for g in range(states.shape[0]):
        actions[g] = planned_action(states[g], width, weights, round_desk)


@entry
def _play_on(states, rows, tables, place, width, weights, round_desk):
    decisions = 0
    for i in range(rows.shape[0]):
        g = rows[i]
        s = states[g]
        while on_turn(s, tables, g, place):
            play(s, planned_action(s, width, weights, round_desk))
            turns.roll_on(s)
            decisions += 1
    return decisions
