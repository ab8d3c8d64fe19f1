"""The page's server: what it answers, and what it refuses."""

import asyncio
import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from page import Page, Slow, finished, serving

from carolus_env import bots
from carolus_env.play import api, library, requests, server
from carolus_env.play.api import Api
from carolus_env.play.library import GameFile, was_lost
from carolus_env.play.requests import MAX_BODY, RequestError, Store
from carolus_env.play.roster import LEVELS, Roster, RosterError
from carolus_env.records import RecordError, names_of, record_line, replay, write_records

TWO = {"rules": {"players": 2}, "agents": [None, "random"], "seed": 7}
NASTY = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def page():
    with serving(Api(Roster())) as running:
        yield running


def new_game(page, **change):
    status, game = page.post("games", {**TWO, **change})
    assert status == 201, game
    return game


def play_on(page, game, decisions=1):
    """People play their first legal action."""
    key = game["key"]
    while decisions and game["turn"] != "over":
        what, data = "agent", {"version": game["version"]}
        if game["turn"] == "person":
            what, data["action"] = "play", game["legal"][0]["action"]
        status, game = page.post(f"games/{key}/{what}", data)
        assert status == 200, game
        decisions -= 1
    return {"key": key, **game}


def persons_turn(page, phase=None, **change):
    """A new game, played until a person is to move, in this phase."""
    game = new_game(page, **change)
    while game["turn"] != "person" or phase not in (None, game["phase"]):
        game = play_on(page, game)
    return game


def test_a_game_is_played_to_its_end_and_saved(page):
    game = play_on(page, new_game(page, rules={"players": 2, "max_rounds": 3}), 1000)
    assert game["turn"] == "over"
    assert "limit of 3 rounds" in game["outcome"] or "won" in game["outcome"]
    status, headers, content = page.request(f"/api/games/{game['key']}/record")
    assert status == 200
    assert headers["content-disposition"] == 'attachment; filename="carolus.jsonl"'
    assert replay(game["record"]) == []
    assert json.loads(content) == game["record"]
    _, full = page.get(f"games/{game['key']}")
    _, rest = page.get(f"games/{game['key']}?since=5")
    assert [line["event"] for line in full["log"]] == list(range(game["at"]))
    assert rest["log"] == full["log"][5:], "the log goes on where the page has it"
    assert full["log"][0]["text"].startswith("rolls ")


def test_a_game_and_its_position_say_how_regions_stand_and_what_paladins_would_do(page):
    game = persons_turn(page, "place", names=["Anna", None])
    assert (game["names"], game["agents"]) == (["Anna", "random"], [None, "random"])
    assert "<svg" in game["svg"] and "Anna" in game["svg"]
    assert len(game["words"]) == len(game["regions"]) + 2
    assert game["words"][-2].startswith("Anna, 0 castles of 10: controls ")
    for decision in game["legal"]:
        if decision["to"] == 0:
            assert f"{decision['clan']} at court: " in decision["result"]
            continue
        region = game["regions"][decision["to"] - 1]
        assert decision["territories"] == region["territories"] == decision["text"]
        more = sum(decision["strengths"]) - sum(region["strengths"])
        assert more in (0, 1)  # only a clan that somebody controls counts
        assert " for Anna, " in decision["powers"]
    status, shown = page.post("positions", {"text": game["line"]})
    assert (status, shown["line"], shown["decides"]) == (200, game["line"], True)
    for region, region_shown in zip(game["regions"], shown["regions"], strict=True):
        assert region | {"powers": ANY, "result": ANY} == region_shown
    status, hint = page.post("hint", {"text": game["line"], "agent": "greedy"})
    assert (status, hint["agent"]) == (200, "greedy")
    moving = persons_turn(page, "move")
    assert all(" to " in step["text"] and step["result"] for step in moving["legal"])


