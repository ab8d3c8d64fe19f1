"""The first ten minutes of a new user: a fresh clone, an empty cache of compiled code.

    python -m benchmarks.first_minutes                # all parts, in this order
    python -m benchmarks.first_minutes steps train

Parts: ``train`` (`make train`), ``again`` (the same with all compiled), ``steps`` (first steps of
environments, each with an empty cache), ``game`` (README's first game), ``tutorial`` (its commands)
and ``test`` (`make test`). The last commit is cloned, so commit first. Each command's wall time and
CPU time is measured; of a training run also what it spent on compiling, learning and evaluating.
The first command includes the installation, with the package index's files as the machine has them.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from benchmarks.machine import line
from benchmarks.results import Row, digits, markdown, measuring_parser, report
from benchmarks.startup import FIRST_STEPS

ROOT: Final = Path(__file__).parent.parent
_UNUSUAL: Final = ("NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "VIRTUAL_ENV")
"""Variables of this process that a new user does not have."""

Commands = Iterator[tuple[str, list[str]]]
"""What is measured, and the words of the command."""


def blocks(page: Path, language: str = "") -> list[str]:
    """Return the blocks of code of a page in Markdown, in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def first_steps(clone: Path) -> Commands:
    for name, code in FIRST_STEPS.items():
        yield f"{name}, cold", [".venv/bin/python", "-c", code]


def first_game(clone: Path) -> Commands:
    game = next(block for block in blocks(clone / "README.md", "python") if "agent_iter" in block)
    yield "README's first game", [".venv/bin/python", "-c", game]


def tutorial(clone: Path) -> Commands:
    """Return the tutorial's commands; `carolus play` waits for a person."""
    for block in blocks(clone / "docs" / "tutorial.md"):
        for command in block.splitlines():
            if re.match(r"carolus (?!play)|python ", command):
                yield f"`{command}`", [f".venv/bin/{command.split()[0]}", *command.split()[1:]]


PARTS: Final[dict[str, Callable[[Path], Commands]]] = {
    "train": lambda clone: iter([("`make train`, installation included", ["make", "train"])]),
    "again": lambda clone: iter([("`make train` again", ["make", "train", "ARGS=--name again"])]),
    "steps": first_steps,
    "game": first_game,
    "tutorial": tutorial,
    "test": lambda clone: iter([("`make test`", ["make", "test"])]),
}
"""Parts by name, each with the commands that it measures in a clone."""


def measure(what: str, command: list[str], clone: Path) -> Row:
    """Run a command in the clone; return its row."""
    environment = {name: value for name, value in os.environ.items() if name not in _UNUSUAL}
    runs = set(clone.glob("runs/*/result.json"))
    with tempfile.TemporaryDirectory() as empty:
        if what.endswith("cold"):
            environment["NUMBA_CACHE_DIR"] = empty
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        code = subprocess.run(command, cwd=clone, env=environment, check=False).returncode
        seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    phases: dict[str, float] = {}
    for path in set(clone.glob("runs/*/result.json")) - runs:
        written = json.loads(path.read_text()).get("seconds")
        phases = written if isinstance(written, dict) else {}
    row = {"what": what, "seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}
    return {**row, "exit": code, "phases": phases, "machine": line()}


def table(rows: list[Row]) -> str:
    """Return the times of commands."""
    lines = [
        [
            row["what"] + (f" **failed ({row['exit']})**" if row["exit"] else ""),
            digits(row["seconds"], "s"),
            digits(row["cpu_seconds"], "s"),
            ", ".join(
                f"{name} {seconds / max(sum(row['phases'].values()), 1e-9):.0%}"
                for name, seconds in row["phases"].items()
            ),
        ]
        for row in rows
    ]
    return markdown(["what", "wall time", "CPU time", "of its wall time"], lines, rows)


def main(argv: list[str] | None = None) -> int:
    """Measure in a temporary clone, print the table, and save the rows if asked."""
    parser = measuring_parser(__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (all)")
    options = parser.parse_args(argv)
    parts = options.parts or list(PARTS)
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}, known are {', '.join(PARTS)}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "carolus"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        if parts[0] not in ("train", "test"):
            rows.append(measure("`make setup`", ["make", "setup"], clone))
        for part in parts:
            for what, command in PARTS[part](clone):
                print(f"--- {what}", flush=True)
                rows.append(measure(what, command, clone))
    report(table(rows), rows, "first_minutes", options.save, ("what",))
    return int(any(row["exit"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
