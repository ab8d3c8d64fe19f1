"""An agent's regret on a suite: measured, as a table, as JSON, and its worst decisions as games.

A choice that the suite lists has the regret of its label. Any other is played on from, and so is
the best candidate, by the suite's base with the same dice: the regret is the mean difference.
"""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent, Checked, lockstep
from carolus_env.engine.rules import MAX_PLAYERS, MOVE, PLACE, Rules
from carolus_env.engine.setup import Deals
from carolus_env.engine.state import States, copy, equal, pick
from carolus_env.evaluation.games import agent_error, refusal
from carolus_env.evaluation.rollouts import DECISIONS, KINDS, MOST_GAMES, after, standard_error
from carolus_env.evaluation.suite import STAGES, Suite, SuiteError, SuitePosition, shipped
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
        TypeError, ValueError: for something else.
    """
    instance("agent", agent, Agent, "an agent (carolus_env.make makes one)")
    agent = agent if isinstance(agent, Checked) else Checked(agent)
    after = copy(states)
    if not np.isin(after["phase"], list(DECISIONS)).all():
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

    Args:
        suite: a suite of `suite.shipped` or `suite.read_suite`.
        agent: the agent to measure.
        half: ``report``, ``learn`` or ``all``.
        games: number of games from an unlisted choice, and from the best candidate beside it.
        decisions: decisions of the suite, instead of a half.

    Raises:
        TypeError, ValueError: for something else.
        AgentError: when the agent answers something else than legal actions.
    """
    instance("suite", suite, Suite, "a suite of decisions (suite.shipped(players))")
    instance("agent", agent, Agent, "an agent (carolus_env.make makes one)")
    games = whole_number("games", games, 2, MOST_GAMES)
    if decisions is None:
        decisions = suite.half(half)
    if not (isinstance(decisions, Sequence) and decisions and all(map(suite.has, decisions))):
        raise ValueError(f"decisions must be one or more of the suite, got {shown(decisions)}")
    selected = tuple(decisions)
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
    played = suite.sampler(_ROLLOUT_SEED).play(ends.repeat(games), names)
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

    Args:
        agents: the agents to measure.
        players: number of players of the suite; None: all suites, one after the other.
        json: file for the result.
        out: folder for the result and, as games for the viewer, each agent's ten worst decisions.
        quiet: print nothing.

    Raises:
        SuiteError: when the package has no such suite.
        ValueError: for no agents, and when all are left out.
        ArenaError: when an agent fails.
        OSError: when a file cannot be written.
    """
    instance("agents", agents, Sequence, "a list of agents")
    if not agents:
        raise ValueError("a suite measures one agent or more, got no agents")
    for agent in agents:
        instance("agents", agent, Agent, "a list of agents (carolus_env.make makes them)")
    chosen = suites(players)
    reasons = {
        suite.players: [refusal(agent, Rules(suite.players)) for agent in agents]
        for suite in chosen
    }
    if all(map(all, reasons.values())):
        raise ValueError(next(iter(reasons.values()))[0])
    left_out = {number: sorted({*filter(None, some)}) for number, some in reasons.items()}
    results: list[list[Measured]] = []
    for suite in chosen:
        if not quiet:
            for reason in left_out[suite.players]:
                print(f"Left out of {suite.players} players: {reason}")
        measured: list[Measured] = []
        try:
            for agent, reason in zip(agents, reasons[suite.players], strict=True):
                if not reason:
                    measured.append(_measured(suite, agent))
        finally:
            if measured:
                results.append(measured)
                _show(measured, out, quiet=quiet)
                for file in filter(None, (json, out and out / RESULT_FILE)):
                    write_json(file, result(results, left_out))


def _measured(suite: Suite, agent: Agent) -> Measured:
    try:
        return measure(suite, agent, HALF)
    except Exception as error:  # a user's agent can fail in any way
        raise agent_error(error, agent.name, f" failed with {message(error)}") from error


def _show(measured: Sequence[Measured], out: Path | None, *, quiet: bool) -> None:
    """Print the table of a suite, and write the worst decisions."""
    if not quiet:
        print(table(measured))
    if out:
        path = out / f"worst_{measured[0].suite.players}p.jsonl"
        write_records(path, [record for each in measured for record in records(each, WORST)])
        if not quiet:
            print(f"To look at the worst: carolus play {shlex.quote(str(path))}\n")


def suites(players: int | None) -> list[Suite]:
    """Return the package's suite for a number of players; None: all suites.

    Raises:
        SuiteError: when there is none.
    """
    if players is not None:
        return [shipped(players)]
    chosen = []
    for number in (2, 3, 4):
        try:
            chosen.append(shipped(number))
        except SuiteError:
            continue
    if not chosen:
        raise SuiteError("the package has no suites")
    return chosen


# ------------------------------------------------------------------------------------ table


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
    head = ("agent", *(f"a {kind}" for kind in kinds), "a decision", "listed", "s")
    rows = [head]
    for result in measured:
        regrets = result.summary()
        cells = [_cell(regrets[name]) for name in (*kinds, ALL)]
        listed = f"{100 * result.listed.mean():.0f} %"
        rows.append((result.agent, *cells, listed, f"{result.seconds:.1f}"))
    return "\n".join([*lines, *aligned(rows), ""])


def _cell(regret: Regret) -> str:
    return f"{100 * regret.mean:.1f} [{100 * regret.low:.1f}, {100 * regret.high:.1f}]"


# ------------------------------------------------------------------------------------ the worst


def records(measured: Measured, count: int) -> list[Record]:
    """Return the games of the worst decisions, each with the agent's choice and with the best.

    They end with the choice. The name of the seat that decides says which one it is.
    """
    lines = []
    for row in measured.worst(count):
        decision = measured.decisions[row]
        seat = int(decision.state()["player"][0])
        cost = f"{100 * measured.regrets[row]:.0f} %"
        for name, actions in (
            (f"lost {cost}: {measured.agent}", measured.actions[row]),
            ("the best choice", decision.best.actions),
        ):
            record = decision.record()
            record["events"] += [{"action": action, "player": seat} for action in actions]
            names = [f"seat {k}" for k in range(len(decision.seated))]
            names[seat] = name
            lines.append({**record, "game": decision.number, "names": names})
    return lines


# ------------------------------------------------------------------------------------ JSON


def result(
    measurements: Sequence[Sequence[Measured]], left_out: Mapping[int, Sequence[str]]
) -> dict[str, Any]:
    """Return all that was measured, and who was left out, by number of players, JSON-ready."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "half": HALF,
        "games_if_unlisted": GAMES,
        "suites": [_suite(measured) for measured in measurements],
        "left_out": {number: list(reasons) for number, reasons in left_out.items() if reasons},
    }


def _suite(measured: Sequence[Measured]) -> dict[str, Any]:
    suite, decisions = measured[0].suite, measured[0].decisions
    return {
        "players": suite.players,
        "suite": suite.digest,
        "base": suite.base,
        "error": suite.header["error"],
        "decisions": [decision.number for decision in decisions],
        "optimism": optimism(decisions),
        "agents": [_agent(result) for result in measured],
    }


def _agent(measured: Measured) -> dict[str, Any]:
    return {
        "spec": measured.agent,
        "regret": {name: regret._asdict() for name, regret in measured.summary().items()},
        "regrets": [round(float(regret), 5) for regret in measured.regrets],
        "errors": [round(float(error), 5) for error in measured.errors],
        "listed": [bool(flag) for flag in measured.listed],
        "actions": [list(actions) for actions in measured.actions],
        "answers": measured.answers,
        "seconds": round(measured.seconds, 3),
    }
