"""Tournaments: a plan is played in blocks, on one process or several, and can be resumed.

    >>> from carolus_env import evaluation
    >>> from carolus_env.engine.rules import Rules
    >>> plan = evaluation.Plan(Rules(3), ("greedy", "random"), deals=100, seed=1)
    >>> cup = evaluation.Tournament(plan)
    >>> cup.run(workers=2, file="games.jsonl")
    >>> cup.summary()["agents"]

Games depend on the plan alone: not on the number of workers, the size of blocks or interruptions.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from carolus_env.bots import AgentLike, make
from carolus_env.bots.fingerprint import fingerprint
from carolus_env.evaluation import stopping
from carolus_env.evaluation import summary as summaries
from carolus_env.evaluation.blocks import blocks
from carolus_env.evaluation.columns import Results
from carolus_env.evaluation.games import Progress, agent_error, play_games
from carolus_env.evaluation.journal import Journal
from carolus_env.evaluation.pairing import PairingResult
from carolus_env.evaluation.seating import Plan
from carolus_env.records.jsonl import is_gzip
from carolus_env.system.executors import Workers, ready
from carolus_env.system.files import Log, locked


class Tournament:
    """A plan and the games played so far.

    Args:
        plan: the games to play.
        agents: a spec string (`bots.make`) or an agent for each name in the plan. None: the
            names are the specs.

    Attributes:
        plan: the plan given.
        complete: True: all games have been played.
        seconds: wall-clock time spent on playing.

    Raises:
        ValueError: for another number of agents than the plan has.
    """

    def __init__(
        self,
        plan: Plan,
        agents: Sequence[AgentLike] | None = None,
    ) -> None:
        players = tuple(plan.agents if agents is None else agents)
        if len(players) != len(plan.agents):
            raise ValueError(f"the plan names {len(plan.agents)} agents, got {len(players)}")
        self.plan, self.complete, self.seconds = plan, False, 0.0
        self._agents = players
        self._parts = [_no_results(plan)]

    @property
    def games(self) -> int:
        """Games played so far."""
        return sum(map(len, self._parts))

    @property
    def results(self) -> Results:
        """All games played so far, in the plan's order."""
        if len(self._parts) > 1:
            self._parts = [Results.joined(self._parts)]
        return self._parts[0]

    def pairings(self) -> list[PairingResult]:
        """Return the result of each pair of agents over the complete deals so far."""
        return [result for _, result in summaries.pairings(self.plan, self.results)]

    def summary(self) -> dict[str, Any]:
        """Return the statistics so far, see `carolus_env.evaluation.summary`."""
        return summaries.summary(
            self.plan, self.results, complete=self.complete, seconds=self.seconds
        )

    def run(
        self,
        *,
        workers: int | Workers = 1,
        file: str | os.PathLike[str] | None = None,
        resume: bool = False,
        records: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        notice: Callable[[str], None] = warnings.warn,
    ) -> None:
        """Play the games that have not been played yet.

        Args:
            workers: processes; 1: this one. Several need agents that are spec strings or can be
                pickled, and a script that guards its main part (``if __name__ == ...``). Or
                workers that the caller has and closes, as `system.cluster.Cluster`.
            file: results file to write (`carolus_env.evaluation.journal`), block by block.
            resume: continue the tournament in ``file``.
            records: file of game records to write (docs/formats.md), of the games that this call
                plays; compressed if its name ends in ``.gz``.
            progress: a function of the number of finished games, after each block and, on one
                process, after each game.
            notice: a function of a line for the user.

        Raises:
            ArenaError: when an agent fails, or breaks the rules, or a worker dies.
            BusyError: when another process plays into ``file``.
            ResultsFileError: when ``file`` cannot be resumed, or exists without ``resume``.
            ValueError: for an impossible number of workers, or agents that cannot be sent to them.
            OSError: when a file cannot be written.
            KeyboardInterrupt: on Ctrl-C. As after any error, finished blocks stay counted and,
                with ``file``, can be resumed; the games in play are lost.
        """
        players = ready(workers)
        if resume and file is None:
            raise ValueError("resume needs the file of the tournament")
        with contextlib.ExitStack() as stack:
            if file is not None:
                stack.enter_context(locked(file))
            journal = self._open(file, resume, notice)
            if journal is not None:
                stack.enter_context(journal)
            log = None if records is None else stack.enter_context(_RecordLog.create(records))
            self._play_on(stack.enter_context(players), journal, log, progress)

    def _open(
        self, file: str | os.PathLike[str] | None, resume: bool, notice: Callable[[str], None]
    ) -> Journal | None:
        if file is None:
            return None
        sources = [self._fingerprint(spec) for spec in self._agents]
        if not resume:
            journal = Journal.begin(file, self.plan, sources)
            for start, part in self._played():
                journal.append_games(self.plan, start, part, 0.0)
            return journal
        journal, saved = Journal.resume(file, self.plan, sources)
        if saved.cut:
            notice(f"{os.fspath(file)}: the last line is incomplete; its game is played again")
        self._parts, self.seconds = [saved.results], saved.wall
        return journal

    def _fingerprint(self, spec: AgentLike) -> dict[str, str]:
        try:
            return fingerprint(make(spec), self.plan.rules.players)
        except Exception as error:  # a user's file or model can fail in any way
            name = spec if isinstance(spec, str) else getattr(spec, "name", "agent")
            raise agent_error(error, name, f": {error}") from error

    def _played(self) -> Iterator[tuple[int, Results]]:
        start = 0
        for part in self._parts:
            if len(part):
                yield start, part
            start += len(part)

    def _play_on(
        self,
        workers: Workers,
        journal: Journal | None,
        log: _RecordLog | None,
        progress: Progress | None,
    ) -> None:
        """Play from where the tournament is to its end, block by block."""
        self.complete, since = False, time.perf_counter()
        checkpoints = {deals * self.plan.games_per_deal for deals in self.plan.checkpoints()}
        played = blocks(
            self.plan,
            self._agents,
            workers,
            start=self.games,
            records=log is not None,
            progress=progress,
        )
        while not (self.games in checkpoints and self._stops()):
            if (block := next(played, None)) is None:
                break
            if log is not None:
                log.append_records(block.records)
            wall = time.perf_counter() - since
            since += wall
            if journal is not None:
                journal.append_games(self.plan, self.games, block.results, wall)
            self._parts.append(block.results)
            self.seconds += wall
            if progress is not None:
                progress(self.games)
        self.complete = True

    def standing(self) -> dict[str, Any] | None:
        """Return the stop rule's state after the complete deals (see `evaluation.stopping`).

        None without a stop rule or a complete deal.
        """
        counted = summaries.complete_deals(self.plan, self.results)
        if not len(counted):
            return None
        return stopping.standing(self.plan, counted, lambda: summaries.ratings(self.plan, counted))

    def _stops(self) -> bool:
        result = self.standing()
        return result is not None and result["reached"]


def _no_results(plan: Plan) -> Results:
    return play_games(np.zeros((0, plan.rules.players), np.int64), [], plan.rules, seed=0)


class _RecordLog(Log):
    """A file of game records, compressed if its name says so."""

    def append_records(self, lines: list[bytes]) -> None:
        """Write a block of lines; see `Log.append`."""
        data = b"".join(lines)
        self.append(gzip.compress(data, mtime=0) if is_gzip(self.path) else data)
