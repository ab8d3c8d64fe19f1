"""A tournament's blocks: their size, and the order of their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from carolus_env import bots
from carolus_env.bots import Agent, AgentLike
from carolus_env.evaluation.columns import Results
from carolus_env.evaluation.games import (
    SIDE_BY_SIDE,
    ArenaError,
    Progress,
    agent_error,
    game_record,
    play_and_record,
    warm_up,
)
from carolus_env.evaluation.seating import Plan
from carolus_env.records import record_line
from carolus_env.system.processes import InProcess, UnsendableError, WorkerError, Workers

BLOCK_SECONDS: Final = 10.0
"""Target time of a block, and so about the most that an interruption loses."""

AHEAD: Final = 4
"""Maximum number of blocks under way or waiting for their turn, for each worker."""

_WORTH_SHARING: Final = 0.5  # seconds: shorter blocks are not split to give every worker some
_DECISIONS: Final = 150  # decisions of a game, as a first guess
_GROWTH: Final = 4  # a block is at most this many times as large as the one before


@dataclass(frozen=True)
class Task:
    """All that a process needs to play any block of a plan; it can be pickled if its agents can.

    Attributes:
        plan: the games to play.
        agents: a spec string or an agent for each name in the plan.
    """

    plan: Plan
    agents: tuple[AgentLike, ...]

    def runner(self) -> Runner:
        """Make the agents, and measure their time a game.

        Raises:
            ArenaError: when one cannot be made, or fails.
        """
        made: dict[str, Agent] = {}
        agents = []
        for spec in self.agents:
            if isinstance(spec, str) and spec not in made:
                try:
                    made[spec] = bots.make(spec)
                except Exception as error:  # a user's file or model can fail in any way
                    raise agent_error(error, spec, f": {error}") from error
            agents.append(made[spec] if isinstance(spec, str) else bots.make(spec))
        seconds = float(warm_up(agents, self.plan.rules).mean()) * _DECISIONS
        return Runner(self, agents, seconds)


@dataclass(frozen=True)
class Block:
    """Games that were played together.

    Attributes:
        start: number of the first game.
        results: results of the games.
        seconds: time spent on them.
        records: records of the games, a line each; empty unless requested.
    """

    start: int
    results: Results
    seconds: float
    records: list[bytes]


@dataclass(frozen=True)
class Runner:
    """A task with its agents made, ready to play.

    Attributes:
        task: the task given.
        agents: an agent for each name in the plan.
        seconds_a_game: estimated seconds a game.
    """

    task: Task
    agents: list[Agent]
    seconds_a_game: float

    def play(self, start: int, stop: int, records: bool, progress: Progress | None) -> Block:
        """Play games ``start`` to ``stop - 1`` of the plan."""
        plan = self.task.plan
        fixtures = plan.fixtures(start, stop)
        started = time.perf_counter()
        results, actions = play_and_record(
            fixtures, self.agents, plan.rules, seed=plan.seed, progress=progress
        )
        seconds = time.perf_counter() - started
        lines = []
        for row, game in enumerate(actions if records else ()):
            deal, seating = int(fixtures.deals[row]), int(fixtures.seatings[row])
            names = [plan.agents[agent] for agent in fixtures.tables[row]]
            about = {"game": start + row, "deal": deal, "seating": seating, "agents": names}
            lines.append(record_line({**game_record(plan.rules, plan.seed, deal, game), **about}))
        return Block(start, results, seconds, lines)


class Pace:
    """The number of games of a block, by the time that earlier ones took."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.seconds_a_game = 0.0
        self.largest = 0

    def begin(self, seconds_a_game: float) -> None:
        """Start from a guess, before anything was played."""
        self.seconds_a_game = max(seconds_a_game, 1e-9)
        self.largest = max(int(BLOCK_SECONDS / self.seconds_a_game), 1)

    def note(self, block: Block) -> None:
        """Update the pace by a block that was played."""
        games = len(block.results)
        self.seconds_a_game = max(block.seconds / games, 1e-9)
        self.largest = max(self.largest, _GROWTH * games)

    def games(self, remaining: int) -> int:
        """Return the size of the next block, when ``remaining`` are left; all workers get some."""
        most = min(int(BLOCK_SECONDS / self.seconds_a_game), self.largest, SIDE_BY_SIDE)
        fair = max(-(-remaining // self.workers), int(_WORTH_SHARING / self.seconds_a_game))
        return max(1, min(most, fair, remaining))


@dataclass(frozen=True)
class _Blocks:
    """The job of workers: to play blocks of a task, with records or without."""

    task: Task
    records: bool

    def __call__(self) -> Callable[[int, int], Block | float]:
        runner = self.task.runner()

        def play(start: int, stop: int) -> Block | float:
            """Play games ``start`` to ``stop - 1``; if none, return the seconds that one takes."""
            if start == stop:
                return runner.seconds_a_game
            return runner.play(start, stop, self.records, None)

        return play


class Pool:
    """Lets workers play blocks, and takes the blocks in the plan's order.

    Args:
        task: the games and agents.
        workers: the workers that play.
        records: True: blocks hold game records.
    """

    def __init__(self, task: Task, workers: Workers, *, records: bool) -> None:
        self.task, self.workers, self.records = task, workers, records
        self.pace = Pace(workers.count)
        self._runner: Runner | None = None  # runner of this process
        self._begun = False

    def play(self, start: int, stop: int, progress: Progress | None) -> Iterator[Block]:
        """Yield games ``start`` to ``stop - 1`` of the plan, block by block in their order.

        Raises:
            ArenaError: when an agent fails, or a worker dies.
            ValueError: when the agents cannot be sent to workers.
        """
        if start == stop:
            return
        if isinstance(self.workers, InProcess):
            yield from self._play_here(start, stop, progress)
            return
        try:
            yield from self._play_in_workers(start, stop)
        except UnsendableError as error:
            raise ValueError(
                f"agents cannot be sent to workers ({error}); name them by spec strings"
            ) from error
        except WorkerError as error:
            failed = ArenaError(str(error))
            failed.traceback = error.traceback
            raise failed from error

    def _play_here(self, start: int, stop: int, progress: Progress | None) -> Iterator[Block]:
        if self._runner is None:
            self._runner = self.task.runner()
            self.pace.begin(self._runner.seconds_a_game)
        while start < stop:
            before = start

            def advance(done: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + done)

            games = self.pace.games(stop - start)
            block = self._runner.play(start, start + games, self.records, advance)
            self.pace.note(block)
            start += len(block.results)
            yield block

    def _play_in_workers(self, start: int, stop: int) -> Iterator[Block]:
        workers, pace = self.workers, self.pace
        if not self._begun:
            workers.begin(_Blocks(self.task, self.records))
            for _ in range(min(workers.count, workers.room)):
                workers.submit(start, start, start)  # no games: measures the seconds a game
            self._begun = True
        finished: dict[int, Block] = {}  # blocks that ended before their turn
        sent = start
        while start < stop:
            pace.workers = workers.count
            # A limit, or blocks that wait for a slow one would fill the memory.
            most = max(AHEAD * workers.count - len(finished), 1 - workers.pending)
            while workers.room and workers.pending < most and sent < stop and pace.seconds_a_game:
                block_stop = sent + pace.games(stop - sent)
                workers.submit(sent, sent, block_stop)
                sent = block_stop
            for _, answer in workers.take():
                if isinstance(answer, Block):
                    pace.note(answer)
                    finished[answer.start] = answer
                elif not pace.seconds_a_game:
                    pace.begin(answer)
            while start in finished:
                block = finished.pop(start)
                start += len(block.results)
                yield block
