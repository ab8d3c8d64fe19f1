"""Ratings: one number for each agent, from all games at once, with intervals.

The model is that of Bradley and Terry (Biometrika 39, 1952): each seat's strength is
``exp(rating)`` of its agent, and an agent wins with probability proportional to the strength of its
seats. A *line-up* is two agents and how many seats each has. Of a virtual, drawn deal, the prior,
it gets ``1 / (fewest line-ups of one of its agents)``; agents with given ratings do not count here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.evaluation.schedules import seatings_array
from carolus_env.system.arrays import F64, I64
from carolus_env.system.options import number, whole_number, whole_numbers

ELO: Final = 400 / math.log(10)  # Elo points in a logit: 400 points are odds of 10 to 1
ANCHOR: Final = "planner"  # whose rating is 0 on the ladder, and in tournaments where it plays
MOST_AGENTS: Final = 1000
MOST_BOOTSTRAPS: Final = 100_000
MOST_ELO: Final = 100_000.0  # largest absolute value of a rating that is given
_LEAST: Final = 1e-6  # weight of a virtual win; less would be lost in rounding
_CELLS: Final = 2**20  # numbers in the largest array of the refits that are fitted at once
_Flags = npt.NDArray[np.bool_]


class RatingsError(ValueError):
    """The games do not determine ratings; the text says why."""


@dataclass(frozen=True)
class Ratings:
    """Ratings of ``A`` agents on the Elo scale, with 95 % intervals."""

    elo: F64  # ``(A,)``: 0 for the anchor; without an anchor the mean is 0
    low: F64  # ``(A,)``: lower end of the interval; 0 for the anchor, as is the upper one
    high: F64  # ``(A,)``: upper end
    bounds: tuple[str, ...]
    """What the games say of each agent without the prior: ``""``, its rating; ``below`` or
    ``above``, only that it is below ``high`` or above ``low``; ``unknown``, nothing. Compared with
    the anchor, else with the largest group of agents that are tied together."""
    samples: F64  # ``(bootstraps, A)``: the ratings of every refit
    deals: int  # with fewer than about 50 the intervals are a little too narrow

    def difference(self, i: int, j: int) -> tuple[float, float, float]:
        """Return agent ``i``'s rating less agent ``j``'s, and its 95 % interval (low, high).

        The interval is narrower than those of the two agents suggest: what they share cancels.
        """
        low, high = _interval(self.samples[:, i] - self.samples[:, j])
        return float(self.elo[i] - self.elo[j]), float(low), float(high)

    def stronger(self, i: int, j: int) -> float:
        """Return the probability that agent ``i`` is stronger than ``j``, a fraction of refits."""
        ahead = self.samples[:, i] - self.samples[:, j]
        return float(np.mean((ahead > 0) + 0.5 * (ahead == 0)))

    def of(self, agent: int) -> dict[str, Any]:
        """Return an agent's rating as plain values: elo, low, high, bound."""
        numbers = {name: float(getattr(self, name)[agent]) for name in ("elo", "low", "high")}
        return {**numbers, "bound": self.bounds[agent]}


def rating_text(rating: Mapping[str, Any]) -> str:
    """Return a rating (`Ratings.of`) and its interval, or the one end that the games support."""
    point, low, high = (round(rating[key]) for key in ("elo", "low", "high"))
    ends = {"": f"{point} [{low}, {high}]", "below": f"below {high}", "above": f"above {low}"}
    return ends.get(rating["bound"], rating["bound"])


