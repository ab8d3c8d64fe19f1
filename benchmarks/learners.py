"""What the compiled learners do in a second, where the time goes, and what of the cores they use.

    python benchmarks/learners.py
    python benchmarks/learners.py --players 3 --repeats 5 --json benchmarks/results/learners.json

Each learner begins with the shipped network, so that games are as long as good play makes them, and
learns with the options of ``train.py``: with one worker and with two, in turns. For PPO the time is
that of rollouts, gradients and steps, and within rollouts that of listing candidates, of seeing
them (the position after each, as rows and numbers) and of the network; the rest plays and keeps.

Multiply-adds are counted from the decisions of a rollout, as the kernels do them: the first layer
by differences between candidates. They are compared with those of a product of large float32
matrices by NumPy's BLAS on the same cores.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import line

from carolus_env.bots.planner.plans import play_plan
from carolus_env.bots.turns.inference import judge_all, list_candidates
from carolus_env.bots.value.inputs import write_seen
from carolus_env.bots.value.network import LINEAR
from carolus_env.engine.rules import OVER
from carolus_env.learners.turns import crew as turns
from carolus_env.learners.turns.config import TurnConfig
from carolus_env.learners.turns.rollouts import Memory
from carolus_env.learners.value.config import ValueConfig
from carolus_env.learners.value.crew import Crew as ValueCrew
from carolus_env.system.compiler import entry
from carolus_env.system.files import check_writable, write_json

Row = dict[str, Any]


@entry
def list_each(states, judge):
    """List the candidates of every game."""
    for g in range(states.shape[0]):
        list_candidates(states[g], judge)


@entry
def see_each(states, judge):
    """The same, and what the network sees of each candidate."""
    after = judge.after[0]
    for g in range(states.shape[0]):
        for k in range(list_candidates(states[g], judge)):
            judge.after[0] = states[g]
            play_plan(after, judge.lister.choices[k])
            if after["phase"] != OVER:
                write_seen(after, judge.net.layout, judge.net.seen)


@entry
def judge_each(states, judge):
    """The same, and what the network says of it."""
    for g in range(states.shape[0]):
        judge_all(states[g], judge)


def multiply_adds(memory: Memory, width: int, hidden: int, teams: int) -> tuple[float, float]:
    """Multiply-adds a decision: of a rollout's network, and of the gradients."""
    wide, out = width - LINEAR, hidden + LINEAR
    sums = layers = chosen = 0
    for d in range(len(memory.counts)):
        rows, numbers = np.zeros(0, np.int16), np.zeros(memory.numbers.shape[2], np.float32)
        for k in range(memory.counts[d]):
            if memory.over[d, k] >= 0:
                continue
            new = memory.rows[d, k, : memory.lengths[d, k]]
            both = min(len(rows), len(new))
            changed = 2 * (rows[:both] != new[:both]).sum() + abs(len(rows) - len(new))
            sums += width * (int(changed) + int((numbers != memory.numbers[d, k]).sum()))
            layers += 1
            chosen += int(k == memory.chosen[d])
            rows, numbers = new, memory.numbers[d, k]
    forward = sums + layers * (wide * hidden + out * (teams + 1))
    back = sums + layers * (2 * wide * hidden + 2 * out) + chosen * 2 * out * teams
    decisions = len(memory.counts)
    return forward / decisions, (forward + back) / decisions


def peak(seconds: float = 1.0) -> float:
    """Multiply-adds a second of NumPy's BLAS, in float32."""
    a = np.random.default_rng(1).random((1024, 1024), np.float32)
    a @ a
    count, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        a @ a
        count += 1
    return count * 1024**3 / elapsed


def parts(worker: turns.Worker, repeats: int = 40) -> Row:
    """Microseconds for a game's decision: listing, seeing, and the network, each less the last."""
    times, states = [], worker.states
    for kernel in (list_each, see_each, judge_each):
        kernel(states, worker.judge)
        started = time.thread_time()
        for _ in range(repeats):
            kernel(states, worker.judge)
        times.append(1e6 * (time.thread_time() - started) / repeats / len(states))
    return {"listing": times[0], "seeing": times[1] - times[0], "network": times[2] - times[1]}


