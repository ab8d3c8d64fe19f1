"""The machine and the software versions that a result was made with."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from pathlib import Path

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


def cores() -> int:
    """Return the number of cores for this process; a container may have fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