def test_what_cannot_be_done_is_refused_with_the_game_and_it_goes_on(page):
    """Clicks of a page that is behind, and illegal actions."""
    game = new_game(page)
    key, version = game["key"], game["version"]
    while (later := play_on(page, game))["turn"] != "person":
        game = later
    now, behind = {"version": later["version"]}, {"version": version}
    for what, data in (
        *(("play", {**now, "action": action}) for action in (94, -1, 95, 10**30, 12)),
        *(("play", {**behind, "action": 0}), ("undo", behind), ("agent", behind)),
    ):
        status, answer = page.post(f"games/{key}/{what}", data)
        assert status == 409 and answer["error"]
        if data["version"] == version:
            assert "moved on" in answer["error"]
            assert answer["game"]["at"] == later["at"]
        assert page.get(f"games/{key}")[1]["record"] == later["record"]
    assert play_on(page, later, 3)["at"] > later["at"]


def test_only_ones_own_turn_is_undone_and_hints_name_moves_and_shares(page):
    game = new_game(page)
    undo = lambda: page.post(f"games/{game['key']}/undo", {"version": game["version"]})  # noqa: E731
    status, answer = undo()
    assert (status, "your own decisions" in answer["error"]) == (409, True)
    while not game["undo"]:
        game = play_on(page, game)
    status, hint = page.post("hint", {"agent": "ppo", "text": game["line"]})
    assert status == 200
    assert sum(hint["values"]) == pytest.approx(1, abs=1e-3)
    shares = [move["share"] for move in hint["moves"]]
    assert hint["choice"]["action"] == hint["moves"][0]["action"]
    assert shares == sorted(shares, reverse=True)
    status, before = undo()
    assert (status, before["at"], before["log"]) == (200, game["at"] - 1, [])
    assert before["record"]["events"] == game["record"]["events"][:-1]


def test_bots_may_fail_or_take_their_time_and_the_server_answers_meanwhile():
    slow = Slow()
    bots.register("slow", lambda _: slow, "thinks for long and fails")
    with serving(Api(Roster(["slow"]))) as page:
        game = new_game(page, agents=["slow", "slow"])
        path = f"games/{game['key']}"
        with page.send(f"{path}/agent", {"version": game["version"]}) as request:
            assert slow.begun.wait(60)
            assert page.get(path)[1]["record"] == game["record"]
            assert play_on(page, other := new_game(page), 5)["at"] > other["at"]
            slow.going.set()
            answer = request.getresponse()
            assert answer.status == 502
            assert "slow failed with RuntimeError: no idea (page.py" in json.load(answer)["error"]
        assert page.get(path)[1]["at"] == game["at"]


class Wordless(BaseException):
    """An error whose text cannot be had."""

    def __str__(self):
        raise KeyboardInterrupt


class Failing(bots.Agent):
    """Fails with the error that is put into ``error``."""

    name, error = "failing", None

    def act(self, states, generators):
        raise self.error

    def opinion(self, states, generators):
        raise self.error


def broken(argument):
    raise SystemExit(argument)


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(7), Wordless(),
        asyncio.CancelledError(), StopAsyncIteration(), RecursionError("deep"), MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_whatever_an_agent_raises_its_request_is_answered_and_its_game_goes_on(page, error):
    Failing.error = error
    bots.register("failing", lambda _: Failing(), "fails")
    bots.register("broken", broken, "cannot be made")
    with serving(Api(Roster(["failing"]))) as page:
        game = new_game(page, agents=["failing", None])
        path, data = f"games/{game['key']}", {"version": game["version"]}
        for _ in range(2):  # the second would wait for the lock of the first
            asked = [("hint", {"agent": "failing", "text": game["line"]})]
            if game["turn"] == "agent":
                asked.append((f"{path}/agent", data))
            for where, what in asked:
                status, answer = page.post(where, what)
                assert status == 502
                assert f"failing failed with {type(error).__name__}" in answer["error"]
        assert page.get(path)[1]["at"] == game["at"]
        assert page.post("games", TWO)[0] == 201


def test_an_agent_that_ends_the_process_when_it_is_made_ends_a_request_only(page, monkeypatch):
    with serving(Api(Roster())) as page:
        monkeypatch.setattr(Roster, "make", lambda *_: broken("no"))
        status, answer = page.post("games", TWO)
        assert (status, answer["error"][:28]) == (502, "random failed with SystemExi")
        assert page.get("menu")[0] == 200


