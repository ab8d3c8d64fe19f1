"""The table of other libraries, from runs of benchmarks/integrations: docs/integrations.md."""

from __future__ import annotations

import shlex

from results import BENCHMARKS, load, markdown

SHOWN = ("players", "trains", "plays in evaluate")
"""Checks of benchmarks/integrations/ that have a column of their own."""


def integrations_table() -> str:
    """What was tried with other libraries; below it every other check, and what does not work."""
    rows = load("integrations")
    lines, more = [], []
    for row in rows:
        checks = dict(row["checks"])
        cells = [checks.pop(name, "-") for name in SHOWN]
        lines.append([row["library"], row["version"], *cells, f"{row['lines']}"])
        passed = ", ".join(name for name, result in checks.items() if result == "ok")
        measured = [f"{name}: {result}" for name, result in checks.items() if result != "ok"]
        told = "; ".join(text for text in (passed, *measured) if text)
        more.append(
            f"- **{row['library']}** (`pip install {required(row['name'])}`): {told}. "
            f"*Limits:* {row['limits']}.\n"
        )
    head = ["library", "version", "players", "trains", "plays in `evaluate`", "lines"]
    where = markdown(head, lines, rows).partition("\nMachine: ")
    return f"{where[0]}\nAlso checked:\n\n{''.join(more)}{where[1]}{where[2]}"


def required(check: str) -> str:
    """What a check of another library was run with, as words for pip."""
    script = BENCHMARKS / "integrations" / f"check_{check}.py"
    lines = [line for line in script.read_text().splitlines() if line.startswith("# requires:")]
    words = " ".join(line.partition(":")[2] for line in lines).split()
    return " ".join(shlex.quote(word) if "[" in word else word for word in words)
