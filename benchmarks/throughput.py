"""Decisions a second of the engine and the environments, in random legal play.

    python -m benchmarks.throughput
    python -m benchmarks.throughput --modes rollout_mask step_u8 --players 2 --save

Ended games restart; choosing the actions is always included. `MODES` says what a mode does. Each
figure is the median of `--repeats` windows of `--seconds` each. Compare only figures of one
machine.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import carolus_env as ce
from benchmarks.machine import line
from benchmarks.results import Row, markdown, measuring_parser, report, short
from carolus_env import carolus_magnus_v0
from carolus_env.engine.rules import OVER

Window = Callable[[float], tuple[int, int, float]]
"""Plays for about the given seconds; returns decisions, games and seconds."""

BATCH = 4096
"""Games of a batch at which modes are compared."""
_PORTION = 65_536  # decisions between two checks of the clock


def repeating(portion: Callable[[], tuple[int, int]]) -> Window:
    """Return a window that repeats ``portion``, which returns its decisions and games."""

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
        observation, _, termination, truncation, _ = env.last()
        if termination or truncation:
            env.step(None)
            continue
        legal = observation["action_mask"].nonzero()[0]
        env.step(int(legal[int(draw() * len(legal))]))
        decisions += 1
    return decisions


def aec_loop(env: Any) -> Window:
    """Return a window that plays one `aec_game` after another."""
    seeds, draw = iter(range(1 << 60)), random.Random(1).random
    return repeating(lambda: (aec_game(env, next(seeds), draw), 1))


def aec(players: int, batch: int, threads: int, *, wrapped: bool) -> Window:
    return aec_loop(
        (carolus_magnus_v0.env if wrapped else carolus_magnus_v0.raw_env)(players=players)
    )


def gym_single(players: int, batch: int, threads: int) -> Window:
    import gymnasium

    env = gymnasium.make("CarolusMagnus-v0", players=players, opponents="random").unwrapped
    seeds, draw = iter(range(1 << 60)), random.Random(1).random

    def portion() -> tuple[int, int]:
        _, info = env.reset(seed=next(seeds))
        over, decisions = False, 0
        while not over:
            legal = info["action_mask"].nonzero()[0]
            _, _, terminated, truncated, info = env.step(int(legal[int(draw() * len(legal))]))
            over, decisions = terminated or truncated, decisions + 1
        return decisions, 1

    return repeating(portion)


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


class Mode(NamedTuple):
    """Variables of a mode (threads and batch, the batch, nothing), what it includes, its window."""

    varies: str
    about: str
    make: Callable[[int, int, int], Window]


MODES = {
    "playout": Mode("threads", "whole games at random in the kernel, no mask", playing_out),
    **{
        f"rollout_{name}": Mode("threads", about, partial(rolling_out, observation=dtype))
        for name, dtype, about in (
            ("mask", None, "random choice in the kernel, mask written at every decision"),
            ("u8", "uint8", "as `rollout_mask`, and the uint8 observation"),
            ("f32", "float32", "as `rollout_mask`, and the float32 observation"),
        )
    },
    **{
        f"step_{name}": Mode("threads", about, partial(stepping, observation=dtype))
        for name, dtype, about in (
            ("mask", None, "actions from outside, by the compiled sampler: mask, choice, step"),
            ("u8", "uint8", "as `step_mask`, and the uint8 observation"),
            ("f32", "float32", "as `step_mask`, and the float32 observation"),
        )
    },
    "gym_vector": Mode("batch", "Gymnasium: the learner's decisions, random opponents", gym_vector),
    "gym_turns": Mode(
        "batch", "Gymnasium, whole turns: the learner's steps, random opponents", gym_turns
    ),
    "sb3_vec_env": Mode(
        "batch", "Stable-Baselines3: the learner's decisions, random opponents", sb3_vec_env
    ),
    "single": Mode("nothing", "one game from Python: mask view, choice, step", single),
    "gym_single": Mode(
        "nothing", "Gymnasium, one game: the learner's decisions, random opponents", gym_single
    ),
    "aec_raw": Mode("nothing", "PettingZoo: `last()`, choice, `step`", partial(aec, wrapped=False)),
    "aec": Mode(
        "nothing",
        "as `aec_raw`, in PettingZoo's OrderEnforcingWrapper",
        partial(aec, wrapped=True),
    ),
}


def make_window(mode: str, players: int, batch: int = 1, threads: int = 1) -> Window:
    """Make a window of a mode, for `measure`."""
    return MODES[mode].make(players, batch, threads)


def measure(mode: str, players: int, batch: int, threads: int, seconds: float, repeats: int) -> Row:
    """Measure one row; the first window is a warm-up."""
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


def table(rows: list[Row]) -> str:
    """Return the decisions a second of each mode by number of players; one thread, usual batch."""
    result = {
        (row["mode"], row["players"]): row
        for row in rows
        if row["threads"] == 1 and row["batch"] in (1, BATCH)
        if row["batch"] == BATCH or MODES[row["mode"]].varies == "nothing"
    }
    lines = [
        [
            *(f"`{name}`", mode.about),
            *(
                short(result[name, players]["decisions_per_s"])
                if (name, players) in result
                else "-"
                for players in (2, 3, 4)
            ),
        ]
        for name, mode in MODES.items()
        if any(shown == name for shown, _ in result)
    ]
    head = ["mode", "what is included", "2 players", "3", "4"]
    return markdown(head, lines, result.values())


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and save the rows if asked."""
    parser = measuring_parser(__doc__, seconds=1.0, repeats=5)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--players", nargs="+", type=int, choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--batch", nargs="+", type=int, default=[BATCH])
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    options = parser.parse_args(argv)
    machine, rows = line(), []
    for mode in options.modes:
        varies = MODES[mode].varies
        for players in options.players:
            for batch in [1] if varies == "nothing" else options.batch:
                for threads in options.threads if varies == "threads" else [1]:
                    row = measure(mode, players, batch, threads, options.seconds, options.repeats)
                    rows.append({**row, "machine": machine})
                    print(
                        f"{mode:14} {players} players, batch {batch}, {threads} thread(s): "
                        f"{row['decisions_per_s']:,} decisions/s, "
                        f"{row['min']:,} to {row['max']:,}",
                        flush=True,
                    )
    report(table(rows), rows, "throughput", options.save, ("mode", "players", "batch", "threads"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
