"""Games as episodes for Minari: one seat's side each. `make integrations` opens them in Minari."""

from __future__ import annotations

import sys

import gymnasium
import numpy as np
import pytest
from test_arrays import record_of

from carolus_env import engine
from carolus_env.commands import dataset
from carolus_env.engine.observation import observe
from carolus_env.engine.rules import BY_MAX_ROUNDS, Rules
from carolus_env.integrations import minari
from carolus_env.records import positions
from carolus_env.records.arrays import Packed, load_arrays, pack


@pytest.mark.parametrize("rules", [Rules(2), Rules(3), Rules(4), Rules(3, max_rounds=2)], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_an_episode_is_one_seats_side_of_a_game(rules, dtype):
    records = [record_of(rules, seed) for seed in range(3)]
    result = list(minari.episodes(pack(records), dtype))
    assert [(one.game, one.seat) for one in result] == [
        (game, seat) for game in range(3) for seat in range(rules.players)
    ]
    for one in result:
        states = positions(records[one.game])
        end, seat = states[-1:], np.array([one.seat])
        mine = [
            (event["action"], state[None].copy())
            for event, state in zip(records[one.game]["events"], states, strict=False)
            if event.get("player") == one.seat and "action" in event
        ]
        np.testing.assert_array_equal(one.actions, [action for action, _ in mine])
        for step, (_, state) in enumerate(mine):
            np.testing.assert_array_equal(
                one.observations[step], observe(state, seat, dtype=dtype)[0]
            )
            np.testing.assert_array_equal(one.masks[step], engine.legal_masks(state)[0])
        np.testing.assert_array_equal(one.observations[-1], observe(end, seat, dtype=dtype)[0])
        assert len(one.observations) == len(one.masks) == len(mine) + 1
        assert not one.masks[-1].any() and not one.rewards[:-1].any()
        assert one.rewards[-1] == np.float32(engine.returns(end)[0, one.seat])
        cut_off = end["reason"][0] == BY_MAX_ROUNDS
        assert not one.terminations[:-1].any() and one.terminations[-1] == (not cut_off)
        assert not one.truncations[:-1].any() and one.truncations[-1] == cut_off


def test_many_games_are_taken_a_few_at_a_time(monkeypatch):
    games = pack([record_of(Rules(2), seed) for seed in range(5)])
    whole = list(minari.episodes(games))
    monkeypatch.setattr(minari, "_AT_ONCE", 2)
    told: list[int] = []
    split = list(minari.episodes(games, progress=told.append))
    assert told == [2, 4, 5] and len(whole) == len(split) == 10
    for one, other in zip(whole, split, strict=True):
        for here, there in zip(one, other, strict=True):
            np.testing.assert_array_equal(here, there)


def test_the_environment_that_is_named_has_the_rules_and_spaces():
    rules = Rules(4, partners="adjacent", max_rounds=7)
    spec = minari.environment_spec(rules, "uint8", "greedy")
    env = gymnasium.make(type(spec).from_json(spec.to_json()))
    seen, _ = env.reset(seed=1)
    assert seen.dtype == np.uint8 and env.unwrapped._vector.games.rules == rules


def test_games_of_several_rules_are_refused():
    games = [pack([record_of(Rules(2, max_rounds=rounds), 1)]) for rounds in (2, 3)]
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
