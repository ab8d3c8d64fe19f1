"""Tournaments: the same games however they are played, files that survive a kill, stop rules."""

import dataclasses
import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import random_model

from carolus_env import bots, evaluation
from carolus_env.bots import Agent, registry
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import Plan, Tournament, games, journal, tournament
from carolus_env.evaluation.ratings import Ratings
from carolus_env.evaluation.schedules import SequentialTest, widening
from carolus_env.records import read_records, replay
from carolus_env.system import machine


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tournament, "SIDE_BY_SIDE", 7)


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A stand-in for the ratings; keeps what it was asked. Widths fall with the games."""
    asked: list[dict[str, Any]] = []

    def rate(tables: Any, shares: Any, deals: Any, agents: int, **more: Any) -> Any:
        asked.append({"tables": tables, "deals": deals, **more})
        elo = 100.0 * np.arange(agents)
        half = (500 + 500 * np.arange(agents) / (agents - 1)) / np.sqrt(max(len(tables), 1))
        return Ratings(
            elo, elo - half, elo + half, ("",) * agents, elo[None], len(set(deals.tolist()))
        )

    monkeypatch.setattr(tournament, "rate", rate)
    return asked


def plan_of(deals: int = 6, *, players: int = 3, **options: Any) -> Plan:
    return Plan(Rules(players), ("greedy", "random", "greedy"), deals=deals, seed=11, **options)


def saved_games(path: Path) -> bytes:
    """The games of a results file, without the time that they took."""
    results = evaluation.read_games(path).results
    results["seconds"] = 0
    return results.tobytes()


def played(plan: Plan, file: Path | None = None, **options: Any) -> Tournament:
    cup = Tournament(plan)
    cup.run(file=file, **options)
    return cup


def without_times(cup: Tournament) -> list[Any]:
    return [dataclasses.replace(pairing, seconds=(0, 0)) for pairing in cup.pairings()]


def test_two_workers_play_the_same_games_as_one(tmp_path, small_blocks):
    (tmp_path / "bot.py").write_text("from carolus_env.bots import GreedyBot")
    plan = Plan(Rules(2), ("greedy", "random", f"{tmp_path}/bot.py:GreedyBot"), deals=10, seed=3)
    alone = played(plan, tmp_path / "alone", records=tmp_path / "alone.jsonl")
    reported: list[int] = []
    files = {"file": tmp_path / "together", "records": tmp_path / "together.jsonl.gz"}
    together = played(plan, **files, workers=2, progress=reported.append)
    assert saved_games(tmp_path / "alone") == saved_games(tmp_path / "together")
    assert without_times(alone) == without_times(together)
    assert reported == sorted(reported) and reported[-1] == plan.games
    assert len(reported) > 5, "after every block"
    one = [record for _, record in read_records(tmp_path / "alone.jsonl")]
    assert one == [record for _, record in read_records(tmp_path / "together.jsonl.gz")]


Local = type("Nowhere", (bots.RandomBot,), {})  # of a module where it is not found
HERE = {"__name__": "__main__", "RandomBot": bots.RandomBot}
exec("class Typed(RandomBot):\n    pass", HERE)  # as `python -` would


def inner():
    class Inner(bots.RandomBot):
        pass

    return Inner()


@pytest.mark.parametrize(
    ("agents", "options", "said"),
    [
        ([Local(), "random"], {"workers": 2}, r"cannot be sent to workers .* spec strings"),
        ([inner(), "random"], {"workers": 2}, "since Inner is made inside a function: put it into"),
        ([lambda *_: None, "random"], {"workers": 2}, "'mine' cannot .* since it is a lambda"),
        ([HERE["Typed"](), "random"], {"workers": 2}, "since Typed is in a program without a file"),
        (["random"], {}, "names 2 agents, got 1"),
        (None, {"resume": True}, "needs the file"),
    ],
)
def test_what_cannot_be_played_is_refused(tmp_path, monkeypatch, agents, options, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "<stdin>", raising=False)
    with pytest.raises(ValueError, match=said):
        Tournament(Plan(Rules(2), ("mine", "random"), deals=1), agents).run(**options)


def test_records_of_all_games_replay(tmp_path):
    plan = plan_of(2)
    cup = played(plan, records=tmp_path / "records.jsonl.gz")
    records = [record for _, record in read_records(tmp_path / "records.jsonl.gz")]
    assert len(records) == plan.games
    for game, record in enumerate(records):
        assert replay(record) == []
        assert record["game"] == game
        assert record["deal"] == cup.results["deal"][game]
        assert record["agents"] == [plan.agents[k] for k in cup.results["table"][game]]
        assert record["result"]["rounds"] == cup.results["rounds"][game]
    with pytest.raises(FileExistsError):
        played(plan, records=tmp_path / "records.jsonl.gz")


@pytest.mark.parametrize("name", ["records.jsonl", "records.jsonl.gz"])
def test_every_game_is_in_the_records_once_after_a_kill_at_any_place(
    tmp_path, small_blocks, monkeypatch, name
):
    plan, path, file = plan_of(2), tmp_path / name, tmp_path / "games"
    played(plan, records=tmp_path / f"all-{name}")
    append, blocks = journal.append, 0

    def killed(*given: Any) -> None:
        """Leave the records of a block without its results, and a part of another record."""
        nonlocal blocks
        blocks += 1
        if blocks % 2:
            with path.open("ab") as records:
                records.write(path.read_bytes()[:100] if blocks % 4 == 3 else b"")
            raise KeyboardInterrupt
        append(*given)

    monkeypatch.setattr(journal, "append", killed)
    for _ in range(plan.games):
        try:
            played(plan, file, records=path, resume=True)
            break
        except KeyboardInterrupt:
            pass
    assert blocks > 5
    first, second = (
        [record for _, record in read_records(each)] for each in (tmp_path / f"all-{name}", path)
    )
    assert first == second and len(second) == plan.games


def test_records_that_are_not_the_tournaments_stay(tmp_path):
    file, path = tmp_path / "games", tmp_path / "records.jsonl"
    played(plan_of(1), file, records=path)
    played(plan_of(2), tmp_path / "more", records=tmp_path / "longer")
    other = Plan(Rules(3), plan_of().agents, deals=1, seed=12)
    played(other, records=tmp_path / "other")
    full = path.read_text().splitlines(keepends=True)
    for content in (
        "".join(full[:-1]),  # fewer than were played
        "".join(full[1:2] + full),
        "notes of mine",
        "notes\n" + "".join(full),
        (tmp_path / "other").read_text(),
    ):
        path.write_text(content)
        with pytest.raises(evaluation.ResultsFileError, match="do not end with game 17 of this"):
            played(plan_of(2), file, resume=True, records=path)
        assert path.read_text() == content
    path.write_text("".join(full[5:]))
    played(plan_of(2), file, resume=True, records=path)
    longer = (tmp_path / "longer").read_text().splitlines()
    assert path.read_text().splitlines() == longer[5:], "of a call that began without records"


def test_a_tournament_goes_on_with_more_deals_as_if_it_had_had_them_from_the_start(tmp_path, rates):
    def plan(deals: int) -> Plan:
        return plan_of(deals, players=2, until=250)

    more = plan(60)
    full = played(more, tmp_path / "full")
    assert len(full.counted) == 50, "the rule ends it"
    played(plan(7), tmp_path / "games")
    (tmp_path / "games").open("a").write('{"ga')  # a line that was cut off
    again = Tournament(more)
    again.run(file=tmp_path / "games", resume=True, notice=lambda text: None)
    assert again.games == full.games
    assert saved_games(tmp_path / "games") == saved_games(tmp_path / "full")
    assert evaluation.read_games(tmp_path / "games").plan == more
    with pytest.raises(evaluation.ResultsFileError, match="deals: 60 in the file, 59 here"):
        played(plan(59), tmp_path / "games", resume=True)


def test_a_plan_of_numpy_numbers_is_that_of_pythons(tmp_path):
    numbers: Any = {"deals": np.int64(2), "seed": np.uint64(5), "until": np.float32(8)}
    plan = Plan(Rules(np.int64(2)), ("random", "random"), **numbers)
    same = Plan(Rules(2), ("random", "random"), deals=2, seed=5, until=8.0)
    assert plan == same and str(plan) == str(same)
    played(plan, tmp_path / "games")
    test: Any = SequentialTest(np.int64(-5), np.float32(5))
    assert json.dumps(dataclasses.asdict(test)) == '{"elo0": -5.0, "elo1": 5.0}'
    with pytest.raises(TypeError, match="test must be a SequentialTest, got 5"):
        Plan(Rules(2), ("a", "b"), test=5)  # type: ignore[arg-type]


def test_blocks_of_slow_agents_are_small_and_of_fast_ones_large():
    assert tournament.block_size(0.0, 1000, 1) == 1, "one game tells how long games take"
    assert tournament.block_size(2.0, 1000, 1) == 5
    assert tournament.block_size(100.0, 1000, 1) == 1
    assert tournament.block_size(1e-4, 10**6, 1) == tournament.SIDE_BY_SIDE
    assert tournament.block_size(1e-4, 3, 1) == 3
    assert tournament.block_size(1.0, 12, 2) == 6, "the other worker is to get some"
    assert tournament.block_size(0.01, 12, 2) == 12, "too few to share"


@pytest.mark.parametrize(("each", "slow"), [(1, 0.05), (1, 0.4), (0.01, 1)])
def test_blocks_take_about_ten_seconds_whatever_is_played_first_and_when_resumed(
    tmp_path, monkeypatch, each, slow
):
    """A block takes some seconds, and more for each game of the last agent."""
    plan = Plan(Rules(2), ("random",) * 3 + ("greedy",), deals=200, seed=1)
    now, blocks, play = [0.0], list[float](), games.play_games

    def played_slowly(*given: Any, **named: Any) -> Any:
        results, actions = play(*given, **named)
        results["seconds"] = each / results["table"].size + slow * (results["table"] == 3)
        blocks.append(results["seconds"].sum())
        now[0] += blocks[-1]
        return results, actions

    def stop(_: int) -> None:
        if now[0] > 60:
            raise KeyboardInterrupt

    monkeypatch.setattr(tournament.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(games, "play_games", played_slowly)
    cup = Tournament(plan)
    with pytest.raises(KeyboardInterrupt):
        cup.run(file=tmp_path / "games", progress=stop)
    assert max(blocks) < 15 and min(blocks[5:]) > 5, "after a few that grow"
    blocks.clear()
    cup.run(file=tmp_path / "games", resume=True)
    assert max(blocks) < 15 and min(blocks[:-1], default=10) > 5, "from the first one on"


SEATED = ("greedy", "random", "greedy")
PINNED = [  # a tournament, and the hash of its results
    (Rules(2), SEATED[:2], "round_robin", "c9bbd0f5627c6729"),
    (Rules(3, "deferred", max_rounds=8), SEATED, "round_robin", "e65255f2ab20f951"),
    (Rules(4, partners="adjacent", max_rounds=12), SEATED[:2], "field", "8a379a8772e59bb0"),
]


@pytest.mark.parametrize("pinned", PINNED)
def test_games_stay_what_they_were_however_large_blocks_are(tmp_path, monkeypatch, pinned):
    (*given, digest), pairings = pinned, []
    for most in (tournament.SIDE_BY_SIDE, 7):
        monkeypatch.setattr(tournament, "SIDE_BY_SIDE", most)
        cup = played(Plan(*given, deals=3, seed=11), tmp_path / str(most))
        assert hashlib.sha256(saved_games(tmp_path / str(most))).hexdigest()[:16] == digest
        assert cup.games == cup.plan.games and cup.complete
        pairings.append(without_times(cup))
    assert pairings[0] == pairings[1]


@pytest.mark.parametrize("saved", [1, 2, 3, 5])
def test_a_file_that_ends_anywhere_is_gone_on_with(tmp_path, small_blocks, saved):
    plan = plan_of(2)
    full = played(plan, tmp_path / "whole")
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    (tmp_path / "part").write_bytes(b"".join(lines[:saved]) + lines[saved][:30])
    reported: list[int] = []
    notices: list[str] = []
    again = Tournament(plan)
    again.run(file=tmp_path / "part", resume=True, notice=notices.append, progress=reported.append)
    assert len(notices) == 1 and "the last line is incomplete" in notices[0]
    assert saved_games(tmp_path / "part") == saved_games(tmp_path / "whole")
    assert without_times(again) == without_times(full)
    assert reported[-1] == plan.games
    assert reported[0] > (json.loads(lines[saved - 1])["games"][1] if saved > 1 else 0)
    assert evaluation.read_games(tmp_path / "part").plan == plan


def test_a_finished_file_is_read_and_nothing_is_played(tmp_path, monkeypatch):
    first = played(plan_of(), tmp_path / "games")
    before = (tmp_path / "games").read_bytes()
    monkeypatch.setattr(games, "play_games", None)
    again = played(plan_of(), tmp_path / "games", resume=True)
    assert again.complete
    assert (tmp_path / "games").read_bytes() == before
    assert again.results.dtype == first.results.dtype
    for name in set(first.results.dtype.names) - {"seconds"}:
        assert np.array_equal(first.results[name], again.results[name]), name
    assert again.results["seconds"].sum() == pytest.approx(first.results["seconds"].sum(), rel=1e-3)
    assert again.seconds == pytest.approx(first.seconds, rel=1e-3)


@pytest.fixture(scope="module")
def full_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cup") / "games"
    played(plan_of(1), path)
    return path.read_text()


def changed(line: str, **values: Any) -> str:
    return json.dumps({**json.loads(line), **values})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"agents": ["greedy", "random", "new"]}, r"agents: \['greedy', 'random', 'new'\] in the"),
        ({"rules": Rules(3, "deferred").to_dict()}, "crown_choice: 'deferred' in the file, 'on_"),
        ({"until": 0.5}, "until: 0.5 in the file, None here"),
        ({"test": {"elo0": 0, "elo1": 9}}, "test: {'elo0'.* in the file, None here"),
        (
            {"deals": 7, "rules": Rules(2).to_dict()},
            "deals: 7 in the file, 1 here; players: 2 in the file, 3 here",
        ),
        ({"versions": {"carolus-env": "0.0.1"}}, r"carolus-env: '0\.0\.1' in the file"),
    ],
)
def test_the_file_of_another_tournament_or_version_is_refused(tmp_path, full_file, change, said):
    path = tmp_path / "games"
    header, _, games = full_file.partition("\n")
    before = f"{changed(header, **change)}\n{'' if 'rules' in change else games}"
    path.write_text(before)
    with pytest.raises(evaluation.ResultsFileError, match=f"of another tournament: .*{said}"):
        Tournament(plan_of(1)).run(file=path, resume=True)
    assert path.read_text() == before


def test_another_player_under_the_same_name_is_refused_by_what_changed(tmp_path, monkeypatch):
    bot, helper, program = (tmp_path / name for name in ("bot.py", "helper.py", "program"))
    bot.write_text("from helper import Bot\n")
    helper.write_text("from carolus_env.bots import RandomBot\nclass Bot(RandomBot): pass\n")
    program.write_text("echo")
    model = tmp_path / "model.safetensors"
    random_model(2, width=16, hidden=4).save(model)
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    bots.register("ours", lambda argument: bots.RandomBot(), "")
    agents = f"{bot}:Bot", f"value:{tmp_path}/model", f"ours:sh {program},x=1"
    plan = Plan(Rules(2), agents, "field", deals=1, seed=1)
    path = tmp_path / "games"
    played(plan, path)
    before = path.read_bytes()

    def refused(agent: str, name: str) -> None:
        with pytest.raises(evaluation.ResultsFileError) as error:
            played(plan, path, resume=True)
        text = f"of another tournament: {agent}: {name} changed since"
        assert str(error.value) == f"{path}: {text}"

    for agent, file, name in (
        (agents[0], bot, "bot.py"),
        (agents[0], helper, "helper.py"),
        (agents[1], model, model.as_posix()),
        (agents[2], program, program.as_posix()),
    ):
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        if file is model:
            random_model(2, seed=2, width=16, hidden=4).save(model)
        refused(agent, name)
        file.write_bytes(content)
        played(plan, path, resume=True)
    (tmp_path / "part").mkdir()
    helper.rename(tmp_path / "part" / "__init__.py")
    bot.write_text("from part import Bot\n")
    refused(agents[0], "bot.py, helper.py, part/__init__.py")
    assert path.read_bytes() == before


def test_an_edit_of_the_package_is_told_to_those_who_play_by_it(tmp_path, monkeypatch):
    """In a clone the version stays while the code changes."""
    path, of_room = tmp_path / "games", machine.room_sources
    plan = Plan(Rules(2), ("random", "greedy"), deals=1)
    played(plan, path)
    edited = {"bots/baselines.py": b"# less"}
    monkeypatch.setattr(machine, "room_sources", lambda room: of_room(room) | edited)
    monkeypatch.setattr(registry, "_package_hash", registry._package_hash.__wrapped__)
    with pytest.raises(evaluation.ResultsFileError, match="greedy: carolus_env changed"):
        played(plan, path, resume=True)


@pytest.mark.parametrize(
    ("number", "edit", "said"),
    [
        (1, lambda line: changed(line, sources=None), "sources must be a list, got None"),
        (1, lambda line: changed(line, sources=[{}]), "sources must be one for each agent, got 1"),
        (1, lambda line: changed(line, sources=[{"a": 1}]), r"sources\[0\].a must be a string"),
        (1, lambda line: "[]", r"the header must be an object, got \[\]"),
        (1, lambda line: changed(line, format="x"), "format must be 'carolus-tournament', got 'x'"),
        (1, lambda line: changed(line, version=2), "version must be 1, got 2"),
        (1, lambda line: changed(line, rules={"players": 9}), "players must be a whole number"),
        (1, lambda line: changed(line, versions=None), "versions must be an object"),
        (2, lambda line: line[:-5], "not JSON"),
        (2, lambda line: "[]", r"a line must be an object, got \[\]"),
        (3, lambda line: changed(line, games=[0, 17]), "games from 1 on must follow, got "),
        (3, lambda line: changed(line, games=[1, 10**8]), r"games must be whole numbers of shape"),
        (3, lambda line: changed(line, games=[1, 19]), r"games must be whole .* from 0 to 18, got"),
        (3, lambda line: changed(line, games=[1, 1], rounds=[]), "games from 1 on must follow"),
        (3, lambda line: changed(line, games=[1]), r"games must be whole numbers of shape \(2,"),
        (2, lambda line: changed(line, shares=[[0.5, 0.5, 0.5]]), "shares of a game do not sum to"),
        (2, lambda line: changed(line, shares=[[1, 0]]), r"shares must be numbers of shape \(1, 3"),
        (2, lambda line: changed(line, castles=[[1, 2, 99]]), "castles must be .* from 0 to 15"),
        (2, lambda line: changed(line, rounds=[1.5]), "rounds must be whole numbers of shape"),
        (2, lambda line: changed(line, rounds=7), "rounds must be a list"),
        (2, lambda line: changed(line, reason=[0]), "reason must be whole .* from 1 to "),
        (2, lambda line: changed(line, seconds=[1]), r"seconds must be numbers of shape \(3,"),
        (2, lambda line: changed(line, wall=10**400), "wall must be a number from 0"),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(tmp_path, full_file, number, edit, said):
    path, lines = tmp_path / "games", full_file.splitlines()
    lines[number - 1] = edit(lines[number - 1])
    path.write_text("\n".join(lines) + "\n")
    before = path.read_bytes()
    with pytest.raises(evaluation.ResultsFileError, match=f"line {number}: .*{said}"):
        Tournament(plan_of(1)).run(file=path, resume=True)
    assert path.read_bytes() == before


def test_a_file_without_a_header_is_refused(tmp_path, full_file):
    path = tmp_path / "games"
    path.write_text(full_file[:30])
    with pytest.raises(evaluation.ResultsFileError, match="line 1: the header is missing"):
        evaluation.read_games(path)


def test_it_stops_when_all_ratings_are_sure_enough(rates):
    plan = plan_of(500, until=50)
    cup = played(plan)
    assert cup.complete

    def width(games: int) -> float:
        return widening(games // plan.games_per_deal) * 2000 / math.sqrt(games)

    never = plan_of(25, until=1e-6)
    assert played(never).games == never.games
    assert width(cup.games) < 50
    asked = [len(each["tables"]) for each in rates]
    before = asked[: asked.index(cup.games)]
    assert len(set(before)) == len(before) >= 2
    assert all(width(games) >= 50 for games in before)


@pytest.mark.parametrize("rule", [{"until": 150}, {"test": SequentialTest(-50, 150)}])
def test_a_stop_rule_is_asked_where_a_file_ends_at_a_checkpoint(tmp_path, rates, rule):
    path, agents = tmp_path / "games", ("greedy", "greedy", "random")
    plan = Plan(Rules(2), agents, deals=400, seed=5, **rule)
    games, whole = played(plan, path).games, saved_games(path)
    looks = [deals * plan.games_per_deal for deals in plan.checkpoints()]
    assert games in looks[1:-1], "the rule ended it"
    full, before = path.read_bytes(), looks[looks.index(games) - 1]
    assert played(plan, path, resume=True).complete
    assert path.read_bytes() == full, "nothing was played"
    end = full.index(b"\n", full.index(b",%d]" % before)) + 1  # of the block before the last look
    path.write_bytes(full[:end])
    again = played(plan, path, resume=True)
    assert again.complete and again.games == games
    assert saved_games(path) == whole


def test_ctrl_c_saves_full_blocks(tmp_path, small_blocks):
    """Of games in play the short ones finish first: counting them would favour quick wins."""
    plan, cup = plan_of(4), Tournament(plan_of(4))

    def stop(done: int) -> None:
        kept = len(evaluation.read_games(tmp_path / "games").results)
        assert kept > done - 8, "what is complete is in the file"
        if done > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cup.run(file=tmp_path / "games", progress=stop)
    assert 18 <= cup.games <= 30
    assert len(evaluation.read_games(tmp_path / "games").results) == cup.games
    assert not cup.complete
    assert sum(pairing.games for pairing in cup.pairings()) == 18, "whole deals"
    cup.run(file=tmp_path / "games", resume=True)
    assert cup.complete
    assert without_times(cup) == without_times(played(plan))


def test_the_summary_has_what_was_played(rates):
    cup = played(plan_of(6))
    summary = json.loads(json.dumps(cup.summary()))
    results = cup.results
    assert summary.items() >= {"schedule": "round_robin", "seed": 11, "deals": 6}.items()
    assert (summary["games"], summary["complete"]) == (108, True)
    assert summary["rules"] == Rules(3).to_dict()
    assert [pairing["pair"] for pairing in summary["pairings"]] == [[0, 1], [0, 2], [1, 2]]
    assert summary["pairings"][0].items() >= {"agents": ["greedy", "random"], "deals": 6}.items()
    first, second, _ = summary["agents"]
    assert (first["spec"], first["games"]) == ("greedy", 72)
    assert first["rating"]["elo"] == 0
    assert first["rating"]["low"] < 0 < first["rating"]["high"]
    rates_of_first = [summary["pairings"][k]["win_rate"][0] for k in (0, 1)]
    assert first["win_share"] == pytest.approx(np.mean(rates_of_first))
    assert second["win_share"] < 0.05
    seats = results["table"] == 0
    assert first["decisions"] == results["decisions"][seats].sum()
    assert first["seconds"] == pytest.approx(results["seconds"][seats].sum())
    speed = 1e6 * first["seconds"] / first["decisions"]
    assert first["us_per_decision"] == pytest.approx(speed)
    assert first["mean_castles"] == pytest.approx(results["castles"][seats].mean())
    assert summary["play"]["mean_rounds"] == pytest.approx(results["rounds"].mean())
    assert sum(summary["play"]["ends"].values()) == 108
    assert summary["machine"] and summary["versions"]
    assert summary["seconds"] == cup.seconds > 0
    [asked] = rates
    assert np.array_equal(asked["tables"], results["table"])
    assert np.array_equal(asked["deals"], np.repeat(np.arange(6), 18))
    assert (asked["anchor"], asked["seed"]) == (1, 11), "random is the anchor"
    played(Plan(Rules(4), ("greedy", "greedy"), deals=1)).summary()
    assert rates[-1]["anchor"] is None


def test_without_a_complete_deal_there_is_no_summary():
    cup = Tournament(Plan(Rules(2), ("a", "b", "c"), deals=30), [bots.make("random")] * 3)
    assert cup.pairings() == []
    with pytest.raises(ValueError, match="no deal has been played in all seatings"):
        cup.summary()


@pytest.mark.parametrize(
    ("schedule", "players", "agents"),
    [("field", 3, 20_000_000), ("round_robin", 2, 10_001)],
)
def test_a_deal_of_too_many_games_is_refused_before_it_is_made(schedule, players, agents):
    with pytest.raises(ValueError, match=rf"{schedule} of {agents} agents has [\d,]+ games a deal"):
        Plan(Rules(players), ("random",) * agents, schedule, deals=1)


def test_equal_agents_have_half_a_win_share_with_three_players_too():
    plan = Plan(Rules(3), ("greedy",) * 3, deals=70, seed=2)
    summary = played(plan).summary()
    assert sum(agent["win_share"] for agent in summary["agents"]) == pytest.approx(1.5)
    for agent in summary["agents"]:
        assert agent["win_share"] == pytest.approx(0.5, abs=0.05)


def actions_of(plan: Plan, rows: np.ndarray, agents: list[Agent]) -> list[list[int]]:
    """What is played in some games of a plan, when those are played together."""
    fixtures = plan.fixtures(0, plan.games)
    some = evaluation.Fixtures(*(column[rows] for column in fixtures))
    _, actions = evaluation.play_games(some, agents, plan.rules, seed=plan.seed)
    return [game.tolist() for game in actions]


@pytest.mark.parametrize("players", [2, 3])
def test_a_game_does_not_depend_on_what_is_played_beside_it(players):
    """Games of several meetings on the same deals begin alike, so their positions coincide."""
    specs = ("mcts:sims=6", "planner", "greedy", "random")
    plan = Plan(Rules(players), specs, "field", deals=10 if players == 2 else 4, seed=7)
    every = np.arange(plan.games)

    def fresh() -> list[Agent]:
        return [bots.make(spec) for spec in specs]

    together = actions_of(plan, every, fresh())
    alone = [actions_of(plan, every[row : row + 1], fresh())[0] for row in every[::3]]
    assert alone == together[::3]
    shuffled, used = np.random.default_rng(1).permutation(every), fresh()
    twice = np.array([0, 0, 1, 2, 2])
    for rows in (*np.array_split(shuffled, 5), twice):  # agents may remember the last block
        assert actions_of(plan, rows, used) == [together[row] for row in rows]


def test_the_oldest_plans_are_forgotten_first(monkeypatch):
    plan = Plan(Rules(2), ("mcts:sims=6", "greedy"), deals=4, seed=7)
    rows = np.arange(plan.games)
    remembers = [bots.make(spec) for spec in plan.agents]
    wanted = actions_of(plan, rows, remembers)
    monkeypatch.setattr("carolus_env.bots.compiled._REMEMBERED", 3)
    forgets = [bots.make(spec) for spec in plan.agents]
    assert actions_of(plan, rows, forgets) == wanted
    few, many = forgets[0]._remembered, remembers[0]._remembered  # type: ignore[attr-defined]
    assert len(few) <= 2 * plan.games < len(many)
