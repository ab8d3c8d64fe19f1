"""Other libraries: the runner of their checks, and networks as agents. No library is needed.

`make integrations` tries the libraries themselves.
"""

from __future__ import annotations

import ast
import json
import re
import runpy
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import carolus_env as ce
from benchmarks.integrations import __main__ as runner
from carolus_env import arena
from carolus_env.bots import AgentError, make
from carolus_env.integrations.agents import DecisionAgent, TurnAgent

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "integrations.md").read_text()
RESULT = {"library": "A", "version": "1", "checks": {"seeds": "ok"}, "limits": "none", "lines": 3}


def script(folder, text, requires="a==1"):
    path = folder / "check_a.py"
    path.write_text(f"# requires: {requires}\n{text}\n")
    return runner.Library("a", path, (requires,), ())


def run(library, folder, limit=60.0):
    work = folder / "work"
    work.mkdir()
    env = runner.surroundings(work, folder / "kernels")
    return runner.run_check(Path(sys.executable), library, work, env, limit)


# ------------------------------------------------------------------------------------ the runner


def test_every_check_has_versions_and_examples_that_parse():
    found = runner.libraries()
    assert {"sb3", "torchrl", "tianshou", "agilerl", "skrl"} <= set(found)
    for library in found.values():
        assert "==" in library.requires[0], library.name
        for file in (library.script, *library.examples):
            tree = ast.parse(file.read_text())
            assert ast.get_docstring(tree), file


def test_a_check_without_requirements_or_example_is_refused(tmp_path):
    path = tmp_path / "check_a.py"
    path.write_text("print(1)\n")
    with pytest.raises(runner.CheckError, match="requires"):
        runner.libraries(tmp_path)
    path.write_text("# requires: a==1\n# requires: b==2\n# example: nowhere.py\n")
    with pytest.raises(runner.CheckError, match="nowhere"):
        runner.libraries(tmp_path)
    (tmp_path / "nowhere.py").write_text("")
    assert runner.libraries(tmp_path, tmp_path)["a"].requires == ("a==1", "b==2")


def test_a_check_runs_elsewhere_without_this_clone(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    told = "os.environ.get('PYTHONPATH'), os.getcwd(), os.environ['HOME']"
    found = f"{RESULT} | {{'limits': str(({told}))}}"
    text = f"import json, os\nprint('a word')\nprint(json.dumps({found}))"
    result = run(script(tmp_path, text), tmp_path)
    assert result["limits"] == str((None, str(tmp_path / "work"), str(tmp_path / "work")))
    assert (tmp_path / "work" / "output.txt").read_text().startswith("a word\n")


def test_a_check_that_fails_or_says_nothing_is_told(tmp_path):
    for number, (text, reason) in enumerate(
        (
            ("raise SystemExit('masks are lost')", "exit code 1"),
            ("print('all is well')", "no result"),
            ("print({'library'})", "no result"),
            ('print(\'{"library": "A"}\')', "'version' must be a str"),
        )
    ):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        with pytest.raises(runner.CheckError, match=reason):
            run(script(folder, text), folder)


def test_a_check_that_takes_too_long_is_killed_with_what_it_started(tmp_path):
    text = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)"
    )
    begun = time.monotonic()
    with pytest.raises(runner.CheckError, match="longer"):
        run(script(tmp_path, text), tmp_path, limit=3.0)
    assert time.monotonic() - begun < 30
    child = int((tmp_path / "work" / "output.txt").read_text())
    for _ in range(100):
        if not (Path("/proc") / f"{child}").exists() or "zombie" in status(child):
            return
        time.sleep(0.1)
    pytest.fail("its child still runs")


def status(process):
    try:
        return (Path("/proc") / f"{process}" / "status").read_text()
    except OSError:
        return "zombie"


def test_results_replace_those_of_the_same_library():
    old = [{"name": "a", "version": "1"}, {"name": "c", "version": "1"}]
    new = runner.merged(old, [{"name": "a", "version": "2"}, {"name": "b", "version": "1"}])
    assert [(row["name"], row["version"]) for row in new] == [("a", "2"), ("b", "1"), ("c", "1")]


def test_an_unknown_library_is_refused_by_name(capsys):
    with pytest.raises(SystemExit):
        runner.main(["torchlr"])
    assert "unknown library 'torchlr'; known are agilerl" in capsys.readouterr().err


def test_lines_are_counted_without_comments_and_docstrings(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(runner.FOLDER))
    from checking import lines_of

    path = tmp_path / "a.py"
    path.write_text(
        'def make():\n    """Two\n    lines."""\n\n    # one\n    a = 1\n    return a\n'
    )
    assert lines_of(path, ["make"]) == 3
    assert lines_of(path, ["other"]) == 0


# ------------------------------------------------------------------------------------ the page


def test_every_result_has_its_section_and_the_version_that_was_asked_for():
    rows = json.loads((ROOT / "benchmarks" / "results" / "integrations.json").read_text())
    known = runner.libraries()
    for row in rows:
        assert f"\n## {row['library']}\n" in PAGE, row["library"]
        library = known[row["name"]]
        assert row["requires"] == list(library.requires), "run `make integrations` again"
        assert row["version"] == library.requires[0].partition("==")[2]


def test_the_page_names_every_example_and_has_snippets_that_parse():
    for library in runner.libraries().values():
        for example in library.examples:
            assert f"(../examples/{example.name})" in PAGE, example.name
    for snippet in snippets():
        ast.parse(snippet)


