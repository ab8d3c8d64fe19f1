"""Making a suite: positions from games of unlike agents, their candidates rolled out.

Each decision has a number, which decides its kind, its stage and all its random numbers. So
decisions can be made in any order, by any number of processes, and come out the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from carolus_env import bots, engine
from carolus_env.bots import lockstep
from carolus_env.engine.dealing import Deals
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import States, single
from carolus_env.engine.streams import branches, new_streams
from carolus_env.evaluation.rollouts.candidates import KINDS, after, candidates, distinct, kind_of
from carolus_env.evaluation.rollouts.rollout import BASE, Options, roll_out
from carolus_env.evaluation.rollouts.values import value_function
from carolus_env.evaluation.suite.choices import choose
from carolus_env.evaluation.suite.data import (
    FORMAT,
    HALVES,
    VERSION,
    SuiteError,
    line_of,
    pack_game,
    packed,
)
from carolus_env.evaluation.suite.stages import STAGES, stages_of
from carolus_env.notation import to_line
from carolus_env.records import make_record
from carolus_env.system.files import locked, write_file
from carolus_env.system.processes import Workers, ready

SHARES: Final = {"disc": Fraction(2, 5), "turn": Fraction(1, 2), "crown": Fraction(1, 10)}
"""Shares of the kinds; each is split evenly among the stages, and then among the halves."""

TABLE: Final = ("greedy", "planner", "mcts:sims=25", "ppo", "value:errors=0.2", "value")
"""Agents of the games that positions come from, drawn for each seat, never all alike."""

PROPOSERS: Final = ("planner", "ppo", "mcts:sims=100", "value", "search:sims=100")
"""Agents whose choices become candidates."""

_COUNTED: Final = 100  # games of the base in which a seat's decisions are counted
_ROUNDED: Final = 5  # digits of a value


@dataclass(frozen=True)
class Plan:
    """Parameters of a suite; all that decides its content.

    Raises:
        ValueError: for a value that is not allowed; the text names it.
    """

    players: int
    decisions: int = 1000
    error: float = 0.01
    """Standard error of the candidates that are not dropped."""
    base: str = BASE
    """Spec of the agent that plays the rollouts."""
    rounds: int = 3
    """Rounds after which games are bootstrapped from the value function; 0: play to the end."""
    value: str = "value"
    """The value function (`values.value_function`)."""
    decided: float = 0.03
    """Leave positions out that the value function finds decided: the best candidate is worth less
    to the team that decides, or every one is worth more than 1 less it; 0: leave none out."""
    seed: int = 0
    turns: int = 4
    """Candidates of a turn by the planner's evaluation; the proposers' choices are added."""
    games: int = 1500
    """Maximum number of games from each candidate, if the error is not reached before."""
    table: tuple[str, ...] = TABLE
    proposers: tuple[str, ...] = PROPOSERS

    def __post_init__(self) -> None:
        Rules(self.players)
        self.options()
        for name, most in (("decisions", 10**7), ("turns", 4096)):
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(
                    f"{name} must be a whole number from 1 to {most:,}, got {getattr(self, name)}"
                )
        if not 0 <= self.decided < 0.5:
            raise ValueError(f"decided must lie in [0, 0.5), got {self.decided}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed must be from 0 to 2^63 - 1, got {self.seed}")
        if len(set(self.table)) < 2:
            raise ValueError(f"table must be two different agents or more, got {self.table}")

    def options(self) -> Options:
        """Return the options of the rollouts.

        Raises:
            ValueError: for a value that is not allowed.
        """
        return Options(
            base=_agent(self.base),
            value=_value(self.value, self.players),
            rounds=self.rounds or None,
            games=self.games,
            error=self.error,
        )

    def cells(self) -> list[tuple[str, str, str]]:
        """Return the kind, stage and half of each decision, well mixed.

        Shares hold as nearly as whole numbers allow; what is left over goes to the first ones.
        """
        kinds = _shared(self.decisions, [SHARES[kind] for kind in KINDS])
        result = []
        for kind, of_kind in zip(KINDS, kinds, strict=True):
            parts = _shared(of_kind, [Fraction(1, len(STAGES))] * len(STAGES))
            for stage, count in zip(STAGES, parts, strict=True):
                for k in range(count):
                    position = Fraction(2 * k + 1, 2 * count)
                    result.append((position, (kind, stage, HALVES[k % 2])))
        result.sort(key=lambda item: item[0])  # stable: cells of one position keep their order
        return [cell for _, cell in result]

    def header(self) -> dict[str, Any]:
        """Return the first line of the file, but for what is counted by playing."""
        plain = asdict(self)
        return {
            "format": FORMAT,
            "version": VERSION,
            **plain,
            "value_version": _value(self.value, self.players).version,
            "command": self.command(),
        }

    def command(self) -> str:
        """Return the command that makes it."""
        words = [f"--players {self.players}"]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "players" and value != field.default:
                text = " ".join(value) if isinstance(value, tuple) else value
                words.append(f"--{field.name} {text}")
        return f"python -m carolus_env.evaluation.suite {' '.join(words)} --out FILE"


def _shared(total: int, shares: list[Fraction]) -> list[int]:
    """Return whole numbers that sum to the total, nearest to its shares."""
    exact = [total * share for share in shares]
    result = [int(part) for part in exact]
    order = sorted(range(len(shares)), key=lambda k: (int(exact[k]) - exact[k], k))
    for k in order[: total - sum(result)]:
        result[k] += 1
    return result


# ------------------------------------------------------------------------------------ a decision


def make_decision(plan: Plan, number: int) -> dict[str, Any]:
    """Make one decision of a suite, as its line in the file."""
    kind, stage, half = plan.cells()[number]
    chance = np.random.default_rng([plan.seed, number])
    while True:
        game = _Game.played(plan, chance)
        for at in chance.permutation(game.places(kind, stage)):
            state = game.states[at]
            choices = _choices(plan, state, number)
            if len(choices) > 1 and not _is_decided(plan, state, choices):
                return {
                    "number": number,
                    "kind": kind,
                    "stage": stage,
                    "half": half,
                    **_rolled_out(plan, state, choices, int(chance.integers(2**63))),
                    "position": to_line(state, generator=False),
                    "met": list(game.met),
                    "game": game.until(at),
                }


@dataclass
class _Game:
    """A game of unlike agents.

    Attributes:
        met: the agent at each seat.
        seed: seed of the game's dice.
        states: the states before each decision, with generator 0.
        actions: the actions taken.
    """

    met: tuple[str, ...]
    seed: int
    states: States
    actions: list[int]

    @classmethod
    def played(cls, plan: Plan, chance: np.random.Generator) -> _Game:
        """Play one more game."""
        while True:
            met = tuple(plan.table[k] for k in chance.integers(len(plan.table), size=plan.players))
            if len(set(met)) > 1:
                break
        seed = int(chance.integers(2**62))
        game = engine.new_games(Rules(plan.players), 1, seed=seed)
        own = branches(np.repeat(new_streams(seed, 1), plan.players), np.arange(plan.players))
        games = lockstep.Games(game, np.arange(plan.players)[None, :], own[None, :])
        steps = list(lockstep.play(games, [_agent(spec) for spec in met]))
        result = np.concatenate([step.shown for step in steps])
        result["generator"] = 0
        return cls(met, seed, result, [int(step.actions[0]) for step in steps])

    def places(self, kind: str, stage: str) -> list[int]:
        """Return the indices where decisions of a kind and a stage begin."""
        stages = stages_of(self.states)
        result, before = [], None
        for at, state in enumerate(self.states):
            turn = (kind_of(state), int(state["round"]), int(state["turn"]))
            begins = turn[0] != "turn" or turn != before
            before = turn
            if begins and turn[0] == kind and STAGES[stages[at]] == stage:
                result.append(at)
        return result

    def until(self, at: int) -> dict[str, Any]:
        """Return the game up to a decision, in short."""
        start = engine.new_games(
            Rules(int(self.states["players"][0])), 1, seed=self.seed, roll=False
        )
        return pack_game(make_record(start, self.actions[:at]))


@cache
def _agent(spec: str) -> bots.Agent:
    return bots.make(spec)


def _choices(plan: Plan, state: np.void, number: int) -> list[tuple[int, ...]]:
    """Return the candidates of a position, those that lead to different ones."""
    result = candidates(state, most=plan.turns)
    if kind_of(state) == "turn":
        for spec in plan.proposers:
            result += choose(_agent(spec), single(state), np.array([number]), plan.seed).actions
    ends = after(state, result)
    return [result[row] for row in distinct(ends)]


def _is_decided(plan: Plan, state: np.void, choices: list[tuple[int, ...]]) -> bool:
    """Return whether the value function finds that nothing is left to decide."""
    result = _value(plan.value, plan.players)(after(state, choices))
    worth = result[:, int(state["team"][state["player"]])]
    return bool(worth.max() < plan.decided or worth.min() > 1 - plan.decided)


_value = cache(value_function)


def _rolled_out(
    plan: Plan, state: np.void, choices: list[tuple[int, ...]], seed: int
) -> dict[str, Any]:
    result = roll_out(state, choices, plan.options(), seed=seed)
    return {
        "team": result.team,
        "candidates": [
            {
                "actions": list(candidate.actions),
                "value": round(float(candidate.mean[result.team]), _ROUNDED),
                "error": round(float(candidate.error[result.team]), _ROUNDED),
                "loss": round(candidate.loss, _ROUNDED),
                "loss_error": round(candidate.loss_error, _ROUNDED),
                "games": candidate.games,
                "dropped": candidate.dropped,
            }
            for candidate in result.candidates
        ],
    }


def _per_game(plan: Plan) -> dict[str, float]:
    """Return the mean number of decisions of each kind that a seat takes in a game of the base."""
    deals = Deals.of(plan.seed, np.arange(_COUNTED))
    games = deals.games(Rules(plan.players))
    tables = np.zeros((_COUNTED, plan.players), np.int64)
    counts, turns = dict.fromkeys(KINDS, 0), np.full((_COUNTED, 2), -1)
    for step in lockstep.play(lockstep.Games(games, tables, deals.streams()), [_agent(plan.base)]):
        for row, state in zip(step.rows, step.shown, strict=True):
            kind = kind_of(state)
            turn = (int(state["round"]), int(state["turn"]))
            counts[kind] += kind != "turn" or turn != tuple(turns[row])
            if kind == "turn":
                turns[row] = turn
    return {kind: count / (_COUNTED * plan.players) for kind, count in counts.items()}


# ------------------------------------------------------------------------------------ a suite


def make_suite(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    workers: int | Workers = 1,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Make a suite's file, or go on where an earlier call stopped.

    What is done is kept next to it, in a file with ``.part`` added to its name; a process that is
    killed loses at most the decisions under way. The same plan gives the same file, whatever the
    interruptions and the workers.

    Args:
        plan: the suite's plan.
        path: the suite's file; compressed when the name ends in ``.gz``.
        workers: processes, or workers that the caller has and closes.
        progress: a function of the number of decisions made.

    Raises:
        SuiteError: when the file exists, or what is kept belongs to another plan.
        WorkerError: when workers cannot be had, or die.
        OSError: when it cannot be written.
    """
    path = Path(path)
    with locked(path):
        _make_alone(plan, path, workers, progress or (lambda done: None))


