"""The summary of a tournament: plain values, which are printed, reported and kept as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from carolus_env.evaluation import ladder, sequential
from carolus_env.evaluation.games import Results
from carolus_env.evaluation.pairing import PairingResult, count_ends, deal_scores, pairing_result
from carolus_env.evaluation.ratings import Ratings, rate
from carolus_env.evaluation.seating import Plan
from carolus_env.system.machine import machine, versions

Summary = Mapping[str, Any]
"""A summary as `summary` makes it, or as it was read from ``summary.json``."""


def complete_deals(plan: Plan, results: Results) -> Results:
    """Return the games of the deals that all pairs have played in all seatings, ``(D, K, S)``."""
    deals = len(results) // plan.games_per_deal
    shape = deals, len(plan.pairs), len(plan.seatings)
    return results[: deals * plan.games_per_deal].reshape(shape)


def pairings(plan: Plan, results: Results) -> list[PairingResult]:
    """Return the result of each pair of agents over complete deals."""
    games = complete_deals(plan, results)
    return [
        pairing_result(plan.agents, games[:, number].ravel(), pair)
        for number, pair in enumerate(plan.pairs if len(games) else ())
    ]


def ratings(plan: Plan, results: Results) -> Ratings:
    """Return ratings from the complete deals, see `carolus_env.evaluation.ratings.rate`."""
    counted, zero = complete_deals(plan, results).ravel(), anchor(plan.agents, plan.schedule)
    games = counted["table"], counted["shares"], counted["deal"]
    return rate(*games, len(plan.agents), anchor=zero, seed=plan.seed)


def anchor(agents: Sequence[str], schedule: str) -> int | None:
    """Return the number of the agent whose rating is 0; None: the mean is 0.

    It is `planner`, as on the ladder. Without it, it is the first agent of a field, whom all others
    have met: one that has lost all its games would lend its wide interval to everyone. Else it is
    `random`.
    """
    if ladder.ANCHOR in agents:
        return agents.index(ladder.ANCHOR)
    if schedule == "field":
        return 0
    return agents.index("random") if "random" in agents else None


def labels(names: Sequence[str]) -> list[str]:
    """Return the names of agents, numbered where one occurs more than once."""
    counts, numbers = Counter(names), Counter[str]()
    result = []
    for name in names:
        numbers[name] += 1
        result.append(f"{name} #{numbers[name]}" if counts[name] > 1 else name)
    return result


def summary(plan: Plan, results: Results, complete: bool, seconds: float) -> dict[str, Any]:
    """Return the statistics of a tournament's complete deals, for JSON and for the report."""
    counted = complete_deals(plan, results)
    if not len(counted):
        raise ValueError("no deal has been played in all seatings")
    paired, rated = pairings(plan, results), ratings(plan, results)
    rates: list[list[float]] = [[] for _ in plan.agents]
    for pair, result in zip(plan.pairs, paired, strict=True):
        for k, win_rate in zip(pair, result.win_rate, strict=True):
            rates[k].append(win_rate)
    agents = []
    for k, spec in enumerate(plan.agents):
        seats = counted["table"] == k
        decisions = int(counted["decisions"][seats].sum())
        spent = float(counted["seconds"][seats].sum())
        agents.append(
            {
                "spec": spec,
                "rating": rated.of(k),
                "win_share": float(np.mean(rates[k])),
                "mean_castles": float(counted["castles"][seats].mean()),
                "games": int(seats.any(axis=-1).sum()),
                "decisions": decisions,
                "seconds": spent,
                "us_per_decision": 1e6 * spent / max(decisions, 1),
            }
        )
    rule = standing(plan, results, rated)
    return {
        "format": "carolus-tournament-summary",
        "version": 1,
        "rules": plan.rules.to_dict(),
        "schedule": plan.schedule,
        "seed": plan.seed,
        "deals": len(counted),
        "games": counted.size,
        "complete": complete,
        "agents": agents,
        "pairings": [
            {"pair": list(pair), **result.to_dict()}
            for pair, result in zip(plan.pairs, paired, strict=True)
        ],
        "play": {"mean_rounds": float(counted["rounds"].mean()), "ends": count_ends(counted)},
        "versions": versions("torch"),
        "machine": machine(),
        "seconds": seconds,
        **({"stop_rule": rule} if rule else {}),
    }


def standing(plan: Plan, results: Results, rated: Ratings | None = None) -> dict[str, Any] | None:
    """Return the stop rule's state after the complete deals, for JSON.

    ``reached`` says whether the rule ends the tournament, ``text`` the state in a line; the rest is
    of the rule. None without a stop rule or a complete deal.
    """
    games = complete_deals(plan, results)
    if not len(games):
        return None
    if plan.until is not None:
        rated = rated or ratings(plan, results)
        factor = sequential.widening(len(games))  # the ratings' intervals times it hold at any time
        return {
            "reached": bool((factor * (rated.high - rated.low) < plan.until).all()),
            "until": plan.until,
            "widening": factor,
            "text": f"at any time, with 95 %: intervals {factor:.2f} times as wide as shown",
        }
    if (test := plan.test) is None:
        return None
    outcome = test.outcome(deal_scores(games[:, 0], 0), games.shape[2])
    first, second, *_ = labels(plan.agents)
    verdict = {
        sequential.STRONGER: f"{first} is stronger than {second} (H1)",
        sequential.NOT_STRONGER: f"{first} is not stronger than {second} (H0)",
        sequential.UNDECIDED: f"{first} against {second}: undecided",
    }[outcome.verdict]
    elo = "" if outcome.elo is None else f", nElo so far {outcome.elo:.1f}"
    low, high = test.bounds
    return {
        "reached": outcome.verdict != sequential.UNDECIDED,
        "test": plan.to_dict()["test"],
        "pair": list(plan.pairs[0]),
        **outcome._asdict(),
        "bounds": [low, high],
        "text": f"test of nElo {test.elo0:g} (H0) against {test.elo1:g} (H1): {verdict} "
        f"after {outcome.deals:,} deals; log-likelihood ratio {outcome.ratio:.2f} "
        f"({low:.2f} to {high:.2f}){elo}",
    }
