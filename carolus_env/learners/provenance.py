"""Provenance of a run: machine, versions, and the commit of the code."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from carolus_env.system.machine import machine, versions

_FILE = "carolus_env/learners/provenance.py"


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

    def git(*arguments: str) -> str:
        words, quiet = ["git", *arguments], subprocess.DEVNULL
        return subprocess.check_output(words, cwd=root, text=True, timeout=10, stderr=quiet).strip()

    try:
        # --full-name: the path as seen from the root of the repository that tracks the file
        if git("ls-files", "--full-name", "--", _FILE) != _FILE:
            return None
        return git("describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=40") or None
    except (OSError, subprocess.SubprocessError):
        return None
