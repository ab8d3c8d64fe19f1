"""The loop that plays games in compiled code: a decision, the dice, and again.

Decisions and rolls are kernels that it is given: see `play_on`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.rules import OVER
from carolus_env.system.arrays import F32, I64, U64, Bits, Int
from carolus_env.system.compiler import inlined, kernel, separate


@inlined
def play_on(
    act: Callable[..., Any], roll: Callable[..., Any], s: np.void, carried: Any, context: Any
) -> tuple[Int, Any]:
    """Play a game on, until it is over or `act` stops it.

    Args:
        act: ``(s, count, carried, context) -> (goes_on, carried)`` carries out a decision, or a
            whole plan, the one number ``count`` from 0 on; or it does nothing and returns False.
        roll: ``(s, count, carried, context) -> carried`` does all that follows that decision: the
            dice that are due.
        s: a game that waits for a decision, or is over.
        carried: a value that changes from decision to decision, such as a random stream.
        context: the other values that ``act`` and ``roll`` need.

    Returns:
        How often `act` went on, and the last ``carried``.
    """
    count = 0
    while s["phase"] != OVER:
        goes_on, carried = act(s, count, carried, context)
        if not goes_on:
            break
        carried = roll(s, count, carried, context)
        count += 1
    return count, carried


@kernel
def roll_own(s: np.void, count: Int, carried: Any, context: Any) -> Any:
    """Roll by the game's own generator: a ``roll`` of `play_on`."""
    turns.roll_on(s)
    return carried


@kernel
def _act_at_random(s: np.void, count: Int, bits: Bits, most: Int) -> tuple[bool, Bits]:
    if count == most:
        return False, bits
    bits = generator.step(bits)
    turns.play(s, legal.random_action(legal.legal_set(s), generator.mix(bits)))
    return True, bits


@separate
def play_at_random(s: np.void, bits: Bits, most: Int) -> tuple[Int, Bits]:
    """Take random decisions by the stream ``bits``, ``most`` at most, to the end of the game.

    Returns:
        The number of decisions, and the stream.
    """
    return play_on(_act_at_random, roll_own, s, bits, most)


@kernel
def play_out_once(
    s: np.void, generators: U64, most_decisions: Int, payoffs: F32, decisions: I64, g: Int
) -> None:
    """Play a game to its end by stream ``g``; add payoffs and decisions to row ``g``."""
    bits = generator.step(generators[g])
    s["generator"] = generator.mix(bits)
    turns.roll_on(s)
    played, generators[g] = play_at_random(s, bits, most_decisions)
    turns.add_returns(s, payoffs, g)
    decisions[g] += played
