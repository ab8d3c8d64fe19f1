"""Provenance of a run: machine, versions, and the commit of the code."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from carolus_env.system.machine import machine
from carolus_env.system.machine import versions as package_versions

_FILE = "carolus_env/learners/provenance.py"
_ROOT = Path(__file__).parents[2]


def provenance() -> dict[str, Any]:
    """Return ``commit``, ``machine`` and ``versions``, as a run's ``config.json`` holds them."""
    return {"commit": commit(), "machine": machine(), "versions": versions()}


def versions() -> dict[str, str]:
    """Return the versions of the packages that training depends on."""
    return package_versions("gymnasium", "torch", "stable_baselines3", "sb3_contrib")


@cache
def commit() -> str | None:
    """Return the commit that the running code was checked out from; see `commit_of`."""
    return commit_of(_ROOT)


def commit_of(root: Path) -> str | None:
    """Return the commit of the repository of this project whose root is ``root``."""
    # --full-name: the path as seen from the root of the repository that tracks the file
    tracked = _git(root, "ls-files", "--full-name", "--", _FILE)
    if tracked != _FILE:
        return None
    return _git(root, "describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=40")


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of a git command; None if it prints nothing, fails, or git is missing."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
