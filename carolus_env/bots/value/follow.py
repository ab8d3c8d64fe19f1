"""Choices compared by what follows: each of the best ones is played on with sampled dice.

All choices meet the same dice, and every player plays its best choice. The position after some
turns, before the next dice, is valued. After each comparison the better half of the choices goes
on, with twice as many continuations (sequential halving: Karnin, Koren and Somekh, ICML 2013).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots.value.ahead import Ahead, new_selector, value_next
from carolus_env.bots.value.choice import CandidateSelector, best_choice, value_choices
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MAX_PLAYERS, MAX_TEAMS, OVER, ROLL
from carolus_env.engine.state import STATE, States
from carolus_env.networks.forward import Weights, reset_accumulator, write_value
from carolus_env.planning.choices import EVERY, in_turn, list_choices
from carolus_env.planning.discs import DiscScratch, search_discs
from carolus_env.planning.plans import ONE, play, play_plan
from carolus_env.system.arrays import Bits, Int, int64, uint64
from carolus_env.system.compiler import inlined, kernel, separate

MOST: Final = 64
"""Maximum number of choices that are followed; in a position that seems lost all of these are."""
LOST: Final = 0.01
"""Win probability under which a position seems lost."""
_KEPT: Final = 8  # the most choices that are compared a second time


class Follower(NamedTuple):
    """Parameters and scratch of following choices."""

    most: int
    """Number of choices followed, those that are best now; 0: none."""
    samples: int
    """Number of continuations of each in the first comparison."""
    turns: int
    """Number of turns in a continuation."""
    selector: CandidateSelector
    """The selector of choices in positions ahead; shared with an `Ahead`."""
    rescue: CandidateSelector
    """The selector of choices in a position that seems lost: all of a turn's plans."""
    answers: DiscScratch
    """Scratch to answer a disc."""
    plans: npt.NDArray[np.int64]
    """``(MOST,)`` int64: the choices that are followed."""
    order: npt.NDArray[np.int64]
    """``(MOST,)`` int64: their indices; those that are still compared come first, best first."""
    sums: npt.NDArray[np.float64]
    """``(MOST,)`` float64: the sum of the values of each, to the team to move."""
    starts: States
    """``(MOST,)`` STATE: the position after each."""
    after: States
    """``(1,)`` STATE: a position ahead."""
    values: npt.NDArray[np.float64]
    """``(3,)`` float64: each team's value there."""

    @classmethod
    def of(
        cls, players: int, weights: Weights, ahead: Ahead, most: int, samples: int, turns: int
    ) -> Follower:
        """Allocate scratch; the arguments are the attributes, and those of `Ahead.of`."""
        return cls(
            most,
            samples,
            turns,
            ahead.selector,
            new_selector(players, weights, ONE, EVERY),
            DiscScratch.new(),
            np.zeros(MOST, np.int64),
            np.zeros(MOST, np.int64),
            np.zeros(MOST),
            np.zeros(MOST, STATE),
            np.zeros(1, STATE),
            np.zeros(MAX_TEAMS),
        )


@inlined
def _complete(s: np.void, player: Int, follower: Follower) -> None:
    """Answer the disc, or choose the further crowns, that ``player`` has just chosen in ``s``."""
    while s["phase"] == DISC and s["turn"] > 0:
        context, scratch = follower.selector, follower.answers
        play(s, search_discs(s, legal.playable_discs, value_next, context, scratch))
    while s["phase"] == CROWN_CHOICE and s["player"] == player:
        play_plan(s, best_choice(s, follower.selector))


@inlined
def _value_of_sample(start: np.void, team: Int, follower: Follower, bits: Bits) -> Any:
    """Play turns on from ``start``, and return the value to a team before the next dice."""
    follower.after[0] = start
    s, played = follower.after[0], 0
    while s["phase"] != OVER and played < follower.turns:
        if s["phase"] == ROLL:
            bits = generator.step(bits)
            s["generator"] = generator.mix(bits)
            turns.roll_dice(s)
            s["generator"] = 0
        else:
            played += int64(in_turn(s))
            play_plan(s, best_choice(s, follower.selector))
    reset_accumulator(follower.selector.net)
    write_value(s, follower.selector.net, follower.values)
    return follower.values[team]


@kernel
def _order_best(follower: Follower, count: Int, most: Int) -> None:
    """Bring the best ``most`` of the first ``count`` choices in ``order`` to its front."""
    order, sums = follower.order, follower.sums
    for place in range(most):
        best = place
        for other in range(place + 1, count):
            best = other if sums[order[other]] > sums[order[best]] else best
        taken = order[best]
        order[best] = order[place]
        order[place] = taken


@kernel
def _take_best(follower: Follower, selector: CandidateSelector, count: Int, most: Int) -> Int:
    """Take the best listed choices, by their values now; returns how many."""
    most = min(most, count)
    for place in range(most):
        k = 0
        for other in range(count):
            k = other if selector.values[other] > selector.values[k] else k
        follower.plans[place] = selector.proposals.choices[k]
        selector.values[k] = -1.0  # taken
    return most


@separate
def _best_followed(s: np.void, follower: Follower, count: Int, bits: Bits) -> Any:
    """Compare the first ``count`` of the follower's ``plans``, choices in ``s``.

    Returns:
        The best one, and its mean value.
    """
    team, starts, order = int64(s["team"][s["player"]]), follower.starts, follower.order
    for k in range(count):
        starts[k] = s
        play_plan(starts[k], follower.plans[k])
        _complete(starts[k], s["player"], follower)
        order[k], follower.sums[k] = k, 0.0
    done, samples = 0, follower.samples
    while done == 0 or count > 1:
        for place in range(count):
            k = order[place]
            for sample in range(done, done + samples):
                stream = generator.mix(bits + uint64(sample))
                follower.sums[k] += _value_of_sample(starts[k], team, follower, stream)
        done, samples = done + samples, 2 * samples
        kept = min((count + 1) // 2, _KEPT)
        _order_best(follower, count, kept)
        count = kept
    return follower.plans[order[0]], follower.sums[order[0]] / done


@separate
def best_by_following(
    s: np.void, selector: CandidateSelector, count: Int, follower: Follower
) -> Int:
    """Return the best of the choices that are best now, a plan, by what follows.

    Sampled dice depend on the round, the seat and the phase only. With three teams, where all
    choices of a turn that are followed lose, more of its plans are: one may stop the next player.

    Args:
        s: a position.
        selector: a `CandidateSelector`, in which the choices are listed and valued; the values
            are overwritten.
        count: the number of choices.
        follower: a `Follower`.
    """
    place = uint64(s["round"]) * uint64(MAX_PLAYERS) + uint64(s["player"])
    bits = generator.mix(place * uint64(OVER + 1) + uint64(s["phase"]))
    taken = _take_best(follower, selector, count, follower.most)
    chosen, best = _best_followed(s, follower, taken, bits)
    if best < LOST and s["teams"] > 2 and in_turn(s):
        count = list_choices(s, follower.rescue.proposals)
        value_choices(s, follower.rescue, count)
        taken = _take_best(follower, follower.rescue, count, MOST)
        rescue, value = _best_followed(s, follower, taken, bits)
        chosen = rescue if value > best else chosen
    return chosen
