"""What a choice of the training is worth: runs that differ in one option, three seeds each.

    python -m benchmarks.studies.ablations --json benchmarks/results/ablations.json
    python -m benchmarks.studies.ablations --learners value --seeds 1 --games 200

A run begins with random weights and has one worker. Its last network then plays paired games
against `planner`, on deals that no run has seen, the same for all. The first case of a learner is
the one that the others differ from: about a CPU-minute of learning with the options of
``train.py``, but those in `BASES`.

What is in the file is not run again, so an interrupted study continues.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import line
from carolus_env.arena import play_pairing
from carolus_env.learners.options import Learner
from carolus_env.system.files import check_writable, write_json

BASE: Final = "as it is"
BASES: Final[dict[Learner, dict[str, Any]]] = {
    "ppo": {"steps": 600_000},
    "value": {"games": 10_000},
    "single": {},
}
"""Each learner's budget, and what else is not as in ``train.py``."""
CASES: Final[dict[Learner, dict[str, dict[str, Any]]]] = {
    "ppo": {
        BASE: {},
        "GAE 0.8": {"gae_lambda": 0.8},
        "GAE 0.97": {"gae_lambda": 0.97},
        "entropy 0": {"entropy": 0.0},
        "entropy 0.01": {"entropy": 0.01},
        "5 candidates": {"candidates": 5},
        "8 candidates": {"candidates": 8},
        "32 candidates": {"candidates": 32},
        "width 16": {"width": 16},
        "width 32": {"width": 32},
        "width 128": {"width": 128},
        "width 256": {"width": 256},
        "a quarter of the decisions": {"steps": 150_000},
        "half the decisions": {"steps": 300_000},
        "twice the decisions": {"steps": 1_200_000},
        "four times the decisions": {"steps": 2_400_000},
    },
    "value": {
        BASE: {},
        "lambda 0": {"trace": 0.0},
        "lambda 0.8": {"trace": 0.8},
        "no exploration": {"exploration": 0.0},
        "4 candidates": {"candidates": 4},
        "8 candidates": {"candidates": 8},
        "32 candidates": {"candidates": 32},
        "width 16": {"width": 16},
        "width 32": {"width": 32},
        "width 128": {"width": 128},
        "width 256": {"width": 256},
        "a quarter of the games": {"games": 2_500},
        "half the games": {"games": 5_000},
        "twice the games": {"games": 20_000},
        "four times the games": {"games": 40_000},
    },
    "single": {
        BASE: {},
        "a fifth of the games against `planner`": {"bots": ("planner",)},
        "half of them": {"bots": ("planner",), "self_share": 0.5},
    },
}
"""What differs, by learner and case."""
LOOKS: Final[dict[Learner, tuple[str, ...]]] = {
    "ppo": ("discs=now", "discs=turn"),
    "value": ("discs=now,next=0", "discs=turn,next=0"),
    "single": ("",),
}
"""How the result plays: as it learnt, and looking one turn ahead at discs."""
RIVAL: Final = "planner"
DEALS: Final = 770_001
"""Seed of the first deal."""

Row = dict[str, Any]


def begun(learner: Learner, options: Mapping[str, Any], folder: Path) -> Any:
    """A run that has learnt nothing yet.

    Raises:
        ValueError: for options that cannot work.
    """
    plain: dict[str, Any] = {"eval_games": 2, "final_games": 2, "eval_every": 10**9, "name": "run"}
    if learner == "single":
        from carolus_env.learners.single.config import Config
        from carolus_env.learners.single.run import Run

        return Run(Config(**plain, **options), folder)
    if learner == "value":
        from carolus_env.learners.value.config import ValueConfig
        from carolus_env.learners.value.run import ValueRun

        return ValueRun(ValueConfig(workers=1, **plain, **options), folder)
    from carolus_env.learners.turns.config import TurnConfig
    from carolus_env.learners.turns.run import TurnRun

    return TurnRun(TurnConfig(workers=1, **plain, **options), folder)


def trained(learner: Learner, options: Mapping[str, Any], folder: Path) -> tuple[str, Row]:
    """One run: the spec of its last network, and what it took."""
    run = begun(learner, options, folder)
    run.train()
    run.save(run.snapshot(), "last")
    name = "value" if learner == "value" else "ppo"
    kept = "" if learner == "single" else f",candidates={run.config.candidates}"
    point = run.point()
    seconds = point.get("cpu_seconds", point["seconds"])
    return f"{name}:{folder / 'last'}{kept}", {"done": run.done, "seconds": seconds}


def measure(learner: Learner, case: str, seed: int, games: int) -> Row:
    """A run and its games against `RIVAL`."""
    from carolus_env.engine.rules import Rules

    options = {**BASES[learner], **CASES[learner][case], "seed": seed}
    row: Row = {"learner": learner, "case": case, "seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        spec, took = trained(learner, options, Path(folder))
        row |= took
        for look in LOOKS[learner]:
            agent = f"{spec},{look}" if look else spec
            found = play_pairing((agent, RIVAL), Rules(2), games, seed=DEALS)
            row[look or "plain"] = [found.win_rate[0], *found.ci95[0]]
    return {**row, "games": games, "machine": line()}


def told(row: Row) -> str:
    """A row as a line of text."""
    shares = (f"{row[look or 'plain'][0]:.1%} {look}" for look in LOOKS[row["learner"]])
    return "  ".join(
        [f"{row['learner']:7}{row['case']:32} seed {row['seed']} {row['seconds']:6.1f} s", *shares]
    )


def main() -> int:
    """Run what is missing; print and write each row as it comes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--learners", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--games", type=int, default=1000, help="against `planner`, %(default)s")
    parser.add_argument("--processes", type=int, default=2, help="runs side by side, %(default)s")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    if options.json:
        check_writable(options.json)
        if options.json.exists():
            rows = json.loads(options.json.read_text())
    there = {(row["learner"], row["case"], row["seed"]) for row in rows}
    missing = [
        (learner, case, seed)
        for learner in options.learners
        for seed in options.seeds
        for case in CASES[learner]
        if (learner, case, seed) not in there
    ]
    pool = ProcessPoolExecutor(options.processes, get_context("spawn"))
    jobs = [pool.submit(measure, *one, options.games) for one in missing]
    try:
        for job in as_completed(jobs):
            rows.append(job.result())
            print(told(rows[-1]), flush=True)
            if options.json:
                order = [(name, case) for name, cases in CASES.items() for case in cases]
                rows.sort(key=lambda row: (order.index((row["learner"], row["case"])), row["seed"]))
                write_json(options.json, rows)
    finally:
        pool.shutdown(cancel_futures=True)  # after an error nothing more begins
    return 0


if __name__ == "__main__":
    sys.exit(main())
