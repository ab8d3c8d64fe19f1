"""The ladder: its rungs, an agent's place on it, and the command that plays it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import ladder as command
from carolus_env import bots, evaluation
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import ladder
from carolus_env.evaluation.ratings import ELO, rate

pytest.importorskip("scipy")

every_number = pytest.mark.parametrize("players", [2, 3, 4])


# ------------------------------------------------------------------------------------ the rungs


@every_number
def test_the_ladder_leads_from_random_to_search_without_holes(players):
    rungs = ladder.rungs(players)
    assert [rung.spec for rung in rungs] == list(command.RUNGS[players])
    for rung in rungs:
        bots.make(rung.spec)
        assert rung.low <= rung.elo <= rung.high
    elos = np.array([rung.elo for rung in rungs])
    assert (np.diff(elos) >= 0).all() and np.diff(elos).max() <= 250
    assert max(rung.gap[2] - rung.gap[1] for rung in rungs[1:]) <= 65
    [anchor] = [rung for rung in rungs if rung.spec == ladder.ANCHOR]
    assert (anchor.low, anchor.elo, anchor.high) == (0, 0, 0)


def test_the_hash_is_that_of_the_rungs():
    data = json.loads(ladder.FILE.read_text())
    assert data["hash"] == ladder.digest() == ladder.digest(data["players"])
    data["players"]["2"][0]["elo"] += 0.1
    assert ladder.digest(data["players"]) != data["hash"]
    with pytest.raises(ValueError, match="got 5"):
        ladder.rungs(5)
    for specs, named in ((["nobody"], "'nobody'"), ([], "a rung")):
        with pytest.raises(ValueError, match=named):
            ladder.elo_of(2, dict.fromkeys(specs, (0.5, 10)))


def test_the_nearest_rungs_come_first_and_searchers_only_when_asked_for():
    rungs = ladder.rungs(2)
    top = rungs[-1]
    assert ladder.nearest(2, top.elo, searchers=True) == [top]
    assert not any(rung.searches for rung in ladder.nearest(2, top.elo, 99))
    third = rungs[3]
    result = ladder.nearest(2, third.elo + 1, 3)
    assert result[0] == third
    assert {rung.spec for rung in result} <= {rung.spec for rung in rungs[1:6]}


# ------------------------------------------------------------------------------------ a place


def met(players, agent, specs, deals=30):
    result = {}
    for spec in specs:
        cup = evaluation.Tournament(
            evaluation.Plan(Rules(players), (agent, spec), deals=deals, seed=3)
        )
        cup.run()
        result[spec] = cup.results
    return result


@every_number
def test_a_place_is_the_rating_that_a_tournament_gives_where_one_rung_was_met(players):
    games = met(players, "greedy:errors=0.6", ["greedy:errors=0.5"])
    [(spec, results)] = games.items()
    [rung] = [rung for rung in ladder.rungs(players) if rung.spec == spec]
    rules = Rules(players)
    team = [rules.team(seat) for seat in range(players)]
    wanted = rate(results.tables, results.shares, team, results.deals, 2, anchor=1)
    elo, low, high = ladder.place(players, games)
    # with three players the tournament has two line-ups, each with a virtual deal of its own
    assert elo == pytest.approx(rung.elo + wanted.elo[0], abs=5)
    assert low == pytest.approx(rung.elo + wanted.low[0], abs=25)
    assert high == pytest.approx(rung.elo + wanted.high[0], abs=25)


@every_number
def test_a_place_follows_from_win_rates(players):
    games = met(players, "greedy:errors=0.3", ["greedy:errors=0.75", "greedy"])
    rates = {}
    for spec, results in games.items():
        share = (results.shares * (results.tables == 0)).sum(axis=1)
        rates[spec] = float(share.mean()), len(share)
    assert ladder.place(players, games)[0] == pytest.approx(ladder.elo_of(players, rates))


@every_number
def test_an_equal_of_a_rung_has_its_rating_and_stronger_agents_a_higher_one(players):
    for rung in ladder.rungs(players):
        assert ladder.elo_of(players, {rung.spec: (0.5, 100)}) == pytest.approx(rung.elo, abs=0.01)
    elos = [ladder.elo_of(players, {"planner": (rate, 100)}) for rate in (0, 0.2, 0.5, 0.8, 1)]
    assert elos == sorted(elos) and np.isfinite(elos).all()
    assert elos[0] == pytest.approx(-elos[-1])


def test_in_two_player_games_the_win_rate_is_the_logistic_function_of_the_difference():
    assert ladder.win_rate(2, np.float64(ELO * np.log(3))) == pytest.approx(0.75)
    # three players: one seat of three with odds 3 : 1 : 1, and two seats with 3 : 3 : 1
    assert ladder.win_rate(3, np.float64(ELO * np.log(3))) == pytest.approx((3 / 5 + 6 / 7) / 2)


# ------------------------------------------------------------------------------------ the command

SOME = ("random", "greedy:errors=0.88", "greedy:errors=0.5", "greedy")


def test_a_small_ladder_is_played_rated_and_continued(tmp_path):
    rules, games = Rules(2), {1: 40, 2: 10}
    played = command.play(rules, SOME, tmp_path, games=games)
    assert {pair: len(some) for pair, some in played.items()} == {
        **dict.fromkeys([(0, 1), (1, 2), (2, 3)], 40),
        **dict.fromkeys([(0, 2), (1, 3)], 10),
    }
    rows = command.rows(rules, SOME, played, "greedy")
    assert [row["spec"] for row in rows] == list(SOME)
    elos = [row["elo"] for row in rows]
    assert elos == sorted(elos) and elos[-1] == 0
    assert rows[3]["gap"][0] == pytest.approx(-elos[2]) and len(rows[3]["wins"]) == 2

    files = sorted(tmp_path.rglob("*.jsonl"))
    data = files[0].read_bytes()
    files[0].write_bytes(data[: len(data) // 2])  # as if killed while it wrote
    with pytest.warns(UserWarning, match="the last line is incomplete"):
        again = command.play(rules, SOME, tmp_path, games=games)
    assert command.rows(rules, SOME, again, "greedy") == rows


def test_ratings_of_other_numbers_of_players_stay(tmp_path):
    path = tmp_path / "ladder.json"
    row = {"spec": "planner", "elo": 0.0}
    for players in (4, 2):
        command.write({players: [{**row, "elo": players}]}, path)
    data = json.loads(path.read_text())
    assert {key: rows[0]["elo"] for key, rows in data["players"].items()} == {"2": 2, "4": 4}
    assert data["hash"] == ladder.digest(data["players"])
