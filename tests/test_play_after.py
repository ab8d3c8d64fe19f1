"""The page's requests after a game and for sharing: they answer, and refuse with a reason."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from page import Page, serving

from carolus_env import bots
from carolus_env.engine.rules import Rules
from carolus_env.play import after
from carolus_env.play.app_state import AppState
from carolus_env.play.roster import Roster
from carolus_env.play.session import Session
from carolus_env.records import record_line

image = pytest.importorskip("PIL.Image")
pytest.importorskip("resvg")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with serving(AppState(Roster())) as running:
        yield running


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    session = Session.new(Rules(max_rounds=1), [bots.make("greedy")] * 2, seed=3)
    while not session.over:
        session.ask_agent()
    return {**session.record(), "agents": [None, "greedy"], "names": ["Ada", "Bob"]}


@pytest.fixture(scope="module")
def file(page: Page, record: dict[str, Any]) -> str:
    _, answer = page.post_file("a", record_line(record))
    return answer["key"]


def game_of(page: Page, record: dict[str, Any]) -> str:
    status, answer = page.post(
        "games", {"record": record, "agents": [None, "greedy"], "names": ["Ada", None]}
    )
    assert status == 201
    return answer["key"]


def test_a_game_that_is_over_is_looked_back_at_and_its_links_lead_into_the_viewer(page, record):
    key = game_of(page, record)
    status, found = page.post(f"games/{key}/review", {})
    assert status == 200
    assert len(found["values"]) == len(found["decisions"]) + 1
    assert {one["seat"] for one in found["best"] + found["worst"]} <= {0}, "only a person's own"
    for one in found["swings"]:
        assert page.get(f"files/{found['file']}/0/{one['position']}")[0] == 200


def test_a_game_that_goes_on_is_not_looked_back_at(page, record):
    cut = {**record, "events": record["events"][:10], "result": None}
    status, answer = page.post(f"games/{game_of(page, cut)}/review", {})
    assert (status, answer["error"]) == (409, "the game is not over")


def test_a_recorded_game_of_bots_is_looked_back_at_for_all_seats(page, record):
    _, answer = page.post_file("b", record_line({**record, "agents": ["greedy", "greedy"]}))
    status, found = page.post(f"files/{answer['key']}/0/review", {})
    assert status == 200 and "file" not in found
    cut = {**record, "events": [], "result": None}
    _, answer = page.post_file("c", record_line(cut))
    status, answer = page.post(f"files/{answer['key']}/0/review", {})
    assert (status, answer["error"]) == (409, "there are no decisions yet")


@pytest.mark.parametrize("whose", ["game", "file"])
def test_boards_are_saved_as_pictures_in_the_look_that_is_shown(page, record, file, whose):
    if whose == "game":
        path = f"games/{game_of(page, record)}/picture"
    else:
        path = f"files/{file}/0/9/picture"
    status, headers, content = page.request("GET", f"/api/{path}.png?layout=wide&theme=dark")
    picture = image.open(io.BytesIO(content))
    assert status == 200 and picture.format == "PNG" and picture.width == 1200 > picture.height
    assert sum(picture.convert("RGB").getpixel((600, 5))) < 200, "dark"
    assert headers["content-disposition"] == 'attachment; filename="carolus.png"'
    status, headers, content = page.request("GET", f"/api/{path}.svg?layout=narrow&theme=light")
    assert status == 200 and headers["content-type"].startswith("image/svg+xml")
    assert b"carolus-light" in content and b"Ada" in content
    assert page.get(f"{path}.bmp") == (404, {"error": "it can be had as svg or png"})
    assert page.get(f"{path}.png?theme=blue")[0] == 400


def test_a_game_is_saved_as_a_film(page, record, file):
    status, headers, content = page.request("GET", f"/api/files/{file}/0/film.gif")
    frames = sum("action" in event for event in record["events"]) + 1
    assert status == 200 and image.open(io.BytesIO(content)).n_frames == frames
    assert headers["content-disposition"] == 'attachment; filename="carolus.gif"'
    key = game_of(page, record)
    status, headers, content = page.request("GET", f"/api/games/{key}/film.html?theme=dark")
    assert status == 200 and b"Ada" in content


def test_a_film_has_a_limit_that_is_told(page, file, monkeypatch):
    monkeypatch.setattr(after, "MOST_FRAMES", 5)
    status, answer = page.get(f"files/{file}/0/film.gif")
    assert status == 422 and answer["error"].startswith("a film has at most 5 decisions, this")


def test_without_the_extra_a_picture_is_refused_with_how_to_get_it(page, file, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg", None)
    status, answer = page.get(f"files/{file}/0/0/picture.png")
    assert status == 501 and "pip install 'carolus-env[render]'" in answer["error"]
    assert page.request("GET", f"/api/files/{file}/0/0/picture.svg")[0] == 200


def test_a_position_goes_out_as_text_without_its_dice_and_comes_back(page, record, file):
    key = game_of(page, record)
    for path in (f"games/{key}", f"files/{file}/0/12"):
        _, view = page.get(path)
        line = view["line"]
        assert len(line.split(" | ")) == 8, "no generator: it would tell the dice to come"
        status, back = page.post("positions", {"text": line})
        assert status == 200
        assert (back["line"], back["round"], back["phase"]) == (line, view["round"], view["phase"])
    assert back["decides"] and not page.post("positions", {"text": view["line"]})[1]["outcome"]
    status, found = page.post("positions/hint", {"text": line, "agent": "greedy"})
    assert status == 200 and found["choice"]["text"]
    status, _, content = page.request("GET", f"/api/positions/picture.svg?text={quote(line)}")
    assert status == 200 and content.startswith(b"<svg")


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("hello", 422, "position: expected a field such as"),
        ("", 422, "position:"),
        ("x" * 4001, 413, "a position has at most 4,000 characters"),
        ("<script>|" * 9, 422, "position"),
    ],
)
def test_a_text_that_is_no_position_is_refused_with_the_reason(page, text, status, reason):
    for path, more in (("positions", {}), ("positions/hint", {"agent": "greedy"})):
        found, answer = page.post(path, {"text": text, **more})
        assert found == status and answer["error"].startswith(reason)


def test_no_hint_is_given_where_nothing_is_decided(page, record):
    _, view = page.get(f"games/{game_of(page, record)}")
    assert view["phase"] == "over"
    status, answer = page.post("positions/hint", {"text": view["line"], "agent": "greedy"})
    assert (status, answer["error"]) == (409, "there is no decision at this position")
