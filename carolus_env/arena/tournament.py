"""Tournaments: a plan is played in blocks, on one process or several, and can be resumed.

    >>> from carolus_env import arena
    >>> from carolus_env.engine.rules import Rules
    >>> cup = arena.Tournament(arena.Plan(Rules(3), ("greedy", "random"), deals=100, seed=1))
    >>> cup.run(workers=2, file="games.jsonl")
    >>> cup.summary()["agents"]

Games depend on the plan alone. Neither the workers nor the size of the blocks nor a break changes
any of them.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import multiprocessing
import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final

import numpy as np

from carolus_env import bots
from carolus_env.arena import summary as summaries
from carolus_env.arena.games import (
    SIDE_BY_SIDE,
    ArenaError,
    Progress,
    Results,
    game_record,
    play_games,
    warm_up,
)
from carolus_env.arena.journal import Journal
from carolus_env.arena.pairing import PairingResult
from carolus_env.arena.seating import Plan
from carolus_env.bots import Agent
from carolus_env.records import record_line

BLOCK_SECONDS: Final = 10.0
"""What a block is to take, and so about the most that an interruption loses."""
WORTH_SHARING: Final = 0.5  # seconds that a block takes at least, before workers share what is left

_DECISIONS: Final = 150  # of a game, to begin with
_GROWTH: Final = 4  # a block is at most so many times as large as the one before
MOST_WORKERS: Final = 256


class Tournament:
    """A plan, and what has been played of it.

    Args:
        plan: which games.
        agents: whoever plays, for each name in the plan: a spec string (`bots.make`) or an agent.
            None: the names are the specs.
        time_limit: seconds that an agent may take for a decision, on average over those of a
            call; None: as long as it likes.
        imports: modules whose import registers agents; workers import them too.

    Attributes:
        plan: as given.
        complete: whether all has been played.
        seconds: spent on playing, by the clock on the wall.
    """

    def __init__(
        self,
        plan: Plan,
        agents: Sequence[str | Agent] | None = None,
        *,
        time_limit: float | None = None,
        imports: Sequence[str] = (),
    ) -> None:
        given = tuple(plan.agents if agents is None else agents)
        if len(given) != len(plan.agents):
            raise ValueError(f"the plan names {len(plan.agents)} agents, got {len(given)}")
        if time_limit is not None and not time_limit > 0:
            raise ValueError(f"time_limit must be above 0 seconds, got {time_limit!r}")
        self.plan, self.complete, self.seconds = plan, False, 0.0
        self._crew = _Crew(plan, given, time_limit, tuple(imports))
        self._parts = [_no_results(plan)]

    @property
    def games(self) -> int:
        """Games played so far."""
        return sum(map(len, self._parts))

    @property
    def results(self) -> Results:
        """All games played so far, in the plan's order."""
        self._parts = [Results.joined(self._parts)]
        return self._parts[0]

    def pairings(self) -> list[PairingResult]:
        """Each two agents that meet, over the whole deals so far; none before the first."""
        return [result for _, result in summaries.pairings(self.plan, self.results)]

    def summary(self, *, rated: bool = True) -> dict[str, Any]:
        """What the tournament came to so far, see `carolus_env.arena.summary`."""
        return summaries.summary(
            self.plan, self.results, complete=self.complete, seconds=self.seconds, rated=rated
        )

    def run(
        self,
        *,
        workers: int = 1,
        file: str | os.PathLike[str] | None = None,
        resume: bool = False,
        records: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        notice: Callable[[str], None] = warnings.warn,
    ) -> None:
        """Play what has not been played.

        Args:
            workers: processes; 1: this one. Several need agents as spec strings, or such as can
                be pickled, and a script that guards its main part (``if __name__ == ...``).
            file: results file to write (`carolus_env.arena.journal`); every block is added.
            resume: go on with ``file``.
            records: file of game records to write (docs/rules.md), compressed where its name ends
                in ``.gz``: of the games that this call plays.
            progress: told how many games are finished, after each block and, on one process,
                after each game.
            notice: told what the user should know, in one line.

        Raises:
            ArenaError: when an agent fails, breaks the rules or takes too long, or a worker dies.
            ResultsFileError: when ``file`` cannot be gone on with, or exists and is not to be.
            ValueError: for an impossible number of workers, or agents that cannot be sent to them.
            OSError: when a file cannot be written.
            KeyboardInterrupt: on Ctrl-C. As after any error, what was played before stays counted
                and, with ``file``, can be resumed; the games in play are lost.
        """
        if not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
            raise ValueError(
                f"workers must be a whole number from 1 to {MOST_WORKERS}, got {workers!r}"
            )
        if resume and file is None:
            raise ValueError("resume needs the file to go on with")
        until = self.plan.until
        if until is not None and until.elo is not None:
            summaries.extra("ratings")  # before anything is played
        with contextlib.ExitStack() as stack:
            journal = self._open(file, resume, notice)
            if journal is not None:
                stack.enter_context(journal)
            log = None if records is None else stack.enter_context(_RecordLog(Path(records)))
            self._play(workers, journal, log, progress)

    def _open(
        self, file: str | os.PathLike[str] | None, resume: bool, notice: Callable[[str], None]
    ) -> Journal | None:
        if file is None:
            return None
        if not resume:
            journal = Journal.create(file, self.plan)
            for start, part in self._played():
                journal.append(self.plan, start, part, 0.0)
            return journal
        journal, saved = Journal.resume(file, self.plan)
        if saved.cut:
            notice(f"{os.fspath(file)}: the last line was cut short; its game is played again")
        self._parts, self.seconds = [saved.results], saved.wall
        return journal

    def _played(self) -> Iterator[tuple[int, Results]]:
        start = 0
        for part in self._parts:
            if len(part):
                yield start, part
            start += len(part)

    def _play(
        self,
        workers: int,
        journal: Journal | None,
        log: _RecordLog | None,
        progress: Progress | None,
    ) -> None:
        self.complete = False
        with _Bench(self._crew, workers, records=log is not None) as bench:
            since = time.perf_counter()
            for deals in self._laps():
                stop = deals * self.plan.games_per_deal
                for block in bench.play(self.games, stop, progress):
                    if log is not None:
                        log.append(block.records)
                    wall = time.perf_counter() - since
                    since += wall
                    if journal is not None:
                        journal.append(self.plan, self.games, block.results, wall)
                    self._parts.append(block.results)
                    self.seconds += wall
                    if progress is not None:
                        progress(self.games)
                if self._narrow_enough():
                    break
        self.complete = True

    def _laps(self) -> Iterator[int]:
        """Numbers of deals to which the tournament is played before the next look at it."""
        plan, deals = self.plan, 0
        while deals < plan.deals:
            deals = plan.deals if plan.until is None else plan.until.next_look(deals)
            deals = min(deals, plan.deals)
            if deals * plan.games_per_deal >= self.games:
                yield deals

    def _narrow_enough(self) -> bool:
        until = self.plan.until
        if until is None:
            return False
        if until.rate is not None:
            found = dict(summaries.pairings(self.plan, self.results))
            low, high = found[min(until.pair), max(until.pair)].ci95[0]
            if high - low >= until.rate:
                return False
        if until.elo is not None:
            rating = summaries.ratings(self.plan, self.results)
            return bool((np.asarray(rating.high) - np.asarray(rating.low) < until.elo).all())
        return True


