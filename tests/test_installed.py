"""The wheel, installed without extras in a new virtual environment and used elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def call(*words: object, cwd: Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], cwd=cwd, text=True, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = call(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder),
        ROOT,
        cwd=folder,
        capture_output=True,
    )
    if done.returncode and "ConnectionError" in done.stderr:
        pytest.skip("no package registry can be reached")
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory) -> Path:
    """The folder of programs of an environment without extras."""
    folder = tmp_path_factory.mktemp("bare")
    call(sys.executable, "-m", "venv", folder / "venv", cwd=folder, check=True)
    programs = folder / "venv" / "bin"
    call(programs / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder, check=True)
    return programs


@pytest.fixture
def carolus(bare, tmp_path):
    """Run the installed command outside the repository."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return call(bare / "carolus", *words, cwd=tmp_path, capture_output=True, env=environment)

    return run


def test_the_wheel_holds_the_models_and_nothing_of_the_clone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for file in (
        "py.typed",
        "arena/ladder.json",
        "bots/value/models/2p.safetensors",
        "play/static/index.html",
        "commands/train.py",
    ):
        assert f"carolus_env/{file}" in names
    assert {name.partition("/")[0] for name in names} == {"carolus_env", f"{names_of(wheel)}"}


def names_of(wheel: Path) -> str:
    return "-".join(wheel.name.split("-")[:2]) + ".dist-info"


def test_without_extras_games_are_played_and_told_but_not_rated(carolus, tmp_path):
    done = carolus("evaluate", "greedy", "random", "--games", "10", "--json", "result.json")
    assert done.returncode == 0, done.stderr
    assert "greedy : random  10" in done.stdout
    assert "No module named 'scipy'" in done.stderr and "carolus-env[arena]" in done.stderr
    assert (tmp_path / "result.json").stat().st_size > 100


def test_what_needs_an_extra_says_so_before_it_begins(carolus, tmp_path):
    done = carolus("evaluate", "greedy", "random", "--out", "cup")
    assert done.returncode == 2 and "carolus-env[arena]" in done.stderr and not done.stdout
    assert not (tmp_path / "cup" / "games.jsonl").exists()
    done = carolus("train")
    assert done.returncode == 1 and "tyro is missing; train needs the extra" in done.stderr
    done = carolus("play", "--no-open")
    assert done.returncode == 2 and "carolus-env[play]" in done.stderr


def test_gymnasium_finds_the_environment_without_an_import(bare, tmp_path):
    code = (
        "import gymnasium\n"
        "env = gymnasium.make('carolus_env:CarolusMagnus-v0', players=3)\n"
        "_, info = env.reset(seed=1)\n"
        "print(env.step(int(info['action_mask'].argmax()))[1])\n"
    )
    done = call(bare / "python", "-c", code, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout) == (0, "0.0\n"), done.stderr
