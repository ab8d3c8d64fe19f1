"""Suites of decisions whose choices were rolled out, and an agent's regret on them.

A suite is JSON Lines, a header, then a line for each decision.
``decisions/`` has the package's suites, which ``python -m benchmarks.suite`` made and checked; here
they are trusted by their hash. docs/bench.md explains them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shlex
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent
from carolus_env.engine.rules import MAX_PLAYERS, Rules
from carolus_env.engine.state import States, copy, equal, pick
from carolus_env.evaluation import rollouts
from carolus_env.evaluation.games import agent_error, refusal
from carolus_env.evaluation.rollouts import KINDS, Sampler, choose, value_function
from carolus_env.notation import from_text
from carolus_env.records import Record, play_event, record, start_of, write_records
from carolus_env.system.arrays import F64
from carolus_env.system.command import aligned
from carolus_env.system.files import write_json
from carolus_env.system.options import instance, one_of, whole_number
from carolus_env.system.untrusted import message, shown

HASHES: Final = {2: "a5d78e01a9a6", 3: "57a809bb49f3", 4: "48e9440e5473"}  # by number of players
HALVES: Final = ("learn", "report")  # to learn and tune by; for published results
STAGES: Final = ("opening", "middle", "end")  # `benchmarks.suite.stages_of` tells them apart


@dataclass(frozen=True)
class Candidate:
    """A choice that was rolled out."""

    actions: tuple[int, ...]
    value: float  # the win probability of the team that decides
    error: float  # its standard error
    regret: float  # against the best candidate, in games with the same dice
    regret_error: float  # its standard error; 0 for the best one
    games: int
    dropped: bool  # True: significantly worse, and played no further


@dataclass(frozen=True)
class SuitePosition:
    """A position in which a decision is due."""

    number: int  # in the suite, from 0
    position: str  # a line of `carolus_env.notation`, without generator
    kind: str  # one of `rollouts.KINDS`
    stage: str  # one of `STAGES`
    half: str  # one of `HALVES`
    team: int  # the team that decides
    seated: tuple[str, ...]  # the agent at each seat of the game that it comes from
    game: dict[str, Any]  # the game up to the decision, as `record` reads it
    candidates: tuple[Candidate, ...]  # the best one first

    def state(self) -> States:
        """Return the position: ``(1,)``, with generator 0."""
        return copy(self._state)

    @cached_property
    def _state(self) -> States:
        states = from_text(self.position, seed=0)
        states["generator"] = 0
        return states

    def record(self) -> Record:
        """Return the game up to the decision as a record, which replays (`carolus_env.records`)."""
        events: list[dict[str, Any]] = [
            {"roll": [*map(int, event)]} if isinstance(event, str) else {"action": event}
            for event in self.game["events"]
        ]
        result: Record = {
            "format": record.FORMAT,
            "version": record.VERSION,
            "rules": Rules(len(self.seated)).to_dict(),
            "setup": {key: self.game[key] for key in ("territories", "first_player")},
            "events": events,
            "result": None,
        }
        game = start_of(result)
        for event in events:
            event["player"] = int(game["player"][0])
            play_event(game, event)
        return result


@dataclass(frozen=True)
class Suite:
    """Decisions of games with one number of players."""

    header: dict[str, Any]  # the keys of `benchmarks.suite.SuiteRecipe.header`
    decisions: tuple[SuitePosition, ...]  # by number
    digest: str  # twelve hexadecimal digits that change with anything in it

    @property
    def players(self) -> int:
        return int(self.header["players"])

    @property
    def base(self) -> str:
        """Spec of the agent that played the rollouts."""
        return str(self.header["base"])

    def sampler(self, seed: int) -> Sampler:
        """Return a sampler that plays games as in the rollouts, with other dice.

        Not stratified: a game's first roll would depend on the other games.
        """
        value = value_function(self.header["value"], self.players)
        return Sampler(self.base, seed, value, self.header["rounds"] or None, stratified=False)

    def half(self, name: str) -> list[SuitePosition]:
        """Return the decisions of one half, or of ``all``."""
        one_of("half", name, (*HALVES, "all"))
        return [decision for decision in self.decisions if name in (decision.half, "all")]


def shipped(players: int) -> Suite:
    """Return the package's suite for 2, 3 or 4 players; it is read once."""
    return _shipped(whole_number("players", players, 2, MAX_PLAYERS))


