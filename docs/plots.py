"""Draw the plots of docs/images/ from the benchmarks' results: ``python docs/plots.py``.

The same results and the same matplotlib give the same bytes.
"""

from __future__ import annotations

import math
import re
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import results
import scale

from carolus_env.system.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = Path(__file__).parent / "images"

BLACK, GREY = "#222222", "#767676"
BLUE, GREEN, VERMILION, PURPLE = "#0072b2", "#009e73", "#d55e00", "#cc79a7"
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""

COLOURS = (GREEN, BLUE, VERMILION, PURPLE, BLACK)
PLAYERS = {2: BLUE, 3: VERMILION, 4: GREEN}
LINES = {
    "playout": (BLACK, "-"),
    "rollout_mask": (BLUE, "-"),
    "rollout_u8": (VERMILION, "-"),
    "rollout_f32": (GREEN, "-"),
    "step_mask": (BLUE, "--"),
    "step_u8": (VERMILION, "--"),
    "step_f32": (GREEN, "--"),
    "gym_vector": (PURPLE, ":"),
    "gym_turns": (BLACK, ":"),
    "sb3_vec_env": (GREY, ":"),
}
"""Colour: what is written at each decision; line style: who calls the engine."""
CALLERS = "solid: a loop in the kernel\ndashed: calls from Python\ndotted: a library's environment"

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "carolus",  # otherwise ids in the file are random
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": BLACK,
    "text.color": BLACK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
}


def empty(height: float) -> tuple[Figure, Any]:
    """A figure of a height in inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, height), layout="constrained", facecolor="white")
    return figure, figure.subplots()


def plain(axis: Any) -> None:
    """Write the numbers of a logarithmic axis as in the tables: 10 k, 1 M."""
    axis.set_major_formatter(lambda number, _: re.sub(r"\.0+", "", results.short(number)))
    axis.set_minor_formatter("")


def beside(axes: Any, label: str, x: float, y: float, **how: Any) -> None:
    """Write a label to the right of a bar's end."""
    axes.annotate(label, (x, y), (4, 0), textcoords="offset points", va="center", **how)


def throughput() -> Figure:
    """Bars: decisions a second of every mode, one bar for each number of players."""
    modes = results.compared()
    figure, axes = empty(0.6 + 0.46 * len(modes))
    for place, rows in enumerate(modes.values()):
        for players, row in rows.items():
            y, rate = place + 0.27 * (players - 3), row["decisions_per_s"]
            axes.barh(y, rate, height=0.25, color=PLAYERS[players])
            axes.plot([row["min"], row["max"]], [y, y], color=BLACK, linewidth=0.8)
            label = results.short(rate) + (f", {players} players" if place == 0 else "")
            beside(axes, label, row["max"], y, fontsize=7)
    axes.set_yticks(range(len(modes)), list(modes))
    axes.set_ylim(len(modes) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    rates = [row["decisions_per_s"] for rows in modes.values() for row in rows.values()]
    axes.set_xscale("log")
    axes.set_xlim(10 ** math.floor(math.log10(min(rates))), 3 * max(rates))
    plain(axes.xaxis)
    axes.grid(axis="x")
    axes.set_xlabel("decisions a second, one thread, log scale (line: lowest to highest measured)")
    return figure


def batches() -> Figure:
    """Lines: decisions a second against the batch, one line a mode, two players."""
    modes = results.by_batch()
    figure, axes = empty(5.2)
    ends = {}
    for mode, rows in modes.items():
        colour, line = LINES.get(mode, (GREY, "-."))
        rates = [row["decisions_per_s"] for row in rows.values()]
        axes.plot(list(rows), rates, line, color=colour, marker="o", markersize=3, linewidth=1.5)
        ends[mode] = (max(rows), rates[-1], colour)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({batch for rows in modes.values() for batch in rows})
    ticks = sizes[:: 1 + len(sizes) // 12]
    axes.set_xticks(ticks, [f"{size:,}" for size in ticks])
    axes.set_xticks([], minor=True)
    plain(axes.yaxis)
    axes.grid()
    axes.set_xlabel("games in the batch")
    axes.set_ylabel("decisions a second, 2 players, one thread")
    axes.text(0.98, 0.03, CALLERS, transform=axes.transAxes, ha="right", color=GREY)
    # Labels at the ends of the lines, moved down where they would overlap.
    low, high = axes.get_ylim()
    step, last = (high / low) ** 0.042, float("inf")
    for mode, (batch, rate, colour) in sorted(ends.items(), key=lambda item: -item[1][1]):
        last = min(rate, last / step)
        axes.annotate(
            mode,
            (batch, rate),
            (sizes[-1] * 1.6, last),
            va="center",
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkB": 3},
        )
    return figure


def peers() -> Figure:
    """Bars from 1: our speed by that of each peer."""
    from matplotlib.ticker import LogLocator

    rows = results.load("peers")
    figure, axes = empty(0.8 + 0.4 * len(rows))
    for place, row in enumerate(rows):
        ratio = row["ratio"]
        colour = BLUE if ratio >= 1 else VERMILION
        axes.barh(place, ratio - 1, left=1, height=0.55, color=colour)
        axes.plot([row["ratio_min"], row["ratio_max"]], [place] * 2, color=BLACK, linewidth=0.8)
        end, label = max(row["ratio_max"], 1), results.times(ratio)
        beside(axes, label, end, place)
    axes.set_yticks(range(len(rows)), [f"{row['row']}, {row['unit']}" for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xscale("log", subs=[])
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter(lambda number, _: f"{number:,g}")
    axes.margins(x=0.12)
    axes.grid(axis="x")
    axes.axvline(1, color=BLACK, linewidth=1)
    axes.set_xlabel("ours / theirs, log scale (1: equally fast; line: lowest to highest measured)")
    return figure


PLOTS = {
    "throughput": throughput,
    "batches": batches,
    "peers": peers,
    "cluster": lambda: scale.figure(empty, COLOURS),
}


def main() -> int:
    """Draw all plots."""
    import matplotlib

    IMAGES.mkdir(exist_ok=True)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # independent of the user's settings
        matplotlib.rcParams.update(STYLE)
        for name, draw in PLOTS.items():
            image = BytesIO()
            draw().savefig(image, format="svg", metadata={"Date": None, "Creator": None})
            write_file(IMAGES / f"{name}.svg", image.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main())
