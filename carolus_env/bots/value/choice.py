"""How the value network chooses: whole turns, discs and crowns, by the position after them.

For a turn the planner lists the best plans by its evaluation, the network values the position after
each of them, before the dice, and the best is played. A crown is chosen by the position after it.
So is a disc; or, looking ahead, every answer of the players after it is tried, the first player to
act plays its best turn, and that position is valued. No dice lie in between, so this is exact as
far as the values are. Each player chooses what is best for its team (max^n: Luckhardt and Irani,
AAAI 1986).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env.bots.planner.bot import play
from carolus_env.bots.planner.plans import PlanScratch, first_of, list_plans, rest_of
from carolus_env.bots.value.inference import ValueNet, team_value, write_value
from carolus_env.engine.kernels import legal
from carolus_env.engine.rules import (
    CROWN_CHOICE,
    DISC,
    DISCS,
    FIRST_CROWN,
    FIRST_DISC,
    MAX_PLAYERS,
    MAX_TEAMS,
    MOVE,
    OVER,
    PLACE,
)
from carolus_env.engine.state import STATE, States
from carolus_env.system.compiler import kernel, part, rare


class Discs(NamedTuple):
    """Scratch to look ahead at discs, by the number of discs chosen."""

    states: States
    """``(5,)`` STATE: the position."""
    untried: npt.NDArray[np.int64]
    """``(5,)`` int64: the discs still to try there, as bits."""
    values: npt.NDArray[np.float64]
    """``(5, 3)`` float64: each team's share of the win by the best disc tried there so far."""


class Chooser(NamedTuple):
    """What the kernels of this module need: a network, how candidates are listed, and scratch."""

    net: ValueNet
    """The network."""
    width: int
    """Where paladins may go: an index into `plans.WIDTHS`."""
    weights: npt.NDArray[np.float64]
    """``(F,)`` float64: of the evaluation that lists the candidates."""
    candidates: int
    """How many of a turn's plans are kept."""
    plan: PlanScratch
    """Scratch to list plans."""
    choices: npt.NDArray[np.int64]
    """``(K,)`` int64: the choices, as plans; K is 5 or the number of candidates if that is more."""
    scores: npt.NDArray[np.float64]
    """``(K,)`` float64: what the evaluation says of them."""
    values: npt.NDArray[np.float64]
    """``(K,)`` float64: the share of the win after each choice, of the team to move."""
    after: States
    """``(1,)`` STATE: the position after a choice."""
    discs: Discs
    """Scratch to look ahead at discs."""

    @classmethod
    def of(
        cls, net: ValueNet, width: int, weights: npt.NDArray[np.float64], candidates: int
    ) -> Chooser:
        """A chooser with scratch of its own."""
        most = max(candidates, DISCS)
        return cls(
            net,
            width,
            weights,
            candidates,
            PlanScratch.new(),
            np.zeros(most, np.int64),
            np.zeros(most),
            np.zeros(most),
            np.zeros(1, STATE),
            Discs(
                np.zeros(MAX_PLAYERS + 1, STATE),
                np.zeros(MAX_PLAYERS + 1, np.int64),
                np.zeros((MAX_PLAYERS + 1, MAX_TEAMS)),
            ),
        )


@kernel
def in_turn(s):
    """Whether the player to move is in its action turn."""
    return s["phase"] == PLACE or s["phase"] == MOVE


@kernel
def play_choice(s, choice):
    """Play the actions of a choice."""
    while choice != 0:
        play(s, first_of(choice))
        choice = rest_of(choice)


@rare
def list_choices(s, chooser):
    """Write the choices in ``s``: a turn's candidates, or the legal actions; returns how many."""
    if in_turn(s):
        choices, scores = chooser.choices[: chooser.candidates], chooser.scores
        return list_plans(s, chooser.width, chooser.weights, chooser.plan, choices, scores)
    is_disc = s["phase"] == DISC
    bits = legal.playable_discs(s) if is_disc else legal.clans_to_take(s)
    first, count = FIRST_DISC if is_disc else FIRST_CROWN, 0
    for k in range(FIRST_CROWN - FIRST_DISC):
        if bits >> k & 1:
            chooser.choices[count] = first + k + 1  # a plan of one action
            count += 1
    return count


@rare
def value_choices(s, chooser, count):
    """Write the value after each of the first choices; returns the best one's index."""
    team, best = int64(s["team"][s["player"]]), 0
    for k in range(count):
        chooser.after[0] = s
        play_choice(chooser.after[0], chooser.choices[k])
        chooser.values[k] = team_value(chooser.after[0], team, chooser.net)
        if chooser.values[k] > chooser.values[best]:
            best = k
    return best


@rare
def best_choice(s, chooser):
    """The best choice by the position after it, a plan."""
    return chooser.choices[value_choices(s, chooser, list_choices(s, chooser))]


# ------------------------------------------------------------------------------------ looking ahead


@part
def _value_first_turn(s, chooser, values):
    """Play the turn of the first player to act, and write each team's share of the win then.

    Its crowns, if they were deferred, come first.
    """
    while s["phase"] == CROWN_CHOICE:
        play_choice(s, best_choice(s, chooser))
    if s["phase"] != OVER:
        play_choice(s, best_choice(s, chooser))
    write_value(s, chooser.net, values)


@rare
def value_discs(s, chooser, values):
    """Look ahead at the discs that can be played in ``s``.

    Args:
        s: a position of phase disc.
        chooser: a `Chooser`.
        values: ``(5, 3)`` float64, written: each team's share of the win after each disc; rows of
            discs that cannot be played are left alone.

    Returns:
        The best disc, as an action.
    """
    states, untried, found = chooser.discs.states, chooser.discs.untried, chooser.discs.values
    teams, first = int64(s["teams"]), int64(s["turn"])
    choosers = int64(s["players"]) - first
    depth, chosen, trying = 0, -1, -1
    states[0] = s
    untried[0] = legal.playable_discs(s)
    found[0, :] = -1.0
    while depth >= 0:
        if depth < choosers and untried[depth] != 0:
            disc = 1
            while untried[depth] >> (disc - 1) & 1 == 0:
                disc += 1
            untried[depth] ^= 1 << (disc - 1)
            trying = disc - 1 if depth == 0 else trying
            states[depth + 1] = states[depth]
            play(states[depth + 1], FIRST_DISC + disc - 1)
            depth += 1
            if depth < choosers:
                untried[depth] = legal.playable_discs(states[depth])
            found[depth, :] = -1.0
            continue
        if depth == choosers:
            _value_first_turn(states[depth], chooser, found[depth])
        if depth == 1:
            for team in range(teams):
                values[trying, team] = found[1, team]
        if depth > 0:
            team = int64(s["team"][s["order"][first + depth - 1]])
            if found[depth, team] > found[depth - 1, team]:
                for other in range(teams):
                    found[depth - 1, other] = found[depth, other]
                if depth == 1:
                    chosen = FIRST_DISC + trying
        depth -= 1
    return chosen
