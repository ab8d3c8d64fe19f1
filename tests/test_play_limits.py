"""What the page's server lets nobody do to others: think for ever, hold connections, fill it up."""

from __future__ import annotations

import functools
import gzip
import http.client
import io
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page import Page, serving
from test_play_server import finished, new_game, play_on

from carolus_env import bots
from carolus_env.arena import ladder
from carolus_env.bots import Agent
from carolus_env.engine.rules import PLACE, Rules
from carolus_env.play import app_state, connections, levels, roster, work
from carolus_env.play.app_state import AppState
from carolus_env.play.library import Replay
from carolus_env.play.roster import Roster, RosterError
from carolus_env.play.session import Session, TurnError, hint
from carolus_env.play.warm import Warmth
from carolus_env.records import record_line
from carolus_env.records.files import scan_file
from carolus_env.system import stopping

ENDLESS = "value:next=4096,rolls=100000,discs=now"
SOON = 20.0  # seconds; a slow machine may take a while. benchmarks/attacks.py measures


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with serving(AppState(Roster())) as running:
        yield running


def in_time(done: Any) -> bool:
    end = time.perf_counter() + SOON
    while not done() and time.perf_counter() < end:
        time.sleep(0.01)
    return bool(done())


@functools.cache
def compile_endless() -> None:
    """Compile what `ENDLESS` runs: the compiler looks at no flag, so it would not end in time."""
    quick = bots.make("value:next=2,rolls=1,discs=now")
    session = Session.new(Rules(), [quick, quick], seed=5)
    while session.state["phase"] != PLACE:
        session.ask_agent()
    hint(quick, session.state, 1)
    session.ask_agent()


def thinking_game(page: Page, *agents: str | None) -> dict[str, Any]:
    """A game in which a bot that never finishes is to begin a turn."""
    compile_endless()
    game = new_game(page, agents=[None, None], seed=5)
    key = game["key"]
    while game["phase"] != "place":
        game = play_on(page, key, game, 1)
    record, seated = game["record"], [*agents] or [ENDLESS, ENDLESS]
    status, game = page.post("games", {"record": record, "agents": seated, "seed": 5})
    assert status == 201, game
    return game


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


def answer_of(opened: socket.socket) -> tuple[int, Any]:
    answer = http.client.HTTPResponse(opened)
    answer.begin()
    return answer.status, json.loads(answer.read())


def think(page: Page, game: dict[str, Any]) -> socket.socket:
    opened = asked(page, f"games/{game['key']}/agent", {"version": game["version"]})
    held = page.app.games[game["key"]]
    assert in_time(lambda: held.jobs)
    return opened


# ------------------------------------------------------------------------------------ searches


def test_a_search_ends_when_its_request_is_gone(page: Page) -> None:
    game = thinking_game(page)
    held = page.app.games[game["key"]]
    think(page, game).close()
    assert in_time(lambda: not held.jobs)
    assert page.get(f"games/{game['key']}")[1]["at"] == game["at"]


def test_a_hint_ends_when_its_request_is_gone(page: Page) -> None:
    game = thinking_game(page, None, None)
    held = page.app.games[game["key"]]
    hint = {"agent": ENDLESS, "version": game["version"]}
    opened = asked(page, f"games/{game['key']}/hint", hint)
    assert in_time(lambda: held.jobs)
    opened.close()
    assert in_time(lambda: not held.jobs)


def test_a_search_is_stopped_and_the_bot_can_think_anew(page: Page) -> None:
    game = thinking_game(page)
    with think(page, game) as opened:
        assert page.post(f"games/{game['key']}/stop", {}) == (200, {"stopped": 1})
        status, answer = answer_of(opened)
    assert (status, answer) == (409, {"error": "The bot was stopped.", "stopped": True})
    with think(page, game):
        pass
    assert page.get(f"games/{game['key']}")[1]["version"] == game["version"]


def test_a_search_ends_when_its_game_is_forgotten(page: Page) -> None:
    game = thinking_game(page)
    held = page.app.games[game["key"]]
    with think(page, game) as opened:
        got, _, _ = page.request("DELETE", f"/api/games/{game['key']}")
        assert (got, answer_of(opened)[0]) == (200, 409)
    assert in_time(lambda: not held.jobs)
    assert page.get(f"games/{game['key']}")[0] == 404


