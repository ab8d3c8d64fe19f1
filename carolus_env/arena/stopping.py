"""Stop rules: where one stands after the complete deals, and whether it ends the tournament.

Their statistics (`carolus_env.analysis.sequential`) hold however often they are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from carolus_env.analysis.sequential import (
    NOT_STRONGER,
    STRONGER,
    UNDECIDED,
    Floats,
    mean_interval_at_any_time,
    widening,
)
from carolus_env.arena.columns import Results
from carolus_env.arena.pairing import pair_scores
from carolus_env.arena.seating import Plan, labels

TESTED = (0, 1)
"""The agents of a plan's test."""


def deal_scores(
    results: Results, pair: tuple[int, int], team: Sequence[int] | None = None
) -> tuple[Floats, int]:
    """The first agent's mean score in each deal, ``(D,)``, and how many games that averages.

    Args:
        results: complete deals of one plan.
        pair: two agents that meet.
        team: of each seat, see `pairing_result`.
    """
    rows, scores = pair_scores(results, pair, team)
    _, places, sizes = np.unique(results.deals[rows], return_inverse=True, return_counts=True)
    sums = np.bincount(places.reshape(-1), weights=scores)
    return sums / sizes, int(sizes[0]) if len(sizes) else 0


def standing(
    plan: Plan, results: Results, ratings: Callable[[], Any] | None
) -> dict[str, Any] | None:
    """Where the stop rule stands, as plain values for JSON; None: the plan has none.

    Args:
        plan: of the tournament.
        results: its complete deals, at least one.
        ratings: computes their ratings; None: leave out what needs them.

    Returns:
        ``reached``: whether the rule ends the tournament (None: not known without ratings), and

        - of a test: ``test``, ``pair``, ``verdict``, ``deals``, ``ratio``, ``bounds``, ``elo``;
        - of `Until`: ``rate`` (``pair``, ``win_rate``, ``low``, ``high``) and ``elo``
          (``widening``: of the ratings' intervals), None where it does not ask for one.
    """
    if plan.test is not None:
        found = plan.test.outcome(*deal_scores(results, TESTED, plan.team))
        return {
            "reached": found.verdict != UNDECIDED,
            "test": plan.test.to_dict(),
            "pair": list(TESTED),
            **found._asdict(),
            "bounds": list(plan.test.bounds),
        }
    until = plan.until
    if until is None:
        return None
    reached, rate, elo = True, None, None
    if until.rate is not None:
        pair = min(until.pair), max(until.pair)
        scores, _ = deal_scores(results, pair, plan.team)
        low, high = mean_interval_at_any_time(scores, until.rate)
        rate = {"pair": list(pair), "win_rate": float(scores.mean()), "low": low, "high": high}
        reached = high - low < until.rate
    if until.elo is not None:
        factor = widening(len(results) // plan.games_per_deal)
        elo = {"widening": factor}
        if ratings is None:
            return {"reached": None, "rate": rate, "elo": elo}
        if reached:
            found = ratings()
            widths = factor * (np.asarray(found.high) - np.asarray(found.low))
            reached = bool((widths < until.elo).all())
    return {"reached": reached, "rate": rate, "elo": elo}


def told(plan: Plan, standing: dict[str, Any]) -> str:
    """What `standing` says, in one line."""
    names = labels(plan.agents)
    if plan.test is not None:
        first, second = (names[k] for k in standing["pair"])
        low, high = standing["bounds"]
        elo = "" if standing["elo"] is None else f", nElo so far {standing['elo']:.1f}"
        said = {
            STRONGER: f"{first} is stronger than {second} (H1)",
            NOT_STRONGER: f"{first} is not stronger than {second} (H0)",
            UNDECIDED: f"{first} against {second}: undecided",
        }[standing["verdict"]]
        return (
            f"test of nElo {plan.test.elo0:g} (H0) against {plan.test.elo1:g} (H1): {said} "
            f"after {standing['deals']:,} deals; log-likelihood ratio {standing['ratio']:.2f} "
            f"({low:.2f} to {high:.2f}){elo}"
        )
    parts = []
    if (rate := standing["rate"]) is not None:
        first, second = (names[k] for k in rate["pair"])
        parts.append(
            f"win rate of {first} against {second} {100 * rate['win_rate']:.1f} % "
            f"[{100 * rate['low']:.1f}, {100 * rate['high']:.1f}]"
        )
    if (elo := standing["elo"]) is not None:
        parts.append(f"ratings' intervals {elo['widening']:.2f} times as wide as shown")
    return f"at any time, with 95 %: {'; '.join(parts)}"
