"""Every command line that a page or a help text shows is one of `ROWS`, and does what it should.

A command is run with further options that make it small (the last of two options counts), by its
own parser where it cannot be run here, or named with the reason. To add a command to a page, add it
to the rows that suit it.
"""

import argparse
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
import webbrowser
from dataclasses import dataclass, replace
from functools import partial, partialmethod
from pathlib import Path

import pytest
import shown

import carolus_env as ce
from carolus_env import commands, evaluation
from carolus_env.records import write_records
from carolus_env.system import command as command_module

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")


@dataclass(frozen=True)
class Rows:
    """Commands, one a line, that are shrunk alike.

    Attributes:
        how: ``run``; ``parse``, by the command's own parser; or ``name``.
        why: what keeps it from being run.
        more: options that make it small.
        first: a command to run beforehand, with the same options.
        slow: run by the slow tests only.
    """

    how: str
    commands: str
    more: str = ""
    why: str = ""
    first: str = ""
    slow: bool = False


GAMES = "--games 2 --workers 1"
LEARN = "--workers 1 --eval-games 2 --final-games 2"
PPO = f"{LEARN} --steps 256 --envs 16 --rollout 8 --batch 64"
VALUE = f"{LEARN} --width 16 --hidden 4"
SB3 = "--steps 64 --envs 4 --n-steps 8 --batch-size 32 --eval-games 2 --final-games 2"

