"""Two checkouts of this repository in one run: is one slower?

    git worktree add ../before v0.1.0
    python -m benchmarks.paired ../before . --repeats 9

Machines are noisy, so both versions run in turn, window by window, and only the ratio within a pair
counts: A B, B A, A B ... Each version has a separate process and compiled code. Modes
are those of throughput.py (``mode`` or ``mode:batch``), ``mcts`` (simulations a second) and, each
in new processes, ``import`` and ``first_step`` (1 / seconds, with a warm cache). A ratio above 1
means that the second checkout is faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

MODES = ("rollout_mask:4096", "step_mask:1", "step_mask:4096", "single", "aec_raw", "mcts")
STARTS = ("import", "first_step")

_WORKER = """
import json, sys, time
sys.path[:0] = [{root!r}, {root!r} + "/benchmarks"]
import numpy as np
import carolus_env as ce
assert ce.__file__.startswith({root!r}), ce.__file__
import throughput

def mcts(players):
    bot = ce.make("mcts:sims=100")
    states, streams = ce.new_games(ce.Rules(players), 1, seed=1), ce.new_streams(1, 1)
    def window(seconds):
        count, started = bot.simulations, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            bot.consider(states, streams)
        return bot.simulations - count, 0, elapsed
    return window

windows = {{}}
for line in sys.stdin:
    mode, players, seconds = json.loads(line)
    key = mode, players
    if key not in windows:
        name, _, batch = mode.partition(":")
        windows[key] = mcts(players) if name == "mcts" else throughput.make_window(
            name, players, int(batch or 1))
        windows[key](0.2)
    count, _, elapsed = windows[key](seconds)
    print(json.dumps(count / elapsed), flush=True)
"""

_START = {
    "import": "import carolus_env",
    "first_step": "import carolus_env as ce; g = ce.Game(seed=1); g.play(g.legal_actions[0])",
}


class Checkout:
    """A process that measures windows with the code of one checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WORKER.format(root=str(root))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
        )

    def rate(self, mode: str, players: int, seconds: float) -> float:
        """Measure a window's decisions (or simulations) a second."""
        if mode in STARTS:
            return self._start_rate(mode)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([mode, players, seconds]) + "\n")
        self.process.stdin.flush()
        return float(json.loads(self.process.stdout.readline()))

    def _start_rate(self, mode: str) -> float:
        started = time.perf_counter()
        code = f"import sys; sys.path[0] = {str(self.root)!r}; {_START[mode]}"
        subprocess.run([sys.executable, "-c", code], cwd=self.root, check=True)
        return 1 / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--modes", nargs="+", default=[*MODES, *STARTS])
    parser.add_argument("--players", nargs="+", type=int, default=[2, 3, 4])
    parser.add_argument("--repeats", type=int, default=9, help="pairs of each mode")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a window")
    options = parser.parse_args()
    pair = [Checkout(path.resolve()) for path in (options.first, options.second)]
    print(f"{'mode':20} {'players':>7} {'first':>12} {'second':>12}   second / first, middle half")
    for mode in options.modes:
        for players in options.players if mode not in STARTS else options.players[:1]:
            for checkout in pair:
                checkout.rate(mode, players, 0.2)
            rates: tuple[list[float], list[float]] = [], []
            for repeat in range(options.repeats):
                for k in (0, 1) if repeat % 2 == 0 else (1, 0):
                    rates[k].append(pair[k].rate(mode, players, options.seconds))
            ratios = sorted(b / a for a, b in zip(*rates, strict=True))
            low, middle, high = statistics.quantiles(ratios, n=4)
            first, second = map(statistics.median, rates)
            print(
                f"{mode:20} {players:7} {first:12,.4g} {second:12,.4g}   "
                f"{middle:.3f} [{low:.3f}, {high:.3f}]",
                flush=True,
            )


if __name__ == "__main__":
    main()
