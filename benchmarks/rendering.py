"""Milliseconds a frame: text, SVG and pixels of a game.

    python -m benchmarks.rendering --save

A frame is the picture of a PettingZoo environment in mid-game, with the last decision marked (not
in text): `render()` in the render modes ansi and rgb_array (800 pixels wide), and for svg what a
notebook shows. The frames of a window are positions of random games, every fifth decision; the
decisions themselves are not counted. Each figure is the median of `--repeats` windows of
`--frames`, in CPU time, as one thread draws. The modes take turns. Compare only figures of one
machine.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.machine import line
from benchmarks.results import Row, digits, markdown, measuring_parser, report
from carolus_env import carolus_magnus_v0

MODES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "ansi": ("text: `render()`", lambda env: env.render()),
    "svg": ("SVG, as a notebook shows it", lambda env: env._repr_svg_()),
    "rgb_array": ("pixels, 800 across: `render()`", lambda env: env.render()),
}
"""The format of each mode, and how it draws a frame."""

STEPS = 5  # decisions from one frame to the next


def positions(mode: str, players: int) -> Iterator[Any]:
    """Yield an environment in one position after another of random games."""
    render_mode = mode if mode in ("ansi", "rgb_array") else None
    env = carolus_magnus_v0.env(players=players, render_mode=render_mode)
    random, seed = np.random.default_rng(1), 0
    while True:
        seed += 1
        env.reset(seed=seed)
        while not (any(env.terminations.values()) or any(env.truncations.values())):
            yield env
            for _ in range(STEPS):
                mask = env.last()[0]["action_mask"]
                if mask.any():
                    env.step(int(random.choice(np.flatnonzero(mask))))


def window(mode: str, at: Iterator[Any], frames: int) -> float:
    """Measure mean milliseconds a frame."""
    draw, seconds = MODES[mode][1], 0.0
    for _ in range(frames):
        env = next(at)
        started = time.thread_time()
        draw(env)
        seconds += time.thread_time() - started
    return 1000 * seconds / frames


def measure(players: int, frames: int, repeats: int) -> list[Row]:
    """Measure the rows for one number of players."""
    at = {mode: positions(mode, players) for mode in MODES}
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    for mode in MODES:
        window(mode, at[mode], 3)  # warm-up: imports, fonts
    for _ in range(repeats):
        for mode in MODES:
            times[mode].append(window(mode, at[mode], frames))
    return [
        {
            "mode": mode,
            "players": players,
            "ms": round(statistics.median(result), 3),
            "repeats": repeats,
            "min": round(min(result), 3),
            "max": round(max(result), 3),
        }
        for mode, result in times.items()
    ]


def table(rows: list[Row]) -> str:
    """Return the milliseconds per frame by number of players."""
    result = {(row["mode"], row["players"]): digits(row["ms"], "ms") for row in rows}
    lines = [
        [f"`{mode}`", made, *(result[mode, players] for players in (2, 3, 4))]
        for mode, (made, _) in MODES.items()
    ]
    return markdown(["mode", "what is made", "2 players", "3", "4"], lines, rows)


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and save the rows if asked."""
    options = measuring_parser(__doc__, frames=20, repeats=7).parse_args(argv)
    machine = line("resvg", "pillow")
    rows = [
        {**row, "machine": machine}
        for players in (2, 3, 4)
        for row in measure(players, options.frames, options.repeats)
    ]
    report(table(rows), rows, "rendering", options.save)
    return 0


if __name__ == "__main__":
    sys.exit(main())
