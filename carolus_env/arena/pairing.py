"""How two agents did against each other: a win rate, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.arena.games import Progress, Results, play_games, warm_up
from carolus_env.arena.seating import Plan, deals_for, pairing
from carolus_env.bots import Agent
from carolus_env.engine.rules import REASON_NAMES, Rules

_Z: Final = 1.959964  # normal quantile of a two-sided 95 %


@dataclass(frozen=True)
class PairingResult:
    """How two agents did against each other; pairs of values are in the order of ``agents``."""

    agents: tuple[str, str]
    deals: int
    """Deals that were played with every seating."""
    games: int
    wins: tuple[int, int]
    """Games that seats of this agent alone have won."""
    draws: int
    """Games that neither has won alone: shared, cut off, or won by a third agent."""
    win_rate: tuple[float, float]
    """Mean part of the win, see `pairing_result`: 0.5 each between equals, 1 for all wins."""
    ci95: tuple[tuple[float, float], tuple[float, float]]
    """95 % interval (low, high) of each win rate."""
    mean_rounds: float
    mean_castles: tuple[float, float]
    """Castles in play of the agent's team at the end; the mean, where it had two seats alone."""
    ends: dict[str, int]
    """Games by why they ended (`rules.REASON_NAMES`)."""
    decisions: tuple[int, int]
    seconds: tuple[float, float]
    """Time that each agent took for its decisions, as far as it is known."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values for JSON."""
        return asdict(self)


def pairing_result(
    agents: Sequence[str], results: Results, pair: tuple[int, int] = (0, 1)
) -> PairingResult:
    """Count the games in which both agents of a pair sat.

    An agent's part of a game is (1 + s - t) / 2 with s its own seats' share of the win and t the
    other's. Where the two are alone at the table that is its share: all of it when only its seats
    (or its team) won, half when two tied seats are of both agents. A game that a third agent won
    is half a game for each. A game that was cut off is held by every team alike.

    The win rate is the mean of that part over all games. Between equals it is 0.5, also with
    three players, where an agent sits alone in half of the games (1/3 of the win is to be
    expected) and on two seats in the other half (2/3). An agent whose seats always win has 1.0.

    Games of one deal belong together, which the interval knows (`mean_interval`).

    Args:
        agents: the names, by number.
        results: games, those of other agents included.
        pair: numbers of the two.

    Raises:
        ValueError: when there is no game to count.
    """
    names = agents[pair[0]], agents[pair[1]]
    first, second = ((results.tables == k).any(axis=1) for k in pair)
    results = results.rows(np.flatnonzero(first & second))
    games = len(results)
    if games == 0:
        raise ValueError(f"no game of {names[0]!r} and {names[1]!r} to count")
    mine = np.stack([results.tables == k for k in pair])
    shares = (results.shares * mine).sum(axis=2)
    wins = (shares > 1 - 1e-9).sum(axis=1)
    parts = (1 + shares[0] - shares[1]) / 2
    low, high = mean_interval(parts, results.deals)
    rate = float(parts.mean())
    castles = [float(np.average(results.castles, weights=m, axis=1).mean()) for m in mine]
    decisions = (results.decisions * mine).sum(axis=(1, 2))
    seconds = np.nansum(results.seconds * mine, axis=(1, 2))
    return PairingResult(
        agents=names,
        deals=len(np.unique(results.deals)),
        games=games,
        wins=(int(wins[0]), int(wins[1])),
        draws=games - int(wins.sum()),
        win_rate=(rate, 1 - rate),
        ci95=((low, high), (1 - high, 1 - low)),
        mean_rounds=float(results.rounds.mean()),
        mean_castles=(castles[0], castles[1]),
        ends=count_ends(results),
        decisions=(int(decisions[0]), int(decisions[1])),
        seconds=(float(seconds[0]), float(seconds[1])),
    )


def play_pairing(
    agents: tuple[Agent, Agent],
    rules: Rules,
    games: int,
    *,
    seed: int,
    progress: Progress | None = None,
) -> PairingResult:
    """Let two agents play each other, every deal in every seating.

    Args:
        agents: the two; the same one twice is allowed.
        rules: of all games.
        games: how many; rounded up to whole deals (of 2 games, or 6 for three players).
        seed: deal ``d`` has seed ``seed + d``.
        progress: told how many games are finished.

    Raises:
        ArenaError, ValueError: as `play_games`; ValueError for an impossible number of games.
    """
    names = agents[0].name, agents[1].name
    deals = deals_for(games, len(pairing(rules).seatings))
    plan = Plan(rules, names, deals=deals, seed=seed)
    fixtures = plan.fixtures(0, plan.games)
    warm_up(agents, rules)
    results = play_games(
        fixtures.tables,
        agents,
        rules,
        seed=seed,
        deals=fixtures.deals,
        seatings=fixtures.seatings,
        progress=progress,
    )
    return pairing_result(names, results)


def count_ends(results: Results) -> dict[str, int]:
    """Games by why they ended."""
    counts = np.bincount(results.reasons).tolist()
    return {str(REASON_NAMES[reason]): count for reason, count in enumerate(counts) if count}


def mean_interval(
    values: npt.NDArray[np.float64], deals: npt.NDArray[np.int64] | None = None
) -> tuple[float, float]:
    """95 % interval (low, high) for the mean of values from 0 to 1.

    Wilson's score interval (JASA 22, 1927): for independent zeros and ones it is exactly that. It
    stays within 0 and 1 and has a width at 100 % wins too, where the usual mean +- 1.96 s /
    sqrt(n) has none. Other values count as ``n / c`` zeros and ones, c being the variance of
    their mean by that of as many independent zeros and ones (Kish's design effect, as in Korn and
    Graubard, Survey Methodology 24, 1998). Values in between spread less, which makes c smaller.

    Values of one deal belong together, deals are independent. So the variance is that of sums
    over whole deals: luck that the seatings of a deal cancel makes c smaller, and whatever else
    they have in common makes it larger. Each deal holds every seating once, so what seats are
    worth does not count. For c alone a zero and a one are added, each a deal of its own, which
    keeps some width when all values are the same. Few deals tell little about c, so the normal
    quantile is Student's, one degree of freedom for each deal, less one, and the two added.

    Args:
        values: ``(N,)``.
        deals: ``(N,)`` number of each value's deal; None: all values are independent.
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
    weight = (_Z if deals is None else _student(last + 2)) ** 2 * c / n
    middle = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(weight * mean * (1 - mean) + weight**2 / 4) / (1 + weight)
    # Rounding may miss the mean by a hair where an end coincides with it (0 %, 100 %).
    return max(0.0, min(middle - half, mean)), min(1.0, max(middle + half, mean))


def _student(freedom: int) -> float:
    """Student's quantile of a two-sided 95 % (Abramowitz and Stegun 26.7.5): 0.1 % off at 5."""
    z, n = _Z, freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3