def _no_results(plan: Plan) -> Results:
    return play_games(np.zeros((0, plan.rules.players), np.int64), [], plan.rules, seed=0)


class _RecordLog:
    """A new file of game records, written block by block."""

    def __init__(self, path: Path) -> None:
        self.zipped = path.suffix.lower() == ".gz"
        self.file = path.open("xb")

    def append(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        self.file.write(gzip.compress(data, mtime=0) if self.zipped else data)
        self.file.flush()
        os.fsync(self.file.fileno())

    def __enter__(self) -> _RecordLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


# ------------------------------------------------------------------------------------ blocks


@dataclass(frozen=True)
class _Crew:
    """What a process needs to play any block of a plan."""

    plan: Plan
    agents: tuple[str | Agent, ...]
    time_limit: float | None
    imports: tuple[str, ...]

    def ready(self) -> _Ready:
        """Make the agents, and find out how long they think.

        Raises:
            ArenaError: when one cannot be made, or fails.
        """
        for name in self.imports:
            importlib.import_module(name)
        made: dict[str, Agent] = {}
        agents = []
        for spec in self.agents:
            if isinstance(spec, str) and spec not in made:
                try:
                    made[spec] = bots.make(spec)
                except Exception as error:  # a file or model of somebody's own can fail anyhow
                    text = str(error)
                    named = text if text.startswith("agent ") else f"agent {spec!r}: {text}"
                    raise ArenaError(named) from error
            agents.append(made[spec] if isinstance(spec, str) else spec)
        decision = float(warm_up(agents, self.plan.rules).mean())
        return _Ready(self, agents, decision * _DECISIONS)


@dataclass(frozen=True)
class _Block:
    """Games that were played together.

    Attributes:
        start: number of the first.
        seconds: that they took.
        records: of the games, a line each, where they are wanted.
    """

    start: int
    results: Results
    seconds: float
    records: list[bytes]


@dataclass(frozen=True)
class _Ready:
    """A crew with its agents made."""

    crew: _Crew
    agents: list[Agent]
    seconds_a_game: float

    def play(self, start: int, stop: int, records: bool, progress: Progress | None) -> _Block:
        """Games ``start`` to ``stop - 1`` of the plan."""
        plan = self.crew.plan
        fixtures = plan.fixtures(start, stop)
        actions: list[Any] = []
        started = time.perf_counter()
        results = play_games(
            fixtures.tables,
            self.agents,
            plan.rules,
            seed=plan.seed,
            deals=fixtures.deals,
            seatings=fixtures.seatings,
            time_limit=self.crew.time_limit,
            actions=actions if records else None,
            progress=progress,
        )
        seconds = time.perf_counter() - started
        lines = []
        for row, game in enumerate(actions):
            deal, seating = int(fixtures.deals[row]), int(fixtures.seatings[row])
            names = [plan.agents[agent] for agent in fixtures.tables[row]]
            about = {"game": start + row, "deal": deal, "seating": seating, "agents": names}
            lines.append(record_line({**game_record(plan.rules, plan.seed, deal, game), **about}))
        return _Block(start, results, seconds, lines)


class _Pace:
    """How many games make a block."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.seconds_a_game = 0.0
        self.largest = 0

    def begin(self, seconds_a_game: float) -> None:
        """A guess, before anything was played."""
        self.seconds_a_game = max(seconds_a_game, 1e-9)
        self.largest = max(int(BLOCK_SECONDS / self.seconds_a_game), 1)

    def note(self, block: _Block) -> None:
        games = len(block.results)
        self.seconds_a_game = max(block.seconds / games, 1e-9)
        self.largest = max(self.largest, _GROWTH * games)

    def games(self, left: int) -> int:
        """Of the next block, where so many games are left; all workers are to get some."""
        most = min(int(BLOCK_SECONDS / self.seconds_a_game), self.largest, SIDE_BY_SIDE)
        fair = max(-(-left // self.workers), int(WORTH_SHARING / self.seconds_a_game))
        return max(1, min(most, fair, left))


class _Bench:
    """Processes that play blocks, or this one; a context manager that ends them."""

    def __init__(self, crew: _Crew, workers: int, *, records: bool) -> None:
        self.crew, self.workers, self.records = crew, workers, records
        self.pace = _Pace(workers)
        self.ready: _Ready | None = None
        self.lines: dict[Connection, multiprocessing.process.BaseProcess] = {}
        self.idle: list[Connection] = []

    def __enter__(self) -> _Bench:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.lines.values():
            process.terminate()
        for line, process in self.lines.items():
            process.join()
            line.close()

    def play(self, start: int, stop: int, progress: Progress | None) -> Iterator[_Block]:
        """Games ``start`` to ``stop - 1`` of the plan, block by block in their order."""
        if start == stop:
            return
        if self.workers == 1:
            yield from self._play_here(start, stop, progress)
        else:
            yield from self._play_there(start, stop)

    def _play_here(self, start: int, stop: int, progress: Progress | None) -> Iterator[_Block]:
        if self.ready is None:
            self.ready = self.crew.ready()
            self.pace.begin(self.ready.seconds_a_game)
        while start < stop:
            before = start

            def told(done: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + done)

            block = self.ready.play(
                start, start + self.pace.games(stop - start), self.records, told
            )
            self.pace.note(block)
            start += len(block.results)
            yield block

    def _play_there(self, start: int, stop: int) -> Iterator[_Block]:
        if not self.lines:
            self._hire()
        held: dict[int, _Block] = {}  # blocks that came before their turn
        given = start
        while start < stop:
            while self.idle and given < stop and self.pace.seconds_a_game:
                block_stop = given + self.pace.games(stop - given)
                self._tell(self.idle.pop(), (given, block_stop))
                given = block_stop
            for line in wait(list(self.lines)):
                assert isinstance(line, Connection)
                answer = self._hear(line)
                self.idle.append(line)
                if isinstance(answer, _Block):
                    self.pace.note(answer)
                    held[answer.start] = answer
                elif not self.pace.seconds_a_game:
                    self.pace.begin(answer)
            while start in held:
                block = held.pop(start)
                start += len(block.results)
                yield block

    def _hire(self) -> None:
        try:
            crew = pickle.dumps((self.crew, self.records))
        except Exception as error:
            raise ValueError(
                f"agents cannot be sent to workers ({error}); name them by spec strings"
            ) from error
        context = multiprocessing.get_context("spawn")
        for _ in range(self.workers):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, crew), daemon=True)
            process.start()
            there.close()
            self.lines[here] = process

    def _tell(self, line: Connection, games: tuple[int, int]) -> None:
        try:
            line.send(games)
        except OSError:
            raise self._death(line) from None

    def _hear(self, line: Connection) -> Any:
        """What a worker has to say; when it failed, that is raised."""
        try:
            said, answer = line.recv()
        except (EOFError, OSError):
            raise self._death(line) from None
        if said == "failed":
            raise ArenaError(answer)
        return answer

    def _death(self, line: Connection) -> ArenaError:
        process = self.lines[line]
        process.join()
        return ArenaError(
            f"a worker process died (exit code {process.exitcode}); is the memory enough?"
        )


def _work(line: Connection, pickled: bytes) -> None:
    """A worker's life: make the agents, then play what comes until nothing more does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, who ends us
    # Threads of several processes would fight for the cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with contextlib.suppress(EOFError, BrokenPipeError):  # the parent is gone
        try:
            crew, records = pickle.loads(pickled)
            ready = crew.ready()
            line.send(("ready", ready.seconds_a_game))
            while True:
                start, stop = line.recv()
                line.send(("played", ready.play(start, stop, records, None)))
        except (EOFError, BrokenPipeError):
            raise
        except ArenaError as error:
            line.send(("failed", str(error)))
        except Exception as error:
            line.send(("failed", f"a worker failed with {type(error).__name__}: {error}"))
