"""What a choice of the training is worth: runs that differ in one option, three seeds each.

    python -m benchmarks.studies.ablations --json benchmarks/results/ablations.json
    python -m benchmarks.studies.ablations --studies value --seeds 1 --games 200

A run begins with random weights and has one worker. Its last network then plays paired games
against `planner` or another agent, on deals that no run has seen, the same for all. The first case
of a study is the one that the others differ from: the options of ``train.py``, but those of
`Study.base`. In the study "value long" each run learns for five CPU-minutes, whatever its options,
and the networks play alike, against the one that ships.

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
from typing import Any, Final, NamedTuple

from benchmarks.machine import line
from carolus_env.arena import play_pairing
from carolus_env.learners.options import Learner
from carolus_env.system.files import check_writable, write_json

BASE: Final = "as it is"


class Study(NamedTuple):
    """Runs that differ in one option."""

    learner: Learner
    base: dict[str, Any]
    """The budget, and what else is not as in ``train.py``."""
    cases: dict[str, dict[str, Any]]
    """What differs, by case."""
    looks: tuple[str, ...]
    """How the results play: options of the agent."""
    rival: str
    """Whom they meet: an agent that plays by the same options, or ``planner``."""


def _candidates(*counts: int) -> dict[str, dict[str, Any]]:
    return {f"{count} candidates": {"candidates": count} for count in counts}


def _widths(*widths: int) -> dict[str, dict[str, Any]]:
    return {f"width {width}": {"width": width} for width in widths}


def _amounts(option: str, base: int, unit: str) -> dict[str, dict[str, Any]]:
    """Other budgets than the base's."""
    return {
        f"a quarter of the {unit}": {option: base // 4},
        f"half the {unit}": {option: base // 2},
        f"twice the {unit}": {option: 2 * base},
        f"four times the {unit}": {option: 4 * base},
    }


STUDIES: Final = {
    "ppo": Study(
        "ppo",
        {"steps": 600_000},
        {
            BASE: {},
            "GAE 0.8": {"gae_lambda": 0.8},
            "GAE 0.97": {"gae_lambda": 0.97},
            "entropy 0": {"entropy": 0.0},
            "entropy 0.01": {"entropy": 0.01},
            **_candidates(5, 8, 32),
            **_widths(16, 32, 128, 256),
            **_amounts("steps", 600_000, "decisions"),
        },
        ("discs=now", "discs=turn"),
        "planner",
    ),
    "value": Study(
        "value",
        {"games": 10_000},
        {
            BASE: {},
            "lambda 0": {"trace": 0.0},
            "lambda 0.8": {"trace": 0.8},
            "no exploration": {"exploration": 0.0},
            **_candidates(4, 8, 32),
            **_widths(16, 32, 128, 256),
            **_amounts("games", 10_000, "games"),
        },
        ("discs=now,next=0", "discs=turn,next=0"),
        "planner",
    ),
    "value long": Study(
        "value",
        {"minutes": 5.0},
        {
            BASE: {},
            "no features": {"features": False},
            "lambda 0.8": {"trace": 0.8},
            "rate 0.06": {"rate": 0.06},
            "exploration 0.1": {"exploration": 0.1},
            **_candidates(8),
            **_widths(32, 128, 256),
        },
        ("candidates=32,plans=stop,next=0",),
        "value:2p",
    ),
    "single": Study(
        "single",
        {},
        {
            BASE: {},
            "a fifth of the games against `planner`": {"bots": ("planner",)},
            "half of them": {"bots": ("planner",), "self_share": 0.5},
        },
        ("",),
        "planner",
    ),
}
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
    point = run.point()
    seconds = point.get("cpu_seconds", point["seconds"])
    took: Row = {"done": run.done, "seconds": seconds}
    if learner != "single":
        took["candidates"] = run.config.candidates
    return f"{name}:{folder / 'last'}", took


def players(spec: str, look: str, study: Study, candidates: int | None) -> tuple[str, str]:
    """The agents that meet: the network, which compares as many turns as it learnt with, and the
    rival."""
    if candidates is not None and "candidates" not in look:
        look = f"candidates={candidates},{look}"
    rival = study.rival if study.rival == "planner" else f"{study.rival},{look}"
    return (f"{spec},{look}" if look else spec), rival


def measure(name: str, case: str, seed: int, games: int) -> Row:
    """A run and its games against the study's rival."""
    from carolus_env.engine.rules import Rules

    study = STUDIES[name]
    options = {**study.base, **study.cases[case], "seed": seed}
    row: Row = {"study": name, "case": case, "seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        spec, took = trained(study.learner, options, Path(folder))
        candidates = took.pop("candidates", None)
        row |= took
        for look in study.looks:
            found = play_pairing(
                players(spec, look, study, candidates), Rules(2), games, seed=DEALS
            )
            row[look or "plain"] = [found.win_rate[0], *found.ci95[0]]
    return {**row, "games": games, "machine": line()}


def told(row: Row) -> str:
    """A row as a line of text."""
    shares = (f"{row[look or 'plain'][0]:.1%} {look}" for look in STUDIES[row["study"]].looks)
    return "  ".join(
        [f"{row['study']:11}{row['case']:32} seed {row['seed']} {row['seconds']:6.1f} s", *shares]
    )


def main() -> int:
    """Run what is missing; print and write each row as it comes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--cases", nargs="+", metavar="CASE", help="only these")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--games", type=int, default=1000, help="of each result, %(default)s")
    parser.add_argument("--processes", type=int, default=2, help="runs side by side, %(default)s")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    if options.json:
        check_writable(options.json)
        if options.json.exists():
            rows = json.loads(options.json.read_text())
    there = {(row["study"], row["case"], row["seed"]) for row in rows}
    missing = [
        (name, case, seed)
        for name in options.studies
        for seed in options.seeds
        for case in STUDIES[name].cases
        if (name, case, seed) not in there and (not options.cases or case in options.cases)
    ]
    pool = ProcessPoolExecutor(options.processes, get_context("spawn"))
    jobs = [pool.submit(measure, *one, options.games) for one in missing]
    try:
        for job in as_completed(jobs):
            rows.append(job.result())
            print(told(rows[-1]), flush=True)
            if options.json:
                order = [(name, case) for name, study in STUDIES.items() for case in study.cases]
                rows.sort(key=lambda row: (order.index((row["study"], row["case"])), row["seed"]))
                write_json(options.json, rows)
    finally:
        pool.shutdown(cancel_futures=True)  # after an error nothing more begins
    return 0


if __name__ == "__main__":
    sys.exit(main())
