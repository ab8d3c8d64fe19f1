"""Stop rules of tournaments, and their state after the complete deals.

Their statistics (`carolus_env.evaluation.sequential`) hold however often they are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from carolus_env.evaluation.columns import Results
from carolus_env.evaluation.pairing import pair_scores
from carolus_env.evaluation.ratings import Ratings
from carolus_env.evaluation.seating import Plan, labels
from carolus_env.evaluation.sequential import (
    NOT_STRONGER,
    STRONGER,
    UNDECIDED,
    widening,
)
from carolus_env.system.arrays import F64

TESTED = (0, 1)
"""The agents of a plan's test."""


def deal_scores(
    results: Results, pair: tuple[int, int], team: Sequence[int] | None = None
) -> tuple[F64, int]:
    """Return the first agent's mean score in each deal, ``(D,)``, and the games of a deal.

    Args:
        results: complete deals of one plan.
        pair: two agents that meet.
        team: the team of each seat, see `pairing_result`.
    """
    rows, scores = pair_scores(results, pair, team)
    _, places, sizes = np.unique(results.deals[rows], return_inverse=True, return_counts=True)
    sums = np.bincount(places.reshape(-1), weights=scores)
    return sums / sizes, int(sizes[0]) if len(sizes) else 0


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
        outcome = plan.test.outcome(*deal_scores(results, TESTED, plan.team))
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
