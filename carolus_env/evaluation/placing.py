"""Strength of one agent: against `planner`, on the ladder, and its regret on the suite."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Final

from carolus_env.bots import Agent, AgentLike, is_compiled, make
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import ladder
from carolus_env.evaluation.games import Results, play_games, warm_up
from carolus_env.evaluation.pairing import PairingResult, pairing_result, play_pairing
from carolus_env.evaluation.regret import ALL, measure
from carolus_env.evaluation.seating import Plan, deals_for, pairing
from carolus_env.evaluation.suite import shipped
from carolus_env.system import cancellation, threads

EVAL_SEED: Final = 1_000_000_007
"""Seed of the deals of evaluations, far from the seeds of training games."""
MOST_RUNGS: Final = 3
"""Maximum number of rungs that a rating comes from."""
NARROW_RATE: Final = 0.08
"""Width of a win rate's 95 % interval at which the games against an opponent end."""
NARROW_ELO: Final = 80.0
"""Width of the rating's 95 % interval, in Elo points, at which games against rungs end."""
_BLOCK: Final = 100
"""Games between two looks at an interval."""
_FEW: Final = 12
"""Games against each rung for a rough rating."""
_FAR: Final = 0.1
"""Win rates less than this from 0 or 1 mean that a rung is too far from the agent."""

