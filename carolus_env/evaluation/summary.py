"""The summary of a tournament: plain values, which are printed, reported and kept as JSON."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from carolus_env.evaluation import ladder
from carolus_env.evaluation.columns import FIGURES, Results
from carolus_env.evaluation.games import ArenaError
from carolus_env.evaluation.pairing import (
    PairingResult,
    count_ends,
    mean_interval,
    pair_scores,
    pairing_result,
)
from carolus_env.evaluation.seating import Plan, labels
from carolus_env.evaluation.stopping import standing, standing_text
from carolus_env.system import failures
from carolus_env.system.machine import machine, versions
from carolus_env.system.untrusted import DataError, check, expect

Summary = Mapping[str, Any]
"""A summary as `summary` makes it."""

FORMAT: Final = "carolus-tournament-summary"
VERSION: Final = 1
_NEEDED: Final = {"ratings": "scipy", "report": "matplotlib"}


def complete_deals(plan: Plan, results: Results) -> Results:
    """Return the games of complete deals: those played in all seatings of all meetings."""
    games = len(results) - len(results) % plan.games_per_deal
    return results if games == len(results) else results.rows(slice(games))


def pairings(plan: Plan, results: Results) -> list[tuple[tuple[int, int], PairingResult]]:
    """Return each pair of agents that met, with its result over complete deals."""
    counted = complete_deals(plan, results)
    if not len(counted):
        return []
    return [(pair, pairing_result(plan.agents, counted, pair, plan.team)) for pair in plan.pairs]


def ratings(plan: Plan, results: Results) -> Any:
    """Return ratings from the complete deals, see `carolus_env.evaluation.ratings.rate`.

    Raises:
        ArenaError: when the extra ``evaluation`` is not installed.
    """
    rate = extra("ratings").rate
    counted = complete_deals(plan, results)
    rules = plan.rules
    return rate(
        counted.tables,
        counted.shares,
        np.array([rules.team(seat) for seat in range(rules.players)]),
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


def extra(name: str) -> Any:
    """Return a module of the arena that needs the extra ``evaluation``.

    Raises:
        ArenaError: when that is missing; the text says how to install it.
    """
    try:
        if find_spec(needed := _NEEDED[name]) is None:
            raise ImportError(f"No module named {needed!r}")
        return importlib.import_module(f"carolus_env.evaluation.{name}")
    except ImportError as error:
        raise ArenaError(
            f"{name} cannot be used ({error}); {failures.install('evaluation')}"
        ) from error


def summary(
    plan: Plan, results: Results, *, complete: bool, seconds: float, rated: bool = True
) -> dict[str, Any]:
    """Return the statistics of a tournament, for JSON and for the report.

    Args:
        plan: the tournament's plan.
        results: the games; only those of complete deals count.
        complete: True: the tournament was played to its end.
        seconds: time spent.
        rated: False leaves out the ratings (None), which works without the extra ``evaluation``.

    Raises:
        ArenaError: when ratings are wanted and the extra is missing.
        ValueError: when no deal is complete.
    """
    counted = complete_deals(plan, results)
    if not len(counted):
        raise ValueError("no deal has been played in all seatings")
    paired = pairings(plan, counted)
    rating = ratings(plan, counted) if rated else None
    agents = []
    for k, spec in enumerate(plan.agents):
        rates = [result.win_rate[pair.index(k)] for pair, result in paired if k in pair]
        agents.append(
            {
                "spec": spec,
                "rating": None if rating is None else rating.of(k),
                "win_share": float(np.mean(rates)),
                **{f.key: f.value(counted, counted.tables == k) for f in FIGURES},
            }
        )
    rule = standing(plan, counted, (lambda: rating) if rated else None)
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
        "cycle": cycle(plan, counted),
        "play": {
            "mean_rounds": float(counted.rounds.mean()),
            "mean_lead_changes": float(counted.lead_changes.mean()),
            "ends": count_ends(counted),
        },
        "versions": versions("torch", "scipy"),
        "machine": machine(),
        "seconds": seconds,
        **({} if rule is None else {"stop_rule": {**rule, "text": standing_text(plan, rule)}}),
    }


def cycle(plan: Plan, results: Results) -> str | None:
    """Return the clearest cycle of three agents in words; None where there is none.

    An agent beats another when its win rate is above one half with 95 % confidence in all pairs
    together (Bonferroni).
    """
    names = labels(plan.agents)
    beats: dict[tuple[int, int], float] = {}
    for i, j in plan.pairs:
        rows, scores = pair_scores(results, (i, j), plan.team)
        low, high = mean_interval(scores, results.deals[rows], 1 - 0.05 / len(plan.pairs))
        rate = float(scores.mean())
        if low > 0.5:
            beats[i, j] = rate
        elif high < 0.5:
            beats[j, i] = 1 - rate
    circles = [((i, j), (j, k), (k, i)) for i, j, k in itertools.permutations(range(len(names)), 3)]
    result = [links for links in circles if all(link in beats for link in links)]
    if not result:
        return None
    clearest = max(result, key=lambda links: min(beats[link] for link in links))
    return ", ".join(
        f"{names[i]} beats {names[j]} ({100 * beats[i, j]:.0f} %)" for i, j in clearest
    )


def check_summary(data: Any) -> Summary:
    """Check that this is a summary, for example one read from a file.

    Raises:
        ValueError: when its format or version is another one.
    """
    try:
        result: Summary = check(data, dict, "it")
        expect(result, format=FORMAT, version=VERSION)
    except DataError as error:
        raise ValueError(f"not the summary of a tournament: {error}") from None
    return result
