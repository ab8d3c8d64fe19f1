"""Every option of `Rules` is an option of every interface, with nothing written there."""

import json
import typing
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

from carolus_env import carolus_magnus_v0, engine
from carolus_env.commands import dataset, evaluate, train
from carolus_env.engine.rules import OPTIONS, RuleOptions, Rules
from carolus_env.learners import config_of
from carolus_env.notation import from_text, to_line
from carolus_env.system.command import HelpShown, parse
from carolus_env.system.options import value_text

OTHERS = [name for name in OPTIONS if name != "players"]


def another(name: str) -> Rules:
    """Rules of which only this option is not the default."""
    entry = OPTIONS[name]
    among = entry.among
    value = among[1] if isinstance(entry.default, str) else None
    if value is None and not entry.or_none:
        value = among[0] + 2
    return replace(Rules(), **{name: value})


def test_editors_know_the_same_options():
    hints = typing.get_type_hints(Rules)
    assert typing.get_type_hints(RuleOptions) == {name: hints[name] for name in OTHERS}


def words_of(name: str) -> list[str]:
    return [f"--{name.replace('_', '-')}", value_text(getattr(another(name), name))]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("kind", [evaluate.EvaluateOptions, dataset.DatasetOptions])
def test_commands_take_every_option(kind, name, capsys):
    needed = ["--out", "data", "random"] if kind is dataset.DatasetOptions else []
    options, given = parse(kind, [*needed, *words_of(name)], "carolus", "")
    assert options.rules == another(name) and name in given
    with pytest.raises(HelpShown):
        parse(kind, ["--help"], "carolus", "")
    assert OPTIONS[name].about in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", OPTIONS)
def test_runs_take_every_option_from_the_command_line_and_from_files(tmp_path, name):
    option, value = words_of(name)
    value = [value] if name != "partners" else [value, "--players", "4"]
    job = train.read_job(["--runs", str(tmp_path), "--name", "r", option, *value])
    assert getattr(job.config.rules, name) == getattr(another(name), name)
    assert config_of(json.loads((job.folder / "config.json").read_text())["config"]) == job.config


@pytest.mark.parametrize("name", OTHERS)
def test_environments_take_every_option(name):
    rules = another(name)
    options = {name: getattr(rules, name)}
    for make in (carolus_magnus_v0.env, carolus_magnus_v0.raw_env):
        assert make(**options).unwrapped.rules == rules
    assert carolus_magnus_v0.parallel_env(**options).aec_env.rules == rules
    for key in ("CarolusMagnus-v0", "CarolusMagnusTurns-v0"):
        assert gymnasium.make(key, **options).unwrapped._vector.games.rules == rules
        assert gymnasium.make_vec(key, num_envs=2, **options).unwrapped.games.rules == rules


@pytest.mark.parametrize("name", OTHERS)
def test_states_and_positions_keep_every_option(name):
    games = engine.new_games(another(name), 1, seed=1)
    line = to_line(games[0])
    assert f"{name}={value_text(getattr(another(name), name))}" in line
    for copied in (from_text(line), engine.next_games(games)):
        assert engine.rules_of(copied[0]) == another(name)


@pytest.mark.parametrize("kind", ["CarolusMagnus-v0", "CarolusMagnusTurns-v0", None])
def test_an_unknown_option_is_named_with_the_known_ones(kind):
    make = carolus_magnus_v0.env if kind is None else lambda **given: gymnasium.make(kind, **given)
    with pytest.raises(TypeError, match="unknown option 'crowns'; known are") as error:
        make(crowns=3)
    for name in (*OPTIONS, "render_mode"):
        assert name in str(error.value)


def test_the_page_has_every_option():
    pytest.importorskip("starlette")
    from carolus_env.play import server
    from carolus_env.play.session import Roster

    menu = server.Api(Roster()).menu()
    listed = {option["name"]: option for option in menu["options"]}
    assert list(listed) == list(OPTIONS)
    script = (Path(server.__file__).parent / "static" / "start.js").read_text()
    assert "menu.options" in script
    for name in set(OTHERS) - {"partners"}:
        assert name not in script, "the form is made from the menu"
