"""The page's server: what it answers, and what it refuses."""

import asyncio
import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page import Page, Slow, book, finished, serving

from carolus_env import bots, engine
from carolus_env.play import server, session
from carolus_env.play.server import Api
from carolus_env.play.session import LEVELS, GameFile, Roster, RosterError, was_lost
from carolus_env.records import RecordError, names_of, record_line, replay, write_records

TWO = {"rules": {"players": 2}, "agents": [None, "random"], "seed": 7}
RECORD = finished()
NASTY = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def page():
    with serving(Api(Roster())) as running:
        yield running


def new_game(page, **change):
    status, game = page.post("view", {**TWO, **change})
    assert status == 200, game
    return game


def decide(page, game, **more):
    return page.post("decide", {"record": game["record"], **more})


def play_on(page, game, decisions=1):
    """People play their first legal action, bots all they can."""
    while decisions and game["turn"] != "over":
        action = game["legal"][0]["action"] if game["turn"] == "person" else None
        status, game = decide(page, game, action=action)
        assert status == 200, game
        decisions -= 1
    return game


def persons_turn(page, phase=None, **change):
    """A new game, played until a person is to move, in this phase."""
    game = new_game(page, **change)
    while game["turn"] != "person" or phase not in (None, game["phase"]):
        game = play_on(page, game)
    return game


def cut(record, events):
    """The record of a game after so many events."""
    return {**record, "events": record["events"][:events], "result": None}


def test_a_game_is_played_to_its_end_and_seen_again(page):
    game = play_on(page, new_game(page, rules={"players": 2, "max_rounds": 3}), 1000)
    assert game["turn"] == "over"
    assert "limit of 3 rounds" in game["outcome"] or "won" in game["outcome"]
    record = game["record"]
    assert replay(record) == []
    _, full = page.post("view", {"record": record})
    assert full["record"] == record, "the server adds nothing"
    _, rest = page.post("view", {"record": record, "since": 5})
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
    status, hint = page.post("hint", {"record": game["record"], "agent": "greedy"})
    assert (status, hint["agent"], hint["played"]) == (200, "greedy", None)
    moving = persons_turn(page, "move")
    assert all(" to " in step["text"] and step["result"] for step in moving["legal"])


def test_what_cannot_be_done_is_refused_and_the_game_goes_on(page):
    game = persons_turn(page)
    for action in (94, -1, 95, 10**30, 12):
        status, answer = decide(page, game, action=action)
        assert status == 400 and answer["error"]
    assert (
        "no bot is to move" in decide(page, game)[1]["error"]
        or "no agent" in decide(page, game)[1]["error"]
    )
    assert play_on(page, game, 3)["at"] > game["at"]
    bots_turn = new_game(page, agents=["random", "random"])
    assert "turn" in decide(page, bots_turn, action=0)[1]["error"]


def test_only_ones_own_turn_is_undone_and_hints_name_moves_and_shares(page):
    game = new_game(page)
    assert not game["undo"], "nothing was decided"
    while not game["undo"]:
        game = play_on(page, game)
    status, hint = page.post("hint", {"agent": "ppo", "record": game["record"]})
    assert status == 200
    assert sum(hint["values"]) == pytest.approx(1, abs=1e-3)
    shares = [move["share"] for move in hint["moves"]]
    assert hint["choice"]["action"] == hint["moves"][0]["action"]
    assert shares == sorted(shares, reverse=True)
    at = game["at"] - 1
    status, before = page.post("view", {"record": cut(game["record"], at), "since": at})
    assert (status, before["at"], before["log"]) == (200, at, [])
    action = game["record"]["events"][-1]["action"]
    assert decide(page, before, action=action)[1]["record"] == game["record"], "as it was"


def test_a_bots_turn_cut_anywhere_goes_on_to_the_same_game(page):
    """The page shows its decisions one by one, and may be paused or closed between them."""
    game = new_game(page, agents=["planner", None])
    cuts = 0
    while cuts < 5:
        later = play_on(page, game)
        events = later["record"]["events"]
        for at in range(game["at"] + 1, later["at"] if game["turn"] == "agent" else 0):
            if "action" in events[at]:
                status, shown = page.post("view", {"record": cut(later["record"], at)})
                assert (status, shown["at"], shown["turn"]) == (200, at, "agent")
                assert play_on(page, shown)["record"]["events"] == events
                cuts += 1
        game = later


