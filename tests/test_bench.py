"""CarolusBench and its ladder: their content, rungs that play as they did, an agent's place."""

import hashlib
import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from strategies import every_number
from test_bots import middle_games

from benchmarks import ladder as command
from benchmarks.suite import SuiteRecipe
from carolus_env import bots, evaluation
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import PLACE, Rules
from carolus_env.evaluation import bench, ladder
from carolus_env.evaluation.ratings import ANCHOR, ELO, rate, rating_text


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_package_has_the_content_of_the_protocol(players):
    suite, made = bench.suite(players), SuiteRecipe(players)
    assert suite.digest == bench.SUITES[players]
    assert (suite.players, suite.header["error"], len(suite.decisions)) == (players, 0.01, 1000)
    options = [text.partition(" --")[2] for text in (suite.header["command"], made.command())]
    assert options[0] == options[1]
    cells = Counter((one.kind, one.stage, one.half) for one in suite.decisions)
    assert cells == Counter(made.cells)
    for one in suite.decisions[::100]:
        one.record()
    plan = bench.plan("yours", players, ["planner", "greedy"])
    assert plan.rules == Rules(players)
    assert (plan.agents, plan.schedule) == (("yours", "planner", "greedy"), "field")
    assert (plan.deals, plan.seed) == ({2: 125, 3: 42, 4: 125}[players], 20_261_123)


def test_an_agent_meets_the_rungs_near_it_and_other_content_is_refused(monkeypatch):
    assert "planner" in bench.opponents(bots.make("planner"), 2)
    with pytest.raises(ValueError, match="players must be a whole number from 2 to 4, got 5"):
        bench.suite(5)
    monkeypatch.setattr(ladder, "digest", lambda: "0" * 12)
    monkeypatch.setattr(bench, "shipped", lambda players: SimpleNamespace(digest=""))
    with pytest.raises(ValueError, match=f"has the ladder with hash {bench.LADDER}, got 000000"):
        bench.suite(2)


RUNGS = {
    "random": "12d5ea758ad61078",
    "greedy": "8dc5630234fdd59c",
    "planner": "e796345d88e4fde8",
}


@pytest.mark.parametrize(("spec", "wanted"), RUNGS.items())
def test_the_rungs_play_as_they_did(spec, wanted):
    """Where this fails on purpose, the protocol gets another version."""
    result = []
    for players in (2, 3, 4):
        states = middle_games(Rules(players), 12)
        turns = states[(states["phase"] != PLACE) | (states["placements_left"] >= 3)]
        chosen = turns[::3].copy()
        result.append(bots.make(spec).act(chosen, new_streams(1, len(chosen))))
    numbers = np.asarray(np.concatenate(result), "<i8")
    assert hashlib.sha256(numbers.tobytes()).hexdigest()[:16] == wanted


@every_number
def test_the_ladder_leads_from_random_to_value_without_holes(players):
    rungs = ladder.rungs(players)
    assert [rung.spec for rung in rungs] == list(command.RUNGS[players])
    for rung in rungs:
        bots.make(rung.spec)
        assert rung.low <= rung.elo <= rung.high
    elos = np.array([rung.elo for rung in rungs])
    assert (np.diff(elos) >= 0).all() and np.diff(elos).max() <= 250
    assert max(rung.gap[2] - rung.gap[1] for rung in rungs[1:]) <= 70
    [anchor] = [rung for rung in rungs if rung.spec == ANCHOR]
    assert (anchor.low, anchor.elo, anchor.high) == (0, 0, 0)


def test_the_hash_is_that_of_the_rungs_and_other_rungs_are_refused(tmp_path):
    data = json.loads(ladder.FILE.read_text())
    assert data["hash"] == ladder.digest() == ladder.digest(data["players"])
    data["players"]["2"][0]["elo"] += 0.1
    assert ladder.digest(data["players"]) != data["hash"]
    path = tmp_path / "ladder.json"
    for players in (4, 2):  # those of other numbers of players stay
        command.write({players: [{"spec": "planner", "elo": float(players)}]}, path)
    data = json.loads(path.read_text())
    assert {key: rows[0]["elo"] for key, rows in data["players"].items()} == {"2": 2, "4": 4}
    assert data["hash"] == ladder.digest(data["players"])
    for players in (5, 2.0):
        with pytest.raises((ValueError, TypeError), match=f"players must be .* got {players}"):
            ladder.rungs(players)
        with pytest.raises((ValueError, TypeError), match=f"players must be .* got {players}"):
            bench.suite(players)
    for met, named in (({"nobody": None}, "'nobody'"), ({}, "a rung")):
        with pytest.raises(ValueError, match=named):
            ladder.place(Rules(2), met)


def win_rate(players, difference):
    """The win rate of an agent that is stronger by these Elo points, over all seatings."""
    odds = np.exp(difference / ELO)
    seats = [(1, 2), (2, 1)] if players == 3 else [(1, 1)]
    return np.mean([own * odds / (own * odds + other) for own, other in seats], axis=0)


def test_the_nearest_rungs_come_first_and_win_rates_are_logistic_in_the_difference():
    rungs = ladder.rungs(2)
    top = rungs[-1]
    assert ladder.nearest(2, top.elo) == [top]
    third = rungs[3]
    result = ladder.nearest(2, third.elo + 1, 3)
    assert result[0] == third
    assert {rung.spec for rung in result} <= {rung.spec for rung in rungs[1:6]}
    assert win_rate(2, np.float64(ELO * np.log(3))) == pytest.approx(0.75)
    # three players: one seat of three with odds 3 : 1 : 1, and two seats with 3 : 3 : 1
    assert win_rate(3, np.float64(ELO * np.log(3))) == pytest.approx((3 / 5 + 6 / 7) / 2)


def met(players, agent, specs, deals=30):
    result = {}
    for spec in specs:
        plan = evaluation.Plan(Rules(players), (agent, spec), deals=deals, seed=3)
        cup = evaluation.Tournament(plan)
        cup.run()
        result[spec] = cup.results
    return result


@every_number
def test_a_place_is_a_tournaments_rating_and_expects_what_was_won(players):
    games = met(players, "greedy:errors=0.6", ["greedy:errors=0.5"])
    [(spec, results)] = games.items()
    [rung] = [rung for rung in ladder.rungs(players) if rung.spec == spec]
    wanted = rate(results["table"], results["shares"], results["deal"], 2, anchor=1)
    elo, low, high, bound = ladder.place(Rules(players), games).values()
    assert bound == ""
    # with three players, two line-ups of half as many games share the tournament's virtual deal
    assert elo == pytest.approx(rung.elo + wanted.elo[0], abs=5)
    assert low == pytest.approx(rung.elo + wanted.low[0], abs=25)
    assert high == pytest.approx(rung.elo + wanted.high[0], abs=25)
    games = met(players, "greedy:errors=0.3", ["greedy:errors=0.75", "greedy"])
    elo, low, high, bound = ladder.place(Rules(players), games).values()
    assert bound == ""
    assert low < elo < high
    surplus = 0.0
    for rung in ladder.rungs(players):
        if rung.spec in games:
            own = (games[rung.spec]["shares"] * (games[rung.spec]["table"] == 0)).sum(axis=1)
            surplus += (own - win_rate(players, np.float64(elo - rung.elo))).sum()
    assert abs(surplus) < 3, "half of a virtual deal"


def test_an_agent_that_lost_nothing_has_a_rating_with_one_end():
    games = met(2, "value", ["random"], deals=3)
    placed = ladder.place(Rules(2), games)
    assert placed["bound"] == "above" and rating_text(placed) == f"above {placed['low']:.0f}"


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
