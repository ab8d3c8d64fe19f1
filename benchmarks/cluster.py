"""What a cluster costs: Ray on this machine against worker processes and threads.

    python -m benchmarks.cluster --json benchmarks/results/cluster.json
    python -m benchmarks.cluster --seconds 300 --pairs 1

A tournament is played by the same number of worker processes and of Ray's tasks, in turn; start-up
is told apart. Then come what the driver, the process that asks for blocks and writes their games,
spends on a task and on a game; and both learners, by threads, by processes and by Ray.
docs/scale.py makes the tables of docs/cluster.md from it, and the model of larger clusters.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import pickle
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks import machine
from carolus_env import arena
from carolus_env.arena import pool
from carolus_env.arena.seating import ALONE
from carolus_env.engine.rules import Rules
from carolus_env.learners.turns import crew as turns
from carolus_env.learners.turns.config import TurnConfig
from carolus_env.learners.value import crew as values
from carolus_env.learners.value.config import ValueConfig
from carolus_env.system.cluster import Cluster
from carolus_env.system.files import write_json
from carolus_env.system.machine import cores
from carolus_env.system.processes import Here, Processes, Workers

AGENTS: Final = ("planner", "greedy")
NOTHING: Final = partial(partial, operator.index)
"""A job whose tasks cost nothing; of no module of ours, which is not on other machines."""


def kinds(count: int) -> dict[str, Callable[[], Workers]]:
    """What makes worker processes, and tasks of Ray."""
    return {"processes": lambda: Processes(count), "ray": Cluster}


class Pace(pool.Pace):
    """Sums up how long blocks took where they were played."""

    seconds = 0.0

    def note(self, block: pool.Block) -> None:
        Pace.seconds += block.seconds
        super().note(block)


def tournament(workers: Workers, games: int, seed: int) -> dict[str, float]:
    """Play: start-up, and after the first block games a second, the driver's CPU seconds a game,
    and the share of time in which workers played: what else runs changes it least."""
    pool.Pace = Pace  # type: ignore[misc]
    cup = arena.Tournament(arena.Plan(Rules(2), AGENTS, deals=games // 2, seed=seed))
    told: list[tuple[float, float, int, float]] = []

    def listen(done: int) -> None:
        told.append((time.perf_counter(), time.process_time(), done, Pace.seconds))

    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        cup.run(workers=workers, file=Path(folder, "games.jsonl"), progress=listen)
    (since, cpu, first, played), (until, cpu_end, last, played_end) = told[0], told[-1]
    return {
        "start": since - begun,
        "games_per_s": (last - first) / (until - since),
        "driver_per_game": (cpu_end - cpu) / (last - first),
        "busy": (played_end - played) / (until - since) / min(workers.count, cores()),
        "blocks": len(told),
        "seconds": until - since,
    }


def overhead(count: int, seconds: float, pairs: int) -> dict[str, Any]:
    """The same tournament by processes and by Ray, in turn."""
    found: dict[str, list[dict[str, float]]] = {"processes": [], "ray": []}
    with Processes(count) as workers:  # how many games take so long?
        games = max(2000, 2 * int(tournament(workers, 4000, 1)["games_per_s"] * seconds / 2))
    connecting: list[float] = []
    for pair in range(pairs):
        for name, make in list(kinds(count).items())[:: 1 if pair % 2 == 0 else -1]:
            begun = time.perf_counter()
            with make() as workers:
                if name == "ray":
                    connecting.append(time.perf_counter() - begun)
                found[name].append(tournament(workers, games, 100 + pair))
            print(
                name, {key: round(value, 6) for key, value in found[name][-1].items()}, flush=True
            )
    ratios = [
        ray["busy"] / processes["busy"]
        for ray, processes in zip(found["ray"], found["processes"], strict=True)
    ]
    return {
        "agents": AGENTS,
        "games": games,
        "workers": count,
        "pairs": found,
        "ratio": statistics.median(ratios),
        "connecting": statistics.median(connecting),
    }


def tasks(count: int, number: int = 3000) -> dict[str, dict[str, float]]:
    """Tasks that do nothing: how many a second, and the driver's CPU seconds for one."""
    found = {}
    for name, make in kinds(count).items():
        with make() as workers:
            workers.begin(NOTHING)
            workers.all((n,) for n in range(50))
            wall, cpu = time.perf_counter(), time.process_time()
            workers.all((n,) for n in range(number))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found[name] = {"tasks_per_s": number / wall, "driver_per_task": cpu / number}
        print("tasks", name, found[name], flush=True)
    return found