ROWS = (
    Rows(
        "run",
        """
carolus evaluate mine.py:Mine planner
carolus evaluate planner greedy --games 20
carolus evaluate value:runs/first/best planner --games 100 --records games.jsonl
carolus evaluate value:runs/first/best planner greedy --games 200 --seed 7
carolus evaluate greedy my_bot.py:MyBot --players 3 --games 600
python evaluate.py my_bot.py:MyBot greedy random --players 3 --games 1200 --seed 7
carolus evaluate my_bot.py:MyBot my_old_bot.py:MyBot --sprt 0,20
python evaluate.py my_bot.py:MyBot planner --games 200 --records games.jsonl.gz
python evaluate.py my_bot.py:MyBot planner --out runs/cup --workers 2 --until 50
python evaluate.py my_bot.py:New my_bot.py:Old --sprt 0,20
python evaluate.py my_bot.py:TwoSteps my_bot.py:OneStep greedy planner --games 200 --seed 7
carolus evaluate ppo:runs/p2/best planner greedy --out cup --workers 2 --until 30
python evaluate.py value:runs/three/best planner --players 3
        """,
        GAMES,
    ),
    Rows(
        "run",
        "python evaluate.py my_bot.py:MyBot planner --out runs/cup --workers 2 --until 50 --resume",
        GAMES,
        first="python evaluate.py my_bot.py:MyBot planner --out runs/cup --until 50",
    ),
    Rows(  # a bot in C, a tree search, and one with PyTorch
        "run",
        """
carolus evaluate exe:./engine_bot random --workers 2
python evaluate.py mcts:sims=100 planner greedy random --players 2 --games 200
python evaluate.py my_torch.py:Mine planner:errors=0.5 random --games 200
        """,
        GAMES,
        slow=True,
    ),
    Rows(  # on a few of the positions that ship, and a deal against each rung
        "run",
        """
carolus evaluate value:runs/first/best --suite --players 2 --out runs/measured
python evaluate.py my_bot.py:MyBot --suite --players 2 --out runs/measured
        """,
    ),
    Rows(
        "run",
        """
python evaluate.py my_bot.py:MyBot --bench --out runs/measured --workers 2
python evaluate.py my_bot.py:MyBot planner --suite
python evaluate.py planner value search:sims=200 --suite
python evaluate.py ppo:runs/four/best --players 4 --bench --out runs/measured4
python evaluate.py value:runs/three/best --suite --players 3
        """,
        slow=True,
    ),
    Rows(
        "run",
        """
carolus play --bot "exe:python3 bot.py --level 2,seconds=5"
carolus play --bot my_bot.py:MyBot --bot ppo:runs/mine/best
carolus play --bot my_bot.py:TwoSteps
carolus play --bot value:runs/first/best
carolus play --bot value:runs/three/best
carolus play games.jsonl --lost value:runs/first/best
carolus play games.jsonl.gz
carolus play games.jsonl.gz --lost my_bot.py:MyBot --bot my_bot.py:MyBot
carolus play games.jsonl.gz --lost planner
carolus play runs/measured/worst_2p.jsonl
        """,
    ),
    Rows(
        "run",
        """
carolus engine planner
carolus engine search:2p,seconds=1
carolus --help
python train.py --help
        """,
    ),
    Rows("run", "carolus replay tests/golden/*.jsonl.gz", slow=True),
    Rows(
        "run",
        """
carolus dataset planner --games 4000 --out data
carolus dataset planner ppo:2p --games 100000 --out data --workers 2
carolus dataset value:3p --players 3 --games 20000 --out data --observation float32
carolus dataset value:3p --players 3 --games 20000 --out data3 --observation float32
        """,
        GAMES,
        slow=True,
    ),
    Rows(
        "run",
        """
python clone_torch.py data
carolus evaluate clone_torch.py:Trained greedy
        """,
        first="python clone_torch.py data",
        slow=True,
    ),
    Rows(
        "run",
        """
carolus warmup aec value:2p --workers 4
carolus warmup vector planner value:3p --workers 4
        """,
        "--workers 1",
        slow=True,
    ),
    Rows(
        "run",
        """
carolus analyse position.txt --games 3000 --threads 2
carolus analyse position.txt --base planner --games 5000 --threads 2
carolus analyse position.txt --move "r>court, E+2" --move "b>8, E+1"
        """,
        "--games 2",
    ),
    Rows(
        "run",
        "carolus analyse games.jsonl.gz --game 3 --rounds 3 --games 300",
        "--game 1 --games 2 --base random",
    ),
    Rows(
        "run",
        """
carolus train --steps 30000 --name tiny
python train.py
carolus train --config agents/ppo_2p.toml
python train.py --config agents/ppo_2p.toml
python train.py --players 3 --steps 20000000
carolus train --players 4 --steps 5000000 --name four
        """,
        PPO,
        slow=True,
    ),
    Rows("run", "python train.py --resume runs/NAME", first=f"python train.py --name NAME {PPO}",
         slow=True),
    Rows("run", "carolus train --resume runs/four", first=f"python train.py --name four {PPO}",
         slow=True),
    Rows(
        "run",
        """
carolus train --learner value --games 20000 --workers 1 --name first
carolus train --learner value
python train.py --learner value
python train.py --learner value --players 3 --name three
python train.py --config agents/value_2p.toml
        """,
        f"{VALUE} --games 16",
        slow=True,
    ),
    Rows(
        "run",
        """
python train.py --learner value --minutes 2 --workers 2
        """,
        f"{VALUE} --minutes 0.001",
        slow=True,
    ),
    Rows(
        "run",
        """
carolus train --learner sb3
python train.py --learner sb3
python train.py --learner sb3 --players 4 --opponents greedy
        """,
        SB3,
        slow=True,
    ),
    Rows(
        "run",
        """
python examples/ppo_torch.py
python examples/ppo_torch.py --players 2 --teacher value:2p --steps 2700000 --rollout 256 --epochs 4 --learning-rate 0.002 --save decisions_2p
python examples/ppo_torch.py --players 4 --steps 30000000 --save mine.safetensors
python examples/ppo_torch.py --teacher value --rollout 256 --epochs 4 --learning-rate 0.002
        """,  # noqa: E501
        "--steps 64 --envs 8 --rollout 8 --minibatch 32 --epochs 1 --eval-games 4",
        slow=True,
    ),
    Rows(
        "name",
        "python examples/ppo_torch.py --device cuda --envs 16384 --minibatch 65536",
        why="needs a GPU; tests/on_gpu.py has what it uses",
    ),
    Rows(
        "parse",
        """
carolus evaluate agilerl_ppo.py:Trained planner
carolus evaluate greedy my_bot.py:MyBot --games 100000 --out runs/cup --backend ray
carolus evaluate "exe:python3 language_model.py http://localhost:8000/v1 NAME" random --games 20
carolus evaluate openspiel_mcts.py:Search greedy --games 40
carolus evaluate pufferlib_ppo.py:Trained planner
carolus evaluate rllib_ppo.py:Trained greedy
carolus evaluate skrl_ppo.py:Trained planner
carolus evaluate tianshou_dqn.py:Trained planner
carolus evaluate torchrl_ppo.py:Trained planner
carolus play --bot "exe:python3 language_model.py https://HOST/v1 NAME --key MY_KEY,seconds=300"
python evaluate.py decisions:mine.safetensors planner --players 4
        """,
        why="needs a library, a cluster or a server; tests/integrations.py has the libraries",
    ),
    Rows(
        "parse",
        """
python -m agents.fit_planner
python -m agents.fit_planner --games 1500 --rounds 5 --match-games 600 --seed 1 --write
python -m agents.fit_planner --players 3 --write
python -m agents.fit_planner --write
python -m benchmarks.curves
python -m benchmarks.curves --curves example --players 2 --seeds 1
python -m benchmarks.curves --learned --save
python -m benchmarks.curves --save
python -m benchmarks.carolusbench --save
python -m benchmarks.carolusbench decisions:runs/mine/best --players 2 --name PPO --save
python -m benchmarks.first_minutes
python -m benchmarks.first_minutes steps train
python -m benchmarks.gpu
python -m benchmarks.gpu --players 2 --modes rollout_mask --save
python -m benchmarks.endings value:2p --players 2 --games 200
python -m benchmarks.endings value:3p --players 3
python -m benchmarks.ladder
python -m benchmarks.learners
python -m benchmarks.learners --players 3 --repeats 5 --save
python -m benchmarks.paired ../before . --repeats 9
python -m benchmarks.paired BEFORE AFTER
python -m benchmarks.peers
python -m benchmarks.peers --peers pgx --repeats 9 --save
python -m benchmarks.rendering --save
python -m benchmarks.seeds
python -m benchmarks.seeds --learned --save
python -m benchmarks.seeds --learners sb3 --players 2 --seeds 1 2 3
python -m benchmarks.startup --save
python -m benchmarks.search --longest 0.01
python -m benchmarks.search --save
python -m benchmarks.search --workers 2 --save
python -m benchmarks.strength
python -m benchmarks.strength --players 3 4 --save
python -m benchmarks.strength --save
python -m benchmarks.throughput
python -m benchmarks.throughput --modes rollout_mask step_u8 --players 2 --save
python -m benchmarks.throughput --players 2 --batch 1 16 64 256 1024 16384 65536 --save
python -m benchmarks.throughput --save
carolus analyse "2 | 3 | 1 place 2 | 11 | A1y1 g1 ..."
carolus analyse position.txt --move "p>court, y>court, E+4" --move "p>court, b>court, E+4"
python -m benchmarks.suite --players 2 --out 2p.jsonl.gz
python -m benchmarks.suite --players 2 --workers 2 --out 2p.jsonl.gz
        """,
        why="takes minutes, writes into the clone, or names a position that is left out",
    ),
    Rows(
        "name",
        """
make coverage
make bounds
make docs
make gpu
make integrations
make integrations ARGS="torchrl skrl"
make integrations ARGS=pufferlib
make ladder
make lint
make lint-page
make newest
make newest ARGS=all NEWEST_PYTHON=python3.12
make seeds
make signatures
make tables
make test
make test-all
make test-oldest
make train
        """,
        why="a rule of the Makefile; what it runs is tested",
    ),
    Rows(
        "name",
        """
pip install 'carolus_env-0.1.0-py3-none-any.whl[evaluation]'
pip install 'carolus_env-0.1.0-py3-none-any.whl[ray,evaluation]'
pip install 'carolus_env-0.1.0-py3-none-any.whl[ray]'
pip install -c constraints.txt -e '.[dev]'
pip install -c constraints.txt -e '.[train,evaluation,play]'
pip install -c constraints.txt -e '.[train,evaluation,play,render]'
pip install 'carolus_env-0.1.0-py3-none-any.whl[gpu]'
pip install carolus_env-0.1.0-py3-none-any.whl
        """,
        why="installs; its extras exist, and tests/mornings install the wheel",
    ),
    Rows(
        "name",
        """
carolus engine AGENT
carolus replay FILE...
pip install --no-build-isolation --no-binary pufferlib-core pufferlib-core==3.0.18
pip install -c constraints.txt torch numpy setuptools wheel
pip install dist/*.whl
python -m build
python -m benchmarks.suite
python -m pytest -n auto -m "not slow"
python -m pytest tests/test_release.py
python -m twine check --strict dist/*
python -m zipfile -l dist/*.whl
python docs/images.py
python docs/tables.py [--check]
python openspiel_mcts.py --games 10 --simulations 100
python agilerl_ppo.py
python minari_dataset.py data carolus/2p-planner-v0
python pufferlib_ppo.py
python rllib_ppo.py
python rllib_ppo.py --decisions --players 3
python skrl_ppo.py
python tianshou_dqn.py
python torchrl_ppo.py
python train.py --learner climb
python3 -m venv .venv
        """,
        why="a placeholder, another library's, a release's, or tested elsewhere: climb, tables and "
        "pictures by test_docs.py, libraries by integrations.py",
    ),
)  # fmt: skip

