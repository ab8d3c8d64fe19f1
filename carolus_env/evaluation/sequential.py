"""Statistics that may be looked at after every deal: a test of two agents, and intervals.

The unit is the *deal score*: the mean of an agent's scores, 0 to 1, over all games of one deal in
which both agents sit. Deals are independent, games of one deal are not.

**Normalised Elo** (nElo) measures a difference in standard deviations of a game:

    nElo = 800 / ln 10 * (mean - 1/2) / (sqrt(games) * deviation)

with the mean and the standard deviation of deal scores, and the number of games that a score
averages. Games of the same spread on separate deals have the spread ``sqrt(games) * deviation``, so
for two games a deal this is fishtest's definition for its pairs of games (Van den Bergh,
"Normalized Elo", 2020). Where 10 nElo separate two agents, it takes about as many games to show it
whoever they are. Plain Elo points are other units: where most deals are shared equally, a small
difference in Elo is a large one in nElo.

`SequentialTest` is the generalised sequential probability ratio test (Li, Liu and Ying, Sequential
Analysis 33, 2014) of H0 ``nElo <= elo0`` against H1 ``nElo >= elo1``. The likelihood of the deal
scores is multinomial, over any set of values, and is maximised under each hypothesis (Van den
Bergh, "Normalized Elo: practical guide", section 4.1). Its error rates are asymptotic.

`widening` is the factor by which intervals that are nearly normal must widen so that, however often
they are looked at, the chance that one ever leaves out the true value is `ERROR_RATE`, in the limit
of many deals (Waudby-Smith et al., Annals of Statistics 52, 2024).

    >>> test = SequentialTest(0, 20)
    >>> test.outcome(scores, games=2)
    Outcome(verdict='stronger', deals=412, ratio=2.97, elo=58.1)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.system.arrays import F64

STRONGER, NOT_STRONGER, UNDECIDED = "stronger", "not stronger", "undecided"
"""The verdicts: H1 is accepted, H0 is accepted, neither."""

NELO: Final = 800 / math.log(10)
"""Normalised Elo in a standard deviation of a game."""

ERROR_RATE: Final = 0.05
"""Chance of accepting H1 where ``nElo = elo0``, and H0 where ``nElo = elo1``; that with which
intervals ever leave out the true value."""

MOST_ELO: Final = 2000.0
BEST_DEALS: Final = 500
"""Number of deals at which `widening` is least, compared with any other choice."""

_VIRTUAL: Final = 1e-3  # deals with score 0, 1/2 and 1 where none was observed, as in fishtest
_TOLERANCE: Final = 1e-9
_ROUNDS: Final = 100  # maximum of an iteration's steps; it takes about five
_CHUNK: Final = 4096  # deals whose ratio is computed at once


class Outcome(NamedTuple):
    """Outcome of a test on deal scores.

    Attributes:
        verdict: `STRONGER`, `NOT_STRONGER` or `UNDECIDED`.
        deals: deals until a bound was reached; all, where none was.
        ratio: log-likelihood ratio after these deals, H1 over H0.
        elo: normalised Elo of these deals; None where all have the same score. After an early
            stop it is, on average, too far from the middle of the hypotheses.
    """

    verdict: str
    deals: int
    ratio: float
    elo: float | None


@dataclass(frozen=True)
class SequentialTest:
    """A test of H0 ``nElo <= elo0`` against H1 ``nElo >= elo1`` that stops by itself.

    Raises:
        ValueError: unless ``elo0 < elo1``, both at most 2000 from 0.
    """

    elo0: float = 0.0
    elo1: float = 20.0

    def __post_init__(self) -> None:
        for name in ("elo0", "elo1"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"test: {name} must be a number, got {value!r}")
            if not abs(value) <= MOST_ELO:
                raise ValueError(
                    f"test: {name} must be from -{MOST_ELO:g} to {MOST_ELO:g}, got {value!r}"
                )
        if not self.elo0 < self.elo1:
            raise ValueError(f"test: elo0 must be below elo1, got {self.elo0!r} and {self.elo1!r}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which H0 and H1 are accepted (Wald, 1945)."""
        high = math.log((1 - ERROR_RATE) / ERROR_RATE)
        return -high, high

    def ratios(self, values: npt.ArrayLike, counts: npt.ArrayLike, games: int) -> F64:
        """Return the log-likelihood ratio, H1 over H0, of each row of counts.

        So that no hypothesis is impossible, the scores 0, 1/2 and 1, if not observed, count as a
        thousandth of a deal, as in fishtest.

        Args:
            values: ``(K,)`` deal scores, 0 to 1, all different.
            counts: ``(N, K)``: how many deals had each score; each row has at least one.
            games: games of a deal, 1 or more.

        Returns:
            ``(N,)``.
        """
        scores, numbers = _regular(np.asarray(values, float), np.asarray(counts, float))
        total = numbers.sum(axis=1)
        shares = numbers / total[:, None]
        scale = math.sqrt(games) / NELO
        fits = [_log_fit(scores, shares, elo * scale) for elo in (self.elo0, self.elo1)]
        result: F64 = total * (shares * (fits[1] - fits[0])).sum(axis=1)
        return result

    def path(self, scores: npt.ArrayLike, games: int) -> F64:
        """Return the log-likelihood ratio after each deal, ``(D,)``.

        Args:
            scores: ``(D,)`` deal scores.
            games: games of a deal.

        Raises:
            ValueError: for scores below 0 or above 1.
        """
        values, levels = _levels(scores)
        parts = []
        before = np.zeros(len(values))
        for start in range(0, len(levels), _CHUNK):
            each = levels[start : start + _CHUNK, None] == np.arange(len(values))
            counts = before + each.cumsum(axis=0)
            before = counts[-1]
            parts.append(self.ratios(values, counts, games))
        return np.concatenate([np.zeros(0), *parts])

    def outcome(self, scores: npt.ArrayLike, games: int) -> Outcome:
        """Return the test's outcome: the first deal after which a bound is reached decides.

        Later deals do not change it, so it does not matter when, or how often, one asks.

        Args:
            scores: ``(D,)`` deal scores of the first agent, in the order of the deals.
            games: games of a deal.

        Raises:
            ValueError: for scores below 0 or above 1.
        """
        path = self.path(scores, games)
        lower, upper = self.bounds
        reached = np.flatnonzero((path <= lower) | (path >= upper))
        deals = int(reached[0]) + 1 if len(reached) else len(path)
        ratio = float(path[deals - 1]) if deals else 0.0
        verdict = STRONGER if ratio >= upper else NOT_STRONGER if ratio <= lower else UNDECIDED
        return Outcome(verdict, deals, ratio, normalised_elo(np.asarray(scores)[:deals], games))


