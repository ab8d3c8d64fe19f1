"""The machine and the software versions that a result was made with."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import sys
from pathlib import Path, PurePath
from typing import Final

from carolus_env.system.version import __version__


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
