"""The page in a real browser: Chromium without a window, driven by Playwright."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from page import Page, serving

import carolus_env as ce
from carolus_env import bots
from carolus_env.bots import Agent
from carolus_env.drawing import board_svg
from carolus_env.engine.rules import PLACE, Rules, action_parts
from carolus_env.play.api import Api
from carolus_env.play.roster import LEVELS, Roster
from carolus_env.play.server import make_server, open_socket
from carolus_env.play.session import Session
from carolus_env.records import record_line
from carolus_env.replay import replay

sync_api = pytest.importorskip("playwright.sync_api")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT = 120_000  # milliseconds; the first decision of an agent may have to be compiled
sync_api.expect.set_options(timeout=TIMEOUT)
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
DECIDING = ", ".join(f".choices.{what}" for what in ("disc", "crown", "place", "move", "over"))
NASTY = '<img src=x onerror="window.hit=1"><b>B'
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

Tab = Any
Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with serving(Api(Roster())) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield started
        started.close()


@pytest.fixture
def open_tab(browser: Any, page: Page) -> Iterator[Open]:
    """Opens tabs that fail the test when a script fails or the page's policy is broken."""
    contexts, problems = [], []

    def opened(
        path: str = "/",
        size: dict[str, int] = DESKTOP,
        speed: str = "instant",
        **options: Any,
    ) -> Tab:
        context = browser.new_context(viewport=size, **options)
        context.set_default_timeout(TIMEOUT)
        context.add_init_script(f"localStorage.setItem('carolus.speed', '\"{speed}\"')")
        contexts.append(context)
        return watched(context, path)

    def watched(context: Any, path: str) -> Tab:
        tab = context.new_page()
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("console", lambda said: problems.append(said.text) if is_bad(said) else None)
        tab.goto(path if path.startswith("http") else page.address + path)
        return tab

    opened.beside = lambda tab, path="/": watched(tab.context, path)  # type: ignore[attr-defined]
    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def is_bad(said: Any) -> bool:
    """Answers that refuse something are expected; all else that is an error is none."""
    return said.type == "error" and "Failed to load resource" not in said.text


def start_game(
    tab: Tab, bots: str = "random", seed: int = 7, rounds: int = 2, players: int = 2
) -> None:
    """Fill in the form: a person against bots."""
    more(tab)
    tab.get_by_label(str(players), exact=True).check(force=True)
    for seat in range(2, players + 1):
        tab.get_by_label(f"Seat {seat}", exact=True).select_option(bots)
    tab.get_by_text("Options", exact=True).click()
    tab.get_by_label("Seed (empty: random)").fill(str(seed))
    tab.get_by_label("Round limit (empty: none)").fill(str(rounds))
    tab.get_by_role("button", name="Start").click()
    decided(tab)


def more(tab: Tab) -> None:
    """Open the form for all new games."""
    if not tab.locator("form.card").is_visible():
        tab.get_by_text("More", exact=True).click()


def decided(tab: Tab) -> str:
    """Wait for a decision of a person or the end; returns the phase."""
    tab.wait_for_selector(DECIDING, state="attached")
    return tab.locator(DECIDING).get_attribute("class").split()[-1]


def events(tab: Tab) -> int:
    return tab.locator(".log li").count()


def after(tab: Tab, act: Callable[[], Any]) -> str:
    """Do something that plays a decision; wait for the next one."""
    before = events(tab)
    act()
    tab.wait_for_function("n => document.querySelectorAll('.log li').length > n", arg=before)
    return decided(tab)


def click_on(tab: Tab) -> str:
    """Decide by clicking on the board alone: a disc, a clan, a paladin and its place, a region."""
    phase = decided(tab)
    board = tab.locator(".board")
    if phase == "disc":
        return after(tab, board.locator(".disc.open").first.click)
    if phase == "crown":
        return after(tab, board.locator(".supply .token.open").first.click)
    if phase == "move":
        return after(tab, board.locator(".region.open text, .step.open").nth(events(tab) % 2).click)
    number = events(tab)
    token = board.locator(".reserve .token.open").last
    if "held" not in token.get_attribute("class"):
        token.click()
    if number % 3 == 0:
        return after(tab, board.locator(".court.open > rect").first.click)
    return after(tab, board.locator(".region.open text").nth(number % 7).click)


def click_to(tab: Tab, phase: str) -> None:
    while decided(tab) != phase:
        click_on(tab)


