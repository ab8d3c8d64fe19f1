"""The machine of a measurement in one line: figures of different machines cannot be compared."""

from __future__ import annotations

import datetime
import platform
from importlib import metadata

from carolus_env.system.machine import cores, cpu


def describe(*packages: str) -> dict[str, str]:
    """Return the processor, cores, versions and date.

    Args:
        packages: distributions whose versions matter besides NumPy and Numba.
    """
    return {
        "cpu": cpu(),
        "cores": str(cores()),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("numpy", "numba", *packages)},
        "date": datetime.date.today().isoformat(),
    }


def line(*packages: str) -> str:
    """Return `describe` as one line, printed above a table and written into every row of JSON."""
    about = describe(*packages)
    processor, number, date = about.pop("cpu"), about.pop("cores"), about.pop("date")
    versions = ", ".join(f"{name} {version}" for name, version in about.items())
    return f"{processor}, cores: {number}, {versions}, {date}"
