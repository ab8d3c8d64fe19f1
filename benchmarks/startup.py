"""Seconds from a fresh process to the first step of an environment, cold and warm.

    python -m benchmarks.startup --save

Cold: with an empty cache of compiled kernels, so everything is compiled. Warm: with the cache of
the run before. Import, reset, the first observation with its mask, and one step are included. A
repeat is one cold run and five warm ones.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.machine import line
from benchmarks.results import Row, digits, markdown, measuring_parser, report

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
observation, *_ = env.last()
env.step(int(observation["action_mask"].argmax()))
""",
    "first vector step": VECTOR.format(options=""),
    "first vector step against planner": VECTOR.format(options=', opponents="planner"'),
}


def seconds(code: str, cache: str) -> float:
    """Measure the wall time of a fresh process."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def cold_and_warm(code: str, repeats: int) -> tuple[list[float], list[float]]:
    """Measure wall times with an empty cache, and with the cache of such a run."""
    cold, warm = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(seconds(code, cache))
            warm += [seconds(code, cache) for _ in range(WARM_RUNS)]
    return cold, warm


def row_of(name: str, times: list[float]) -> Row:
    """Print a case, and return its row."""
    row = {
        "what": name,
        "seconds": round(statistics.median(times), 4),
        "repeats": len(times),
        "min": round(min(times), 4),
        "max": round(max(times), 4),
        "machine": line(),
    }
    print(f"{name}: {row['seconds']:.2f} s", flush=True)
    return row


def table(rows: list[Row]) -> str:
    """Return the seconds of fresh processes."""
    cases: dict[str, dict[str, str]] = {}
    for row in rows:
        what, _, cache = row["what"].partition(", ")
        cases.setdefault(what, {})[cache or "warm"] = digits(row["seconds"], "s")
    lines = [[what, cell["warm"], cell.get("cold", "-")] for what, cell in cases.items()]
    return markdown(["what", "warm", "cold"], lines, rows)


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and save the rows if asked."""
    options = measuring_parser(__doc__, repeats=3).parse_args(argv)
    runs = WARM_RUNS * options.repeats
    rows = [
        row_of(name, [seconds(code, "") for _ in range(runs)])
        for name, code in {
            "python alone": "pass",
            "import carolus_env": "import carolus_env",
        }.items()
    ]
    for name, code in FIRST_STEPS.items():
        cold, warm = cold_and_warm(code, options.repeats)
        rows += [row_of(f"{name}, warm", warm), row_of(f"{name}, cold", cold)]
    report(table(rows), rows, "startup", options.save)
    return 0


if __name__ == "__main__":
    sys.exit(main())
