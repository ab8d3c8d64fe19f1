"""Bots in users' files: what they may import, and what they can do to the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from carolus_env import bots
from carolus_env.commands import evaluate

ENDINGS = {
    "at the file's end": "class Bot(RandomBot):\n    pass\nsys.exit(0)\n",
    "when made": "class Bot(RandomBot):\n    def __init__(self):\n        sys.exit(0)\n",
    "in act": "class Bot(RandomBot):\n    def act(self, *_):\n        sys.exit(0)\n",
    "by argparse": "import argparse\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('model')\nparser.parse_args()\n",
}


def bot_file(folder: Path, source: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "my_bot.py").write_text(
        f"import sys\nfrom carolus_env.bots import RandomBot\n{source}"
    )
    return f"{folder / 'my_bot.py'}:Bot"


@pytest.mark.parametrize(
    ("where", "workers"),
    [*((where, "1") for where in ENDINGS), pytest.param("in act", "2", marks=pytest.mark.slow)],
)
def test_a_bot_that_exits_is_named_and_the_command_fails(tmp_path, capsys, where, workers):
    spec = bot_file(tmp_path, ENDINGS[where])
    words = [spec, "random", "--games", "4", "--workers", workers]
    assert evaluate.main(words) == evaluate.USER_ERROR
    error = capsys.readouterr().err
    assert "my_bot.py" in error and "SystemExit" in error


def test_a_bot_reads_no_arguments_of_the_command(tmp_path, monkeypatch):
    source = (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--games', default='its own')\ngames = parser.parse_args().games\n"
        "class Bot(RandomBot):\n    games = games\n"
    )
    monkeypatch.setattr(sys, "argv", ["evaluate.py", "--games", "ours"])
    made = bots.make(bot_file(tmp_path, source))
    assert made.agent.games == "its own"
    assert sys.argv == ["evaluate.py", "--games", "ours"]


@pytest.mark.parametrize("way", [["carolus"], [sys.executable, "-m", "carolus_env"]])
def test_a_bot_finds_the_modules_beside_it_wherever_the_command_runs(tmp_path, way):
    spec = bot_file(tmp_path / "mine", "import helper\nBot = helper.make()\n")
    (tmp_path / "mine" / "helper.py").write_text("from carolus_env.bots import RandomBot as make\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [*way, "evaluate", spec, "random", "--games", "2"]
    subprocess.run(command, cwd=tmp_path, check=True, env=os.environ | {"PATH": path})


def test_two_versions_of_a_bot_each_have_their_helper(tmp_path):
    specs = []
    for version in ("old", "new"):
        source = "import helper\nfrom parts.more import more\n"
        source += "class Bot(RandomBot):\n    says = helper.says + more\n"
        specs.append(bot_file(tmp_path / version, source))
        (tmp_path / version / "helper.py").write_text(f"says = {version!r}\n")
        (tmp_path / version / "parts").mkdir()
        (tmp_path / version / "parts" / "__init__.py").touch()
        (tmp_path / version / "parts" / "more.py").write_text(f"more = '+{version}'\n")
    before = list(sys.path)
    assert [bots.make(spec).agent.says for spec in specs] == ["old+old", "new+new"]
    assert sys.path == before and "helper" not in sys.modules and "parts.more" not in sys.modules
