"""Learning speed of the compiled learners: decisions or games a second.

    python -m benchmarks.learners
    python -m benchmarks.learners --players 3 --repeats 5 --save

Each learner begins with the shipped network, so that games are as long as good play makes them, and
learns with the options of ``train.py``: with one worker and with two, in turns.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any, Final

from benchmarks.machine import line
from benchmarks.results import Row, markdown, measuring_parser, report
from carolus_env.engine.rules import Rules
from carolus_env.learners.ppo import PpoConfig, PpoLearner
from carolus_env.learners.selfplay import SelfPlayConfig, SelfPlayLearner, WorkerPool
from carolus_env.learners.td import TdConfig, TdLearner

LEARNERS: Final[dict[str, tuple[type[SelfPlayConfig], type[SelfPlayLearner[Any]]]]] = {
    "ppo": (PpoConfig, PpoLearner),
    "value": (TdConfig, TdLearner),
}


def pace(learner: str, players: int, workers: int, seconds: float) -> Row:
    """Measure decisions or games a second, and CPU microseconds for each."""
    kind, algorithm = LEARNERS[learner]
    config = kind(rules=Rules(players), workers=workers, start=f"{players}p")
    pool, done = WorkerPool(algorithm, config), 0
    pool.warm_up()
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        count = config.round_size(0)
        pool.learn(done, count, 1e-6)  # the network stays as good as it is
        done += count
    return {"per_s": done / elapsed, "us": 1e6 * pool.cpu_seconds / done}


def unit(learner: str) -> str:
    """Return a learner's unit."""
    return LEARNERS[learner][0].unit


def table(rows: list[Row]) -> str:
    """Return each learner's decisions or games a second, by number of workers."""
    cases: dict[tuple[str, int], dict[int, float]] = {}
    for row in rows:
        cases.setdefault((row["learner"], row["players"]), {})[row["workers"]] = row["per_s"]
    workers = sorted({row["workers"] for row in rows})
    lines = [
        [
            *(f"`{learner}`", str(players)),
            *(
                f"{result[n]:,.0f} {LEARNERS[learner][0].unit}" if n in result else "-"
                for n in workers
            ),
        ]
        for (learner, players), result in cases.items()
    ]
    head = ["learner", "players", *(f"{n} worker{'s' * (n > 1)}" for n in workers)]
    return markdown(head, lines, rows)


def main() -> int:
    """Measure in turns, print the table of medians, and save the rows if asked."""
    parser = measuring_parser(__doc__, seconds=5.0, repeats=5)
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    rows, machine = [], line()
    for players in options.players:
        cases = [(learner, n) for learner in LEARNERS for n in options.workers]
        windows: dict[Any, list[Row]] = {case: [] for case in cases}
        for _ in range(options.repeats):
            for learner, workers in cases:
                windows[learner, workers].append(pace(learner, players, workers, options.seconds))
            cases.reverse()  # slow periods hit all cases alike
        for (learner, workers), result in windows.items():
            medians = {
                name: round(statistics.median(row[name] for row in result), 1)
                for name in ("per_s", "us")
            }
            case = {"learner": learner, "players": players, "workers": workers}
            rows.append({**case, **medians, "machine": machine})
    report(table(rows), rows, "learners", options.save, ("learner", "players", "workers"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
