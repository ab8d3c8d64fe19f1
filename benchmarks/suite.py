"""Make a suite of decisions, or go on where an earlier call stopped; docs/bench.md.

    python -m benchmarks.suite --players 2 --workers 2 --out 2p.jsonl.gz

Positions come from games of unlike agents, and their candidates are rolled out.

Each decision has a number, which decides its kind, its stage and all its random numbers. So
decisions can be made in any order, by any number of processes, and come out the same.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine
from carolus_env.bots import lockstep
from carolus_env.bots.registry import fingerprint
from carolus_env.engine.chance import Deals, branches, new_streams
from carolus_env.engine.rules import CASTLES_TO_WIN, MAX_PLAYERS, MIN_REGIONS, Rules
from carolus_env.engine.state import RAW, States, single
from carolus_env.evaluation.journal import changes
from carolus_env.evaluation.rollouts import (
    BASE,
    KINDS,
    MOST_GAMES,
    Options,
    after,
    candidates,
    choose,
    kind_of,
    roll_out,
    value_function,
)
from carolus_env.evaluation.suite import HALVES, STAGES, Suite, SuitePosition, parsed
from carolus_env.notation import to_line
from carolus_env.records import make_record, play_event, start_of
from carolus_env.system.command import DONE, INTERRUPTED, command, counting, parse
from carolus_env.system.executors import WorkerOptions, Workers, ready, results, workers_of
from carolus_env.system.files import Log, json_line, locked, read_lines, write_file
from carolus_env.system.options import REQUIRED, UserError, check_fields, group, option

SHARES: Final = {"disc": Fraction(2, 5), "turn": Fraction(1, 2), "crown": Fraction(1, 10)}
"""Shares of the kinds; each is split evenly among the stages, and then among the halves."""

TABLE: Final = ("greedy", "planner", "mcts:sims=25", "ppo", "value:errors=0.2", "value")
"""Agents of the games that positions come from, drawn for each seat, never all alike."""

PROPOSERS: Final = ("planner", "ppo", "mcts:sims=100", "value", "search:sims=100")
"""Agents whose choices become candidates."""

FORMAT: Final = "carolus-suite"
VERSION: Final = 2
FEW_REGIONS: Final = MIN_REGIONS + 2

_COUNTED: Final = 100  # games of the base in which a seat's decisions are counted
_ROUNDED: Final = 5  # digits of a value


@dataclass(frozen=True)
class SuiteRecipe:
    """Parameters of a suite; all that decides its content.

    Raises:
        ValueError: for a value that is not allowed; the text names it.
    """

    players: int = option(REQUIRED, "players of a game", kind=int, among=(2, MAX_PLAYERS))
    decisions: int = option(1000, "how many", among=(1, 10**7))
    error: float = option(
        0.01, "standard error of the candidates that are not dropped", above=0, below=1
    )
    base: str = option(BASE, "agent that plays the rollouts", metavar="AGENT")
    rounds: int = option(
        3, "rounds after which games are left, with their value; 0: never", among=(0, 65535)
    )
    value: str = option("value", "the value function, see `values.value_function`")
    decided: float = option(
        0.03,
        "leave out positions whose best candidate is worth less than this to the team that "
        "decides, or whose worst is worth more than 1 less this; 0: none",
        among=(0, None),
        below=0.5,
    )
    seed: int = option(0, "the same seed gives the same file", among=(0, None))
    turns: int = option(4, "candidates of a turn by the planner's evaluation", among=(1, 4096))
    games: int = option(1500, "games of each candidate, at most", among=(2, MOST_GAMES))
    table: tuple[str, ...] = option(TABLE, "agents whose games positions are of", metavar="AGENT")
    proposers: tuple[str, ...] = option(
        PROPOSERS, "agents whose turns are candidates too", metavar="AGENT"
    )

    def __post_init__(self) -> None:
        check_fields(self)
        self.options()
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

    @cached_property
    def cells(self) -> list[tuple[str, str, str]]:
        """The kind, stage and half of each decision, well mixed.

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
        return f"python -m benchmarks.suite {' '.join(words)} --out FILE"


def _shared(total: int, shares: list[Fraction]) -> list[int]:
    """Return whole numbers that sum to the total, nearest to its shares."""
    exact = [total * share for share in shares]
    result = [int(part) for part in exact]
    order = sorted(range(len(shares)), key=lambda k: (int(exact[k]) - exact[k], k))
    for k in order[: total - sum(result)]:
        result[k] += 1
    return result


# ------------------------------------------------------------------------------------ a decision


