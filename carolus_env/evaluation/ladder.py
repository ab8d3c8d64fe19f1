"""The ladder: agents of stepped strength, with ratings that were measured once; an agent's place.

An agent that plays a few rungs near its own strength has a rating on a scale that everyone shares.
``make ladder`` plays the rungs against each other and writes their ratings to ``ladder.json``.

    >>> [rung.spec for rung in ladder.nearest(2, -700.0, 3)]
    >>> ladder.place(Rules(2), {"greedy": results})["elo"]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from carolus_env.bots import Agent, is_compiled, make
from carolus_env.engine.rules import MAX_PLAYERS, Rules
from carolus_env.evaluation.games import Results, pairing_result, play_pairing, warm_up
from carolus_env.evaluation.ratings import ANCHOR, rate
from carolus_env.evaluation.schedules import Plan, deals_for, seatings_of
from carolus_env.evaluation.suite import ALL, measure, shipped
from carolus_env.evaluation.tournament import Block, play_plan
from carolus_env.system import cancellation, machine
from carolus_env.system.executors import InProcess, Job
from carolus_env.system.options import whole_number

FILE: Final = Path(__file__).with_name("ladder.json")


@dataclass(frozen=True)
class Rung:
    """An agent of the ladder, and its rating in Elo points above `ANCHOR`."""

    spec: str
    elo: float
    low: float  # the ends of the rating's 95 % interval
    high: float
    gap: Sequence[float]  # Elo points above the rung below, and the ends of their 95 % interval
    wins: Sequence[float]  # win rates against the rung below, and against the one below that


@cache
def rungs(players: int) -> tuple[Rung, ...]:
    """Return all rungs for that number of players, the weakest first."""
    whole_number("players", players, 2, MAX_PLAYERS)
    return tuple(Rung(**row) for row in json.loads(FILE.read_text())["players"][str(players)])


def digest(players: Mapping[str, Any] | None = None) -> str:
    """Return the hash of ratings by number of players, as in `FILE`; None: of the package's."""
    result = json.loads(FILE.read_text())["players"] if players is None else players
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()[:12]


def nearest(players: int, elo: float, count: int = 1) -> list[Rung]:
    """Return the rungs whose ratings are nearest to ``elo``, the nearest first."""
    return sorted(rungs(players), key=lambda rung: abs(rung.elo - elo))[:count]


def guess(agent: Agent, rules: Rules, games: int, seed: int) -> float:
    """Return a rough rating, between rungs that an agent beats and loses to, by bisection."""
    known = rungs(rules.players)
    below, above = -1, len(known)  # rungs that it beats and loses to
    while above - below > 1:
        middle = (below + above) // 2
        played = play_pairing((agent, make(known[middle].spec)), rules, games, seed=seed)
        if played.win_rate[0] > 0.5:
            below = middle
        else:
            above = middle
    return (known[max(below, 0)].elo + known[min(above, len(known) - 1)].elo) / 2


def place(rules: Rules, met: Mapping[str, Results]) -> dict[str, Any]:
    """Rate an agent by its games against rungs, whose ratings are taken as given.

    The prior is one drawn deal, which the rungs share. The interval covers the luck of these games,
    not the uncertainty of the rungs' own ratings.

    Args:
        met: games against each rung, by spec; the agent is number 0 in their tables and sits in
            every seating equally often. Games of the same deal share luck.

    Returns:
        The rating, see `Ratings.of`, in Elo points above `ANCHOR`.
    """
    known = {rung.spec: rung.elo for rung in rungs(rules.players)}
    if not met:
        raise ValueError("a place on the ladder needs games against a rung, got none")
    for spec in met:
        if spec not in known:
            raise ValueError(f"no rung of the ladder for {rules.players} players: {spec!r}")
    games = list(met.values())
    result = rate(
        np.concatenate([np.where(some["table"] == 0, 0, k) for k, some in enumerate(games, 1)]),
        np.concatenate([some["shares"] for some in games]),
        np.concatenate([some["deal"] for some in games]),
        len(games) + 1,
        fixed={k: known[spec] for k, spec in enumerate(met, 1)},
        prior=2 if rules.players == 3 else 1,  # a deal of two agents has two line-ups there
    )
    return result.of(0)


# ------------------------------------------------------------------------------------ measuring

EVAL_SEED: Final = 1_000_000_007  # of the deals, far from the seeds of training games
MOST_RUNGS: Final = 3  # that a rating comes from
NARROW_RATE: Final = 0.08  # width of a win rate's interval at which games against an agent end
NARROW_ELO: Final = 80.0  # width of the rating's interval at which games against a rung end
_BLOCK: Final = 100  # games between two looks at an interval
_FEW: Final = 12  # games against each rung for a rough rating
_FAR: Final = 0.1  # win rates less than this from 0 or 1: a rung is too far from the agent


@dataclass(frozen=True)
class Evaluation:
    """Strength of an agent, on paired deals."""

    elo: float  # points above `planner`, on the ladder
    low: float  # the ends of the rating's 95 % interval
    high: float
    rungs: list[str]  # that it was measured by
    # ``win_rate``, ``ci95`` and ``games`` against `planner`, each rung and other agent, in order
    results: dict[str, dict[str, Any]]
    # mean per decision on the suite, and the ends of its 95 % interval; None: not measured
    regret: list[float] | None = None
    bound: str = ""  # of `Ratings.bounds`: which end of the interval the games support alone

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without those that were not measured."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