@pytest.mark.parametrize("agent", ["greedy", None])
def test_a_bot_that_thinks_is_replaced_by_another_or_a_person(
    page: Page, agent: str | None
) -> None:
    game = thinking_game(page)
    key, seat = game["key"], game["seat"]
    with think(page, game) as opened:
        change = {"seat": seat, "agent": agent, "version": game["version"]}
        status, after = page.post(f"games/{key}/seat", change)
        assert (status, after["agents"][seat]) == (200, agent), after
        assert answer_of(opened) == (409, {"error": "The bot was replaced.", "stopped": True})
    assert after["names"][seat] == (agent or f"Player {seat + 1}")
    assert after["turn"] == ("agent" if agent else "person")
    assert after["record"]["agents"][seat] == agent
    assert play_on(page, key, after, 1)["at"] > after["at"]
    assert page.post(f"games/{key}/seat", change)[0] == 409, "the game has moved on"


def test_a_bot_that_cannot_be_stopped_is_left_alone_and_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    going = threading.Event()

    class Deaf(Agent):
        def act(self, states, generators):  # type: ignore[no-untyped-def]
            assert going.wait(60)
            return bots.make("random").act(states, generators)

    monkeypatch.setattr(work, "GRACE", 0.05)
    bots.register("deaf", lambda _: Deaf(), "does not look at the flag")
    with serving(AppState(Roster(["deaf"]))) as page:
        game = new_game(page, agents=["deaf", "deaf"])
        key, version = game["key"], game["version"]
        held = page.app.games[key]
        with think(page, game) as opened:
            page.post(f"games/{key}/stop", {})
            assert answer_of(opened)[0] == 409
        status, answer = page.post(f"games/{key}/agent", {"version": version})
        assert (status, answer["error"]) == (409, "deaf has not stopped yet; replace it")
        change = {"seat": game["seat"], "agent": "greedy", "version": version}
        status, after = page.post(f"games/{key}/seat", change)
        assert status == 200
        later = play_on(page, key, after, 1)
        assert later["at"] > game["at"]
        going.set()
        assert in_time(lambda: not held.jobs)
        assert page.get(f"games/{key}")[1]["record"] == later["record"], "its answer is dropped"


def test_a_bot_is_stopped_after_a_time_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_state, "THINKING_SECONDS", 0.3)
    with serving(AppState(Roster())) as page:
        game = thinking_game(page)
        status, answer = page.post(f"games/{game['key']}/agent", {"version": game["version"]})
        assert (status, answer["stopped"]) == (409, True)
        assert answer["error"].startswith(f"{ENDLESS} was stopped after 0 seconds, the most for")
        assert "--bot" in answer["error"]
    with serving(AppState(Roster([ENDLESS]))) as page:
        game = thinking_game(page)
        with think(page, game) as opened:
            time.sleep(0.6)
            assert page.app.games[game["key"]].jobs, "one of the command line has no limit"
            page.post(f"games/{game['key']}/stop", {})
            answer_of(opened)


@pytest.mark.parametrize(
    "spec", ["mcts:sims=20001", "search:sims=10000000", "mcts:seconds=31", "search:v1,seconds=60"]
)
def test_searches_asked_for_from_the_page_have_a_ceiling_that_is_told(
    page: Page, spec: str
) -> None:
    status, answer = page.post("games", {"rules": {"players": 2}, "agents": [None, spec]})
    assert status == 400
    assert answer["error"].endswith(roster.LIMITS)
    assert page.get("menu")[1]["limits"] == roster.LIMITS
    assert Roster([spec]).make(spec).name == spec, "the command line may ask for more"
    assert Roster(limited=False).make(spec).name == spec, "and the terminal"
    with pytest.raises(RosterError, match="may be up to"):
        Roster().make(spec)


# ------------------------------------------------------------------------------------ seats


def test_a_replaced_agent_leaves_a_game_that_is_taken_up_again() -> None:
    def sat(*specs: str) -> Session:
        return Session.new(Rules(), [bots.make(spec) for spec in specs], seed=3)

    session = sat("planner", "greedy")
    for _ in range(20):
        session.ask_agent()
    version = session.version
    session.replace(0, bots.make("random"))
    session.replace(1, None, "Anna")
    assert session.version == version + 2
    assert session.names == ("random", "Anna")
    record = session.record()
    assert (record["names"], record["agents"]) == (["random", "Anna"], ["random", None])
    again = Session(record, session.agents, names=session.names, seed=3)
    assert again.events == session.events
    for played in (session, again):
        while played.player != 0:
            played.play(played.legal()[0].action)
        played.ask_agent()
    assert again.events == session.events
    with pytest.raises(ValueError, match="seat must be from 0 to 1, got 2"):
        session.replace(2, None)
    over = sat("random", "random")
    while not over.over:
        over.ask_agent()
    with pytest.raises(TurnError, match="the game is over"):
        over.replace(0, None)


def test_a_thought_changes_nothing_until_it_is_played() -> None:
    agents = [bots.make("mcts:sims=20"), bots.make("random")]
    session = Session.new(Rules(), agents, seed=8)
    other = Session.new(Rules(), [bots.make(agent.name) for agent in agents], seed=8)
    for _ in range(12):
        session.think()
        session.ask_agent(session.think())
        other.ask_agent()
    assert session.events == other.events