def normalised_elo(scores: npt.ArrayLike, games: int) -> float | None:
    """Return the normalised Elo of deal scores ``(D,)``; None without two different ones."""
    result = np.asarray(scores, float)
    deviation = float(result.std()) if len(result) else 0.0
    if deviation < _TOLERANCE:
        return None
    return NELO * (float(result.mean()) - 0.5) / (math.sqrt(games) * deviation)


# ------------------------------------------------------------------------------------ intervals


def widening(deals: int) -> float:
    """Return the factor by which a normal interval must widen to hold at any time, in the limit.

    It is the half width of the asymptotic confidence sequence of Waudby-Smith et al. (2024,
    theorem 2.2), divided by that of the normal interval for the same number of deals.

    Args:
        deals: number of deals so far, 1 or more.
    """
    logarithm = -2 * math.log(ERROR_RATE)
    part = deals * (logarithm + math.log(logarithm) + 1) / BEST_DEALS  # n rho^2, equation (10)
    half = math.sqrt(2 * (part + 1) / part * math.log(math.sqrt(part + 1) / ERROR_RATE))
    return half / NormalDist().inv_cdf(1 - ERROR_RATE / 2)


# ------------------------------------------------------------------------------------ likelihood


def _levels(scores: npt.ArrayLike) -> tuple[F64, npt.NDArray[np.int64]]:
    """Return the different scores, ascending, and the number of each deal's among them."""
    result = np.asarray(scores, float)
    low, high = float(result.min(initial=0.5)), float(result.max(initial=0.5))
    if not (low >= -_TOLERANCE and high <= 1 + _TOLERANCE):
        raise ValueError(f"deal scores must be from 0 to 1, got {low} to {high}")
    result = np.clip(result, 0, 1)
    values, places = np.unique(np.round(result, 9), return_inverse=True)
    return values, places.reshape(-1)


