"""The sdist, and the wheel that it makes: installed without extras in a new environment, and used
outside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from test_docs import SNIPPETS

ROOT = Path(__file__).parent.parent


def call(*words: object, cwd: Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], cwd=cwd, text=True, **options)


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """The folder of the sdist, and of the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    done = call(
        *(sys.executable, "-m", "build", "--outdir", folder, ROOT), cwd=folder, capture_output=True
    )
    if done.returncode and "ConnectionError" in done.stdout + done.stderr:
        pytest.skip("no package registry can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist) -> Path:
    return next(dist.glob("*.whl"))


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
        "evaluation/ladder.json",
        "networks/models/value_2p.safetensors",
        "play/static/index.html",
        "commands/train.py",
    ):
        assert f"carolus_env/{file}" in names
    assert {name.partition("/")[0] for name in names} == {"carolus_env", f"{names_of(wheel)}"}


def test_the_sdist_holds_the_clone_but_no_runs(dist):
    [sdist] = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ("pyproject.toml", "train.py", "tests/test_installed.py")
    assert names >= {*wanted, "examples/ppo_torch.py", "agents/value_2p.toml"}
    assert not any(name.startswith(("runs/", ".venv/", ".ci/", ".git/")) for name in names)


def test_an_index_would_take_both(dist):
    files = sorted(dist.iterdir())
    assert len(files) == 2
    done = call(
        *(sys.executable, "-m", "twine", "check", "--strict", *files), cwd=dist, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def names_of(wheel: Path) -> str:
    return "-".join(wheel.name.split("-")[:2]) + ".dist-info"


def test_without_extras_games_are_played_and_told_but_not_rated(carolus, tmp_path):
    done = carolus("evaluate", "greedy", "random", "--games", "10", "--json", "result.json")
    assert done.returncode == 0, done.stderr
    assert "greedy : random  10" in done.stdout
    assert "No module named 'scipy'" in done.stderr and "carolus-env[evaluation]" in done.stderr
    assert (tmp_path / "result.json").stat().st_size > 100


def test_what_needs_an_extra_says_so_before_it_begins(carolus, tmp_path):
    done = carolus("evaluate", "greedy", "random", "--out", "cup")
    assert done.returncode == 2 and "carolus-env[evaluation]" in done.stderr and not done.stdout
    assert not (tmp_path / "cup" / "games.jsonl").exists()
    done = carolus("train")
    assert done.returncode == 1 and "tyro is missing; train needs the extra 'train'" in done.stderr
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


WITHOUT_EXTRAS = [number for number, code in enumerate(SNIPPETS) if "sb3_contrib" not in code]


@pytest.mark.parametrize("number", WITHOUT_EXTRAS)
def test_snippets_of_the_readme_run_where_only_the_wheel_is(bare, tmp_path, number):
    done = call(bare / "python", "-c", SNIPPETS[number], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