def type_on(tab: Tab) -> str:
    """Decide by keys alone."""
    phase = decided(tab)
    keys = tab.keyboard
    if phase == "disc":
        discs = [text[-1] for text in tab.locator(".choices button").all_inner_texts()]
        keys.press(discs[-1])
    elif phase == "crown":
        keys.press(tab.locator(".choices button").last.inner_text()[0])
    elif phase == "move":
        keys.press("1")
    else:
        keys.press(tab.locator(".hand button span").first.inner_text()[0])
        if events(tab) % 2:
            keys.press("c")
        else:
            keys.press("1")
            keys.press("1")  # territory 11
            keys.press("ArrowRight")
    return after(tab, lambda: keys.press("Enter"))


def record_of(tab: Tab, page: Page) -> dict[str, Any]:
    key = tab.url.rsplit("/", 1)[1]
    _, _, content = page.request("GET", f"/api/games/{key}/record")
    return json.loads(content)


def some_record(rounds: int = 2, **more: Any) -> dict[str, Any]:
    session = Session.new(Rules(max_rounds=rounds), [bots.make("greedy")] * 2, seed=3)
    while not session.over:
        session.ask_agent()
    return {**session.record(), **more}


def drop(tab: Tab, name: str, content: bytes) -> None:
    """Drop a file on the page."""
    tab.wait_for_selector("main *:visible")
    data = tab.evaluate_handle(
        """([name, content]) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(content)], name));
            return data;
        }""",
        [name, list(content)],
    )
    tab.dispatch_event("body", "dragover", {"dataTransfer": data})
    tab.dispatch_event("body", "drop", {"dataTransfer": data})


def fits(tab: Tab) -> bool:
    return tab.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


# ------------------------------------------------------------------------------------ playing


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_whole_game_is_played_by_clicking(open_tab: Open, page: Page, size: Any) -> None:
    tab = open_tab(size=size)
    tab.locator(".level").first.wait_for()
    assert fits(tab)
    start_game(tab)
    seen = set()
    while (phase := decided(tab)) != "over":
        seen.add(phase)
        assert fits(tab)
        click_on(tab)
    assert seen >= {"disc", "place", "move", "crown"}
    record = record_of(tab, page)
    assert replay(record) == []
    assert record["result"] is not None
    assert tab.locator("h1").inner_text() == "The game reached its limit of 2 rounds; nobody won."
    assert events(tab) == len(record["events"])


def test_a_whole_game_is_played_by_keyboard(open_tab: Open, page: Page) -> None:
    tab = open_tab()
    start_game(tab)
    while decided(tab) != "over":
        type_on(tab)
    record = record_of(tab, page)
    assert replay(record) == []
    assert record["result"]["rounds"] == 2
    parts = [action_parts(event["action"]) for event in record["events"] if "action" in event]
    places = [part.destination for part in parts if part.kind == "place"]
    assert {place == 0 for place in places} == {True, False}, "court and regions"


def test_digits_of_one_paladin_are_not_those_of_the_next(open_tab: Open) -> None:
    tab = open_tab()
    start_game(tab)
    click_to(tab, "place")
    for digit in "14":
        clan = tab.locator(".hand [data-clan]").first.get_attribute("data-clan")
        tab.keyboard.press(clan[0])
        tab.keyboard.press(digit)
        assert tab.evaluate("document.activeElement.dataset.text") == digit
        if digit == "1":
            after(tab, lambda: tab.keyboard.press("Enter"))


def test_an_illegal_click_says_why_and_changes_nothing(open_tab: Open) -> None:
    tab = open_tab()
    start_game(tab)
    click_to(tab, "disc")
    notice, board, before = tab.locator("#notice"), tab.locator(".board"), events(tab)
    board.locator(".region text").first.click()
    sync_api.expect(notice).to_have_text("Play a disc first.")
    click_to(tab, "place")
    before = events(tab)
    board.locator(".region.open text").nth(3).click()
    sync_api.expect(notice).to_have_text("Choose a paladin from your reserve first.")
    board.locator(".supply .token").first.click()
    sync_api.expect(notice).to_contain_text("to your court or to a region")
    assert events(tab) == before
    click_to(tab, "move")
    before = events(tab)
    far = board.locator(".region:not(.open) text").first
    where = board.locator(".region:not(.open)").first.get_attribute("data-territories")
    far.click()
    sync_api.expect(notice).to_have_text(f"The Emperor cannot reach {where} this turn.")
    assert events(tab) == before


def test_stops_of_the_emperor_are_told(open_tab: Open) -> None:
    tab = open_tab()
    start_game(tab)
    click_to(tab, "move")
    before = events(tab)
    step = tab.locator(".choices .step").first
    result = step.locator("span").inner_text()
    tip = tab.locator(".tip")
    for aim in (step.hover, step.focus, tab.locator(".board .region.open text").first.hover):
        tab.mouse.move(1, 1)
        tab.evaluate("document.activeElement.blur()")
        sync_api.expect(tip).to_be_hidden()
        aim()
        sync_api.expect(tip).to_contain_text(result)
    assert events(tab) == before


