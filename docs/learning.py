"""Train with several seeds, for docs/single.md: ``python docs/learning.py``.

Each run is ``python train.py --learner single --seed N`` with `RATES`, from scratch, one after
another. The results go to benchmarks/results/learning.json, from which docs/tables.py and
docs/plots.py make the table and the plot. The same command resumes an interrupted run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from carolus_env.system.files import write_json
from carolus_env.system.machine import machine

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "learning.json"
BOTS = ["random", "greedy", "planner"]
RATES = ["--learning-rate-end", "3e-5", "--entropy-end", "0.002", "--eval-bots", *BOTS]


def train(seed: int, folder: Path) -> dict[str, Any]:
    """One run, from scratch or resumed: its results, and the seconds of all its commands."""
    path = folder / f"seed-{seed}"
    command = [
        "train.py",
        "--learner",
        "single",
        "--seed",
        str(seed),
        "--runs",
        str(folder),
        "--name",
        path.name,
    ]
    command += RATES
    if (path / "config.json").exists():
        command = ["train.py", "--resume", str(path)]
    started, spent = time.perf_counter(), folder / f"seed-{seed}.seconds"
    before = float(spent.read_text()) if spent.exists() else 0.0
    try:
        if not (path / "result.json").exists():
            subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    finally:
        seconds = before + time.perf_counter() - started
        spent.write_text(f"{seconds}\n")
    config = json.loads((path / "config.json").read_text())
    curve = json.loads((path / "curve.json").read_text())
    result = json.loads((path / "result.json").read_text())
    return {
        "seed": seed,
        "seconds": round(seconds, 1),
        "decisions": config["config"]["steps"],
        "commit": config["commit"],
        "evaluation": curve["evaluation"],
        "result": {bot: result["results"][bot] for bot in BOTS},
        "machine": machine(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "learning")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    write_json(RESULTS, [train(seed, options.folder.resolve()) for seed in options.seeds])
    return 0


if __name__ == "__main__":
    sys.exit(main())