def test_bots_may_fail_or_take_their_time_and_the_server_answers_meanwhile():
    slow = Slow()
    bots.register("slow", lambda _: slow, "thinks for long and fails")
    with serving(Api(Roster(["slow"]))) as page:
        game = new_game(page, agents=["slow", "slow"])
        with page.send("decide", {"record": game["record"]}) as request:
            assert slow.begun.wait(60)
            assert play_on(page, other := new_game(page), 5)["at"] > other["at"]
            slow.going.set()
            answer = request.getresponse()
            assert answer.status == 502
            assert "slow failed with RuntimeError: no idea (page.py" in json.load(answer)["error"]


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


AGENT = {"hint": {"agent": "failing"}, "values": {"agent": "failing"}, "decide": {}}


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
        record = new_game(page, agents=["failing", "failing"])["record"]
        for where in ("hint", "decide", "values"):
            status, answer = page.post(where, {"record": record} | AGENT[where])
            assert status == 502
            assert f"failing failed with {type(error).__name__}" in answer["error"]
        assert page.post("view", TWO)[0] == 200


def test_an_agent_that_ends_the_process_when_it_is_made_ends_a_request_only(page, monkeypatch):
    with serving(Api(Roster())) as page:
        monkeypatch.setattr(Roster, "make", lambda *_: broken("no"))
        status, answer = page.post("view", TWO)
        assert (status, answer["error"][:28]) == (502, "random failed with SystemExi")
        assert page.get("menu")[0] == 200


@pytest.mark.parametrize("what", ["decide", "hint"])
def test_a_search_ends_when_its_request_is_gone(what):
    endless = Slow()
    bots.register("endless", lambda _: endless, "thinks until it is stopped")
    with serving(Api(Roster(["endless"]))) as page:
        game = new_game(page, agents=["endless", "endless"])
        data = {"record": game["record"], **({"agent": "endless"} if what == "hint" else {})}
        with page.send(what, data):
            assert endless.begun.wait(20)
        assert endless.ended.wait(20)


def test_the_engine_and_the_levels_are_compiled_in_the_background(monkeypatch):
    made, make = [], Roster.make
    noted = lambda roster, spec: made.append(spec) or make(roster, "random")  # noqa: E731
    monkeypatch.setattr(Roster, "make", noted)
    server.start_compiling(Roster()).join(60)
    assert {level.agents[2] for level in LEVELS} | {Roster().advisers()[0]} <= set(made)
    assert all(make(Roster(), spec) for level in LEVELS for spec in level.agents.values())


@pytest.mark.parametrize(
    "spec",
    [
        *("my_bot.py:MyBot", "ppo:/etc/passwd", "ppo:../models/2p", "search:my_model,sims=10"),
        *("value:my_model", "ppo:a/b=c", "nobody", "", "mcts:sims=0", "exe:true"),
        *("exe:true,seconds=1"),
    ],
)
def test_a_page_names_no_files_programs_or_endpoints_and_no_unknown_agents(page, spec):
    status, answer = page.post("view", {**TWO, "agents": [None, spec]})
    recorded = page.post("view", {"record": {**RECORD, "agents": [None, spec]}})
    assert recorded[0] == 400 or not spec, "nor by a record"
    reason = "option sims must be" if spec == "mcts:sims=0" else "is not offered here"
    assert (status, reason in answer["error"]) == (400, True), answer
    for typed in ("mcts:sims=5", "ppo:2p", "ppo:2p,temperature=1", "search:2p,sims=5"):
        assert Roster().make(typed).name == typed
    if spec.startswith("exe"):
        assert Roster([spec]).allows(spec) and not Roster([spec]).allows(f"{spec},seconds=2")


