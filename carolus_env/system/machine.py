"""The machine and the versions that a result is made with, and threads on its cores."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import platform
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path, PurePath
from typing import Any, Final, TypeVar

from carolus_env.system.options import whole_number

__version__ = "0.1.0"
"""The version of the package: written here and nowhere else."""

S = TypeVar("S")
T = TypeVar("T")


def versions(*modules: str) -> dict[str, str]:
    """Return versions of the package, Python, NumPy, Numba, and the ``modules`` that are loaded."""
    result = {"carolus-env": __version__, "python": platform.python_version()}
    for name in ("numpy", "numba", *modules):
        if name in sys.modules:
            result[name] = str(sys.modules[name].__version__)
    return result


def machine() -> dict[str, str | int]:
    """Return the processor, the cores that this process may use, and the operating system."""
    return {"cpu": cpu(), "cores": cores(), "platform": platform.platform()}


def provenance() -> dict[str, Any]:
    """Return ``commit``, ``machine`` and ``versions``, as a run's ``config.json`` holds them."""
    packages = "gymnasium", "torch", "stable_baselines3", "sb3_contrib"
    return {"commit": commit(), "machine": machine(), "versions": versions(*packages)}


@cache
def commit() -> str | None:
    """Return the commit that the running code was checked out from; see `commit_of`."""
    return commit_of(Path(__file__).parents[2])


def commit_of(root: Path) -> str | None:
    """Return the commit of this project's repository at ``root``, with a plus where files differ.

    None without git, and for an installed package: a repository around it, such as one that holds a
    virtual environment, does not track these files at its root.
    """
    import subprocess  # not for every import of the package

    def git(*arguments: str) -> str:
        words, quiet = ["git", *arguments], subprocess.DEVNULL
        return subprocess.check_output(words, cwd=root, text=True, timeout=10, stderr=quiet).strip()

    file = "carolus_env/system/machine.py"
    try:
        # --full-name: the path as seen from the root of the repository that tracks the file
        if git("ls-files", "--full-name", "--", file) != file:
            return None
        return git("describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=40") or None
    except (OSError, subprocess.SubprocessError):
        return None


def cpu() -> str:
    """Return the processor's name."""
    with contextlib.suppress(OSError):  # Linux alone has this file
        for entry in Path("/proc/cpuinfo").read_text().splitlines():
            if entry.startswith("model name"):
                return entry.partition(":")[2].strip()
    return platform.processor() or platform.machine()


GROUPS: Final = Path("/proc/self/cgroup")
LIMITS: Final = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the number of cores for this process: of its affinity and a container's quota."""
    if hasattr(os, "process_cpu_count"):  # since Python 3.13
        known = os.process_cpu_count()
    else:
        known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, math.ceil(min(known or 1, _quota())))


def _quota() -> float:
    """Return the CPUs that Linux's control groups, version 1 or 2, let this process use."""
    quotas = [math.inf]
    with contextlib.suppress(OSError, ValueError):
        for line in GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            names = ["cpu.cfs_quota_us", "cpu.cfs_period_us"] if controllers else ["cpu.max"]
            group = PurePath("cpu" if controllers else ".", path.lstrip("/"))
            for folder in (group, *group.parents):  # in a container the path may be the host's
                with contextlib.suppress(OSError, ValueError):
                    texts = [(LIMITS / folder / name).read_text() for name in names]
                    quota, period = map(int, " ".join(texts).split())
                    quotas += [quota / period] if quota > 0 else []
    return min(quotas)


# ------------------------------------------------------------------------------------ threads

# Compiled entries release the interpreter's lock. Games share nothing: results are those of one.

MOST_THREADS: Final = 256


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
    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="carolus")
