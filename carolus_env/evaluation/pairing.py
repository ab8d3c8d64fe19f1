"""The result of two agents against each other: a win rate and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots import AgentLike, make
from carolus_env.engine.rules import REASON_NAMES, Rules
from carolus_env.evaluation.games import Progress, Results, play_games, warm_up
from carolus_env.evaluation.seating import Plan, deals_for, pairing
from carolus_env.system.arrays import F64
from carolus_env.system.options import instance

_Z: Final = 1.959964  # normal quantile of a two-sided 95 %


@dataclass(frozen=True)
class PairingResult:
    """The result of two agents against each other; pairs are in the order of ``agents``."""

    agents: tuple[str, str]
    deals: int
    """Deals, each played in every seating."""
    games: int
    wins: tuple[int, int]
    """Games that this agent's seats alone have won."""
    draws: int
    """Games that neither has won alone: shared, or cut off."""
    win_rate: tuple[float, float]
    """See `pairing_result`: 0.5 each between equals, 1 for all wins."""
    ci95: tuple[tuple[float, float], tuple[float, float]]
    """95 % interval (low, high) of each win rate."""
    mean_rounds: float
    mean_castles: tuple[float, float]
    """Castles in play of the agent's team at the end; the mean of its seats' teams."""
    ends: dict[str, int]
    """Number of games by the reason for their end (`rules.REASON_NAMES`)."""
    decisions: tuple[int, int]
    seconds: tuple[float, float]
    """Time that each agent took for its decisions."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON."""
        return asdict(self)


def pairing_result(
    agents: Sequence[str], results: Results, pair: tuple[int, int] = (0, 1)
) -> PairingResult:
    """Count the games of two agents against each other.

    An agent scores its seats' share of the win: 1 when only they won, 0.5 when one seat of each
    agent shares the win. In a game that was cut off all teams have the same share.

    The win rate is the mean score. Between equals it is 0.5, also with three players: there an
    agent has one seat in half of the games (expected share 1/3) and two in the other half (2/3).

    The interval allows for what games of one deal have in common (`mean_interval`).

    Args:
        agents: the names, by number.
        results: games; those of other agents are left out.
        pair: numbers of the two.

    Raises:
        ValueError: when there is no game to count.
    """
    names = agents[pair[0]], agents[pair[1]]
    results = games_of(results, pair)
    games = len(results)
    if games == 0:
        raise ValueError(f"no game of {names[0]!r} and {names[1]!r} to count")
    seats = np.stack([results["table"] == k for k in pair])
    scores = (results["shares"] * seats).sum(axis=2)
    wins = (scores > 1 - 1e-9).sum(axis=1)
    low, high = mean_interval(scores[0], results["deal"])
    rate = float(scores[0].mean())
    castles = [float(np.average(results["castles"], weights=m, axis=1).mean()) for m in seats]
    decisions = (results["decisions"] * seats).sum(axis=(1, 2))
    seconds = (results["seconds"] * seats).sum(axis=(1, 2))
    return PairingResult(
        agents=names,
        deals=len(np.unique(results["deal"])),
        games=games,
        wins=(int(wins[0]), int(wins[1])),
        draws=games - int(wins.sum()),
        win_rate=(rate, 1 - rate),
        ci95=((low, high), (1 - high, 1 - low)),
        mean_rounds=float(results["rounds"].mean()),
        mean_castles=(castles[0], castles[1]),
        ends=count_ends(results),
        decisions=(int(decisions[0]), int(decisions[1])),
        seconds=(float(seconds[0]), float(seconds[1])),
    )


def games_of(results: Results, pair: tuple[int, int]) -> Results:
    """Return the games in which these two agents sat, and no other."""
    first, second = (results["table"] == k for k in pair)
    return results[first.any(axis=1) & second.any(axis=1) & (first | second).all(axis=1)]


def deal_scores(results: Results, pair: tuple[int, int]) -> tuple[F64, int]:
    """Return the first agent's mean score in each deal, ``(D,)``, and the games of a deal."""
    met = games_of(results, pair)
    scores = (met["shares"] * (met["table"] == pair[0])).sum(axis=1)
    _, places, sizes = np.unique(met["deal"], return_inverse=True, return_counts=True)
    sums = np.bincount(places.reshape(-1), weights=scores)
    return sums / sizes, int(sizes[0]) if len(sizes) else 0