def test_agents_of_the_command_line_are_offered(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text("from carolus_env.engine import random_actions as play\nprint('loaded')\n")
    spec = f"{file}:play"
    roster = Roster([spec])
    assert next(iter(roster.menu())) == roster.advisers()[0] == spec
    with serving(Api(roster)) as page:
        game = new_game(page, agents=[spec, None])
        assert play_on(page, game, 5)["at"] > game["at"]
    assert len(re.findall("loaded", capsys.readouterr().out)) == 1, "it is made once, and lent"
    with pytest.raises(RosterError, match="there is no such file"):
        Roster([f"{file}x.py:play"])


def test_only_own_files_are_served_without_inline_scripts_framing_or_sniffing(page):
    for path in ("/", "/game", "/replay/0", "/static/app.js", "/api/menu", "/api/nothing"):
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
    asyncio.run(server.make_app(Api(Roster()))(scope, receive, send))
    return sent[0]["status"], b"".join(message["body"] for message in sent[1:]).decode()


@pytest.mark.parametrize("path", ["/", "/api/view", "/static/app.js"])
def test_only_the_hosts_and_origins_of_this_server_are_answered(path):
    def is_refused(host, origins, method="GET"):
        headers = [("host", host)] + [("origin", one) for one in origins]
        status, answer = answered(path, *headers, method=method)
        assert (status == 400) == (answer == "Invalid host header")
        assert (status == 403) == ("other origins" in answer)
        return status in (400, 403) and "application/json" not in answer

    host, origin = "127.0.0.1:1", "http://127.0.0.1:1"
    assert not any(is_refused(name, []) for name in (host, "localhost:1"))
    assert not any(is_refused(host, [origin], method) for method in ("GET", "POST"))
    for other in ("evil.example", "evil.example:1", "localhost.evil:1", ""):
        for origins in ([], [origin], [f"http://{other}"]):
            assert is_refused(other, origins), other
    for other in ("http://evil.example", "null", "http://127.0.0.1:2", "http://localhost:1"):
        for origins in ([other], [origin, other], [other, origin]):
            assert is_refused(host, origins), origins
    assert is_refused(host, [], "POST")


SEATS = b'{"agents": [null, null], '


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("view", b"{", 400, "not JSON"),
        ("view", b"[]", 400, "the body must be an object"),
        ("view", b'{"sed": 1}', 400, "unknown key 'sed'"),
        ("view", b'{"seed": "1"}', 400, "seed must be a whole number"),
        ("view", SEATS + b'"seed": -1}', 400, "seed must be"),
        ("view", SEATS + b'"seed": 9007199254740992}', 400, "seed must be"),
        ("view", b'{"agents": [null, 1]}', 400, "agents[1] must be a string"),
        ("view", b'{"agents": [null]}', 400, "agents must be 2"),
        ("view", SEATS + b'"names": ["a", "\\u001b"]}', 400, "names[1]"),
        ("view", SEATS + b'"rules": {"players": 5}}', 400, "players must be"),
        ("view", SEATS + b'"layout": "round"}', 400, "layout must be one of"),
        ("view", SEATS + b'"record": {}}', 400, "format is missing"),
        ("view", b'{"record": {}}', 400, "format is missing"),
        ("view", SEATS + b'"since": -5}', 400, "since must be a whole number from 0"),
        ("view", b'{"at": 0}', 400, "record is missing"),
        ("decide", b'{"action": 1}', 400, "record is missing"),
        ("hint", b"{}", 400, "record is missing"),
        ("values", b"{}", 400, "record is missing"),
        ("nothing", b"{}", 404, "Not Found"),
        ("menu", b"{}", 405, "Method Not Allowed"),
    ],
)
def test_a_bad_request_gets_a_sentence(page, path, body, status, reason):
    got, answer = page.post(path, body)
    assert got == status
    assert reason in answer["error"]


ODD = (
    True,
    -1,
    10**6,
    -(10**30),
    10**30,
    1.5,
    "",
    "x",
    "\ud800",
    [],
    [[]],
    [None] * 9,
    {},
    {"a": 1},
)


@pytest.mark.parametrize("request_", server.REQUESTS)
def test_no_value_of_a_field_is_more_than_a_bad_request(page, request_, capfd):
    body = {"record": cut(RECORD, 20), "agent": "random"}
    body = {key: value for key, value in body.items() if key in server.REQUESTS[request_]}
    wrong = [(body, field) for field in server.REQUESTS[request_]]
    if request_ == "view":
        wrong += [({"agents": [None, "random"]}, field) for field in ("rules", "names", "since")]
    wrong += [(body, f"record.{key}") for key in ("rules", "setup", "events", "agents", "seed")]
    for given, field in wrong:
        outer, _, inner = field.partition(".")
        for value in ODD:
            value = {**body["record"], inner: value} if inner else value
            status, answer = page.post(request_, {**given, outer: value})
            assert status == 200 or (status == 400 and answer["error"]), (field, value, answer)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("error", [ValueError, TypeError, OverflowError, KeyError])
