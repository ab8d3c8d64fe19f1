"""Ratings: one number for each agent, from all games at once, with intervals.

A team's strength is the mean of its members' ratings. A team wins with probability proportional
to ``exp(strength)``: the model of Bradley and Terry (Biometrika 39, 1952) for two teams, and
Luce's choice axiom (Individual Choice Behavior, 1959) for three. A shared win counts for each team
by its share. An agent on two seats of a game plays for both.

Games of one deal share set-up and dice, so they are not independent evidence: what counts is the
number of deals.

The prior keeps ratings finite where an agent has won or lost everything. It is about one virtual,
drawn deal for each agent. A *line-up* is who plays with and against whom, regardless of seats. Each
line-up gets ``1 / (fewest line-ups in which one of its agents plays)`` of a virtual deal, which all
its teams share and which is as long as the real deals of that line-up. Agents whose ratings are
given need no prior, and do not count here.

Intervals come from the Bayesian bootstrap over deals (Rubin, Annals of Statistics 9, 1981): every
refit gives each deal a random weight, the same for all its games. The weights are Dirichlet
distributed, with parameter 1 for each deal; a virtual deal's parameter is divided among the
outcomes "this team wins". So the prior's outcomes vary too, and an interval has a width even at
100 % wins, where the usual bootstrap (which resamples deals and never sees a loss) has none. For
two agents and one game a deal, the win rate behind the ratings has the Beta distribution of
Jeffreys's interval (Brown, Cai and DasGupta, Statistical Science 16, 2001).

The fit is Newton's method on many refits at once. A team has few members, so line-ups are lists of
agents, not rows of a matrix: memory grows with the games and with the square of the agents.
Libraries for such models (choix, openskill) do
not support weights, ties, teams or an agent on two seats, and would fit a thousand times in turn.
The tests compare with choix.

    >>> ratings = rate(results.tables, results.shares, team, deals, agents=3, anchor=2)
    >>> ratings.elo, ratings.low, ratings.high
    >>> ratings.difference(0, 1), ratings.stronger(0, 1)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.evaluation.seating import seatings_array
from carolus_env.system.arrays import F64, I64
from carolus_env.system.options import whole_number, whole_numbers

ELO: Final = 400 / math.log(10)
"""Elo points in a logit: 400 points are odds of 10 to 1."""

MOST_AGENTS: Final = 1000
MOST_BOOTSTRAPS: Final = 100_000

_LEAST: Final = 1e-6  # weight of a virtual win; less would be lost in rounding
_DRAWN: Final = 2**22  # random numbers drawn at once; another number gives other intervals
_CELLS: Final = 2**20  # numbers in the largest array of the refits that are fitted at once


class RatingsError(ValueError):
    """The games do not determine ratings; the text says why."""


@dataclass(frozen=True)
class Ratings:
    """Ratings of ``A`` agents on the Elo scale, with intervals."""

    elo: F64
    """``(A,)``: 0 for the anchor; without an anchor the mean is 0."""
    low: F64
    """``(A,)``: lower end of the 95 % interval."""
    high: F64
    """``(A,)``: upper end. Both ends of the anchor's interval are 0."""
    samples: F64
    """``(bootstraps, A)``: the ratings of every refit."""
    deals: int
    """Number of deals; with fewer than about 50 the intervals are a little too narrow."""

    def difference(self, i: int, j: int) -> tuple[float, float, float]:
        """Return agent ``i``'s rating less agent ``j``'s, and its 95 % interval (low, high).

        The interval is narrower than those of the two agents suggest: what they share cancels.

        Raises:
            IndexError: when there is no such agent.
        """
        i, j = self._agent(i), self._agent(j)
        low, high = _interval(self.samples[:, i] - self.samples[:, j])
        return float(self.elo[i] - self.elo[j]), float(low), float(high)

    def stronger(self, i: int, j: int) -> float:
        """Return the probability that agent ``i`` is stronger than ``j``, a fraction of refits.

        Raises:
            IndexError: when there is no such agent.
        """
        ahead = self.samples[:, self._agent(i)] - self.samples[:, self._agent(j)]
        return float(np.mean((ahead > 0) + 0.5 * (ahead == 0)))

    def of(self, agent: int) -> dict[str, float]:
        """Return an agent's rating for a tournament's summary: elo, low, high.

        Raises:
            IndexError: when there is no such agent.
        """
        k = self._agent(agent)
        return {name: float(getattr(self, name)[k]) for name in ("elo", "low", "high")}

    def _agent(self, number: int) -> int:
        if not 0 <= number < len(self.elo):
            raise IndexError(f"agents are 0 to {len(self.elo) - 1}, got {number}")
        return number