Advance = Callable[[str, int], None]
"""A function of an opponent and the number of games against it so far."""
Narrow = Callable[[Results], bool]


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

    Args:
        agent: the agent to rate.
        rules: rules of all games.
        games: maximum number of games against each agent.
        near: a guess of its rating; None: nothing is known.
        bots: specs of agents that it plays besides, as it plays `planner`.
        half: half of the suite to measure its regret on, in positions of the usual rules;
            None: none.
        threads: number of threads; results do not depend on it.
        advance: a function to call as games end.

    Raises:
        ArenaError: when an agent fails.
        Stopped: when the work is to end (`system.cancellation`).
    """
    players = rules.players
    match = _Match(agent, rules, games, threads, advance)
    played = {ladder.ANCHOR: match.play(ladder.ANCHOR, match.rate_is_narrow)}
    rate = match.result(played[ladder.ANCHOR]).win_rate[0]
    met: dict[str, Results] = {}
    if _FAR < rate < 1 - _FAR:
        met[ladder.ANCHOR] = played[ladder.ANCHOR]
        elo, low, high = ladder.place(rules, met)
    elif near is not None and _stands_near(agent, rules, near):
        elo = near
    else:
        elo = ladder.guess(agent, rules, _FEW, EVAL_SEED)

    def elo_is_narrow(results: Results) -> bool:
        _, low, high = ladder.place(rules, {**met, spec: results})
        return high - low < NARROW_ELO

    while len(met) < MOST_RUNGS:
        first, second = ladder.nearest(players, elo, 2)
        if first.spec in met and len(met) >= 2:
            break
        spec = second.spec if first.spec in met else first.spec
        if spec not in played:
            played[spec] = match.play(spec, elo_is_narrow)
        met[spec] = played[spec]
        elo, low, high = ladder.place(rules, met)
    for spec in bots:
        if spec not in played:
            played[spec] = match.play(spec, match.rate_is_narrow)
    results = {}
    for spec, games_played in played.items():
        result = match.result(games_played)
        numbers = {"win_rate": result.win_rate[0], "ci95": list(result.ci95[0])}
        results[spec] = {**numbers, "games": result.games}
    regret = None if half is None else _regret(agent, players, half)
    return Evaluation(elo, low, high, list(met), results, regret)


def prepare(agent: Agent, rules: Rules) -> None:
    """Compile, or load, what `evaluate` needs: the agent, and each kind of rung."""
    kinds = {rung.spec.partition(":")[0]: rung for rung in ladder.rungs(rules.players)}
    rungs = [make(rung.spec) for rung in kinds.values()]
    play_pairing((agent, make(ladder.ANCHOR)), rules, 1, seed=EVAL_SEED)
    warm_up(rungs, rules)


class _Match:
    """An agent against others, on threads.

    Args: those of `evaluate`.
    """

    def __init__(
        self, agent: Agent, rules: Rules, games: int, threads: int, advance: Advance
    ) -> None:
        self._agent, self._rules, self._advance = agent, rules, advance
        self._threads = threads
        self._seatings = len(pairing(rules).seatings)
        self._deals = deals_for(games, self._seatings)

    def result(self, results: Results) -> PairingResult:
        """Return the agent's result against an opponent."""
        return pairing_result(("", ""), results)

    def rate_is_narrow(self, results: Results) -> bool:
        """Return whether the interval of the win rate is narrow."""
        low, high = self.result(results).ci95[0]
        return high - low < NARROW_RATE

    def play(self, spec: str, narrow: Narrow, opponent: AgentLike | None = None) -> Results:
        """Play deals against an agent until ``narrow`` holds, or all are played.

        Args:
            spec: the opponent's name.
            narrow: a function of the games so far.
            opponent: the opponent; None: the agent that the name specifies.
        """
        plan = Plan(self._rules, ("learner", spec), deals=self._deals, seed=EVAL_SEED)
        self._advance(spec, 0)
        # Agents remember what they plan, so each thread has its own. One that is not compiled
        # holds the interpreter's lock, and may be a user's, which expects to be alone.
        pairs = [(self._agent, make(spec if opponent is None else opponent))]
        if all(map(is_compiled, pairs[0])):
            pairs += [deepcopy(pairs[0]) for _ in range(1, self._threads)]
        warm_up(pairs[0], self._rules)
        parts: list[Results] = []
        start, step = 0, deals_for(_BLOCK, self._seatings)
        while start < plan.deals and (start == 0 or not narrow(Results.joined(parts))):
            stop = min(start + max(step, start // 8), plan.deals)  # looks take time, too
            parts += self._play_deals(plan, start, stop, pairs)
            start = stop
        return Results.joined(parts)

    def _play_deals(
        self, plan: Plan, start: int, stop: int, pairs: Sequence[tuple[Agent, Agent]]
    ) -> list[Results]:
        """Play deals ``start`` to ``stop - 1`` of a plan, a part on each thread."""
        flag, lock, before = cancellation.current(), threading.Lock(), start * self._seatings
        done: dict[int, int] = {}

        def play(part: tuple[int, slice]) -> Results:
            worker, deals = part

            def advance(games: int) -> None:
                with lock:
                    done[worker] = games
                    self._advance(plan.agents[1], before + sum(done.values()))

            first, last = (self._seatings * (start + end) for end in (deals.start, deals.stop))
            with flag.watched():
                return play_games(
                    plan.fixtures(first, last),
                    pairs[worker],
                    plan.rules,
                    seed=plan.seed,
                    progress=advance,
                )

        parts = threads.runs(stop - start, len(pairs))
        return threads.together(play, list(enumerate(parts)))


def _regret(agent: Agent, players: int, half: str) -> list[float]:
    """Return the agent's regret per decision on a half of the suite."""
    result = measure(shipped(players), agent, half).summary()[ALL]
    return [result.mean, result.low, result.high]


def _stands_near(agent: Agent, rules: Rules, elo: float) -> bool:
    """Return whether a few games find the agent about as strong as the nearest rung."""
    [rung] = ladder.nearest(rules.players, elo)
    played = play_pairing((agent, make(rung.spec)), rules, _FEW, seed=EVAL_SEED)
    return _FAR < played.win_rate[0] < 1 - _FAR


def not_clearly_weaker(
    agent: Agent,
    other: Agent,
    rules: Rules,
    games: int,
    *,
    threads: int = 1,
    advance: Advance = lambda spec, games: None,
) -> bool:
    """Return whether the first of two agents is not clearly weaker: 1/2 lies in its interval.

    A hundred games cannot tell a little stronger from a little weaker. To ask for half of them
    would leave many a run with an early network. ``threads`` and ``advance`` are those of
    `evaluate`; the other agent is called ``best``.
    """
    match = _Match(agent, rules, games, threads, advance)
    played = match.play("best", lambda results: False, other)
    return match.result(played).ci95[0][1] >= 0.5