def test_an_error_of_the_server_itself_is_no_bad_request_and_is_printed(
    page, monkeypatch, capfd, error
):
    def fail(*_, **__):
        raise error("a fault of the drawing")

    monkeypatch.setattr(server, "board_svg", fail)
    for request_, body in (("view", TWO), ("view", {"record": RECORD, "at": 3})):
        status, answer = page.post(request_, body)
        assert (status, "internal error" in answer["error"]) == (500, True)
        printed = capfd.readouterr().err
        assert "Traceback" in printed and "a fault of the drawing" in printed


class Alone(bots.Agent):
    """Notes how many threads ask it at once."""

    def __init__(self):
        self.now, self.most, self.two = 0, 0, threading.Barrier(2)

    def act(self, states, generators):
        self.now += 1
        self.most = max(self.most, self.now)
        with contextlib.suppress(threading.BrokenBarrierError):
            self.two.wait(0.5)
        self.now -= 1
        return engine.random_actions(states, generators)


def test_one_agent_object_is_never_asked_by_two_threads_at_once():
    one = Alone()
    bots.register("alone", lambda _: one, "is the same object for all")
    with serving(Api(Roster(["alone"]))) as page:
        record = new_game(page, agents=["alone", "random"], rules={"max_rounds": 1})["record"]
        at = next(i for i, event in enumerate(finished()["events"]) if "action" in event)
        asked = {"record": finished(), "at": at, "agent": "alone"}
        with page.send("decide", {"record": record}) as first, page.send("hint", asked) as second:
            assert [first.getresponse().status, second.getresponse().status] == [200, 200]
    assert one.most == 1


def test_requests_cut_off_of_other_types_wrong_or_huge_are_refused(page, monkeypatch):
    headers = {"host": "127.0.0.1:1", "origin": "http://127.0.0.1:1"}
    headers["content-type"] = "application/json"
    begun = {"type": "http.request", "body": b"{", "more_body": True}
    status, answer = answered("/api/view", *headers.items(), method="POST", said=(begun,))
    assert (status, json.loads(answer)) == (400, {"error": "the request was cut off"})
    for kind in ("text/plain", "multipart/form-data"):
        assert page.post("view", TWO, kind)[0] == 415
    monkeypatch.setattr(server, "MAX_BODY", 2**20)
    assert page.post("view", {"names": ["a" * 2**20]})[0] == 413


def test_of_a_large_file_the_first_games_are_listed(tmp_path, monkeypatch):
    line = record_line(finished())
    monkeypatch.setattr(session, "MAX_LINES", 3)
    many = book(tmp_path / "many", line * 5)
    assert (len(many.games), many.problems, many.more) == (3, [], True)
    assert not book(tmp_path / "few", line * 3).more
    many = book(tmp_path / "many", line[:-2] + b',"more":1e999}\n' + line * 5)
    assert [game["title"] for game in many.games] == ["line 2", "line 3"]
    assert "line 1: not JSON: 1e999 is beyond every float" in many.problems[0]
    monkeypatch.setattr(session, "MAX_BYTES", 2 * len(line))
    assert len(book(tmp_path / "many", line * 5).games) == 2