def rate(
    tables: npt.ArrayLike,
    shares: npt.ArrayLike,
    team: npt.ArrayLike,
    deals: npt.ArrayLike,
    agents: int,
    *,
    anchor: int | None = None,
    fixed: Mapping[int, float] | None = None,
    prior: float = 1.0,
    seed: int = 0,
    bootstraps: int = 1000,
) -> Ratings:
    """Rate all agents by all games.

    Args:
        tables: ``(G, players)`` whole numbers: the agent at each seat.
        shares: ``(G, players)``: each seat's win share; rows sum to 1. In a game that was
            cut off every team has the same share.
        team: ``(players,)`` whole numbers: the team of each seat; all teams of the same size.
        deals: ``(G,)`` whole numbers: games of the same number share set-up and dice.
        agents: number of agents, 2 to 1,000.
        anchor: the agent whose rating is 0; None: the mean is 0.
        fixed: ratings that are given, by agent, in Elo points; the others are on their scale.
        prior: virtual deals for each agent, more than 0.
        seed: seed of the bootstrap, 0 to 2^64 - 1. The same seed gives the same intervals.
        bootstraps: number of refits, 100 to 100,000.

    Raises:
        RatingsError: when no games connect some of the agents; the text names the groups.
        ValueError: for impossible values; the text names them.
    """
    games = _checked(tables, shares, team, deals, agents)
    for name, value, low, high in (
        ("anchor", anchor, 0, agents - 1),
        ("seed", seed, 0, 2**64 - 1),
        ("bootstraps", bootstraps, 100, MOST_BOOTSTRAPS),
    ):
        if not (name == "anchor" and value is None):
            whole_number(name, value, low, high)
    given = np.full(agents, np.nan)
    for agent, elo_given in (fixed or {}).items():
        given[whole_number("fixed", agent, 0, agents - 1)] = elo_given / ELO
    if fixed and (anchor is not None or not np.isnan(given).any()):
        raise ValueError("fixed ratings leave an agent free, and need no anchor")

    evidence = _evidence(games, agents, np.isnan(given))
    _check_connected(evidence, agents)

    def scaled(logits: F64) -> F64:
        if fixed:
            return ELO * logits
        zero = logits.mean(axis=1) if anchor is None else logits[:, anchor]
        return ELO * (logits - zero[:, None])

    lineups, teams, _ = evidence.members.shape
    drawn = np.repeat(prior * evidence.virtual[:, None] / teams, teams, axis=1)  # (K, T)
    best = np.where(np.isnan(given), given[~np.isnan(given)].mean() if fixed else 0.0, given)[None]
    best = _fit(evidence, np.ones((1, evidence.deals)), drawn[None], best)
    generator = np.random.default_rng(seed)
    at_once = max(1, _DRAWN // max(evidence.deals, lineups * teams * agents))
    largest = max(evidence.deals, len(evidence.cells.deals), evidence.pairs.size, agents**2)
    chunk = max(1, _CELLS // largest)
    refits = []
    for start in range(0, bootstraps, at_once):
        n = min(at_once, bootstraps - start)
        weights = generator.standard_exponential((n, evidence.deals))
        outcomes = generator.standard_gamma(drawn, (n, lineups, teams))
        outcomes = np.maximum(outcomes, _LEAST * (drawn > 0))
        for part in (slice(first, first + chunk) for first in range(0, n, chunk)):
            refits.append(_fit(evidence, weights[part], outcomes[part], best))
    elo, samples = scaled(best)[0], scaled(np.concatenate(refits))
    low, high = _interval(samples)
    return Ratings(elo=elo, low=low, high=high, samples=samples, deals=evidence.deals)


def _interval(samples: F64) -> tuple[Any, Any]:
    low, high = np.quantile(samples, [0.025, 0.975], axis=0)
    return low, high


# ------------------------------------------------------------------------------------ evidence


class _Games(NamedTuple):
    """Games, team by team: ``G`` games, ``T`` teams of ``M`` members each."""

    members: I64  # (G, T, M): agents
    shares: F64  # (G, T): of the win
    deals: I64  # (G,)


class _Cells(NamedTuple):
    """Games of one deal and line-up, added up: ``C`` cells, line-up by line-up."""

    deals: I64  # (C,)
    wins: F64  # (C, T): of each team
    starts: I64  # (K,): first cell of each line-up


class _Evidence(NamedTuple):
    """Inputs of the fit: ``K`` line-ups of ``T`` teams of ``M`` members each, ``D`` deals."""

    members: I64  # (K, T, M): agents
    pairs: I64  # (K, T M, T M): number of each pair of a line-up's agents, first A + second
    free: npt.NDArray[np.bool_]  # (A,): the agents to be rated
    cells: _Cells
    virtual: F64  # (K,): the prior, in deals
    length: F64  # (K,): games of a line-up in a deal that has any
    deals: int


def _evidence(games: _Games, agents: int, free: npt.NDArray[np.bool_]) -> _Evidence:
    members, shares, _ = games
    _, teams, size = members.shape
    digits = agents ** np.arange(size)
    codes = (np.sort(members, axis=2) * digits).sum(axis=2)
    order = np.argsort(codes, axis=1, kind="stable")
    shares = np.take_along_axis(shares, order, axis=1)
    lineups, lineup = np.unique(np.sort(codes, axis=1), axis=0, return_inverse=True)
    lineup = lineup.reshape(-1)  # NumPy 2.0 gave it a second axis
    sitting = lineups[..., None] // digits % agents  # (K, T, M)

    numbers, deal = np.unique(games.deals, return_inverse=True)
    keys, cell = np.unique(lineup * len(numbers) + deal, return_inverse=True)
    cell_lineup, cell_deal = np.divmod(keys, len(numbers))
    wins = [np.bincount(cell.reshape(-1), shares[:, team], len(keys)) for team in range(teams)]
    cells_of = np.bincount(cell_lineup, minlength=len(lineups))

    informs = (lineups != lineups[:, :1]).any(axis=1)  # not all teams are the same
    seats = sitting.reshape(len(lineups), -1)
    plays = np.unique((np.arange(len(lineups))[:, None] * agents + seats)[informs]) % agents
    often = np.where(free, np.bincount(plays, minlength=agents), np.inf)
    return _Evidence(
        members=sitting,
        pairs=seats[:, :, None] * agents + seats[:, None, :],
        free=free,
        cells=_Cells(cell_deal, np.stack(wins, axis=1), np.cumsum(cells_of) - cells_of),
        virtual=informs / np.maximum(often[seats].min(axis=1), 1),
        length=np.bincount(lineup) / cells_of,
        deals=len(numbers),
    )


def _check_connected(evidence: _Evidence, agents: int) -> None:
    """Refuse games that do not determine the difference of two ratings."""
    _, teams, size = evidence.members.shape
    # A team's strength less the mean of all teams, as coefficients of the seats' ratings.
    less = (np.eye(teams) - 1 / teams).repeat(size, axis=1) / size  # (T, T M)
    weights = np.broadcast_to(less.T @ less, evidence.pairs.shape)
    compared = np.bincount(evidence.pairs.ravel(), weights.ravel(), agents**2)
    compared = compared.reshape(agents, agents) + np.diag(1.0 * ~evidence.free)
    values, vectors = np.linalg.eigh(compared)
    # Ratings are free to move along these; agents that always move together are a group.
    open_ = vectors[:, values < 1e-9 * values[-1]] if values[-1] > 0 else vectors
    groups: list[list[int]] = []
    left = np.ones(agents, np.bool_)
    while left.any():
        group = left & (np.abs(open_ - open_[left.argmax()]).max(axis=1, initial=0) < 1e-6)
        groups.append(np.flatnonzero(group).tolist())
        left &= ~group
    if len(groups) > 1:
        raise RatingsError(
            "no games compare these groups of agents with each other: "
            + " and ".join(map(str, groups))
        )


# ------------------------------------------------------------------------------------ the fit


def _fit(evidence: _Evidence, weights: F64, outcomes: F64, start: F64) -> F64:
    """Fit the most likely ratings in logits, ``(B, A)``, for ``B`` weightings of the deals.

    Newton's method, with each step multiplied by ``log(1 + d) / d``, where ``d`` is the step's
    range. The third derivative of these likelihoods is at most ``d`` times the second, so every
    step improves the likelihood, and the last ones converge quadratically (Sun and Tran-Dinh,
    Mathematical Programming 178, 2019).

    Args:
        evidence: ``K`` line-ups, ``T`` teams, ``D`` deals, ``A`` agents.
        weights: ``(B, D)`` weights of the deals.
        outcomes: ``(B, K, T)`` virtual deals that each team wins.
        start: ``(1, A)`` initial ratings; those that are not free stay.

    Raises:
        ArithmeticError: when it does not converge, which cannot happen with weights above 0.
    """
    free, (_, teams, size) = evidence.free, evidence.members.shape
    refits, agents = len(weights), start.shape[1]
    row = np.arange(refits)[:, None]

    def by_agent(values: F64) -> F64:
        """Add up what teams ``(B, K, T)`` bring to their members: ``(B, A)``."""
        seats = np.repeat(values / size, size, axis=2).reshape(refits, -1)
        places = row * agents + evidence.members.reshape(1, -1)
        summed = np.bincount(places.ravel(), seats.ravel(), refits * agents)
        return np.asarray(summed.reshape(refits, agents), np.float64)

    of_cells = weights[:, evidence.cells.deals]
    wins = np.stack(
        [
            np.add.reduceat(of_cells * evidence.cells.wins[:, team], evidence.cells.starts, axis=1)
            for team in range(teams)
        ],
        axis=2,
    )  # (B, K, T)
    wins += outcomes * evidence.length[:, None]
    won, games = by_agent(wins), wins.sum(axis=2)
    same = np.kron(np.eye(teams), np.ones((size, size)))  # (T M, T M): of one team

    logits = np.repeat(start, refits, axis=0)
    for _ in range(500):
        power = logits[:, evidence.members].mean(axis=3)
        power = np.exp(power - power.max(axis=2, keepdims=True))
        probability = power / power.sum(axis=2, keepdims=True)
        gradient = won - by_agent(games[..., None] * probability)
        seat = np.repeat(probability / size, size, axis=2)
        parts = same * seat[..., None] / size - seat[..., None] * seat[..., None, :]
        parts *= games[..., None, None]
        places = row * agents**2 + evidence.pairs.reshape(1, -1)
        curvature = np.bincount(places.ravel(), parts.ravel(), refits * agents**2)
        curvature = curvature.reshape(refits, agents, agents)
        if free.all():
            # Shifting all ratings changes nothing and the gradient has no such component, so this
            # term, which makes the matrix regular, may have any size.
            curvature += games.sum(axis=1)[:, None, None] / agents
        step = np.zeros_like(logits)
        step[:, free] = np.linalg.solve(curvature[:, free][:, :, free], gradient[:, free, None])[
            ..., 0
        ]
        d = np.ptp(step, axis=1, keepdims=True)
        logits += step * (np.log1p(d) / np.maximum(d, 1e-300))
        if d.max() < 1e-4:  # converged: the next step would be about 1e-8
            return logits
    raise ArithmeticError(f"the ratings did not converge: the last step was {d.max():.3g} logits")


# ------------------------------------------------------------------------------------ input


def _checked(
    tables: npt.ArrayLike,
    shares: npt.ArrayLike,
    team: npt.ArrayLike,
    deals: npt.ArrayLike,
    agents: int,
) -> _Games:
    whole_number("agents", agents, 2, MOST_AGENTS)
    seats, parts = seatings_array(tables, agents), np.asarray(shares)
    games, players = seats.shape
    if games == 0:
        raise ValueError("no game to rate by: tables are empty")
    teams = whole_numbers("team", team, (players,))
    deal_of = whole_numbers("deals", deals, (games,))
    sizes = np.unique(teams, return_counts=True)[1]
    if len(sizes) < 2 or len(set(sizes.tolist())) > 1:
        raise ValueError(f"team must be two or more teams of the same size, got {teams.tolist()}")
    if parts.dtype.kind not in "iuf" or parts.shape != seats.shape:
        raise ValueError(
            f"shares must be numbers of the tables' shape {seats.shape}, "
            f"got shape {parts.shape} and dtype {parts.dtype}"
        )
    wrong = ~((parts >= 0).all(axis=1) & (np.abs(parts.sum(axis=1) - 1) < 1e-6))
    if wrong.any():
        game = int(wrong.argmax())
        raise ValueError(
            f"shares of a game must be 0 or more and sum to 1, got {parts[game].tolist()} "
            f"in game {game}"
        )
    by_team = np.argsort(teams, kind="stable")
    by_game = (games, len(sizes), int(sizes[0]))
    return _Games(
        members=seats[:, by_team].reshape(by_game),
        shares=parts[:, by_team].reshape(by_game).sum(axis=2, dtype=np.float64),
        deals=deal_of,
    )