@cache
def _shipped(players: int) -> Suite:
    file = resources.files(__package__) / "decisions" / f"{players}p.jsonl.gz"
    damaged = f"{file}: damaged, install the package again"
    try:
        content = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(f"{damaged} ({error})") from None
    if (found := _digest(content)) != HASHES[players]:
        raise ValueError(f"{damaged} (hash {HASHES[players]} expected, got {found})")
    return parsed(content)


def parsed(content: bytes) -> Suite:
    """Return the suite of a file's lines, which are trusted."""
    header, *lines = map(json.loads, content.splitlines())
    return Suite(header, tuple(map(_decision, lines)), _digest(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _decision(line: dict[str, Any]) -> SuitePosition:
    candidates = []
    for entry in line.pop("candidates"):
        regret, error, actions = entry.pop("loss"), entry.pop("loss_error"), entry.pop("actions")
        candidates.append(Candidate(tuple(actions), regret=regret, regret_error=error, **entry))
    return SuitePosition(seated=tuple(line.pop("met")), candidates=tuple(candidates), **line)


GAMES: Final = 50  # from a choice that the suite does not list, and from the best candidate
ALL, GAME = "all", "game"
_DRAWN: Final = 2000  # resamples of the bootstrap
_CHOICE_SEED: Final = 0  # seed of the agent's streams
_ROLLOUT_SEED: Final = 1  # seed of the rollouts of unlisted choices


class Regret(NamedTuple):
    """Mean regret, in win probability, and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float
    decisions: int


@dataclass(frozen=True)
class Measured:
    """An agent's choices in ``N`` decisions, and their regret."""

    agent: str
    suite: Suite
    decisions: tuple[SuitePosition, ...]
    actions: tuple[tuple[int, ...], ...]  # of each choice
    regrets: F64  # (N,): against the best candidate
    errors: F64  # (N,): their standard errors
    listed: npt.NDArray[np.bool_]  # (N,): the choice leads where a candidate leads
    seconds: float  # the agent's time for its choices

    def summary(self) -> dict[str, Regret]:
        """Return the mean regret by kind of decision, by stage, in all, and of a game.

        That in all weights kinds as the suite does. That of a game counts each kind as often as a
        seat decides on it in a game of the base agent. Intervals are a bootstrap over decisions.
        """
        kinds = np.array([decision.kind for decision in self.decisions])
        stages = np.array([decision.stage for decision in self.decisions])
        parts = {name: kinds == name for name in KINDS} | {name: stages == name for name in STAGES}
        found: dict[str, tuple[Any, F64, int]] = {}
        for k, (name, part) in enumerate(parts.items()):
            if part.any():
                values = self.regrets[part]
                # A seed for each part, the same for all agents, makes comparisons paired.
                rows = np.random.default_rng(k).integers(len(values), size=(_DRAWN, len(values)))
                found[name] = values.mean(), values[rows].mean(axis=1), len(values)
        asked = [kind for kind in KINDS if kind in found]
        shares = {kind: np.mean(kinds == kind) for kind in asked}
        for name, weights in ((ALL, shares), (GAME, self.suite.header["per_game"])):
            mean, drawn = (sum(found[kind][k] * weights[kind] for kind in asked) for k in (0, 1))
            found[name] = mean, drawn, len(kinds)
        result = {}
        for name, (mean, drawn, count) in found.items():
            low, high = np.percentile(drawn, [2.5, 97.5]).tolist()
            result[name] = Regret(float(mean), low, high, count)
        return result

    def worst(self, count: int) -> list[int]:
        """Return the rows of the decisions with the most regret, the worst first."""
        return np.argsort(-self.regrets, kind="stable")[: whole_number("count", count, 0)].tolist()


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
    that leads where a candidate leads has the regret of its label. Any other is played on from, and
    so is the best candidate, by the suite's base with the same dice. The same agent gets the same
    result; which other decisions are asked does not matter.

    Args:
        half: ``report``, ``learn`` or ``all``.
        games: number of games from an unlisted choice, and from the best candidate.
        decisions: decisions of the suite, instead of a half.
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
    actions, reached = choose(agent, states, numbers, _CHOICE_SEED)
    seconds = time.perf_counter() - started
    regrets, errors = np.zeros(len(decisions)), np.zeros(len(decisions))
    best, listed = copy(states), np.zeros(len(decisions), np.bool_)
    for row, decision in enumerate(decisions):
        ends = rollouts.after(states[row], [each.actions for each in decision.candidates])
        ends["generator"], best[row] = 0, ends[0]
        for same in np.flatnonzero(equal(ends, pick(reached, np.full(len(ends), row)))):
            candidate, listed[row] = decision.candidates[same], True
            regrets[row], errors[row] = candidate.regret, candidate.regret_error
    if len(missed := np.flatnonzero(~listed)):
        teams = np.array([decision.team for decision in decisions])[missed]
        ends = np.concatenate([pick(best, missed), pick(reached, missed)]).repeat(games)
        names = np.tile((numbers[missed, None] * games + np.arange(games)).ravel(), 2)
        shares, _ = suite.sampler(_ROLLOUT_SEED).play(ends, names)
        of_best, of_choice = shares.reshape(2, len(missed), games, -1)
        behind = np.take_along_axis(of_best - of_choice, teams[:, None, None], axis=2)[..., 0]
        regrets[missed] = behind.mean(axis=1)
        errors[missed] = [rollouts.standard_error(values) for values in behind]
    return Measured(
        agent.name, suite, tuple(decisions), tuple(actions), regrets, errors, listed, seconds
    )


def optimism(decisions: Sequence[SuitePosition]) -> float:
    """Return the mean overestimate of the best candidates' values, approximately.

    The best of several estimates is more often one that is too high. The mean excess is that of a
    parametric bootstrap: estimates drawn around the found ones, by their standard errors. It is
    the same for all agents, so their order does not depend on it.
    """
    chance, excess = np.random.default_rng(0), []
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
HALF: Final = "report"  # of the suite, by which agents are measured
WORST: Final = 10  # decisions of each agent that are written for the viewer


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
        players: number of players of the suite; None: all suites, one after the other.
        json: file for the result.
        out: folder for the result and, as games for the viewer, each agent's worst decisions.
    """
    for agent in instance("agents", agents, Sequence, "a list of agents"):
        instance("agents", agent, Agent, "a list of agents (carolus_env.make makes them)")
    if not agents:
        raise ValueError("a suite measures one agent or more, got no agents")
    if out and (out / RESULT_FILE).exists():
        raise ValueError(f"{out / RESULT_FILE} exists: name another folder")
    suites = [shipped(number) for number in ((2, 3, 4) if players is None else (players,))]
    numbers = [suite.players for suite in suites]
    reasons = {n: [refusal(agent, Rules(n)) for agent in agents] for n in numbers}
    if all(map(all, reasons.values())):
        raise ValueError(next(iter(reasons.values()))[0])
    say = (lambda text: None) if quiet else print
    results: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "half": HALF,
        "games_if_unlisted": GAMES,
        "suites": [],
        "left_out": {n: left for n, some in reasons.items() if (left := sorted({*some} - {""}))},
    }
    try:
        for suite in suites:
            for reason in results["left_out"].get(suite.players, ()):
                say(f"Left out of {suite.players} players: {reason}")
            measured: list[Measured] = []
            try:
                for agent, reason in zip(agents, reasons[suite.players], strict=True):
                    if not reason:
                        measured.append(measure(suite, agent, HALF))
            except Exception as error:  # a user's agent can fail in any way
                raise agent_error(error, agent.name, f" failed with {message(error)}") from error
            finally:
                if measured:
                    results["suites"].append(_as_data(measured))
                    say(table(measured))
                    if out:
                        path = out / f"worst_{suite.players}p.jsonl"
                        write_records(path, chain.from_iterable(map(records, measured)))
                        say(f"To look at the worst: carolus play {shlex.quote(str(path))}\n")
                        write_json(out / RESULT_FILE, results)
    finally:
        if json and results["suites"]:  # once: it may be the standard output
            write_json(json, results)


def _as_data(measured: Sequence[Measured]) -> dict[str, Any]:
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
                "answers": sum(map(len, each.actions)),
                "seconds": round(each.seconds, 3),
            }
            for each in measured
        ],
    }


def table(measured: Sequence[Measured]) -> str:
    """Return a row for each agent: regret by kind and in all, and the share of choices listed."""
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


def records(measured: Measured) -> list[Record]:
    """Return the games of the worst decisions, each with the agent's choice and with the best.

    They end with the choice. The name of the seat that decides says which one it is.
    """
    lines = []
    for row in measured.worst(WORST):
        decision = measured.decisions[row]
        seat = int(decision.state()["player"][0])
        regret = f"regret {100 * measured.regrets[row]:.0f} %"
        for name, actions in (
            (f"{regret}: {measured.agent}", measured.actions[row]),
            ("the best choice", decision.candidates[0].actions),
        ):
            record = decision.record()
            record["events"] += [{"action": action, "player": seat} for action in actions]
            names = [f"seat {k}" for k in range(len(decision.seated))]
            names[seat] = name
            lines.append({**record, "game": decision.number, "names": names})
    return lines