LINES = [(line.strip(), rows) for rows in ROWS for line in rows.commands.strip().splitlines()]
TABLE = dict(LINES)


def test_the_table_has_the_commands_that_the_pages_show():
    pages = shown.commands()
    lacking = {command: where for command, where in pages.items() if command not in TABLE}
    assert not lacking, "add these commands, which pages show, to ROWS in test_shown_commands.py"
    unused = [command for command in TABLE if command not in pages]
    assert not unused, "no page shows these commands: delete them from ROWS"
    assert len(LINES) == len(TABLE), "a command stands twice in ROWS"
    for rows in ROWS:
        assert rows.how == "run" or rows.why, "say why it is not run"


def test_named_commands_name_rules_and_extras_that_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for command in TABLE:
        if command.startswith("make "):
            subprocess.run(["make", "-n", *shlex.split(command)[1:]], cwd=ROOT, check=True,
                           capture_output=True)  # fmt: skip
        elif command.startswith("pip "):
            named = ",".join(re.findall(r"\[(.*?)\]", command)).split(",")
            assert set(named) <= {"", *extras}, command
            assert "carolus-env" not in command, "it is not published: a wheel, or a clone"
    text = " ".join(page.read_text() for page in ROOT.glob("docs/*.md"))
    assert set(re.findall(r"`carolus ([a-z]+)`", text)) <= set(commands.COMMANDS)
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    )