def ppo(players: int, workers: int, seconds: float) -> Row:
    """PPO's figures."""
    config = TurnConfig(players=players, workers=workers, start=f"{players}p")
    crew = turns.Crew(config)
    crew.warm_up()
    crew.play()
    crew.learn(1e-6, config.entropy)
    crew.cpu_seconds[:] = 0
    updates, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        crew.play()
        crew.learn(1e-6, config.entropy)  # the network stays as good as it is
        updates += 1
    decisions = updates * config.games * config.rollout
    worker = crew._workers[0]
    teams = worker.layers.chances.shape[1]
    forward, gradients = multiply_adds(worker.memory, config.width, config.hidden, teams)
    rollouts, learning, steps = 1e6 * crew.cpu_seconds / decisions
    return {
        "per_s": decisions / elapsed,
        "us": {"rollouts": rollouts, "gradients": learning, "steps": steps},
        "within_us": parts(worker),
        "candidates": float(worker.memory.counts.mean()),
        "multiply_adds": {"rollouts": forward, "gradients": gradients},
    }


def value(players: int, workers: int, seconds: float) -> Row:
    """The value learner's figures."""
    config = ValueConfig(players=players, workers=workers, start=f"{players}p", rate=1e-6)
    crew = ValueCrew(config)
    crew.warm_up()
    games, started, before = 0, time.perf_counter(), crew.cpu_seconds
    while (elapsed := time.perf_counter() - started) < seconds:
        crew.learn(games, workers * config.games_per_round, config.rate)
        games += workers * config.games_per_round
    spent = 1e6 * (crew.cpu_seconds - before) / games
    return {"per_s": games / elapsed, "us": {"a game": spent}}


def middle(rows: list[Row]) -> Row:
    """The medians of figures, entry by entry."""
    found: Row = {}
    for key, one in rows[0].items():
        if isinstance(one, dict):
            found[key] = middle([row[key] for row in rows])
        else:
            found[key] = float(statistics.median(row[key] for row in rows))
    return found


def told(row: Row) -> str:
    """A row in words."""
    unit = "decisions" if row["learner"] == "ppo" else "games"
    text = (
        f"{row['learner']}, {row['players']} players, {row['workers']} worker(s): "
        f"{row['per_s']:,.0f} {unit} learnt from a second; CPU microseconds each: "
    ) + ", ".join(f"{name} {us:,.1f}" for name, us in row["us"].items())
    if row["learner"] == "ppo":
        within = ", ".join(f"{name} {us:.1f}" for name, us in row["within_us"].items())
        share = row["per_s"] * sum(row["multiply_adds"].values()) / row["peak"]
        text += (
            f"; within rollouts {within}; {row['candidates']:.1f} candidates; "
            f"{row['per_s'] * sum(row['multiply_adds'].values()) / 1e9:.1f} G multiply-adds a "
            f"second, {share:.0%} of BLAS's {row['peak'] / 1e9:.0f} G"
        )
    return text


def main() -> int:
    """Measure in turns, print the medians, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=5.0, help="of a window, %(default)s")
    parser.add_argument("--repeats", type=int, default=5, help="windows of each, %(default)s")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.json:
        check_writable(options.json)
    rows = []
    for players in options.players:
        cases = [(learner, n) for learner in (ppo, value) for n in options.workers]
        windows: dict[Any, list[Row]] = {case: [] for case in cases}
        peaks = []
        for _ in range(options.repeats):
            for learner, workers in cases:
                windows[learner, workers].append(learner(players, workers, options.seconds))
            peaks.append(peak())
            cases.reverse()  # a slow spell hits all alike
        machine = {"peak": statistics.median(peaks), "machine": line()}
        for (learner, workers), found in windows.items():
            about = {"learner": learner.__name__, "players": players, "workers": workers}
            rows.append({**about, **middle(found), **machine})
            print(told(rows[-1]), flush=True)
    if options.json:
        write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