def _make_alone(
    plan: Plan, path: Path, workers: int | Workers, progress: Callable[[int], None]
) -> None:
    if path.exists():
        raise SuiteError(f"{path}: exists; name another file")
    part = path.with_name(path.name + ".part")
    header, done = _begun(plan, part)
    progress(len(done))
    waiting = [number for number in range(plan.decisions) if number not in done]
    with ready(workers) as makers, part.open("ab") as file:
        makers.begin(partial(_maker, plan))
        for _, line in makers.streamed((number,) for number in waiting):
            done[line["number"]] = line
            file.write(line_of(line))
            file.flush()
            os.fsync(file.fileno())
            progress(len(done))
    content = b"".join([line_of(header), *(line_of(done[k]) for k in sorted(done))])
    write_file(path, packed(content) if path.name.endswith(".gz") else content)
    part.unlink(missing_ok=True)


def _begun(plan: Plan, part: Path) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """Return the header and the decisions made so far; a new file is begun."""
    expected = json.loads(line_of(plan.header()))
    if not part.exists():
        header = {**expected, "per_game": _per_game(plan)}
        write_file(part, line_of(header))
        return header, {}
    complete, newline, _ = part.read_bytes().rpartition(b"\n")
    first, *rest = [json.loads(line) for line in complete.splitlines()] or [{}]
    unlike = [key for key, value in expected.items() if first.get(key) != value]
    if unlike:
        raise SuiteError(
            f"{part}: of another plan, which differs in {', '.join(unlike)}; move it away"
        )
    with part.open("r+b") as file:  # a line that was cut short is made again
        file.truncate(len(complete) + len(newline))
    return first, {line["number"]: line for line in rest}


def _maker(plan: Plan) -> Callable[[int], dict[str, Any]]:
    """Return the job of workers: to make decisions by number."""
    return partial(make_decision, plan)
