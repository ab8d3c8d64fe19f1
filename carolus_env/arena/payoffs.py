"""All results of a tournament as one table, and what one rating cannot say of it.

Win rates of every pair, shares of the win by composition (which agents sit together), maximal
lotteries, alpha-rank and cycles over them, and who plays well with which partner. docs/ratings.md
explains them; `carolus_env.analysis.payoff_table` has the methods.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.analysis.payoff_table import alpha_rank, cycles, maximal_lottery
from carolus_env.arena.columns import Results
from carolus_env.arena.pairing import mean_interval, pair_scores
from carolus_env.arena.seating import Plan

RESAMPLES: Final = 200
"""Of the deals, for the intervals of lotteries and alpha-ranks."""

Floats = npt.NDArray[np.float64]


def payoffs(plan: Plan, results: Results, *, ranked: bool = True) -> dict[str, Any]:
    """The table of all results, for a tournament's summary.

    Args:
        plan: of the tournament.
        results: its games, of complete deals.
        ranked: False leaves out the lottery, which needs SciPy, and alpha-rank.

    Returns:
        ``win_rates``: for each agent its win rate against each (None: they never met), and
        ``games`` their number. ``beats``: pairs of which the first's win rate is above one half,
        with 95 % confidence in all of these claims together (Bonferroni). ``cycles``: the
        shortest cycles of ``beats``, the strongest first, as ``agents`` and ``win_rates``.
        ``compositions``: `by_composition`. ``lottery`` and ``alpha_rank``: for each agent
        ``weight``, ``low`` and ``high``, its 95 % interval over resampled deals; None where not
        ranked, with fewer than three agents, or where some never met.
    """
    agents, pairs = len(plan.agents), plan.pairs
    scored = [pair_scores(results, pair, plan.team) for pair in pairs]
    evidence = _evidence(plan, results, scored)
    rates = evidence.rates(np.ones((1, evidence.deals)))[0]
    beats = np.zeros((agents, agents), dtype=bool)
    games = np.zeros((agents, agents), dtype=np.int64)
    for (i, j), (rows, scores) in zip(pairs, scored, strict=True):
        low, high = mean_interval(scores, results.deals[rows], 1 - 0.05 / len(pairs))
        beats[i, j], beats[j, i] = low > 0.5, high < 0.5
        games[i, j] = games[j, i] = len(rows)
    known = [
        [None if i == j or not games[i, j] else float(rates[i, j]) for j in range(agents)]
        for i in range(agents)
    ]
    found: dict[str, Any] = {
        "win_rates": known,
        "games": games.tolist(),
        "beats": np.argwhere(beats).tolist(),
        "cycles": [
            {"agents": list(cycle.agents), "win_rates": list(cycle.rates)}
            for cycle in cycles(beats, rates)
        ],
        "compositions": by_composition(results) if plan.rules.players == 3 else [],
        "lottery": None,
        "alpha_rank": None,
    }
    all_met = len(pairs) == agents * (agents - 1) // 2
    if ranked and agents > 2 and all_met:
        found.update(_ranks(evidence, plan.seed))
    return found


def by_composition(results: Results) -> list[dict[str, Any]]:
    """What each agent wins, by which agents sit together.

    Returns:
        For every composition that occurred: ``seats`` (the agent of each seat, ascending),
        ``games`` and ``shares``: of each ``agent`` its number of ``seats``, the mean ``share`` of
        the win of all its seats together and the 95 % interval ``ci95``. Equal agents have the
        share of their seats.
    """
    seated, where = np.unique(np.sort(results.tables, axis=1), axis=0, return_inverse=True)
    where = where.reshape(-1)  # NumPy 2.0 gave it a second axis
    found = []
    for number, seats in enumerate(seated.tolist()):
        rows = np.flatnonzero(where == number)
        shares = []
        for agent in sorted(set(seats)):
            won = (results.shares[rows] * (results.tables[rows] == agent)).sum(axis=1)
            interval = mean_interval(won, results.deals[rows])
            shares.append(
                {
                    "agent": agent,
                    "seats": seats.count(agent),
                    "share": float(won.mean()),
                    "ci95": list(interval),
                }
            )
        found.append({"seats": seats, "games": len(rows), "shares": shares})
    return found


def cycle_text(cycle: Mapping[str, Any], names: Sequence[str]) -> str:
    """A cycle in words: a beats b (60 %), b beats c (58 %), c beats a (55 %)."""
    agents = cycle["agents"]
    links = zip(agents, agents[1:] + agents[:1], cycle["win_rates"], strict=True)
    return ", ".join(f"{names[i]} beats {names[j]} ({100 * rate:.0f} %)" for i, j, rate in links)


# ------------------------------------------------------------------------------------ partners


def partners(plan: Plan, results: Results, elo: Floats | None = None) -> dict[str, Any] | None:
    """Who plays well with whom, for a tournament's summary.

    Args:
        plan: of the tournament.
        results: its games, of complete deals.
        elo: ``(A,)`` ratings; None: nothing is expected.

    Returns:
        ``teams``: of every team that played its ``pair`` of agents, ``games``, ``win_rate``,
        ``ci95``, and the win rate ``expected`` by the ratings (None without). ``agents``: of each
        agent the ``games``, ``win_rate`` and ``ci95`` with other agents as partners, without
        games in which it sits on both teams. None if no partners were different agents.
    """
    if plan.rules.players != 4:
        return None
    of_team = np.array(plan.team)
    members = np.stack([np.sort(results.tables[:, of_team == t], axis=1) for t in (0, 1)], axis=1)
    if (members[..., 0] == members[..., 1]).all():
        return None
    won = np.stack([results.shares[:, of_team == t].sum(axis=1) for t in (0, 1)], axis=1)
    chance = None
    if elo is not None:
        strength = elo[members].mean(axis=2)
        chance = 1 / (1 + 10 ** ((strength[:, ::-1] - strength) / 400))

    def counted(sits: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """The games in which a team, ``(G, 2)``, is the one; not those of it against itself."""
        rows, team = np.nonzero(sits & ~sits.all(axis=1, keepdims=True))
        if not len(rows):
            return {"games": 0, "win_rate": None, "ci95": None, "expected": None}
        wins = won[rows, team]
        return {
            "games": len(rows),
            "win_rate": float(wins.mean()),
            "ci95": list(mean_interval(wins, results.deals[rows])),
            "expected": None if chance is None else float(chance[rows, team].mean()),
        }

    agents = range(len(plan.agents))
    teams = [
        {"pair": [i, j], **counted((members == (i, j)).all(axis=2))}
        for i, j in itertools.combinations_with_replacement(agents, 2)
    ]
    unlike = members[..., 0] != members[..., 1]
    alone = [{**counted((members == k).any(axis=2) & unlike)} for k in agents]
    return {"teams": [team for team in teams if team["games"]], "agents": alone}


# ------------------------------------------------------------------------------------ resamples


class _Evidence(NamedTuple):
    """Shares of the win, deal by deal: ``P`` pairs, ``n`` seats of a game, ``K = n - 1``.

    A game of two agents with ``k`` of the ``n`` seats for the first is counted at ``k - 1``.
    Where other agents sit too, ``n`` is 2 and the pair's scores stand for shares.
    """

    pairs: npt.NDArray[np.int64]  # (P, 2)
    shares: Floats  # (P, K, D): sums of the first agent's shares
    games: Floats  # (P, K, D)
    agents: int

    @property
    def deals(self) -> int:
        return self.shares.shape[2]

    @property
    def seats(self) -> int:
        return self.shares.shape[1] + 1

    def means(self, weights: Floats, generator: np.random.Generator | None = None) -> Floats:
        """The first agents' mean shares for each weighting of the deals.

        Args:
            weights: ``(B, D)``.
            generator: draws the prior, one virtual deal of equal agents; None: no prior.

        Returns:
            ``(B, P, K)``.
        """
        won, games = self.shares @ weights.T, self.games @ weights.T  # (P, K, B)
        if generator is not None:
            # As in `ratings`: with it a perfect score has an interval with a width.
            mine = np.arange(1, self.seats)[:, None] / self.seats
            size = self.games.sum(axis=2) / (self.games > 0).sum(axis=2)
            first = generator.standard_gamma(np.broadcast_to(mine, won.shape)) * size[..., None]
            second = generator.standard_gamma(np.broadcast_to(1 - mine, won.shape))
            won, games = won + first, games + first + second * size[..., None]
        return np.moveaxis(won / games, 2, 0)

    def rates(self, weights: Floats, generator: np.random.Generator | None = None) -> Floats:
        """Win rates for each weighting, ``(B, A, A)``; one half between those who never met."""
        return self._rates(self.means(weights, generator))

    def both(self, weights: Floats, generator: np.random.Generator | None) -> tuple[Any, Any]:
        """Win rates, and payoffs for `alpha_rank`, from the same draws."""
        means = self.means(weights, generator)
        i, j = self.pairs.T
        n = self.seats
        payoff = np.full((len(means), self.agents, self.agents, n - 1), 1 / n)
        mine = np.arange(1, n)
        payoff[:, i, j] = means / mine
        payoff[:, j, i] = ((1 - means) / (n - mine))[..., ::-1]
        return self._rates(means), payoff

    def _rates(self, means: Floats) -> Floats:
        found = np.full((len(means), self.agents, self.agents), 0.5)
        i, j = self.pairs.T
        found[:, i, j] = means.mean(axis=2)
        found[:, j, i] = 1 - means.mean(axis=2)
        return found


def _evidence(
    plan: Plan,
    results: Results,
    scored: Sequence[tuple[npt.NDArray[np.int64], Floats]],
) -> _Evidence:
    """Of the games and scores of each of the plan's pairs (`pair_scores`)."""
    players = plan.rules.players
    numbers, deal = np.unique(results.deals, return_inverse=True)
    alone = players == 3 and all(len(meeting.agents) == 2 for meeting in plan.meetings)
    sizes = players - 1 if alone else 1
    shape = (len(plan.pairs), sizes, len(numbers))
    won, games = np.zeros(shape), np.zeros(shape)
    for place, (pair, (rows, scores)) in enumerate(zip(plan.pairs, scored, strict=True)):
        held = (results.tables[rows] == pair[0]).sum(axis=1) - 1 if alone else np.zeros_like(rows)
        np.add.at(won[place], (held, deal[rows]), scores)
        np.add.at(games[place], (held, deal[rows]), 1)
    return _Evidence(np.array(plan.pairs), won, games, len(plan.agents))


def _ranks(evidence: _Evidence, seed: int) -> dict[str, Any]:
    """Lottery and alpha-rank with intervals: a Bayesian bootstrap over deals (Rubin 1981)."""
    generator = np.random.default_rng(seed)
    drawn = generator.standard_exponential((RESAMPLES, evidence.deals))
    best = evidence.both(np.ones((1, evidence.deals)), None)
    samples = evidence.both(drawn, generator)

    def lotteries(rates: Floats) -> Floats:
        return np.stack([maximal_lottery(rate - 0.5) for rate in rates])

    def told(point: Floats, values: Floats) -> list[dict[str, float]]:
        low, high = np.quantile(values, [0.025, 0.975], axis=0)
        ends = zip(point, np.minimum(low, point), np.maximum(high, point), strict=True)
        return [dict(zip(("weight", "low", "high"), map(float, row), strict=True)) for row in ends]

    return {
        "lottery": told(lotteries(best[0])[0], lotteries(samples[0])),
        "alpha_rank": told(alpha_rank(best[1])[0], alpha_rank(samples[1])),
    }
