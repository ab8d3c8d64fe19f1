"""Training: placing an agent, the commit, resuming, and errors, whatever learns."""

from __future__ import annotations

import dataclasses
import errno
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tyro")
pytest.importorskip("rich")

from carolus_env.arena import ladder
from carolus_env.arena.placing import evaluate
from carolus_env.bots import make
from carolus_env.commands import train
from carolus_env.engine.rules import OPTIONS, Rules
from carolus_env.learners.provenance import commit, commit_of
from carolus_env.learners.reading import read
from carolus_env.learners.turns.config import TurnConfig
from carolus_env.learners.turns.run import TurnRun

TINY = [
    *("--width", "16", "--hidden", "4", "--candidates", "6", "--workers", "2"),
    *("--games", "8", "--rollout", "16", "--batch", "32", "--steps", "512"),
    *("--eval-games", "4", "--final-games", "4", "--eval-every", "256"),
]


def tiny(folder, *more):
    return [*TINY, "--runs", str(folder), "--name", "r", *more]


# ------------------------------------------------------------------------------------ placing


@pytest.mark.parametrize(
    "players", [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(4, marks=pytest.mark.slow)]
)
def test_an_agent_is_placed_by_the_rungs_nearest_to_it(players):
    agent = make("planner:errors=0.3")
    found = evaluate(agent, Rules(players), 30, near=None)
    assert 2 <= len(found.rungs) <= 3
    again = evaluate(agent, Rules(players), 30, near=found.elo)
    near = [rung.spec for rung in ladder.nearest(players, again.elo, 5)]
    assert again.rungs[0] == ladder.nearest(players, found.elo)[0].spec
    assert {*found.rungs, *again.rungs} <= set(near)
    assert again.low - 100 < found.elo < again.high + 100
    assert again == evaluate(agent, Rules(players), 30, near=found.elo)


@pytest.mark.parametrize(
    "spec", ["random", "planner:errors=0.4", pytest.param("value:2p", marks=pytest.mark.slow)]
)
def test_where_nothing_or_something_else_is_known_a_few_games_find_the_rungs(spec):
    rungs = [rung.spec for rung in ladder.rungs(2) if not rung.searches]
    place = rungs.index(spec)
    for near in (None, ladder.rungs(2)[-1].elo, ladder.rungs(2)[0].elo):
        found = evaluate(make(spec), Rules(2), 12, near=near)
        assert all(abs(rungs.index(met) - place) <= 3 for met in found.rungs)


def test_other_agents_are_met_besides_the_rungs():
    agent = make("planner:errors=0.3")
    result = evaluate(agent, Rules(2), 4, near=None, others=("greedy", "random"))
    assert {"greedy", "random", *result.rungs} == set(result.results)
    alone = evaluate(agent, Rules(2), 4, near=None)
    assert (result.elo, result.rungs) == (alone.elo, alone.rungs)


# ------------------------------------------------------------------------------------ the commit


def repository(folder, *tracked):
    """A git repository that tracks some of its files."""
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "--", *tracked], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def package(root):
    """A copy of the file that is looked for, in a folder that the package is installed in."""
    shutil.copytree("carolus_env/learners", root / "carolus_env" / "learners")
    return root / "carolus_env" / "learners" / "provenance.py"


@needs_git
def test_the_commit_is_that_of_the_checkout_and_marked_when_files_differ(tmp_path):
    file = package(tmp_path)
    head = repository(tmp_path, "carolus_env")
    assert commit_of(tmp_path) == head
    file.write_text("")
    assert commit_of(tmp_path) == head + "+"


@needs_git
@pytest.mark.parametrize(
    ("place", "tracked"),
    [(".", False), (".venv/lib/python3.11/site-packages", False), ("vendored", True)],
)
def test_an_installed_package_has_no_commit_inside_another_repository(tmp_path, place, tracked):
    package(tmp_path / place)
    (tmp_path / "mine.py").write_text("")
    repository(tmp_path, "mine.py", *([place] if tracked else []))
    assert commit_of(tmp_path / place) is None


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
    package(tmp_path)
    assert commit_of(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert commit_of(Path.cwd()) is None


@needs_git
def test_this_code_has_the_commit_of_its_checkout():
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip("no checkout")
    assert (commit() or "").removesuffix("+") == found.stdout.strip()


# ------------------------------------------------------------------------------------ errors


def test_an_existing_run_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "mine.txt").write_text("mine")
    assert train.main(tiny(tmp_path)) == 2
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "r" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "damage", ["no folder", "no checkpoint", "cut arrays", "foreign config", "another layout"]
)
def test_a_run_that_cannot_be_resumed_is_reported(tmp_path, capsys, damage):
    folder = tmp_path / "r"
    if damage != "no folder":
        assert train.main(tiny(tmp_path)) == 0
    if damage == "no checkpoint":
        shutil.rmtree(folder / "resume")
    if damage == "cut arrays":
        path = folder / "resume" / "arrays.npz"
        path.write_bytes(path.read_bytes()[:1000])
    if damage == "foreign config":
        (folder / "config.json").write_text('{"config": {"hats": 3}}')
    if damage == "another layout":
        about = json.loads((folder / "config.json").read_text())
        about["config"]["trunk"] = 64
        (folder / "config.json").write_text(json.dumps(about))
    capsys.readouterr()
    assert train.main(["--resume", str(folder)]) == 2
    error = capsys.readouterr().err
    assert ("checkpoint" if damage in ("no checkpoint", "cut arrays") else "no run to") in error
    assert ("unknown option 'trunk' of learner ppo" in error) == (damage == "another layout")
    assert "Traceback" not in error


