"""What the compiled learners do in a second: benchmarks/learners.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import results


def pace_table() -> str:
    """What is learnt from in a second, by workers, and the CPU time of it."""
    rows = results.load("learners")
    lines = [
        "| learner | players | workers | learnt from a second | CPU time of each | multiply-adds, "
        "by those of BLAS |",
        "| --- | ---: | ---: | ---: | --- | ---: |",
    ]
    for row in rows:
        cells = [f"`{row['learner']}`", str(row["players"]), str(row["workers"])]
        if row["learner"] == "ppo":
            parts = ", ".join(f"{name} {us:.1f} us" for name, us in row["us"].items())
            cells += [f"{row['per_s']:,.0f} decisions", parts, results.percent(used(row))]
        else:
            cells += [f"{row['per_s']:,.0f} games", f"{row['us']['a game'] / 1000:.2f} ms", ""]
        lines.append("| " + " | ".join(cells) + " |")
    [machine] = {row["machine"] for row in rows}
    return "\n".join(lines) + f"\n\nMachine: {machine}.\n"


def used(row: results.Row) -> float:
    """PPO's multiply-adds a second, by those of BLAS on all cores."""
    return float(row["per_s"] * sum(row["multiply_adds"].values()) / row["peak"])


def time_table() -> str:
    """Where the time of PPO's decisions goes, with one worker."""
    heads = ("players", "candidates", "rollouts", "of that, listing", "seeing", "network",
             "gradients", "multiply-adds of rollouts", "of gradients")  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "| " + " | ".join(["---:"] * len(heads)) + " |"]
    for row in results.load("learners"):
        if (row["learner"], row["workers"]) != ("ppo", 1):
            continue
        times = [row["us"]["rollouts"], *row["within_us"].values(), row["us"]["gradients"]]
        cells = [str(row["players"]), f"{row['candidates']:.1f}", *(f"{us:.1f} us" for us in times)]
        cells += [f"{results.short(count)}" for count in row["multiply_adds"].values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


TABLES: Final[dict[str, Callable[[], str]]] = {
    "learners' pace": pace_table,
    "learners' time": time_table,
}
