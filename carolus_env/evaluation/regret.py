"""An agent's regret on a suite: measured, as a table, as JSON, and its worst decisions as games.

A choice that the suite lists has the regret of its label. Any other is played on from, and so is
the best candidate, by the suite's base with the same dice: the regret is the mean difference.
"""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent, Checked, lockstep
from carolus_env.engine.rules import MAX_PLAYERS, MOVE, PLACE, Rules
from carolus_env.engine.setup import Deals
from carolus_env.engine.state import States, copy, equal, pick
from carolus_env.evaluation import rollouts
from carolus_env.evaluation.games import agent_error, refusal
from carolus_env.evaluation.rollouts import KINDS
from carolus_env.evaluation.suite import STAGES, Suite, SuitePosition, shipped
from carolus_env.records import Record, write_records
from carolus_env.system.arrays import F64
from carolus_env.system.command import aligned
from carolus_env.system.failures import message
from carolus_env.system.files import write_json
from carolus_env.system.options import instance, whole_number, whole_numbers
from carolus_env.system.untrusted import shown

GAMES: Final = 50
"""Games from a choice that the suite does not list, and as many from the best candidate."""

ALL: Final = "all"
GAME: Final = "game"

_DRAWN: Final = 2000  # resamples of the bootstrap
_CHOICE_SEED: Final = 0  # seed of the agent's streams
_ROLLOUT_SEED: Final = 1  # seed of the rollouts of unlisted choices


class Chosen(NamedTuple):
    """An agent's choices in ``N`` positions."""

    actions: list[tuple[int, ...]]  # the actions of each choice, in order
    after: States  # ``(N,)`` the positions after them, before any dice, with generator 0
    decisions: int  # number of decisions that the agent took


