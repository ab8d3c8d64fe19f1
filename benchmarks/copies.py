"""Microseconds to copy games, and to pick rows of them: as whole bytes, and field by field.

    python benchmarks/copies.py --json benchmarks/results/copies.json

`carolus_env.copy` and `pick` against NumPy's ``states.copy()`` and ``states[rows]``, in turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import line

import carolus_env as ce
from carolus_env.system.files import write_json

SIZES = (1, 4096)
WINDOW = 0.05  # seconds of calls in a window


def micros(task: Callable[[], Any]) -> float:
    """Microseconds of a call, the mean over a window."""
    calls, started = 0, time.perf_counter()
    while time.perf_counter() - started < WINDOW:
        for _ in range(10):
            task()
        calls += 10
    return (time.perf_counter() - started) / calls * 1e6


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    machine, rows = line(), []
    print(machine)
    for games in SIZES:
        states = ce.new_games(ce.Rules(2), games, seed=1)
        order = np.random.default_rng(1).permutation(games)
        tasks: dict[tuple[str, str], Callable[[], Any]] = {
            ("copy", "bytes"): lambda states=states: ce.copy(states),
            ("copy", "fields"): lambda states=states: states.copy(),
            ("pick", "bytes"): lambda states=states, order=order: ce.pick(states, order),
            ("pick", "fields"): lambda states=states, order=order: states[order],
        }
        taken: dict[tuple[str, str], list[float]] = {name: [] for name in tasks}
        for _ in range(options.repeats):
            for name, task in tasks.items():
                taken[name].append(micros(task))
        for what in ("copy", "pick"):
            row = {"what": what, "games": games, "machine": machine}
            for way in ("bytes", "fields"):
                row[way] = round(statistics.median(taken[what, way]), 3)
            pairs = zip(taken[what, "fields"], taken[what, "bytes"], strict=True)
            ratios = sorted(fields / as_bytes for fields, as_bytes in pairs)
            row |= {"ratio": round(statistics.median(ratios), 2)}
            row |= {"min": round(ratios[0], 2), "max": round(ratios[-1], 2)}
            rows.append(row)
            print(f"{what} {games:6,}  {row['bytes']:9.2f} us  {row['fields']:9.2f} us by fields")
    if options.json:
        write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