# ------------------------------------------------------------------------------------ connections


@pytest.mark.parametrize("begun", [b"", b"GET /api/menu HTTP/1.1\r\nHost: 127.0"])
def test_connections_that_send_no_whole_request_do_not_keep_others_out(
    page: Page, begun: bytes
) -> None:
    held = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(260)]
    try:
        for one in held:
            one.sendall(begun)
        assert page.get("menu")[0] == 200
        held[0].settimeout(connections.HEAD_SECONDS / 3)
        assert held[0].recv(1) == b"", "the oldest is closed"
    except ConnectionResetError:
        pass  # it is
    finally:
        for one in held:
            one.close()


def test_a_whole_request_that_waits_is_not_closed_for_others(page: Page) -> None:
    game = thinking_game(page)
    with think(page, game) as opened:
        held = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(260)]
        assert page.get("menu")[0] == 200
        for one in held:
            one.close()
        page.post(f"games/{game['key']}/stop", {})
        assert answer_of(opened)[0] == 409


@pytest.mark.parametrize("part", ["head", "body", "second head"])
def test_a_request_that_takes_too_long_is_closed(
    page: Page, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.3)
    head = f"POST /api/games HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nOrigin: {page.address}\r\n"
    whole = f"GET /api/warm HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n"
    if part == "body":
        head += "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", page.port), timeout=10) as opened:
        if part == "second head":
            opened.sendall(whole.encode())
            assert opened.recv(10).startswith(b"HTTP/1.1 2")
        opened.sendall(head.encode())
        for _ in range(40):  # a byte now and then does not help
            try:
                opened.sendall(b"a")
                opened.settimeout(0.05)
                if opened.recv(10_000) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            raise AssertionError("it is still open")


def test_only_so_many_requests_wait_for_one_game(page: Page) -> None:
    game = thinking_game(page)
    with think(page, game) as first:
        path, data = f"games/{game['key']}/agent", {"version": game["version"]}
        others = [asked(page, path, data) for _ in range(app_state.MAX_WAITING + 1)]
        assert in_time(lambda: page.app.games[game["key"]]._waiting > app_state.MAX_WAITING)
        assert answer_of(others[-1])[0] == 503
        for one in others:
            one.close()
        page.request("DELETE", f"/api/games/{game['key']}")
        assert answer_of(first)[0] == 409


# ------------------------------------------------------------------------------------ files


def test_millions_of_blank_lines_cost_no_more_than_their_bytes() -> None:
    line = record_line(finished(1))
    for blank in (b"\n", b" \n", b"\t\r\n"):
        content = gzip.compress(blank * 2**20 + line + blank * 2**20 + b"?")
        started = time.process_time()
        found = list(scan_file(io.BytesIO(content), "many"))
        assert time.process_time() - started < 0.5, "before: a second for every million"
        assert [number for number, _ in found] == [2**20 + 1, 2**21 + 2]