def choose(agent: Agent, states: States, numbers: npt.NDArray[np.int64], seed: int = 0) -> Chosen:
    """Let an agent decide in every position; in a turn, until the turn is over."""
    instance("agent", agent, Agent, "an agent (carolus_env.make makes one)")
    agent = agent if isinstance(agent, Checked) else Checked(agent)
    after = copy(states)
    if not np.isin(after["phase"], list(rollouts.DECISIONS)).all():
        raise ValueError("states must be games in which a decision is due")
    numbers = whole_numbers("numbers", numbers, (len(after),))
    streams = Deals.of(whole_number("seed", seed, 0, 2**64 - 1), numbers).roots
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
    """An agent's choices in ``N`` decisions, and their regret."""

    agent: str  # the agent's name
    suite: Suite  # the suite
    decisions: tuple[SuitePosition, ...]  # the decisions of the suite that were asked
    actions: tuple[tuple[int, ...], ...]  # the agent's choices
    regrets: F64  # ``(N,)`` float64, regret of each choice against the best candidate
    errors: F64  # ``(N,)`` float64, their standard errors
    # ``(N,)`` bool: the choice leads where a candidate leads. The others were rolled out on
    # the spot
    listed: npt.NDArray[np.bool_]
    answers: int  # number of actions that the agent answered
    seconds: float  # time the agent took for them

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
        shares = {kind: np.mean(kinds == kind) for kind in KINDS}
        for name, weights in ((ALL, shares), (GAME, self.suite.header["per_game"])):
            asked = [kind for kind in KINDS if kind in result]
            mean = sum(result[kind].mean * weights[kind] for kind in asked)
            total = np.sum([drawn[kind] * weights[kind] for kind in asked], axis=0)
            result[name] = _regret(mean, total, len(kinds))
        return result

    def worst(self, count: int) -> list[int]:
        """Return the rows of the decisions with the most regret, the worst first."""
        count = whole_number("count", count, 0)
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
    """
    instance("suite", suite, Suite, "a suite of decisions (suite.shipped(players))")
    games = whole_number("games", games, 2, rollouts.MOST_GAMES)
    decisions = suite.half(half) if decisions is None else decisions
    instance("decisions", decisions, Sequence, "a list of the suite's decisions")
    fit = [isinstance(one, SuitePosition) and len(one.seated) == suite.players for one in decisions]
    if not (fit and all(fit)):
        raise ValueError(f"decisions must be one or more of the suite, got {shown(decisions)}")
    numbers = np.array([decision.number for decision in decisions], np.int64)
    states = np.concatenate([decision.state() for decision in decisions])
    started = time.perf_counter()
    chosen = choose(agent, states, numbers, _CHOICE_SEED)
    seconds = time.perf_counter() - started
    regrets, errors = np.zeros(len(decisions)), np.zeros(len(decisions))
    best, listed = copy(states), np.zeros(len(decisions), np.bool_)
    for row, decision in enumerate(decisions):
        ends = rollouts.after(states[row], [each.actions for each in decision.candidates])
        ends["generator"], best[row] = 0, ends[0]
        for same in np.flatnonzero(equal(ends, pick(chosen.after, np.full(len(ends), row)))):
            candidate, listed[row] = decision.candidates[same], True
            regrets[row], errors[row] = candidate.regret, candidate.regret_error
    missed = np.flatnonzero(~listed)
    if len(missed):
        teams = np.array([decision.team for decision in decisions])[missed]
        ends = np.concatenate([pick(best, missed), pick(chosen.after, missed)])
        regrets[missed], errors[missed] = _rolled_out(suite, numbers[missed], teams, ends, games)
    return Measured(
        agent.name,
        suite,
        tuple(decisions),
        tuple(chosen.actions),
        regrets,
        errors,
        listed,
        chosen.decisions,
        seconds,
    )


def _rolled_out(
    suite: Suite,
    numbers: npt.NDArray[np.int64],
    teams: npt.NDArray[np.int64],
    ends: States,
    games: int,
) -> tuple[F64, F64]:
    """Return the regret of choices, and the standard errors, by rollouts with the same dice.

    ``ends`` are the positions after the best candidates, then those after the choices.
    """
    names = np.tile((numbers[:, None] * games + np.arange(games)).ravel(), 2)
    played = suite.sampler(_ROLLOUT_SEED).play(ends.repeat(games), names)
    best, chosen = played.shares.reshape(2, len(numbers), games, -1)
    behind = np.take_along_axis(best - chosen, teams[:, None, None], axis=2)[..., 0]
    return behind.mean(axis=1), np.array([rollouts.standard_error(values) for values in behind])


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


# ------------------------------------------------------------------------------------ all suites

FORMAT: Final = "carolus-suite-result"
VERSION: Final = 1
RESULT_FILE: Final = "suite.json"
HALF: Final = "report"
"""The half of the suite by which agents are measured."""
WORST: Final = 10
"""Decisions of each agent that are written for the viewer."""


def measure_agents(
    agents: Sequence[Agent],
    players: int | None = None,
    *,
    json: Path | None = None,
    out: Path | None = None,
    quiet: bool = False,
) -> None:
    """Measure agents by the package's suites, print and write their regret.

    An agent that does not play a suite's number of players is left out there. What was measured
    before an agent fails, or Ctrl-C, is printed and written.
    """
    for agent in instance("agents", agents, Sequence, "a list of agents"):
        instance("agents", agent, Agent, "a list of agents (carolus_env.make makes them)")
    if not agents:
        raise ValueError("a suite measures one agent or more, got no agents")
    suites = [shipped(number) for number in ((2, 3, 4) if players is None else (players,))]
    reasons = {
        suite.players: [refusal(agent, Rules(suite.players)) for agent in agents]
        for suite in suites
    }
    if all(map(all, reasons.values())):
        raise ValueError(next(iter(reasons.values()))[0])
    results: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "half": HALF,
        "games_if_unlisted": GAMES,
        "suites": [],
        "left_out": {n: left for n, some in reasons.items() if (left := sorted({*some} - {""}))},
    }
    for suite in suites:
        for reason in () if quiet else results["left_out"].get(suite.players, ()):
            print(f"Left out of {suite.players} players: {reason}")
        measured: list[Measured] = []
        try:
            for agent, reason in zip(agents, reasons[suite.players], strict=True):
                if not reason:
                    measured.append(_measured(suite, agent))
        finally:
            if measured:
                results["suites"].append(_as_data(measured))
                _show(measured, out, quiet=quiet)
                for file in filter(None, (json, out and out / RESULT_FILE)):
                    write_json(file, results)


def _measured(suite: Suite, agent: Agent) -> Measured:
    try:
        return measure(suite, agent, HALF)
    except Exception as error:  # a user's agent can fail in any way
        raise agent_error(error, agent.name, f" failed with {message(error)}") from error


def _as_data(measured: Sequence[Measured]) -> dict[str, Any]:
    """Return what was measured by one suite, JSON-ready."""
    suite, decisions = measured[0].suite, measured[0].decisions
    return {
        "players": suite.players,
        "suite": suite.digest,
        "base": suite.base,
        "error": suite.header["error"],
        "decisions": [decision.number for decision in decisions],
        "optimism": optimism(decisions),
        "agents": [
            {
                "spec": each.agent,
                "regret": {name: regret._asdict() for name, regret in each.summary().items()},
                "regrets": each.regrets.round(5).tolist(),
                "errors": each.errors.round(5).tolist(),
                "listed": each.listed.tolist(),
                "actions": each.actions,
                "answers": each.answers,
                "seconds": round(each.seconds, 3),
            }
            for each in measured
        ],
    }


def _show(measured: Sequence[Measured], out: Path | None, *, quiet: bool) -> None:
    """Print the table of a suite, and write the worst decisions."""
    if not quiet:
        print(table(measured))
    if out:
        path = out / f"worst_{measured[0].suite.players}p.jsonl"
        write_records(path, [record for each in measured for record in records(each, WORST)])
        if not quiet:
            print(f"To look at the worst: carolus play {shlex.quote(str(path))}\n")


def table(measured: Sequence[Measured]) -> str:
    """Return a row for each agent: regret by kind and in all, and the number of choices listed."""
    suite, decisions = measured[0].suite, measured[0].decisions
    lines = [
        f"{suite.players} players: {len(decisions)} decisions, base {suite.base}, "
        f"standard error {suite.header['error']:g}, suite {suite.digest}",
        "Regret in percent of a win, with 95 % intervals; about "
        f"{100 * optimism(decisions):.1f} too high for all, as the best value is a lucky one",
        "",
    ]
    kinds = [kind for kind in KINDS if any(each.kind == kind for each in decisions)]
    rows = [("agent", *(f"a {kind}" for kind in kinds), "a decision", "listed", "s")]
    for result in measured:
        regrets = result.summary()
        cells = [
            f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
            for mean, low, high, _ in (regrets[name] for name in (*kinds, ALL))
        ]
        listed = f"{100 * result.listed.mean():.0f} %"
        rows.append((result.agent, *cells, listed, f"{result.seconds:.1f}"))
    return "\n".join([*lines, *aligned(rows), ""])


def records(measured: Measured, count: int) -> list[Record]:
    """Return the games of the worst decisions, each with the agent's choice and with the best.

    They end with the choice. The name of the seat that decides says which one it is.
    """
    lines = []
    for row in measured.worst(count):
        decision = measured.decisions[row]
        seat = int(decision.state()["player"][0])
        regret = f"regret {100 * measured.regrets[row]:.0f} %"
        for name, actions in (
            (f"{regret}: {measured.agent}", measured.actions[row]),
            ("the best choice", decision.best.actions),
        ):
            record = decision.record()
            record["events"] += [{"action": action, "player": seat} for action in actions]
            names = [f"seat {k}" for k in range(len(decision.seated))]
            names[seat] = name
            lines.append({**record, "game": decision.number, "names": names})
    return lines
