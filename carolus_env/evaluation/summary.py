"""The summary of a tournament: plain values, which are printed, reported and kept as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from carolus_env.evaluation import ladder, sequential
from carolus_env.evaluation.games import Results
from carolus_env.evaluation.pairing import PairingResult, count_ends, deal_scores, pairing_result
from carolus_env.evaluation.ratings import Ratings, rate
from carolus_env.evaluation.seating import Plan, labels
from carolus_env.system.machine import machine, versions

Summary = Mapping[str, Any]
"""A summary as `summary` makes it, or as it was read from ``summary.json``."""

TESTED: Final = (0, 1)
"""The agents of a plan's test."""
FORMAT: Final = "carolus-tournament-summary"
VERSION: Final = 1


def complete_deals(plan: Plan, results: Results) -> Results:
    """Return the games of complete deals: those played in all seatings of all meetings."""
    return results[: len(results) - len(results) % plan.games_per_deal]


def pairings(plan: Plan, results: Results) -> list[tuple[tuple[int, int], PairingResult]]:
    """Return each pair of agents that met, with its result over complete deals."""
    counted = complete_deals(plan, results)
    if not len(counted):
        return []
    meetings = plan.fixtures(0, plan.games_per_deal).meetings
    of_game = np.tile(meetings, len(counted) // plan.games_per_deal)
    return [
        (pair, pairing_result(plan.agents, counted[of_game == number], pair))
        for number, pair in enumerate(plan.pairs)
    ]


def ratings(plan: Plan, results: Results) -> Ratings:
    """Return ratings from the complete deals, see `carolus_env.evaluation.ratings.rate`."""
    counted = complete_deals(plan, results)
    return rate(
        counted["table"],
        counted["shares"],
        counted["deal"],
        len(plan.agents),
        anchor=anchor(plan.agents, plan.schedule),
        seed=plan.seed,
    )


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


def summary(plan: Plan, results: Results, *, complete: bool, seconds: float) -> dict[str, Any]:
    """Return the statistics of a tournament, for JSON and for the report."""
    counted = complete_deals(plan, results)
    if not len(counted):
        raise ValueError("no deal has been played in all seatings")
    paired, rating = pairings(plan, counted), ratings(plan, counted)
    rates: list[list[float]] = [[] for _ in plan.agents]
    for pair, result in paired:
        for k, win_rate in zip(pair, result.win_rate, strict=True):
            rates[k].append(win_rate)
    agents = []
    for k, spec in enumerate(plan.agents):
        seats = counted["table"] == k
        decisions, spent = int(counted["decisions"][seats].sum()), counted["seconds"][seats].sum()
        agents.append(
            {
                "spec": spec,
                "rating": rating.of(k),
                "win_share": float(np.mean(rates[k])),
                "mean_castles": float(counted["castles"][seats].mean()),
                "games": int(seats.any(axis=1).sum()),
                "decisions": decisions,
                "seconds": float(spent),
                "us_per_decision": 1e6 * float(spent) / max(decisions, 1),
            }
        )
    rule = standing(plan, counted, rating)
    return {
        "format": FORMAT,
        "version": VERSION,
        "rules": plan.rules.to_dict(),
        "schedule": plan.schedule,
        "seed": plan.seed,
        "deals": len(counted) // plan.games_per_deal,
        "games": len(counted),
        "complete": complete,
        "agents": agents,
        "pairings": [{"pair": list(pair), **result.to_dict()} for pair, result in paired],
        "play": {"mean_rounds": float(counted["rounds"].mean()), "ends": count_ends(counted)},
        "versions": versions("torch"),
        "machine": machine(),
        "seconds": seconds,
        **({} if rule is None else {"stop_rule": rule}),
    }


def standing(plan: Plan, results: Results, rated: Ratings | None = None) -> dict[str, Any] | None:
    """Return the stop rule's state as plain values for JSON; None: the plan has none."""
    if plan.until is not None:
        factor = sequential.widening(len(results) // plan.games_per_deal)
        rated = rated or ratings(plan, results)
        return {
            "reached": bool((factor * (rated.high - rated.low) < plan.until).all()),
            "until": plan.until,
            "widening": factor,
            "text": f"at any time, with 95 %: intervals {factor:.2f} times as wide as shown",
        }
    if plan.test is None:
        return None
    test, outcome = plan.test, plan.test.outcome(*deal_scores(results, TESTED))
    first, second = (labels(plan.agents)[k] for k in TESTED)
    elo = "" if outcome.elo is None else f", nElo so far {outcome.elo:.1f}"
    verdict = {
        sequential.STRONGER: f"{first} is stronger than {second} (H1)",
        sequential.NOT_STRONGER: f"{first} is not stronger than {second} (H0)",
        sequential.UNDECIDED: f"{first} against {second}: undecided",
    }[outcome.verdict]
    low, high = test.bounds
    return {
        "reached": outcome.verdict != sequential.UNDECIDED,
        "test": plan.to_dict()["test"],
        "pair": list(TESTED),
        **outcome._asdict(),
        "bounds": [low, high],
        "text": f"test of nElo {test.elo0:g} (H0) against {test.elo1:g} (H1): {verdict} "
        f"after {outcome.deals:,} deals; log-likelihood ratio {outcome.ratio:.2f} "
        f"({low:.2f} to {high:.2f}){elo}",
    }
