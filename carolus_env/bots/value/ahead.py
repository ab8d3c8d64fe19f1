"""Lookahead of the value network: through the answers to a disc, and through the dice.

- *Discs.* Every answer of the players after a disc is tried (`planning.discs`), the first player to
  act plays its best turn, and that position is valued. No dice lie in between, so this is exact as
  far as the values are.
- *The next turn.* Each of a turn's best choices is followed through the dice, sampled or all of
  them, to the position after the best choice of the next player. The choices of a turn meet the
  same dice.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots.value.choice import CandidateSelector, best_choice, value_choices
from carolus_env.engine.chance import chance_outcomes
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.rules import (
    CROWN_CHOICE,
    DICE,
    MAX_PLAYERS,
    MAX_TEAMS,
    OVER,
    ROLL,
    TEAMS,
)
from carolus_env.engine.state import STATE, States, as_states, common_players
from carolus_env.networks.forward import Network, Weights, reset_accumulator, write_value
from carolus_env.planning.choices import EVERY, list_choices
from carolus_env.planning.discs import DiscScratch, search_discs
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import ONE, STOP, play_plan
from carolus_env.system.arrays import F64, Bits, Int, Records, int64, uint64
from carolus_env.system.compiler import entry, kernel, part, rare
from carolus_env.system.options import option

LOOKS: Final = ("now", "turn")
"""Ways to value a disc: by the position after it, or by looking one turn ahead."""

COMPARED: Final = {2: 16, 3: 8}
"""Maximum number of turns compared in positions ahead, by number of teams."""
LATE: Final = 10
"""Number of regions at which the late game begins, where the network is least sure of itself."""
LOST: Final = 0.01
"""Win probability under which a position seems lost."""
RESCUES: Final = 64
"""Maximum number of plans that are followed there."""
LATE_TURNS, LATE_ROLLS = 3, 2
"""Late-game multipliers for candidates and rolls."""


def discs_option() -> str:
    """Return the field ``discs`` of a bot's options."""
    return option(
        "turn",
        "value of a disc: now, or after all answers and the turn of the first player to act",
        among=LOOKS,
    )


class Ahead(NamedTuple):
    """Parameters and scratch of looking ahead."""

    selector: CandidateSelector
    """The selector of choices in positions ahead; its scratch is not the asking player's."""
    rescue: CandidateSelector
    """The selector of choices in a position that seems lost: all of a turn's plans."""
    discs: DiscScratch
    """Scratch to look ahead at discs, and the win probabilities after each."""
    best: int
    """Number of a turn's choices followed through the dice, until the game is late; or 0."""
    rolls: int
    """Number of rolls sampled, before the game is late; 0: every roll, by its probability."""
    faces: npt.NDArray[np.uint8]
    """``(K, dice)`` uint8: the outcomes of a turn's dice."""
    probabilities: npt.NDArray[np.float64]
    """``(K,)`` float64: their probabilities."""
    after: States
    """``(2,)`` STATE: the position before the dice, and after them."""
    means: npt.NDArray[np.float64]
    """``(3,)`` float64: each team's mean win probability over the rolls."""
    values: npt.NDArray[np.float64]
    """``(3,)`` float64: the same for one roll."""

    @classmethod
    def of(
        cls, players: int, weights: Weights, candidates: int, best: int = 0, rolls: int = 0
    ) -> Ahead:
        """Allocate scratch to look ahead; the weights are shared.

        Args:
            players: number of players.
            weights: the network's weights.
            candidates: number of turns to compare in positions ahead, see `CandidateSelector.of`;
                paladins go to the court or to the region where the Emperor stops.
            best, rolls: the attributes' values; by default turns are not followed through the dice.
        """
        outcomes = chance_outcomes(DICE[players])
        return cls(
            _selector(players, weights, STOP, candidates),
            _selector(players, weights, ONE, EVERY),
            DiscScratch.new(),
            best,
            rolls,
            outcomes.faces.copy(),
            outcomes.probabilities.copy(),
            np.zeros(2, STATE),
            np.zeros(MAX_TEAMS),
            np.zeros(MAX_TEAMS),
        )


def _selector(players: int, weights: Weights, width: int, candidates: int) -> CandidateSelector:
    """Return a selector with a network's scratch of its own."""
    listing = all_weights()[players].copy()
    return CandidateSelector.of(Network.of(players, weights), width, listing, candidates)


# ------------------------------------------------------------------------------------ discs


@rare
def value_next(s: np.void, selector: CandidateSelector, values: F64) -> None:
    """Play the best next choice, and write each team's win probability after it.

    The player's crowns, if there are any, come first.
    """
    while s["phase"] == CROWN_CHOICE:
        play_plan(s, best_choice(s, selector))
    if s["phase"] != OVER and s["phase"] != ROLL:
        play_plan(s, best_choice(s, selector))
    reset_accumulator(selector.net)
    write_value(s, selector.net, values)


@rare
def value_discs(s: np.void, ahead: Ahead) -> Int:
    """Look ahead at the discs that can be played in ``s``, and write ``ahead.discs.values``.

    Args:
        s: a position of phase disc.
        ahead: an `Ahead`.

    Returns:
        The best disc, as an action.
    """
    return search_discs(s, legal.playable_discs, value_next, ahead.selector, ahead.discs)


