"""The compiled learners: what their options are worth, and what they do in a second.

The first is measured by benchmarks/studies/ablations.py and supervised.py there, the second by
benchmarks/learners.py.

The spread between seeds is taken as the same in all cases of a learner, so that few seeds tell it
well: pooled over the cases, with as many degrees of freedom as there are runs less cases.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASE: Final = "as it is"
LOOKS: Final = {
    "ppo": ("discs=now", "discs=turn"),
    "value": ("discs=now,next=0", "discs=turn,next=0"),
    "value long": ("candidates=32,plans=stop,next=0",),
    "single": ("plain",),
}
"""How the networks of a study played: as they learnt, and looking one turn ahead at discs."""
RIVALS: Final = {"value long": "value:2p"}
"""Whom they met, where it was not the planner."""
DRAWN: Final = ("ppo", "value")
WIDTHS: Final = (16, 32, 64, 128, 256)
"""64 is the base."""
AMOUNTS: Final = ("a quarter of", "half", BASE, "twice", "four times")
"""How the names of the cases with other budgets begin; the base is in its place."""


def cases(study: str) -> dict[str, list[results.Row]]:
    """The runs of a study by case, in its order."""
    found: dict[str, list[results.Row]] = {}
    for row in results.load("ablations"):
        if row["study"] == study:
            found.setdefault(row["case"], []).append(row)
    return found


def mean(rows: list[results.Row], look: str) -> float:
    """The mean share of the games won, over the runs."""
    return sum(row[look][0] for row in rows) / len(rows)


def error(study: str, look: str) -> tuple[float, int]:
    """The standard deviation of a run's share, pooled over cases, and its degrees of freedom."""
    squares, free = 0.0, 0
    for rows in cases(study).values():
        middle = mean(rows, look)
        squares += sum((row[look][0] - middle) ** 2 for row in rows)
        free += len(rows) - 1
    return math.sqrt(squares / free), free


def margin(study: str, look: str, *, difference: bool) -> float:
    """Half of a 95 % interval, for a case's mean or for the difference of two."""
    from scipy.stats import t

    spread, free = error(study, look)
    runs = min(map(len, cases(study).values()))
    return float(t.ppf(0.975, free)) * spread * math.sqrt((2 if difference else 1) / runs)


def table(study: str) -> str:
    """A study's cases: CPU-minutes, each seed, the mean and the difference to the base."""
    looks, found = LOOKS[study], cases(study)
    time = "minutes" if study == "single" else "CPU-minutes"
    if study in RIVALS:
        time = "games"
    heads = ["", time, f"against `{RIVALS.get(study, 'planner')}`, by seed", "mean", "difference"]
    if len(looks) > 1:
        heads += ["looking ahead at discs", "difference"]
    lines = ["| " + " | ".join(heads) + " |", "| --- | ---: | --- |" + " ---: |" * (len(heads) - 3)]
    for case, rows in found.items():
        minutes = sum(row["seconds"] for row in rows) / len(rows) / 60
        games = sum(row["done"] for row in rows) / len(rows)
        cells = [case, f"{games:,.0f}" if time == "games" else f"{minutes:.2f}"]
        for look in looks:
            if look == looks[0]:
                cells.append(", ".join(f"{100 * row[look][0]:.1f}" for row in rows))
            less = mean(rows, look) - mean(found[BASE], look)
            cells += [
                f"{100 * mean(rows, look):.1f} %",
                "" if case == BASE else f"{100 * less:+.1f}",
            ]
        lines.append("| " + " | ".join(cells) + " |")
    [first] = {row["games"] for rows in found.values() for row in rows}
    margins = " and ".join(f"{100 * margin(study, look, difference=True):.1f}" for look in looks)
    [machine] = {row["machine"] for rows in found.values() for row in rows}
    return (
        "\n".join(lines)
        + f"\n\n{first:,} paired games a run. Differences from *{BASE}* are give or take "
        f"{margins} points (95 %, by the spread between seeds). Machine: {machine}.\n"
    )


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


def supervised_table() -> str:
    """Networks fitted to rollouts: their distance to others, and their games against the start."""
    found = results.load("supervised")
    passes = len(found["rows"][0]["known"]) - 1
    lines = [
        "| positions | quick less deep | distance there before | rate | distance at random: before "
        f"| after 1 pass | after {passes} | against the start |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in found["rows"]:
        known, (won, low, high) = row["known"], row["won"]
        cells = [row["set"], f"{found['differ'][row['set']]:.3f}", f"{row['before']:.3f}"]
        cells += [f"{row['rate']:g}", f"{known[0]:.4f}", f"{known[1]:.4f}", f"{known[-1]:.4f}"]
        cells.append(f"{100 * won:.1f} % ({100 * low:.1f} - {100 * high:.1f})")
        lines.append("| " + " | ".join(cells) + " |")
    return (
        "\n".join(lines)
        + f"\n\n{found['positions']:,} positions of each kind, {found['rollouts']} rollouts each; "
        f"{found['games']:,} games. Machine: {found['machine']}.\n"
    )


TABLES: Final[dict[str, Callable[[], str]]] = {
    **{f"ablations {study}": functools.partial(table, study) for study in LOOKS},
    "supervised": supervised_table,
    "learners' pace": pace_table,
    "learners' time": time_table,
}


def figure(empty: Any, colours: tuple[str, ...]) -> Figure:
    """Strength against what was learnt from, and against width, for both learners."""
    made, axes = empty(3.6)
    made.delaxes(axes)
    left, right = made.subplots(1, 2, sharey=True)
    for (learner, colour), shape in zip(zip(DRAWN, colours, strict=False), "os", strict=True):
        found, look = cases(learner), LOOKS[learner][0]
        bar = 100 * margin(learner, look, difference=False)
        how: dict[str, Any] = {"color": colour, "marker": shape, "markersize": 4, "capsize": 2}
        amounts = [next(rows for case, rows in found.items() if case.startswith(name))
                   for name in AMOUNTS]  # fmt: skip
        minutes = [sum(row["seconds"] for row in rows) / len(rows) / 60 for rows in amounts]
        shares = [100 * mean(rows, look) for rows in amounts]
        left.errorbar(minutes, shares, yerr=bar, label=f"--learner {learner}", **how)
        shares = [100 * mean(found.get(f"width {width}", found[BASE]), look) for width in WIDTHS]
        right.errorbar(WIDTHS, shares, yerr=bar, **how)
    for place, label in ((left, "CPU-minutes of learning"), (right, "width of the first layer")):
        place.set_xscale("log", base=2)
        place.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
        place.grid()
        place.set_xlabel(label)
    left.set_ylabel("% of the games won against planner")
    left.legend(frameon=False)
    return made
