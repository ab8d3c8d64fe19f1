"""What the compiled learners learn from in a second.

    python -m benchmarks.learners
    python -m benchmarks.learners --players 3 --repeats 5 --save

Each learner begins with the shipped network, so that games are as long as good play makes them, and
learns with the options of ``train.py``: with one worker and with two, in turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

from benchmarks.machine import line
from benchmarks.results import Row, markdown, save_rows
from carolus_env.engine.rules import Rules
from carolus_env.learners.turns import crew as turns
from carolus_env.learners.turns.config import TurnConfig
from carolus_env.learners.value.config import ValueConfig
from carolus_env.learners.value.crew import Crew as ValueCrew


def ppo(players: int, workers: int, seconds: float) -> Row:
    """Return PPO's decisions a second, and CPU microseconds of a decision."""
    config = TurnConfig(rules=Rules(players), workers=workers, start=f"{players}p")
    crew = turns.Crew(config)
    crew.warm_up()
    crew.play()
    crew.learn(1e-6, config.entropy)
    crew.cpu_seconds[:] = 0
    updates, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        crew.play()
        crew.learn(1e-6, config.entropy)  # the network stays as good as it is
        updates += 1
    decisions = updates * config.games * config.rollout
    return {"per_s": decisions / elapsed, "us": float(1e6 * crew.cpu_seconds.sum() / decisions)}


def value(players: int, workers: int, seconds: float) -> Row:
    """Return the value learner's games a second, and CPU microseconds of a game."""
    config = ValueConfig(rules=Rules(players), workers=workers, start=f"{players}p", rate=1e-6)
    crew = ValueCrew(config)
    crew.warm_up()
    games, started, before = 0, time.perf_counter(), crew.cpu_seconds
    while (elapsed := time.perf_counter() - started) < seconds:
        crew.learn(games, workers * config.games_per_round, config.rate)
        games += workers * config.games_per_round
    return {"per_s": games / elapsed, "us": 1e6 * (crew.cpu_seconds - before) / games}


UNITS = {"ppo": "decisions", "value": "games"}


def table(rows: list[Row]) -> str:
    """Return what each learner learns from in a second, by number of workers."""
    cases: dict[tuple[str, int], dict[int, float]] = {}
    for row in rows:
        cases.setdefault((row["learner"], row["players"]), {})[row["workers"]] = row["per_s"]
    workers = sorted({row["workers"] for row in rows})
    lines = [
        [
            *(f"`{learner}`", str(players)),
            *(f"{found[n]:,.0f} {UNITS[learner]}" if n in found else "-" for n in workers),
        ]
        for (learner, players), found in cases.items()
    ]
    head = ["learner", "players", *(f"{n} worker{'s' * (n > 1)}" for n in workers)]
    return markdown(head, lines, rows)


def main() -> int:
    """Measure in turns, print the table of medians, and save the rows if asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=5.0, help="of a window, %(default)s")
    parser.add_argument("--repeats", type=int, default=5, help="windows of each, %(default)s")
    parser.add_argument("--save", action="store_true", help="write to benchmarks/results.json")
    options = parser.parse_args()
    rows, machine = [], line()
    for players in options.players:
        cases = [(learner, n) for learner in (ppo, value) for n in options.workers]
        windows: dict[Any, list[Row]] = {case: [] for case in cases}
        for _ in range(options.repeats):
            for learner, workers in cases:
                windows[learner, workers].append(learner(players, workers, options.seconds))
            cases.reverse()  # a slow spell hits all alike
        for (learner, workers), found in windows.items():
            medians = {
                name: round(statistics.median(row[name] for row in found), 1)
                for name in ("per_s", "us")
            }
            case = {"learner": learner.__name__, "players": players, "workers": workers}
            rows.append({**case, **medians, "machine": machine})
    print(table(rows))
    if options.save:
        save_rows("learners", rows, ("learner", "players", "workers"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
