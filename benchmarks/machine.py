"""The machine that measured, in one line: figures of different machines do not compare."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
from importlib import metadata
from pathlib import Path


def describe(*packages: str) -> dict[str, str]:
    """Processor, cores, versions and date.

    Args:
        packages: distributions whose versions matter besides NumPy and Numba.
    """
    return {
        "cpu": _cpu(),
        "cores": str(_cores()),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("numpy", "numba", *packages)},
        "date": datetime.date.today().isoformat(),
    }


def line(*packages: str) -> str:
    """`describe` as one line, for the top of a table and for every row of JSON."""
    about = describe(*packages)
    cpu, cores, date = about.pop("cpu"), about.pop("cores"), about.pop("date")
    versions = ", ".join(f"{name} {version}" for name, version in about.items())
    return f"{cpu}, cores: {cores}, {versions}, {date}"


def _cpu() -> str:
    with contextlib.suppress(OSError):  # Linux alone has this file
        for entry in Path("/proc/cpuinfo").read_text().splitlines():
            if entry.startswith("model name"):
                return entry.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    """Cores that this process may use; a container may have fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
