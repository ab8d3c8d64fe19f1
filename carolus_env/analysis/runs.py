"""Several training runs as one figure with an interval.

One run says little: the next seed may end elsewhere. The scores of several runs on several tasks
(opponents, numbers of players) are summed up by their inter-quartile mean, and a stratified
bootstrap over the runs says how sure it is. The ideas are those of Agarwal et al., "Deep
Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS 2021.

    >>> scores = [[0.98, 0.41], [0.99, 0.52], [0.97, 0.47], [0.99, 0.35]]   # 4 runs, 2 opponents
    >>> stratified_bootstrap(scores)
    Interval(value=0.735, low=0.69, high=0.7525)

Scores of all tasks should have one scale, as win rates have.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]


class Interval(NamedTuple):
    """A statistic of the runs.

    Attributes:
        value: of the runs as they are.
        low: lower end of the interval.
        high: upper end.
    """

    value: float
    low: float
    high: float


def interquartile_mean(scores: npt.ArrayLike) -> float:
    """The mean of the middle half of all scores: a quarter is left out at each end.

    Outliers move it less than the mean, and it uses more of the scores than the median. Where a
    quarter is not a whole number of scores, fewer are left out: of 6 one at each end.

    Args:
        scores: finite numbers of any shape, at least one.

    Raises:
        ValueError: for no scores, or one that is not finite.
    """
    ordered = np.sort(_finite(scores, "scores"), axis=None)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def stratified_bootstrap(
    scores: npt.ArrayLike,
    statistic: Callable[[Scores], float] = interquartile_mean,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """A statistic of several runs, and its interval by a bootstrap over the runs.

    Each task is a stratum: every resample draws as many runs as there are, with replacement, for
    each task separately. The interval is that of the percentiles of the resampled statistics. It
    knows only the spread that these runs show, so with few of them it is too narrow
    (docs/training.md has figures).

    Args:
        scores: ``(runs, tasks)`` finite numbers.
        statistic: takes ``(runs, tasks)`` float64 and returns a number.
        confidence: between 0 and 1.
        resamples: number of resamples.
        seed: of the resamples; the same seed gives the same interval.

    Raises:
        ValueError: for another shape, fewer than 2 runs, no task, a score that is not finite, or
            an impossible ``confidence`` or ``resamples``.
    """
    given = _runs(scores, "scores")
    random, resamples = _checked(confidence, resamples, seed)
    values = [statistic(_resampled(given, random)) for _ in range(resamples)]
    return _interval(statistic(given), values, confidence)


def probability_of_improvement(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """The probability that a run of ``a`` scores more than one of ``b``, on a random task.

    For each task, the share of the pairs of runs in which that of ``a`` is higher, a tie counting
    one half (Mann and Whitney's U over the number of pairs); then the mean over tasks. The
    interval is that of `stratified_bootstrap`, with the runs of both resampled. 0.5 means that
    neither is better. How much better is another question.

    Args:
        a: ``(runs, tasks)`` finite numbers.
        b: ``(runs, tasks)`` of the same tasks; the number of runs may differ.
        confidence, resamples, seed: see `stratified_bootstrap`.

    Raises:
        ValueError: see `stratified_bootstrap`; also when the numbers of tasks differ.
    """
    first, second = _runs(a, "a"), _runs(b, "b")
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"a and b must have scores of the same tasks, got {first.shape[1]} and "
            f"{second.shape[1]} tasks"
        )
    random, resamples = _checked(confidence, resamples, seed)
    values = [
        _share_higher(_resampled(first, random), _resampled(second, random))
        for _ in range(resamples)
    ]
    return _interval(_share_higher(first, second), values, confidence)


def _share_higher(a: Scores, b: Scores) -> float:
    pairs = a[:, None], b[None, :]
    return float(np.mean((np.greater(*pairs) + np.greater_equal(*pairs).astype(float)) / 2))


def _resampled(scores: Scores, random: np.random.Generator) -> Scores:
    return np.take_along_axis(scores, random.integers(len(scores), size=scores.shape), axis=0)


def _interval(value: float, resampled: list[float], confidence: float) -> Interval:
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Interval(float(value), float(low), float(high))


# ------------------------------------------------------------------------------------ input checks


def _finite(given: npt.ArrayLike, what: str) -> Scores:
    try:
        scores = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what} must be numbers in rows of the same length, got {given!r:.200}"
        ) from None
    if scores.size == 0:
        raise ValueError(f"{what} must be at least one number, got shape {scores.shape}")
    if not np.isfinite(scores).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(scores))[0])
        raise ValueError(f"{what} must be finite, got {scores[at]} at {list(at)}")
    return scores


def _runs(given: npt.ArrayLike, what: str) -> Scores:
    scores = _finite(given, what)
    if scores.ndim != 2:
        raise ValueError(
            f"{what} must have the shape (runs, tasks), with one task (runs, 1), "
            f"got shape {scores.shape}"
        )
    if len(scores) < 2:
        raise ValueError(f"{what} must have 2 or more runs to resample, got {len(scores)}")
    return scores


def _checked(confidence: float, resamples: int, seed: int) -> tuple[np.random.Generator, int]:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    if (number := operator.index(resamples)) < 1:
        raise ValueError(f"resamples must be 1 or more, got {resamples!r}")
    return np.random.default_rng(seed), number
