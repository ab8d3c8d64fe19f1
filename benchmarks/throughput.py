"""Decisions a second of the engine and the environments, in random legal play.

    python benchmarks/throughput.py
    python benchmarks/throughput.py --modes rollout_mask step_u8 --players 2 --json throughput.json

Ended games restart; choosing the actions is always included. Modes:

    playout        whole games at random, no masks: `carolus_env.engine.playout`
    rollout_*      `GameBatch.rollout`: random choice in the kernel; at every decision the mask
                   (rollout_mask) and also an observation (rollout_u8, rollout_f32) are written
    step_*         `GameBatch.step`, one call a step, with actions from outside: `sample`'s
    single         one game from Python: legal mask as a view, random choice, `Game.play`
    aec_raw, aec   PettingZoo's `last()`, masked random choice, `step`; raw, and in its wrapper
    aec_empty_raw, aec_empty   the same loop on an environment that does nothing (empty_aec.py)
    gym_vector     Gymnasium vector environment: the learners' decisions, random opponents
    gym_turns      the same of whole turns: a decision is a disc, a crown or a turn
    sb3_vec_env    Stable-Baselines3 VecEnv: likewise, masks collected

Each figure is the median of `--repeats` windows of `--seconds` each. Compare only figures of one
machine.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import machine
import numpy as np

import carolus_env as ce
from carolus_env import carolus_magnus_v0
from carolus_env.engine.rules import OVER

Window = Callable[[float], tuple[int, int, float]]
"""Plays for about the given seconds; returns decisions, games and seconds."""

_PORTION = 65_536  # decisions between two checks of the clock


def repeating(portion: Callable[[], tuple[int, int]]) -> Window:
    """A window that repeats ``portion``, which returns its decisions and games."""

    def window(seconds: float) -> tuple[int, int, float]:
        decisions = games = 0
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            more = portion()
            decisions, games = decisions + more[0], games + more[1]
        return decisions, games, elapsed

    return window


def playing_out(players: int, batch: int, threads: int) -> Window:
    games, streams = ce.new_games(ce.Rules(players), batch, seed=1), ce.new_streams(1, batch)

    def portion() -> tuple[int, int]:
        return int(ce.playout(games, streams, threads=threads).decisions.sum()), batch

    return repeating(portion)


def rolling_out(players: int, batch: int, threads: int, *, observation: Any) -> Window:
    games = ce.GameBatch(ce.Rules(players), batch, seed=1, observation=observation, threads=threads)
    steps = max(1, _PORTION * threads // batch)

    def portion() -> tuple[int, int]:
        done = games.rollout(steps)
        return done.decisions, done.games

    return repeating(portion)


def stepping(players: int, batch: int, threads: int, *, observation: Any) -> Window:
    games = ce.GameBatch(ce.Rules(players), batch, seed=1, observation=observation, threads=threads)
    steps = max(1, min(256, _PORTION // batch))

    def portion() -> tuple[int, int]:
        ended = 0
        for _ in range(steps):
            turn = games.step(games.sample())
            ended += int(turn.terminated.sum()) + int(turn.truncated.sum())
        return steps * batch, ended

    return repeating(portion)


def single(players: int, batch: int, threads: int) -> Window:
    rules, seeds, draw = ce.Rules(players), iter(range(1 << 60)), random.Random(1).random

    def portion() -> tuple[int, int]:
        game, decisions = ce.Game(rules, seed=next(seeds)), 0
        while not game.over:
            legal = game.mask.nonzero()[0]
            game.play(legal[int(draw() * len(legal))])
            decisions += 1
        return decisions, 1

    return repeating(portion)


def aec_game(env: Any, seed: int, draw: Callable[[], float]) -> int:
    """Play one game of any PettingZoo environment with masks; returns the decisions."""
    env.reset(seed=seed)
    decisions = 0
    for _ in env.agent_iter():
        seen, _, termination, truncation, _ = env.last()
        if termination or truncation:
            env.step(None)
            continue
        legal = seen["action_mask"].nonzero()[0]
        env.step(int(legal[int(draw() * len(legal))]))
        decisions += 1
    return decisions


def aec_loop(env: Any) -> Window:
    """One `aec_game` after another."""
    seeds, draw = iter(range(1 << 60)), random.Random(1).random
    return repeating(lambda: (aec_game(env, next(seeds), draw), 1))


def aec(players: int, batch: int, threads: int, *, wrapped: bool) -> Window:
    return aec_loop(
        (carolus_magnus_v0.env if wrapped else carolus_magnus_v0.raw_env)(players=players)
    )


def aec_empty(players: int, batch: int, threads: int, *, wrapped: bool) -> Window:
    import empty_aec

    return aec_loop((empty_aec.env if wrapped else empty_aec.raw_env)(players))


def gym_vector(players: int, batch: int, threads: int) -> Window:
    import gymnasium

    envs = gymnasium.make_vec(
        "CarolusMagnus-v0", num_envs=batch, players=players, opponents="random"
    ).unwrapped
    envs.reset(seed=1)
    streams = ce.new_streams(1, batch)

    def portion() -> tuple[int, int]:
        # a game that is over waits for its restart and takes no decision in this step
        over = envs.games.states["phase"] == OVER
        _, _, terminated, truncated, _ = envs.step(ce.random_actions(envs.games.states, streams))
        return batch - int(over.sum()), int(terminated.sum() + truncated.sum())

    return repeating(portion)


def gym_turns(players: int, batch: int, threads: int) -> Window:
    import gymnasium

    envs = gymnasium.make_vec(
        "CarolusMagnusTurns-v0", num_envs=batch, players=players, opponents="random", copy=False
    ).unwrapped
    envs.reset(seed=1)
    draw = np.random.default_rng(1)

    def portion() -> tuple[int, int]:
        counts = envs.games.counts
        over = counts == 0
        chosen = (draw.random(batch) * counts).astype(np.int64)
        _, _, terminated, truncated, _ = envs.step(chosen)
        return batch - int(over.sum()), int(terminated.sum() + truncated.sum())

    return repeating(portion)


def sb3_vec_env(players: int, batch: int, threads: int) -> Window:
    from carolus_env.envs.sb3 import CarolusVecEnv

    env = CarolusVecEnv(ce.Rules(players), batch, "random", seed=1)
    env.reset()
    streams = ce.new_streams(1, batch)

    def portion() -> tuple[int, int]:
        _, _, dones, _ = env.step(ce.random_actions(env.games.states, streams))
        env.env_method("action_masks")
        return batch, int(dones.sum())

    return repeating(portion)


MODES: dict[str, tuple[str, Callable[[int, int, int], Window]]] = {
    "playout": ("threads", playing_out),
    "rollout_mask": ("threads", partial(rolling_out, observation=None)),
    "rollout_u8": ("threads", partial(rolling_out, observation="uint8")),
    "rollout_f32": ("threads", partial(rolling_out, observation="float32")),
    "step_mask": ("threads", partial(stepping, observation=None)),
    "step_u8": ("threads", partial(stepping, observation="uint8")),
    "step_f32": ("threads", partial(stepping, observation="float32")),
    "gym_vector": ("batch", gym_vector),
    "gym_turns": ("batch", gym_turns),
    "sb3_vec_env": ("batch", sb3_vec_env),
    "single": ("single", single),
    "aec_raw": ("single", partial(aec, wrapped=False)),
    "aec": ("single", partial(aec, wrapped=True)),
    "aec_empty_raw": ("single", partial(aec_empty, wrapped=False)),
    "aec_empty": ("single", partial(aec_empty, wrapped=True)),
}
"""What a mode can vary (threads and batch, the batch, nothing), and its window."""


def make_window(mode: str, players: int, batch: int = 1, threads: int = 1) -> Window:
    """A window of a mode; `measure` uses it."""
    return MODES[mode][1](players, batch, threads)


def measure(
    mode: str, players: int, batch: int, threads: int, seconds: float, repeats: int
) -> dict[str, object]:
    """One row of the table; the first window is a warm-up."""
    window = make_window(mode, players, batch, threads)
    window(min(seconds, 0.3))
    windows = [window(seconds) for _ in range(repeats)]
    rates = [decisions / elapsed for decisions, _, elapsed in windows]
    return {
        "mode": mode,
        "players": players,
        "batch": batch,
        "threads": threads,
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
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--add", action="store_true", help="keep the other rows of the JSON file")
    options = parser.parse_args(argv)
    here = machine.line()
    print(here)
    rows = []
    print(f"{'mode':14}{'players':>8}{'batch':>8}{'threads':>8}{'decisions/s':>16}", end="")
    print(f"{'min':>14}{'max':>14}{'games/s':>12}")
    for mode in options.modes:
        varies = MODES[mode][0]
        for players in options.players:
            for batch in [1] if varies == "single" else options.batch:
                for threads in options.threads if varies == "threads" else [1]:
                    row = measure(mode, players, batch, threads, options.seconds, options.repeats)
                    rows.append({**row, "machine": here})
                    print(
                        f"{mode:14}{players:8}{batch:8}{threads:8}{row['decisions_per_s']:16,}"
                        f"{row['min']:14,}{row['max']:14,}{row['games_per_s']:12,}",
                        flush=True,
                    )
    if options.json:
        write(options.json, rows, keep=options.add)
    return 0


def write(path: Path, rows: list[dict[str, object]], *, keep: bool) -> None:
    """Write the rows; with ``keep`` the file's other rows stay."""
    import json

    from carolus_env.system.files import write_json

    def case(row: dict[str, object]) -> tuple[object, ...]:
        return tuple(row[key] for key in ("mode", "players", "batch", "threads"))

    new = {case(row): row for row in rows}
    old = json.loads(path.read_text()) if keep and path.exists() else []
    write_json(path, list({**{case(row): row for row in old}, **new}.values()))


if __name__ == "__main__":
    sys.exit(main())
