"""Strength of one agent: its place on the ladder, and its regret on the suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from carolus_env.bots import Agent, make
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import ladder
from carolus_env.evaluation.columns import Results
from carolus_env.evaluation.pairing import play_pairing
from carolus_env.evaluation.seating import Plan, deals_for, pairing
from carolus_env.evaluation.suite.data import shipped
from carolus_env.evaluation.suite.measure import ALL, measure
from carolus_env.evaluation.tournament import Tournament

EVAL_SEED: Final = 1_000_000_007
"""Seed of the deals of evaluations, far from the seeds of training games."""
MOST_RUNGS: Final = 3
"""Maximum number of rungs that an evaluation plays."""
_FEW: Final = 12
"""Games against each rung for a rough rating."""
_FAR: Final = 0.1
"""Win rates less than this from 0 or 1 mean that a rung is too far from the agent."""


@dataclass(frozen=True)
class Evaluation:
    """Strength of an agent, on paired deals."""

    elo: float
    """Elo points above `planner`, on the ladder (`carolus_env.evaluation.ladder`)."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end."""
    rungs: list[str]
    """The rungs that it was measured by."""
    results: dict[str, dict[str, Any]]
    """``win_rate``, ``ci95`` and ``games`` of the agent against each rung and other agent."""
    loss: list[float] | None = None
    """Mean regret per decision on the suite, with its 95 % interval; None: not measured."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without those that were not measured."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def evaluate(
    agent: Agent,
    rules: Rules,
    games: int,
    *,
    near: float | None,
    bots: Sequence[str] = (),
    half: str | None = None,
) -> Evaluation:
    """Place an agent on the ladder.

    It plays the rung that is nearest to its rating so far, until that rung and another one have
    been played. With other rules than the usual ones the rungs keep their ratings. Where its
    rating is not known, or the first rung shows that it has changed much, a few games against some
    rungs find one (`ladder.guess`); these are not counted.

    Args:
        agent: the agent to rate.
        rules: rules of all games.
        games: games against each agent.
        near: a guess of its rating; None: nothing is known.
        bots: specs of agents that it plays besides.
        half: half of the suite to measure its regret on, in positions of the usual rules;
            None: none.
    """
    players = rules.players
    elo = near
    if elo is None or not _stands_near(agent, rules, elo):
        elo = ladder.guess(agent, rules, _FEW, EVAL_SEED)
    met: dict[str, Results] = {}
    results: dict[str, dict[str, Any]] = {}
    while len(met) < MOST_RUNGS:
        first, second = ladder.nearest(players, elo, 2)
        if first.spec in met and len(met) >= 2:
            break
        spec = second.spec if first.spec in met else first.spec
        met[spec], results[spec] = _against(agent, rules, spec, games)
        elo, low, high = ladder.place(players, met)
    for spec in bots:
        if spec not in results:
            results[spec] = _against(agent, rules, spec, games)[1]
    loss = None if half is None else _loss(agent, players, half)
    return Evaluation(elo, low, high, list(met), results, loss)


def _loss(agent: Agent, players: int, half: str) -> list[float]:
    """Return the agent's regret per decision on a half of the suite."""
    result = measure(shipped(players), agent, half).summary()[ALL]
    return [result.mean, result.low, result.high]


def _stands_near(agent: Agent, rules: Rules, elo: float) -> bool:
    """Return whether a few games find the agent about as strong as the nearest rung."""
    [rung] = ladder.nearest(rules.players, elo)
    played = play_pairing((agent, make(rung.spec)), rules, _FEW, seed=EVAL_SEED)
    return _FAR < played.win_rate[0] < 1 - _FAR


def _against(agent: Agent, rules: Rules, spec: str, games: int) -> tuple[Results, dict[str, Any]]:
    """Play an agent against a bot; return the games, and the agent's results."""
    agents = agent, make(spec)
    deals = deals_for(games, len(pairing(rules).seatings))
    plan = Plan(rules, ("learner", spec), deals=deals, seed=EVAL_SEED)
    cup = Tournament(plan, agents)
    cup.run()
    [result] = cup.pairings()
    numbers = {"win_rate": result.win_rate[0], "ci95": list(result.ci95[0]), "games": result.games}
    return cup.results, numbers


def holds(agent: Agent, other: Agent, rules: Rules, games: int) -> bool:
    """Return whether the first of two agents is not clearly weaker: 1/2 lies in its interval.

    A hundred games cannot tell a little stronger from a little weaker. To ask for half of them
    would leave many a run with an early network.
    """
    return play_pairing((agent, other), rules, games, seed=EVAL_SEED).ci95[0][1] >= 0.5
