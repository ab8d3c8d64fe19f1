"""The games of a plan in blocks, played by workers, in the plan's order."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from carolus_env import bots
from carolus_env.bots import Agent, AgentLike
from carolus_env.bots.registry import is_function
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
from carolus_env.system.executors import InProcess, UnsendableError, WorkerError, Workers, results

BLOCK_SECONDS: Final = 10.0
"""Target time of a block, and so about the most that an interruption loses."""

_WORTH_SHARING: Final = 0.5  # seconds: shorter blocks are not split to give every worker some


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


def blocks(
    plan: Plan,
    agents: Sequence[AgentLike],
    workers: Workers,
    *,
    start: int = 0,
    records: bool = False,
    progress: Progress | None = None,
) -> Iterator[Block]:
    """Play the games of a plan; yield them block by block, in their order.

    Each block takes about `BLOCK_SECONDS`, judged by the one before; the first is a single game.
    None goes on across a checkpoint of the plan.

    Args:
        plan: the games to play.
        agents: a spec string or an agent for each name in the plan.
        workers: the workers that play.
        start: number of the first game to play.
        records: True: blocks hold game records.
        progress: a function of the number of finished games, called after each game where this
            process plays.

    Raises:
        ArenaError: when an agent fails, or a worker dies; blocks before it are yielded first.
        ValueError: when the agents cannot be sent to workers.
    """
    seconds = 0.0  # for a game; 0: not known

    def tasks() -> Iterator[tuple[int, int]]:
        first = start
        for deals in plan.checkpoints():
            stop = deals * plan.games_per_deal
            while first < stop:
                games = block_size(seconds, stop - first, workers.count)
                yield first, first + games
                first += games

    here = isinstance(workers, InProcess)
    for name, agent in () if here else zip(plan.agents, agents, strict=True):
        if reason := _why_unsendable(agent):
            raise ValueError(
                f"agent {name!r} cannot be sent to workers, since {reason}: put it into a file and "
                "name it by its spec string, such as my_bot.py:MyBot, or play with workers=1"
            )
    job = _BlockPlayer(plan, tuple(agents), records, progress if here else None)
    try:
        for _, block in results(workers, job, tasks()):
            seconds = max(block.seconds / len(block.results), 1e-9)
            if block.start == start:  # no block before it has failed
                start += len(block.results)
                yield block
    except UnsendableError as error:
        raise ValueError(
            f"agents cannot be sent to workers ({error}); name them by spec strings"
        ) from error
    except WorkerError as error:
        failed = ArenaError(str(error))
        failed.traceback = error.traceback
        raise failed from error


def _why_unsendable(agent: AgentLike) -> str:
    """Return why another process could not find an agent's class or function; empty if it could."""
    if isinstance(agent, str):
        return ""
    inner = getattr(agent, "agent", agent)  # that of a `Checked`
    made_of: Any = inner if is_function(inner) else getattr(inner, "function", type(inner))
    name = made_of.__name__
    if name == "<lambda>":
        return "it is a lambda"
    if "<locals>" in made_of.__qualname__:
        return f"{name} is made inside a function"
    file = getattr(sys.modules["__main__"], "__file__", None)
    if made_of.__module__ == "__main__" and (file is None or not Path(file).exists()):
        return f"{name} is in a program without a file"
    return ""


def block_size(seconds: float, remaining: int, workers: int) -> int:
    """Return the number of games of the next block; all workers get some.

    Args:
        seconds: seconds that a game takes; 0: not known.
        remaining: games that are left.
        workers: number of workers.
    """
    if not seconds:
        return 1
    fair = max(-(-remaining // workers), int(_WORTH_SHARING / seconds))
    return max(1, min(int(BLOCK_SECONDS / seconds), SIDE_BY_SIDE, fair, remaining))


@dataclass(frozen=True)
class _BlockPlayer:
    """The job of workers: to make the agents once, and play any block of the plan."""

    plan: Plan
    agents: tuple[AgentLike, ...]
    records: bool
    progress: Progress | None

    def __call__(self) -> Callable[[int, int], Block]:
        made: dict[str, Agent] = {}
        agents = []
        for spec in self.agents:
            if isinstance(spec, str) and spec not in made:
                try:
                    made[spec] = bots.make(spec)
                except Exception as error:  # a user's file or model can fail in any way
                    raise agent_error(error, spec, f": {error}") from error
            agents.append(made[spec] if isinstance(spec, str) else bots.make(spec))
        warm_up(agents, self.plan.rules)
        return partial(self.block, agents)

    def block(self, agents: Sequence[Agent], start: int, stop: int) -> Block:
        """Play games ``start`` to ``stop - 1`` of the plan."""
        plan, report = self.plan, self.progress
        fixtures, begun = plan.fixtures(start, stop), time.perf_counter()
        advance = None if report is None else lambda done: report(start + done)
        played, actions = play_and_record(
            fixtures, agents, plan.rules, seed=plan.seed, progress=advance
        )
        seconds = time.perf_counter() - begun
        lines = []
        for row, game in enumerate(actions if self.records else ()):
            deal, seating = int(fixtures.deals[row]), int(fixtures.seatings[row])
            names = [plan.agents[agent] for agent in fixtures.tables[row]]
            about = {"game": start + row, "deal": deal, "seating": seating, "agents": names}
            lines.append(record_line({**game_record(plan.rules, plan.seed, deal, game), **about}))
        return Block(start, played, seconds, lines)
