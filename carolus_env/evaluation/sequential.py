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
Analysis 33, 2014) of H0 ``nElo <= elo0`` against H1 ``nElo >= elo1``. The likelihood is that of
normal deal scores, maximised over their deviation under each hypothesis. Its error rates are
asymptotic.

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

_TOLERANCE: Final = 1e-9


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

    def path(self, scores: npt.ArrayLike, games: int) -> F64:
        """Return the log-likelihood ratio, H1 over H0, after each deal, ``(..., D)``.

        Args:
            scores: ``(..., D)`` deal scores.
            games: games of a deal.

        Raises:
            ValueError: for scores below 0 or above 1.
        """
        z = np.asarray(scores, float) - 0.5
        if not (np.abs(z) <= 0.5 + _TOLERANCE).all():
            raise ValueError(
                f"deal scores must be from 0 to 1, got {z.min() + 0.5} to {z.max() + 0.5}"
            )
        deals = np.arange(1, z.shape[-1] + 1)
        mean = z.cumsum(axis=-1) / deals
        square = np.maximum((z * z).cumsum(axis=-1) / deals, _TOLERANCE)

        def likelihood(elo: float) -> F64:
            """Return the largest log-likelihood of a deal, for any deviation 1 / u."""
            t = elo * math.sqrt(games) / NELO
            u = (t * mean + np.sqrt(np.square(t * mean) + 4 * square)) / (2 * square)
            result: F64 = np.log(u) - square * u * u / 2 + t * mean * u - t * t / 2
            return result

        return deals * (likelihood(self.elo1) - likelihood(self.elo0))

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
    """
    logarithm = -2 * math.log(ERROR_RATE)
    part = deals * (logarithm + math.log(logarithm) + 1) / BEST_DEALS  # n rho^2, equation (10)
    half = math.sqrt(2 * (part + 1) / part * math.log(math.sqrt(part + 1) / ERROR_RATE))
    return half / NormalDist().inv_cdf(1 - ERROR_RATE / 2)
