"""Statistics that may be looked at after every deal: a test of two agents, and intervals.

The unit is the *deal score*: the mean of an agent's scores, 0 to 1, over all games of one deal in
which both agents sit. Deals are independent, games of one deal are not. *Normalised Elo* (nElo)
measures a difference in standard deviations of a game (docs/evaluation.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.system.arrays import F64
from carolus_env.system.options import number

STRONGER, NOT_STRONGER, UNDECIDED = "stronger", "not stronger", "undecided"
"""The verdicts: H1 is accepted, H0 is accepted, neither."""
NELO: Final = 800 / math.log(10)
"""Normalised Elo in a standard deviation of a game."""
ERROR_RATE: Final = 0.05
"""Chance of accepting H1 where ``nElo = elo0``, and H0 where ``nElo = elo1``; that with which
intervals ever leave out the true value."""
MOST_ELO: Final = 2000
BEST_DEALS: Final = 500
"""Number of deals at which `widening` is least, compared with any other choice."""
_TOLERANCE: Final = 1e-9


class Outcome(NamedTuple):
    """Outcome of a test on deal scores."""

    verdict: str  # STRONGER, NOT_STRONGER or UNDECIDED
    deals: int  # until a bound was reached; all, where none was
    ratio: float  # log-likelihood ratio after these deals, H1 over H0
    elo: float | None  # nElo of these deals, after an early stop on average too extreme


@dataclass(frozen=True)
class SequentialTest:
    """A test of H0 ``nElo <= elo0`` against H1 ``nElo >= elo1`` that stops by itself.

    It is the generalised sequential probability ratio test (Li, Liu and Ying, Sequential Analysis
    33, 2014). The likelihood is that of normal deal scores, maximised over their deviation under
    each hypothesis. Its error rates are asymptotic.

    Raises:
        ValueError: unless ``elo0 < elo1``, both at most 2000 from 0.
    """

    elo0: float = 0.0
    elo1: float = 20.0

    def __post_init__(self) -> None:
        for name in ("elo0", "elo1"):
            value = number(f"test: {name}", getattr(self, name), -MOST_ELO, MOST_ELO)
            object.__setattr__(self, name, value)
        if not self.elo0 < self.elo1:
            raise ValueError(f"test: elo0 must be below elo1, got {self.elo0!r} and {self.elo1!r}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which H0 and H1 are accepted (Wald, 1945)."""
        high = math.log((1 - ERROR_RATE) / ERROR_RATE)
        return -high, high

    def path(self, scores: npt.ArrayLike, games: int) -> F64:
        """Return the log-likelihood ratio, H1 over H0, after each deal, ``(..., D)``.

        ``scores`` are ``(..., D)`` deal scores, each of as many ``games``.

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
        """Return the outcome on the first agent's deal scores ``(D,)``, each of as many ``games``.

        The first deal after which a bound is reached decides. Later deals do not change it, so it
        does not matter when, or how often, one asks.

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
    """Return the normalised Elo of deal scores ``(D,)``; None without two different ones.

    For two games a deal this is fishtest's definition (Van den Bergh, "Normalized Elo", 2020).
    """
    result = np.asarray(scores, float)
    deviation = float(result.std()) if len(result) else 0.0
    if deviation < _TOLERANCE:
        return None
    return NELO * (float(result.mean()) - 0.5) / (math.sqrt(games) * deviation)


def widening(deals: int) -> float:
    """Return the factor by which a normal interval must widen to hold at any time, in the limit.

    It is the half width of the asymptotic confidence sequence of Waudby-Smith et al. (Annals of
    Statistics 52, 2024, theorem 2.2), divided by that of the normal interval.
    """
    logarithm = -2 * math.log(ERROR_RATE)
    part = deals * (logarithm + math.log(logarithm) + 1) / BEST_DEALS  # n rho^2, equation (10)
    half = math.sqrt(2 * (part + 1) / part * math.log(math.sqrt(part + 1) / ERROR_RATE))
    return half / NormalDist().inv_cdf(1 - ERROR_RATE / 2)