def make_decision(recipe: SuiteRecipe, number: int) -> dict[str, Any]:
    """Make one decision of a suite, as its line in the file."""
    kind, stage, half = recipe.cells[number]
    chance = np.random.default_rng([recipe.seed, number])
    while True:
        game = _Game.played(recipe, chance)
        for at in chance.permutation(game.places(kind, stage)):
            state = game.states[at]
            choices = _choices(recipe, state, number)
            if len(choices) > 1 and not _is_decided(recipe, state, choices):
                return {
                    "number": number,
                    "kind": kind,
                    "stage": stage,
                    "half": half,
                    **_rolled_out(recipe, state, choices, int(chance.integers(2**63))),
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
    def played(cls, recipe: SuiteRecipe, chance: np.random.Generator) -> _Game:
        """Play one more game."""
        while True:
            met = tuple(
                recipe.table[k] for k in chance.integers(len(recipe.table), size=recipe.players)
            )
            if len(set(met)) > 1:
                break
        seed = int(chance.integers(2**62))
        game = engine.new_games(Rules(recipe.players), 1, seed=seed)
        own = branches(np.repeat(new_streams(seed, 1), recipe.players), np.arange(recipe.players))
        games = lockstep.Games(game, np.arange(recipe.players)[None, :], own[None, :])
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
        record = make_record(start, self.actions[:at])
        events = [
            event["action"] if "action" in event else "".join(map(str, event["roll"]))
            for event in record["events"]
        ]
        return {**record["setup"], "events": events}


def stages_of(states: States) -> npt.NDArray[np.int64]:
    """Return the stage of each game, as an index of `STAGES`: ``(N,)``.

    Opening: no team has a third of the castles that it needs to win. End: a team has two thirds of
    them, or at most `FEW_REGIONS` regions are left. Middle: the rest.
    """
    needed = np.array(CASTLES_TO_WIN)[states["players"].astype(np.int64)]
    most = states["castles"].max(axis=1).astype(np.int64)
    end = (3 * most >= 2 * needed) | (states["regions"] <= FEW_REGIONS)
    return np.where(end, 2, np.where(3 * most >= needed, 1, 0))


@cache
def _agent(spec: str) -> bots.Agent:
    return bots.make(spec)


def _choices(recipe: SuiteRecipe, state: np.void, number: int) -> list[tuple[int, ...]]:
    """Return the candidates of a position, those that lead to different ones."""
    result = candidates(state, most=recipe.turns)
    if kind_of(state) == "turn":
        for spec in recipe.proposers:
            result += choose(_agent(spec), single(state), np.array([number]), recipe.seed)[0]
    ends = after(state, result)
    _, first = np.unique(ends.view(RAW), return_index=True)  # of each position
    return [result[row] for row in np.sort(first)]


def _is_decided(recipe: SuiteRecipe, state: np.void, choices: list[tuple[int, ...]]) -> bool:
    """Return whether the value function finds that nothing is left to decide."""
    result = _value(recipe.value, recipe.players)(after(state, choices))
    worth = result[:, int(state["team"][state["player"]])]
    return bool(worth.max() < recipe.decided or worth.min() > 1 - recipe.decided)


_value = cache(value_function)


def _rolled_out(
    recipe: SuiteRecipe, state: np.void, choices: list[tuple[int, ...]], seed: int
) -> dict[str, Any]:
    result = roll_out(state, choices, recipe.options(), seed=seed)
    return {
        "team": result.team,
        "candidates": [
            {
                "actions": list(candidate.actions),
                "value": round(float(candidate.mean[result.team]), _ROUNDED),
                "error": round(float(candidate.error[result.team]), _ROUNDED),
                "loss": round(candidate.regret, _ROUNDED),
                "loss_error": round(candidate.regret_error, _ROUNDED),
                "games": candidate.games,
                "dropped": candidate.dropped,
            }
            for candidate in result.candidates
        ],
    }


def _per_game(recipe: SuiteRecipe) -> dict[str, float]:
    """Return the mean number of decisions of each kind that a seat takes in a game of the base."""
    deals = Deals.of(recipe.seed, np.arange(_COUNTED))
    games = deals.games(Rules(recipe.players))
    tables = np.zeros((_COUNTED, recipe.players), np.int64)
    counts, turns = dict.fromkeys(KINDS, 0), np.full((_COUNTED, 2), -1)
    for step in lockstep.play(
        lockstep.Games(games, tables, deals.streams()), [_agent(recipe.base)]
    ):
        for row, state in zip(step.rows, step.shown, strict=True):
            kind = kind_of(state)
            turn = (int(state["round"]), int(state["turn"]))
            counts[kind] += kind != "turn" or turn != tuple(turns[row])
            if kind == "turn":
                turns[row] = turn
    return {kind: count / (_COUNTED * recipe.players) for kind, count in counts.items()}


# ------------------------------------------------------------------------------------ a suite


def make_suite(
    recipe: SuiteRecipe,
    path: str | os.PathLike[str],
    *,
    workers: int | Workers = 1,
    progress: Callable[[int], None] | None = None,
) -> str:
    """Make a suite's file, or go on where an earlier call stopped; returns its hash.

    What is done is kept next to it, in a file with ``.part`` added to its name; a process that is
    killed loses at most the decisions under way. The same recipe gives the same file, whatever the
    interruptions and the workers.

    Args:
        recipe: the suite's recipe.
        path: the suite's file; compressed when the name ends in ``.gz``.
        workers: processes, or workers that the caller has and closes.
        progress: a function of the number of decisions made.

    Raises:
        ValueError: when the file exists, or what is kept belongs to another recipe.
        WorkerError: when workers cannot be had, or die.
        OSError: when it cannot be written.
    """
    path = Path(path)
    with locked(path):
        return _make_alone(recipe, path, workers, progress or (lambda done: None))


def _make_alone(
    recipe: SuiteRecipe, path: Path, workers: int | Workers, progress: Callable[[int], None]
) -> str:
    if path.exists():
        raise ValueError(f"{path}: exists; name another file")
    part = path.with_name(path.name + ".part")
    log, header, done = _begun(recipe, part)
    progress(len(done))
    waiting = [number for number in range(recipe.decisions) if number not in done]
    with log, ready(workers) as makers:
        tasks = ((number,) for number in waiting)
        for _, line in results(makers, partial(_maker, recipe), tasks):
            log.append(json_line(line))
            done[line["number"]] = line
            progress(len(done))
    content = b"".join([json_line(header), *(json_line(done[k]) for k in sorted(done))])
    digest = checked(content).digest
    write_file(path, gzip.compress(content, mtime=0) if path.name.endswith(".gz") else content)
    part.unlink(missing_ok=True)
    return digest


def _begun(
    recipe: SuiteRecipe, part: Path
) -> tuple[Log, dict[str, Any], dict[int, dict[str, Any]]]:
    """Return the log of decisions, its header and the decisions so far; a new file is begun."""
    expected = json.loads(json_line(recipe.header()))
    agents = dict.fromkeys((recipe.base, *recipe.table, *recipe.proposers))
    sources = {agent: fingerprint(_agent(agent), recipe.players) for agent in agents}
    if not part.exists():
        header = {**expected, "per_game": _per_game(recipe)}
        return Log.create(part, json_line({**header, "sources": sources})), header, {}
    lines, size, _ = read_lines(part)
    first, *rest = [json.loads(line) for line in lines] or [{}]
    unlike = [key for key, value in expected.items() if first.get(key) != value]
    before = first.pop("sources", {})
    if not unlike:
        unlike = changes([*sources], [before[agent] for agent in sources], [*sources.values()])
    if unlike:
        raise ValueError(
            f"{part}: of another recipe, which differs in {', '.join(unlike)}; move it away"
        )
    # A line that was cut short is made again.
    return Log(part, size), first, {line["number"]: line for line in rest}


def _maker(recipe: SuiteRecipe) -> Callable[[int], dict[str, Any]]:
    """Return the job of workers: to make decisions by number."""
    return partial(make_decision, recipe)


def checked(content: bytes) -> Suite:
    """Return the suite in the content of a file, after checking it against its positions.

    Raises:
        ValueError: for the first decision that does not fit.
    """
    suite = parsed(content)
    if len(suite.decisions) != suite.header["decisions"]:
        raise ValueError(f"{suite.header['decisions']} decisions expected")
    for number, decision in enumerate(suite.decisions):
        if wrong := _difference(decision, suite.players, number):
            raise ValueError(f"decision {number}: {wrong} is not that of the position")
    return suite


def _difference(decision: SuitePosition, players: int, number: int) -> str:
    """Return the name of what does not fit; empty if all does."""
    state, replayed = decision.state(), start_of(decision.record())
    for event in decision.record()["events"]:
        play_event(replayed, event)
    replayed["generator"] = 0
    ends = after(state[0], [candidate.actions for candidate in decision.candidates])
    facts = {
        "number": decision.number == number,
        "players": state["players"][0] == len(decision.seated) == players,
        "kind": decision.kind == kind_of(state),
        "stage": decision.stage == STAGES[int(stages_of(state)[0])],
        "half": decision.half in HALVES,
        "team": decision.team == state["team"][0, state["player"][0]],
        "game": replayed.tobytes() == state.tobytes(),
        "candidates": 2 <= len(ends) == len(np.unique(ends)),
    }
    return next((name for name, fits in facts.items() if not fits), "")


# ------------------------------------------------------------------------------------ the command


@dataclass(frozen=True)
class SuiteOptions:
    """The options of the command."""

    out: Path = option(REQUIRED, "to write, .jsonl or .jsonl.gz", kind=Path, metavar="FILE")
    recipe: SuiteRecipe = group(SuiteRecipe, "")
    work: WorkerOptions = group(WorkerOptions, "")


@command("python -m benchmarks.suite")
def main(arguments: Sequence[str], program: str) -> int:
    """Run the command; returns the exit code."""
    options = parse(SuiteOptions, arguments, program, __doc__).options
    out, recipe = options.out, options.recipe
    agents = (recipe.base, recipe.value, *recipe.table, *recipe.proposers)
    needed = (*agents, "benchmarks/suite.py")  # a cluster has the package alone
    try:
        with (
            workers_of(options.work, needed) as workers,
            counting("decisions", recipe.decisions) as progress,
        ):
            digest = make_suite(recipe, out, workers=workers, progress=progress)
    except KeyboardInterrupt:
        text = f"interrupted; what is done is kept in {out}.part"
        raise UserError(text, INTERRUPTED) from None
    print(f"{out}: {recipe.decisions} decisions, hash {digest}")
    return DONE


if __name__ == "__main__":
    from benchmarks import suite  # by its name, so that workers find what they do

    sys.exit(suite.main())