def test_a_file_is_stepped_through_and_played_on_from_any_position(tmp_path):
    games = [finished(), finished(seed=2, names=["Anna", "Bert"])]
    plain = book(tmp_path / "two.jsonl", *games)
    packed = book(tmp_path / "two.gz", gzip.compress(b"".join(map(record_line, games))))
    with serving(Api(Roster(), [plain, packed])) as page:
        assert page.get("menu")[1]["files"] == [plain.name, packed.name]
        for number in (0, 1):
            status, listed = page.get(f"records/{number}")
            assert [game["title"] for game in listed["games"]] == ["line 1", "line 2"]
        status, record = page.get("records/1/1")
        assert (status, record) == (200, games[1])
        wrong = ("2", "0/2", "0/-1", "x", "0/x", "9" * 5000, "0/" + "9" * 5000)
        for path in (f"records/{number}" for number in wrong):
            assert page.get(path)[0] == 404
        events = record["events"]
        decision = [i for i, event in enumerate(events) if "action" in event][3]
        for at in (0, decision, len(events)):
            status, shown = page.post("view", {"record": record, "at": at, "layout": "wide"})
            assert (status, shown["at"], "Anna" in shown["svg"]) == (200, at, True)
            assert (shown["names"], len(shown["log"])) == (["Anna", "Bert"], len(events))
            assert bool(shown["outcome"]) == (at == len(events))
            assert "record" not in shown and shown["result"]
        for at in (-1, len(events) + 1):
            assert page.post("view", {"record": record, "at": at})[0] == 400
        asked = {"record": record, "agent": "random"}
        status, hint = page.post("hint", {**asked, "at": decision})
        assert (status, hint["played"]) == (200, events[decision]["action"])
        assert hint["played"] in [move["action"] for move in hint["moves"]]
        for at in (0, len(events)):
            assert "no decision" in page.post("hint", {**asked, "at": at})[1]["error"]
        status, result = page.post("values", {**asked, "agent": "ppo"})
        assert (status, len(result["values"])) == (200, sum("action" in e for e in events))
        assert np.allclose(np.sum(result["values"], axis=1), 1, atol=1e-3)
        assert "does not value" in page.post("values", asked)[1]["error"]
        asked = {"agents": [None, "random"], "seed": 5, "record": cut(record, 20)}
        status, game = page.post("view", asked)
        assert (status, game["record"]["events"][:20]) == (200, events[:20]), "it is played on"
        assert play_on(page, game, 10)["at"] > 20


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "there is no game record in it"),
        (b"hello", "not JSON"),
        (b"{}\n", "format is missing"),
    ],
)
def test_a_file_without_games_is_refused_with_the_reason(tmp_path, content, reason):
    with pytest.raises(RecordError, match=reason):
        book(tmp_path / "broken.jsonl", content)


def test_a_record_that_breaks_the_rules_is_refused_and_names_in_others_are_data(page):
    at = next(i for i, event in enumerate(RECORD["events"]) if "action" in event)
    events = [*RECORD["events"]]
    events[at] = {**events[at], "action": 94}
    for request in ({"at": 0}, {}):
        status, answer = page.post("view", {"record": {**RECORD, "events": events}, **request})
        assert (status, f"event {at}" in answer["error"]) == (400, True)
    record = finished(names=[NASTY, "\x1b[31m" + "x" * 100])
    assert names_of(record) == (NASTY, "?[31m" + "x" * 35)
    assert names_of({**record, "names": [1, 2]}) == ("random", "random")
    assert names_of({**record, "names": None, "agents": None}) == ("player 0", "player 1")
    asked = {"record": {**record, "agents": ["\ud800", NASTY]}, "at": 3}
    status, shown = page.post("view", asked)
    assert (status, shown["agents"]) == (200, ["\ud800", NASTY])
    assert "<img" not in shown["svg"]


def test_the_games_that_a_bot_lost_are_picked(tmp_path):
    records = [finished(rounds=None, seed=seed) for seed in range(6)]
    for number, record in enumerate(records):
        record["agents"] = ["a", "b"] if number % 2 == 0 else ["b", "a"]
    losses = [n for n, record in enumerate(records) if record["result"]["returns"][n % 2] < 0]
    assert 0 < len(losses) < 6
    assert [n for n, record in enumerate(records) if was_lost(record, "a")] == losses
    write_records(tmp_path / "games.jsonl", records)
    lost = GameFile(tmp_path / "games.jsonl", "a")
    assert [game["title"] for game in lost.games] == [f"line {number + 1}" for number in losses]
    with pytest.raises(RecordError, match="none of its 6 games was lost by nobody"):
        GameFile(tmp_path / "games.jsonl", "nobody")
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
        assert address.endswith("/replay/0")
        page = Page(int(address.split(":")[2].split("/")[0]))
        assert page.get("menu")[1]["files"] == ["one.jsonl"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert [*process.stderr][-1].endswith("interrupted\n")
