"""Seconds from a fresh process to the first step of an AEC game, cold and warm.

    python benchmarks/startup.py

Cold: an empty cache of compiled kernels, so everything is compiled. Warm: the cache of the run
before. Import, reset, the first observation with its mask, and one step are included.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

FIRST_STEP = """
from carolus_env import carolus_magnus_v0
env = carolus_magnus_v0.env()
env.reset(seed=1)
seen, *_ = env.last()
env.step(int(seen["action_mask"].argmax()))
"""


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


def main() -> int:
    """Measure and print."""
    cold, warm = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(seconds(FIRST_STEP, cache))
            warm += [seconds(FIRST_STEP, cache) for _ in range(5)]
    empty = [seconds("pass", "") for _ in range(5)]
    imports = [seconds("import carolus_env", "") for _ in range(5)]
    for name, times in (
        ("python alone", empty),
        ("import carolus_env", imports),
        ("first AEC step, warm", warm),
        ("first AEC step, cold", cold),
    ):
        middle, low, high = statistics.median(times), min(times), max(times)
        print(f"{name:24}{middle:8.2f} s   ({low:.2f} to {high:.2f}, {len(times)} runs)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
