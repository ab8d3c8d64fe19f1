"""``carolus COMMAND``, ``python -m carolus_env COMMAND`` and the scripts of a clone."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import carolus_env
from carolus_env.commands import choice, warmup

ROOT = Path(__file__).parent.parent


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize("name", choice.COMMANDS)
def test_every_command_is_there_and_its_help_names_it_as_the_user_did(name, capsys):
    command = choice.COMMANDS[name]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"carolus": "carolus_env.commands.choice:main"}
    assert command.extra in ("", *project["optional-dependencies"])
    assert choice.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert f"  {name} " in told and command.about in told
    with pytest.raises(SystemExit, match="0"):
        choice.main([name, "--help"])
    told = capsys.readouterr().out
    assert f"usage: carolus {name} " in told
    assert "python train.py" not in told and "python evaluate.py" not in told


def test_the_scripts_of_a_clone_are_the_same_commands():
    for name in ("train", "evaluate"):
        done = run(f"{name}.py", "--help")
        assert done.returncode == 0 and f"usage: {name}.py " in done.stdout
    done = run("-m", "carolus_env", "evaluate", "--nonsense")
    assert done.returncode == 2 and done.stderr.startswith("carolus evaluate: unrecognized")


def test_no_command_gives_help_and_an_unknown_one_those_that_exist(capsys):
    assert choice.main([]) == 0
    assert "usage: carolus COMMAND" in capsys.readouterr().out
    assert choice.main(["--version"]) == 0
    assert capsys.readouterr().out == f"carolus-env {carolus_env.__version__}\n"
    assert choice.main(["evalute"]) == 2
    assert "unknown command 'evalute'; known are train, evaluate," in capsys.readouterr().err


def test_what_an_extra_lacks_is_named(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "carolus_env.commands.train", raising=False)
    monkeypatch.setitem(sys.modules, "tyro", None)
    assert choice.main(["train"]) == 1
    assert "tyro is missing; train needs the extra 'train'" in capsys.readouterr().err


def test_other_commands_are_named_as_the_user_types_them():
    assert choice.typed("play", "carolus train") == "carolus play"
    assert choice.typed("play", "python train.py") == "python -m carolus_env.play"
    assert choice.typed("evaluate", "python train.py") == "python evaluate.py"


@pytest.mark.parametrize(
    "name", [*warmup.INTERFACES, "greedy", pytest.param("ppo:3p", marks=pytest.mark.slow)]
)
def test_what_is_warmed_up_is_used_once(name):
    if name == "sb3":
        pytest.importorskip("stable_baselines3")
    assert warmup.compile_one(name) > 0


def test_what_cannot_be_warmed_up_is_told(capfd):
    assert warmup.main(["greddy", "--workers", "1"]) == 1
    said = capfd.readouterr()
    assert "compiling 2 with 1 workers" in said.out and "engine" in said.out
    assert "greddy  failed: UnknownAgentError" in said.err
    with pytest.raises(SystemExit, match="2"):
        warmup.main(["--workers", "0"])
