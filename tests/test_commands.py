"""The commands: their names, bots in users' files, and two processes on one output."""

import asyncio
import errno
import json
import os
import runpy
import shlex
import subprocess
import sys
import threading
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import carolus_env as ce
from carolus_env import bots, commands
from carolus_env.commands import dataset, evaluate, train, warmup
from carolus_env.learners.ppo import PpoConfig
from carolus_env.system.cancellation import Stop
from carolus_env.system.command import FAILED, USER_ERROR, command
from carolus_env.system.files import BusyError, locked

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_command_is_there_and_its_help_names_it_as_the_user_did(name, capsys):
    command = commands.COMMANDS[name]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"carolus": "carolus_env.commands:main"}
    assert command.extra in ("", *project["optional-dependencies"])
    assert commands.main(["--help"]) == 0
    output = capsys.readouterr().out
    assert f"  {name} " in output and command.about in output
    assert commands.main([name, "--help"]) == 0
    output = capsys.readouterr().out
    assert f"usage: carolus {name} " in output
    assert "python train.py" not in output and "python evaluate.py" not in output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("train.py --help", 0, "usage: carolus train "),
        ("evaluate.py --help", 0, "usage: carolus evaluate "),
        ("-m carolus_env evaluate --nonsense", 2, "carolus evaluate: unknown"),
    ],
)
def test_the_scripts_of_a_clone_are_the_same_commands(words, code, said, monkeypatch, capsys):
    first, *rest = words.split()
    monkeypatch.setattr(sys, "argv", [first, *rest[first == "-m" :]])
    with pytest.raises(SystemExit) as ended:
        if first == "-m":
            runpy.run_module(rest[0], run_name="__main__")
        else:
            runpy.run_path(str(ROOT / first), run_name="__main__")
    assert ended.value.code == code
    assert said in "".join(capsys.readouterr())


def test_no_command_gives_help_and_a_broken_one_the_reason(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "carolus_env.commands.train", raising=False)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    for words, code, said in (
        ([], 0, "usage: carolus COMMAND"),
        (["--version"], 0, f"carolus-env {ce.__version__}\n"),
        (
            ["evalute"],
            2,
            "unknown command 'evalute'; did you mean evaluate? Known are train, evaluate,",
        ),
        (["train"], 1, "rich.progress is missing; train needs the extra 'train'"),
    ):
        assert commands.main(words) == code
        output = capsys.readouterr()
        assert said in (output.err if code else output.out)


@pytest.mark.parametrize(
    "name",
    [*warmup.PARTS, *warmup.INTERFACES, "greedy", pytest.param("ppo:3p", marks=pytest.mark.slow)],
)
def test_what_is_warmed_up_is_used_once(name):
    if name == "sb3":
        pytest.importorskip("stable_baselines3")
    assert warmup.compile_one(name)[0] > 0


def test_what_cannot_be_warmed_up_is_reported(capfd):
    assert warmup.main(["greddy", "--workers", "1"]) == 1
    said = capfd.readouterr()
    assert "with 1 workers" in said.out and "engine (set-up)" in said.out
    assert "greddy  failed: UnknownAgentError" in said.err
    assert warmup.main(["--workers", "0"]) == 2
    assert "--workers must be a whole number from 1 to 256" in capfd.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "analyse nowhere.txt",
        "play --bot nobody --no-open",
        "engine nobody",
        "replay nowhere.jsonl --quite",
        "warmup --workers none",
        "dataset random --out data --games 0",
        "evaluate random nobody",
        "train --players 9",
    ],
)
def test_a_message_begins_with_the_command(words, capsys):
    pytest.importorskip("starlette")
    assert commands.main(words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"carolus {words.split()[0]}: ") and error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EAGAIN, "busy"), "no further process or thread may be started; use fewer"),
        (RuntimeError("can't start new thread"), "no further process or thread may be started;"),
        (OSError(errno.EMFILE, "many", "a.json"), "too many files are open; use fewer --workers"),
        (OSError(errno.ENFILE, "many"), "too many files are open on this machine; use fewer"),
        (OSError(errno.ENOMEM, "none"), "there is not enough memory; use fewer --workers"),
        (BlockingIOError(errno.EAGAIN, "full pipe", 3), "the output could not be written: full"),
    ],
)
def test_what_the_system_has_too_few_of_is_named_with_what_helps(error, said, capsys):
    @command("carolus count")
    def main(arguments, program):
        raise error

    assert main([]) == FAILED
    assert capsys.readouterr().err.startswith(f"carolus count: {said}")