def test_what_a_paladin_would_do_is_shown_where_it_is_pointed_at(
    open_tab: Open, page: Page
) -> None:
    tab = open_tab()
    start_game(tab)
    click_to(tab, "place")
    key, tip, board = tab.url.rsplit("/", 1)[1], tab.locator(".tip"), tab.locator(".board")
    _, game = page.get(f"games/{key}")
    for number, region in enumerate(game["regions"][:3]):
        board.locator(".region text").nth(number).hover()
        sync_api.expect(tip.locator("b")).to_have_text(region["territories"])
        sync_api.expect(tip.locator("p").last).to_have_text(region["result"])
        assert tip.locator("span").all_inner_texts() == [str(n) for n in region["strengths"]]
    paladin = tab.locator(".hand button").first
    if paladin.get_attribute("aria-pressed") == "false":
        paladin.click()
    clan = paladin.get_attribute("data-clan")
    places = [decision for decision in game["legal"] if decision["clan"] == clan]
    for button, place in zip(tab.locator(".where button").all()[:3], places, strict=False):
        button.focus()
        sync_api.expect(tip).to_contain_text(place["result"])
        assert button.get_attribute("aria-description").endswith(place["result"])
        assert board.locator(".aimed").count() == 1
    tab.evaluate("document.activeElement.blur()")
    sync_api.expect(tip).to_be_hidden()
    assert board.locator(".aimed").count() == 0


def test_the_board_is_told_in_words(open_tab: Open) -> None:
    tab = open_tab()
    more(tab)
    tab.get_by_label("Name in seat 1").fill("Ada")
    start_game(tab)
    tab.get_by_text("The board in words").click()
    told = tab.locator(".words li")
    sync_api.expect(told).to_have_count(15 + 2)
    assert " for Ada, " in told.first.inner_text()
    assert told.nth(15).inner_text().startswith("Ada, 0 castles of 10: controls no clan; ")


def test_the_log_marks_what_the_others_did_since_ones_own_turn(open_tab: Open, page: Page) -> None:
    tab = open_tab()
    start_game(tab, rounds=3)
    fresh, turns = tab.locator(".log .fresh"), 0
    while (phase := decided(tab)) != "over":
        _, view = page.get(f"games/{tab.url.rsplit('/', 1)[1]}")
        marked = [int(line.get_attribute("data-event")) for line in fresh.all()]
        assert marked == view["news"]
        assert {view["log"][index]["seat"] for index in marked} <= {1}
        before = [line["seat"] for line in view["log"] if line["text"].startswith("E+")]
        if before[-1:] == [1]:
            assert marked, "until one's own turn is over"
            turns += phase == "move"
        click_on(tab)
    assert turns
    assert tab.locator(".log [data-round]").first.get_attribute("data-round") == "set-up"


def test_on_a_touch_screen_the_first_tap_previews_and_the_second_plays(open_tab: Open) -> None:
    tab = open_tab(size=PHONE, has_touch=True)
    start_game(tab)
    click_to(tab, "move")
    before, region = events(tab), tab.locator(".board .step.open").first
    region.tap()
    sync_api.expect(tab.locator(".tip")).to_be_visible()
    sync_api.expect(tab.locator("#notice")).to_contain_text("Tap again to move the Emperor there.")
    assert events(tab) == before
    after(tab, region.tap)


def test_decisions_are_undone_until_dice_fall(open_tab: Open) -> None:
    tab = open_tab()
    start_game(tab)
    click_to(tab, "place")
    before = tab.locator(".log li").all_inner_texts()
    click_on(tab)
    click_on(tab)
    undo = tab.get_by_role("button", name="Undo")
    undo.click()
    sync_api.expect(tab.locator(".log li")).to_have_count(len(before) + 1)
    tab.keyboard.press("u")
    sync_api.expect(tab.locator(".log li")).to_have_count(len(before))
    assert tab.locator(".log li").all_inner_texts() == before
    click_to(tab, "move")
    click_on(tab)
    sync_api.expect(undo).to_be_disabled()


@pytest.mark.parametrize("phase", ["disc", "place", "move"])
def test_a_hint_is_told_and_marked(open_tab: Open, phase: str) -> None:
    tab = open_tab()
    start_game(tab)
    click_to(tab, phase)
    tab.get_by_label("Bot that gives hints").select_option("ppo")
    tab.get_by_role("button", name="Hint").click()
    opinion = tab.get_by_role("region", name="What ppo thinks")
    assert "%" in opinion.locator("li").first.inner_text()
    assert opinion.get_by_role("img").get_attribute("aria-label").startswith("Expected share")
    assert tab.locator(".choice.advised").count() == tab.locator(".board .advised").count() == 1
    click_on(tab)
    sync_api.expect(opinion).to_have_count(0)
    assert tab.locator(".advised").count() == 0


