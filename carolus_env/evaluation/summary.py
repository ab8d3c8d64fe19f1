"""The summary of a tournament: plain values, which are printed, reported and kept as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from carolus_env.evaluation import ladder
from carolus_env.evaluation.games import Results, agent_statistics
from carolus_env.evaluation.pairing import (
    PairingResult,
    count_ends,
    deal_scores,
    pairing_result,
)
from carolus_env.evaluation.ratings import Ratings, rate
from carolus_env.evaluation.seating import Plan, labels
from carolus_env.evaluation.sequential import NOT_STRONGER, STRONGER, UNDECIDED, widening
from carolus_env.system.machine import machine, versions

Summary = Mapping[str, Any]
"""A summary as `summary` makes it, or as it was read from ``summary.json``."""

TESTED: Final = (0, 1)
"""The agents of a plan's test."""

FORMAT: Final = "carolus-tournament-summary"
VERSION: Final = 1


def complete_deals(plan: Plan, results: Results) -> Results:
    """Return the games of complete deals: those played in all seatings of all meetings."""
    games = len(results) - len(results) % plan.games_per_deal
    return results if games == len(results) else results.rows(slice(games))


def pairings(plan: Plan, results: Results) -> list[tuple[tuple[int, int], PairingResult]]:
    """Return each pair of agents that met, with its result over complete deals."""
    counted = complete_deals(plan, results)
    if not len(counted):
        return []
    meetings = plan.fixtures(0, plan.games_per_deal).meetings
    of_game = np.tile(meetings, len(counted) // plan.games_per_deal)
    return [
        (pair, pairing_result(plan.agents, counted.rows(of_game == number), pair))
        for number, pair in enumerate(plan.pairs)
    ]


def ratings(plan: Plan, results: Results) -> Ratings:
    """Return ratings from the complete deals, see `carolus_env.evaluation.ratings.rate`."""
    counted = complete_deals(plan, results)
    return rate(
        counted.tables,
        counted.shares,
        counted.deals,
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
    """Return the statistics of a tournament, for JSON and for the report.

    Args:
        plan: the tournament's plan.
        results: the games; only those of complete deals count.
        complete: True: the tournament was played to its end.
        seconds: time spent.

    Raises:
        ValueError: when no deal is complete.
    """
    counted = complete_deals(plan, results)
    if not len(counted):
        raise ValueError("no deal has been played in all seatings")
    paired = pairings(plan, counted)
    rating = ratings(plan, counted)
    rates: list[list[float]] = [[] for _ in plan.agents]
    for pair, result in paired:
        for k, win_rate in zip(pair, result.win_rate, strict=True):
            rates[k].append(win_rate)
    statistics = agent_statistics(counted, len(plan.agents))
    agents = [
        {"spec": spec, "rating": rating.of(k), "win_share": float(np.mean(rates[k]))}
        | statistics[k]
        for k, spec in enumerate(plan.agents)
    ]
    rule = standing(plan, counted, lambda: rating)
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
        "play": {"mean_rounds": float(counted.rounds.mean()), "ends": count_ends(counted)},
        "versions": versions("torch"),
        "machine": machine(),
        "seconds": seconds,
        **({} if rule is None else {"stop_rule": {**rule, "text": standing_text(plan, rule)}}),
    }


def standing(plan: Plan, results: Results, ratings: Callable[[], Ratings]) -> dict[str, Any] | None:
    """Return the stop rule's state as plain values for JSON; None: the plan has none.

    Args:
        plan: the tournament's plan.
        results: complete deals, at least one.
        ratings: a function that computes the ratings, where the rule needs them.

    Returns:
        ``reached``: whether the rule ends the tournament, and

        - of a test: ``test``, ``pair``, ``verdict``, ``deals``, ``ratio``, ``bounds``, ``elo``;
        - of ``until``: ``until`` and ``widening``, by which the ratings' intervals are multiplied
          so that they hold at any time.
    """
    if plan.test is not None:
        outcome = plan.test.outcome(*deal_scores(results, TESTED))
        return {
            "reached": outcome.verdict != UNDECIDED,
            "test": plan.to_dict()["test"],
            "pair": list(TESTED),
            **outcome._asdict(),
            "bounds": list(plan.test.bounds),
        }
    if plan.until is None:
        return None
    factor, rated = widening(len(results) // plan.games_per_deal), ratings()
    reached = bool((factor * (rated.high - rated.low) < plan.until).all())
    return {"reached": reached, "until": plan.until, "widening": factor}


def standing_text(plan: Plan, standing: dict[str, Any]) -> str:
    """Return `standing` in one line."""
    if plan.test is None:
        return (
            f"at any time, with 95 %: ratings' intervals {standing['widening']:.2f} times as wide "
            "as shown"
        )
    names = labels(plan.agents)
    first, second = (names[k] for k in standing["pair"])
    low, high = standing["bounds"]
    elo = "" if standing["elo"] is None else f", nElo so far {standing['elo']:.1f}"
    verdict = {
        STRONGER: f"{first} is stronger than {second} (H1)",
        NOT_STRONGER: f"{first} is not stronger than {second} (H0)",
        UNDECIDED: f"{first} against {second}: undecided",
    }[standing["verdict"]]
    return (
        f"test of nElo {plan.test.elo0:g} (H0) against {plan.test.elo1:g} (H1): {verdict} "
        f"after {standing['deals']:,} deals; log-likelihood ratio {standing['ratio']:.2f} "
        f"({low:.2f} to {high:.2f}){elo}"
    )