def play_pairing(
    agents: tuple[AgentLike, AgentLike],
    rules: Rules,
    games: int,
    *,
    seed: int,
    progress: Progress | None = None,
) -> PairingResult:
    """Let two agents play each other, every deal in every seating.

    Args:
        agents: the two, each a spec string or an agent; they may be the same object.
        rules: rules of all games.
        games: number of games; rounded up to whole deals (of 2 games, or 6 for three players).
        seed: 0 to 2^64 - 1; no two seeds share a deal.
        progress: a function of the number of finished games.

    Raises:
        ArenaError, ValueError: as `play_games` and `bots.make`; ValueError for an impossible number
            of games.
    """
    instance("agents", agents, Sequence, "two agents or their spec strings")
    if len(agents) != 2:
        raise ValueError(f"agents must be two, got {len(agents)}")
    first, second = map(make, agents)
    names = first.name, second.name
    deals = deals_for(games, len(pairing(rules).seatings))
    plan = Plan(rules, names, deals=deals, seed=seed)
    warm_up((first, second), rules)
    fixtures = plan.fixtures(0, plan.games)
    results = play_games(fixtures, (first, second), rules, seed=seed, progress=progress)
    return pairing_result(names, results)


def count_ends(results: Results) -> dict[str, int]:
    """Return the number of games by the reason for their end."""
    counts = np.bincount(results["reason"]).tolist()
    return {str(REASON_NAMES[reason]): count for reason, count in enumerate(counts) if count}


def mean_interval(
    values: npt.NDArray[np.float64],
    deals: npt.NDArray[np.int64] | None = None,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Return the interval (low, high) for the mean of values from 0 to 1, by default 95 %.

    For independent zeros and ones this is Wilson's score interval (JASA 22, 1927). It stays
    within 0 and 1 and has a width even at 100 % wins, where the usual mean +- 1.96 s / sqrt(n)
    has none. Other values count as ``n / c`` zeros and ones, with c Kish's design effect: the
    variance of the values' mean, divided by that of as many independent zeros and ones (as in
    Korn and Graubard, Survey Methodology 24, 1998). Values between 0 and 1 make c smaller.

    Deals are independent, values of one deal are not. So the variance is taken from sums over
    deals: luck that the seatings of a deal cancel makes c smaller, and what they have in common
    makes it larger. Each deal has every seating once, so the advantage of a seat does not count.
    For c alone a zero and a one are added, each as another deal, which keeps some width when all
    values are the same. Since few deals tell little about c, Student's quantile replaces the
    normal one; its degrees of freedom are the deals and the two added ones, less one.

    Args:
        values: ``(N,)``.
        deals: ``(N,)`` number of each value's deal; None: all values are independent.
        confidence: between 0 and 1.
    """
    z = _Z if confidence == 0.95 else NormalDist().inv_cdf((1 + confidence) / 2)
    n = len(values)
    mean = float(np.clip(values.mean(), 0, 1))
    padded = np.concatenate([values, [0.0, 1.0]])
    places = np.arange(n) if deals is None else np.unique(deals, return_inverse=True)[1]
    last = int(places.max())
    groups = np.concatenate([places, [last + 1, last + 2]])
    centre = float(padded.mean())
    c = float(np.square(np.bincount(groups, weights=padded - centre)).sum())
    c /= centre * (1 - centre) * (n + 2)
    weight = (z if deals is None else _student(last + 2, z)) ** 2 * c / n
    middle = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(weight * mean * (1 - mean) + weight**2 / 4) / (1 + weight)
    # Rounding may move an end past the mean where they coincide (0 %, 100 %).
    return max(0.0, min(middle - half, mean)), min(1.0, max(middle + half, mean))


def _student(freedom: int, z: float) -> float:
    """Return Student's quantile for the normal quantile z (Abramowitz and Stegun 26.7.5).

    At 5 degrees of freedom it is 0.1 % off for a two-sided 95 %.
    """
    n = freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3