# ------------------------------------------------------------------------------------ keeping games


def test_a_game_goes_on_when_the_server_was_started_anew(open_tab: Open) -> None:
    listening = open_socket(0)
    port = listening.getsockname()[1]
    tabs, before = [], []
    for number in range(2):
        if number:
            listening = open_socket(port)
        server = make_server(Api(Roster()), listening)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        if number == 0:
            tabs.append(open_tab(f"http://127.0.0.1:{port}/"))
            start_game(tabs[0])
            click_to(tabs[0], "place")
            click_on(tabs[0])
            before = tabs[0].locator(".log li").all_inner_texts()
        else:
            address = tabs[0].url
            tabs[0].reload()
            tabs[0].wait_for_function("before => location.href !== before", arg=address)
            decided(tabs[0])
            assert tabs[0].locator(".log li").all_inner_texts() == before
            click_on(tabs[0])
        server.should_exit = True
        thread.join(timeout=30)
        listening.close()


def test_two_games_go_on_side_by_side(open_tab: Open, page: Page) -> None:
    one = open_tab()
    start_game(one, seed=1)
    two = open_tab.beside(one)  # type: ignore[attr-defined]
    start_game(two, bots="greedy", seed=2, players=3)
    for tab in (one, two) * 3:
        tab.bring_to_front()  # a browser lets pages behind others wait
        click_on(tab)
    records = [record_of(tab, page) for tab in (one, two)]
    assert [record["seed"] for record in records] == [1, 2]
    assert [record["rules"]["players"] for record in records] == [2, 3]
    start = open_tab.beside(two)  # type: ignore[attr-defined]
    start.get_by_role("region", name="Continue your last game").get_by_role("link").click()
    decided(start)
    assert start.url == two.url
    start.goto(one.url)
    decided(start)
    behind = events(one)
    click_on(start)  # the same game in two windows: the first one learns of it when it plays
    one.bring_to_front()
    one.locator(".board").locator(".open").first.click()
    decided(one)
    one.keyboard.press("Escape")
    one.reload()
    decided(one)
    assert events(one) > behind


def test_four_play_with_partners(open_tab: Open, page: Page) -> None:
    tab = open_tab()
    more(tab)
    tab.get_by_label("4", exact=True).check(force=True)
    tab.get_by_text("Options", exact=True).click()
    tab.get_by_label("Partners sit").select_option("adjacent")
    start_game_after_options(tab)
    record = record_of(tab, page)
    assert record["rules"]["partners"] == "adjacent"
    assert record["agents"] == [None, "random", "random", "random"]
    click_on(tab)


def start_game_after_options(tab: Tab) -> None:
    for seat in (2, 3, 4):
        tab.get_by_label(f"Seat {seat}", exact=True).select_option("random")
    tab.get_by_role("button", name="Start").click()
    decided(tab)


def test_a_bot_that_thinks_for_long_is_shown_and_left(open_tab: Open) -> None:
    going = threading.Event()

    class Slow(Agent):
        def act(self, states, generators):  # type: ignore[no-untyped-def]
            going.wait(60)
            raise RuntimeError("tired")

    bots.register("slowest", lambda _: Slow(), "thinks for long and fails")
    with serving(Api(Roster(["slowest"]))) as page:
        tab = open_tab(page.address)
        more(tab)
        tab.get_by_label("Seat 1", exact=True).select_option("slowest")
        tab.get_by_role("button", name="Start").click()
        doing = tab.locator(".doing.thinking")
        sync_api.expect(doing).to_contain_text("slowest has been thinking for")
        beside = open_tab(page.address)
        start_game(beside)
        going.set()
        sync_api.expect(tab.locator("#notice")).to_have_text(
            "slowest failed with RuntimeError: tired"
        )
        sync_api.expect(tab.get_by_role("button", name="Resume")).to_be_enabled()


def test_names_are_shown_as_they_are_and_run_nothing(open_tab: Open) -> None:
    tab = open_tab()
    more(tab)
    tab.get_by_label("Name in seat 1").fill(NASTY)
    start_game(tab)
    click_on(tab)
    assert tab.locator("h1").inner_text().endswith(NASTY)
    assert tab.locator("main img").count() == 0
    drop(tab, "nasty.jsonl", record_line(some_record(names=[NASTY, NASTY])))
    tab.wait_for_selector(".viewer .board svg")
    assert NASTY in tab.locator("h1").inner_text()
    assert tab.evaluate("window.hit") is None


