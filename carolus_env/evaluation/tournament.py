"""Tournaments: a plan is played in blocks by workers, in its order, and can be resumed.

Games depend on the plan alone: not on the number of workers, the size of blocks or interruptions.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env.bots import AgentLike
from carolus_env.bots.registry import fingerprint, is_function
from carolus_env.engine.chance import Deals
from carolus_env.evaluation import games, journal, schedules
from carolus_env.evaluation.games import ArenaError, PairingResult, Progress, Results
from carolus_env.evaluation.ratings import ANCHOR, Ratings, rate
from carolus_env.evaluation.schedules import Plan
from carolus_env.records import Record, RecordError, read_records, scan_records, write_records
from carolus_env.records.record import is_gzip, record_line
from carolus_env.system import executors
from carolus_env.system.executors import InProcess, Workers
from carolus_env.system.files import Log, locked
from carolus_env.system.machine import machine, versions

SIDE_BY_SIDE: Final = games.SIDE_BY_SIDE  # most games of a block
BLOCK_SECONDS: Final = 10.0  # of a block, and so about the most that an interruption loses
_WORTH_SHARING: Final = 0.5  # seconds: shorter blocks are not split to give every worker some


class Tournament:
    """A plan and the games played so far.

    ``agents`` are a spec string (`bots.make`) or an agent for each name in the plan; None: the
    names are the specs. ``complete`` says whether the tournament has been played to its end,
    ``seconds`` is the wall-clock time spent on playing.
    """

    def __init__(self, plan: Plan, agents: Sequence[AgentLike] | None = None) -> None:
        self._agents = tuple(plan.agents if agents is None else agents)
        if len(self._agents) != len(plan.agents):
            raise ValueError(f"the plan names {len(plan.agents)} agents, got {len(self._agents)}")
        self.plan, self.complete, self.seconds = plan, False, 0.0
        self._parts = [np.zeros(0, games.result_type(plan.rules.players))]

    @property
    def games(self) -> int:
        """Games played so far."""
        return sum(map(len, self._parts))

    @property
    def results(self) -> Results:
        """All games played so far, in the plan's order."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    @property
    def counted(self) -> Results:
        """The games of the deals that all pairs have played in all seatings, ``(D, K, S)``."""
        plan = self.plan
        deals = self.games // plan.games_per_deal
        shape = deals, len(plan.pairs), len(plan.seatings)
        return self.results[: deals * plan.games_per_deal].reshape(shape)

    def pairings(self) -> list[PairingResult]:
        """Return the result of each pair of agents over the complete deals so far."""
        counted = self.counted
        return [
            games.pairing_result(self.plan.agents, counted[:, number].ravel(), pair)
            for number, pair in enumerate(self.plan.pairs if len(counted) else ())
        ]

    def summary(self) -> dict[str, Any]:
        """Return the statistics so far; a ValueError if no deal has been played in all seatings."""
        plan, counted = self.plan, self.counted
        if not len(counted):
            raise ValueError("no deal has been played in all seatings")
        paired, rated = self.pairings(), self._ratings()
        rates: list[list[float]] = [[] for _ in plan.agents]
        for pair, result in zip(plan.pairs, paired, strict=True):
            for k, win_rate in zip(pair, result.win_rate, strict=True):
                rates[k].append(win_rate)
        deals = Deals.of(plan.seed, np.arange(len(counted)))
        first = deals.games(plan.rules, roll=False)["order"][:, 0].astype(np.int64)
        agents = []
        for k, spec in enumerate(plan.agents):
            seats = counted["table"] == k
            decisions = int(counted["decisions"][seats].sum())
            spent = float(counted["seconds"][seats].sum())
            agents.append(
                {
                    "spec": spec,
                    "rating": rated.of(k),
                    "win_share": float(np.mean(rates[k])),
                    "by_place": games.rates_by_place(counted, k, first),
                    "mean_castles": float(counted["castles"][seats].mean()),
                    "games": int(seats.any(axis=-1).sum()),
                    "decisions": decisions,
                    "seconds": spent,
                    "us_per_decision": 1e6 * spent / max(decisions, 1),
                }
            )
        rule, ends = self.standing(rated), games.count_ends(counted)
        return {
            "format": "carolus-tournament-summary",
            "version": 1,
            "rules": plan.rules.to_dict(),
            "schedule": plan.schedule,
            "seed": plan.seed,
            "deals": len(counted),
            "games": counted.size,
            "complete": self.complete,
            "agents": agents,
            "pairings": [
                {"pair": list(pair), **result.to_dict()}
                for pair, result in zip(plan.pairs, paired, strict=True)
            ],
            "play": {"mean_rounds": float(counted["rounds"].mean()), "ends": ends},
            "versions": versions("torch"),
            "machine": machine(),
            "seconds": self.seconds,
            **({"stop_rule": rule} if rule else {}),
        }

    def _ratings(self) -> Ratings:
        plan, counted = self.plan, self.counted.ravel()
        games = counted["table"], counted["shares"], counted["deal"]
        zero = anchor(plan.agents, plan.schedule)
        return rate(*games, len(plan.agents), anchor=zero, seed=plan.seed)

    def standing(self, rated: Ratings | None = None) -> dict[str, Any] | None:
        """Return the stop rule's state after the complete deals, whose ratings may be known.

        ``reached`` says whether the rule ends the tournament, ``text`` the state in a line; the
        rest is of the rule, all for JSON. None without a stop rule or a complete deal.
        """
        counted, plan = self.counted, self.plan
        if not len(counted):
            return None
        if plan.until is not None:
            rated = rated or self._ratings()
            factor = schedules.widening(len(counted))  # times it the intervals hold at any time
            return {
                "reached": bool((factor * (rated.high - rated.low) < plan.until).all()),
                "until": plan.until,
                "widening": factor,
                "text": f"at any time, with 95 %: intervals {factor:.2f} times as wide as shown",
            }
        if (test := plan.test) is None:
            return None
        scores = games.deal_scores(counted[:, 0], 0)
        outcome = test.outcome(scores, counted.shape[2])
        first, second, *_ = labels(plan.agents)
        verdict = {
            schedules.STRONGER: f"{first} is stronger than {second} (H1)",
            schedules.NOT_STRONGER: f"{first} is not stronger than {second} (H0)",
            schedules.UNDECIDED: f"{first} against {second}: undecided",
        }[outcome.verdict]
        elo = "" if outcome.elo is None else f", nElo so far {outcome.elo:.1f}"
        low, high = test.bounds
        return {
            "reached": outcome.verdict != schedules.UNDECIDED,
            "test": plan.to_dict()["test"],
            "pair": list(plan.pairs[0]),
            **outcome._asdict(),
            "bounds": [low, high],
            "text": f"test of nElo {test.elo0:g} (H0) against {test.elo1:g} (H1): {verdict} "
            f"after {outcome.deals:,} deals; log-likelihood ratio {outcome.ratio:.2f} "
            f"({low:.2f} to {high:.2f}){elo}",
        }

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
                workers that the caller has and closes, as `system.executors.Cluster`.
            file: results file to write (docs/formats.md), block by block.
            resume: go on with the tournament in ``file``, if it exists; ``plan`` may have more
                deals than it had there.
            records: file of game records to write, of the games that this call plays; compressed
                if its name ends in ``.gz``. With ``resume`` it may exist, and is gone on with.
            notice: a function of a line for the user.

        Raises:
            ArenaError: when an agent fails, or breaks the rules, or a worker dies.
            BusyError: when another process plays into ``file`` or ``records``.
            ResultsFileError: when ``file`` or ``records`` is of another tournament, or ``file``
                exists without ``resume``.
            ValueError: for an impossible number of workers, or agents that cannot be sent to them.
            OSError: when a file cannot be written.
            KeyboardInterrupt: on Ctrl-C. As after any error, finished blocks stay counted and,
                with ``file``, can be resumed; the games in play are lost.
        """
        players = executors.ready(workers)
        if resume and file is None:
            raise ValueError("resume needs the file of the tournament")
        with contextlib.ExitStack() as stack:
            saving = logging = None
            if file is not None:
                stack.enter_context(locked(file))
                saving = stack.enter_context(self._open(file, resume, notice))
            if records is not None:
                stack.enter_context(locked(records))
                goes_on = resume and Path(records).exists()
                log = _open_records(records, self.plan, self.games) if goes_on else None
                logging = stack.enter_context(log or Log.create(records))
            self.complete, since = False, time.perf_counter()
            for block in play_plan(
                self.plan,
                self._agents,
                stack.enter_context(players),
                lambda: bool((self.standing() or {}).get("reached")),
                start=self.games,
                seconds=float(self.results["seconds"].sum()),
                records=records is not None,
                progress=progress,
            ):
                wall = time.perf_counter() - since
                since += wall
                if logging is not None:
                    data = b"".join(block.records)
                    logging.append(gzip.compress(data, mtime=0) if is_gzip(logging.path) else data)
                if saving is not None:
                    journal.append(saving, self.plan, self.games, block.results, wall)
                self._parts.append(block.results)
                self.seconds += wall
                if progress is not None:
                    progress(self.games)
            self.complete = True

    def _open(
        self, file: str | os.PathLike[str], resume: bool, notice: Callable[[str], None]
    ) -> Log:
        players = self.plan.rules.players
        sources = [fingerprint(agent, players) for agent in games.make_agents(self._agents)]
        if not (resume and Path(file).exists()):
            log = journal.begin(file, self.plan, sources)
            if self.games:
                journal.append(log, self.plan, 0, self.results, 0.0)
            return log
        log, saved = journal.resume(file, self.plan, sources)
        if saved.cut:
            notice(f"{os.fspath(file)}: the last line is incomplete; its games are played again")
        self._parts, self.seconds = [saved.results], saved.wall
        return log


Summary = Mapping[str, Any]  # of `Tournament.summary`, or as read from ``summary.json``


def anchor(agents: Sequence[str], schedule: str) -> int | None:
    """Return the number of the agent whose rating is 0; None: the mean is 0.

    It is `planner`, as on the ladder. Without it, it is the first agent of a field, whom all others
    have met: one that has lost all its games would lend its wide interval to everyone. Else it is
    `random`.
    """
    if ANCHOR in agents:
        return agents.index(ANCHOR)
    if schedule == "field":
        return 0
    return agents.index("random") if "random" in agents else None


def labels(names: Sequence[str]) -> list[str]:
    """Return the names of agents, numbered where one occurs more than once."""
    counts, numbers = Counter(names), Counter[str]()
    result = []
    for name in names:
        numbers[name] += 1
        result.append(f"{name} #{numbers[name]}" if counts[name] > 1 else name)
    return result


# ------------------------------------------------------------------------------------ blocks


class Block(NamedTuple):
    """Games that were played together."""

    start: int  # number of the first game
    results: Results
    seconds: float
    records: list[bytes]  # of the games, a line each; empty unless requested


def play_plan(
    plan: Plan,
    agents: Sequence[AgentLike],
    workers: Workers,
    stop: Callable[[], bool],
    *,
    looks: Iterable[int] | None = None,
    start: int = 0,
    seconds: float = 0.0,
    records: bool = False,
    progress: Progress | None = None,
) -> Iterator[Block]:
    """Play the games of a plan from number ``start`` on; yield them block by block, in their order.

    No block goes across ``looks``, numbers of deals, by default those of the plan's stop rule:
    there ``stop`` is asked whether it is enough, when the caller has taken the blocks before.
    Each block takes about `BLOCK_SECONDS`, judged by the last games that make up a deal: those of
    one pair may take much longer than those of another. The first block is a single game, unless
    ``seconds`` says what the games before ``start`` took. Blocks before an error are yielded.
    """
    deal = plan.games_per_deal
    ends = [deals * deal for deals in (plan.checkpoints() if looks is None else looks)]
    asks = set(ends[:-1])
    recent = deque([(start or bool(seconds), seconds)])

    def tasks() -> Iterator[tuple[int, int]]:
        first = start
        # After one deal the pace of a deal is known.
        for end in ends if seconds else (deal, *ends):
            while first < end:
                known, spent = map(sum, zip(*recent, strict=True))
                size = block_size(spent / max(known, 1), end - first, workers.count)
                yield first, first + size
                first += size

    if not (inside := isinstance(workers, InProcess)):
        _check_sendable(plan, agents)
    job = partial(_player, plan, tuple(agents), records, progress if inside else None)
    if start in asks and stop():
        return
    try:
        for _, block in executors.results(workers, job, tasks()):
            recent.append((len(block.results), max(block.seconds, 1e-9)))
            while sum(games for games, _ in recent) - recent[0][0] >= deal:
                recent.popleft()
            if block.start != start:  # a block before it has failed
                continue
            start += len(block.results)
            yield block
            if start in asks and stop():
                return
    except executors.UnsendableError as error:
        raise ValueError(
            f"agents cannot be sent to workers ({error}); name them by spec strings"
        ) from error
    except executors.WorkerError as error:
        failed = ArenaError(str(error))
        failed.traceback = error.traceback
        raise failed from error


def _check_sendable(plan: Plan, agents: Sequence[AgentLike]) -> None:
    """Refuse agents whose class or function another process could not find."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    for name, agent in zip(plan.agents, agents, strict=True):
        inner = getattr(agent, "agent", agent)  # that of a `Checked`
        made_of: Any = inner if is_function(inner) else getattr(inner, "function", type(inner))
        if made_of.__name__ == "<lambda>":
            reason = "it is a lambda"
        elif "<locals>" in made_of.__qualname__:
            reason = f"{made_of.__name__} is made inside a function"
        elif made_of.__module__ == "__main__" and (file is None or not Path(file).exists()):
            reason = f"{made_of.__name__} is in a program without a file"
        else:
            continue
        raise ValueError(
            f"agent {name!r} cannot be sent to workers, since {reason}: put it into a file and "
            "name it by its spec string, such as my_bot.py:MyBot, or play with workers=1"
        )


