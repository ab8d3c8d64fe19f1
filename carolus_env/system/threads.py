"""Threads on request: a batch is split into runs of rows, one for each worker.

Compiled entries release the interpreter's lock, so plain threads are enough; games share nothing,
so the results do not depend on the number of threads.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

from carolus_env.system.options import whole_number

MOST_THREADS: Final = 256

S = TypeVar("S")
T = TypeVar("T")


def check_threads(threads: int, name: str = "threads") -> int:
    """Check a number of threads."""
    return whole_number(name, threads, 1, MOST_THREADS)


def runs(rows: int, threads: int) -> list[slice]:
    """Split ``range(rows)`` into one run for each thread, none of them empty."""
    threads = max(1, min(threads, rows))
    ends = [rows * worker // threads for worker in range(threads + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def together(task: Callable[[S], T], shares: Sequence[S]) -> list[T]:
    """Run ``task`` on every share at the same time, each on a separate thread."""
    if len(shares) == 1:
        return [task(shares[0])]
    pool = _pool(os.getpid())
    futures = [pool.submit(task, share) for share in shares[1:]]
    own = task(shares[0])
    return [own, *(future.result() for future in futures)]


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of this process: a forked child has none of its parent's."""
    return ThreadPoolExecutor(256, thread_name_prefix="carolus")