@pytest.mark.parametrize("what", ["agent", "hint"])
def test_a_search_ends_when_its_request_is_gone_or_it_is_stopped(what):
    endless = Slow()
    bots.register("endless", lambda _: endless, "thinks until it is stopped")
    with serving(Api(Roster(["endless"]))) as page:
        game = new_game(page, agents=["endless", "endless"])
        path, data = f"games/{game['key']}", {"version": game["version"]}
        if what == "hint":
            where, data = "hint", {"agent": "endless", "text": game["line"]}
        else:
            where = f"{path}/agent"
        with page.send(where, data):
            assert endless.begun.wait(20)
        assert endless.ended.wait(20)
        if what == "hint":
            return
        endless.begun.clear()
        with page.send(where, data) as request:
            assert endless.begun.wait(20)
            assert page.post(f"{path}/stop", {}) == (200, {"stopped": 1})
            answer = request.getresponse()
            assert (answer.status, json.load(answer)["stopped"]) == (409, True)
        assert page.get(path)[1]["version"] == game["version"]


def test_the_engine_and_the_levels_are_compiled_in_the_background(monkeypatch):
    made, make = [], Roster.make
    noted = lambda roster, spec: made.append(spec) or make(roster, "random")  # noqa: E731
    monkeypatch.setattr(Roster, "make", noted)
    server.start_compiling(Roster()).join(60)
    assert set(made) == {level.agents[2] for level in LEVELS} | {Roster().advisers()[0]}
    assert all(make(Roster(), spec) for level in LEVELS for spec in level.agents.values())


@pytest.mark.parametrize(
    "spec",
    [
        *("my_bot.py:MyBot", "ppo:/etc/passwd", "ppo:../models/2p", "search:my_model,sims=10"),
        *("value:my_model", "ppo:a/b=c", "nobody", "", "mcts:sims=0", "exe:true"),
        *("exe:true,seconds=1", "llm:url=http://h/v1,model=m"),
    ],
)
def test_a_page_names_no_files_programs_or_endpoints_and_no_unknown_agents(page, spec):
    status, answer = page.post("games", {**TWO, "agents": [None, spec]})
    reason = "option sims must be" if spec == "mcts:sims=0" else "is not offered here"
    assert (status, reason in answer["error"]) == (400, True), answer
    for typed in ("mcts:sims=5", "ppo:2p", "ppo:2p,temperature=1", "search:2p,sims=5"):
        assert Roster().make(typed).name == typed
    if spec.startswith(("exe", "llm")):
        assert Roster([spec]).allows(spec) and not Roster([spec]).allows(f"{spec},seconds=2")