def rate(
    tables: npt.ArrayLike,
    shares: npt.ArrayLike,
    deals: npt.ArrayLike,
    agents: int,
    *,
    anchor: int | None = None,
    fixed: Mapping[int, float] | None = None,
    prior: float = 1.0,
    seed: int = 0,
    bootstraps: int = 1000,
) -> Ratings:
    """Rate ``agents`` agents by all games.

    ``tables`` ``(G, players)`` name the agent at each seat, two in each game; rows of ``shares``,
    of the same shape, sum to 1; games of the same number in ``deals`` ``(G,)`` share set-up and
    dice. ``fixed`` ratings are given, in Elo points; the others are on their scale. ``prior`` is
    in virtual deals for each agent, 0.1 or more: refits draw less than that as nothing.

    Intervals come from the Bayesian bootstrap over deals (Rubin, Annals of Statistics 9, 1981):
    every refit gives each deal a random weight, the same for all its games. The weights are
    Dirichlet distributed, with parameter 1 for each deal; a virtual deal's parameter is divided
    among its seats. So the prior varies too, and an interval has a width even at 100 % wins.

    Raises:
        RatingsError: when no games connect some of the agents; the text names the groups.
    """
    whole_number("agents", agents, 2, MOST_AGENTS)
    whole_number("seed", seed, 0, 2**64 - 1)
    whole_number("bootstraps", bootstraps, 100, MOST_BOOTSTRAPS)
    number("prior", prior, 0.1, 1e3)
    if anchor is not None:
        whole_number("anchor", anchor, 0, agents - 1)
    given = np.full(agents, np.nan)
    for agent, value in (fixed or {}).items():
        k = whole_number("fixed", agent, 0, agents - 1)
        given[k] = number(f"fixed[{agent}]", value, -MOST_ELO, MOST_ELO) / ELO
    free = np.isnan(given)
    if fixed and (anchor is not None or not free.any()):
        raise ValueError("fixed ratings leave an agent free, and need no anchor")
    evidence = _evidence(tables, shares, deals, agents, free)
    bounds, reference = _bounds(evidence, anchor)
    start = np.where(free, 0.0 if free.all() else given[~free].mean(), given)[None]
    virtual = prior * evidence.virtual
    best = _fit(evidence, np.ones((1, evidence.deals)), virtual[None], start)
    generator, fits = np.random.default_rng(seed), [best]
    at_once = max(1, _CELLS // max(evidence.deals, len(evidence.deal), agents**2))
    for first in range(0, bootstraps, at_once):
        n = min(at_once, bootstraps - first)
        weights = generator.standard_exponential((n, evidence.deals))
        drawn = generator.standard_gamma(virtual, (n, *virtual.shape))
        fits.append(_fit(evidence, weights, np.maximum(drawn, _LEAST * (virtual > 0)), best))
    logits = np.concatenate(fits)
    zero = 0.0 if fixed else logits[:, reference].mean(axis=1, keepdims=True)
    elo, samples = np.split(ELO * (logits - zero), [1])
    low, high = _interval(samples)
    return Ratings(elo[0], low, high, bounds, samples, evidence.deals)


def _interval(samples: F64) -> Any:
    return np.quantile(samples, [0.025, 0.975], axis=0)


class _Evidence(NamedTuple):
    """Inputs of the fit: ``K`` line-ups of two agents, ``C`` sums of one's games in a deal."""

    pair: I64  # (2, K): the agents of each line-up, ascending
    seats: I64  # (2, K): their seats
    free: _Flags  # (A,): the agents to be rated
    deal: I64  # (C,): line-up by line-up
    wins: F64  # (C, 2): of each agent, in games
    starts: I64  # (K,): first sum of each line-up
    virtual: F64  # (K, 2): the prior, in deals that each agent wins
    length: F64  # (K,): games of a line-up in a deal that has any
    deals: int


def _evidence(
    tables: npt.ArrayLike, shares: npt.ArrayLike, deals: npt.ArrayLike, agents: int, free: _Flags
) -> _Evidence:
    """Check the games and add them up."""
    seated, parts = seatings_array(tables, agents), np.asarray(shares)
    games, players = seated.shape
    if games == 0:
        raise ValueError("no game to rate by: tables are empty")
    numbers, deal = np.unique(whole_numbers("deals", deals, (games,)), return_inverse=True)
    if parts.dtype.kind not in "iuf" or parts.shape != seated.shape:
        raise ValueError(
            f"shares must be numbers of the tables' shape {seated.shape}, "
            f"got shape {parts.shape} and dtype {parts.dtype}"
        )
    first, last = seated.min(axis=1), seated.max(axis=1)
    of = np.stack([seated == first[:, None], seated == last[:, None]])  # (2, G, players)
    summed = (parts >= 0).all(axis=1) & (np.abs(parts.sum(axis=1) - 1) < 1e-6)
    two = (first < last) & (of[0] | of[1]).all(axis=1)
    for name, right, expected, column in (
        ("shares of a game", summed, "be 0 or more and sum to 1", parts),
        ("a game", two, "have two agents", seated),
    ):
        if not right.all():
            game = int(right.argmin())
            raise ValueError(f"{name} must {expected}, got {column[game].tolist()} in game {game}")
    keys = np.stack([first, last, of[0].sum(axis=1)])
    lineups, lineup = np.unique(keys, axis=1, return_inverse=True)
    lineup = lineup.reshape(-1)  # NumPy 2.0 has another shape
    keys, cell = np.unique(lineup * len(numbers) + deal, return_inverse=True)
    cell_lineup, cell_deal = np.divmod(keys, len(numbers))
    cells_of = np.bincount(cell_lineup)
    pair, seats = lineups[:2], np.stack([lineups[2], players - lineups[2]])
    often = np.where(free, np.bincount(pair.ravel(), minlength=agents), np.inf)
    wins = [np.bincount(cell, won) for won in (parts * of).sum(axis=2)]
    return _Evidence(
        pair=pair,
        seats=seats,
        free=free,
        deal=cell_deal,
        wins=np.stack(wins, axis=1),
        starts=np.cumsum(cells_of) - cells_of,
        virtual=(seats / players / np.maximum(often[pair].min(axis=0), 1)).T,
        length=np.bincount(lineup) / cells_of,
        deals=len(numbers),
    )


def _bounds(evidence: _Evidence, anchor: int | None) -> tuple[tuple[str, ...], _Flags]:
    """Return `Ratings.bounds`, and the agents whose mean is 0, ``(A,)``.

    Two agents are tied together where each took points from the other, or from agents that are tied
    to it (Ford, American Mathematical Monthly 64, 1957); only the prior compares others.
    """
    given = ~evidence.free
    points = np.eye(len(given), dtype=np.bool_) | (given[:, None] & given)
    for side in (0, 1):  # who took points from whom
        scored = np.add.reduceat(evidence.wins[:, side], evidence.starts) > 0
        points[evidence.pair[side, scored], evidence.pair[1 - side, scored]] = True
    groups = np.unique(_closure(points | points.T), axis=0)[::-1]
    if len(groups) > 1:
        named = " and ".join(str(np.flatnonzero(group).tolist()) for group in groups)
        raise RatingsError(f"no games compare these groups of agents with each other: {named}")
    reach = _closure(points)
    tied = reach & reach.T
    centre = given.argmax() if given.any() else tied.sum(axis=1).argmax()
    reference = tied[centre] if anchor is None else np.arange(len(given)) == anchor
    centre = centre if anchor is None else anchor
    words = {(True, True): "", (False, True): "below", (True, False): "above"}
    sides = zip(reach[:, centre].tolist(), reach[centre].tolist(), strict=True)
    return tuple(words.get(side, "unknown") for side in sides), reference


def _closure(relation: _Flags) -> _Flags:
    """Return who is reached from whom in any number of steps, ``(A, A)``."""
    while True:
        steps = relation.astype(np.float32)
        further = steps @ steps > 0
        if np.array_equal(further, relation):
            return relation
        relation = further


def _fit(evidence: _Evidence, weights: F64, virtual: F64, start: F64) -> F64:
    """Fit the most likely ratings in logits, ``(B, A)``, for ``B`` weightings of the deals.

    ``weights`` are ``(B, D)``, those of ``virtual`` deals that each agent wins ``(B, K, 2)``;
    ``start`` are ``(1, A)`` ratings, of which those that are not free stay. Newton's method, with
    each step multiplied by ``log(1 + d) / d``, where ``d`` is its range: so every step improves the
    likelihood (Sun and Tran-Dinh, Mathematical Programming 178, 2019).
    """
    (first, last), free, agents = evidence.pair, evidence.free, start.shape[1]
    sums = weights[:, evidence.deal, None] * evidence.wins
    wins = np.add.reduceat(sums, evidence.starts, axis=1)  # (B, K, 2)
    wins += virtual * evidence.length[:, None]
    games, odds = wins.sum(axis=2), np.log(evidence.seats[0] / evidence.seats[1])
    # Line-ups of the same seats have different pairs, so they can be added by index.
    alike = [np.flatnonzero(evidence.seats[0] == seats) for seats in np.unique(evidence.seats[0])]

    def by_pair(values: F64) -> F64:
        """Return the values of line-ups ``(B, K)`` by their agents: ``(B, A, A)``."""
        result = np.zeros((len(values), agents, agents))
        for rows in alike:
            result[:, first[rows], last[rows]] += values[:, rows]
        return result

    logits, diagonal = np.repeat(start, len(weights), axis=0), np.arange(agents)
    for _ in range(500):
        expected = 1 / (1 + np.exp(logits[:, last] - logits[:, first] - odds))
        surplus = by_pair(wins[:, :, 0] - games * expected)
        gradient = surplus.sum(axis=2) - surplus.sum(axis=1)
        curvature = -by_pair(games * expected * (1 - expected))
        curvature += curvature.transpose(0, 2, 1)
        curvature[:, diagonal, diagonal] = -curvature.sum(axis=2)
        if free.all():
            # Shifting all ratings changes nothing and the gradient has no such component, so this
            # term, which makes the matrix regular, may have any size.
            curvature += games.sum(axis=1)[:, None, None] / agents
        step = np.zeros_like(logits)
        within = curvature[:, free][:, :, free]
        step[:, free] = np.linalg.solve(within, gradient[:, free, None])[..., 0]
        d = np.ptp(step, axis=1, keepdims=True)
        logits += step * (np.log1p(d) / np.maximum(d, 1e-300))
        if d.max() < 1e-4:  # converged: the next step would be about 1e-8
            return logits
    raise ArithmeticError(f"the ratings did not converge: the last step was {d.max():.3g} logits")
