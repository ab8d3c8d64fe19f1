"""README and docs say what the code does: snippets run, tables are the code's own."""

import dataclasses
import importlib
import json
import re
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import carolus_env as ce
from carolus_env import carolus_magnus_v0, evaluation
from carolus_env.evaluation.ladder import rungs as rungs_of

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def snippets(page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(snippet, folder):
    """The names that a snippet leaves."""
    (folder / "snippet.py").write_text(snippet)
    return runpy.run_path(str(folder / "snippet.py"))


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_readme_snippets_run(number, tmp_path):
    names = run(SNIPPETS[number], tmp_path)
    if "Courtier" in names:
        for players in (2, 3, 4):
            pair = names["Courtier"](), ce.make("greedy")
            match = evaluation.play_pairing(pair, ce.Rules(players), 60, seed=1)
            assert match.win_rate[0] > 0.8


def test_the_evaluation_page_says_what_happens(tmp_path):
    page = (ROOT / "docs" / "formats.md").read_text().partition("## Results")[2]
    [snippet] = snippets("evaluation")
    names = run(snippet, tmp_path)
    assert (names["pairing"].deals, names["pairing"].games) == (50, 300)
    assert names["match"].win_rate[0] > 0.9
    assert 0.9 < names["low"] < names["pairing"].win_rate[0] <= names["high"]
    header, block = map(json.loads, re.findall(r"```json\n(.*?)```", page, re.DOTALL))
    plan = evaluation.Plan.from_dict(header)
    cup = evaluation.Tournament(plan)
    cup.run(file=tmp_path / "games.jsonl")
    first, written, *_ = map(json.loads, (tmp_path / "games.jsonl").read_text().splitlines())
    assert first.keys() == header.keys() and written.keys() == block.keys()
    assert {**written, "seconds": 0, "wall": 0} == {**block, "seconds": 0, "wall": 0}
    described = page.partition("| field |")[2].partition("The games are")[0]
    names = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", described, re.MULTILINE)))
    assert tuple(names) == cup.results.dtype.names


MISSING = {"integrations": ("ray", "pyspiel", "stable_baselines3")}
"""Libraries of a page's snippets that may not be here."""


@pytest.mark.parametrize(
    "page",
    [
        *("bots", "environments", "tutorial", "play"),
        *(
            pytest.param(page, marks=pytest.mark.slow)
            for page in ("integrations", "bench", "evaluation")
        ),
    ],
)
def test_each_snippet_of_a_page_runs_alone(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    if page == "play":
        pytest.importorskip("resvg")
        pytest.importorskip("pygame")
    if page == "tutorial":  # in place of the run that the page makes
        (tmp_path / "runs" / "first").mkdir(parents=True)
        model = ROOT / "carolus_env" / "networks" / "models" / "value_2p.safetensors"
        shutil.copy(model, tmp_path / "runs" / "first" / "best.safetensors")
    names = {}
    for snippet in snippets(page):
        missing = [name for name in MISSING.get(page, ()) if find_spec(name) is None]
        if page == "play":  # a short game, whose film is soon drawn
            snippet = snippet.replace("env(players=3)", "env(players=3, max_rounds=1)")
        if not any(name in snippet for name in missing):
            names |= run(snippet, tmp_path)
    if page == "play":
        assert {path.suffix for path in tmp_path.glob("game.*")} == {".svg", ".gif"}
    elif page == "integrations":  # an untrained policy loses
        assert np.mean(names["payoffs"]) < -0.2
        if "model" in names:  # as the page says
            from stable_baselines3.common.evaluation import evaluate_policy

            with pytest.raises(ce.IllegalActionError):
                evaluate_policy(names["model"], names["games"], n_eval_episodes=32)
    elif page == "bots":
        assert len(names["actions"]) == 100
        assert len(names["best"]) == 8
    elif page == "environments":  # a set-up roll of 7 dice brings 7/6 of each clan
        assert names["expected"] == pytest.approx([7 / 6] * 5)
    elif page == "tutorial":
        assert "('E+1 B builds 1', 'E+2 at 2')" in capsys.readouterr().out
        assert names["game"].over


def test_pages_for_writing_your_own_have_snippets_that_do_what_they_say(tmp_path):
    [bot], [learner, agent] = map(snippets, ("write_a_bot", "own_loop"))
    (tmp_path / "my_bot.py").write_text(bot)
    one, two = (f"{tmp_path / 'my_bot.py'}:{name}" for name in ("OneStep", "TwoSteps"))
    for players in (2, 3, 4):
        for pair in ((one, "greedy"), (two, one)):
            match = evaluation.play_pairing(pair, ce.Rules(players), 24, seed=1)
            assert match.win_rate[0] > 0.6
    assert run(learner, tmp_path)["match"].win_rate[0] > 0.9
    torch = pytest.importorskip("torch")
    (tmp_path / "my_torch.py").write_text(agent)
    torch.save(torch.nn.Linear(225, 95).state_dict(), tmp_path / "mine.pt")
    spec = f"{tmp_path / 'my_torch.py'}:Mine"
    assert evaluation.play_pairing((spec, "random"), ce.Rules(2), 4, seed=1).games == 4


def test_records_are_written_read_and_told_as_the_pages_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    env = carolus_magnus_v0.env(players=2)
    env.reset(seed=1)
    env.step(int(env.last()[0]["action_mask"].argmax()))
    (tmp_path / "snippet.py").write_text(snippets("formats")[0])
    names = runpy.run_path(str(tmp_path / "snippet.py"), {"env": env})
    assert names["png"].startswith(b"\x89PNG")
    run(*snippets("notation"), tmp_path)
    assert "round 0" in capsys.readouterr().out


@pytest.mark.slow
def test_the_pages_for_training_have_snippets_that_train(tmp_path, monkeypatch):
    pytest.importorskip("rich")
    from carolus_env import learners
    from carolus_env.commands import train

    monkeypatch.chdir(tmp_path)
    first, tracked, climb = snippets("training")
    assert run(first, tmp_path)["run"].done == 8192
    assert (tmp_path / "runs" / "mine" / "best.safetensors").exists()
    if not (is_here := find_spec("wandb") is not None):  # `make integrations ARGS=wandb` has it
        stand_in = SimpleNamespace(init=lambda **_: SimpleNamespace(log=log, finish=lambda: None))
        monkeypatch.setitem(sys.modules, "wandb", stand_in)
    logged, log = {}, lambda values, step: logged.setdefault(step, {}).update(values)
    monkeypatch.setenv("WANDB_MODE", "offline")
    tracker = run(first + tracked, tmp_path)["tracker"]
    summary = dict(tracker.summary) if is_here else logged[8192]
    assert summary["train/loss"] > 0
    (tmp_path / "climb.py").write_text(climb)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(learners, "LEARNERS", dict(learners.LEARNERS))
    importlib.import_module("climb")
    tiny = "--games 16 --match 4 --workers 2 --width 16 --hidden 4 --eval-games 2 --final-games 2"
    arguments = f"--learner climb --runs {tmp_path} --name r {tiny}"
    assert train.main(arguments.split()) == 0
    ce.make(f"value:{tmp_path}/r/best")


@pytest.mark.parametrize("name", ["first_steps", "train_and_watch", "write_a_search"])
def test_notebooks_run_and_show_what_they_say(name, capsys):
    if name == "train_and_watch":
        pytest.importorskip("tensorboard")
    names = runpy.run_path(str(ROOT / "docs" / "notebooks" / f"{name}.py"))
    output = capsys.readouterr().out
    assert names["result"].win_rate[0] > (0.7 if name == "train_and_watch" else 0.9), "last match"
    assert "nan" not in output
    if name == "train_and_watch":
        curve = names["run"].curve
        assert curve.training[-1]["loss"] < curve.training[0]["loss"], "it learnt"
        assert len(curve.evaluation) == 3
        assert "untrained: 20 %" in output
    if name == "write_a_search":
        assert (names["outcomes"].probabilities @ names["returns"]).sum() == pytest.approx(0)


def test_every_bot_has_its_section_with_a_table_of_its_options_and_tables_are_up_to_date():
    page = (ROOT / "docs" / "bots.md").read_text()
    for name, options in ce.bots.registry.OPTIONS.items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert section, name
        has_options = bool(dataclasses.fields(options))
        assert (f"<!-- table: options {name} -->" in section) == has_options
    tables = runpy.run_path(str(ROOT / "docs" / "tables.py"))
    assert tables["main"](["--check"]) == 0, "run `make tables`"


def test_pictures_are_up_to_date_links_lead_somewhere_and_every_page_is_in_the_navigation():
    pages = "".join(page.read_text() for page in (ROOT / "README.md", *ROOT.glob("docs/*.md")))
    pictures = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    assert pictures == set(re.findall(r"images/([\w.]+)", pages))
    for name, svg in runpy.run_path(str(ROOT / "docs" / "images.py"))["boards"]():
        assert (ROOT / "docs" / "images" / f"{name}.svg").read_text() == svg, "run `make tables`"
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/notebooks/*.py")):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page}: {link}"
    navigation = re.findall(
        r"^ +- [^:\n]+: (\S+\.(?:md|py))$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in (*docs.glob("*.md"), *docs.glob("*/*.py"))}
    assert set(navigation) == pages | {"index.md", "contributing.md", "changelog.md"}
    assert len(navigation) == len(set(navigation))


TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True
).stdout.split()
KINDS = ".c .css .js .md .py .toml .yml .yaml Makefile"
FOLDERS = "agents benchmarks carolus_env docs examples recipe tests"
MADE = {"index.md", "contributing.md", "changelog.md", "carolus_env/x.py"}
"""Pages that docs/website.py makes, and a file of a test."""


@pytest.mark.skipif(not TRACKED, reason="no checkout")
def test_every_file_that_code_or_a_page_names_exists():
    names, wrong = {Path(path).name for path in TRACKED}, []
    ends = "md|py|c|toml|json|js|svg|gz"
    path = rf"(?<![\w/.-])((?:{FOLDERS.replace(' ', '|')})/[\w./-]*\w\.(?:{ends}))\b"
    page = r"(?<![\w/.*{}-])([\w-]+\.md)\b"
    for file in (file for file in TRACKED if file.endswith(tuple(KINDS.split()))):
        text = (ROOT / file).read_text()
        named = {name for name in re.findall(path, text) if not (ROOT / name).exists()}
        named |= {name for name in re.findall(page, text) if name not in names}
        wrong += [
            f"{file}: {name}" for name in named - MADE if not (ROOT / file).with_name(name).exists()
        ]
    assert wrong == []


def test_every_agent_and_every_rung_that_a_page_names_exists():
    pages = {page.name: page.read_text() for page in (ROOT / "README.md", *ROOT.glob("docs/*.md"))}
    known = "|".join(ce.bots.registry.OPTIONS)
    rungs = {(rung.spec, round(rung.elo)) for players in (2, 3, 4) for rung in rungs_of(players)}
    for page, text in pages.items():
        for spec in set(re.findall(rf"(?<![\w/.-])((?:{known}):[\dp\w=.,]+)(?![\w/:])", text)):
            if not re.search(r"[A-Z]|\.\.\.", spec):
                ce.make(spec.rstrip(".,"))
        for table in re.findall(r"^ *against +win rate .* its Elo\n((?: *\w.*%.*\n)+)", text, re.M):
            for row in table.splitlines():
                spec, elo = row.split()[0], int(row.split()[-1])
                assert (spec, elo) in rungs, f"{page}: {spec}"


def test_a_game_without_a_render_mode_imports_nothing_heavy():
    heavy = "torch stable_baselines3 matplotlib rich pandas safetensors "
    heavy += "pygame PIL resvg starlette uvicorn ray carolus_env.integrations"
    code = (
        "import sys, carolus_env.evaluation\nfrom carolus_env import carolus_magnus_v0\n"
        "env = carolus_magnus_v0.env()\nenv.reset(seed=1)\n"
        "env.step(int(env.last()[0]['action_mask'].argmax()))\nenv.close()\n"
        f"print([m for m in {heavy.split()!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
