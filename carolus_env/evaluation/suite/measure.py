"""An agent's regret on a suite, by the suite's rollouts.

A choice that the suite lists has the regret of its label. Any other is played on from, and so is
the best candidate, by the suite's base with the same dice: the regret is the mean difference.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent, Checked, lockstep
from carolus_env.engine.rules import MAX_PLAYERS, MOVE, PLACE
from carolus_env.engine.setup import Deals
from carolus_env.engine.state import States, copy, equal, pick
from carolus_env.evaluation.rollouts.candidates import KINDS, after
from carolus_env.evaluation.rollouts.rollout import standard_error
from carolus_env.evaluation.suite.data import STAGES, Suite, SuitePosition
from carolus_env.system.arrays import F64

GAMES: Final = 50
"""Games from a choice that the suite does not list, and as many from the best candidate."""

ALL: Final = "all"
GAME: Final = "game"

_DRAWN: Final = 2000  # resamples of the bootstrap
_CHOICE_SEED: Final = 0  # seed of the agent's streams
_ROLLOUT_SEED: Final = 1  # seed of the rollouts of unlisted choices


class Chosen(NamedTuple):
    """An agent's choices in ``N`` positions.

    Attributes:
        actions: the actions of each choice, in order.
        after: ``(N,)`` the positions after them, before any dice, with generator 0.
        decisions: number of decisions that the agent took.
    """

    actions: list[tuple[int, ...]]
    after: States
    decisions: int


def choose(agent: Agent, states: States, numbers: npt.NDArray[np.int64], seed: int = 0) -> Chosen:
    """Let an agent decide in every position; in a turn, until the turn is over.

    Args:
        agent: an agent; its answers are checked.
        states: ``(N,)`` positions in which a decision is due; unchanged.
        numbers: ``(N,)``; a position's number and the seed decide the agent's random stream, so
            answers do not depend on other positions.
        seed: 0 to 2^64 - 1.

    Raises:
        AgentError: when the agent answers something else than legal actions.
    """
    agent = agent if isinstance(agent, Checked) else Checked(agent)
    after = copy(states)
    streams = Deals.of(seed, numbers).roots
    actions: list[tuple[int, ...]] = [() for _ in range(len(after))]
    placing, calls, decisions = after["phase"] == PLACE, itertools.count(), 0

    def go_on(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Yield all games at first, then those still placing paladins, until the turn ends."""
        same = np.isin(after["phase"][rows], (PLACE, MOVE))
        return rows[placing[rows] & same] if next(calls) else rows

    tables = np.zeros((len(after), MAX_PLAYERS), np.int64)
    games = lockstep.Games(after, tables, streams[:, None])
    for step in lockstep.play(games, [agent], go_on):
        decisions += len(step.rows)
        for row, action in zip(step.rows, step.actions, strict=True):
            actions[row] += (int(action),)
    after["generator"] = 0
    return Chosen(actions, after, decisions)


class Regret(NamedTuple):
    """Mean regret, in win probability, with its 95 % interval.

    Attributes:
        mean: mean regret of the decisions.
        low, high: percentiles of a bootstrap over decisions.
        decisions: number of decisions.
    """

    mean: float
    low: float
    high: float
    decisions: int


@dataclass(frozen=True)
class Measured:
    """An agent's choices in ``N`` decisions, and their regret.

    Attributes:
        agent: the agent's name.
        suite: the suite.
        decisions: the decisions of the suite that were asked.
        actions: the agent's choices.
        regrets: ``(N,)`` float64, regret of each choice against the best candidate.
        errors: ``(N,)`` float64, their standard errors.
        listed: ``(N,)`` bool: the choice leads where a candidate leads. The others were
            rolled out on the spot.
        answers: number of actions that the agent answered.
        seconds: time the agent took for them.
    """

    agent: str
    suite: Suite
    decisions: tuple[SuitePosition, ...]
    actions: tuple[tuple[int, ...], ...]
    regrets: F64
    errors: F64
    listed: npt.NDArray[np.bool_]
    answers: int
    seconds: float

    def summary(self) -> dict[str, Regret]:
        """Return the mean regret by kind of decision, by stage, in all, and of a game.

        That in all weights kinds as the suite does. That of a game counts each kind as often as a
        seat decides on it in a game of the base agent.
        """
        kinds = np.array([decision.kind for decision in self.decisions])
        stages = np.array([decision.stage for decision in self.decisions])
        parts = {name: kinds == name for name in KINDS} | {name: stages == name for name in STAGES}
        result, drawn = {}, {}
        for k, (name, part) in enumerate(parts.items()):
            if not part.any():
                continue
            values = self.regrets[part]
            # A seed for each part, the same for all agents, makes comparisons paired.
            rows = np.random.default_rng(k).integers(len(values), size=(_DRAWN, len(values)))
            drawn[name] = values[rows].mean(axis=1)
            result[name] = _regret(values.mean(), drawn[name], len(values))
        for name, weight in ((ALL, None), (GAME, self.suite.header["per_game"])):
            weights = {
                kind: result[kind].decisions / len(kinds) if weight is None else weight[kind]
                for kind in KINDS
                if kind in result
            }
            mean = sum(result[kind].mean * often for kind, often in weights.items())
            total = np.sum([drawn[kind] * often for kind, often in weights.items()], axis=0)
            result[name] = _regret(mean, total, len(kinds))
        return result

    def worst(self, count: int) -> list[int]:
        """Return the rows of the decisions with the most regret, the worst first."""
        return [int(row) for row in np.argsort(-self.regrets, kind="stable")[:count]]


