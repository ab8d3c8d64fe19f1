"""Seconds from a fresh process to the first step of an environment, cold and warm.

    python benchmarks/startup.py
    python benchmarks/startup.py --imports --json startup.json

Cold: with an empty cache of compiled kernels, so everything is compiled. Warm: with the cache of
the run before. Import, reset, the first observation with its mask, and one step are included. A
repeat is one cold run and five warm ones. `--imports` adds the packages whose import takes longest,
each with the packages that it imports first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import line

WARM_RUNS = 5  # for each cold one, which takes far longer

VECTOR = """
import gymnasium
import carolus_env
envs = gymnasium.make_vec(
    "CarolusMagnus-v0", num_envs=1024, vectorization_mode="vector_entry_point"{options}
)
_, info = envs.reset(seed=1)
envs.step(info["action_mask"].argmax(axis=1))
"""

FIRST_STEPS = {
    "first AEC step": """
from carolus_env import carolus_magnus_v0
env = carolus_magnus_v0.env()
env.reset(seed=1)
seen, *_ = env.last()
env.step(int(seen["action_mask"].argmax()))
""",
    "first vector step": VECTOR.format(options=""),
    "first vector step against planner": VECTOR.format(options=', opponents="planner"'),
}


def seconds(code: str, cache: str) -> float:
    """Wall time of a fresh process."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def cold_and_warm(code: str, repeats: int) -> tuple[list[float], list[float]]:
    """Wall times with an empty cache, and with the cache of such a run."""
    cold, warm = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(seconds(code, cache))
            warm += [seconds(code, cache) for _ in range(WARM_RUNS)]
    return cold, warm


def slowest_imports(count: int) -> list[tuple[str, float]]:
    """The packages that ``import carolus_env`` spends most time on, and cumulative seconds.

    Modules inside other packages are left out: their package's time includes them.
    """
    report = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import carolus_env"],
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    found = []
    for entry in report.splitlines():
        fields = entry.removeprefix("import time:").split("|")  # self us, cumulative us, name
        if len(fields) != 3 or not fields[1].strip().isdigit():
            continue
        name = fields[2].strip()
        if "." not in name or name.startswith("carolus_env."):
            found.append((name, int(fields[1]) / 1e6))
    return sorted(found, key=lambda pair: -pair[1])[:count]


def show(name: str, times: list[float]) -> dict[str, Any]:
    """Print one row, and return it."""
    middle, low, high = statistics.median(times), min(times), max(times)
    print(f"{name:36}{middle:8.2f} s   ({low:.2f} to {high:.2f}, {len(times)} runs)", flush=True)
    return {
        "what": name,
        "seconds": round(middle, 4),
        "repeats": len(times),
        "min": round(low, 4),
        "max": round(high, 4),
    }


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--imports", nargs="?", type=int, const=15, default=0, metavar="N", help="the N slowest"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    machine = line()
    print(machine)
    runs = WARM_RUNS * options.repeats
    rows = [
        show("python alone", [seconds("pass", "") for _ in range(runs)]),
        show("import carolus_env", [seconds("import carolus_env", "") for _ in range(runs)]),
    ]
    for name, code in FIRST_STEPS.items():
        cold, warm = cold_and_warm(code, options.repeats)
        rows += [show(f"{name}, warm", warm), show(f"{name}, cold", cold)]
    if options.imports:
        for name, cumulative in slowest_imports(options.imports):
            rows.append(show(f"  importing {name}", [cumulative]))
    if options.json:
        from carolus_env.system.files import write_json

        write_json(options.json, [{**row, "machine": machine} for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