def block_size(seconds: float, remaining: int, workers: int) -> int:
    """Return the number of games, of so many seconds, in the next block; 0 seconds: not known."""
    if not seconds:
        return 1
    fair = max(-(-remaining // workers), int(_WORTH_SHARING / seconds))  # every worker gets some
    return max(1, min(int(BLOCK_SECONDS / seconds), SIDE_BY_SIDE, fair, remaining))


def _player(
    plan: Plan, agents: Sequence[AgentLike], records: bool, progress: Progress | None
) -> Callable[[int, int], Block]:
    """Make the agents; return a function that plays games ``start`` to ``stop - 1`` of the plan."""
    made = games.make_agents(agents)
    games.warm_up(made, plan.rules)

    def play(start: int, stop: int) -> Block:
        begun = time.perf_counter()
        advance = None if progress is None else lambda done: progress(start + done)
        results, actions = games.play_games(
            plan.fixtures(start, stop), made, plan.rules, seed=plan.seed, progress=advance
        )
        seconds, lines = time.perf_counter() - begun, []
        for number, game in enumerate(actions if records else (), start):
            about = _about(plan, number)
            record = games.game_record(plan.rules, plan.seed, about["deal"], game)
            lines.append(record_line({**record, **about}))
        return Block(start, results, seconds, lines)

    return play


# ------------------------------------------------------------------------------------ records


def _about(plan: Plan, number: int) -> dict[str, Any]:
    """Return what the record of a game says of its place in the tournament."""
    _, [deal], [seating], [table] = plan.fixtures(number, number + 1)
    names = [plan.agents[agent] for agent in table]
    about = {"game": number, "seed": plan.seed, "deal": int(deal), "seating": int(seating)}
    return {**about, "agents": names}


def _open_records(path: str | os.PathLike[str], plan: Plan, games: int) -> Log:
    """Open a file of the tournament's records after the game before number ``games``.

    A block's records are written before its results, so a process that is killed may leave more of
    them, and a part of one: these are taken out.
    """
    numbers = [_number_of(record, plan) for _, record in scan_records(os.fspath(path))]
    known = numbers[:-1] if numbers[1:] and numbers[-1] < 0 else numbers
    first = known[0] if known else games
    kept = games - first
    if -1 in known or known != [*range(first, first + len(known))] or not 0 <= kept <= len(known):
        text = f"exists, and its records do not end with game {games - 1} of this tournament"
        raise journal.ResultsFileError(path, None, f"{text}: name another file")
    if kept < len(numbers):
        records = read_records(os.fspath(path))
        write_records(os.fspath(path), (record for _, record in islice(records, kept)))
    return Log(path)


def _number_of(record: Record | RecordError, plan: Plan) -> int:
    """Return the number of the game of a record; -1: it is none of the tournament's."""
    number = record.get("game") if isinstance(record, dict) else None
    if isinstance(record, dict) and type(number) is int and 0 <= number < plan.games:
        about = {**_about(plan, number), "rules": plan.rules.to_dict()}
        return number if record.items() >= about.items() else -1
    return -1