# ------------------------------------------------------------------------------------ viewer


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_record_is_dropped_in_and_stepped_through(open_tab: Open, size: Any) -> None:
    record = some_record()
    last = len(record["events"])
    tab = open_tab(size=size)
    drop(tab, "one.jsonl", record_line(record))
    tab.wait_for_url("**/replay/*")
    at = lambda number: tab.wait_for_selector(f'.board[data-at="{number}"]')  # noqa: E731
    at(0)
    assert fits(tab)
    assert tab.locator(".log li").count() == last
    keys, button = tab.keyboard, lambda name: tab.get_by_role("button", name=name, exact=True)
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    at(2)
    keys.press("ArrowLeft")
    at(1)
    keys.press("End")
    at(last)
    assert "won (" in tab.get_by_role("region", name="Board").get_by_role("img").get_attribute(
        "aria-label"
    )
    button("Start of the game").click()
    at(0)
    button("Next event").click()
    at(1)
    button("Next round").click()
    at(next(i for i, event in enumerate(record["events"]) if event.get("action", 99) < 5))
    tab.locator(".log li").nth(9).click()
    at(10)
    assert tab.locator('.log li[aria-current="true"]').get_attribute("data-event") == "9"
    tab.get_by_role("slider").fill("17")
    at(17)
    tab.locator(".graph").wait_for()
    tab.locator(".graph").click(position={"x": 1, "y": 50})
    at(0)
    tab.reload()
    at(0)
    tab.evaluate("location.hash = '#0/5'")
    at(5)


def test_opinions_stand_beside_the_board(open_tab: Open) -> None:
    record = some_record()
    at = next(i for i, e in enumerate(record["events"]) if e.get("action", 0) >= 15)
    tab = open_tab("/replay")
    tab.set_input_files(
        "#record-file", {"name": "a.jsonl", "mimeType": "", "buffer": record_line(record)}
    )
    tab.wait_for_selector(".graph")
    tab.locator(".log li").nth(at - 1).click()
    for name in ("greedy", "ppo"):
        tab.get_by_label("Bot to ask").select_option(name)
        opinion = tab.get_by_role("region", name=f"What {name} thinks")
        opinion.wait_for()
        assert opinion.locator(".played").count() == 1
        assert opinion.get_by_role("img").count() == (name == "ppo")
        places = tab.locator(".graph-place")
        if name == "ppo":
            places.locator(".graph").wait_for()
        else:
            sync_api.expect(places).to_have_text("greedy does not value positions")


def test_a_file_of_several_games_is_a_list(open_tab: Open) -> None:
    tab = open_tab("/replay")
    records = [some_record(rounds, names=[f"A{rounds}", "B"]) for rounds in (1, 2)]
    drop(tab, "two.jsonl", b"".join(map(record_line, records)) + b"rubbish\n")
    tab.wait_for_selector(".board svg")
    assert tab.locator("h1").inner_text() == "A1 · B"
    tab.get_by_label("Game", exact=True).select_option(index=1)
    sync_api.expect(tab.locator("h1")).to_have_text("A2 · B")
    tab.get_by_text("Problems in the file (1)").click()
    assert "line 3: not JSON" in tab.locator("details:not(.words) li").inner_text()


def test_a_game_is_played_on_from_the_viewer(open_tab: Open, page: Page) -> None:
    record = some_record()
    tab = open_tab("/replay")
    drop(tab, "one.jsonl", record_line(record))
    tab.wait_for_selector(".board svg")
    tab.locator(".log li").nth(19).click()
    tab.wait_for_selector('.board[data-at="20"]')
    tab.get_by_role("button", name="Play from here").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("Seat 1", exact=True).select_option(label="a person")
    dialog.get_by_role("button", name="Play").click()
    tab.wait_for_url("**/game/*")
    decided(tab)
    again = record_of(tab, page)
    assert again["events"][:20] == record["events"][:20]
    assert again["agents"] == [None, "greedy"]
    click_on(tab)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"hello", "not JSON", marks=pytest.mark.slow),
        (b'{"format": "chess"}', "format must be 'carolus-record'"),
        (b"", "there is no game record in it"),
    ],
)
def test_a_broken_record_is_refused_with_the_reason(
    open_tab: Open, content: bytes, reason: str
) -> None:
    tab = open_tab()
    drop(tab, "broken.jsonl", content)
    sync_api.expect(tab.locator("#notice")).to_contain_text(reason)
    start_game(tab)


def test_the_end_of_a_game_is_looked_back_at(open_tab: Open) -> None:
    tab = open_tab()
    start_game(tab, rounds=1)
    while decided(tab) != "over":
        click_on(tab)
    count = events(tab)
    tab.locator(".choices").get_by_role("button", name="Review").click()
    tab.wait_for_selector(".viewer .board svg")
    assert events(tab) == count


