"""Threads on request: a batch is split into runs of rows, one for each worker.

Compiled entries let other Python threads run meanwhile, so plain threads are enough; games share
nothing, so the results do not depend on their number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def check_threads(threads: int) -> int:
    """Refuse a number of threads that is none.

    Raises:
        ValueError: unless it is a whole number from 1 to 256.
    """
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= 256:
        raise ValueError(f"threads must be a whole number from 1 to 256, got {threads!r}")
    return threads


def split(task: Callable[[int, int, int], T], rows: int, threads: int) -> list[T]:
    """``task(first, last, worker)`` for runs of rows that cover ``range(rows)``, in parallel.

    Returns:
        What each worker gave, in the order of the rows.
    """
    if threads == 1 or rows < threads:
        return [task(0, rows, 0)]
    ends = [rows * worker // threads for worker in range(threads + 1)]
    pool = _pool(os.getpid())
    others = [
        pool.submit(task, ends[worker], ends[worker + 1], worker) for worker in range(1, threads)
    ]
    own = task(ends[0], ends[1], 0)
    return [own, *(other.result() for other in others)]


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process: a forked child has none of its parent's."""
    return ThreadPoolExecutor(256, thread_name_prefix="carolus")