def test_agents_of_the_command_line_are_offered(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from carolus_env.engine import random_actions as play\n")
    spec = f"{file}:play"
    roster = Roster([spec])
    assert roster.menu()[0].spec == roster.advisers()[0] == spec
    with serving(Api(roster)) as page:
        game = new_game(page, agents=[spec, None])
        assert play_on(page, game, 5)["at"] > game["at"]
    with pytest.raises(RosterError, match="there is no such file"):
        Roster([f"{file}x.py:play"])


def test_only_own_files_are_served_without_inline_scripts_framing_or_sniffing(page):
    for path in ("/", "/game/x", "/replay", "/static/app.js", "/api/menu", "/api/nothing"):
        _, headers, content = page.request(path)
        assert server.HEADERS.items() <= headers.items()
        if path == "/":
            assert b'<script type="module" src="/static/' in content
            assert content.count(b"<script") == content.count(b'src="/static/') == 1
    policy = server.HEADERS["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert server.HEADERS["x-content-type-options"] == "nosniff"
    assert server.HEADERS["referrer-policy"] == "no-referrer"
    with server.open_socket(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
    modules = sorted(server.STATIC.glob("*.js"))
    for module in modules:
        status, headers, content = page.request(f"/static/{module.name}")
        assert (status, content) == (200, module.read_bytes())
        assert headers["content-type"].startswith("text/javascript")
        for used in re.findall(r'from "\./([\w.-]+)"', module.read_text()):
            assert server.STATIC / used in modules, f"{module.name} imports {used}"
    for path in ("", "/../server.py", "/%2e%2e/server.py", "/..%2fserver.py", "//etc/passwd"):
        assert page.request(f"/static{path}")[0] == 404


def answered(path, *headers, method="GET", said=()):
    """What the app says where no server has looked at the request before; on port 1."""
    sent: list[Any] = []
    messages = iter(said)

    async def receive():
        return next(messages, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": b""}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers]
    asyncio.run(server.make_app(Api(Roster()), 1)(scope, receive, send))
    return sent[0]["status"], b"".join(message["body"] for message in sent[1:]).decode()


@pytest.mark.parametrize("path", ["/", "/api/games", "/static/app.js"])
def test_only_the_hosts_and_origins_of_this_server_are_answered(path):
    def is_refused(hosts, origins, method="GET"):
        headers = [("host", host) for host in hosts] + [("origin", one) for one in origins]
        status, answer = answered(path, *headers, method=method)
        assert status != 403 or "answers only to" in answer or "origin" in answer
        return status == 403

    host, origin = "127.0.0.1:1", "http://127.0.0.1:1"
    assert not any(is_refused([name], []) for name in (host, "localhost:1", "LOCALHOST:1"))
    assert not any(is_refused([host], [origin], method) for method in ("GET", "POST"))
    for other in ("evil.example", "127.0.0.1", "127.0.0.1:2", "localhost.evil:1"):
        for hosts in ([other], [host, other], [other, host]):
            assert is_refused(hosts, [origin]), hosts
    assert is_refused([host, host], []) and is_refused([], [])
    for other in ("http://evil.example", "null", "http://127.0.0.1:2"):
        for origins in ([other], [origin, other], [other, origin]):
            assert is_refused([host], origins), origins
    assert is_refused([host], [], "POST")


SEATS = b'{"agents": [null, null], '


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("games", b"{", 400, "not JSON"),
        ("games", b"[]", 400, "the body must be an object"),
        ("games", b'{"sed": 1}', 400, "unknown key 'sed'"),
        ("games", b'{"seed": "1"}', 400, "seed must be a whole number"),
        ("games", b'{"seed": -1}', 400, "seed must be a whole number"),
        ("games", b'{"agents": [null, 1]}', 400, "agents must be a list"),
        ("games", b'{"agents": [null]}', 400, "agents must be 2"),
        ("games", SEATS + b'"names": ["a", "\\u001b"]}', 400, "names[1]"),
        ("games", SEATS + b'"rules": {"players": 5}}', 400, "players must be"),
        ("games", SEATS + b'"record": {}}', 400, "format is missing"),
        ("games", SEATS + b'"replay": {"key": "x"}}', 400, "replay.game is missing"),
        ("games", SEATS + b'"replay": {"key": "x", "game": 0, "position": 0}}', 404, "file"),
        ("positions", b'{"text": ""}', 422, "position"),
        ("positions", b'{"text": "2 | 7"}', 422, "turn is missing"),
        ("hint", b'{"text": "2 | 7"}', 422, "turn is missing"),
        ("positions", b'{"text": "%s"}' % (b"x" * 4001), 413, "at most 4,000 characters"),
        ("nothing", b"{}", 404, "Not Found"),
        ("menu", b"{}", 405, "Method Not Allowed"),
        ("games/nobody/play", b'{"action": 1}', 404, "does not hold this game"),
        ("files/nobody/0/values", b"{}", 404, "does not hold this file"),
    ],
)
def test_a_bad_request_gets_a_sentence(page, path, body, status, reason):
    got, answer = page.post(path, body)
    assert got == status
    assert reason in answer["error"]


def test_requests_cut_off_of_other_types_wrong_or_huge_are_refused(page, monkeypatch):
    headers = {"host": "127.0.0.1:1", "origin": "http://127.0.0.1:1"}
    headers["content-type"] = "application/json"
    begun = {"type": "http.request", "body": b"{", "more_body": True}
    status, answer = answered("/api/games", *headers.items(), method="POST", said=(begun,))
    assert (status, json.loads(answer)) == (400, {"error": "the request was cut off"})
    for path in ("games", "files"):
        for kind in ("text/plain", "multipart/form-data"):
            assert page.post(path, TWO, kind)[0] == 415
    game = new_game(page)
    path = f"games/{game['key']}"
    for query in ("layout=round", "since=-1", "since=99999999999"):
        assert page.get(f"{path}?{query}")[0] == 400
    assert page.post(f"{path}/agent?layout=round", {"version": game["version"]})[0] == 400
    assert page.get(path)[1]["at"] == game["at"]
    monkeypatch.setattr(requests, "MAX_BODY", 2**20)
    assert page.post("games", {"names": ["a" * MAX_BODY]})[0] == 413
    assert page.post_file("a", b"a" * (2**20 + 1))[0] == 413


def test_files_named_on_the_command_line_stay_whatever_pages_open(monkeypatch):
    monkeypatch.setattr(api, "MAX_FILES", 2)
    line = record_line(finished())
    with serving(Api(Roster(), [GameFile.from_bytes(name, line) for name in "abc"])) as page:
        opened = [page.post_file(name, line)[1]["key"] for name in "defg"]
        assert [page.get(f"files/{key}")[0] for key in opened] == [404, 404, 200, 200]
        named = page.get("menu")[1]["files"]
        assert [file["name"] for file in named] == ["a", "b", "c"]
        assert all(page.get(f"files/{file['key']}/0/1")[0] == 200 for file in named)


def test_of_too_many_games_the_oldest_goes_and_of_a_large_file_the_first_are_shown(monkeypatch):
    held: Store[int] = Store("game", 2)
    named = [held.add(number, keep=True) for number in (90, 91, 92)]
    keys = [held.add(number) for number in (1, 2)]
    held.find(keys[0])
    keys.append(held.add(3))
    assert [held.find(key) for key in (keys[0], keys[2])] == [1, 3]
    with pytest.raises(RequestError, match="does not hold this game"):
        held.find(keys[1])
    assert [held.find(key) for key in named] == [90, 91, 92]
    line = record_line(finished())
    monkeypatch.setattr(library, "MAX_LINES", 3)
    book = GameFile.from_bytes("many", line * 5)
    assert (len(book.games), book.problems) == (3, ["only the first 3 games are listed"])
    book = GameFile.from_bytes("many", line[:-2] + b',"more":1e999}\n' + line * 5)
    assert [game.title for game in book.games] == ["line 2", "line 3"]
    assert "line 1: not JSON: 1e999 is beyond every float" in book.problems[1]
    monkeypatch.setattr(library, "MAX_BYTES", 2 * len(line))
    assert len(GameFile.from_bytes("many", line * 5).games) == 2


def test_a_file_is_stepped_through_and_played_on_from_any_position(page):
    records = [finished(), finished(seed=2, names=["Anna", "Bert"])]
    data = b"".join(map(record_line, records))
    for content in (data, gzip.compress(data)):
        status, book = page.post_file("two.jsonl", content)
        assert status == 201
        assert [game["title"] for game in book["games"]] == ["line 1", "line 2"]
    path, events = f"files/{book['key']}/1", records[1]["events"]
    status, game = page.get(path)
    assert (status, game["names"], len(game["rounds"])) == (200, ["Anna", "Bert"], 4)
    assert game["events"] == len(events) == len(game["log"])
    assert game["decisions"] == [i for i, event in enumerate(events) if "action" in event]
    decision = game["decisions"][3]
    for at in (0, decision, len(events)):
        status, position = page.get(f"{path}/{at}?layout=wide")
        assert (status, position["at"], "Anna" in position["svg"]) == (200, at, True)
    assert position["outcome"] == game["outcome"] is not None
    assert page.get(f"{path}/{len(events) + 1}")[0] == 400
    assert page.get(f"files/{book['key']}/2")[0] == 404
    text, played = page.get(f"{path}/{decision}")[1]["line"], events[decision]["action"]
    asked = {"agent": "random", "text": text, "played": played}
    status, hint = page.post("hint", asked)
    assert status == 200
    assert played in [move["action"] for move in hint["moves"]]
    assert page.post("hint", {**asked, "played": 999})[0] == 400
    assert page.post("hint", {**asked, "text": page.get(f"{path}/0")[1]["line"]})[0] == 409
    status, result = page.post(f"{path}/values", {"agent": "ppo"})
    assert (status, len(result["values"])) == (200, len(game["decisions"]))
    assert np.allclose(np.sum(result["values"], axis=1), 1, atol=1e-3)
    assert page.post(f"{path}/values", {"agent": "random"})[0] == 422
    asked = {"agents": [None, "random"], "seed": 5}
    place = {"key": book["key"], "game": 1, "position": 20}
    status, game = page.post("games", {**asked, "replay": place})
    assert (status, game["record"]["events"][:20]) == (201, events[:20]), "it is played on"
    assert play_on(page, game, 10)["at"] > 20
    assert page.post("games", {**asked, "replay": {**place, "position": 10**6}})[0] == 400


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "there is no game record in it"),
        (b"hello", "not JSON"),
        (b"{}\n", "format is missing"),
        (gzip.compress(b" " * 2**24, mtime=0), "more than 1,048,576 bytes"),  # never unpacked
    ],
)
def test_a_file_without_games_is_refused_with_the_reason(page, monkeypatch, content, reason):
    monkeypatch.setattr(library, "MAX_BYTES", 2**20)
    status, answer = page.post_file("broken.jsonl", content)
    assert status == 422
    assert answer["error"].startswith("broken.jsonl: ")
    assert reason in answer["error"]