def _regret(mean: float, drawn: F64, decisions: int) -> Regret:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Regret(float(mean), float(low), float(high), decisions)


def measure(
    suite: Suite,
    agent: Agent,
    half: str = "report",
    *,
    games: int = GAMES,
    decisions: Sequence[SuitePosition] | None = None,
) -> Measured:
    """Ask an agent for its choice in every decision of a half, and measure the regret.

    A choice counts by the position to which it leads: the order of placements does not matter. One
    that leads where no candidate leads is rolled out by the suite's base. The same agent gets the
    same result; which other decisions are asked does not matter.

    Args:
        suite: a suite of `data.shipped` or `data.read_suite`.
        agent: the agent to measure.
        half: ``report``, ``learn`` or ``all``.
        games: number of games from an unlisted choice, and from the best candidate beside it.
        decisions: decisions of the suite, instead of a half.

    Raises:
        ValueError: for another half, or games less than 2.
        AgentError: when the agent answers something else than legal actions.
    """
    if games < 2:
        raise ValueError(f"games must be 2 or more, got {games}")
    selected = tuple(suite.half(half) if decisions is None else decisions)
    numbers = np.array([decision.number for decision in selected], np.int64)
    states = np.concatenate([decision.state() for decision in selected])
    started = time.perf_counter()
    chosen = choose(agent, states, numbers, _CHOICE_SEED)
    seconds = time.perf_counter() - started
    regrets, errors = np.zeros(len(selected)), np.zeros(len(selected))
    unlisted = []
    for row, decision in enumerate(selected):
        ends = after(states[row], [candidate.actions for candidate in decision.candidates])
        ends["generator"] = 0
        same = np.flatnonzero(equal(ends, pick(chosen.after, np.full(len(ends), row))))
        if len(same):
            regrets[row] = decision.candidates[same[0]].regret
            errors[row] = decision.candidates[same[0]].regret_error
        else:
            unlisted.append(row)
    if unlisted:
        missed = [selected[row] for row in unlisted]
        best = [after(states[row], [selected[row].best.actions]) for row in unlisted]
        ends = np.concatenate([*best, pick(chosen.after, np.array(unlisted))])
        regrets[unlisted], errors[unlisted] = _rolled_out(suite, missed, ends, games)
    listed = np.ones(len(selected), np.bool_)
    listed[unlisted] = False
    return Measured(
        agent.name,
        suite,
        selected,
        tuple(chosen.actions),
        regrets,
        errors,
        listed,
        chosen.decisions,
        seconds,
    )


def _rolled_out(
    suite: Suite, decisions: Sequence[SuitePosition], ends: States, games: int
) -> tuple[F64, F64]:
    """Return the regret of choices, and the standard errors, by rollouts with the same dice.

    Args:
        suite: the suite, which says how rollouts are played.
        decisions: the ``D`` decisions.
        ends: ``(2 D,)`` the positions after the best candidates, then those after the choices.
        games: number of games from each.
    """
    ends["generator"] = 0
    numbers = np.array([decision.number for decision in decisions], np.int64)
    names = np.tile((numbers[:, None] * games + np.arange(games)).ravel(), 2)
    played = suite.sampler(_ROLLOUT_SEED).play(ends.repeat(games), names, names)
    teams = np.array([decision.team for decision in decisions])
    best, chosen = played.shares.reshape(2, len(decisions), games, -1)
    behind = np.take_along_axis(best - chosen, teams[:, None, None], axis=2)[..., 0]
    return behind.mean(axis=1), np.array([standard_error(values) for values in behind])


def optimism(decisions: Sequence[SuitePosition]) -> float:
    """Return the mean overestimate of the best candidates' values, approximately.

    The best of several estimates is more often one that is too high. The mean excess is that of a
    parametric bootstrap: estimates drawn around the found ones, by their standard errors. It is
    the same for all agents, so their order does not depend on it.
    """
    chance = np.random.default_rng(0)
    excess = []
    for decision in decisions:
        behind = np.array([candidate.regret for candidate in decision.candidates])
        errors = np.array([candidate.regret_error for candidate in decision.candidates])
        drawn = errors * chance.standard_normal((_DRAWN, len(behind))) - behind
        excess.append(drawn.max(axis=1).mean())
    return float(np.mean(excess))
