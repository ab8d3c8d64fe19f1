"""Strength of one agent: against `planner`, on the ladder, and its regret on the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from carolus_env.bots import Agent, is_compiled, make
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import ladder
from carolus_env.evaluation.games import Results, warm_up
from carolus_env.evaluation.pairing import pairing_result, play_pairing
from carolus_env.evaluation.regret import ALL, measure
from carolus_env.evaluation.seating import Plan, deals_for
from carolus_env.evaluation.suite import shipped
from carolus_env.evaluation.tournament import Block, play_plan
from carolus_env.system import cancellation, threads
from carolus_env.system.executors import InProcess, Job

EVAL_SEED: Final = 1_000_000_007
"""Seed of the deals of evaluations, far from the seeds of training games."""
MOST_RUNGS: Final = 3
"""Maximum number of rungs that a rating comes from."""
NARROW_RATE: Final = 0.08
"""Width of a win rate's 95 % interval at which the games against an opponent end."""
NARROW_ELO: Final = 80.0
"""Width of the rating's 95 % interval, in Elo points, at which games against rungs end."""
_BLOCK: Final = 100  # games between two looks at an interval
_FEW: Final = 12  # games against each rung for a rough rating
_FAR: Final = 0.1  # win rates less than this from 0 or 1: a rung is too far from the agent

Advance = Callable[[str, int], None]
"""A function of an opponent and the number of games against it so far."""


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
    """``win_rate``, ``ci95`` and ``games`` of the agent against `planner`, each rung and other
    agent, in this order."""
    regret: list[float] | None = None
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
    threads: int = 1,
    advance: Advance = lambda spec, games: None,
) -> Evaluation:
    """Measure an agent against `planner`, and place it on the ladder.

    The games against `planner` end when the interval of the win rate is narrow (`NARROW_RATE`).
    Then it plays the rung that is nearest to its rating so far, until that rung and another one
    have been played; `planner` is one of them unless it is far. Games against a rung end when the
    rating's interval is narrow (`NARROW_ELO`). With other rules than the usual ones the rungs keep
    their ratings.

    Where `planner` is far and the rating not known, or the first rung shows that it has changed
    much, a few games against some rungs find one (`ladder.guess`); these are not counted.

    Intervals are those of a fixed number of games: where games end because an interval is narrow,
    it holds in the limit of many games (Chow and Robbins, Annals of
    Mathematical Statistics 36, 1965).
    """
    played: dict[str, Results] = {}
    met: dict[str, Results] = {}

    def rate(results: Results) -> tuple[float, float, float]:
        result = pairing_result(("", ""), results)
        return result.win_rate[0], *result.ci95[0]

    def place(spec: str, results: Results) -> tuple[float, float, float]:
        return ladder.place(rules, {**met, spec: results})

    def play(spec: str, interval: Callable[[Results], tuple[float, ...]], narrow: float) -> Results:
        """Play deals against an agent until the interval is narrow, or all are played."""
        if spec not in played:
            parts: list[Results] = []

            def enough() -> bool:
                _, low, high = interval(np.concatenate(parts))
                return high - low < narrow

            for block in _blocks(agent, spec, rules, games, enough, threads, advance):
                parts.append(block.results)
            played[spec] = np.concatenate(parts)
        return played[spec]

    win_rate, *_ = rate(play(ladder.ANCHOR, rate, NARROW_RATE))
    if _FAR < win_rate < 1 - _FAR:
        met[ladder.ANCHOR] = played[ladder.ANCHOR]
        elo, low, high = place(ladder.ANCHOR, met[ladder.ANCHOR])
    elif near is not None and _stands_near(agent, rules, near):
        elo = near
    else:
        elo = ladder.guess(agent, rules, _FEW, EVAL_SEED)
    while len(met) < MOST_RUNGS:
        first, second = ladder.nearest(rules.players, elo, 2)
        if first.spec in met and len(met) >= 2:
            break
        spec = second.spec if first.spec in met else first.spec
        met[spec] = play(spec, partial(place, spec), NARROW_ELO)
        elo, low, high = place(spec, met[spec])
    for spec in bots:
        play(spec, rate, NARROW_RATE)
    results = {}
    for spec, some in played.items():
        win_rate, *ends = rate(some)
        results[spec] = {"win_rate": win_rate, "ci95": ends, "games": len(some)}
    regret = None
    if half is not None:
        measured = measure(shipped(rules.players), agent, half).summary()[ALL]
        regret = [measured.mean, measured.low, measured.high]
    return Evaluation(elo, low, high, list(met), results, regret)


def prepare(agent: Agent, rules: Rules) -> None:
    """Compile, or load, what `evaluate` needs: the agent, and each kind of rung."""
    kinds = {rung.spec.partition(":")[0]: rung for rung in ladder.rungs(rules.players)}
    rungs = [make(rung.spec) for rung in kinds.values()]
    play_pairing((agent, make(ladder.ANCHOR)), rules, 1, seed=EVAL_SEED)
    warm_up(rungs, rules)


def _blocks(
    agent: Agent,
    spec: str,
    rules: Rules,
    games: int,
    enough: Callable[[], bool],
    threads: int,
    advance: Advance,
) -> Iterator[Block]:
    """Play an agent against another one until it is enough."""
    pair = agent, make(spec)
    plan = Plan(rules, ("learner", spec), seed=EVAL_SEED)
    plan = Plan(rules, plan.agents, deals=deals_for(games, plan.games_per_deal), seed=EVAL_SEED)
    step = deals_for(_BLOCK, plan.games_per_deal)

    def looks() -> Iterator[int]:
        deals = 0
        while deals < plan.deals:
            deals = min(deals + max(step, deals // 8), plan.deals)  # looks take time, too
            yield deals

    # An agent that is not compiled holds the interpreter's lock, and may be a user's, which expects
    # to be alone.
    workers = _Threads(threads) if threads > 1 and all(map(is_compiled, pair)) else InProcess()
    advance(spec, 0)
    for block in play_plan(plan, pair, workers, enough, looks=looks(), seconds=1e-9):
        advance(spec, block.start + len(block.results))
        yield block


class _Threads(InProcess):
    """Threads of this process that play a part of each block; each has agents of its own.

    Agents remember what they plan.
    """

    def __init__(self, count: int) -> None:
        self._threads = count

    def function(self, job: Job) -> Callable[..., Any]:
        players = [job(), *(deepcopy(job)() for _ in range(1, self._threads))]
        flag = cancellation.current()

        def play(task: tuple[Callable[..., Any], int, int]) -> Block:
            player, start, stop = task
            with flag.watched():
                block: Block = player(start, stop)
                return block

        def block(start: int, stop: int) -> Block:
            runs = threads.runs(stop - start, len(players))
            tasks = zip(players, runs, strict=False)
            parts = threads.together(
                play, [(player, start + run.start, start + run.stop) for player, run in tasks]
            )
            results = np.concatenate([part.results for part in parts])
            return Block(start, results, sum(part.seconds for part in parts), [])

        return block


def _stands_near(agent: Agent, rules: Rules, elo: float) -> bool:
    """Return whether a few games find the agent about as strong as the nearest rung."""
    [rung] = ladder.nearest(rules.players, elo)
    played = play_pairing((agent, make(rung.spec)), rules, _FEW, seed=EVAL_SEED)
    return _FAR < played.win_rate[0] < 1 - _FAR