def bytes_per_game() -> float:
    """Bytes of a block as a worker sends it, for each game."""
    plan = arena.Plan(Rules(2), ("random",), ALONE, deals=876, seed=1)
    block = pool.Task(plan, ("random",), None, ()).runner().play(0, 876, False, None)
    return len(pickle.dumps(block)) / len(block.results)


def rounds(crew: Any, number: int, kind: str) -> None:
    """Some rounds of learning."""
    for k in range(number):
        if kind == "ppo":
            crew.play()
            crew.learn(0.001, 0.003)
        else:
            games = crew._config.workers * crew._config.games_per_round
            crew.learn(k * games, games, 0.03)


def training(count: int, number: dict[str, int]) -> list[dict[str, Any]]:
    """Both learners by threads, processes and Ray: decisions or games a second, and waiting."""
    found = []
    for kind, config, module in (
        ("ppo", TurnConfig(workers=count), turns),
        ("value", ValueConfig(workers=count), values),
    ):
        for where in ("one thread", "threads", "processes", "ray"):
            made = config if where != "one thread" else type(config)(workers=1)
            crew = module.Crew(made)
            crew.warm_up()
            with kinds(count).get(where, Here)() as workers:
                if where in kinds(count):
                    workers.begin(module.Actor(made))
                    crew.actors = workers
                rounds(crew, 1, kind)  # actors begin
                crew.waited, spent = 0.0, crew.cpu_seconds + 0
                begun = time.perf_counter()
                rounds(crew, number[kind], kind)
                wall = time.perf_counter() - begun
            done = (
                made.games * made.rollout if kind == "ppo" else made.workers * made.games_per_round
            )
            row = {
                "learner": kind,
                "where": where,
                "unit": made.unit,
                "per_s": number[kind] * done / wall,
                "waiting": crew.waited / wall,
                "seconds": wall,
                "cpu": (crew.cpu_seconds - spent).tolist() if kind == "ppo" else 0,
                "done": number[kind] * done,
                "bytes": traffic(crew, kind),
            }
            found.append(row)
            print(row, flush=True)
    return found


def traffic(crew: Any, kind: str) -> int:
    """Bytes that travel in a round, to and from one actor."""
    if kind == "value":
        both = (*crew.weights, *crew.squares)
        return 2 * sum(array.nbytes for array in both)
    worker = crew._workers[0]
    arrays = (*worker.memory, *crew.weights.values(), worker.states, worker.states)
    return sum(array.nbytes for array in arrays)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=cores(), help="default: one a core")
    parser.add_argument("--seconds", type=float, default=60, help="of a tournament (default 60)")
    parser.add_argument("--pairs", type=int, default=3, help="tournaments of each (default 3)")
    parser.add_argument("--json", type=Path, help="where results are written")
    parser.add_argument("--only", nargs="+", metavar="PART", help="measure these; others stay")
    options = parser.parse_args(arguments)
    parts: dict[str, Callable[[], Any]] = {
        "overhead": lambda: overhead(options.workers, options.seconds, options.pairs),
        "tasks": lambda: tasks(options.workers),
        "bytes_per_game": bytes_per_game,
        "training": lambda: training(options.workers, {"ppo": 8, "value": 40}),
    }
    if unknown := set(options.only or ()) - set(parts):
        parser.error(f"--only: known are {', '.join(parts)}, got {sorted(unknown)[0]}")
    found: dict[str, Any] = {}
    if options.json and options.json.exists():
        found = json.loads(options.json.read_text())
    for name, measure in parts.items():
        if name in (options.only or parts):
            load = os.getloadavg()[0]
            found |= {name: measure(), f"{name} load": load, "machine": machine.line("ray")}
            if options.json:
                write_json(options.json, found)
    if not options.json:
        print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