def test_a_game_is_played_again_with_the_same_players(open_tab: Open, page: Page) -> None:
    tab = open_tab()
    more(tab)
    tab.get_by_label("Name in seat 1").fill("Ada")
    start_game(tab, rounds=1)
    while decided(tab) != "over":
        click_on(tab)
    before = record_of(tab, page)
    sync_api.expect(tab.get_by_label("Bot speed")).to_be_hidden()
    tab.get_by_role("button", name="Play again").click()
    tab.wait_for_selector(".choices:not(.over)")
    decided(tab)
    again = record_of(tab, page)
    for what in ("rules", "names", "agents"):
        assert again[what] == before[what]
    assert again["seed"] != before["seed"]


# ------------------------------------------------------------------------------------ the page


UNNAMED = """() => ['button', 'a[href]', 'input', 'select', 'summary', '[tabindex]']
    .flatMap(kind => [...document.querySelectorAll(kind)])
    .filter(e => e.checkVisibility() && e.tabIndex >= 0)
    .filter(e => !(e.ariaLabel || e.textContent.trim() || e.labels?.length
        || e.getAttribute('aria-labelledby')))
    .map(e => e.outerHTML)"""
TWICE = """() => [...document.querySelectorAll('[id]')].map(e => e.id)
    .filter((id, i, all) => all.indexOf(id) !== i)"""


def test_all_that_can_be_reached_has_a_name(open_tab: Open) -> None:
    tab = open_tab()
    tab.wait_for_selector("main h1")

    def check() -> None:
        assert tab.evaluate(UNNAMED) == []
        assert tab.evaluate(TWICE) == []
        assert tab.locator("h1").count() == 1

    check()
    start_game(tab)
    for phase in ("disc", "place", "move"):
        click_to(tab, phase)
        check()
    drop(tab, "one.jsonl", record_line(some_record()))
    tab.wait_for_selector(".viewer .graph")
    check()
    tab.goto(tab.url.split("/replay")[0] + "/game/none")
    sync_api.expect(tab.get_by_role("alert").first).to_have_text(
        "The server does not hold this game any more."
    )
    check()


def test_help_tells_the_rules_and_lists_the_keys(open_tab: Open) -> None:
    tab = open_tab()
    tab.locator(".level").first.wait_for()
    tab.keyboard.press("?")
    dialog = tab.get_by_role("dialog", name="How to play")
    assert dialog.is_visible()
    assert dialog.evaluate("e => e.scrollTop") == 0
    assert "10 castles on the board" in dialog.inner_text()
    tab.keyboard.press("Escape")
    sync_api.expect(dialog).to_be_hidden()
    tab.get_by_role("button", name="Help").click()
    assert dialog.is_visible()


def test_one_choice_begins_a_game(open_tab: Open, page: Page) -> None:
    tab = open_tab()
    tab.get_by_role("button", name="Easy").click()
    decided(tab)
    assert record_of(tab, page)["agents"] == [None, LEVELS[0].agents[2]]


def test_a_bot_is_paused_and_goes_on(open_tab: Open) -> None:
    tab = open_tab(speed="slow")
    more(tab)
    tab.get_by_label("Seat 1", exact=True).select_option("random")
    tab.get_by_role("button", name="Start").click()
    tab.wait_for_selector(".log li")
    tab.get_by_role("button", name="Pause").click()
    tab.get_by_role("button", name="Resume").wait_for()
    tab.wait_for_timeout(1700)
    before = events(tab)
    tab.wait_for_timeout(1700)
    assert events(tab) == before
    tab.keyboard.press("s")
    tab.wait_for_function("n => document.querySelectorAll('.log li').length > n", arg=before)


