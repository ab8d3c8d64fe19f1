"""README and docs say what the code does: snippets run, tables are the code's own."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import carolus_env as ce
from carolus_env import arena, carolus_magnus_v0
from carolus_env.engine import observation

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_readme_snippets_run(number, tmp_path):
    source = tmp_path / f"snippet_{number}.py"
    source.write_text(SNIPPETS[number])
    if "sb3_contrib" in SNIPPETS[number]:
        pytest.importorskip("sb3_contrib")
    names = runpy.run_path(str(source))
    if "expected" in names:  # what a set-up roll of 7 dice brings of each clan: 7/6
        assert names["expected"] == pytest.approx([7 / 6] * 5)
    if "Cautious" in names:
        games = ce.new_games(ce.Rules(), 8, seed=1)
        ce.step(games, names["Cautious"]().act(games, ce.new_streams(1, 8)))


def test_readme_has_its_snippets():
    assert len(SNIPPETS) == 9


def test_the_evaluation_page_says_what_happens(tmp_path):
    page = (ROOT / "docs" / "evaluation.md").read_text()
    [snippet] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "snippet.py").write_text(snippet)
    names = runpy.run_path(str(tmp_path / "snippet.py"))
    assert (names["pairing"].deals, names["pairing"].games) == (50, 300)
    assert 0.9 < names["low"] < names["pairing"].win_rate[0] <= names["high"]
    header, game = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", page, re.DOTALL))
    plan = arena.Plan.from_dict(header)
    arena.Tournament(plan).run(file=tmp_path / "games.jsonl")
    lines = (tmp_path / "games.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == game
    assert json.loads(lines[0]).keys() == header.keys()
    described = page.partition("| key |")[2].partition("These lines")[0]
    keys = re.findall(r"^\| `(\w+)` \|", described, re.MULTILINE)
    assert list(game) == keys


def test_the_bots_page_has_snippets_that_run(tmp_path):
    page = (ROOT / "docs" / "bots.md").read_text()
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        (tmp_path / "snippet.py").write_text(snippet)
        names |= runpy.run_path(str(tmp_path / "snippet.py"))
    assert len(names["actions"]) == 100
    assert len(names["best"]) == 8


@pytest.mark.slow
def test_the_models_page_has_snippets_that_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "models.md").read_text()
    for snippet in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        (tmp_path / "snippet.py").write_text(snippet)
        names = runpy.run_path(str(tmp_path / "snippet.py"))
        assert "log_policy" not in names or names["log_policy"].shape == (100, 95)


def test_the_page_for_writing_your_own_has_snippets_that_do_what_it_says(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "your_own.md").read_text()
    bot, wrapper, learner, climber = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my_bot.py").write_text(bot)
    specs = [f"{tmp_path / 'my_bot.py'}:OneStep", "random"]
    for players in (2, 3, 4):
        pair = [ce.make(spec) for spec in specs]
        match = arena.play_pairing(pair, ce.Rules(players), 60, seed=1)
        assert match.win_rate[0] > 0.9
    (tmp_path / "wrapper.py").write_text(wrapper)
    names = runpy.run_path(str(tmp_path / "wrapper.py"))
    assert abs(names["total"]) == pytest.approx(1), "the potential is taken back"
    assert names["reward"] != names["total"], "the last reward is shaped"
    (tmp_path / "learner.py").write_text(learner)
    assert runpy.run_path(str(tmp_path / "learner.py"))["match"].win_rate[0] > 0.9
    pytest.importorskip("tyro")
    from carolus_env import learners
    from carolus_env.commands import train

    (tmp_path / "climb.py").write_text(climber)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(learners, "LEARNERS", dict(learners.LEARNERS))
    importlib.import_module("climb")
    tiny = "--games 16 --match 4 --workers 2 --width 16 --hidden 4 --eval-games 2 --final-games 2"
    run = f"--learner climb --runs {tmp_path} --name r {tiny} --on processes"
    assert train.main(run.split()) == 0
    ce.make(f"value:{tmp_path}/r/best")


@pytest.mark.parametrize("name", ["first_steps", "train_and_watch", "write_a_search"])
def test_notebooks_run_and_show_what_they_say(name, capsys):
    if name == "train_and_watch":
        pytest.importorskip("tensorboard")
    names = runpy.run_path(str(ROOT / "docs" / "notebooks" / f"{name}.py"))
    assert names["result"].win_rate[0] > 0.9, "the last match"
    assert "nan" not in capsys.readouterr().out
    if name == "train_and_watch":
        first, last = names["run"].curve.evaluation
        assert first["high"] < last["low"], "it learnt"
    if name == "write_a_search":
        assert (names["outcomes"].probabilities @ names["returns"]).sum() == pytest.approx(0)


@pytest.mark.slow
def test_the_training_page_has_a_snippet_that_trains(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "training.md").read_text()
    snippet = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    (tmp_path / "snippet.py").write_text(snippet)
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(tmp_path / "snippet.py"))
    assert names["run"].done == 8192
    assert (tmp_path / "runs" / "mine" / "best.json").exists()


def test_every_bot_has_its_page_and_its_options_there():
    page = (ROOT / "docs" / "bots.md").read_text()
    for name, options in ce.bots.registry.OPTIONS.items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert section, name
        table = section.partition(f"<!-- table: options {name} -->")[2].partition("<!-- end -->")[0]
        named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
        assert named == [field.name for field in dataclasses.fields(options)]


def test_tables_in_docs_are_up_to_date():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "tables.py", "--check"],
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}: run `make tables`"


def test_pictures_are_shown_and_the_boards_up_to_date():
    pages = "".join(page.read_text() for page in (ROOT / "README.md", *ROOT.glob("docs/*.md")))
    pictures = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    assert pictures == set(re.findall(r"images/([\w.]+)", pages))
    for name, svg in runpy.run_path(str(ROOT / "docs" / "images.py"))["boards"]():
        assert (ROOT / "docs" / "images" / f"{name}.svg").read_text() == svg, "run `make tables`"


def test_links_in_pages_lead_somewhere():
    pages = (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/notebooks/*.py"))
    for page in (ROOT / "README.md", *pages, ROOT / "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page}: {link}"


def test_the_environments_page_gives_the_lengths_of_observations():
    lengths = [observation.length(players) for players in (2, 3, 4)]
    assert "{} (2 players), {} (3), {} (4)".format(*lengths) in carolus_magnus_v0.__doc__
    assert f"(len(rows), {lengths[0]}) uint8" in README


def test_record_size_in_pages_is_the_dtypes():
    for text in (README, (ROOT / "docs" / "state.md").read_text(), carolus_magnus_v0.__doc__):
        assert f"{ce.STATE.itemsize} bytes" in text


def test_the_wheel_ships_the_package_alone():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["carolus_env"]
    assert (ROOT / "carolus_env" / "py.typed").exists()
    ignored = (ROOT / ".gitignore").read_text()  # the wheel leaves out what git does
    assert "safetensors" not in ignored
    assert "models" not in ignored


def test_importing_the_package_imports_nothing_heavy():
    heavy = "torch stable_baselines3 matplotlib rich tyro pandas safetensors "
    heavy += "pygame PIL resvg starlette uvicorn ray"
    code = (
        "import sys, carolus_env, carolus_env.arena\n"
        f"print([m for m in {heavy.split()!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
