"""The ladder: agents of stepped strength, with ratings that were measured once.

An agent that plays a few rungs near its own strength has a rating on a scale that everyone shares.
``make ladder`` plays the rungs against each other and writes their ratings to ``ladder.json``.

    >>> [rung.spec for rung in ladder.nearest(2, -700.0, 3)]
    >>> elo, low, high = ladder.place(Rules(2), {"greedy": results})
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from carolus_env.bots import Agent, make
from carolus_env.engine.rules import Rules
from carolus_env.evaluation.games import Results
from carolus_env.evaluation.pairing import play_pairing
from carolus_env.evaluation.ratings import ELO, rate
from carolus_env.system.arrays import F64

FILE: Final = Path(__file__).with_name("ladder.json")
ANCHOR: Final = "planner"  # the rung whose rating is 0


@dataclass(frozen=True)
class Rung:
    """An agent of the ladder, and its rating in Elo points above `ANCHOR`."""

    spec: str
    elo: float
    low: float  # the ends of the rating's 95 % interval
    high: float
    gap: Sequence[float]  # Elo points above the rung below, and the ends of their 95 % interval
    wins: Sequence[float]  # win rates against the rung below, and against the one below that


@cache
def rungs(players: int) -> tuple[Rung, ...]:
    """Return all rungs for that number of players, the weakest first."""
    if players not in (2, 3, 4):
        raise ValueError(f"the ladder has [2, 3, 4] players, got {players!r}")
    return tuple(Rung(**row) for row in json.loads(FILE.read_text())["players"][str(players)])


def digest(players: Mapping[str, Any] | None = None) -> str:
    """Return the hash of ratings by number of players, as in `FILE`; None: of the package's."""
    result = json.loads(FILE.read_text())["players"] if players is None else players
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()[:12]


def nearest(players: int, elo: float, count: int = 1) -> list[Rung]:
    """Return the rungs whose ratings are nearest to ``elo``, the nearest first."""
    return sorted(rungs(players), key=lambda rung: abs(rung.elo - elo))[:count]


def guess(agent: Agent, rules: Rules, games: int, seed: int) -> float:
    """Return a rough rating: between the rungs that an agent beats and those that beat it.

    A bisection finds them, by so many games against each rung that it comes to.
    """
    known = rungs(rules.players)
    below, above = -1, len(known)  # rungs that it beats and loses to
    while above - below > 1:
        middle = (below + above) // 2
        played = play_pairing((agent, make(known[middle].spec)), rules, games, seed=seed)
        if played.win_rate[0] > 0.5:
            below = middle
        else:
            above = middle
    return (known[max(below, 0)].elo + known[min(above, len(known) - 1)].elo) / 2


def place(rules: Rules, met: Mapping[str, Results]) -> tuple[float, float, float]:
    """Rate an agent by its games against rungs, whose ratings are taken as given.

    The prior is one drawn deal, which the rungs share. The interval covers the luck of these games,
    not the uncertainty of the rungs' own ratings.

    Args:
        met: games against each rung, by spec; the agent is number 0 in their tables and sits in
            every seating equally often. Games of the same deal share luck.

    Returns:
        The rating in Elo points above `ANCHOR`, and the ends of its 95 % interval.
    """
    known = {rung.spec: rung.elo for rung in rungs(rules.players)}
    if not met:
        raise ValueError("a place on the ladder needs games against a rung, got none")
    for spec in met:
        if spec not in known:
            raise ValueError(f"no rung of the ladder for {rules.players} players: {spec!r}")
    games = list(met.values())
    result = rate(
        np.concatenate([np.where(some["table"] == 0, 0, k) for k, some in enumerate(games, 1)]),
        np.concatenate([some["shares"] for some in games]),
        np.concatenate([some["deal"] for some in games]),
        len(games) + 1,
        fixed={k: known[spec] for k, spec in enumerate(met, 1)},
        prior=2 if rules.players == 3 else 1,  # a deal of two agents has two line-ups there
    )
    return float(result.elo[0]), float(result.low[0]), float(result.high[0])


def win_rate(players: int, difference: F64) -> F64:
    """Return the win rate of an agent that is stronger by these Elo points, over all seatings."""
    seats: Sequence[tuple[int, int]] = [(1, 2), (2, 1)] if players == 3 else [(1, 1)]
    odds = np.exp(difference / ELO)
    return np.mean([own * odds / (own * odds + other) for own, other in seats], axis=0)
