"""Decisions a second of the engine and the environments, in random legal play.

    python benchmarks/throughput.py
    python benchmarks/throughput.py --modes step_u8 aec --players 2 3 4 --json throughput.json

Every mode plays on and starts ended games anew; the choice of the actions is included. ``step_*``:
one call each for mask, random choice and step (and observation), from Python, for a whole batch.
Each figure is the median of `--repeats` windows of `--seconds`; figures of different machines do
not compare.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import carolus_env as ce
from carolus_env import carolus_magnus_v0, engine, observation

Window = Callable[[float], tuple[int, int, float]]
"""Plays for about so many seconds; returns decisions, games and seconds."""


def stepping(players: int, batch: int, dtype: str | None) -> Window:
    """The batched engine, called from Python; ``dtype`` of the observation, None: none."""
    games = ce.new_games(ce.Rules(players), batch, seed=1)
    streams = ce.new_streams(1, batch)
    masks = np.empty((batch, ce.ACTIONS), np.int8)
    seen = np.empty((batch, observation.length(players)), dtype or np.uint8)

    def window(seconds: float) -> tuple[int, int, float]:
        decisions = ended = 0
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            ce.legal_masks(games, out=masks)
            if dtype:
                ce.observe(games, dtype=seen.dtype, out=seen)
            ce.step(games, ce.random_actions(games, streams))
            over = np.flatnonzero(ce.is_over(games))
            if len(over):
                games[over] = engine.next_games(games[over])
                ended += len(over)
            decisions += batch
        return decisions, ended, elapsed

    return window


def aec(players: int, wrapped: bool) -> Window:
    """PettingZoo: ``last()``, a masked random choice, ``step``; one game at a time."""
    make = carolus_magnus_v0.env if wrapped else carolus_magnus_v0.raw_env
    env = make(players=players)
    random = np.random.default_rng(1)

    def window(seconds: float) -> tuple[int, int, float]:
        decisions = ended = 0
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            env.reset(seed=ended)
            for _ in env.agent_iter():
                seen, _, termination, truncation, _ = env.last()
                if termination or truncation:
                    env.step(None)
                    continue
                legal = seen["action_mask"].nonzero()[0]
                env.step(int(legal[int(random.random() * len(legal))]))
                decisions += 1
            ended += 1
        return decisions, ended, elapsed

    return window


def vec_env(players: int, batch: int) -> Window:
    """The Stable-Baselines3 VecEnv against random opponents: the learners' decisions alone."""
    from carolus_env.envs.sb3 import CarolusVecEnv

    env = CarolusVecEnv(ce.Rules(players), batch, "random", seed=1)
    env.reset()
    streams = ce.new_streams(1, batch)

    def window(seconds: float) -> tuple[int, int, float]:
        decisions = ended = 0
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            _, _, dones, _ = env.step(ce.random_actions(env.games.states, streams))
            env.env_method("action_masks")
            decisions += batch
            ended += int(dones.sum())
        return decisions, ended, elapsed

    return window


MODES: dict[str, tuple[bool, Callable[[int, int], Window]]] = {
    "step_mask": (True, lambda players, batch: stepping(players, batch, None)),
    "step_u8": (True, lambda players, batch: stepping(players, batch, "uint8")),
    "step_f32": (True, lambda players, batch: stepping(players, batch, "float32")),
    "sb3_vec_env": (True, vec_env),
    "aec_raw": (False, lambda players, batch: aec(players, wrapped=False)),
    "aec": (False, lambda players, batch: aec(players, wrapped=True)),
}
"""Whether a mode has a batch, and how to make its window."""


def measure(mode: str, players: int, batch: int, seconds: float, repeats: int) -> dict[str, object]:
    """One row of the table; the first window only warms up."""
    window = MODES[mode][1](players, batch)
    window(min(seconds, 0.3))
    windows = [window(seconds) for _ in range(repeats)]
    rates = [decisions / elapsed for decisions, _, elapsed in windows]
    return {
        "mode": mode,
        "players": players,
        "batch": batch,
        "threads": 1,
        "decisions_per_s": round(statistics.median(rates)),
        "games_per_s": round(statistics.median(g / elapsed for _, g, elapsed in windows)),
        "repeats": repeats,
        "min": round(min(rates)),
        "max": round(max(rates)),
    }


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--players", nargs="+", type=int, choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--batch", nargs="+", type=int, default=[4096])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    rows = []
    print(f"{'mode':14}{'players':>8}{'batch':>8}{'decisions/s':>16}{'min':>14}{'max':>14}")
    for mode in options.modes:
        for players in options.players:
            for batch in options.batch if MODES[mode][0] else [1]:
                row = measure(mode, players, batch, options.seconds, options.repeats)
                rows.append(row)
                print(
                    f"{mode:14}{players:8}{batch:8}{row['decisions_per_s']:16,}"
                    f"{row['min']:14,}{row['max']:14,}",
                    flush=True,
                )
    if options.json:
        from carolus_env.files import write_json

        write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
