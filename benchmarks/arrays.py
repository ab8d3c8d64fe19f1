"""Decisions a second from games to arrays, on one core: from JSON lines, and from packed games.

    python benchmarks/arrays.py --json benchmarks/results/arrays.json

2,000 games of two players between planner and greedy. CPU seconds, the best and the worst of
--repeats; the arrays are made in memory that was used before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from machine import line

from carolus_env import arena
from carolus_env.engine.rules import Rules
from carolus_env.records.arrays import read_games, read_packed, to_arrays, write_packed
from carolus_env.system.files import write_json

DEALS = 1000


def seconds(task: Callable[[], Any], repeats: int) -> list[float]:
    """CPU seconds of each of some calls, sorted, after one that does not count."""
    task()
    found = []
    for _ in range(repeats):
        started = time.process_time()
        task()
        found.append(time.process_time() - started)
    return sorted(found)


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    machine, rows = line(), []
    print(machine)
    with tempfile.TemporaryDirectory() as folder:
        lines, packed = Path(folder) / "games.jsonl", Path(folder) / "games.safetensors"
        plan = arena.Plan(Rules(2), ("planner", "greedy"), deals=DEALS, seed=1)
        arena.Tournament(plan).run(records=lines)
        games = read_games(lines)
        write_packed(packed, games)
        tasks: dict[str, Callable[[], Any]] = {
            "JSON lines to uint8 observations": lambda: to_arrays(read_games(lines)),
            "packed file to uint8 observations": lambda: to_arrays(read_packed(packed)),
            "packed file to float32 observations": lambda: to_arrays(
                read_packed(packed), observation="float32"
            ),
            "packed file, no observations and masks": partial(
                to_arrays, games, observation=None, masks=False
            ),
        }
        size = {"JSON lines": lines.stat().st_size, "packed file": packed.stat().st_size}
        for what, task in tasks.items():
            taken = seconds(task, options.repeats)
            rates = [games.decisions / each for each in taken]
            kind = next(name for name in size if what.startswith(name))
            rows.append(
                {
                    "what": what,
                    "per_s": round(rates[len(rates) // 2]),
                    "min": round(rates[-1]),
                    "max": round(rates[0]),
                    "decisions": games.decisions,
                    "bytes_a_game": round(size[kind] / len(games.starts)),
                    "repeats": options.repeats,
                    "machine": machine,
                }
            )
            print(
                f"{what:42}{rows[-1]['per_s']:>14,}/s   {rows[-1]['bytes_a_game']:,} bytes a game"
            )
    if options.json:
        write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