# ------------------------------------------------------------------------------------ running


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the files that the commands name."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("agents", "docs", "examples", "tests", "benchmarks", "train.py", "evaluate.py"):
        (folder / name).symlink_to(ROOT / name)
    page = (ROOT / "docs" / "write_a_bot.md").read_text()
    [bots] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    bots += "\n\nclass MyBot(OneStep):\n    pass\n\n\nNew = Old = MyBot\n"
    for name in ("my_bot.py", "my_old_bot.py"):
        (folder / name).write_text(bots)
    (folder / "bot.py").write_text(
        "from carolus_env.commands.positions import engine\nengine(['random'])\n"
    )
    models = ROOT / "carolus_env" / "networks" / "models"
    runs = {"first": "value_2p", "three": "value_3p", "four": "ppo_4p", "p2": "ppo_2p"}
    for run, model in {**runs, "mine": "ppo_2p"}.items():
        (folder / "runs" / run).mkdir(parents=True)
        shutil.copy(models / f"{model}.safetensors", folder / "runs" / run / "best.safetensors")
    rules = ce.Rules(players=2)
    _, actions = evaluation.play_games([[0, 0]], (ce.make("random"),), rules, seed=3)
    record = evaluation.game_record(rules, seed=3, deal=0, actions=actions[0])
    games = []
    for spec in ("my_bot.py:MyBot", "value:runs/first/best"):
        games += [{**record, "agents": pair} for pair in ([spec, "planner"], ["planner", spec])]
    (folder / "runs" / "measured").mkdir()
    for name in ("games.jsonl", "games.jsonl.gz", "saved.jsonl", "runs/measured/worst_2p.jsonl"):
        write_records(folder / name, games)
    game = ce.Game(rules, seed=296)
    game.play("d2, d3, 2 red>court")  # one more paladin, red or blue
    (folder / "position.txt").write_text(game.to_text())
    return folder


@pytest.fixture
def clone(files, tmp_path, monkeypatch):
    """A copy of the files, in which a command runs with nobody to look at its page."""
    folder = tmp_path / "clone"
    shutil.copytree(files, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    monkeypatch.setattr(webbrowser, "open", lambda address: True)
    monkeypatch.setattr(threading.Timer, "start", lambda self: None)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"quit\n")))
    return folder


class Parsed(BaseException):
    """A command line was understood."""