@pytest.mark.parametrize(
    "name", ["my run", "it's", "ppo[lr=3e-4]", "x:fire:y", "a[/]", "$HOME", "`x`", "a\nb", "[red]"]
)
def test_a_command_that_is_suggested_can_be_pasted_into_a_shell(name, monkeypatch, capsys):
    given = ["--resume", Path("runs") / name]
    job = train.Job(PpoConfig(), given[1], "", {}, resumed=True)
    monkeypatch.setattr(train, "read_job", lambda arguments, program: job)
    monkeypatch.setattr(train, "_train", lambda job, console: None)
    assert train.main([]) == 130
    pasted = capsys.readouterr().out.partition("continue: ")[2]
    shell = subprocess.run(
        ["sh"], input=f"carolus() {{ printf '%s\\0' \"$@\"; }}\n{pasted}", stdout=subprocess.PIPE,
        text=True, check=True,
    )  # fmt: skip
    assert shell.stdout.split("\0")[:-1] == ["train", *map(str, given)]


STREAMS = {
    "evaluate 棋手.py:Bot random --games 2 --json r.json <&- >&- 2>&-": "",
    "evaluate 棋手.py:Bot random --games 2": r"\u68cb\u624b.py:Bot",
    "engine random <&- >&-": "",
}


@pytest.mark.parametrize("words", STREAMS)
def test_closed_streams_and_consoles_of_few_characters_and_columns_are_no_traceback(
    words, tmp_path
):
    bot_file(tmp_path, "Bot = RandomBot\n")
    (tmp_path / "my_bot.py").rename(tmp_path / "棋手.py")
    odd = {"PYTHONIOENCODING": "ascii", "COLUMNS": "40", "PYTHONUTF8": "0"}
    done = subprocess.run(
        ["sh", "-c", f"{shlex.quote(sys.executable)} -m carolus_env {words}"],
        cwd=tmp_path, env=os.environ | odd, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and STREAMS[words] in done.stdout
    if "--json" in words:
        assert json.loads((tmp_path / "r.json").read_text())["games"] == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("evaluate random greedy --games 2 --json -", 0, '{\n "'),
        ("evaluate random greedy --games 2 --quiet --json /dev/stdout", 0, '{\n "'),
        ("evaluate random greedy --games 2 --records -", 2, "a regular file is needed"),
        ("evaluate random greedy --games 2 --out -", 2, "--out must be a folder, got '-'"),
        ("dataset random --out -", 2, "--out must be a folder, got '-'"),
        ("train --runs -", 2, "--runs must be a folder, got '-'"),
        ("train --resume -", 2, "--resume must be a folder, got '-'"),
        ("train --config - < bad.toml", 2, "-: not a TOML file"),
        ("replay - < games.jsonl", 0, "60 games, 0 differences"),
    ],
)
def test_a_dash_is_the_standard_stream_or_refused(words, code, said, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text("not TOML")
    Path("games.jsonl").write_bytes((ROOT / "tests/golden/legal.jsonl.gz").read_bytes())
    command, _, source = words.partition(" < ")
    with open(0, closefd=False) as stdin, Path(source or os.devnull).open() as file:
        kept = os.dup(stdin.fileno())
        os.dup2(file.fileno(), 0)
        try:
            assert commands.main(command.split()) == code
        finally:
            os.dup2(kept, 0)
            os.close(kept)
    out, err = capfd.readouterr()
    assert said in (err if code else out)
    if "--json" in words and not code:
        assert json.loads(out)["games"] == 2
    assert {path.name for path in tmp_path.iterdir()} == {"bad.toml", "games.jsonl"}


@pytest.mark.parametrize("way", ["notebook", "async"])
def test_the_page_does_not_end_the_python_that_called_it(way, monkeypatch, capsys):
    monkeypatch.setattr("carolus_env.play.server.serve", lambda *_: pytest.fail("it serves"))

    async def called() -> int:
        return commands.main(["play", "--no-open"])

    if way == "notebook":  # as IPython and the interactive interpreter have it
        monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
        assert commands.main(["play", "--no-open"]) == 2
    else:
        assert asyncio.run(called()) == 2
    assert "in a notebook by `!carolus play`" in capsys.readouterr().err


def test_a_tilde_in_a_path_is_the_home_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "games.jsonl").write_bytes((ROOT / "tests/golden/legal.jsonl.gz").read_bytes())
    assert commands.main(["replay", "~/games.jsonl"]) == 0
    assert "60 games, 0 differences" in capsys.readouterr().out
    opened: list[str] = []
    monkeypatch.setattr("carolus_env.play.session.GameFile", lambda path, _: opened.append(path))
    monkeypatch.setattr("carolus_env.play.server.serve", lambda *_: 0)
    assert commands.main(["play", "~/games.jsonl", "--no-open", "--port", "0"]) == 0
    assert opened == [str(tmp_path / "games.jsonl")]


