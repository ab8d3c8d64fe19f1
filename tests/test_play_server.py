"""The page's server: what it answers, and what it refuses."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from page import Page, serving

from carolus_env import bots, engine
from carolus_env.bots import Agent
from carolus_env.engine.rules import Rules
from carolus_env.play import __main__ as command
from carolus_env.play import api, server
from carolus_env.play.api import Api
from carolus_env.play.library import GameFile, names_of, was_lost
from carolus_env.play.roster import LEVELS, Roster, RosterError
from carolus_env.play.session import Session
from carolus_env.play.work import RequestError
from carolus_env.records import RecordError, record_line, write_records
from carolus_env.replay import replay
from carolus_env.system import stopping

TWO = {"rules": {"players": 2}, "agents": [None, "random"], "seed": 7}
NASTY = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with serving(Api(Roster())) as running:
        yield running


def new_game(page: Page, **change: Any) -> dict[str, Any]:
    status, game = page.post("games", {**TWO, **change})
    assert status == 201, game
    return game


def play_on(page: Page, key: str, game: dict[str, Any], decisions: int) -> dict[str, Any]:
    """People play their first legal action."""
    for _ in range(decisions):
        if game["turn"] == "over":
            break
        if game["turn"] == "person":
            action = game["legal"][0]["action"]
            status, game = page.post(
                f"games/{key}/play", {"action": action, "version": game["version"]}
            )
        else:
            status, game = page.post(f"games/{key}/agent", {"version": game["version"]})
        assert status == 200, game
    return game


def finished(seed: int = 1, **more: Any) -> dict[str, Any]:
    session = Session.new(Rules(max_rounds=3), [bots.make("random")] * 2, seed=seed)
    while not session.over:
        session.ask_agent()
    return {**session.record(), **more}


# ------------------------------------------------------------------------------------ playing


def test_a_game_is_played_to_its_end_and_saved(page: Page) -> None:
    game = new_game(page, rules={"players": 2, "max_rounds": 3})
    key = game["key"]
    game = play_on(page, key, game, 1000)
    assert game["turn"] == "over"
    assert "limit of 3 rounds" in game["outcome"] or "won" in game["outcome"]
    status, headers, content = page.request("GET", f"/api/games/{key}/record")
    assert status == 200
    assert headers["content-disposition"] == 'attachment; filename="carolus.jsonl"'
    assert replay(json.loads(content)) == []
    assert json.loads(content) == game["record"]


def test_a_view_says_how_regions_stand_and_what_paladins_would_do(page: Page) -> None:
    game = new_game(page, names=["Anna", None])
    while game["phase"] != "place" or game["turn"] != "person":
        game = {"key": game["key"], **play_on(page, game["key"], game, 1)}
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


def test_a_view_says_what_can_be_done(page: Page) -> None:
    game = new_game(page, names=["Anna", None])
    assert (game["names"], game["agents"]) == (["Anna", "random"], [None, "random"])
    assert "<svg" in game["svg"]
    assert "Anna" in game["svg"]
    while game["phase"] != "move" or game["turn"] != "person":
        game = {"key": game["key"], **play_on(page, game["key"], game, 1)}
    assert all(" to " in step["text"] and step["result"] for step in game["legal"])
    assert page.get(f"games/{game['key']}")[1]["record"] == game["record"]


def test_the_log_goes_on_where_the_page_has_it(page: Page) -> None:
    game = new_game(page)
    later = play_on(page, game["key"], game, 10)
    _, whole = page.get(f"games/{game['key']}")
    _, rest = page.get(f"games/{game['key']}?since=5")
    assert [line["event"] for line in whole["log"]] == list(range(later["at"]))
    assert rest["log"] == whole["log"][5:]
    assert whole["log"][0]["text"].startswith("rolls ")


def test_a_click_of_a_page_that_is_behind_is_refused_with_the_game(page: Page) -> None:
    game = new_game(page)
    key, version = game["key"], game["version"]
    later = play_on(page, key, game, 1)
    for what, data in (("play", {"action": 0}), ("undo", {}), ("agent", {})):
        status, answer = page.post(f"games/{key}/{what}", {**data, "version": version})
        assert status == 409
        assert "the game has moved on" in answer["error"]
        assert answer["game"]["at"] == later["at"]


@pytest.mark.parametrize("action", [94, -1, 95, 10**30, 12])
def test_an_illegal_action_is_refused_and_the_game_goes_on(page: Page, action: int) -> None:
    game = new_game(page)
    while game["turn"] != "person":
        game = {"key": game["key"], **play_on(page, game["key"], game, 1)}
    now = {"version": game["version"]}
    status, answer = page.post(f"games/{game['key']}/play", {"action": action, **now})
    assert status == 409
    assert answer["error"]
    assert play_on(page, game["key"], game, 3)["at"] > game["at"]


def test_only_ones_own_turn_is_undone(page: Page) -> None:
    game = new_game(page)
    while not game["undo"]:
        game = {"key": game["key"], **play_on(page, game["key"], game, 1)}
    status, before = page.post(f"games/{game['key']}/undo", {"version": game["version"]})
    assert (status, before["at"], before["log"]) == (200, game["at"] - 1, [])
    assert before["record"]["events"] == game["record"]["events"][:-1]
    again = new_game(page)
    status, answer = page.post(f"games/{again['key']}/undo", {"version": again["version"]})
    assert status == 409
    assert "your own decisions" in answer["error"]


def test_a_server_that_was_started_anew_takes_a_game_up(page: Page) -> None:
    game = new_game(page)
    later = play_on(page, game["key"], game, 9)
    record = later["record"]
    with serving(Api(Roster())) as other:
        assert other.get(f"games/{game['key']}")[0] == 404
        same = {name: record[name] for name in ("agents", "names", "seed")}
        status, again = other.post("games", {"record": record, **same})
        assert status == 201
        whole = play_on(page, game["key"], later, 20)["record"]
        assert play_on(other, again["key"], again, 20)["record"] == whole


def test_hints_name_moves_and_shares(page: Page) -> None:
    game = new_game(page)
    while game["turn"] != "person":
        game = {"key": game["key"], **play_on(page, game["key"], game, 1)}
    status, hint = page.post(
        f"games/{game['key']}/hint", {"agent": "ppo", "version": game["version"]}
    )
    assert status == 200
    assert sum(hint["values"]) == pytest.approx(1, abs=1e-3)
    assert hint["choice"]["action"] == hint["moves"][0]["action"]
    shares = [move["share"] for move in hint["moves"]]
    assert shares == sorted(shares, reverse=True)
    assert page.get(f"games/{game['key']}")[1]["record"] == game["record"]


def test_bots_may_fail_or_take_their_time_and_the_server_answers_meanwhile() -> None:
    going, asked = threading.Event(), threading.Event()

    class Slow(Agent):
        def act(self, states, generators):  # type: ignore[no-untyped-def]
            asked.set()
            assert going.wait(60)
            raise RuntimeError("no idea")

    bots.register("slow", lambda _: Slow(), "thinks for long and fails")
    with serving(Api(Roster(["slow"]))) as page:
        game = new_game(page, agents=["slow", "slow"])
        answers: list[tuple[int, Any]] = []
        path, data = f"games/{game['key']}/agent", {"version": game["version"]}
        thinking = threading.Thread(target=lambda: answers.append(page.post(path, data)))
        thinking.start()
        assert asked.wait(60)
        assert page.get(f"games/{game['key']}")[1]["record"] == game["record"]
        assert play_on(page, (other := new_game(page))["key"], other, 5)["at"] > other["at"]
        going.set()
        thinking.join(60)
        [(status, answer)] = answers
        assert (status, answer["error"]) == (502, "slow failed with RuntimeError: no idea")
        assert page.get(f"games/{game['key']}")[1]["at"] == game["at"]


# ------------------------------------------------------------------------------------ searches


class Endless(Agent):
    """Thinks until it is stopped."""

    def act(self, states, generators):  # type: ignore[no-untyped-def]
        while True:
            stopping.current().check()
            time.sleep(0.01)


def asked(page: Page, path: str, data: Any) -> socket.socket:
    """A request that was sent, and whose answer nobody has read."""
    body = json.dumps(data).encode()
    head = (
        f"POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nOrigin: {page.address}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    opened = socket.create_connection(("127.0.0.1", page.port), timeout=60)
    opened.sendall(head.encode() + body)
    return opened


def in_time(done: Any) -> bool:
    end = time.perf_counter() + 20
    while not done() and time.perf_counter() < end:
        time.sleep(0.01)
    return bool(done())


@pytest.mark.parametrize("what", ["agent", "hint"])
def test_a_search_ends_when_its_request_is_gone_or_it_is_stopped(what: str) -> None:
    bots.register("endless", lambda _: Endless(), "thinks until it is stopped")
    with serving(Api(Roster(["endless"]))) as page:
        game = new_game(page, agents=["endless", "endless"])
        searches = page.app.games[game["key"]].searches
        data = {"version": game["version"], **({"agent": "endless"} if what == "hint" else {})}
        path = f"games/{game['key']}"
        opened = asked(page, f"{path}/{what}", data)
        assert in_time(lambda: searches)
        opened.close()
        assert in_time(lambda: not searches)
        with asked(page, f"{path}/{what}", data) as opened:
            assert in_time(lambda: searches)
            assert page.post(f"{path}/stop", {}) == (200, {"stopped": 1})
            answer = http.client.HTTPResponse(opened)
            answer.begin()
            said = {"error": "The bot was stopped.", "stopped": True}
            assert (answer.status, json.loads(answer.read())) == (409, said)
        assert page.get(path)[1]["version"] == game["version"]


def test_the_engine_and_the_levels_are_compiled_in_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    make = Roster.make
    monkeypatch.setattr(
        Roster, "make", lambda roster, spec: made.append(spec) or make(roster, "random")
    )
    server.start_compiling(Roster()).join(60)
    assert set(made) == {level.agents[2] for level in LEVELS} | {Roster().advisers()[0]}


def test_levels_can_be_played_by_all_numbers_of_players() -> None:
    for level in LEVELS:
        assert [Roster().make(spec).name for spec in level.agents.values()]


# ------------------------------------------------------------------------------------ agents


@pytest.mark.parametrize(
    "spec",
    [
        "my_bot.py:MyBot",
        "ppo:/etc/passwd",
        "ppo:../models/2p",
        "search:my_model,sims=10",
        "value:my_model",
        "value:v1",
        "ppo:a/b=c",
        "slow",
        "nobody",
        "",
    ],
)
def test_a_page_names_no_files_and_no_unknown_agents(page: Page, spec: str) -> None:
    status, answer = page.post("games", {**TWO, "agents": [None, spec]})
    assert status == 400
    assert "is not offered here" in answer["error"]


@pytest.mark.parametrize(
    "spec",
    [
        *("mcts:sims=5", "ppo:2p", "ppo:temperature=1", "ppo:2p,temperature=1"),
        *("search:2p,sims=5", "search:sims=5"),
    ],
)
def test_other_options_of_the_packages_agents_can_be_typed(spec: str) -> None:
    assert Roster().make(spec).name == spec


def test_wrong_options_are_refused_with_the_right_ones(page: Page) -> None:
    status, answer = page.post("games", {**TWO, "agents": [None, "mcts:sims=0"]})
    assert status == 400
    assert "option sims must be" in answer["error"]


def test_agents_of_the_command_line_are_offered(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from carolus_env.engine import random_actions\n"
        "def play(states, generators):\n    return random_actions(states, generators)\n"
    )
    spec = f"{file}:play"
    roster = Roster([spec])
    assert roster.menu()[0].spec == roster.advisers()[0] == spec
    with serving(Api(roster)) as page:
        game = new_game(page, agents=[spec, None])
        assert play_on(page, game["key"], game, 5)["at"] > game["at"]
    with pytest.raises(RosterError, match="there is no such file"):
        Roster([f"{file}x.py:play"])


# ------------------------------------------------------------------------------------ other sites


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80", None]
)
def test_other_hosts_are_refused(page: Page, host: str | None) -> None:
    for path in ("/", "/api/menu", "/static/app.js"):
        status, _, content = page.request("GET", path, Host=host)
        assert status in (400, 403)
        assert host is None or b"answers only to" in content


def test_its_own_names_are_answered_to(page: Page) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST"):
        assert page.get("menu", Host=f"{name}:{page.port}", Origin=None)[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", None])
def test_other_origins_change_nothing(page: Page, origin: str | None) -> None:
    status, answer = page.post("games", TWO, Origin=origin)
    assert status == 403
    assert "origin" in answer["error"]


def test_answers_forbid_inline_scripts_framing_and_sniffing(page: Page) -> None:
    for path in ("/", "/game/x", "/replay", "/static/app.js", "/api/menu", "/api/nothing"):
        _, headers, _ = page.request("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    _, _, content = page.request("GET", "/")
    assert b'<script type="module" src="/static/' in content
    assert content.count(b"<script") == content.count(b'src="/static/') == 1


def answered(
    path: str = "/api/menu",
    *headers: tuple[str, str],
    method: str = "GET",
    said: tuple[dict[str, Any], ...] = (),
) -> tuple[int, Any]:
    """What the app says where no server has looked at the request before; on port 1."""
    sent: list[Any] = []
    messages = iter(said)

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }
    asyncio.run(server.make_app(Api(Roster()), 1)(scope, receive, send))  # type: ignore[arg-type]
    return sent[0]["status"], json.loads(sent[1]["body"])


OWN_HOST, OWN_ORIGIN = ("host", "127.0.0.1:1"), ("origin", "http://127.0.0.1:1")


def test_several_hosts_or_origins_are_refused_wherever_the_right_one_stands() -> None:
    assert answered("/api/menu", OWN_HOST, OWN_ORIGIN)[0] == 200
    evil = ("host", "evil.example")
    for hosts in ((OWN_HOST, evil), (evil, OWN_HOST), (OWN_HOST, OWN_HOST), ()):
        status, answer = answered("/api/menu", *hosts)
        assert (status, "answers only to" in answer["error"]) == (403, True), hosts
    other = ("origin", "http://evil.example")
    for origins in ((OWN_ORIGIN, other), (other, OWN_ORIGIN)):
        status, answer = answered("/api/menu", OWN_HOST, *origins)
        assert (status, "from other origins" in answer["error"]) == (403, True), origins


def test_only_this_machine_can_reach_it(page: Page) -> None:
    listening = server.open_socket(0)
    assert listening.getsockname()[0] == "127.0.0.1"
    listening.close()


# ------------------------------------------------------------------------------------ bad requests


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b'{"seed": NaN}', 400, "not JSON: NaN is"),
        (b"\xff\xfe", 400, "not UTF-8: byte 1"),
        (b"[]", 400, "the body must be an object"),
        (b'{"sed": 1}', 400, "unknown key 'sed', known are rules, "),
        (b'{"seed": "1"}', 400, "seed must be a whole number"),
        (b'{"seed": true}', 400, "seed must be a whole number"),
        (b'{"seed": -1}', 400, "seed must be a whole number"),
        (b'{"agents": [null, 1]}', 400, "agents must be a list"),
        (b'{"agents": [null]}', 400, "agents must be 2, one for each seat"),
        (b'{"agents": [null, null], "names": ["a", "\\u001b"]}', 400, "names[1]"),
        (b'{"agents": [null, null], "rules": {"players": 5}}', 400, "players must be"),
        (b'{"agents": [null, null], "rules": {"max_rounds": {}}}', 400, "max_rounds must be"),
        (b'{"agents": [null, null], "record": {}}', 400, "format is missing"),
        (b'{"agents": [null, null], "replay": {"key": "x"}}', 400, "replay.game is missing"),
        (
            b'{"agents": [null, null], "replay": {"key": "x", "game": 0, "position": 0}}',
            404,
            "file",
        ),
    ],
)
def test_a_bad_request_gets_a_sentence(page: Page, body: bytes, status: int, reason: str) -> None:
    kind = "application/json"
    got, _, content = page.request("POST", "/api/games", body, Content_Type=kind)
    assert got == status
    assert reason in json.loads(content)["error"]


def test_huge_requests_are_refused_and_the_game_goes_on(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = new_game(page)
    monkeypatch.setattr(api, "MAX_BODY", 2**20)
    body = b'{"names": ["' + b"a" * api.MAX_BODY + b'"]}'
    status, _, content = page.request("POST", "/api/games", body, Content_Type="application/json")
    assert status == 413
    assert "too large" in json.loads(content)["error"]
    status, _ = page.post_file("a", b"a" * (2**20 + 1))
    assert status == 413
    assert play_on(page, game["key"], game, 5)["at"] > game["at"]


def test_a_request_that_breaks_off_is_no_error_of_the_server() -> None:
    kind = ("content-type", "application/json")
    begun = {"type": "http.request", "body": b"{", "more_body": True}
    asked = answered("/api/games", OWN_HOST, OWN_ORIGIN, kind, method="POST", said=(begun,))
    assert asked == (400, {"error": "the request was cut off"})


def test_only_json_is_taken(page: Page) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert page.post("games", TWO, Content_Type=kind)[0] == 415
        assert page.request("POST", "/api/files", b"{}", Content_Type=kind)[0] == 415


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "games/nobody", 404),
        ("GET", "nothing", 404),
        ("GET", "games", 405),
        ("PUT", "games", 405),
        ("GET", "files/nobody", 404),
        ("GET", "files/nobody/0", 404),
    ],
)
def test_what_is_not_there_gets_a_sentence(page: Page, method: str, path: str, status: int) -> None:
    got, _, content = page.request(method, f"/api/{path}")
    assert got == status
    assert json.loads(content)["error"]


def test_every_module_of_the_page_is_served(page: Page) -> None:
    modules = sorted(server.STATIC.glob("*.js"))
    for module in modules:
        status, headers, content = page.request("GET", f"/static/{module.name}")
        assert (status, content) == (200, module.read_bytes())
        assert headers["content-type"].startswith("text/javascript")
        for used in re.findall(r'from "\./([\w.-]+)"', module.read_text()):
            assert server.STATIC / used in modules, f"{module.name} imports {used}"


def test_files_outside_the_page_are_not_served(page: Page) -> None:
    assert page.request("GET", "/static")[0] == 404, "without the slash it leads nowhere"
    for path in ("../server.py", "%2e%2e/server.py", "..%2f..%2frules.py", "/etc/passwd"):
        assert page.request("GET", f"/static/{path}")[0] == 404


@pytest.mark.parametrize("query", ["layout=round", "since=-1", "since=x", "since=99999999999"])
def test_queries_are_checked(page: Page, query: str) -> None:
    game = new_game(page)
    key, at = game["key"], game["at"]
    assert page.get(f"games/{key}?{query}")[0] == 400
    if "layout" in query:
        assert page.post(f"games/{key}/agent?{query}", {"version": game["version"]})[0] == 400
        assert page.get(f"games/{key}")[1]["at"] == at, "nothing was played"


def test_of_too_many_games_the_one_used_longest_ago_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api, "MAX_HELD", 2)
    held: api.Held[int] = api.Held("game")
    keys = [held.add(number) for number in (1, 2)]
    held.find(keys[0])
    keys.append(held.add(3))
    assert [held.find(key) for key in (keys[0], keys[2])] == [1, 3]
    with pytest.raises(RequestError, match="does not hold this game"):
        held.find(keys[1])


# ------------------------------------------------------------------------------------ files


def test_a_file_is_stepped_through(page: Page) -> None:
    records = [finished(1), finished(2, names=["Anna", "Bert"])]
    data = b"".join(map(record_line, records))
    for content in (data, gzip.compress(data)):
        status, book = page.post_file("two.jsonl", content)
        assert status == 201
        assert [game["title"] for game in book["games"]] == ["line 1", "line 2"]
    key = book["key"]
    status, game = page.get(f"files/{key}/1")
    assert (status, game["names"]) == (200, ["Anna", "Bert"])
    events = records[1]["events"]
    assert game["events"] == len(events) == len(game["log"])
    assert game["decisions"] == [i for i, event in enumerate(events) if "action" in event]
    assert len(game["rounds"]) == 4
    for at in (0, game["decisions"][3], len(events)):
        status, position = page.get(f"files/{key}/1/{at}?layout=wide")
        assert (status, position["at"]) == (200, at)
        assert "Anna" in position["svg"]
    assert position["outcome"] == game["outcome"] is not None
    assert page.get(f"files/{key}/1/{len(events) + 1}")[0] == 400
    assert page.get(f"files/{key}/2")[0] == 404
    at = game["decisions"][3]
    status, hint = page.post(f"files/{key}/1/{at}/hint", {"agent": "random"})
    assert status == 200
    assert events[at]["action"] in [move["action"] for move in hint["moves"]]
    assert page.post(f"files/{key}/1/0/hint", {"agent": "random"})[0] == 409
    status, found = page.post(f"files/{key}/1/values", {"agent": "ppo"})
    assert (status, len(found["values"])) == (200, len(game["decisions"]))
    assert np.allclose(np.sum(found["values"], axis=1), 1, atol=1e-3)
    status, answer = page.post(f"files/{key}/1/values", {"agent": "random"})
    assert (status, answer["error"]) == (422, "random does not value positions")


def test_a_game_is_played_on_from_any_position(page: Page) -> None:
    record = finished(1)
    _, book = page.post_file("one", record_line(record))
    at = 20
    asked = {"agents": [None, "random"], "seed": 5}
    place = {"key": book["key"], "game": 0, "position": at}
    status, game = page.post("games", {**asked, "replay": place})
    assert status == 201
    assert game["record"]["events"][:at] == record["events"][:at]
    assert play_on(page, game["key"], game, 10)["at"] > at
    assert page.post("games", {**asked, "replay": {**place, "position": 10**6}})[0] == 400


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "there is no game record in it"),
        (b"hello", "not JSON"),
        (b"{}\n", "format is missing"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-9], "cut short"),  # the same name each time
        (b"\x00" * 100, "not JSON"),
    ],
)
def test_a_file_without_games_is_refused_with_the_reason(
    page: Page, content: bytes, reason: str
) -> None:
    status, answer = page.post_file("broken.jsonl", content)
    assert status == 422
    assert answer["error"].startswith("broken.jsonl: ")
    assert reason in answer["error"]


def test_a_record_that_breaks_the_rules_is_refused_with_the_event(page: Page) -> None:
    record = finished(1)
    at = next(i for i, event in enumerate(record["events"]) if "action" in event)
    record["events"][at] = {**record["events"][at], "action": 94}
    status, book = page.post_file("wrong", record_line(record))
    assert status == 201
    status, answer = page.get(f"files/{book['key']}/0")
    assert status == 422
    assert f"event {at}" in answer["error"]


def test_a_bomb_is_not_unpacked(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    from carolus_env.play import library

    monkeypatch.setattr(library, "MAX_BYTES", 2**20)
    status, answer = page.post_file("bomb.gz", gzip.compress(b" " * 2**24))
    assert status == 422
    assert "more than 1,048,576 bytes" in answer["error"]


def test_of_a_large_file_the_first_games_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from carolus_env.play import library

    line = record_line(finished(1))
    monkeypatch.setattr(library, "MAX_LINES", 3)
    book = GameFile.from_bytes("many", line * 5)
    assert (len(book.games), book.problems) == (3, ["only the first 3 games are listed"])
    monkeypatch.setattr(library, "MAX_BYTES", 2 * len(line))
    assert len(GameFile.from_bytes("many", line * 5).games) == 2
    monkeypatch.setattr(library, "MAX_BYTES", 2**20)
    book = GameFile.from_bytes("many", b"?\n" + line * 5)
    assert (len(book.games), len(book.problems)) == (2, 2)


def test_a_game_that_cannot_be_kept_is_a_problem_of_its_line(page: Page) -> None:
    line = record_line(finished(1))
    book = GameFile.from_bytes("many", line + line[:-2] + b',"more":1e999}\n' + line)
    assert [game.title for game in book.games] == ["line 1", "line 3"]
    assert "line 2: the record cannot be written" in book.problems[0]


def test_names_in_untrusted_records_are_data(page: Page) -> None:
    record = finished(1, names=[NASTY, "\x1b[31m" + "x" * 100])
    assert names_of(record) == (NASTY, "?[31m" + "x" * 35)
    assert names_of({**record, "names": [1, 2]}) == ("random", "random")
    assert names_of({**record, "names": None, "agents": None}) == ("player 0", "player 1")
    _, book = page.post_file("nasty", record_line({**record, "agents": ["\ud800", NASTY]}))
    status, shown = page.get(f"files/{book['key']}/0")
    assert (status, shown["agents"]) == (200, ["\ud800", NASTY])
    _, position = page.get(f"files/{book['key']}/0/3")
    assert "<img" not in position["svg"]
    game = new_game(page, names=[NASTY, None])
    assert "<img" not in game["svg"]
    assert game["names"][0] == NASTY


# ------------------------------------------------------------------------------------ positions


def test_a_position_goes_out_as_text_without_its_dice_and_comes_back(page: Page) -> None:
    game = new_game(page)
    while game["phase"] != "place" or game["turn"] != "person":
        game = {"key": game["key"], **play_on(page, game["key"], game, 1)}
    status, shown = page.post("positions", {"text": game["line"]})
    assert (status, shown["line"], shown["decides"]) == (200, game["line"], True)
    assert shown["regions"] == [
        {**region, "powers": ANY, "result": ANY} for region in game["regions"]
    ]
    status, hint = page.post("positions/hint", {"text": game["line"], "agent": "greedy"})
    assert (status, hint["agent"]) == (200, "greedy")


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("", 422, "position"),
        ("2 | 7", 422, "turn is missing"),
        ("x" * 4001, 413, "at most 4,000 characters"),
    ],
)
def test_a_text_that_is_no_position_is_refused_with_the_reason(
    page: Page, text: str, status: int, reason: str
) -> None:
    for path in ("positions", "positions/hint"):
        got, answer = page.post(path, {"text": text})
        assert (got, reason in answer["error"]) == (status, True), answer


# ------------------------------------------------------------------------------------ the command


def test_the_games_that_a_bot_lost_are_picked(tmp_path: Path) -> None:
    records = [finished(seed) for seed in range(12)]
    wins = [record["result"]["returns"] for record in records]
    for record, seats in zip(records, [["a", "b"], ["b", "a"]] * 6, strict=True):
        record["agents"] = seats
    losses = [
        number
        for number, (record, returns) in enumerate(zip(records, wins, strict=True))
        if returns[record["agents"].index("a")] < 0
    ]
    assert [number for number, record in enumerate(records) if was_lost(record, "a")] == losses
    write_records(tmp_path / "games.jsonl", records)
    if losses:
        book = GameFile.from_path(tmp_path / "games.jsonl", "a")
        assert [game.title for game in book.games] == [f"line {number + 1}" for number in losses]
    with pytest.raises(RecordError, match="there is no game record in it"):
        GameFile.from_path(tmp_path / "games.jsonl", "nobody")
    assert not was_lost({**records[0], "result": None}, "a")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["missing.jsonl"], "missing.jsonl: No such file"),
        (["--lost", "greedy"], "--lost needs a FILE"),
        (["--port", "70000"], "--port must be from 0 to 65535"),
        (["--bot", "nobody"], "unknown agent 'nobody'"),
        (["broken.jsonl"], "broken.jsonl: line 1: not JSON"),
    ],
)
def test_the_command_says_what_is_wrong(
    arguments: list[str],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.jsonl").write_text("?\n")
    assert command.main([*arguments, "--no-open"]) == 2
    assert text in capsys.readouterr().err


def test_the_command_serves_and_stops(tmp_path: Path) -> None:
    write_records(tmp_path / "one.jsonl", [finished(1)])
    run = [sys.executable, "-m", "carolus_env.play", "one.jsonl", "--no-open", "--port", "0"]
    root = Path(__file__).parent.parent
    with subprocess.Popen(
        run, cwd=tmp_path, env={"PYTHONPATH": str(root), "PATH": "", "HOME": str(tmp_path)},
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = process.stdout.readline()
        address = said.split()[3]
        assert "/replay/" in address
        page = Page(Api(Roster()), int(address.split(":")[2].split("/")[0]))
        assert page.get("menu")[1]["files"][0]["name"] == "one.jsonl"
        process.send_signal(2)
        assert process.wait(timeout=30) in (0, 130)


def test_a_seed_deals_the_same_game_here_and_there(page: Page) -> None:
    game = new_game(page, seed=11)
    start = engine.new_games(Rules(), 1, seed=11)
    assert game["record"]["setup"]["first_player"] == start["order"][0, 0]