def evaluate(
    agent: Agent,
    rules: Rules,
    games: int,
    *,
    near: float | None,
    bots: Sequence[str] = (),
    half: str | None = None,
    threads: int = 1,
    advance: Callable[[str, int], None] = lambda spec, games: None,
) -> Evaluation:
    """Measure an agent against `planner`, and place it on the ladder.

    The games against `planner`, and those against other ``bots``, end when the interval of the win
    rate is narrow. Then it plays the rung that is nearest to its rating so far, until that rung and
    another one have been played; `planner` is one of them unless it is far. Games against a rung
    end when the rating's interval is narrow. With other rules than the usual ones the rungs keep
    their ratings. Where `planner` is far and ``near``, a guess of the rating, is None or wrong, a
    few games against some rungs find one (`guess`); these are not counted.

    Intervals are those of a fixed number of games: where games end because an interval is narrow,
    it holds in the limit of many games (Chow and Robbins, Ann. Math. Statist. 36, 1965).

    Args:
        games: maximum number of games against each agent.
        half: half of the suite to measure its regret on, in positions of the usual rules.
        advance: a function of an opponent and the number of games against it so far.
    """
    played: dict[str, Results] = {}
    met: dict[str, Results] = {}

    def won(results: Results) -> dict[str, Any]:
        result = pairing_result(("", ""), results)
        return {"win_rate": result.win_rate[0], "ci95": [*result.ci95[0]], "games": len(results)}

    def play(spec: str, *, rung: bool = False) -> Results:
        """Play deals against an agent until the interval is narrow, or all are played."""
        if spec in played:
            return played[spec]
        pair, parts = (agent, make(spec)), list[Results]()
        seatings = len(seatings_of(rules))
        plan = Plan(rules, ("", spec), deals=deals_for(games, seatings), seed=EVAL_SEED)
        step, looks = deals_for(_BLOCK, seatings), [0]
        while looks[-1] < plan.deals:
            deals = looks[-1] + max(step, looks[-1] // 8)  # looks take time, too
            looks.append(min(deals, plan.deals))

        def enough() -> bool:
            results = np.concatenate(parts)
            if rung:
                placed = place(rules, {**met, spec: results})
                return bool(placed["high"] - placed["low"] < NARROW_ELO)
            low, high = won(results)["ci95"]
            return bool(high - low < NARROW_RATE)

        # An agent that is not compiled holds the interpreter's lock, and may be a user's, which
        # expects to be alone.
        several = threads > 1 and all(map(is_compiled, pair))
        workers = _Threads(threads) if several else InProcess()
        advance(spec, 0)
        for block in play_plan(plan, pair, workers, enough, looks=looks[1:], seconds=1e-9):
            parts.append(block.results)
            advance(spec, block.start + len(block.results))
        played[spec] = np.concatenate(parts)
        return played[spec]

    placed: dict[str, Any] = {}
    if _FAR < won(play(ANCHOR))["win_rate"] < 1 - _FAR:
        met[ANCHOR] = played[ANCHOR]
        placed = place(rules, met)
    elif near is not None and _stands_near(agent, rules, near):
        placed["elo"] = near
    else:
        placed["elo"] = guess(agent, rules, _FEW, EVAL_SEED)
    while len(met) < MOST_RUNGS:
        first, second = nearest(rules.players, placed["elo"], 2)
        if first.spec in met and len(met) >= 2:
            break
        spec = second.spec if first.spec in met else first.spec
        met[spec] = play(spec, rung=True)
        placed = place(rules, met)
    for spec in bots:
        play(spec)
    results = {spec: won(some) for spec, some in played.items()}
    regret = None
    if half is not None:
        measured = measure(shipped(rules.players), agent, half).summary()[ALL]
        regret = [measured.mean, measured.low, measured.high]
    return Evaluation(**placed, rungs=list(met), results=results, regret=regret)


def prepare(agent: Agent, rules: Rules) -> None:
    """Compile, or load, what `evaluate` needs: the agent, and each kind of rung."""
    kinds = {rung.spec.partition(":")[0]: rung for rung in rungs(rules.players)}
    play_pairing((agent, make(ANCHOR)), rules, 1, seed=EVAL_SEED)
    warm_up([make(rung.spec) for rung in kinds.values()], rules)


class _Threads(InProcess):
    """Threads that play a part of each block, each with its own agents: these remember plans."""

    def __init__(self, count: int) -> None:
        self._threads = count

    def begin(self, job: Job) -> Callable[..., Future[Any]]:
        players = [deepcopy(job)() for _ in range(self._threads)]
        flag = cancellation.current()

        def part(task: tuple[Callable[..., Any], int, int]) -> Any:
            player, start, stop = task
            with flag.watched():
                return player(start, stop)

        def block(start: int, stop: int) -> Block:
            runs = zip(players, machine.runs(stop - start, len(players)), strict=False)
            tasks = [(player, start + run.start, start + run.stop) for player, run in runs]
            parts = machine.together(part, tasks)
            results = np.concatenate([part.results for part in parts])
            return Block(start, results, sum(part.seconds for part in parts), [])

        return partial(self.submit, block)


def _stands_near(agent: Agent, rules: Rules, elo: float) -> bool:
    """Return whether a few games find the agent about as strong as the nearest rung."""
    [rung] = nearest(rules.players, elo)
    played = play_pairing((agent, make(rung.spec)), rules, _FEW, seed=EVAL_SEED)
    return _FAR < played.win_rate[0] < 1 - _FAR