def small(monkeypatch):
    """Measure on some of the positions that ship, by some of the games."""
    server = pytest.importorskip("carolus_env.play.server")
    from carolus_env.evaluation import bench, ladder, suite

    shipped = suite.shipped

    def few(players):
        whole = shipped(players)
        return replace(whole, decisions=whole.decisions[2::50])  # of every kind

    for module in (suite, bench, ladder):
        monkeypatch.setattr(module, "shipped", few)
    for players in bench.DEALS:
        monkeypatch.setitem(bench.DEALS, players, 1)
    monkeypatch.setattr(server, "serve", lambda _, listening, __: listening.close() or 0)


def execute(words, monkeypatch):
    """Run a command in this process; its exit code."""
    words = [
        str(path)
        for word in words
        for path in (sorted(Path().glob(word)) if "*" in word else [word])
    ]
    program, *rest = words
    if program == "carolus":
        return commands.main(rest)
    if rest[0] in ("train.py", "evaluate.py"):
        return commands.main([rest[0].removesuffix(".py"), *rest[1:]])
    try:
        if rest[0] == "-m":
            monkeypatch.setattr(sys, "argv", rest[1:])
            runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
        else:
            monkeypatch.setattr(sys, "argv", rest)
            script = rest[0] if Path(rest[0]).exists() else f"examples/{rest[0]}"
            runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        return ended.code or 0
    return 0


RUN = [
    pytest.param(command, marks=[pytest.mark.slow] if rows.slow else [])
    for command, rows in TABLE.items()
    if rows.how == "run"
]


@pytest.mark.parametrize("command", RUN)
def test_a_command_runs(command, clone, monkeypatch, capsys):
    small(monkeypatch)
    rows = TABLE[command]
    if "learner sb3" in command or "torch" in command:
        pytest.importorskip("sb3_contrib" if "sb3" in command else "torch")
    if "engine_bot" in command:
        if not (compiler := shutil.which("cc")):
            pytest.skip("no C compiler")
        subprocess.run([compiler, "-O2", "-o", "engine_bot", "examples/engine_bot.c"], check=True)
    if "clone_torch" in command:
        shutil.copy("examples/clone_torch.py", clone)
        commands.main(["dataset", "greedy", "--games", "12", "--workers", "1", "--out", "data"])
    if "my_torch" in command or "mine.py" in command:
        write_agents(clone, command)
    if "train" in command.split()[1]:
        shutil.rmtree("runs")
    if rows.first and rows.first != command:
        assert execute(shlex.split(f"{rows.first} {rows.more}"), monkeypatch) == 0
    if "--records games" in command:  # a second file of the same name is refused
        for name in ("games.jsonl", "games.jsonl.gz"):
            (clone / name).unlink()
    words = shlex.split(f"{command} {rows.more}")
    try:
        code = execute(words, monkeypatch)
    except SystemExit as ended:
        code = ended.code or 0
    output = capsys.readouterr()
    assert code == 0, f"{shlex.join(words)}\n{output.out}{output.err}"
    printed = {" ".join(line.split()) for line in output.out.splitlines()}
    assert {*shown.heads(command)} <= printed, "a page shows another table"


def write_agents(folder, command):
    """Write the agents that the pages for other libraries and for a loop of your own have."""
    for page, name, mark in (
        ("integrations", "mine.py", "TurnAgent"),
        ("own_loop", "my_torch.py", "torch.load"),
    ):
        text = (ROOT / "docs" / f"{page}.md").read_text()
        [code] = [c for c in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if mark in c]
        (folder / name).write_text(code)
    if "torch" not in command:
        return
    torch = pytest.importorskip("torch")
    torch.save(torch.nn.Linear(225, 95).state_dict(), folder / "mine.pt")


@pytest.mark.parametrize("command", [c for c, rows in TABLE.items() if rows.how == "parse"])
def test_a_command_that_cannot_run_here_is_understood(command, clone, monkeypatch, capsys):
    words = shlex.split(command)

    def parse_only(parse, *arguments, **options):
        parse(*arguments, **options)
        raise Parsed

    for kind in (argparse.ArgumentParser, command_module._Parser):
        method = partialmethod(partial(parse_only, kind.parse_args))
        monkeypatch.setattr(kind, "parse_args", method)
    monkeypatch.syspath_prepend(str(ROOT))
    with pytest.raises(Parsed):
        execute(words, monkeypatch)
