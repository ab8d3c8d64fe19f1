"""The result of two agents against each other: a win rate and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots import AgentLike, make
from carolus_env.engine.rules import REASON_NAMES, Rules
from carolus_env.evaluation.games import Progress, Results, play_games, warm_up
from carolus_env.evaluation.seating import Plan, deals_for, seatings_of
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
    """Count the games of two agents against each other; those of other agents are left out.

    The win rate is the mean score. An agent scores its seats' share of the win: 1 when only they
    won, 0.5 when one seat of each agent shares the win. In a game that was cut off all teams have
    the same share. Between equals the rate is 0.5, also with three players: there an agent has one
    seat in half of the games (expected share 1/3) and two in the other half (2/3). The interval
    allows for what games of one deal have in common (`mean_interval`).

    Raises:
        ValueError: when there is no game to count.
    """
    first, second = agents[pair[0]], agents[pair[1]]
    seats = np.stack([results["table"] == k for k in pair])
    met = seats.any(axis=2).all(axis=0) & (seats[0] | seats[1]).all(axis=1)
    results, seats = results[met], seats[:, met]
    if not len(results):
        raise ValueError(f"no game of {first!r} and {second!r} to count")
    scores = (results["shares"] * seats).sum(axis=2)
    wins = (scores > 1 - 1e-9).sum(axis=1).tolist()
    low, high = mean_interval(scores[0], results["deal"])
    rate = float(scores[0].mean())
    castles = [float(np.average(results["castles"], weights=m, axis=1).mean()) for m in seats]
    decisions = (results["decisions"] * seats).sum(axis=(1, 2)).tolist()
    seconds = (results["seconds"] * seats).sum(axis=(1, 2)).tolist()
    return PairingResult(
        agents=(first, second),
        deals=len(np.unique(results["deal"])),
        games=len(results),
        wins=(wins[0], wins[1]),
        draws=len(results) - sum(wins),
        win_rate=(rate, 1 - rate),
        ci95=((low, high), (1 - high, 1 - low)),
        mean_rounds=float(results["rounds"].mean()),
        mean_castles=(castles[0], castles[1]),
        ends=count_ends(results),
        decisions=(decisions[0], decisions[1]),
        seconds=(seconds[0], seconds[1]),
    )


def deal_scores(games: Results, agent: int) -> F64:
    """Return an agent's mean score in each deal, ``(D,)``, of ``(D, S)`` games of a pair."""
    scores: F64 = (games["shares"] * (games["table"] == agent)).sum(axis=2).mean(axis=1)
    return scores


def count_ends(results: Results) -> dict[str, int]:
    """Return the number of games by the reason for their end."""
    reasons, counts = np.unique(results["reason"], return_counts=True)
    return {str(REASON_NAMES[k]): n for k, n in zip(reasons, counts.tolist(), strict=True)}


def play_pairing(
    agents: tuple[AgentLike, AgentLike],
    rules: Rules,
    games: int,
    *,
    seed: int,
    progress: Progress | None = None,
) -> PairingResult:
    """Let two agents play each other, every deal in every seating.

    ``agents`` are spec strings or agents, and may be the same object. ``games`` is rounded up to
    whole deals, of 2 games, or of 6 for three players.

    Raises:
        ArenaError, ValueError: as `play_games` and `bots.make`; ValueError for an impossible number
            of games.
    """
    instance("agents", agents, Sequence, "two agents or their spec strings")
    if len(agents) != 2:
        raise ValueError(f"agents must be two, got {len(agents)}")
    pair = make(agents[0]), make(agents[1])
    names = pair[0].name, pair[1].name
    deals = deals_for(games, len(seatings_of(rules)))
    plan = Plan(rules, names, deals=deals, seed=seed)
    warm_up(pair, rules)
    results = play_games(plan.fixtures(0, plan.games), pair, rules, seed=seed, progress=progress)
    return pairing_result(names, results)


def mean_interval(values: F64, deals: npt.NDArray[np.int64] | None = None) -> tuple[float, float]:
    """Return the 95 % interval (low, high) for the mean of ``(N,)`` values from 0 to 1.

    ``deals`` are ``(N,)`` numbers of the values' deals; None: all values are independent. For
    independent zeros and ones this is Wilson's score interval (JASA 22, 1927), which stays within 0
    and 1 and has a width even at 100 % wins. Other values count as ``n / c`` zeros and ones, with c
    Kish's design effect (as in Korn and Graubard, Survey Methodology 24, 1998), from the variance
    of sums over deals: these are independent, values of one deal are not. For c alone a zero and a
    one are added, each as another deal, which keeps some width when all values are the same. Since
    few deals tell little about c, Student's quantile replaces the normal one, for the deals and the
    two added ones, less one.
    """
    n = len(values)
    mean = float(np.clip(values.mean(), 0, 1))
    padded = np.concatenate([values, [0.0, 1.0]])
    places = np.arange(n) if deals is None else np.unique(deals, return_inverse=True)[1]
    last = int(places.max())
    groups = np.concatenate([places, [last + 1, last + 2]])
    centre = float(padded.mean())
    c = float(np.square(np.bincount(groups, weights=padded - centre)).sum())
    c /= centre * (1 - centre) * (n + 2)
    weight = (_Z if deals is None else _student(last + 2, _Z)) ** 2 * c / n
    middle = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(weight * mean * (1 - mean) + weight**2 / 4) / (1 + weight)
    # Rounding may move an end past the mean where they coincide (0 %, 100 %).
    return max(0.0, min(middle - half, mean)), min(1.0, max(middle + half, mean))


def _student(n: int, z: float) -> float:
    """Return Student's quantile of n degrees of freedom for the normal quantile z.

    Abramowitz and Stegun 26.7.5: at 5 degrees it is 0.1 % off for a two-sided 95 %.
    """
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3