def test_snippets_that_need_no_other_library_run(tmp_path):
    others = ("torchrl", "tianshou", "agilerl", "skrl", "ray", "pyspiel", "minari")
    ran = 0
    for number, snippet in enumerate(snippets()):
        if any(re.search(rf"^\s*(from|import) {name}\b", snippet, re.M) for name in others):
            continue
        if "sb3_contrib" in snippet:
            pytest.importorskip("sb3_contrib")
        path = tmp_path / f"snippet_{number}.py"
        path.write_text(snippet)
        runpy.run_path(str(path))
        if "class Mine" in snippet:
            assert plays(make(f"{path}:Mine")) > 0.5
        ran += 1
    assert ran >= 3


def snippets():
    return re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


# ------------------------------------------------------------------------------------ agents


def plays(agent, players=2):
    found = arena.play_pairing((agent, make("random")), ce.Rules(players), 20, seed=1)
    return found.win_rate[0]


class First(TurnAgent):
    """Always the first candidate: in a turn what `planner` plays."""

    def choose(self, rows, masks):
        assert rows.dtype == np.float32 and rows.shape[:2] == masks.shape
        assert (rows[..., 0] == masks).all() and masks.any(axis=1).all()
        return masks.argmax(axis=1)


class Last(TurnAgent):
    def choose(self, rows, masks):
        return masks.sum(axis=1) - 1


class LegalFirst(DecisionAgent):
    def choose(self, observations, masks):
        assert observations.dtype == self.dtype
        return masks.argmax(axis=1)

    def __init__(self, players, dtype):
        super().__init__(players, dtype)
        self.dtype = np.dtype(dtype)


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("kind", [First, Last])
def test_a_turn_agent_plays_the_candidates_that_the_environment_lists(players, kind):
    """Games of one learner in the environment, and of the agent, are the same."""
    agent = kind(players)
    env = gymnasium.make("CarolusMagnusTurns-v0", players=players, opponents=agent, seat=0)
    seen, info = env.reset(seed=3)
    over = False
    while not over:
        chosen = agent.choose(seen[None], info["action_mask"][None].astype(bool))[0]
        seen, _, terminated, truncated, info = env.step(chosen)
        over = terminated or truncated
    ended = env.unwrapped._vector.games.states.copy()
    games, streams = ce.new_games(ce.Rules(players), 1, seed=3), ce.new_streams(3, 1)
    while not ce.is_over(games)[0]:
        ce.step(games, agent.act(games, streams))
    for field in ("reason", "courts", "castles", "round", "region_owner"):
        assert (games[field] == ended[field]).all(), field


def test_a_turn_is_carried_out_as_it_was_chosen_whoever_plays_beside():
    many, alone = First(2), First(2)
    games, streams = ce.new_games(ce.Rules(), 30, seed=5), ce.new_streams(5, 30)
    one, stream = ce.new_games(ce.Rules(), 1, seed=5), ce.new_streams(5, 1)
    while not ce.is_over(one)[0]:
        rows = np.flatnonzero(~ce.is_over(games))
        actions = many.act(games[rows], streams[rows])
        assert rows[0] == 0 and actions[0] == alone.act(one, stream)[0]
        ce.step(games, actions, rows=rows)
        ce.step(one, actions[:1])


def test_a_turn_goes_on_though_the_dice_to_come_are_hidden():
    agent = Last(2)
    games, streams = ce.new_games(ce.Rules(), 1, seed=5), ce.new_streams(5, 1)
    went_on = 0
    for _ in range(80):
        begun = dict(agent._plans)
        ce.step(games, agent.act(games, streams))
        hidden = games.copy()
        hidden["generator"] = 0
        if set(agent._plans) - set(begun):
            assert agent.act(hidden, streams) == agent.act(games, streams)
            went_on += agent._plans[next(reversed(agent._plans))] != ()
    assert went_on > 10


def test_plans_that_nobody_asked_for_are_forgotten(monkeypatch):
    monkeypatch.setattr("carolus_env.integrations.agents.KEPT", 50)
    agent = Last(2)
    games, streams = ce.new_games(ce.Rules(), 10, seed=5), ce.new_streams(5, 10)
    for _ in range(60):
        rows = np.flatnonzero(~ce.is_over(games))
        ce.step(games, agent.act(games[rows], streams[rows]), rows=rows)
    assert 0 < len(agent._plans) <= 50


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_a_decision_agent_sees_what_the_environments_show(dtype):
    assert 0 <= plays(LegalFirst(3, dtype), players=3) <= 1


def test_wrong_answers_and_other_games_are_told():
    games, streams = ce.new_games(ce.Rules(3), 2, seed=1), ce.new_streams(1, 2)
    for agent in (First(2), LegalFirst(2, "uint8")):
        with pytest.raises(AgentError, match=r"plays games of 2 players, got \[3\]"):
            agent.act(games, streams)
    agent = First(3)
    for answer, reason in (
        (np.array([0, 99]), "index from 0 to 4, got 99"),
        (np.array([-1, 0]), "index from 0 to 4, got -1"),
        (np.array([0.0, 1.0]), "2 integers"),
        (np.array([0]), "2 integers"),
    ):
        agent.choose = lambda rows, masks, answer=answer: answer
        with pytest.raises(AgentError, match=reason):
            agent.act(games, streams)
    with pytest.raises(ValueError, match="players"):
        First(5)
    with pytest.raises(ValueError, match="float64"):
        LegalFirst(2, "float64")
