"""Playouts: random play to the end of the game, and its payoffs.

The building block of a search, and the quickest way to many whole games.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.loop import play_out_once
from carolus_env.engine.state import STATE, States, as_states, common_players
from carolus_env.engine.streams import check_streams
from carolus_env.system.arrays import F32, I64, U64, Int, Records
from carolus_env.system.compiler import entry
from carolus_env.system.options import whole_number
from carolus_env.system.threads import check_threads, runs, together


class Playouts(NamedTuple):
    """The results of playouts.

    Attributes:
        returns: ``(N, players)`` float32, mean payoff of each seat over the repeats.
        decisions: ``(N,)`` int64, decisions played in all repeats.
    """

    returns: npt.NDArray[np.float32]
    decisions: npt.NDArray[np.int64]


def playout(
    states: States,
    generators: npt.NDArray[np.uint64],
    *,
    repeats: int = 1,
    most_decisions: int = 100_000,
    threads: int = 1,
) -> Playouts:
    """Play each game to its end at random.

    Args:
        states: ``(N,)`` games at any point, all with the same number of players; unchanged. For
            the ``states`` of a `GameBatch` on a GPU the results are there, too.
        generators: ``(N,)`` uint64, one stream a game (see `new_streams`), advanced in place. Dice
            and choices come from it, so each repeat and each call plays differently.
        repeats: playouts of each game.
        most_decisions: a playout that takes more is cut off and counts 0 for every seat: without
            ``max_rounds`` a game may never end.
        threads: threads that share the work; the results are the same.

    Raises:
        ValueError: for mixed numbers of players, or another argument that does not fit.
    """
    check_threads(threads)
    repeats = whole_number("repeats", repeats, 1)
    most_decisions = whole_number("most_decisions", most_decisions, 1)
    games: Any = states
    if getattr(games, "on_gpu", False):
        return Playouts(*games.play_out(generators, repeats, most_decisions))
    as_states(states)
    check_streams(generators, states)
    players = common_players(states, "returns")
    payoffs = np.zeros((len(states), players), np.float32)
    decisions = np.zeros(len(states), np.int64)
    together(
        lambda rows: _play_out(
            states[rows],
            generators[rows],
            repeats,
            most_decisions,
            np.zeros(1, STATE),
            payoffs[rows],
            decisions[rows],
        ),
        runs(len(states), threads),
    )
    return Playouts(payoffs, decisions)


@entry
def _play_out(
    states: Records,
    generators: U64,
    repeats: Int,
    most_decisions: Int,
    scratch: Records,
    payoffs: F32,
    decisions: I64,
) -> None:
    for g in range(states.shape[0]):
        for _ in range(repeats):
            scratch[0] = states[g]
            play_out_once(scratch[0], generators, most_decisions, payoffs, decisions, g)
        for seat in range(payoffs.shape[1]):
            payoffs[g, seat] /= repeats