@pytest.mark.slow
def test_a_full_disk_at_a_checkpoint_does_not_end_training(tmp_path, monkeypatch, capsys):
    whole = TurnRun.checkpoint
    calls = []

    def full_at_first(self):
        calls.append(1)
        if len(calls) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(self)

    monkeypatch.setattr(TurnRun, "checkpoint", full_at_first)
    assert train.main(tiny(tmp_path)) == 0
    error = capsys.readouterr().err
    assert "no checkpoint written ([Errno 28] No space left on device); training continues" in error
    assert (tmp_path / "r" / "resume" / "numbers.json").exists()


@pytest.mark.slow
def test_a_failed_checkpoint_leaves_the_last_one(tmp_path, monkeypatch):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    run = TurnRun(train.read_job(["--resume", str(folder)]).config, folder)
    run.resume()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        run.checkpoint()
    assert not (folder / "resume.part").exists()
    run.resume()


@pytest.mark.slow
def test_a_checkpoint_between_its_two_renames_is_found(tmp_path):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    (folder / "resume").rename(folder / "resume.old")
    assert train.main(["--resume", str(folder), "--steps", "640"]) == 0


# ------------------------------------------------------------------------------------ a file


@pytest.mark.parametrize("words", [["--config", "{}"], ["--config={}"]])
def test_options_come_from_a_file_and_the_command_line_overrides_them(tmp_path, words):
    path = tmp_path / "options.toml"
    path.write_text(
        'learner = "ppo"\nplayers = 3\neval_bots = ["greedy", "random"]\nentropy = 0.5\nseed = 4\n'
    )
    given = [word.format(path) for word in words]
    job = train.read_job(["--runs", str(tmp_path), *given, "--seed", "7", "--name", "a"])
    assert (job.config.players, job.config.seed) == (3, 7)
    assert job.config.eval_bots == ("greedy", "random")
    assert (job.config.entropy, job.config.games) == (0.5, TurnConfig().games)
    assert (job.folder, job.resumed) == (tmp_path / "a", False)
    assert str(path) in job.command


@pytest.mark.parametrize("words", [["--resume", "{}"], ["--resume={}"]])
def test_a_run_is_resumed_with_its_own_options(tmp_path, words):
    config = {"players": 3, "seed": 9}
    about = {"commit": None, "config": config, "command": "python train.py --seed 9"}
    (tmp_path / "config.json").write_text(json.dumps(about))
    given = [word.format(tmp_path) for word in words]
    job = train.read_job(given)
    assert (job.config.players, job.config.seed) == (3, 9)
    assert (job.folder, job.resumed, job.command) == (tmp_path, True, "python train.py --seed 9")
    longer = train.read_job([*given, "--steps", "77"])
    assert longer.config.steps == 77
    assert longer.command.startswith("python train.py --seed 9; python train.py --resume")


@pytest.mark.parametrize("option", ["--config", "--resume"])
@pytest.mark.parametrize("form", ["{} {}", "{}={}"])
def test_a_wrong_path_is_named(tmp_path, capsys, option, form):
    path = tmp_path / "nowhere"
    assert train.main(form.format(option, path).split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"train: {path}: ")
    assert "no such f" in error.lower()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--config", "Missing value for argument '--config'"),
        ("--resume", "Missing value for argument '--resume'"),
        ("--resume {} --width 3", "Unrecognized options: --width, 3"),
        ("--hats 3", "Unrecognized options: --hats, 3"),
    ],
)
def test_a_command_line_that_is_not_understood_is_refused(tmp_path, capsys, words, text):
    (tmp_path / "config.json").write_text(json.dumps({"config": {}, "command": "old"}))
    with pytest.raises(SystemExit) as stopped:
        train.main(words.format(tmp_path).split())
    assert stopped.value.code == 2
    assert text in capsys.readouterr().err


def test_a_file_of_options_and_a_run_to_resume_exclude_each_other(tmp_path, capsys):
    assert train.main(["--config=agents/ppo_2p.toml", f"--resume={tmp_path}"]) == 2
    assert "leave out --config" in capsys.readouterr().err


def test_a_resumed_run_may_change_its_length_alone(tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps({"config": {}, "command": "mine"}))
    assert train.main(["--resume", str(tmp_path), "--games", "3"]) == 2
    error = capsys.readouterr().err
    assert "--games may not change when a run of ppo is resumed; --steps, --on, --ray-add" in error


@pytest.mark.parametrize("learner", ["ppo", "value", "sb3"])
def test_help_shows_every_option(capsys, learner):
    if learner == "sb3":
        pytest.importorskip("sb3_contrib")
    with pytest.raises(SystemExit) as stopped:
        train.main(["--learner", learner, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    options = dataclasses.fields(train.arguments_of(train.options_of(learner)))
    for name in [*OPTIONS, *(field.name for field in options if field.name != "rules")]:
        name = name.replace("_", "-")
        assert f"--{name} " in shown or f"--{name}, --no-{name} " in shown, name
    assert "\n$ python train.py --resume runs/four" in shown
    assert f"(default: {learner})" in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hats = 3", "unknown option 'hats' of learner ppo; known are players"),
        ('players = "2"', "players must be a whole number from 2 to 4, got '2'"),
        ("epochs = 1.5", "option 'epochs'"),
        ('partners = "beside"', "partners must be opposite or adjacent, got 'beside'"),
        ("players = ", "not a TOML file"),
    ],
)
def test_a_wrong_file_of_options_is_reported(tmp_path, capsys, text, message):
    path = tmp_path / "options.toml"
    path.write_text(text)
    assert train.main(["--config", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert str(path) in error


@pytest.mark.parametrize("path", sorted(Path("agents").glob("*.toml")), ids=lambda p: p.stem)
def test_the_recipes_of_the_shipped_agents_are_valid(path):
    config = read(path)
    config.check()
    assert f"{config.players}p" in path.stem