def test_an_import_that_cannot_work_says_so_in_a_line(tmp_path):
    init = (ROOT / "carolus_env" / "__init__.py").read_text()
    with zipfile.ZipFile(tmp_path / "carolus.whl", "w") as wheel:
        wheel.writestr("carolus_env/__init__.py", init)
    script = f"import sys; sys.path.insert(0, {str(tmp_path / 'carolus.whl')!r}); "
    for more, said in (
        ("", "Carolus must be installed, not imported from an archive"),
        ("sys.platform = 'win32'; ", "Carolus needs Linux or macOS; on Windows it runs in WSL"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", f"{script}{more}import carolus_env"],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(f"ImportError: {said}")


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
    assert evaluate.main(words) == USER_ERROR
    error = capsys.readouterr().err
    assert "my_bot.py" in error and "SystemExit" in error


@pytest.mark.parametrize("way", [["carolus"], [sys.executable, "-m", "carolus_env"]])
def test_a_bot_finds_the_modules_beside_it_wherever_the_command_runs(tmp_path, way):
    spec = bot_file(tmp_path / "mine", "import helper\nBot = helper.make()\n")
    (tmp_path / "mine" / "helper.py").write_text("from carolus_env.bots import RandomBot as make\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [*way, "evaluate", spec, "random", "--games", "2"]
    subprocess.run(command, cwd=tmp_path, check=True, env=os.environ | {"PATH": path})


def test_a_bot_finds_the_modules_beside_it_whenever_it_imports_them(tmp_path):
    """In `act`, too, once; and so do these modules, and the parts of packages among them."""
    specs = []
    for version in ("old", "new"):
        source = "class Bot(RandomBot):\n    def act(self, states, generators):\n"
        source += "        import helper, json, parts.more\n        from parts import more\n"
        source += "        self.says = helper.deeper() + more.text() + str(helper.count())\n"
        specs.append(
            bot_file(
                tmp_path / version, source + "        return super().act(states, generators)\n"
            )
        )
        helper = "counted = []\n"
        helper += "def deeper():\n    import deep\n    return deep.says\n"
        helper += "def count():\n    counted.append(1)\n    return len(counted)\n"
        (tmp_path / version / "helper.py").write_text(helper)
        (tmp_path / version / "deep.py").write_text(f"says = {version!r}\n")
        (tmp_path / version / "json.py").write_text(
            "raise ImportError('that of Python is loaded')\n"
        )
        (tmp_path / version / "math.py").write_text("raise ImportError('built-in ones go first')\n")
        (tmp_path / version / "parts").mkdir()
        (tmp_path / version / "parts" / "__init__.py").touch()
        more = "def text():\n    from . import other\n    import math, numpy\n"
        more += f"    return other.plus + {version!r}\n"
        (tmp_path / version / "parts" / "more.py").write_text(more)
        (tmp_path / version / "parts" / "other.py").write_text("plus = '+'\n")
    states, streams = ce.new_games(ce.Rules(), 1, seed=1), ce.new_streams(1, 1)
    agents, finders = [bots.make(spec) for spec in specs], list(sys.meta_path)
    for turn in (1, 2):
        for agent in agents:
            agent.act(states, streams)
        assert [agent.agent.says for agent in agents] == [f"old+old{turn}", f"new+new{turn}"]
    assert sys.meta_path == finders
    assert not {"helper", "deep", "parts", "parts.more", "parts.other"} & sys.modules.keys()


def test_two_versions_of_a_bot_have_helpers_of_their_own_and_read_no_arguments(
    tmp_path, monkeypatch
):
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
    source = (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--games', default='its own')\ngames = parser.parse_args().games\n"
        "class Bot(RandomBot):\n    games = games\n"
    )
    monkeypatch.setattr(sys, "argv", ["evaluate.py", "--games", "ours"])
    made = bots.make(bot_file(tmp_path, source))
    assert made.agent.games == "its own"
    assert sys.argv == ["evaluate.py", "--games", "ours"]


HOLD = """
import sys
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
    with locked(path), pytest.raises(BusyError, match="this process"), locked(path):
        pass
    assert [file.name for file in tmp_path.rglob("*lock*")] == []


def test_every_command_that_writes_over_time_is_refused(tmp_path, capsys):
    data, out = tmp_path / "data", tmp_path / "out"
    out.mkdir()
    words = ["random", "greedy", "--games", "4", "--out"]
    with holder(out) as one, holder(data) as other:
        assert evaluate.main([*words, str(out)]) and dataset.main([*words, str(data)])
        with pytest.raises(BusyError) as refused:
            train._train(train.Job(PpoConfig(), out, "", {}, resumed=True), None)
        one.kill()
        other.kill()
    texts = *capsys.readouterr().err.splitlines(), str(refused.value)
    for text, path, process in zip(texts, (out, data, out), (one, other, one), strict=True):
        assert str(process.pid) in text and str(path) in text


def test_a_run_starts_in_any_thread():
    run, entered = SimpleNamespace(stop=Stop()), list[bool]()

    def enter():
        with train._stopping(run, None):
            entered.append(True)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [True], "only the main thread can handle signals"
