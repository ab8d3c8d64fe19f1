"""The ladder: its rungs, an agent's place on it, and the command that plays it."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from carolus_env import arena, bots
from carolus_env.arena import ladder
from carolus_env.arena.ratings import ELO, rate
from carolus_env.engine.rules import Rules

pytest.importorskip("scipy")

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "docs"))

import ladder as command  # noqa: E402

every_number = pytest.mark.parametrize("players", [2, 3, 4])


# ------------------------------------------------------------------------------------ the rungs


@every_number
def test_the_ladder_leads_from_random_to_search_without_holes(players):
    rungs = ladder.rungs(players)
    assert {rung.spec for rung in rungs} == set(ladder.RUNGS[players])
    assert rungs[0].spec == "random"
    assert rungs[-1].searches
    assert f"value:{players}p" in ladder.RUNGS[players]
    elos = np.array([rung.elo for rung in rungs])
    assert (np.diff(elos) >= 0).all() and np.diff(elos).max() <= 250
    assert all(rung.low <= rung.elo <= rung.high for rung in rungs)
    [anchor] = [rung for rung in rungs if rung.spec == ladder.ANCHOR]
    assert (anchor.low, anchor.elo, anchor.high) == (0, 0, 0)


@every_number
def test_the_difference_of_neighbours_is_known_to_60_points(players):
    found = json.loads((command.RESULTS / f"ladder_{players}.json").read_text())
    widths = [row["above"]["high"] - row["above"]["low"] for row in found["rungs"][1:]]
    assert max(widths) == pytest.approx(found["widest"])
    assert found["widest"] <= 60


@every_number
def test_the_package_has_the_ratings_that_were_measured(players):
    found = json.loads((command.RESULTS / f"ladder_{players}.json").read_text())
    for rung, row in zip(ladder.rungs(players), found["rungs"], strict=True):
        assert rung.spec == row["spec"]
        assert (rung.elo, rung.low, rung.high) == pytest.approx(
            (row["elo"], row["low"], row["high"]), abs=0.06
        )
    data = json.loads(ladder.FILE.read_text())
    assert data == ladder.to_json(data["players"], command.COMMAND), "the hash is that of the rungs"


@every_number
def test_every_rung_is_an_agent_and_no_two_are_alike(players):
    specs = ladder.RUNGS[players]
    assert len(set(specs)) == len(specs)
    for spec in specs:
        bots.make(spec)


def test_the_nearest_rungs_come_first_and_searchers_only_when_asked_for():
    rungs = ladder.rungs(2)
    top = rungs[-1]
    assert ladder.nearest(2, top.elo, searchers=True) == [top]
    assert not any(rung.searches for rung in ladder.nearest(2, top.elo, 99))
    third = rungs[3]
    found = ladder.nearest(2, third.elo + 1, 3)
    assert found[0] == third
    assert {rung.spec for rung in found} <= {rung.spec for rung in rungs[1:6]}


def test_there_is_no_ladder_for_five_players():
    with pytest.raises(ValueError, match=r"the ladder has \[2, 3, 4\] players, got 5"):
        ladder.rungs(5)


# ------------------------------------------------------------------------------------ a place


def met(players, agent, specs, deals=30):
    found = {}
    for spec in specs:
        cup = arena.Tournament(arena.Plan(Rules(players), (agent, spec), deals=deals, seed=3))
        cup.run()
        found[spec] = cup.results
    return found


@every_number
def test_a_place_is_the_rating_that_a_tournament_gives_where_one_rung_was_met(players):
    games = met(players, "greedy:errors=0.6", ["greedy:errors=0.5"])
    [(spec, results)] = games.items()
    [rung] = [rung for rung in ladder.rungs(players) if rung.spec == spec]
    rules = Rules(players)
    team = [rules.team(seat) for seat in range(players)]
    wanted = rate(results.tables, results.shares, team, results.deals, 2, anchor=1)
    found = ladder.place(players, games)
    # with three players the tournament has two line-ups, each with a virtual deal of its own
    assert found.elo == pytest.approx(rung.elo + wanted.elo[0], abs=5)
    assert found.low == pytest.approx(rung.elo + wanted.low[0], abs=25)
    assert found.high == pytest.approx(rung.elo + wanted.high[0], abs=25)


@every_number
def test_a_place_follows_from_win_rates(players):
    specs = ["greedy:errors=0.75", "greedy"]
    games = met(players, "greedy:errors=0.3", specs)
    rates = {}
    for spec, results in games.items():
        share = (results.shares * (results.tables == 0)).sum(axis=1)
        rates[spec] = float(share.mean()), len(share)
    assert ladder.place(players, games).elo == pytest.approx(ladder.elo_of(players, rates))


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


@pytest.mark.parametrize("specs", [["nobody"], []])
def test_a_place_needs_games_against_rungs(specs):
    with pytest.raises(ValueError, match=r"no rung .* 'nobody'|needs games against a rung"):
        ladder.elo_of(2, dict.fromkeys(specs, (0.5, 10)))


# ------------------------------------------------------------------------------------ the command

FEW = command.Schedule(width=170, block=20, neighbours=1, others=1, most=12)
SOME = ("random", "greedy:errors=0.88", "greedy:errors=0.5", "greedy")


def climb(folder, players=2, workers=1, schedule=FEW):
    """A small ladder, played to its end: the summary without times, and the stored games."""
    games = command.Ladder(players, SOME, folder, schedule, workers, anchor="greedy")
    games.begin()
    ratings = games.rate()
    while games.go_on(ratings):
        ratings = games.rate()
    summary = games.summary(ratings)
    for row in summary["rungs"]:
        del row["us_per_decision"]
    del summary["seconds"]
    lines = {}
    for file in sorted(folder.rglob("*.jsonl")):
        kept = [line for line in file.read_text().splitlines() if '"block"' not in line]
        lines[file.relative_to(folder)] = kept
    return summary, lines


def test_neighbours_play_until_their_difference_is_known_and_others_a_little(tmp_path):
    summary, lines = climb(tmp_path)
    games = {tuple(row["pair"]): row["games"] for row in summary["meetings"]}
    first, second, third, last = SOME
    assert games[third, first] == games[last, second] == FEW.block
    assert (last, first) not in games
    widths = [row["above"]["high"] - row["above"]["low"] for row in summary["rungs"][1:]]
    assert [row["spec"] for row in summary["rungs"]] == list(SOME)
    assert FEW.width / 2 < max(widths) <= FEW.width
    assert games[second, first] > FEW.block, "one block is not enough"
    assert len(lines) == sum(games.values()) // FEW.block
    for row in summary["meetings"]:
        assert row["win_rate"] == pytest.approx(row["expected"], abs=0.2)


def test_a_meeting_has_a_limit(tmp_path):
    summary, _ = climb(tmp_path, schedule=replace(FEW, width=1, most=3))
    games = {tuple(row["pair"]): row["games"] for row in summary["meetings"]}
    assert games[SOME[1], SOME[0]] == 3 * FEW.block


def test_no_two_blocks_share_a_deal():
    seeds = set()
    for specs in (SOME[:2], SOME[1:3]):
        for number in range(3):
            plan = command.Block(3, specs, number, 20, Path()).plan()
            assert plan.deals == 4
            seeds |= {plan.seed + deal for deal in range(plan.deals)}
    assert len(seeds) == 2 * 3 * 4


def _climb_until_killed(folder):
    whole, played = arena.Tournament.run, []

    def run(self, **how):
        whole(self, **how)
        played.append(self)
        if len(played) == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    arena.Tournament.run = run
    climb(folder)


def test_a_killed_ladder_goes_on_and_has_the_same_games(tmp_path):
    wanted = climb(tmp_path / "whole")
    folder = tmp_path / "killed"
    process = multiprocessing.get_context("fork").Process(
        target=_climb_until_killed, args=(folder,)
    )
    process.start()
    process.join(100)
    assert process.exitcode == -signal.SIGKILL
    files = sorted(folder.rglob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
    assert len(files) == 5 < len(wanted[1])
    data = files[-1].read_bytes()
    files[-1].write_bytes(data[: len(data) // 2])  # as if killed while it wrote
    before = {file: file.stat().st_mtime_ns for file in files[:-1]}
    with pytest.warns(UserWarning, match="the last line is incomplete"):
        found = climb(folder)
    assert found == wanted
    assert {file: file.stat().st_mtime_ns for file in before} == before, "not played again"


@pytest.mark.slow
def test_workers_do_not_change_the_games(tmp_path):
    assert climb(tmp_path / "one") == climb(tmp_path / "two", workers=2)


def test_ratings_of_other_numbers_of_players_stay(tmp_path):
    path = tmp_path / "ladder.json"
    row = {"spec": "planner", "elo": 0.0, "low": 0.0, "high": 0.0}
    for players in (4, 2):
        command.write_ratings(players, {"rungs": [{**row, "elo": players}]}, path)
    data = json.loads(path.read_text())
    assert {key: rows[0]["elo"] for key, rows in data["players"].items()} == {"2": 2, "4": 4}
    assert (data["format"], data["version"]) == ("carolus-ladder", ladder.VERSION)
    before = data["hash"]
    command.write_ratings(2, {"rungs": [{**row, "elo": 7}]}, path)
    assert json.loads(path.read_text())["hash"] != before
