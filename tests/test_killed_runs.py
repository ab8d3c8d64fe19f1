"""Training that is killed and resumed ends as an undisturbed run does, bit for bit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMON = "--eval-games 4 --final-games 4 --width 16 --hidden 4 --workers 2"
RUNS = {
    "ppo": "--candidates 6 --games 8 --rollout 16 --batch 32 --steps 12800 "
    "--checkpoint-every 256 --eval-every 6400 --curve-every 2560",
    "value": "--candidates 6 --games-per-round 4 --games 600 "
    "--checkpoint-every 24 --eval-every 300 --curve-every 250",
}
KILLED_AT = {"ppo": 2000, "value": 100}
"""Decisions or games in a checkpoint, after which a run is killed."""


def begun(learner: str, folder: Path, name: str, *more: str) -> subprocess.Popen[str]:
    """Start the run in a process of its own."""
    options = f"--learner {learner} {COMMON} {RUNS[learner]} --runs {folder} --name {name}"
    return subprocess.Popen(
        [sys.executable, "train.py", *options.split(), *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_checkpoint(process: subprocess.Popen[str], learner: str, folder: Path) -> None:
    """Return when the run is under way and can be resumed."""
    while process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.002)
        try:
            numbers = json.loads((folder / "resume" / "numbers.json").read_text())
        except (OSError, ValueError):
            continue
        if numbers["done"] >= KILLED_AT[learner]:
            return
    pytest.fail(f"it ended too early: {process.communicate()[1]}")


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the worker processes of a run."""
    listed = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process.pid)]
    lines = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines()
    return [int(line.split()[0]) for line in lines if "spawn_main" in line]


def check_resumed(folder: Path) -> None:
    """Resume ``killed``; it must end as ``whole`` did."""
    assert not (folder / "killed" / "final.json").exists()
    resume = [sys.executable, "train.py", "--resume", str(folder / "killed")]
    subprocess.run(resume, check=True, stdout=subprocess.DEVNULL)
    for name in ("final.safetensors", "best.safetensors", "result.json"):
        one, other = (folder / run / name for run in ("whole", "killed"))
        assert one.read_bytes() == other.read_bytes(), name
    curves = [json.loads((folder / run / "curve.json").read_text()) for run in ("whole", "killed")]
    for point in (point for curve in curves for points in curve.values() for point in points):
        del point["seconds"], point["cpu_seconds"]
    assert curves[0] == curves[1]


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["ppo", "value"])
@pytest.mark.parametrize("killed", ["run", "worker"])
def test_a_killed_run_continues_bit_by_bit(learner: str, killed: str, tmp_path: Path) -> None:
    assert begun(learner, tmp_path, "whole").wait() == 0, "by threads"
    more = ["--backend", "processes"] if killed == "worker" else []
    process = begun(learner, tmp_path, "killed", *more)
    wait_for_checkpoint(process, learner, tmp_path / "killed")
    result = workers_of(process) if more else [process.pid]
    assert len(result) == len(more) or not more
    os.kill(result[0], signal.SIGKILL)
    told = process.communicate()[1]
    assert process.returncode == (1 if more else -signal.SIGKILL)
    assert "exit code -9" in told or not more
    check_resumed(tmp_path)