# ------------------------------------------------------------------------------------ the next turn


@kernel
def _add_roll(s: np.void, ahead: Ahead, weight: float) -> None:
    """Add the values of ``s``, the position after a roll, to the means."""
    value_next(s, ahead.selector, ahead.values)
    for team in range(ahead.means.shape[0]):
        ahead.means[team] += weight * ahead.values[team]


@part
def _value_through_dice(s: np.void, ahead: Ahead, rolls: Int, bits: Bits) -> None:
    """Write each team's mean win probability over the dice that are due: ``ahead.means``."""
    ahead.means[:] = 0.0
    for k in range(rolls if rolls > 0 else ahead.faces.shape[0]):
        ahead.after[1] = s
        rolled = ahead.after[1]
        if rolls > 0:
            bits = generator.step(bits)
            rolled["generator"] = generator.mix(bits)
            turns.roll_dice(rolled)
            rolled["generator"] = 0
        else:
            turns.take_roll(rolled, ahead.faces, k)
        _add_roll(rolled, ahead, 1.0 / rolls if rolls > 0 else ahead.probabilities[k])


@rare
def follow(s: np.void, plan: Int, ahead: Ahead, rolls: Int, bits: Bits) -> bool:
    """Follow a plan through the dice, if any are due after it.

    Args:
        s: a position of an action turn; it is not changed.
        plan: one of its plans.
        ahead: an `Ahead`, whose ``means`` are written: each team's mean win probability.
        rolls: the number of rolls to sample; 0: every roll, by its probability.
        bits: the stream of sampled rolls.

    Returns:
        Whether dice are due.
    """
    ahead.after[0] = s
    play_plan(ahead.after[0], plan)
    if ahead.after[0]["phase"] != ROLL:
        return False
    _value_through_dice(ahead.after[0], ahead, rolls, bits)
    return True


@rare
def best_turn(s: np.void, selector: CandidateSelector, ahead: Ahead) -> Int:
    """Return the best choice, a plan, of those that are best now, by what follows the dice.

    Sampled dice depend on the round and the seat only: after each placement of a turn the same ones
    are sampled, so the player does not change its mind. With three teams, where all choices that
    are followed lose at once, more of the turn's plans are: one may stop the next player.

    Args:
        s: a position of an action turn.
        selector: a `CandidateSelector`.
        ahead: an `Ahead`.
    """
    bits = generator.mix(uint64(s["round"]) * uint64(MAX_PLAYERS) + uint64(s["player"]))
    most, rolls = ahead.best, ahead.rolls
    if s["regions"] <= LATE:
        most, rolls = most * LATE_TURNS, rolls * LATE_ROLLS
    chosen, best = _best_followed(s, selector, ahead, most, rolls, bits)
    if best < LOST and s["teams"] > 2:
        rescue, value = _best_followed(s, ahead.rescue, ahead, RESCUES, 1, bits)
        chosen = rescue if value > best else chosen
    return chosen


@rare
def _best_followed(
    s: np.void, selector: CandidateSelector, ahead: Ahead, most: Int, rolls: Int, bits: Bits
) -> Any:
    """Return the best choice, a plan, and its value, of those that are followed through the dice.

    Args:
        s: a position of an action turn.
        selector: lists the choices, and values them now.
        ahead: an `Ahead`.
        most: number of choices followed, those that are best now.
        rolls, bits: see `follow`.
    """
    team = int64(s["team"][s["player"]])
    count = list_choices(s, selector.proposals)
    value_choices(s, selector, count)
    chosen, best = selector.proposals.choices[0], -1.0
    for _ in range(min(most, count)):
        k = 0
        for other in range(count):
            k = other if selector.values[other] > selector.values[k] else k
        now = selector.values[k]
        selector.values[k] = -2.0  # taken
        if follow(s, selector.proposals.choices[k], ahead, rolls, bits):
            now = ahead.means[team]
        if now > best:
            chosen, best = selector.proposals.choices[k], now
    return chosen, best


# ------------------------------------------------------------------------------------ for Python


def values_ahead(states: States, weights: Weights, candidates: int = 32) -> npt.NDArray[np.float64]:
    """Return each team's win probability after the best next choice: ``(N, teams)`` float64.

    The network has learnt positions in which dice are due. After a roll this is the better value,
    as it includes the best reply to it.

    Args:
        states: ``(N,)`` games of one number of players, at any point.
        weights: the weights of a network for that number of players.
        candidates: number of turns to compare, the planner's best ones.
    """
    players = common_players(as_states(states), "values")
    result = np.zeros((len(states), MAX_TEAMS))
    selector = _selector(players, weights, STOP, candidates)
    _values_ahead(states, selector, np.zeros(1, STATE), result)
    return result[:, : TEAMS[players]]


@entry
def _values_ahead(states: Records, selector: CandidateSelector, spare: Any, out: Any) -> None:
    for g in range(states.shape[0]):
        spare[0] = states[g]
        value_next(spare[0], selector, out[g])
