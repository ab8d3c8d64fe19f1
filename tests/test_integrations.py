"""Networks of other libraries as agents, episodes for Minari; `make integrations` tries both."""

import ast
import re
import runpy
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from integrations import LIBRARIES
from test_arrays import records_of

import carolus_env as ce
from carolus_env import engine, evaluation
from carolus_env.bots import AgentError, make
from carolus_env.commands import dataset
from carolus_env.engine.observation import observe
from carolus_env.engine.rules import BY_MAX_ROUNDS, Rules
from carolus_env.integrations import minari
from carolus_env.integrations.agents import DecisionAgent, TurnAgent
from carolus_env.records import positions
from carolus_env.records.arrays import Packed, load_arrays, pack

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "integrations.md").read_text()


def test_the_page_names_every_library_with_its_version_and_example():
    for name, library in LIBRARIES.items():
        requirement = library.requires.split()[0]
        assert f"`{requirement}`" in PAGE, name
        if example := library.example.partition(":")[0]:
            assert f"(../examples/{example})" in PAGE
            assert ast.get_docstring(ast.parse((ROOT / "examples" / example).read_text()))


def test_snippets_parse_and_those_that_need_no_other_library_run(tmp_path):
    others = (
        "torchrl",
        "tianshou",
        "agilerl",
        "skrl",
        "pufferlib",
        "ray",
        "pyspiel",
        "minari",
        "sb3_contrib",
    )
    ran = 0
    for number, snippet in enumerate(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)):
        ast.parse(snippet)
        if any(re.search(rf"^\s*(from|import) {name}\b", snippet, re.M) for name in others):
            continue
        path = tmp_path / f"snippet_{number}.py"
        path.write_text(snippet)
        runpy.run_path(str(path))
        if "class Mine" in snippet:
            assert plays(make(f"{path}:Mine")) > 0.5
        ran += 1
    assert ran == 2


def plays(agent, players=2):
    result = evaluation.play_pairing((agent, make("random")), ce.Rules(players), 20, seed=1)
    return result.win_rate[0]


class First(TurnAgent):
    """Always the first candidate: in a turn what `planner` plays."""

    def choose(self, rows, masks):
        assert rows.dtype == np.float32 and rows.shape[:2] == masks.shape
        assert (rows[..., 0] == masks).all() and masks.any(axis=1).all()
        return masks.argmax(axis=1)


class Last(First):
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
    obs, info = env.reset(seed=3)
    over = False
    while not over:
        chosen = agent.choose(obs[None], info["action_mask"][None].astype(bool))[0]
        obs, _, terminated, truncated, info = env.step(chosen)
        over = terminated or truncated
    ended = env.unwrapped._vector.games.states.copy()
    games, streams = ce.new_games(ce.Rules(players), 1, seed=3), ce.new_streams(3, 1)
    while not ce.is_over(games)[0]:
        ce.step(games, agent.act(games, streams))
    for field in ("reason", "courts", "castles", "round", "region_owner"):
        assert (games[field] == ended[field]).all(), field


@pytest.mark.parametrize("kind", [First, Last])
def test_a_turn_is_carried_out_as_it_was_chosen_whoever_plays_beside_and_without_the_dice(kind):
    many, alone = kind(2), kind(2)
    games, streams = ce.new_games(ce.Rules(), 30, seed=5), ce.new_streams(5, 30)
    one, stream = ce.new_games(ce.Rules(), 1, seed=5), ce.new_streams(5, 1)
    for _ in range(80):
        rows = np.flatnonzero(~ce.is_over(games))
        actions = many.act(games[rows], streams[rows])
        hidden = one.copy()
        hidden["generator"] = 0
        assert rows[0] == 0 and actions[0] == alone.act(one, stream) == alone.act(hidden, stream)
        ce.step(games, actions, rows=rows)
        ce.step(one, actions[:1])