def _regular(values: F64, counts: F64) -> tuple[F64, F64]:
    """Return values that include 0, 1/2 and 1, and counts in which these are never 0."""
    scores = np.union1d(values, [0.0, 0.5, 1.0])
    numbers = np.zeros((len(counts), len(scores)))
    numbers[:, np.searchsorted(scores, values)] = counts
    must = np.isin(scores, [0.0, 0.5, 1.0])
    numbers[:, must] = np.maximum(numbers[:, must], _VIRTUAL)
    return scores, numbers


def _log_fit(values: F64, shares: F64, t: float) -> F64:
    """Return the most likely probabilities, given ``shares``, for (mean - 1/2) / deviation = ``t``.

    A fixed point is sought: the condition is made linear in the probabilities around the last
    ones, by which the problem becomes one equation (`_root`). For ``t > 0`` the deviation is
    concave in the probabilities, so from a start that fulfils the condition every step is possible
    and none makes the likelihood less. The start is a coin.

    Args:
        values: ``(K,)``.
        shares: ``(N, K)`` with sums 1; 0: this value is left out.
        t: the condition.

    Returns:
        ``(N, K)``: logarithms of the probabilities, less those of the shares; 0 where left out.
    """
    observed = shares > 0
    mean = np.full(len(shares), 0.5 + 0.5 * t / math.sqrt(1 + t * t))
    deviation = np.full(len(shares), 0.5 / math.sqrt(1 + t * t))
    result = np.zeros(shares.shape)
    rows = np.arange(len(shares))
    root = np.zeros(len(shares))
    for _ in range(_ROUNDS if t else 1):
        mu, sigma = mean[rows, None], deviation[rows, None]
        slopes = values - 0.5 - t * sigma / 2 * (1 + np.square((values - mu) / sigma))
        slopes = np.where(observed[rows], slopes, 0.0)
        root[rows] = _root(slopes, shares[rows], root[rows])
        log = -np.log1p(root[rows, None] * slopes)
        fitted = shares[rows] * np.exp(log)
        fitted /= fitted.sum(axis=1, keepdims=True)
        moved = np.abs(log - result[rows]).max(axis=1) > _TOLERANCE
        result[rows] = log
        mean[rows] = fitted @ values
        square = (fitted * np.square(values - mean[rows, None])).sum(axis=1)
        deviation[rows] = np.sqrt(square)
        rows = rows[moved]
        if not len(rows):
            break
    return result


def _root(slopes: F64, shares: F64, guess: F64) -> F64:
    """Solve ``sum(shares * slopes / (1 + x * slopes)) = 0`` for x: Newton's method in a bracket.

    The sum falls as x grows, from infinity to minus infinity.

    Args:
        slopes: ``(N, K)``, in each row some above 0 and some below.
        shares: ``(N, K)``, not negative.
        guess: ``(N,)``.
    """
    low = -1 / slopes.max(axis=1)
    high = -1 / slopes.min(axis=1)
    result = np.where((guess > low) & (guess < high), guess, 0.0)
    rows = np.arange(len(slopes))
    for _ in range(_ROUNDS):
        x = result[rows]
        parts = slopes[rows] / (1 + x[:, None] * slopes[rows])
        weighted = shares[rows] * parts
        value, slope = weighted.sum(axis=1), (weighted * parts).sum(axis=1)
        above = value > 0
        low[rows] = np.where(above, x, low[rows])
        high[rows] = np.where(above, high[rows], x)
        step = x + value / slope
        inside = (step > low[rows]) & (step < high[rows])
        result[rows] = np.where(inside, step, (low[rows] + high[rows]) / 2)
        rows = rows[np.abs(result[rows] - x) > 1e-12 * (1 + np.abs(x))]
        if not len(rows):
            break
    return result
