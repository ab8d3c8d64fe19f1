"""What ships: the agents, options and files that it names exist, and the suites measure."""

import json
import shlex
from importlib import import_module

import numpy as np
import pytest
from strategies import every_number
from test_docs import ROOT

from benchmarks import ladder as ladder_command
from benchmarks import suite as suite_command
from carolus_env import bots
from carolus_env.bots.network import TYPES
from carolus_env.commands import evaluate
from carolus_env.evaluation import bench, ladder
from carolus_env.evaluation.rollouts import value_function
from carolus_env.evaluation.suite import Suite, shipped
from carolus_env.learners import read_config
from carolus_env.networks.files import FOLDER
from carolus_env.system.command import parse

HALF = Suite.half


@pytest.fixture
def few(monkeypatch):
    """The shipped suites, of which a few decisions are asked."""
    monkeypatch.setattr(Suite, "half", lambda suite, name: HALF(suite, name)[::40])


@every_number
def test_agents_and_commands_that_suites_name_can_be_made(players):
    suite = shipped(players)
    header = suite.header
    named = {header["base"], *header["table"], *header["proposers"]}
    for spec in named.union(*(one.seated for one in suite.decisions)):
        bots.make(spec)
    value_function(header["value"], players)
    words = shlex.split(header["command"])
    assert parse(suite_command.SuiteOptions, words[3:], "", "").options.recipe.players == players


def test_rungs_recipes_and_the_commands_of_models_can_be_made():
    shown = json.loads(ladder.FILE.read_text())
    assert shown["command"] == ladder_command.COMMAND
    for players, rows in shown["players"].items():
        for row in rows:
            assert bots.make(row["spec"]).act is not None, players
    recipes = sorted((ROOT / "agents").glob("*.toml"))
    assert len(recipes) == 6
    for recipe in recipes:
        config = read_config(recipe)
        config.check()
        for spec in filter(None, (getattr(config, "opponent", None),)):
            bots.make(spec)
    for file in sorted(FOLDER.glob("*.safetensors")):
        single = file.stem.startswith("decisions")
        about = TYPES[file.stem.partition("_")[0]].load(file).about
        program, script, *words = shlex.split(about["command"])
        assert program == "python"
        if single:
            options = parse(import_module("examples.ppo_torch").Args, words, "", "").options
            assert (script, options.players) == ("examples/ppo_torch.py", int(file.stem[-2]))
            assert (options.seed, options.steps) == (about["seed"], about["steps"])
        else:
            assert (script, words[0]) == ("train.py", "--config") and ROOT / words[1] in recipes
        assert bots.make(file.stem.replace("_", ":")).name == file.stem.replace("_", ":")


@pytest.mark.parametrize("agent", ["random", "value:3p"])
def test_the_shipped_suite_measures_choices_that_it_does_not_list(agent, few, tmp_path, capsys):
    out = tmp_path / "out"
    assert evaluate.main([agent, "--suite", "--players", "3", "--out", str(out)]) == 0
    assert "3 players: 13 decisions, base rollout_policy" in capsys.readouterr().out
    [suite] = json.loads((out / "suite.json").read_text())["suites"]
    [row] = suite["agents"]
    unlisted = ~np.array(row["listed"])
    assert unlisted.any()
    assert (np.array(row["errors"])[unlisted] > 0).all()


def test_an_agent_is_measured_by_the_suites_that_it_can_play(few, tmp_path, capsys):
    out = tmp_path / "out"
    assert evaluate.main(["value:2p", "planner", "--suite", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    for players in (3, 4):
        assert f"Left out of {players} players: agent 'value:2p': has a model for 2 players" in text
    suites = json.loads((out / "suite.json").read_text())["suites"]
    assert [[row["spec"] for row in suite["agents"]] for suite in suites] == [
        ["value:2p", "planner"],
        ["planner"],
        ["planner"],
    ]
    assert evaluate.main(["value:2p", "--suite", "--players", "3"]) == 2
    assert "not for 3" in capsys.readouterr().err


@pytest.fixture
def short(few, monkeypatch):
    """The protocol with a deal against one rung, for 2 and 3 players."""
    for name, value in (("DEALS", {2: 1, 3: 1}), ("RUNGS", 1), ("GUESS_GAMES", 2)):
        monkeypatch.setattr(bench, name, value)


def test_the_protocol_leaves_out_players_that_the_agent_does_not_play(short, tmp_path, capsys):
    assert evaluate.main(["value:2p", "--bench", "--out", str(tmp_path), "--quiet"]) == 0
    said = capsys.readouterr()
    assert "3 players are left out: agent 'value:2p': has a model for 2 players" in said.err
    assert "CarolusBench 1, 2 players: " in said.out and "3 players" not in said.out
    content = json.loads((tmp_path / "bench.json").read_text())
    assert list(content["players"]) == ["2"] and list(content["left_out"]) == ["3"]
    assert evaluate.main(["value:2p", "--bench", "--players", "3"]) == 2
    assert "not for 3" in capsys.readouterr().err


LATE = """
import carolus_env as ce


class Late(ce.Agent):
    def act(self, states, generators):
        if states["players"][0] == 3 and states["round"].max() > 0:
            raise RuntimeError("too late")
        return ce.legal_masks(states).argmax(axis=1)
"""


def test_the_protocol_keeps_what_was_played_when_the_agent_fails(short, tmp_path, capsys):
    (tmp_path / "late.py").write_text(LATE)
    spec = f"{tmp_path / 'late.py'}:Late"
    assert evaluate.main([spec, "--bench", "--out", str(tmp_path), "--quiet"]) == 2
    said = capsys.readouterr()
    assert "too late" in said.err and "CarolusBench 1, 2 players: " in said.out
    content = json.loads((tmp_path / "bench.json").read_text())
    assert list(content["players"]) == ["2"]