def test_wrong_answers_and_other_games_are_refused():
    for dtype in ("float32", "uint8"):  # it is shown what the environments show
        assert 0 <= plays(LegalFirst(3, dtype), players=3) <= 1
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


@pytest.mark.parametrize("rules", [Rules(2), Rules(3), Rules(4), Rules(3, max_rounds=2)], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_an_episode_is_one_seats_side_of_a_game(rules, dtype):
    records = records_of(rules, 3)
    result = list(minari.episodes(pack(records), dtype))
    assert [(one.game, one.seat) for one in result] == [
        (game, seat) for game in range(3) for seat in range(rules.players)
    ]
    for one in result:
        states, events = positions(records[one.game]), records[one.game]["events"]
        end = states[-1:]
        mine = [
            k
            for k, event in enumerate(events)
            if event.get("player") == one.seat and "action" in event
        ]
        np.testing.assert_array_equal(one.actions, [events[k]["action"] for k in mine])
        shown, seats = states[[*mine, -1]], np.full(len(mine) + 1, one.seat)
        np.testing.assert_array_equal(one.observations, observe(shown, seats, dtype=dtype))
        np.testing.assert_array_equal(one.masks[:-1], engine.legal_masks(states[mine]))
        assert len(one.masks) == len(mine) + 1
        assert not one.masks[-1].any() and not one.rewards[:-1].any()
        assert one.rewards[-1] == np.float32(engine.returns(end)[0, one.seat])
        cut_off = end["reason"][0] == BY_MAX_ROUNDS
        assert not one.terminations[:-1].any() and one.terminations[-1] == (not cut_off)
        assert not one.truncations[:-1].any() and one.truncations[-1] == cut_off


def test_many_games_are_taken_a_few_at_a_time(monkeypatch):
    games = pack(records_of(Rules(2)))
    full = list(minari.episodes(games))
    monkeypatch.setattr(minari, "_AT_ONCE", 2)
    reported: list[int] = []
    split = list(minari.episodes(games, progress=reported.append))
    assert reported == [2, 4, 5] and len(full) == len(split) == 10
    for one, other in zip(full, split, strict=True):
        for here, there in zip(one, other, strict=True):
            np.testing.assert_array_equal(here, there)


def test_the_environment_that_is_named_has_the_rules_and_they_are_one_set():
    rules = Rules(4, partners="adjacent", max_rounds=7)
    spec = minari.environment_spec(rules, "uint8", "greedy")
    env = gymnasium.make(type(spec).from_json(spec.to_json()))
    obs, _ = env.reset(seed=1)
    assert obs.dtype == np.uint8 and env.unwrapped._vector.games.rules == rules
    games = [pack(records_of(Rules(2, max_rounds=rounds), 1)) for rounds in (2, 3)]
    with pytest.raises(ValueError, match="one set of rules, got 2"):
        minari.rules_of_all(Packed.joined(games))


def test_a_folder_tells_how_it_was_made_and_who_sat_where(tmp_path):
    words = ["random", "greedy", "--games", "4", "--workers", "1", "--seed", "9"]
    assert dataset.main([*words, "--out", str(tmp_path / "data")]) == 0
    games, job, tables = minari._read(tmp_path / "data")
    assert job["agents"] == ["random", "greedy"] and job["games_a_deal"] == 2
    assert job["command"].startswith("carolus dataset random greedy --games 4")
    assert tables.shape == (4, 2) and sorted(tables[0]) == [0, 1]
    result = list(minari.episodes(games))
    data = load_arrays(tmp_path / "data")
    assert sum(len(one.actions) for one in result) == len(data.actions)
    text = minari._description(minari.rules_of_all(games), 4, job)
    assert "4 games" in text and job["command"] in text and "2 games of a deal" in text


def test_without_minari_nothing_is_played(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "minari", None)
    words = ["random", "--games", "4", "--out", str(tmp_path / "data"), "--minari", "carolus/x-v0"]
    assert dataset.main(words) == 2
    assert "pip install 'minari[hdf5]' pillow" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