def test_a_record_that_breaks_the_rules_is_refused_and_names_in_others_are_data(page):
    record = finished()
    at = next(i for i, event in enumerate(record["events"]) if "action" in event)
    record["events"][at] = {**record["events"][at], "action": 94}
    status, book = page.post_file("wrong", record_line(record))
    assert status == 201
    status, answer = page.get(f"files/{book['key']}/0")
    assert status == 422
    assert f"event {at}" in answer["error"]
    record = finished(names=[NASTY, "\x1b[31m" + "x" * 100])
    assert names_of(record) == (NASTY, "?[31m" + "x" * 35)
    assert names_of({**record, "names": [1, 2]}) == ("random", "random")
    assert names_of({**record, "names": None, "agents": None}) == ("player 0", "player 1")
    _, book = page.post_file("nasty", record_line({**record, "agents": ["\ud800", NASTY]}))
    status, shown = page.get(f"files/{book['key']}/0")
    assert (status, shown["agents"]) == (200, ["\ud800", NASTY])
    _, position = page.get(f"files/{book['key']}/0/3")
    assert "<img" not in position["svg"]


def test_the_games_that_a_bot_lost_are_picked(tmp_path):
    records = [finished(rounds=None, seed=seed) for seed in range(6)]
    for number, record in enumerate(records):
        record["agents"] = ["a", "b"] if number % 2 == 0 else ["b", "a"]
    losses = [n for n, record in enumerate(records) if record["result"]["returns"][n % 2] < 0]
    assert 0 < len(losses) < 6
    assert [n for n, record in enumerate(records) if was_lost(record, "a")] == losses
    write_records(tmp_path / "games.jsonl", records)
    book = GameFile.from_path(tmp_path / "games.jsonl", "a")
    assert [game.title for game in book.games] == [f"line {number + 1}" for number in losses]
    with pytest.raises(RecordError, match="there is no game record in it"):
        GameFile.from_path(tmp_path / "games.jsonl", "nobody")
    assert not was_lost({**records[losses[0]], "result": None}, "a")
    assert not was_lost(finished(agents=["a", "b"]), "a"), "nobody won"


def test_the_command_serves_and_stops(tmp_path):
    """At once: Python's own end would crash while a thread is in the compiler."""
    write_records(tmp_path / "one.jsonl", [finished()])
    own = "import atexit, sys\natexit.register(print, 'its own end', file=sys.stderr)\n"
    (tmp_path / "sitecustomize.py").write_text(own)
    run = [sys.executable, "-m", "carolus_env", "play", "one.jsonl", "--no-open", "--port", "0"]
    root = Path(__file__).parent.parent
    given = {"cwd": tmp_path, "env": {"PATH": "", "HOME": str(tmp_path)}}
    given["env"]["PYTHONPATH"] = os.pathsep.join(map(str, (root, tmp_path)))
    given |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(run, **given) as process:
        address = process.stdout.readline().split()[3]
        assert "/replay/" in address
        page = Page(int(address.split(":")[2].split("/")[0]))
        assert page.get("menu")[1]["files"][0]["name"] == "one.jsonl"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert [*process.stderr][-1].endswith("interrupted\n")
