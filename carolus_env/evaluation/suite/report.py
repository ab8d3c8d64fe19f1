"""Agents' regret as a table, as JSON, and the worst decisions as games: `evaluate.py --suite`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from carolus_env.bots import Agent
from carolus_env.engine.rules import Rules
from carolus_env.evaluation.games import agent_error, refusal
from carolus_env.evaluation.rollouts.candidates import KINDS
from carolus_env.evaluation.suite.data import Suite, SuiteError, shipped
from carolus_env.evaluation.suite.measure import (
    ALL,
    GAMES,
    Measured,
    Regret,
    measure,
    optimism,
)
from carolus_env.records import Record, write_records
from carolus_env.system.failures import message
from carolus_env.system.files import write_json
from carolus_env.system.terminal import aligned

FORMAT: Final = "carolus-suite-result"
VERSION: Final = 1
RESULT_FILE: Final = "suite.json"
HALF: Final = "report"
"""The half of the suite by which agents are measured."""
WORST: Final = 10
"""Decisions of each agent that are written for the viewer."""


def run(
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
    if not agents:
        raise ValueError("a suite measures one agent or more, got none")
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
