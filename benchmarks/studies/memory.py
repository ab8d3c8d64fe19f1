"""Memory of games, batches and environments in bytes a game: predicted and measured.

    python -m benchmarks.studies.memory
    python -m benchmarks.studies.memory --what games games_mask --batch 1000000 --json memory.json

The measured figure is the growth of a fresh process's resident memory when it makes the object and
holds on to it. One for a single game is made first, so that all code is loaded. The growth comes in
whole pages, includes freed memory that the process does not give back, and misses what fits into
memory that was free already; so it is less exact for few games. The predicted figure counts the
arrays alone. Environments are reset and play one step, and their spaces count. `aec` is one
environment for each game. Needs Linux; `sb3_vec_env` needs the extra ``train``.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import carolus_env as ce
from benchmarks.machine import line
from carolus_env import carolus_magnus_v0
from carolus_env.engine import observation
from carolus_env.system.files import write_json

STATE_LIMIT = 256
"""Bytes that the state of a game may take."""


class Thing(NamedTuple):
    """Something to measure.

    Attributes:
        make: ``make(players, n)`` makes it for ``n`` games.
        arrays: ``arrays(players)``: predicted bytes a game; None if it holds more than arrays.
        batched: whether it is made for every `--batch`; else for `--envs` games.
    """

    make: Callable[[int, int], Any]
    arrays: Callable[[int], int] | None
    batched: bool


def games(players: int, n: int) -> Any:
    """New games."""
    return ce.new_games(ce.Rules(players), n, seed=1)


def games_masks(players: int, n: int) -> Any:
    """New games and their masks."""
    states = games(players, n)
    return states, ce.legal_masks(states)


def games_masks_uint8(players: int, n: int) -> Any:
    """New games, their masks and observations of one byte an entry."""
    states, masks = games_masks(players, n)
    return states, masks, ce.observe(states, dtype=np.uint8)


def games_masks_float32(players: int, n: int) -> Any:
    """New games, their masks and observations of four bytes an entry."""
    states, masks = games_masks(players, n)
    return states, masks, ce.observe(states, dtype=np.float32)


def gym_vector(players: int, n: int) -> Any:
    """One Gymnasium vector environment of ``n`` games."""
    env = gymnasium.make_vec(
        "CarolusMagnus-v0", n, vectorization_mode="vector_entry_point", players=players
    )
    _, info = env.reset(seed=1)
    return env, env.step(info["action_mask"].argmax(axis=1))


def sb3_vec_env(players: int, n: int) -> Any:
    """One Stable-Baselines3 VecEnv of ``n`` games."""
    from carolus_env.envs.sb3 import CarolusVecEnv

    env = CarolusVecEnv(ce.Rules(players), n, seed=1)
    env.reset()
    return env, env.step(env.action_masks().argmax(axis=1))


def aec(players: int, n: int) -> Any:
    """``n`` PettingZoo environments of one game each."""
    envs = [carolus_magnus_v0.env(players=players) for _ in range(n)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
        seen, *_ = env.last()
        env.step(int(seen["action_mask"].argmax()))
    return envs


_STATE = ce.STATE.itemsize
THINGS = {
    "games": Thing(games, lambda players: _STATE, True),
    "games_mask": Thing(games_masks, lambda players: _STATE + ce.ACTIONS, True),
    "games_mask_u8": Thing(
        games_masks_uint8,
        lambda players: _STATE + ce.ACTIONS + observation.length(players),
        True,
    ),
    "games_mask_f32": Thing(
        games_masks_float32,
        lambda players: _STATE + ce.ACTIONS + 4 * observation.length(players),
        True,
    ),
    "gym_vector": Thing(gym_vector, None, False),
    "sb3_vec_env": Thing(sb3_vec_env, None, False),
    "aec": Thing(aec, None, False),
}
"""What can be measured, by name."""


def resident() -> int:
    """Resident bytes of this process. Exact, where statm lags by some hundred kB."""
    for entry in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if entry.startswith("Rss:"):
            return 1024 * int(entry.split()[1])
    raise RuntimeError("/proc/self/smaps_rollup has no Rss")


def growth(what: str, players: int, n: int) -> int:
    """Bytes that this process grows by when it makes an object and holds on to it."""
    make = THINGS[what].make
    make(players, 1)  # loads all code
    gc.collect()
    before = resident()
    kept = make(players, n)
    gc.collect()
    after = resident()
    del kept  # kept alive until here
    return after - before


def measure(what: str, players: int, n: int, repeats: int) -> dict[str, Any]:
    """One row; each repeat in a separate process."""
    arrays = THINGS[what].arrays
    grown = []
    for _ in range(repeats):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
            grown.append(fresh.submit(growth, what, players, n).result() / n)
    return {
        "what": what,
        "players": players,
        "games": n,
        "predicted": arrays(players) if arrays else None,
        "bytes_per_game": round(statistics.median(grown)),
        "repeats": repeats,
        "min": round(min(grown)),
        "max": round(max(grown)),
    }


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and write the JSON; 1 if the state of a game is too large."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--what", nargs="+", choices=THINGS, default=list(THINGS))
    parser.add_argument("--players", nargs="+", type=int, choices=(2, 3, 4), default=[2])
    parser.add_argument("--batch", nargs="+", type=int, default=[4096, 65_536, 1_000_000])
    parser.add_argument("--envs", type=int, default=1024, help="games of the environments")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    if not Path("/proc/self/smaps_rollup").exists():
        parser.error("needs Linux: resident memory is read from /proc/self/smaps_rollup")
    machine = line()
    print(machine)
    print(f"the state of a game: {_STATE} bytes (at most {STATE_LIMIT})")
    print(f"{'what':16}{'players':>8}{'games':>10}{'predicted':>11}{'measured':>10}  bytes a game")
    rows = []
    for what in options.what:
        for players in options.players:
            for n in options.batch if THINGS[what].batched else [options.envs]:
                row = measure(what, players, n, options.repeats)
                rows.append({**row, "record": _STATE, "machine": machine})
                predicted = "" if row["predicted"] is None else f"{row['predicted']:,}"
                print(
                    f"{what:16}{players:8}{n:10,}{predicted:>11}{row['bytes_per_game']:10,}"
                    f"  ({row['min']:,} to {row['max']:,})",
                    flush=True,
                )
    if options.json:
        write_json(options.json, rows)
    return int(_STATE > STATE_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