def test_only_so_many_files_are_read_at_once(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    going, reading = threading.Event(), []

    def read(name: str, data: bytes) -> Any:
        reading.append(name)
        assert going.wait(60)
        raise ValueError("enough")

    monkeypatch.setattr(app_state.GameFile, "from_bytes", read)
    statuses: list[int] = []

    def send() -> None:
        statuses.append(page.post_file("a", b"x")[0])

    threads = [threading.Thread(target=send) for _ in range(5 * app_state.MAX_OPENING + 3)]
    for thread in threads:
        thread.start()
    assert in_time(lambda: statuses.count(503) == 3)
    assert len(reading) == app_state.MAX_OPENING
    assert page.get("menu")[0] == 200
    assert new_game(page)["at"] > 0, "a new game waits for no file"
    going.set()
    for thread in threads:
        thread.join()
    monkeypatch.undo()
    assert page.post_file("one", record_line(finished(1)))[0] == 201, "all places are free again"


def test_reading_a_file_ends_when_nobody_waits() -> None:
    record, stop = finished(1), stopping.Stop()
    line = record_line(record)
    stop.set()
    with stop.watched():
        with pytest.raises(stopping.Stopped):
            app_state.GameFile.from_bytes("one", line)
        with pytest.raises(stopping.Stopped):
            Replay(record)
        with pytest.raises(stopping.Stopped):
            Session(record, [None, None])


def test_the_same_file_has_the_same_key_after_a_restart(page: Page) -> None:
    line = record_line(finished(1))
    key = page.post_file("one", line)[1]["key"]
    assert page.post_file("one", line)[1]["key"] == key
    with serving(AppState(Roster())) as other:
        assert other.get(f"files/{key}")[0] == 404
        assert other.post_file("one", line)[1]["key"] == key


# ------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("start", ["", "mcts:", "mcts:sims=", "value:", "my_bot.py:"])
def test_an_error_does_not_echo_a_long_name(page: Page, start: str) -> None:
    asked = {"rules": {"players": 2}, "agents": [None, start + "x" * 100_000]}
    status, answer = page.post("games", asked)
    assert status == 400
    assert len(answer["error"]) < 1100


@pytest.mark.parametrize("spec", ["random:", "greedy:", "ppo:", "mcts:"])
def test_a_colon_with_nothing_after_it_is_no_name(page: Page, spec: str) -> None:
    status, answer = page.post("games", {"rules": {"players": 2}, "agents": [None, spec]})
    assert status == 400
    assert answer["error"] == (
        f"agent '{spec}': nothing follows the colon; without arguments it is '{spec[:-1]}'"
    )


def test_ctrl_c_while_requests_wait_prints_nothing(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf.py"
    deaf.write_text("import time\ndef play(states, generators):\n    time.sleep(600)\n")
    command = [sys.executable, "-m", "carolus_env.play", "--no-open", "--port", "0"]
    root = Path(__file__).parent.parent
    with subprocess.Popen(
        [*command, "--bot", f"{deaf}:play"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=root,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        port = int(process.stdout.readline().split()[3].rstrip("/").rpartition(":")[2])
        page = Page(AppState(Roster()), port)
        game = new_game(page, agents=[f"{deaf}:play"] * 2)
        path, data = f"games/{game['key']}/agent", {"version": game["version"]}
        waiting = [asked(page, path, data) for _ in range(3)]
        half = socket.create_connection(("127.0.0.1", port))
        half.sendall(
            f"POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: {page.address}\r\n"
            "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{".encode()
        )
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(30) == 130
        half.close()
        assert "Traceback" not in said, said
        answers = [answer_of(opened) for opened in waiting]
        assert answers[0] == (503, {"error": "the server is stopping"})
        assert {status for status, _ in answers} <= {409, 503}


# ------------------------------------------------------------------------------------ levels


def test_levels_are_the_rungs_of_the_ladder_that_their_ratings_say(page: Page) -> None:
    given = page.get("menu")[1]["levels"]
    assert [level["name"] for level in given] == ["easy", "medium", "hard"]
    for level, shown in zip(levels.LEVELS, given, strict=True):
        assert shown["agents"] == {str(n): spec for n, spec in level.agents.items()}
        assert shown["agent"] == level.agents[2]
        for players, spec in level.agents.items():
            Roster().make(spec)
            rungs = ladder.rungs(players)
            target = levels.RATINGS.get(level.name, 10_000)
            assert min(rungs, key=lambda rung: abs(rung.elo - target)).spec == spec


def test_compiling_begins_with_the_levels_and_says_how_far_it_is() -> None:
    nothing = Warmth().view()
    assert nothing == {"ready": True, "done": 0, "all": 0, "text": "", "cold": []}
    warmth = Warmth(Roster())
    begun = warmth.view()
    assert (begun["ready"], begun["done"]) == (False, 0)
    assert begun["text"].startswith("Preparing the engine, once on this machine: ")
    needed = {level.agents[2].partition(":")[0] for level in levels.LEVELS}
    assert needed == set(begun["cold"][: begun["all"] - 1])
    assert {spec.partition(":")[0] for spec in roster.OFFERED} == set(begun["cold"])
    seen = []
    for step, work_of in enumerate([step[2] for step in warmth._steps]):
        warmth._steps[step] = (*warmth._steps[step][:2], lambda: seen.append(warmth.view()))
        assert callable(work_of)
    warmth.run()
    assert [view["done"] for view in seen[: begun["all"]]] == list(range(begun["all"]))
    assert [view["ready"] for view in seen] == [k >= begun["all"] for k in range(len(seen))]
    assert warmth.view()["cold"] == []


def test_compiling_in_the_background_warms_what_the_page_uses(page: Page) -> None:
    warmth = Warmth(Roster())
    for name, _, step in warmth._steps[:2]:
        step()
        assert name in ("", "planner")


def test_compiling_stops_with_the_server_and_goes_on_after_a_fault(
    capsys: pytest.CaptureFixture[str],
) -> None:
    warmth = Warmth(Roster())

    def fail() -> None:
        raise RuntimeError("no compiler")

    warmth._steps = [("a", "a", fail), ("b", "b", warmth.stop.set), ("c", "c", warmth.stop.check)]
    warmth.run()
    assert warmth._done == 2
    assert "no compiler" in capsys.readouterr().err
