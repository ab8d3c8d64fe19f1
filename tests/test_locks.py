"""Two processes on one output: whoever comes second is refused, and a killed one locks nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from carolus_env.commands import dataset, evaluate, train
from carolus_env.learners.ppo import PpoConfig
from carolus_env.system.files import BusyError, locked

HOLD = """
import sys
from carolus_env.commands import dataset, evaluate, train
from carolus_env.learners.ppo import PpoConfig
from carolus_env.system.files import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_second_process_is_refused_with_the_path_and_the_first(tmp_path, kind):
    path = tmp_path / "cup"
    if kind == "folder":
        path.mkdir()
    with holder(path) as first:
        with pytest.raises(BusyError) as refused, locked(path):
            pass
        assert str(path) in str(refused.value) and str(first.pid) in str(refused.value)
        first.kill()
        first.wait()
        with locked(path):
            pass
    assert [file.name for file in tmp_path.rglob("*lock*")] == []


def test_a_process_refuses_its_own_second_block(tmp_path):
    path = tmp_path / "x"
    with locked(path), pytest.raises(BusyError, match="this process"), locked(path):
        pass
    with locked(path):
        pass


def test_every_command_that_writes_over_time_is_refused(tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    job = train.Job(PpoConfig(), out, "", {}, resumed=True)
    with holder(out) as first:
        assert evaluate.main(["random", "random", "--games", "4", "--out", str(out)]) != 0
        error = capsys.readouterr().err
        with pytest.raises(BusyError) as refused:
            train._train(job, None)
        first.kill()
    out.joinpath(".lock").unlink()
    out.rmdir()
    with holder(out) as second:
        assert dataset.main(["random", "greedy", "--games", "4", "--out", str(out)]) != 0
        second.kill()
    errors = error, str(refused.value), capsys.readouterr().err
    for text, process in zip(errors, (first, first, second), strict=True):
        assert str(process.pid) in text and str(out) in text
