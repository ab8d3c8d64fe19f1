"""Milliseconds a frame: text, SVG and pixels of a game.

    python benchmarks/rendering.py
    python benchmarks/rendering.py --modes ansi svg --players 2 --json rendering.json

A frame is the picture of a PettingZoo environment in mid-game, with the last decision marked (not
in text): `render()` in the render modes ansi and rgb_array (800 pixels wide), and for svg what a
notebook shows. The frames of a window are positions of random games, every fifth decision; the
decisions themselves are not counted. What of a frame was drawn before is not drawn again, so a
window goes on where the one before ended. Each figure is the median of `--repeats` windows of
`--frames`, in CPU time, as one thread draws. The modes take turns. Compare only figures of one
machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import machine
import numpy as np

from carolus_env import carolus_magnus_v0
from carolus_env.system.files import write_json

MODES: dict[str, Callable[[Any], Any]] = {
    "ansi": lambda env: env.render(),
    "svg": lambda env: env._repr_svg_(),
    "rgb_array": lambda env: env.render(),
}
"""How each mode draws a frame."""

STEPS = 5  # decisions from one frame to the next


def positions(mode: str, players: int) -> Iterator[Any]:
    """An environment in one position after another of random games."""
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
    """Mean milliseconds a frame."""
    draw, seconds = MODES[mode], 0.0
    for _ in range(frames):
        env = next(at)
        started = time.thread_time()
        draw(env)
        seconds += time.thread_time() - started
    return 1000 * seconds / frames


def measure(modes: list[str], players: int, frames: int, repeats: int) -> list[dict[str, Any]]:
    """The rows for one number of players."""
    at = {mode: positions(mode, players) for mode in modes}
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    for mode in modes:
        window(mode, at[mode], 3)  # warm-up: imports, fonts
    for _ in range(repeats):
        for mode in modes:
            times[mode].append(window(mode, at[mode], frames))
    return [
        {
            "mode": mode,
            "players": players,
            "ms": round(statistics.median(found), 3),
            "repeats": repeats,
            "min": round(min(found), 3),
            "max": round(max(found), 3),
        }
        for mode, found in times.items()
    ]


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--players", nargs="+", type=int, choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    here = machine.line("resvg", "pillow")
    print(here)
    print(f"{'mode':12}{'players':>8}{'ms a frame':>12}{'min':>10}{'max':>10}")
    rows = []
    for players in options.players:
        for row in measure(options.modes, players, options.frames, options.repeats):
            rows.append({**row, "machine": here})
            print(
                f"{row['mode']:12}{players:8}{row['ms']:12.3f}{row['min']:10.3f}{row['max']:10.3f}",
                flush=True,
            )
    if options.json:
        write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