def test_a_record_plays_by_itself_until_it_is_paused_or_over(open_tab: Open) -> None:
    tab = open_tab("/replay")
    record = some_record(1)
    drop(tab, "one.jsonl", record_line(record))
    tab.wait_for_selector(".viewer .board svg")
    last = len(record["events"])
    tab.get_by_role("button", name="Play", exact=True).click()
    tab.wait_for_function("() => document.querySelector('.board').dataset.at >= 2")
    tab.keyboard.press("ArrowLeft")  # any other way to go stops it
    sync_api.expect(tab.get_by_role("button", name="Play", exact=True)).to_be_visible()
    at = tab.get_by_role("slider").input_value()
    tab.wait_for_selector(f'.board[data-at="{at}"]')
    tab.wait_for_timeout(1300)
    assert tab.get_by_role("slider").input_value() == at
    tab.locator("h1").click()
    tab.keyboard.press(" ")
    tab.wait_for_selector(f'.board[data-at="{last}"]')
    sync_api.expect(tab.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_a_position_is_copied_pasted_and_linked(open_tab: Open, page: Page) -> None:
    tab = open_tab(permissions=["clipboard-read", "clipboard-write"])
    start_game(tab)
    click_to(tab, "place")
    tab.get_by_role("button", name="Share").click()
    dialog = tab.get_by_role("dialog", name="Share")
    line = dialog.get_by_label("The position as text").input_value()
    dialog.get_by_role("button", name="Copy position").click()
    sync_api.expect(tab.locator("#notice")).to_have_text("Copied.")
    assert tab.evaluate("navigator.clipboard.readText()") == line
    dialog.get_by_role("button", name="Copy link").click()
    link = tab.evaluate("navigator.clipboard.readText()")
    dialog.get_by_role("button", name="Close").click()
    for text in (line, link):
        tab.goto(page.address)
        tab.get_by_label("A position as text").fill(text)
        tab.get_by_role("button", name="Show it").click()
        tab.wait_for_url("**/position#*")
        tab.wait_for_selector(".board svg")
        assert tab.url == link
    tab.get_by_label("Bot to ask").select_option("greedy")
    tab.get_by_role("button", name="Ask").click()
    tab.get_by_role("region", name="What greedy thinks").wait_for()


def test_a_board_is_saved_as_a_picture(open_tab: Open) -> None:
    tab = open_tab()
    start_game(tab)
    tab.get_by_role("button", name="Share").click()
    saved = {}
    for name in ("PNG", "SVG"):
        with tab.expect_download() as download:
            tab.get_by_role("button", name=f"Save {name}").click()
        saved[download.value.suggested_filename] = download.value.path().read_bytes()
    assert saved["carolus.png"].startswith(b"\x89PNG")
    assert int.from_bytes(saved["carolus.png"][16:20], "big") == 1200  # pixels across
    assert saved["carolus.svg"].startswith(b"<svg ")


SMALL = """() => [...document.querySelectorAll('button, a, input, select, summary, .board .open')]
    .filter(e => e.checkVisibility() && !e.disabled)
    .filter(e => !e.matches('.unseen, .skip-link, [type=radio]'))
    .map(e => [e, e.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.width < 24 || box.height < 24))
    .map(([e, box]) => `${e.outerHTML.slice(0, 90)} ${box.width} x ${box.height}`)"""


@pytest.mark.parametrize("width", [360, 768])
def test_all_that_is_touched_is_24_pixels_large(
    open_tab: Open,
    page: Page,
    width: int,
) -> None:
    tab = open_tab(size={"width": width, "height": 800}, has_touch=True)
    tab.locator(".level").first.wait_for()
    assert tab.evaluate(SMALL) == []
    start_game(tab)
    seen = set()
    while len(seen) < 4 and (phase := decided(tab)) != "over":
        if phase not in seen:
            seen.add(phase)
            assert tab.evaluate(SMALL) == [], phase
        click_on(tab)
    assert seen == {"disc", "place", "move", "crown"}
    tab.goto(f"{page.address}/replay")
    drop(tab, "one.jsonl", record_line(some_record()))
    tab.wait_for_selector(".viewer .graph")
    assert tab.evaluate(SMALL) == []


def test_the_actions_stay_in_sight_on_a_phone(open_tab: Open) -> None:
    tab = open_tab(size=PHONE, has_touch=True)
    start_game(tab)
    for phase in ("disc", "place", "move"):
        click_to(tab, phase)
        for y in (0, 300, 10_000):
            tab.evaluate("y => scrollTo(0, y)", y)
            box = tab.locator(".choices button").first.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= PHONE["height"], (phase, y)
        reached = tab.evaluate(
            """() => {  // the end of the page is not hidden behind them
                const last = document.querySelector('.log').getBoundingClientRect().bottom;
                return last <= document.querySelector('.turn').getBoundingClientRect().top + 1;
            }"""
        )
        assert reached, phase


def test_everything_on_the_board_has_a_tip(open_tab: Open) -> None:
    tab = open_tab()
    start_game(tab)
    click_to(tab, "place")
    tip = tab.locator(".tip")
    for kind, said in (
        (".disc", "disc 1: "),
        (".reserve .token", "reserve: "),
        (".supply .token", " in the supply"),
        (".castles", " of 10 castles"),
        (".court", ""),
        (".region", ""),
        (".emperor", "The Emperor"),
    ):
        tab.mouse.move(5, 5)
        sync_api.expect(tip).to_be_hidden()
        tab.locator(f".board {kind}").first.locator("path, circle, rect, text").first.hover(
            force=True
        )
        sync_api.expect(tip).to_be_visible()
        assert said in tip.inner_text(), kind


READ = ("button", "combobox", "link", "textbox", "radio", "slider", "image", "img", "log")


def read(tab: Tab) -> list[tuple[str, str, dict[str, Any]]]:
    """Role, name and properties of what a screen reader meets, in order, by Chromium itself."""
    session = tab.context.new_cdp_session(tab)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [
        (
            node["role"]["value"],
            node.get("name", {}).get("value", ""),
            {one["name"]: one["value"].get("value") for one in node.get("properties", [])},
        )
        for node in nodes
        if not node["ignored"]
    ]


def test_a_screen_readers_path_through_a_whole_turn(open_tab: Open) -> None:
    tab = open_tab()
    start_game(tab)
    phases = []
    while "move" not in phases:
        phase = decided(tab)
        phases.append(phase)
        nodes = read(tab)
        roles = [role for role, _, _ in nodes]
        assert roles.count("main") == 1
        nameless = {role for role, name, more in nodes if more.get("focusable") and not name}
        assert nameless <= {"main"}, "where the link to the main part leads"
        assert [role for role, name, _ in nodes if role in READ and not name] == []
        headings = [name for role, name, _ in nodes if role == "heading"]
        [turn] = [name for name in headings if name.endswith(": Player 1")]
        board = next(
            name for role, name, _ in nodes if role in ("image", "img") and "round" in name
        )
        assert "Player 1" in board, "the board says what is due"
        status = tab.get_by_role("status").inner_text()
        assert turn in status, "and so does the announcement"
        # Only keys that a screen reader leaves to the page: Tab and Enter.
        names = [
            name for role, name, more in nodes if role == "button" and not more.get("disabled")
        ]
        wanted = {
            "disc": lambda name: name.startswith("disc "),
            "crown": lambda name: name.startswith("Choose "),
            "place": lambda name: " paladin to " in name,
            "move": lambda name: " step" in name,
        }[phase]
        if phase == "place" and not any(map(wanted, names)):
            tab.locator(".hand button").first.focus()
            tab.keyboard.press("Enter")
            names = [name for role, name, more in read(tab) if role == "button"]
        assert any(map(wanted, names)), (phase, names)
        tab.locator("h1").evaluate("e => e.focus()")
        for _ in range(60):
            tab.keyboard.press("Tab")
            focused = tab.evaluate(
                "document.activeElement.ariaLabel || document.activeElement.textContent"
            )
            if wanted(focused):
                break
        after(tab, lambda: tab.keyboard.press("Enter"))
    assert set(phases) >= {"disc", "place", "move"}
    assert events(tab) >= len(phases)


# ------------------------------------------------------------------------------------ drawings

BOX = "e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; }"


def box(place: Any) -> list[float]:
    return place.evaluate(BOX)


@pytest.fixture
def sheet(browser: Any) -> Iterator[Tab]:
    """A page without a server."""
    context = browser.new_context(viewport=DESKTOP)
    yield context.new_page()
    context.close()


def bare(tab: Tab, svg: str) -> None:
    tab.set_content(f'<body style="margin:0;width:1200px">{svg}')


def test_the_emperor_hides_no_number_and_no_text(sheet: Tab) -> None:
    states = ce.new_games(Rules(), 1, seed=1)
    tab = sheet
    for region in range(15):
        states["emperor"] = region
        bare(tab, board_svg(states[0], layout="wide"))
        covered = tab.evaluate(
            """() => {
                const box = (e) => e.getBoundingClientRect();
                const he = box(document.querySelector('.emperor'));
                return [...document.querySelectorAll('text')].filter((text) => {
                    const t = box(text);
                    const [high, low] = [t.top + t.height * 0.2, t.bottom - t.height * 0.2];
                    const beside = t.right < he.left || he.right < t.left;
                    return !beside && high < he.bottom && he.top < low;
                }).map((text) => text.textContent);
            }"""
        )
        assert covered == [], region


@pytest.mark.parametrize("name", ["\U0001f389" * 40, "W" * 40, "日本" * 20, "m" * 40])
def test_long_and_wide_names_stay_in_their_places(sheet: Tab, name: str) -> None:
    states = ce.new_games(Rules(), 1, seed=1)
    while states["phase"][0] != PLACE:
        last = states.copy()[0], int(np.flatnonzero(ce.legal_masks(states)[0])[0])
        ce.step(states, np.array([last[1]]))
    tab = sheet
    bare(tab, board_svg(states[0], names=[name, name], layout="wide", last=last))
    for seat in tab.locator(".seat").all():
        label, castles = box(seat.locator("text").first), box(seat.locator(".castles rect").first)
        assert label[2] <= castles[0]
    reach = tab.evaluate(
        """() => [...document.querySelectorAll('svg > g:first-of-type > text')].map((text) => {
            const { x, width } = text.getBBox();
            return Math.max(500 - x, x + width - 500);
        })"""
    )
    assert len(reach) >= 5 and max(reach) <= 215  # where the Emperor begins
